/* SPDX-License-Identifier: MIT */
/* Normalization by groups of channels, by norms, and of weights. */
#include "nn/norm.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include <tanso/normalization.h>
#include "nn/activation.h"

/* ---- groups ---- */

static bool fits_channels(const char *operation, const char *what, const tn__node *v, int64_t channels)
{
    char text[TN__SHAPE_TEXT];
    if (!v || (v->shape->ndim == 1 && v->shape->dim[0] == channels))
        return true;
    tn__fail(TN_ERR_SHAPE, operation, "expected %s of shape (%" PRId64 ",), one a channel; got %s", what, channels,
             tn__shape_text(v->shape->ndim, v->shape->dim, text));
    return false;
}

/* Of what lies behind the first two axes, (N, channels, 1, ...). */
typedef struct moments {
    tn__node *mean, *variance;
} moments;

/* x keeps its shape, so that forward and backward are nests of rows, a channel each, and all else is small. */
static moments channel_moments(tn__node *x, int64_t rest)
{
    uint32_t behind = ((1u << x->shape->ndim) - 1) & ~3u;
    if (!behind)
        return (moments){x, like(x, 0)};
    return (moments){tn__average(x, behind), times(tn__deviations(x, behind), 1 / (double)rest)};
}

/* Channels are equally long: a group's variance is the mean of theirs and the variance of their means (Chan and others
 * 1979). */
static moments group_moments(const moments *own, int64_t groups)
{
    if (tn__node_is_error(own->mean) || tn__node_is_error(own->variance))
        return *own;
    const tn__shape *all = own->mean->shape;
    const int64_t split[] = {all->dim[0], groups, all->dim[1] / groups};
    tn__node *means = tn__reshape(own->mean, 3, split), *variances = tn__reshape(own->variance, 3, split);
    if (tn__node_is_error(means) || tn__node_is_error(variances))
        return (moments){means, variances};
    tn__node *between = times(tn__deviations(means, 1u << 2), 1 / (double)split[2]);
    tn__node *mean = tn__expand(tn__average(means, 1u << 2), means->shape);
    tn__node *variance = tn__expand(add(tn__mean_over(variances, 1u << 2), between), means->shape);
    return (moments){tn__reshape_like(mean, all), tn__reshape_like(variance, all)};
}

tn__node *tn__group_norm(const char *operation, tn__node *x, int64_t groups, tn__node *gamma, tn__node *beta,
                         double eps)
{
    tn__node *error = tn__first_error(3, (tn__node *[]){tn__checked_floating(x, operation), gamma, beta});
    if (error)
        return error;
    char text[TN__SHAPE_TEXT];
    const tn__shape *shape = x->shape;
    if (shape->ndim < 2)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected an input (N, channels, ...), got %s",
                   tn__shape_text(shape->ndim, shape->dim, text));
    int64_t channels = shape->dim[1], rest = 1;
    if (groups < 1 || channels % groups != 0)
        TN__REFUSE(TN_ERR_VALUE, operation, "expected groups that divide the %" PRId64 " channels of %s, got %" PRId64,
                   channels, tn__shape_text(shape->ndim, shape->dim, text), groups);
    if (!fits_channels(operation, "gamma", gamma, channels) || !fits_channels(operation, "beta", beta, channels))
        return tn__failed();
    for (int i = 2; i < shape->ndim; i++)
        rest *= shape->dim[i];
    if (shape->size == 0)
        return x;
    tn__node *wide = tn__widened(x);
    moments m = channel_moments(wide, rest);
    if (groups != channels)
        m = group_moments(&m, groups);
    TN__PASS_ERROR(m.mean);
    TN__PASS_ERROR(m.variance);
    tn__node *scale = map(RSQRT, plus(m.variance, eps == 0 ? 1e-5 : eps));
    if (gamma)
        scale = mul(scale, tn__cast(tn__along(gamma, 1, shape->ndim), (tn_dtype)wide->dtype));
    tn__node *y = mul(sub(wide, m.mean), scale);
    if (beta)
        y = add(y, tn__cast(tn__along(beta, 1, shape->ndim), (tn_dtype)wide->dtype));
    return tn__cast(y, (tn_dtype)x->dtype);
}

static bool fine_eps(double eps) { return eps >= 0 && isfinite(eps); }

tn_array *tn_group_norm_function(const tn_array *x, int64_t groups, const tn_array *gamma, const tn_array *beta,
                                 double eps)
{
    static const char operation[] = "group_norm";
    tn__call call = tn__enter();
    tn__node *in = fine_eps(eps) ? tn__only_floating(x, operation) : tn__number_error(operation, "eps >= 0", eps);
    tn__node *scale = gamma ? tn__only_floating(gamma, operation) : NULL;
    tn__node *shift = beta ? tn__only_floating(beta, operation) : NULL;
    return tn__leave_array(call, tn__group_norm(operation, in, groups, scale, shift, eps));
}

/* ---- root mean squares ---- */

/* From 1 to the next number: what PyTorch adds by default. */
static double epsilon_of(tn_dtype dtype)
{
    return dtype == TN_FLOAT64 ? DBL_EPSILON : dtype == TN_FLOAT32 ? FLT_EPSILON : dtype == TN_FLOAT16 ? 0x1p-10
                                                                                                       : 0x1p-7;
}

tn__node *tn__rms_norm(tn__node *x, tn__node *gamma, int axes, double eps)
{
    tn__node *error = tn__first_error(2, (tn__node *[]){tn__checked_floating(x, "rms_norm"), gamma});
    if (error)
        return error;
    const tn__shape *shape = x->shape;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    axes = gamma ? gamma->shape->ndim : axes;
    bool fits = axes >= 1 && axes <= shape->ndim;
    for (int i = 0; gamma && fits && i < axes; i++)
        fits = gamma->shape->dim[i] == shape->dim[shape->ndim - axes + i];
    if (!fits)
        TN__REFUSE(TN_ERR_SHAPE, "rms_norm", "expected gamma of the shape of the input's last axes, got %s for %s",
                   gamma ? tn__shape_text(gamma->shape->ndim, gamma->shape->dim, text) : "none",
                   tn__shape_text(shape->ndim, shape->dim, other));
    uint32_t set = ((1u << axes) - 1) << (shape->ndim - axes);
    tn__node *wide = tn__widened(x);
    tn__node *mean = tn__mean_over(squared(wide), set);
    tn__node *y = mul(wide, map(RSQRT, plus(mean, eps == 0 ? epsilon_of((tn_dtype)x->dtype) : eps)));
    TN__PASS_ERROR(y);
    if (gamma)
        y = mul(y, tn__cast(gamma, (tn_dtype)y->dtype));
    return tn__cast(y, (tn_dtype)x->dtype);
}

tn_array *tn_rms_norm_function(const tn_array *x, const tn_array *gamma, double eps)
{
    tn__call call = tn__enter();
    tn__node *in = fine_eps(eps) ? tn__only_floating(x, "rms_norm") : tn__number_error("rms_norm", "eps >= 0", eps);
    return tn__leave_array(call, tn__rms_norm(in, gamma ? tn__only_floating(gamma, "rms_norm") : NULL, 1, eps));
}

/* ---- norms ---- */

/* The norm over axes, which stay; its slope where it is 0 is 0. */
static tn__node *norm_over(tn__node *x, uint32_t axes, double p)
{
    if (p == 1)
        return tn__sum_over(map(ABS, x), axes);
    if (isinf(p))
        return tn__reduce(TN__OP_MAX, map(ABS, x), axes);
    return tn__root_of_sum(tn__sum_over(p == 2 ? squared(x) : with(POWER, map(ABS, x), p), axes), 1 / p);
}

tn_array *tn_normalize(const tn_array *x, double p, int axis, double eps)
{
    static const char operation[] = "normalize";
    tn__call call = tn__enter();
    tn__node *in = tn__floating(x, operation);
    if (!(p >= 1))
        in = tn__number_error(operation, "an order p >= 1", p);
    else if (!fine_eps(eps))
        in = tn__number_error(operation, "eps >= 0", eps);
    if (tn__node_is_error(in))
        return tn__leave_array(call, in);
    axis = tn__axis_check(operation, axis, in->shape->ndim);
    if (axis < 0)
        return tn__leave_error(call);
    if (in->shape->size == 0)
        return tn__leave_array(call, in);
    tn__node *wide = tn__widened(in), *norm = norm_over(wide, 1u << axis, p);
    double least = eps == 0 ? 1e-12 : eps;
    norm = tn__node_is_error(norm) ? norm : tn__where(with(LESS, norm, least), like(norm, least), norm);
    return tn__leave_array(call, tn__cast(over(wide, norm), (tn_dtype)in->dtype));
}

tn_array *tn_weight_norm(const tn_array *v, const tn_array *g, int axis)
{
    static const char operation[] = "weight_norm";
    tn__call call = tn__enter();
    tn__node *direction = tn__only_floating(v, operation), *length = tn__only_floating(g, operation);
    tn__node *error = tn__first_error(2, (tn__node *[]){direction, length});
    if (error)
        return tn__leave_array(call, error);
    int ndim = direction->shape->ndim;
    axis = tn__axis_check(operation, axis, ndim);
    if (axis < 0)
        return tn__leave_error(call);
    char text[TN__SHAPE_TEXT];
    if (length->shape->size != direction->shape->dim[axis]) {
        tn__fail(TN_ERR_SHAPE, operation, "expected %" PRId64 " lengths, one for each position of axis %d, got %s",
                 direction->shape->dim[axis], axis, tn__shape_text(length->shape->ndim, length->shape->dim, text));
        return tn__leave_error(call);
    }
    tn__node *norm = norm_over(direction, ((1u << ndim) - 1) & ~(1u << axis), 2);
    length = tn__along(tn__reshape(length, 1, &direction->shape->dim[axis]), axis, ndim);
    return tn__leave_array(call, mul(direction, over(length, norm)));
}
