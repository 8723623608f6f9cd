/* SPDX-License-Identifier: MIT */
/* Products by each of cuBLASLt's algorithms, for the timing of runtime/trial.h. */
#include "backends/cuda/matmul/choice.h"

#include "backends/cuda/runtime/trial.h"

#define WORTH_OPERATIONS 1e8 /* smaller products are not timed: any algorithm takes only microseconds */

/* The values of a bias do not matter for the time: the beginning of b serves as one. */
static bool begin(void *context, const tn__cuda_bench *bench, size_t *workspace)
{
    const tn__cuda_products *p = context;
    for (int i = 0; i < p->count; i++)
        *workspace = p->result[i].workspaceSize > *workspace ? p->result[i].workspaceSize : *workspace;
    return !p->bias || bench->device->libraries->blas.cublasLtMatmulDescSetAttribute(
                           p->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bench->memory[TN__CUDA_B],
                           sizeof bench->memory[TN__CUDA_B]) == CUBLAS_STATUS_SUCCESS;
}

static bool run(void *context, int way, const tn__cuda_bench *bench)
{
    const tn__cuda_products *p = context;
    const tn__cuda_device *device = bench->device;
    const float one = 1, some = (float)p->beta;
    const double wide_one = 1, wide_some = p->beta;
    return device->libraries->blas.cublasLtMatmul(
               device->blas, p->operation, p->wide ? (const void *)&wide_one : &one,
               (const void *)bench->memory[TN__CUDA_B], p->layout[TN__CUDA_B], (const void *)bench->memory[TN__CUDA_A],
               p->layout[TN__CUDA_A], p->wide ? (const void *)&wide_some : &some,
               (const void *)bench->memory[TN__CUDA_OUT], p->layout[TN__CUDA_OUT], (void *)bench->memory[TN__CUDA_OUT],
               p->layout[TN__CUDA_OUT], &p->result[way].algo, (void *)bench->workspace, p->result[way].workspaceSize,
               bench->stream) == CUBLAS_STATUS_SUCCESS;
}

void tn__cuda_choose_algorithm(tn__cuda_device *device, const char *key, const tn__cuda_products *products,
                               tn__cuda_algorithm *algorithm)
{
    tn__cuda_algorithm way[TN__CUDA_ALGORITHMS];
    tn__cuda_products own = *products;
    for (int i = 0; i < products->count; i++) {
        way[i].algorithm = products->result[i].algo;
        way[i].workspace = products->result[i].workspaceSize;
    }
    tn__cuda_trial trial = {.library = "cuBLASLt",
                            .thing = "matmul",
                            .count = products->count,
                            .record = way,
                            .record_bytes = sizeof *way,
                            .operations = products->operations,
                            .worth = WORTH_OPERATIONS,
                            .dtype = products->dtype,
                            .context = &own,
                            .begin = begin,
                            .run = run};
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        trial.bytes[i] = products->bytes[i];
    tn__cuda_try(device, key, &trial, algorithm);
}
