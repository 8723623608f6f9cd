/* SPDX-License-Identifier: MIT */
/*
 * Strips of random numbers, in C: n neighbours from element i on. A block of the generator serves four of 32 bits, two
 * of 64; and what stands alone at both ends is made one by one.
 */
#define TN_WIDE(w, u) (w[2 * (u)] | (tn_u64)w[2 * (u) + 1] << 32)
#define TN__FOUR(of) TN__TWO(of), to[4 * b + 2] = of(2), to[4 * b + 3] = of(3)
#define TN__TWO(of) to[TN__EACH * b] = of(0), to[TN__EACH * b + 1] = of(1)
#define TN__STRIP(name, suffix, T, each, all) \
    TN_FN void tn_strip_##name##_##suffix(T *to, tn_u64 k, tn_u64 o, tn_u64 i, tn_i64 n) \
    { \
        for (; n > 0 && i % each; n--) *to++ = tns_##name##_##suffix(k, o, i++); \
        tn_i64 blocks = n / each; \
        tn_u64 first = o + i / each; \
        TN_INDEPENDENT \
        for (tn_i64 b = 0; b < blocks; b++) { \
            tn_u32 w[4]; \
            tns_philox(k, first + (tn_u64)b, 0, w); \
            all; \
        } \
        for (tn_i64 j = blocks * each; j < n; j++) to[j] = tns_##name##_##suffix(k, o, i + (tn_u64)j); \
    }
#define TN__UNIFORM_F32(u) tns__uniform_f32(w[u])
#define TN__NORMAL_F32(u) tns__box_muller_f32(w[u / 2 * 2], w[u / 2 * 2 + 1], u % 2)
#define TN__BITS_U32(u) w[u]
#define TN__UNIFORM_F64(u) tns__uniform_f64(TN_WIDE(w, u))
#define TN__NORMAL_F64(u) tns__box_muller_f64(TN_WIDE(w, 0), TN_WIDE(w, 1), u)
#define TN__BITS_U64(u) TN_WIDE(w, u)
#define TN__EACH 4
TN__STRIP(random_uniform, f32, tn_f32, 4, (TN__FOUR(TN__UNIFORM_F32)))
TN__STRIP(random_normal, f32, tn_f32, 4, (TN__FOUR(TN__NORMAL_F32)))
TN__STRIP(random_bits, u32, tn_u32, 4, (TN__FOUR(TN__BITS_U32)))
#undef TN__EACH
#define TN__EACH 2
TN__STRIP(random_uniform, f64, tn_f64, 2, (TN__TWO(TN__UNIFORM_F64)))
TN__STRIP(random_normal, f64, tn_f64, 2, (TN__TWO(TN__NORMAL_F64)))
TN__STRIP(random_bits, u64, tn_u64, 2, (TN__TWO(TN__BITS_U64)))
#undef TN__EACH
