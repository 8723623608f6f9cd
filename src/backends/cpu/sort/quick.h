/* SPDX-License-Identifier: MIT */
/* Keys sorted by quicksort, a vector of them at a time: rows too long for a network and too short for radix. */
#ifndef TN_BACKENDS_CPU_SORT_QUICK_H
#define TN_BACKENDS_CPU_SORT_QUICK_H

#include "backends/cpu/sort/radix.h"

/* Are these keys sorted faster this way than by radix? */
bool tn__quick_suits(const tn__radix *r);
/* Sorts keys (without places) in place. */
void tn__quick_sort(const tn__radix *r);

#endif
