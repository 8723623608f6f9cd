/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 4b: functions of real numbers as a GPU computes them (needs parts 1 to 4). They are so short
 * that memory is what takes the time. A GPU of data centres does a fused multiply-add of float64 in the time of two of
 * float32, beside which others convert and find inverses: what must be exact to more than 24 bits is computed in
 * float64 to about 35 of them, without float64's own divisions, logarithms and exponentials. Polynomials are minimax
 * fits (Remez); rare arguments leave by a branch.
 *
 * Largest errors seen on an H200, in ulps, of 3 million numbers of every magnitude: sin and cos 1.5, tan, sinh, cosh,
 * pow 0.51, both parts of a complex exponential 0.52, erf 1.3, erfc 3.2, gelu 3.7; by a model whose approximate
 * instructions are off by an ulp, 1.5, 3.8 and 4.2 for the last three.
 */
#ifndef TN_OPS_SCALAR_GPU_H
#define TN_OPS_SCALAR_GPU_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

TN_HOT tn_u32 tns__high_f64(tn_f64 x) { return (tn_u32)(tns_bits_f64(x) >> 32); }
TN_HOT tn_f64 tns__words_f64(tn_u32 high, tn_u32 low) { return tns_f64_bits((tn_u64)high << 32 | low); }
TN_HOT tn_f64 tns__with_high_f64(tn_f64 x, tn_u32 high) { return tns__words_f64(high, (tn_u32)tns_bits_f64(x)); }
/* x 2^n of a normal number, for an n that keeps it one */
TN_HOT tn_f64 tns__shifted_f64(tn_f64 x, tn_u32 n) { return tns__with_high_f64(x, tns__high_f64(x) + (n << 20)); }
/* a / b to 36 bits */
TN_HOT tn_f64 tns__quotient_f64(tn_f64 a, tn_f64 b)
{
    tn_f64 y = tns__inverse_f64(b), q = a * y;
    return fma(fma(-b, q, a), y, q);
}

/* ---- error function and normal distribution ---- */

/*
 * As part 4's: factor Phi(-t) = factor e^(-t^2/2) / (sqrt(2 pi) t + S(t)), still to be scaled by 2^n; *n_out = n +
 * TNS__ROUND, sqrt(2 pi) t = line + line_low, t^2/2 = h + l, line and h exact.
 */
TN_HOT tn_f32 tns__normal_tail_f32(tn_f32 t, tn_f32 line, tn_f32 line_low, tn_f32 h, tn_f32 l, tn_f32 factor,
                                   tn_f32 *n_out)
{
    tn_f32 num = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 6.24040933e-3f, 7.47037679e-2f), 0.416096538f), 1.26009238f), 2.0f);
    tn_f32 den = fmaf(t, fmaf(t, fmaf(t, 2.48931767e-3f, 2.98148356e-2f), 0.170706958f), 0.565785706f);
    den = fmaf(t, fmaf(t, den, 1.08547580f), 1.0f);
    tn_f32 s = fmaf(h, -0x1.715476p+0f, TNS__ROUND_F32), n = s - TNS__ROUND_F32;
    tn_f32 power = fmaf(l, -0x1.715476p+0f,
                        fmaf(h, -0x1.4ae0cp-26f, fmaf(h, -0x1.715476p+0f, -n))); /* (h + l) / -ln 2 - n */
    *n_out = s;
    return tns__ratio_f32(factor * tns__power_of_2_f32(power), line + fmaf(num, tns__inverse_f32(den), line_low));
}
TN_HOT tn_f32 tns__upper_half_f32(tn_f32 x) { return tns_f32_bits(tns_bits_f32(x) & 0xfffff000u); } /* 12 bits */

/* erf(x) / x - 1 for z = x^2, |x| < 0.9: relative error 1e-9 */
TN_HOT tn_f32 tns__erf_poly_f32(tn_f32 z)
{
    tn_f32 p = fmaf(z, fmaf(z, 8.39305431e-5f, -8.14430823e-4f), 5.20073110e-3f);
    return fmaf(z, fmaf(z, fmaf(z, fmaf(z, p, -2.68590245e-2f), 0.112836815f), -0.376126319f), 0.128379166f);
}
/* From 0.9 on 1 - 2^(-a P(a)), to 1e-9 */
TN_HOT tn_f32 tns_erf_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), b = tns__below_f32(a, 4.0f);
    tn_f32 p = fmaf(b, fmaf(b, fmaf(b, 1.4752703e-5f, -4.5128373e-4f), 5.1967297e-3f), -3.4159206e-2f);
    p = fmaf(b, fmaf(b, fmaf(b, p, 0.15312672f), 0.91641396f), 1.6282750f);
    tn_f32 y = copysignf(1.0f - tns__power_of_2_f32(-b * p), x);
    return a < 0.9f ? fmaf(x, tns__erf_poly_f32(x * x), x) : y;
}
TN_HOT tn_f32 tns_erfc_f32(tn_f32 x)
{
    tn_f32 a = tns__below_f32(TNS__ABS_F32(x), 10.3f), n;
    tn_f32 b = tns__upper_half_f32(a), c = a - b; /* 2 sqrt(pi) in 11 bits and the rest */
    tn_f32 y = tns__normal_tail_f32(a * 1.41421356f, b * 0x1.c5cp+1f, fmaf(c, 3.54490770f, b * -1.41731889e-5f), b * b,
                                    c * (a + b), 2.0f, &n);
    y = tns__scale_f32(y, n);
    y = x < 0.0f ? 2.0f - y : y;
    return a < 0.5f ? 1.0f - fmaf(x, tns__erf_poly_f32(x * x), x) : y;
}
/* x Phi(x), accurate in the tail too; gelu(-inf) is its limit, -0. Near 0: x (1/2 + x P(x^2)), to 3e-8 on [0, 0.7]. */
TN_HOT tn_f32 tns_gelu_f32(tn_f32 x)
{
    tn_f32 v = tns__above_f32(tns__below_f32(x, 14.6f), -15.0f), n;
    tn_f32 a = TNS__ABS_F32(v), b = tns__upper_half_f32(a), c = a - b; /* sqrt(2 pi) in 11 bits and the rest */
    tn_f32 y = tns__normal_tail_f32(a, b * 0x1.40ep+1f, fmaf(c, 2.50662827f, b * -2.07662873e-4f), 0.5f * b * b,
                                    0.5f * c * (a + b), v, &n);
    y = tns__scale_f32(y, n);
    y = x > 0.0f ? x - y : y;
    tn_f32 z = v * v, p = fmaf(z, fmaf(z, fmaf(z, 1.01680242e-4f, -1.18063448e-3f), 9.97259747e-3f), -6.64904416e-2f);
    return a < 0.6f ? x * fmaf(x, fmaf(z, p, 0.398942292f), 0.5f) : y;
}

/* ---- trigonometry: |x| = q pi/2 + r, |r| <= pi/4, by pi/2 in parts after Cody and Waite (1980), huge x as part 4 */

/* Below 2^16 q is one of 16 bits, and x - q (pi/2's first 24 bits) is exact; so r is good to an ulp. */
TN_HOT tn_f32 tns__reduce_near_f32(tn_f32 x, tn_u32 *q)
{
    tn_f32 a = TNS__ABS_F32(x), t = fmaf(a, 0.636619772f, TNS__ROUND_F32), n = t - TNS__ROUND_F32;
    tn_f32 r = fmaf(n, 1.71512451e-15f, fmaf(n, 4.37113883e-8f, fmaf(n, -1.57079637f, a)));
    *q = tns_bits_f32(t);
    if (!(a < 65536.0f)) {
        tn_f64 d;
        *q = tns__reduce_f32(x, &d);
        r = a < TNS_INF_F32 ? (tn_f32)d : TNS_NAN_F32;
    }
    return r;
}
TN_HOT tn_f32 tns_sin_f32(tn_f32 x)
{
    tn_u32 q;
    tn_f32 r = tns__reduce_near_f32(x, &q), s = tns__sin_poly_f32(r), c = tns__cos_poly_f32(r);
    return tns_f32_bits(tns_bits_f32((q & 1u) ? c : s) ^ ((tns_bits_f32(x) ^ q << 30) & 0x80000000u));
}
TN_HOT tn_f32 tns_cos_f32(tn_f32 x)
{
    tn_u32 q;
    tn_f32 r = tns__reduce_near_f32(x, &q), s = tns__sin_poly_f32(r), c = tns__cos_poly_f32(r);
    return tns_f32_bits(tns_bits_f32((q & 1u) ? s : c) ^ ((q + 1u) << 30 & 0x80000000u));
}

/* In float64: below 2^28 x - q (pi/2's first 53 bits) is exact. */
TN_HOT tn_f64 tns__reduce_near_f64(tn_f32 x, tn_u32 *q)
{
    tn_f32 a = TNS__ABS_F32(x);
    tn_f64 d = (tn_f64)a, t = fma(d, 0.63661977236758134, TNS__ROUND_F64), n = t - TNS__ROUND_F64;
    tn_f64 r = fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p+0, d));
    *q = (tn_u32)tns_bits_f64(t);
    if (!(a < 0x1p28f)) {
        *q = tns__reduce_f32(x, &r);
        r = a < TNS_INF_F32 ? r : TNS_NAN_F64;
    }
    return r;
}
/* tan r = r N(r^2) / D(r^2), to 3e-11 */
TN_HOT tn_f32 tns_tan_f32(tn_f32 x)
{
    tn_u32 q;
    tn_f64 r = tns__reduce_near_f64(x, &q), z = r * r;
    tn_f64 n = r * fma(z, fma(z, 0.0010747302696900267, -0.11135532224855302), 1.0);
    tn_f64 d = fma(z, fma(z, 0.01597093098853969, -0.444688654388547), 1.0);
    tn_f32 y = (tn_f32)tns__quotient_f64((q & 1u) ? d : n, (q & 1u) ? n : d);
    return tns_f32_bits(tns_bits_f32(y) ^ ((tns_bits_f32(x) ^ q << 31) & 0x80000000u));
}

/* ---- hyperbolic functions: |x| = n ln 2 + r, e^r = even + odd, of even and odd powers of r, e^-r = even - odd ---- */

/* 2^(n - 1) e^r and 2^(-n - 1) e^-r, to 5e-11; *odd, which is sinh r; whether n is 0 */
TN_HOT tn_u32 tns__half_powers(tn_f32 x, tn_f64 *up, tn_f64 *down, tn_f64 *odd)
{
    tn_f64 d = (tn_f64)tns__below_f32(TNS__ABS_F32(x), 100.0f), t = fma(d, 1.4426950408889634, TNS__ROUND_F64);
    tn_f64 r = fma(t - TNS__ROUND_F64, -0.69314718055994531, d), z = r * r;
    tn_f64 even = fma(z, fma(z, fma(z, 0.0013946793050853166, 0.04166625919538773), 0.5000000081488107), 1.0);
    tn_u32 n = (tn_u32)tns_bits_f64(t);
    *odd = fma(r * z, fma(z, fma(z, 0.00019905585710668943, 0.008333288079812947), 0.16666666757160445), r);
    *up = tns__shifted_f64(even + *odd, n - 1u);
    *down = tns__shifted_f64(even - *odd, ~n);
    return n == 0;
}
TN_HOT tn_f32 tns_sinh_f32(tn_f32 x)
{
    tn_f64 up, down, odd;
    tn_u32 near = tns__half_powers(x, &up, &down, &odd);
    return x != x ? x : copysignf((tn_f32)(near ? odd : up - down), x);
}
TN_HOT tn_f32 tns_cosh_f32(tn_f32 x)
{
    tn_f64 up, down, odd;
    tns__half_powers(x, &up, &down, &odd);
    return x != x ? x : (tn_f32)(up + down);
}

/* e^x for |x| <= 700, to 5e-11 */
TN_HOT tn_f64 tns__power_of_e(tn_f32 x)
{
    tn_f64 d = (tn_f64)x, t = fma(d, 1.4426950408889634, TNS__ROUND_F64);
    tn_f64 r = fma(t - TNS__ROUND_F64, -0.69314718055994531, d), z = r * r;
    tn_f64 p = fma(r, fma(r, fma(r, 0.000199184373731552, 0.0013946119448421395), 0.008333264264191557),
                   0.04166626930199906);
    p = fma(z, fma(r, fma(r, p, 0.16666666861067556), 0.5000000078091714), r);
    tn_f64 y = tns__shifted_f64(p + 1.0, (tn_u32)tns_bits_f64(t));
    return x != x ? (tn_f64)x : y;
}

/* ---- powers ---- */

/* What C says of operands that are not finite or whose base is not above 0; p is |x|^y where both are finite and x is
 * not 0. */
TN_FN tn_f32 tns__special_power_f32(tn_f32 x, tn_f32 y, tn_f32 p)
{
    tn_f32 a = TNS__ABS_F32(x), half = 0.5f * y;
    tn_u32 whole = floorf(y) == y, odd = whole & (tn_u32)(floorf(half) != half);
    if (y == 0.0f || x == 1.0f || (x == -1.0f && TNS__ABS_F32(y) == TNS_INF_F32))
        return 1.0f;
    if (x != x || y != y)
        return TNS_NAN_F32;
    if (TNS__ABS_F32(y) == TNS_INF_F32)
        return (a > 1.0f) == (y > 0.0f) ? TNS_INF_F32 : 0.0f;
    if (a == 0.0f || a == TNS_INF_F32)
        p = (a > 1.0f) == (y > 0.0f) ? TNS_INF_F32 : 0.0f;
    else if (!whole)
        return TNS_NAN_F32;
    return tns_f32_bits(tns_bits_f32(p) | (tns_bits_f32(x) & odd << 31));
}
/*
 * 2^(y log2 |x|) in float64. |x| = 2^k m, sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1): log2 m = s P(s^2) to 4e-12;
 * 2^r = 1 + r Q(r) to 5e-11. Numbers beyond 2^400 are infinite or 0 in float32 all the same.
 */
TN_HOT tn_f32 tns_pow_f32(tn_f32 x, tn_f32 y)
{
    tn_f64 a = (tn_f64)TNS__ABS_F32(x);
    tn_u32 u = tns__high_f64(a) - 0x3fe6a09fu;
    tn_f64 m = tns__with_high_f64(a, (u & 0xfffffu) + 0x3fe6a09fu);
    tn_f64 k = tns__words_f64(0x43300000u, (tn_u32)((tn_i32)u >> 20) ^ 0x80000000u) - (0x1p52 + 0x1p31);
    tn_f64 s = tns__quotient_f64(m - 1.0, m + 1.0), z = s * s;
    tn_f64 p = fma(z, fma(z, 0.34074885825124823, 0.411671676600064), 0.5770836030069996);
    tn_f64 v = (tn_f64)y * fma(s, fma(z, fma(z, p, 0.9617966732422978), 2.8853900817901716), k);
    tn_u32 high = tns__high_f64(v), size = high & 0x7fffffffu;
    v = tns__with_high_f64(v, (high & 0x80000000u) | (size < 0x40790000u ? size : 0x40790000u));
    tn_f64 t = v + TNS__ROUND_F64, r = v - (t - TNS__ROUND_F64);
    p = fma(r, fma(r, 1.53150355096071e-05, 0.00015467187005413767), 0.0013333430409424006);
    p = fma(r, fma(r, fma(r, p, 0.009618036688512856), 0.05550410963026446), 0.24022651077227353);
    tn_f32 result = (tn_f32)tns__shifted_f64(fma(r, fma(r, p, 0.693147180541526), 1.0), (tn_u32)tns_bits_f64(t));
    return x > 0.0f && x < TNS_INF_F32 && TNS__ABS_F32(y) < TNS_INF_F32 ? result : tns__special_power_f32(x, y, result);
}

/* ---- exact to 18 bits: of 16-bit floats ---- */

/* |x| < 0.2: Taylor's series; else 1 - 2 / (e^2|x| + 1). */
TN_HOT tn_f32 tns_brief_tanh_f32(tn_f32 x)
{
    tn_f32 a = TNS__ABS_F32(x), z = x * x, t = tns__power_of_2_f32(2.88539008f * a);
    tn_f32 big = fmaf(-2.0f, tns__inverse_f32(t + 1.0f), 1.0f);
    tn_f32 small = a * fmaf(z, fmaf(z, fmaf(z, -5.39682540e-2f, 0.133333333f), -0.333333333f), 1.0f);
    return copysignf(a < 0.2f ? small : big, x);
}
/* x Phi(-|x|), or what that leaves of x: Phi(-t) = e^(-t^2/2) / (sqrt(2 pi) t + num(t) / den(t)). The power is two
 * factors, so that it is not lost where the result is subnormal. */
TN_HOT tn_f32 tns_brief_gelu_f32(tn_f32 x)
{
    tn_f32 v = tns__above_f32(tns__below_f32(x, 14.6f), -15.0f), a = TNS__ABS_F32(v);
    tn_f32 num = fmaf(a, fmaf(a, 0.120591195f, 0.711874744f), 2.00000528f);
    tn_f32 den = fmaf(a, fmaf(a, fmaf(a, 4.77553219e-2f, 0.292591087f), 0.811476657f), 1.0f);
    tn_f32 root = tns__power_of_2_f32(-0.360673760f * v * v);
    tn_f32 y = v * den * tns__inverse_f32(fmaf(2.50662827f * a, den, num)) * root * root;
    return x > 0.0f ? x - y : y;
}

#endif
#endif
