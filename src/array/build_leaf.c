/* SPDX-License-Identifier: MIT */
/* Nodes without inputs on their device: constants, positions, random numbers, values from other devices. */
#include "array/build_parts.h"


tn__node *tn__const_scalar(tn__scalar value, tn_dtype dtype, const tn__shape *shape,
                           tn__device *device)
{
    return tn__node_new(TN__OP_CONST, dtype, shape, device, 0, NULL, (tn__attr){.scalar = value});
}

tn__node *tn__const(double value, tn_dtype dtype, const tn__shape *shape, tn__device *device)
{
    return tn__const_scalar(tn__scalar_from_double(value, dtype), dtype, shape, device);
}

tn__node *tn__const_like(tn__node *like, double value)
{
    TN__PASS_ERROR(like);
    return tn__const(value, like->dtype, like->shape, like->device);
}

/* A vector of positions, seen along one axis: nothing divides, and the vector costs no memory once
 * fused. */
tn__node *tn__iota(const tn__shape *shape, int axis, tn__device *device)
{
    int64_t aligned[TN_MAX_NDIM];
    for (int i = 0; i < shape->ndim; i++)
        aligned[i] = i == axis ? shape->dim[i] : 1;
    const tn__shape *vector = tn__shape_intern(1, &shape->dim[axis]);
    if (!vector) {
        tn__fail_memory("iota", sizeof(tn__shape));
        return tn__failed();
    }
    tn__node *iota =
        tn__node_new(TN__OP_IOTA, TN_INT64, vector, device, 0, NULL, (tn__attr){.raw = {0}});
    return tn__expand(tn__reshape(iota, shape->ndim, aligned), shape);
}

tn__node *tn__random(tn__op op, tn_dtype dtype, const tn__shape *shape, tn__device *device,
                     uint64_t key, uint64_t offset)
{
    return tn__node_new(op, dtype, shape, device, 0, NULL, (tn__attr){.random = {key, offset}});
}

tn__node *tn__to(tn__node *a, tn__device *device)
{
    TN__PASS_ERROR(a);
    if (a->device == device)
        return a;
    if (tn__foldable(a))
        return tn__const_scalar(a->attr.scalar, a->dtype, a->shape, device);
    if (!tn__engine.transfer)
        TN__REFUSE(TN_ERR_UNSUPPORTED, "to", "moving from %s to %s needs the engine, which is not linked in",
                   a->device->name, device->name);
    tn__attr attr = {.below = tn__elements_below(a)};
    tn__node *node = tn__node_new(TN__OP_TRANSFER, (tn_dtype)a->dtype, a->shape, device, 1, &a, attr);
    TN__PASS_ERROR(node);
    return tn__engine.transfer(node) == TN_OK ? node : tn__failed();
}

tn__node *tn__to_at_once(tn__node *a, tn__device *device)
{
    tn__node *node = tn__to(a, device);
    TN__PASS_ERROR(node);
    return tn__node_pending(node) && tn__engine.evaluate(node) != TN_OK ? tn__failed() : node;
}
