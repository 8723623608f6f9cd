/* SPDX-License-Identifier: MIT */
/* Clipping gradients: each element, then their joint norm (Pascanu, Mikolov, Bengio 2013). */
#include "optim/optimizer.h"

static tn__node *clipped_value(tn__node *g, double limit)
{
    return tn__binary(TN__OP_MINIMUM, tn__binary(TN__OP_MAXIMUM, g, tn__const_like(g, -limit)),
                      tn__const_like(g, limit));
}

/* min(1, limit / norm) of all gradients together, as a 0-d array of at least float32; NULL if there are none. */
static tn__node *norm_scale(double limit, int count, tn__node *const *gradient)
{
    tn__node *total = NULL;
    for (int i = 0; i < count; i++) {
        tn__node *g = gradient[i];
        if (!g)
            continue;
        g = tn__cast(g, (tn_dtype)tn__dtypes[g->dtype].compute);
        tn__node *sum = tn__reduce(TN__OP_SUM, tn__unary(TN__OP_SQUARE, g), (1u << g->shape->ndim) - 1);
        sum = tn__reshape(sum, 0, NULL);
        total = total ? tn__binary(TN__OP_ADD, total, sum) : sum;
    }
    if (!total || tn__node_is_error(total))
        return total;
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
    if (tn__node_is_error(scale))
        return tn__error_raise(scale->error);
    for (int i = 0; i < count; i++) {
        if (gradient[i])
            gradient[i] = tn__binary(TN__OP_MULTIPLY, gradient[i], tn__cast(scale, (tn_dtype)gradient[i]->dtype));
    }
    return TN_OK;
}
