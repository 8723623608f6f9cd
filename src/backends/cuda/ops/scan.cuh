/* SPDX-License-Identifier: MIT */
/*
 * Scans of rows in one pass: each element is read once and written once, and sums are always made of the same parts in
 * the same order, so that the bits do not depend on what ran when.
 *
 * A warp takes SPAN elements at a time, each lane FOUR neighbours. A tile is what a block's warps take together. Each
 * tile publishes its total, waits for those of the tiles before it in its group of GROUP tiles and for the total of the
 * groups before, and the last tile of a group publishes the latter for the next group. Tiles are numbered in the order
 * in which blocks begin, so that whoever is waited for is running or done.
 *
 * In front of it: S stored, W computed in, LOAD, STORE, IDENTITY and COMBINE(a, b), and struct walk of the rows; SHORT,
 * a power of 2, if no row has more elements, and a warp, or some of its lanes, is to take a row at once.
 */
#define FOUR 4
#define SPAN (32 * FOUR)
#define SPANS 8
#define THREADS 256
#define WARPS (THREADS / 32)
#define TILE (WARPS * SPANS * SPAN)
#define GROUP 256

struct __align__(4 * sizeof(S) < 16 ? 4 * sizeof(S) : 16) four {
    S s[FOUR];
};

/* What a tile or a group has published. Short values lie in one word with the flag, which is there as a whole or not at
 * all: so nobody waits for a fence where each group waits for the one before. */
struct scan_state {
    u64 value, flag;      /* flag: 0, or 1, with a short value above it */
};

struct scan_work {
    const S *from;
    S *to;
    i64 n, tiles, groups; /* elements, tiles and groups of a row */
    i64 from_step, to_step;
    u64 *ticket;
    scan_state *totals, *before; /* totals of tiles; totals of all that comes before each group */
    const u64 *guard;
};

static __device__ __forceinline__ W combine(W a, W b) { return (W)COMBINE(a, b); }

static __device__ __forceinline__ void publish(scan_state *state, W value)
{
    union { W value; u64 bits; } word = {};
    word.value = value;
    if (sizeof(W) <= 4) {
        *(volatile u64 *)&state->flag = word.bits << 32 | 1;
        return;
    }
    *(volatile u64 *)&state->value = word.bits;
    __threadfence();
    *(volatile u64 *)&state->flag = 1;
}

static __device__ __forceinline__ u64 flag_of(const scan_state *state) { return *(const volatile u64 *)&state->flag; }

/* Waits until a value has been published; `flag` is the flag as last read. */
static __device__ __forceinline__ W wait_for(const scan_state *state, u64 flag)
{
    while (flag == 0)
        flag = flag_of(state);
    union { u64 bits; W value; } word;
    word.bits = flag >> 32;
    if (sizeof(W) > 4) {
        __threadfence();
        word.bits = *(const volatile u64 *)&state->value;
    }
    return word.value;
}

/* The combination of the values of all lanes up to this one, among LANES neighbours. */
template <int LANES> static __device__ __forceinline__ W warp_scan(W x)
{
    const int lane = threadIdx.x & (LANES - 1);
    for (int by = 1; by < LANES; by *= 2) {
        const W lower = __shfl_up_sync(~0u, x, by, LANES);
        if (lane >= by)
            x = combine(lower, x);
    }
    return x;
}

/* A lane's four elements from `at` on, what lies behind the end as the identity. */
static __device__ __forceinline__ void load_four(W *v, const S *from, i64 step, i64 at, i64 n, bool whole)
{
    if (whole && at + FOUR <= n) {
        const four given = *(const four *)(from + at);
        for (int k = 0; k < FOUR; k++)
            v[k] = LOAD(given.s[k]);
        return;
    }
    for (int k = 0; k < FOUR; k++)
        v[k] = at + k < n ? (W)LOAD(from[(at + k) * step]) : (W)IDENTITY;
}

static __device__ __forceinline__ void store_four(const W *v, S *to, i64 step, i64 at, i64 n, bool whole)
{
    if (whole && at + FOUR <= n) {
        four result;
        for (int k = 0; k < FOUR; k++)
            result.s[k] = (S)STORE(v[k]);
        *(four *)(to + at) = result;
        return;
    }
    for (int k = 0; k < FOUR; k++)
        if (at + k < n)
            to[(at + k) * step] = (S)STORE(v[k]);
}

/* Scans the elements from `begin` on of LANES lanes, COUNT times four each, in registers; returns their total, to each
 * of them. */
template <int COUNT, int LANES>
static __device__ __forceinline__ W scan_warp(W (*v)[FOUR], const S *from, i64 step, i64 begin, i64 n, bool whole)
{
    const int lane = threadIdx.x & (LANES - 1);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        load_four(v[i], from, step, begin + i * SPAN + lane * FOUR, n, whole);
    W before = IDENTITY;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        for (int k = 1; k < FOUR; k++)
            v[i][k] = combine(v[i][k - 1], v[i][k]);
        const W upto = warp_scan<LANES>(v[i][FOUR - 1]);
        W lower = __shfl_up_sync(~0u, upto, 1, LANES);
        lower = lane ? combine(before, lower) : before;
        for (int k = 0; k < FOUR; k++)
            v[i][k] = combine(lower, v[i][k]);
        before = combine(before, __shfl_sync(~0u, upto, LANES - 1, LANES));
    }
    return before;
}

static __device__ __forceinline__ bool aligned(const void *p, i64 step)
{
    return step == 1 && (u64)p % alignof(four) == 0;
}

#ifdef SHORT

/* Rows of a warp each, or of some of its lanes. Lanes without a row take part as those of the last one. Left to itself,
 * the compiler takes up to 253 registers. */
extern "C" __global__ void __launch_bounds__(THREADS, 3) scan_short(const __grid_constant__ walk w,
                                                                    const __grid_constant__ scan_work work)
{
    constexpr int LANES = SHORT < SPAN ? SHORT / FOUR : 32, COUNT = SHORT < SPAN ? 1 : SHORT / SPAN;
    STOP_IF_FAILED(work.guard);
    const int lane = threadIdx.x & (LANES - 1), own = threadIdx.x / LANES;
    for (i64 first = (i64)blockIdx.x * (THREADS / LANES); first < w.size; first += (i64)gridDim.x * (THREADS / LANES)) {
        const i64 row = first + own;
        i64 at[3];
        places(w, row < w.size ? row : w.size - 1, at);
        const S *from = work.from + at[1];
        S *to = work.to + at[0];
        W v[COUNT][FOUR];
        scan_warp<COUNT, LANES>(v, from, work.from_step, 0, work.n, aligned(from, work.from_step));
        if (row < w.size)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                store_four(v[i], to, work.to_step, i * SPAN + lane * FOUR, work.n, aligned(to, work.to_step));
    }
}

#else

/* What comes before a tile: the groups before its own, then the tiles before it in the group; by the block's first
 * warp. */
static __device__ W before_tile(const scan_work &work, i64 row, i64 tile)
{
    constexpr int EACH = GROUP / 32;
    const int first = (threadIdx.x & 31) * EACH, in_group = (int)(tile % GROUP);
    const scan_state *totals = work.totals + row * work.tiles + (tile - in_group);
    const scan_state *groups = work.before + row * work.groups + tile / GROUP;
    u64 flag[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        flag[k] = first + k < in_group ? flag_of(&totals[first + k]) : 0;
    W sum = IDENTITY;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k < in_group)
            sum = combine(sum, wait_for(&totals[first + k], flag[k]));
    sum = __shfl_sync(~0u, warp_scan<32>(sum), 31);
    return tile < GROUP ? sum : combine(wait_for(groups, 0), sum);
}

/* Publishes a tile's total, and what later groups need of it; returns what comes before it. By the block's first
 * warp. */
static __device__ W in_turn(const scan_work &work, i64 row, i64 tile, W all)
{
    const int lane = threadIdx.x & 31;
    if (lane == 0)
        publish(&work.totals[row * work.tiles + tile], all);
    const W earlier = before_tile(work, row, tile);
    if (lane == 0 && tile % GROUP == GROUP - 1 && tile + 1 < work.tiles)
        publish(&work.before[row * work.groups + tile / GROUP + 1], combine(earlier, all));
    return earlier;
}

/* The block's number among those that have begun; false if a run before has failed. `number` is shared. */
static __device__ __forceinline__ bool take_ticket(const scan_work &work, u64 &number)
{
    if (work.guard && *(const volatile u64 *)work.guard)
        return false;
    if (threadIdx.x == 0)
        number = atomicAdd(work.ticket, 1ull);
    __syncthreads();
    return true;
}

/* Scans the block's warps' elements of a tile; returns what comes before this warp's own in it. `all`: the total. */
static __device__ __forceinline__ W scan_tile(W (*v)[FOUR], const scan_work &work, const S *from, i64 begin, W &all)
{
    __shared__ W total[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const W own = scan_warp<SPANS, 32>(v, from, work.from_step, begin, work.n, aligned(from, work.from_step));
    if (lane == 0)
        total[warp] = own;
    __syncthreads();
    W before = IDENTITY;
    all = IDENTITY;
    for (int i = 0; i < WARPS; i++) {
        before = i < warp ? combine(before, total[i]) : before;
        all = combine(all, total[i]);
    }
    return before;
}

/* Stores them behind what comes before them. */
static __device__ __forceinline__ void store_tile(W (*v)[FOUR], const scan_work &work, S *to, i64 begin, W before)
{
#pragma unroll
    for (int i = 0; i < SPANS; i++) {
        for (int k = 0; k < FOUR; k++)
            v[i][k] = combine(before, v[i][k]);
        store_four(v[i], to, work.to_step, begin + i * SPAN + (threadIdx.x & 31) * FOUR, work.n,
                   aligned(to, work.to_step));
    }
}

/* Scans rows of a single tile each, which need not wait for other blocks. */
extern "C" __global__ void __launch_bounds__(THREADS) scan_row(const __grid_constant__ walk w,
                                                               const __grid_constant__ scan_work work)
{
    STOP_IF_FAILED(work.guard);
    i64 at[3];
    places(w, blockIdx.x, at);
    const i64 begin = (threadIdx.x >> 5) * (SPANS * SPAN);
    W v[SPANS][FOUR], all;
    const W before = scan_tile(v, work, work.from + at[1], begin, all);
    store_tile(v, work, work.to + at[0], begin, combine(IDENTITY, before));
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(const __grid_constant__ walk w,
                                                           const __grid_constant__ scan_work work)
{
    __shared__ W before_block;
    __shared__ u64 number;
    if (!take_ticket(work, number))
        return;
    const i64 row = (i64)number / work.tiles, tile = (i64)number % work.tiles;
    i64 at[3];
    places(w, row, at);
    const i64 begin = tile * TILE + (threadIdx.x >> 5) * (SPANS * SPAN);
    W v[SPANS][FOUR], all;
    const W before = scan_tile(v, work, work.from + at[1], begin, all);
    if (threadIdx.x < 32) {
        const W earlier = in_turn(work, row, tile, all);
        if (threadIdx.x == 0)
            before_block = earlier;
    }
    __syncthreads();
    store_tile(v, work, work.to + at[0], begin, combine(before_block, before));
}

/* Resets the state before a scan: no ticket has been taken, nothing has been published. */
extern "C" __global__ void scan_clear(const __grid_constant__ scan_work work, i64 rows)
{
    const i64 totals = rows * work.tiles, all = totals + rows * work.groups;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (i64)gridDim.x * blockDim.x)
        (i < totals ? work.totals + i : work.before + (i - totals))->flag = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *work.ticket = 0;
}

#endif
