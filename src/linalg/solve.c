/* SPDX-License-Identifier: MIT */
/* Equations, inverses, determinants, and what is told by singular values: ranks and pseudo-inverses. */
#include <tanso/linalg.h>

#include <float.h>
#include "core/options.h"

#include "linalg/matrix.h"

static tn__node *solve(tn__node *a, tn__node *b)
{
    a = tn__square_operand("solve", a);
    b = tn__matrix_operand("solve", b, 1);
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    if (b->shape->ndim > 1)
        return tn__solve("solve", a, b, false);
    tn__node *column = tn__insert_axis("solve", b, 1), *x = tn__solve("solve", a, column, false);
    TN__PASS_ERROR(x);
    return tn__drop_axes(x, 1u << (x->shape->ndim - 1));
}

tn_array *tn_linalg_solve(const tn_array *a, const tn_array *b)
{
    TN__RETURN(solve(tn__node_of(a, "solve"), tn__node_of(b, "solve")));
}

tn_array *tn_linalg_inv(const tn_array *a)
{
    TN__RETURN(tn__inverse("inv", tn__square_operand("inv", tn__node_of(a, "inv")), false));
}

/* ---- determinants ---- */

/* Sign and logarithm of the size, each without the matrix's axes. */
static void determinant(const char *operation, tn__node *a, tn__node *part[2])
{
    a = tn__square_operand(operation, a);
    tn__node *both = tn__node_is_error(a) ? a : tn__packed(TN__OP_SLOGDET, (tn_dtype)a->dtype, a, 2, 0, NULL);
    for (int i = 0; i < 2; i++) {
        tn__node *one = tn__part(both, i, 1, 1);
        part[i] = tn__node_is_error(one) ? one : tn__drop_axes(one, 3u << (a->shape->ndim - 2));
    }
}

tn_status tn_linalg_slogdet(const tn_array *a, tn_array **sign, tn_array **logdet)
{
    tn__call call = tn__enter();
    tn__node *part[2];
    determinant("slogdet", tn__node_of(a, "slogdet"), part);
    part[1] = tn__real(part[1]);
    return tn__give_all(call, 2, part, (tn_array **const[]){sign, logdet});
}

static tn__node *det(tn__node *a)
{
    tn__node *part[2];
    determinant("det", a, part);
    TN__PASS_ERROR(part[0]);
    return tn__binary(TN__OP_MULTIPLY, part[0],
                      tn__cast(tn__unary(TN__OP_EXP, tn__real(part[1])), (tn_dtype)part[0]->dtype));
}

tn_array *tn_linalg_det(const tn_array *a)
{
    TN__RETURN(det(tn__node_of(a, "det")));
}

/* ---- singular values tell ---- */

static double epsilon(const tn__node *a)
{
    return tn__dtypes[a->dtype].component == TN_FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

static tn__node *largest(tn__node *row)
{
    TN__PASS_ERROR(row);
    return tn__largest(row, 1u << (row->shape->ndim - 1));
}

tn__node *tn__inverted_values(tn__node *s, double rcond, tn__node **above)
{
    tn__node *most = largest(s);
    TN__PASS_ERROR(most);
    tn__node *kept = tn__binary(TN__OP_GREATER, s, tn__with(TN__OP_MULTIPLY, most, rcond));
    tn__node *safe = tn__where(kept, s, tn__const_like(s, 1));
    if (above)
        *above = kept;
    return tn__where(kept, tn__unary(TN__OP_RECIPROCAL, safe), tn__const_like(s, 0));
}

/* The vectors, which have no derivatives where singular values are equal, have no part in backward. */
tn__node *tn__pseudo_inverse(tn__node *a, tn__node *const part[3], tn__node *inverse)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(inverse);
    tn__no_grad_depth++;
    inverse = tn__cast(inverse, (tn_dtype)a->dtype);
    tn__node *y = tn__matmul_node(tn__binary(TN__OP_MULTIPLY, tn__adjoint(part[2]), inverse), tn__adjoint(part[0]));
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    return tn__node_new(TN__OP_PINV, (tn_dtype)y->dtype, y->shape, y->device, 2, (tn__node *[]){y, a},
                        (tn__attr){.raw = {0}});
}

static tn__node *pinv(tn__node *a, const tn_pinv_opts *opts)
{
    TN__PASS_ERROR(a);
    if (a->shape->ndim > 1 && tn__row_count(a) * tn__column_count(a) == 0) { /* nothing stays of its dtype */
        tn__node *transposed = tn__swap_last(a);
        return tn__node_is_error(transposed) ? transposed : tn__const_like(transposed, 0);
    }
    a = tn__matrix_operand("pinv", a, 2);
    if (opts && opts->hermitian)
        a = tn__square_operand("pinv", a);
    TN__PASS_ERROR(a);
    tn__node *part[3];
    tn__no_grad_depth++;
    tn__singular_vectors(a, opts && opts->hermitian, part);
    tn__node *inverse = tn__inverted_values(part[1], TN__OPTION(opts, rcond, 1e-15), NULL);
    tn__no_grad_depth--;
    if (opts && opts->hermitian)
        a = tn__with(TN__OP_MULTIPLY, tn__binary(TN__OP_ADD, a, tn__adjoint(a)), 0.5);
    return tn__pseudo_inverse(a, part, inverse);
}

tn_array *tn_linalg_pinv_with(const tn_array *a, const tn_pinv_opts *opts)
{
    TN__RETURN(pinv(tn__node_of(a, "pinv"), opts));
}

static tn__node *matrix_rank(tn__node *a, const tn_pinv_opts *opts)
{
    TN__PASS_ERROR(a);
    a = a->shape->ndim < 2 ? tn__strong(a) : tn__matrix_operand("matrix_rank", a, 2);
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    if (ndim < 2) { /* of a vector: whether it has an element other than 0 */
        tn__node *any = tn__reduce(TN__OP_ANY, tn__with(TN__OP_NOT_EQUAL, a, 0), (1u << ndim) - 1);
        return tn__cast(tn__drop_axes(any, (1u << ndim) - 1), TN_INT64);
    }
    if (opts && opts->hermitian)
        a = tn__square_operand("matrix_rank", a);
    TN__PASS_ERROR(a);
    int64_t m = tn__row_count(a), n = tn__column_count(a);
    tn__node *s = tn__singular_values(a, opts && opts->hermitian);
    TN__PASS_ERROR(s);
    int last = s->shape->ndim - 1;
    tn__node *above;
    if (opts && TN__GIVEN(opts, tol))
        above = tn__with(TN__OP_GREATER, s, opts->tol);
    else
        above = tn__binary(TN__OP_GREATER, s,
                           tn__with(TN__OP_MULTIPLY, largest(s),
                                    TN__OPTION(opts, rcond, (double)(m > n ? m : n) * epsilon(s))));
    TN__PASS_ERROR(above);
    return tn__drop_axes(tn__reduce(TN__OP_SUM, tn__cast(above, TN_INT64), 1u << last), 1u << last);
}

tn_array *tn_linalg_matrix_rank_with(const tn_array *a, const tn_pinv_opts *opts)
{
    TN__RETURN(matrix_rank(tn__node_of(a, "matrix_rank"), opts));
}
