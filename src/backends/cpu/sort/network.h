/* SPDX-License-Identifier: MIT */
/* Sorting short rows of words, several at a time. */
#ifndef TN_BACKENDS_CPU_SORT_NETWORK_H
#define TN_BACKENDS_CPU_SORT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/sort/radix.h"

enum {
    TN__NETWORK_ROWS = 8,  /* rows that are sorted together */
    TN__NETWORK_MOST = 1024 /* most words of a row: for longer ones a radix sort of each is faster */
};

/* Has the processor the vector instructions (AVX2)? */
bool tn__network_here(void);
/* Sorts each of TN__NETWORK_ROWS rows of n words, which are one after another, as tn__radix_sort does. Forms with
 * places (PACKED, PAIRS) are compared by place, too, which keeps the order of equal keys if places ascend. `room`: as
 * many words, aligned for vectors. */
void tn__network_sort(tn__radix_form form, void *words, int64_t n, void *room);

#endif
