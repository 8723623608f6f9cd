/* SPDX-License-Identifier: MIT */
/* Which matrices a GPU factors, solves and decomposes itself; the others are done sooner on the CPU. */
#include "backends/cuda/linalg/library.h"

#include "core/shape.h"
#include "ops/ops.h"

/* Operations on matrices, and the work of one from which on a library is sooner done than the CPU: that of so many rows
 * and columns. Measured on an H200 beside 16 cores, with the way there and back: singular values are ahead of few cores
 * at 256, of 16 from 500 on. */
static const struct {
    int op;
    bool any_number; /* has kernels for any number of matrices of at most TN__CUDA_SMALL_MATRIX rows and columns */
    double least;
} matrices[] = {{TN__OP_CHOLESKY, true, 128}, {TN__OP_SOLVE, true, 128}, {TN__OP_SLOGDET, true, 128},
                {TN__OP_QR, false, 128},      {TN__OP_SVD, true, 256},   {TN__OP_EIGH, true, 128}};

#define COUNT (sizeof matrices / sizeof *matrices)

bool tn__cuda_is_small(int op, const tn__shape *shape)
{
    for (size_t i = 0; i < COUNT; i++)
        if (matrices[i].op == op)
            return matrices[i].any_number && shape->dim[shape->ndim - 2] <= TN__CUDA_SMALL_MATRIX &&
                   shape->dim[shape->ndim - 1] <= TN__CUDA_SMALL_MATRIX;
    return false;
}

/* A library goes from matrix to matrix, so that many small ones are not worth it. */
bool tn__cuda_library_pays(int op, const tn__shape *shape)
{
    for (size_t i = 0; i < COUNT; i++)
        if (matrices[i].op == op) {
            int64_t m = shape->dim[shape->ndim - 2], n = shape->dim[shape->ndim - 1];
            double least = matrices[i].least, work = (double)m * (double)n * (double)(m < n ? m : n); /* of one */
            return work >= least * least * least && (shape->size / (m * n) <= 16 || work >= 512. * 512 * 512);
        }
    return true;
}
