/* SPDX-License-Identifier: MIT */
/*
 * Sorting rows of up to LANES * EACH_LANE elements, each of which is read once and written once: LANES threads have a
 * row in EACH_LANE registers apiece. Elements come in any order, as the row's memory is best read; what is behind the
 * row's end comes last.
 *
 * Each thread sorts its own (Batcher's merges of what is odd and even, the fewest comparisons of the plain networks;
 * Knuth, The Art of Computer Programming, volume 3, 5.2.2), then runs of neighbours are merged by bitonic networks:
 * elements are compared with their mirror images in the other run, and then with those half as far away each time. So
 * the lower one always goes to the lower place, and no direction is kept. What lies in one thread is compared at no
 * more cost than that; other lanes' elements come by shuffles, other warps' through shared memory. In the end all go
 * through shared memory once, so that neighbours write neighbours.
 *
 * The host puts in front of it what sort_keys.cuh needs, perhaps POSITIONS (the positions that sort are wanted), and
 *     EACH_LANE, LANES, THREADS    powers of two; THREADS of a block, at least LANES, whole warps
 */
#define ROWS (THREADS / LANES)
#define SIZE (LANES * EACH_LANE)

/* What is compared: no two with positions are equal, so that equal elements keep their order, and all others that are
 * equal are the same. NOTHING comes after all. */
#if defined(POSITIONS) && E_BITS == 64
struct __align__(16) item {
    E key;
    u32 position;
};
#define NOTHING (item{~(E)0, ~0u})
typedef u32 result;
#elif defined(POSITIONS) && E_BITS == 32
typedef u64 item;
#define NOTHING (~(item)0)
typedef u32 result;
#elif E_BITS == 64
typedef u64 item;
#define NOTHING (~(item)0)
typedef u64 result;
#else
typedef u32 item;
#define NOTHING (~(item)0)
typedef u32 result;
#endif

struct sort_rows_work {
    const E *in;
    E *out;                 /* i64 with POSITIONS */
    i64 n;
    i64 from_step, to_step;
    const u64 *guard;       /* NULL, or not 0 after a failure */
};

/* Shared memory is used for what comes from other warps, and for results. A hole behind each row of banks lets threads
 * write their neighbouring results at once. */
#define BANKS (sizeof(result) == 8 ? 16 : 32)
union sort_rows_shared {
    item items[LANES > 32 ? THREADS * EACH_LANE : 1];
    result results[ROWS][SIZE + SIZE / BANKS];
};

#if defined(POSITIONS) && E_BITS == 64
static __device__ __forceinline__ item item_of(E x, u32 position) { return item{key_of(x), position}; }
static __device__ __forceinline__ result result_of(const item &x) { return x.position; }
static __device__ __forceinline__ bool below(const item &a, const item &b)
{
    return (a.key < b.key) | ((a.key == b.key) & (a.position < b.position)); /* no &&, which would branch */
}
static __device__ __forceinline__ item other_lanes(const item &x, int lanes)
{
    return item{__shfl_xor_sync(~0u, x.key, lanes), __shfl_xor_sync(~0u, x.position, lanes)};
}
static __device__ __forceinline__ item chosen(bool first, const item &a, const item &b)
{
    return item{first ? a.key : b.key, first ? a.position : b.position}; /* member by member: the compiler would copy
                                                                            the struct byte by byte */
}
#else
static __device__ __forceinline__ item item_of(E x, u32 position)
{
#ifdef POSITIONS
    return (item)key_of(x) << (sizeof(item) * 4) | position;
#else
    return moved(x);
#endif
}
static __device__ __forceinline__ result result_of(item x)
{
#ifdef POSITIONS
    return (result)(x & (((item)1 << (sizeof(item) * 4)) - 1));
#else
    return x;
#endif
}
static __device__ __forceinline__ bool below(item a, item b) { return a < b; }
static __device__ __forceinline__ item other_lanes(item x, int lanes) { return __shfl_xor_sync(~0u, x, lanes); }
static __device__ __forceinline__ item chosen(bool first, item a, item b) { return first ? a : b; }
#endif

/* A barrier for the threads of a row. */
static __device__ __forceinline__ void meet()
{
    if (LANES > 32)
        __syncthreads();
    else
        __syncwarp();
}

static __device__ __forceinline__ void put_in_order(item &a, item &b)
{
    const bool swap = below(b, a);
    const item low = chosen(swap, b, a);
    b = chosen(swap, a, b);
    a = low;
}

/* The steps of a merge of runs of RUN elements, beginning with the one that compares elements APART from each other. */
template <int RUN, int APART> static __device__ __forceinline__ void merge_runs(item (&x)[EACH_LANE])
{
#pragma unroll
    for (int i = APART % RUN; i < EACH_LANE - APART; i++)
        if ((i - APART % RUN) / APART % 2 == 0 && i / (2 * RUN) == (i + APART) / (2 * RUN))
            put_in_order(x[i], x[i + APART]);
    if constexpr (APART > 1)
        merge_runs<RUN, APART / 2>(x);
}

template <int RUN> static __device__ __forceinline__ void sort_own(item (&x)[EACH_LANE])
{
    if constexpr (RUN < EACH_LANE) {
        merge_runs<RUN, RUN>(x);
        sort_own<2 * RUN>(x);
    }
}

static __device__ __forceinline__ void merge_own(item (&x)[EACH_LANE])
{
#pragma unroll
    for (int apart = EACH_LANE / 2; apart > 0; apart /= 2)
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            if (!(i & apart))
                put_in_order(x[i], x[i + apart]);
}

/* The lower one of two elements, or the higher one. */
static __device__ __forceinline__ item kept(const item &x, const item &y, bool higher)
{
    return chosen(below(x, y) != higher, x, y);
}

/* Compares each element with one of the thread whose number differs in the bits `threads`: in the same place, or in the
 * mirror image of it. */
template <bool MIRRORED>
static __device__ __forceinline__ void compare(item (&x)[EACH_LANE], int threads, bool higher, item *shared)
{
    if (LANES > 32 && threads >= 32) {
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            shared[i * THREADS + threadIdx.x] = x[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            x[i] = kept(x[i], shared[(MIRRORED ? EACH_LANE - 1 - i : i) * THREADS + (threadIdx.x ^ threads)],
                        higher);
        __syncthreads();
    } else if (MIRRORED) {
#pragma unroll
        for (int i = 0; i < (EACH_LANE + 1) / 2; i++) {
            const item a = other_lanes(x[EACH_LANE - 1 - i], threads), b = other_lanes(x[i], threads);
            x[i] = kept(x[i], a, higher);
            x[EACH_LANE - 1 - i] = kept(x[EACH_LANE - 1 - i], b, higher);
        }
    } else {
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            x[i] = kept(x[i], other_lanes(x[i], threads), higher);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_rows(const __grid_constant__ walk w,
                                                                const __grid_constant__ sort_rows_work work)
{
    __shared__ sort_rows_shared shared;
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    const int lane = threadIdx.x % LANES;
    result *results = shared.results[threadIdx.x / LANES];
    for (i64 first = (i64)blockIdx.x * ROWS; first < w.size; first += (i64)gridDim.x * ROWS) {
        const i64 row = first + threadIdx.x / LANES;
        const int n = row < w.size ? (int)work.n : 0; /* lanes without a row take part in the shuffles and barriers */
        i64 at[3];
        places(w, row, at);
        const E *from = work.in + at[1] + lane * work.from_step;
        E given[EACH_LANE];
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            given[i] = i * LANES + lane < n ? from[i * LANES * work.from_step] : (E)0;
        item x[EACH_LANE];
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            x[i] = chosen(i * LANES + lane < n, item_of(given[i], i * LANES + lane), NOTHING);

        sort_own<1>(x);
#pragma unroll 1
        for (int run = 1; run < LANES; run *= 2) {
            compare<true>(x, 2 * run - 1, lane & run, shared.items);
#pragma unroll 1
            for (int apart = run / 2; apart > 0; apart /= 2)
                compare<false>(x, apart, lane & apart, shared.items);
            merge_own(x);
        }

#pragma unroll
        for (int i = 0; i < EACH_LANE; i++)
            results[lane * EACH_LANE + i + (lane * EACH_LANE + i) / BANKS] = result_of(x[i]);
        meet();
        const i64 step = work.to_step;
#pragma unroll
        for (int i = 0; i < EACH_LANE; i++) {
            const int j = i * LANES + lane;
            if (j < n) {
                const result y = results[j + j / BANKS];
#ifdef POSITIONS
                ((i64 *)work.out)[at[0] + j * step] = y;
#else
                work.out[at[0] + j * step] = moved_back((E)y);
#endif
            }
        }
        meet();
    }
}
