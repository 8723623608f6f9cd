/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 4: functions of real numbers. Coefficients are minimax fits computed for this file: polynomials
 * with Sollya's fpminimax, the rational by reweighted least squares; comments name interval and relative error.
 *
 * Largest errors seen, in ulps. float32, every 13th of all numbers: exp 1.0, exp2 1.0, expm1 1.7, log 0.9, log1p 1.0,
 * tanh 1.4, sigmoid 2.4, softplus 1.8, erf 1.1, erfc 3.8, gelu 4.1, sin and cos 1.6, asin 2.5, acos 1.3, atan 1.6,
 * rsqrt 1.5; those computed in float64 (log2, log10, sinh, cosh, asinh, acosh, atanh, cbrt, tan, pow, hypot) 0.52.
 * float64, random numbers: exp 1.1, exp2 1.1, expm1 2.0, log 0.9, log1p 0.9, tanh 2.6, sigmoid 2.4, softplus 1.8.
 * The other float64 functions are libm's. A GPU has some of float32 in ways of its own, with their errors:
 * scalar_gpu.h.
 */
#ifndef TN_OPS_SCALAR_MATH_H
#define TN_OPS_SCALAR_MATH_H

#define TNS__ABS_F32(x) TNS_LIBM(fabsf)(x)
#define TNS__ABS_F64(x) TNS_LIBM(fabs)(x)

/* 1.5 2^23 and 1.5 2^52: adding one rounds a small number to an integer, which then sits in the sum's low bits. */
#define TNS__ROUND_F32 12582912.0f
#define TNS__ROUND_F64 6755399441055744.0

/* ln 2 in two parts; products of the first with exponents are exact. */
#define TNS__LN2_HI_F32 0x1.62e4p-1f
#define TNS__LN2_LO_F32 0x1.7f7d1cp-20f
#define TNS__LN2_HI_F64 0x1.62e42feep-1
#define TNS__LN2_LO_F64 0x1.a39ef35793c76p-33

/* ---- sqrt, rounding ---- */

#define TNS__LIBM1(name, libm) \
    TN_FN tn_f32 tns_##name##_f32(tn_f32 x) { return TNS_LIBM(libm##f)(x); } \
    TN_FN tn_f64 tns_##name##_f64(tn_f64 x) { return TNS_LIBM(libm)(x); }
TNS__LIBM1(sqrt, sqrt)
TNS__LIBM1(floor, floor)
TNS__LIBM1(ceil, ceil)
TNS__LIBM1(trunc, trunc)
TNS__LIBM1(rint, rint)
TN_HOT tn_f32 tns_rsqrt_f32(tn_f32 x) { return 1.0f / tns_sqrt_f32(x); }
TN_HOT tn_f64 tns_rsqrt_f64(tn_f64 x) { return 1.0 / tns_sqrt_f64(x); }

/* ---- exponentials: e^x = 2^n e^r, n = rint(x / ln 2), |r| <= ln 2 / 2 ---- */

/* p 2^n for the n in the low bits of t = n + TNS__ROUND, |n| <= 252; in two steps, so that only the last one rounds. */
TN_HOT tn_f32 tns__scale_f32(tn_f32 p, tn_f32 t)
{
    tn_u32 n = tns_bits_f32(t) + 254, half = n >> 1; /* + 254: two exponents' bias; shifts drop all of t but n */
    return p * tns_f32_bits(half << 23) * tns_f32_bits((n - half) << 23);
}
TN_HOT tn_f64 tns__scale_f64(tn_f64 p, tn_f64 t)
{
    tn_u64 n = tns_bits_f64(t) - 0x4338000000000000ull + 4096, half = n >> 1; /* + 4096: never negative */
    return p * tns_f64_bits((half - 1025) << 52) * tns_f64_bits((n - half - 1025) << 52); /* 1023 - 2048 */
}

/* e^r - 1 on [-0.347, 0.347]: relative errors 1.5e-8 and 1e-17 */
TN_HOT tn_f32 tns__expm1_poly_f32(tn_f32 r)
{
    tn_f32 r2 = r * r, a = TNS_FMA_F32(r, 0.166665420f, 0.499999970f),
           b = TNS_FMA_F32(r, 8.36669747e-3f, 4.16675098e-2f);
    return TNS_FMA_F32(r2, TNS_FMA_F32(r2, TNS_FMA_F32(r2, 1.38639414e-3f, b), a), r);
}
TN_HOT tn_f64 tns__expm1_poly_f64(tn_f64 r)
{
    tn_f64 r2 = r * r, r4 = r2 * r2;
    tn_f64 a = 0.50000000000000122 + r * 0.16666666666666477, b = 4.1666666666519747e-2 + r * 8.3333333334550432e-3;
    tn_f64 c = 1.3888888945919455e-3 + r * 1.9841269589919883e-4, d = 2.4801491034913229e-5 + r * 2.7557514535745436e-6;
    tn_f64 e = 2.7630905275152603e-7 + r * 2.5022328174258182e-8;
    return r + r2 * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * e));
}

/* x / ln 2 + TNS__ROUND; x - n ln 2 */
TN_HOT tn_f32 tns__exponent_f32(tn_f32 x) { return TNS_FMA_F32(x, 0x1.715476p+0f, TNS__ROUND_F32); }
TN_HOT tn_f32 tns__rest_f32(tn_f32 x, tn_f32 n)
{ return TNS_FMA_F32(n, -TNS__LN2_LO_F32, TNS_FMA_F32(n, -TNS__LN2_HI_F32, x)); }

/*
 * tns__decay: e^x of x <= 0. What lies beyond the range is put right at the end, and 0 by a mask: of a constant before
 * or behind it, the compiler would compute all that follows a second time.
 */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
TN_HOT tn_f32 tns_exp_f32(tn_f32 x) { return expf(x); } /* 8 instructions, to 1 ulp */
TN_HOT tn_f32 tns__decay_f32(tn_f32 x) { return expf(x); }
#else
TN_HOT tn_f32 tns__decay_f32(tn_f32 x)
{
    tn_f32 t = tns__exponent_f32(x);
    tn_f32 y = tns__scale_f32(1.0f + tns__expm1_poly_f32(tns__rest_f32(x, t - TNS__ROUND_F32)), t);
    return tns_f32_bits(tns_bits_f32(y) & (0u - (tn_u32)!(x < -104.0f)));
}
TN_HOT tn_f32 tns_exp_f32(tn_f32 x) { return x > 89.0f ? TNS_INF_F32 : tns__decay_f32(x); }
#endif
TN_HOT tn_f64 tns__decay_f64(tn_f64 x)
{
    tn_f64 t = x * 0x1.71547652b82fep+0 + TNS__ROUND_F64, n = t - TNS__ROUND_F64;
    tn_f64 r = x - n * TNS__LN2_HI_F64 - n * TNS__LN2_LO_F64;
    tn_f64 y = tns__scale_f64(1.0 + tns__expm1_poly_f64(r), t);
    return tns_f64_bits(tns_bits_f64(y) & (0ull - (tn_u64)!(x < -746.0)));
}
TN_HOT tn_f64 tns_exp_f64(tn_f64 x) { return x > 710.0 ? TNS_INF_F64 : tns__decay_f64(x); }
TN_HOT tn_f32 tns_exp2_f32(tn_f32 x)
{
    tn_f32 t = x + TNS__ROUND_F32, r = (x - (t - TNS__ROUND_F32)) * 0x1.62e43p-1f;
    tn_f32 y = tns__scale_f32(1.0f + tns__expm1_poly_f32(r), t);
    y = x < -151.0f ? 0.0f : y;
    return x > 129.0f ? TNS_INF_F32 : y;
}
TN_HOT tn_f64 tns_exp2_f64(tn_f64 x)
{
    tn_f64 t = x + TNS__ROUND_F64, r = (x - (t - TNS__ROUND_F64)) * 0x1.62e42fefa39efp-1;
    tn_f64 y = tns__scale_f64(1.0 + tns__expm1_poly_f64(r), t);
    y = x < -1076.0 ? 0.0 : y;
    return x > 1025.0 ? TNS_INF_F64 : y;
}

/* 2^n e^r - 1 as 2 (s p + (s - 1/2)), s = 2^(n-1), which does not overflow before the result does. */
TN_HOT tn_f32 tns_expm1_f32(tn_f32 a)
{
    tn_f32 x = a < -20.0f ? -20.0f : a;
    x = x > 89.0f ? 89.0f : x;
    tn_f32 t = tns__exponent_f32(x), p = tns__expm1_poly_f32(tns__rest_f32(x, t - TNS__ROUND_F32));
    tn_f32 s = tns_f32_bits((tns_bits_f32(t) << 23) + (126u << 23));
    return TNS__ABS_F32(a) < 0x1p-25f ? a : 2.0f * (s * p + (s - 0.5f));
}
TN_HOT tn_f64 tns_expm1_f64(tn_f64 a)
{
    tn_f64 x = a < -40.0 ? -40.0 : a;
    x = x > 710.0 ? 710.0 : x;
    tn_f64 t = x * 0x1.71547652b82fep+0 + TNS__ROUND_F64, n = t - TNS__ROUND_F64;
    tn_f64 p = tns__expm1_poly_f64(x - n * TNS__LN2_HI_F64 - n * TNS__LN2_LO_F64);
    tn_f64 s = tns_f64_bits((tns_bits_f64(t) << 52) + (1022ull << 52));
    return TNS__ABS_F64(a) < 0x1p-54 ? a : 2.0 * (s * p + (s - 0.5));
}

/* ---- logarithms: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ---- */

/* log(1 + f) + k ln 2 + c, c small: f - f^2/2 + f^3 P(f) to 5e-9 */
TN_HOT tn_f32 tns__log_poly_f32(tn_f32 f, tn_f32 k, tn_f32 c)
{
    tn_f32 p = TNS_FMA_F32(f, TNS_FMA_F32(f, 7.34171495e-2f, -0.116638266f), 0.116328061f);
    p = TNS_FMA_F32(f, TNS_FMA_F32(f, TNS_FMA_F32(f, p, -0.123960316f), 0.142513186f), -0.166691869f);
    p = TNS_FMA_F32(f, TNS_FMA_F32(f, TNS_FMA_F32(f, p, 0.200006813f), -0.249999806f), 0.333333313f);
    p = TNS_FMA_F32(f, p, -0.5f);
    return TNS_FMA_F32(k, TNS__LN2_HI_F32, f + TNS_FMA_F32(f * f, p, TNS_FMA_F32(k, TNS__LN2_LO_F32, c)));
}
/* s = f / (2 + f): log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), R / s^2 on [0, 0.0295] to 3e-16 */
TN_HOT tn_f64 tns__log_poly_f64(tn_f64 f, tn_f64 k, tn_f64 c)
{
    tn_f64 s = f / (2.0 + f), z = s * s, z2 = z * z, h = 0.5 * f * f;
    tn_f64 odd = 0.39999999999899277 + z2 * (0.22222211090523236 + z2 * 0.15331610842056139);
    tn_f64 even = 0.28571428626210205 + z2 * (0.18182892462868919 + z2 * 0.14617797125591245);
    tn_f64 r = z * (0.66666666666666696 + (z * odd + z2 * even));
    return k * TNS__LN2_HI_F64 + (f - (h - (s * (h + r) + (k * TNS__LN2_LO_F64 + c))));
}

/* log(x) + k0 ln 2 + c for finite normal x > 0 */
TN_HOT tn_f32 tns__log_f32(tn_f32 x, tn_i32 k0, tn_f32 c)
{
    tn_u32 u = tns_bits_f32(x) - 0x3f3504f3u; /* the bits of sqrt(1/2) */
    tn_f32 k = (tn_f32)(((tn_i32)u >> 23) + k0);
    return tns__log_poly_f32(tns_f32_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, k, c);
}
TN_HOT tn_f64 tns__log_f64(tn_f64 x, tn_u64 k0, tn_f64 c)
{
    tn_u64 u = tns_bits_f64(x) - 0x3fe6a09e667f3bcdull;
    tn_f64 k = tns_f64_bits((((u >> 52) + k0 + 2048) & 4095) | 0x4330000000000000ull) - (0x1p52 + 2048.0);
    return tns__log_poly_f64(tns_f64_bits((u & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0, k, c);
}

TN_HOT tn_f32 tns_log_f32(tn_f32 x)
{
    tn_u32 tiny = x < 0x1p-126f;
    tn_f32 y = tns__log_f32(tiny ? x * 0x1p23f : x, tiny ? -23 : 0, 0.0f);
    y = x < TNS_INF_F32 ? y : x;
    return x > 0.0f ? y : x == 0.0f ? -TNS_INF_F32 : TNS_NAN_F32;
}
TN_HOT tn_f64 tns_log_f64(tn_f64 x)
{
    tn_u64 tiny = x < 0x1p-1022;
    tn_f64 y = tns__log_f64(tiny ? x * 0x1p52 : x, tiny ? (tn_u64)-52 : 0, 0.0);
    y = x < TNS_INF_F64 ? y : x;
    return x > 0.0 ? y : x == 0.0 ? -TNS_INF_F64 : TNS_NAN_F64;
}
/* Through float64: correctly rounded but for rare ties, so exact at powers of 2 and 10. */
TN_HOT tn_f32 tns_log2_f32(tn_f32 x) { return (tn_f32)(tns_log_f64((tn_f64)x) * 1.4426950408889634); }
TN_HOT tn_f32 tns_log10_f32(tn_f32 x) { return (tn_f32)(tns_log_f64((tn_f64)x) * 0.43429448190325183); }
TN_FN tn_f64 tns_log2_f64(tn_f64 x) { return TNS_LIBM(log2)(x); }
TN_FN tn_f64 tns_log10_f64(tn_f64 x) { return TNS_LIBM(log10)(x); }

/* log(u) + (x - (u - 1)) / u, u = 1 + x rounded; where u = 1 that is x, the sign of a zero included. */
#define TNS__LOG1P(s, T, INF, NAN) \
    TN_HOT T tns_log1p_##s(T x) \
    { \
        T u = (T)1 + x, y = tns__log_##s(u, 0, tns__ratio_##s(x - (u - (T)1), u)); \
        y = u == (T)1 ? x : x < INF ? y : x; \
        return x > (T)-1 ? y : x == (T)-1 ? -INF : NAN; \
    } \
    /* for x in [0, 1] */ \
    TN_HOT T tns__log1p_unit_##s(T x) \
    { return tns__log_poly_##s(x > (T)0.41 ? (T)0.5 * (x - (T)1) : x, x > (T)0.41 ? (T)1 : (T)0, (T)0); }
TNS__LOG1P(f32, tn_f32, TNS_INF_F32, TNS_NAN_F32)
TNS__LOG1P(f64, tn_f64, TNS_INF_F64, TNS_NAN_F64)

/* ---- activations ---- */

/* e = e^-|x| keeps both sides accurate and never overflows. For logaddexp equal operands include the infinities. */
#define TNS__ACTIVATIONS(s, T, fabs) \
    TN_HOT T tns_sigmoid_##s(T x) \
    { \
        T e = tns__decay_##s(-TNS_LIBM(fabs)(x)); \
        return tns__ratio_##s(x < 0 ? e : (T)1, (T)1 + e); \
    } \
    TN_HOT T tns_softplus_##s(T x) \
    { return (x > 0 ? x : (T)0) + tns__log1p_unit_##s(tns__decay_##s(-TNS_LIBM(fabs)(x))); } \
    TN_HOT T tns_logaddexp_##s(T a, T b) \
    { \
        T y = (a > b ? a : b) + tns__log1p_unit_##s(tns__decay_##s(-TNS_LIBM(fabs)(a - b))); \
        return a == b ? a + (T)0.69314718055994530942 : y; \
    } \
    TN_HOT T tns_logaddexp2_##s(T a, T b) \
    { \
        T e = tns_exp2_##s(-TNS_LIBM(fabs)(a - b)); \
        T y = (a > b ? a : b) + tns__log1p_unit_##s(e) * (T)1.4426950408889634074; \
        return a == b ? a + (T)1 : y; \
    }
TNS__ACTIVATIONS(f32, tn_f32, fabsf)
TNS__ACTIVATIONS(f64, tn_f64, fabs)

/* |x| < 0.625: x + x^3 P(x^2), relative error 1.8e-8; else 1 - 2 / (e^2|x| + 1). */
TN_HOT tn_f32 tns_tanh_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), b = a > 10.0f ? 20.0f : 2.0f * a, z = a * a;
    tn_f32 t = tns__exponent_f32(b), p = 1.0f + tns__expm1_poly_f32(tns__rest_f32(b, t - TNS__ROUND_F32));
    tn_f32 big = 1.0f - tns__ratio_f32(2.0f, TNS_FMA_F32(p, tns_f32_bits((tns_bits_f32(t) << 23) + (127u << 23)),
                                                         1.0f));
    tn_f32 q = TNS_FMA_F32(z, TNS_FMA_F32(z, -6.10243995e-3f, 2.10006870e-2f), -5.38513288e-2f);
    q = TNS_FMA_F32(a, z * TNS_FMA_F32(z, TNS_FMA_F32(z, q, 0.133327648f), -0.333333284f), a);
    return TNS_LIBM(copysignf)(a < 0.625f ? q : big, x);
}
TN_HOT tn_f64 tns_tanh_f64(tn_f64 x)
{
    tn_f64 e = tns_expm1_f64(-2.0 * TNS__ABS_F64(x));
    return TNS_LIBM(copysign)(e / (2.0 + e), x);
}

/* ---- error function and normal distribution ---- */

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) /* a GPU's are in scalar_gpu.h */
/*
 * factor Phi(-t), Phi the normal distribution function, still to be scaled by 2^n; *n_out = n + TNS__ROUND.
 * Phi(-t) = e^(-t^2/2) / (sqrt(2 pi) t + S(t)): the decaying S is a rational, good to 1e-9 of the sum on [0, 14.7];
 * taking the line out keeps rounding errors small. sqrt(2 pi) t = line + line_low, t^2/2 = h + l, line and h exact.
 */
TN_HOT tn_f32 tns__normal_tail_f32(tn_f32 t, tn_f32 line, tn_f32 line_low, tn_f32 h, tn_f32 l, tn_f32 factor,
                                   tn_f32 *n_out)
{
    tn_f32 t2 = t * t, num = TNS_FMA_F32(t, 7.47037679e-2f, 0.416096538f);
    num = TNS_FMA_F32(t2, TNS_FMA_F32(t2, 6.24040933e-3f, num), TNS_FMA_F32(t, 1.26009238f, 2.0f));
    tn_f32 den = TNS_FMA_F32(t, 0.170706958f, 0.565785706f), last = TNS_FMA_F32(t, 2.48931767e-3f, 2.98148356e-2f);
    den = TNS_FMA_F32(t2, TNS_FMA_F32(t2, last, den), TNS_FMA_F32(t, 1.08547580f, 1.0f));
    tn_f32 s = TNS_FMA_F32(h, -0x1.715476p+0f, TNS__ROUND_F32), n = s - TNS__ROUND_F32;
    tn_f32 r = TNS_FMA_F32(n, -TNS__LN2_LO_F32, TNS_FMA_F32(n, -TNS__LN2_HI_F32, -h) - l);
    *n_out = s;
    tn_f32 sum = TNS_FMA_F32(line, den, TNS_FMA_F32(line_low, den, num));
    return tns__ratio_f32(TNS_FMA_F32(factor, tns__expm1_poly_f32(r), factor) * den, sum);
}
TN_HOT tn_f32 tns__upper_half_f32(tn_f32 x) { return tns_f32_bits(tns_bits_f32(x) & 0xfffff000u); } /* 12 bits */

/* erfc(a) = 2 Phi(-sqrt(2) a) before scaling, a in [0, 10.3]; clamped before it, all of it would be computed twice */
TN_HOT tn_f32 tns__erfc_f32(tn_f32 a, tn_f32 *n)
{
    tn_f32 b = tns__upper_half_f32(a), c = a - b; /* 2 sqrt(pi) in 11 bits and the rest */
    return tns__normal_tail_f32(a * 1.41421356f, b * 0x1.c5cp+1f, TNS_FMA_F32(c, 3.54490770f, b * -1.41731889e-5f),
                                b * b, c * (a + b), 2.0f, n);
}
/* erf(x) / x - 1 for z = x^2, |x| < 0.9: relative error 1e-9 */
TN_HOT tn_f32 tns__erf_poly_f32(tn_f32 z)
{
    tn_f32 p = TNS_FMA_F32(z, TNS_FMA_F32(z, 8.39305431e-5f, -8.14430823e-4f), 5.20073110e-3f);
    p = TNS_FMA_F32(z, TNS_FMA_F32(z, TNS_FMA_F32(z, p, -2.68590245e-2f), 0.112836815f), -0.376126319f);
    return TNS_FMA_F32(z, p, 0.128379166f);
}
TN_HOT tn_f32 tns_erf_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), n, y = tns__erfc_f32(a, &n);
    y = TNS_FMA_F32(-y, tns_f32_bits((tns_bits_f32(n) << 23) + (127u << 23)), 1.0f);
    y = TNS_LIBM(copysignf)(a > 4.0f ? 1.0f : y, x);
    return a < 0.9f ? TNS_FMA_F32(x, tns__erf_poly_f32(x * x), x) : y;
}
TN_HOT tn_f32 tns_erfc_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), n, y = tns__erfc_f32(a, &n);
    y = tns__scale_f32(y, n);
    y = tns_f32_bits(tns_bits_f32(y) & (0u - (tn_u32)!(a > 10.3f)));
    y = x < 0.0f ? 2.0f - y : y;
    return a < 0.5f ? 1.0f - TNS_FMA_F32(x, tns__erf_poly_f32(x * x), x) : y;
}
/* x Phi(x), accurate in the tail too; gelu(-inf) is its limit, -0. Near 0: x (1/2 + x P(x^2)), to 3e-8 on [0, 0.7]. */
TN_HOT tn_f32 tns_gelu_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), b = tns__upper_half_f32(a), c = a - b, n; /* sqrt(2 pi) in 11 bits and the rest */
    tn_f32 line_low = TNS_FMA_F32(c, 2.50662827f, b * -2.07662873e-4f);
    tn_f32 y = tns__normal_tail_f32(a, b * 0x1.40ep+1f, line_low, 0.5f * (b * b), 0.5f * (c * (a + b)), a, &n);
    y = tns__scale_f32(y, n);
    y = (x > 0.0f ? x : -0.0f) - tns_f32_bits(tns_bits_f32(y) & (0u - (tn_u32)!(a > 15.0f)));
    tn_f32 z = x * x, p = TNS_FMA_F32(z, TNS_FMA_F32(z, 1.01680242e-4f, -1.18063448e-3f), 9.97259747e-3f);
    p = TNS_FMA_F32(z, TNS_FMA_F32(z, p, -6.64904416e-2f), 0.398942292f);
    return a < 0.6f ? x * TNS_FMA_F32(x, p, 0.5f) : y;
}
#endif
TN_FN tn_f64 tns_gelu_f64(tn_f64 x)
{
    tn_f64 y = 0.5 * TNS_LIBM(erfc)(tns_unknown(x * -0.70710678118654752));
    return x < -40.0 ? -0.0 : x * y;
}

/* ---- trigonometry ---- */

/*
 * |x| = q pi/2 + r, |r| <= pi/4, for every finite x, after Payne and Hanek (1983): |x| = m 2^(s - 24), and the bits of
 * 2/pi that weigh in the product modulo 4, 96 of them, begin at bit s of the words below (26 zero bits come first).
 */
TN_HOT tn_u32 tns__reduce_f32(tn_f32 x, tn_f64 *r)
{
    tn_u32 bits = tns_bits_f32(x) & 0x7fffffffu, e = bits >> 23, big = e >= 127u, s = big ? e - 127u : 0u;
    tn_u32 m = ((bits & 0x7fffffu) | 0x800000u) << big;
    tn_u32 far = s & 64u, odd = s & 32u, shift = s & 31u, back = 31u - shift;
    tn_u32 a0 = far ? 0x91054a7fu : 0x28u, a1 = far ? 0x09d5f47du : 0xbe60db93u, a2 = far ? 0x4d377036u : 0x91054a7fu;
    tn_u32 a3 = far ? 0xd8a5664fu : 0x09d5f47du, a4 = far ? 0x10e4107fu : 0x4d377036u;
    tn_u32 b0 = odd ? a1 : a0, b1 = odd ? a2 : a1, b2 = odd ? a3 : a2, b3 = odd ? a4 : a3;
    tn_u32 w0 = b0 << shift | b1 >> 1 >> back, w1 = b1 << shift | b2 >> 1 >> back, w2 = b2 << shift | b3 >> 1 >> back;
    tn_u64 p = ((tn_u64)(w0 * m) << 32) + (tn_u64)w1 * m + ((tn_u64)w2 * m >> 32); /* |x| 2/pi, in units of 2^-62 */
    tn_u32 q = ((tn_u32)(p >> 32) + 0x20000000u) >> 30;
    tn_i32 high = (tn_i32)((tn_u32)(p >> 32) - (q << 30));
    tn_f64 low = tns_f64_bits((p & 0xffffffffu) | 0x4330000000000000ull) - 0x1p52;
    tn_f64 y = ((tn_f64)high * 0x1p32 + low) * 0x1.921fb54442d18p-62;
    tn_u32 small = bits < 0x3f490fdbu; /* pi/4 */
    *r = small ? (tn_f64)tns_f32_bits(bits) : y;
    return small ? 0u : q;
}
/* On [-pi/4, pi/4], relative errors 1.3e-8 and 1e-9 */
TN_HOT tn_f32 tns__sin_poly_f32(tn_f32 r)
{
    tn_f32 z = r * r;
    return TNS_FMA_F32(r, z * TNS_FMA_F32(z, TNS_FMA_F32(z, -1.95838657e-4f, 8.33271723e-3f), -0.166666642f), r);
}
TN_HOT tn_f32 tns__cos_poly_f32(tn_f32 r)
{
    tn_f32 z = r * r;
    tn_f32 p = TNS_FMA_F32(z, TNS_FMA_F32(z, 2.45439478e-5f, -1.38882722e-3f), 4.16666642e-2f);
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return TNS_FMA_F32(z, TNS_FMA_F32(z, p, -0.5f), 1.0f);
#else
    return 1.0f - (0.5f * z - z * z * p); /* more exact where products are rounded */
#endif
}
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) /* a GPU's are in scalar_gpu.h */
TN_HOT tn_f32 tns_sin_f32(tn_f32 x)
{
    tn_f64 d;
    tn_u32 q = tns__reduce_f32(x, &d), sign = (tns_bits_f32(x) & 0x80000000u) ^ (q & 2u) << 30;
    tn_f32 r = (tn_f32)d, s = tns__sin_poly_f32(r), c = tns__cos_poly_f32(r), y = (q & 1u) ? c : s;
    return TNS__ABS_F32(x) < TNS_INF_F32 ? tns_f32_bits(tns_bits_f32(y) ^ sign) : TNS_NAN_F32;
}
TN_HOT tn_f32 tns_cos_f32(tn_f32 x)
{
    tn_f64 d;
    tn_u32 q = tns__reduce_f32(x, &d), sign = ((q + 1u) & 2u) << 30;
    tn_f32 r = (tn_f32)d, s = tns__sin_poly_f32(r), c = tns__cos_poly_f32(r), y = (q & 1u) ? s : c;
    return TNS__ABS_F32(x) < TNS_INF_F32 ? tns_f32_bits(tns_bits_f32(y) ^ sign) : TNS_NAN_F32;
}
/* sin and cos in float64, to 5e-10 and 1e-10 */
TN_HOT tn_f32 tns_tan_f32(tn_f32 x)
{
    tn_f64 r;
    tn_u32 q = tns__reduce_f32(x, &r) & 1u, sign = (tns_bits_f32(x) & 0x80000000u) ^ q << 31;
    tn_f64 z = r * r, s = 8.33339710e-3 + z * (-1.98612950e-4 + z * 2.92176878e-6);
    tn_f64 c = -1.38890487e-3 + z * (2.48527704e-5 + z * -3.21313764e-7);
    s = r + r * (z * (-0.166666672 + z * s));
    c = 1.0 - z * (0.5 - z * (4.16666679e-2 + z * c));
    tn_f32 y = tns_f32_bits(tns_bits_f32((tn_f32)((q ? c : s) / (q ? s : c))) ^ sign);
    return TNS__ABS_F32(x) < TNS_INF_F32 ? y : TNS_NAN_F32;
}
#endif

/* atan(t) on [0, 1]: t + t^3 P(t^2), relative error 3e-9 */
TN_HOT tn_f32 tns__atan_poly_f32(tn_f32 t)
{
    tn_f32 z = t * t, p = 2.85880193e-2f + z * (-1.03082480e-2f + z * 1.73775875e-3f);
    p = 0.111012958f + z * (-8.99060518e-2f + z * (7.18643740e-2f + z * (-5.14020920e-2f + z * p)));
    return t + t * (z * (-0.333333343f + z * (0.200000316f + z * (-0.142855525f + z * p))));
}
TN_HOT tn_f32 tns_atan_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), y = tns__atan_poly_f32(a > 1.0f ? 1.0f / a : a);
    return TNS_LIBM(copysignf)(a > 1.0f ? 1.57079637f - (y + 4.37113883e-8f) : y, x);
}
TN_HOT tn_f32 tns_atan2_f32(tn_f32 y, tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), b = TNS__ABS_F32(y), high = a > b ? a : b, low = a > b ? b : a;
    tn_f32 t = tns__atan_poly_f32(high == 0.0f ? 0.0f : low == high ? 1.0f : low / high); /* infinities are equal */
    t = b > a ? 1.57079637f - (t + 4.37113883e-8f) : t;
    t = tns_bits_f32(x) >> 31 ? 3.14159274f - (t + 8.74227766e-8f) : t;
    return x != x || y != y ? TNS_NAN_F32 : TNS_LIBM(copysignf)(t, y);
}
/* asin(t), z = t^2 <= 1/4: t + t^3 P(z), relative error 1.6e-8. Above 1/2, asin a = pi/2 - 2 asin(sqrt((1 - a) /
 * 2)). */
TN_HOT tn_f32 tns__asin_poly_f32(tn_f32 t, tn_f32 z)
{
    tn_f32 p = 4.50201742e-2f + z * (2.64335368e-2f + z * 3.83280441e-2f);
    return t + t * (z * (0.166666731f + z * (7.49876201e-2f + z * p)));
}
TN_HOT tn_f32 tns_asin_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), z = a < 0.5f ? a * a : 0.5f * (1.0f - a);
    tn_f32 y = tns__asin_poly_f32(a < 0.5f ? a : tns_sqrt_f32(z), z);
    return TNS_LIBM(copysignf)(a < 0.5f ? y : 1.57079637f - (2.0f * y + 4.37113883e-8f), x);
}
TN_HOT tn_f32 tns_acos_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), z = a < 0.5f ? a * a : 0.5f * (1.0f - a);
    tn_f32 y = tns__asin_poly_f32(a < 0.5f ? x : tns_sqrt_f32(z), z);
    tn_f32 big = x < 0.0f ? 3.14159274f - (2.0f * y + 8.74227766e-8f) : 2.0f * y;
    return a < 0.5f ? 1.57079637f - (y + 4.37113883e-8f) : big;
}

/* ---- float32 through float64 ---- */

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) /* a GPU's are in scalar_gpu.h */
TN_HOT tn_f32 tns_sinh_f32(tn_f32 x)
{
    tn_f64 e = tns_exp_f64((tn_f64)x);
    return TNS__ABS_F32(x) < 0x1p-12f ? x : (tn_f32)(0.5 * (e - 1.0 / e));
}
TN_HOT tn_f32 tns_cosh_f32(tn_f32 x)
{
    tn_f64 e = tns_exp_f64((tn_f64)TNS__ABS_F32(x));
    return (tn_f32)(0.5 * (e + 1.0 / e));
}
#endif
TN_HOT tn_f32 tns_asinh_f32(tn_f32 x)
{
    tn_f64 a = (tn_f64)TNS__ABS_F32(x);
    tn_f32 y = (tn_f32)tns_log_f64(a + tns_sqrt_f64(a * a + 1.0));
    return a < 0x1p-12 ? x : TNS_LIBM(copysignf)(y, x);
}
TN_HOT tn_f32 tns_acosh_f32(tn_f32 x)
{
    tn_f64 a = (tn_f64)x;
    return x < 1.0f ? TNS_NAN_F32 : (tn_f32)tns_log_f64(a + tns_sqrt_f64(a * a - 1.0));
}
TN_HOT tn_f32 tns_atanh_f32(tn_f32 x)
{
    tn_f64 a = (tn_f64)x;
    return TNS__ABS_F32(x) < 0x1p-12f ? x : (tn_f32)(0.5 * tns_log_f64((1.0 + a) / (1.0 - a)));
}
TN_HOT tn_f32 tns_cbrt_f32(tn_f32 x)
{
    tn_f64 y = tns_exp_f64(tns_log_f64((tn_f64)TNS__ABS_F32(x)) * 0.33333333333333333);
    return TNS_LIBM(copysignf)((tn_f32)y, x);
}
TN_HOT tn_f32 tns_hypot_f32(tn_f32 a, tn_f32 b)
{
    tn_f32 y = (tn_f32)tns_sqrt_f64((tn_f64)a * (tn_f64)a + (tn_f64)b * (tn_f64)b);
    return TNS__ABS_F32(a) == TNS_INF_F32 || TNS__ABS_F32(b) == TNS_INF_F32 ? TNS_INF_F32 : y;
}
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) /* a GPU's are in scalar_gpu.h */
/* C's pow with all its special cases. y is odd when it is an integer and its half is none. */
TN_HOT tn_f32 tns_pow_f32(tn_f32 x, tn_f32 y)
{
    tn_f32 half = 0.5f * y;
    tn_u32 whole = tns_floor_f32(y) == y, odd = whole & (tn_u32)(tns_floor_f32(half) != half);
    tn_f32 p = (tn_f32)tns_exp_f64((tn_f64)y * tns_log_f64((tn_f64)TNS__ABS_F32(x)));
    p = tns_f32_bits(tns_bits_f32(p) | (tns_bits_f32(x) & odd << 31));
    p = ((x < 0.0f) & (x > -TNS_INF_F32) & !whole) ? TNS_NAN_F32 : p;
    return (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (TNS__ABS_F32(y) == TNS_INF_F32)) ? 1.0f : p;
}
#endif

/* ---- numbers as fraction and exponent; neighbours ---- */

/* b is a whole number; beyond these bounds every result is 0 or infinite all the same. */
#define TNS__PARTS(s, T, ldexp, frexp, nextafter) \
    TN_FN T tns_ldexp_##s(T a, T b) \
    { \
        T e = b < (T)-5000 ? (T)-5000 : b > (T)5000 ? (T)5000 : b; \
        return TNS_LIBM(ldexp)(a, (int)e); \
    } \
    TN_FN T tns_frexp_fraction_##s(T a) { int e = 0; return TNS_LIBM(frexp)(a, &e); } \
    TN_FN T tns_frexp_exponent_##s(T a) \
    { \
        int e = 0; \
        T f = TNS_LIBM(frexp)(a, &e); \
        return f - f == 0 ? (T)e : (T)0; \
    } \
    TN_FN T tns_nextafter_##s(T a, T b) { return TNS_LIBM(nextafter)(a, b); }
TNS__PARTS(f32, tn_f32, ldexpf, frexpf, nextafterf)
TNS__PARTS(f64, tn_f64, ldexp, frexp, nextafter)

/* ---- libm ---- */

#define TNS__LIBM1_F64(name) TN_FN tn_f64 tns_##name##_f64(tn_f64 x) { return TNS_LIBM(name)(tns_unknown(x)); }
TNS__LIBM1_F64(erf) TNS__LIBM1_F64(erfc)
TNS__LIBM1_F64(sin) TNS__LIBM1_F64(cos) TNS__LIBM1_F64(tan)
TNS__LIBM1_F64(asin) TNS__LIBM1_F64(acos) TNS__LIBM1_F64(atan)
TNS__LIBM1_F64(sinh) TNS__LIBM1_F64(cosh) TNS__LIBM1_F64(cbrt)
TNS__LIBM1_F64(asinh) TNS__LIBM1_F64(acosh) TNS__LIBM1_F64(atanh)
TN_FN tn_f64 tns_pow_f64(tn_f64 x, tn_f64 y) { return TNS_LIBM(pow)(x, y); }
TN_FN tn_f64 tns_hypot_f64(tn_f64 a, tn_f64 b) { return TNS_LIBM(hypot)(a, b); }
TN_FN tn_f64 tns_atan2_f64(tn_f64 y, tn_f64 x) { return TNS_LIBM(atan2)(y, x); }

#endif
