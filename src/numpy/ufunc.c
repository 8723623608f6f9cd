/* SPDX-License-Identifier: MIT */
/* Elementwise functions composed of others, and comparison of whole arrays. */
#include "numpy/compose.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "array/build_parts.h"
#include "core/options.h"

/* ---- of one operand ---- */

tn_array *tn_positive(const tn_array *x)
{
    if (tn_dtype_of(x) == TN_BOOL)
        return tn__refused(TN_ERR_DTYPE, "positive", "does not take bool; tn_cast it to a number");
    return tn__again(x);
}

/* x in a floating dtype; complex numbers have no order, and NumPy refuses them here. */
static tn_array *real_float(const char *operation, const tn_array *x)
{
    if (!tn_is_error(x) && tn_dtype_is_complex(tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, operation,
                           "does not take complex numbers; pass tn_abs, tn_real or tn_imag of them");
    return tn__as_float(x);
}

tn_array *tn_fabs(const tn_array *x)
{
    TN__COMPOSE(tn_abs(real_float("fabs", x)));
}

tn_array *tn_fix(const tn_array *x)
{
    if (!tn_is_error(x) && tn_dtype_is_complex(tn_dtype_of(x)))
        return real_float("fix", x);
    return tn_trunc(x);
}

tn_array *tn_deg2rad(const tn_array *x)
{
    TN__COMPOSE(tn_multiply(real_float("deg2rad", x), tn_weak_float(M_PI / 180)));
}

tn_array *tn_rad2deg(const tn_array *x)
{
    TN__COMPOSE(tn_multiply(real_float("rad2deg", x), tn_weak_float(180 / M_PI)));
}

/* NumPy's sinc: 0 is replaced by a number so small that the quotient is 1. Integers are of float64. */
static tn_array *sinc(const tn_array *x)
{
    tn_array *y = tn__dtype_inexact(tn_dtype_of(x)) ? tn__array_of(x) : tn_cast(x, TN_FLOAT64);
    tn_array *zero = tn_equal(y, tn_weak_int(0));
    y = tn_multiply(tn_where(zero, tn_weak_float(1), y), tn_weak_float(M_PI));
    return tn_where(zero, tn_weak_float(1), tn_divide(tn_sin(y), y));
}

tn_array *tn_sinc(const tn_array *x)
{
    TN__COMPOSE(sinc(x));
}

static tn_array *spacing(const tn_array *x)
{
    tn_array *y = tn__as_float(x);
    if (tn_dtype_of(y) == TN_FLOAT16) { /* which computes in float32: from the exponent, 2^-24 at the least */
        tn_array *wide = tn_cast(y, TN_FLOAT32),
                 *exponent = tn_subtract(tn_cast(tn_frexp_exponent(wide), TN_INT32), tn_weak_int(11));
        /* NumPy looks toward zero there */
        exponent = tn_subtract(exponent, tn_equal(tn_frexp_fraction(wide), tn_weak_float(-0.5)));
        exponent = tn_where(tn_equal(wide, tn_weak_int(0)), tn_weak_int(-24), exponent);
        tn_array *step = tn_ldexp(tn_ones_like(wide), tn_maximum(exponent, tn_weak_int(-24)));
        /* to what comes behind the largest */
        step = tn_where(tn_equal(wide, tn_weak_float(65504)), tn_weak_float(INFINITY), step);
        return tn_cast(tn_where(tn_isfinite(wide), step, tn_weak_float(NAN)), TN_FLOAT16);
    }
    /* of -0: up */
    tn_array *away =
        tn_where(tn_equal(y, tn_weak_int(0)), tn_weak_float(INFINITY), tn_copysign(tn_weak_float(INFINITY), y));
    return tn_subtract(tn_nextafter(y, away), y);
}

tn_array *tn_spacing(const tn_array *x)
{
    TN__COMPOSE(spacing(x));
}

tn_array *tn_isposinf(const tn_array *x)
{
    TN__COMPOSE(tn_equal(tn__as_float(x), tn_weak_float(INFINITY)));
}

tn_array *tn_isneginf(const tn_array *x)
{
    TN__COMPOSE(tn_equal(tn__as_float(x), tn_weak_float(-INFINITY)));
}

/* By adding neighbouring fields of bits: single ones, pairs, nibbles; then all bytes, in the highest. */
static tn_array *bitwise_count(const tn_array *x)
{
    if (!tn_is_error(x) && tn_dtype_of(x) != TN_BOOL && !tn_dtype_is_integer(tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, "bitwise_count", "takes integers and bool, got %s",
                           tn_dtype_name(tn_dtype_of(x)));
    static const tn_dtype magnitude[TN_DTYPE_COUNT] = { /* of the least number, too */
        [TN_INT8] = TN_UINT8, [TN_INT16] = TN_UINT16, [TN_INT32] = TN_UINT32, [TN_INT64] = TN_UINT64};
    tn_array *n = tn_abs(x);
    if (tn_is_error(n))
        return n;
    if (magnitude[tn_dtype_of(n)])
        n = tn_cast(n, magnitude[tn_dtype_of(n)]);
    n = tn_cast(n, TN_UINT64);
    const int64_t every[] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f};
    for (int i = 0; i < 3; i++)
        n = tn_add(tn_bitwise_and(n, tn_weak_int(every[i])),
                   tn_bitwise_and(tn_right_shift(n, tn_weak_int(1 << i)), tn_weak_int(every[i])));
    tn_array *sum = tn_right_shift(tn_multiply(n, tn_weak_int(0x0101010101010101)), tn_weak_int(56));
    return tn_cast(sum, TN_UINT8);
}

tn_array *tn_bitwise_count(const tn_array *x)
{
    TN__COMPOSE(bitwise_count(x));
}

/* NumPy scales by a power of ten, rounds, and scales back. */
static tn_array *rounded(const tn_array *x, int decimals)
{
    tn_dtype dtype = tn_dtype_of(x);
    if (tn_is_error(x) || (!tn_dtype_is_float(dtype) && dtype != TN_BOOL && decimals >= 0))
        return tn__array_of(x);
    if (dtype == TN_BOOL && decimals)
        return tn__refused(TN_ERR_DTYPE, "round", "does not scale bool; tn_cast it to a number");
    if (dtype == TN_BOOL)
        return tn_cast(x, TN_FLOAT16);
    tn_array *scale = tn_weak_float(pow(10, abs(decimals)));
    if (tn_dtype_is_integer(dtype)) {
        tn_array *y = tn_cast(x, TN_FLOAT64);
        return tn_cast(tn_multiply(tn_rint(tn_divide(y, scale)), scale), dtype);
    }
    if (decimals == 0)
        return tn_rint(x);
    return decimals > 0 ? tn_divide(tn_rint(tn_multiply(x, scale)), scale)
                        : tn_multiply(tn_rint(tn_divide(x, scale)), scale);
}

static bool is_complex(const tn_array *x)
{
    return !tn_is_error(x) && tn__dtypes[tn_dtype_of(x)].class == TN__CLASS_COMPLEX;
}

tn_array *tn_round(const tn_array *x, int decimals)
{
    if (is_complex(x))
        TN__COMPOSE(tn_complex(rounded(tn_real(x), decimals), rounded(tn_imag(x), decimals)));
    TN__COMPOSE(rounded(x, decimals));
}

static double largest(tn_dtype dtype)
{
    return dtype == TN_FLOAT16 ? 65504 : dtype == TN_BFLOAT16 ? 0x1.fep127 : dtype == TN_FLOAT32 ? FLT_MAX : DBL_MAX;
}

static tn_array *nan_to_num(const tn_array *x, double nan, double posinf, double neginf)
{
    tn_dtype dtype = tn_dtype_of(x);
    if (!tn_dtype_is_float(dtype))
        return tn__array_of(x);
    double high = isnan(posinf) ? largest(dtype) : posinf, low = isnan(neginf) ? -largest(dtype) : neginf;
    tn_array *y = tn_where(tn_isnan(x), tn_weak_float(nan), x);
    y = tn_where(tn_isposinf(x), tn_weak_float(high), y);
    return tn_where(tn_isneginf(x), tn_weak_float(low), y);
}

tn_array *tn_nan_to_num(const tn_array *x, double nan, double posinf, double neginf)
{
    if (is_complex(x))
        TN__COMPOSE(
            tn_complex(nan_to_num(tn_real(x), nan, posinf, neginf), nan_to_num(tn_imag(x), nan, posinf, neginf)));
    TN__COMPOSE(nan_to_num(x, nan, posinf, neginf));
}

tn_status tn_frexp(const tn_array *x, tn_array **mantissa, tn_array **exponent)
{
    if (!mantissa || !exponent)
        return tn__fail_null("frexp", "room for two arrays");
    tn_array *both[2];
    tn_scope_push();
    both[0] = tn_frexp_fraction(x);
    both[1] = tn_cast(tn_frexp_exponent(x), TN_INT32);
    tn_status status = tn__composed_all(2, both);
    *mantissa = both[0];
    *exponent = both[1];
    return status;
}

tn_status tn_modf(const tn_array *x, tn_array **fraction, tn_array **whole)
{
    if (!fraction || !whole)
        return tn__fail_null("modf", "room for two arrays");
    tn_array *both[2];
    tn_scope_push();
    tn_array *y = tn__as_float(x);
    both[1] = tn_copysign(tn_trunc(y), y);
    both[0] = tn_copysign(tn_where(tn_isinf(y), tn_weak_int(0), tn_subtract(y, both[1])), y);
    tn_status status = tn__composed_all(2, both);
    *fraction = both[0];
    *whole = both[1];
    return status;
}

/* ---- of two ---- */

tn_array *tn_float_power(const tn_array *a, const tn_array *b)
{
    bool parts = tn_dtype_is_complex(tn_dtype_of(a)) || tn_dtype_is_complex(tn_dtype_of(b));
    tn_dtype dtype = parts ? TN_COMPLEX128 : TN_FLOAT64;
    TN__COMPOSE(tn_power(tn_cast(a, dtype), tn_cast(b, dtype)));
}

tn_status tn_divmod(const tn_array *a, const tn_array *b, tn_array **quotient, tn_array **remainder)
{
    if (!quotient || !remainder)
        return tn__fail_null("divmod", "room for two arrays");
    *quotient = tn_floor_divide(a, b);
    *remainder = tn_remainder(a, b);
    return tn_status_of(*quotient) != TN_OK ? tn_status_of(*quotient) : tn_status_of(*remainder);
}

/* ---- whole arrays ---- */

/* The difference of integers as floats, so that nothing wraps around. */
static tn_array *isclose(const tn_array *a, const tn_array *b, const tn_close_opts *opts)
{
    double rtol = TN__OPTION(opts, rtol, 1e-5), atol = TN__OPTION(opts, atol, 1e-8);
    if (!(rtol >= 0) || !(atol >= 0))
        return tn__refused(TN_ERR_VALUE, "isclose", "rtol %g, atol %g: expected tolerances of 0 or more", rtol, atol);
    tn_dtype dtype = tn_dtype_promote(tn_dtype_of(a), tn_dtype_of(b));
    if (dtype == TN_BOOL || tn_dtype_is_integer(dtype)) {
        a = tn_cast(a, TN_FLOAT64);
        b = tn_cast(b, TN_FLOAT64);
    }
    tn_array *bound = tn_add(tn_multiply(tn_abs(b), tn_weak_float(rtol)), tn_weak_float(atol));
    tn_array *near = tn_logical_and(tn_less_equal(tn_abs(tn_subtract(a, b)), bound), tn_isfinite(b));
    tn_array *close = tn_logical_or(near, tn_equal(a, b));
    return opts && opts->equal_nan ? tn_logical_or(close, tn_logical_and(tn_isnan(a), tn_isnan(b))) : close;
}

tn_array *tn_isclose_with(const tn_array *a, const tn_array *b, const tn_close_opts *opts)
{
    TN__COMPOSE(isclose(a, b, opts));
}

/* All true? Closes the scope that the caller opened. */
static bool all_true(const tn_array *x)
{
    bool yes = tn_item(tn_all_with(x, NULL)) == 1;
    tn_scope_pop();
    return yes;
}

bool tn_allclose_with(const tn_array *a, const tn_array *b, const tn_close_opts *opts)
{
    tn_scope_push();
    return all_true(tn_isclose_with(a, b, opts));
}

static tn_array *equal(const tn_array *a, const tn_array *b, bool equal_nan)
{
    tn_array *same = tn_equal(a, b);
    return equal_nan ? tn_logical_or(same, tn_logical_and(tn_isnan(a), tn_isnan(b))) : same;
}

static bool same_shape(const tn_array *a, const tn_array *b)
{
    bool same = tn_ndim(a) == tn_ndim(b);
    for (int d = 0; same && d < tn_ndim(a); d++)
        same = tn_dim(a, d) == tn_dim(b, d);
    return same;
}

bool tn_array_equal(const tn_array *a, const tn_array *b, bool equal_nan)
{
    if (!tn_is_error(a) && !tn_is_error(b) && !same_shape(a, b))
        return false;
    tn_scope_push();
    return all_true(equal(a, b, equal_nan));
}

bool tn_array_equiv(const tn_array *a, const tn_array *b)
{
    tn_shape x = tn_shape_of(a), y = tn_shape_of(b);
    for (int d = 1; d <= x.ndim && d <= y.ndim; d++) {
        int64_t m = x.dim[x.ndim - d], n = y.dim[y.ndim - d];
        if (m != n && m != 1 && n != 1)
            return false;
    }
    tn_scope_push();
    return all_true(equal(a, b, false));
}

tn_array *tn_round_with(const tn_array *x, int decimals, const tn_out_opts *opts)
{
    TN__COMPOSE(tn__given_out("round", tn_round(x, decimals), opts));
}

/* ---- complex numbers that are real ---- */

static tn_array *real_if_close(const tn_array *x, double tolerance)
{
    x = tn__array_of(x);
    if (tn_is_error(x) || !tn_dtype_is_complex(tn_dtype_of(x)))
        return tn__again(x);
    double epsilon = tn_dtype_of(x) == TN_COMPLEX64 ? FLT_EPSILON : DBL_EPSILON;
    tn_array *near = tn_less(tn_abs(tn_imag(x)), tn_weak_float(tolerance > 1 ? tolerance * epsilon : tolerance));
    tn_array *all = tn_all_with(near, NULL);
    if (tn_eval(all) != TN_OK)
        return tn__failed_array();
    return tn_item(all) == 1 ? tn_real(x) : tn__again(x);
}

tn_array *tn_real_if_close(const tn_array *x, double tolerance)
{
    TN__COMPOSE(real_if_close(x, tolerance));
}
