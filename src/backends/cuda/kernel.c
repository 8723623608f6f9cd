/* SPDX-License-Identifier: MIT */
/* Kernel steps of programs, and starting kernels of the backend's own. */
#include <limits.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

#define FEW 128           /* words of parameters that fit on the stack */
#define USUAL_SHARED (48 << 10)
#define BLOCK 256

CUdeviceptr tn__cuda_address(const tn__cuda_run *run, const tn__operand *operand)
{
    return (CUdeviceptr)run->buffers[operand->buffer] + (CUdeviceptr)(operand->offset * tn__dtypes[operand->dtype].size);
}

/* ---- a program's kernel ---- */

static tn_status start_kernel(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__step *s = step->step;
    int64_t few[FEW], *word = few;
    int words = s->operand_count + s->param_count;
    if (s->blocks <= 0)
        return TN_OK;
    if (words > FEW) {
        word = tn__alloc(words * sizeof *word);
        if (word == NULL)
            return tn__fail_memory(s->kernel, words * sizeof *word);
    }
    for (int k = 0; k < s->operand_count; k++)
        word[k] = (int64_t)run->buffers[s->operand[k].buffer];
    if (s->param_count)
        memcpy(word + s->operand_count, s->param, s->param_count * sizeof *word);
    CUdeviceptr scalars = run->device_scalars, fault = run->faults + 16 * (CUdeviceptr)step->number;
    void *params[] = {word, &scalars, &fault};
    CUresult result = run->device->driver->cuLaunchKernel(step->function, (unsigned)s->blocks, 1, 1, (unsigned)s->threads,
                                                          1, 1, (unsigned)s->shared, run->device->stream, params, NULL);
    if (word != few)
        tn__free(word);
    return tn__cuda_started(run->device, result, s->label ? s->label : s->kernel);
}

tn_status tn__cuda_prepare_kernel(tn__cuda_step *step, tn__cuda_device *device, tn__cuda_module *module)
{
    const tn__step *s = step->step;
    if (module == NULL || s->threads <= 0 || s->blocks > INT_MAX)
        return tn__fail(TN_ERR_INTERNAL, "cuda", "kernel %s has %lld blocks of %d threads%s", s->kernel,
                        (long long)s->blocks, s->threads, module ? "" : " and no text");
    step->start = start_kernel;
    tn_status status = tn__cuda_module_function(device, module, s->kernel, &step->function);
    if (status == TN_OK && s->shared > USUAL_SHARED)
        status = tn__cuda_check(device,
                                device->driver->cuFuncSetAttribute(
                                    step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, s->shared),
                                s->kernel);
    return status;
}

/* ---- the backend's own ---- */

tn_status tn__cuda_own_kernel(tn__cuda_step *step, tn__cuda_device *device, char *text, const char *name)
{
    if (text == NULL)
        return tn__fail_memory(name, 4096);
    tn_status status = tn__cuda_module_load(device, text, &step->module);
    tn__free(text);
    return status == TN_OK ? tn__cuda_module_function(device, step->module, name, &step->function) : status;
}

tn_status tn__cuda_start(tn__cuda_device *device, CUfunction function, int64_t size, void **params, const char *label)
{
    if (size <= 0)
        return TN_OK;
    int64_t blocks = (size + BLOCK - 1) / BLOCK; /* each kernel strides over what the largest grid leaves */
    CUresult result = device->driver->cuLaunchKernel(function, blocks < INT_MAX ? (unsigned)blocks : INT_MAX, 1, 1, BLOCK,
                                                     1, 1, 0, device->stream, params, NULL);
    return tn__cuda_started(device, result, label);
}

void tn__cuda_walk_make(tn__cuda_walk *walk, uint32_t mask, int ndim, const int64_t *dim, int count,
                        const int64_t *const *stride)
{
    *walk = (tn__cuda_walk){.size = 1};
    for (int i = 0; i < ndim; i++) {
        if (!(mask >> i & 1) || dim[i] == 1)
            continue;
        walk->size *= dim[i];
        int last = walk->ndim - 1;
        bool merges = last >= 0;
        for (int k = 0; k < count && merges; k++)
            merges = walk->stride[k][last] == (stride[k] ? stride[k][i] * dim[i] : 0);
        if (merges)
            walk->dim[last] *= dim[i];
        else
            walk->dim[++last] = dim[i];
        for (int k = 0; k < count; k++)
            walk->stride[k][last] = stride[k] ? stride[k][i] : 0;
        walk->ndim = last + 1;
    }
}
