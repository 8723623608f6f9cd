/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 4 for CPUs: float64 functions without branches and calls, which loops of vectors cannot have, in
 * the place of libm's. Largest errors seen, in ulps: sin and cos 0.9, tan 2.3, erf 1.1, erfc 3.3.
 */
#ifndef TN_OPS_SCALAR_CPU_H
#define TN_OPS_SCALAR_CPU_H

/* The bits of 2/pi behind 64 zeros. */
static const tn_u64 tns__two_over_pi[20] = {
    0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull,
    0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull,
    0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull};

/* A whole number below 2^32, or the high half of one below 2^64, as a float. */
TN_HOT tn_f64 tns__lower_word_f64(tn_u64 u) { return tns_f64_bits((u & 0xffffffffu) | 0x4330000000000000ull) - 0x1p52; }
TN_HOT tn_f64 tns__upper_word_f64(tn_u64 u) { return tns_f64_bits(u >> 32 | 0x4330000000000000ull) - 0x1p52; }

/*
 * |x| = q pi/2 + r + *low, |r| <= pi/4, for every finite x, after Payne and Hanek (1983), as tns__reduce_f32: of the
 * product of x's 53 bits with 192 of 2/pi, those below what is a multiple of 4 are kept, 128 of them.
 */
TN_HOT tn_u64 tns__reduce_f64(tn_f64 x, tn_f64 *r, tn_f64 *low)
{
    tn_u64 bits = tns_bits_f64(x) & 0x7fffffffffffffffull, e = bits >> 52;
    tn_u64 m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    tn_u64 first = (e > 1022u ? e : 1022u) - 1013u, at = first >> 6, shift = first & 63u, back = 63u - shift;
    tn_u64 t0 = tns__two_over_pi[at], t1 = tns__two_over_pi[at + 1], t2 = tns__two_over_pi[at + 2];
    tn_u64 t3 = tns__two_over_pi[at + 3];
    tn_u64 w0 = t0 << shift | t1 >> 1 >> back, w1 = t1 << shift | t2 >> 1 >> back, w2 = t2 << shift | t3 >> 1 >> back;
    tn_u32 ml = (tn_u32)m, mh = (tn_u32)(m >> 32), l0 = (tn_u32)w0, h0 = (tn_u32)(w0 >> 32);
    tn_u32 l1 = (tn_u32)w1, h1 = (tn_u32)(w1 >> 32), l2 = (tn_u32)w2, h2 = (tn_u32)(w2 >> 32);
    tn_u64 a = (tn_u64)ml * l1, b = (tn_u64)ml * h1, c = (tn_u64)mh * l1;
    tn_u64 tail = (tn_u64)mh * h2 + ((tn_u64)ml * h2 >> 32) + ((tn_u64)mh * l2 >> 32); /* below 2^54 */
    tn_u64 mid = (a >> 32) + (b & 0xffffffffu) + (c & 0xffffffffu);
    tn_u64 lower = (a & 0xffffffffu) + (tail & 0xffffffffu);
    mid += (tail >> 32) + (lower >> 32);
    tn_u64 top = (tn_u64)mh * h1 + (b >> 32) + (c >> 32) + (mid >> 32);
    top += (tn_u64)ml * l0 + ((tn_u64)(ml * h0 + mh * l0) << 32);
    tn_u64 q = (top + 0x2000000000000000ull) >> 62;
    tn_u64 rest = top - (q << 62) + 0x8000000000000000ull; /* of a quadrant, in units of 2^-62 */
    tn_f64 high = (tns__upper_word_f64(rest) - 0x1p31) * 0x1p32, y = high + tns__lower_word_f64(rest);
    tn_f64 z = (tns__lower_word_f64(rest) - (y - high)) +
               (tns__lower_word_f64(mid) + tns__lower_word_f64(lower) * 0x1p-32) * 0x1p-32;
    high = y + z;
    z -= high - y;
    /* times pi/2 2^-62, exactly but for the last bits */
    tn_f64 p = high * 0x1.921fb54442d18p-62, u = tns_f64_bits(tns_bits_f64(high) & 0xfffffffff8000000ull), v = high - u;
    tn_f64 d = ((u * 0x1.921fb5p-62 - p) + u * 0x1.110b46p-88 + v * 0x1.921fb5p-62) + v * 0x1.110b46p-88;
    d += high * 0x1.1a62633145c07p-116 + z * 0x1.921fb54442d18p-62;
    tn_u64 small = bits <= 0x3fe921fb54442d18ull; /* pi/4 */
    y = p + d;
    *r = small ? tns_f64_bits(bits) : y;
    *low = small ? 0.0 : d - (y - p);
    return small ? 0 : q;
}
/* sin(r + low), cos(r + low) on [-pi/4, pi/4]; relative errors of the polynomials 2e-18 and 4e-19 */
TN_HOT tn_f64 tns__sin_poly_f64(tn_f64 r, tn_f64 low)
{
    tn_f64 z = r * r, z2 = z * z;
    tn_f64 p = (0.008333333333330948 + z * -0.00019841269836756774) +
               z2 * ((2.7557316101617874e-06 + z * -2.505113165023518e-08) + z2 * 1.5918115263265974e-10);
    return r + (r * z * (-0.16666666666666666 + z * p) + (low - 0.5 * z * low));
}
TN_HOT tn_f64 tns__cos_poly_f64(tn_f64 r, tn_f64 low)
{
    tn_f64 z = r * r, z2 = z * z, h = 0.5 * z, w = 1.0 - h;
    tn_f64 p = (0.041666666666666664 + z * -0.0013888888888887398) +
               z2 * ((2.480158729876456e-05 + z * -2.7557317271145144e-07) +
                     z2 * (2.087614614655861e-09 + z * -1.1382623647474604e-11));
    return w + (((1.0 - w) - h) + (z2 * p - r * low));
}
TN_HOT tn_f64 tns__cpu_sin_f64(tn_f64 x)
{
    tn_f64 r, low;
    tn_u64 q = tns__reduce_f64(x, &r, &low), sign = (tns_bits_f64(x) & 0x8000000000000000ull) ^ (q & 2u) << 62;
    tn_f64 s = tns__sin_poly_f64(r, low), c = tns__cos_poly_f64(r, low), y = (q & 1u) ? c : s;
    return TNS__ABS_F64(x) < TNS_INF_F64 ? tns_f64_bits(tns_bits_f64(y) ^ sign) : TNS_NAN_F64;
}
TN_HOT tn_f64 tns__cpu_cos_f64(tn_f64 x)
{
    tn_f64 r, low;
    tn_u64 q = tns__reduce_f64(x, &r, &low), sign = ((q + 1u) & 2u) << 62;
    tn_f64 s = tns__sin_poly_f64(r, low), c = tns__cos_poly_f64(r, low), y = (q & 1u) ? s : c;
    return TNS__ABS_F64(x) < TNS_INF_F64 ? tns_f64_bits(tns_bits_f64(y) ^ sign) : TNS_NAN_F64;
}
TN_HOT tn_f64 tns__cpu_tan_f64(tn_f64 x)
{
    tn_f64 r, low;
    tn_u64 q = tns__reduce_f64(x, &r, &low), sign = (tns_bits_f64(x) & 0x8000000000000000ull) ^ q << 63;
    tn_f64 s = tns__sin_poly_f64(r, low), c = tns__cos_poly_f64(r, low);
    tn_f64 y = ((q & 1u) ? c : s) / ((q & 1u) ? s : c);
    return TNS__ABS_F64(x) < TNS_INF_F64 ? tns_f64_bits(tns_bits_f64(y) ^ sign) : TNS_NAN_F64;
}
#define tns_sin_f64 tns__cpu_sin_f64
#define tns_cos_f64 tns__cpu_cos_f64
#define tns_tan_f64 tns__cpu_tan_f64

/* ---- error function ---- */

/* erf(x) / x - 1 for z = x^2, |x| < 0.9: relative error of erf 2e-17 */
TN_HOT tn_f64 tns__erf_poly_f64(tn_f64 z)
{
    tn_f64 z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
    tn_f64 p0 = (0.1283791670955126 + z * -0.37612638903183726) + z2 * (0.11283791670953626 + z * -0.02686617064478925);
    tn_f64 p1 = (0.005223977621408321 + z * -0.0008548326742384589) +
                z2 * (0.00012055320546050548 + z * -1.4925287257284608e-05);
    tn_f64 p2 = (1.645501388992068e-06 + z * -1.627349929764496e-07) +
                z2 * (1.4035072777069241e-08 + z * -8.455672762838276e-10);
    return (p0 + z4 * p1) + z8 * p2;
}
/*
 * erfc(a) for 0.45 <= a <= 28: e^(-a^2) P(q) / (1 + 2 a), q = (a - 4) / (a + 4), to 6e-17; a^2 = h^2 + l, h^2 exact.
 */
TN_HOT tn_f64 tns__erfc_f64(tn_f64 a)
{
    tn_f64 h = tns_f64_bits(tns_bits_f64(a) & 0xfffffffff8000000ull), hh = h * h, l = (a - h) * (a + h);
    tn_f64 t = hh * -0x1.71547652b82fep+0 + TNS__ROUND_F64, n = t - TNS__ROUND_F64;
    tn_f64 r = -hh - n * TNS__LN2_HI_F64 - (n * TNS__LN2_LO_F64 + l), q = (a - 4.0) / (a + 4.0);
    tn_f64 q2 = q * q, q4 = q2 * q2, q8 = q4 * q4;
    tn_f64 p0 =
        (-0.13962111684056255 + q * 0.015379652102618852) + q2 * (0.06809705425469739 + q * -0.10103906603624291);
    tn_f64 p1 = (0.093732834998197 + q * -0.06633036581386659) + q2 * (0.03716751553962209 + q * -0.01619773403512361);
    tn_f64 p2 = (0.005031969963267576 + q * -0.0007577734704707747) +
                q2 * (-0.0001992566503179266 + q * 0.00015062258691748444);
    tn_f64 p3 = (-2.4399182967496654e-05 + q * -1.1224971020102317e-05) +
                q2 * (5.709031417583974e-06 + q * 2.999325296111399e-07);
    tn_f64 p4 = (-8.230116543483656e-07 + q * 6.66996561415413e-08) +
                q2 * (1.0596298833738494e-07 + q * -1.210448932191314e-08);
    tn_f64 p5 = -1.054785984198553e-08;
    tn_f64 p = (p0 + q4 * p1) + q8 * ((p2 + q4 * p3) + q8 * (p4 + q4 * p5));
    tn_f64 y = (1.2329951186255526 + q * p) / (1.0 + 2.0 * a);
    return tns__scale_f64(y + y * tns__expm1_poly_f64(r), t);
}
TN_HOT tn_f64 tns__cpu_erf_f64(tn_f64 x)
{
    tn_f64 a = TNS__ABS_F64(x), y = 1.0 - tns__erfc_f64(a > 6.0 ? 6.0 : a);
    y = TNS_LIBM(copysign)(y, x);
    return a < 0.9 ? x + x * tns__erf_poly_f64(x * x) : y;
}
TN_HOT tn_f64 tns__cpu_erfc_f64(tn_f64 x)
{
    tn_f64 a = TNS__ABS_F64(x), y = tns__erfc_f64(a > 28.0 ? 28.0 : a);
    y = x < 0.0 ? 2.0 - y : y;
    return a < 0.5 ? 1.0 - (x + x * tns__erf_poly_f64(x * x)) : y;
}
#define tns_erf_f64  tns__cpu_erf_f64
#define tns_erfc_f64 tns__cpu_erfc_f64

#endif
