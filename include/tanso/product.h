/* SPDX-License-Identifier: MIT */
/* Products of arrays beyond tn_matmul, as NumPy has them. All are made of matrix products and sums, and
 * differentiable. */
#ifndef TANSO_PRODUCT_H
#define TANSO_PRODUCT_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NumPy's dot: of vectors their inner product, of matrices the matrix product, with a scalar the product; else the sum
 * over a's last and b's second to last axis. */
TN_API tn_array *tn_dot(const tn_array *a, const tn_array *b);
/* The inner product of the flat arrays (the first conjugated, if complex). */
TN_API tn_array *tn_vdot(const tn_array *a, const tn_array *b);
/* The sum of products along the last axes, with broadcasting (NumPy 2's vecdot). */
TN_API tn_array *tn_vecdot(const tn_array *a, const tn_array *b, int axis);
TN_API tn_array *tn_vecdot_with(const tn_array *a, const tn_array *b, int axis, const tn_out_opts *opts);
/* Matrices in the last two axes of one operand times vectors in the last axis of the other, with broadcasting (NumPy
 * 2's matvec and vecmat, which conjugates the vectors). */
TN_API tn_array *tn_matvec(const tn_array *a, const tn_array *x);
TN_API tn_array *tn_vecmat(const tn_array *x, const tn_array *a);
/* The sum over the last axes of both. */
TN_API tn_array *tn_inner(const tn_array *a, const tn_array *b);
/* Products of all pairs of the flat arrays: a matrix. */
TN_API tn_array *tn_outer(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_kron(const tn_array *a, const tn_array *b);
/* The sum over pairs of axes: a's, and b's as many. Result: the other axes of a, then those of b. */
TN_API tn_array *tn_tensordot(const tn_array *a, const tn_array *b, tn_axes a_axes, tn_axes b_axes);

typedef struct tn_cross_opts {
    const char *_;
    tn_axes a, b, result; /* the axes that hold the vectors; default: the last */
} tn_cross_opts;
/* Cross products of vectors of 3 elements, or of 2 (the third is 0; of two such only the third component is given). */
TN_API tn_array *tn_cross_with(const tn_array *a, const tn_array *b, const tn_cross_opts *opts);

/*
 * Einstein summation: "ij,jk->ik". Letters name axes; a letter that is not behind the arrow is summed over; without an
 * arrow the result has the letters that occur once, in alphabetical order; "..." stands for axes that broadcast.
 * Repeated letters of an operand take its diagonal. Operands are contracted in pairs from the left, each letter summed
 * as soon as no one else needs it, all in their common dtype, or in out's where that holds each operand. opts: casting
 * is "safe" by default.
 */
TN_API tn_array *tn_einsum(const char *subscripts, int count, const tn_array *const *operands);
TN_API tn_array *tn_einsum_with(const char *subscripts, int count, const tn_array *const *operands,
                                const tn_out_opts *opts);

#ifndef TN_NO_MACROS
#define tn_dot(a, b) TN_AT(tn_dot)(TN_ARG(a), TN_ARG(b))
#define tn_vdot(a, b) TN_AT(tn_vdot)(TN_ARG(a), TN_ARG(b))
#define tn_vecdot(a, b, axis) TN_AT(tn_vecdot)(TN_ARG(a), TN_ARG(b), axis)
#define tn_matvec(a, x) TN_AT(tn_matvec)(TN_ARG(a), TN_ARG(x))
#define tn_vecmat(x, a) TN_AT(tn_vecmat)(TN_ARG(x), TN_ARG(a))
#define tn_inner(a, b) TN_AT(tn_inner)(TN_ARG(a), TN_ARG(b))
#define tn_outer(a, b) TN_AT(tn_outer)(TN_ARG(a), TN_ARG(b))
#define tn_kron(a, b) TN_AT(tn_kron)(TN_ARG(a), TN_ARG(b))
#define tn_tensordot(a, b, a_axes, b_axes) TN_AT(tn_tensordot)(TN_ARG(a), TN_ARG(b), a_axes, b_axes)
#define tn_vecdot_with(a, b, ...) TN_AT(tn_vecdot_with)(TN_ARG(a), TN_ARG(b), __VA_ARGS__)
#define tn_einsum_with(...) TN_AT(tn_einsum_with)(__VA_ARGS__)
#define tn_einsum(...) TN_AT(tn_einsum)(__VA_ARGS__)
#define tn_cross(...) TN__CALL_AA(tn_cross_with, tn_cross_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
