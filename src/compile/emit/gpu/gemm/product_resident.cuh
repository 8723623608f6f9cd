/* SPDX-License-Identifier: MIT */
/*
 * A main loop of matrix products in CUDA C++ for a first factor that can be read long before the second: rows of a
 * dataset, say, which a kernel copies while the kernels before it still run. This text stands after product.cuh, and
 * has the same tiles, slices and order of sums.
 *
 *     a    All of it is in shared memory: all stages of product.cuh, one after another.
 *     b    Each slice is a single warp, so its share of b is read by nobody else. The warp copies it by pieces, QUAD
 *          positions of k each, into a ring of its own of STAGES rounds, and copies the next piece to where it has just
 *          read one. So from a's arrival to the last term no warp waits for another, and copies are under way all the
 *          time.
 *
 * a's copies have to be started (bring_a) before b's (bring_b).
 */
template <typename T, int ROWS_, int COLUMNS_, int ROWS_EACH, int COLUMNS_EACH, int LANES_DOWN, int SLICES, int STEP,
          int STAGES, bool A_GATHERED = false>
struct tn_resident_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = 32 * SLICES, DEPTH = STEP * SLICES;
    static constexpr int LANES_ACROSS = 32 / LANES_DOWN, QUAD = 16 / sizeof(T);
    static_assert(ROWS_EACH * LANES_DOWN == ROWS && COLUMNS_EACH * LANES_ACROSS == COLUMNS, "a warp has the tile");
    static_assert(COLUMNS == 32 && STEP % QUAD == 0, "");
    typedef tn_side<T, ROWS, DEPTH, THREADS, ROWS_EACH, LANES_DOWN, true, A_GATHERED> side_a;
    typedef tn_side<T, COLUMNS, QUAD, 32, COLUMNS_EACH, LANES_ACROSS, false, false> side_b; /* a piece of b */
    /* pieces of a round; pieces of the ring, all of which are copied ahead of their use */
    static constexpr int PIECES = STEP / QUAD, IN_RING = STAGES * PIECES;
    /* pitch of the result, which each warp writes into its ring */
    static constexpr int PITCH = COLUMNS + QUAD;
    static constexpr int OWN = IN_RING * side_b::SIZE > ROWS * PITCH ? IN_RING * side_b::SIZE : ROWS * PITCH;

    /* Starts the copies of a, into shared memory after the rings. */
    TN_HOT void bring_a(T *shared, const tn_factor<T> &a, tn_i64 extent)
    {
        side_a from = side_a::make(a, 0);
        T *to = shared + SLICES * OWN;
#pragma unroll 1
        for (tn_i64 left = extent; left > 0; left -= DEPTH, to += side_a::SIZE)
            from.copy(to, tn_within(left, DEPTH), a);
    }

    /* The part of its warp's pieces of b that a lane copies: WIDTH neighbours in every WIDTH-th row; zeros where b has
     * no elements. */
    template <int WIDTH> struct share {
        const T *from;
        tn_i64 k_step;
        int to;   /* offset in a piece */
        int left; /* positions of k that are left, from that row on */

        /* The lane's part, beginning with the given round. */
        TN_HOT share make(const tn_factor<T> &b, tn_i64 extent, int round)
        {
            const int k = round * DEPTH + threadIdx.x / 32 * STEP, lane = threadIdx.x % 32;
            const int row = lane * WIDTH / COLUMNS, column = lane * WIDTH % COLUMNS;
            return {b.from + column * b.step + (k + row) * b.k_step, b.k_step, tn_kept(row * side_b::PITCH + column),
                    tn_kept(column < b.lines ? (int)extent - k - row : 0)};
        }
        __device__ __forceinline__ void bring(T *piece)
        {
#pragma unroll
            for (int r = 0; r < QUAD; r += WIDTH)
                tn_copy_async<WIDTH * (int)sizeof(T)>(piece + to + r * side_b::PITCH, from + r * k_step, r < left);
            tn_copies_are_a_stage();
            go_on(QUAD);
        }
        __device__ __forceinline__ void go_on(int rows)
        {
            from += rows * k_step;
            left -= rows;
        }
    };

    /* Starts as many copies of b as the rings have room for. Copies started before arrive with the first of them. */
    TN_HOT void bring_b(T *shared, const tn_factor<T> &b, tn_i64 extent)
    {
        if (b.quads)
            bring_first(shared, share<QUAD>::make(b, extent, 0));
        else
            bring_first(shared, share<1>::make(b, extent, 0));
    }
    template <typename SHARE> TN_HOT void bring_first(T *shared, SHARE from)
    {
        T *piece = shared + threadIdx.x / 32 * OWN;
#pragma unroll 1
        for (int round = 0; round < STAGES; round++, from.go_on(DEPTH - STEP))
#pragma unroll
            for (int i = 0; i < PIECES; i++, piece += side_b::SIZE)
                from.bring(piece);
    }

    /* Computes the tile into shared memory; at() reads it afterwards. Called by all threads of the block, after bring_a
     * and bring_b. */
    TN_HOT void run(T *shared, const tn_factor<T> &, const tn_factor<T> &b, tn_i64 extent)
    {
        tn_copies_wait<IN_RING - 1>();
        __syncthreads(); /* all of a has arrived */
        if (b.quads)
            multiply(shared, share<QUAD>::make(b, extent, STAGES), (int)extent);
        else
            multiply(shared, share<1>::make(b, extent, STAGES), (int)extent);
        __syncthreads();
    }

    /* Computes a slice's sums, while it copies the rest of its share of b. */
    template <typename SHARE> TN_HOT void multiply(T *shared, SHARE from, int extent)
    {
        const int slice = threadIdx.x / 32, lane = threadIdx.x % 32;
        constexpr int PAIR = LANES_DOWN > 1 ? 2 : 1;
        const int down = lane % PAIR + lane / PAIR / LANES_ACROSS * PAIR, across = lane / PAIR % LANES_ACROSS;
        T *const ring = shared + slice * OWN;
        const T *lines = side_a::lane_lines(shared + SLICES * OWN, 0, slice * STEP);
        T sum[ROWS_EACH][COLUMNS_EACH] = {};
        int round = 0;
        for (int left = extent - slice * STEP; left > 0; left -= DEPTH, round = round + 1 == STAGES ? 0 : round + 1) {
            tn_copies_wait<IN_RING - PIECES>();
            __syncwarp(); /* all lanes' copies for this round have arrived */
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                T *const piece = ring + (round * PIECES + i) * side_b::SIZE;
                T x[QUAD][ROWS_EACH], y[QUAD][COLUMNS_EACH];
                side_a::read(x, lines, down, i * QUAD);
                side_b::read(y, piece, across, 0);
                __syncwarp(); /* all lanes have read the piece, which may be overwritten now */
                from.bring(piece);
#pragma unroll
                for (int q = 0; q < QUAD; q++)
#pragma unroll
                    for (int r = 0; r < ROWS_EACH; r++)
#pragma unroll
                        for (int c = 0; c < COLUMNS_EACH; c++)
                            sum[r][c] = tn_multiply_add(x[q][r], y[q][c], sum[r][c]);
            }
            from.go_on(DEPTH - STEP);
            lines += side_a::SIZE;
        }
        tn_copies_wait<0>(); /* copies of zeros may be left, of rounds beyond the last */
        __syncwarp();
#pragma unroll
        for (int r = 0; r < ROWS_EACH; r++)
            side_b::write_pieces(ring + side_a::line(r, down) * PITCH, sum[r], across);
    }

    TN_HOT T at(const T *shared, int row, int column)
    {
        return tn_sum_of_slices<SLICES>(shared + row * PITCH + column, OWN);
    }
};
