/* SPDX-License-Identifier: MIT */
/*
 * One update. In order: hooks; the new values as nodes; the handles are pointed at them and the gradients let go, so
 * that during evaluation only the graph itself holds the gradients, and this step the old values, and their memory can
 * be reused; evaluation. If it fails the handles go back to the old values. They are held here and not by the graph
 * alone: a program's rule need not depend on them, and what has been computed on several devices before one of them
 * fails needs its inputs no longer. What overwrites them runs last, when there are plans and memory for all.
 */
#include "optim/rules.h"

#include "array/build_parts.h"
#include "array/guard.h"
#include "autograd/backward.h"
#include "core/hash.h"
#include "engine/engine.h"
#include "optim/shard.h"

tn_dtype tn__update_dtype(const tn__node *param)
{
    return (tn_dtype)tn__dtypes[param->dtype].compute;
}

static tn_status run_hooks(tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    if (optimizer->hook_count == 0)
        return status;
    tn__scope_guard scope = tn__scope_enter();
    for (size_t i = 0; i < optimizer->hook_count && status == TN_OK; i++) {
        const tn__hook *hook = &optimizer->hooks[i];
        status = hook->run(optimizer, optimizer->layer, hook->user);
        if (status != TN_OK)
            tn__fail(status, "step", "gradient hook %zu failed with %s: parameters are as they were", i,
                     tn_status_name(status));
    }
    tn__scope_leave(&scope);
    return status;
}

/* ---- the state before the step ---- */

/* What a state begins as, for a parameter p. */
static tn__node *first_state(const tn_optimizer *optimizer, const tn__node *p, int which)
{
    tn_dtype dtype = tn__update_dtype(p);
    const tn__shape *shape = tn__shape_make("step", tn__state_shape(optimizer, p->shape, which), dtype);
    double value = optimizer->rule->starts_at_one && which == 0 ? 1 : 0;
    return shape ? tn__const(value, dtype, shape, p->device) : tn__failed();
}

/* For the parameters that have none yet, as values, so that the first step has the plan of all others. State that is
 * there lies on its parameter's device, as tn_layer_to moves both. */
static tn_status prepare_state(tn_optimizer *optimizer)
{
    int count = 0;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__node *p = optimizer->work[i].param;
        for (int s = 0; s < optimizer->states && optimizer->work[i].gradient; s++) {
            if (optimizer->tracked[i].state[s])
                continue;
            tn__node *node = first_state(optimizer, p, s);
            if (tn__node_is_error(node))
                return tn__error_raise(node->error);
            optimizer->work[i].state[s] = node;
            optimizer->roots[count++] = node;
        }
    }
    tn_status status = tn__evaluate(count, optimizer->roots);
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        for (int s = 0; s < optimizer->states && status == TN_OK; s++) {
            tn_array **state = &optimizer->tracked[i].state[s];
            tn__node *node = optimizer->work[i].state[s];
            if (node && tn__handle_of(*state = tn__array_own_new(node))->is_static) {
                *state = NULL;
                status = TN_ERR_MEMORY;
            }
        }
        if (optimizer->shard && optimizer->work[i].updated)
            optimizer->tracked[i].shard.made |= (1u << optimizer->states) - 1;
    }
    return status;
}

/* ---- the update as nodes ---- */

static tn__node *new_value(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn_dtype dtype = (tn_dtype)p->dtype, wide = tn__update_dtype(p);
    tn__node *from = tn__cast(p, wide);
    g = tn__gradient_changed(u, from, tn__cast(g, wide));
    return tn__cast(u->optimizer->rule->update(u, from, g, state), dtype);
}

/* Of a table all rows, or those that were looked up, where no others change. */
static tn__node *new_table(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    int axis;
    tn__node *sums = NULL, *from = p;
    bool still = u->optimizer->rule->still && !tn__changes_gradients(u);
    tn__node *rows = still ? tn__looked_up(g, &axis, &sums) : NULL;
    if (!rows)
        return new_value(u, p, g, state);
    if (tn__node_is_error(rows) || tn__node_is_error(from = tn__gather(p, rows, axis)))
        return tn__node_is_error(rows) ? rows : from;
    return tn__scatter_node(TN__OP_SCATTER_SET, p, rows, new_value(u, from, sums, state), axis);
}

static tn_status clip_gradients(tn_optimizer *optimizer)
{
    int count = (int)optimizer->tracked_count;
    tn__node **gradient = optimizer->roots; /* large enough, and not in use yet */
    for (int i = 0; i < count; i++) {
        const tn__tracked *tracked = &optimizer->tracked[i];
        gradient[i] = optimizer->work[i].gradient;
        if (gradient[i] && tracked->own_given) {
            tn__settings own = tn__settings_now(optimizer, tracked);
            gradient[i] = tn__clip_values(&own.set, gradient[i]);
        } else if (gradient[i]) {
            gradient[i] = tn__clip_values(&optimizer->set, gradient[i]);
        }
        if (gradient[i] && tn__node_is_error(gradient[i]))
            return tn__error_raise(gradient[i]->error);
    }
    tn_status status = tn__clip_norm(optimizer, count, gradient);
    for (int i = 0; i < count; i++)
        optimizer->work[i].gradient = gradient[i];
    return status;
}

/* The new parameter and state as nodes; the old ones where the step is to change nothing. */
static tn_status record_param(tn_optimizer *optimizer, const tn__settings *u, tn__tracked *tracked, tn__work *work)
{
    tn__node *p = work->param, *keep = optimizer->wrong.keep;
    for (int s = 0; s < optimizer->states; s++)
        work->state[s] = tn__array_node(tracked->state[s]);
    work->value = new_table(u, p, work->gradient, work->state);
    if (keep) {
        keep = keep->device == p->device ? keep : tn__to(keep, p->device);
        work->value = tn__where(keep, p, work->value);
        for (int s = 0; s < optimizer->states; s++)
            work->state[s] = tn__where(keep, tn__array_node(tracked->state[s]), work->state[s]);
    }
    for (int s = 0; s < optimizer->states; s++) {
        if (tn__node_is_error(work->state[s]))
            return tn__error_raise(work->state[s]->error);
    }
    return tn__node_is_error(work->value) ? tn__error_raise(work->value->error) : TN_OK;
}

/* Parameters that had the same number of updates, as all have that always get gradients, share their settings. */
static tn_status record_all(tn_optimizer *optimizer)
{
    tn__settings shared = {.t = 0};
    tn_status status = TN_OK;
    optimizer->noise = (tn_generator){.key = tn__hash_mix(optimizer->noise_key, (uint64_t)optimizer->steps)};
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        tn__tracked *tracked = &optimizer->tracked[i];
        tn__work *work = &optimizer->work[i];
        if (!work->gradient)
            continue;
        if (tracked->own_given) {
            tn__settings own = tn__settings_now(optimizer, tracked);
            status = record_param(optimizer, &own, tracked, work);
            continue;
        }
        if (shared.t != tracked->steps + 1)
            shared = tn__settings_now(optimizer, tracked);
        status = record_param(optimizer, &shared, tracked, work);
    }
    return status;
}

/* Does it look at indices where that fails at once? */
static bool looks(const tn__node *node)
{
    return node->flags & TN__NODE_LOOKS && !node->device->capabilities.late_failures;
}

/* Does any array that a step computes? */
static bool anything_looks(int count, tn__node *const *gradients)
{
    tn__handle *const *handle;
    int handles = tn__pending_handles(&handle);
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= looks(gradients[i]);
    for (int i = 0; i < handles; i++)
        any |= looks(handle[i]->node);
    return any;
}

/* Where parameters are on several devices, an index out of range on one of them may be met when others' new values are
 * there already: so indices are looked at before. */
static tn_status settle_gradients(tn_optimizer *optimizer)
{
    int count = 0;
    bool several = false;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        tn__node *gradient = optimizer->work[i].gradient;
        if (!gradient)
            continue;
        optimizer->roots[count++] = gradient;
        several |= gradient->device != optimizer->roots[0]->device;
    }
    bool settle = several && anything_looks(count, optimizer->roots);
    return settle ? tn__evaluate_step(count, optimizer->roots) : TN_OK;
}

int tn__look_for_gradients(tn_optimizer *optimizer)
{
    int gradients = 0;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn_array *param = optimizer->tracked[i].param;
        const tn__var *var = tn__handle_of(param)->var;
        tn__node *gradient = var ? tn__var_grad(var) : NULL;
        optimizer->work[i] =
            (tn__work){.gradient = gradient, .param = tn__array_node(param), .updated = gradient != NULL};
        gradients += gradient != NULL;
    }
    return gradients;
}

static tn_status record(tn_optimizer *optimizer)
{
    int gradients = optimizer->shard ? tn__shard_look(optimizer) : tn__look_for_gradients(optimizer);
    if (gradients == 0)
        return tn__fail(TN_ERR_STATE, "step",
                        "no parameter has a gradient: call tn_backward on the loss before each tn_step");
    tn_status status = settle_gradients(optimizer);
    if (status == TN_OK)
        status = prepare_state(optimizer);
    if (status == TN_OK)
        status = clip_gradients(optimizer);
    return status == TN_OK ? record_all(optimizer) : status;
}

/* ---- putting it in place ---- */

static bool updates_come_last(const tn_optimizer *optimizer)
{
    return tn__on_gpu(tn__array_node(optimizer->tracked[0].param)->device);
}

/*
 * Points the handles at the new nodes and keeps the old ones in their place, held as optimizer->old: states alone,
 * where updates are shared out. Returns the number of roots, and of old ones. What comes first among the roots comes
 * first in the plan, with all that it needs: the last layer's update, which is at hand when backward is there, and so
 * on, so that a layer's gradients live no longer than backward needs them. (A GPU's plan puts all updates into its last
 * launches, as nobody waits for them.)
 */
static int exchange(tn_optimizer *optimizer)
{
    int count = 0;
    for (size_t k = 0; k < optimizer->tracked_count; k++) {
        size_t i = updates_come_last(optimizer) ? k : optimizer->tracked_count - 1 - k;
        const tn__tracked *tracked = &optimizer->tracked[i];
        tn__work *work = &optimizer->work[i];
        if (!work->gradient)
            continue;
        tn__node *value = work->value;
        if (!optimizer->shard) {
            work->value = tn__array_node(tracked->param);
            optimizer->old[count] = tn__param_replace(tracked->param, value);
            optimizer->roots[count++] = value;
        }
        for (int s = 0; s < optimizer->states; s++) {
            tn__node *state = work->state[s];
            work->state[s] = tn__array_node(tracked->state[s]);
            optimizer->old[count] = tn__state_replace(tracked->state[s], state);
            optimizer->roots[count++] = state;
        }
    }
    tn__node *wrong = optimizer->wrong.next;
    if (wrong) {
        optimizer->wrong.next = tn__array_node(optimizer->wrong.count);
        optimizer->old[count] = tn__state_replace(optimizer->wrong.count, wrong);
        optimizer->roots[count++] = wrong;
    }
    return count;
}

/* Back to the old values, where the new ones have not been computed. */
static void restore(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__tracked *tracked = &optimizer->tracked[i];
        tn__work *work = &optimizer->work[i];
        if (!work->gradient)
            continue;
        for (int s = 0; s < optimizer->states; s++) {
            if (!tn__array_node(tracked->state[s])->storage)
                tn__state_point(tracked->state[s], work->state[s]);
        }
        if (!optimizer->shard && !tn__array_node(tracked->param)->storage)
            tn__param_point(tracked->param, work->value);
    }
    if (optimizer->wrong.next && !tn__array_node(optimizer->wrong.count)->storage)
        tn__state_point(optimizer->wrong.count, optimizer->wrong.next);
}

static void clear_gradients(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        tn__var *var = tn__handle_of(optimizer->tracked[i].param)->var;
        if (var)
            tn__var_set_grad(var, NULL);
    }
}

/* After a failure that leaves no gradient to anybody: a loss that still has a handle is an array like others now, and
 * no step fails because it cannot be computed along. */
static void forget_backward(void)
{
    tn__handle *const *handle;
    int count = tn__pending_gradients(NULL, 0) == 0 ? tn__pending_handles(&handle) : 0;
    for (int i = 0; i < count; i++)
        handle[i]->node->flags &= (uint16_t)~TN__NODE_BACKWARD;
}

static void count_step(tn_optimizer *optimizer)
{
    optimizer->steps++;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].steps += optimizer->work[i].updated;
}

static tn_status update(tn_optimizer *optimizer)
{
    tn__call call = tn__enter();
    int roots = 0, count = 0;
    tn_status status = record(optimizer);
    if (status == TN_OK)
        roots = count = exchange(optimizer);
    if (status == TN_OK && optimizer->shard)
        roots = tn__shard_put(optimizer, count);
    clear_gradients(optimizer);
    tn__leave(call);
    if (status == TN_OK) {
        status = roots < 0 ? tn_error_code()
                           : tn__evaluate_update(roots, optimizer->roots, count, optimizer->old);
        if (status != TN_OK)
            restore(optimizer);
        else if (optimizer->shard)
            status = tn__shard_spread(optimizer);
        for (int i = 0; i < count; i++)
            tn__node_release(optimizer->old[i]);
        optimizer->wrong.unread += status == TN_OK && optimizer->wrong.next;
    }
    if (status == TN_OK)
        status = tn__clip_look(optimizer, false);
    if (status == TN_OK)
        count_step(optimizer);
    if (status != TN_OK)
        forget_backward();
    return status;
}

tn_status tn_step(tn_optimizer *optimizer)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    status = tn__optimizer_sync(optimizer);
    if (status != TN_OK) {
        tn_layer_clear_grads(optimizer->layer);
        return status;
    }
    TN__GUARD_OF("step", optimizer);
    bool skip = false;
    tn__no_grad_depth++;
    if (optimizer->comm)
        status = tn__optimizer_share(optimizer, &skip);
    if (status == TN_OK && !skip)
        status = run_hooks(optimizer);
    if (status == TN_OK && !skip)
        status = update(optimizer);
    else
        clear_gradients(optimizer);
    if (optimizer->shard)
        tn__shard_close(optimizer, status);
    tn__no_grad_depth--;
    return status;
}
