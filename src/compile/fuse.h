/* SPDX-License-Identifier: MIT */
/* The fuser's items: loop nests and values that a library or single operations compute, with who needs whom. */
#ifndef TN_COMPILE_FUSE_H
#define TN_COMPILE_FUSE_H

#include "compile/nest.h"

typedef struct tn__item {
    tn__nest *nest;      /* NULL: a value lowered on its own */
    int value;           /* that value */
    bool dead;           /* merged into another */
    uint64_t *needs;     /* set of items that must come before, transitively */
} tn__item;

typedef struct tn__fuser {
    tn__fusion base;
    tn__graph *graph;
    const tn__device *device;
    int item_count, words;
    size_t item_capacity;
    tn__item *item;
    int *item_of;        /* by value: the item that stores it, -1: none */
    bool *updates;       /* by value: a result that may take over a leaf's memory; NULL: a failure is known at once */
} tn__fuser;

/* stored.c: which values get memory or a nest of their own. False without memory. */
bool tn__choose_stored(tn__fuser *fuser, bool fusion);
/* updates.c: marks updates, where the device's runs may fail late, and stores what may fail. False without memory. */
bool tn__mark_updates(tn__fuser *fuser);
/* Whether two nests must not share a kernel: one may fail, the other overwrites. */
bool tn__apart(const tn__fuser *fuser, const tn__nest *a, const tn__nest *b);
/* Whether items that may fail are not done yet, and whether an item overwrites and such do not need it. */
bool tn__failing_left(const tn__fuser *fuser, const uint64_t *done);
bool tn__must_wait(const tn__fuser *fuser, int item, const uint64_t *done);
/* merge.c: items in topological order, then nests merged into one another. False without memory. */
bool tn__make_items(tn__fuser *fuser);
bool tn__merge_nests(tn__fuser *fuser);

/* schedule.c: all items as steps of the draft, in an order, several in a kernel where that pays. False without
 * memory. */
bool tn__schedule(tn__fuser *fuser, tn__draft *draft, tn__emitter *emitter, bool fusion);

/* pieces.c: true if a nest goes through few long rows more than once, which steps of their own do with more workers. */
bool tn__pieces_rather(const tn__capabilities *device, const tn__nest *nest);

/* Are kernels written for a GPU: a chip of many workers, whose launches cost more than most nests? */
static inline bool tn__on_gpu(const tn__device *device) { return device->capabilities.target == TN__TARGET_CUDA; }

static inline bool tn__set_has(const uint64_t *set, int i) { return set[i / 64] >> (i % 64) & 1; }
static inline void tn__set_add(uint64_t *set, int i) { set[i / 64] |= (uint64_t)1 << (i % 64); }

#endif
