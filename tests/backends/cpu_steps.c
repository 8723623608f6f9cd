/* SPDX-License-Identifier: MIT */
/* Programs of one step for tests of the CPU backend. */
#include "cpu_steps.h"

#include <stdio.h>
#include <string.h>

#include "core/shape.h"
#include "ops/ops.h"
#include "support/random.h"

extern const tn__backend tn__backend_cpu;

one_step step_of(int op, tn_dtype compute)
{
    one_step step;
    memset(&step, 0, sizeof(step));
    step.step.kind = op == TN__OP_MATMUL ? TN__STEP_PRODUCT : TN__STEP_OP;
    step.step.op = op;
    step.step.compute = compute;
    step.step.output_count = 1;
    if (step.step.kind == TN__STEP_PRODUCT)
        step.step.product.alpha = -1;
    step.source = "";
    return step;
}

void step_operand(one_step *step, void *memory, tn_dtype dtype, int ndim, const int64_t *dim, const int64_t *stride,
                  int64_t offset)
{
    int k = step->step.operand_count++;
    tn__operand *operand = &step->operand[k];
    *operand = (tn__operand){.buffer = k, .dtype = dtype, .ndim = ndim, .offset = offset};
    if (ndim)
        memcpy(operand->dim, dim, ndim * sizeof(*dim));
    if (stride)
        memcpy(operand->stride, stride, ndim * sizeof(*stride));
    else
        tn__strides_contiguous(ndim, operand->dim, operand->stride);
    step->memory[k] = memory;
}

void step_scalar(one_step *step, tn_dtype dtype, uint64_t bits)
{
    int k = step->step.scalar_count++;
    step->scalar[k] = k;
    step->value[k] = bits;
    step->value_dtype[k] = dtype;
}

tn__device *step_device(void)
{
    static tn__device device;
    if (device.ops == NULL && tn__backend_cpu.open(0, &device) != TN_OK)
        return NULL;
    return &device;
}

tn_status step_run(one_step *step)
{
    tn__device *device = step_device();
    tn__buffer buffer[STEP_OPERANDS] = {{.kind = TN__BUFFER_INPUT}};
    step->step.operand = step->operand;
    step->step.scalar = step->scalar;
    tn__program program = {.buffer_count = step->step.operand_count,
                           .buffer = buffer,
                           .scalar_count = step->step.scalar_count,
                           .scalar_dtype = step->value_dtype,
                           .step_count = 1,
                           .step = &step->step,
                           .source = (char *)step->source};
    tn__executable *executable = NULL;
    tn_status status = device->ops->load(device, &program, &executable);
    if (status == TN_OK)
        status = device->ops->run(executable, step->memory, step->value);
    device->ops->unload(executable);
    return status;
}

uint64_t step_random(void)
{
    static test_random numbers;
    static bool begun;
    if (!begun)
        numbers = test_random_new();
    begun = true;
    return test_random_bits(&numbers);
}

int64_t step_between(int64_t low, int64_t high)
{
    return low + (int64_t)(step_random() % (uint64_t)(high - low + 1));
}

double step_uniform(double low, double high)
{
    return low + (high - low) * (double)(step_random() >> 11) * 0x1p-53;
}
