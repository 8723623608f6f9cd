/* SPDX-License-Identifier: MIT */
/*
 * Joining: concatenate and stack. The parts are written one after another over a constant zero with
 * a chain of UPDATE nodes; each base has no other reader, so that the plan writes all parts into
 * one buffer.
 */
#include <tanso/array.h>

#include "array/build_parts.h"

typedef struct join {
    const char *operation;
    int count, axis;
    bool stack;
    const tn_array *const *arrays;
} join;

static tn__node *part(const join *j, int i)
{
    tn__node *a = tn__strong(tn__node_of(j->arrays[i], j->operation));
    return j->stack ? tn__insert_axis(j->operation, a, j->axis) : a;
}

/* What the parts have in common, found one part after another. */
typedef struct common {
    tn_shape shape;
    tn_dtype dtype;
    const tn__node *fixed; /* a part that is no constant: it says the device */
    const tn__node *constant;
} common;

static tn__node *add_part(const join *j, common *c, int i, tn__node *a)
{
    TN__PASS_ERROR(a);
    if (i == 0) {
        c->shape = tn__shape_value(a->shape);
        c->dtype = a->dtype;
    } else {
        tn_shape shape = tn__shape_value(a->shape);
        int axis = j->axis < 0 ? j->axis + c->shape.ndim : j->axis;
        bool same = shape.ndim == c->shape.ndim;
        for (int k = 0; same && k < shape.ndim; k++)
            same = shape.dim[k] == c->shape.dim[k] || k == axis;
        if (!same) {
            char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT];
            tn_shape one = tn_shape_of(j->arrays[0]), other = tn_shape_of(j->arrays[i]); /* as they were given */
            TN__REFUSE(TN_ERR_SHAPE, j->operation, "array %d has shape %s, array 0 %s; they must agree%s", i,
                       tn__shape_text(other.ndim, other.dim, second), tn__shape_text(one.ndim, one.dim, first),
                       j->stack ? "" : " on all axes but the one they are joined on");
        }
        int64_t extent;
        if (axis < 0 || axis >= shape.ndim ||
            __builtin_add_overflow(c->shape.dim[axis], shape.dim[axis], &extent))
            TN__REFUSE(TN_ERR_SHAPE, j->operation, "the extents along axis %d add up to too much",
                       j->axis);
        c->shape.dim[axis] = extent;
        if (tn__dtypes[a->dtype].class > tn__dtypes[c->dtype].class) /* the highest kind first, see tn__common_dtype */
            c->dtype = a->dtype;
    }
    if (tn__foldable(a))
        c->constant = c->constant ? c->constant : a;
    else if (!c->fixed)
        c->fixed = a;
    else if (c->fixed->device != a->device)
        TN__REFUSE(
            TN_ERR_DEVICE, j->operation,
            "array %d is on %s, one before it on %s; move one with tn_to(x, tn_device_of(y))", i,
            a->device->name, c->fixed->device->name);
    return a;
}

static tn__node *joined(const join *j)
{
    if (j->count < 1 || !j->arrays)
        TN__REFUSE(TN_ERR_VALUE, j->operation, "expected 1 or more arrays, got %d", j->count);
    common c = {.dtype = TN_DTYPE_DEFAULT};
    int axis = 0;
    for (int i = 0; i < j->count; i++) {
        tn__node *a = part(j, i);
        TN__PASS_ERROR(a);
        if (i == 0) {
            axis = tn__axis_check(j->operation, j->axis, a->shape->ndim);
            if (axis < 0)
                return tn__failed();
        }
        a = add_part(j, &c, i, a);
        TN__PASS_ERROR(a);
    }
    if (j->count == 1)
        return part(j, 0);
    for (int i = 0; i < j->count; i++)
        c.dtype = tn_dtype_promote(c.dtype, tn_dtype_of(j->arrays[i]));
    const tn__shape *shape = tn__shape_make(j->operation, c.shape, c.dtype);
    if (!shape)
        return tn__failed();

    tn__device *device = (c.fixed ? c.fixed : c.constant)->device;
    tn__node *result = tn__const(0, c.dtype, shape, device);
    int64_t at = 0;
    for (int i = 0; i < j->count; i++) {
        tn__node *a = part(j, i);
        TN__PASS_ERROR(a);
        result = tn__update_along(result, tn__adapt(a, c.dtype, a->shape, device), axis, at);
        at += a->shape->dim[axis];
    }
    return result;
}

tn_array *tn_concatenate(int count, const tn_array *const *arrays, int axis)
{
    join j = {.operation = "concatenate", .count = count, .axis = axis, .arrays = arrays};
    TN__RETURN(joined(&j));
}

tn_array *tn_stack(int count, const tn_array *const *arrays, int axis)
{
    join j = {.operation = "stack", .count = count, .axis = axis, .stack = true, .arrays = arrays};
    TN__RETURN(joined(&j));
}
