/* SPDX-License-Identifier: MIT */
/*
 * The functions of tanso/activations.h. Branches that are not taken still get a gradient of 0 times their slope, so
 * whatever may be infinite there is computed of the operand cut to where it is taken.
 */
#include <inttypes.h>
#include <math.h>
#include <tanso/activations.h>

#include "nn/activation.h"

/* min(x, 0), without a slope at 0. */
static tn__node *below_zero(tn__node *x)
{
    TN__PASS_ERROR(x);
    return tn__where(with(GREATER, x, 0), like(x, 0), x);
}

static tn__node *if_positive(tn__node *x, tn__node *otherwise)
{
    TN__PASS_ERROR(x);
    return tn__where(with(GREATER, x, 0), x, otherwise);
}

tn__node *tn__elu(tn__node *x, double alpha) { return if_positive(x, times(map(EXPM1, below_zero(x)), alpha)); }

tn__node *tn__celu(tn__node *x, double alpha)
{
    return if_positive(x, times(map(EXPM1, times(below_zero(x), 1 / alpha)), alpha));
}

tn__node *tn__selu(tn__node *x, double unused)
{
    (void)unused;
    return times(tn__elu(x, 1.6732632423543772848), 1.0507009873554804934);
}

tn__node *tn__silu(tn__node *x, double beta) { return mul(x, map(SIGMOID, beta == 1 ? x : times(x, beta))); }

tn__node *tn__mish(tn__node *x, double unused)
{
    (void)unused;
    return mul(x, map(TANH, map(SOFTPLUS, x)));
}

/* (1 + tanh(u)) / 2 is sigmoid(2 u). */
tn__node *tn__gelu_tanh(tn__node *x, double unused)
{
    (void)unused;
    static const double twice_root_of_2_over_pi = 1.5957691216057307;
    tn__node *u = mul(x, plus(times(squared(x), 0.044715), 1));
    return mul(x, map(SIGMOID, times(u, twice_root_of_2_over_pi)));
}

tn__node *tn__softplus_beta(tn__node *x, double beta) { return times(map(SOFTPLUS, times(x, beta)), 1 / beta); }

tn__node *tn__log_sigmoid(tn__node *x, double unused)
{
    (void)unused;
    return minus(map(SOFTPLUS, minus(x)));
}

tn__node *tn__softsign(tn__node *x, double unused)
{
    (void)unused;
    return over(x, plus(map(ABS, x), 1));
}

tn__node *tn__clipped_relu(tn__node *x, double z) { return tn__between(x, 0, z); }

tn__node *tn__relu6(tn__node *x, double unused)
{
    (void)unused;
    return tn__between(x, 0, 6);
}

tn__node *tn__hard_tanh(tn__node *x, double bound) { return tn__between(x, -bound, bound); }

tn__node *tn__hard_sigmoid(tn__node *x, double slope)
{
    return tn__between(plus(times(x, slope == 0 ? 1.0 / 6 : slope), 0.5), 0, 1);
}

tn__node *tn__hard_swish(tn__node *x, double unused)
{
    (void)unused;
    return mul(x, tn__hard_sigmoid(x, 0));
}

tn__node *tn__hard_shrink(tn__node *x, double lambda) { return tn__only_where(with(GREATER, map(ABS, x), lambda), x); }

tn__node *tn__soft_shrink(tn__node *x, double lambda)
{
    TN__PASS_ERROR(x);
    tn__node *low = tn__only_where(with(LESS, x, -lambda), plus(x, lambda));
    return tn__where(with(GREATER, x, lambda), plus(x, -lambda), low);
}

tn__node *tn__tanh_shrink(tn__node *x, double unused)
{
    (void)unused;
    return sub(x, map(TANH, x));
}

static tn__node *threshold(tn__node *x, double at, double value)
{
    TN__PASS_ERROR(x);
    return tn__where(with(GREATER, x, at), x, like(x, value));
}

#define PLAIN(name) \
    tn_array *tn_##name(const tn_array *x) \
    { \
        TN__RETURN(tn__##name(tn__floating(x, #name), 0)); \
    }
PLAIN(selu)
PLAIN(mish)
PLAIN(gelu_tanh)
PLAIN(log_sigmoid)
PLAIN(softsign)
PLAIN(relu6)
PLAIN(hard_swish)
PLAIN(tanh_shrink)

tn__node *tn__number_error(const char *operation, const char *expected, double number)
{
    TN__REFUSE(TN_ERR_VALUE, operation, "expected %s, got %g", expected, number);
}

#define WITH_NUMBER(name, holds, expected) \
    tn_array *tn_##name(const tn_array *x, double number) \
    { \
        TN__RETURN((holds) ? tn__##name(tn__floating(x, #name), number) \
                           : tn__number_error(#name, expected, number)); \
    }
WITH_NUMBER(elu, isfinite(number), "a finite alpha")
WITH_NUMBER(celu, isfinite(number) && number != 0, "a finite alpha that is not 0")
WITH_NUMBER(softplus_beta, isfinite(number) && number > 0, "beta > 0")
WITH_NUMBER(clipped_relu, number >= 0, "z >= 0")
WITH_NUMBER(hard_sigmoid, isfinite(number), "a finite slope")
WITH_NUMBER(hard_shrink, number >= 0, "lambda >= 0")
WITH_NUMBER(soft_shrink, number >= 0, "lambda >= 0")

tn_array *tn_silu(const tn_array *x) { TN__RETURN(tn__silu(tn__floating(x, "silu"), 1)); }

tn_array *tn_swish(const tn_array *x, const tn_array *beta)
{
    tn__call call = tn__enter();
    tn__node *in = tn__floating(x, "swish"), *by = tn__node_of(beta, "swish");
    return tn__leave_array(call, mul(in, map(SIGMOID, mul(in, by))));
}

tn_array *tn_hard_tanh(const tn_array *x, double low, double high)
{
    TN__RETURN(low <= high ? tn__between(tn__floating(x, "hard_tanh"), low, high)
                           : tn__number_error("hard_tanh", "low no larger than high", low));
}

tn_array *tn_threshold(const tn_array *x, double at, double value)
{
    TN__RETURN(threshold(tn__floating(x, "threshold"), at, value));
}

/* ---- slopes ---- */

tn__node *tn__prelu(tn__node *x, tn__node *w)
{
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(w);
    const tn__shape *all = x->shape, *own = w->shape;
    bool fits = own->ndim < all->ndim;
    for (int i = 0; fits && i < own->ndim; i++)
        fits = own->dim[i] == all->dim[i + 1];
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (!fits && own->size != 1)
        TN__REFUSE(TN_ERR_SHAPE, "prelu",
                   "expected one slope, or slopes of the shape of the input's axes from 1 on; got slopes %s for %s",
                   tn__shape_text(own->ndim, own->dim, text), tn__shape_text(all->ndim, all->dim, other));
    w = own->size == 1 ? tn__reshape(w, 0, NULL) : tn__along(w, 1, all->ndim);
    return tn__where(with(GREATER_EQUAL, x, 0), x, mul(w, x));
}

tn_array *tn_prelu(const tn_array *x, const tn_array *w)
{
    tn__call call = tn__enter();
    tn__node *in = tn__floating(x, "prelu");
    return tn__leave_array(call, tn__prelu(in, tn__only_floating(w, "prelu")));
}

tn_array *tn_rrelu(const tn_array *x, double low, double high, tn_generator *generator)
{
    tn__call call = tn__enter();
    tn__node *in = tn__floating(x, "rrelu");
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        in = tn__number_error("rrelu", "finite slopes, low no larger than high", low);
    if (tn__node_is_error(in))
        return tn__leave_array(call, in);
    tn__node *drawn = tn__cast(tn__uniform_like(in, generator), (tn_dtype)in->dtype);
    tn__node *slope = plus(times(drawn, high - low), low);
    return tn__leave_array(call, tn__where(with(GREATER_EQUAL, in, 0), in, mul(slope, in)));
}

/* ---- along an axis ---- */

tn__node *tn__crelu(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    axis = tn__axis_check("crelu", axis, x->shape->ndim);
    return axis < 0 ? tn__failed() : tn__joined(2, (tn__node *[]){map(RELU, x), map(RELU, minus(x))}, axis);
}

tn__node *tn__glu(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    axis = tn__axis_check("glu", axis, x->shape->ndim);
    if (axis < 0)
        return tn__failed();
    int64_t extent = x->shape->dim[axis];
    if (extent % 2 != 0)
        TN__REFUSE(TN_ERR_SHAPE, "glu", "expected an axis of an even extent, which has two halves; got %" PRId64,
                   extent);
    tn__node *gate = tn__piece(x, axis, extent / 2, extent / 2);
    return mul(tn__piece(x, axis, 0, extent / 2), map(SIGMOID, gate));
}

tn__node *tn__maxout(tn__node *x, int64_t pool, int axis)
{
    TN__PASS_ERROR(x);
    axis = tn__axis_check("maxout", axis, x->shape->ndim);
    if (axis < 0)
        return tn__failed();
    int64_t extent = x->shape->dim[axis], dim[TN_MAX_NDIM + 1];
    int ndim = x->shape->ndim;
    if (pool < 1 || extent % pool != 0)
        TN__REFUSE(TN_ERR_VALUE, "maxout", "expected a pool of 1 or more that divides the extent %" PRId64
                   " of axis %d, got %" PRId64, extent, axis, pool);
    if (ndim == TN_MAX_NDIM)
        TN__REFUSE(TN_ERR_SHAPE, "maxout", "expected at most %d axes, as the pool becomes one more", TN_MAX_NDIM - 1);
    for (int i = 0; i < ndim; i++)
        dim[i + (i > axis)] = x->shape->dim[i];
    dim[axis] = extent / pool;
    dim[axis + 1] = pool;
    tn__node *pools = tn__reshape(x, ndim + 1, dim);
    TN__PASS_ERROR(pools);
    return tn__without_axis(tn__reduce(TN__OP_MAX, pools, 1u << (axis + 1)), axis + 1);
}

tn__node *tn__log_softmax_over(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    axis = tn__axis_check("log_softmax", axis, x->shape->ndim);
    if (axis < 0)
        return tn__failed();
    return tn__cast(tn__softmax(TN__OP_LOG_SOFTMAX, tn__widened(x), 1u << axis), (tn_dtype)x->dtype);
}

tn__node *tn__softmin(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    axis = tn__axis_check("softmin", axis, x->shape->ndim);
    return axis < 0 ? tn__failed() : tn__softmax_over(minus(x), axis);
}

tn_array *tn_crelu(const tn_array *x, int axis) { TN__RETURN(tn__crelu(tn__floating(x, "crelu"), axis)); }
tn_array *tn_glu(const tn_array *x, int axis) { TN__RETURN(tn__glu(tn__floating(x, "glu"), axis)); }
tn_array *tn_softmin(const tn_array *x, int axis) { TN__RETURN(tn__softmin(tn__floating(x, "softmin"), axis)); }

tn_array *tn_maxout(const tn_array *x, int64_t pool, int axis)
{
    TN__RETURN(tn__maxout(tn__floating(x, "maxout"), pool, axis));
}
