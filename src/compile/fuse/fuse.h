/* SPDX-License-Identifier: MIT */
/*
 * The fuser turns a graph's stored values into *items*, each a loop nest, or a value that a library or a single
 * operation computes, and merges nests that can share loops. What is left of them becomes the steps of a program
 * (schedule/). Items are numbered in recording order; item A needs item B if A reads what B stores.
 */
#ifndef TN_COMPILE_FUSE_FUSE_H
#define TN_COMPILE_FUSE_FUSE_H

#include "compile/ir/numbers.h"
#include "compile/loops/nest.h"

typedef struct tn__item {
    tn__nest *nest;      /* NULL: a library or a single operation computes `value` */
    int value;           /* without a nest: what the item stores */
    bool dead;           /* merged into another item, or nothing needs it any more */
    int into;            /* the item that it was merged into, or itself */
    tn__numbers needs;   /* items that it needs directly, not through others; some may have been merged since: ask
                            tn__item_now */
    int used;            /* in how many lists of needs it is */
    tn__numbers users;   /* the items in whose lists it is, as far as they have a place */
    int place;           /* order.c: in the order so far, which a merge may change */
    int mark[3];         /* order.c: the last search that gave it each of the marks there */
    int group;            /* schedule.c: the group it is in */
} tn__item;

typedef struct tn__fuser {
    tn__fusion base;
    tn__graph *graph;
    const tn__device *device;
    int item_count;
    size_t item_capacity;
    tn__item *item;
    int *item_of;        /* by value: the item that stores it, -1: none */
    bool *updates;       /* by value: a result that may be written into a leaf's memory; NULL on devices that tell of
                            failures before anything is overwritten */
    int search;          /* order.c: number of the search under way */
    tn__heap ahead;      /* order.c: items that the search has still to look at, the last place first */
} tn__fuser;

/* materialize.c: which values get memory or a nest of their own. False without memory. */
bool tn__choose_stored(tn__fuser *fuser, bool fusion);
/* updates.c: on devices that tell of a failure (an index out of range) only after later kernels have started: marks the
 * results that overwrite, and stores what may fail, so that it is a nest of its own. False without memory. */
bool tn__mark_updates(tn__fuser *fuser);
/* Whether a nest may fail; whether it overwrites a leaf, which has to keep its value if another nest fails; whether two
 * nests must not share a kernel, since one may fail and the other overwrites, or one chooses from a large array. */
bool tn__may_fail(const tn__nest *nest);
bool tn__overwrites(const tn__fuser *fuser, const tn__nest *nest);
bool tn__apart(const tn__fuser *fuser, const tn__nest *a, const tn__nest *b);
/* The same of items. */
bool tn__item_may_fail(const tn__fuser *fuser, int item);
bool tn__item_overwrites(const tn__fuser *fuser, int item);
/* Does it read little of a large array, which others may write over when it has? */
bool tn__item_chooses(const tn__fuser *fuser, int item);
/* items.c: items in topological order. False without memory. */
bool tn__make_items(tn__fuser *fuser);
/* merge.c: nests merged into one another. False without memory. */
bool tn__merge_nests(tn__fuser *fuser);

/* places.c: pieces of what is joined are stored where they are joined. */
void tn__place_pieces(tn__fuser *fuser);

/* ---- order.c ---- */

/* The item that an item has been merged into, through several merges; itself if it has not. */
int tn__item_now(tn__fuser *fuser, int item);
/* Items are added in their order, one after another: tn__order_add gives the next one the last place; tn__order_join
 * merges it into an item that has a place. For that, neither may need the other through a third item. False without
 * memory. */
bool tn__order_add(tn__fuser *fuser, int item);
bool tn__order_join(tn__fuser *fuser, int into, int item);
/* Begins a search of what the next item needs, which the two functions below go on with. False without memory. */
bool tn__order_search(tn__fuser *fuser, int item);
/* Does it need `other` directly? */
bool tn__order_needs(const tn__fuser *fuser, int other);
typedef enum tn__known { TN__KNOWN_FALSE, TN__KNOWN_TRUE, TN__KNOWN_NO_MEMORY } tn__known;
/* Does it need `other` through a third item? */
tn__known tn__order_needs_through(tn__fuser *fuser, int other);

/* schedule.c: all items as steps of the draft, in an order, several in a kernel where that pays. False without
 * memory. */
bool tn__schedule(tn__fuser *fuser, tn__draft *draft, tn__emitter *emitter, bool fusion);

#endif
