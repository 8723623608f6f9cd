/* SPDX-License-Identifier: MIT */
/* Storages: counted buffers, of the allocator's memory or of memory that someone else owns. */
#include "core/error.h"
#include "core/memory.h"
#include "device/allocator.h"

static void release_nothing(void *user, void *memory)
{
    (void)user;
    (void)memory;
}

tn__storage *tn__storage_new(tn__device *device, size_t bytes)
{
    tn__storage *storage = tn__allocator_take(device->allocator, bytes);
    if (!storage)
        return NULL;
    atomic_store_explicit(&storage->references, 1, memory_order_relaxed);
    storage->device = device;
    storage->bytes = bytes;
    storage->release = NULL;
    storage->user = NULL;
    return storage;
}

tn__storage *tn__storage_wrap(tn__device *device, void *memory, size_t bytes, void (*release)(void *, void *),
                              void *user)
{
    tn__storage *storage = tn__alloc(sizeof *storage);
    if (!storage) {
        tn__fail_memory("a storage", sizeof *storage);
        return NULL;
    }
    *storage = (tn__storage){.device = device, .memory = memory, .bytes = bytes,
                             .release = release ? release : release_nothing, .user = user};
    atomic_init(&storage->references, 1);
    tn__use_end(device, &storage->use, true); /* its owner has put it behind this thread's stream, and no other */
    return storage;
}

void tn__storage_release(tn__storage *storage)
{
    if (!storage || atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    if (storage->release) {
        storage->release(storage->user, storage->memory);
        tn__free(storage);
        return;
    }
    tn__allocator_give(storage->device->allocator, storage);
}

/* What is read has been read when the call returns, so it is noted only where that went wrong half-way. Meanwhile
 * another thread may have been told that it is poisoned. */
tn_status tn__storage_read(tn__storage *storage, void *host, const void *memory, size_t bytes)
{
    tn__device *device = storage->device;
    tn_status status = tn__use_begin(device, &storage->use, false);
    if (status != TN_OK)
        return status;
    status = device->ops->read(device, host, memory, bytes);
    if (status != TN_OK)
        tn__use_end(device, &storage->use, false);
    return status == TN_OK ? tn__storage_check(storage) : status;
}

tn_status tn__storage_write(tn__storage *storage, const void *host, size_t bytes)
{
    tn__device *device = storage->device;
    tn_status status = tn__use_begin(device, &storage->use, true);
    if (status != TN_OK)
        return status;
    status = device->ops->write(device, storage->memory, host, bytes);
    tn__use_end(device, &storage->use, true);
    return status;
}

/* What a run of this device computes may still be poisoned, and the copy with it. */
static void note_run(tn__storage *to, const tn__storage *from)
{
    uint64_t run = atomic_load_explicit(&from->run, memory_order_relaxed);
    if (run > atomic_load_explicit(&to->run, memory_order_relaxed))
        atomic_store_explicit(&to->run, run, memory_order_relaxed);
}

tn_status tn__storage_copy(tn__storage *to, size_t at, tn__storage *from, const void *memory, size_t bytes)
{
    tn__device *device = to->device, *other = from->device;
    tn_status status = tn__use_begin(device, &to->use, true);
    if (status == TN_OK)
        status = tn__use_begin(other, &from->use, false);
    if (status != TN_OK)
        return status;
    char *place = (char *)to->memory + at;
    if (device == other)
        note_run(to, from);
    status = device == other ? device->ops->copy(device, place, memory, bytes)
                             : device->ops->copy_from(device, place, other, memory, bytes);
    tn__use_end(device, &to->use, true);
    tn__use_end(other, &from->use, false);
    return status == TN_OK ? tn__storage_check(from) : status;
}
