/* SPDX-License-Identifier: MIT */
/*
 * What surrounds cuSOLVER's functions: matrices lie one behind the other, each in Fortran's order. In front of it:
 * PARTS, 1 for float64 and 2 for complex128; i64, EACH, STOP_IF_FAILED, tn_failure and tn_fail.
 */
struct number {
    double part[PARTS];
};

struct matrices {
    number *a;              /* n by n */
    number *b;              /* `each` elements a matrix: right sides; signs and logarithms */
    i64 *pivot;             /* n for each matrix, counted from 1 */
    int *info;
    i64 n, each, count;
};

/* Reports a matrix for which the library's function failed. */
extern "C" __global__ void look(const __grid_constant__ matrices m, const __grid_constant__ tn_failure failure)
{
    for EACH(i, m.count)
        if (m.info[i] != 0)
            tn_fail(&failure, 1, m.info[i]);
}

/* Writes zeros above the diagonal, or (`upper`) below it. */
extern "C" __global__ void triangle(const __grid_constant__ matrices m, int upper)
{
    for EACH(k, m.count * m.n * m.n) {
        const i64 i = k % m.n, j = k / m.n % m.n;
        if (upper ? i > j : i < j)
            m.a[k] = number();
    }
}

/* Writes NaN as the solutions of singular matrices. */
extern "C" __global__ void unsolved(const __grid_constant__ matrices m)
{
    for EACH(k, m.count * m.each)
        if (m.info[k / m.each] != 0) {
            m.b[k] = number();
            m.b[k].part[0] = __longlong_as_double(0x7ff8000000000000ll);
        }
}

/* Computes the sign (for complex numbers, the phase) and the logarithm of the absolute value of each determinant, from
 * the factors. */
extern "C" __global__ void determinant(const __grid_constant__ matrices m)
{
    for EACH(k, m.count) {
        number sign = number(), log_size = number();
        sign.part[0] = 1;
        for (i64 i = 0; i < m.n && m.info[k] == 0; i++) {
            const number x = m.a[(k * m.n + i) * m.n + i];
            const double turn = m.pivot[k * m.n + i] == i + 1 ? 1 : -1;
#if PARTS == 2
            const double size = hypot(x.part[0], x.part[1]);
            const double re = turn * x.part[0] / size, im = turn * x.part[1] / size, was = sign.part[0];
            sign.part[0] = was * re - sign.part[1] * im;
            sign.part[1] = was * im + sign.part[1] * re;
#else
            const double size = fabs(x.part[0]);
            sign.part[0] *= turn * x.part[0] / size;
#endif
            log_size.part[0] += log(size);
        }
        if (m.info[k] > 0) {
            sign = number();
            log_size.part[0] = __longlong_as_double((long long)0xfff0000000000000ull);
        }
        m.b[2 * k] = sign;
        m.b[2 * k + 1] = log_size;
    }
}
