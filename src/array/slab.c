/* SPDX-License-Identifier: MIT */
/* Chunks of small objects, and the pool through which threads pass free ones in batches. */
#include "array/slab.h"

#include <pthread.h>
#include <string.h>

#include "array/thread.h"
#include "core/memory.h"

/* Whole cache lines, so that two threads' objects share none. */
#define LINE 64
#define WHOLE(bytes) (((bytes) + LINE - 1) / LINE * LINE)
#define ROUNDED(type) WHOLE(sizeof(type))
const uint32_t tn__slab_sizes[TN__SLAB_KINDS] = {
    [TN__SLAB_NODE] = WHOLE(sizeof(tn__node) + TN__MAX_ARITY * sizeof(tn__node *)),
    [TN__SLAB_WIDE_NODE] = WHOLE(sizeof(tn__node) + TN__MAX_INPUTS * sizeof(tn__node *)),
    [TN__SLAB_ARRAY] = ROUNDED(tn__handle),
    [TN__SLAB_SCOPE] = ROUNDED(tn__scope),
};
_Static_assert(ROUNDED(tn__handle) == LINE && LINE == TN__HANDLE_ALIGNMENT, "a handle's address leaves its low bits");
_Static_assert(offsetof(tn__handle, generation) >= sizeof(tn__slab_free) &&
               LINE - offsetof(tn__handle, generation) == TN__SLAB_KEPT, "a free handle keeps its generation");
/* A thread that records little should cost little. */
static const uint32_t chunk_objects[TN__SLAB_KINDS] = {
    [TN__SLAB_NODE] = 512,
    [TN__SLAB_WIDE_NODE] = 32,
    [TN__SLAB_ARRAY] = 512,
    [TN__SLAB_SCOPE] = 32,
};

#define LISTED 16 /* new objects */

typedef struct chunk {
    struct chunk *next;
    char padding[LINE - sizeof(void *)];
} chunk;

static struct {
    pthread_mutex_t lock;
    struct {
        tn__slab_free *batches;
        chunk *chunks;
        size_t made; /* objects in all chunks */
    } kinds[TN__SLAB_KINDS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give_batch(tn__slab_free *first, size_t count, tn__slab_kind kind)
{
    TN__SLAB_UNPOISON(first, sizeof *first);
    first->count = count;
    pthread_mutex_lock(&pool.lock);
    first->next_batch = pool.kinds[kind].batches;
    pool.kinds[kind].batches = first;
    pthread_mutex_unlock(&pool.lock);
}

static bool take_batch(tn__slab_cache *cache, tn__slab_kind kind)
{
    pthread_mutex_lock(&pool.lock);
    tn__slab_free *first = pool.kinds[kind].batches;
    if (first)
        pool.kinds[kind].batches = first->next_batch;
    pthread_mutex_unlock(&pool.lock);
    if (!first)
        return false;
    cache->list = first;
    cache->room = TN__SLAB_BATCH - (uint32_t)first->count;
    return true;
}

static bool new_chunk(tn__slab_cache *cache, tn__slab_kind kind)
{
    size_t bytes = (size_t)tn__slab_sizes[kind] * chunk_objects[kind];
    chunk *made = tn__alloc_aligned(sizeof *made + bytes);
    if (!made)
        return false;
    if (kind == TN__SLAB_ARRAY)
        for (tn__handle *x = (void *)(made + 1), *end = x + chunk_objects[kind]; x < end; x++)
            x->generation = tn__generation_of((const tn_array *)x); /* the first */
    pthread_mutex_lock(&pool.lock);
    made->next = pool.kinds[kind].chunks;
    pool.kinds[kind].chunks = made;
    pool.kinds[kind].made += chunk_objects[kind];
    pthread_mutex_unlock(&pool.lock);
    cache->room = TN__SLAB_BATCH;
    cache->fresh = (char *)(made + 1);
    cache->end = cache->fresh + bytes;
    return true;
}

void *tn__slab_refill(tn__slab_cache *cache, tn__slab_kind kind)
{
    if (cache->spare) {
        cache->list = cache->spare;
        cache->room = 0;
        cache->spare = NULL;
        return tn__slab_take(cache, kind);
    }
    if (cache->fresh == cache->end) {
        /* Only registered threads have caches: unregistered ones would take objects and never give them back. */
        if (!tn__thread_register())
            return NULL;
        if (take_batch(cache, kind))
            return tn__slab_take(cache, kind);
        if (!new_chunk(cache, kind))
            return NULL;
    }
    /* A few at once: what is listed is taken faster. */
    for (int i = 0; i < LISTED && cache->fresh != cache->end; i++, cache->fresh += tn__slab_sizes[kind])
        tn__slab_put(cache, kind, cache->fresh);
    return tn__slab_take(cache, kind);
}

bool tn__slab_spill(tn__slab_cache *cache, tn__slab_kind kind, void *object)
{
    if (!tn__self()->number) {
        tn__slab_free *one = object;
        one->next = NULL;
        TN__SLAB_POISON(one, tn__slab_sizes[kind]);
        give_batch(one, 1, kind);
        return false;
    }
    if (cache->spare)
        give_batch(cache->spare, TN__SLAB_BATCH, kind);
    cache->spare = cache->list;
    cache->list = NULL;
    cache->room = TN__SLAB_BATCH;
    return true;
}

void tn__slab_flush(tn__slab_cache *cache, tn__slab_kind kind)
{
    for (; cache->fresh != cache->end; cache->fresh += tn__slab_sizes[kind])
        tn__slab_put(cache, kind, cache->fresh);
    if (cache->spare)
        give_batch(cache->spare, TN__SLAB_BATCH, kind);
    if (cache->list)
        give_batch(cache->list, TN__SLAB_BATCH - cache->room, kind);
    *cache = (tn__slab_cache){0};
}

void tn__slab_trim(void)
{
    pthread_mutex_lock(&pool.lock);
    for (int kind = 0; kind < TN__SLAB_KINDS; kind++) {
        size_t count = 0;
        for (tn__slab_free *batch = pool.kinds[kind].batches; batch; batch = batch->next_batch)
            count += batch->count;
        if (count != pool.kinds[kind].made)
            continue; /* some thread still runs, or someone still holds an array */
        while (pool.kinds[kind].chunks) {
            chunk *old = pool.kinds[kind].chunks;
            pool.kinds[kind].chunks = old->next;
            TN__SLAB_UNPOISON(old, sizeof *old + (size_t)tn__slab_sizes[kind] * chunk_objects[kind]);
            tn__free(old);
        }
        pool.kinds[kind].batches = NULL;
        pool.kinds[kind].made = 0;
    }
    pthread_mutex_unlock(&pool.lock);
}
