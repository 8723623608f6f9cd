/* SPDX-License-Identifier: MIT */
/* Samples of a source that are kept once they were made, by whichever thread asks first. */
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/source.h"

enum { ABSENT, BEING_MADE, THERE };

typedef struct cached {
    tn__source source;
    tn__source *inner;
    char *samples;        /* x and t of each, one behind the other */
    atomic_uchar *states; /* of each */
} cached;

static void copy_out(const tn__source *source, const char *sample, void *x, void *t)
{
    if (source->x_bytes)
        memcpy(x, sample, source->x_bytes);
    if (source->t_bytes)
        memcpy(t, sample + source->x_bytes, source->t_bytes);
}

/* A sample has the random numbers of epoch 0 with seed 0, whenever it is made: which epoch comes first is up to where a
 * loader was set to. Who finds another thread at it makes it, too, instead of waiting. */
static tn_status cached_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)generator;
    cached *c = (cached *)source;
    char *sample = c->samples + (size_t)i * (source->x_bytes + source->t_bytes);
    if (atomic_load_explicit(&c->states[i], memory_order_acquire) == THERE) {
        copy_out(source, sample, x, t);
        return TN_OK;
    }
    tn_status status = tn__source_get(c->inner, 0, 0, i, x, t);
    unsigned char absent = ABSENT;
    if (status != TN_OK || !atomic_compare_exchange_strong(&c->states[i], &absent, BEING_MADE))
        return status;
    memcpy(sample, x, source->x_bytes);
    memcpy(sample + source->x_bytes, t, source->t_bytes);
    atomic_store_explicit(&c->states[i], THERE, memory_order_release);
    return TN_OK;
}

static int64_t cached_length(const tn__source *source, int64_t i)
{
    const cached *c = (const cached *)source;
    return c->inner->length(c->inner, i);
}

static void cached_release(tn__source *source)
{
    cached *c = (cached *)source;
    tn__source_release(c->inner);
    tn__free(c->samples);
    tn__free(c->states);
}

tn__source *tn__source_cached(tn__source *inner)
{
    size_t bytes = inner->x_bytes + inner->t_bytes, count = (size_t)inner->count;
    cached *c = tn__calloc(1, sizeof *c);
    if (!c) {
        tn__fail_memory("dataset_cache", sizeof *c);
        return NULL;
    }
    if (tn__source_init(&c->source, "dataset_cache", inner->count, inner->x, inner->t) != TN_OK) {
        tn__free(c);
        return NULL;
    }
    c->source.get = cached_get;
    c->source.length = inner->length ? cached_length : NULL;
    c->source.multiple = inner->multiple;
    c->source.release = cached_release;
    c->inner = tn__source_retain(inner);
    c->states = tn__calloc(count + 1, sizeof *c->states);
    c->samples = bytes && count > SIZE_MAX / bytes ? NULL : tn__alloc_aligned(count * bytes + 1);
    if (c->states && c->samples)
        return &c->source;
    tn__source_release(&c->source);
    tn__fail_memory("dataset_cache", count * bytes);
    return NULL;
}
