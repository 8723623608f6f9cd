/* SPDX-License-Identifier: MIT */
/* Programs: their kernels, the tables that these are started with, and runs, which are waited for. */
#include <string.h>

#include "backends/opencl/opencl.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/position.h"

#define FAULT_WORDS 3 /* operand + 1, index, whether somebody has said so (opencl_helpers.cl) */

struct tn__executable {
    tn__cl_device *device;
    const tn__program *program;
    uint64_t *words;      /* device memory: the fault's, then each step's table */
    const void **reached; /* array for the buffers that a step's kernel accesses */
    int step_count;
    struct {
        cl_kernel kernel;
        size_t words;     /* where its table begins; that of an operation with several launches is for the first */
    } step[];
};

/* ---- loading ---- */

static size_t words_of(const tn__step *s)
{
    return s->kind == TN__STEP_KERNEL ? (size_t)(s->operand_count + s->param_count + s->scalar_count + 1)
                                      : (size_t)tn__cl_operation_launches(s) * TN__CL_OPERATION_WORDS;
}

static tn_status find_kernels(tn__executable *e)
{
    const tn__program *program = e->program;
    cl_kernel *kernel = tn__calloc((size_t)program->text.kernel_count + 1, sizeof *kernel);
    tn_status status = kernel ? tn__cl_program_kernels(e->device, program, kernel)
                              : tn__fail_memory("load", sizeof *kernel);
    for (int i = 0; i < e->step_count && status == TN_OK; i++) {
        const tn__step *s = &program->step[i];
        if (s->kind != TN__STEP_KERNEL)
            status = tn__cl_prepare_operation(e->device, s, &e->step[i].kernel);
        else
            e->step[i].kernel = kernel[s->kernel.code];
    }
    tn__free(kernel);
    return status;
}

static tn_status make_tables(tn__executable *e)
{
    size_t words = FAULT_WORDS;
    int most = 0;
    for (int i = 0; i < e->step_count; i++) {
        const tn__step *s = &e->program->step[i];
        e->step[i].words = words;
        words += words_of(s);
        most = s->operand_count > most ? s->operand_count : most;
    }
    e->words = clSVMAlloc(e->device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, words * 8, 64);
    e->reached = tn__alloc(((size_t)most + 1) * sizeof *e->reached);
    return e->words && e->reached ? TN_OK : tn__fail_memory("load", words * 8);
}

void tn__cl_unload(tn__executable *e)
{
    if (e == NULL)
        return;
    if (e->words)
        clSVMFree(e->device->context, e->words);
    tn__free(e->reached);
    tn__free(e);
}

tn_status tn__cl_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    size_t bytes = sizeof(tn__executable) + (size_t)program->step_count * sizeof((tn__executable *)0)->step[0];
    tn__executable *e = tn__calloc(1, bytes);
    if (e == NULL)
        return tn__fail_memory("load", bytes);
    e->device = device->backend_data;
    e->program = program;
    e->step_count = program->step_count;
    tn_status status = find_kernels(e);
    if (status == TN_OK)
        status = make_tables(e);
    if (status == TN_OK)
        *executable = e;
    else
        tn__cl_unload(e);
    return status;
}

/* ---- running ---- */

static tn_status wait(const tn__executable *e)
{
    return tn__cl_check(e->device, clFinish(e->device->queue), "waiting for a run");
}

/* Lists the buffers of a step's operands, which its kernel accesses through addresses in the table. */
static void list_reached(const tn__executable *e, const tn__step *s, void *const *buffers, tn__cl_launch *launch)
{
    launch->reached = e->reached;
    for (int k = 0; k < s->operand_count; k++)
        if (buffers[s->operand[k].buffer])
            e->reached[launch->reached_count++] = buffers[s->operand[k].buffer];
}

/* Starts a step that is a kernel, and waits for it where it may meet an index out of range. */
static tn_status run_kernel(const tn__executable *e, const tn__step *s, void *const *buffers, const uint64_t *scalars,
                            tn__cl_launch *launch)
{
    uint64_t *w = launch->words;
    int64_t *fault = (int64_t *)e->words;
    for (int k = 0; k < s->operand_count; k++)
        *w++ = (uint64_t)(uintptr_t)buffers[s->operand[k].buffer];
    memcpy(w, s->param, (size_t)s->param_count * sizeof *w);
    for (int k = 0; k < s->scalar_count; k++)
        w[s->param_count + k] = scalars[s->scalar[k]];
    launch->blocks = (size_t)s->kernel.launch.blocks;
    launch->threads = (size_t)s->kernel.launch.threads;
    launch->shared = (size_t)s->kernel.launch.shared;
    if (s->kernel.may_fail)
        memset(fault, 0, FAULT_WORDS * sizeof *fault);
    tn_status status = tn__cl_start(e->device, launch, fault);
    if (status != TN_OK || !s->kernel.may_fail || (status = wait(e)) != TN_OK || !fault[0])
        return status;
    const tn__operand *operand = &s->operand[fault[0] - 1];
    char text[TN__POSITION_TEXT];
    return tn__fail(TN_ERR_INDEX, s->label ? s->label : s->kernel.name, "%s",
                    tn__position_met(text, fault[1], "", operand->ndim ? operand->dim[operand->ndim - 1] : 0));
}

static tn_status run_operation(const tn__executable *e, const tn__step *s, void *const *buffers,
                               const uint64_t *scalars, tn__cl_launch *launch)
{
    tn_status status = TN_OK;
    for (int i = 0; i < tn__cl_operation_launches(s) && status == TN_OK; i++) {
        tn__cl_operation_launch(e->program, s, i, buffers, scalars, launch);
        status = tn__cl_start(e->device, launch, (int64_t *)e->words);
        launch->words += TN__CL_OPERATION_WORDS;
    }
    return status;
}

tn_status tn__cl_run(tn__executable *e, void *const *buffers, const uint64_t *scalars)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&e->device->lock);
    for (int i = 0; i < e->step_count && status == TN_OK; i++) {
        const tn__step *s = &e->program->step[i];
        tn__cl_launch launch = {.kernel = e->step[i].kernel, .words = e->words + e->step[i].words};
        list_reached(e, s, buffers, &launch);
        status = (s->kind == TN__STEP_KERNEL ? run_kernel : run_operation)(e, s, buffers, scalars, &launch);
    }
    tn_status waited = wait(e);
    pthread_mutex_unlock(&e->device->lock);
    return status == TN_OK ? waited : status;
}
