/* SPDX-License-Identifier: MIT */
/*
 * Products of very many tiny matrices, out = alpha a b + beta out: a block takes GROUP of them at a time, brings their
 * factors into shared memory as they lie, in one piece where they do, and takes their results back through it. A thread
 * computes ROWS_EACH x COLUMNS_EACH elements, each a sum in the order of k.
 *
 * In front of it: T, M, N, K, GROUP, ROWS_EACH, COLUMNS_EACH, A_ACROSS and B_ACROSS (a factor lies by columns), and
 * background.cuh.
 */
constexpr int THREADS = 128, BLOCKS = 32 / sizeof(T), QUAD = 16 / sizeof(T); /* BLOCKS: blocks of a multiprocessor */
constexpr int ACROSS = (N + COLUMNS_EACH - 1) / COLUMNS_EACH, DOWN = (M + ROWS_EACH - 1) / ROWS_EACH;
constexpr int SHARES = ACROSS * DOWN; /* threads that compute a matrix */
static_assert(GROUP % 4 == 0, "groups begin at multiples of 16 bytes");

static constexpr int common(int a, int b) { return b ? common(b, a % b) : a; }

/* A matrix in shared memory, ROWS x COLUMNS, by rows or by columns. `WIDTH`: neighbours that can be read at once, in
 * pieces of EACH from multiples of it on. */
template <int ROWS, int COLUMNS, bool BY_COLUMNS, int EACH> struct tiny {
    static constexpr int SIZE = ROWS * COLUMNS, ROW = BY_COLUMNS ? 1 : COLUMNS, COLUMN = BY_COLUMNS ? ROWS : 1;
    static constexpr int WIDTH = BY_COLUMNS ? 1 : common(common(COLUMNS, EACH), QUAD);

    static_assert(WIDTH == 1 || COLUMNS % EACH == 0, "");

    /* Reads EACH neighbours of a row, from `column` on; beyond the end the last one is repeated. */
    static HOT void read(T *x, const T *from, int row, int column)
    {
#pragma unroll
        for (int e = 0; e < EACH; e += WIDTH) {
            const int at = COLUMNS % EACH && column + e >= COLUMNS ? COLUMNS - 1 : column + e;
            *(span<T, WIDTH> *)&x[e] = *(const span<T, WIDTH> *)(from + row * ROW + at * COLUMN);
        }
    }
};
constexpr int STEP = common(K, QUAD); /* positions of k that are read at once */
typedef tiny<M, K, A_ACROSS, STEP> a_matrix;
typedef tiny<K, N, B_ACROSS, COLUMNS_EACH> b_matrix;

/* How an operand's matrices lie in memory. */
struct matrices {
    T *from;
    i64 row, column;
    int dense;      /* one behind the other, without gaps, as in shared memory */
};

struct products {
    matrices out, a, b;
    int beta, dense; /* dense: all three are */
    factor alpha;
    u64 guard;
};

/* Copies a group's factors into shared memory. `place`: the address of each matrix, unless they are dense. */
template <int ROWS, int COLUMNS, bool BY_COLUMNS>
static HOT void fetch(T *to, const matrices &x, i64 first, int count, const i64 *place)
{
    constexpr int SIZE = ROWS * COLUMNS, PIECES = GROUP * SIZE / QUAD;
    if (x.dense && (u64)x.from % 16 == 0) {
        const T *const from = x.from + first * SIZE;
#pragma unroll 4
        for (int i = threadIdx.x; i < PIECES; i += THREADS) {
            const int left = (count * SIZE - i * QUAD) * (int)sizeof(T);
            copy_async<16>(to + i * QUAD, left > 0 ? from + i * QUAD : x.from, left < 0 ? 0 : left < 16 ? left : 16);
        }
        return;
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < count * SIZE; i += THREADS) {
        const int matrix = i / SIZE, rest = i % SIZE, row = BY_COLUMNS ? rest % ROWS : rest / COLUMNS,
                  column = BY_COLUMNS ? rest / ROWS : rest % COLUMNS;
        const i64 at = x.dense ? first * SIZE + i : place[matrix] + row * x.row + column * x.column;
        copy_async<sizeof(T)>(to + i, x.from + at, sizeof(T));
    }
}

static HOT void multiply(T *to, const T *a, const T *b, int row, int column)
{
    T sum[ROWS_EACH][COLUMNS_EACH] = {};
#pragma unroll
    for (int k = 0; k < K; k += STEP) {
        alignas(16) T x[ROWS_EACH][STEP];
#pragma unroll
        for (int r = 0; r < ROWS_EACH; r++)
            a_matrix::read(x[r], a, M % ROWS_EACH && row + r >= M ? M - 1 : row + r, k);
#pragma unroll
        for (int s = 0; s < STEP; s++) {
            alignas(16) T y[COLUMNS_EACH];
            b_matrix::read(y, b, k + s, column);
#pragma unroll
            for (int r = 0; r < ROWS_EACH; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS_EACH; c++)
                    sum[r][c] = multiply_add(x[r][s], y[c], sum[r][c]);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS_EACH; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS_EACH; c++)
            if (row + r < M && column + c < N)
                to[(row + r) * N + column + c] = sum[r][c];
}

static HOT void store(const products &p, const T *from, i64 first, int count, const i64 *place)
{
    constexpr int SIZE = M * N;
    const T alpha = p.alpha;
    if (p.out.dense && (u64)p.out.from % 16 == 0 && count == GROUP) {
        T *const to = p.out.from + first * SIZE;
        for (int i = threadIdx.x * QUAD; i < GROUP * SIZE; i += THREADS * QUAD) {
            span<T, QUAD> x = *(const span<T, QUAD> *)(from + i), old = {};
            if (p.beta)
                old = *(const span<T, QUAD> *)(to + i);
#pragma unroll
            for (int e = 0; e < QUAD; e++)
                x.at[e] = p.beta ? multiply_add(alpha, x.at[e], old.at[e]) : alpha * x.at[e];
            *(span<T, QUAD> *)(to + i) = x;
        }
        return;
    }
    for (int i = threadIdx.x; i < count * SIZE; i += THREADS) {
        const int rest = i % SIZE;
        T *const to = p.out.from + (p.out.dense ? first * SIZE + i
                                                : place[i / SIZE] + rest / N * p.out.row + rest % N * p.out.column);
        *to = p.beta ? multiply_add(alpha, from[i], *to) : alpha * from[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) tiny_products(const __grid_constant__ walk w,
                                                                 const __grid_constant__ products p)
{
    STOP_IF_FAILED(p.guard);
    __shared__ __align__(16) T a[GROUP * M * K], b[GROUP * K * N], out[GROUP * M * N];
    __shared__ i64 place[3][GROUP];
    for (i64 first = (i64)blockIdx.x * GROUP; first < w.size; first += (i64)gridDim.x * GROUP) {
        const int count = w.size - first < GROUP ? (int)(w.size - first) : GROUP;
        if (!p.dense) {
            for (int i = threadIdx.x; i < count; i += THREADS) {
                i64 at[3];
                places(w, first + i, at);
                place[0][i] = at[0];
                place[1][i] = at[1];
                place[2][i] = at[2];
            }
            __syncthreads();
        }
        fetch<M, K, A_ACROSS>(a, p.a, first, count, place[1]);
        fetch<K, N, B_ACROSS>(b, p.b, first, count, place[2]);
        copies_are_a_stage();
        copies_wait<0>();
        __syncthreads();
        for (int i = threadIdx.x; i < count * SHARES; i += THREADS) {
            const int matrix = i / SHARES, share = i % SHARES;
            multiply(out + matrix * M * N, a + matrix * M * K, b + matrix * K * N, share / ACROSS * ROWS_EACH,
                     share % ACROSS * COLUMNS_EACH);
        }
        __syncthreads();
        store(p, out, first, count, place[0]);
        __syncthreads();
    }
}
