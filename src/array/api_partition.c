/* SPDX-License-Identifier: MIT */
/* Partitions of rows about one place, and the largest of them: less than sorting, where the device has operations for
 * it. */
#include "array/partition.h"
#include "array/build_parts.h"

#define SHORT 512 /* elements of a row that is sorted sooner, or hardly later */

static bool native(const tn__node *a)
{
    return tn__dtypes[a->dtype].class != TN__CLASS_COMPLEX && a->shape->size > 0 &&
           tn__native(a->device, TN__OP_PARTITION, (tn_dtype)a->dtype, a->shape);
}

bool tn__partitions(const tn_array *x, int axis)
{
    tn__node *a = tn__node_of(x, "partition");
    return !tn__node_is_error(a) && a->shape->dim[axis] > SHORT && native(a);
}

static tn__node *partition(const char *operation, const tn_array *x, int axis, int64_t place, bool positions)
{
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    const tn__ints *modes = tn__ints_intern(1, &place);
    if (!modes) {
        tn__fail_memory(operation, sizeof(tn__ints));
        return tn__failed();
    }
    bool gathers = !positions && a->flags & TN__NODE_NEEDS_GRAD;
    tn__op op = positions || gathers ? TN__OP_ARGPARTITION : TN__OP_PARTITION;
    tn__node *rows = tn__axis_to_last(a, axis);
    TN__PASS_ERROR(rows);
    tn__node *result = tn__apply(op, op == TN__OP_ARGPARTITION ? TN_INT64 : (tn_dtype)a->dtype, rows->shape, 1, &rows,
                                 (tn__attr){.ints = modes});
    TN__PASS_ERROR(result);
    return tn__axis_from_last(gathers ? tn__gather(rows, result, rows->shape->ndim - 1) : result, axis);
}

tn_array *tn__partitioned(const char *operation, const tn_array *x, int axis, int64_t place, bool positions,
                          tn_array *out)
{
    tn__call call = tn__enter();
    return tn__deliver(call, partition(operation, x, axis, place, positions), out);
}

#define MOST 1024 /* that are found at once */

bool tn__finds_largest(const tn_array *x, int axis, int64_t k)
{
    tn__node *a = tn__node_of(x, "topk");
    return !tn__node_is_error(a) && tn__dtypes[a->dtype].class != TN__CLASS_COMPLEX && a->shape->size > 0 && k > 0 &&
           k <= MOST && a->shape->dim[axis] <= UINT32_MAX && !a->device->capabilities.operations &&
           tn__native(a->device, TN__OP_LARGEST, (tn_dtype)a->dtype, a->shape);
}

static tn__node *largest(const char *operation, const tn_array *x, int axis, int64_t k)
{
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    tn__node *rows = tn__axis_to_last(a, axis);
    TN__PASS_ERROR(rows);
    tn_shape found = tn__shape_value(rows->shape);
    found.dim[found.ndim - 1] = k;
    const tn__shape *shape = tn__shape_make(operation, found, TN_INT64);
    if (!shape)
        return tn__failed();
    return tn__axis_from_last(tn__apply(TN__OP_LARGEST, TN_INT64, shape, 1, &rows, (tn__attr){.raw = {0}}), axis);
}

tn_array *tn__largest_places(const char *operation, const tn_array *x, int axis, int64_t k)
{
    tn__call call = tn__enter();
    return tn__deliver(call, largest(operation, x, axis, k), NULL);
}
