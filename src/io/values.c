/* SPDX-License-Identifier: MIT */
/* Between arrays and plain host memory. */
#include "io/values.h"

#include <string.h>
#include "core/memory.h"
#include "engine/engine.h"
#include "io/file.h"

tn_status tn__values_new(const char *operation, tn__values *values, tn_dtype dtype, tn_shape shape)
{
    *values = (tn__values){0};
    tn_status status = tn__shape_check(operation, shape, tn__dtypes[dtype].size);
    if (status != TN_OK)
        return status;
    const tn__shape *interned = tn__shape_intern(shape.ndim, shape.dim);
    if (!interned)
        return tn__fail_memory(operation, sizeof *interned);
    tn__device *cpu = tn__device_get((tn_device){.kind = TN_DEVICE_CPU});
    tn__storage *storage = cpu ? tn__storage_new(cpu, (size_t)interned->size * tn__dtypes[dtype].size) : NULL;
    if (!storage)
        return tn__error_status(tn__error_last());
    *values = (tn__values){dtype, interned, storage, 0};
    return TN_OK;
}

void tn__values_free(tn__values *values)
{
    if (values->storage)
        tn__storage_release(values->storage);
    *values = (tn__values){0};
}

tn_status tn__values_read(const char *operation, const char *path,
                          tn_status (*parse)(const char *operation, const char *name, const uint8_t *data, size_t size,
                                             tn__values *values),
                          tn__values *values)
{
    uint8_t *data;
    size_t size;
    tn_status status = tn__file_read(operation, path, UINT64_MAX, &data, &size);
    if (status == TN_OK)
        status = parse(operation, path, data, size, values);
    tn__free(data);
    return status;
}

static tn__node *values_node(const tn__values *values)
{
    return tn__node_value(values->storage, values->dtype, values->shape, values->offset, NULL);
}

tn_array *tn__values_own(tn__values *values)
{
    tn__call call = tn__enter();
    tn__node *node = values_node(values);
    tn_array *x = tn__array_own_new(node);
    if (tn__handle_of(x)->is_static || tn__node_is_error(tn__array_node(x))) {
        tn__array_free_kept(x);
        x = NULL;
    }
    tn__leave(call);
    tn__values_free(values);
    return x;
}

tn_array *tn__values_leave(tn__call call, tn_status status, tn__values *values)
{
    if (status != TN_OK) {
        tn__values_free(values);
        return tn__leave_error(call);
    }
    tn__node *node = values_node(values);
    tn__values_free(values);
    return tn__leave_array(call, node);
}

static tn_status view_node(const char *operation, tn__node *node, tn__host_view *view)
{
    tn_status status = tn__evaluate(1, &node);
    if (status != TN_OK)
        return status;
    tn__device *device = node->device;
    size_t bytes = (size_t)node->shape->size * tn__dtypes[node->dtype].size;
    const void *data = NULL;
    void *copy = NULL;
    if (device->capabilities.host_memory && tn__node_contiguous(node)) {
        if (device->ops->synchronize && (status = device->ops->synchronize(device)) != TN_OK)
            return status;
        data = (const char *)node->storage->memory + node->offset * tn__dtypes[node->dtype].size;
    } else {
        data = copy = tn__alloc_aligned(bytes ? bytes : 1);
        if (!copy)
            return tn__fail_memory(operation, bytes);
        if ((status = tn__read(node, copy)) != TN_OK) {
            tn__free(copy);
            return status;
        }
    }
    *view = (tn__host_view){data, bytes, node->dtype, node->shape, copy, tn__node_retain(node)};
    return TN_OK;
}

tn_status tn__host_view_of(const char *operation, const tn_array *x, tn__host_view *view)
{
    *view = (tn__host_view){0};
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, operation);
    tn_status status = tn__node_is_error(node) ? tn__error_raise(node->error) : view_node(operation, node, view);
    tn__leave(call);
    return status;
}

void tn__host_view_end(tn__host_view *view)
{
    tn__free(view->copy);
    if (view->node)
        tn__node_release(view->node);
    *view = (tn__host_view){0};
}
