/* SPDX-License-Identifier: MIT */
/* Whole recurrent networks as nodes (ops/recurrence.h), and what of them is a view. */
#ifndef TN_ARRAY_BUILD_RECURRENCE_H
#define TN_ARRAY_BUILD_RECURRENCE_H

#include "array/build.h"
#include "ops/recurrence.h"

/* Whether a device computes such a network in one operation, and sooner than step by step. */
bool tn__recurrence_suits(const tn__recurrence *of, tn_dtype dtype, const tn__device *device);
/* RECUR and RECUR_BACK. */
tn__node *tn__recur(const tn__recurrence *of, tn__node *sums, tn__node *weights, tn__node *state);
tn__node *tn__recur_back(const tn__recurrence *of, tn__node *value, tn__node *g, tn__node *weights);
/* What a node of these was recorded with. */
void tn__recurrence_of(const tn__node *node, tn__recurrence *of);

/* `count` rows of a matrix from `start` on. */
tn__node *tn__rows_of(tn__node *a, int64_t start, int64_t count);
/* RECUR's value of `count` places of a block from `place` on: (count × rows, units). */
tn__node *tn__recurrence_part(const tn__recurrence *of, tn__node *value, int block, int64_t place, int64_t count);
/* RECUR_BACK of nodes for each step, which can be differentiated in turn. */
tn__node *tn__recur_back_by_steps(const tn__recurrence *of, tn__node *value, tn__node *g, tn__node *weights);

#endif
