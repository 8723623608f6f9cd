/* SPDX-License-Identifier: MIT */
/*
 * Singular values and eigenvalues of many small matrices: one kernel for all of them, by Jacobi's methods
 * (jacobi.cuh), which reads operands and writes results where they lie. Nothing here needs cuSOLVER.
 */
#include <limits.h>

#include "backends/cuda/linalg/library.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

enum { LEAST_EXTENT = 4, WARP = 32, BLOCK = 256 };

/* A kernel parameter, as jacobi.cuh declares it. */
typedef struct job {
    CUdeviceptr to, from;
    long long row, column, to_step, each;
    int m, n, vectors, adjoint;
} job;

typedef struct jacobi_data {
    tn__cuda_walk walk; /* over matrices */
    job job;
    int threads, matrices; /* threads, and matrices, of a block; the same as in the kernel's text */
} jacobi_data;

/* The smallest power of two, of those that kernels are made for, that is at least n. */
static int rounded(long long n)
{
    int extent = LEAST_EXTENT;
    while (extent < n)
        extent *= 2;
    return extent;
}

static int threads_for(int columns) { return columns < TN__CUDA_SMALL_MATRIX ? WARP : BLOCK; }
static int parts_of(tn_dtype dtype) { return dtype == TN_COMPLEX128 ? 2 : 1; }

char *tn__cuda_text_jacobi(tn_dtype dtype, int op, int rows, int columns)
{
    return tn__format("#define PARTS %d\n#define ROWS %d\n#define COLUMNS %d\n#define THREADS %d\n%s%s%s%s",
                      parts_of(dtype), rows, columns, threads_for(columns), tn__cuda_walk_text, tn__cuda_failure_text,
                      (const char *)tn__embed_cuda_jacobi,
                      (const char *)(op == TN__OP_SVD ? tn__embed_cuda_jacobi_svd : tn__embed_cuda_jacobi_eigh));
}

static tn_status start_jacobi(const tn__cuda_step *step, const tn__cuda_run *run)
{
    jacobi_data *data = step->data;
    job j = data->job;
    if (data->walk.size == 0 || j.each == 0)
        return TN_OK;
    j.to = tn__cuda_address(run, &step->step->operand[0]);
    j.from = tn__cuda_address(run, &step->step->operand[1]);
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    long long blocks = (data->walk.size + data->matrices - 1) / data->matrices;
    void *params[] = {&data->walk, &j, &failure};
    return tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, data->matrices * data->threads, 0,
                           params, "linalg");
}

bool tn__cuda_jacobi_takes(const tn__step *step)
{
    const tn__operand *a = &step->operand[1];
    return (step->op == TN__OP_SVD || step->op == TN__OP_EIGH) && a->ndim >= 2 &&
           a->dim[a->ndim - 2] <= TN__CUDA_SMALL_MATRIX && a->dim[a->ndim - 1] <= TN__CUDA_SMALL_MATRIX;
}

tn_status tn__cuda_prepare_jacobi(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    const tn__operand *to = &s->operand[0], *a = &s->operand[1];
    int last = a->ndim - 1;
    bool values = s->op == TN__OP_SVD;
    if (a->dtype != to->dtype || (a->dtype != TN_FLOAT64 && a->dtype != TN_COMPLEX128))
        return tn__fail(TN_ERR_INTERNAL, "linalg", "a step that is computed in float64 or complex128 only");
    jacobi_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("linalg", sizeof *data);
    step->data = data;
    step->start = start_jacobi;
    tn__cuda_walk_make(&data->walk, (1u << (last - 1)) - 1, a->ndim, a->dim, 2,
                       (const int64_t *const[]){to->stride, a->stride});
    /* the higher of a matrix and its adjoint; of a Hermitian one, that whose lower triangle is the one that counts */
    long long m = a->dim[last - 1], n = a->dim[last];
    bool adjoint = values ? m < n : s->param[1] != 0;
    data->job = (job){.row = a->stride[adjoint ? last : last - 1],
                      .column = a->stride[adjoint ? last - 1 : last],
                      .to_step = to->stride[last],
                      .each = to->dim[last],
                      .m = (int)(adjoint ? n : m),
                      .n = (int)(adjoint ? m : n),
                      .vectors = (int)s->param[0],
                      .adjoint = adjoint};
    int columns = rounded(data->job.n), rows = values ? rounded(data->job.m) : columns;
    data->threads = threads_for(columns);
    data->matrices = data->threads == WARP ? 4 / parts_of(a->dtype) : 1;
    return tn__cuda_own_kernel(step, device, tn__cuda_text_jacobi(a->dtype, s->op, rows, columns),
                               values ? "svd" : "eigh");
}
