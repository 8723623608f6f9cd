/* SPDX-License-Identifier: MIT */
/* Values from device to device: what a TRANSFER node does. */
#include "engine/engine.h"

#include "array/build.h"
#include "core/memory.h"
#include "engine/collect.h"

static tn_status copy_elements(tn__node *from, tn__storage *to)
{
    size_t bytes = (size_t)from->shape->size * tn_dtype_size((tn_dtype)from->dtype);
    const tn__capabilities *source = &from->device->capabilities;
    if (tn__storage_check(from->storage) != TN_OK)
        return tn__error_status(tn__error_last());
    if (!bytes)
        return TN_OK;
    const char *memory = from->storage->memory;
    memory += from->offset * (int64_t)tn_dtype_size((tn_dtype)from->dtype);
    if (source->host_memory)
        return tn__storage_write(to, memory, bytes);
    if (to->device->capabilities.host_memory)
        return tn__storage_read(from->storage, to->memory, memory, bytes);
    if (tn__device_reaches(to->device, from->device))
        return tn__storage_copy(to, 0, from->storage, memory, bytes);
    void *staging = tn__alloc(bytes);
    if (!staging)
        return tn__fail_memory("to", bytes);
    tn_status status = tn__storage_read(from->storage, staging, memory, bytes);
    if (status == TN_OK)
        status = tn__storage_write(to, staging, bytes);
    tn__free(staging);
    return status;
}

static tn_status run(tn__node *node)
{
    tn__node *from = tn__compact(node->in[0]);
    if (!from)
        return tn__error_status(tn__error_last());
    tn__storage *storage = tn__storage_new(node->device, (size_t)node->shape->size * tn_dtype_size(node->dtype));
    tn_status status = storage ? copy_elements(from, storage) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        int64_t below = node->attr.below;
        tn__node_set_value(node, storage, 0, NULL, !tn__keeps_inputs(node));
        node->attr.below = below; /* what is known of the elements stays known */
    }
    tn__storage_release(storage);
    return status;
}

tn_status tn__transfer_run(tn__node *node)
{
    tn__call call = tn__enter();
    tn_status status = run(node);
    tn__leave(call);
    return status;
}

tn_status tn__transfer_recorded(tn__node *node)
{
    const tn__node *from = node->in[0];
    bool at_once = from->storage && from->device->capabilities.host_memory;
    return at_once ? run(node) : TN_OK;
}
