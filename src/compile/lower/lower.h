/* SPDX-License-Identifier: MIT */
/* Values as steps of their own: operations of a library or of the evaluator, and what is folded into products. */
#ifndef TN_COMPILE_LOWER_LOWER_H
#define TN_COMPILE_LOWER_LOWER_H

#include "compile/ir/draft.h"

/* One operation a step: what the reference evaluator runs. False without memory. */
bool tn__lower_operations(tn__draft *draft);
/* Appends the steps of one value, as tn__lower_operations does; for what kernels do not cover. */
bool tn__lower_value(tn__draft *draft, int v);
/* The last of the updates that live in a constant's memory and write all of it, one beside the other along an axis,
 * before anybody reads it, as joining does; -1 if they do not. */
int tn__last_overwriting(const tn__graph *graph, int v);
/* Marks in draft->fold the updates to fold, and, once it is known what is stored, the epilogues that a device's
 * products take. */
void tn__find_folds(tn__draft *draft);
void tn__find_epilogues(tn__draft *draft, const tn__device *device);
/* Updates that were to be folded into products of our own are none: they are computed after the product like anything
 * else. */
void tn__unfold_own_products(tn__draft *draft, const tn__device *device);
/* The product that is folded into v; the steps of v. */
int tn__folded_product(const tn__draft *draft, int v);
bool tn__lower_folded(tn__draft *draft, int v);

#endif
