/* SPDX-License-Identifier: MIT */
/* Matrix products with one thread an element: for dtypes and layouts that no library takes. Terms are added in order,
 * each rounded. And what comes behind a product where a library does not do it itself. */
extern "C" __global__ void matmul(const __grid_constant__ walk w, S *out, const S *a, const S *b,
    i64 m, i64 n, i64 k, i64 out_row, i64 out_column, i64 a_row, i64 a_column, i64 b_row, i64 b_column,
    W alpha, int beta, const unsigned long long *guard)
{
    STOP_IF_FAILED(guard);
    for EACH(i, w.size * m * n) {
        i64 at[3], column = i % n, row = i / n % m;
        places(w, i / n / m, at);
        const S *x = a + at[1] + row * a_row, *y = b + at[2] + column * b_column;
        W sum = 0;
        for (i64 p = 0; p < k; p++)
            sum = (W)PLUS(sum, (W)TIMES(LOAD(x[p * a_column]), LOAD(y[p * b_row])));
        sum = (W)TIMES(alpha, sum);
        S *place = out + at[0] + row * out_row + column * out_column;
        *place = STORE(beta ? (W)PLUS(sum, LOAD(*place)) : sum);
    }
}

/* A row added to each. A thread has four elements in hand, so that memory does not wait for it. */
extern "C" __global__ void epilogue(S *out, const S *bias, i64 rows, i64 columns, i64 out_row, i64 out_column)
{
    const i64 size = rows * columns, threads = (i64)gridDim.x * blockDim.x;
    for (i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x; first < size; first += 4 * threads) {
        S *place[4];
        W x[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const i64 i = first + u * threads, row = i / columns, column = i - row * columns;
            place[u] = i < size ? out + row * out_row + column * out_column : nullptr;
            if (place[u])
                x[u] = (W)PLUS(LOAD(*place[u]), LOAD(bias[column]));
        }
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (place[u])
                *place[u] = STORE(x[u]);
    }
}
