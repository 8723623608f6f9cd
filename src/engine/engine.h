/* SPDX-License-Identifier: MIT */
/* Evaluation of nodes, for rooms above the engine. */
#ifndef TN_ENGINE_ENGINE_H
#define TN_ENGINE_ENGINE_H

#include "array/node.h"

/* Computes all roots, those of one device in one plan where it needs no other's values. Roots with values are skipped;
 * an error root raises its error. */
tn_status tn__evaluate(int count, tn__node *const *roots);
/* The same of the roots and nothing along with them: amid an evaluation over several devices, which is still to compute
 * what others may be the last to hold (see regions.c). */
tn_status tn__evaluate_alone(int count, tn__node *const *roots);
/* The end of an optimizer's step: as tn__evaluate, and also computes this thread's pending handles on which backward
 * was called or that are small, and releases larger ones that depend on memory the roots reuse. */
tn_status tn__evaluate_step(int count, tn__node *const *roots);
/* The same of roots that take the place of others: `old` are those, to each of which the caller has a reference. They
 * are as they were if this fails, so that it can go back to them; for a root that got its value nonetheless, perhaps
 * not. Their memory is reused as if nobody had these references, but only by what computes the roots at the end. */
tn_status tn__evaluate_update(int count, tn__node *const *roots, int old_count, tn__node *const *old);
/* A first part of what tn__evaluate_step will compute: some of its roots. What they need and the rest needs, too, gets
 * values, so that nothing is computed twice, but for what costs little. Where values of several devices are needed it
 * is the whole. */
tn_status tn__evaluate_part(int count, tn__node *const *roots);
/* A step, or a first part of it, whose roots get their values in one block of memory: each from where
 * tn__side_by_side says on, in their order. But for what has a value before, or gets that of something else. */
tn_status tn__evaluate_side_by_side(int count, tn__node *const *roots, bool part);
/* Of an array at so many bytes from the beginning of the block, the end, where the next one begins. */
int64_t tn__side_by_side(int64_t begin, const tn__node *node);
/* A C-order copy of an evaluated node, evaluated too, alone (the node itself if it is in C order); borrowed. NULL with
 * a latched error. */
tn__node *tn__compact(tn__node *node);
/* Gives a pending TRANSFER node, whose input has a value, its own: asks for the copy, which nobody waits for but where
 * it goes to the host's memory. */
tn_status tn__transfer_run(tn__node *node);
/* When a TRANSFER node is recorded: from the host's memory its copy is asked for at once, as nobody waits for it, and
 * what uses it is evaluated on one device then. */
tn_status tn__transfer_recorded(tn__node *node);
/* tn__to for many nodes, each of which becomes its like on its device to[i], borrowed: those of one dtype and one
 * way are copied as one vector. With `at_once` they get values, for which nobody waits; else all of it is recorded. */
tn_status tn__move_together(int count, tn__node **node, tn__device *const *to, bool at_once);
/* Copies of evaluated nodes, which each becomes its like of (borrowed): of those on one device in one block of its
 * memory, for which nobody waits. What held the old values alone does so again, so that a step goes on in their memory.
 * Nodes in memory that the host reads stay as they are. */
tn_status tn__put_aside(int count, tn__node **node);
/* Each becomes its like in the host's memory (borrowed), those of one storage by one copy, which is waited for: meant
 * for what tn__put_aside made, as all of a storage is copied. */
tn_status tn__fetch_aside(int count, tn__node **node);
/*
 * The one elements of evaluated float64 nodes of one device, which are copied aside now and come when they come. NULL,
 * with nothing latched: the device does not do so now. tn__reading_end tells whether they are there, or waits until
 * they are; a reading that is done or has failed is only to be freed.
 */
typedef struct tn__reading tn__reading;
tn__reading *tn__reading_begin(int count, tn__node *const *node);
/* The copy on the device, borrowed as by the builders; until tn__reading_end says that they have come. */
tn__node *tn__reading_copy(const tn__reading *reading, int i);
tn_status tn__reading_end(tn__reading *reading, bool wait, bool *done);
double tn__reading_value(const tn__reading *reading, int i);
void tn__reading_free(tn__reading *reading);
/* The one element of a value that is computed and in memory that the host reads as it is (real; of a complex one its
 * real part); false: it is to be had by tn_item. */
bool tn__item_here(const tn__node *node, double *value);
/* Copies an evaluated node's elements to the host in C order. */
tn_status tn__read(tn__node *node, void *host);
/* An evaluated value from host memory (C order), on a device. Borrowed node, as by the builders. */
tn__node *tn__value_from_host(const void *data, tn_dtype dtype, const tn__shape *shape, tn__device *device);

#endif
