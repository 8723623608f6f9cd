/* SPDX-License-Identifier: MIT */
/*
 * SCATTER_ADD of many terms to few positions, in an order that follows from numbers of terms and positions alone
 * (scatter_tables.c):
 *
 *     add_to_tables    a warp adds a piece of the terms up in tables of sums, which lie in shared memory
 *     join_tables      sums of the same position, one a piece, are added up and go to the output
 *
 * Lanes that share a table take turns, so that a step's cost does not depend on where its terms go. The entries of a
 * warp's tables are interleaved, so that lanes of the same turn use different banks of shared memory.
 *
 * In front of it: scatter.cuh, and NOTHING, which changes nothing that it is added to: -0.0, or a whole 0.
 */
#define TERMS 8    /* terms of a lane in a round */
#define JOINED 8   /* positions of a block of join_tables */
#define SLICES 64  /* slices of the pieces, among which its threads are divided */

struct tables {
    W *sums;            /* sums of each position, by place of the loop and piece; a single piece writes to the output
                           directly */
    i64 pieces, length; /* pieces of a place's terms; terms of a piece */
    int count, unused;  /* tables of a warp: a power of 2 */
};

static __device__ __forceinline__ bool is_nothing(const W &sum)
{
    const W nothing = NOTHING;
    bool same = true;
#pragma unroll
    for (int i = 0; i < (int)sizeof(W); i++)
        same = same && ((const unsigned char *)&sum)[i] == ((const unsigned char *)&nothing)[i];
    return same;
}

/* Adds a sum to the output. Elements that no term went to keep their bits, even those of NaN. */
static __device__ __forceinline__ void add_to_output(const scatter &s, i64 at, i64 k, const W &sum)
{
    S *to = s.to + at + k * s.to_step;
    if (!is_nothing(sum))
        *to = STORE(plus((W)LOAD(*to), sum));
}

/* Terms of a lane that go to the same entry become one, and leave `nowhere` to the others: so all of a turn's sums are
 * read before the first is written. */
static __device__ __forceinline__ void merge(int *entry, W *term, int nowhere)
{
#pragma unroll
    for (int q = 1; q < TERMS; q++)
#pragma unroll
        for (int p = 0; p < q; p++)
            if (entry[p] == entry[q]) {
                term[p] = plus(term[p], term[q]);
                entry[q] = nowhere;
            }
}

extern "C" __global__ void __launch_bounds__(32) add_to_tables(const __grid_constant__ walk w,
                                                               const __grid_constant__ scatter s,
                                                               const __grid_constant__ tables t,
                                                               const __grid_constant__ tn_failure failure)
{
    extern __shared__ __align__(16) unsigned char memory[];
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    const int lane = threadIdx.x, extent = (int)s.extent, turns = 32 / t.count, own_turn = lane / t.count;
    W *const sums = (W *)memory, *const table = sums + lane % t.count;
    const int nowhere = extent * t.count; /* an entry that nobody reads */
    for (int i = lane; i < nowhere + t.count; i += 32)
        sums[i] = NOTHING;
    __syncwarp();
    const i64 place = blockIdx.x / t.pieces, piece = blockIdx.x - place * t.pieces, begin = piece * t.length;
    const int length = (int)(begin + t.length < s.count ? t.length : s.count - begin);
    i64 at[3];
    places(w, place, at);
    const i64 *index = s.index + at[1] + (begin + lane) * s.index_step;
    const S *from = s.from + at[2] + (begin + lane) * s.from_step;
    for (int i = lane; i - lane < length; i += 32 * TERMS) {
        i64 given[TERMS];
        S stored[TERMS];
#pragma unroll
        for (int q = 0; q < TERMS; q++)
            if (i + 32 * q < length) {
                given[q] = index[32 * q * s.index_step];
                stored[q] = from[32 * q * s.from_step];
            }
        index += 32 * TERMS * s.index_step;
        from += 32 * TERMS * s.from_step;
        int entry[TERMS];
        W term[TERMS];
        bool fails = false;
        i64 wrong = 0;
#pragma unroll
        for (int q = 0; q < TERMS; q++) {
            const i64 k = given[q] < 0 ? given[q] + s.extent : given[q];
            const bool any = i + 32 * q < length, good = k >= 0 && k < s.extent;
            entry[q] = any && good ? (int)k * t.count : nowhere;
            term[q] = (W)LOAD(stored[q]);
            if (any && !good) {
                fails = true;
                wrong = given[q];
            }
        }
        if (fails)
            tn_fail(&failure, 1, wrong);
        merge(entry, term, nowhere);
        for (int turn = 0; turn < turns; turn++) {
            if (turn == own_turn) {
                W sum[TERMS];
#pragma unroll
                for (int q = 0; q < TERMS; q++)
                    sum[q] = table[entry[q]];
#pragma unroll
                for (int q = 0; q < TERMS; q++)
                    table[entry[q]] = plus(sum[q], term[q]);
            }
            __syncwarp();
        }
    }
    for (int k = lane; k < extent; k += 32) {
        W sum = NOTHING;
        for (int n = 0; n < t.count; n++) /* each lane begins with another table, so that they use different banks */
            sum = plus(sum, sums[k * t.count + ((n + lane / turns) & (t.count - 1))]);
        if (t.pieces == 1)
            add_to_output(s, at[0], k, sum);
        else
            t.sums[blockIdx.x * s.extent + k] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(JOINED * SLICES) join_tables(const __grid_constant__ walk w,
                                                                          const __grid_constant__ scatter s,
                                                                          const __grid_constant__ tables t,
                                                                          const __grid_constant__ tn_failure failure)
{
    __shared__ W part[JOINED * SLICES];
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    const int thread = threadIdx.x;
    const i64 groups = (s.extent + JOINED - 1) / JOINED, place = blockIdx.x / groups;
    const i64 k = (blockIdx.x - place * groups) * JOINED + thread % JOINED;
    W sum = NOTHING;
    if (k < s.extent) {
        const W *sums = t.sums + place * t.pieces * s.extent + k;
#pragma unroll 8
        for (i64 piece = thread / JOINED; piece < t.pieces; piece += SLICES)
            sum = plus(sum, sums[piece * s.extent]);
    }
    part[thread] = sum;
    for (int half = JOINED * SLICES / 2; half >= JOINED; half /= 2) {
        __syncthreads();
        if (thread < half)
            part[thread] = plus(part[thread], part[thread + half]);
    }
    if (thread >= JOINED || k >= s.extent)
        return;
    i64 at[3];
    places(w, place, at);
    add_to_output(s, at[0], k, part[thread]);
}
