/* SPDX-License-Identifier: MIT */
/* COPY and CONST: elements moved between strided windows, and windows filled. */
#include "backends/cuda/cuda.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

typedef struct move_data {
    tn__cuda_walk walk;
    size_t bytes; /* of one piece without gaps on both sides, else 0 */
} move_data;

static tn_status start_move(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    move_data *data = step->data;
    CUdeviceptr to = tn__cuda_address(run, &operand[0]), from = tn__cuda_address(run, &operand[1]);
    CUdeviceptr guard = tn__cuda_guard(step, run);
    if (data->walk.size == 0 || (to == from && data->bytes))
        return TN_OK;
    if (data->bytes)
        return tn__cuda_patching(run) ? TN_OK
                                      : tn__cuda_started(run, run->device->driver->cuMemcpyDtoDAsync(
                                                                  to, from, data->bytes, run->stream), "copy");
    void *params[] = {&data->walk, &to, &from, &guard};
    return tn__cuda_start(run, step->function, data->walk.size, params, "copy");
}

static tn_status start_fill(const tn__cuda_step *step, const tn__cuda_run *run)
{
    move_data *data = step->data;
    CUdeviceptr to = tn__cuda_address(run, &step->step->operand[0]), guard = tn__cuda_guard(step, run);
    uint64_t value[2] = {run->scalars[step->step->scalar[0]], 0}; /* a complex constant is real */
    void *params[] = {&data->walk, &to, value, &guard};
    return tn__cuda_start(run, step->function, data->walk.size, params, "const");
}

tn_status tn__cuda_prepare_move(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    const tn__operand *to = &s->operand[0], *from = &s->operand[1];
    bool constant = s->op == TN__CUDA_OP_CONST;
    if (constant && s->scalar_count < 1)
        return tn__fail(TN_ERR_INTERNAL, "const", "a step names no scalar");
    tn_dtype dtype = constant ? step->program->scalar_dtype[s->scalar[0]] : from->dtype;
    if (dtype != to->dtype)
        return tn__fail(TN_ERR_INTERNAL, constant ? "const" : "copy", "a step moves %s to %s", tn_dtype_name(dtype),
                        tn_dtype_name(to->dtype));
    move_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("copy", sizeof *data);
    step->data = data;
    step->start = constant ? start_fill : start_move;
    tn__cuda_walk_make(&data->walk, ~0u, to->ndim, to->dim, 2,
                       (const int64_t *const[]){to->stride, constant ? NULL : from->stride});
    size_t itemsize = tn__dtypes[dtype].size;
    const tn__cuda_walk *walk = &data->walk;
    if (constant)
        return tn__cuda_own_kernel(step, device, tn__cuda_text_fill(itemsize), "fill");
    /* a copy by the driver would overwrite after a failure, too */
    bool plain = walk->ndim == 0 || (walk->ndim == 1 && walk->stride[0][0] == 1 && walk->stride[1][0] == 1);
    if (plain && !step->overwrites) {
        data->bytes = walk->size * itemsize;
        step->opaque = true;
        return TN_OK;
    }
    return tn__cuda_own_kernel(step, device, tn__cuda_text_move(itemsize), "move");
}
