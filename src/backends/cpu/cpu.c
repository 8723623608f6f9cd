/* SPDX-License-Identifier: MIT */
/* The CPU backend: host memory, and programs run step by step. */
#include "backends/cpu/base/step.h"

#include <string.h>
#include <tanso/device.h>
#include <unistd.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/processor.h"
#include "backends/cpu/convolution/convolution.h"
#include "backends/cpu/jit/module.h"
#include "backends/cpu/launch.h"
#include "core/error.h"
#include "core/memory.h"

struct tn__executable {
    tn__cpu_module **module; /* modules, indexed by the number of a step's code; NULL: no kernels */
    int module_count;
    int step_count;
    tn__cpu_step step[];
};

/* ---- memory ---- */

static void *cpu_allocate(tn__device *device, size_t bytes)
{
    (void)device;
    return tn__alloc_aligned(bytes ? bytes : 1);
}

static void cpu_release(tn__device *device, void *memory, size_t bytes)
{
    (void)device, (void)bytes;
    tn__free(memory);
}

/* Reads, writes and copies are the same: all memory is host memory. */
static tn_status cpu_move(tn__device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes)
        memmove(to, from, bytes);
    return TN_OK;
}

/* ---- programs ---- */

static void cpu_unload(tn__executable *executable)
{
    if (executable == NULL)
        return;
    for (int i = 0; i < executable->step_count; i++) {
        if (executable->step[i].drop)
            executable->step[i].drop(executable->step[i].data);
        tn__free(executable->step[i].data);
    }
    for (int i = 0; i < executable->module_count; i++)
        if (executable->module[i])
            tn__cpu_module_release(executable->module[i]);
    tn__free(executable->module);
    tn__free(executable);
}

/* Loads a text that does not mark where kernels begin, and so is compiled as a whole: all steps have code 0. */
static tn_status load_whole(const tn__program *program, tn__executable *executable)
{
    const char **kernel = tn__calloc(program->step_count, sizeof(*kernel));
    int count = 0;
    if (kernel == NULL)
        return tn__fail_memory("load", program->step_count * sizeof(*kernel));
    for (int i = 0; i < program->step_count; i++)
        if (program->step[i].kind == TN__STEP_KERNEL)
            kernel[count++] = program->step[i].kernel.name;
    tn_status status = count ? tn__cpu_module_load(program->source, count, kernel, &executable->module[0]) : TN_OK;
    tn__free(kernel);
    return status;
}

static tn_status load_modules(const tn__program *program, tn__executable *executable)
{
    int kernels = program->text.kernel_count, count = kernels ? kernels : 1;
    executable->module = tn__calloc((size_t)count, sizeof *executable->module);
    if (executable->module == NULL)
        return tn__fail_memory("load", sizeof *executable->module * (size_t)count);
    executable->module_count = count;
    return kernels ? tn__cpu_modules_load(program, executable->module) : load_whole(program, executable);
}

static tn_status cpu_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    (void)device;
    size_t bytes = sizeof(tn__executable) + program->step_count * sizeof(tn__cpu_step);
    tn__executable *loaded = tn__calloc(1, bytes);
    if (loaded == NULL)
        return tn__fail_memory("load", bytes);
    loaded->step_count = program->step_count;
    tn_status status = program->step_count ? load_modules(program, loaded) : TN_OK;
    for (int i = 0; i < program->step_count && status == TN_OK; i++) {
        tn__cpu_step *step = &loaded->step[i];
        step->step = &program->step[i];
        step->program = program;
        status = step->step->kind == TN__STEP_KERNEL
                     ? tn__cpu_prepare_kernel(step, loaded->module[step->step->kernel.code])
                     : tn__cpu_prepare_operation(step);
    }
    if (status != TN_OK) {
        cpu_unload(loaded);
        return status;
    }
    *executable = loaded;
    return TN_OK;
}

static int64_t cpu_pause(tn__device *device, const tn__program *program)
{
    (void)device;
    return program->text.kernel_count ? tn__cpu_modules_pause(program) : 0;
}

static tn_status cpu_run(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    for (int i = 0; i < executable->step_count; i++) {
        const tn__cpu_step *step = &executable->step[i];
        tn_status status = step->run(step, buffers, scalars);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- the backend ---- */

static const tn__device_ops cpu_ops = {
    .allocate = cpu_allocate,
    .release = cpu_release,
    .read = cpu_move,
    .write = cpu_move,
    .copy = cpu_move,
    .load = cpu_load,
    .run = cpu_run,
    .unload = cpu_unload,
    .describe = tn__processor_describe,
    .convolves = tn__cpu_convolves,
    .launch = tn__cpu_launch,
    .pause = cpu_pause,
};

static int cpu_count(const char **why)
{
    (void)why;
    return 1;
}

static tn_status cpu_open(int index, tn__device *device)
{
    (void)index;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    device->ops = &cpu_ops;
    device->capabilities = (tn__capabilities){
        .target = TN__TARGET_C,
        .host_memory = true,
        .convolutions = TN__CPU_CONVOLUTIONS,
        .operations = true,
        .threads = tn_threads(),
        .total_memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0,
    };
    return TN_OK;
}

const tn__backend tn__backend_cpu = {
    .name = "cpu",
    .kind = TN_DEVICE_CPU,
    .count = cpu_count,
    .open = cpu_open,
};
