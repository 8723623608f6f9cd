/* SPDX-License-Identifier: MIT */
/*
 * The main loop of a float32 matrix product on tensor cores in CUDA C++, with float32's accuracy. It is like that of
 * product.cuh, which stands before it.
 *
 *     parts      A float32 number is the sum of two TF32 numbers but for its last bit or so: the nearest one, and what
 *                is left. Of the four products of the parts of two numbers three count: small x large, large x small,
 *                large x large.
 *     sums       Tensor cores cut off what they add instead of rounding it. So they add few terms at a time, those of
 *                STEP positions of k, and float32 additions do the rest: the error is that of a sum in float32.
 *     infinities Infinite numbers, and the very largest ones, have no such parts. A tile with an element that is not
 *                finite is computed again by float32 multiply-adds, so infinities and NaN are as everywhere else.
 *     warps      Each has ROWS_EACH x COLUMNS_EACH of the tile, in pieces of 16 x 8.
 */

/* c += a b for a warp's pieces of 16 x 8 x 8, whose numbers are distributed over the lanes as PTX's mma.m16n8k8
 * demands. */
TN_HOT void tn_multiply_pieces(tn_f32 (&c)[4], const tn_u32 (&a)[4], const tn_u32 (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int ROWS_, int COLUMNS_, int ROWS_EACH, int COLUMNS_EACH, int SLICES, int STEP, int STAGES, bool A_ALONG_K,
          bool B_ALONG_K, bool A_GATHERED = false>
struct tn_tensor_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int WARPS_ACROSS = COLUMNS / COLUMNS_EACH, DOWN = ROWS_EACH / 16, ACROSS = COLUMNS_EACH / 8;
    static constexpr int GROUP = 32 * (ROWS / ROWS_EACH) * WARPS_ACROSS, THREADS = GROUP * SLICES,
                         DEPTH = STEP * SLICES;
    static_assert(ROWS_EACH % 16 == 0 && COLUMNS_EACH % 8 == 0 && STEP % 8 == 0, "");
    static_assert(ROWS % ROWS_EACH == 0 && COLUMNS % COLUMNS_EACH == 0, "");
    typedef tn_side<tn_f32, ROWS, DEPTH, THREADS, 8, 1, A_ALONG_K, A_GATHERED, true> side_a;
    typedef tn_side<tn_f32, COLUMNS, DEPTH, THREADS, 8, 1, B_ALONG_K, false, true> side_b;
    typedef tn_f32 sums[DOWN][ACROSS][4]; /* a lane's accumulators */
    static constexpr int PITCH = COLUMNS + 8; /* pitch of the result: rows of a piece are in different banks of
                                                 shared memory */
    static constexpr int AHEAD = STAGES - 1, STAGE = side_a::SIZE + side_b::SIZE;

    /* Computes the tile into shared memory; at() reads it afterwards. Called by all threads of the block, after
     * tn_start. */
    TN_HOT void run(tn_f32 *shared, const tn_factor<tn_f32> &a, const tn_factor<tn_f32> &b, tn_i64 extent)
    {
        side_a from_a = side_a::make(a, AHEAD);
        side_b from_b = side_b::make(b, AHEAD);
        const int slice = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32, lane = threadIdx.x % 32;
        const int row = warp / WARPS_ACROSS * ROWS_EACH + lane / 4, column = warp % WARPS_ACROSS * COLUMNS_EACH;
        sums sum = {};
        int use = 0, fill = AHEAD;
        for (tn_i64 left = extent, coming = extent - AHEAD * DEPTH; left > 0; left -= DEPTH, coming -= DEPTH) {
            tn_copies_wait<AHEAD - 1>();
            __syncthreads(); /* all threads' copies have arrived, and nobody reads the buffer that is to be filled */
            if (coming > 0) {
                const int depth = coming < DEPTH ? (int)coming : DEPTH;
                from_a.copy(shared + fill * STAGE, depth, a);
                from_b.copy(shared + fill * STAGE + side_a::SIZE, depth, b);
                fill = fill + 1 == STAGES ? 0 : fill + 1;
            }
            tn_copies_are_a_stage();
            const tn_f32 *const stage = shared + use * STAGE;
            if (slice * STEP < left)
                accumulate(sum, side_a::lane_lines(stage, row, slice * STEP + lane % 4),
                           side_b::lane_lines(stage + side_a::SIZE, column + lane / 4, slice * STEP + lane % 4));
            use = use + 1 == STAGES ? 0 : use + 1;
        }
        __syncthreads();
        if (__syncthreads_or(!leave(shared + slice * ROWS * PITCH, sum, row, column + lane % 4 * 2)))
            again(shared, a, b, extent);
    }

    /* A lane reads the number at row lane / 4 and column lane % 4 of each 8 x 4 quarter of 16 x 8 positions, or half of
     * 8 x 8. */
    TN_HOT void accumulate(sums &sum, const tn_f32 *a, const tn_f32 *b)
    {
        sums part = {};
#pragma unroll
        for (int k = 0; k < STEP; k += 8) {
            tn_u32 great_a[DOWN][4], small_a[DOWN][4], great_b[ACROSS][2], small_b[ACROSS][2];
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    split(a[side_a::place(16 * i + e % 2 * 8, k + e / 2 * 4)], great_a[i][e], small_a[i][e]);
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    split(b[side_b::place(8 * j, k + e * 4)], great_b[j][e], small_b[j][e]);
#pragma unroll
            /* the products of one accumulator are far apart in the loop, so that none waits for the one before */
            for (int product = 0; product < 3; product++)
#pragma unroll
                for (int i = 0; i < DOWN; i++)
#pragma unroll
                    for (int j = 0; j < ACROSS; j++)
                        tn_multiply_pieces(part[i][j], product == 0 ? small_a[i] : great_a[i],
                                           product == 1 ? small_b[j] : great_b[j]);
        }
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[i][j][e] += part[i][j][e];
    }

    /* x + 8192 x loses the last 13 bits of x, to the nearest number; the rest is exact. */
    TN_HOT void split(tn_f32 x, tn_u32 &great, tn_u32 &small)
    {
        const tn_f32 nearest = tn_multiply_add(-8192.0f, x, tn_multiply_add(8192.0f, x, x));
        great = tns_bits_f32(nearest);
        small = tns_bits_f32(x - nearest);
    }

    /* Writes the lane's elements, the first of them at this row and column of the tile. False if one of them is not
     * finite. */
    TN_HOT bool leave(tn_f32 *tile, const sums &sum, int row, int column)
    {
        tn_f32 check = 0;
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
#pragma unroll
                for (int e = 0; e < 4; e += 2) {
                    tn_span<tn_f32, 2> *const to =
                        (tn_span<tn_f32, 2> *)(tile + (row + 16 * i + 4 * e) * PITCH + column + 8 * j);
                    *to = {sum[i][j][e], sum[i][j][e + 1]};
                    check = tn_multiply_add(0, sum[i][j][e], tn_multiply_add(0, sum[i][j][e + 1], check));
                }
        return check == 0;
    }

    /* Computes the tile by float32 multiply-adds, into the memory of the first slice. */
    static __device__ __noinline__ void again(tn_f32 *shared, const tn_factor<tn_f32> a, const tn_factor<tn_f32> b,
                                              tn_i64 extent)
    {
        for (int at = threadIdx.x; at < ROWS * COLUMNS; at += THREADS) {
            const int row = at / COLUMNS, column = at % COLUMNS;
            tn_f32 sum = 0;
            const tn_i64 line = A_GATHERED && row < a.lines ? a.offsets[row] : row * a.step;
            for (tn_i64 k = 0; k < extent && row < a.lines && column < b.lines; k++)
                sum = tn_multiply_add(a.from[line + k * a.k_step], b.from[column * b.step + k * b.k_step], sum);
            for (int s = 0; s < SLICES; s++)
                shared[(s * ROWS + row) * PITCH + column] = s ? 0 : sum;
        }
        __syncthreads();
    }

    TN_HOT tn_f32 at(const tn_f32 *shared, int row, int column)
    {
        return tn_sum_of_slices<SLICES>(shared + row * PITCH + column, ROWS * PITCH);
    }
};
