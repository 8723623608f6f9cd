/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 4: functions of real numbers. Coefficients are minimax fits computed for this file with
 * Sollya's fpminimax on the interval each comment names.
 */
#ifndef TN_SCALAR_MATH_H
#define TN_SCALAR_MATH_H

/* 1.5 2^23 and 1.5 2^52: adding one rounds a small number to an integer, which then sits in the low bits. */
#define TNS__ROUND_F32 12582912.0f
#define TNS__ROUND_F64 6755399441055744.0

/* p 2^n for the n held in the low bits of t = n + TNS__ROUND; in two steps, so that only the last one rounds. */
TN_HOT tn_f32 tns__scale_f32(tn_f32 p, tn_f32 t)
{
    tn_i32 n = (tn_i32)(tns_bits_f32(t) - 0x4b400000u), half = n >> 1;
    tn_u32 a = (tn_u32)(half + 127) << 23, b = (tn_u32)(n - half + 127) << 23;
    return p * tns_f32_bits(a) * tns_f32_bits(b);
}
TN_HOT tn_f64 tns__scale_f64(tn_f64 p, tn_f64 t)
{
    tn_u64 n = tns_bits_f64(t) - 0x4338000000000000ull + 4096, half = n >> 1; /* + 4096: never negative */
    return p * tns_f64_bits((half - 2048 + 1023) << 52) * tns_f64_bits((n - half - 2048 + 1023) << 52);
}

/* e^r - 1 on [-ln 2 / 2, ln 2 / 2] */
TN_HOT tn_f32 tns__expm1_poly_f32(tn_f32 r)
{
    tn_f32 q = 0x1.123bf8p-7f + r * 0x1.684dep-10f;
    q = 0x1.55548ep-3f + r * (0x1.555b9cp-5f + r * q);
    return r + r * r * (0x1.fffff8p-2f + r * q);
}
TN_HOT tn_f64 tns__expm1_poly_f64(tn_f64 r)
{
    tn_f64 r2 = r * r, r4 = r2 * r2;
    tn_f64 a = 0.50000000000000122124532708767219446599483489990234 + r * 0.166666666666664770035666265357576776295900344848633;
    tn_f64 b = 4.1666666666519747153074604284483939409255981445312e-2 + r * 8.333333333455043151483110364097228739410638809204e-3;
    tn_f64 c = 1.38888889459194545851483670872994480305351316928864e-3 + r * 1.98412695891198828960708122615130832615356857180595e-4;
    tn_f64 d = 2.48014910349132293432544010824969404893636237829924e-5 + r * 2.7557514535745436324361713059660772273673501331359e-6;
    tn_f64 e = 2.7630905275152603134492597554416892791095961001702e-7 + r * 2.50223281742581817462437685515089236254482329968596e-8;
    return r + r2 * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * e));
}

TN_HOT tn_f32 tns_exp_f32(tn_f32 x)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    tn_f32 t = x * 0x1.715476p+0f + TNS__ROUND_F32, n = t - TNS__ROUND_F32;
    tn_f32 r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
    return tns__scale_f32(1.0f + tns__expm1_poly_f32(r), t);
}
TN_HOT tn_f64 tns_exp_f64(tn_f64 x)
{
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    tn_f64 t = x * 0x1.71547652b82fep+0 + TNS__ROUND_F64, n = t - TNS__ROUND_F64;
    tn_f64 r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
    return tns__scale_f64(1.0 + tns__expm1_poly_f64(r), t);
}

/* log(x) + c for finite x > 0, c small */
TN_HOT tn_f32 tns__log_f32(tn_f32 x, tn_f32 c)
{
    tn_u32 tiny = x < 0x1p-126f, u = tns_bits_f32(tiny ? x * 0x1p23f : x) - 0x3f3504f3u; /* sqrt(1/2) */
    tn_f32 k = (tn_f32)(((tn_i32)u >> 23) - (tn_i32)(tiny * 23u));
    tn_f32 f = tns_f32_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, f2 = f * f;
    tn_f32 p = -0.116638265550136566162109375f + f * 7.3417149484157562255859375e-2f;
    p = 0.1425131857395172119140625f + f * (-0.123960316181182861328125f + f * (0.116328060626983642578125f + f * p));
    p = 0.2000068128108978271484375f + f * (-0.1666918694972991943359375f + f * p);
    p = 0.333333313465118408203125f + f * (-0.24999980628490447998046875f + f * p);
    return k * 0x1.62e4p-1f + (f + (f2 * (f * p - 0.5f) + (k * 0x1.7f7d1cp-20f + c)));
}
TN_HOT tn_f64 tns__log_f64(tn_f64 x, tn_f64 c)
{
    tn_u64 tiny = x < 0x1p-1022;
    tn_u64 u = tns_bits_f64(tiny ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdull; /* sqrt(1/2) */
    tn_u64 k = (u >> 52) - (tiny ? 52 : 0); /* modulo 4096 */
    tn_f64 n = tns_f64_bits(((k + 2048) & 4095) | 0x4330000000000000ull) - (0x1p52 + 2048.0);
    tn_f64 f = tns_f64_bits((u & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull) - 1.0;
    tn_f64 s = f / (2.0 + f), z = s * s, z2 = z * z, h = 0.5 * f * f;
    tn_f64 odd = 0.39999999999899277236536931923183146864175796508789 + z2 * (0.222222110905232361766081794485216960310935974121094
                 + z2 * 0.153316108420391561395490498398430645465850830078125);
    tn_f64 even = 0.66666666666666696272613990004174411296844482421875 + z2 * (0.28571428626210204626545419159810990095138549804687
                  + z2 * (0.181828924628689186926422394208202604204416275024414 + z2 * 0.1461779712559124477788685680934577248990535736084));
    return n * 0x1.62e42feep-1 + (f - (h - (s * (h + z * (even + z * odd)) + (n * 0x1.a39ef35793c76p-33 + c))));
}
TN_HOT tn_f32 tns_log_f32(tn_f32 x)
{
    tn_f32 y = tns__log_f32(x, 0.0f);
    y = x < TNS_INF_F32 ? y : x;
    return x > 0.0f ? y : x == 0.0f ? -TNS_INF_F32 : TNS_NAN_F32;
}
TN_HOT tn_f64 tns_log_f64(tn_f64 x)
{
    tn_f64 y = tns__log_f64(x, 0.0);
    y = x < TNS_INF_F64 ? y : x;
    return x > 0.0 ? y : x == 0.0 ? -TNS_INF_F64 : TNS_NAN_F64;
}

#define TNS__MATH1(name, libm) \
    TN_FN tn_f32 tns_##name##_f32(tn_f32 x) { return TNS_LIBM(libm##f)(x); } \
    TN_FN tn_f64 tns_##name##_f64(tn_f64 x) { return TNS_LIBM(libm)(x); }
#define TNS__MATH2(name, libm) \
    TN_FN tn_f32 tns_##name##_f32(tn_f32 a, tn_f32 b) { return TNS_LIBM(libm##f)(a, b); } \
    TN_FN tn_f64 tns_##name##_f64(tn_f64 a, tn_f64 b) { return TNS_LIBM(libm)(a, b); }

TNS__MATH1(sqrt, sqrt)
TNS__MATH1(floor, floor)
TNS__MATH1(ceil, ceil)
TNS__MATH1(trunc, trunc)
TNS__MATH1(rint, rint)
TNS__MATH1(exp2, exp2)
TNS__MATH1(expm1, expm1)
TNS__MATH1(log2, log2)
TNS__MATH1(log10, log10)
TNS__MATH1(log1p, log1p)
TNS__MATH1(cbrt, cbrt)
TNS__MATH1(sin, sin)
TNS__MATH1(cos, cos)
TNS__MATH1(tan, tan)
TNS__MATH1(asin, asin)
TNS__MATH1(acos, acos)
TNS__MATH1(atan, atan)
TNS__MATH1(sinh, sinh)
TNS__MATH1(cosh, cosh)
TNS__MATH1(tanh, tanh)
TNS__MATH1(asinh, asinh)
TNS__MATH1(acosh, acosh)
TNS__MATH1(atanh, atanh)
TNS__MATH1(erf, erf)
TNS__MATH1(erfc, erfc)
TNS__MATH2(pow, pow)
TNS__MATH2(atan2, atan2)
TNS__MATH2(hypot, hypot)

#define TNS__MATH(s, T, fabs, log1p) \
    TN_HOT T tns_rsqrt_##s(T x) { return (T)1 / tns_sqrt_##s(x); } \
    TN_HOT T tns_sigmoid_##s(T x) \
    { \
        T e = tns_exp_##s(-TNS_LIBM(fabs)(x)); /* the smaller side: no overflow, full accuracy */ \
        return (x < 0 ? e : (T)1) / ((T)1 + e); \
    } \
    TN_FN T tns_softplus_##s(T x) \
    { return (x > 0 ? x : x != x ? x : (T)0) + tns_log1p_##s(tns_exp_##s(-TNS_LIBM(fabs)(x))); } \
    TN_FN T tns_gelu_##s(T x) { return x * ((T)0.5 * tns_erfc_##s(x * (T)-0.70710678118654752440)); } \
    TN_FN T tns_logaddexp_##s(T a, T b) \
    { \
        T d = a - b; \
        if (a == b) return a + (T)0.69314718055994530942; /* infinities too */ \
        return d > 0 ? a + tns_log1p_##s(tns_exp_##s(-d)) : d <= 0 ? b + tns_log1p_##s(tns_exp_##s(d)) : d; \
    }

TNS__MATH(f32, tn_f32, fabsf, log1pf)
TNS__MATH(f64, tn_f64, fabs, log1p)

#endif
