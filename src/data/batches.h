/* SPDX-License-Identifier: MIT */
/* Which samples make which minibatch, gathering them into trays, and doing so ahead of time on a thread. */
#ifndef TN_DATA_BATCHES_H
#define TN_DATA_BATCHES_H

#include <stdint.h>
#include "data/trays.h"

/* The cut of a dataset into minibatches. Used by one thread at a time: the loader's, or the prefetching one. */
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
/* Minibatch i of an epoch in a tray; NULL without memory. */
tn__tray *tn__batches_gather(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t i);

/* A thread that gathers ahead, epoch after epoch, beginning with minibatch `first` of `epoch`. NULL if none can be had. */
typedef struct tn__prefetch tn__prefetch;
tn__prefetch *tn__prefetch_new(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t first);
/* The next minibatch, waiting for it; NULL without memory. */
tn__tray *tn__prefetch_take(tn__prefetch *prefetch);
/* Goes on from minibatch 0 of another epoch. */
void tn__prefetch_restart(tn__prefetch *prefetch, int64_t epoch);
/* Joins the thread. */
void tn__prefetch_free(tn__prefetch *prefetch);

/* Minibatches kept ready. */
#define TN__PREFETCH_SLOTS 8

#endif
