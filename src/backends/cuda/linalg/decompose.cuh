/* SPDX-License-Identifier: MIT */
/*
 * What surrounds cuSOLVER's decompositions: its results, which lie in Fortran's order, packed one behind the other in C
 * order. In front of it: PARTS, 1 for float64 and 2 for complex128; i64, EACH, tn_failure and tn_fail.
 */
struct number {
    double part[PARTS];
};

/* Packs a matrix of `columns` columns that are `ld` elements apart; `upper`: with zeros below the diagonal. */
extern "C" __global__ void lay(number *to, const number *from, i64 rows, i64 columns, i64 ld, int upper)
{
    for EACH(k, rows * columns) {
        const i64 i = k / columns, j = k - i * columns;
        to[k] = upper && i > j ? number() : from[i + j * ld];
    }
}

/* Packs real numbers as elements of the matrix's dtype. */
extern "C" __global__ void lay_real(number *to, const double *from, i64 count)
{
    for EACH(k, count) {
        number x = number();
        x.part[0] = from[k];
        to[k] = x;
    }
}

/* Reports a matrix whose values did not converge, or which is not finite. */
extern "C" __global__ void look(const int *info, const double *values, const __grid_constant__ tn_failure failure)
{
    for EACH(i, 1)
        if (*info != 0 || !isfinite(*values))
            tn_fail(&failure, 1, *info);
}
