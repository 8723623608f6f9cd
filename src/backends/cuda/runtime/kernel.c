/* SPDX-License-Identifier: MIT */
/* Launching kernels: those of programs' steps, and the backend's own. */
#include <limits.h>
#include <string.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

#define FEW 512 /* words of kernel parameters, for which a stack array is enough: as many as a kernel can take by
                   value, so that no run has to allocate memory halfway */
#define OWN_SHARED   (8 << 10)               /* most bytes of static shared memory in a kernel's text: see
                                                cuda_helpers.cuh */
#define USUAL_SHARED ((48 << 10) - OWN_SHARED) /* bytes of dynamic shared memory that need no opt-in */
#define REGISTERS    (64 << 10)              /* registers of a multiprocessor */
#define BLOCK 256

/* Newer headers have an argument for the kinds of edges. */
#if CUDA_VERSION >= 13000
#define NO_EDGES NULL,
#else
#define NO_EDGES
#endif

CUdeviceptr tn__cuda_address(const tn__cuda_run *run, const tn__operand *operand)
{
    return (CUdeviceptr)run->buffers[operand->buffer] +
           (CUdeviceptr)(operand->offset * tn__dtypes[operand->dtype].size);
}

/* ---- launching ---- */

static bool room_for_node(tn__cuda_recording *recording)
{
    return tn__grow((void **)&recording->node, &recording->capacity, recording->count + 1, sizeof *recording->node);
}

/* Adds edges along which a kernel may start early (programmatic dependent launch). */
static CUresult add_early_edges(const tn__cuda_graphs *api, const tn__cuda_recording *recording, CUgraphNode node)
{
    CUresult result = CUDA_SUCCESS;
#if CUDA_VERSION >= 13000
    CUgraphEdgeData early = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                             .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    for (size_t i = 0; i < recording->waits && result == CUDA_SUCCESS; i++)
        result = api->cuGraphAddDependencies(recording->made, &recording->wait[i], &node, &early, 1);
#else
    for (size_t i = 0; i < recording->waits && result == CUDA_SUCCESS; i++)
        result = api->cuGraphAddDependencies(recording->made, &recording->wait[i], &node, 1);
#endif
    return result;
}

/* Adds a node after those it waits for; the next node of the same step waits for this one. */
static CUresult add_node(const tn__cuda_run *run, const CUDA_KERNEL_NODE_PARAMS *params)
{
    tn__cuda_recording *recording = run->recording;
    const tn__cuda_graphs *api = &run->device->libraries->graphs;
    CUgraphNode node;
    if (!room_for_node(recording))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = api->cuGraphAddKernelNode(&node, recording->made, recording->wait,
                                                recording->early ? 0 : recording->waits, params);
    if (result == CUDA_SUCCESS && recording->early)
        result = add_early_edges(api, recording, node);
    if (result != CUDA_SUCCESS)
        return result;
    recording->node[recording->count++] = recording->wait[0] = node;
    recording->waits = 1;
    return CUDA_SUCCESS;
}

/* Notes the node of a launch that has just been captured. */
static CUresult note_node(const tn__cuda_run *run)
{
    tn__cuda_recording *recording = run->recording;
    CUstreamCaptureStatus status;
    const CUgraphNode *last = NULL;
    size_t count = 0;
    CUresult result =
        run->device->libraries->graphs.cuStreamGetCaptureInfo(run->stream, &status, NULL, NULL, &last, NO_EDGES &count);
    if (result != CUDA_SUCCESS)
        return result;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1 || !room_for_node(recording))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    recording->node[recording->count++] = last[0];
    return CUDA_SUCCESS;
}

tn_status tn__cuda_launch(const tn__cuda_run *run, CUfunction function, int64_t blocks, int threads, int shared,
                          void **params, const char *label)
{
    tn__cuda_device *device = run->device;
    tn__cuda_recording *recording = run->recording;
    if (recording && (recording->patched || recording->made)) {
        CUDA_KERNEL_NODE_PARAMS node = {.func = function, .gridDimX = (unsigned)blocks, .gridDimY = 1, .gridDimZ = 1,
                                        .blockDimX = (unsigned)threads, .blockDimY = 1, .blockDimZ = 1,
                                        .sharedMemBytes = (unsigned)shared, .kernelParams = params};
        CUresult result = recording->patched
                              ? device->libraries->graphs.cuGraphExecKernelNodeSetParams(
                                    recording->patched, recording->node[recording->next++], &node)
                              : add_node(run, &node);
        return tn__cuda_check(device, result, label);
    }
    CUresult result = device->driver->cuLaunchKernel(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1,
                                                     (unsigned)shared, run->stream, params, NULL);
    if (recording && result == CUDA_SUCCESS)
        return tn__cuda_check(device, note_node(run), label);
    return tn__cuda_started(run, result, label);
}

/* ---- a program's kernel ---- */

/* Fills the parameter block: pointers, the step's words, its scalars. */
static void fill(const tn__step *s, const tn__cuda_run *run, uint64_t *word)
{
    for (int k = 0; k < s->operand_count; k++)
        *word++ = (uint64_t)run->buffers[s->operand[k].buffer];
    if (s->param_count)
        memcpy(word, s->param, s->param_count * sizeof *word);
    word += s->param_count;
    for (int i = 0; i < s->scalar_count; i++)
        *word++ = run->scalars[s->scalar[i]];
}

static tn_status start_kernel(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__step *s = step->step;
    uint64_t few[FEW], *word = few;
    int words = s->operand_count + s->param_count + s->scalar_count;
    const tn__kernel_launch *launch = &s->kernel.launch;
    if (launch->blocks <= 0)
        return TN_OK;
    if (words > FEW) {
        word = tn__alloc(words * sizeof *word);
        if (word == NULL)
            return tn__fail_memory(s->kernel.name, words * sizeof *word);
    }
    fill(s, run, word);
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    void *params[] = {word, &failure};
    tn_status status = tn__cuda_launch(run, step->function, launch->blocks, launch->threads, step->shared, params,
                                       s->label ? s->label : s->kernel.name);
    if (word != few)
        tn__free(word);
    return status;
}

/* If the registers allow more than `spread` blocks on a multiprocessor, a block is made to ask for so much shared
 * memory that no more than these fit. */
static tn_status spread(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    int blocks = s->kernel.launch.spread + 1, registers = 0;
    int most = (int)((device->owner->capabilities.shared_memory + (1 << 10)) / (size_t)blocks);
    CUresult result = device->driver->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, step->function);
    if ((registers + 7) / 8 * 8 * s->kernel.launch.threads * blocks <= REGISTERS && step->shared < most)
        step->shared = most;
    return tn__cuda_check(device, result, s->kernel.name);
}

/* Kernels share a multiprocessor only if both want the same division of its memory into cache and shared memory. */
static tn_status share_alike(const tn__cuda_step *step, tn__cuda_device *device)
{
    bool any = false;
    const tn__step *other = step->program->step;
    for (int i = 0; i < step->program->step_count; i++)
        any = any || (other[i].kind == TN__STEP_KERNEL && other[i].kernel.launch.spread);
    return !any ? TN_OK
                : tn__cuda_check(device,
                                 device->driver->cuFuncSetAttribute(step->function,
                                                                    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                                                    CU_SHAREDMEM_CARVEOUT_MAX_SHARED),
                                 step->step->kernel.name);
}

tn_status tn__cuda_prepare_kernel(tn__cuda_step *step, tn__cuda_device *device, tn__cuda_module *module)
{
    const tn__step *s = step->step;
    const tn__kernel_launch *launch = &s->kernel.launch;
    if (module == NULL || launch->threads <= 0 || launch->blocks > INT_MAX)
        return tn__fail(TN_ERR_INTERNAL, "cuda", "kernel %s has %lld blocks of %d threads%s", s->kernel.name,
                        (long long)launch->blocks, launch->threads, module ? "" : " and no text");
    step->start = start_kernel;
    step->shared = launch->shared;
    tn_status status = tn__cuda_module_function(device, module, s->kernel.name, &step->function);
    if (status == TN_OK && launch->spread)
        status = spread(step, device);
    if (status == TN_OK)
        status = share_alike(step, device);
    /* Opts in to all the shared memory there is: a step of another program with the same text may need more than this
     * one. */
    if (status == TN_OK && step->shared > USUAL_SHARED)
        status = tn__cuda_check(device,
                                device->driver->cuFuncSetAttribute(
                                    step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)device->owner->capabilities.shared_memory - OWN_SHARED),
                                s->kernel.name);
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

tn_status tn__cuda_start(const tn__cuda_run *run, CUfunction function, int64_t size, void **params, const char *label)
{
    if (size <= 0)
        return TN_OK;
    int64_t blocks = (size + BLOCK - 1) / BLOCK; /* each kernel loops over the elements beyond the largest grid */
    return tn__cuda_launch(run, function, blocks < INT_MAX ? blocks : INT_MAX, BLOCK, 0, params, label);
}

tn_status tn__cuda_factors(const tn__cuda_step *step, const tn__cuda_run *run, const void *alpha, const void *beta,
                           size_t bytes, CUdeviceptr *factors)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    uint64_t word[3] = {0};
    memcpy(&word[0], alpha, bytes);
    memcpy(&word[1], beta, bytes);
    memcpy(&word[2], bytes == sizeof one_f32 ? (const void *)&one_f32 : (const void *)&one_f64, bytes);
    *factors = run->factors + 16 * (CUdeviceptr)step->number;
    CUdeviceptr guard = tn__cuda_guard(step, run);
    int wide = bytes == sizeof one_f64;
    void *params[] = {factors, &word[0], &word[1], &word[2], &wide, &guard};
    return tn__cuda_launch(run, step->function, 1, 1, 0, params, "factors");
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
