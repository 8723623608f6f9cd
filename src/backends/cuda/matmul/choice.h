/* SPDX-License-Identifier: MIT */
/* Choosing an algorithm of cuBLASLt by timing, once. */
#ifndef TN_BACKENDS_CUDA_MATMUL_CHOICE_H
#define TN_BACKENDS_CUDA_MATMUL_CHOICE_H

#include "backends/cuda/matmul/matmul.h"

#define TN__CUDA_ALGORITHMS 8 /* most proposals of the library that are timed */

typedef struct tn__cuda_algorithm {
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;                     /* bytes of workspace that it needs */
} tn__cuda_algorithm;

/* What to time: out = a b + beta out by each of `count` algorithms, and the operation's epilogue. */
typedef struct tn__cuda_products {
    cublasLtMatmulDesc_t operation;
    const cublasLtMatrixLayout_t *layout; /* by TN__CUDA_OUT, _A, _B */
    size_t bytes[TN__CUDA_FACTORS];       /* bytes from the first to the last element of each matrix's whole batch */
    tn_dtype dtype;
    double operations;
    bool wide;                            /* alpha and beta are float64 */
    int beta;
    bool bias;                            /* the epilogue adds one */
    int count;
    const cublasLtMatmulHeuristicResult_t *result;
} tn__cuda_products;

/* Puts the algorithm for a product into *algorithm: what the folder of kernels remembers for `key` (all that the
 * product, the library and the GPU are), else the fastest, which is then remembered; the library's first proposal where
 * the product is small, or there is no memory to try it in. Never while a stream is captured. */
void tn__cuda_choose_algorithm(tn__cuda_device *device, const char *key, const tn__cuda_products *products,
                               tn__cuda_algorithm *algorithm);

#endif
