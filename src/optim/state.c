/* SPDX-License-Identifier: MIT */
/* The arrays that optimizers remember, by number and by name, for snapshots. */
#include "optim/optimizer.h"

#include <string.h>
#include <tanso/array.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "optim/shard.h"

/* A parameter's state, as a whole where that is there beside this rank's part; NULL: none yet. */
static tn_array *shown(const tn__tracked *tracked, int which)
{
    return tracked->shard.whole[which] ? tracked->shard.whole[which] : tracked->state[which];
}

/* The i-th state array there is: its parameter, and *which of the rule's. NULL if there are fewer. */
static const tn__tracked *state_at(const tn_optimizer *optimizer, int i, int *which)
{
    for (size_t k = 0; optimizer && k < optimizer->tracked_count; k++) {
        for (*which = 0; *which < optimizer->states; ++*which) {
            if (shown(&optimizer->tracked[k], *which) && i-- == 0)
                return &optimizer->tracked[k];
        }
    }
    return NULL;
}

int tn_optimizer_state_count(const tn_optimizer *optimizer)
{
    int count = 0;
    for (size_t k = 0; optimizer && k < optimizer->tracked_count; k++) {
        for (int s = 0; s < optimizer->states; s++)
            count += shown(&optimizer->tracked[k], s) != NULL;
    }
    return count;
}

static void no_such_state(const tn_optimizer *optimizer, int i)
{
    tn__fail(TN_ERR_INDEX, "optimizer_state", "index %d is out of range: the optimizer has %d state arrays", i,
             tn_optimizer_state_count(optimizer));
}

tn_array *tn_optimizer_state(const tn_optimizer *optimizer, int i)
{
    int which;
    const tn__tracked *tracked = i < 0 ? NULL : state_at(optimizer, i, &which);
    if (tracked)
        return shown(tracked, which);
    no_such_state(optimizer, i);
    return tn__failed_array();
}

const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int i)
{
    int which;
    const tn__tracked *tracked = i < 0 ? NULL : state_at(optimizer, i, &which);
    if (tracked)
        return tracked->state_name[which];
    no_such_state(optimizer, i);
    return "";
}

/* ---- setting ---- */

tn_shape tn__state_shape(const tn_optimizer *optimizer, const tn__shape *param, int which)
{
    return optimizer->rule->state_shape ? optimizer->rule->state_shape(param, which) : tn__shape_value(param);
}

static bool same_shape(const tn__shape *a, const tn_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dim, b->dim, (size_t)b->ndim * sizeof *b->dim) == 0;
}

static tn_status unknown_state(const tn_optimizer *optimizer, const char *name)
{
    int states = optimizer->states, count = (int)optimizer->tracked_count * states;
    const char **names = count > 0 ? tn__alloc((size_t)count * sizeof *names) : NULL;
    for (int i = 0; names && i < count; i++)
        names[i] = optimizer->tracked[i / states].state_name[i % states];
    const char *near = names ? tn__nearest_name(name, names, count) : NULL;
    tn_status status =
        near ? tn__fail(TN_ERR_NAME, "optimizer_set_state", "%s has no state '%s': did you mean '%s'?",
                        optimizer->rule->name, name, near)
             : tn__fail(TN_ERR_NAME, "optimizer_set_state",
                        "%s has no state '%s' for the parameters its layer has so far", optimizer->rule->name, name);
    tn__free(names);
    return status;
}

static tn_status check_state(const tn_optimizer *optimizer, const tn__tracked *tracked, int which,
                             const tn_array *value)
{
    const tn__node *p = tn__array_node(tracked->param), *given = tn__node_of(value, "optimizer_set_state");
    if (tn__node_is_error(given))
        return tn__error_raise(given->error);
    char wanted[TN__SHAPE_TEXT], got[TN__SHAPE_TEXT];
    tn_shape shape = tn__state_shape(optimizer, p->shape, which);
    bool own = optimizer->shard && given->shape == tn__shard_state_shape(optimizer, tracked, which);
    if (!own && !same_shape(given->shape, &shape))
        return tn__fail(TN_ERR_SHAPE, "optimizer_set_state", "expected '%s' in shape %s, got %s",
                        tracked->state_name[which], tn__shape_text(shape.ndim, shape.dim, wanted),
                        tn__shape_text(given->shape->ndim, given->shape->dim, got));
    if (!tn_dtype_is_float((tn_dtype)given->dtype))
        return tn__fail(TN_ERR_DTYPE, "optimizer_set_state", "expected '%s' floating, got %s",
                        tracked->state_name[which], tn_dtype_name((tn_dtype)given->dtype));
    return TN_OK;
}

static tn_status set_state(tn_optimizer *optimizer, tn__tracked *tracked, int which, const tn_array *value)
{
    const tn__node *p = tn__array_node(tracked->param);
    tn_status status = check_state(optimizer, tracked, which, value);
    if (status != TN_OK)
        return status;
    tn_array *fitting = tn_to(tn_cast(value, tn__update_dtype(p)), p->device->id);
    status = tn_eval(fitting);
    if (status == TN_OK && optimizer->shard)
        return tn__shard_take(optimizer, tracked, which, tn__array_node(fitting));
    if (status != TN_OK)
        return status;
    tn_array *state = tn__array_own_new(tn__array_node(fitting));
    if (tn__handle_of(state)->is_static)
        return TN_ERR_MEMORY;
    tn__array_free_kept(tracked->state[which]);
    tracked->state[which] = state;
    return TN_OK;
}

/* The parameter whose state has this name, and *which of its states; NULL if there is none. */
static tn__tracked *state_named(const tn_optimizer *optimizer, const char *name, int *which)
{
    for (size_t k = 0; k < optimizer->tracked_count; k++) {
        for (*which = 0; *which < optimizer->states; ++*which) {
            if (strcmp(optimizer->tracked[k].state_name[*which], name) == 0)
                return &optimizer->tracked[k];
        }
    }
    return NULL;
}

tn_status tn__optimizer_fits_state(const tn_optimizer *optimizer, const char *name, const tn_array *value)
{
    int which;
    const tn__tracked *tracked = state_named(optimizer, name, &which);
    return tracked ? check_state(optimizer, tracked, which, value) : unknown_state(optimizer, name);
}

tn_status tn_optimizer_set_state(tn_optimizer *optimizer, const char *name, const tn_array *value)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status == TN_OK && !name)
        status = tn__fail(TN_ERR_VALUE, "optimizer_set_state", "expected a name, got NULL");
    if (status == TN_OK)
        status = tn__optimizer_sync(optimizer);
    if (status == TN_OK && optimizer->shard)
        status = tn__shard_settle(optimizer);
    if (status != TN_OK)
        return status;
    int which;
    tn__tracked *tracked = state_named(optimizer, name, &which);
    if (!tracked)
        return unknown_state(optimizer, name);
    tn__scope_guard scope = tn__scope_enter();
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    status = set_state(optimizer, tracked, which, value);
    tn__no_grad_depth--;
    tn__leave(call);
    tn__scope_leave(&scope);
    return status;
}
