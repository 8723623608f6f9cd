/* SPDX-License-Identifier: MIT */
/*
 * Products of very long sums and few elements, out = alpha a b + beta out, cut along k over all multiprocessors.
 *
 *     parts     A block has a tile of ROWS x COLUMNS elements, all of them where they are few, and every so many-th
 *               stage of DEPTH positions of k; blocks that run at the same time read what lies together. What the parts
 *               of an element come to is added up by a second kernel, in their order.
 *     slices    GROUP threads have the whole tile, EACH x EACH elements a thread, and a block has SLICES such groups,
 *               each of which takes every SLICES-th position of a stage. Their sums are added by halves at the end.
 *     stages    They are copied in the background, STAGES - 1 ahead. A factor whose neighbours in memory lie along k
 *               (ALONG) stays so in shared memory, else it lies by k.
 *
 * In front of it: T, ROWS, COLUMNS, SLICES, POSITIONS of a slice in a stage, SHARED bytes, A_ALONG, B_ALONG, and
 * background.cuh.
 */
constexpr int THREADS = 256, QUAD = 16 / sizeof(T), EACH = 2 * QUAD, STAGES = 3;
constexpr int DOWN = (ROWS + EACH - 1) / EACH, ACROSS = (COLUMNS + EACH - 1) / EACH, GROUP = DOWN * ACROSS;
constexpr int DEPTH = SLICES * POSITIONS;
static_assert(GROUP * SLICES <= THREADS && DEPTH % 4 == 0, "");

/* A factor: its lines (rows of a, columns of b), beginning with the tile's first. */
struct factor_at {
    const T *from;
    i64 line, k; /* steps in elements */
    int quads;   /* may be copied 16 bytes at a time: one stride is 1, the other and the extents are multiples of 16
                    bytes */
};

template <int LINES, int GROUPS, bool ALONG> struct side {
    /* An odd number of quads from line to line, or from k to k + 1: neighbours are in different banks of shared
     * memory. */
    static constexpr int PITCH = ALONG ? QUAD * (DEPTH / QUAD | 1) : QUAD * ((LINES + QUAD - 1) / QUAD | 1);
    static constexpr int SIZE = ALONG ? PITCH * GROUPS * EACH : PITCH * DEPTH + EACH; /* threads read more lines than
                                                                                         there are, and drop them */
    template <int WIDTH> static HOT void copy(T *to, const factor_at &f, i64 begin, int lines, int depth)
    {
        constexpr int PER = ((ALONG ? DEPTH : LINES) + WIDTH - 1) / WIDTH, COUNT = PER * (ALONG ? LINES : DEPTH);
        const T *const from = f.from + begin * f.k;
#pragma unroll 4
        for (int i = threadIdx.x; i < COUNT; i += THREADS) {
            const int outer = i / PER, inner = i % PER * WIDTH, line = ALONG ? outer : inner, k = ALONG ? inner : outer;
            const i64 at = WIDTH == 1 ? line * f.line + k * f.k : ALONG ? line * f.line + k : k * f.k + line;
            const bool there = line < lines && k < depth;
            copy_async<WIDTH * sizeof(T)>(to + outer * PITCH + inner, there ? from + at : f.from,
                                          there ? WIDTH * (int)sizeof(T) : 0);
        }
    }

    /* Starts the copies of a stage. */
    static HOT void fetch(T *to, const factor_at &f, i64 begin, int lines, int depth)
    {
        if (f.quads && (u64)f.from % 16 == 0)
            copy<QUAD>(to, f, begin, lines, depth);
        else
            copy<1>(to, f, begin, lines, depth);
    }

    static HOT int line_of(int group, int e) { return (group + e / QUAD * GROUPS) * QUAD + e % QUAD; }

    static HOT void read(T (&x)[EACH], const T *from, int group, int k)
    {
        if constexpr (ALONG) {
#pragma unroll
            for (int e = 0; e < EACH; e++)
                x[e] = from[line_of(group, e) * PITCH + k];
        } else {
#pragma unroll
            for (int e = 0; e < EACH; e += QUAD)
                *(span<T, QUAD> *)&x[e] = *(const span<T, QUAD> *)(from + k * PITCH + line_of(group, e));
        }
    }
};
typedef side<ROWS, DOWN, A_ALONG> a_side;
typedef side<COLUMNS, ACROSS, B_ALONG> b_side;

constexpr int STAGE = (a_side::SIZE + b_side::SIZE + QUAD - 1) / QUAD * QUAD, SUMS = EACH * EACH * (THREADS / 2);
static_assert(SHARED == (STAGES * STAGE > SUMS ? STAGES * STAGE : SUMS) * sizeof(T), "tall.c asks for it");

struct product {
    factor_at a, b;
    T *out, *sums;   /* sums: the partial sums of each part, for all elements */
    i64 out_row, out_column, depth;
    int m, n, across, tiles, parts;
    int beta;
    factor alpha;
    u64 guard;
};

/* Adds the slices' sums, by halves: afterwards the first slice has them all. */
static HOT void add_slices(T (&sum)[EACH][EACH], T *shared, int slice, int own)
{
#pragma unroll
    for (int left = SLICES; left > 1; left = (left + 1) / 2) {
        const int half = (left + 1) / 2;
        __syncthreads();
        if (slice >= half && slice < left)
#pragma unroll
            for (int e = 0; e < EACH * EACH; e++)
                shared[e * (THREADS / 2) + (slice - half) * GROUP + own] = sum[e / EACH][e % EACH];
        __syncthreads();
        if (slice < left - half)
#pragma unroll
            for (int e = 0; e < EACH * EACH; e++)
                sum[e / EACH][e % EACH] += shared[e * (THREADS / 2) + slice * GROUP + own];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) tall_product(const __grid_constant__ product p)
{
    extern __shared__ __align__(16) unsigned char raw[];
    T *const shared = (T *)raw;
    const int part = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
    const int row = tile / p.across * ROWS, column = tile % p.across * COLUMNS;
    const int rows = p.m - row, columns = p.n - column;
    const int slice = threadIdx.x / GROUP, own = threadIdx.x % GROUP, down = own / ACROSS, across = own % ACROSS;
    factor_at a = p.a, b = p.b;
    a.from += row * a.line;
    b.from += column * b.line;
    i64 begin = (i64)part * DEPTH; /* first position of k of the next stage to be copied */
    const i64 step = (i64)p.parts * DEPTH;
    const int count = (int)((p.depth - begin + step - 1) / step);
    const auto fetch = [&](int slot) {
        const i64 left = p.depth - begin;
        if (left > 0) {
            T *const to = shared + slot * STAGE;
            const int depth = left < DEPTH ? (int)left : DEPTH;
            a_side::fetch(to, a, begin, rows, depth);
            b_side::fetch(to + a_side::SIZE, b, begin, columns, depth);
            begin += step;
        }
        copies_are_a_stage();
    };
    T sum[EACH][EACH] = {};
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++)
        fetch(s);
    for (int s = 0, slot = 0; s < count; s++, slot = slot + 1 < STAGES ? slot + 1 : 0) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        fetch(slot > 0 ? slot - 1 : STAGES - 1);
        const T *const stage = shared + slot * STAGE;
        if (slice < SLICES)
#pragma unroll
            for (int q = 0; q < POSITIONS; q++) {
                T x[EACH], y[EACH];
                a_side::read(x, stage, down, q * SLICES + slice);
                b_side::read(y, stage + a_side::SIZE, across, q * SLICES + slice);
#pragma unroll
                for (int e = 0; e < EACH; e++)
#pragma unroll
                    for (int f = 0; f < EACH; f++)
                        sum[e][f] = multiply_add(x[e], y[f], sum[e][f]);
            }
    }
    copies_wait<0>();
    add_slices(sum, shared, slice, own);
    if (slice > 0)
        return;
    T *const to = p.sums + ((i64)part * p.m + row) * p.n + column;
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int f = 0; f < EACH; f++) {
            const int r = a_side::line_of(down, e), c = b_side::line_of(across, f);
            if (r < rows && r < ROWS && c < columns && c < COLUMNS)
                to[(i64)r * p.n + c] = sum[e][f];
        }
}

/* Adds up the partial sums: a block takes 32 elements, each of its warps every WARPS-th part. */
constexpr int WARPS = THREADS / 32;

extern "C" __global__ void __launch_bounds__(THREADS) tall_sum(const __grid_constant__ product p)
{
    STOP_IF_FAILED(p.guard);
    __shared__ T of[WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, size = p.m * p.n, at = blockIdx.x * 32 + lane;
    T sum = 0;
    if (at < size)
#pragma unroll 8
        for (int part = warp; part < p.parts; part += WARPS)
            sum += p.sums[(i64)part * size + at];
    of[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || at >= size)
        return;
#pragma unroll
    for (int w = 1; w < WARPS; w++)
        sum += of[w][lane];
    T *const to = p.out + at / p.n * p.out_row + at % p.n * p.out_column;
    *to = p.beta ? multiply_add((T)p.alpha, sum, *to) : (T)p.alpha * sum;
}
