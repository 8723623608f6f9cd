/* SPDX-License-Identifier: MIT */
/*
 * Main loops of matrix products in CUDA C++ that keep a factor in registers; this text stands after product.cuh. If b
 * is an input of the program, it is loaded before the kernel waits for the kernels before it, so that only a is loaded
 * after that.
 *
 *     skinny Few columns and a long k. A thread takes QUAD neighbouring positions of k (in each round of all threads,
 *            if one is not enough), and has the rows of b there, all COLUMNS of them, in registers; it multiplies ROWS
 *            rows of a. The lanes of a warp add their sums by halves, each half going on with half of the columns that
 *            are left; the sums of the warps are added in order.
 *     short  A short k, DEPTH positions. Each thread has a column of b in registers and computes that column of the
 *            result element by element, each a sum in the order of k.
 *     back   Back-to-back after a skinny one, in the same blocks: its ROWS rows of DEPTH numbers, by then in shared
 *            memory, are multiplied by the transpose of b, of which each thread still has QUAD columns in registers.
 *            Each element is a sum in the order of k.
 */
/* Makes the compiler compute the pointer here, not where it is used. */
template <typename T> TN_HOT T *tn_settled(T *p)
{
    tn_u64 at = __cvta_generic_to_global(p);
    asm volatile("" : "+l"(at));
    return (T *)__cvta_global_to_generic(at);
}
TN_HOT int tn_settled(int n)
{
    asm volatile("" : "+r"(n));
    return n;
}

/* B_WHOLE: all of b is contiguous, stored by k; ONCE: one round covers all of k. */
template <typename T, int ROWS_, int COLUMNS_, int SLICES, bool B_WHOLE, bool ONCE, bool A_GATHERED = false>
struct tn_skinny_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = 32 * SLICES, QUAD = 16 / sizeof(T),
                         ROUND = QUAD * THREADS;
    static constexpr int MOST = 16, SUMS = SLICES * ROWS * MOST,
                         PART = 32 * QUAD * COLUMNS; /* elements of b that a warp needs in a round */
    static constexpr int BYTES = (int)sizeof(T) * (SUMS + (B_WHOLE ? SLICES * PART : 0));
    static_assert(COLUMNS <= MOST, "");
    typedef tn_span<T, QUAD> quad;

    /* What a thread keeps in registers: the rows of b at its QUAD positions of k, and the numbers of a there; and the
     * address of the latter, if they can be read at once. */
    struct registers {
        alignas(16) T at[QUAD * COLUMNS];
        alignas(16) T a[ROWS][QUAD];
        const T *from[ROWS];
        int quads;
    };

    /* Computes the addresses of a thread's part of a, so that none is left to be computed when a can be read. */
    TN_HOT void aim(registers &b, const tn_factor<T> &a)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            b.from[r] = tn_settled(a.from + (!A_GATHERED ? r * a.step : r < a.lines ? a.offsets[r] : 0) +
                                   threadIdx.x * QUAD);
        b.quads = tn_settled(a.quads && a.k_step == 1);
    }

    /* Can b be copied 16 bytes at a time? That goes through shared memory, so that a warp's pieces are neighbours: all
     * blocks read all of b at once, and requests of half a sector would keep the second-level cache busy. */
    TN_HOT bool in_pieces(const tn_factor<T> &f, tn_i64 extent)
    {
        return B_WHOLE && (tn_u64)f.from % 16 == 0 && extent * COLUMNS % QUAD == 0;
    }

    /* Loads a thread's part of b, or starts its copies; it is in registers after take(). */
    TN_HOT void load_registers(registers &b, T *shared, const tn_factor<T> &f, tn_i64 extent, tn_i64 begin = 0)
    {
        const tn_i64 k = begin + threadIdx.x * QUAD;
        if (in_pieces(f, extent)) {
            T *const part = shared + SUMS + threadIdx.x / 32 * PART;
            const tn_i64 first = (begin + threadIdx.x / 32 * 32 * QUAD) * COLUMNS, left = extent * COLUMNS - first;
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const int at = (i * 32 + threadIdx.x % 32) * QUAD;
                tn_copy_async<16>(part + at, f.from + (at < left ? first + at : 0), at < left);
            }
            tn_copies_are_a_stage();
        } else {
            const T *const from = f.from + k * (B_WHOLE ? COLUMNS : f.k_step);
#pragma unroll
            for (int i = 0; i < QUAD * COLUMNS; i++) {
                const int q = i / COLUMNS, c = i % COLUMNS;
                b.at[i] = k + q < extent && c < f.lines ? one(from + (B_WHOLE ? i : c * f.step + q * f.k_step)) : (T)0;
            }
        }
    }

    TN_HOT void take(registers &b, const T *shared, const tn_factor<T> &f, tn_i64 extent)
    {
        if (!in_pieces(f, extent))
            return;
        tn_copies_wait<0>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
            *(quad *)&b.at[i * QUAD] = *(const quad *)(shared + SUMS + (threadIdx.x * COLUMNS + i) * QUAD);
        __syncwarp();
    }

    /* Computes the tile into shared memory; at() reads it afterwards. `b` has the thread's part of b for the first
     * round, and afterwards the parts of both factors for the last one. */
    TN_HOT void run(T *shared, const tn_factor<T> &a, const tn_factor<T> &f, tn_i64 extent, registers &b)
    {
        T sum[ROWS][COLUMNS] = {};
        for (tn_i64 begin = 0; begin < extent; begin += ROUND) {
            if (!ONCE && begin) {
                load_registers(b, shared, f, extent, begin);
                take(b, shared, f, extent);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                read(b.a[r], b, a, r, begin, extent);
#pragma unroll
            for (int q = 0; q < QUAD; q++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
                        sum[r][c] = tn_multiply_add(b.a[r][q], b.at[q * COLUMNS + c], sum[r][c]);
            if (ONCE)
                break;
        }
        const int lane = threadIdx.x % 32;
        const int column = column_of<COLUMNS>(lane);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            fold<COLUMNS>(sum[r], lane);
            if (column >= 0)
                shared[(threadIdx.x / 32 * ROWS + r) * MOST + column] = sum[r][0];
        }
        __syncthreads();
    }

    TN_HOT void read(T (&x)[QUAD], const registers &b, const tn_factor<T> &a, int row, tn_i64 begin, tn_i64 extent)
    {
        const tn_i64 k = begin + threadIdx.x * QUAD;
        if (b.quads) {
            quad piece = {};
            if (row < a.lines && k < extent)
                piece = *(const quad *)(b.from[row] + begin);
            *(quad *)x = piece;
        } else {
            const T *const from = a.from + (!A_GATHERED ? row * a.step : row < a.lines ? a.offsets[row] : 0);
#pragma unroll
            for (int q = 0; q < QUAD; q++)
                x[q] = row < a.lines && k + q < extent ? one(from + (k + q) * a.k_step) : (T)0;
        }
    }

    /* Loads a number. volatile: one load after another, so that no registers hold the addresses of many. */
    TN_HOT T one(const T *at) { return *(const volatile T *)at; }

    /* Adds the sums of pairs of lanes that are LANES apart: each lane of a pair goes on with half of the N columns, or
     * both with the only one. */
    template <int N, int LANES = 16> TN_HOT void fold(T (&sum)[COLUMNS], int lane)
    {
        if constexpr (LANES > 0) {
            constexpr int HALF = (N + 1) / 2;
            const bool upper = N > 1 && lane & LANES;
#pragma unroll
            for (int i = 0; i < HALF; i++) {
                const T high = N == 1 ? sum[i] : i + HALF < N ? sum[i + HALF] : (T)0;
                const T others = upper ? sum[i] : high, own = upper ? high : sum[i];
                sum[i] = own + tn_from_lane(others, lane ^ LANES);
            }
            fold<HALF, LANES / 2>(sum, lane);
        }
    }
    /* The column whose sum a lane has after fold(); -1: none. */
    template <int N, int LANES = 16> TN_HOT int column_of(int lane)
    {
        if constexpr (N == 1) {
            return 0;
        } else {
            constexpr int HALF = (N + 1) / 2;
            const int column = column_of<HALF, LANES / 2>(lane);
            return !(lane & LANES) ? column : column < 0 || column + HALF >= N ? -1 : column + HALF;
        }
    }

    TN_HOT T at(const T *shared, int row, int column)
    {
        return tn_sum_of_slices<SLICES>(shared + row * MOST + column, ROWS * MOST);
    }
};

template <typename T, int ROWS_, int COLUMNS_, int THREADS_, int DEPTH, bool A_GATHERED = false>
struct tn_short_product {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, THREADS = THREADS_, BYTES = 0;

    /* A column of b, in registers. */
    struct registers {
        T at[DEPTH];
    };

    TN_HOT void load_registers(registers &b, const tn_factor<T> &f, int column)
    {
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
            b.at[k] = column < f.lines ? tn_load_l2(f.from + column * f.step + k * f.k_step) : (T)0;
    }

    /* The result's element in the thread's column, at a row that exists. */
    TN_HOT T at(const tn_factor<T> &a, const registers &b, int row)
    {
        constexpr int PAIR = DEPTH % 2 ? 1 : 2;
        const T *const from = a.from + (A_GATHERED ? a.offsets[row] : row * a.step);
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

    /* Computes a thread's elements of each row, from the part of b that it has had in registers since the skinny
     * product. */
    template <typename REGISTERS> TN_HOT void multiply(T (&sum)[EACH], const T *rows, const REGISTERS &b)
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
