/* SPDX-License-Identifier: MIT */
/*
 * Means of an epoch that are read after its end. On a device whose memory the host can't read they would else be waited
 * for there, and the device would have nothing to do meanwhile. They are what they were, with the place in the run that
 * they belong to; a snapshot holds them as they are.
 */
#ifndef TN_TRAIN_LATE_H
#define TN_TRAIN_LATE_H

#include <tanso/train.h>
#include "engine/engine.h"
#include "train/parts.h"

/* Where in a run an entry belongs. */
typedef struct tn__place {
    double epoch, iteration, elapsed;
} tn__place;

typedef struct tn__late {
    bool pending;         /* there are some that nobody has taken yet */
    tn_summary *means;    /* NULL: never */
    tn__place place;
    tn__reading *reading; /* of `count` sums of theirs; NULL: of a run that goes on from a snapshot */
    int count;
    tn_meter **far;
} tn__late;

tn__place tn__place_of(const tn_trainer *trainer);
/* Takes what has been summed up, `*means` being an empty summary then, if that is on a device that reads late; else
 * leaves it and `pending` false, and so while others are pending. */
tn_status tn__late_begin(tn__late *late, tn_summary **means, const tn_trainer *trainer);
/* Whether those that are pending have come, if need be by waiting. Then `means` is read as any summary, and
 * tn__late_end is to be called. */
tn_status tn__late_come(tn__late *late, bool wait, bool *come);
void tn__late_end(tn__late *late);
tn_status tn__late_serialize(const tn_serializer *s, tn__late *late);
void tn__late_free(tn__late *late);

#endif
