/* SPDX-License-Identifier: MIT */
/* Which samples make which minibatch, gathering them into trays, and doing so ahead of time on a thread. */
#ifndef TN_DATA_BATCHES_H
#define TN_DATA_BATCHES_H

#include <stdint.h>
#include "data/trays.h"

/* The cut of a dataset into minibatches. Used by one thread: the loader's and the prefetching one each have their
 * own. */
typedef struct tn__batches {
    const char *x, *t;       /* all samples */
    size_t x_row, t_row;     /* bytes a sample */
    int64_t count;           /* samples */
    int64_t batch, length;   /* samples a minibatch, minibatches an epoch */
    uint64_t seed;
    int64_t *order;          /* of epoch order_epoch */
    int64_t order_epoch;     /* -1: none yet */
} tn__batches;

static inline int64_t tn__batch_size(const tn__batches *batches, int64_t i)
{
    int64_t left = batches->count - i * batches->batch;
    return left < batches->batch ? left : batches->batch;
}
/* The key of an epoch's order. */
uint64_t tn__batches_key(const tn__batches *batches, int64_t epoch);
/* Minibatch i of an epoch in a tray; NULL without memory. */
tn__tray *tn__batches_gather(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t i);

/* A thread that gathers ahead, epoch after epoch, beginning with minibatch `first` of `epoch`, by an order of its own.
 * NULL if none can be had. */
typedef struct tn__prefetch tn__prefetch;
tn__prefetch *tn__prefetch_new(const tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t first);
/* Minibatch i of an epoch, which must be the next one; NULL if the thread is late or out of memory: then the caller
 * gathers this one, and the thread goes on after it. */
tn__tray *tn__prefetch_take(tn__prefetch *prefetch, int64_t epoch, int64_t i);
/* Goes on from minibatch 0 of another epoch. */
void tn__prefetch_restart(tn__prefetch *prefetch, int64_t epoch);
/* Joins the thread. */
void tn__prefetch_free(tn__prefetch *prefetch);

/* Whether a thread pays for minibatches of so many bytes, on a device that computes on the same cores or not. */
bool tn__prefetch_pays(size_t bytes, bool same_cores);
/* Test hook: it always does. */
extern bool tn__prefetch_always;

/* Minibatches kept ready. */
#define TN__PREFETCH_SLOTS 8

#endif
