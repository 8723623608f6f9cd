/* SPDX-License-Identifier: MIT */
/* Partitions of rows about one place: less than sorting them, where the device has the operation. */
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
