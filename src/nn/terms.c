/* SPDX-License-Identifier: MIT */
/* What the functions of this room share: checked operands, sums and means, parts and joins, what becomes of losses. */
#include "nn/terms.h"

#include <inttypes.h>
#include <tanso/array.h>

/* ---- operands ---- */

tn__node *tn__floating(const tn_array *x, const char *operation)
{
    tn__node *node = tn__node_of(x, operation);
    TN__PASS_ERROR(node);
    if (tn_dtype_is_complex((tn_dtype)node->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected real numbers, got %s: see tn_real, tn_imag, tn_abs",
                   tn_dtype_name((tn_dtype)node->dtype));
    node = tn__strong(node);
    TN__PASS_ERROR(node);
    return tn__cast(node, tn__dtype_to_float((tn_dtype)node->dtype));
}

tn__node *tn__only_floating(const tn_array *x, const char *operation)
{
    tn__node *node = tn__checked_floating(tn__node_of(x, operation), operation);
    TN__PASS_ERROR(node);
    return tn__strong(node);
}

tn__node *tn__only_integers(const tn_array *x, const char *operation)
{
    tn__node *node = tn__node_of(x, operation);
    TN__PASS_ERROR(node);
    if (!tn_dtype_is_integer((tn_dtype)node->dtype) && node->dtype != TN_BOOL)
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected integers, got %s: cast them with tn_cast",
                   tn_dtype_name((tn_dtype)node->dtype));
    return tn__strong(node);
}

tn__node *tn__counts(const char *operation, const char *what, tn__node *counts, int64_t rows, int64_t least,
                     int64_t most)
{
    TN__PASS_ERROR(counts);
    char text[TN__SHAPE_TEXT];
    if (counts->shape->ndim != 1 || counts->shape->dim[0] != rows)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected %s of shape (%" PRId64 ",), got %s", what, rows,
                   tn__shape_text(counts->shape->ndim, counts->shape->dim, text));
    if (!tn_dtype_is_integer((tn_dtype)counts->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected integer %s, got %s: cast them with tn_cast", what,
                   tn_dtype_name((tn_dtype)counts->dtype));
    counts = tn__positions_within(least ? tn__lengths(counts) : tn__labels(counts), 0, most + 1);
    return tn__reshape(counts, 2, (int64_t[]){rows, 1});
}

tn__node *tn__first_error(int count, tn__node *const *nodes)
{
    for (int i = 0; i < count; i++) {
        if (nodes[i] && tn__node_is_error(nodes[i]))
            return nodes[i];
    }
    return NULL;
}

bool tn__same_shape(const char *operation, const char *a_name, const tn__node *a, const char *b_name,
                    const tn__node *b)
{
    if (a->shape == b->shape)
        return true;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, operation,
             "expected %s and %s of one shape, got %s and %s: nothing is broadcast here; reshape one", a_name, b_name,
             tn__shape_text(a->shape->ndim, a->shape->dim, text), tn__shape_text(b->shape->ndim, b->shape->dim, other));
    return false;
}

bool tn__broadcasts_to(const tn__shape *shape, const tn__shape *to)
{
    int more = to->ndim - shape->ndim;
    for (int i = 0; more >= 0 && i < shape->ndim; i++) {
        if (shape->dim[i] != 1 && shape->dim[i] != to->dim[i + more])
            return false;
    }
    return more >= 0;
}

/* ---- sums ---- */

tn__node *tn__sum_over(tn__node *x, uint32_t axes)
{
    TN__PASS_ERROR(x);
    return axes ? tn__reduce(TN__OP_SUM, x, axes) : x;
}

tn__node *tn__sum_all(tn__node *x)
{
    TN__PASS_ERROR(x);
    return tn__reshape(tn__sum_over(x, (1u << x->shape->ndim) - 1), 0, NULL);
}

tn__node *tn__mean_over(tn__node *x, uint32_t axes)
{
    TN__PASS_ERROR(x);
    double count = 1;
    for (int i = 0; i < x->shape->ndim; i++)
        count *= axes >> i & 1 ? (double)x->shape->dim[i] : 1;
    return times(tn__sum_over(x, axes), 1 / count);
}

tn__node *tn__reduced(const char *operation, tn__node *loss, tn_reduction reduction, tn_dtype dtype)
{
    TN__PASS_ERROR(loss);
    if ((unsigned)reduction > TN_REDUCTION_NONE)
        TN__REFUSE(TN_ERR_VALUE, operation, "%d is no tn_reduction", (int)reduction);
    if (reduction == TN_REDUCTION_MEAN)
        loss = tn__mean_all(loss);
    else if (reduction == TN_REDUCTION_SUM)
        loss = tn__sum_all(loss);
    return tn__cast(loss, dtype);
}

/* ---- elements ---- */

tn__node *tn__only_where(tn__node *condition, tn__node *x)
{
    TN__PASS_ERROR(x);
    return tn__where(condition, x, like(x, 0));
}

tn__node *tn__between(tn__node *x, double low, double high)
{
    TN__PASS_ERROR(x);
    tn__node *above = tn__where(with(LESS_EQUAL, x, low), like(x, low), x);
    return tn__where(with(GREATER_EQUAL, x, high), like(x, high), above);
}

/* ---- parts ---- */

tn__node *tn__piece(tn__node *x, int axis, int64_t start, int64_t count)
{
    TN__PASS_ERROR(x);
    if (start == 0 && count == x->shape->dim[axis])
        return x;
    int64_t from[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM], dim[TN_MAX_NDIM];
    for (int i = 0; i < x->shape->ndim; i++) {
        step[i] = 1;
        dim[i] = x->shape->dim[i];
    }
    from[axis] = start;
    dim[axis] = count;
    return tn__slice_node(x, from, step, dim);
}

tn__node *tn__spread(tn__node *x, int axis)
{
    return tn__insert_axis("expand_dims", x, axis);
}

tn__node *tn__without_axis(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    return tn__drop_axes(x, 1u << axis);
}

tn__node *tn__along(tn__node *x, int axis, int ndim)
{
    TN__PASS_ERROR(x);
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        dim[i] = i >= axis && i < axis + x->shape->ndim ? x->shape->dim[i - axis] : 1;
    return tn__reshape(x, ndim, dim);
}
