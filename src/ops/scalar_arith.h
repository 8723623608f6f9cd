/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 3: arithmetic, comparison, bits and shifts, with NumPy's semantics. Integers wrap around
 * (computed unsigned, so nothing is undefined), x / 0 and x % 0 are 0, floor division and rem follow the divisor's
 * sign, fmod the dividend's. max and min pass NaN on, fmax and fmin skip it; of two equal operands they give b (on a
 * GPU max gives +0 of two zeros, min -0).
 * A kernel that computes in floats and bool only defines TNS_NO_INTEGERS before this text, and compiles sooner.
 */
#ifndef TN_OPS_SCALAR_ARITH_H
#define TN_OPS_SCALAR_ARITH_H

#define TNS__COMPARE(s, T) \
    TN_HOT tn_b8 tns_eq_##s(T a, T b) { return a == b; } \
    TN_HOT tn_b8 tns_ne_##s(T a, T b) { return a != b; } \
    TN_HOT tn_b8 tns_lt_##s(T a, T b) { return a < b; } \
    TN_HOT tn_b8 tns_le_##s(T a, T b) { return a <= b; } \
    TN_HOT tn_b8 tns_gt_##s(T a, T b) { return a > b; } \
    TN_HOT tn_b8 tns_ge_##s(T a, T b) { return a >= b; }

#ifndef TNS_NO_INTEGERS

/* W is the unsigned type arithmetic is done in: at least int's width, so that promotion never makes it signed. */
#define TNS__INTEGER(s, T, W) \
    TNS__COMPARE(s, T) \
    TN_HOT T tns_add_##s(T a, T b) { return (T)((W)a + (W)b); } \
    TN_HOT T tns_sub_##s(T a, T b) { return (T)((W)a - (W)b); } \
    TN_HOT T tns_mul_##s(T a, T b) { return (T)((W)a * (W)b); } \
    TN_HOT T tns_neg_##s(T a) { return (T)((W)0 - (W)a); } \
    TN_HOT T tns_square_##s(T a) { return (T)((W)a * (W)a); } \
    TN_HOT T tns_max_##s(T a, T b) { return a > b ? a : b; } \
    TN_HOT T tns_min_##s(T a, T b) { return a < b ? a : b; } \
    TN_HOT T tns_fmax_##s(T a, T b) { return a > b ? a : b; } \
    TN_HOT T tns_fmin_##s(T a, T b) { return a < b ? a : b; } \
    TN_HOT T tns_and_##s(T a, T b) { return (T)(a & b); } \
    TN_HOT T tns_or_##s(T a, T b) { return (T)(a | b); } \
    TN_HOT T tns_xor_##s(T a, T b) { return (T)(a ^ b); } \
    TN_HOT T tns_not_##s(T a) { return (T)~a; } \
    TN_FN T tns_pow_##s(T a, T n) /* by squaring; the caller has refused n < 0 */ \
    { \
        W base = (W)a, result = 1; \
        for (; n > 0; n >>= 1, base *= base) result *= (n & 1) ? base : 1; \
        return (T)result; \
    }

/*
 * a / b and a % b, b not 0. On a CPU, which has no vectors of integer quotients, in floats F that are twice as wide: a
 * quotient that is not whole is farther from the next whole number than its rounding.
 */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TNS__QUOTIENT(s, T, W, F) TNS__WHOLE_QUOTIENT(s, T)
#else
#define TNS__QUOTIENT(s, T, W, F) \
    TN_HOT T tns__quotient_##s(T a, T b) { return (T)((F)a / (F)b); } \
    TN_HOT T tns__rest_##s(T a, T b) { return (T)((W)a - (W)tns__quotient_##s(a, b) * (W)b); }
#endif
#define TNS__WHOLE_QUOTIENT(s, T) \
    TN_HOT T tns__quotient_##s(T a, T b) { return (T)(a / b); } \
    TN_HOT T tns__rest_##s(T a, T b) { return (T)(a % b); }
TNS__QUOTIENT(i8, tn_i8, tn_u32, tn_f32)
TNS__QUOTIENT(i16, tn_i16, tn_u32, tn_f32)
TNS__QUOTIENT(i32, tn_i32, tn_u32, tn_f64)
TNS__WHOLE_QUOTIENT(i64, tn_i64)
TNS__QUOTIENT(u8, tn_u8, tn_u32, tn_f32)
TNS__QUOTIENT(u16, tn_u16, tn_u32, tn_f32)
TNS__WHOLE_QUOTIENT(u32, tn_u32)
TNS__WHOLE_QUOTIENT(u64, tn_u64)

/* A divisor of 0 or -1 is replaced by 1, then its result selected: neither 1 / 0 nor MIN / -1 is ever computed.
 * (Choices by `?`, one after the other, and `&` leave no branches.) */
#define TNS__SIGNED(s, T, W, U, bits) \
    TNS__INTEGER(s, T, W) \
    TN_HOT T tns_abs_##s(T a) { return a < 0 ? tns_neg_##s(a) : a; } \
    TN_HOT T tns_sign_##s(T a) { return (T)((a > 0) - (a < 0)); } \
    TN_HOT T tns_relu_##s(T a) { return a > 0 ? a : (T)0; } \
    TN_FN T tns_floordiv_##s(T a, T b) \
    { \
        T d = (b == 0) | (b == -1) ? (T)1 : b, q = tns__quotient_##s(a, d); \
        q = (T)(q - ((tns__rest_##s(a, d) != 0) & ((a < 0) != (d < 0)))); \
        return b == 0 ? (T)0 : b == -1 ? tns_neg_##s(a) : q; \
    } \
    TN_FN T tns_fmod_##s(T a, T b) \
    { \
        T d = (b == 0) | (b == -1) ? (T)1 : b; \
        return tns__rest_##s(a, d); \
    } \
    TN_FN T tns_rem_##s(T a, T b) \
    { \
        T r = tns_fmod_##s(a, b); \
        return (r != 0) & ((r < 0) != (b < 0)) ? (T)(r + b) : r; \
    } \
    TN_HOT T tns_shl_##s(T a, T n) { return (U)n < bits ? (T)((W)a << n) : (T)0; } \
    TN_HOT T tns_shr_##s(T a, T n) { return (T)(a >> ((U)n < bits ? n : bits - 1)); }

#define TNS__UNSIGNED(s, T, W, bits) \
    TNS__INTEGER(s, T, W) \
    TN_HOT T tns_abs_##s(T a) { return a; } \
    TN_HOT T tns_sign_##s(T a) { return a != 0; } \
    TN_HOT T tns_relu_##s(T a) { return a; } \
    TN_FN T tns_floordiv_##s(T a, T b) { T q = tns__quotient_##s(a, b == 0 ? (T)1 : b); return b == 0 ? (T)0 : q; } \
    TN_FN T tns_fmod_##s(T a, T b) { T r = tns__rest_##s(a, b == 0 ? (T)1 : b); return b == 0 ? (T)0 : r; } \
    TN_FN T tns_rem_##s(T a, T b) { return tns_fmod_##s(a, b); } \
    TN_HOT T tns_shl_##s(T a, T n) { return n < bits ? (T)((W)a << n) : (T)0; } \
    TN_HOT T tns_shr_##s(T a, T n) { return n < bits ? (T)(a >> n) : (T)0; }

/* Euclid's algorithm on magnitudes of unsigned type W, which hold every one. */
#define TNS__GCD(s, T, W, magnitude) \
    TN_FN T tns_gcd_##s(T a, T b) \
    { \
        W x = magnitude(a), y = magnitude(b); \
        while (y != 0) { W r = (W)(x % y); x = y; y = r; } \
        return (T)x; \
    } \
    TN_FN T tns_lcm_##s(T a, T b) \
    { \
        W x = magnitude(a), y = magnitude(b), g = (W)tns_gcd_##s(a, b); \
        return g == 0 ? (T)0 : (T)((W)(x / g) * y); \
    }
#define TNS__PLAIN(a) (a)

TNS__SIGNED(i8, tn_i8, tn_u32, tn_u8, 8)
TNS__SIGNED(i16, tn_i16, tn_u32, tn_u16, 16)
TNS__SIGNED(i32, tn_i32, tn_u32, tn_u32, 32)
TNS__SIGNED(i64, tn_i64, tn_u64, tn_u64, 64)
TNS__UNSIGNED(u8, tn_u8, tn_u32, 8)
TNS__UNSIGNED(u16, tn_u16, tn_u32, 16)
TNS__UNSIGNED(u32, tn_u32, tn_u32, 32)
TNS__UNSIGNED(u64, tn_u64, tn_u64, 64)

#define TNS__MAGNITUDE32(a) ((a) < 0 ? 0u - (tn_u32)(a) : (tn_u32)(a))
#define TNS__MAGNITUDE64(a) ((a) < 0 ? 0ull - (tn_u64)(a) : (tn_u64)(a))
TNS__GCD(i8, tn_i8, tn_u32, TNS__MAGNITUDE32)
TNS__GCD(i16, tn_i16, tn_u32, TNS__MAGNITUDE32)
TNS__GCD(i32, tn_i32, tn_u32, TNS__MAGNITUDE32)
TNS__GCD(i64, tn_i64, tn_u64, TNS__MAGNITUDE64)
TNS__GCD(u8, tn_u8, tn_u32, TNS__PLAIN)
TNS__GCD(u16, tn_u16, tn_u32, TNS__PLAIN)
TNS__GCD(u32, tn_u32, tn_u32, TNS__PLAIN)
TNS__GCD(u64, tn_u64, tn_u64, TNS__PLAIN)

#endif /* TNS_NO_INTEGERS */

/* bool: sum is or, product is and (NumPy refuses its difference and its negative). */
TNS__COMPARE(b8, tn_b8)
TN_HOT tn_b8 tns_add_b8(tn_b8 a, tn_b8 b) { return a | b; }
TN_HOT tn_b8 tns_mul_b8(tn_b8 a, tn_b8 b) { return a & b; }
TN_HOT tn_b8 tns_max_b8(tn_b8 a, tn_b8 b) { return a | b; }
TN_HOT tn_b8 tns_min_b8(tn_b8 a, tn_b8 b) { return a & b; }
TN_HOT tn_b8 tns_fmax_b8(tn_b8 a, tn_b8 b) { return a | b; }
TN_HOT tn_b8 tns_fmin_b8(tn_b8 a, tn_b8 b) { return a & b; }
TN_HOT tn_b8 tns_and_b8(tn_b8 a, tn_b8 b) { return a & b; }
TN_HOT tn_b8 tns_or_b8(tn_b8 a, tn_b8 b) { return a | b; }
TN_HOT tn_b8 tns_xor_b8(tn_b8 a, tn_b8 b) { return a ^ b; }
TN_HOT tn_b8 tns_not_b8(tn_b8 a) { return !a; }
TN_HOT tn_b8 tns_gcd_b8(tn_b8 a, tn_b8 b) { return a | b; }
TN_HOT tn_b8 tns_lcm_b8(tn_b8 a, tn_b8 b) { return a & b; }
TN_HOT tn_b8 tns_abs_b8(tn_b8 a) { return a; }
TN_HOT tn_b8 tns_square_b8(tn_b8 a) { return a; }
TN_HOT tn_b8 tns_relu_b8(tn_b8 a) { return a; }

/*
 * fmod, which is always exact. C libraries take it bit by bit; where the quotient is no larger than its whole part
 * times b is exact, one step does. In float64 the quotient may have been rounded up to the next whole number.
 */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define tns__fmod_f32(a, b) fmodf(a, b)
#define tns__fmod_f64(a, b) fmod(a, b)
#define TNS__FLOAT_REM(s, T, copysign) \
    TN_FN T tns_rem_##s(T a, T b) \
    { \
        T r = tns__fmod_##s(a, b); \
        if (r == 0) return TNS_LIBM(copysign)((T)0, b); \
        return (r < 0) != (b < 0) ? r + b : r; \
    }
#else
#define TNS__FLOAT_REM(s, T, copysign) \
    TN_FN T tns_rem_##s(T a, T b) /* signs are a toss, so no branch by them */ \
    { \
        T r = tns__fmod_##s(a, b), shift[2] = {0, b}; \
        T y = r + shift[(r < 0) != (b < 0)]; \
        return r == 0 ? TNS_LIBM(copysign)((T)0, b) : y; \
    }
TN_FN tn_f32 tns__fmod_f32(tn_f32 a, tn_f32 b)
{
    tn_f64 q = (tn_f64)a / (tn_f64)b;
    if (!(q > -0x1p27 && q < 0x1p27 && TNS_LIBM(fabsf)(b) < TNS_INF_F32))
        return TNS_LIBM(fmodf)(a, b);
    return TNS_LIBM(copysignf)((tn_f32)((tn_f64)a - (tn_f64)(tn_i32)q * (tn_f64)b), a);
}
#if defined(__FMA__)
TN_FN tn_f64 tns__fmod_f64(tn_f64 a, tn_f64 b)
{
    tn_f64 q = a / b;
    if (!(q > -0x1p52 && q < 0x1p52 && TNS_LIBM(fabs)(b) < TNS_INF_F64))
        return TNS_LIBM(fmod)(a, b);
    tn_f64 r = __builtin_fma(-(tn_f64)(tn_i64)q, b, a);
    r = (r != 0) & ((r < 0) != (a < 0)) ? r + TNS_LIBM(copysign)(b, a) : r;
    return TNS_LIBM(copysign)(r, a);
}
#else
#define tns__fmod_f64(a, b) TNS_LIBM(fmod)(a, b)
#endif
#endif

/* rem and floordiv follow CPython's and NumPy's divmod. */
#define TNS__FLOAT(s, T, INF, floor, copysign, fabs, signed_bits) \
    TNS__COMPARE(s, T) \
    TN_HOT T tns_add_##s(T a, T b) { return a + b; } \
    TN_HOT T tns_sub_##s(T a, T b) { return a - b; } \
    TN_HOT T tns_mul_##s(T a, T b) { return a * b; } \
    TN_HOT T tns_div_##s(T a, T b) { return a / b; } \
    TN_HOT T tns_neg_##s(T a) { return -a; } \
    TN_HOT T tns_reciprocal_##s(T a) { return (T)1 / a; } \
    TN_HOT T tns_square_##s(T a) { return a * a; } \
    TN_HOT T tns_abs_##s(T a) { return TNS_LIBM(fabs)(a); } \
    TN_HOT T tns_sign_##s(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a; } \
    TN_HOT T tns_relu_##s(T a) { return a <= 0 ? (T)0 : a; /* NaN stays */ } \
    TN_HOT T tns_max_##s(T a, T b) { return tns__above_##s(a, b); } \
    TN_HOT T tns_min_##s(T a, T b) { return tns__below_##s(a, b); } \
    TN_HOT T tns_fmax_##s(T a, T b) { T m = a > b ? a : b; return b != b ? a : m; } \
    TN_HOT T tns_fmin_##s(T a, T b) { T m = a < b ? a : b; return b != b ? a : m; } \
    TN_HOT T tns_copysign_##s(T a, T b) { return TNS_LIBM(copysign)(a, b); } \
    TN_HOT T tns_heaviside_##s(T a, T b) { return a != a ? a : a < 0 ? (T)0 : a > 0 ? (T)1 : b; } \
    TN_HOT tn_b8 tns_isnan_##s(T a) { return a != a; } \
    TN_HOT tn_b8 tns_isinf_##s(T a) { return TNS_LIBM(fabs)(a) == INF; } \
    TN_HOT tn_b8 tns_isfinite_##s(T a) { return TNS_LIBM(fabs)(a) < INF; } \
    TN_HOT tn_b8 tns_signbit_##s(T a) { return (tn_b8)(signed_bits); } \
    TN_FN T tns_fmod_##s(T a, T b) { return tns__fmod_##s(a, b); } \
    TNS__FLOAT_REM(s, T, copysign) \
    TN_FN T tns_floordiv_##s(T a, T b) \
    { \
        if (b == 0) return a / b; \
        T r = tns__fmod_##s(a, b), q = (a - r) / b; \
        if (r != 0 && (r < 0) != (b < 0)) q -= 1; \
        if (q == 0) return TNS_LIBM(copysign)((T)0, a / b); \
        T f = TNS_LIBM(floor)(q); \
        return q - f > (T)0.5 ? f + 1 : f; \
    }

TNS__FLOAT(f32, tn_f32, TNS_INF_F32, floorf, copysignf, fabsf, tns_bits_f32(a) >> 31)
TNS__FLOAT(f64, tn_f64, TNS_INF_F64, floor, copysign, fabs, tns_bits_f64(a) >> 63)

#endif
