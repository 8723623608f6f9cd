/* SPDX-License-Identifier: MIT */
/* Products and indexing: matmul, take, take_along_axis, scatter_add, one_hot. */
#include <tanso/array.h>
#include <tanso/index.h>

#include "array/build_parts.h"

tn_array *tn_matmul(const tn_array *a, const tn_array *b)
{
    TN__RETURN(tn__matmul_node(tn__node_of(a, "matmul"), tn__node_of(b, "matmul")));
}

/* Indices of any shape, flat along `axis` and with extent 1 on the array's other axes. */
static tn__node *along(tn__node *indices, int ndim, int axis)
{
    TN__PASS_ERROR(indices);
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        dim[i] = i == axis ? indices->shape->size : 1;
    return tn__reshape(indices, ndim, dim);
}

/* The array's shape with `axis` replaced by all of the indices' axes; NULL with a latched failure. */
static const tn__shape *taken_shape(const char *operation, const tn__node *a,
                                    const tn__node *indices, int axis)
{
    tn_shape shape = {.ndim = a->shape->ndim - 1 + indices->shape->ndim};
    if (shape.ndim > TN_MAX_NDIM) {
        tn__fail(
            TN_ERR_SHAPE, operation,
            "indices of %d axes along an axis of an array of %d axes give %d axes, the most is %d",
            indices->shape->ndim, a->shape->ndim, shape.ndim, TN_MAX_NDIM);
        return NULL;
    }
    int n = 0;
    for (int i = 0; i < a->shape->ndim; i++) {
        if (i != axis)
            shape.dim[n++] = a->shape->dim[i];
        for (int j = 0; i == axis && j < indices->shape->ndim; j++)
            shape.dim[n++] = indices->shape->dim[j];
    }
    return tn__shape_make(operation, shape, a->dtype);
}

static tn__node *take(tn__node *a, tn__node *indices, int axis)
{
    TN__PASS_ERROR(a);
    indices = tn__positions("take", indices);
    TN__PASS_ERROR(indices);
    axis = tn__axis_check("take", axis, a->shape->ndim);
    const tn__shape *shape = axis < 0 ? NULL : taken_shape("take", a, indices, axis);
    if (!shape)
        return tn__failed();
    return tn__reshape_like(tn__gather(a, along(indices, a->shape->ndim, axis), axis), shape);
}

tn_array *tn_take(const tn_array *x, const tn_array *indices, int axis)
{
    TN__RETURN(take(tn__node_of(x, "take"), tn__node_of(indices, "take"), axis));
}

tn_array *tn_take_along_axis(const tn_array *x, const tn_array *indices, int axis)
{
    TN__RETURN(tn__gather(tn__node_of(x, "take_along_axis"),
                          tn__node_of(indices, "take_along_axis"), axis));
}

static tn__node *scatter(tn__op op, tn__node *a, tn__node *indices, tn__node *values, int axis)
{
    const char *operation = tn__ops[op].name;
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(values);
    if (!tn__weak_fits(operation, values, a->dtype))
        return tn__failed();
    indices = tn__positions(operation, indices);
    TN__PASS_ERROR(indices);
    axis = tn__axis_check(operation, axis, a->shape->ndim);
    const tn__shape *shape = axis < 0 ? NULL : taken_shape(operation, a, indices, axis);
    if (!shape)
        return tn__failed();
    values = tn__expand(values, shape);
    TN__PASS_ERROR(values);
    int64_t flat[TN_MAX_NDIM];
    for (int i = 0; i < a->shape->ndim; i++)
        flat[i] = i == axis ? indices->shape->size : a->shape->dim[i];
    values = tn__reshape(values, a->shape->ndim, flat);
    return tn__scatter_node(op, a, along(indices, a->shape->ndim, axis), values, axis);
}

tn_array *tn_scatter_add(const tn_array *x, const tn_array *indices, const tn_array *values,
                         int axis)
{
    TN__RETURN(scatter(TN__OP_SCATTER_ADD, tn__node_of(x, "scatter_add"),
                       tn__node_of(indices, "scatter_add"), tn__node_of(values, "scatter_add"), axis));
}

tn_array *tn_scatter_set(const tn_array *x, const tn_array *indices, const tn_array *values,
                         int axis)
{
    TN__RETURN(scatter(TN__OP_SCATTER_SET, tn__node_of(x, "scatter_set"),
                       tn__node_of(indices, "scatter_set"), tn__node_of(values, "scatter_set"), axis));
}

static tn__node *one_hot(tn__node *indices, int64_t count, tn_dtype dtype)
{
    indices = tn__positions("one_hot", indices);
    TN__PASS_ERROR(indices);
    if (count < 0)
        TN__REFUSE(TN_ERR_VALUE, "one_hot", "expected a count of 0 or more classes, got %lld",
                   (long long)count);
    dtype = dtype ? dtype : TN_FLOAT32;
    tn_shape value = tn__shape_value(indices->shape);
    tn__node *column = tn__insert_axis("one_hot", indices, value.ndim);
    TN__PASS_ERROR(column);
    value.dim[value.ndim++] = count;
    const tn__shape *shape = tn__shape_make("one_hot", value, TN_INT64);
    if (!shape)
        return tn__failed();
    return tn__cast(
        tn__binary(TN__OP_EQUAL, column, tn__iota(shape, shape->ndim - 1, column->device)), dtype);
}

tn_array *tn_one_hot(const tn_array *indices, int64_t count, tn_dtype dtype)
{
    TN__RETURN(one_hot(tn__node_of(indices, "one_hot"), count, dtype));
}
