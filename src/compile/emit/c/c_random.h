/* SPDX-License-Identifier: MIT */
/*
 * Strips of random numbers, in C: n neighbours from element i on. A block of the generator serves four of 32 bits, two
 * of 64; and what stands alone at both ends is made one by one.
 */
#define TN_WIDE(w, u) (w[2 * (u)] | (tn_u64)w[2 * (u) + 1] << 32)

/*
 * Blocks of the generator. The vectoriser takes neighbours apart for each product of 32 bits; here words lie in the low
 * halves of 64 bits, whose upper ones nobody looks at, and the blocks in an order that unpacking puts right.
 */
TN_FN void tn_random_words(tn_u32 *restrict to, tn_u64 key, tn_u64 first, tn_i64 blocks)
{
    tn_i64 b = 0;
#if defined(__AVX2__) && !defined(__clang__)
    typedef tn_u64 words __attribute__((vector_size(32)));
    typedef tn_u64 stored __attribute__((vector_size(32), aligned(4), may_alias));
    typedef int halves __attribute__((vector_size(32)));
    typedef long long whole __attribute__((vector_size(32)));
#define TN__PRODUCT(c, factor) ((words)__builtin_ia32_pmuludq256((halves)(c), (halves)((words){} + factor)))
    for (; b + 4 <= blocks; b += 4) {
        const tn_u64 at = first + (tn_u64)b;
        words c0 = {at, at + 2, at + 1, at + 3}, c1 = c0 >> 32, c2 = {}, c3 = {};
        tn_u32 k0 = (tn_u32)key, k1 = (tn_u32)(key >> 32);
        _Pragma("GCC unroll 10")
        for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
            words p = TN__PRODUCT(c0, 0xd2511f53ull), q = TN__PRODUCT(c2, 0xcd9e8d57ull);
            c0 = (q >> 32) ^ c1 ^ k0, c1 = q, c2 = (p >> 32) ^ c3 ^ k1, c3 = p;
        }
        whole low = (whole)((c0 & 0xffffffffu) | c1 << 32), high = (whole)((c2 & 0xffffffffu) | c3 << 32);
        *(stored *)(to + 4 * b) = (words)__builtin_ia32_punpcklqdq256(low, high);
        *(stored *)(to + 4 * b + 8) = (words)__builtin_ia32_punpckhqdq256(low, high);
    }
#endif
    TN_INDEPENDENT
    for (tn_i64 j = b; j < blocks; j++) {
        tn_u32 v[4];
        tns_philox(key, first + (tn_u64)j, 0, v);
        to[4 * j] = v[0], to[4 * j + 1] = v[1], to[4 * j + 2] = v[2], to[4 * j + 3] = v[3];
    }
}

#define TN__STRIP(name, suffix, T, each, all) \
    TN_FN void tn_strip_##name##_##suffix(T *restrict to, tn_u64 k, tn_u64 o, tn_u64 i, tn_i64 n) \
    { \
        for (; n > 0 && i % each; n--) *to++ = tns_##name##_##suffix(k, o, i++); \
        tn_u32 words[512]; \
        for (; n >= each; ) { \
            const tn_i64 blocks = n / each < 128 ? n / each : 128; \
            tn_random_words(words, k, o + i / each, blocks); \
            TN_INDEPENDENT \
            for (tn_i64 b = 0; b < blocks; b++) { \
                const tn_u32 *const w = words + 4 * b; \
                all; \
            } \
            to += blocks * each, i += (tn_u64)(blocks * each), n -= blocks * each; \
        } \
        for (tn_i64 j = 0; j < n; j++) to[j] = tns_##name##_##suffix(k, o, i + (tn_u64)j); \
    }
#define TN__FOUR(of) to[4 * b] = of(0), to[4 * b + 1] = of(1), to[4 * b + 2] = of(2), to[4 * b + 3] = of(3)
#define TN__TWO(of) to[2 * b] = of(0), to[2 * b + 1] = of(1)
#define TN__UNIFORM_F32(u) tns__uniform_f32(w[u])
#define TN__NORMAL_F32(u) tns__box_muller_f32(w[u / 2 * 2], w[u / 2 * 2 + 1], u % 2)
#define TN__BITS_U32(u) w[u]
#define TN__UNIFORM_F64(u) tns__uniform_f64(TN_WIDE(w, u))
#define TN__NORMAL_F64(u) tns__box_muller_f64(TN_WIDE(w, 0), TN_WIDE(w, 1), u)
#define TN__BITS_U64(u) TN_WIDE(w, u)
TN__STRIP(random_uniform, f32, tn_f32, 4, (TN__FOUR(TN__UNIFORM_F32)))
TN__STRIP(random_normal, f32, tn_f32, 4, (TN__FOUR(TN__NORMAL_F32)))
TN__STRIP(random_bits, u32, tn_u32, 4, (TN__FOUR(TN__BITS_U32)))
TN__STRIP(random_uniform, f64, tn_f64, 2, (TN__TWO(TN__UNIFORM_F64)))
TN__STRIP(random_normal, f64, tn_f64, 2, (TN__TWO(TN__NORMAL_F64)))
TN__STRIP(random_bits, u64, tn_u64, 2, (TN__TWO(TN__BITS_U64)))
