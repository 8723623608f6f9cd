/* SPDX-License-Identifier: MIT */
/* Norms of vectors and matrices in all of NumPy's orders, and condition numbers. */
#include <tanso/linalg.h>

#include <math.h>

#include "core/options.h"
#include "linalg/matrix.h"

static tn__node *sizes(tn__node *a) { return tn__unary(TN__OP_ABS, a); }

static tn__node *root_of_squares(tn__node *a, uint32_t axes)
{
    return tn__root_of_sum(tn__reduce(TN__OP_SUM, tn__squared_size(a), axes), 0.5);
}

/* By the order's sign the largest or the least. */
static tn__node *extreme(tn_norm_order ord, tn__node *a, uint32_t axes)
{
    return ord.p > 0 ? tn__largest(a, axes) : tn__reduce(TN__OP_MIN, a, axes);
}

static tn__node *vector_norm(tn__node *a, tn_norm_order ord, int axis)
{
    uint32_t set = 1u << axis;
    if (ord.kind == TN__NORM_DEFAULT || (ord.kind == TN__NORM_P && ord.p == 2))
        return root_of_squares(a, set);
    if (ord.kind != TN__NORM_P)
        TN__REFUSE(TN_ERR_VALUE, "norm", "'%s' is a norm of matrices; give two axes, or a number",
                   ord.kind == TN__NORM_FRO ? "fro" : "nuc");
    if (isinf(ord.p))
        return extreme(ord, sizes(a), set);
    if (ord.p == 0) {
        tn__node *some = tn__with(TN__OP_NOT_EQUAL, a, 0);
        return tn__reduce(TN__OP_SUM, tn__cast(some, (tn_dtype)tn__dtypes[a->dtype].component), set);
    }
    if (ord.p == 1)
        return tn__reduce(TN__OP_SUM, sizes(a), set);
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__with(TN__OP_POWER, sizes(a), ord.p), set);
    return ord.p > 1 ? tn__root_of_sum(sum, 1 / ord.p) : tn__with(TN__OP_POWER, sum, 1 / ord.p);
}

/* The singular values of the matrices along two axes, summed or the extreme one; with both axes kept with extent 1.
 * Their gradient, U diag(g) V^H, is a subgradient where values are 0 or equal, at the zero matrix, too. */
static tn__node *spectral(tn__node *a, tn_norm_order ord, int row, int column)
{
    uint8_t perm[TN_MAX_NDIM] = {0};
    int ndim = a->shape->ndim, at = 0;
    for (int i = 0; i < ndim; i++)
        if (i != row && i != column)
            perm[at++] = (uint8_t)i;
    perm[at] = (uint8_t)row;
    perm[at + 1] = (uint8_t)column;
    tn__node *s = tn__singular_values(tn__matrix_operand("norm", tn__permute(a, perm), 2), false);
    TN__PASS_ERROR(s);
    uint32_t last = 1u << (s->shape->ndim - 1);
    s = ord.kind == TN__NORM_NUC ? tn__reduce(TN__OP_SUM, s, last) : extreme(ord, s, last);
    TN__PASS_ERROR(s);
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        dim[i] = i == row || i == column ? 1 : a->shape->dim[i];
    return tn__reshape(s, ndim, dim);
}

static tn__node *matrix_norm(tn__node *a, tn_norm_order ord, int row, int column)
{
    uint32_t r = 1u << row, c = 1u << column;
    if (ord.kind == TN__NORM_DEFAULT || ord.kind == TN__NORM_FRO)
        return root_of_squares(a, r | c);
    if (ord.kind == TN__NORM_NUC)
        return spectral(a, ord, row, column);
    if (fabs(ord.p) == 2)
        return spectral(a, ord, row, column);
    if (fabs(ord.p) == 1)
        return extreme(ord, tn__reduce(TN__OP_SUM, sizes(a), r), c);
    if (isinf(ord.p))
        return extreme(ord, tn__reduce(TN__OP_SUM, sizes(a), c), r);
    TN__REFUSE(TN_ERR_VALUE, "norm",
               "%g is no order of a matrix norm; expected 1, 2, infinity, their negatives, TN_FRO or TN_NUC", ord.p);
}

static tn__node *norm(tn__node *a, const tn_norm_opts *opts)
{
    static const tn_norm_opts defaults = {.keepdims = false};
    opts = opts ? opts : &defaults;
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (!tn__dtype_inexact((tn_dtype)a->dtype))
        a = tn__cast(a, TN_FLOAT64);
    tn_dtype dtype = (tn_dtype)a->dtype;
    a = tn__cast(a, (tn_dtype)tn__dtypes[dtype].compute); /* squares of 16 bits overflow where their root does not */
    TN__PASS_ERROR(a);
    if (!TN__AXES_GIVEN("norm", opts, axis) || !TN__GIVEN_AS("norm", opts, ord, "TN_ORD(1)"))
        return tn__failed();
    int ndim = a->shape->ndim, count = opts->axis.count;
    uint32_t set = (1u << ndim) - 1;
    if (count && !tn__axes_set("norm", opts->axis, ndim, &set))
        return tn__failed();
    tn_norm_order ord = opts->ord;
    bool two = ord.kind == TN__NORM_P && ord.p == 2;
    tn__node *result;
    if (!count && (ord.kind == TN__NORM_DEFAULT || (ord.kind == TN__NORM_FRO && ndim == 2) || (two && ndim == 1))) {
        result = root_of_squares(a, set);
    } else {
        int axis[2] = {count ? opts->axis.axis[0] : 0, count ? opts->axis.axis[count > 1] : 1};
        int axes = count ? count : ndim;
        if (axes != 1 && axes != 2)
            TN__REFUSE(TN_ERR_VALUE, "norm", "norms of this order are of one axis or two, got %d: give .axis", axes);
        for (int i = 0; i < 2; i++)
            axis[i] += axis[i] < 0 ? ndim : 0;
        result = axes == 1 ? vector_norm(a, ord, axis[0]) : matrix_norm(a, ord, axis[0], axis[1]);
    }
    TN__PASS_ERROR(result);
    if (tn_dtype_size(dtype) < sizeof(float))
        result = tn__cast(result, dtype);
    return opts->keepdims ? result : tn__drop_axes(result, set);
}

tn_array *tn_linalg_norm_with(const tn_array *x, const tn_norm_opts *opts)
{
    tn__call call = tn__enter();
    return tn__deliver(call, norm(tn__node_of(x, "norm"), opts), opts ? opts->out : NULL);
}

/* By singular values, or by the norms of the matrix and its inverse; of a singular matrix infinite. */
static tn__node *cond(tn__node *a, tn_norm_order ord)
{
    a = tn__matrix_operand("cond", a, 2);
    TN__PASS_ERROR(a);
    if (tn__row_count(a) == 0 || tn__column_count(a) == 0)
        TN__REFUSE(TN_ERR_SHAPE, "cond", "is not defined for empty matrices");
    int ndim = a->shape->ndim;
    tn__node *result;
    if (ord.kind == TN__NORM_DEFAULT || (ord.kind == TN__NORM_P && fabs(ord.p) == 2)) {
        tn__node *s = tn__singular_values(a, false);
        TN__PASS_ERROR(s);
        int64_t k = s->shape->dim[ndim - 2];
        tn__node *most = tn__last_slice(s, 0, 1), *least = tn__last_slice(s, k - 1, 1);
        result = ord.kind == TN__NORM_P && ord.p < 0 ? tn__binary(TN__OP_DIVIDE, least, most)
                                                     : tn__binary(TN__OP_DIVIDE, most, least);
        result = tn__drop_axes(result, 1u << (ndim - 2));
    } else {
        a = tn__square_operand("cond", a);
        tn__node *inverse = tn__inverse("cond", a, true);
        TN__PASS_ERROR(inverse);
        tn_norm_opts opts = {.ord = ord, .axis = {.count = 2, .axis = {-2, -1}}};
        result = tn__binary(TN__OP_MULTIPLY, norm(a, &opts), norm(inverse, &opts));
    }
    TN__PASS_ERROR(result);
    tn__node *broken = tn__reduce(TN__OP_ANY, tn__unary(TN__OP_ISNAN, a), 3u << (ndim - 2));
    tn__node *without = tn__binary(TN__OP_LOGICAL_AND, tn__unary(TN__OP_ISNAN, result),
                                   tn__unary(TN__OP_LOGICAL_NOT, tn__drop_axes(broken, 3u << (ndim - 2))));
    return tn__where(without, tn__const_like(result, INFINITY), result);
}

tn_array *tn_linalg_cond(const tn_array *a, tn_norm_order ord)
{
    TN__RETURN(cond(tn__node_of(a, "cond"), ord));
}
