/* SPDX-License-Identifier: MIT */
/*
 * The main loop of a matrix product in CUDA C++. This text stands before kernels that need it (kernel.c), after
 * product_factors.cuh. It is what a block of threads does for one tile of the result c = a b, ROWS x COLUMNS of its
 * elements.
 *
 *     stages    ROWS lines of a and COLUMNS lines of b are copied in stages of DEPTH positions of k, into STAGES
 *               buffers. FEW: all of k fits into these, and no further copies are started.
 *     slices    The warps are divided into SLICES groups. Each computes the whole tile, but for its own share of every
 *               stage: a result of few elements can so be spread over all warps of a multiprocessor.
 *     registers In a group, each thread accumulates ROWS_EACH x COLUMNS_EACH elements of the tile: it reads that many
 *               numbers of a and of b and uses each of them several times. LANES_DOWN of a warp's 32 threads are below
 *               one another: the even and the odd ones, so that neighbours read the same numbers of b and every other
 *               thread the same of a, which is what takes shared memory half the time.
 *     result    At the end the groups write their accumulators to shared memory, where the stages were; an element of
 *               the tile is their sum in the order of the groups. The epilogue reads it from there, neighbouring
 *               threads at neighbouring columns. If the epilogue is elementwise, the tile need not go there: each
 *               thread keeps its sums (or, if there are several groups, those of its own columns) in registers, loads
 *               what belongs to them into registers, and stores results from there, 16 bytes at once.
 *
 * Nothing is atomic: the order of a sum depends on these constants and the extent of k alone. Each group adds its terms
 * in order of k, then the groups are added. Floating types use fused multiply-adds, as libraries do.
 */
template <typename T, int ROWS_, int COLUMNS_, int ROWS_EACH, int COLUMNS_EACH, int LANES_DOWN, int SLICES, int STEP,
          int STAGES, bool A_ALONG_K, bool B_ALONG_K, bool A_GATHERED = false, bool A_BY_K = false,
          bool FEW = STAGES == 1>
struct tn_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int LANES_ACROSS = 32 / LANES_DOWN, QUAD = 16 / sizeof(T);
    static constexpr int WARPS_DOWN = ROWS / (ROWS_EACH * LANES_DOWN),
                         WARPS_ACROSS = COLUMNS / (COLUMNS_EACH * LANES_ACROSS);
    static constexpr int GROUP = 32 * WARPS_DOWN * WARPS_ACROSS, THREADS = GROUP * SLICES, DEPTH = STEP * SLICES;
    static_assert(WARPS_DOWN * ROWS_EACH * LANES_DOWN == ROWS && WARPS_ACROSS * COLUMNS_EACH * LANES_ACROSS == COLUMNS,
                  "");
    /* If both factors are stored by k, a position's numbers are read while those of the position before are
     * multiplied. */
    static constexpr bool READS_AHEAD = !A_ALONG_K && !B_ALONG_K && STEP % 2 == 0;
    /* Positions of k that are multiplied from one set of registers, or, with READS_AHEAD, in one iteration of the
     * unrolled loop. The loop body is short: a multiprocessor runs it only few times, and its instructions have to be
     * fetched from the second-level cache. */
    static constexpr int UNIT = A_ALONG_K || B_ALONG_K ? QUAD : tn_piece(STEP, READS_AHEAD ? 4 : QUAD);
    static_assert(STEP % UNIT == 0, "");
    typedef tn_side<T, ROWS, DEPTH, THREADS, ROWS_EACH, LANES_DOWN, A_ALONG_K, A_GATHERED, false, A_BY_K> side_a;
    typedef tn_side<T, COLUMNS, DEPTH, THREADS, COLUMNS_EACH, LANES_ACROSS, B_ALONG_K, false> side_b;
    static constexpr int AHEAD = STAGES;         /* stages that are started before the first is used */
    static constexpr int PITCH = COLUMNS + QUAD; /* of the result */
    static constexpr int BEHIND = READS_AHEAD ? side_b::PITCH : 0; /* elements after a stage that are read, but not
                                                                      used */
    static constexpr int STAGE = side_a::SIZE + side_b::SIZE + BEHIND, RESULT = SLICES * ROWS * PITCH;
    static constexpr int BYTES = (int)sizeof(T) * (STAGES * STAGE > RESULT ? STAGES * STAGE : RESULT);

    /* A thread's position: its slice, the first row and column of its warp, its lanes down and across. */
    struct spot {
        int slice, row, column, down, across;
    };
    TN_HOT spot own_spot()
    {
        const int warp = threadIdx.x % GROUP / 32, lane = threadIdx.x % 32;
        constexpr int PAIR = LANES_DOWN > 1 ? 2 : 1;
        return {(int)threadIdx.x / GROUP, warp / WARPS_ACROSS * LANES_DOWN * ROWS_EACH,
                warp % WARPS_ACROSS * LANES_ACROSS * COLUMNS_EACH, lane % PAIR + lane / PAIR / LANES_ACROSS * PAIR,
                lane / PAIR % LANES_ACROSS};
    }

    /* Computes the tile into shared memory; at() reads it afterwards. Called by all threads of the block, after
     * tn_start. */
    TN_HOT void run(T *shared, const tn_factor<T> &a, const tn_factor<T> &b, tn_i64 extent)
    {
        T sum[ROWS_EACH][COLUMNS_EACH];
        multiply(sum, shared, a, b, extent);
        __syncthreads();
        const spot own = own_spot();
        T *const to = shared + own.slice * ROWS * PITCH + own.row * PITCH + own.column;
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++)
            side_b::write_pieces(to + side_a::line(i, own.down) * PITCH, sum[i], own.across);
        __syncthreads();
    }

    /* Computes a thread's sums over its slice. */
    TN_HOT void multiply(T (&sum)[ROWS_EACH][COLUMNS_EACH], T *shared, const tn_factor<T> &a, const tn_factor<T> &b,
                         tn_i64 extent)
    {
        side_a from_a = side_a::make(a, AHEAD);
        side_b from_b = side_b::make(b, AHEAD);
        const spot own = own_spot();
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS_EACH; j++)
                sum[i][j] = 0;
        /* Each iteration multiplies a stage. From the second on, it also starts the copies of a later stage, into the
         * buffer that the iteration before has read. */
        int use = 0, fill = 0;
        for (tn_i64 left = extent, coming = extent - (AHEAD - 1) * DEPTH; left > 0; left -= DEPTH, coming -= DEPTH) {
            if (left == extent)
                tn_copies_wait<AHEAD - 1>();
            else
                tn_copies_wait<(AHEAD > 1 ? AHEAD - 2 : 0)>();
            __syncthreads(); /* all threads' copies have arrived, and nobody reads the buffer that is to be filled */
            if (left < extent) {
                const int depth = FEW ? 0 : tn_within(coming, DEPTH);
                if (depth) {
                    from_a.copy(shared + fill * STAGE, depth, a);
                    from_b.copy(shared + fill * STAGE + side_a::SIZE, depth, b);
                }
                tn_copies_are_a_stage();
                fill = fill + 1 == STAGES ? 0 : fill + 1;
            }
            const T *const stage = shared + use * STAGE;
            const int steps = tn_within(left - own.slice * STEP, STEP);
            if (steps)
                accumulate(sum, side_a::lane_lines(stage, own.row, own.slice * STEP),
                           side_b::lane_lines(stage + side_a::SIZE, own.column, own.slice * STEP), own.down, own.across,
                           steps);
            use = use + 1 == STAGES ? 0 : use + 1;
        }
    }

    /* Adds a slice's products of a stage, of which `steps` positions of k are left; the stage has zeros beyond. */
    TN_HOT void accumulate(T (&sum)[ROWS_EACH][COLUMNS_EACH], const T *a, const T *b, int down, int across, int steps)
    {
        if constexpr (READS_AHEAD) {
            T x[2][1][ROWS_EACH], y[2][1][COLUMNS_EACH];
            side_a::read(x[0], a, down, 0);
            side_b::read(y[0], b, across, 0);
#pragma unroll 1
            for (int k = 0; k < steps; k += UNIT, a += UNIT * side_a::PITCH, b += UNIT * side_b::PITCH)
#pragma unroll
                for (int q = 0; q < UNIT; q++) {
                    side_a::read(x[(q + 1) % 2], a, down, q + 1); /* after the last position: garbage that is not
                                                                     used */
                    side_b::read(y[(q + 1) % 2], b, across, q + 1);
                    add(sum, x[q % 2][0], y[q % 2][0]);
                }
        } else {
#pragma unroll
            for (int k = 0; k < STEP; k += UNIT) {
                T x[UNIT][ROWS_EACH], y[UNIT][COLUMNS_EACH];
                side_a::read(x, a, down, k);
                side_b::read(y, b, across, k);
#pragma unroll
                for (int q = 0; q < UNIT; q++)
                    add(sum, x[q], y[q]);
            }
        }
    }
    TN_HOT void add(T (&sum)[ROWS_EACH][COLUMNS_EACH], const T (&x)[ROWS_EACH], const T (&y)[COLUMNS_EACH])
    {
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS_EACH; j++)
                sum[i][j] = tn_multiply_add(x[i], y[j], sum[i][j]);
    }

    TN_HOT T at(const T *shared, int row, int column)
    {
        return tn_sum_of_slices<SLICES>(shared + row * PITCH + column, ROWS * PITCH);
    }

    /* Each slice has partial sums of the same elements. Each of the threads that share these may keep the totals of
     * some of its columns in registers, u = 0, 1, ... < EACH. */
    static constexpr int OWN_COLUMNS = COLUMNS_EACH % SLICES ? COLUMNS_EACH : COLUMNS_EACH / SLICES,
                         EACH = ROWS_EACH * OWN_COLUMNS;
    TN_HOT int own_row(int u) { return own_spot().row + side_a::line(u / OWN_COLUMNS, own_spot().down); }
    TN_HOT int own_column(int u)
    {
        const spot own = own_spot();
        return own.column + own.slice * OWN_COLUMNS * LANES_ACROSS + side_b::line(u % OWN_COLUMNS, own.across);
    }
    /* The slices exchange, through shared memory, the partial sums that they do not keep. */
    TN_HOT void run(T (&x)[EACH], T *shared, const tn_factor<T> &a, const tn_factor<T> &b, tn_i64 extent)
    {
        typedef tn_span<T, QUAD> quad;
        static_assert(COLUMNS_EACH % (QUAD * SLICES) == 0, "");
        static_assert((SLICES - 1) * ROWS * COLUMNS <= STAGES * STAGE, "");
        T sum[ROWS_EACH][COLUMNS_EACH];
        multiply(sum, shared, a, b, extent);
        const int slice = threadIdx.x / GROUP;
        quad *const box = (quad *)shared + threadIdx.x % GROUP; /* one for each slice and each other one */
        if (SLICES > 1)
            __syncthreads();
#pragma unroll
        for (int s = 0; s < SLICES; s++)
            if (slice != s)
#pragma unroll
                for (int u = 0; u < EACH; u += QUAD)
                    box[((s * (SLICES - 1) + slice - (slice > s)) * EACH + u) / QUAD * GROUP] =
                        *(const quad *)&sum[u / OWN_COLUMNS][s * OWN_COLUMNS + u % OWN_COLUMNS];
        if (SLICES > 1)
            __syncthreads();
#pragma unroll
        for (int s = 0; s < SLICES; s++)
            if (slice == s)
#pragma unroll
                for (int u = 0; u < EACH; u += QUAD) {
                    T all[QUAD] = {};
#pragma unroll
                    for (int from = 0; from < SLICES; from++) {
                        quad part;
                        if (from == s)
                            part = *(const quad *)&sum[u / OWN_COLUMNS][s * OWN_COLUMNS + u % OWN_COLUMNS];
                        else
                            part = box[((s * (SLICES - 1) + from - (from > s)) * EACH + u) / QUAD * GROUP];
#pragma unroll
                        for (int q = 0; q < QUAD; q++)
                            all[q] = from ? all[q] + part.at[q] : part.at[q];
                    }
                    *(quad *)&x[u] = *(const quad *)all;
                }
    }

    /* Are as many of the thread's elements as are moved at once neighbours in memory, too, and aligned? */
    template <typename E> TN_HOT bool together(const E *at, int down, int across, int columns)
    {
        return across == 1 && down % QUAD == 0 && columns % QUAD == 0 &&
               (tn_u64)at % sizeof(tn_span<E, QUAD>) == 0;
    }
    /* Loads an array's elements at the thread's positions, relative to the tile's first element; where the result has
     * no such element, the nearest one. */
    template <bool EARLY, typename E>
    TN_HOT void fetch(E (&x)[EACH], const E *from, int down, int across, int rows, int columns)
    {
        typedef tn_span<E, QUAD> quad;
        if (together(from, down, across, columns)) {
#pragma unroll
            for (int u = 0; u < EACH; u += QUAD) {
                const quad *const at = (const quad *)(from + min(own_row(u), rows - 1) * down +
                                                      min(own_column(u), columns - QUAD));
                *(quad *)&x[u] = EARLY ? tn_load_l2(at) : *at;
            }
        } else {
#pragma unroll
            for (int u = 0; u < EACH; u++) {
                const E *const at = from + min(own_row(u), rows - 1) * down + min(own_column(u), columns - 1) * across;
                x[u] = EARLY ? tn_load_l2(at) : *at;
            }
        }
    }
    /* Stores the thread's elements, those that exist. */
    template <typename E> TN_HOT void put(const E (&x)[EACH], E *to, int down, int across, int rows, int columns)
    {
        if (together(to, down, across, columns)) {
#pragma unroll
            for (int u = 0; u < EACH; u += QUAD)
                if (own_row(u) < rows && own_column(u) < columns)
                    *(tn_span<E, QUAD> *)(to + own_row(u) * down + own_column(u)) = *(const tn_span<E, QUAD> *)&x[u];
        } else {
#pragma unroll
            for (int u = 0; u < EACH; u++)
                if (own_row(u) < rows && own_column(u) < columns)
                    to[own_row(u) * down + own_column(u) * across] = x[u];
        }
    }
};
