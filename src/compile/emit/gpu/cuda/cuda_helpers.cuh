/* SPDX-License-Identifier: MIT */
/*
 * What kernels in CUDA C++ may use, behind the scalar prelude and in front of them: failures, waiting for the kernels
 * before, shared memory, vectors of neighbours, unchecked divisions, numbers of other threads.
 */
struct tn_failure { tn_u64 guard, latch, report, run, who; };
#define TN_FAILED(f) (f.guard ? *(const volatile tn_u64 *)f.guard : 0)
#define TN_STOP_IF_FAILED(f) if (TN_FAILED(f)) return

/* A kernel whose threads have so many registers at most; and so many at least, as there is something that would need
 * them if it were ever done. Of one kernel only one bound can be said; a compiler that knows but the other leaves
 * registers as may be. */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define TN_BOUNDS(threads, registers) __maxnreg__(registers)
template <int COUNT> static __device__ __forceinline__ void tn_claim(const tn_failure &f)
{
    if (f.who != ~0ull) return;
    volatile int *const p = (volatile int *)f.report;
    int x[COUNT];
    _Pragma("unroll") for (int i = 0; i < COUNT; i++) x[i] = p[i];
    _Pragma("unroll") for (int i = COUNT - 1; i >= 0; i--) p[x[i]] = i;
}
#else
#define TN_BOUNDS(threads, registers) __launch_bounds__(threads)
template <int COUNT> static __device__ __forceinline__ void tn_claim(const tn_failure &) {}
#endif

/* A kernel may be started while those before it still run: the first of these lets the next one start, and everything
 * behind the second comes after those before; there at the latest the next one may start. */
static __device__ __forceinline__ void tn_let_next_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void tn_take_over(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    tn_let_next_start();
}

/* Blocks of a cluster: which one this is, where another one has what p points to, and a barrier for all their
 * threads. */
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ int tn_rank(void)
{
    int y;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(y));
    return y;
}
template <class T> static __device__ __forceinline__ T *tn_of(int rank, T *p)
{
    T *y;
    asm("mapa.u64 %0, %1, %2;" : "=l"(y) : "l"(p), "r"(rank));
    return y;
}

static __device__ __forceinline__ void tn_join(void)
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
#endif
#define TN_FAULT(fault, operand, index) tn_fail((const tn_failure *)fault, operand, index)
static __device__ __noinline__ void tn_fail(const tn_failure *f, tn_i64 operand, tn_i64 index)
{
    volatile tn_i64 *report = (volatile tn_i64 *)f->report;
    if (atomicCAS((tn_u64 *)f->latch, 0ull, 1ull) != 0)
        return;
    report[1] = (tn_i64)f->run;
    report[2] = (tn_i64)f->who;
    report[3] = operand;
    report[4] = index;
    __threadfence_system();
    report[0] = 1;
}

/* The same memory for all nests of a kernel, which run one after another or in other blocks: at most 8 KiB that the
 * text asks for (see RESERVED in product.c), and what the launch does, the most that one of the nests needs. */
__shared__ __align__(16) unsigned char tn_parts[2][1024]; /* of rows: two stretches, an element a warp */
__shared__ tn_i64 tn_places[2][32];
__shared__ tn_i64 tn_lines[128]; /* of a product's tile, where they are gathered */
extern __shared__ __align__(16) unsigned char tn_shared[];

/* All blocks of a cluster have begun; has one of them seen a failure? Then none goes on. */
#if __CUDA_ARCH__ >= 900
template <int BLOCKS> static __device__ __forceinline__ bool tn_begin_together(const tn_failure &f)
{
    tn_i64 failed = 0;
    tn_join();
    if (!f.guard) return false;
    if (threadIdx.x < BLOCKS) *tn_of(threadIdx.x, &tn_lines[tn_rank()]) = *(const volatile tn_u64 *)f.guard != 0;
    tn_join();
    for (int k = 0; k < BLOCKS; k++) failed |= tn_lines[k];
    return failed;
}
#endif

template <class T, int V> struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) tn_pack { T e[V]; };
template <class T> TN_HOT bool tn_aligned(const T *p, int bytes) { return (tn_u64)p % (tn_u64)bytes == 0; }

/* `live` elements of a vector; those beyond are 0 */
template <class T, int V, class L> TN_HOT void tn_load(tn_pack<T, V> &to, const T *p, L live, bool whole)
{
    if (whole && live >= V) {
        to = *(const tn_pack<T, V> *)p;
        return;
    }
#pragma unroll
    for (int u = 0; u < V; u++) to.e[u] = u < live ? p[u] : T();
}

template <class T, int V, class L, class I> TN_HOT void tn_load_apart(tn_pack<T, V> &to, const T *p, L live, I stride)
{
#pragma unroll
    for (int u = 0; u < V; u++) to.e[u] = u < live ? p[u * stride] : T();
}

template <class T, int V, class L> TN_HOT void tn_store(const tn_pack<T, V> &from, T *p, L live, bool whole)
{
    if (whole && live >= V) {
        *(tn_pack<T, V> *)p = from;
        return;
    }
#pragma unroll
    for (int u = 0; u < V; u++) if (u < live) p[u] = from.e[u];
}

template <class T, int V, class L, class I>
TN_HOT void tn_store_apart(const tn_pack<T, V> &from, T *p, L live, I stride)
{
#pragma unroll
    for (int u = 0; u < V; u++) if (u < live) p[u * stride] = from.e[u];
}

/* Correctly rounded (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990)
 * while nothing on the way is subnormal or infinite, else `sure` is cleared. */
TN_HOT tn_f32 tn_unchecked_sqrt(tn_f32 x, bool &sure)
{
    const tn_f32 y = tns__inverse_root_f32(x), s = x * y, r = fmaf(fmaf(-s, s, x), 0.5f * fabsf(y), s);
    sure &= r >= 0x1p-50f;
    return r;
}

TN_HOT tn_f32 tn_inverse(tn_f32 b) { const tn_f32 x = tns__inverse_f32(b); return fmaf(fmaf(-b, x, 1.0f), x, x); }
TN_HOT bool tn_divides(tn_f32 b) { return (fabsf(b) >= 0x1p-40f) & (fabsf(b) <= 0x1p60f); }

/* y: the inverse of b, which divides */
TN_HOT tn_f32 tn_unchecked_divide_by(tn_f32 a, tn_f32 b, tn_f32 y, bool &sure)
{
    const tn_f32 q = a * y, r = fmaf(fmaf(-b, q, a), y, q);
    sure &= (fabsf(r) >= 0x1p-60f) | (tns_bits_f32(a) == 0);
    return r;
}

TN_HOT tn_f32 tn_unchecked_divide(tn_f32 a, tn_f32 b, bool &sure)
{
    sure &= tn_divides(b);
    return tn_unchecked_divide_by(a, b, tn_inverse(b), sure);
}

TN_HOT tn_f32 tn_unchecked_reciprocal(tn_f32 b, bool &sure)
{
    sure &= (fabsf(b) >= 0x1p-100f) & (fabsf(b) <= 0x1p100f);
    return tn_inverse(b);
}

/* Of numbers: how many they are, and the sums of what they exceed `from` by, and of its squares. `from` is one of them,
 * or near their mean: so squares keep their digits however far the numbers are from 0, and no mean has to be known
 * first. A number more; two of these in one, whose squares are those of both and what the means' difference adds (Chan,
 * Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979); the sum of
 * squares about the mean. */
struct tn_deviations { tn_f32 count, from, sum, squares; };

/* `from` is the second number, as the first one of all is more often unlike the others; then what the first one exceeds
 * it by comes in, before it is what the number does. */
TN_HOT tn_deviations tn_deviate(const tn_deviations &t, tn_f32 x)
{
    const tn_f32 from = t.count < 2 ? x : t.from, d = t.count == 1 ? t.from - x : x - from;
    return {t.count + 1, from, t.sum + d, fmaf(d, d, t.squares)};
}

/* mean: t.sum / t.count. Squares that have overflown stay infinite; numbers that are infinite make them none, as does a
 * sum that has overflown. */
TN_HOT tn_f32 tn_squares_about(const tn_deviations &t, tn_f32 mean)
{ return t.squares - fminf(t.sum * mean, 0x1.fffffep127f) + (t.sum - t.sum); }

TN_HOT tn_deviations tn_deviate(const tn_deviations &a, const tn_deviations &b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    const tn_f32 count = a.count + b.count, share = b.count * tn_inverse(count);
    const tn_f32 mean = a.sum * tn_inverse(a.count), other = b.sum * tn_inverse(b.count);
    const tn_f32 apart = (b.from - a.from) + (other - mean);
    const tn_f32 step = mean + apart * share, from = a.from + step; /* to the mean of all */
    const tn_f32 taken = from - a.from, rest = (a.from - (from - taken)) + (step - taken); /* that is not in `from` */
    const tn_f32 squares = tn_squares_about(a, mean) + tn_squares_about(b, other) + apart * apart * (a.count * share);
    return {count, from, count * rest, squares + count * rest * rest};
}

TN_HOT tn_f32 tn_squares(const tn_deviations &t)
{
    const tn_f32 squares = t.count == 0 ? 0 : tn_squares_about(t, t.sum / t.count);
    return squares < 0 ? 0 : squares;
}

TN_HOT tn_i32 tn_quotient(tn_i32 x, tn_i64 d, tn_i64 m, tn_i64 shift)
{ return (tn_i32)((__umulhi((tn_u32)x, (tn_u32)m) + (tn_u32)x) >> (int)shift); }
TN_HOT tn_i64 tn_quotient(tn_i64 x, tn_i64 d, tn_i64 m, tn_i64 shift) { return x / d; }
#define TN_SHUFFLE(name, shuffle) \
    template <class T> TN_HOT T name \
    { \
        if constexpr (sizeof(T) < 4) { \
            const tn_u32 word = (tn_u32)x; \
            return (T)shuffle; \
        } else { \
            struct { tn_u32 word[sizeof(T) / 4]; } words; \
            memcpy(&words, &x, sizeof x); \
            _Pragma("unroll") for (int i = 0; i < (int)(sizeof(T) / 4); i++) { \
                const tn_u32 word = words.word[i]; \
                words.word[i] = shuffle; \
            } \
            memcpy(&x, &words, sizeof x); \
            return x; \
        } \
    }
TN_SHUFFLE(tn_down(T x, int h, int width), __shfl_down_sync(0xffffffffu, word, h, width))
TN_SHUFFLE(tn_first(T x, int width), __shfl_sync(0xffffffffu, word, 0, width))
