/* SPDX-License-Identifier: MIT */
/* Evaluation: collecting, running, and what is tried again where an array that nobody asked for fails. */
#include "engine/engine.h"

#include "core/memory.h"
#include "device/allocator.h"
#include "engine/run.h"

#include <tanso/engine.h>

/* Whether an index out of range is one of what was collected. Where failures come late, it is another run's that is
 * told of, unless this one has not begun: then it reads what a failed run should have computed. */
static bool failed_itself(const tn__collection *c, tn_status status)
{
    return status == TN_ERR_INDEX && (!c->device->capabilities.late_failures || !c->begun);
}

/* Computes each of a step's pending handles by itself. Those that can't be are noted as refused: who reads them is
 * told, and the step goes on without them, unless it goes back through one. */
static tn_status compute_apart(tn__collection *c, tn__node **node, int count)
{
    for (int i = 0; i < count; i++) {
        tn_status status = tn__collect(c, 1, &node[i], TN__COLLECT_ONLY);
        if (status == TN_OK && c->root_count)
            status = tn__run(c, false);
        if (status == TN_OK)
            continue;
        if (node[i]->flags & TN__NODE_BACKWARD || !failed_itself(c, status))
            return status;
        tn_clear_error();
        c->refused[c->refused_count++] = node[i];
    }
    return TN_OK;
}

/* A step again that met an index out of range, which may be of an array that it computed along. */
static tn_status step_again(tn__collection *c, int count, tn__node *const *roots)
{
    tn__handle *const *handle;
    int handles = tn__pending_handles(&handle), along = 0;
    tn__node **node = tn__alloc(2 * sizeof *node * ((size_t)handles + 1));
    if (!node)
        return tn__fail_memory("eval", 2 * sizeof *node * (size_t)handles);
    for (int i = 0; i < handles; i++)
        if (tn__computed_along(handle[i], c->device, TN__COLLECT_STEP))
            node[along++] = tn__node_retain(handle[i]->node);
    c->refused = node + handles + 1;
    tn_status status = compute_apart(c, node, along);
    if (status == TN_OK)
        status = tn__collect(c, count, roots, TN__COLLECT_STEP);
    c->refused_count = 0;
    c->refused = NULL;
    for (int i = 0; i < along; i++)
        tn__node_release(node[i]);
    tn__free(node);
    return status == TN_OK && c->root_count ? tn__run(c, true) : status;
}

bool tn__step_goes_on(tn__collection *c, int count, tn__node *const *roots, bool clean, tn_status *status)
{
    if (!clean || !failed_itself(c, *status))
        return false;
    tn_clear_error();
    *status = step_again(c, count, roots);
    return true;
}

static inline tn_status attempt(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    bool clean = !tn__latched();
    tn_status status = tn__collect(c, count, roots, mode);
    if (status != TN_OK || !c->root_count)
        return status;
    bool more = mode != TN__COLLECT_STEP && c->root_count > c->asked;
    status = tn__run(c, mode == TN__COLLECT_STEP);
    if (mode == TN__COLLECT_STEP && tn__step_goes_on(c, count, roots, clean, &status))
        return status;
    if (status == TN_OK || !more)
        return status;
    if (clean) /* what nobody asked for may be what failed */
        tn_clear_error();
    status = tn__collect(c, count, roots, TN__COLLECT_ONLY);
    return status != TN_OK || !c->root_count ? status : tn__run(c, false);
}

tn_status tn__attempt(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    return attempt(c, count, roots, mode);
}

static tn_status evaluate(int count, tn__node *const *roots, tn__collect_mode mode)
{
    tn__collection *c = tn__collection_get();
    if (!c)
        return tn__fail_memory("eval", sizeof *c);
    bool clean = !tn__latched();
    tn_status status = attempt(c, count, roots, mode);
    if (__builtin_expect(c->crosses, 0))
        status = tn__evaluate_regions(c, count, roots, mode == TN__COLLECT_PART ? TN__COLLECT_STEP : mode);
    if (status == TN_ERR_INDEX && clean && c->begun && !c->device->capabilities.late_failures)
        tn__collection_name_index(c);
    return status;
}

tn_status tn__evaluate(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_ALONG); }

tn_status tn__evaluate_alone(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_ONLY); }

tn_status tn__evaluate_step(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_STEP); }

tn_status tn__evaluate_part(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_PART); }

tn_status tn__evaluate_side_by_side(int count, tn__node *const *roots, bool part)
{
    tn__collection *c = tn__collection_get();
    if (!c)
        return tn__fail_memory("eval", sizeof *c);
    c->together = roots;
    c->together_count = count;
    tn_status status = part ? tn__evaluate_part(count, roots) : tn__evaluate_step(count, roots);
    c->together = NULL;
    c->together_count = 0;
    return status;
}

int64_t tn__side_by_side(int64_t begin, const tn__node *node)
{
    int64_t bytes = node->shape->size * (int64_t)tn_dtype_size((tn_dtype)node->dtype);
    return begin + (bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT;
}

tn_status tn__evaluate_update(int count, tn__node *const *roots, int old_count, tn__node *const *old)
{
    tn__collection *c = tn__collection_get();
    if (!c)
        return tn__fail_memory("eval", sizeof *c);
    c->old = old;
    c->old_count = old_count;
    tn_status status = tn__evaluate_step(count, roots);
    c->old = NULL;
    c->old_count = 0;
    return status;
}

/* ---- the public calls ---- */

tn_status tn_eval(const tn_array *x)
{
    if (x && tn__handle_is_live(x) && tn__array_node(x)->storage)
        return tn__storage_check(tn__array_node(x)->storage);
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "eval");
    tn_status status = tn__evaluate(1, &node);
    tn__leave(call);
    return status;
}

tn_status tn_eval_all(int count, const tn_array *const *arrays)
{
    if (count > 0 && !arrays)
        return tn__fail_null("eval_all", "arrays");
    tn__call call = tn__enter();
    tn__node **roots = tn__alloc(sizeof *roots * ((size_t)(count > 0 ? count : 0) + 1));
    tn_status status = roots ? TN_OK : tn__fail_memory("eval_all", sizeof *roots * (size_t)count);
    for (int i = 0; i < count && status == TN_OK; i++)
        roots[i] = tn__node_of(arrays[i], "eval_all");
    if (status == TN_OK)
        status = tn__evaluate(count, roots);
    tn__free(roots);
    tn__leave(call);
    return status;
}

/* ---- what the rooms below ask the engine for ---- */

static tn_status evaluate_one(tn__node *node)
{
    return evaluate(1, &node, node->depth < tn__max_depth() ? TN__COLLECT_ALONG : TN__COLLECT_DEEP);
}

/* Backward's stretches compute the forward pass again by intention, as its values take memory. */
static tn_status evaluate_all(int count, tn__node *const *roots)
{
    return evaluate(count, roots, TN__COLLECT_WRITTEN);
}

/* Here, as whoever links the archive with one evaluation in his program has this file. */
__attribute__((constructor)) static void set_up(void)
{
    tn__engine.evaluate = evaluate_one;
    tn__engine.evaluate_all = evaluate_all;
    tn__engine.transfer = tn__transfer_recorded;
    tn__engine.relieve = tn__plans_drop_idle;
    tn__plans_watch_forks();
}
