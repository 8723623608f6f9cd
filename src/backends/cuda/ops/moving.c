/* SPDX-License-Identifier: MIT */
/* Moving operands to where a library wants them, and results from there. */
#include "backends/cuda/ops/moving.h"
#include "core/memory.h"
#include "ops/ops.h"

tn_status tn__cuda_copying_make(tn__cuda_copying *copy, tn__cuda_step *parent, tn__cuda_device *device,
                                const tn__operand *to, const tn__operand *from)
{
    tn__step *step = &copy->step;
    *step = *parent->step;
    step->op = TN__OP_COPY;
    step->operand_count = 2;
    step->output_count = 1;
    step->operand = copy->operand;
    step->operand[0] = *to;
    step->operand[1] = *from;
    step->operand[0].buffer = 0;
    step->operand[1].buffer = 1;
    copy->inner = (tn__cuda_step){.step = step, .program = parent->program, .number = parent->number,
                                  .overwrites = parent->overwrites};
    return tn__cuda_prepare_copy(&copy->inner, device);
}

tn_status tn__cuda_copying_start(const tn__cuda_copying *copy, const tn__cuda_run *run, CUdeviceptr to,
                                 CUdeviceptr from)
{
    void *const buffers[] = {(void *)to, (void *)from};
    tn__cuda_run own = *run;
    own.buffers = buffers;
    return copy->inner.start(&copy->inner, &own);
}

void tn__cuda_copying_free(tn__cuda_copying *copy, tn__cuda_device *device)
{
    if (copy->inner.module)
        tn__cuda_module_release(device, copy->inner.module);
    tn__free(copy->inner.data);
    copy->inner = (tn__cuda_step){.step = NULL};
}

tn__operand tn__cuda_dense(const tn__operand *operand)
{
    tn__operand dense = *operand;
    int64_t reach = 1;
    dense.offset = 0;
    for (int d = operand->ndim - 1; d >= 0; d--) {
        dense.stride[d] = reach;
        reach *= operand->dim[d];
    }
    return dense;
}

tn__operand tn__cuda_by_columns(const tn__operand *operand)
{
    tn__operand dense = tn__cuda_dense(operand);
    int last = operand->ndim - 1;
    dense.stride[last] = operand->dim[last - 1];
    dense.stride[last - 1] = 1;
    return dense;
}
