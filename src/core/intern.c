/* SPDX-License-Identifier: MIT */
/*
 * The tables behind tn__shape_intern and tn__ints_intern: one entry for each different list, for the life of the
 * process. A small cache in each thread answers nearly every call without the lock.
 */
#include <pthread.h>
#include <string.h>

#include "core/hash.h"
#include "core/memory.h"
#include "core/shape.h"

/* Open addressing; entries are never removed, the table doubles when three quarters full. */
typedef struct table {
    void **slot;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} table;

/* What differs between the two kinds of entries. */
typedef struct kind {
    bool (*equal)(const void *entry, int count, const int64_t *values);
    uint64_t (*hash_of)(const void *entry);
    void *(*make)(uint32_t id, int count, const int64_t *values);
} kind;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static table shapes, lists;

static inline uint64_t hash_values(int count, const int64_t *values)
{
    uint64_t h = (uint64_t)count;
    for (int i = 0; i < count; i++)
        h = tn__hash_mix(h, (uint64_t)values[i]);
    return h ^ (h >> 32);
}

static inline bool same_values(const int64_t *a, const int64_t *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static void **find(table *t, const kind *k, uint64_t hash, int count, const int64_t *values)
{
    size_t at = hash & (t->capacity - 1);
    while (t->slot[at] && !k->equal(t->slot[at], count, values))
        at = (at + 1) & (t->capacity - 1);
    return &t->slot[at];
}

static bool make_room(table *t, const kind *k)
{
    if (t->count + 1 <= t->capacity / 4 * 3)
        return true;
    size_t capacity = t->capacity ? 2 * t->capacity : 256;
    void **slot = tn__calloc(capacity, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slot[i]) {
            size_t at = k->hash_of(t->slot[i]) & (capacity - 1);
            while (slot[at])
                at = (at + 1) & (capacity - 1);
            slot[at] = t->slot[i];
        }
    tn__free(t->slot);
    t->slot = slot;
    t->capacity = capacity;
    return true;
}

static const void *intern(table *t, const kind *k, uint64_t hash, int count, const int64_t *values)
{
    void *entry = NULL;
    pthread_mutex_lock(&lock);
    if (make_room(t, k)) {
        void **slot = find(t, k, hash, count, values);
        if (!*slot && (*slot = k->make((uint32_t)t->count + 1, count, values)))
            t->count++;
        entry = *slot;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

/* ---- shapes ---- */

/* Id 0 needs no memory, so that there always is a shape. */
static const tn__shape scalar_shape = {.id = 0, .ndim = 0, .size = 1};

static bool shape_equal(const void *entry, int count, const int64_t *values)
{
    const tn__shape *shape = entry;
    return shape->ndim == count && same_values(shape->dim, values, count);
}

static uint64_t shape_hash(const void *entry)
{
    const tn__shape *shape = entry;
    return hash_values(shape->ndim, shape->dim);
}

static void *shape_make(uint32_t id, int count, const int64_t *values)
{
    tn__shape *shape = tn__calloc(1, sizeof *shape);
    if (!shape)
        return NULL;
    shape->id = id;
    shape->ndim = count;
    shape->size = 1;
    for (int i = 0; i < count; i++) {
        shape->dim[i] = values[i];
        shape->size *= values[i];
    }
    return shape;
}

static const kind shape_kind = {shape_equal, shape_hash, shape_make};

#define CACHED 64
/* In the static block of thread storage, as the rest of the library's is: nearly each node is made with a look here. */
static _Thread_local const tn__shape *recent_shapes[CACHED] __attribute__((tls_model("initial-exec")));
static _Thread_local const tn__ints *recent_lists[CACHED] __attribute__((tls_model("initial-exec")));

const tn__shape *tn__shape_scalar(void)
{
    return &scalar_shape;
}

/* The place in this thread's cache for a shape, and whether it is there. */
static inline const tn__shape **recent_place(int ndim, const int64_t *dim, uint64_t *hash, bool *there)
{
    *hash = hash_values(ndim, dim);
    const tn__shape **recent = &recent_shapes[*hash % CACHED];
    *there = *recent && (*recent)->ndim == ndim && same_values((*recent)->dim, dim, ndim);
    return recent;
}

const tn__shape *tn__shape_recent(int ndim, const int64_t *dim)
{
    uint64_t hash;
    bool there;
    if (ndim <= 0 || ndim > TN_MAX_NDIM)
        return ndim == 0 ? &scalar_shape : NULL;
    const tn__shape **recent = recent_place(ndim, dim, &hash, &there);
    return there ? *recent : NULL;
}

const tn__shape *tn__shape_intern(int ndim, const int64_t *dim)
{
    if (ndim == 0)
        return &scalar_shape;
    uint64_t hash;
    bool there;
    const tn__shape **recent = recent_place(ndim, dim, &hash, &there);
    if (there)
        return *recent;
    const tn__shape *shape = intern(&shapes, &shape_kind, hash, ndim, dim);
    if (shape)
        *recent = shape;
    return shape;
}

/* ---- lists of integers ---- */

static bool ints_equal(const void *entry, int count, const int64_t *values)
{
    const tn__ints *ints = entry;
    return ints->count == count && same_values(ints->v, values, count);
}

static uint64_t ints_hash(const void *entry)
{
    const tn__ints *ints = entry;
    return hash_values(ints->count, ints->v);
}

static void *ints_make(uint32_t id, int count, const int64_t *values)
{
    tn__ints *ints = tn__alloc(sizeof *ints + (size_t)count * sizeof *values);
    if (!ints)
        return NULL;
    ints->id = id;
    ints->count = count;
    if (count)
        memcpy(ints->v, values, (size_t)count * sizeof *values);
    return ints;
}

static const kind ints_kind = {ints_equal, ints_hash, ints_make};

const tn__ints *tn__ints_intern(int count, const int64_t *values)
{
    uint64_t hash = hash_values(count, values);
    const tn__ints **recent = &recent_lists[hash % CACHED];
    if (*recent && ints_equal(*recent, count, values))
        return *recent;
    const tn__ints *ints = intern(&lists, &ints_kind, hash, count, values);
    if (ints)
        *recent = ints;
    return ints;
}

/* ---- clean-up ---- */

static void empty(table *t)
{
    for (size_t i = 0; i < t->capacity; i++)
        tn__free(t->slot[i]);
    tn__free(t->slot);
    *t = (table){0};
}

__attribute__((destructor(TN__EXIT_CORE))) static void empty_at_exit(void)
{
    memset(recent_shapes, 0, sizeof recent_shapes);
    memset(recent_lists, 0, sizeof recent_lists);
    empty(&shapes);
    empty(&lists);
}
