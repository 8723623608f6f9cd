/* SPDX-License-Identifier: MIT */
/*
 * Memory for the small objects that recording makes by the million: nodes, handles, scopes.
 *
 * Each thread has a cache of free objects of each kind: two lists of at most TN__SLAB_BATCH objects and the unused rest
 * of its newest chunk. An object may be freed into the cache of another thread than the one that took it; full lists
 * move through a pool that all threads share, so a thread that only frees feeds one that only makes, and the pool's
 * lock is taken once a batch.
 */
#ifndef TN_ARRAY_SLAB_H
#define TN_ARRAY_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN__SLAB_BATCH 512

typedef enum tn__slab_kind {
    TN__SLAB_NODE,
    TN__SLAB_WIDE_NODE,
    TN__SLAB_ARRAY,
    TN__SLAB_SCOPE,
    TN__SLAB_KINDS
} tn__slab_kind;

/* A free object; the last two fields are of the first object of a batch in the pool. */
typedef struct tn__slab_free {
    struct tn__slab_free *next;
    struct tn__slab_free *next_batch;
    size_t count;
} tn__slab_free;

typedef struct tn__slab_cache {
    tn__slab_free *list;       /* taken from and given to first */
    tn__slab_free *spare;      /* empty, or a whole batch */
    char *fresh, *end;         /* never used objects */
    uint32_t room;             /* what list still takes; 0 too in a thread that is not registered */
} tn__slab_cache;

/* Under AddressSanitizer, free objects may not be touched. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define TN__SLAB_POISON(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define TN__SLAB_UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define TN__SLAB_POISON(memory, bytes) ((void)0)
#define TN__SLAB_UNPOISON(memory, bytes) ((void)0)
#endif

/* What a free handle keeps at its end, and may be asked for. */
#define TN__SLAB_KEPT 8
#define TN__SLAB_POISON_FREE(memory, kind) \
    TN__SLAB_POISON(memory, tn__slab_sizes[kind] - ((kind) == TN__SLAB_ARRAY ? TN__SLAB_KEPT : 0))

extern const uint32_t tn__slab_sizes[TN__SLAB_KINDS];

/* The slow paths: an empty cache (NULL without memory); a full list (false: `object` went to the pool instead, because
 * the thread is not registered and so nobody would flush its cache). */
void *tn__slab_refill(tn__slab_cache *cache, tn__slab_kind kind);
bool tn__slab_spill(tn__slab_cache *cache, tn__slab_kind kind, void *object);
/* Gives everything in a cache to the pool: at a thread's end. */
void tn__slab_flush(tn__slab_cache *cache, tn__slab_kind kind);
/* Frees every chunk of which all objects are in the pool: at the process's end. */
void tn__slab_trim(void);

/* Uninitialised memory for an object; of a list that is not empty, which calls nothing. */
static inline void *tn__slab_take_listed(tn__slab_cache *cache, tn__slab_kind kind)
{
    tn__slab_free *object = cache->list;
    TN__SLAB_UNPOISON(object, tn__slab_sizes[kind]);
    (void)kind;
    cache->list = object->next;
    cache->room++;
    return object;
}

/* Uninitialised memory for an object. */
static inline void *tn__slab_take(tn__slab_cache *cache, tn__slab_kind kind)
{
    if (__builtin_expect(cache->list == NULL, 0))
        return tn__slab_refill(cache, kind);
    return tn__slab_take_listed(cache, kind);
}

/* To a list that still has room. */
static inline void tn__slab_put_listed(tn__slab_cache *cache, tn__slab_kind kind, void *memory)
{
    tn__slab_free *object = memory;
    object->next = cache->list;
    cache->list = object;
    cache->room--;
    TN__SLAB_POISON_FREE(object, kind);
    (void)kind;
}

static inline void tn__slab_put(tn__slab_cache *cache, tn__slab_kind kind, void *memory)
{
    if (__builtin_expect(cache->room == 0, 0) && !tn__slab_spill(cache, kind, memory))
        return;
    tn__slab_put_listed(cache, kind, memory);
}

#endif
