/* SPDX-License-Identifier: MIT */
/* What the ways of scattering share. */
#ifndef TN_BACKENDS_CUDA_OPS_SCATTER_H
#define TN_BACKENDS_CUDA_OPS_SCATTER_H

#include "backends/cuda/runtime/cuda.h"

typedef struct tn__cuda_scatter_args {
    CUdeviceptr to, index, from, last;
    /* rows of positions, which places of the walk may share */
    long long count, extent, rows, to_step, index_step, from_step, add;
} tn__cuda_scatter_args;

/* Sums of terms in an order that follows from their positions alone (scatter_sorted.c). */
typedef struct tn__cuda_sorted_sums tn__cuda_sorted_sums;

/* Whether it can be done. */
bool tn__cuda_sorted_sums_take(const tn__cuda_scatter_args *args);
/* Of a step whose module holds scatter.cuh's kernels; *sums is there to be freed also after a failure. */
tn_status tn__cuda_sorted_sums_make(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_walk *walk,
                                    const tn__cuda_scatter_args *args, tn__cuda_sorted_sums **sums);
tn_status tn__cuda_sorted_sums_start(const tn__cuda_sorted_sums *sums, const tn__cuda_run *run,
                                     const tn__cuda_walk *walk, tn__cuda_scatter_args *args, tn__cuda_failure *failure);
void tn__cuda_sorted_sums_free(tn__cuda_sorted_sums *sums, tn__cuda_device *device);

/* Sums of terms at few positions, in an order that follows from how many there are (scatter_tables.c); the rest as
 * above. */
typedef struct tn__cuda_table_sums tn__cuda_table_sums;

bool tn__cuda_table_sums_take(const tn__cuda_walk *walk, const tn__cuda_scatter_args *args, tn_dtype dtype);
tn_status tn__cuda_table_sums_make(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_walk *walk,
                                   const tn__cuda_scatter_args *args, tn__cuda_table_sums **sums);
tn_status tn__cuda_table_sums_start(const tn__cuda_table_sums *sums, const tn__cuda_run *run, const tn__cuda_walk *walk,
                                    tn__cuda_scatter_args *args, tn__cuda_failure *failure);
void tn__cuda_table_sums_free(tn__cuda_table_sums *sums, tn__cuda_device *device);

#endif
