/* SPDX-License-Identifier: MIT */
/*
 * The caching allocator. A device's memory comes in segments; a segment is cut into blocks, and a block given back stays
 * cached for the next request.
 *
 * Three pools, by the size asked for: small blocks share segments of 2 MiB, middle ones segments of 32 MiB, and each large
 * one is a segment of its own that is never cut, so that small requests cannot break up what the next evaluation of the
 * same program will ask for again. Free blocks hang in bins, eight to a power of two; a block given back joins its free
 * neighbours. When the device or the limit has no room, segments that are wholly free are given back, and then it fails.
 */
#include "device/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"

#define GRAIN ((size_t)256) /* sizes of blocks are multiples: the widest alignment a device wants */
#define MIB ((size_t)1 << 20)
#define SMALL_MOST (MIB / 2)
#define MIDDLE_MOST (8 * MIB)
#define LARGE_GRAIN (2 * MIB)
#define BINS_LOG 3
#define BINS (64 << BINS_LOG)
#define BIN_WORDS (BINS / 64)
#define LOOKS 16 /* blocks looked at in a bin whose blocks may be too small */
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

/* A piece of a segment. In use it carries the storage made of it. */
typedef struct block {
    tn__storage storage;
    struct block *left, *right; /* neighbours in the segment; both NULL: the whole segment */
    struct block *previous, *next; /* in a bin; or, for memory that is no storage, in a list by address */
    size_t size;
    uint8_t pool;
    bool free;
} block;

typedef struct pool {
    uint64_t filled[BIN_WORDS]; /* bit set: the bin holds a block */
    block *bin[BINS];
} pool;

/* Records of blocks come from slabs, and are never given back before the allocator is. */
#define SLAB_BLOCKS 64
typedef struct slab {
    struct slab *next;
    block blocks[SLAB_BLOCKS];
} slab;

struct tn__allocator {
    pthread_mutex_t lock;
    tn__device *device;
    pool pools[POOLS];
    block *raw[RAW_LISTS]; /* blocks given out as plain memory, by address */
    block *spare;          /* unused records */
    slab *slabs;
    size_t used, cached, peak, limit;
    size_t cache_most; /* beyond it whole segments go back to the system */
};

/* ---- bins ------------------------------------------------------------------------------------------------------ */

static size_t round_up(size_t bytes, size_t grain)
{
    return (bytes + grain - 1) / grain * grain;
}

/* The bin of the blocks of a size: the exponent and the next three bits. */
static int bin_of(size_t size)
{
    int exponent = 63 - __builtin_clzll(size);
    return exponent << BINS_LOG | (int)(size >> (exponent - BINS_LOG) & ((1 << BINS_LOG) - 1));
}

static void bin_insert(tn__allocator *a, block *b)
{
    pool *p = &a->pools[b->pool];
    int bin = bin_of(b->size);
    b->free = true;
    b->previous = NULL;
    b->next = p->bin[bin];
    if (b->next)
        b->next->previous = b;
    p->bin[bin] = b;
    p->filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

static void bin_remove(tn__allocator *a, block *b)
{
    pool *p = &a->pools[b->pool];
    int bin = bin_of(b->size);
    if (b->previous)
        b->previous->next = b->next;
    else
        p->bin[bin] = b->next;
    if (b->next)
        b->next->previous = b->previous;
    if (!p->bin[bin])
        p->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
    b->free = false;
}

/* The first filled bin from `bin` on, or BINS. */
static int next_filled(const pool *p, int bin)
{
    if (bin >= BINS)
        return BINS;
    int word = bin / 64;
    uint64_t bits = p->filled[word] & (UINT64_MAX << bin % 64);
    while (!bits && ++word < BIN_WORDS)
        bits = p->filled[word];
    return bits ? word * 64 + __builtin_ctzll(bits) : BINS;
}

/* A free block of at least `size` and at most `most` bytes: the best of those looked at in the size's own bin, else any
 * of the next bin that holds one. */
static block *find_block(const pool *p, size_t size, size_t most)
{
    int bin = bin_of(size), looks = LOOKS;
    block *best = NULL;
    for (block *b = p->bin[bin]; b && looks > 0; b = b->next, looks--)
        if (b->size >= size && (!best || b->size < best->size)) {
            best = b;
            if (b->size == size)
                break;
        }
    if (!best) {
        bin = next_filled(p, bin + 1);
        best = bin < BINS ? p->bin[bin] : NULL;
    }
    return best && best->size <= most ? best : NULL;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Makes sure that two records are at hand: one for a segment, one for the rest of a cut. */
static bool reserve_records(tn__allocator *a)
{
    if (a->spare && a->spare->next)
        return true;
    slab *s = tn__calloc(1, sizeof *s);
    if (!s)
        return false;
    s->next = a->slabs;
    a->slabs = s;
    for (int i = 0; i < SLAB_BLOCKS; i++) {
        s->blocks[i].next = a->spare;
        a->spare = &s->blocks[i];
    }
    return true;
}

static block *record_take(tn__allocator *a)
{
    block *b = a->spare;
    a->spare = b->next;
    *b = (block){0};
    return b;
}

static void record_give(tn__allocator *a, block *b)
{
    b->next = a->spare;
    a->spare = b;
}

/* ---- segments -------------------------------------------------------------------------------------------------- */

static bool whole_segment(const block *b)
{
    return !b->left && !b->right;
}

static void segment_release(tn__allocator *a, block *b)
{
    bin_remove(a, b);
    a->cached -= b->size;
    a->device->ops->release(a->device, b->storage.memory, b->size);
    record_give(a, b);
}

/* Gives back free segments, largest first, until at most `keep` bytes are cached. */
static size_t shrink_cache(tn__allocator *a, size_t keep)
{
    size_t before = a->cached;
    for (int p = POOLS - 1; p >= 0; p--)
        for (int bin = BINS - 1; bin >= 0; bin--)
            for (block *b = a->pools[p].bin[bin], *next; b && a->cached > keep; b = next) {
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
static block *segment_new(tn__allocator *a, pool_kind kind, size_t bytes)
{
    if (!within_limit(a, bytes))
        return NULL;
    void *memory = a->device->ops->allocate(a->device, bytes);
    if (!memory)
        return NULL;
    block *b = record_take(a);
    b->storage.memory = memory;
    b->size = bytes;
    b->pool = (uint8_t)kind;
    a->cached += bytes;
    return b;
}

static block *grow(tn__allocator *a, pool_kind kind, size_t size)
{
    size_t usual = pool_rules[kind].segment ? pool_rules[kind].segment : size;
    block *b = segment_new(a, kind, usual);
    if (!b && shrink_cache(a, 0))
        b = segment_new(a, kind, usual);
    if (!b && usual > size) /* there may be room for just this */
        b = segment_new(a, kind, size);
    return b;
}

/* Cuts what is beyond `size` off a block that is in no bin, and files it. */
static void cut(tn__allocator *a, block *b, size_t size)
{
    if (b->size - size < pool_rules[b->pool].least_rest)
        return;
    block *rest = record_take(a);
    rest->storage.memory = (char *)b->storage.memory + size;
    rest->size = b->size - size;
    rest->pool = b->pool;
    rest->left = b;
    rest->right = b->right;
    if (rest->right)
        rest->right->left = rest;
    b->right = rest;
    b->size = size;
    bin_insert(a, rest);
}

/* Joins `b` with its right neighbour. */
static void join(tn__allocator *a, block *b)
{
    block *gone = b->right;
    b->size += gone->size;
    b->right = gone->right;
    if (b->right)
        b->right->left = b;
    record_give(a, gone);
}

/* ---- taking and giving back (under the lock) ------------------------------------------------------------------- */

static block *take(tn__allocator *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || !reserve_records(a))
        return NULL;
    pool_kind kind = bytes <= SMALL_MOST ? POOL_SMALL : bytes <= MIDDLE_MOST ? POOL_MIDDLE : POOL_LARGE;
    size_t size = round_up(bytes ? bytes : 1, kind == POOL_LARGE ? LARGE_GRAIN : GRAIN);
    if (a->limit && (a->used > a->limit || size > a->limit - a->used))
        size = round_up(bytes ? bytes : 1, GRAIN); /* near the limit no generosity */
    if (a->limit && (a->used > a->limit || size > a->limit - a->used))
        return NULL;
    /* of large blocks, which are not cut, only those that waste little */
    block *b = find_block(&a->pools[kind], size, kind == POOL_LARGE ? size + size / 4 : SIZE_MAX);
    if (b)
        bin_remove(a, b);
    else
        b = grow(a, kind, size);
    if (!b)
        return NULL;
    cut(a, b, size);
    a->cached -= b->size;
    a->used += b->size;
    if (a->used > a->peak)
        a->peak = a->used;
    return b;
}

static void give(tn__allocator *a, block *b)
{
    a->used -= b->size;
    a->cached += b->size;
    if (b->right && b->right->free) {
        bin_remove(a, b->right);
        join(a, b);
    }
    if (b->left && b->left->free) {
        b = b->left;
        bin_remove(a, b);
        join(a, b);
    }
    bin_insert(a, b);
    if (a->cached > a->cache_most)
        shrink_cache(a, a->cache_most);
}

static block *take_or_fail(tn__device *device, size_t bytes)
{
    tn__allocator *a = device->allocator;
    pthread_mutex_lock(&a->lock);
    block *b = take(a, bytes);
    size_t used = a->used, cached = a->cached, limit = a->limit;
    pthread_mutex_unlock(&a->lock);
    if (!b)
        tn__fail(TN_ERR_MEMORY, device->name,
                 "no memory for %zu bytes: %zu are used, %zu cached, the limit is %zu%s, the device has %zu%s; free "
                 "arrays, use smaller batches, or raise the limit",
                 bytes, used, cached, limit, limit ? "" : " (none)", device->capabilities.total_memory,
                 device->capabilities.total_memory ? "" : " (unknown)");
    return b;
}

/* ---- storages -------------------------------------------------------------------------------------------------- */

static void release_nothing(void *user, void *memory)
{
    (void)user;
    (void)memory;
}

tn__storage *tn__storage_new(tn__device *device, size_t bytes)
{
    block *b = take_or_fail(device, bytes);
    if (!b)
        return NULL;
    tn__storage *storage = &b->storage;
    atomic_store_explicit(&storage->references, 1, memory_order_relaxed);
    storage->device = device;
    storage->bytes = bytes;
    storage->release = NULL;
    storage->user = NULL;
    return storage;
}

tn__storage *tn__storage_wrap(tn__device *device, void *memory, size_t bytes, void (*release)(void *, void *), void *user)
{
    tn__storage *storage = tn__alloc(sizeof *storage);
    if (!storage) {
        tn__fail_memory("a storage", sizeof *storage);
        return NULL;
    }
    *storage = (tn__storage){.device = device, .memory = memory, .bytes = bytes,
                             .release = release ? release : release_nothing, .user = user};
    atomic_init(&storage->references, 1);
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
    tn__allocator *a = storage->device->allocator;
    pthread_mutex_lock(&a->lock);
    give(a, (block *)storage); /* a block's first member */
    pthread_mutex_unlock(&a->lock);
}

/* ---- plain memory ---------------------------------------------------------------------------------------------- */

static block **raw_list(tn__allocator *a, const void *memory)
{
    return &a->raw[(uintptr_t)memory / GRAIN * 0x9E3779B97F4A7C15u >> 58 & (RAW_LISTS - 1)];
}

void *tn__device_allocate(tn__device *device, size_t bytes)
{
    block *b = take_or_fail(device, bytes);
    if (!b)
        return NULL;
    tn__allocator *a = device->allocator;
    pthread_mutex_lock(&a->lock);
    block **list = raw_list(a, b->storage.memory);
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
    block **link = raw_list(a, memory);
    while (*link && (*link)->storage.memory != memory)
        link = &(*link)->next;
    block *b = *link;
    if (b) {
        *link = b->next;
        give(a, b);
    }
    pthread_mutex_unlock(&a->lock);
    if (!b)
        tn__log(TN__LOG_ERROR, "device", "%s: released memory that it did not allocate", device->name);
}

/* ---- the allocator as a whole ---------------------------------------------------------------------------------- */

size_t tn__parse_bytes(const char *text, size_t total)
{
    static const char suffixes[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value > 0))
        return 0;
    double scale = 1;
    const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
    if (*end == '%') {
        scale = (double)total / 100;
        end++;
    } else if (suffix) {
        for (const char *s = suffixes; s <= suffix; s++)
            scale *= 1024;
        end++;
    }
    value *= scale;
    return *end || value >= 0x1p62 ? 0 : (size_t)value;
}

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
    /* An operating system lends out more memory than it has, so host memory never runs out in time to empty the cache. */
    a->cache_most = device->capabilities.host_memory && total ? total / 4 : SIZE_MAX;
    const char *text = getenv("TANSO_MEMORY_LIMIT");
    if (text && *text) {
        a->limit = tn__parse_bytes(text, total);
        if (!a->limit)
            tn__log(TN__LOG_WARN, "device",
                    "TANSO_MEMORY_LIMIT: expected bytes such as 512M or 4G, or a percentage, got '%s'; no limit is set",
                    text);
    }
    return a;
}

void tn__allocator_close(tn__allocator *a)
{
    tn__allocator_trim(a);
    if (a->used)
        return;
    for (slab *s = a->slabs, *next; s; s = next) {
        next = s->next;
        tn__free(s);
    }
    pthread_mutex_destroy(&a->lock);
    a->device->allocator = NULL;
    tn__free(a);
}

tn_memory_info tn__allocator_stats(tn__allocator *a)
{
    pthread_mutex_lock(&a->lock);
    tn_memory_info info = {.used = a->used, .cached = a->cached, .peak = a->peak, .limit = a->limit,
                           .total = a->device->capabilities.total_memory};
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

void tn__allocator_limit(tn__allocator *a, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    a->limit = bytes;
    if (bytes && a->used + a->cached > bytes)
        shrink_cache(a, bytes > a->used ? bytes - a->used : 0);
    pthread_mutex_unlock(&a->lock);
}
