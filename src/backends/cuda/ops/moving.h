/* SPDX-License-Identifier: MIT */
/* Moving operands of a step to where a library wants them, and results from there. */
#ifndef TN_BACKENDS_CUDA_OPS_MOVING_H
#define TN_BACKENDS_CUDA_OPS_MOVING_H

#include "backends/cuda/runtime/cuda.h"

typedef struct tn__cuda_copying {
    tn__operand operand[2];
    tn__step step;                /* both point into this struct, which must not be moved */
    tn__cuda_step inner;
} tn__cuda_copying;

/* Prepares a copy between two operands. Their buffers are not used: addresses are given at the start. */
tn_status tn__cuda_copying_make(tn__cuda_copying *copy, tn__cuda_step *parent, tn__cuda_device *device,
                                const tn__operand *to, const tn__operand *from);
/* `to` and `from`: of the buffers that the operands' offsets count from. */
tn_status tn__cuda_copying_start(const tn__cuda_copying *copy, const tn__cuda_run *run, CUdeviceptr to,
                                 CUdeviceptr from);
void tn__cuda_copying_free(tn__cuda_copying *copy, tn__cuda_device *device);
/* An operand of the same extents, contiguous, in C order, with offset 0. */
tn__operand tn__cuda_dense(const tn__operand *operand);
/* An operand of the same matrices one after another, each in Fortran order. */
tn__operand tn__cuda_by_columns(const tn__operand *operand);

#endif
