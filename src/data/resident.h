/* SPDX-License-Identifier: MIT */
/*
 * A dataset in the memory of a device that the host cannot write to at once. Its arrays are copied there once, and each epoch
 * its order; a minibatch is then a gather of rows that is recorded, not computed: it becomes part of the graph that uses it. Its
 * position in the epoch is a value on the device that each step moves on, so that all steps are the same to whoever starts them.
 *
 * Shuffled rows lie anywhere, and a product that begins with asking where is late by several times the memory's latency. So a step
 * also gathers the samples of the minibatch that comes next, beside its last kernels, unless they are large.
 */
#ifndef TN_DATA_RESIDENT_H
#define TN_DATA_RESIDENT_H

#include "data/batches.h"
#include "data/dataset.h"
#include "io/values.h"

typedef struct tn__resident tn__resident;

/* Whether a dataset of so many bytes may lie in the device's memory: it takes a fair share of what is free at most. */
bool tn__resident_fits(const tn__device *device, size_t bytes);
/* Copies x and t, whose rows `batches` cuts into minibatches. NULL with a latched error. */
tn__resident *tn__resident_new(const tn__host_view *x, const tn__host_view *t, const tn__batches *batches, bool shuffle,
                               tn__device *device);
void tn__resident_free(tn__resident *resident);
/* A minibatch as nodes on the list of temporaries; x is a value if it was gathered ahead, else they are pending. */
typedef struct tn__resident_nodes {
    tn__node *x, *t;
    tn__node *place; /* where the next minibatch begins */
    tn__node *ahead; /* samples of the next minibatch, NULL: they are not gathered ahead */
} tn__resident_nodes;
/* Minibatch i of an epoch. The caller keeps place and ahead in handles, which an optimizer's step computes with its other results, and
 * hands these in the next time (NULL: none yet); what nobody has computed then is copied to the device, and gathered, instead. */
tn__resident_nodes tn__resident_batch(tn__resident *resident, int64_t epoch, int64_t i, const tn_array *place, const tn_array *ahead);

#endif
