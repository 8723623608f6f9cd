/* SPDX-License-Identifier: MIT */
/* The items of a program as they become ready: between queue.c and schedule.c, which asks for one after another. */
#ifndef TN_COMPILE_SCHEDULE_QUEUE_H
#define TN_COMPILE_SCHEDULE_QUEUE_H

#include "compile/fuse/fuse.h"

typedef struct tn__queue {
    tn__fuser *fuser;
    bool (*small)(const tn__fuser *fuser, const tn__item *item);
    int *waits;         /* by item: how many of its needs are not done */
    int *users, *first; /* who needs it: users[first[i]] to users[first[i + 1]] */
    int *later;         /* by item that waits for failures: how many of these come behind it anyway; -1: it does not */
    int *seen;          /* by item: the last search that has been here */
    int searches;
    int failing;       /* items that may fail and are not done */
    tn__heap ready[2]; /* by whether they are small */
    tn__heap held;     /* waiting for what may fail, by number; some may have been let go */
    tn__heap limits;   /* the same, those that wait for the most failing items last */
} tn__queue;

/* False without memory; then, too, it is to be freed. */
bool tn__queue_init(tn__queue *queue, tn__fuser *fuser, bool (*small)(const tn__fuser *fuser, const tn__item *item));
/* Takes the next item: in recording order, small ones last, unless `after_small`, when they go on; what overwrites
 * waits for what may fail, as long as there is anything else. -1 at the end, -2 without memory. */
int tn__queue_take(tn__queue *queue, bool after_small);
void tn__queue_free(tn__queue *queue);

#endif
