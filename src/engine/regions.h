/* SPDX-License-Identifier: MIT */
/* The regions of a graph over several devices, see regions.c. */
#ifndef TN_ENGINE_REGIONS_H
#define TN_ENGINE_REGIONS_H

#include "engine/collect.h"

/* A node under the roots that was pending when the regions were made. Once they run it is there only as long as others
 * need it, and nothing but this says of it what follows. */
typedef struct tn__region_item {
    tn__node *node;
    const tn__device *device; /* its own */
    int32_t rank, phase; /* see regions.c */
    int32_t first_user;  /* the least rank of what uses it */
    bool transfers; /* its value comes from another device */
    bool root;   /* in the list of those */
    bool sent;   /* a transfer's input */
    bool early;  /* something to be sent, or of a later rank, depends on it */
    bool urgent; /* something of its rank that is to be sent depends on it */
    bool constant; /* of numbers alone */
    bool light;  /* of a step: element operations over values that are there */
    bool stored; /* other regions, or the program, need its value */
} tn__region_item;

typedef struct tn__regions {
    tn__collect_mode mode;
    tn__region_item *item; /* inputs before what uses them */
    size_t count, capacity;
    tn__node **root; /* those that were asked for; behind them what is computed along */
    size_t root_count, root_capacity, asked;
    tn__device **device;
    size_t device_count, device_capacity;
    uint32_t *order; /* items by phase */
    tn__node **part; /* roots of one region */
    struct {
        struct tn__region_frame {
            tn__node *node;
            int next;
        } *frame;
        size_t capacity;
    } stack;
    uint32_t stamp;
} tn__regions;

/* Finds the regions of what `roots` need; r is zeros but for the mode, and freed by whoever made it, whatever came of
 * that. Fails as collecting does. */
tn_status tn__regions_make(tn__regions *r, int count, tn__node *const *roots);
void tn__regions_free(tn__regions *r);
/* Where the items order[from ..] that have one phase end. Evaluation goes from phase to phase: first its transfers, in
 * order, then a region a device. */
size_t tn__regions_phase(const tn__regions *r, size_t from);
/* The roots of a device's region of items order[from .. to-1], into r->part; how many there are. */
int tn__regions_part(tn__regions *r, size_t from, size_t to, const tn__device *device);
/* The same of its last region: what was asked for and has no value yet. */
int tn__regions_last(tn__regions *r, const tn__device *device);

#endif
