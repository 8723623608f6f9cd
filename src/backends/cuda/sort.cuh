/* SPDX-License-Identifier: MIT */
/*
 * Sorting by radix, a byte of the keys at a time from the lowest, so that equal elements keep their order (Knuth, The Art of
 * Computer Programming, volume 3, 5.2.5), in one reading and one writing a pass (Adinets and Merrill, "Onesweep", 2022):
 *
 *     sort_clear   before everything: no tile has published anything
 *     sort_count   how often each value of each byte occurs in each row
 *     sort_move    a pass: ranks a tile's elements, puts them in order in shared memory, learns from the tiles before it where
 *                  each digit's elements go, and writes them as one piece a digit
 *
 * A tile publishes for each digit how many elements it has, then how many it and all tiles before it have; whoever comes after
 * adds up the former until it meets the latter. Tiles are numbered in the order in which blocks begin, so that whoever is waited
 * for is running or done.
 *
 * Elements move as they are and their keys are made again in each pass. With POSITIONS, the positions that sort are wanted: each
 * element has a 32-bit position beside it, and the last pass writes only those.
 */
#define DIGITS 256
#define THREADS 512
#define WARPS (THREADS / 32)
#ifdef POSITIONS /* they want registers, too */
#define EACH_THREAD (E_BITS == 64 ? 8 : 12)
#else
#define EACH_THREAD (E_BITS == 64 ? 8 : 16)
#endif
#define TILE (THREADS * EACH_THREAD)
#define BYTES (E_BITS / 8)
#define TILES_AT_ONCE 8     /* of one block of sort_count */

struct sort_pass {
    const E *from;
    E *to;
    const u32 *positions;   /* of `from`, NULL: 0, 1, 2 ... */
    void *positions_to;     /* int64 in the last pass */
    u64 *published;         /* by row, tile and digit: what, << 48, and a number of elements */
    u32 *totals;            /* by row, byte and digit */
    u64 *ticket;            /* one a pass */
    i64 n, tiles;
    i64 from_step, to_step;
    int number, shift, first, last; /* the first pass reads, the last one writes where the walk says */
    const u64 *guard;       /* of a pass that overwrites: NULL, or not 0 after a failure */
};

/* What pass number p publishes; what an earlier pass has left is less than either. */
#define OWN(p)  (2 * (p) + 1)
#define UPTO(p) (2 * (p) + 2)

static __device__ __forceinline__ u32 digit_of(E x, int shift)
{
    return (u32)(key_of(x) >> shift) & (DIGITS - 1);
}

/* The lanes of the warp that have this digit, by a vote on each of its bits: faster than __match_any_sync. */
static __device__ __forceinline__ u32 lanes_of(u32 digit)
{
    u32 lanes = ~0u;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        const bool set = digit >> bit & 1;
        const u32 votes = __ballot_sync(~0u, set);
        lanes &= set ? votes : ~votes;
    }
    return lanes;
}

static __device__ __forceinline__ const E *row_of(const walk &w, const sort_pass &pass, i64 row, i64 *step)
{
    if (!pass.first) {
        *step = 1;
        return pass.from + row * pass.n;
    }
    i64 at[3];
    places(w, row, at);
    *step = pass.from_step;
    return pass.from + at[1];
}

extern "C" __global__ void sort_clear(const __grid_constant__ sort_pass pass, i64 rows, int passes)
{
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, all = (i64)gridDim.x * blockDim.x;
    for (i64 i = first; i < rows * pass.tiles * DIGITS; i += all)
        pass.published[i] = 0;
    for (i64 i = first; i < rows * BYTES * DIGITS; i += all)
        pass.totals[i] = 0;
    if (first < passes)
        pass.ticket[first] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_count(const __grid_constant__ walk w,
                                                                 const __grid_constant__ sort_pass pass)
{
    __shared__ u32 count[BYTES * DIGITS];
    const i64 shares = (pass.tiles + TILES_AT_ONCE - 1) / TILES_AT_ONCE;
    const i64 row = blockIdx.x / shares, share = blockIdx.x % shares;
    i64 step;
    const E *from = row_of(w, pass, row, &step);
    for (int i = threadIdx.x; i < BYTES * DIGITS; i += THREADS)
        count[i] = 0;
    __syncthreads();
    for (i64 tile = share * TILES_AT_ONCE; tile < pass.tiles && tile < (share + 1) * TILES_AT_ONCE; tile++) {
        const i64 begin = tile * TILE + threadIdx.x;
        E x[EACH_THREAD];
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            x[i] = begin + i * THREADS < pass.n ? from[(begin + i * THREADS) * step] : (E)0;
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            for (int byte = 0; byte < BYTES && begin + i * THREADS < pass.n; byte++)
                atomicAdd(&count[byte * DIGITS + digit_of(x[i], 8 * byte)], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BYTES * DIGITS; i += THREADS)
        if (count[i])
            atomicAdd(&pass.totals[row * BYTES * DIGITS + i], count[i]);
}

/* For the first DIGITS threads, the sum of x over the threads before this one. */
static __device__ u32 sum_before(u32 x, u32 *sums)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 upto = warp_sums(x);
    if (lane == 31)
        sums[warp] = upto;
    __syncthreads();
    u32 lower = 0;
    for (int i = 0; i < DIGITS / 32; i++)
        lower += i < warp ? sums[i] : 0;
    __syncthreads();
    return lower + upto - x;
}

static __device__ __forceinline__ void publish(const sort_pass &pass, i64 tile, int digit, u64 what, u64 elements)
{
    *(volatile u64 *)&pass.published[tile * DIGITS + digit] = what << 48 | elements;
}

/* How many elements of a digit the tiles before this one of the row have. */
static __device__ __forceinline__ u64 elements_before(const sort_pass &pass, i64 tile, i64 first_tile, int digit)
{
    u64 sum = 0;
    while (tile-- > first_tile) {
        u64 word;
        do
            word = *(volatile u64 *)&pass.published[tile * DIGITS + digit];
        while (word >> 48 < OWN(pass.number));
        sum += word & ((1ull << 48) - 1);
        if (word >> 48 == UPTO(pass.number))
            break;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) sort_move(const __grid_constant__ walk w,
                                                                   const __grid_constant__ sort_pass pass)
{
    __shared__ __align__(16) unsigned char moving[TILE * (E_BITS < 32 ? 4 : E_BITS / 8)];
    __shared__ unsigned short count[WARPS][DIGITS]; /* of the digits in each warp; then where its first one goes in the tile */
    __shared__ u32 target[DIGITS];                  /* where a digit's elements go in the row, less their place in the tile */
    __shared__ u32 sums[WARPS];
    __shared__ u64 number;
    if (pass.guard && *(const volatile u64 *)pass.guard)
        return;
    if (threadIdx.x == 0)
        number = atomicAdd(&pass.ticket[pass.number], 1ull);
    for (int i = threadIdx.x; i < WARPS * DIGITS; i += THREADS)
        (&count[0][0])[i] = 0;
    __syncthreads();
    const i64 row = (i64)number / pass.tiles, tile = (i64)number % pass.tiles;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 begin = tile * TILE + warp * (32 * EACH_THREAD) + lane;
    i64 step;
    const E *from = row_of(w, pass, row, &step);
    E x[EACH_THREAD];
    unsigned short place[EACH_THREAD];
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++)
        x[i] = begin + i * 32 < pass.n ? from[(begin + i * 32) * step] : (E)0;

    /* The rank of each element among those of its digit in the warp. What lies behind the row's end counts as the highest digit,
     * and so comes after everything. */
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const u32 digit = begin + i * 32 < pass.n ? digit_of(x[i], pass.shift) : DIGITS - 1;
        const u32 same = lanes_of(digit), lower = __popc(same & ((1u << lane) - 1));
        place[i] = (unsigned short)(count[warp][digit] + lower);
        __syncwarp();
        if (lower == 0)
            count[warp][digit] += (unsigned short)__popc(same);
        __syncwarp();
    }
    __syncthreads();
    const int d = threadIdx.x;
    const i64 left = pass.n - tile * TILE;
    u32 own = 0, total = 0, real = 0;
    if (d < DIGITS) {
        total = pass.totals[(row * BYTES + pass.shift / 8) * DIGITS + d];
        for (int i = 0; i < WARPS; i++) {
            const u32 here = count[i][d];
            count[i][d] = (unsigned short)own;
            own += here;
        }
        real = d == DIGITS - 1 && left < TILE ? own - (u32)(TILE - left) : own;
        publish(pass, number, d, tile ? OWN(pass.number) : UPTO(pass.number), real);
    }
    const u32 start = sum_before(own, sums), digits_start = sum_before(total, sums);
    for (int i = 0; i < WARPS && d < DIGITS; i++)
        count[i][d] += (unsigned short)start;
    __syncthreads();

    E *ordered = (E *)moving;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const u32 digit = begin + i * 32 < pass.n ? digit_of(x[i], pass.shift) : DIGITS - 1;
        place[i] += count[warp][digit];
        ordered[place[i]] = x[i];
    }
    if (d < DIGITS) {
        const u64 before = elements_before(pass, number, number - tile, d);
        if (tile)
            publish(pass, number, d, UPTO(pass.number), before + real);
        target[d] = digits_start + (u32)before - start;
    }
    __syncthreads();
    i64 at[3] = {row * pass.n, 0, 0}, to_step = 1;
    if (pass.last) {
        places(w, row, at);
        to_step = pass.to_step;
    }
    u32 goes[EACH_THREAD];
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int j = i * THREADS + threadIdx.x;
        if (j >= left)
            break;
        const E y = ordered[j];
        goes[i] = target[digit_of(y, pass.shift)] + j;
#ifdef POSITIONS
        if (!pass.last)
#endif
            pass.to[at[0] + goes[i] * to_step] = y;
    }
#ifdef POSITIONS
    __syncthreads();
    u32 *positions = (u32 *)moving;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const i64 k = begin + i * 32;
        positions[place[i]] = k >= pass.n ? 0 : pass.positions ? pass.positions[row * pass.n + k] : (u32)k;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int j = i * THREADS + threadIdx.x;
        if (j >= left)
            break;
        if (pass.last)
            ((i64 *)pass.positions_to)[at[0] + goes[i] * to_step] = positions[j];
        else
            ((u32 *)pass.positions_to)[row * pass.n + goes[i]] = positions[j];
    }
#endif
}

/* Rows of up to 32 elements: a warp a row. An element goes where as many are before it in order. */
extern "C" __global__ void __launch_bounds__(THREADS) sort_short(const __grid_constant__ walk w,
                                                                 const __grid_constant__ sort_pass pass)
{
    if (pass.guard && *(const volatile u64 *)pass.guard)
        return;
    const int lane = threadIdx.x & 31;
    for (i64 row = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5); row < w.size; row += (i64)gridDim.x * WARPS) {
        i64 at[3];
        places(w, row, at);
        const bool here = lane < pass.n;
        const E x = here ? pass.from[at[1] + lane * pass.from_step] : (E)0, key = key_of(x);
        int before = 0;
        for (int i = 0; i < (int)pass.n; i++) {
            const E other = (E)__shfl_sync(~0u, key, i);
            before += other < key || (other == key && i < lane);
        }
        if (!here)
            continue;
#ifdef POSITIONS
        ((i64 *)pass.positions_to)[at[0] + before * pass.to_step] = lane;
#else
        pass.to[at[0] + before * pass.to_step] = x;
#endif
    }
}
