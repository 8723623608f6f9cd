/* SPDX-License-Identifier: MIT */
/* Matrix products inside the CUDA backend: out = alpha a b + beta out over batches of strided matrices. */
#ifndef TN_BACKENDS_CUDA_MATMUL_MATMUL_H
#define TN_BACKENDS_CUDA_MATMUL_MATMUL_H

#include "backends/cuda/runtime/cuda.h"

enum { TN__CUDA_OUT, TN__CUDA_A, TN__CUDA_B, TN__CUDA_FACTORS, TN__CUDA_BIAS = TN__CUDA_FACTORS };

typedef struct tn__cuda_product {
    long long m, n, k;
    struct {
        long long row, column; /* in elements */
    } step[TN__CUDA_FACTORS];
    tn__cuda_walk batch;
} tn__cuda_product;

/* Extents, steps and batch of a MATMUL step. */
void tn__cuda_product_of(const tn__step *step, tn__cuda_product *product);

/* The address of a step's bias, 0: none. */
CUdeviceptr tn__cuda_bias(const tn__cuda_step *step, const tn__cuda_run *run);
/* Starts the kernel that does a step's epilogue after its product: function "epilogue" of matmul.cuh. */
tn_status tn__cuda_start_epilogue(const tn__cuda_step *step, const tn__cuda_run *run, const tn__cuda_product *product,
                                  CUfunction function);

/* alpha as a number of the dtype computed in. */
typedef union tn__cuda_factor {
    double f64;
    float f32;
    uint64_t bits;
} tn__cuda_factor;
/* The step's alpha for a run: 1 without a scalar; negated if the step says so. */
tn__cuda_factor tn__cuda_alpha(const tn__cuda_step *step, const uint64_t *scalars);

#endif
