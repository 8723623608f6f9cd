/* SPDX-License-Identifier: MIT */
/*
 * Loaded programs: their kernels, and running them. The first run starts the steps one by one, as libraries load
 * code at their first use, which stream capture does not allow; later runs are graphs (graph.c). No run waits for
 * the GPU.
 */
#include <string.h>

#include "backends/cuda/convolution/convolution.h"
#include "backends/cuda/linalg/library.h"
#include "backends/cuda/ops/sort_scan.h"
#include "backends/cuda/runtime/backend.h"
#include "core/memory.h"
#include "core/position.h"
#include "ops/ops.h"

#define FACTORS 16 /* bytes a step, for tn__cuda_factors */

struct tn__executable {
    tn__cuda_device *device;
    tn__executable *next;      /* of the device's */
    uint32_t number;
    const tn__program *program;
    tn__cuda_module **module;  /* modules, indexed by the number of a step's code; NULL: no kernels */
    int module_count;
    CUdeviceptr factors;       /* memory for tn__cuda_factors; 0: no products */
    struct {
        void *memory;          /* that its steps use one after another; NULL: none needs any */
        size_t bytes;
    } workspace;
    struct {
        bool may_fail, overwrites, shares; /* see tn__cuda_step */
        bool keeps_memory;     /* of its own, so that no two runs can be side by side */
    } any;                     /* whether one of its steps does */
    bool has_run;
    tn__use use;               /* uses by streams, if any keeps memory */
    tn__cuda_work work;
    tn__cuda_graph_cache graphs;
    int step_count;
    tn__cuda_step step[];
};

/* ---- loading ---- */

static bool adds(tn_dtype dtype) { return dtype != TN_BOOL; }

static const struct {
    int op;
    tn_status (*prepare)(tn__cuda_step *step, tn__cuda_device *device);
    bool (*takes)(tn_dtype dtype); /* NULL: every dtype */
    bool (*library)(const tn__cuda_device *device, tn_dtype dtype); /* whether the library is there and takes it */
    bool (*own)(const tn__cuda_step *step, const tn__cuda_device *device);
        /* is the step prepared without any library? NULL: unless `library` */
} operations[] = {
    {TN__OP_COPY, tn__cuda_prepare_copy, NULL, NULL, NULL},
    {TN__OP_CONST, tn__cuda_prepare_copy, NULL, NULL, NULL},
    {TN__OP_SCATTER_ADD, tn__cuda_prepare_scatter, adds, NULL, NULL},
    {TN__OP_SCATTER_SET, tn__cuda_prepare_scatter, NULL, NULL, NULL},
    {TN__OP_MATMUL, tn__cuda_prepare_matmul, NULL, NULL, tn__cuda_matmul_is_own},
    {TN__OP_SORT, tn__cuda_prepare_sort, tn__cuda_has_order, NULL, NULL},
    {TN__OP_ARGSORT, tn__cuda_prepare_sort, tn__cuda_has_order, NULL, NULL},
    {TN__OP_LARGEST, tn__cuda_prepare_largest, tn__cuda_has_order, NULL, NULL},
    {TN__OP_CUMSUM, tn__cuda_prepare_scan, tn__cuda_has_order, NULL, NULL},
    {TN__OP_CUMPROD, tn__cuda_prepare_scan, tn__cuda_has_order, NULL, NULL},
    {TN__OP_CUMMAX, tn__cuda_prepare_scan, tn__cuda_has_order, NULL, NULL},
    {TN__OP_CUMMIN, tn__cuda_prepare_scan, tn__cuda_has_order, NULL, NULL},
    {TN__OP_NONZERO, tn__cuda_prepare_scan, NULL, NULL, NULL},
    {TN__OP_SEARCH_LEFT, tn__cuda_prepare_search, tn__cuda_has_order, NULL, NULL},
    {TN__OP_SEARCH_RIGHT, tn__cuda_prepare_search, tn__cuda_has_order, NULL, NULL},
    {TN__OP_HISTOGRAM, tn__cuda_prepare_histogram, tn__cuda_has_order, NULL, NULL},
    {TN__OP_FFT, tn__cuda_prepare_fft, NULL, tn__cuda_fft_takes, NULL},
    {TN__OP_RFFT, tn__cuda_prepare_fft, NULL, tn__cuda_fft_takes, NULL},
    {TN__OP_IRFFT, tn__cuda_prepare_fft, NULL, tn__cuda_fft_takes, NULL},
    {TN__OP_CHOLESKY, tn__cuda_prepare_solver, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_SOLVE, tn__cuda_prepare_solver, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_SLOGDET, tn__cuda_prepare_solver, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_QR, tn__cuda_prepare_decompose, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_SVD, tn__cuda_prepare_decompose, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_EIGH, tn__cuda_prepare_decompose, NULL, tn__cuda_solver_takes, NULL},
    {TN__OP_CONVOLVE, tn__cuda_prepare_convolution, NULL, tn__cuda_dnn_takes, NULL},
    {TN__OP_CONVOLVE_DATA, tn__cuda_prepare_convolution, NULL, tn__cuda_dnn_takes, NULL},
    {TN__OP_CONVOLVE_WEIGHTS, tn__cuda_prepare_convolution, NULL, tn__cuda_dnn_takes, NULL},
};

bool tn__cuda_supports(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape)
{
    if (shape && tn__cuda_is_small(op, shape))
        return true;
    if (shape && !tn__cuda_library_pays(op, shape))
        return false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].op == op)
            return operations[i].library ? operations[i].library(tn__cuda_of(device), dtype)
                                         : operations[i].takes == NULL || operations[i].takes(dtype);
    return false;
}

/* Can it be prepared while compilers run? Not where a library's ways may be timed, which they would disturb. */
static bool prepared_meanwhile(const tn__executable *executable, const tn__cuda_step *step)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (step->step->kind != TN__STEP_KERNEL && operations[i].op == step->step->op)
            return operations[i].own ? operations[i].own(step, executable->device) : operations[i].library == NULL;
    return false;
}

static tn_status prepare_step(tn__executable *executable, tn__cuda_step *step)
{
    if (step->step->kind == TN__STEP_KERNEL)
        return tn__cuda_prepare_kernel(step, executable->device,
                                       executable->module ? executable->module[step->step->kernel.code] : NULL);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].op == step->step->op)
            return operations[i].prepare(step, executable->device);
    return tn__fail(TN_ERR_INTERNAL, "cuda", "operation %d cannot be a step of its own on a GPU", step->step->op);
}

static tn_status make_factors(tn__executable *executable)
{
    const tn__program *program = executable->program;
    tn__cuda_device *device = executable->device;
    bool products = false;
    for (int i = 0; i < program->step_count; i++)
        products = products || program->step[i].kind == TN__STEP_PRODUCT;
    if (!products)
        return TN_OK;
    return tn__cuda_own_memory(device, &executable->factors, FACTORS * (size_t)program->step_count, "load");
}

static bool overwrites(const tn__program *program, const tn__step *step)
{
    for (int k = 0; k < step->output_count; k++)
        if (program->buffer[tn__buffer_whole(program, step->operand[k].buffer)].kind == TN__BUFFER_DONATED)
            return true;
    return false;
}

/* Has the step memory of its own besides its operands? Operations may have; the program's kernels have not, nor
 * operations that only copy or test. */
static bool keeps_memory(const tn__step *step)
{
    static const int without[] = {TN__OP_COPY, TN__OP_CONST, TN__OP_SEARCH_LEFT,
                                  TN__OP_SEARCH_RIGHT, TN__OP_HISTOGRAM};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (step->op == without[i])
            return false;
    return step->kind != TN__STEP_KERNEL;
}

static tn_status begin_modules(tn__executable *executable, tn__cuda_modules **begun)
{
    const tn__program *program = executable->program;
    int count = program->text.kernel_count ? program->text.kernel_count : 1;
    executable->module = tn__calloc((size_t)count, sizeof *executable->module);
    if (!executable->module)
        return tn__fail_memory("load", sizeof *executable->module * (size_t)count);
    executable->module_count = count;
    return program->text.kernel_count
               ? tn__cuda_modules_begin(executable->device, program, executable->module, begun)
               : tn__cuda_module_load(executable->device, program->source, &executable->module[0]);
}

static tn_status prepare_steps(tn__executable *executable, bool meanwhile)
{
    tn_status status = TN_OK;
    for (int i = 0; i < executable->step_count && status == TN_OK; i++)
        if (prepared_meanwhile(executable, &executable->step[i]) == meanwhile)
            status = prepare_step(executable, &executable->step[i]);
    return status;
}

/* The backend's own texts are compiled, if they have to be, while other threads compile the program's kernels. */
static tn_status load_code(tn__executable *executable)
{
    const tn__program *program = executable->program;
    tn__cuda_modules *begun = NULL;
    tn_status status = program->source && *program->source ? begin_modules(executable, &begun) : TN_OK;
    if (status == TN_OK)
        status = prepare_steps(executable, true);
    tn_status ended = begun ? tn__cuda_modules_end(begun) : TN_OK;
    if (status == TN_OK)
        status = ended;
    return status == TN_OK ? prepare_steps(executable, false) : status;
}

static tn_status load_steps(tn__executable *executable)
{
    const tn__program *program = executable->program;
    for (int i = 0; i < program->step_count; i++) {
        tn__cuda_step *step = &executable->step[i];
        step->step = &program->step[i];
        step->program = program;
        step->number = i;
        step->fault_extent = -1;
        step->may_fail = tn__step_may_fail(&program->step[i]);
        step->overwrites = overwrites(program, &program->step[i]);
    }
    tn_status status = load_code(executable);
    for (int i = 0; i < program->step_count && status == TN_OK; i++) {
        const tn__cuda_step *step = &executable->step[i];
        executable->any.may_fail = executable->any.may_fail || step->may_fail;
        executable->any.overwrites = executable->any.overwrites || step->overwrites;
        if (executable->workspace.bytes < step->workspace)
            executable->workspace.bytes = step->workspace;
        executable->any.shares = executable->any.shares || step->shares;
        executable->any.keeps_memory = executable->any.keeps_memory || keeps_memory(step->step);
        executable->graphs.refused = executable->graphs.refused || step->waits;
    }
    return status;
}

static tn_status make_workspace(tn__executable *executable)
{
    if (executable->workspace.bytes == 0)
        return TN_OK;
    executable->workspace.memory = tn__device_allocate(executable->device->owner, executable->workspace.bytes);
    return executable->workspace.memory ? TN_OK : tn__error_status(tn__error_last());
}

static tn__error *step_failure(const tn__executable *executable, int step, int64_t operand, int64_t index)
{
    const tn__step *s = executable->step[step].step;
    const char *name = s->label ? s->label : tn__step_kernel(s) ? tn__step_kernel(s) : "index";
    if (executable->step[step].failed)
        return tn__error_record(TN_ERR_VALUE, s->label ? s->label : "linalg", "%s", executable->step[step].failed);
    const tn__operand *at = operand > 0 && operand <= s->operand_count ? &s->operand[operand - 1] : &s->operand[0];
    int64_t extent = at->ndim ? at->dim[at->ndim - 1] : 0;
    if (executable->step[step].fault_extent >= 0)
        extent = executable->step[step].fault_extent;
    char text[TN__POSITION_TEXT];
    return tn__error_record(TN_ERR_INDEX, name, "%s", tn__position_met(text, index, "", extent));
}

/* Of the step that a report names; operands are numbered from 1. */
static tn__error *failure_of(const tn__cuda_device *device, uint64_t who, int64_t operand, int64_t index)
{
    const tn__executable *executable = device->executables;
    while (executable && executable->number != (uint32_t)(who >> 32))
        executable = executable->next;
    return executable ? step_failure(executable, (int)(uint32_t)who, operand, index) : NULL;
}

/* Numbers the executable, by which failures name it, and adds it to the device's list. Earlier work of this thread's
 * stream may still use the memory that the executable has been given; whoever runs the program first, in whatever
 * stream, waits for that. */
static void enlist(tn__executable *executable)
{
    tn__cuda_device *device = executable->device;
    pthread_mutex_lock(&device->lock);
    if (executable->any.keeps_memory) {
        tn__cuda_asked(device);
        tn__use_end(device->owner, &executable->use, true);
    }
    executable->number = executable->work.plan = ++device->executable_count;
    executable->next = device->executables;
    device->executables = executable;
    device->failure_of = failure_of;
    device->doubtful = device->doubtful || executable->any.may_fail;
    pthread_mutex_unlock(&device->lock);
}

static void delist(tn__executable *executable)
{
    for (tn__executable **at = &executable->device->executables; *at; at = &(*at)->next)
        if (*at == executable) {
            *at = executable->next;
            return;
        }
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
    status = make_factors(loaded);
    if (status == TN_OK)
        status = load_steps(loaded);
    if (status == TN_OK)
        status = make_workspace(loaded);
    if (status != TN_OK) {
        tn__cuda_unload(loaded);
        return status;
    }
    enlist(loaded);
    loaded->work.step = loaded->step;
    loaded->work.step_count = loaded->step_count;
    loaded->work.module = loaded->module_count == 1 ? loaded->module[0] : NULL;
    tn__cuda_work_add(device, &loaded->work);
    *executable = loaded;
    return TN_OK;
}

void tn__cuda_unload(tn__executable *executable)
{
    if (executable == NULL)
        return;
    tn__cuda_device *device = executable->device;
    const tn__cuda_driver *driver = device->driver;
    /* The program's work may still be running, and fail. At exit the driver may have shut down and freed everything. */
    pthread_mutex_lock(&device->lock);
    bool there = driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
    if (executable->has_run && there && tn__cuda_flush(device) == TN_OK) {
        tn__cuda_may_wait_if_busy(device, "a program that has run is let go");
        CUresult result = tn__cuda_finish(device);
        if (result == CUDA_SUCCESS)
            tn__cuda_settle(device);
        else
            (void)tn__cuda_latch(device, result); /* while the fault's message can still name it */
    }
    delist(executable);
    pthread_mutex_unlock(&device->lock);
    tn__cuda_work_remove(device, &executable->work);
    tn__cuda_graphs_free(&executable->graphs, device);
    for (int i = 0; i < executable->step_count; i++) {
        tn__cuda_step *step = &executable->step[i];
        if (step->free)
            step->free(step, device);
        tn__free(step->data);
        tn__cuda_module_release(device, step->module);
    }
    for (int i = 0; i < executable->module_count; i++)
        tn__cuda_module_release(device, executable->module[i]);
    tn__free(executable->module);
    if (executable->workspace.memory)
        tn__device_release(device->owner, executable->workspace.memory, executable->workspace.bytes);
    if (executable->factors)
        driver->cuMemFree(executable->factors);
    tn__free(executable);
}

/* ---- running ---- */

static tn_status start_steps(const tn__executable *executable, const tn__cuda_run *run)
{
    tn_status status = TN_OK;
    for (int i = 0; i < executable->step_count && status == TN_OK; i++) {
        run->work->at = i;
        status = executable->step[i].start(&executable->step[i], run);
        if (status == TN_OK) /* so that an error of what a library has started appears here */
            status = tn__cuda_started(run, CUDA_SUCCESS, "run");
    }
    return status;
}

/* Orders runs on several streams by what they share besides operands: memory of the device, and of the executable. */
static tn_status begin_common(tn__executable *executable, const tn__cuda_run *run)
{
    tn__cuda_device *device = run->device;
    tn_status status = run->number ? tn__cuda_flush(device) : TN_OK;
    if (status == TN_OK && executable->any.keeps_memory)
        status = tn__use_begin(device->owner, &executable->use, true);
    if (status == TN_OK && executable->any.shares)
        status = tn__use_begin(device->owner, &device->shared, true);
    if (status == TN_OK && (executable->any.may_fail || executable->any.overwrites))
        status = tn__use_begin(device->owner, &device->latched, executable->any.may_fail);
    return status;
}

static void end_common(tn__executable *executable, tn__cuda_device *device)
{
    tn__cuda_asked(device);
    if (executable->any.keeps_memory)
        tn__use_end(device->owner, &executable->use, true);
    if (executable->any.shares)
        tn__use_end(device->owner, &device->shared, true);
    if (executable->any.may_fail || executable->any.overwrites)
        tn__use_end(device->owner, &device->latched, executable->any.may_fail);
}

static tn_status start(tn__executable *executable, tn__cuda_run *run)
{
    tn__cuda_device *device = run->device;
    bool done = false;
    tn_status status = TN_OK;
    if (executable->has_run && device->graphs)
        status = tn__cuda_graph_run(&executable->graphs, executable->step, executable->step_count, run, &done);
    if (!done && status == TN_OK)
        status = tn__cuda_flush(device);
    if (!done && status == TN_OK)
        status = start_steps(executable, run);
    executable->has_run = true;
    return status;
}

tn_status tn__cuda_run_program(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    tn__cuda_device *device = executable->device;
    tn_status status = tn__cuda_enter_held(device, "run");
    if (status == TN_OK)
        status = tn__cuda_look(device);
    if (status != TN_OK || executable->step_count == 0)
        return status;
    pthread_mutex_lock(&device->lock);
    uint64_t number = atomic_fetch_add_explicit(&device->owner->runs, 1, memory_order_relaxed) + 1;
    int own = tn__stream_number(device->owner);
    tn__cuda_run run = {.device = device,
                        .stream = device->streams[own].handle,
                        .number = own,
                        .workspace = (CUdeviceptr)executable->workspace.memory,
                        .work = &executable->work,
                        .buffers = buffers,
                        .scalars = scalars,
                        .factors = executable->factors,
                        .failure = {.guard = device->doubtful ? device->latch : 0,
                                    .latch = device->latch,
                                    .report = (unsigned long long)(uintptr_t)device->report,
                                    .run = number,
                                    .who = (unsigned long long)executable->number << 32}};
    bool concurrent = tn__has_streams(device->owner);
    if (concurrent)
        status = begin_common(executable, &run);
    if (status == TN_OK)
        status = start(executable, &run);
    if (executable->any.may_fail)
        device->may_fail = number;
    if (concurrent)
        end_common(executable, device);
    pthread_mutex_unlock(&device->lock);
    return status;
}
