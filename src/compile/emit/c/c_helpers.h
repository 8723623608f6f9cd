/* SPDX-License-Identifier: MIT */
/*
 * What kernels in C may use, behind the scalar prelude and in front of them: words about loops, fetching ahead,
 * rounding to 16 bits, strips of 16 bits, tiles transposed.
 */
#define TN_INDEPENDENT _Pragma("GCC ivdep")
/* over a block's accumulators, which are multiples of 16: a constant number of them needs no remainder loop */
#define TN_COLUMNS for (int w = 0; w < width; w += 16) for (int c = 0; c < 16; c++)
#define TN_LANES _Pragma("GCC ivdep")

/* Asks for the cache lines of so many bytes, which nobody waits for; they need not be anybody's memory: so the offset
 * may come from an index that nobody has looked at yet, and is computed without signs, which wraps around. */
TN_HOT void tn_fetch(const void *from, tn_u64 offset, tn_i64 bytes)
{
    const tn_u64 first = (tn_u64)from + offset;
    for (tn_i64 i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(first + (tn_u64)i));
}

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
    for (tn_i64 i = 0; i < n; i++)
        to[i] = tn_f32_to_bf16(from[i]);
}

/*
 * tn_transpose_N: a tile of elements of N bits transposed. The elements of a column are neighbours in `from`, columns
 * `step` apart; those of a row are in `to`, rows `pitch` apart. By registers, as many columns at a time as one has
 * elements: interleaving halves of registers log2(elements) times makes columns rows.
 */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TN__SHUFFLES
#endif
#endif
#ifdef TN__SHUFFLES
#define TN__LOW_8(a, b)   __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TN__HIGH_8(a, b)  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define TN__LOW_16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TN__HIGH_16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define TN__LOW_32(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TN__HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define TN__LOW_64(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define TN__HIGH_64(a, b) __builtin_shufflevector(a, b, 1, 3)
#define TN__UNROLL _Pragma("GCC unroll 16")
#define TN__SQUARE(bits, N) \
    typedef tn_u##bits tn__line_##bits __attribute__((vector_size(16), aligned(bits / 8), may_alias)); \
    TN_HOT void tn__square_##bits(tn_u##bits *to, tn_i64 pitch, const tn_u##bits *from, tn_i64 step) \
    { \
        tn__line_##bits a[N], b[N]; \
        TN__UNROLL \
        for (int i = 0; i < N; i++) a[i] = *(const tn__line_##bits *)(from + i * step); \
        TN__UNROLL \
        for (int turn = 1; turn < N; turn *= 2) { \
            TN__UNROLL \
            for (int i = 0; i < N / 2; i++) { \
                b[2 * i] = TN__LOW_##bits(a[i], a[i + N / 2]); \
                b[2 * i + 1] = TN__HIGH_##bits(a[i], a[i + N / 2]); \
            } \
            TN__UNROLL \
            for (int i = 0; i < N; i++) a[i] = b[i]; \
        } \
        TN__UNROLL \
        for (int i = 0; i < N; i++) *(tn__line_##bits *)(to + i * pitch) = a[i]; \
    }
#else
#define TN__SQUARE(bits, N) \
    TN_HOT void tn__square_##bits(tn_u##bits *to, tn_i64 pitch, const tn_u##bits *from, tn_i64 step) \
    { \
        for (int j = 0; j < N; j++) \
            for (int i = 0; i < N; i++) to[i * pitch + j] = from[j * step + i]; \
    }
#endif
#define TN__TURN(bits, N) \
    TN__SQUARE(bits, N) \
    TN_FN void tn_transpose_##bits(void *to, tn_i64 pitch, const void *from, tn_i64 step, tn_i64 rows, tn_i64 columns) \
    { \
        tn_u##bits *const t = (tn_u##bits *)to; \
        const tn_u##bits *const f = (const tn_u##bits *)from; \
        const tn_i64 high = rows / N * N, wide = columns / N * N; \
        for (tn_i64 c = 0; c < wide; c += N) { \
            for (tn_i64 r = 0; r < high; r += N) tn__square_##bits(t + r * pitch + c, pitch, f + c * step + r, step); \
            for (tn_i64 r = high; r < rows; r++) \
                for (int j = 0; j < N; j++) t[r * pitch + c + j] = f[(c + j) * step + r]; \
        } \
        for (tn_i64 c = wide; c < columns; c++) \
            for (tn_i64 r = 0; r < rows; r++) t[r * pitch + c] = f[c * step + r]; \
    }
TN__TURN(8, 16)
TN__TURN(16, 8)
TN__TURN(32, 4)
TN__TURN(64, 2)
