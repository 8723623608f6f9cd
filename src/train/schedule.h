/* SPDX-License-Identifier: MIT */
/* How the learning rate changes over the epochs of a run. */
#ifndef TN_TRAIN_SCHEDULE_H
#define TN_TRAIN_SCHEDULE_H

typedef struct tn__schedule {
    const char *name;
    /* What to multiply the given rate with, after the share `done` (0 to 1) of all epochs. */
    double (*factor)(double done);
} tn__schedule;

/* NULL, with a latched error that names the nearest, if there is none of that name. */
const tn__schedule *tn__schedule_find(const char *name);

#endif
