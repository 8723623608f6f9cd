/* SPDX-License-Identifier: MIT */
/* The fuser's items: loop nests and values that a library or single operations compute, with who needs whom. */
#ifndef TN_COMPILE_FUSE_FUSE_H
#define TN_COMPILE_FUSE_FUSE_H

#include "compile/ir/numbers.h"
#include "compile/loops/nest.h"

typedef struct tn__item {
    tn__nest *nest;      /* NULL: a value lowered on its own */
    int value;           /* that value */
    bool dead;           /* merged into another, or not needed after all */
    int into;            /* the item that it was merged into, or itself */
    tn__numbers needs;   /* items that must come before, without those that these need; may name merged ones */
    int used;            /* how often others name it so */
    tn__numbers users;   /* of those that have a place: who does */
    int place;           /* order.c */
    int mark[3];
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
    bool *updates;       /* by value: a result that may take over a leaf's memory; NULL: a failure is known at once */
    int search;          /* order.c: which one it is */
    tn__heap ahead;      /* what it has not been through, the last place first */
} tn__fuser;

/* materialize.c: which values get memory or a nest of their own. False without memory. */
bool tn__choose_stored(tn__fuser *fuser, bool fusion);
/* updates.c: marks updates, where the device's runs may fail late, and stores what may fail. False without memory. */
bool tn__mark_updates(tn__fuser *fuser);
/* Whether a nest may fail, or overwrites what must survive a failure; such two must not share a kernel. */
bool tn__may_fail(const tn__nest *nest);
bool tn__overwrites(const tn__fuser *fuser, const tn__nest *nest);
bool tn__apart(const tn__fuser *fuser, const tn__nest *a, const tn__nest *b);
/* The same of items. */
bool tn__item_may_fail(const tn__fuser *fuser, int item);
bool tn__item_overwrites(const tn__fuser *fuser, int item);
/* items.c: items in topological order. False without memory. */
bool tn__make_items(tn__fuser *fuser);
/* merge.c: nests merged into one another. False without memory. */
bool tn__merge_nests(tn__fuser *fuser);

/* ---- order.c ---- */

/* The item that an item is, or is part of, by now. */
int tn__item_now(tn__fuser *fuser, int item);
/* Gives the next item a place, behind all before it, or makes it part of one before it, which must not need it, nor it
 * that one through others. False without memory. */
bool tn__order_add(tn__fuser *fuser, int item);
bool tn__order_join(tn__fuser *fuser, int into, int item);
/* Begins to ask what the next item needs. False without memory. */
bool tn__order_search(tn__fuser *fuser, int item);
/* Does it need `other` itself? */
bool tn__order_needs(const tn__fuser *fuser, int other);
typedef enum tn__known { TN__KNOWN_FALSE, TN__KNOWN_TRUE, TN__KNOWN_NO_MEMORY } tn__known;
/* Does it need something else that needs `other`? */
tn__known tn__order_needs_through(tn__fuser *fuser, int other);

/* schedule.c: all items as steps of the draft, in an order, several in a kernel where that pays. False without
 * memory. */
bool tn__schedule(tn__fuser *fuser, tn__draft *draft, tn__emitter *emitter, bool fusion);

/* split.c: true if a nest goes through few long rows or columns more than once, or has more reductions of them than
 * can be in pieces, which nests of their own do with more workers. */
bool tn__split_rather(const tn__fuser *fuser, const tn__nest *nest);

/* Are kernels written for a GPU: a chip of many workers, whose launches cost more than most nests? */
static inline bool tn__on_gpu(const tn__device *device) { return device->capabilities.target == TN__TARGET_CUDA; }

#endif
