/* SPDX-License-Identifier: MIT */
/*
 * Linear algebra with NumPy's names and semantics (numpy.linalg): of matrices, the last two axes; the leading axes are
 * a batch.
 *
 * Computed by LAPACK with NumPy's drivers, so that signs and orders agree with it; a build without LAPACK says which
 * package brings it. Dtypes: float32, float64, complex64, complex128; integers and bool as float64; float16 and
 * bfloat16 are TN_ERR_DTYPE. As NumPy, single precision is computed in double and rounded. A matrix for which there is
 * no result (singular, not positive definite, values that do not converge) is TN_ERR_VALUE when the result is
 * evaluated.
 *
 * On a GPU any number of matrices of 32 x 32 or fewer are factored, solved and decomposed (but for qr and eig) at once;
 * svd and eigh by Jacobi's methods. Large matrices are for cuSOLVER, one after another: those of 128 x 128 and more
 * (for singular values 256 x 256), up to 16 of them, or any number of 512 x 512 and more. Both keep LAPACK's
 * conventions, but not every sign (or phase) of a vector. For others, for eig, and where cuSOLVER is not installed, the
 * operands are moved to the CPU at once, and the results back.
 *
 * Differentiable: all but matrix_rank; of lstsq, x; qr where there are no fewer rows than columns and mode is reduced,
 * svd with vectors where .reduced is given or matrices are square. Gradients by singular vectors and eigenvectors exist
 * where the values differ from each other, and for complex matrices where the loss does not depend on the vectors'
 * phases; those of pinv and lstsq wherever a small change leaves the rank as it is. Losses of singular values and
 * eigenvalues alone have gradients whether these differ or not, second derivatives where they do. Matrices that
 * cholesky and eigh take to be Hermitian get Hermitian gradients.
 *
 * Functions with several results set all of them, on an error to error arrays, and return the status; NULL stands for a
 * result that is not wanted.
 */
#ifndef TANSO_LINALG_H
#define TANSO_LINALG_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- equations ---- */

/* x of a x = b: b is a vector, or (..., n, k); leading axes broadcast. */
TN_API tn_array *tn_linalg_solve(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_linalg_inv(const tn_array *a);
/* Its gradient is det a^-T, so that it means nothing where a is singular. */
TN_API tn_array *tn_linalg_det(const tn_array *a);
/* det = sign exp(logdet); of a singular matrix 0 and -infinity. Of complex matrices, sign is of size 1. */
TN_API tn_status tn_linalg_slogdet(const tn_array *a, tn_array **sign, tn_array **logdet);

typedef struct tn_pinv_opts {
    const char *_;
    double rcond;   /* singular values up to rcond times the largest count as 0; default: see each function */
    double tol;     /* matrix_rank: up to this number; default: by rcond */
    bool hermitian; /* pinv, matrix_rank: the matrices are Hermitian, and eigenvalues do */
} tn_pinv_opts;
/* The Moore-Penrose inverse; rcond is 1e-15 by default. */
TN_API tn_array *tn_linalg_pinv_with(const tn_array *a, const tn_pinv_opts *opts);
/* Number of singular values above tol, int64, 0 of an empty matrix; by default rcond is max(m, n) times the dtype's
 * epsilon. */
TN_API tn_array *tn_linalg_matrix_rank_with(const tn_array *a, const tn_pinv_opts *opts);
/* x with the least |a x - b|, and of those the least |x|, for one matrix; b of one or two axes. residuals: the squares
 * of |a x - b|, one a column of b, empty unless a has full column rank and more rows than columns; rank: int32, 0-d; s:
 * singular values of a. rcond as above, by default max(m, n) times the dtype's epsilon; negative: the epsilon.
 * Evaluates. */
TN_API tn_status tn_linalg_lstsq_with(const tn_array *a, const tn_array *b, tn_array **x, tn_array **residuals,
                                      tn_array **rank, tn_array **s, const tn_pinv_opts *opts);

/* ---- decompositions ---- */

typedef struct tn_linalg_opts {
    const char *_;
    bool upper; /* cholesky: gives U of a = U^H U, of a's upper triangle; eigh, eigvalsh: read a's upper triangle */
} tn_linalg_opts;
/* L of a = L L^H; only a's lower triangle is read. */
TN_API tn_array *tn_linalg_cholesky_with(const tn_array *a, const tn_linalg_opts *opts);

typedef enum tn_qr_mode {
    TN_QR_REDUCED = 0, /* q (..., m, k), r (..., k, n), k = min(m, n) */
    TN_QR_COMPLETE,    /* q (..., m, m), r (..., m, n) */
    TN_QR_R,           /* r as reduced; q is of no columns */
    TN_QR_RAW          /* LAPACK's: q is h (..., n, m), r is tau (..., k) */
} tn_qr_mode;
typedef struct tn_qr_opts {
    const char *_;
    tn_qr_mode mode;
} tn_qr_opts;
/* a = q r: q's columns are orthonormal, r is upper triangular. */
TN_API tn_status tn_linalg_qr_with(const tn_array *a, tn_array **q, tn_array **r, const tn_qr_opts *opts);

typedef struct tn_svd_opts {
    const char *_;
    bool reduced;   /* u (..., m, k), vh (..., k, n) with k = min(m, n), not square ones */
    bool hermitian; /* a is Hermitian: by eigenvalues */
} tn_svd_opts;
/* a = u diag(s) vh, s real, the largest first. */
TN_API tn_status tn_linalg_svd_with(const tn_array *a, tn_array **u, tn_array **s, tn_array **vh,
                                    const tn_svd_opts *opts);
TN_API tn_array *tn_linalg_svdvals(const tn_array *a);

/* Of Hermitian matrices: eigenvalues w, real, ascending, and eigenvectors, the columns of v. */
TN_API tn_status tn_linalg_eigh_with(const tn_array *a, tn_array **w, tn_array **v, const tn_linalg_opts *opts);
TN_API tn_array *tn_linalg_eigvalsh_with(const tn_array *a, const tn_linalg_opts *opts);
/* Of any square matrices; complex, unless a is real and all eigenvalues are. Both evaluate. */
TN_API tn_status tn_linalg_eig(const tn_array *a, tn_array **w, tn_array **v);
TN_API tn_array *tn_linalg_eigvals(const tn_array *a);

/* ---- powers, products ---- */

/* a multiplied by itself; n < 0: the inverse's power. */
TN_API tn_array *tn_linalg_matrix_power(const tn_array *a, int64_t n);
/* x with tensordot(a, x) = b: b's axes are a's first ones (a's axes named in `axes`, default none, are moved behind the
 * others first), and the extents of the rest must multiply to as many. */
TN_API tn_array *tn_linalg_tensorsolve(const tn_array *a, const tn_array *b, tn_axes axes);
/* The inverse of tensordot(a, x, ind axes): the axes from `ind` on come first, then those before it. */
TN_API tn_array *tn_linalg_tensorinv(const tn_array *a, int ind);
/* The product of 2 to 64 matrices in the cheapest order; the first and the last may be vectors. */
TN_API tn_array *tn_linalg_multi_dot(int count, const tn_array *const *arrays);
/* Into opts->out, of the product's shape and dtype; its other options are not read. */
TN_API tn_array *tn_linalg_multi_dot_with(int count, const tn_array *const *arrays, const tn_out_opts *opts);

/* ---- norms ---- */

/* The order of a norm: TN_ORD(p) for any number p, infinities included, TN_FRO, TN_NUC; zero is NumPy's None. */
typedef struct tn_norm_order {
    int kind;
    double p;
} tn_norm_order;
enum { TN__NORM_DEFAULT, TN__NORM_P, TN__NORM_FRO, TN__NORM_NUC };
static inline tn_norm_order tn_norm_order_make(int kind, double p)
{
    tn_norm_order ord = {kind, p};
    return ord;
}
#define TN_ORD(p) tn_norm_order_make(TN__NORM_P, p)
#define TN_FRO    tn_norm_order_make(TN__NORM_FRO, 0)
#define TN_NUC    tn_norm_order_make(TN__NORM_NUC, 0)

typedef struct tn_norm_opts {
    const char *_;
    tn_norm_order ord; /* default: the root of the sum of squares */
    tn_axes axis;      /* one: norms of vectors; two: of matrices; default: of the whole array */
    bool keepdims;
    tn_array *out;     /* receives the result, as tn_assign does; of its shape */
} tn_norm_opts;
/* Vectors: sum(|x|^p)^(1/p); infinity the largest |x|, -infinity the smallest, 0 the number of others than 0. Matrices:
 * 1 and infinity the largest sum of a column, of a row, 2 the largest singular value, their negatives the smallest;
 * TN_FRO, the root of the sum of squares, TN_NUC, the sum of singular values. The gradient of a norm that is 0 is 0
 * where it is a root (of a sum of powers above 1). */
TN_API tn_array *tn_linalg_norm_with(const tn_array *x, const tn_norm_opts *opts);
/* |a| |a^-1| in a norm of matrices; the default is TN_ORD(2), by singular values, for any matrix. */
TN_API tn_array *tn_linalg_cond(const tn_array *a, tn_norm_order ord);

#ifndef TN_NO_MACROS
#define tn_linalg_solve(a, b) TN_AT(tn_linalg_solve)(TN_ARG(a), TN_ARG(b))
#define tn_linalg_inv(a) TN_AT(tn_linalg_inv)(a)
#define tn_linalg_det(a) TN_AT(tn_linalg_det)(a)
#define tn_linalg_slogdet(a, sign, logdet) TN_AT(tn_linalg_slogdet)(a, sign, logdet)
#define tn_linalg_pinv(...) TN__CALL_V(tn_linalg_pinv_with, tn_pinv_opts, __VA_ARGS__, )
#define tn_linalg_matrix_rank(...) TN__CALL_V(tn_linalg_matrix_rank_with, tn_pinv_opts, __VA_ARGS__, )
#define tn_linalg_lstsq(...) TN__CALL_VVVVVV(tn_linalg_lstsq_with, tn_pinv_opts, __VA_ARGS__, )
#define tn_linalg_cholesky(...) TN__CALL_V(tn_linalg_cholesky_with, tn_linalg_opts, __VA_ARGS__, )
#define tn_linalg_qr(...) TN__CALL_VVV(tn_linalg_qr_with, tn_qr_opts, __VA_ARGS__, )
#define tn_linalg_svd(...) TN__CALL_VVVV(tn_linalg_svd_with, tn_svd_opts, __VA_ARGS__, )
#define tn_linalg_svdvals(a) TN_AT(tn_linalg_svdvals)(a)
#define tn_linalg_eigh(...) TN__CALL_VVV(tn_linalg_eigh_with, tn_linalg_opts, __VA_ARGS__, )
#define tn_linalg_eigvalsh(...) TN__CALL_V(tn_linalg_eigvalsh_with, tn_linalg_opts, __VA_ARGS__, )
#define tn_linalg_eig(a, w, v) TN_AT(tn_linalg_eig)(a, w, v)
#define tn_linalg_eigvals(a) TN_AT(tn_linalg_eigvals)(a)
#define tn_linalg_matrix_power(a, n) TN_AT(tn_linalg_matrix_power)(a, n)
#define tn_linalg_tensorsolve(a, b, axes) TN_AT(tn_linalg_tensorsolve)(a, b, axes)
#define tn_linalg_tensorinv(a, ind) TN_AT(tn_linalg_tensorinv)(a, ind)
#define tn_linalg_multi_dot(...) TN_AT(tn_linalg_multi_dot)(__VA_ARGS__)
#define tn_linalg_multi_dot_with(...) TN_AT(tn_linalg_multi_dot_with)(__VA_ARGS__)
#define tn_linalg_norm(...) TN__CALL_A(tn_linalg_norm_with, tn_norm_opts, __VA_ARGS__, )
#define tn_linalg_cond(...) TN_AT(tn_linalg_cond)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
