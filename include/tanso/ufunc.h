/* SPDX-License-Identifier: MIT */
/*
 * More elementwise functions, comparison of whole arrays, and NumPy's options `out`, `where` and `dtype` for every
 * elementwise function.
 *
 * The options are one mechanism: tn_unary(tn_exp, x, .out = y) and tn_binary(tn_add, a, b, .where = m, .out = y) call
 * any function of one or two operands. tn_write puts any result into an existing array.
 */
#ifndef TANSO_UFUNC_H
#define TANSO_UFUNC_H

#include <tanso/array.h>
#include <tanso/index.h>
#include <tanso/sort.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ---- */

typedef struct tn_ufunc_opts {
    const char *_;
    tn_array *out;         /* receives the result: the handle is pointed at it, as tn_assign does; the result must
                              broadcast to its shape, and its dtype be of the same kind or a lower one (float64 into
                              float32, not into int64) */
    const tn_array *where; /* bool: elsewhere the result is what `out` held, or zero without out */
    tn_dtype dtype; /* operands are cast to it first, if `casting` allows it; a function that then gives another dtype
                       (exp of integers) is refused, unless it gives this one anyway (bool of a comparison) */
    const char *casting; /* "same_kind" (default: the same kind or a higher one), "safe" (every value), "no", "equiv"
                            (the dtype itself) or "unsafe" (anything), for operands and out */
} tn_ufunc_opts;

typedef tn_array *tn_unary_function(const tn_array *x);
typedef tn_array *tn_binary_function(const tn_array *a, const tn_array *b);
/* f(x), f(a, b) with options; `f` is one of the library's functions, or any other that is made of them. */
TN_API tn_array *tn_unary_with(tn_unary_function *f, const tn_array *x, const tn_ufunc_opts *opts);
TN_API tn_array *tn_binary_with(tn_binary_function *f, const tn_array *a, const tn_array *b, const tn_ufunc_opts *opts);
/* Points `out` at x's value, broadcast to its shape and cast to its dtype, where `where` (may be NULL: everywhere);
 * gives a new handle to that, or an error array when shape or kind do not fit. out's old memory is reused where nobody
 * else holds it. */
TN_API tn_array *tn_write(tn_array *out, const tn_array *x, const tn_array *where);
/* Whether NumPy's 'same_kind' allows a cast: bool < unsigned < signed < float < complex, any width within a kind. */
TN_API bool tn_can_cast(tn_dtype from, tn_dtype to);
/* By any of the rules of tn_ufunc_opts.casting; false for a rule that does not exist. */
TN_API bool tn_can_cast_by(tn_dtype from, tn_dtype to, const char *rule);
/* The dtype in which an elementwise function of these (64 at most) would compute: C numbers among them adapt to the
 * arrays. 0 (TN_DTYPE_DEFAULT) for none, too many, or an error array. */
TN_API tn_dtype tn_result_type(int count, const tn_array *const *operands);

/* f over pairs: the result has a's axes, then b's (NumPy's ufunc.outer). opts as for tn_binary_with; may be NULL. */
TN_API tn_array *tn_outer_with(tn_binary_function *f, const tn_array *a, const tn_array *b, const tn_ufunc_opts *opts);
/*
 * NumPy's other methods of ufuncs, for any function of two operands. They record an operation for each element of the
 * axis, in order; tn_sum, tn_prod, tn_max, tn_min, tn_any, tn_all and the scans of sort.h do the same at once where
 * they apply.
 *
 * tn_reduce_by: f(... f(f(x0, x1), x2) ...) over the axes (default: all), from `initial` if given, which an extent of 0
 * and `where` need; with keepdims, dtype, out. tn_accumulate_by: all the steps along one axis (default 0).
 * tn_reduceat_by: the reduction from each of `count` places to the next one, the element alone where that does not lie
 * behind; opts as for the scan.
 */
TN_API tn_array *tn_reduce_by(tn_binary_function *f, const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_accumulate_by(tn_binary_function *f, const tn_array *x, const tn_axis_opts *opts);
TN_API tn_array *tn_reduceat_by(tn_binary_function *f, const tn_array *x, int count, const int64_t *places,
                                const tn_axis_opts *opts);
/* x[keys] = f(x[keys], value), once for each time that a position occurs, cast to x's dtype (ufunc.at); into the handle
 * x. */
TN_API tn_status tn_apply_at(tn_binary_function *f, tn_array *x, const tn_array *value, int count, const tn_key *keys);

/* ---- functions of one operand ---- */

/* Integers become floats, as in tn_exp, unless said otherwise. */
TN_API tn_array *tn_positive(const tn_array *x); /* x; bool is refused */
TN_API tn_array *tn_fabs(const tn_array *x);     /* |x| in floats */
TN_API tn_array *tn_fix(const tn_array *x);      /* toward zero */
TN_API tn_array *tn_deg2rad(const tn_array *x);
TN_API tn_array *tn_rad2deg(const tn_array *x);
TN_API tn_array *tn_sinc(const tn_array *x);     /* sin(pi x) / (pi x) */
TN_API tn_array *tn_spacing(const tn_array *x);  /* to the next number away from zero */
TN_API tn_array *tn_isposinf(const tn_array *x);
TN_API tn_array *tn_isneginf(const tn_array *x);
TN_API tn_array *tn_bitwise_count(const tn_array *x); /* ones of |x|, uint8 */
/* Rounded to `decimals` digits behind the point (before it, if negative), ties to even; integers stay integers. bool:
 * decimals 0. */
TN_API tn_array *tn_round(const tn_array *x, int decimals);
TN_API tn_array *tn_round_with(const tn_array *x, int decimals, const tn_out_opts *opts);
/* NaN as `nan`, infinities as the two numbers (NAN: the dtype's largest and lowest). */
TN_API tn_array *tn_nan_to_num(const tn_array *x, double nan, double posinf, double neginf);
/* Mantissas with 1/2 <= |m| < 1, and int32 exponents: x = m 2^e. */
TN_API tn_status tn_frexp(const tn_array *x, tn_array **mantissa, tn_array **exponent);
/* Fraction and whole part, both with x's sign. */
TN_API tn_status tn_modf(const tn_array *x, tn_array **fraction, tn_array **whole);

/* ---- functions of two ---- */

/* tn_clip with the options of tn_binary; low or high may be NULL: no limit on that side. */
TN_API tn_array *tn_clip_with(const tn_array *x, const tn_array *low, const tn_array *high, const tn_ufunc_opts *opts);
TN_API tn_array *tn_float_power(const tn_array *a, const tn_array *b); /* in float64 */
/* floor_divide and remainder. */
TN_API tn_status tn_divmod(const tn_array *a, const tn_array *b, tn_array **quotient, tn_array **remainder);

/* ---- whole arrays ---- */

typedef struct tn_close_opts {
    const char *_;
    double rtol, atol;   /* |a - b| <= atol + rtol |b|; default 1e-5 and 1e-8 */
    bool equal_nan;      /* NaN equals NaN */
} tn_close_opts;

/* Elementwise, bool. */
TN_API tn_array *tn_isclose_with(const tn_array *a, const tn_array *b, const tn_close_opts *opts);
/* These read the answer, so they evaluate; false with a latched error for error arrays. */
TN_API bool tn_allclose_with(const tn_array *a, const tn_array *b, const tn_close_opts *opts);
TN_API bool tn_array_equal(const tn_array *a, const tn_array *b, bool equal_nan);
/* Equal after broadcasting. */
TN_API bool tn_array_equiv(const tn_array *a, const tn_array *b);

#ifndef TN_NO_MACROS
#define tn_clip_with(...) TN_AT(tn_clip_with)(__VA_ARGS__)
#define tn_result_type(...) TN_HERE(tn_result_type(__VA_ARGS__))
#define tn_reduce_by(...) TN_HERE(tn_reduce_by(__VA_ARGS__))
#define tn_accumulate_by(...) TN_HERE(tn_accumulate_by(__VA_ARGS__))
#define tn_reduceat_by(...) TN_HERE(tn_reduceat_by(__VA_ARGS__))
#define tn_apply_at(...) TN_HERE(tn_apply_at(__VA_ARGS__))
#define tn_positive(x) TN_AT(tn_positive)(TN_ARG(x))
#define tn_fabs(x) TN_AT(tn_fabs)(TN_ARG(x))
#define tn_fix(x) TN_AT(tn_fix)(TN_ARG(x))
#define tn_deg2rad(x) TN_AT(tn_deg2rad)(TN_ARG(x))
#define tn_rad2deg(x) TN_AT(tn_rad2deg)(TN_ARG(x))
#define tn_sinc(x) TN_AT(tn_sinc)(TN_ARG(x))
#define tn_spacing(x) TN_AT(tn_spacing)(TN_ARG(x))
#define tn_isposinf(x) TN_AT(tn_isposinf)(TN_ARG(x))
#define tn_isneginf(x) TN_AT(tn_isneginf)(TN_ARG(x))
#define tn_bitwise_count(x) TN_AT(tn_bitwise_count)(TN_ARG(x))
#define tn_round_with(x, ...) TN_AT(tn_round_with)(TN_ARG(x), __VA_ARGS__)
#define tn_round(x, decimals) TN_AT(tn_round)(TN_ARG(x), decimals)
#define tn_nan_to_num(x, nan, posinf, neginf) TN_AT(tn_nan_to_num)(TN_ARG(x), nan, posinf, neginf)
#define tn_frexp(x, mantissa, exponent) TN_AT(tn_frexp)(TN_ARG(x), mantissa, exponent)
#define tn_modf(x, fraction, whole) TN_AT(tn_modf)(TN_ARG(x), fraction, whole)
#define tn_float_power(a, b) TN_AT(tn_float_power)(TN_ARG(a), TN_ARG(b))
#define tn_divmod(a, b, quotient, remainder) TN_AT(tn_divmod)(TN_ARG(a), TN_ARG(b), quotient, remainder)
#define tn_array_equal(a, b, equal_nan) TN_AT(tn_array_equal)(TN_ARG(a), TN_ARG(b), equal_nan)
#define tn_array_equiv(a, b) TN_AT(tn_array_equiv)(TN_ARG(a), TN_ARG(b))
#define tn_write(out, x, where) TN_AT(tn_write)(out, TN_ARG(x), where)
#define tn_outer_with(f, a, b, ...) TN_AT(tn_outer_with)(f, TN_ARG(a), TN_ARG(b), __VA_ARGS__)
#define tn_unary(...) TN__CALL_VA(tn_unary_with, tn_ufunc_opts, __VA_ARGS__, )
#define tn_binary(...) TN__CALL_VAA(tn_binary_with, tn_ufunc_opts, __VA_ARGS__, )
#define tn_isclose(...) TN__CALL_AA(tn_isclose_with, tn_close_opts, __VA_ARGS__, )
#define tn_allclose(...) TN__CALL_AA(tn_allclose_with, tn_close_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
