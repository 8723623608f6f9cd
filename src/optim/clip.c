/* SPDX-License-Identifier: MIT */
/* Clipping gradients: each element, then their joint norm (Pascanu, Mikolov, Bengio 2013). */
#include "optim/optimizer.h"

static tn__node *clipped_value(tn__node *g, double limit)
{
    return tn__binary(TN__OP_MINIMUM, tn__binary(TN__OP_MAXIMUM, g, tn__const_like(g, -limit)),
                      tn__const_like(g, limit));
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
    return x->device == device || tn__node_is_error(x) ? x : tn__transfer_hook(x, device);
}

static tn__node *sum_of_squares(tn__node *g)
{
    g = tn__cast(g, (tn_dtype)tn__dtypes[g->dtype].compute);
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__unary(TN__OP_SQUARE, g), (1u << g->shape->ndim) - 1);
    return tn__reshape(sum, 0, NULL);
}

/* min(1, limit / norm) of all gradients together, as a 0-d array of at least float32 on the device of the first; NULL
 * if there are none. */
static tn__node *norm_scale(double limit, int count, tn__node *const *gradient)
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
    if (!total)
        return NULL;
    tn__node *ratio = tn__binary(TN__OP_DIVIDE, tn__const_like(total, limit), tn__unary(TN__OP_SQRT, total));
    return tn__binary(TN__OP_MINIMUM, ratio, tn__const_like(ratio, 1));
}

tn_status tn__clip(const tn_optimizer_opts *set, int count, tn__node **gradient)
{
    for (int i = 0; i < count && set->clip_value > 0; i++) {
        if (gradient[i])
            gradient[i] = clipped_value(gradient[i], set->clip_value);
    }
    tn__node *scale = set->clip_norm > 0 ? norm_scale(set->clip_norm, count, gradient) : NULL;
    if (!scale)
        return TN_OK;
    for (int i = 0; i < count && !tn__node_is_error(scale); i++) {
        if (!gradient[i] || !is_first(i, gradient))
            continue;
        tn__device *device = gradient[i]->device;
        tn__node *there = on_device(scale, device);
        if (tn__node_is_error(there))
            return tn__error_raise(there->error);
        for (int k = i; k < count; k++)
            if (gradient[k] && gradient[k]->device == device)
                gradient[k] = tn__binary(TN__OP_MULTIPLY, gradient[k], tn__cast(there, (tn_dtype)gradient[k]->dtype));
    }
    return tn__node_is_error(scale) ? tn__error_raise(scale->error) : TN_OK;
}
