/* SPDX-License-Identifier: MIT */
/* Arrays in memory that others own, and Tanso's memory for others. */
#include "io/wrap.h"

#include <tanso/exchange.h>

#include "array/build.h"
#include "core/memory.h"
#include "engine/engine.h"

/* ---- from others ---- */

/* The bytes in front of element 0 and from it on that strides reach; false if no address does. */
static bool extent(const tn__lent *l, size_t itemsize, int64_t *before, int64_t *after)
{
    *before = 0;
    *after = 1;
    for (int d = 0; d < l->shape.ndim; d++) {
        int64_t reach;
        if (l->shape.dim[d] == 0) {
            *before = *after = 0;
            return true;
        }
        int64_t *side = l->strides[d] < 0 ? before : after, stride = l->strides[d];
        if (stride == INT64_MIN || __builtin_mul_overflow(stride < 0 ? -stride : stride, l->shape.dim[d] - 1, &reach) ||
            __builtin_add_overflow(*side, reach, side))
            return false;
    }
    int64_t most = INT64_MAX / 4 / (int64_t)itemsize;
    return *before <= most && *after <= most;
}

/* Strides as nodes have them: NULL where they are C order's; false without memory. Extents of 1 have any stride. */
static bool intern_strides(const tn__shape *shape, const int64_t *stride, const tn__ints **strides)
{
    int64_t dense[TN_MAX_NDIM];
    tn__strides_contiguous(shape->ndim, shape->dim, dense);
    bool same = shape->size == 0;
    if (!same) {
        same = true;
        for (int d = 0; d < shape->ndim; d++)
            same = same && (shape->dim[d] == 1 || stride[d] == dense[d]);
    }
    *strides = same ? NULL : tn__ints_intern(shape->ndim, stride);
    return same || *strides;
}

static tn_status check(const char *operation, const tn__lent *l)
{
    if (!tn__dtype_valid(l->dtype))
        return tn__fail(TN_ERR_DTYPE, operation, "%d is no dtype; expected one of tn_dtype", (int)l->dtype);
    size_t itemsize = tn_dtype_size(l->dtype);
    tn_status status = tn__shape_check(operation, l->shape, itemsize);
    if (status != TN_OK)
        return status;
    int64_t size = 1;
    for (int d = 0; d < l->shape.ndim; d++)
        size *= l->shape.dim[d];
    if (size && !l->memory)
        return tn__fail(TN_ERR_VALUE, operation, "the memory is NULL: expected the address of %lld elements",
                        (long long)size);
    /* a GPU reads both parts of a complex number at once */
    size_t alignment =
        l->device.kind == TN_DEVICE_CUDA ? itemsize : tn_dtype_size((tn_dtype)tn__dtypes[l->dtype].component);
    if ((uintptr_t)l->memory % alignment)
        return tn__fail(TN_ERR_VALUE, operation,
                        "the address %p is no multiple of %zu, which elements need: copy them to aligned memory first",
                        l->memory, alignment);
    return TN_OK;
}

tn__node *tn__wrap(const char *operation, const tn__lent *lent)
{
    tn__lent l = *lent;
    int64_t dense[TN_MAX_NDIM], before, after;
    if (check(operation, &l) != TN_OK)
        return tn__failed();
    size_t itemsize = tn_dtype_size(l.dtype);
    tn__strides_contiguous(l.shape.ndim, l.shape.dim, dense);
    l.strides = l.strides ? l.strides : dense;
    if (!extent(&l, itemsize, &before, &after))
        return tn__node_error(tn__error_new(TN_ERR_VALUE, operation, "the strides reach beyond all addresses"));
    const tn__shape *shape = tn__shape_intern(l.shape.ndim, l.shape.dim);
    const tn__ints *strides;
    if (!shape || !intern_strides(shape, l.strides, &strides)) {
        tn__fail_memory(operation, sizeof *shape);
        return tn__failed();
    }
    tn__device *device = tn__device_get(l.device);
    char *base = (char *)l.memory - before * (int64_t)itemsize;
    tn__storage *storage =
        device ? tn__storage_wrap(device, base, (size_t)(before + after) * itemsize, NULL, l.user) : NULL;
    if (!storage)
        return tn__failed();
    tn__node *node = tn__node_value(storage, l.dtype, shape, before, strides);
    /* Only now, when nothing can fail any more, does the memory change hands. */
    if (!tn__node_is_error(node) && l.release)
        storage->release = l.release;
    device->lent = true;
    tn__storage_release(storage);
    return node;
}

tn__node *tn__wrap_in(const char *operation, tn__storage *storage, const tn__lent *lent)
{
    const tn__shape *shape = tn__shape_intern(lent->shape.ndim, lent->shape.dim);
    const tn__ints *strides = NULL;
    if (!shape || (lent->strides && !intern_strides(shape, lent->strides, &strides))) {
        tn__fail_memory(operation, sizeof *shape);
        return tn__failed();
    }
    int64_t bytes = (const char *)lent->memory - (const char *)storage->memory;
    return tn__node_value(storage, lent->dtype, shape, bytes / (int64_t)tn_dtype_size(lent->dtype), strides);
}

tn_array *tn_wrap_with(void *memory, tn_shape shape, tn_dtype dtype, const tn_wrap_opts *opts)
{
    static const tn_wrap_opts defaults;
    opts = opts ? opts : &defaults;
    tn__call call = tn__enter();
    tn__lent lent = {.memory = memory, .shape = shape, .dtype = dtype, .release = opts->release, .user = opts->user,
                     .device = opts->device.kind ? opts->device : (tn_device){TN_DEVICE_CPU, 0}};
    int64_t strides[TN_MAX_NDIM];
    int64_t itemsize = (int64_t)tn_dtype_size(dtype);
    for (int d = 0; opts->strides && itemsize && d < shape.ndim && d < TN_MAX_NDIM; d++) {
        if (opts->strides[d] % itemsize)
            return tn__leave_array(
                call, tn__node_error(tn__error_new(TN_ERR_VALUE, "tn_wrap",
                                                   "stride %d is %lld bytes: expected a multiple of the item size %lld",
                                                   d, (long long)opts->strides[d], (long long)itemsize)));
        strides[d] = opts->strides[d] / itemsize;
    }
    lent.strides = opts->strides ? strides : NULL;
    return tn__leave_array(call, tn__wrap("tn_wrap", &lent));
}

/* ---- for others ---- */

static tn_status lend(const char *operation, tn__node *node, tn__lending *lending)
{
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    tn_status status = tn__evaluate(1, &node);
    tn__device *device = node->device;
    device->lent = true;
    if (status == TN_OK && device->ops->synchronize)
        status = device->ops->synchronize(device);
    if (status != TN_OK)
        return status;
    if (!node->storage)
        return tn__fail(TN_ERR_STATE, operation, "the array has no memory");
    *lending =
        (tn__lending){.storage = tn__storage_retain(node->storage),
                      .dtype = (tn_dtype)node->dtype,
                      .shape = node->shape,
                      .memory = (char *)node->storage->memory + node->offset * (int64_t)tn_dtype_size(node->dtype)};
    if (node->strides)
        for (int d = 0; d < node->shape->ndim; d++)
            lending->stride[d] = node->strides->v[d];
    else
        tn__strides_contiguous(node->shape->ndim, node->shape->dim, lending->stride);
    return TN_OK;
}

static bool goes_backwards(const tn__lending *lending)
{
    for (int d = 0; d < lending->shape->ndim; d++)
        if (lending->stride[d] < 0 && lending->shape->dim[d] > 1)
            return true;
    return false;
}

tn_status tn__lend_forward(const char *operation, const tn_array *x, tn__lending *lending)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, operation);
    tn_status status = lend(operation, node, lending);
    if (status == TN_OK && goes_backwards(lending)) {
        tn__storage_release(lending->storage);
        tn__no_grad_depth++;
        status = lend(operation, tn__unary(TN__OP_COPY, node), lending);
        tn__no_grad_depth--;
        lending->copied = true;
    }
    tn__leave(call);
    return status;
}

tn_status tn__lend(const char *operation, const tn_array *x, tn__lending *lending)
{
    tn__call call = tn__enter();
    tn_status status = lend(operation, tn__node_of(x, operation), lending);
    tn__leave(call);
    return status;
}
