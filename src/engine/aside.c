/* SPDX-License-Identifier: MIT */
/*
 * Values as they are now, to be read later by another thread. A reference would keep them as well; but then the next
 * step would have to write into other memory, by another plan, and what was captured with the addresses of before, as
 * CUDA graphs are, would be made anew. A copy within the device costs the GPU little and the host a call a value.
 */
#include "engine/engine.h"

#include <tanso/device.h>
#include "array/build.h"
#include "core/memory.h"

#define ALIGNED 256 /* bytes: as an allocation of its own */

static size_t bytes_of(const tn__node *node)
{
    return (size_t)node->shape->size * tn_dtype_size((tn_dtype)node->dtype);
}

static size_t room_for(const tn__node *node) { return (bytes_of(node) + ALIGNED - 1) / ALIGNED * ALIGNED; }
static bool is_far(const tn__node *node) { return !node->device->capabilities.host_memory; }

/* Node i as a copy in the block, from byte `at` on. */
static tn_status copy_into(tn__storage *block, size_t at, tn__node **node)
{
    tn__node *from = tn__compact(*node);
    size_t item = tn_dtype_size((tn_dtype)(*node)->dtype);
    tn_status status = from ? tn__storage_check(from->storage) : tn__error_status(tn__error_last());
    if (status == TN_OK && bytes_of(from))
        status = tn__storage_copy(block, at, from->storage,
                                  (const char *)from->storage->memory + from->offset * (int64_t)item, bytes_of(from));
    if (status != TN_OK)
        return status;
    *node = tn__node_value(block, (tn_dtype)from->dtype, from->shape, (int64_t)(at / item), NULL);
    return tn__node_is_error(*node) ? tn__error_raise((*node)->error) : TN_OK;
}

/* All from node `first` on that are on its device and are not in a block yet. */
static tn_status copy_device(int count, tn__node **node, bool *done, int first)
{
    tn__device *device = node[first]->device;
    size_t bytes = 0, at = 0;
    for (int i = first; i < count; i++)
        bytes += node[i]->device == device && !done[i] ? room_for(node[i]) : 0;
    tn__storage *block = tn__storage_new(device, bytes);
    tn_status status = block ? TN_OK : TN_ERR_MEMORY;
    for (int i = first; i < count && status == TN_OK; i++) {
        if (node[i]->device != device || done[i])
            continue;
        size_t room = room_for(node[i]);
        status = copy_into(block, at, &node[i]);
        at += room;
        done[i] = true;
    }
    tn__storage_release(block);
    return status;
}

tn_status tn__put_aside(int count, tn__node **node)
{
    TN__FREED bool *done = tn__calloc((size_t)count + 1, sizeof *done);
    tn_status status = done ? TN_OK : tn__fail_memory("put_aside", (size_t)count);
    for (int i = 0; i < count && status == TN_OK; i++)
        if (is_far(node[i]) && !done[i])
            status = copy_device(count, node, done, i);
    return status;
}

/* All of a storage in the host's memory; NULL with a latched error. */
static tn__storage *fetch(tn__storage *from)
{
    tn__device *cpu = tn__device_get(tn_cpu());
    tn__storage *to = cpu ? tn__storage_new(cpu, from->bytes) : NULL;
    tn_status status = to ? tn__storage_check(from) : TN_ERR_MEMORY;
    if (status == TN_OK && from->bytes)
        status = tn__storage_read(from, to->memory, from->memory, from->bytes);
    if (status == TN_OK)
        return to;
    tn__storage_release(to);
    return NULL;
}

tn_status tn__fetch_aside(int count, tn__node **node)
{
    for (int first = 0; first < count; first++) {
        if (!is_far(node[first]))
            continue;
        tn__storage *from = node[first]->storage, *here = fetch(from);
        tn_status status = here ? TN_OK : tn__error_status(tn__error_last());
        for (int i = first; i < count && status == TN_OK; i++) {
            if (node[i]->storage != from)
                continue;
            node[i] = tn__node_value(here, (tn_dtype)node[i]->dtype, node[i]->shape, node[i]->offset, node[i]->strides);
            status = tn__node_is_error(node[i]) ? tn__error_raise(node[i]->error) : TN_OK;
        }
        tn__storage_release(here);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}
