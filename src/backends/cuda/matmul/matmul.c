/* SPDX-License-Identifier: MIT */
/* Matrix products: what a step describes, and the kernel for what the library does not take. */
#include "backends/cuda/matmul/matmul.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

void tn__cuda_product_of(const tn__step *step, tn__cuda_product *product)
{
    const tn__operand *operand = step->operand;
    int axes = operand[0].ndim;
    const int64_t *stride[TN__CUDA_FACTORS];
    for (int i = 0; i < TN__CUDA_FACTORS; i++) {
        stride[i] = operand[i].stride;
        product->step[i].row = stride[i][axes - 2];
        product->step[i].column = stride[i][axes - 1];
    }
    product->m = operand[TN__CUDA_OUT].dim[axes - 2];
    product->n = operand[TN__CUDA_OUT].dim[axes - 1];
    product->k = operand[TN__CUDA_A].dim[axes - 1];
    tn__cuda_walk_make(&product->batch, ~0u, axes - 2, operand[0].dim, TN__CUDA_FACTORS, stride);
}

tn__cuda_factor tn__cuda_alpha(const tn__cuda_step *step, const uint64_t *scalars)
{
    int slot = step->step->product.alpha;
    bool negative = step->step->product.negate_alpha;
    tn_dtype work = tn__dtypes[step->step->compute].compute;
    tn__cuda_factor factor = {.bits = slot < 0 ? 1 : scalars[slot]};
    if (work == TN_FLOAT32 || work == TN_FLOAT64) {
        double value = 1;
        if (slot >= 0)
            value = tn__scalar_to_double((tn__scalar){.bits = scalars[slot]}, step->program->scalar_dtype[slot]);
        if (negative)
            value = -value;
        if (work == TN_FLOAT64)
            factor.f64 = value;
        else
            factor = (tn__cuda_factor){.f32 = (float)value};
    } else if (negative) {
        factor.bits = -factor.bits; /* the low bytes are the negative in a narrower dtype, too */
    }
    return factor;
}

/* ---- what comes behind a product ---- */

CUdeviceptr tn__cuda_bias(const tn__cuda_step *step, const tn__cuda_run *run)
{
    return tn__cuda_address(run, &step->step->operand[TN__CUDA_BIAS]);
}

tn_status tn__cuda_start_epilogue(const tn__cuda_step *step, const tn__cuda_run *run, const tn__cuda_product *product,
                                  CUfunction function)
{
    enum { EACH = 4 }; /* elements of a thread */
    tn__cuda_product p = *product;
    CUdeviceptr out = tn__cuda_address(run, &step->step->operand[TN__CUDA_OUT]), bias = tn__cuda_bias(step, run);
    void *params[] = {&out, &bias, &p.m, &p.n, &p.step[TN__CUDA_OUT].row, &p.step[TN__CUDA_OUT].column};
    return tn__cuda_start(run, function, (p.m * p.n + EACH - 1) / EACH, params, "matmul");
}

/* ---- by the backend's own kernel ---- */

typedef struct own_data {
    tn__cuda_product product;
    CUfunction epilogue;
} own_data;

static tn_status start_own(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    own_data *data = step->data;
    tn__cuda_product *p = &data->product;
    tn__cuda_factor alpha = tn__cuda_alpha(step, run->scalars);
    int beta = step->step->product.beta;
    CUdeviceptr out = tn__cuda_address(run, &operand[TN__CUDA_OUT]), a = tn__cuda_address(run, &operand[TN__CUDA_A]),
                b = tn__cuda_address(run, &operand[TN__CUDA_B]);
    CUdeviceptr guard = tn__cuda_guard(step, run);
    void *params[] = {&p->batch, &out, &a, &b, &p->m, &p->n, &p->k, &p->step[TN__CUDA_OUT].row,
                      &p->step[TN__CUDA_OUT].column, &p->step[TN__CUDA_A].row, &p->step[TN__CUDA_A].column,
                      &p->step[TN__CUDA_B].row, &p->step[TN__CUDA_B].column, &alpha, &beta, &guard};
    tn_status status = tn__cuda_start(run, step->function, p->batch.size * p->m * p->n, params, "matmul");
    if (status == TN_OK && step->step->product.bias)
        status = tn__cuda_start_epilogue(step, run, p, data->epilogue);
    return status;
}

static tn_status prepare_own(tn__cuda_step *step, tn__cuda_device *device)
{
    own_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("matmul", sizeof *data);
    tn__cuda_product_of(step->step, &data->product);
    step->data = data;
    step->start = start_own;
    tn_status status =
        tn__cuda_own_kernel(step, device, tn__cuda_text_matmul(step->step->operand[0].dtype), "matmul");
    if (status == TN_OK && step->step->product.bias)
        status = tn__cuda_module_function(device, step->module, "epilogue", &data->epilogue);
    return status;
}

/* Is the step's bias of a form that tn__step allows? */
static bool bias_fits(const tn__cuda_step *s)
{
    const tn__step *step = s->step;
    const tn__operand *out = &step->operand[TN__CUDA_OUT], *bias = &step->operand[TN__CUDA_BIAS];
    const tn__product_step *product = &step->product;
    if (out->dtype != TN_FLOAT32 || out->ndim != 2 || product->alpha >= 0 || product->negate_alpha || product->beta ||
        s->overwrites)
        return false;
    return step->operand_count > TN__CUDA_BIAS && bias->dtype == TN_FLOAT32 && bias->ndim == 1 &&
           bias->dim[0] == out->dim[1] && bias->stride[0] == 1;
}

static tn_status check(const tn__cuda_step *s)
{
    const tn__step *step = s->step;
    const tn__operand *out = &step->operand[TN__CUDA_OUT], *a = &step->operand[TN__CUDA_A],
                      *b = &step->operand[TN__CUDA_B];
    int n = out->ndim;
    if (n < 2 || a->dim[n - 2] != out->dim[n - 2] || b->dim[n - 1] != out->dim[n - 1] || a->dim[n - 1] != b->dim[n - 2])
        return tn__fail(TN_ERR_INTERNAL, "matmul", "the extents of a step's operands do not fit each other");
    if (a->dtype != out->dtype || b->dtype != out->dtype)
        return tn__fail(TN_ERR_INTERNAL, "matmul", "a step multiplies %s by %s into %s", tn_dtype_name(a->dtype),
                        tn_dtype_name(b->dtype), tn_dtype_name(out->dtype));
    if (step->product.bias && !bias_fits(s))
        return tn__fail(TN_ERR_INTERNAL, "matmul", "a step's bias does not fit its product");
    if (tn_dtype_is_complex(out->dtype)) /* complex products have been made of real ones (array/complex.c) */
        return tn__fail(TN_ERR_UNSUPPORTED, "matmul", "cannot be computed in %s on a GPU", tn_dtype_name(out->dtype));
    return TN_OK;
}

bool tn__cuda_matmul_is_own(const tn__cuda_step *step, const tn__cuda_device *device)
{
    return check(step) == TN_OK && (tn__cuda_matmul_is_tall(step, device) || tn__cuda_matmul_is_tiny(step, device));
}

tn_status tn__cuda_prepare_matmul(tn__cuda_step *step, tn__cuda_device *device)
{
    tn_status status = check(step);
    if (status == TN_OK)
        status = tn__cuda_prepare_matmul_split(step, device);
    if (status == TN_OK && step->start == NULL)
        status = tn__cuda_prepare_matmul_tall(step, device);
    if (status == TN_OK && step->start == NULL)
        status = tn__cuda_prepare_matmul_tiny(step, device);
    if (status == TN_OK && step->start == NULL)
        status = tn__cuda_prepare_matmul_library(step, device);
    return status == TN_OK && step->start == NULL ? prepare_own(step, device) : status;
}
