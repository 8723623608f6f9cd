/* SPDX-License-Identifier: MIT */
/*
 * Clipping gradients: each element, then their joint norm (Pascanu, Mikolov, Bengio 2013). A norm that is no finite
 * number changes nothing: the step selects the old values where it is not (wrong.keep), so that no one has to wait for
 * it, and counts on the device how often that was so (wrong.count), which is looked at after the step where a run has
 * ended by then, else every few steps.
 */
#include "optim/optimizer.h"

#include <math.h>
#include <tanso/array.h>
#include "engine/engine.h"
#include "optim/shard.h"

enum { LOOK_EVERY = 16 }; /* steps, on devices whose runs go on after they return */

tn__node *tn__clip_values(const tn_optimizer_opts *set, tn__node *g)
{
    double low = set->clip_low, high = set->clip_high;
    if (set->clip_value > 0) {
        low = fmax(low, -set->clip_value);
        high = fmin(high, set->clip_value);
    }
    if (low > -INFINITY)
        g = tn__binary(TN__OP_MAXIMUM, g, tn__const_like(g, low));
    return high < INFINITY ? tn__binary(TN__OP_MINIMUM, g, tn__const_like(g, high)) : g;
}

/* Whether gradient i is the first one on its device. */
static bool is_first(int i, tn__node *const *gradient)
{
    for (int k = 0; k < i; k++)
        if (gradient[k] && gradient[k]->device == gradient[i]->device)
            return false;
    return true;
}

static tn__node *on_device(tn__node *x, tn__device *device)
{
    return x->device == device || tn__node_is_error(x) ? x : tn__to(x, device);
}

static tn__node *sum_of_squares(tn__node *g)
{
    g = tn__cast(g, (tn_dtype)tn__dtypes[g->dtype].compute);
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__unary(TN__OP_SQUARE, g), (1u << g->shape->ndim) - 1);
    return tn__reshape(sum, 0, NULL);
}

/* The square of the norm of all gradients together, as a 0-d array of at least float32 on the device of the first;
 * NULL if there are none. */
static tn__node *squared_norm(int count, tn__node *const *gradient)
{
    tn__node *total = NULL;
    for (int i = 0; i < count; i++) {
        if (!gradient[i] || !is_first(i, gradient))
            continue;
        tn__node *here = sum_of_squares(gradient[i]);
        for (int k = i + 1; k < count; k++)
            if (gradient[k] && gradient[k]->device == gradient[i]->device)
                here = tn__binary(TN__OP_ADD, here, sum_of_squares(gradient[k]));
        total = total ? tn__binary(TN__OP_ADD, total, on_device(here, total->device)) : here;
        if (tn__node_is_error(total))
            return total;
    }
    return total;
}

/* Zero as a value, so that the first step has the plan of all others. */
static tn_status prepare_count(tn_optimizer *optimizer, tn__node *like)
{
    if (optimizer->wrong.count)
        return TN_OK;
    tn__node *zero = tn__const_like(like, 0);
    tn_status status = tn__node_is_error(zero) ? tn__error_raise(zero->error) : tn__evaluate(1, &zero);
    tn_array *count = status == TN_OK ? tn__array_own_new(zero) : NULL;
    if (!count || tn__handle_of(count)->is_static)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    optimizer->wrong.count = count;
    return TN_OK;
}

/* The count of wrong norms with this one, and whether this step keeps everything as it is: for one that is wrong, and
 * after an error that has not been told of yet. */
static tn_status watch(tn_optimizer *optimizer, tn__node *total)
{
    tn__node *bad = tn__cast(tn__unary(TN__OP_LOGICAL_NOT, tn__unary(TN__OP_ISFINITE, total)), TN_FLOAT32);
    tn_status status = prepare_count(optimizer, bad);
    if (status != TN_OK)
        return status;
    tn__node *all = tn__binary(TN__OP_ADD, on_device(tn__array_node(optimizer->wrong.count), total->device), bad);
    tn__node *keep = tn__with(TN__OP_GREATER, optimizer->set.skip_nonfinite ? bad : all, 0);
    if (tn__node_is_error(keep))
        return tn__error_raise(keep->error);
    optimizer->wrong.next = all;
    optimizer->wrong.keep = keep;
    return TN_OK;
}

/* Multiplies those on one device by min(1, limit / norm). */
static tn_status scale(tn__node *ratio, int count, tn__node **gradient)
{
    for (int i = 0; i < count; i++) {
        if (!gradient[i] || !is_first(i, gradient))
            continue;
        tn__device *device = gradient[i]->device;
        tn__node *there = on_device(ratio, device);
        if (tn__node_is_error(there))
            return tn__error_raise(there->error);
        for (int k = i; k < count; k++)
            if (gradient[k] && gradient[k]->device == device)
                gradient[k] = tn__binary(TN__OP_MULTIPLY, gradient[k], tn__cast(there, (tn_dtype)gradient[k]->dtype));
    }
    return TN_OK;
}

tn_status tn__clip_norm(tn_optimizer *optimizer, int count, tn__node **gradient)
{
    double limit = optimizer->set.clip_norm;
    optimizer->wrong.next = optimizer->wrong.keep = NULL;
    if (limit <= 0 && !optimizer->set.skip_nonfinite)
        return TN_OK;
    tn__node *total = squared_norm(count, gradient);
    if (optimizer->shard)
        total = tn__shard_sum(optimizer, total);
    if (!total)
        return TN_OK;
    if (tn__node_is_error(total))
        return tn__error_raise(total->error);
    tn_status status = watch(optimizer, total);
    if (status != TN_OK || limit <= 0)
        return status;
    tn__node *ratio = tn__binary(TN__OP_DIVIDE, tn__const_like(total, limit), tn__unary(TN__OP_SQRT, total));
    ratio = tn__binary(TN__OP_MINIMUM, ratio, tn__const_like(ratio, 1));
    return tn__node_is_error(ratio) ? tn__error_raise(ratio->error) : scale(ratio, count, gradient);
}

tn_status tn__clip_look(tn_optimizer *optimizer, bool now)
{
    tn_array *count = optimizer->wrong.count;
    if (!count || optimizer->set.skip_nonfinite || optimizer->wrong.unread == 0)
        return TN_OK;
    if (!now && tn__array_node(count)->device->capabilities.late_failures && optimizer->wrong.unread < LOOK_EVERY)
        return TN_OK;
    float wrong = 0;
    optimizer->wrong.unread = 0;
    tn_status status = tn__read(tn__array_node(count), &wrong);
    if (status != TN_OK || wrong == 0)
        return status;
    tn__array_free_kept(count);
    optimizer->wrong.count = NULL;
    return tn__fail(TN_ERR_NAN, "step",
                    "the norm of the gradients is infinite or NaN, so that nothing was changed: lower the learning "
                    "rate or look for what is not finite; .skip_nonfinite = true leaves such updates out");
}
