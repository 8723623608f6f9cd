/* SPDX-License-Identifier: MIT */
/* A topological sort of the items: schedule.c takes one ready item after another. An item is ready when all that it
 * needs has been taken. One that overwrites is held back, as long as there is anything else, while items that may fail
 * are not done: a failure then leaves what it would have overwritten as it was. */
#ifndef TN_COMPILE_SCHEDULE_QUEUE_H
#define TN_COMPILE_SCHEDULE_QUEUE_H

#include "compile/fuse/fuse.h"

typedef struct tn__queue {
    tn__fuser *fuser;
    bool (*small)(const tn__fuser *fuser, const tn__item *item);
    int *waits;         /* by item: how many of its needs are not done, fills apart; -1: a fill that has been taken */
    int *users, *first; /* who needs it: users[first[i]] to users[first[i + 1]] */
    int *later;         /* by item that is held back: how many items that may fail need it, and so cannot be waited
                           for; -1: the item is not held back */
    int *seen;          /* by item: the last search that reached it */
    int searches;       /* so far */
    int failing;       /* items that may fail and have not been taken */
    tn__heap urgent;   /* those that are taken before all others (tn__item_chooses) */
    tn__heap ready[2]; /* ready items by number; [1]: small ones */
    tn__heap held;     /* items held back, by number; may name some that have been taken since */
    tn__heap limits;   /* the same items by `later`: those first that may go while most failing items are left */
} tn__queue;

/* False without memory; then, too, it is to be freed. */
bool tn__queue_init(tn__queue *queue, tn__fuser *fuser, bool (*small)(const tn__fuser *fuser, const tn__item *item));
/* Takes the next item in recording order: large ones first, or, with after_small, small ones first, so that small ones
 * follow one another and can share a block. -1 at the end, -2 without memory. */
int tn__queue_take(tn__queue *queue, bool after_small);
void tn__queue_free(tn__queue *queue);

#endif
