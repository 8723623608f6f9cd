/* SPDX-License-Identifier: MIT */
/* Moving operands of a step to where a library wants them, and results from there. */
#ifndef TN_BACKENDS_CUDA_OPS_MOVING_H
#define TN_BACKENDS_CUDA_OPS_MOVING_H

#include "backends/cuda/runtime/cuda.h"

typedef struct tn__cuda_copying {
    tn__operand operand[2];
    tn__step step;                /* both point into this struct, which must stay where it is */
    tn__cuda_step inner;
} tn__cuda_copying;

/* Their buffers do not matter, as addresses are given when it starts. */
tn_status tn__cuda_copying_make(tn__cuda_copying *copy, tn__cuda_step *parent, tn__cuda_device *device,
                                const tn__operand *to, const tn__operand *from);
/* `to` and `from`: of the buffers that the operands' offsets count from. */
tn_status tn__cuda_copying_start(const tn__cuda_copying *copy, const tn__cuda_run *run, CUdeviceptr to,
                                 CUdeviceptr from);
void tn__cuda_copying_free(tn__cuda_copying *copy, tn__cuda_device *device);
/* The same extents without gaps, in C order, from offset 0. */
tn__operand tn__cuda_dense(const tn__operand *operand);
/* The same matrices one behind the other, each in Fortran's order. */
tn__operand tn__cuda_by_columns(const tn__operand *operand);

#endif
