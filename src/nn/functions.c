/* SPDX-License-Identifier: MIT */
/*
 * Functions over nodes that layers and losses share, and those of them that are public. Reductions keep their axes, so
 * that rows stay rows and the compiler can hold them in place.
 */
#include "nn/functions.h"

#include <inttypes.h>
#include <math.h>
#include <tanso/nn.h>
#include <tanso/random.h>

#include "array/build_parts.h"

tn__node *tn__checked_floating(tn__node *node, const char *operation)
{
    TN__PASS_ERROR(node);
    if (!tn_dtype_is_float((tn_dtype)node->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected a floating array, got %s: cast it with tn_cast",
                   tn_dtype_name((tn_dtype)node->dtype));
    return node;
}

tn__node *tn__is_not(tn__node *x, int64_t number)
{
    TN__PASS_ERROR(x);
    if (x->dtype == TN_UINT64 && number < 0)
        return tn__const(1, TN_BOOL, x->shape, x->device);
    tn__node *other = tn__const_scalar((tn__scalar){.i = number}, TN_INT64, x->shape, x->device);
    return tn__binary(TN__OP_NOT_EQUAL, tn__cast(x, TN_INT64), other);
}

tn__node *tn__widened(tn__node *x)
{
    if (tn__node_is_error(x))
        return x;
    tn_dtype dtype = tn__dtype_to_float((tn_dtype)x->dtype);
    return tn__cast(x, (tn_dtype)tn__dtypes[dtype].compute);
}

static int64_t extent_of(const tn__node *x, uint32_t axes)
{
    int64_t extent = 1;
    for (int i = 0; i < x->shape->ndim; i++)
        extent *= axes >> i & 1 ? x->shape->dim[i] : 1;
    return extent;
}

static uint32_t all_axes(const tn__node *x)
{
    return (1u << x->shape->ndim) - 1;
}

/* The mean over a set of axes, which stay with extent 1. */
static tn__node *mean_over(tn__node *x, uint32_t axes)
{
    if (tn__node_is_error(x))
        return x;
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__widened(x), axes);
    return tn__cast(tn__with(TN__OP_MULTIPLY, sum, 1.0 / (double)extent_of(x, axes)), (tn_dtype)x->dtype);
}

tn__node *tn__mean_all(tn__node *x)
{
    return tn__node_is_error(x) ? x : tn__reshape(mean_over(x, all_axes(x)), 0, NULL);
}

tn__node *tn__max_detached(tn__node *x, uint32_t axes)
{
    tn__no_grad_depth++;
    tn__node *max = tn__reduce(TN__OP_MAX, x, axes);
    tn__no_grad_depth--;
    return max;
}

tn__node *tn__softmax_over(tn__node *x, int axis)
{
    if (tn__node_is_error(x))
        return x;
    return tn__cast(tn__softmax(TN__OP_SOFTMAX, tn__widened(x), 1u << axis), tn__dtype_to_float((tn_dtype)x->dtype));
}

/* ---- dropout ---- */

static tn__node *random_like(tn__op op, tn__node *x, tn_generator *generator)
{
    if (!generator)
        generator = tn_default_generator();
    uint64_t counter = generator->counter;
    generator->counter += (uint64_t)(x->shape->size + 3) / 4; /* four numbers a block of Philox */
    return tn__random(op, TN_FLOAT32, x->shape, x->device, generator->key, counter);
}

tn__node *tn__uniform_like(tn__node *x, tn_generator *generator)
{
    return random_like(TN__OP_RANDOM_UNIFORM, x, generator);
}

tn__node *tn__normal_like(tn__node *x, tn_generator *generator)
{
    return random_like(TN__OP_RANDOM_NORMAL, x, generator);
}

tn__node *tn__dropout(tn__node *x, double ratio, tn_generator *generator)
{
    if (tn__node_is_error(x) || ratio == 0)
        return x;
    x = tn__checked_floating(x, "dropout");
    TN__PASS_ERROR(x);
    tn__node *kept = tn__with(TN__OP_GREATER_EQUAL, tn__uniform_like(x, generator), ratio);
    return tn__where(kept, tn__with(TN__OP_MULTIPLY, x, 1 / (1 - ratio)), tn__const_like(x, 0));
}

tn_array *tn_dropout_function(const tn_array *x, double ratio, tn_generator *generator)
{
    tn__call call = tn__enter();
    if (!(ratio >= 0 && ratio < 1)) {
        tn__fail(TN_ERR_VALUE, "dropout", "expected a ratio in [0, 1), got %g", ratio);
        return tn__leave_error(call);
    }
    return tn__leave_array(call, tn__dropout(tn__node_of(x, "dropout"), ratio, generator));
}

/* ---- layer normalisation ---- */

tn__node *tn__layer_normalize(tn__node *x, tn__node *gamma, tn__node *beta, double eps)
{
    x = tn__checked_floating(x, "layer_norm");
    if (tn__node_is_error(x))
        return x;
    tn__node *given[3] = {x};
    int count = 1;
    if (gamma)
        given[count++] = gamma;
    if (beta)
        given[count++] = beta;
    bool weak;
    tn_dtype dtype = tn__common_dtype(count, given, &weak); /* what comes out is rounded once */
    int axes = gamma ? gamma->shape->ndim : beta ? beta->shape->ndim : 1;
    uint32_t last = ((1u << axes) - 1) << (x->shape->ndim - axes);
    tn__node *wide = tn__widened(x);
    tn__node *centred = tn__binary(TN__OP_SUBTRACT, wide, mean_over(wide, last));
    tn__node *variance = mean_over(tn__unary(TN__OP_SQUARE, centred), last);
    tn__node *scale = tn__unary(TN__OP_RSQRT, tn__with(TN__OP_ADD, variance, eps));
    tn__node *y = tn__binary(TN__OP_MULTIPLY, centred, scale);
    if (gamma)
        y = tn__binary(TN__OP_MULTIPLY, y, gamma);
    return tn__cast(beta ? tn__binary(TN__OP_ADD, y, beta) : y, dtype);
}

bool tn__fits_last(const char *operation, const char *what, const tn__node *x, const tn__node *vector)
{
    if (!vector || tn__node_is_error(vector) || tn__node_is_error(x))
        return true;
    const tn__shape *all = x->shape, *own = vector->shape;
    bool fits = own->ndim >= 1 && own->ndim <= all->ndim;
    for (int i = 0; fits && i < own->ndim; i++)
        fits = own->dim[i] == all->dim[all->ndim - own->ndim + i];
    if (fits)
        return true;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, operation,
             "expected %s of shape (%" PRId64 ",), or of the extents of more of the last axes of the input %s; got %s",
             what, all->ndim ? all->dim[all->ndim - 1] : 1, tn__shape_text(all->ndim, all->dim, other),
             tn__shape_text(own->ndim, own->dim, text));
    return false;
}

tn_array *tn_layer_norm_function(const tn_array *x, const tn_array *gamma, const tn_array *beta, double eps)
{
    tn__call call = tn__enter();
    tn__node *input = tn__node_of(x, "layer_norm");
    tn__node *scale = gamma ? tn__checked_floating(tn__node_of(gamma, "layer_norm"), "layer_norm") : NULL;
    tn__node *shift = beta ? tn__checked_floating(tn__node_of(beta, "layer_norm"), "layer_norm") : NULL;
    if (!tn__node_is_error(input) && input->shape->ndim == 0) {
        tn__fail(TN_ERR_SHAPE, "layer_norm", "expected an input of at least one axis, the features; got a scalar");
        return tn__leave_error(call);
    }
    if (!(eps >= 0) || !isfinite(eps)) {
        tn__fail(TN_ERR_VALUE, "layer_norm", "expected eps >= 0, got %g", eps);
        return tn__leave_error(call);
    }
    if (!tn__fits_last("layer_norm", "gamma", input, scale) || !tn__fits_last("layer_norm", "beta", input, shift))
        return tn__leave_error(call);
    if (scale && shift && scale->shape != shift->shape && !tn__node_is_error(scale) && !tn__node_is_error(shift)) {
        tn__fail(TN_ERR_SHAPE, "layer_norm", "expected gamma and beta of one shape, got %d axes and %d",
                 scale->shape->ndim, shift->shape->ndim);
        return tn__leave_error(call);
    }
    tn__node *error = scale && tn__node_is_error(scale) ? scale : shift;
    if (error && tn__node_is_error(error))
        return tn__leave_array(call, error);
    return tn__leave_array(call, tn__layer_normalize(input, scale, shift, eps == 0 ? 1e-5 : eps));
}

/* ---- leaky ReLU ---- */

tn__node *tn__leaky(tn__node *x, double slope)
{
    return tn__where(tn__with(TN__OP_GREATER_EQUAL, x, 0), x, tn__with(TN__OP_MULTIPLY, x, slope));
}

tn_array *tn_leaky_relu(const tn_array *x, double slope)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, tn__leaky(tn__node_of(x, "leaky_relu"), slope));
}
