/* SPDX-License-Identifier: MIT */
/*
 * What kernels in CUDA C++ may use; this text stands after the scalar prelude and before the kernels. It has failures,
 * the wait for the kernels before, shared memory, vectors, unchecked divisions, values of other threads.
 */
struct tn_failure { tn_u64 guard, latch, report, run, who; };
#define TN_FAILED(f) (f.guard ? *(const volatile tn_u64 *)f.guard : 0)
#define TN_STOP_IF_FAILED(f) if (TN_FAILED(f)) return

/* Attributes for a kernel whose threads may use at most so many registers; and for one that is to be given at least so
 * many, as it would use them if something rare were done. Only one of these bounds can be given for a kernel; a
 * compiler that has only the other chooses the number of registers itself. */
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

/* A kernel may be started while the kernels before it still run (programmatic dependent launch). The first of these
 * functions lets the next kernel start. Everything after the second one comes after the kernels before; there at the
 * latest the next kernel may start. */
static __device__ __forceinline__ void tn_let_next_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void tn_await_dependencies(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    tn_let_next_start();
}

/* For clusters of blocks: this block's rank, the address in another block's shared memory of what p points to in this
 * one's, and a barrier for all threads of the cluster. */
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

/* Shared memory that all nests of a kernel use, as these run one after another or in different blocks: at most 8 KiB of
 * fixed size (see RESERVED in product.c), and the dynamic part, as much as the neediest nest takes. */
__shared__ __align__(16) unsigned char tn_parts[2][1024]; /* for combining rows: two areas, an element a warp */
__shared__ tn_i64 tn_places[2][32];
__shared__ tn_i64 tn_lines[128]; /* positions of a product tile's gathered lines */
extern __shared__ __align__(16) unsigned char tn_shared[];

/* Waits until all blocks of the cluster have begun, and tells whether one of them has seen a failure: then all of them
 * stop. */
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

/* Loads `live` elements of a vector; the others become 0. */
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
 * if no intermediate value is subnormal or infinite; else `sure` is cleared. */
TN_HOT tn_f32 tn_unchecked_sqrt(tn_f32 x, bool &sure)
{
    const tn_f32 y = tns__inverse_root_f32(x), s = x * y, r = fmaf(fmaf(-s, s, x), 0.5f * fabsf(y), s);
    sure &= r >= 0x1p-50f;
    return r;
}

TN_HOT tn_f32 tn_inverse(tn_f32 b) { const tn_f32 x = tns__inverse_f32(b); return fmaf(fmaf(-b, x, 1.0f), x, x); }
TN_HOT bool tn_divides(tn_f32 b) { return (fabsf(b) >= 0x1p-40f) & (fabsf(b) <= 0x1p60f); }

/* a / b; y is the inverse of b. */
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

/* An accumulator for variances: how many numbers there are, the sum of their differences from `from`, and the sum of
 * the squares of these differences. `from` is one of the numbers, or near their mean, so that the squares keep their
 * digits however far the numbers are from 0, and no mean has to be known first. The functions below add a number;
 * combine two accumulators (the squares of both, and what the difference of the means adds: Chan, Golub and LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances", 1979); and give the sum of squares about
 * the mean. */
struct tn_deviations { tn_f32 count, from, sum, squares; };

/* `from` becomes the second number, as the very first one is often unlike the others. The first number's difference
 * from it is added then, before the second one's. */
TN_HOT tn_deviations tn_deviate(const tn_deviations &t, tn_f32 x)
{
    const tn_f32 from = t.count < 2 ? x : t.from, d = t.count == 1 ? t.from - x : x - from;
    return {t.count + 1, from, t.sum + d, fmaf(d, d, t.squares)};
}

/* mean: t.sum / t.count. If the squares overflowed, the result is infinite; if a number was infinite, or the sum
 * overflowed, it is NaN. */
TN_HOT tn_f32 tn_squares_about(const tn_deviations &t, tn_f32 mean)
{ return t.squares - fminf(t.sum * mean, 0x1.fffffep127f) + (t.sum - t.sum); }

TN_HOT tn_deviations tn_deviate(const tn_deviations &a, const tn_deviations &b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    const tn_f32 count = a.count + b.count, share = b.count * tn_inverse(count);
    const tn_f32 mean = a.sum * tn_inverse(a.count), other = b.sum * tn_inverse(b.count);
    const tn_f32 apart = (b.from - a.from) + (other - mean);
    const tn_f32 step = mean + apart * share, from = a.from + step; /* to the mean of both */
    const tn_f32 taken = from - a.from, rest = (a.from - (from - taken)) + (step - taken); /* the part of the step
                                                                                              that rounding `from`
                                                                                              lost */
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
