/* SPDX-License-Identifier: MIT */
/*
 * The caching allocator: memory in segments (segments.h) for whoever asks, behind those that used it before on other
 * streams. When there is no room, compiled programs that nobody runs are let go (tn__engine.relieve); then it fails.
 */
#include "device/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/engine_calls.h"
#include "device/segments.h"

#define RAW_LISTS 64

struct tn__allocator {
    pthread_mutex_t lock;
    tn__segments segments;
    tn__block *raw[RAW_LISTS]; /* blocks given out as plain memory, by address */
};

/* ---- taking and giving back ---- */

static tn_status exhausted(const tn__device *device, size_t bytes, const tn_memory_info *info)
{
    return tn__fail(TN_ERR_MEMORY, device->name,
                    "no memory for %zu bytes: %zu are used, %zu cached, the limit is %zu%s, the device has %zu%s; free "
                    "arrays%s use smaller batches%s",
                    bytes, info->used, info->cached, info->limit, info->limit ? "" : " (none)", info->total,
                    info->total ? "" : " (unknown)", info->limit ? "," : " or",
                    info->limit ? ", or raise the limit (tn_memory_limit, TANSO_MEMORY_LIMIT)" : "");
}

/* Under the lock. */
static tn_memory_info info_of(const tn__allocator *a)
{
    const tn__segments *s = &a->segments;
    return (tn_memory_info){.used = s->used, .cached = s->cached, .peak = s->peak, .limit = s->limit,
                            .total = s->device->capabilities.total_memory};
}

/* Puts this thread's stream behind those that used the memory before it was free; a failure gives it back. */
static bool in_order(tn__allocator *a, tn__block *b)
{
    if (!tn__has_streams(a->segments.device))
        return true;
    bool done = tn__use_begin(a->segments.device, &b->storage.use, true) == TN_OK;
    if (done)
        tn__use_end(a->segments.device, &b->storage.use, true);
    else
        tn__allocator_give(a, &b->storage);
    return done;
}

tn__storage *tn__allocator_take(tn__allocator *a, size_t bytes)
{
    tn__device *device = a->segments.device;
    tn__block *b;
    tn_memory_info info;
    for (bool again = false;; again = true) {
        pthread_mutex_lock(&a->lock);
        b = tn__segments_take(&a->segments, bytes);
        info = info_of(a);
        pthread_mutex_unlock(&a->lock);
        if (b || again || !tn__engine.relieve || !tn__engine.relieve(device))
            break;
    }
    if (!b) {
        exhausted(device, bytes, &info);
        return NULL;
    }
    return in_order(a, b) ? &b->storage : NULL;
}

void tn__allocator_give(tn__allocator *a, tn__storage *storage)
{
    pthread_mutex_lock(&a->lock);
    tn__segments_give(&a->segments, (tn__block *)storage); /* its first member */
    pthread_mutex_unlock(&a->lock);
}

/* ---- failed runs ------------------------------------------------------------------------------------------------- */

typedef struct failed_runs {
    uint64_t first;
    tn__error *error;
} failed_runs;

static void poison(tn__block *b, void *user)
{
    const failed_runs *failed = user;
    tn__error *none = NULL;
    if (b->free || atomic_load(&b->storage.run) < failed->first)
        return;
    if (atomic_compare_exchange_strong(&b->storage.poisoned, &none, failed->error))
        tn__error_retain(failed->error);
}

void tn__device_poison(tn__device *device, uint64_t first, tn__error *error)
{
    tn__allocator *a = device->allocator;
    failed_runs failed = {first, error};
    atomic_fetch_add_explicit(&device->failures, 1, memory_order_relaxed);
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    tn__records_each(&a->segments.records, poison, &failed);
    pthread_mutex_unlock(&a->lock);
}

/* ---- plain memory ---------------------------------------------------------------------------------------------- */

static tn__block **raw_list(tn__allocator *a, const void *memory)
{
    return &a->raw[((uintptr_t)memory >> 8) * 0x9E3779B97F4A7C15u >> 58 & (RAW_LISTS - 1)];
}

void *tn__device_allocate(tn__device *device, size_t bytes)
{
    tn__allocator *a = device->allocator;
    tn__storage *storage = tn__allocator_take(a, bytes);
    if (!storage)
        return NULL;
    tn__block *b = (tn__block *)storage;
    pthread_mutex_lock(&a->lock);
    tn__block **list = raw_list(a, b->storage.memory);
    b->next = *list;
    *list = b;
    pthread_mutex_unlock(&a->lock);
    return b->storage.memory;
}

void tn__device_release(tn__device *device, void *memory, size_t bytes)
{
    (void)bytes;
    if (!memory)
        return;
    tn__allocator *a = device->allocator;
    pthread_mutex_lock(&a->lock);
    tn__block **link = raw_list(a, memory);
    while (*link && (*link)->storage.memory != memory)
        link = &(*link)->next;
    tn__block *b = *link;
    if (b) {
        *link = b->next;
        tn__use_end(device, &b->storage.use, false); /* by what this thread has asked for until now */
        tn__segments_give(&a->segments, b);
    }
    pthread_mutex_unlock(&a->lock);
    if (!b)
        tn__log(TN__LOG_ERROR, "device", "%s: released memory that it did not allocate", device->name);
}

/* ---- the allocator as a whole ---------------------------------------------------------------------------------- */

tn__allocator *tn__allocator_new(tn__device *device)
{
    tn__allocator *a = tn__calloc(1, sizeof *a);
    if (!a) {
        tn__fail_memory(device->name, sizeof *a);
        return NULL;
    }
    if (pthread_mutex_init(&a->lock, NULL)) {
        tn__free(a);
        tn__fail(TN_ERR_INTERNAL, device->name, "the system has no more locks");
        return NULL;
    }
    a->segments.device = device;
    size_t total = device->capabilities.total_memory;
    /* An operating system lends out more memory than it has, so host memory never runs out in time to empty the
     * cache. */
    a->segments.cache_most = device->capabilities.host_memory && total ? total / 4 : SIZE_MAX;
    a->segments.limit = tn__limit_given(device);
    return a;
}

void tn__allocator_close(tn__allocator *a)
{
    tn__allocator_trim(a);
    if (a->segments.used)
        return;
    tn__records_free(&a->segments.records);
    pthread_mutex_destroy(&a->lock);
    a->segments.device->allocator = NULL;
    tn__free(a);
}

tn_memory_info tn__allocator_stats(tn__allocator *a)
{
    pthread_mutex_lock(&a->lock);
    tn_memory_info info = info_of(a);
    pthread_mutex_unlock(&a->lock);
    return info;
}

void tn__allocator_reset_peak(tn__allocator *a)
{
    pthread_mutex_lock(&a->lock);
    a->segments.peak = a->segments.used;
    pthread_mutex_unlock(&a->lock);
}

size_t tn__allocator_trim(tn__allocator *a)
{
    pthread_mutex_lock(&a->lock);
    size_t returned = tn__segments_shrink(&a->segments, 0);
    pthread_mutex_unlock(&a->lock);
    return returned;
}

bool tn__device_relieve(tn__device *device)
{
    if (!device->allocator)
        return false;
    return tn__allocator_trim(device->allocator) > 0 || (tn__engine.relieve && tn__engine.relieve(device));
}

tn_status tn__device_exhausted(tn__device *device, size_t bytes)
{
    tn_memory_info info = device->allocator ? tn__allocator_stats(device->allocator) : (tn_memory_info){0};
    return exhausted(device, bytes, &info);
}

void tn__allocator_limit(tn__allocator *a, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    a->segments.limit = bytes;
    if (bytes && a->segments.used + a->segments.cached > bytes)
        tn__segments_shrink(&a->segments, bytes > a->segments.used ? bytes - a->segments.used : 0);
    pthread_mutex_unlock(&a->lock);
}
