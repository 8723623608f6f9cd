/* SPDX-License-Identifier: MIT */
/* Decompositions: Cholesky, QR, singular values, eigenvalues. */
#include <tanso/linalg.h>

#include "engine/engine.h"
#include "linalg/matrix.h"

static tn__node *cholesky(tn__node *a, bool upper)
{
    a = tn__square_operand("cholesky", a);
    TN__PASS_ERROR(a);
    const tn__ints *modes = tn__ints_intern(1, (int64_t[]){upper});
    if (!modes) {
        tn__fail_memory("cholesky", sizeof(tn__ints));
        return tn__failed();
    }
    return tn__library(TN__OP_CHOLESKY, (tn_dtype)a->dtype, tn__shape_value(a->shape), 1, &a, modes);
}

tn_array *tn_linalg_cholesky_with(const tn_array *a, const tn_linalg_opts *opts)
{
    TN__RETURN(cholesky(tn__node_of(a, "cholesky"), opts && opts->upper));
}

/* ---- QR ---- */

tn_status tn_linalg_qr_with(const tn_array *x, tn_array **q, tn_array **r, const tn_qr_opts *opts)
{
    tn__call call = tn__enter();
    tn_qr_mode mode = opts ? opts->mode : TN_QR_REDUCED;
    tn__node *a = tn__matrix_operand("qr", tn__node_of(x, "qr"), 2), *part[2] = {a, a};
    if (!tn__node_is_error(a)) {
        int64_t m = tn__row_count(a), n = tn__column_count(a), k = m < n ? m : n;
        int64_t columns = mode == TN_QR_COMPLETE && m > n ? m : mode == TN_QR_R || mode == TN_QR_RAW ? 0 : k;
        int64_t rows = columns ? columns : k, size = mode == TN_QR_RAW ? m * n + k : m * columns + rows * n;
        tn__node *all = tn__packed(TN__OP_QR, (tn_dtype)a->dtype, a, size, 2, (int64_t[]){columns, mode == TN_QR_RAW});
        if (mode == TN_QR_RAW) {
            part[0] = tn__swap_last(tn__part(all, 0, m, n));
            part[1] = tn__drop_row(tn__part(all, m * n, 1, k));
        } else {
            part[0] = tn__part(all, 0, m, columns);
            part[1] = tn__part(all, m * columns, rows, n);
        }
    }
    return tn__give_all(call, 2, part, (tn_array **const[]){q, r});
}

/* ---- singular values ---- */

tn_status tn_linalg_svd_with(const tn_array *x, tn_array **u, tn_array **s, tn_array **vh, const tn_svd_opts *opts)
{
    tn__call call = tn__enter();
    tn__node *a = tn__matrix_operand("svd", tn__node_of(x, "svd"), 2), *part[3] = {a, a, a};
    if (opts && opts->hermitian && !tn__node_is_error(a))
        part[0] = part[1] = part[2] = a = tn__square_operand("svd", a);
    if (!tn__node_is_error(a)) {
        int64_t m = tn__row_count(a), n = tn__column_count(a), k = m < n ? m : n;
        bool full = !(opts && opts->reduced) && m != n;
        if (!full) {
            tn__singular_vectors(a, opts && opts->hermitian, part);
        } else {
            tn__node *all = tn__packed(TN__OP_SVD, (tn_dtype)a->dtype, a, m * m + k + n * n, 1, (int64_t[]){2});
            part[0] = tn__part(all, 0, m, m);
            part[1] = tn__real(tn__part(all, m * m, 1, k));
            part[2] = tn__part(all, m * m + k, n, n);
        }
        part[1] = tn__drop_row(part[1]);
    }
    return tn__give_all(call, 3, part, (tn_array **const[]){u, s, vh});
}

tn_array *tn_linalg_svdvals(const tn_array *a)
{
    TN__RETURN(tn__singular_values(tn__matrix_operand("svdvals", tn__node_of(a, "svdvals"), 2), false));
}

/* ---- eigenvalues ---- */

tn_status tn_linalg_eigh_with(const tn_array *x, tn_array **w, tn_array **v, const tn_linalg_opts *opts)
{
    tn__call call = tn__enter();
    tn__node *a = tn__square_operand("eigh", tn__node_of(x, "eigh")), *part[2] = {a, a};
    if (!tn__node_is_error(a)) {
        int64_t n = tn__row_count(a);
        tn__node *all =
            tn__packed(TN__OP_EIGH, (tn_dtype)a->dtype, a, n + n * n, 2, (int64_t[]){1, opts && opts->upper});
        part[0] = tn__drop_row(tn__real(tn__part(all, 0, 1, n)));
        part[1] = tn__part(all, n, n, n);
    }
    return tn__give_all(call, 2, part, (tn_array **const[]){w, v});
}

static tn__node *eigvalsh(tn__node *a, bool upper)
{
    a = tn__square_operand("eigvalsh", a);
    TN__PASS_ERROR(a);
    return tn__drop_row(
        tn__real(tn__packed(TN__OP_EIGH, (tn_dtype)a->dtype, a, tn__row_count(a), 2, (int64_t[]){0, upper})));
}

tn_array *tn_linalg_eigvalsh_with(const tn_array *a, const tn_linalg_opts *opts)
{
    TN__RETURN(eigvalsh(tn__node_of(a, "eigvalsh"), opts && opts->upper));
}

/* Real, if the matrices are and all eigenvalues have imaginary part 0: which has to be seen. */
static void general(const char *operation, tn__node *a, bool vectors, tn__node *part[2])
{
    a = tn__square_operand(operation, a);
    part[0] = part[1] = a;
    if (tn__node_is_error(a))
        return;
    if (!tn__check_finite(operation, a)) {
        part[0] = part[1] = tn__failed();
        return;
    }
    int64_t n = tn__row_count(a);
    bool was_real = !tn_dtype_is_complex((tn_dtype)a->dtype);
    tn__node *all = tn__packed(TN__OP_EIG, tn__dtype_to_complex((tn_dtype)a->dtype), a, vectors ? n + n * n : n, 1,
                               (int64_t[]){vectors});
    part[0] = part[1] = all;
    if (tn__node_is_error(all))
        return;
    tn__node *w = tn__part(all, 0, 1, n);
    unsigned char any = 0;
    if (was_real) {
        tn__node *turning = tn__with(TN__OP_NOT_EQUAL, tn__imaginary(w), 0);
        tn__node *roots[] = {all, tn__reduce(TN__OP_ANY, turning, (1u << a->shape->ndim) - 1)};
        if (tn__evaluate(2, roots) != TN_OK || tn__read(roots[1], &any) != TN_OK) {
            part[0] = part[1] = tn__failed();
            return;
        }
        w = tn__part(all, 0, 1, n);
    }
    part[0] = tn__drop_row(was_real && !any ? tn__real(w) : w);
    if (vectors) {
        tn__node *v = tn__part(all, n, n, n);
        part[1] = was_real && !any ? tn__real(v) : v;
    }
}

tn_status tn_linalg_eig(const tn_array *a, tn_array **w, tn_array **v)
{
    tn__call call = tn__enter();
    tn__node *part[2];
    general("eig", tn__node_of(a, "eig"), true, part);
    return tn__give_all(call, 2, part, (tn_array **const[]){w, v});
}

tn_array *tn_linalg_eigvals(const tn_array *a)
{
    tn__call call = tn__enter();
    tn__node *part[2];
    general("eigvals", tn__node_of(a, "eigvals"), false, part);
    return tn__leave_array(call, part[0]);
}
