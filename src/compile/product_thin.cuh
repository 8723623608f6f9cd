/* SPDX-License-Identifier: MIT */
/*
 * Cores of matrix products in CUDA C++ that keep their factors in registers, beside product.cuh's, which stands before them. A
 * factor b that the program is given is there before the kernel waits for those before it, so that only a has to come.
 *
 *     thin   Few columns and a long k. A thread takes QUAD neighbouring positions of k, or as many in each round of all threads,
 *            and has their rows of b, all COLUMNS of them; it multiplies ROWS rows of a. The threads of a warp add their sums by
 *            halves, each half going on with half of the columns; those of the warps are added in their order.
 *     short  A short k, DEPTH positions. Each thread has its column of b and computes elements of it one by one, a sum in the
 *            order of k.
 *     back   Behind a thin one, in its blocks: ROWS rows of DEPTH numbers, in shared memory by then, are multiplied by the transpose
 *            of b, of which each thread has QUAD columns from before. A sum in the order of k.
 */
template <typename T, int ROWS_, int COLUMNS_, int SLICES, bool A_GATHERED = false> struct tn_thin_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = 32 * SLICES, QUAD = 16 / sizeof(T), ROUND = QUAD * THREADS;
    static constexpr int MOST = 16, BYTES = (int)sizeof(T) * SLICES * ROWS * MOST;
    static_assert(COLUMNS <= MOST, "");
    typedef tn_span<T, QUAD> quad;

    /* A thread's part of b: rows of it at QUAD positions of k. */
    struct held {
        alignas(16) T at[QUAD * COLUMNS];
    };

    TN_HOT void hold(held &b, const tn_factor<T> &f, tn_i64 extent, tn_i64 begin = 0)
    {
        const tn_i64 k = begin + threadIdx.x * QUAD;
        if (f.step == 1 && f.k_step == COLUMNS && f.lines == COLUMNS && (tn_u64)f.from % 16 == 0 && k + QUAD <= extent) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                *(quad *)&b.at[i * QUAD] = *(const quad *)(f.from + k * COLUMNS + i * QUAD);
        } else {
#pragma unroll
            for (int q = 0; q < QUAD; q++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    b.at[q * COLUMNS + c] = k + q < extent && c < f.lines ? one(f.from + c * f.step + (k + q) * f.k_step) : (T)0;
        }
    }

    /* The tile into shared memory: afterwards at() reads it. `b` holds the thread's first part of b. */
    TN_HOT void run(T *shared, const tn_factor<T> &a, const tn_factor<T> &f, tn_i64 extent, held &b)
    {
        T sum[ROWS][MOST] = {};
        for (tn_i64 begin = 0; begin < extent; begin += ROUND) {
            if (begin)
                hold(b, f, extent, begin);
            alignas(16) T x[ROWS][QUAD];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                read(x[r], a, r, begin + threadIdx.x * QUAD, extent);
#pragma unroll
            for (int q = 0; q < QUAD; q++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
                        sum[r][c] = tn_multiply_add(x[r][q], b.at[q * COLUMNS + c], sum[r][c]);
        }
        const int lane = threadIdx.x % 32;
        const int column = (lane >> 4 & 1) * 8 + (lane >> 3 & 1) * 4 + (lane >> 2 & 1) * 2 + (lane >> 1 & 1);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            fold<MOST>(sum[r], lane);
            sum[r][0] += tn_from_lane(sum[r][0], lane ^ 1);
            if (!(lane & 1))
                shared[(threadIdx.x / 32 * ROWS + r) * MOST + column] = sum[r][0];
        }
        __syncthreads();
    }

    TN_HOT void read(T (&x)[QUAD], const tn_factor<T> &a, int row, tn_i64 k, tn_i64 extent)
    {
        const T *const from = a.from + (!A_GATHERED ? row * a.step : row < a.lines ? a.places[row] : 0);
        if (a.quads && a.k_step == 1 && row < a.lines && k < extent) {
            *(quad *)x = *(const quad *)(from + k);
        } else {
#pragma unroll
            for (int q = 0; q < QUAD; q++)
                x[q] = row < a.lines && k + q < extent ? one(from + (k + q) * a.k_step) : (T)0;
        }
    }

    /* A number that lies somewhere: one after the other, so that no registers hold the addresses of many. */
    TN_HOT T one(const T *at) { return *(const volatile T *)at; }

    /* Adds the sums of two lanes: each goes on with half of the N columns. */
    template <int N> TN_HOT void fold(T (&sum)[MOST], int lane)
    {
        if constexpr (N > 1) {
            const bool upper = lane & N;
#pragma unroll
            for (int i = 0; i < N / 2; i++) {
                const T others = upper ? sum[i] : sum[i + N / 2], own = upper ? sum[i + N / 2] : sum[i];
                sum[i] = own + tn_from_lane(others, lane ^ N);
            }
            fold<N / 2>(sum, lane);
        }
    }

    TN_HOT T at(const T *shared, int row, int column)
    {
        return tn_sum_of_slices<SLICES>(shared + row * MOST + column, ROWS * MOST);
    }
};

template <typename T, int ROWS_, int COLUMNS_, int THREADS_, int DEPTH, bool A_GATHERED = false> struct tn_short_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = THREADS_, BYTES = 0;

    /* A column of b. */
    struct held {
        T at[DEPTH];
    };

    TN_HOT void hold(held &b, const tn_factor<T> &f, int column)
    {
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            b.at[k] = column < f.lines ? f.from[column * f.step + k * f.k_step] : (T)0;
    }

    /* An element of the column, in a row that there is. */
    TN_HOT T at(const tn_factor<T> &a, const held &b, int row)
    {
        constexpr int PAIR = DEPTH % 2 ? 1 : 2;
        const T *const from = a.from + (A_GATHERED ? a.places[row] : row * a.step);
        alignas(PAIR * sizeof(T)) T x[DEPTH];
        T sum = 0;
        if (PAIR == 2 && a.k_step == 1 && (tn_u64)from % (2 * sizeof(T)) == 0) {
#pragma unroll
            for (int k = 0; k < DEPTH; k += PAIR)
                *(tn_span<T, PAIR> *)&x[k] = *(const tn_span<T, PAIR> *)(from + k);
        } else {
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
                x[k] = from[k * a.k_step];
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            sum = tn_multiply_add(x[k], b.at[k], sum);
        return sum;
    }
};

template <typename T, int ROWS_, int THREADS, int DEPTH> struct tn_back_product {
    static constexpr int ROWS = ROWS_, QUAD = 16 / sizeof(T), COLUMNS = QUAD * THREADS, EACH = ROWS * QUAD;

    /* A thread's elements of each row, from what it holds as part of a thin product. */
    template <typename HELD> TN_HOT void multiply(T (&sum)[EACH], const T *rows, const HELD &b)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            sum[i] = 0;
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
                sum[i] = tn_multiply_add(rows[i / QUAD * DEPTH + k], b.at[i % QUAD * DEPTH + k], sum[i]);
        }
    }
};
