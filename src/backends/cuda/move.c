/* SPDX-License-Identifier: MIT */
/* COPY, CONST and SCATTER_ADD: elements moved between strided windows, and added to them. */
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

/* ---- moving ---- */

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

/* ---- adding at positions ---- */

typedef struct scatter_data {
    tn__cuda_walk walk; /* over all axes but the indexed one: output, positions, terms */
    long long count, extent, step[3];
    CUfunction check;   /* of positions, before anything is overwritten */
    tn__cuda_step base; /* of copying the base to the output */
} scatter_data;

static tn_status start_scatter(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    scatter_data *data = step->data;
    CUdeviceptr to = tn__cuda_address(run, &operand[0]), base = tn__cuda_address(run, &operand[1]);
    CUdeviceptr index = tn__cuda_address(run, &operand[2]), from = tn__cuda_address(run, &operand[3]);
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    tn__cuda_run guarded = *run;
    tn_status status = TN_OK;
    if (step->overwrites && data->count) {
        void *params[] = {&data->walk, &index, &data->count, &data->extent, &data->step[1], &failure};
        status = tn__cuda_start(run, data->check, data->walk.size, params, "scatter_add");
        guarded.failure.guard = failure.guard = failure.latch;
    }
    bool in_place = to == base && memcmp(operand[0].stride, operand[1].stride,
                                         operand[0].ndim * sizeof *operand[0].stride) == 0;
    if (status == TN_OK && !in_place)
        status = data->base.start(&data->base, &guarded);
    if (status != TN_OK || data->count == 0)
        return status;
    void *params[] = {&data->walk, &to,  &index, &from, &data->count, &data->extent, &data->step[0], &data->step[1],
                      &data->step[2], &failure};
    return tn__cuda_start(run, step->function, data->walk.size, params, "scatter_add");
}

static void free_scatter(const tn__cuda_step *step, tn__cuda_device *device)
{
    scatter_data *data = step->data;
    tn__cuda_module_release(device, data->base.module);
    tn__free(data->base.data);
}

tn_status tn__cuda_prepare_scatter(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    const tn__operand *out = &s->operand[0], *index = &s->operand[2], *from = &s->operand[3];
    if (index->dtype != TN_INT64 || s->axes == 0 || s->axes >> out->ndim != 0 || from->dtype != out->dtype)
        return tn__fail(TN_ERR_INTERNAL, "scatter_add",
                        "a step needs int64 positions along one of %d axes, and has %s, axes 0x%x", out->ndim,
                        tn_dtype_name(index->dtype), (unsigned)s->axes);
    scatter_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("scatter_add", sizeof *data);
    step->data = data;
    step->free = free_scatter;
    step->start = start_scatter;
    int axis = __builtin_ctz(s->axes);
    tn__cuda_walk_make(&data->walk, ~s->axes, index->ndim, index->dim, 3,
                       (const int64_t *const[]){out->stride, index->stride, from->stride});
    data->count = index->dim[axis];
    data->extent = out->dim[axis];
    data->step[0] = out->stride[axis];
    data->step[1] = index->stride[axis];
    data->step[2] = from->stride[axis];
    step->may_fail = true;
    step->opaque = true; /* in place or not, it starts this or that */
    step->fault_extent = data->extent;
    data->base = (tn__cuda_step){.step = s, .program = step->program, .number = step->number,
                                 .overwrites = step->overwrites};
    tn_status status = tn__cuda_prepare_move(&data->base, device);
    if (status == TN_OK)
        status = tn__cuda_own_kernel(step, device, tn__cuda_text_scatter(out->dtype), "scatter_add");
    return status == TN_OK ? tn__cuda_module_function(device, step->module, "check", &data->check) : status;
}
