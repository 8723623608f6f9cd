/* SPDX-License-Identifier: MIT */
/*
 * Random numbers in vectors, in CUDA C++.
 *
 * Elements i, i + 1, ... of a random stream: a block of the generator serves four of 32 bits, two of 64. tn_<name>
 * draws a vector whose i begins a block, and whose counters have the same upper half, so that what the generator
 * computes from that is the same in all threads. Where one of these does not hold, tn_<name>_apart draws the vector
 * again; it is not inlined, as that is rare.
 */
#define TN_WIDE(w, u) (w[2 * (u)] | (tn_u64)w[2 * (u) + 1] << 32)
TN_HOT tn_u64 tn_near(tn_u64 o, tn_u64 block) { return o >> 32 << 32 | (tn_u32)((tn_u32)o + (tn_u32)block); }
#define TN_RANDOM(name, suffix, T, each, of) \
    template <int V> TN_HOT void tn_##name(tn_pack<T, V> &to, tn_u64 k, tn_u64 o, tn_u64 i) \
    { \
        tn_u32 w[4]; \
        _Pragma("unroll") for (int u = 0; u < V; u++) { \
            if (u % each == 0) tns_philox(k, tn_near(o, i / each + u / each), 0, w); \
            to.e[u] = of; \
        } \
    } \
    static __device__ __noinline__ __attribute__((unused)) T tn_##name##_at(tn_u64 k, tn_u64 o, tn_u64 i, T) \
    { \
        return tns_##name##_##suffix(k, o, i); \
    } \
    template <int V> TN_HOT void tn_##name##_apart(tn_pack<T, V> &to, tn_u64 k, tn_u64 o, tn_u64 i, bool carries) \
    { \
        if (i % each == 0 && !carries) return; \
        _Pragma("unroll") for (int u = 0; u < V; u++) to.e[u] = tn_##name##_at(k, o, i + u, T()); \
    }
TN_RANDOM(random_uniform, f32, tn_f32, 4, tns__uniform_f32(w[u % 4]))
TN_RANDOM(random_uniform, f64, tn_f64, 2, tns__uniform_f64(TN_WIDE(w, u % 2)))
TN_RANDOM(random_normal, f32, tn_f32, 4, tns__box_muller_f32(w[u % 4 / 2 * 2], w[u % 4 / 2 * 2 + 1], u % 2))
TN_RANDOM(random_normal, f64, tn_f64, 2, tns__box_muller_f64(TN_WIDE(w, 0), TN_WIDE(w, 1), u % 2))
TN_RANDOM(random_bits, u32, tn_u32, 4, w[u % 4])
TN_RANDOM(random_bits, u64, tn_u64, 2, TN_WIDE(w, u % 2))
