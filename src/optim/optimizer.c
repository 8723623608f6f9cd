/* SPDX-License-Identifier: MIT */
/* The life of optimizers, the parameters they follow, hooks. */
#include "optim/optimizer.h"

#include <string.h>
#include <tanso/device.h>
#include "array/guard.h"
#include "optim/shard.h"

/* ---- making and freeing ---- */

static tn_optimizer memory_optimizer = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_optimizer, "optimizer");

static tn_optimizer *new_optimizer(void)
{
    tn_optimizer *optimizer = tn__object_new(&objects);
    if (optimizer)
        return optimizer;
    tn__fail_memory("optimizer", sizeof *optimizer);
    return &memory_optimizer;
}

tn_optimizer *tn__optimizer_error(tn__error *error)
{
    tn_optimizer *optimizer = new_optimizer();
    if (optimizer->is_static)
        tn__error_release(error);
    else
        optimizer->error = error;
    return optimizer;
}

static tn_status each_state(const void *owner, tn_status (*take)(void *user, const tn_array *param, tn_array *array),
                            void *user)
{
    const tn_optimizer *optimizer = owner;
    tn_status status = TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__tracked *tracked = &optimizer->tracked[i];
        for (int s = 0; s < optimizer->states && status == TN_OK; s++) {
            if (tracked->state[s])
                status = take(user, tracked->param, tracked->state[s]);
        }
    }
    return status;
}

tn_optimizer *tn__optimizer_make(const char *operation, const tn__optimizer_rule *rule, tn_layer *layer,
                                 const tn_optimizer_opts *opts, unsigned given)
{
    tn_optimizer_opts set = opts ? *opts : (tn_optimizer_opts){0};
    tn_status status = layer ? tn__layer_raise(layer)
                             : tn__fail(TN_ERR_VALUE, operation, "expected a layer, got NULL");
    if (status == TN_OK)
        status = tn__settings_settle(operation, rule, given, &set);
    if (status != TN_OK)
        return tn__optimizer_error(tn__error_retain(tn__error_last()));
    tn_optimizer *optimizer = new_optimizer();
    if (optimizer->is_static)
        return optimizer;
    optimizer->rule = rule;
    optimizer->layer = layer;
    optimizer->set = set;
    optimizer->first_lr = set.lr;
    while (optimizer->states < TN__MAX_STATE && rule->state[optimizer->states])
        optimizer->states++;
    optimizer->follower = (tn__follower){.owner = optimizer, .each = each_state};
    tn__layer_follow(layer, &optimizer->follower);
    return optimizer;
}

static void free_tracked(tn__tracked *tracked)
{
    for (int i = 0; i < TN__MAX_STATE; i++) {
        tn__array_free_kept(tracked->state[i]);
        tn__array_free_kept(tracked->shard.whole[i]);
        tn__free(tracked->state_name[i]);
    }
    tn__free(tracked->path);
}

void tn_optimizer_free(tn_optimizer *optimizer)
{
    if (!optimizer || optimizer->is_static || !tn__object_may_go(&objects, &optimizer->object) ||
        tn__at_work(optimizer, "optimizer"))
        return;
    tn__layer_unfollow(&optimizer->follower);
    tn__shard_free(optimizer);
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        free_tracked(&optimizer->tracked[i]);
    tn__free(optimizer->tracked);
    tn__free(optimizer->work);
    tn__free(optimizer->roots);
    tn__free(optimizer->old);
    tn__free(optimizer->hooks);
    for (size_t i = 0; i < optimizer->group_count; i++)
        tn__free(optimizer->groups[i].pattern);
    tn__free(optimizer->groups);
    tn__free(optimizer->user.names);
    tn__array_free_kept(optimizer->wrong.count);
    if (optimizer->error)
        tn__error_release(optimizer->error);
    tn__object_end(&objects, &optimizer->object);
}

tn_device tn_optimizer_device(const tn_optimizer *optimizer)
{
    if (!optimizer)
        tn__fail_null("device_of", "an optimizer");
    return optimizer && optimizer->follower.layer ? tn_layer_device(optimizer->layer) : (tn_device){0};
}

tn_status tn_optimizer_status(const tn_optimizer *optimizer)
{
    if (!optimizer)
        return TN_ERR_VALUE;
    if (optimizer->is_static)
        return TN_ERR_MEMORY;
    return optimizer->error ? tn__error_status(optimizer->error) : TN_OK;
}

tn_status tn__optimizer_raise(const tn_optimizer *optimizer)
{
    if (!optimizer)
        return tn__fail_null("optimizer", "an optimizer");
    if (optimizer->is_static)
        return tn__fail_memory("optimizer", sizeof *optimizer);
    if (optimizer->error)
        return tn__error_raise(optimizer->error);
    if (!optimizer->follower.layer)
        return tn__fail(TN_ERR_STATE, "optimizer",
                        "the layer whose parameters this optimizer updates has been freed: free the optimizer, too");
    return TN_OK;
}

/* ---- the parameters ---- */

static bool track(tn_optimizer *optimizer, size_t at, const tn__param *param)
{
    if (!tn__grow((void **)&optimizer->tracked, &optimizer->tracked_capacity, optimizer->tracked_count + 1,
                  sizeof *optimizer->tracked))
        return false;
    tn__tracked tracked = {.param = param->value, .path = tn__strdup(param->path), .steps = optimizer->base};
    bool fine = tracked.path != NULL;
    for (int i = 0; i < optimizer->states && fine; i++)
        fine = (tracked.state_name[i] = tn__format("%s.%s", param->path, optimizer->rule->state[i])) != NULL;
    if (!fine) {
        free_tracked(&tracked);
        return false;
    }
    tn__settings_of_groups(optimizer, &tracked);
    tn__tracked *place = &optimizer->tracked[at];
    memmove(place + 1, place, (optimizer->tracked_count - at) * sizeof *place);
    *place = tracked;
    optimizer->tracked_count++;
    return true;
}

/* Parameters only ever come; those that came lie anywhere between the known ones, whose order stays. */
tn_status tn__optimizer_sync(tn_optimizer *optimizer)
{
    const tn__param *items;
    int count;
    if (optimizer->seen == optimizer->layer->changes)
        return TN_OK;
    if (!tn__layer_flat(optimizer->layer, &items, &count))
        return TN_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        bool known = (size_t)i < optimizer->tracked_count && optimizer->tracked[i].param == items[i].value;
        if (!known && !track(optimizer, (size_t)i, &items[i]))
            return tn__fail_memory("optimizer", sizeof(tn__tracked));
    }
    size_t roots = (1 + TN__MAX_STATE) * (size_t)count + 1;
    if (!tn__grow((void **)&optimizer->work, &optimizer->work_capacity, (size_t)count, sizeof *optimizer->work) ||
        !tn__grow((void **)&optimizer->roots, &optimizer->root_capacity, roots, sizeof *optimizer->roots) ||
        !tn__grow((void **)&optimizer->old, &optimizer->old_capacity, roots, sizeof *optimizer->old))
        return tn__fail_memory("optimizer", (size_t)count * sizeof *optimizer->work);
    optimizer->seen = optimizer->layer->changes;
    return TN_OK;
}

void tn__optimizer_forget(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        free_tracked(&optimizer->tracked[i]);
    optimizer->tracked_count = 0;
    optimizer->seen = UINT64_MAX;
    if (optimizer->shard)
        tn__shard_drop(optimizer);
    if (optimizer->shard)
        optimizer->shard->seen = SIZE_MAX;
}

/* ---- counts and hooks ---- */

int64_t tn_optimizer_steps(const tn_optimizer *optimizer)
{
    return optimizer ? optimizer->steps : 0;
}

void tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t steps)
{
    if (tn__optimizer_raise(optimizer) != TN_OK)
        return;
    if (steps < 0) {
        tn__fail(TN_ERR_VALUE, "optimizer_set_steps", "expected a count >= 0, got %lld", (long long)steps);
        return;
    }
    optimizer->steps = optimizer->base = steps;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].steps = steps;
}

int64_t tn_optimizer_param_steps(const tn_optimizer *optimizer, int i)
{
    if (tn__optimizer_raise(optimizer) != TN_OK || tn__optimizer_sync((tn_optimizer *)optimizer) != TN_OK)
        return 0;
    if (i >= 0 && (size_t)i < optimizer->tracked_count)
        return optimizer->tracked[i].steps;
    tn__fail(TN_ERR_INDEX, "optimizer_param_steps", "index %d is out of range: the layer has %zu parameters", i,
             optimizer->tracked_count);
    return 0;
}

tn_status tn_optimizer_add_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    if (!hook)
        return tn__fail_null("optimizer_add_hook", "a function");
    if (!tn__grow((void **)&optimizer->hooks, &optimizer->hook_capacity, optimizer->hook_count + 1,
                  sizeof *optimizer->hooks))
        return tn__fail_memory("optimizer_add_hook", sizeof *optimizer->hooks);
    optimizer->hooks[optimizer->hook_count++] = (tn__hook){.run = hook, .user = user};
    return TN_OK;
}

void tn_optimizer_remove_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user)
{
    size_t left = 0;
    if (!optimizer || optimizer->is_static)
        return;
    for (size_t i = 0; i < optimizer->hook_count; i++)
        if (optimizer->hooks[i].run != hook || optimizer->hooks[i].user != user)
            optimizer->hooks[left++] = optimizer->hooks[i];
    optimizer->hook_count = left;
}
