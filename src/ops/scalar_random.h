/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 5: random numbers from Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As
 * Easy as 1, 2, 3", SC 2011; the constants are that paper's).
 *
 * A stream is (key, offset): the block of four u32 number b comes from the 128-bit counter (offset + b, 0). Element i
 * of a stream reads lane i % 4 of block i / 4 (u32, uniform_f32, normal_f32), or two lanes, (i % 2) * 2 up, of block
 * i / 2 (u64, uniform_f64, normal_f64, below): n elements take (n + 3) / 4 or (n + 1) / 2 blocks of the counter.
 */
#ifndef TN_OPS_SCALAR_RANDOM_H
#define TN_OPS_SCALAR_RANDOM_H

#define TNS__PHILOX_ROUND \
    p = tns__wide_u32(0xd2511f53u, c0); q = tns__wide_u32(0xcd9e8d57u, c2); \
    c0 = (tn_u32)(q >> 32) ^ c1 ^ k0; c1 = (tn_u32)q; c2 = (tn_u32)(p >> 32) ^ c3 ^ k1; c3 = (tn_u32)p; \
    k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;

TN_HOT void tns_philox(tn_u64 key, tn_u64 counter_lo, tn_u64 counter_hi, tn_u32 out[4])
{
    tn_u32 c0 = (tn_u32)counter_lo, c1 = (tn_u32)(counter_lo >> 32);
    tn_u32 c2 = (tn_u32)counter_hi, c3 = (tn_u32)(counter_hi >> 32);
    tn_u32 k0 = (tn_u32)key, k1 = (tn_u32)(key >> 32);
    tn_u64 p, q;
    TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND
    TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND TNS__PHILOX_ROUND
    out[0] = c0; out[1] = c1; out[2] = c2; out[3] = c3;
}

TN_HOT tn_u32 tns_random_bits_u32(tn_u64 key, tn_u64 offset, tn_u64 i)
{
    tn_u32 v[4];
    tns_philox(key, offset + (i >> 2), 0, v);
    tn_u32 low = (i & 1) ? v[1] : v[0], high = (i & 1) ? v[3] : v[2];
    return (i & 2) ? high : low;
}
TN_HOT tn_u64 tns_random_bits_u64(tn_u64 key, tn_u64 offset, tn_u64 i)
{
    tn_u32 v[4];
    tns_philox(key, offset + (i >> 1), 0, v);
    return (i & 1) ? v[2] | (tn_u64)v[3] << 32 : v[0] | (tn_u64)v[1] << 32;
}

/* [0, 1): multiples of 2^-24 and 2^-53 */
TN_HOT tn_f32 tns__uniform_f32(tn_u32 bits) { return (tn_f32)(tn_i32)(bits >> 8) * 0x1p-24f; }
TN_HOT tn_f64 tns__uniform_f64(tn_u64 bits)
{
    tn_f64 high = tns_f64_bits(bits >> 32 | 0x4130000000000000ull) -
                  (0x1p20 + 0x1p-12); /* a last place of 2^-32, of 2^-64 */
    return high + tns_f64_bits((bits & 0xfffff800u) | 0x3f30000000000000ull);
}
TN_HOT tn_f32 tns_random_uniform_f32(tn_u64 key, tn_u64 offset, tn_u64 i)
{ return tns__uniform_f32(tns_random_bits_u32(key, offset, i)); }
TN_HOT tn_f64 tns_random_uniform_f64(tn_u64 key, tn_u64 offset, tn_u64 i)
{ return tns__uniform_f64(tns_random_bits_u64(key, offset, i)); }

/* 0 .. n - 1: the upper half of bits * n; a value's probability is off by less than n / 2^64, relatively. n = 0: 0. */
TN_HOT tn_u64 tns__below_u64(tn_u64 bits, tn_u64 n)
{
    tn_u64 a = bits & 0xffffffffu, b = bits >> 32, c = n & 0xffffffffu, d = n >> 32;
    tn_u64 mid = b * c + (a * c >> 32), mid2 = a * d + (mid & 0xffffffffu);
    return b * d + (mid >> 32) + (mid2 >> 32);
}
TN_HOT tn_u64 tns_random_below_u64(tn_u64 key, tn_u64 offset, tn_u64 i, tn_u64 n)
{ return tns__below_u64(tns_random_bits_u64(key, offset, i), n); }

/*
 * Box and Muller: from one pair of lanes the two normals r cos t and r sin t. r = sqrt(-2 log u), u in (0, 1] with 32
 * (53) bits, so |normal| <= 6.8 (8.7); t is a turn divided in 2^32 (2^53), its quadrant found in integers.
 */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/*
 * By the GPU's own logarithm, root, sine and cosine. The logarithm's error is absolute near 1, so there -2 log(1 - w) /
 * w to 2e-6.
 * The largest errors seen are 1.3e-6 r, 5e-7 where r < 1, and 2e-6.
 */
TN_HOT tn_f32 tns__box_muller_f32(tn_u32 a, tn_u32 b, tn_u32 second)
{
    tn_f32 u = TNS_FMA_F32((tn_f32)a, 0x1p-32f, 0x1p-33f), w = 1.0f - u;
    tn_f32 high = w * TNS_FMA_F32(w, TNS_FMA_F32(w, 0.716410339f, 0.998811960f), 2.00000405f);
    tn_f32 low = tns__binary_log_f32(u) * -1.38629436f, r = tns__root_f32(u > 0.9375f ? high : low);
    tn_f32 t = (tn_f32)(tn_i32)b * 0x1.921fb6p-30f; /* 2 pi / 2^32, in [-pi, pi) */
    return r * (second ? tns__sine_f32(t) : tns__cosine_f32(t));
}
#else
TN_HOT tn_f32 tns__box_muller_f32(tn_u32 a, tn_u32 b, tn_u32 second)
{
    tn_f32 u = TNS_FMA_F32((tn_f32)a, 0x1p-32f, 0x1p-33f);
    tn_f32 r = tns__root_f32(-2.0f * tns__log_f32(u, 0, 0.0f));
    tn_u32 turn = b + 0x20000000u, odd = (turn >> 30 ^ second) & 1u;
    tn_f32 t = (tn_f32)(tn_i32)(b << 2) * 0x1.921fb6p-32f; /* what is left of the quadrant: 2 pi / 2^34 */
    tn_f32 s = tns__sin_poly_f32(t), c = tns__cos_poly_f32(t);
    tn_u32 sign = second ? turn : b + 0x60000000u; /* sin t = cos(t - pi / 2) */
    return r * tns_f32_bits(tns_bits_f32(odd ? s : c) ^ (sign & 0x80000000u));
}
#endif
TN_HOT tn_f64 tns__box_muller_f64(tn_u64 a, tn_u64 b, tn_u64 second)
{
    tn_f64 u = tns__uniform_f64(a) + 0x1p-54;
    tn_f64 r = tns_sqrt_f64(-2.0 * tns__log_f64(u, 0, 0.0));
    tn_u64 quadrant = (b + 0x2000000000000000ull) >> 62;
    tn_u64 turn = b - (quadrant << 62) + 0x8000000000000000ull;
    tn_f64 t = (tns__uniform_f64(turn) - 0.5) * 0x1.921fb54442d18p+2, z = t * t;
    tn_f64 s = 1.5919299991046956e-10;
    tn_f64 c = -1.1381550818347637e-11;
    s = 2.7557316225143289e-06 + z * (-2.5051151714982118e-08 + z * s);
    s = 0.0083333333333313123 + z * (-0.00019841269837089285 + z * s);
    s = t + t * z * (-0.16666666666666666 + z * s);
    c = -2.7557317158684728e-07 + z * (2.0876127932304896e-09 + z * c);
    c = -0.0013888888888887061 + z * (2.4801587298460744e-05 + z * c);
    c = 1.0 - 0.5 * z + z * z * (0.041666666666666664 + z * c);
    tn_u64 q = quadrant - second;
    tn_u64 sign = ((q + 1) & 2) << 62;
    return r * tns_f64_bits(tns_bits_f64((q & 1) ? s : c) ^ sign);
}
TN_HOT tn_f32 tns_random_normal_f32(tn_u64 key, tn_u64 offset, tn_u64 i)
{
    tn_u32 v[4];
    tns_philox(key, offset + (i >> 2), 0, v);
    return tns__box_muller_f32((i & 2) ? v[2] : v[0], (i & 2) ? v[3] : v[1], (tn_u32)(i & 1));
}
TN_HOT tn_f64 tns_random_normal_f64(tn_u64 key, tn_u64 offset, tn_u64 i)
{
    tn_u32 v[4];
    tns_philox(key, offset + (i >> 1), 0, v);
    return tns__box_muller_f64(v[0] | (tn_u64)v[1] << 32, v[2] | (tn_u64)v[3] << 32, i & 1);
}

#endif
