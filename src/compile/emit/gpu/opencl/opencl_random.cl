/* SPDX-License-Identifier: MIT */
/* Random numbers in vectors, in OpenCL C: each element is drawn by itself, so that no vector has to be drawn again. */
#define TN_RANDOM(name, suffix, T) \
    TN_ANY T tn_##name##_at(T like, tn_u64 k, tn_u64 o, tn_u64 i) { return tns_##name##_##suffix(k, o, i); }
TN_RANDOM(random_uniform, f32, tn_f32)
TN_RANDOM(random_uniform, f64, tn_f64)
TN_RANDOM(random_normal, f32, tn_f32)
TN_RANDOM(random_normal, f64, tn_f64)
TN_RANDOM(random_bits, u32, tn_u32)
TN_RANDOM(random_bits, u64, tn_u64)

#define TN_RANDOMS(at, to, k, o, i) TN_EACH(to, u_) (to).e[u_] = at((__typeof__((to).e[0]))0, k, o, (i) + u_)
#define tn_random_uniform(to, k, o, i) TN_RANDOMS(tn_random_uniform_at, to, k, o, i)
#define tn_random_normal(to, k, o, i) TN_RANDOMS(tn_random_normal_at, to, k, o, i)
#define tn_random_bits(to, k, o, i) TN_RANDOMS(tn_random_bits_at, to, k, o, i)
#define tn_random_uniform_apart(to, k, o, i, carries)
#define tn_random_normal_apart(to, k, o, i, carries)
#define tn_random_bits_apart(to, k, o, i, carries)
