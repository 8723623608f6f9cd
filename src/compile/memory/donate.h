/* SPDX-License-Identifier: MIT */
/* Which results take over the memory of leaves: between memory.c and donate.c. */
#ifndef TN_COMPILE_MEMORY_DONATE_H
#define TN_COMPILE_MEMORY_DONATE_H

#include "compile/ir/draft.h"

/* Fills in memory[home] = leaf for each result that takes over a leaf's memory; results lie in the values marked in
 * `result_home`. Steps may be reordered and dropped for that. False without memory. */
bool tn__donate(tn__draft *draft, const bool *result_home, int *memory);
/* May this step write `home` into the memory of `from`, which it reads? */
bool tn__writes_over(const tn__draft *draft, const tn__draft_step *step, int from, int home);

#endif
