/* SPDX-License-Identifier: MIT */
/*
 * A dataset in the memory of a device that the host cannot write to at once. Its arrays are copied there once, and each
 * epoch its order; a minibatch is then a gather of rows that is recorded, not computed: it becomes part of the graph
 * that uses it. Its position in the epoch is a value on the device that each step moves on, so that all steps are the
 * same to whoever starts them.
 */
#ifndef TN_DATA_RESIDENT_H
#define TN_DATA_RESIDENT_H

#include "data/batches.h"
#include "data/dataset.h"
#include "io/values.h"

typedef struct tn__resident tn__resident;

/* The least upper bound of labels that are whole and not negative; 0 for others. */
int64_t tn__labels_below(const void *labels, tn_dtype dtype, int64_t count);

/* Whether a dataset of so many bytes may lie in the device's memory: it takes a fair share of what is free at most. */
bool tn__resident_fits(const tn__device *device, size_t bytes);
/* Copies x and t, whose rows `batches` cuts into minibatches. NULL with a latched error. */
tn__resident *tn__resident_new(const tn__host_view *x, const tn__host_view *t, const tn__batches *batches, bool shuffle,
                               tn__device *device);
void tn__resident_free(tn__resident *resident);
/* Minibatch i of an epoch as pending nodes, on the list of temporaries: x, t, and where the next minibatch begins. The
 * caller keeps the last in a handle, which an optimizer's step computes with its other results, and hands that in the
 * next time (`place`, NULL: none yet); one that nobody has computed is copied to the device instead. */
void tn__resident_batch(tn__resident *resident, int64_t epoch, int64_t i, const tn_array *place, tn__node *node[3]);

#endif
