/* SPDX-License-Identifier: MIT */
/* Sorting short rows of words, several at a time. */
#ifndef TN_BACKENDS_CPU_SORT_NETWORK_H
#define TN_BACKENDS_CPU_SORT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/sort/radix.h"

enum {
    TN__NETWORK_ROWS = 8,  /* sorted together */
    TN__NETWORK_MOST = 1024 /* words of a row, about where a radix sort of each becomes the faster way */
};

/* Whether this processor has what it takes. */
bool tn__network_here(void);
/* Sorts each of TN__NETWORK_ROWS rows of n words, which lie one behind the other, as tn__radix_sort does; what is
 * packed or paired by places, too, which keeps the order of equal ones where they ascend. With room for as many words,
 * aligned as vectors are. */
void tn__network_sort(tn__radix_form form, void *words, int64_t n, void *room);

#endif
