/* SPDX-License-Identifier: MIT */
/*
 * Eigenvalues, ascending, and eigenvectors of many small Hermitian matrices A, by Jacobi's method: A becomes J^H A J
 * for rotation after rotation, until it is diagonal; the product of all J has the vectors as its columns. Behind
 * jacobi.cuh.
 */
typedef number table[ROWS][COLUMNS + 1];

#define SMALL_BITS 0x3c30000000000000ull /* bits of 2^-60: off-diagonal elements below that do not matter */
#define LEAST_BITS 0x3370000000000000ull /* bits of 2^-200: smaller elements are not rotated away */

/* Loads a matrix from its lower triangle, scaled and padded with zeros; returns the bits of its largest element. */
__device__ unsigned long long load(table a, table v, const job &j, const number *from, int t)
{
    unsigned long long bits = 0;
    for (int k = t; k < COLUMNS * COLUMNS; k += THREADS) {
        const int r = k / COLUMNS, c = k % COLUMNS;
        number x = number();
        if (r < j.n && c < j.n)
            x = r < c ? conjugate(element(j, from, c, r)) : element(j, from, r, c);
        if (r == c)
            x = real(x.part[0]);
        const unsigned long long own = size_bits(x);
        bits = own > bits ? own : bits;
        a[r][c] = x;
        v[r][c] = real(r == c);
    }
    bits = largest(bits);
    const int exponent = bits < INFINITE ? exponent_of(bits) : 0;
    for (int k = t; k < COLUMNS * COLUMNS && exponent; k += THREADS)
        a[k / COLUMNS][k % COLUMNS] = scaled(a[k / COLUMNS][k % COLUMNS], -exponent);
    meet();
    return bits;
}

__device__ bool diagonal(table a, int t)
{
    unsigned long long bits = 0;
    for (int k = t; k < COLUMNS * COLUMNS; k += THREADS) {
        const int r = k / COLUMNS, c = k % COLUMNS;
        const unsigned long long own = r == c ? 0 : size_bits(a[r][c]);
        bits = own > bits ? own : bits;
    }
    return largest(bits) <= SMALL_BITS;
}

/* Computes each pair's rotation, and applies it to the pair's own 2 x 2 block. */
__device__ void choose(table a, rotation *chosen, int step, int h, int t)
{
    if (t >= h)
        return;
    int p, q;
    pair_of(t, step, h, &p, &q);
    rotation r = {1, 0, number()};
    if (size_bits(a[p][q]) > LEAST_BITS) {
        r = rotation_of(a[p][p].part[0], a[q][q].part[0], a[p][q]);
        a[p][p].part[0] -= r.shift;
        a[q][q].part[0] += r.shift;
        a[p][q] = a[q][p] = number();
    }
    chosen[t] = r;
}

/* Applies the rotations to the blocks of each two pairs, and to the vectors. */
__device__ void apply(table a, table v, const rotation *chosen, int step, int h, int n, bool vectors, int t)
{
    int p, q, x, y;
    for (int k = t; k < PAIRS * PAIRS; k += THREADS) {
        const int above = k / PAIRS, beside = k % PAIRS;
        if (above == beside || above >= h || beside >= h)
            continue;
        const rotation left = chosen[above], right = chosen[beside];
        pair_of(above, step, h, &p, &q);
        pair_of(beside, step, h, &x, &y);
        number block[2][2] = {{a[p][x], a[p][y]}, {a[q][x], a[q][y]}};
        turn(block[0][0], block[0][1], right.c, right.s);
        turn(block[1][0], block[1][1], right.c, right.s);
        turn(block[0][0], block[1][0], left.c, conjugate(left.s));
        turn(block[0][1], block[1][1], left.c, conjugate(left.s));
        a[p][x] = block[0][0];
        a[p][y] = block[0][1];
        a[q][x] = block[1][0];
        a[q][y] = block[1][1];
    }
    for (int k = t; k < n * PAIRS && vectors; k += THREADS) {
        const int row = k / PAIRS, beside = k % PAIRS;
        if (beside >= h)
            continue;
        pair_of(beside, step, h, &p, &q);
        turn(v[row][p], v[row][q], chosen[beside].c, chosen[beside].s);
    }
}

__device__ bool diagonalize(table a, table v, rotation *chosen, int n, bool vectors, int t)
{
    const int h = (n + 1) / 2; /* if n is odd, one column's partner does not exist */
    for (int sweep = 0; !diagonal(a, t); sweep++) {
        if (sweep == SWEEPS)
            return false;
        for (int step = 0; step < 2 * h - 1; step++) {
            choose(a, chosen, step, h, t);
            meet();
            apply(a, v, chosen, step, h, n, vectors, t);
            meet();
        }
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(MATRICES * THREADS)
eigh(const __grid_constant__ walk w, const __grid_constant__ job j, const __grid_constant__ tn_failure failure)
{
    STOP_IF_FAILED(failure.guard);
    __shared__ table a_of[MATRICES], v_of[MATRICES];
    __shared__ rotation chosen_of[MATRICES][PAIRS];
    __shared__ double values_of[MATRICES][COLUMNS];
    __shared__ int source_of[MATRICES][COLUMNS];
    const int own = threadIdx.x / THREADS, t = threadIdx.x % THREADS, n = j.n;
    number(*const a)[COLUMNS + 1] = a_of[own], (*const v)[COLUMNS + 1] = v_of[own];
    double *const values = values_of[own];
    int *const source = source_of[own];
    for (i64 i = (i64)blockIdx.x * MATRICES + own; i < w.size; i += (i64)gridDim.x * MATRICES) {
        i64 at[3];
        places(w, i, at);
        number *const to = j.to + at[0];
        const unsigned long long bits = load(a, v, j, j.from + at[1], t);
        const bool finite = bits < INFINITE;
        if ((!finite && n > 1) || !diagonalize(a, v, chosen_of[own], n, j.vectors, t)) {
            give_up(j, to, t, finite || bits > INFINITE, failure, i);
            meet();
            continue;
        }
        if (t < n)
            values[t] = a[t][t].part[0];
        meet();
        sort(source, values, n, false, t);
        if (t < n)
            to[t * j.to_step] = real(ldexp(values[source[t]], finite ? exponent_of(bits) : 0));
        for (int k = t; k < n * n && j.vectors; k += THREADS)
            to[(n + k) * j.to_step] = v[k / n][source[k % n]];
        meet();
    }
}
