/* SPDX-License-Identifier: MIT */
/*
 * The helper functions that gpu/form.h asks of a language, in OpenCL C 1.2, with macros in place of templates. None of
 * them is fast: vectors are moved element by element, lanes exchange values through shared memory, divisions are
 * IEEE's.
 */

/* Shared memory of fixed size, which kernels declare and hand to their nests: OpenCL has none outside of kernels. */
typedef struct tn_together {
    unsigned char parts[2][1024];
    tn_i64 places[2][32];
    tn_i64 exchange[2 * 1024]; /* 16 bytes a thread */
} tn_together;
#define tn_parts  (tn_local->parts)
#define tn_places (tn_local->places)

/* The first work-item of a launch to meet an index out of range reports it; fault[2] is the latch. */
#define TN_FAULT(fault, operand, index) tn_fail(fault, operand, index)
static void tn_fail(__global tn_i64 *fault, tn_i64 operand, tn_i64 index)
{
    if (atomic_cmpxchg((volatile __global int *)(fault + 2), 0, 1) != 0)
        return;
    fault[0] = operand;
    fault[1] = index;
}

/* ---- vectors ---- */

typedef struct tn_deviations { tn_f32 count, from, sum, squares; } tn_deviations;
#define tn_deviations() ((tn_deviations){0, 0, 0, 0})

#define TN_VECTOR(T, V) typedef struct tn_pack_##T##_##V { T e[V]; } tn_pack_##T##_##V;
#define TN_VECTORS(T) TN_VECTOR(T, 1) TN_VECTOR(T, 2) TN_VECTOR(T, 4) TN_VECTOR(T, 8)
TN_VECTORS(tn_i8) TN_VECTORS(tn_i16) TN_VECTORS(tn_i32) TN_VECTORS(tn_i64)
TN_VECTORS(tn_u8) TN_VECTORS(tn_u16) TN_VECTORS(tn_u32) TN_VECTORS(tn_u64)
TN_VECTORS(tn_b8) TN_VECTORS(tn_f16) TN_VECTORS(tn_bf16) TN_VECTORS(tn_f32) TN_VECTORS(tn_f64)
TN_VECTORS(tn_deviations)

#define TN_EACH(v, u) for (int u = 0; u < (int)(sizeof (v).e / sizeof (v).e[0]); u++)
#define tn_aligned(p, bytes) true
#define tn_load(to, from, live, whole) TN_EACH(to, u_) (to).e[u_] = u_ < (live) ? (from)[u_] : 0
#define tn_load_apart(to, from, live, stride) TN_EACH(to, u_) (to).e[u_] = u_ < (live) ? (from)[u_ * (stride)] : 0
#define tn_store(from, to, live, whole) TN_EACH(from, u_) if (u_ < (live)) (to)[u_] = (from).e[u_]
#define tn_store_apart(from, to, live, stride) TN_EACH(from, u_) if (u_ < (live)) (to)[u_ * (stride)] = (from).e[u_]

/* d is 0 where there is nothing to divide, as of no rows. */
#define tn_quotient(x, d, m, shift) ((x) / ((ix)(d) ? (ix)(d) : 1))

/* ---- divisions ---- */

#define tn_inverse(b) (1.0f / (b))
#define tn_divides(b) true
#define tn_unchecked_sqrt(x, sure) tn_sqrtf(x)
#define tn_unchecked_divide(a, b, sure) ((a) / (b))
#define tn_unchecked_divide_by(a, b, y, sure) ((a) / (b))
#define tn_unchecked_reciprocal(b, sure) (1.0f / (b))

/* ---- deviations: as in cuda_helpers.cuh, which says why ---- */

#define TN_ANY static inline __attribute__((overloadable, unused))
TN_ANY tn_deviations tn_deviate(tn_deviations t, tn_f32 x)
{
    const tn_f32 from = t.count < 2 ? x : t.from, d = t.count == 1 ? t.from - x : x - from;
    return (tn_deviations){t.count + 1, from, t.sum + d, fma(d, d, t.squares)};
}

TN_ANY tn_f32 tn_squares_about(tn_deviations t, tn_f32 mean)
{ return t.squares - fmin(t.sum * mean, 0x1.fffffep127f) + (t.sum - t.sum); }

TN_ANY tn_deviations tn_deviate(tn_deviations a, tn_deviations b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    const tn_f32 count = a.count + b.count, share = b.count / count, mean = a.sum / a.count;
    const tn_f32 apart = (b.from - a.from) + (b.sum / b.count - mean);
    const tn_f32 step = mean + apart * share, from = a.from + step;
    const tn_f32 taken = from - a.from, rest = (a.from - (from - taken)) + (step - taken);
    const tn_f32 squares = tn_squares_about(a, mean) + tn_squares_about(b, b.sum / b.count) +
                           apart * apart * (a.count * share);
    return (tn_deviations){count, from, count * rest, squares + count * rest * rest};
}

TN_ANY tn_f32 tn_squares(tn_deviations t)
{
    const tn_f32 squares = t.count == 0 ? 0 : tn_squares_about(t, t.sum / t.count);
    return squares < 0 ? 0 : squares;
}

/* ---- what threads pass to others: all threads of a block come here ---- */

#define TN_EXCHANGE(T) \
    TN_ANY T tn_other(T x, int from, __local tn_together *l) \
    { \
        __local T *const all = (__local T *)l->exchange; \
        all[get_local_id(0)] = x; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        const T y = all[from]; \
        barrier(CLK_LOCAL_MEM_FENCE); \
        return y; \
    }
TN_EXCHANGE(tn_i8) TN_EXCHANGE(tn_i16) TN_EXCHANGE(tn_i32) TN_EXCHANGE(tn_i64)
TN_EXCHANGE(tn_u8) TN_EXCHANGE(tn_u16) TN_EXCHANGE(tn_u32) TN_EXCHANGE(tn_u64)
TN_EXCHANGE(tn_f32) TN_EXCHANGE(tn_f64) TN_EXCHANGE(tn_deviations)

static inline int tn_behind(int h, int width)
{
    const int t = (int)get_local_id(0);
    return t % width + h < width ? t + h : t;
}
#define tn_down(x, h, width) tn_other(x, tn_behind(h, width), tn_local)
#define tn_first(x, width) tn_other(x, (int)get_local_id(0) / (width) * (width), tn_local)
