/* SPDX-License-Identifier: MIT */
/*
 * Loaded programs: their kernels, their run-time scalars on the device, and the records of faults.
 *
 * Scalars are copied when they have changed, from pinned memory, which must stay as it is until the copy is done: a ring of
 * slots, each with an event, lets the host run ahead of the device.
 */
#include <string.h>

#include "backends/cuda/backend.h"
#include "core/error.h"
#include "core/memory.h"

#define RING 8 /* runs that may change the scalars before the host waits */
#define RECORD (2 * sizeof(int64_t))

struct tn__executable {
    tn__cuda_device *device;
    const tn__program *program;
    tn__cuda_module *module;   /* NULL: no kernels */
    CUdeviceptr memory;        /* the scalars, then the records; 0: neither */
    CUdeviceptr faults;
    size_t scalar_bytes, fault_bytes;
    char *pinned;              /* RING slots of scalars, then the host's copy of the records */
    CUevent copied[RING];
    int slot;                  /* the one last copied from, -1: none */
    int step_count;
    tn__cuda_step step[];
};

/* ---- loading ---- */

static const struct {
    int op;
    tn_status (*prepare)(tn__cuda_step *step, tn__cuda_device *device);
} operations[] = {
    {TN__CUDA_OP_COPY, tn__cuda_prepare_move},
    {TN__CUDA_OP_CONST, tn__cuda_prepare_move},
    {TN__CUDA_OP_SCATTER_ADD, tn__cuda_prepare_scatter},
    {TN__CUDA_OP_MATMUL, tn__cuda_prepare_matmul},
};

bool tn__cuda_supports(tn__device *device, int op, tn_dtype dtype)
{
    (void)device;
    if (op == TN__CUDA_OP_SCATTER_ADD && dtype == TN_BOOL) /* which nothing adds */
        return false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].op == op)
            return true;
    return false;
}

static tn_status prepare_step(tn__executable *executable, tn__cuda_step *step)
{
    if (step->step->kind == TN__STEP_KERNEL)
        return tn__cuda_prepare_kernel(step, executable->device, executable->module);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].op == step->step->op)
            return operations[i].prepare(step, executable->device);
    return tn__fail(TN_ERR_INTERNAL, "cuda", "operation %d cannot be a step of its own on a GPU", step->step->op);
}

/* Memory for scalars and records, and the ring. */
static tn_status make_memory(tn__executable *executable)
{
    tn__cuda_device *device = executable->device;
    const tn__cuda_driver *driver = device->driver;
    executable->scalar_bytes = executable->program->scalar_count * sizeof(uint64_t);
    executable->fault_bytes = executable->step_count * RECORD;
    if (executable->step_count == 0)
        return TN_OK;
    size_t bytes = executable->scalar_bytes + executable->fault_bytes;
    size_t pinned = RING * executable->scalar_bytes + executable->fault_bytes;
    tn_status status = tn__cuda_check(device, driver->cuMemAlloc(&executable->memory, bytes), "load");
    executable->faults = executable->memory + executable->scalar_bytes;
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuMemAllocHost((void **)&executable->pinned, pinned), "load");
    if (status == TN_OK)
        status = tn__cuda_check(
            device, driver->cuMemsetD8Async(executable->faults, 0, executable->fault_bytes, device->stream), "load");
    for (int i = 0; i < RING && executable->scalar_bytes && status == TN_OK; i++)
        status = tn__cuda_check(device, driver->cuEventCreate(&executable->copied[i], CU_EVENT_DISABLE_TIMING), "load");
    return status;
}

static bool overwrites(const tn__program *program, const tn__step *step)
{
    for (int k = 0; k < step->output_count; k++)
        if (program->buffer[step->operand[k].buffer].kind == TN__BUFFER_DONATED)
            return true;
    return false;
}

static tn_status load_steps(tn__executable *executable)
{
    const tn__program *program = executable->program;
    tn_status status = TN_OK;
    if (program->source && *program->source)
        status = tn__cuda_module_load(executable->device, program->source, &executable->module);
    for (int i = 0; i < program->step_count && status == TN_OK; i++) {
        tn__cuda_step *step = &executable->step[i];
        step->step = &program->step[i];
        step->program = program;
        step->number = i;
        step->fault_extent = -1;
        step->may_fail = program->step[i].may_fail;
        step->overwrites = overwrites(program, &program->step[i]);
        status = prepare_step(executable, step);
    }
    return status;
}

tn_status tn__cuda_load(tn__device *owner, const tn__program *program, tn__executable **executable)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "load");
    if (status != TN_OK)
        return status;
    size_t bytes = sizeof(tn__executable) + program->step_count * sizeof(tn__cuda_step);
    tn__executable *loaded = tn__calloc(1, bytes);
    if (loaded == NULL)
        return tn__fail_memory("load", bytes);
    loaded->device = device;
    loaded->program = program;
    loaded->step_count = program->step_count;
    loaded->slot = -1;
    status = make_memory(loaded);
    if (status == TN_OK)
        status = load_steps(loaded);
    if (status != TN_OK)
        tn__cuda_unload(loaded);
    else
        *executable = loaded;
    return status;
}

void tn__cuda_unload(tn__executable *executable)
{
    if (executable == NULL)
        return;
    tn__cuda_device *device = executable->device;
    const tn__cuda_driver *driver = device->driver;
    /* Work of this program may still run. At exit the driver may be gone, and all that it held. */
    if (driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS)
        driver->cuStreamSynchronize(device->stream);
    for (int i = 0; i < executable->step_count; i++) {
        tn__cuda_step *step = &executable->step[i];
        if (step->free)
            step->free(step, device);
        tn__free(step->data);
        tn__cuda_module_release(device, step->module);
    }
    tn__cuda_module_release(device, executable->module);
    for (int i = 0; i < RING; i++)
        if (executable->copied[i])
            driver->cuEventDestroy(executable->copied[i]);
    if (executable->pinned)
        driver->cuMemFreeHost(executable->pinned);
    if (executable->memory)
        driver->cuMemFree(executable->memory);
    tn__free(executable);
}

/* ---- running ---- */

/* Brings changed scalars to the device. */
static tn_status upload(tn__executable *executable, const uint64_t *scalars)
{
    size_t bytes = executable->scalar_bytes;
    int slot = executable->slot;
    if (bytes == 0 || executable->memory == 0 ||
        (slot >= 0 && memcmp(executable->pinned + slot * bytes, scalars, bytes) == 0))
        return TN_OK;
    tn__cuda_device *device = executable->device;
    const tn__cuda_driver *driver = device->driver;
    slot = (slot + 1) % RING;
    char *host = executable->pinned + slot * bytes;
    tn_status status = tn__cuda_check(device, driver->cuEventSynchronize(executable->copied[slot]), "scalars");
    if (status != TN_OK)
        return status;
    memcpy(host, scalars, bytes);
    executable->slot = slot;
    status = tn__cuda_check(device, driver->cuMemcpyHtoDAsync(executable->memory, host, bytes, device->stream), "scalars");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuEventRecord(executable->copied[slot], device->stream), "scalars");
    if (status != TN_OK)
        executable->slot = -1;
    return status;
}

static tn_status step_fault(const tn__cuda_step *step, const int64_t *fault)
{
    const tn__step *s = step->step;
    const char *name = s->label ? s->label : s->kernel ? s->kernel : "index";
    const tn__operand *operand =
        fault[0] > 0 && fault[0] <= s->operand_count ? &s->operand[fault[0] - 1] : &s->operand[0];
    long long extent = operand->ndim ? operand->dim[operand->ndim - 1] : 0;
    if (step->fault_extent >= 0)
        extent = step->fault_extent;
    return tn__fail(TN_ERR_INDEX, name, "index %lld is out of range for an axis of extent %lld: valid are %lld to %lld",
                    (long long)fault[1], extent, -extent, extent - 1);
}

/* Waits for what was started and reads the records that it may have left. */
static tn_status look_for_faults(tn__executable *executable)
{
    tn__cuda_device *device = executable->device;
    const tn__cuda_driver *driver = device->driver;
    size_t bytes = executable->fault_bytes;
    int64_t *record = (int64_t *)(executable->pinned + RING * executable->scalar_bytes);
    tn_status status =
        tn__cuda_check(device, driver->cuMemcpyDtoHAsync(record, executable->faults, bytes, device->stream), "faults");
    if (status == TN_OK)
        status = tn__cuda_wait(device, "faults");
    for (int i = 0; i < executable->step_count && status == TN_OK; i++)
        if (executable->step[i].may_fail && record[2 * i]) {
            tn__cuda_check(device, driver->cuMemsetD8Async(executable->faults, 0, bytes, device->stream), "faults");
            status = step_fault(&executable->step[i], &record[2 * i]);
        }
    return status;
}

tn_status tn__cuda_run_program(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    tn__cuda_device *device = executable->device;
    tn_status status = tn__cuda_enter(device, "run");
    if (status != TN_OK || executable->step_count == 0)
        return status;
    tn__cuda_run run = {.device = device,
                        .buffers = buffers,
                        .scalars = scalars,
                        .device_scalars = executable->memory,
                        .faults = executable->faults};
    pthread_mutex_lock(&device->lock);
    status = upload(executable, scalars);
    bool unsure = false; /* some step started may have failed */
    for (int i = 0; i < executable->step_count && status == TN_OK; i++) {
        const tn__cuda_step *step = &executable->step[i];
        if (unsure && step->overwrites) { /* a run that fails leaves its inputs as they were */
            status = look_for_faults(executable);
            unsure = false;
        }
        if (status == TN_OK)
            status = step->start(step, &run);
        unsure = unsure || step->may_fail;
    }
    if (status == TN_OK && unsure)
        status = look_for_faults(executable);
    pthread_mutex_unlock(&device->lock);
    return status;
}
