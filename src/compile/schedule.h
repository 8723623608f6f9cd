/* SPDX-License-Identifier: MIT */
/* Between the parts of scheduling: schedule.c (order, what shares a launch), phases.c (launches as phases of one kernel). */
#ifndef TN_COMPILE_SCHEDULE_H
#define TN_COMPILE_SCHEDULE_H

#include "compile/fuse.h"

#define TN__MAX_TOGETHER 16
#define TN__THREADS_BESIDE 256 /* of a block, so that each has the registers that products need */

/* Items that come together: nests that one worker runs through, or a single nest, or an operation. */
typedef struct tn__unit {
    tn__nest *nest[TN__MAX_TOGETHER];
    int count;
    int words;       /* of parameters, about */
    int value;       /* of an operation, -1: nests */
    uint64_t *items;
    bool small;      /* nests for one worker */
    int launch;      /* the unit in whose launch it lies: itself, or another one */
} tn__unit;

typedef struct tn__schedule_state {
    tn__fuser *fuser;
    tn__emitter *emitter;
    tn__unit *unit;
    int count;
    size_t capacity;
} tn__schedule_state;

/* Must the two keep their order, u before other? */
bool tn__in_order(const tn__fuser *f, const tn__unit *u, const tn__unit *other);
/* Whether unit i fits beside all that is in a launch. */
bool tn__fits_beside(const tn__schedule_state *s, int i, int launch);
/* Whether all launches are better done as phases of one kernel, each of which has its units then; else nothing has changed. */
bool tn__make_phases(tn__schedule_state *s);

#endif
