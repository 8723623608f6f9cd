/* SPDX-License-Identifier: MIT */
/* Reading values on the host. */
#include "engine/engine.h"

#include "array/build.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>
#include <tanso/complex.h>
#include <tanso/engine.h>

static size_t itemsize(const tn__node *node) { return tn_dtype_size((tn_dtype)node->dtype); }

tn__node *tn__compact(tn__node *node)
{
    if (!node->strides)
        return node;
    tn__node *copy = tn__node_new(TN__OP_COPY, (tn_dtype)node->dtype, node->shape, node->device, 1, &node,
                                  (tn__attr){0});
    return tn__evaluate_alone(1, &copy) == TN_OK ? copy : NULL;
}

static tn_status read_span(const tn__node *node, void *host)
{
    tn_status status = tn__storage_check(node->storage);
    if (status != TN_OK)
        return status;
    return tn__storage_read(node->storage, host, (char *)node->storage->memory + node->offset * (int64_t)itemsize(node),
                            (size_t)node->shape->size * itemsize(node));
}

tn_status tn__read(tn__node *node, void *host)
{
    tn__call call = tn__enter();
    tn__node *plain = tn__compact(node);
    tn_status status = plain ? read_span(plain, host) : tn__error_status(tn__error_last());
    tn__leave(call);
    return status;
}

tn__node *tn__value_from_host(const void *data, tn_dtype dtype, const tn__shape *shape, tn__device *device)
{
    size_t bytes = (size_t)shape->size * tn_dtype_size(dtype);
    tn__storage *storage = tn__storage_new(device, bytes);
    if (!storage || (bytes && tn__storage_write(storage, data, bytes) != TN_OK)) {
        if (storage)
            tn__storage_release(storage);
        return tn__node_error(tn__error_retain(tn__error_last()));
    }
    tn__node *node = tn__node_value(storage, dtype, shape, 0, NULL);
    tn__storage_release(storage);
    return node;
}

/* ---- the public calls ---- */

tn_status tn_to_host(const tn_array *x, void *destination, size_t bytes)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "to_host");
    tn_status status = tn__evaluate(1, &node);
    if (status == TN_OK) {
        size_t need = (size_t)node->shape->size * itemsize(node);
        status = bytes < need ? tn__fail(TN_ERR_VALUE, "to_host",
                                         "the array needs %zu bytes, the destination holds %zu: make it larger", need,
                                         bytes)
                              : tn__read(node, destination);
    }
    tn__leave(call);
    return status;
}

bool tn__item_here(const tn__node *node, double *value)
{
    const tn__storage *storage = node->storage;
    if (!storage || node->shape->size != 1 || !storage->device->capabilities.host_memory ||
        atomic_load_explicit(&storage->poisoned, memory_order_relaxed))
        return false;
    tn__scalar scalar = {0};
    memcpy(scalar.bytes, (const char *)storage->memory + node->offset * (int64_t)itemsize(node),
           tn__dtypes[tn__dtypes[node->dtype].component].size);
    *value = tn__scalar_to_double(scalar, (tn_dtype)node->dtype);
    return true;
}

/* The one element of x, as stored: its first part, and its second if it is complex. */
static tn_status read_item(const tn_array *x, const char *operation, tn__scalar scalar[2], tn_dtype *dtype)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, operation);
    tn_status status = node->storage ? TN_OK : tn__evaluate(1, &node);
    scalar[0].bits = scalar[1].bits = 0;
    if (status == TN_OK && node->shape->size != 1) {
        char shape[TN__SHAPE_TEXT];
        status = tn__fail(TN_ERR_SHAPE, operation,
                          "expected an array of one element, got shape %s: index or reduce it first",
                          tn__shape_text(node->shape->ndim, node->shape->dim, shape));
    }
    if (status == TN_OK) {
        *dtype = (tn_dtype)node->dtype;
        unsigned char bytes[16] = {0};
        size_t part = tn__dtypes[tn__dtypes[*dtype].component].size;
        status = read_span(node, bytes);
        memcpy(scalar[0].bytes, bytes, part);
        memcpy(scalar[1].bytes, bytes + part, itemsize(node) - part);
    }
    tn__leave(call);
    return status;
}

double tn_item(const tn_array *x)
{
    tn__scalar scalar[2];
    tn_dtype dtype;
    return read_item(x, "item", scalar, &dtype) == TN_OK ? tn__scalar_to_double(scalar[0], dtype) : (double)NAN;
}

int64_t tn_item_int(const tn_array *x)
{
    tn__scalar scalar[2];
    tn_dtype dtype;
    return read_item(x, "item_int", scalar, &dtype) == TN_OK ? tn__scalar_to_int(scalar[0], dtype) : 0;
}

tn_status tn_item_parts(const tn_array *x, double parts[2])
{
    if (!parts)
        return tn__fail_null("item_parts", "room for two numbers");
    tn__scalar scalar[2];
    tn_dtype dtype;
    tn_status status = read_item(x, "item_parts", scalar, &dtype);
    for (int i = 0; i < 2; i++)
        parts[i] = status != TN_OK                        ? (double)NAN
                   : i > 0 && !tn_dtype_is_complex(dtype) ? 0
                                                          : tn__scalar_to_double(scalar[i], dtype);
    return status;
}

/* A value with the same elements in C order. A strided one keeps the first such copy that any thread makes of it, and
 * stays as it is itself, as others may be reading it. NULL with a latched error. */
static tn__node *readable(tn__node *node)
{
    tn__node *plain = node->strides ? __atomic_load_n(&node->plain, __ATOMIC_ACQUIRE) : node;
    if (plain)
        return plain;
    tn__node *copy = tn__compact(node);
    if (!copy)
        return NULL;
    plain = tn__node_value(copy->storage, (tn_dtype)node->dtype, node->shape, copy->offset, NULL);
    if (tn__node_is_error(plain))
        return NULL;
    tn__node *first = NULL;
    tn__node_retain(plain);
    if (__atomic_compare_exchange_n(&node->plain, &first, plain, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return plain;
    tn__node_release(plain);
    return first;
}

static const void *host_elements(tn__node *node)
{
    if (!node->device->capabilities.host_memory) {
        tn__fail(TN_ERR_DEVICE, "data",
                 "the array is on %s, whose memory the host can't read: use tn_to_host, or tn_to(x, tn_cpu()) first",
                 node->device->name);
        return NULL;
    }
    tn__node *plain = readable(node);
    if (!plain || (node->device->ops->synchronize && node->device->ops->synchronize(node->device) != TN_OK))
        return NULL;
    return (char *)plain->storage->memory + plain->offset * (int64_t)itemsize(plain);
}

const void *tn_data(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "data");
    const void *data = tn__evaluate(1, &node) == TN_OK ? host_elements(node) : NULL;
    tn__leave(call);
    return data;
}
