/* SPDX-License-Identifier: MIT */
/*
 * SCATTER_ADD and SCATTER_SET: terms at positions along one axis. `w` walks all other axes, its places are of the
 * output, the positions and the terms; along the axis there are `count` positions. Which kernels run, scatter.c
 * decides:
 *
 *     check                   positions are looked at before anything is overwritten that could not be had again
 *     in_order                a thread a place of the walk, term after term: any dtype, few terms
 *     at_once, in_block       whole numbers, which add up to the same in any order: a thread a term, by atomics; for
 *                             few positions in shared memory first
 *     add_to_tables, join_tables
 *                             sums of any dtype, many terms, few positions (scatter_tables.cuh)
 *     sorted_keys, fold, fold_lanes
 *                             sums of any dtype, many of both: positions are sorted, and equal ones added up
 *                             (scatter_sorted.c)
 *     clear, choose, write    SCATTER_SET: the last term of each position is found, then written; clear checks, too
 *
 * Rows of positions that all places of the walk share are looked at once.
 *
 * In front of it: S, W, LOAD, STORE and PLUS of the dtype, struct walk, tn_failure; ATOMIC where S can be added
 * atomically.
 */
struct scatter {
    S *to;
    const i64 *index;
    const S *from;
    unsigned *last;        /* 1 + the last term of each position of each row; SCATTER_SET */
    i64 count, extent, rows; /* rows of positions: 1 or as many as places of the walk */
    i64 to_step, index_step, from_step;
    i64 add;               /* else the terms are written */
};

/* Position number j from `index` on: within the extent, or -1 and a failure. */
static __device__ __forceinline__ i64 position(const scatter &s, const i64 *index, i64 j, const tn_failure &failure)
{
    const i64 given = index[j * s.index_step], k = given < 0 ? given + s.extent : given;
    if (k >= 0 && k < s.extent)
        return k;
    tn_fail(&failure, 1, given);
    return -1;
}

extern "C" __global__ void check(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                 const __grid_constant__ tn_failure failure)
{
    for EACH(i, s.rows * s.count) {
        i64 at[3];
        places(w, i % s.rows, at);
        position(s, s.index + at[1], i / s.rows, failure);
    }
}

extern "C" __global__ void in_order(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                    const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    for EACH(i, w.size) {
        i64 at[3];
        places(w, i, at);
        for (i64 j = 0; j < s.count; j++) {
            const i64 k = position(s, s.index + at[1], j, failure);
            if (k < 0)
                return;
            S *place = s.to + at[0] + k * s.to_step;
            const S term = s.from[at[2] + j * s.from_step];
            *place = s.add ? STORE((W)PLUS(LOAD(*place), LOAD(term))) : term;
        }
    }
}

/* Of what terms go to only: a few positions of a long axis are few. */
extern "C" __global__ void clear(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                 const __grid_constant__ tn_failure failure)
{
    for EACH(i, s.rows * s.count) {
        const i64 row = i % s.rows;
        i64 at[3];
        places(w, row, at);
        const i64 k = position(s, s.index + at[1], i / s.rows, failure);
        if (k >= 0)
            s.last[row * s.extent + k] = 0;
    }
}

extern "C" __global__ void choose(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                  const __grid_constant__ tn_failure failure)
{
    for EACH(i, s.rows * s.count) {
        const i64 row = i % s.rows, j = i / s.rows;
        i64 at[3];
        places(w, row, at);
        const i64 k = position(s, s.index + at[1], j, failure);
        if (k >= 0)
            atomicMax(s.last + row * s.extent + k, (unsigned)j + 1);
    }
}

extern "C" __global__ void write(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                 const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    for EACH(i, w.size * s.count) {
        const i64 place = i % w.size, j = i / w.size;
        i64 at[3];
        places(w, place, at);
        const i64 given = s.index[at[1] + j * s.index_step], k = given < 0 ? given + s.extent : given;
        if (k >= 0 && k < s.extent && s.last[(s.rows == 1 ? 0 : place * s.extent) + k] == (unsigned)j + 1)
            s.to[at[0] + k * s.to_step] = s.from[at[2] + j * s.from_step];
    }
}

#ifdef ATOMIC
extern "C" __global__ void at_once(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                   const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    for EACH(i, w.size * s.count) {
        const i64 j = i / w.size;
        i64 at[3];
        places(w, i % w.size, at);
        const i64 k = position(s, s.index + at[1], j, failure);
        if (k >= 0)
            atomicAdd(s.to + at[0] + k * s.to_step, s.from[at[2] + j * s.from_step]);
    }
}

/* One place of the walk, up to FEW positions: each block adds up what it sees, in words of 32 bits with a carry. */
#define FEW 4096
extern "C" __global__ void in_block(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                    const __grid_constant__ tn_failure failure)
{
    __shared__ unsigned low[FEW];
#if ATOMIC == 8
    __shared__ unsigned high[FEW];
#endif
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    for (int k = threadIdx.x; k < (int)s.extent; k += blockDim.x) {
        low[k] = 0;
#if ATOMIC == 8
        high[k] = 0;
#endif
    }
    __syncthreads();
    i64 at[3];
    places(w, 0, at);
    for EACH(j, s.count) {
        const i64 k = position(s, s.index + at[1], j, failure);
        if (k < 0)
            continue;
        const S term = s.from[at[2] + j * s.from_step];
        const unsigned word = (unsigned)term, before = atomicAdd(&low[k], word);
#if ATOMIC == 8
        const unsigned upper = (unsigned)((unsigned long long)term >> 32) + (before + word < before);
        if (upper)
            atomicAdd(&high[k], upper);
#else
        (void)before;
#endif
    }
    __syncthreads();
    for (int k = threadIdx.x; k < (int)s.extent; k += blockDim.x) {
#if ATOMIC == 8
        const S sum = (S)high[k] << 32 | low[k];
#else
        const S sum = low[k];
#endif
        if (sum)
            atomicAdd(s.to + at[0] + k * s.to_step, sum);
    }
}
#endif

/* ---- many terms whose order counts ---- */

#define FOLDED 32       /* of a thread */
#define READ 8          /* of these at once, so that they come beside one another */
#define NOWHERE (~0u)   /* the position of nothing */

/* Terms in the order of their positions, in `lanes` sequences beside one another. A thread adds up the terms of each
 * position in a piece of FOLDED terms of one sequence. What lies whole within the piece goes to the output; sums of its
 * first and its last position, which may go on in other pieces, are two terms of the next, shorter sequence. So the
 * order of additions follows from the positions alone. */
struct fold {
    unsigned *keys;         /* of the terms: by sorted row, or with `values` by term and lane */
    const i64 *order;       /* the sorted order of the terms, by row; NULL: they are in order */
    const W *values;        /* then, by term and lane */
    unsigned *next_keys;    /* by term and lane of the next sequence */
    W *next_values;
    i64 terms, pieces, lanes, rows; /* of one sequence; lanes may share one row of positions */
};

static __device__ __forceinline__ W plus(const W &a, const W &b) { return (W)PLUS(a, b); }

/* What a thread has of its piece so far. V: a sum, or several beside one another. */
template <class V> struct folded {
    unsigned now, first; /* the position that is being added up; the piece's first one, once there is another */
    V sum, first_sum;    /* theirs */
    V base;              /* what the output has at `now`, where nobody else writes at this level */

    /* The next term, and what the output has at its position; add(): the sum at `now` goes there. `on`: the first
     * position may go on in another piece. */
    template <class Add>
    __device__ __forceinline__ void take(unsigned key, const V &term, const V &there, bool on, const Add &add)
    {
        if (key == NOWHERE)
            return;
        if (key == now) {
            sum = plus(sum, term);
            return;
        }
        if (on && first == NOWHERE) {
            first = now;
            first_sum = sum;
        } else if (now != NOWHERE) {
            add();
        }
        now = key;
        sum = term;
        base = there;
    }
};

extern "C" __global__ void sorted_keys(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                       const __grid_constant__ fold f, const __grid_constant__ tn_failure failure)
{
    for EACH(i, f.rows * f.terms) {
        const i64 row = i / f.terms;
        i64 at[3];
        places(w, row, at);
        const i64 k = position(s, s.index + at[1], i - row * f.terms, failure);
        f.keys[i] = k < 0 ? NOWHERE : (unsigned)k;
    }
}

extern "C" __global__ void fold(const __grid_constant__ walk w, const __grid_constant__ scatter s,
                                const __grid_constant__ struct fold f, const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    for EACH(t, f.lanes * f.pieces) {
        const i64 piece = t / f.lanes, lane = t - piece * f.lanes;
        const i64 begin = piece * FOLDED, end = begin + FOLDED < f.terms ? begin + FOLDED : f.terms;
        i64 at[3];
        places(w, lane, at);
        const i64 row = f.rows == 1 ? 0 : lane * f.terms;
        folded<W> r = {NOWHERE, NOWHERE, W(), W(), W()};
        const auto add = [&]() { s.to[at[0] + (i64)r.now * s.to_step] = STORE(plus(r.base, r.sum)); };
        for (i64 i = begin; i < end; i += READ) {
            unsigned key[READ];
            W term[READ], there[READ];
#pragma unroll
            for (int q = 0; q < READ; q++) {
                const bool inside = i + q < end;
                const i64 j = !inside ? 0 : f.order ? f.order[row + i + q] : (i + q) * f.lanes + lane;
                key[q] = inside ? f.keys[f.order ? row + j : j] : NOWHERE;
                if (key[q] == NOWHERE)
                    continue;
                term[q] = f.order ? (W)LOAD(s.from[at[2] + j * s.from_step]) : f.values[j];
                there[q] = (W)LOAD(s.to[at[0] + (i64)key[q] * s.to_step]);
            }
#pragma unroll
            for (int q = 0; q < READ; q++)
                r.take(key[q], term[q], there[q], f.pieces > 1, add);
        }
        if (f.pieces == 1) {
            if (r.now != NOWHERE)
                add();
            continue;
        }
        const i64 next = 2 * piece * f.lanes + lane;
        const bool one = r.first == NOWHERE;
        f.next_keys[next] = one ? r.now : r.first;
        f.next_values[next] = one ? r.sum : r.first_sum;
        f.next_keys[next + f.lanes] = one ? NOWHERE : r.now;
        f.next_values[next + f.lanes] = r.sum;
    }
}

/* The same, of lanes that lie side by side in what is added and in what it is added to, and share the positions: a
 * thread has LANES of them, in the same order of additions. Keys have no lanes then. */
#define LANES (sizeof(S) < 4 ? 4 : 16 / (int)sizeof(S))
#define READ_LANES 4

struct __align__(LANES * sizeof(S)) stored_lanes {
    S x[LANES];
};
struct __align__(LANES * sizeof(W) < 16 ? LANES * sizeof(W) : 16) lanes {
    W x[LANES];
};

static __device__ __forceinline__ lanes load_lanes(const S *from)
{
    const stored_lanes stored = *(const stored_lanes *)from;
    lanes x;
#pragma unroll
    for (int l = 0; l < LANES; l++)
        x.x[l] = (W)LOAD(stored.x[l]);
    return x;
}

static __device__ __forceinline__ lanes plus(const lanes &a, const lanes &b)
{
    lanes sum;
#pragma unroll
    for (int l = 0; l < LANES; l++)
        sum.x[l] = plus(a.x[l], b.x[l]);
    return sum;
}

extern "C" __global__ void __launch_bounds__(256, 3) fold_lanes(const __grid_constant__ scatter s,
                                                                const __grid_constant__ struct fold f,
                                                                const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED((const unsigned long long *)failure.guard);
    const i64 groups = f.lanes / LANES;
    for EACH(t, groups * f.pieces) {
        const i64 piece = t / groups, lane = (t - piece * groups) * LANES;
        const i64 begin = piece * FOLDED, end = begin + FOLDED < f.terms ? begin + FOLDED : f.terms;
        folded<lanes> r = {NOWHERE, NOWHERE, lanes(), lanes(), lanes()};
        const auto add = [&]() {
            stored_lanes result;
#pragma unroll
            for (int l = 0; l < LANES; l++)
                result.x[l] = STORE(plus(r.base.x[l], r.sum.x[l]));
            *(stored_lanes *)(s.to + lane + (i64)r.now * s.to_step) = result;
        };
        for (i64 i = begin; i < end; i += READ_LANES) {
            i64 place[READ_LANES];
            unsigned key[READ_LANES];
            lanes term[READ_LANES], there[READ_LANES];
#pragma unroll
            for (int q = 0; q < READ_LANES; q++)
                place[q] = i + q >= end ? -1 : f.order ? f.order[i + q] : i + q;
#pragma unroll
            for (int q = 0; q < READ_LANES; q++)
                key[q] = place[q] < 0 ? NOWHERE : f.keys[place[q]];
#pragma unroll
            for (int q = 0; q < READ_LANES; q++)
                if (place[q] >= 0)
                    term[q] = f.order ? load_lanes(s.from + lane + place[q] * s.from_step)
                                      : *(const lanes *)(f.values + place[q] * f.lanes + lane);
            unsigned before = r.now;
#pragma unroll
            for (int q = 0; q < READ_LANES; q++) {
                if (key[q] != NOWHERE && key[q] != before) {
                    there[q] = load_lanes(s.to + lane + (i64)key[q] * s.to_step);
                    before = key[q];
                }
            }
#pragma unroll
            for (int q = 0; q < READ_LANES; q++)
                r.take(key[q], term[q], there[q], f.pieces > 1, add);
        }
        if (f.pieces == 1) {
            if (r.now != NOWHERE)
                add();
            continue;
        }
        const bool one = r.first == NOWHERE;
        if (lane == 0) {
            f.next_keys[2 * piece] = one ? r.now : r.first;
            f.next_keys[2 * piece + 1] = one ? NOWHERE : r.now;
        }
        W *next = f.next_values + 2 * piece * f.lanes + lane;
        *(lanes *)next = one ? r.sum : r.first_sum;
        *(lanes *)(next + f.lanes) = r.sum;
    }
}
