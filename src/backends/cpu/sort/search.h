/* SPDX-License-Identifier: MIT */
/* Searching in sorted rows. */
#ifndef TN_BACKENDS_CPU_SORT_SEARCH_H
#define TN_BACKENDS_CPU_SORT_SEARCH_H

#include <tanso/base.h>

/* A row of n sorted elements, and m values to be searched for in it; each `step` bytes apart. */
typedef struct tn__cpu_search_row {
    const char *sorted, *values;
    int64_t n, sorted_step, m, values_step;
    bool right;  /* the place after elements equal to the value, not before them */
    char *to;    /* int64: the place of each value */
    int64_t to_step;
} tn__cpu_search_row;

typedef void (*tn__cpu_search)(const tn__cpu_search_row *row);

/* The search for a dtype, in the order that sorting has: NaN last, zeros of either sign equal. NULL for dtypes without
 * an order. */
tn__cpu_search tn__cpu_search_of(tn_dtype dtype);

#endif
