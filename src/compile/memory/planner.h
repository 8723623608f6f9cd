/* SPDX-License-Identifier: MIT */
/* From a draft to a plan: needless copies dropped, memory laid out, and the plan verified. */
#ifndef TN_COMPILE_MEMORY_PLANNER_H
#define TN_COMPILE_MEMORY_PLANNER_H

#include "compile/ir/draft.h"
#include "compile/ir/plan.h"

/* Fills leave out what is written over before it is read. `together`: copies and fills that do not meet become one
 * step, of several windows: its inputs are copied into the first of its outputs, its scalars fill the others. False
 * without memory. */
bool tn__join_copies(tn__draft *draft, bool together);
/* Orders steps, decides which results take over donated storages, lays temporaries out in the arena, and makes the
 * plan. False without memory. */
bool tn__plan_memory(tn__draft *draft, bool reuse, tn__plan *plan);
/* NULL, or what is wrong: overlapping live temporaries, reads before writes, operands outside their buffers; or
 * tn__verify_no_memory. */
const char *tn__plan_verify(const tn__plan *plan);
extern const char tn__verify_no_memory[];

#endif
