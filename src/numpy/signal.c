/* SPDX-License-Identifier: MIT */
/* Windows and the Bessel function of one of them, phases. */
#include <tanso/signal.h>

#include <math.h>

#include "array/build_parts.h"
#include "numpy/compose.h"

/* ---- Bessel's I0 ---- */

enum { SERIES = 44, ASYMPTOTIC = 30 };
#define SERIES_END 20.0

/* Sum of coefficient[k] x^k. */
static tn_array *power_series(const tn_array *x, const double *coefficient, int count)
{
    tn_array *y = tn_multiply(tn_zeros_like(x), tn_weak_int(0));
    for (int k = count - 1; k >= 0; k--)
        y = tn_add(tn_multiply(y, x), tn_weak_float(coefficient[k]));
    return y;
}

static tn_array *bessel(const tn_array *x)
{
    x = tn__array_of(x);
    tn_array *y = tn__as_float(
        tn_dtype_is_float(tn_dtype_of(x)) || tn_dtype_is_complex(tn_dtype_of(x)) ? x : tn_cast(x, TN_FLOAT64));
    if (tn_is_error(y))
        return y;
    tn_dtype dtype = tn_dtype_of(y);
    double near[SERIES], far[ASYMPTOTIC];
    near[0] = far[0] = 1;
    for (int k = 1; k < SERIES; k++)
        near[k] = near[k - 1] / ((double)k * k); /* (x^2 / 4)^k / k!^2 */
    for (int k = 1; k < ASYMPTOTIC; k++)
        far[k] = far[k - 1] * (2 * k - 1) * (2 * k - 1) / (8.0 * k); /* of 1 / x */
    y = tn_abs(tn_cast(y, dtype == TN_FLOAT16 || dtype == TN_BFLOAT16 ? TN_FLOAT32 : dtype));
    tn_array *small = tn_minimum(y, tn_weak_float(SERIES_END)), *large = tn_maximum(y, tn_weak_float(SERIES_END));
    tn_array *low = power_series(tn_multiply(tn_square(small), tn_weak_float(0.25)), near, SERIES);
    tn_array *half = tn_exp(tn_multiply(large, tn_weak_float(0.5))); /* exp alone is infinite too early */
    tn_array *high = power_series(tn_reciprocal(large), far, ASYMPTOTIC);
    high = tn_multiply(tn_multiply(tn_divide(high, tn_sqrt(tn_multiply(large, tn_weak_float(2 * M_PI)))), half), half);
    return tn_cast(tn_where(tn_greater(y, tn_weak_float(SERIES_END)), high, low), dtype);
}

tn_array *tn_i0(const tn_array *x)
{
    TN__COMPOSE(bessel(x));
}

/* ---- windows ---- */

static tn_dtype dtype_of(const tn_create_opts *opts)
{
    return opts && opts->dtype ? opts->dtype : TN_FLOAT32;
}

/* Places from -1 to 1 times a factor in float64, rounded as NumPy's; one place is 0. */
static tn_array *places(int64_t n, double factor, const tn_create_opts *opts)
{
    const tn_create_opts own = {.dtype = TN_FLOAT64, .device = opts ? opts->device : (tn_device){0, 0}};
    n = n < 0 ? 0 : n;
    tn_array *k = tn_arange_with((double)(1 - n), (double)n, 2, &own);
    k = tn_multiply(k, tn_weak_float(factor));
    return n > 1 ? tn_divide(k, tn_weak_float((double)(n - 1))) : k;
}

/* a + b cos(pi x) + c cos(2 pi x), summed in this order. */
static tn_array *cosines(int64_t n, const double weight[3], const tn_create_opts *opts)
{
    tn_array *y = tn_multiply(tn_cos(places(n, M_PI, opts)), tn_weak_float(weight[1]));
    y = tn_add(y, tn_weak_float(weight[0]));
    if (weight[2] != 0)
        y = tn_add(y, tn_multiply(tn_cos(places(n, 2 * M_PI, opts)), tn_weak_float(weight[2])));
    return tn_cast(y, dtype_of(opts));
}

tn_array *tn_bartlett_with(int64_t n, const tn_create_opts *opts)
{
    TN__COMPOSE(tn_cast(tn_subtract(tn_weak_float(1), tn_abs(places(n, 1, opts))), dtype_of(opts)));
}

tn_array *tn_blackman_with(int64_t n, const tn_create_opts *opts)
{
    TN__COMPOSE(cosines(n, (const double[]){0.42, 0.5, 0.08}, opts));
}

tn_array *tn_hamming_with(int64_t n, const tn_create_opts *opts)
{
    TN__COMPOSE(cosines(n, (const double[]){0.54, 0.46, 0}, opts));
}

tn_array *tn_hanning_with(int64_t n, const tn_create_opts *opts)
{
    TN__COMPOSE(cosines(n, (const double[]){0.5, 0.5, 0}, opts));
}

static tn_array *kaiser(int64_t n, double beta, const tn_create_opts *opts)
{
    tn_array *x = places(n, 1, opts);
    tn_array *root = tn_sqrt(tn_subtract(tn_weak_float(1), tn_square(x)));
    const tn_create_opts number = {.dtype = TN_FLOAT64, .device = tn_device_of(x)};
    return tn_cast(tn_divide(tn_i0(tn_multiply(root, tn_weak_float(beta))), tn_i0(tn_scalar_with(beta, &number))),
                   dtype_of(opts));
}

tn_array *tn_kaiser_with(int64_t n, double beta, const tn_create_opts *opts)
{
    TN__COMPOSE(kaiser(n, beta, opts));
}

/* ---- phases ---- */

static tn_array *unwrap(const tn_array *x, const tn_array *period, double jump, int axis)
{
    axis = tn__axis_of("unwrap", x, axis);
    if (tn_is_error(x) || axis < 0)
        return tn__failure(x);
    tn_array *turn = period ? tn__again(period) : tn_weak_float(2 * M_PI);
    tn_array *step = tn_diff(x, 1, axis);
    tn_dtype dtype = tn_dtype_of(tn_add(step, turn));
    bool whole = tn_dtype_is_integer(dtype);
    if (whole && tn__dtypes[dtype].class == TN__CLASS_UNSIGNED)
        return tn__refused(TN_ERR_DTYPE, "unwrap", "half a period below zero is no %s; tn_cast x to a signed dtype",
                           tn_dtype_name(dtype));
    tn_array *whole_turn = tn__array_of(turn);
    if (tn_eval(whole_turn) != TN_OK)
        return tn__failed_array();
    double size = tn_item(whole_turn), half = whole ? floor(size / 2) : size / 2;
    bool both_ends = !whole || size == 2 * half; /* half a period is as near to either end */
    tn_array *high = whole ? tn_weak_int((int64_t)half) : tn_weak_float(half), *low = tn_negative(high);
    tn_array *rest = tn_add(tn_remainder(tn_subtract(step, low), turn), low);
    if (both_ends)
        rest = tn_where(tn_logical_and(tn_equal(rest, low), tn_greater(step, tn_weak_int(0))), high, rest);
    tn_array *correction = tn_subtract(rest, step);
    tn_array *small = tn_less(tn_abs(step), tn_weak_float(jump > 0 ? jump : size / 2));
    correction = tn_where(small, tn_weak_int(0), correction);
    const tn_axis_opts along = {.axis = {1, {axis}}};
    tn_array *first = tn__cut(x, axis, 0, tn_dim(x, axis) ? 1 : 0);
    tn_array *others = tn_add(tn_slice_axis(x, axis, 1, TN_NONE, 1), tn_cumsum_with(correction, &along));
    return tn_cast(tn_concatenate(2, (const tn_array *const[]){first, others}, axis), dtype);
}

tn_array *tn_unwrap(const tn_array *x, const tn_array *period, double jump, int axis)
{
    TN__COMPOSE(unwrap(x, period, jump, axis));
}
