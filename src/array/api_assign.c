/* SPDX-License-Identifier: MIT */
/* In-place operations: they point a handle at a new value of the old shape and dtype. A failed one
 * leaves it as it is. */
#include <tanso/array.h>

#include "array/build_parts.h"

tn__node *tn__without_front(tn__node *a, int ndim)
{
    TN__PASS_ERROR(a);
    int more = a->shape->ndim - ndim;
    for (int d = 0; d < more; d++)
        if (a->shape->dim[d] != 1)
            return a;
    return more > 0 ? tn__reshape(a, ndim, a->shape->dim + more) : a;
}

tn__node *tn__assignable(const char *operation, tn__node *old, tn__node *value)
{
    TN__PASS_ERROR(old);
    TN__PASS_ERROR(value);
    if (value->shape == old->shape && value->device == old->device)
        return tn__adapt(value, old->dtype, old->shape, old->device);
    value = tn__without_front(value, old->shape->ndim);
    TN__PASS_ERROR(value);
    if (old->device != value->device && !tn__foldable(value)) /* whatever old is: the handle stays where it is */
        return tn__two_devices(operation, old, value);
    tn_shape result;
    if (!tn__shape_broadcast(old->shape, value->shape, &result) ||
        tn__shape_intern(result.ndim, result.dim) != old->shape) {
        char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "a value of shape %s does not fit the array's shape %s, which assignment keeps; "
                   "make a new array instead",
                   tn__shape_text(value->shape->ndim, value->shape->dim, second),
                   tn__shape_text(old->shape->ndim, old->shape->dim, first));
    }
    return tn__adapt(value, old->dtype, old->shape, old->device);
}

static tn_status assign(const char *operation, tn__op op, tn_array *x, const tn_array *y)
{
    tn__call call = tn__enter();
    tn__node *old = tn__strong(tn__node_of(x, operation)), *value = tn__node_of(y, operation);
    if (op != TN__OP_COPY && !tn__node_is_error(old))
        value = tn__binary(op, old, value);
    value = tn__assignable(operation, old, value);
    tn_status status = TN_OK;
    if (tn__node_is_error(value))
        status = tn__error_raise(value->error);
    else
        status = tn__array_write(x, value);
    tn__leave(call);
    return status;
}

tn_status tn_assign(tn_array *x, const tn_array *y)
{
    return assign("assign", TN__OP_COPY, x, y);
}

#define ASSIGN(name, ID) \
    tn_status tn_##name(tn_array *x, const tn_array *y) \
    { \
        return assign(#name, TN__OP_##ID, x, y); \
    }
ASSIGN(add_assign, ADD)
ASSIGN(subtract_assign, SUBTRACT)
ASSIGN(multiply_assign, MULTIPLY)
ASSIGN(divide_assign, DIVIDE)
