/* SPDX-License-Identifier: MIT */
/*
 * What kernels in C may use, behind the scalar prelude and in front of them: words about loops, rounding to 16 bits,
 * strips of 16 bits.
 */
#define TN_INDEPENDENT _Pragma("GCC ivdep")
/* over a block's accumulators, in pieces of FEW_COLUMNS: a constant number needs no remainder loop */
#define TN_COLUMNS for (int w = 0; w < width; w += 256) for (int c = 0; c < 256; c++)
#define TN_LANES _Pragma("GCC ivdep")

/*
 * To the nearest float16 and back, as tn_f16_to_f32(tn_f32_to_f16(x)) in a third of the steps: added to 2^13 times its
 * power of two, x is left with 11 bits, and below 2^-14 with multiples of 2^-24.
 */
TN_HOT tn_f32 tn_round_f16(tn_f32 x)
{
    tn_u32 u = tns_bits_f32(x), m = u & 0x7fffffffu, e = m & 0x7f800000u;
    e = e < (113u << 23) ? 113u << 23 : e;
    tn_f32 y = tns_f32_bits(m), t = tns_f32_bits(e + (13u << 23)), r = (y + t) - t;
    return tns_f32_bits(tns_bits_f32(y >= 65520.0f ? TNS_INF_F32 : r) | (u & 0x80000000u));
}
TN_HOT tn_f32 tn_round_bf16(tn_f32 x)
{
    tn_u32 u = tns_bits_f32(x), r = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
    return tns_f32_bits((u & 0x7fffffffu) > 0x7f800000u ? (u & 0xffff0000u) | 0x400000u : r);
}

/*
 * n neighbours from float16 to float32 and back, by the processor's instructions if it has them: the vectoriser knows
 * none, and by integers each element takes a dozen steps.
 */
#ifdef __F16C__
typedef float tn__float8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef short tn__short8 __attribute__((vector_size(16), aligned(2), may_alias));
#define TN__EIGHT(to, from, n, type, convert, one) \
    tn_i64 i = 0; \
    for (; i + 8 <= n; i += 8) *(type *)(to + i) = convert; \
    for (; i < n; i++) to[i] = one(from[i])
#else
#define TN__EIGHT(to, from, n, type, convert, one) \
    TN_INDEPENDENT \
    for (tn_i64 i = 0; i < n; i++) to[i] = one(from[i])
#endif
TN_FN void tn_widen_f16(tn_f32 *to, const tn_f16 *from, tn_i64 n)
{
    TN__EIGHT(to, from, n, tn__float8, __builtin_ia32_vcvtph2ps256(*(const tn__short8 *)(from + i)), tn_f16_to_f32);
}
TN_FN void tn_narrow_f16(tn_f16 *to, const tn_f32 *from, tn_i64 n)
{
    TN__EIGHT(to, from, n, tn__short8, __builtin_ia32_vcvtps2ph256(*(const tn__float8 *)(from + i), 0), tn_f32_to_f16);
}
TN_FN void tn_narrow_bf16(tn_bf16 *to, const tn_f32 *from, tn_i64 n)
{
    TN_INDEPENDENT
    for (tn_i64 i = 0; i < n; i++) to[i] = tn_f32_to_bf16(from[i]);
}
