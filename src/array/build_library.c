/* SPDX-License-Identifier: MIT */
/*
 * Operations of libraries (LAPACK, FFT): of the last two axes, or the last one, for each place of the others. What has
 * several results gives them packed, one behind the other, as a row a matrix: shape (..., 1, n). tn__part takes them
 * out, which is a view.
 */
#include "array/build_library.h"
#include "array/build_parts.h"

/* The dtype of twice the precision that holds a dtype of LAPACK's; those of float64 stay. */
static tn_dtype wide(tn_dtype dtype)
{
    return dtype == TN_FLOAT32 ? TN_FLOAT64 : dtype == TN_COMPLEX64 ? TN_COMPLEX128 : dtype;
}

/* Single precision is computed in double and rounded, as NumPy does: signs of vectors and ranks agree with it. */
static tn__node *computed_wide(tn__op op, tn_dtype dtype, tn_shape shape, int arity, tn__node *const *in,
                               const tn__ints *modes)
{
    tn__node *widened[TN__MAX_ARITY];
    for (int i = 0; i < arity; i++)
        widened[i] = tn__cast(in[i], wide((tn_dtype)in[i]->dtype));
    return tn__cast(tn__library(op, wide(dtype), shape, arity, widened, modes), dtype);
}

tn__node *tn__library(tn__op op, tn_dtype dtype, tn_shape value, int arity, tn__node *const *in, const tn__ints *modes)
{
    for (int i = 0; i < arity; i++)
        TN__PASS_ERROR(in[i]);
    if (!tn__is_transform(op) && wide((tn_dtype)in[0]->dtype) != (tn_dtype)in[0]->dtype)
        return computed_wide(op, dtype, value, arity, in, modes);
    const tn__shape *shape = tn__shape_make(tn__ops[op].name, value, dtype);
    if (!shape)
        return tn__failed();
    return tn__apply_anywhere(op, dtype, shape, arity, in, (tn__attr){.ints = modes});
}

bool tn__library_native(tn__op op, const tn__node *a)
{
    return tn__native(a->device, op, wide((tn_dtype)a->dtype), a->shape);
}

tn__node *tn__last_slice(tn__node *a, int64_t start, int64_t count)
{
    TN__PASS_ERROR(a);
    int last = a->shape->ndim - 1;
    int64_t begin[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM], dim[TN_MAX_NDIM];
    for (int i = 0; i <= last; i++) {
        step[i] = 1;
        dim[i] = i == last ? count : a->shape->dim[i];
    }
    begin[last] = count ? start : 0;
    return tn__slice_node(a, begin, step, dim);
}

tn__node *tn__part(tn__node *packed, int64_t offset, int64_t rows, int64_t columns)
{
    TN__PASS_ERROR(packed);
    int ndim = packed->shape->ndim;
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i < ndim - 2; i++)
        dim[i] = packed->shape->dim[i];
    dim[ndim - 2] = rows;
    dim[ndim - 1] = columns;
    return tn__reshape(tn__last_slice(packed, offset, rows * columns), ndim, dim);
}

tn__node *tn__drop_row(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn__drop_axes(a, 1u << (a->shape->ndim - 2));
}

tn__node *tn__adjoint(tn__node *a)
{
    return tn__conjugate(tn__swap_last(a));
}

/* 1 where column - row <= offset, else 0. */
static tn__node *band(tn__node *like, int offset, bool equal)
{
    int ndim = like->shape->ndim;
    tn__node *row = tn__iota(like->shape, ndim - 2, like->device),
             *column = tn__iota(like->shape, ndim - 1, like->device);
    row = offset ? tn__with(TN__OP_ADD, row, offset) : row;
    return tn__binary(equal ? TN__OP_EQUAL : TN__OP_LESS_EQUAL, column, row);
}

tn__node *tn__lower(tn__node *a, int offset)
{
    TN__PASS_ERROR(a);
    return tn__where(band(a, offset, false), a, tn__const_like(a, 0));
}

tn__node *tn__upper(tn__node *a, int offset)
{
    TN__PASS_ERROR(a);
    return tn__where(band(a, offset - 1, false), tn__const_like(a, 0), a);
}

tn__node *tn__on_diagonal(tn__node *a)
{
    TN__PASS_ERROR(a);
    return band(a, 0, true);
}

tn__node *tn__diagonal_matrix(tn__node *row)
{
    TN__PASS_ERROR(row);
    int ndim = row->shape->ndim;
    tn_shape value = tn__shape_value(row->shape);
    value.dim[ndim - 2] = value.dim[ndim - 1];
    const tn__shape *shape = tn__shape_make("diagonal", value, (tn_dtype)row->dtype);
    if (!shape)
        return tn__failed();
    tn__node *wide = tn__expand(row, shape);
    TN__PASS_ERROR(wide);
    return tn__where(tn__on_diagonal(wide), wide, tn__const_like(wide, 0));
}
