/* SPDX-License-Identifier: MIT */
/* Which block somebody gets, and what becomes of one that is given back. */
#include "device/segments.h"

#include "core/error.h"

#define GRAIN ((size_t)256) /* sizes of blocks are multiples: the widest alignment a device wants */
#define MIB ((size_t)1 << 20)
#define SMALL_MOST (MIB / 2)
#define MIDDLE_MOST (8 * MIB)
#define LARGE_GRAIN (2 * MIB)

typedef enum pool_kind { POOL_SCALARS, POOL_SMALL, POOL_MIDDLE, POOL_LARGE } pool_kind;
/* The size of new segments (0: of the request) and what must be left for a block to be cut. */
static const struct {
    size_t segment, least_rest;
} rules[TN__POOLS] = {
    [POOL_SCALARS] = {MIB / 16, GRAIN},
    [POOL_SMALL] = {2 * MIB, GRAIN},
    [POOL_MIDDLE] = {32 * MIB, SMALL_MOST},
    [POOL_LARGE] = {0, SIZE_MAX},
};

/* ---- neighbours ---- */

/* Joins `b` with its right neighbour, both in no bin. */
static void join(tn__segments *s, tn__block *b)
{
    tn__block *gone = b->right;
    b->size += gone->size;
    b->home = b->home == gone->home ? b->home : 0;
    tn__use_unite(&b->storage.use, &gone->storage.use);
    b->right = gone->right;
    if (b->right)
        b->right->left = b;
    tn__records_give(&s->records, gone);
}

/* Joins a free block with those to its right, whatever streams they are for. */
static void join_right(tn__block *b, void *segments)
{
    tn__segments *s = segments;
    if (!b->free || (b->left && b->left->free) || !b->right || !b->right->free)
        return;
    tn__bins_remove(&s->pools[b->pool], b);
    while (b->right && b->right->free) {
        tn__bins_remove(&s->pools[b->pool], b->right);
        join(s, b);
    }
    tn__bins_insert(&s->pools[b->pool], b);
}

static void join_all(tn__segments *s)
{
    if (s->apart)
        tn__records_each(&s->records, join_right, s);
    s->apart = false;
}

/* Whether two neighbours are free for the same stream, as all are where there are no others. */
static bool belong_together(tn__segments *s, const tn__block *b, const tn__block *neighbour)
{
    if (!neighbour || !neighbour->free)
        return false;
    bool together = b->home == neighbour->home || !tn__has_streams(s->device);
    s->apart = s->apart || !together;
    return together;
}

/* Hangs a free block in its bin, with the free neighbours that belong to it. */
static void file(tn__segments *s, tn__block *b)
{
    if (!b->home && tn__has_streams(s->device) && b->storage.use.streams) /* there before the stream that has used it */
        b->home = (uint8_t)(1 + __builtin_ctz(b->storage.use.streams));
    if (belong_together(s, b, b->right)) {
        tn__bins_remove(&s->pools[b->pool], b->right);
        join(s, b);
    }
    if (belong_together(s, b, b->left)) {
        b = b->left;
        tn__bins_remove(&s->pools[b->pool], b);
        join(s, b);
    }
    tn__bins_insert(&s->pools[b->pool], b);
}

/* Cuts what is beyond `size` off a block that is in no bin, and files it. */
static void cut(tn__segments *s, tn__block *b, size_t size)
{
    if (b->size - size < rules[b->pool].least_rest)
        return;
    tn__block *rest = tn__records_take(&s->records);
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
    tn__bins_insert(&s->pools[rest->pool], rest);
}

/* ---- segments ---- */

static bool whole_segment(const tn__block *b)
{
    return !b->left && !b->right;
}

static void segment_release(tn__segments *s, tn__block *b)
{
    tn__bins_remove(&s->pools[b->pool], b);
    s->cached -= b->size;
    s->device->ops->release(s->device, b->storage.memory, b->size);
    tn__records_give(&s->records, b);
}

size_t tn__segments_shrink(tn__segments *s, size_t keep)
{
    size_t before = s->cached;
    join_all(s);
    for (int p = TN__POOLS - 1; p >= 0; p--)
        for (int bin = TN__BINS - 1; bin >= 0; bin--)
            for (tn__block *b = s->pools[p].bin[bin], *next; b && s->cached > keep; b = next) {
                next = b->next;
                if (whole_segment(b))
                    segment_release(s, b);
            }
    return before - s->cached;
}

static bool within_limit(const tn__segments *s, size_t more)
{
    return s->limit == 0 || (s->used + s->cached <= s->limit && more <= s->limit - s->used - s->cached);
}

static tn__block *segment_new(tn__segments *s, pool_kind pool, size_t bytes)
{
    if (!within_limit(s, bytes))
        return NULL;
    void *memory = s->device->ops->allocate(s->device, bytes);
    if (!memory)
        return NULL;
    tn__block *b = tn__records_take(&s->records);
    b->storage.memory = memory;
    b->size = bytes;
    b->pool = (uint8_t)pool;
    s->cached += bytes;
    return b;
}

/* A new segment as one free block, in no bin. */
static tn__block *usual_segment(tn__segments *s, pool_kind pool, size_t size)
{
    return segment_new(s, pool, rules[pool].segment ? rules[pool].segment : size);
}

/* The same after giving back what is free, and then only as large as it must be. */
static tn__block *grow(tn__segments *s, pool_kind pool, size_t size)
{
    tn__block *b = usual_segment(s, pool, size);
    if (!b && tn__segments_shrink(s, 0))
        b = usual_segment(s, pool, size);
    if (!b && rules[pool].segment > size) /* there may be room for just this */
        b = segment_new(s, pool, size);
    return b;
}

/* ---- taking and giving back ---- */

static size_t round_up(size_t bytes, size_t grain)
{
    return (bytes + grain - 1) / grain * grain;
}

/* The stream that a block is for, as a home; 0: there are no others. */
static uint8_t home_wanted(const tn__device *device)
{
    return tn__has_streams(device) ? (uint8_t)(1 + tn__stream_number(device)) : 0;
}

/* All but those of other streams. */
static uint64_t homes_for(const tn__device *device, uint8_t home)
{
    uint64_t streams = (uint64_t)atomic_load_explicit(&device->streams, memory_order_relaxed) | 1;
    return home ? ~(streams << 1) | (uint64_t)1 << home : TN__ALL_HOMES;
}

/* Of a stream among others its own, or new memory; else any. */
static tn__block *find_at_home(tn__segments *s, pool_kind pool, size_t size, size_t largest, uint8_t home)
{
    tn__block *b = tn__bins_find(&s->pools[pool], size, largest, homes_for(s->device, home));
    if (!b && home)
        b = usual_segment(s, pool, size);
    if (b)
        return b;
    join_all(s);
    return tn__bins_find(&s->pools[pool], size, largest, TN__ALL_HOMES);
}

static pool_kind pool_for(size_t bytes)
{
    pool_kind small = bytes <= GRAIN ? POOL_SCALARS : POOL_SMALL;
    return bytes <= SMALL_MOST ? small : bytes <= MIDDLE_MOST ? POOL_MIDDLE : POOL_LARGE;
}

tn__block *tn__segments_take(tn__segments *s, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || !tn__records_reserve(&s->records))
        return NULL;
    pool_kind pool = pool_for(bytes);
    size_t size = round_up(bytes ? bytes : 1, pool == POOL_LARGE ? LARGE_GRAIN : GRAIN);
    size_t most = !s->limit ? SIZE_MAX : s->used < s->limit ? s->limit - s->used : 0;
    if (size > most)
        size = round_up(bytes ? bytes : 1, GRAIN); /* near the limit no generosity */
    if (size > most)
        return NULL;
    /* of large blocks, which are not cut, only those that waste little */
    size_t largest = pool == POOL_LARGE ? size + size / 4 : SIZE_MAX;
    if (pool == POOL_LARGE && largest > most)
        largest = most;
    uint8_t home = home_wanted(s->device);
    tn__block *b = find_at_home(s, pool, size, largest, home);
    if (!b && !(b = grow(s, pool, size)))
        /* what is left of a segment that is in use */
        b = tn__bins_find(&s->pools[POOL_MIDDLE], size, SIZE_MAX, TN__ALL_HOMES);
    if (!b)
        return NULL;
    if (b->free)
        tn__bins_remove(&s->pools[b->pool], b);
    else
        b->home = home; /* a new segment, as a whole */
    cut(s, b, size);
    b->home = home;
    if (b->size > most) { /* what was too little to cut off is too much for the limit */
        tn__bins_insert(&s->pools[b->pool], b);
        return NULL;
    }
    s->cached -= b->size;
    s->used += b->size;
    if (s->used > s->peak)
        s->peak = s->used;
    atomic_store_explicit(&b->storage.run, 0, memory_order_relaxed);
    return b;
}

void tn__segments_give(tn__segments *s, tn__block *b)
{
    if (atomic_load_explicit(&b->storage.poisoned, memory_order_relaxed))
        tn__error_release(atomic_exchange(&b->storage.poisoned, NULL));
    s->used -= b->size;
    s->cached += b->size;
    file(s, b);
    if (s->cached > s->cache_most)
        tn__segments_shrink(s, s->cache_most);
}
