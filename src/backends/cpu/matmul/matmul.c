/* SPDX-License-Identifier: MIT */
/* Matrix products: what a step describes, and which way it is computed. */
#include "backends/cpu/matmul/matmul.h"

#include "core/dtype.h"
#include "core/error.h"

void tn__matmul_describe(const tn__cpu_step *step, tn__matmul *matmul)
{
    const tn__operand *operand = step->step->operand;
    int axes = operand[0].ndim, batch_axes = axes - 2;
    const int64_t *stride[TN__MATMUL_OPERANDS];
    int64_t itemsize[TN__MATMUL_OPERANDS];
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++) {
        stride[k] = operand[k].stride;
        itemsize[k] = tn__dtypes[operand[k].dtype].size;
        matmul->step[k].row = stride[k][axes - 2] * itemsize[k];
        matmul->step[k].column = stride[k][axes - 1] * itemsize[k];
    }
    matmul->m = operand[TN__MATMUL_OUT].dim[axes - 2];
    matmul->n = operand[TN__MATMUL_OUT].dim[axes - 1];
    matmul->k = operand[TN__MATMUL_A].dim[axes - 1];
    matmul->work = tn__dtypes[step->step->compute].compute;
    matmul->beta = step->step->product.beta != 0;
    tn__cpu_space_make(&matmul->batch, ~0u, batch_axes, operand[0].dim, TN__MATMUL_OPERANDS, stride, itemsize);
}

static void negate(tn__matmul_factor *factor, tn_dtype work)
{
    if (work == TN_FLOAT32)
        factor->f32 = -factor->f32;
    else if (work == TN_FLOAT64)
        factor->f64 = -factor->f64;
    else
        factor->i64 = -factor->i64;
}

tn__matmul_factor tn__matmul_alpha(const tn__cpu_step *step, const uint64_t *scalars)
{
    tn__matmul_factor factor = {.i64 = 0};
    tn_dtype work = tn__dtypes[step->step->compute].compute;
    int slot = step->step->product.alpha;
    uint64_t one = 1, value = slot < 0 ? one : scalars[slot];
    tn_dtype from = slot < 0 ? TN_UINT64 : step->program->scalar_dtype[slot];
    tn__cpu_cast_of(work, from)((char *)&factor, 0, (const char *)&value, 0, 1);
    if (step->step->product.negate_alpha)
        negate(&factor, work);
    return factor;
}

static tn_status check(const tn__step *step)
{
    const tn__operand *out = &step->operand[TN__MATMUL_OUT], *a = &step->operand[TN__MATMUL_A],
                      *b = &step->operand[TN__MATMUL_B];
    int n = out->ndim;
    if (n < 2 || a->dim[n - 2] != out->dim[n - 2] || b->dim[n - 1] != out->dim[n - 1] || a->dim[n - 1] != b->dim[n - 2])
        return tn__fail(TN_ERR_INTERNAL, "matmul", "the extents of a step's operands do not fit each other");
    return TN_OK;
}

tn_status tn__cpu_prepare_matmul(tn__cpu_step *step)
{
    tn_status status = check(step->step);
    return status == TN_OK ? tn__matmul_prepare_library(step) : status;
}
