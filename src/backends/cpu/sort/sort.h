/* SPDX-License-Identifier: MIT */
/* Sorting a row by radix, and partitions of it. */
#ifndef TN_BACKENDS_CPU_SORT_SORT_H
#define TN_BACKENDS_CPU_SORT_SORT_H

#include <tanso/base.h>

/* A row: n elements of a dtype, `from_step` bytes from one to the next, and where the sorted ones (or with `positions`
 * their int64 places) go. NaN comes last, zeros of either sign are equal, and equal elements keep their order. */
typedef struct tn__cpu_sort_row {
    tn_dtype dtype;
    bool positions;
    int64_t n;
    const char *from;
    int64_t from_step;
    char *to;
    int64_t to_step;
} tn__cpu_sort_row;

/* Bytes of scratch memory that a row needs to be sorted; results `to_step` bytes apart. */
size_t tn__cpu_sort_scratch(tn_dtype dtype, bool positions, int64_t n, int64_t to_step);
/* By a team of threads; of one within a loop over threads. The result does not depend on the team. */
void tn__cpu_sort(const tn__cpu_sort_row *row, void *scratch, int team);
/* The same of `count` short rows at once, at most TN__NETWORK_ROWS, of equal lengths and dtypes, in scratch memory of
 * so many bytes, aligned to 64; 0: such rows are sorted one by one. */
size_t tn__cpu_sort_scratch_together(tn_dtype dtype, bool positions, int64_t n);
void tn__cpu_sort_together(const tn__cpu_sort_row *row, int count, void *scratch);
/* Only so far that the element at `place` is the one that sorting puts there, none before it comes after it in order,
 * and none behind it before it. With the scratch memory of results that lie apart (step 0). */
void tn__cpu_select(const tn__cpu_sort_row *row, int64_t place, void *scratch, int team);

#endif
