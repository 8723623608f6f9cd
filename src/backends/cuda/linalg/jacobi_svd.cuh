/* SPDX-License-Identifier: MIT */
/*
 * Singular values, descending, and vectors of many small matrices with no more columns than rows, X = U S V^H, by the
 * one-sided method of Hestenes: X becomes X J for rotation after rotation, until its columns are orthogonal; their
 * lengths are the values, they themselves, over these, U, and the product of all J is V. Golub and Van Loan, Matrix
 * Computations, 4th edition, 8.6.3. Behind jacobi.cuh. Loops that take no time are not unrolled, as their machine code
 * would take some to make.
 */
typedef number left_table[ROWS][ROWS + 1]; /* X, then all columns of U */
typedef number right_table[COLUMNS][COLUMNS + 1];

#define LANES (THREADS / PAIRS)    /* threads for a pair of columns */
#define TINY 0x1p-130              /* a column of this squared length is rounding alone: it counts as zero */
#define MEET 0x1p-100              /* squared cosines: columns that meet at less are orthogonal */
#define TURN 0x1p-104              /* and at more they are turned; less, so that a sweep never does nothing */

struct space {
    left_table x;
    right_table v;
    number product[ROWS];
    double squares[ROWS];          /* lengths of columns, of rows */
    int source[ROWS], done[ROWS];
};

__device__ unsigned long long load(space &s, const job &j, const number *from, int t)
{
    unsigned long long bits = 0;
    #pragma unroll 1
    for (int k = t; k < j.m * j.n; k += THREADS) {
        const number x = element(j, from, k / j.n, k % j.n);
        const unsigned long long own = size_bits(x);
        bits = own > bits ? own : bits;
        s.x[k / j.n][k % j.n] = x;
    }
    #pragma unroll 1
    for (int k = t; k < j.n * j.n; k += THREADS)
        s.v[k / j.n][k % j.n] = real(k / j.n == k % j.n);
    bits = largest(bits);
    const int exponent = bits < INFINITE ? exponent_of(bits) : 0;
    #pragma unroll 1
    for (int k = t; k < j.m * j.n && exponent; k += THREADS)
        s.x[k / j.n][k % j.n] = scaled(s.x[k / j.n][k % j.n], -exponent);
    meet();
    return bits;
}

/* Leaves the columns' squared lengths in `squares`, and tells whether all columns are orthogonal. */
__device__ bool orthogonal(space &s, int m, int n, int t)
{
    if (t < n) {
        double sum = 0;
        for (int r = 0; r < m; r++)
            sum += square(s.x[r][t]);
        s.squares[t] = sum;
    }
    meet();
    const int h = (n + 1) / 2;
    bool apart = true;
    for (int k = t; k < h * (2 * h - 1); k += THREADS) {
        int p, q;
        pair_of(k % h, k / h, h, &p, &q);
        if (p >= n || !(s.squares[p] > TINY && s.squares[q] > TINY))
            continue;
        number sum = number();
        for (int r = 0; r < m; r++)
            sum = plus_product(sum, conjugate(s.x[r][p]), s.x[r][q]);
        apart = apart && !(square(sum) > MEET * s.squares[p] * s.squares[q]);
    }
    return largest(!apart) == 0;
}

/* Rotates one pair of columns, by LANES threads. */
__device__ void turn_pair(space &s, int p, int q, bool there, const job &j, int lane)
{
    double pp = 0, qq = 0;
    number pq = number();
    for (int r = lane; r < j.m && there; r += LANES) {
        pp += square(s.x[r][p]);
        qq += square(s.x[r][q]);
        pq = plus_product(pq, conjugate(s.x[r][p]), s.x[r][q]);
    }
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        pp += __shfl_xor_sync(ALL, pp, apart);
        qq += __shfl_xor_sync(ALL, qq, apart);
        for (int k = 0; k < PARTS; k++)
            pq.part[k] += __shfl_xor_sync(ALL, pq.part[k], apart);
    }
    if (!there || !(pp > TINY && qq > TINY && square(pq) > TURN * pp * qq))
        return;
    const rotation r = rotation_of(pp, qq, pq);
    for (int k = lane; k < j.m; k += LANES)
        turn(s.x[k][p], s.x[k][q], r.c, r.s);
    for (int k = lane; k < j.n && j.vectors; k += LANES)
        turn(s.v[k][p], s.v[k][q], r.c, r.s);
}

__device__ bool make_orthogonal(space &s, const job &j, int t)
{
    const int h = (j.n + 1) / 2;
    for (int sweep = 0; !orthogonal(s, j.m, j.n, t); sweep++) {
        if (sweep == SWEEPS)
            return false;
        for (int step = 0; step < 2 * h - 1; step++) {
            int p, q;
            pair_of(t / LANES, step, h, &p, &q);
            turn_pair(s, p, q, t / LANES < h && p < j.n, j, t % LANES);
            meet();
        }
    }
    return true;
}

/* Makes a column of U that X does not determine: the unit vector that is farthest from the space of the other columns,
 * orthogonalized against them twice. */
__device__ void complete(space &s, int column, int m, int columns, int t)
{
    if (t < m) {
        double outside = 1;
        #pragma unroll 1
        for (int k = 0; k < columns; k++)
            outside -= s.done[k] ? square(s.x[t][k]) : 0;
        s.squares[t] = outside;
    }
    meet();
    int farthest = 0;
    #pragma unroll 1
    for (int k = 1; k < m; k++)
        farthest = s.squares[k] > s.squares[farthest] ? k : farthest;
    if (t < m)
        s.x[t][column] = real(t == farthest);
    #pragma unroll 1
    for (int time = 0; time < 2; time++) {
        meet();
        if (t < columns && s.done[t]) {
            number sum = number();
            #pragma unroll 1
            for (int r = 0; r < m; r++)
                sum = plus_product(sum, conjugate(s.x[r][t]), s.x[r][column]);
            s.product[t] = times(-1, sum);
        }
        meet();
        #pragma unroll 1
        for (int k = 0; k < columns && t < m; k++)
            if (s.done[k])
                s.x[t][column] = plus_product(s.x[t][column], s.x[t][k], s.product[k]);
    }
    meet();
    double length = 0;
    #pragma unroll 1
    for (int r = 0; r < m; r++)
        length += square(s.x[r][column]);
    meet();
    if (t < m)
        s.x[t][column] = times(1 / sqrt(length), s.x[t][column]);
    if (t == 0)
        s.done[column] = 1;
    meet();
}

/* Replaces X, whose columns are orthogonal, by U; if U has more columns, these follow. */
__device__ void make_left(space &s, const job &j, int columns, int t)
{
    if (t < columns) {
        s.done[t] = t < j.n && s.squares[t] > TINY;
        if (t >= j.n)
            s.source[t] = t;
    }
    meet();
    #pragma unroll 1
    for (int k = t; k < j.m * j.n; k += THREADS)
        if (s.done[k % j.n])
            s.x[k / j.n][k % j.n] = times(1 / sqrt(s.squares[k % j.n]), s.x[k / j.n][k % j.n]);
    meet();
    #pragma unroll 1
    for (int column = 0; column < columns; column++)
        if (!s.done[column])
            complete(s, column, j.m, columns, t);
}

/* Packs U, S, V^H; if the matrix is the adjoint of the operand, V, S, U^H. */
__device__ void store(const space &s, const job &j, number *to, int columns, int exponent, const double *lengths, int t)
{
    const int m = j.m, n = j.n, first = j.vectors ? j.adjoint ? n * n : m * columns : 0;
    if (t < n)
        to[(first + t) * j.to_step] = real(ldexp(lengths[s.source[t]], exponent));
    if (j.vectors == 0)
        return;
    const int behind = first + n;
    #pragma unroll 1
    for (int k = t; k < m * columns; k += THREADS)
        if (j.adjoint)
            to[(behind + k) * j.to_step] = conjugate(s.x[k % m][s.source[k / m]]);
        else
            to[k * j.to_step] = s.x[k / columns][s.source[k % columns]];
    #pragma unroll 1
    for (int k = t; k < n * n; k += THREADS)
        if (j.adjoint)
            to[k * j.to_step] = s.v[k / n][s.source[k % n]];
        else
            to[(behind + k) * j.to_step] = conjugate(s.v[k % n][s.source[k / n]]);
}

extern "C" __global__ void __launch_bounds__(MATRICES * THREADS)
svd(const __grid_constant__ walk w, const __grid_constant__ job j, const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED(failure.guard);
    __shared__ space spaces[MATRICES];
    __shared__ double lengths_of[MATRICES][COLUMNS];
    const int own = threadIdx.x / THREADS, t = threadIdx.x % THREADS, columns = j.vectors == 2 ? j.m : j.n;
    space &s = spaces[own];
    double *const lengths = lengths_of[own];
    #pragma unroll 1
    for (i64 i = (i64)blockIdx.x * MATRICES + own; i < w.size; i += (i64)gridDim.x * MATRICES) {
        i64 at[3];
        places(w, i, at);
        number *const to = j.to + at[0];
        const unsigned long long bits = load(s, j, j.from + at[1], t);
        if (bits >= INFINITE || !make_orthogonal(s, j, t)) {
            give_up(j, to, t, bits != INFINITE, failure, i);
            meet();
            continue;
        }
        if (t < j.n)
            lengths[t] = sqrt(s.squares[t]);
        meet();
        sort(s.source, lengths, j.n, true, t);
        if (j.vectors)
            make_left(s, j, columns, t);
        store(s, j, to, columns, exponent_of(bits), lengths, t);
        meet();
    }
}
