/* SPDX-License-Identifier: MIT */
/*
 * Quantiles. The reduced axes become one last axis, which is sorted; a method says at which real number h between 0 and
 * n - 1 a quantile lies, and how its neighbours are weighted there (Hyndman and Fan, "Sample Quantiles in Statistical
 * Packages", 1996).
 */
#include "numpy/compose.h"

#include <math.h>
#include <string.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "core/memory.h"

/* What the upper neighbour weighs at h = whole + t, the lower one weighing the rest. */
typedef tn_array *weighting(tn_array *whole, tn_array *t);

static tn_array *is_odd(tn_array *whole) { return tn_equal(tn_remainder(whole, tn_weak_int(2)), tn_weak_int(1)); }

static tn_array *linear(tn_array *whole, tn_array *t)
{
    (void)whole;
    return t;
}

static tn_array *middle(tn_array *whole, tn_array *t)
{
    (void)whole;
    return tn_where(tn_greater(t, tn_weak_int(0)), tn_weak_float(0.5), tn_zeros_like(t));
}

static tn_array *half_step(tn_array *whole, tn_array *t)
{
    (void)whole;
    return tn_where(tn_greater(t, tn_weak_int(0)), tn_ones_like(t), tn_weak_float(0.5));
}

/* Those that pick one of the two say whether it is the upper one. */
static tn_array *lower(tn_array *whole, tn_array *t)
{
    (void)whole;
    return tn_zeros_like(tn_greater(t, tn_weak_int(0)));
}

static tn_array *upper(tn_array *whole, tn_array *t)
{
    (void)whole;
    return tn_greater(t, tn_weak_int(0));
}

static tn_array *nearest(tn_array *whole, tn_array *t) /* of a tie, the even one */
{
    tn_array *tie = tn_equal(t, tn_weak_float(0.5));
    return tn_logical_or(tn_greater(t, tn_weak_float(0.5)), tn_logical_and(tie, is_odd(whole)));
}

static tn_array *even(tn_array *whole, tn_array *t) /* of a whole h, the one at an even place */
{
    return tn_logical_not(tn_logical_and(tn_equal(t, tn_weak_int(0)), is_odd(whole)));
}

/* h = n q + alpha + q (1 - alpha - beta) - 1, Hyndman and Fan's common form. */
typedef struct method {
    const char *name;
    double alpha, beta;
    weighting *weight;
    bool picks;
} method;

static const method methods[] = {
    {"linear", 1, 1, linear, false},
    {"lower", 1, 1, lower, true},
    {"higher", 1, 1, upper, true},
    {"midpoint", 1, 1, middle, false},
    {"nearest", 1, 1, nearest, true},
    {"inverted_cdf", 0, 1, upper, true},
    {"averaged_inverted_cdf", 0, 1, half_step, false},
    {"closest_observation", -0.5, 1.5, even, true},
    {"interpolated_inverted_cdf", 0, 1, linear, false},
    {"hazen", 0.5, 0.5, linear, false},
    {"weibull", 0, 0, linear, false},
    {"median_unbiased", 1.0 / 3, 1.0 / 3, linear, false},
    {"normal_unbiased", 3.0 / 8, 3.0 / 8, linear, false},
};

static const method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

/* x with the reduced axes as one last axis; the shape without them, and with them of extent 1. */
typedef struct slices {
    tn_array *rows;
    tn_shape kept, ones;
} slices;

static bool make_slices(const char *operation, const tn_array *x, tn_axes axes, slices *s)
{
    uint32_t set;
    *s = (slices){.rows = NULL};
    if (tn_is_error(x) || !tn__axes_set(operation, axes, tn_ndim(x), &set))
        return false;
    tn_axes order = {.count = tn_ndim(x)};
    int at = 0;
    int64_t n = 1;
    s->ones = tn_shape_of(x);
    for (int reduced = 0; reduced < 2; reduced++)
        for (int d = 0; d < order.count; d++)
            if ((set >> d & 1) == (unsigned)reduced) {
                order.axis[at++] = d;
                if (reduced) {
                    n *= tn_dim(x, d);
                    s->ones.dim[d] = 1;
                } else {
                    s->kept.dim[s->kept.ndim++] = tn_dim(x, d);
                }
            }
    tn_shape rows = s->kept;
    rows.dim[rows.ndim++] = n;
    if (rows.ndim > TN_MAX_NDIM)
        return tn__fail(TN_ERR_SHAPE, operation, "an array of %d axes is too large", tn_ndim(x)), false;
    s->rows = tn_reshape(at ? tn_transpose(x, order) : x, rows);
    return true;
}

/* a + (b - a) t in `dtype`, exact at both ends; the difference of floats is rounded as such, as NumPy's is. */
static tn_array *between(const tn_array *a, const tn_array *b, const tn_array *t, tn_dtype dtype)
{
    bool floating = tn_dtype_is_float(tn_dtype_of(a));
    tn_array *d = floating ? tn_cast(tn_subtract(b, a), dtype) : tn_subtract(tn_cast(b, dtype), tn_cast(a, dtype));
    a = tn_cast(a, dtype);
    b = tn_cast(b, dtype);
    t = tn_cast(t, dtype);
    tn_array *upper = tn_subtract(b, tn_multiply(d, tn_subtract(tn_weak_int(1), t)));
    return tn_where(tn_greater_equal(t, tn_weak_float(0.5)), upper, tn_add(a, tn_multiply(d, t)));
}

/* Where among `count` numbers the quantiles q lie. */
static tn_array *place(const tn_array *count, const tn_array *q, const method *m)
{
    if (m->alpha == 1)
        return tn_multiply(tn_subtract(count, tn_weak_int(1)), q);
    tn_array *shift = tn_add(tn_multiply(q, tn_weak_float(1 - m->alpha - m->beta)), tn_weak_float(m->alpha));
    return tn_subtract(tn_add(tn_multiply(count, q), shift), tn_weak_int(1));
}

/* The quantiles q (a vector along the last axis) of sorted rows with `count` numbers each (of q's dtype, of extent 1 in
 * the last axis). */
static tn_array *at_quantiles(const tn_array *sorted, const tn_array *count, const tn_array *q, const method *m,
                              tn_dtype dtype)
{
    tn_array *h = place(count, q, m), *whole = tn_floor(h), *t = m->weight(whole, tn_subtract(h, whole));
    /* beyond the ends: the end itself */
    tn_array *zero = tn_weak_int(0), *last = tn_subtract(count, tn_weak_int(1));
    tn_array *low = tn_clip(whole, zero, last), *high = tn_clip(tn_add(whole, tn_weak_int(1)), zero, last);
    int axis = tn_ndim(sorted) - 1;
    tn_array *a = tn_take_along_axis(sorted, tn_cast(low, TN_INT64), axis);
    tn_array *b = tn_take_along_axis(sorted, tn_cast(high, TN_INT64), axis);
    if (m->picks)
        return tn_where(t, b, a);
    if (m->weight == linear)
        t = tn_where(tn_logical_or(tn_less(h, zero), tn_greater(h, last)), tn_zeros_like(t), t);
    return between(a, b, t, dtype);
}

/* In which dtype quantiles are: a C number q takes x's, else q's counts too. */
static tn_dtype quantile_dtype(const tn_array *x, const tn_array *q, bool weak)
{
    tn_dtype dtype = tn_dtype_is_float(tn_dtype_of(x)) ? tn_dtype_of(x) : TN_FLOAT64;
    return weak || !tn_dtype_is_float(tn_dtype_of(q)) ? dtype : tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(q));
}

/* Weights as rows like x's, in float64; NULL and a latched failure if they are none. */
static tn_array *weight_rows(const char *operation, const tn_array *x, const tn_quantile_opts *opts, const method *m)
{
    const tn_array *w = opts->weights;
    tn_shape shape = tn_shape_of(x), own = tn_shape_of(w);
    int axis = opts->axis.count == 1 ? tn__axis_of(operation, x, opts->axis.axis[0]) : -1;
    bool fits = !tn_is_error(w) && own.ndim == shape.ndim,
         vector = own.ndim == 1 && shape.ndim > 1 && axis >= 0 && own.dim[0] == shape.dim[axis];
    for (int d = 0; fits && d < shape.ndim; d++)
        fits = own.dim[d] == shape.dim[d];
    if ((!fits && !vector) || strcmp(m->name, "inverted_cdf") != 0) {
        tn__fail(TN_ERR_VALUE, operation,
                 "expected weights of the array's shape, or a vector along the one axis given, and the method "
                 "\"inverted_cdf\"");
        return NULL;
    }
    tn_array *full = tn_cast(w, TN_FLOAT64);
    if (tn_size(w) && tn_item(tn_any_with(tn_less(full, tn_weak_int(0)), NULL)) != 0) {
        tn__fail(TN_ERR_VALUE, operation, "expected weights of 0 or more");
        return NULL;
    }
    if (tn_size(w) && tn_item(tn_any_with(full, NULL)) == 0) {
        tn__fail(TN_ERR_VALUE, operation, "the weights are 0 all over: expected one that is more");
        return NULL;
    }
    if (!fits) {
        for (int d = 0; d < shape.ndim; d++)
            own.dim[d] = d == axis ? shape.dim[axis] : 1;
        own.ndim = shape.ndim;
        full = tn_broadcast_to(tn_reshape(full, own), shape);
    }
    slices s;
    return make_slices(operation, full, opts->axis, &s) ? s.rows : NULL;
}

/* The quantiles q (a vector along the last axis) of rows with weights: the first element up to which enough of the
 * weight lies. */
static tn_array *weighted_quantiles(const tn_array *rows, const tn_array *weights, const tn_array *q)
{
    const tn_axis_opts last = {.axis = {1, {-1}}};
    const tn_reduce_opts along = {.axis = {1, {-1}}, .dtype = TN_INT64};
    int axis = tn_ndim(rows) - 1;
    int64_t n = tn_dim(rows, axis);
    tn_array *order = tn_argsort_with(rows, &last), *sorted = tn_take_along_axis(rows, order, axis),
             *w = tn_take_along_axis(weights, order, axis);
    if (tn_dtype_is_float(tn_dtype_of(rows)))
        w = tn_where(tn_isnan(sorted), tn_weak_int(0), w);
    tn_array *share = tn_cumsum_with(w, &last);
    share = tn_divide(share, tn__cut(share, axis, n - 1, 1));
    /* never for what weighs nothing in front */
    share = tn_where(tn_equal(share, tn_weak_int(0)), tn_weak_int(-1), share);
    tn_array *before = tn_less(tn_expand_dims(share, axis), tn_expand_dims(q, 1));
    return tn_take_along_axis(sorted, tn_minimum(tn_sum_with(before, &along), tn_weak_int(n - 1)), axis);
}

static bool within(const tn_array *q, double high)
{
    tn_array *inside = tn_logical_and(tn_greater_equal(q, tn_weak_int(0)), tn_less_equal(q, tn_weak_float(high)));
    return tn_size(q) == 0 || tn_item(tn_all_with(inside, NULL)) == 1; /* NaN is not */
}

/* What speaks against it, as an error array, or NULL. */
static tn_array *refused(const char *operation, const tn_array *x, const tn_array *q, double unit,
                         const char *method_name)
{
    if (!tn_is_error(x) && tn_dtype_is_complex(tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, operation,
                           "complex numbers have no quantiles; pass tn_abs, tn_real or tn_imag of them");
    if (tn_is_error(q))
        return tn__again(q);
    if (!within(q, unit))
        return tn__refused(TN_ERR_VALUE, operation, "expected quantiles from 0 to %g", unit);
    if (!find_method(method_name))
        return tn__refused(TN_ERR_NAME, operation, "no method '%s'; see tn_quantile", method_name);
    return NULL;
}

/* Quantiles of rows, which lie along the last axis, in q's shape with the rows' shape `kept` behind it. */
static tn_array *in_front(const char *operation, const tn_array *y, const tn_array *q, tn_shape kept)
{
    tn_shape result = tn_shape_of(q);
    if (result.ndim + kept.ndim > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, operation, "the result would have %d axes, the most is %d",
                           result.ndim + kept.ndim, TN_MAX_NDIM);
    for (int d = 0; d < kept.ndim; d++)
        result.dim[result.ndim++] = kept.dim[d];
    return tn_reshape(tn_moveaxis(y, tn__axes_of(1, (int[]){-1}), tn__axes_of(1, (int[]){0})), result);
}

static tn_array *quantiles(const char *operation, const tn_array *x, const tn_array *q, double unit, bool skip_nan,
                           const tn_quantile_opts *given)
{
    static const tn_quantile_opts defaults;
    const tn_quantile_opts *opts = given ? given : &defaults;
    bool nothing = skip_nan && !tn_is_error(x) && tn_size(x) == 0;
    const char *method_name = opts->method && !nothing ? opts->method : "linear";
    tn_array *refusal = refused(operation, x, q, unit, method_name);
    if (refusal)
        return refusal;
    if (nothing) { /* whatever is asked of nothing: its mean, as NumPy has it */
        const tn_reduce_opts all = {.axis = opts->axis, .keepdims = opts->keepdims};
        return tn_mean_with(x, &all);
    }
    const method *m = find_method(method_name);
    if (unit == 1 && !tn_dtype_is_float(tn_dtype_of(q)) && m == &methods[0]) /* whole q: the least, the largest */
        m = find_method("nearest");
    bool counted = unit == 1 && !tn__is_weak(q) && !tn_dtype_is_float(tn_dtype_of(q)) &&
                   (!strcmp(m->name, "weibull") || !strcmp(m->name, "interpolated_inverted_cdf"));
    if (counted) /* places of whole numbers, whose results NumPy has in int64 */
        m = find_method("nearest");
    slices s;
    if (!TN__AXES_GIVEN(operation, opts, axis) || !TN__ARRAY_WRITTEN(operation, opts, weights) ||
        !make_slices(operation, x, opts->axis, &s))
        return tn__failure(x);
    bool boolean = tn_dtype_of(x) == TN_BOOL;
    int axis = tn_ndim(s.rows) - 1;
    int64_t n = tn_dim(s.rows, axis);
    if (n == 0)
        return tn__refused(TN_ERR_VALUE, operation, "nothing has no quantiles; check tn_size(x) first");
    if (boolean && (!m->picks || counted))
        return tn__refused(TN_ERR_DTYPE, operation, "there is nothing between false and true; tn_cast them to numbers");
    tn_array *weights = opts->weights ? weight_rows(operation, x, opts, m) : NULL;
    if (opts->weights && !weights)
        return tn__failed_array();
    tn_array *rows = boolean ? tn_cast(s.rows, TN_UINT8) : s.rows;
    const tn_axis_opts last = {.axis = {1, {-1}}};
    tn_array *sorted = tn_sort_with(rows, &last), *nan = tn_dtype_is_float(tn_dtype_of(x)) ? tn_isnan(sorted) : NULL;
    /* numbers of a row, and places, are counted in q's dtype, as NumPy's are, unless that has no room for them */
    tn_dtype exact = tn__is_weak(q) || tn_dtype_of(q) != TN_FLOAT32 ? TN_FLOAT64 : TN_FLOAT32;
    tn_array *fraction = tn_ravel(tn_divide(tn_cast(q, exact), tn_weak_float(unit)));
    const tn_shape for_all_rows = {.ndim = axis + 1, .dim = {1, 1, 1, 1, 1, 1, 1, 1}};
    const tn_create_opts counts = {.dtype = exact, .device = tn_device_of(x)};
    const tn_reduce_opts along = {.axis = {1, {-1}}, .keepdims = true, .dtype = TN_FLOAT64};
    tn_array *count = skip_nan && nan ? tn_cast(tn_sum_with(tn_logical_not(nan), &along), exact)
                                      : tn_full_with(for_all_rows, (double)n, &counts);
    tn_dtype dtype = quantile_dtype(x, q, tn__is_weak(q));
    tn_array *y = weights ? weighted_quantiles(rows, weights, fraction)
                          : at_quantiles(sorted, tn_maximum(count, tn_weak_int(1)), fraction, m, dtype);
    if (!m->picks || counted)
        y = tn_cast(y, counted ? tn_dtype_promote(tn_dtype_of(x), TN_INT64) : dtype);
    if (nan) { /* where the last of a sorted row is NaN, or all of it */
        tn_array *bad = skip_nan ? tn_equal(count, tn_weak_int(0)) : tn__cut(nan, axis, n - 1, 1);
        y = tn_where(bad, tn_weak_float(NAN), y);
    }
    return in_front(operation, boolean ? tn_cast(y, TN_BOOL) : y, q, opts->keepdims ? s.ones : s.kept);
}

/* NumPy blends two neighbours into `out` by elementwise functions, which broadcast there; what skips NaN is assigned,
 * by any cast. */
static tn_array *blended_into(tn_array *out, tn_array *y, bool skip_nan)
{
    bool cast = skip_nan && out && !tn_is_error(out) && !tn_is_error(y);
    return out ? tn_write(out, cast ? tn_cast(y, tn_dtype_of(out)) : y, NULL) : y;
}

#define QUANTILES(name, unit, skip_nan) \
    tn_array *tn_##name##_with(const tn_array *x, const tn_array *q, const tn_quantile_opts *opts) \
    { \
        TN__COMPOSE(blended_into(opts ? opts->out : NULL, quantiles(#name, x, q, unit, skip_nan, opts), skip_nan)); \
    }
QUANTILES(quantile, 1, false)
QUANTILES(percentile, 100, false)
QUANTILES(nanquantile, 1, true)
QUANTILES(nanpercentile, 100, true)

/* The mean of the two in the middle, as NumPy computes it: their sum halved. */
static tn_array *median(const tn_array *x, bool skip_nan, const tn_reduce_opts *opts)
{
    slices s;
    if ((opts && !TN__AXES_GIVEN("median", opts, axis)) ||
        !make_slices("median", x, opts ? opts->axis : (tn_axes){0}, &s))
        return tn__failure(x);
    bool floating = tn__dtype_inexact(tn_dtype_of(x));
    tn_dtype dtype = floating ? tn_dtype_of(x) : TN_FLOAT64;
    int axis = tn_ndim(s.rows) - 1;
    int64_t n = tn_dim(s.rows, axis);
    const tn_axis_opts last = {.axis = {1, {-1}}};
    const tn_reduce_opts along = {.axis = {1, {-1}}, .keepdims = true, .dtype = TN_INT64};
    tn_array *y;
    if (n == 0) { /* the mean of nothing */
        const tn_reduce_opts mean = {.axis = {1, {-1}}, .keepdims = true, .dtype = dtype};
        y = tn_mean_with(s.rows, &mean);
    } else {
        tn_array *rows = tn_dtype_of(x) == TN_BOOL ? tn_cast(s.rows, TN_UINT8) : s.rows;
        tn_array *sorted = tn_sort_with(rows, &last), *nan = floating ? tn_isnan(sorted) : NULL, *low, *high;
        tn_array *count = NULL;
        if (skip_nan && nan) {
            count = tn_sum_with(tn_logical_not(nan), &along);
            tn_array *above = tn_right_shift(count, tn_weak_int(1));
            tn_array *below =
                tn_maximum(tn_right_shift(tn_subtract(count, tn_weak_int(1)), tn_weak_int(1)), tn_weak_int(0));
            low = tn_take_along_axis(sorted, below, axis);
            high = tn_take_along_axis(sorted, tn_minimum(above, tn_weak_int(n - 1)), axis);
            high = tn_where(tn_equal(tn_bitwise_and(count, tn_weak_int(1)), tn_weak_int(1)), low, high);
        } else {
            low = tn__cut(sorted, axis, (n - 1) / 2, 1);
            high = tn__cut(sorted, axis, n / 2, 1);
        }
        tn_dtype wide = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16 ? TN_FLOAT32 : dtype;
        tn_array *sum = tn_add(tn_cast(low, wide), tn_cast(high, wide));
        /* two equal ones whose sum overflows; any others share the gradient */
        tn_array *large = tn_logical_and(tn_isinf(sum), tn_equal(low, high));
        y = tn_where(large, tn_cast(low, wide), tn_divide(sum, tn_weak_int(2)));
        y = tn_cast(y, dtype);
        if (nan) {
            tn_array *bad = skip_nan ? tn_equal(count, tn_weak_int(0)) : tn__cut(nan, axis, n - 1, 1);
            y = tn_where(bad, tn_weak_float(NAN), y);
        }
    }
    return tn_reshape(y, opts && opts->keepdims ? s.ones : s.kept);
}

tn_array *tn_median_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, median(x, false, opts)));
}

tn_array *tn_nanmedian_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(blended_into(opts ? opts->out : NULL, median(x, true, opts), true));
}
