/* SPDX-License-Identifier: MIT */
/* Which samples make which minibatch, gathering them into buffers, and doing so ahead of time on a thread. */
#ifndef TN_DATA_BATCHES_H
#define TN_DATA_BATCHES_H

#include <stdint.h>
#include "data/buffers.h"
#include "data/sampler.h"
#include "data/source.h"

/* The cut of a dataset into minibatches. Used by one thread: the loader's and the prefetching one each have their
 * own. */
typedef struct tn__batches {
    const char *x, *t;       /* all samples, if they are in memory */
    tn__source *source;      /* what makes them, else NULL */
    size_t x_row, t_row;     /* bytes a sample */
    int64_t size, count;     /* samples of the dataset, and of an epoch */
    int64_t batch, length;   /* samples a minibatch, minibatches an epoch; of a loader that repeats, no end of them:
                                it counts on from the epoch that it began with */
    uint64_t seed;
    bool shuffle, repeat;
    const tn_sampler *sampler; /* NULL: all samples, in their order or a random one */
    int64_t *order;          /* of epoch order_epoch */
    int64_t order_epoch;     /* -1: none yet */
} tn__batches;

static inline int64_t tn__batch_size(const tn__batches *batches, int64_t i)
{
    int64_t left = batches->count - i * batches->batch;
    return batches->repeat || left >= batches->batch ? batches->batch : left;
}
/* The key of an epoch's order. */
uint64_t tn__batches_key(const tn__batches *batches, int64_t epoch);
/* Sees to it that `order` is an epoch's. */
tn_status tn__batches_order(tn__batches *batches, int64_t epoch);
/* Minibatch i of an epoch in a buffer; NULL with the reason latched, which is memory or the source's. */
tn__batch_buffer *tn__batches_gather(tn__batches *batches, tn__batch_buffers *buffers, int64_t epoch, int64_t i);

/* Threads that gather ahead, epoch after epoch, beginning with minibatch `first` of `epoch`, each by an order of its
 * own: as many of `workers` as can be had; NULL if none can. */
typedef struct tn__prefetch tn__prefetch;
tn__prefetch *tn__prefetch_new(const tn__batches *batches, tn__batch_buffers *buffers, int workers, int64_t epoch,
                               int64_t first);
/* Minibatch i of an epoch, which must be the next one. NULL if the thread is late, unless there are several or a source
 * makes the samples, which is waited for, or if it could not be gathered: then the caller gathers this one, and the
 * threads go on after it. */
tn__batch_buffer *tn__prefetch_take(tn__prefetch *prefetch, int64_t epoch, int64_t i);
/* Goes on from minibatch `first` of another epoch; its number of minibatches stands for the next epoch's beginning. */
void tn__prefetch_restart(tn__prefetch *prefetch, int64_t epoch, int64_t first);
/* Joins the threads. */
void tn__prefetch_free(tn__prefetch *prefetch);

/* Whether a thread pays for minibatches of so many bytes, on a device that computes on the same cores or not. */
bool tn__prefetch_pays(size_t bytes, bool same_cores);
/* Test hook: it always does. */
extern bool tn__prefetch_always;

/* Threads at most; and minibatches that are ready or being made, for so many threads. */
#define TN__MOST_WORKERS 32
static inline int tn__prefetch_slots(int workers) { return workers > 4 ? 2 * workers : 8; }

#endif
