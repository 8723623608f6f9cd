/* SPDX-License-Identifier: MIT */
/*
 * The caching allocator. A device's memory comes in segments; a segment is cut into blocks, and a block given back
 * stays cached for the next request.
 *
 * Three pools, by the size asked for: small blocks share segments of 2 MiB, middle ones segments of 32 MiB, and each
 * large one is a segment of its own that is never cut, so that small requests cannot break up what the next evaluation
 * of the same program will ask for again. Free blocks hang in bins, eight to a power of two; a block given back joins
 * its free neighbours. Where work goes on several lanes, each gets what it had before, or new memory, as long as there
 * is some: else two lanes would take the same memory by turns, and wait for each other. So blocks of different lanes
 * stay apart until memory is short. When the device or the limit has no room, segments that are wholly free are given
 * back, then compiled programs that nobody runs (tn__pressure_hook), and then it fails.
 */
#include "device/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/blocks.h"

#define GRAIN ((size_t)256) /* sizes of blocks are multiples: the widest alignment a device wants */
#define MIB ((size_t)1 << 20)
#define SMALL_MOST (MIB / 2)
#define MIDDLE_MOST (8 * MIB)
#define LARGE_GRAIN (2 * MIB)
#define RAW_LISTS 64

typedef enum pool_kind { POOL_SMALL, POOL_MIDDLE, POOL_LARGE, POOLS } pool_kind;
/* The size of new segments (0: of the request) and what must be left for a block to be cut. */
static const struct {
    size_t segment, least_rest;
} pool_rules[POOLS] = {
    [POOL_SMALL] = {2 * MIB, GRAIN},
    [POOL_MIDDLE] = {32 * MIB, SMALL_MOST},
    [POOL_LARGE] = {0, SIZE_MAX},
};

struct tn__allocator {
    pthread_mutex_t lock;
    tn__device *device;
    tn__bins pools[POOLS];
    tn__block_records records;
    tn__block *raw[RAW_LISTS]; /* blocks given out as plain memory, by address */
    size_t used, cached, peak, limit;
    size_t cache_most; /* beyond it whole segments go back to the system */
    bool apart;        /* there may be free neighbours of different lanes */
};

static size_t round_up(size_t bytes, size_t grain)
{
    return (bytes + grain - 1) / grain * grain;
}

/* ---- segments -------------------------------------------------------------------------------------------------- */

static bool whole_segment(const tn__block *b)
{
    return !b->left && !b->right;
}

/* Joins `b` with its right neighbour, both in no bin. */
static void join(tn__allocator *a, tn__block *b)
{
    tn__block *gone = b->right;
    b->size += gone->size;
    b->home = b->home == gone->home ? b->home : 0;
    tn__use_unite(&b->storage.use, &gone->storage.use);
    b->right = gone->right;
    if (b->right)
        b->right->left = b;
    tn__records_give(&a->records, gone);
}

/* Also with those of other lanes. */
static void join_right(tn__block *b, void *allocator)
{
    tn__allocator *a = allocator;
    if (!b->free || (b->left && b->left->free) || !b->right || !b->right->free)
        return;
    tn__bins_remove(&a->pools[b->pool], b);
    while (b->right && b->right->free) {
        tn__bins_remove(&a->pools[b->pool], b->right);
        join(a, b);
    }
    tn__bins_insert(&a->pools[b->pool], b);
}

static void join_all(tn__allocator *a)
{
    if (a->apart)
        tn__records_each(&a->records, join_right, a);
    a->apart = false;
}

static void segment_release(tn__allocator *a, tn__block *b)
{
    tn__bins_remove(&a->pools[b->pool], b);
    a->cached -= b->size;
    a->device->ops->release(a->device, b->storage.memory, b->size);
    tn__records_give(&a->records, b);
}

/* Gives back free segments, largest first, until at most `keep` bytes are cached. */
static size_t shrink_cache(tn__allocator *a, size_t keep)
{
    size_t before = a->cached;
    join_all(a);
    for (int p = POOLS - 1; p >= 0; p--)
        for (int bin = TN__BINS - 1; bin >= 0; bin--)
            for (tn__block *b = a->pools[p].bin[bin], *next; b && a->cached > keep; b = next) {
                next = b->next;
                if (whole_segment(b))
                    segment_release(a, b);
            }
    return before - a->cached;
}

static bool within_limit(const tn__allocator *a, size_t more)
{
    return a->limit == 0 || (a->used + a->cached <= a->limit && more <= a->limit - a->used - a->cached);
}

/* A new segment as one free block, in no bin. */
static tn__block *segment_new(tn__allocator *a, pool_kind kind, size_t bytes)
{
    if (!within_limit(a, bytes))
        return NULL;
    void *memory = a->device->ops->allocate(a->device, bytes);
    if (!memory)
        return NULL;
    tn__block *b = tn__records_take(&a->records);
    b->storage.memory = memory;
    b->size = bytes;
    b->pool = (uint8_t)kind;
    a->cached += bytes;
    return b;
}

static tn__block *grow(tn__allocator *a, pool_kind kind, size_t size)
{
    size_t usual = pool_rules[kind].segment ? pool_rules[kind].segment : size;
    tn__block *b = segment_new(a, kind, usual);
    if (!b && shrink_cache(a, 0))
        b = segment_new(a, kind, usual);
    if (!b && usual > size) /* there may be room for just this */
        b = segment_new(a, kind, size);
    return b;
}

/* Cuts what is beyond `size` off a block that is in no bin, and files it. */
static void cut(tn__allocator *a, tn__block *b, size_t size)
{
    if (b->size - size < pool_rules[b->pool].least_rest)
        return;
    tn__block *rest = tn__records_take(&a->records);
    rest->storage.memory = (char *)b->storage.memory + size;
    rest->size = b->size - size;
    rest->pool = b->pool;
    rest->home = b->home;
    tn__use_unite(&rest->storage.use, &b->storage.use);
    rest->left = b;
    rest->right = b->right;
    if (rest->right)
        rest->right->left = rest;
    b->right = rest;
    b->size = size;
    tn__bins_insert(&a->pools[rest->pool], rest);
}

/* ---- taking and giving back (under the lock) ------------------------------------------------------------------- */

/* The lane that a block is for, as a home; 0: there are no others. */
static uint8_t home_wanted(const tn__device *device)
{
    return tn__has_lanes(device) ? (uint8_t)(1 + tn__lane(device)) : 0;
}

/* All but those of other lanes. */
static uint64_t homes_for(const tn__device *device, uint8_t home)
{
    uint64_t lanes = (uint64_t)atomic_load_explicit(&device->lanes, memory_order_relaxed) | 1;
    return home ? ~(lanes << 1) | (uint64_t)1 << home : TN__ALL_HOMES;
}

/* Of a lane among others its own, or new memory; else any. */
static tn__block *find_at_home(tn__allocator *a, pool_kind kind, size_t size, size_t largest, uint8_t home)
{
    tn__block *b = tn__bins_find(&a->pools[kind], size, largest, homes_for(a->device, home));
    if (!b && home)
        b = segment_new(a, kind, pool_rules[kind].segment ? pool_rules[kind].segment : size);
    if (b)
        return b;
    join_all(a);
    return tn__bins_find(&a->pools[kind], size, largest, TN__ALL_HOMES);
}

static tn__block *take(tn__allocator *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || !tn__records_reserve(&a->records))
        return NULL;
    pool_kind kind = bytes <= SMALL_MOST ? POOL_SMALL : bytes <= MIDDLE_MOST ? POOL_MIDDLE : POOL_LARGE;
    size_t size = round_up(bytes ? bytes : 1, kind == POOL_LARGE ? LARGE_GRAIN : GRAIN);
    size_t most = !a->limit ? SIZE_MAX : a->used < a->limit ? a->limit - a->used : 0;
    if (size > most)
        size = round_up(bytes ? bytes : 1, GRAIN); /* near the limit no generosity */
    if (size > most)
        return NULL;
    /* of large blocks, which are not cut, only those that waste little */
    size_t largest = kind == POOL_LARGE ? size + size / 4 : SIZE_MAX;
    if (kind == POOL_LARGE && largest > most)
        largest = most;
    uint8_t home = home_wanted(a->device);
    tn__block *b = find_at_home(a, kind, size, largest, home);
    if (!b && !(b = grow(a, kind, size)))
        /* what is left of a segment that is in use */
        b = tn__bins_find(&a->pools[POOL_MIDDLE], size, SIZE_MAX, TN__ALL_HOMES);
    if (!b)
        return NULL;
    if (b->free)
        tn__bins_remove(&a->pools[b->pool], b);
    else
        b->home = home; /* a new segment, as a whole */
    cut(a, b, size);
    b->home = home;
    if (b->size > most) { /* what was too little to cut off is too much for the limit */
        tn__bins_insert(&a->pools[b->pool], b);
        return NULL;
    }
    a->cached -= b->size;
    a->used += b->size;
    if (a->used > a->peak)
        a->peak = a->used;
    atomic_store_explicit(&b->storage.run, 0, memory_order_relaxed);
    return b;
}

/* Whether two neighbours are free for the same lane, as all are where there are no others. */
static bool belong_together(tn__allocator *a, const tn__block *b, const tn__block *neighbour)
{
    if (!neighbour || !neighbour->free)
        return false;
    bool together = b->home == neighbour->home || !tn__has_lanes(a->device);
    a->apart = a->apart || !together;
    return together;
}

static void give(tn__allocator *a, tn__block *b)
{
    if (atomic_load_explicit(&b->storage.spoilt, memory_order_relaxed))
        tn__error_release(atomic_exchange(&b->storage.spoilt, NULL));
    a->used -= b->size;
    a->cached += b->size;
    if (!b->home && tn__has_lanes(a->device) && b->storage.use.lanes) /* there before the lane that has used it */
        b->home = (uint8_t)(1 + __builtin_ctz(b->storage.use.lanes));
    if (belong_together(a, b, b->right)) {
        tn__bins_remove(&a->pools[b->pool], b->right);
        join(a, b);
    }
    if (belong_together(a, b, b->left)) {
        b = b->left;
        tn__bins_remove(&a->pools[b->pool], b);
        join(a, b);
    }
    tn__bins_insert(&a->pools[b->pool], b);
    if (a->cached > a->cache_most)
        shrink_cache(a, a->cache_most);
}

bool (*tn__pressure_hook)(tn__device *device);

static tn_status exhausted(const tn__device *device, size_t bytes, const tn_memory_info *info)
{
    return tn__fail(TN_ERR_MEMORY, device->name,
                    "no memory for %zu bytes: %zu are used, %zu cached, the limit is %zu%s, the device has %zu%s; free "
                    "arrays, use smaller batches, or raise the limit",
                    bytes, info->used, info->cached, info->limit, info->limit ? "" : " (none)", info->total,
                    info->total ? "" : " (unknown)");
}

/* Under the lock. */
static tn_memory_info info_of(const tn__allocator *a)
{
    return (tn_memory_info){.used = a->used, .cached = a->cached, .peak = a->peak, .limit = a->limit,
                            .total = a->device->capabilities.total_memory};
}

/* Puts this thread's lane behind those that used the memory before it was free; a failure gives it back. */
static bool in_order(tn__allocator *a, tn__block *b)
{
    if (!tn__has_lanes(a->device))
        return true;
    bool done = tn__use_begin(a->device, &b->storage.use, true) == TN_OK;
    if (done)
        tn__use_end(a->device, &b->storage.use, true);
    else
        tn__allocator_give(a, &b->storage);
    return done;
}

tn__storage *tn__allocator_take(tn__allocator *a, size_t bytes)
{
    tn__device *device = a->device;
    tn__block *b;
    tn_memory_info info;
    for (bool again = false;; again = true) {
        pthread_mutex_lock(&a->lock);
        b = take(a, bytes);
        info = info_of(a);
        pthread_mutex_unlock(&a->lock);
        if (b || again || !tn__pressure_hook || !tn__pressure_hook(device))
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
    give(a, (tn__block *)storage); /* its first member */
    pthread_mutex_unlock(&a->lock);
}

/* ---- failed runs ------------------------------------------------------------------------------------------------- */

typedef struct failed_runs {
    uint64_t first;
    tn__error *error;
} failed_runs;

static void spoil(tn__block *b, void *user)
{
    const failed_runs *failed = user;
    tn__error *none = NULL;
    if (b->free || atomic_load(&b->storage.run) < failed->first)
        return;
    if (atomic_compare_exchange_strong(&b->storage.spoilt, &none, failed->error))
        tn__error_retain(failed->error);
}

void tn__device_spoil(tn__device *device, uint64_t first, tn__error *error)
{
    tn__allocator *a = device->allocator;
    failed_runs failed = {first, error};
    atomic_fetch_add_explicit(&device->failures, 1, memory_order_relaxed);
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    tn__records_each(&a->records, spoil, &failed);
    pthread_mutex_unlock(&a->lock);
}

/* ---- plain memory ---------------------------------------------------------------------------------------------- */

static tn__block **raw_list(tn__allocator *a, const void *memory)
{
    return &a->raw[(uintptr_t)memory / GRAIN * 0x9E3779B97F4A7C15u >> 58 & (RAW_LISTS - 1)];
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
        give(a, b);
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
    a->device = device;
    size_t total = device->capabilities.total_memory;
    /* An operating system lends out more memory than it has, so host memory never runs out in time to empty the
     * cache. */
    a->cache_most = device->capabilities.host_memory && total ? total / 4 : SIZE_MAX;
    a->limit = tn__limit_given(device);
    return a;
}

void tn__allocator_close(tn__allocator *a)
{
    tn__allocator_trim(a);
    if (a->used)
        return;
    tn__records_free(&a->records);
    pthread_mutex_destroy(&a->lock);
    a->device->allocator = NULL;
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
    a->peak = a->used;
    pthread_mutex_unlock(&a->lock);
}

size_t tn__allocator_trim(tn__allocator *a)
{
    pthread_mutex_lock(&a->lock);
    size_t returned = shrink_cache(a, 0);
    pthread_mutex_unlock(&a->lock);
    return returned;
}

bool tn__device_relieve(tn__device *device)
{
    if (!device->allocator)
        return false;
    return tn__allocator_trim(device->allocator) > 0 || (tn__pressure_hook && tn__pressure_hook(device));
}

tn_status tn__device_exhausted(tn__device *device, size_t bytes)
{
    tn_memory_info info = device->allocator ? tn__allocator_stats(device->allocator) : (tn_memory_info){0};
    return exhausted(device, bytes, &info);
}

void tn__allocator_limit(tn__allocator *a, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    a->limit = bytes;
    if (bytes && a->used + a->cached > bytes)
        shrink_cache(a, bytes > a->used ? bytes - a->used : 0);
    pthread_mutex_unlock(&a->lock);
}
