/* SPDX-License-Identifier: MIT */
/*
 * What Jacobi's methods for many small matrices have in common: eigenvalues (jacobi_eigh.cuh) and singular values
 * (jacobi_svd.cuh). In front of it: PARTS, 1 for float64 and 2 for complex128; ROWS and COLUMNS, the powers of two from
 * 4 to 32 that matrices fit in, no more columns than rows; THREADS that share a matrix, 32 (a warp) or a block; walk,
 * places, STOP_IF_FAILED, tn_failure and tn_fail.
 *
 * A rotation makes the element of two columns zero that couples them. Rotations of columns that are all different do
 * not meet: in a step, each column has a partner, in the order of a tournament in which everybody meets everybody, and
 * a sweep is all its steps. Golub and Van Loan, Matrix Computations, 4th edition, 8.5.5; Brent and Luk, "The solution
 * of singular-value and symmetric eigenvalue problems on multiprocessor arrays" (1985). The numbers are scaled by a
 * power of two first, so that the largest lies between 1/2 and 1 and squares are harmless.
 */
#define ALL 0xffffffffu
#define PAIRS (COLUMNS / 2)
#define MATRICES (THREADS == 32 ? 4 / PARTS : 1) /* matrices of a block */
#define SWEEPS 40                                /* 5 to 10 are usual */
#define INFINITE 0x7ff0000000000000ull           /* the bits of infinity; NaN's are more */

struct number {
    double part[PARTS];
};

/* The matrices' elements, and the addresses of the packed results. */
struct job {
    number *to;
    const number *from;
    i64 row, column, to_step, each;
    int m, n, vectors, adjoint; /* the matrix is the adjoint of what is given, m x n; how many vectors */
};

__device__ void meet()
{
#if THREADS == 32
    __syncwarp();
#else
    __syncthreads();
#endif
}

/* The largest of all threads' values. It is also a barrier for shared memory, which register shuffles alone are not:
 * afterwards, what the threads have read may be overwritten. */
__device__ unsigned long long largest(unsigned long long x)
{
    for (int apart = 16; apart > 0; apart /= 2) {
        const unsigned long long other = __shfl_xor_sync(ALL, x, apart);
        x = other > x ? other : x;
    }
#if THREADS > 32
    __shared__ unsigned long long of_warp[THREADS / 32];
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    for (int k = 0; k < THREADS / 32; k++)
        x = of_warp[k] > x ? of_warp[k] : x;
#endif
    meet();
    return x;
}

__device__ number conjugate(number a)
{
#if PARTS == 2
    a.part[1] = -a.part[1];
#endif
    return a;
}

__device__ number times(double c, number a)
{
    for (int k = 0; k < PARTS; k++)
        a.part[k] *= c;
    return a;
}

/* x + a b */
__device__ number plus_product(number x, const number a, const number b)
{
    x.part[0] += a.part[0] * b.part[0];
#if PARTS == 2
    x.part[0] -= a.part[1] * b.part[1];
    x.part[1] += a.part[0] * b.part[1];
    x.part[1] += a.part[1] * b.part[0];
#endif
    return x;
}

__device__ double square(const number a)
{
#if PARTS == 2
    return a.part[0] * a.part[0] + a.part[1] * a.part[1];
#else
    return a.part[0] * a.part[0];
#endif
}

/* The bits of the larger part's absolute value: ordered as the sizes are, with NaN the largest. */
__device__ unsigned long long size_bits(const number a)
{
    unsigned long long bits = 0;
    for (int k = 0; k < PARTS; k++) {
        const unsigned long long own = (unsigned long long)__double_as_longlong(fabs(a.part[k]));
        bits = own > bits ? own : bits;
    }
    return bits;
}

/* The exponent that brings the largest number below 1. */
__device__ int exponent_of(unsigned long long bits) { return bits ? (int)(bits >> 52) - 1022 : 0; }

__device__ number scaled(number a, int exponent)
{
    for (int k = 0; k < PARTS; k++)
        a.part[k] = ldexp(a.part[k], exponent);
    return a;
}

__device__ number real(double x)
{
    number a = number();
    a.part[0] = x;
    return a;
}

__device__ number element(const job &j, const number *from, int row, int column)
{
    const number a = from[row * j.row + column * j.column];
    return j.adjoint ? conjugate(a) : a;
}

/* Writes the results of a matrix that has none (NaN); reports a failure if the method has failed. */
__device__ void give_up(const job &j, number *to, int t, bool failed, const tn_failure &failure, i64 place)
{
    for (int k = t; k < j.each; k += THREADS)
        to[k * j.to_step] = real(__longlong_as_double(0x7ff8000000000000ll));
    if (failed && t == 0)
        tn_fail(&failure, 1, place);
}

/* Pair i of step k of 2 h columns' tournament: one stays, the others move around. */
__device__ void pair_of(int i, int k, int h, int *p, int *q)
{
    const int around = 2 * h - 1;
    *p = i == 0 ? around : k + i < around ? k + i : k + i - around;
    *q = k - i < 0 ? k - i + around : k - i;
}

/* J = (c s; -conj(s) c), for which J^H (a b; conj(b) e) J = diag(a - shift, e + shift), by the smaller angle. */
struct rotation {
    double c, shift;
    number s;
};

__device__ rotation rotation_of(double a, double e, const number b)
{
    const double d = e - a, size = square(b), root = d * d + 4 * size;
    const double tangent = copysign(2 / (fabs(d) + root * rsqrt(root)), d); /* over b */
    rotation r;
    r.c = rsqrt(1 + tangent * tangent * size); /* 1 itself for a small angle */
    r.s = times(r.c * tangent, b);
    r.shift = tangent * size;
    return r;
}

/* (x y) J */
__device__ void turn(number &x, number &y, double c, const number s)
{
    const number was = x;
    x = plus_product(times(c, x), times(-1, conjugate(s)), y);
    y = plus_product(times(c, y), s, was);
}

/* Finds, for each position in the results' order (ascending, or descending), which value comes there. */
__device__ void sort(int *source, const double *values, int n, bool descending, int t)
{
    if (t < n) {
        int rank = 0;
        for (int k = 0; k < n; k++) {
            const bool before = descending ? values[k] > values[t] : values[k] < values[t];
            rank += before || (values[k] == values[t] && k < t);
        }
        source[rank] = t;
    }
    meet();
}
