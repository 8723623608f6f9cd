/* SPDX-License-Identifier: MIT */
/*
 * Loading all or nothing. What is loaded goes straight into the objects, by functions some of which are the program's.
 * So the state from before is gathered first, as for a snapshot, which copies no array; a load that fails is followed
 * by one of that. What an archive can't say is noted here: that something was not made yet, options as they were.
 */
#ifndef TN_TRAIN_UNDO_H
#define TN_TRAIN_UNDO_H

#include "optim/optimizer.h"
#include "train/parts.h"

/* A parameter that was still to be inferred. */
typedef struct tn__open_slot {
    tn_layer *layer;
    tn__slot *slot;
    tn_shape shape;
} tn__open_slot;

typedef struct tn__noted_optimizer {
    tn_optimizer *optimizer;
    tn_optimizer_opts set;
    int64_t base;
} tn__noted_optimizer;

typedef struct tn__undo {
    tn__open_slot *open;
    size_t open_count, open_capacity;
    tn__noted_optimizer *optimizers;
    size_t optimizer_count, optimizer_capacity;
    tn_archive *archive; /* the state from before; NULL: it was not gathered */
} tn__undo;

/* Notes an optimizer and its layer. */
tn_status tn__undo_note(tn__undo *undo, tn_optimizer *optimizer);
/* Makes a new archive for the state. */
tn_status tn__undo_archive(tn__undo *undo);
/* What has been noted is as it was, and optimizers have no state, so that the archive can be loaded. Allocates nothing
 * and fails never. */
void tn__undo_reset(tn__undo *undo);
void tn__undo_end(tn__undo *undo);

#endif
