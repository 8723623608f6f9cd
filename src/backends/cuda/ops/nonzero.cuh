/* SPDX-License-Identifier: MIT */
/*
 * NONZERO: the positions of the true elements of a vector, in one pass. Behind scan.cuh, of sums of 64 bits: how many a
 * tile has is its total, and where its positions go what comes before it. They are gathered in shared memory first, so
 * that they are written beside one another.
 */
#define OWN 32 /* neighbours that a thread looks at, one bit each */
static_assert(OWN * THREADS == TILE, "a tile is as large as that of a scan");

/* Four bools as four bits. */
static __device__ __forceinline__ unsigned four_bits(unsigned bytes)
{
    return (bytes & 0x01010101u) * 0x10204080u >> 28;
}

static __device__ __forceinline__ unsigned bits_of(const unsigned char *from, i64 step, i64 begin, i64 n)
{
    unsigned bits = 0;
    if (step == 1 && begin + OWN <= n && (u64)from % sizeof(uint4) == 0) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint4 given = ((const uint4 *)(from + begin))[half];
            bits |= (four_bits(given.x) | four_bits(given.y) << 4 | four_bits(given.z) << 8 |
                     four_bits(given.w) << 12) << 16 * half;
        }
        return bits;
    }
    for (int i = 0; i < OWN && begin + i < n; i++)
        bits |= (unsigned)(from[(begin + i) * step] != 0) << i;
    return bits;
}

extern "C" __global__ void __launch_bounds__(THREADS) nonzero(const __grid_constant__ walk w,
                                                              const __grid_constant__ scan_work work, const i64 count)
{
    __shared__ unsigned total[WARPS];
    __shared__ unsigned short found[TILE];
    __shared__ W before_block;
    __shared__ u64 number;
    if (!take_ticket(work, number))
        return;
    const i64 tile = (i64)number, begin = tile * TILE;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned bits = bits_of((const unsigned char *)work.from, work.from_step, begin + threadIdx.x * OWN, work.n);
    unsigned upto = __popc(bits);
    for (int by = 1; by < 32; by *= 2) {
        const unsigned lower = __shfl_up_sync(~0u, upto, by);
        upto += lane >= by ? lower : 0;
    }
    if (lane == 31)
        total[warp] = upto;
    __syncthreads();
    unsigned before = upto - __popc(bits), all = 0;
    for (int i = 0; i < WARPS; i++) {
        before += i < warp ? total[i] : 0;
        all += total[i];
    }
    if (warp == 0) {
        const W earlier = in_turn(work, 0, tile, all);
        if (lane == 0)
            before_block = earlier;
    }
    for (; bits; bits &= bits - 1)
        found[before++] = (unsigned short)(threadIdx.x * OWN + __ffs(bits) - 1);
    __syncthreads();
    const i64 to = (i64)before_block;
    for (unsigned i = threadIdx.x; i < all && to + i < count; i += THREADS)
        work.to[(to + i) * work.to_step] = begin + found[i];
}
