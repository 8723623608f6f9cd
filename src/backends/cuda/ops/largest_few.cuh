/* SPDX-License-Identifier: MIT */
/*
 * The positions of the `most` largest elements of rows, at most 32, in the order of largest.cuh: the greatest first, of
 * equal ones those at higher positions.
 *
 *     largest_few    a warp finds those of a row. Lane k keeps the element that is number k of what was seen so far
 *
 * The warp goes from the row's end to its beginning, TURN elements at a time, EACH_LANE of each lane, which are in
 * flight together and stay in registers. Of the first turn, the lanes' own greatest are put in order (Batcher's bitonic
 * network, by shuffles). Then the last one wanted is a bar: others have to be above it, and few are, where the large
 * ones are spread over the lanes. Each is put in its place, which raises the bar. As elements are met backwards, of
 * equal ones those met before are greater, and in later turns keys alone tell that one is not above the bar. What may
 * be, a lane reads again: it cannot find registers by number.
 *
 * A row shorter than a turn has places before its beginning, of the lowest key and at negative positions: below all
 * elements.
 *
 * The host puts in front of it what sort_keys.cuh needs, and EACH_LANE, at most 32.
 */
#define WARPS 4
#define BLOCKS (E_BITS == 64 ? 7 : 8) /* of a multiprocessor: as many as leave a lane's elements in registers */
#define TURN (32 * EACH_LANE)

#if E_BITS == 64
typedef u64 word;
#else
typedef u32 word;
#endif

/* What no element is below. */
#if defined(KEY_SIGNED)
#define LOWEST ((E)1 << (E_BITS - 1))
#elif defined(KEY_FLOAT)
#define LOWEST ((E)1 << (E_BITS - 1) | INFINITE_BITS)
#else
#define LOWEST 0
#endif

struct few_work {
    const E *from;
    i64 *to;
    i64 n, most;            /* n: below 2^31 */
    i64 from_step, to_step;
    const u64 *guard;       /* NULL, or not 0 after a failure */
};

struct element {
    word key;
    int position;
};

/* A row, and what its warp has found in it. */
struct found {
    const E *from;
    i64 step;
    int lane, most;
    element own, bar;       /* number `lane`, and the last one wanted */
};

static __device__ __forceinline__ bool below(const element &a, const element &b)
{
    return (a.key < b.key) | ((a.key == b.key) & (a.position < b.position)); /* && would branch */
}

static __device__ __forceinline__ element of_lane(const element &e, int lane)
{
    return {__shfl_sync(~0u, e.key, lane), __shfl_sync(~0u, e.position, lane)};
}

static __device__ __forceinline__ void read_apart(word *x, const found &f, i64 step, int first)
{
    const E *from = f.from + first * step;
    E e[EACH_LANE];
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++, from += 32 * step)
        e[i] = first + i * 32 >= 0 ? *from : (E)LOWEST;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++)
        x[i] = key_of(e[i]);
}

/* The keys of a turn. Of neighbours in memory, all are at constants from the first one's address. */
static __device__ __forceinline__ void read(word *x, const found &f, int begin)
{
    if (f.step == 1)
        read_apart(x, f, 1, begin + f.lane);
    else
        read_apart(x, f, f.step, begin + f.lane);
}

/* The lane's greatest, by its number. */
static __device__ __forceinline__ int greatest(const word *x, word &key)
{
    int number = 0;
    key = x[0];
#pragma unroll
    for (int i = 1; i < EACH_LANE; i++) {
        number = x[i] >= key ? i : number;
        key = x[i] >= key ? x[i] : key;
    }
    return number;
}

/* The numbers of those whose keys are greater, or equal where that is asked for, as bits. */
template <bool EQUAL> static __device__ __forceinline__ u32 reaching(const word *x, word key)
{
    u32 numbers = 0;
#pragma unroll
    for (int i = 0; i < EACH_LANE; i++)
        numbers |= (EQUAL ? x[i] >= key : x[i] > key) ? 1u << i : 0;
    return numbers;
}

/* The lanes' elements in order, the greatest first. */
static __device__ __forceinline__ element in_order(element own, int lane)
{
#pragma unroll
    for (int run = 2; run <= 32; run *= 2)
#pragma unroll
        for (int apart = run / 2; apart > 0; apart /= 2) {
            const element other = of_lane(own, lane ^ apart);
            const bool greater = !(lane & apart) == !(lane & run);
            const bool goes = below(own, other) == greater;
            own.key = goes ? other.key : own.key;
            own.position = goes ? other.position : own.position;
        }
    return own;
}

/* Those of a lane's `numbers` that are above the bar come in. */
static __device__ __forceinline__ void put_in(found &f, u32 numbers, int begin)
{
    const element nothing = {0, -1};
    element next = nothing;
    for (;;) {
        while (numbers && !below(f.bar, next)) {
            const int number = 31 - __clz((int)numbers);
            numbers ^= 1u << number;
            next.position = begin + number * 32 + f.lane;
            next.key = next.position < 0 ? (word)0 : (word)key_of(f.from[next.position * f.step]);
        }
        const u32 lanes = __ballot_sync(~0u, below(f.bar, next));
        if (lanes == 0)
            return;
        const int from = __ffs((int)lanes) - 1;
        const element e = of_lane(next, from), upper = of_lane(f.own, f.lane - 1);
        const int place = __ffs((int)__ballot_sync(~0u, below(f.own, e))) - 1;
        next = f.lane == from ? nothing : next;
        f.own = f.lane < place ? f.own : f.lane == place ? e : upper;
        f.bar = of_lane(f.own, f.most - 1);
    }
}

static __device__ __forceinline__ void find_few(found &f, int n)
{
    word x[EACH_LANE];
    int begin = n;
    do {
        u32 numbers;
        begin -= TURN;
        read(x, f, begin);
        if (begin + TURN == n) {
            const int number = greatest(x, f.own.key);
            f.own.position = begin + number * 32 + f.lane;
            f.own = in_order(f.own, f.lane);
            f.bar = of_lane(f.own, f.most - 1);
            numbers = reaching<true>(x, f.bar.key) & ~(1u << number);
        } else {
            numbers = reaching<false>(x, f.bar.key);
        }
        put_in(f, numbers, begin);
    } while (begin > 0);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) largest_few(const __grid_constant__ walk w,
                                                                             const __grid_constant__ few_work work)
{
    STOP_IF_FAILED(work.guard);
    for (i64 row = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5); row < w.size; row += (i64)gridDim.x * WARPS) {
        i64 at[3] = {row * w.stride[0][0], row * w.stride[1][0], 0};
        if (w.ndim > 1) /* which divides */
            places(w, row, at);
        found f = {work.from + at[1], work.from_step, (int)threadIdx.x & 31, (int)work.most};
        find_few(f, (int)work.n);
        if (f.lane < f.most)
            work.to[at[0] + f.lane * work.to_step] = f.own.position;
    }
}
