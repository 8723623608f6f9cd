/* SPDX-License-Identifier: MIT */
/* Operations on whole rows of the last axis on a GPU, one text of kernels each: sort.cuh, sort_rows.cuh, scan.cuh,
 * nonzero.cuh, search.cuh, histogram.cuh, largest.cuh, largest_few.cuh. */
#ifndef TN_BACKENDS_CUDA_OPS_SORT_SCAN_H
#define TN_BACKENDS_CUDA_OPS_SORT_SCAN_H

#include "backends/cuda/runtime/cuda.h"

/* The rows of a step: a loop over all axes but the last, the elements of a row, and their strides. */
typedef struct tn__cuda_rows {
    tn__cuda_walk walk;
    int64_t count[TN__CUDA_WALK_OPERANDS], step[TN__CUDA_WALK_OPERANDS];
} tn__cuda_rows;
/* False for a step without an axis. */
bool tn__cuda_rows_of(const tn__step *step, tn__cuda_rows *rows);

tn_status tn__cuda_prepare_sort(tn__cuda_step *step, tn__cuda_device *device);   /* SORT, ARGSORT */
/* Tells a sort that its keys are below `limit`, so that their higher bytes need not be sorted by; other keys may end up
 * anywhere. */
void tn__cuda_sort_below(tn__cuda_step *step, uint64_t limit);
/* Are rows of n elements short enough to be sorted by a few threads each? */
bool tn__cuda_sorts_rows(const tn__step *step, int64_t n);
tn_status tn__cuda_prepare_sort_rows(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_rows *rows);
tn_status tn__cuda_prepare_scan(tn__cuda_step *step, tn__cuda_device *device);   /* CUMSUM .. CUMMIN, NONZERO */
tn_status tn__cuda_prepare_search(tn__cuda_step *step, tn__cuda_device *device); /* SEARCH_LEFT, SEARCH_RIGHT */
tn_status tn__cuda_prepare_largest(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_histogram(tn__cuda_step *step, tn__cuda_device *device);

/* Texts, for tn__free; NULL without memory. */
char *tn__cuda_text_sort(tn_dtype dtype, bool positions, bool wide);
/* Elements of a thread, threads of a row and of a block: powers of two. */
char *tn__cuda_text_sort_rows(tn_dtype dtype, bool positions, int each, int lanes, int threads);
char *tn__cuda_text_largest(tn_dtype dtype);
char *tn__cuda_text_largest_few(tn_dtype dtype, int each); /* elements that a lane reads at a time */
/* shorter: 0, or a power of 2, at least 4, that no row is longer than, for the kernel of such rows alone. */
char *tn__cuda_text_scan(tn_dtype dtype, int op, int shorter);
char *tn__cuda_text_nonzero(void);
char *tn__cuda_text_search(tn_dtype dtype, bool right);
char *tn__cuda_text_histogram(tn_dtype dtype);
bool tn__cuda_has_order(tn_dtype dtype);

#endif
