/* SPDX-License-Identifier: MIT */
/*
 * A device fault, such as an illegal address in a user's kernel, which makes the context unusable. The driver reports
 * it at the next call, whatever that is, and never says which kernel it was. So the error names all candidates: what
 * was started and has not been waited for since. Each work notes, for each stream, the device's count of starts when it
 * was last started; each successful wait notes up to which count its stream is known to be good. That costs a launch
 * one addition and one store. The names are put together only after a fault, from programs and kernels that still
 * exist: none is freed before the streams have been waited for.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/error.h"
#include "ops/ops.h"
#include "tn_op_functions.h"

#define NAMED 8  /* most works that the message names */
#define ROOM 600 /* bytes of the message for all names */

/* Does this error make the context unusable? */
static bool ruinous(CUresult result)
{
    static const CUresult list[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION,   CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_PC,      CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ASSERT,          CUDA_ERROR_LAUNCH_FAILED,         CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_UNKNOWN,
        /* errors that older headers have no names for: links between GPUs, a contained error, tensor memory, another
         * process of a shared GPU, another device */
        (CUresult)220, (CUresult)226, (CUresult)721, (CUresult)810, (CUresult)911};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == result)
            return true;
    return false;
}

/* ---- what has been started ---- */

void tn__cuda_work_add(tn__cuda_device *device, tn__cuda_work *work)
{
    pthread_mutex_lock(&device->fault_lock);
    work->next = device->works;
    device->works = work;
    pthread_mutex_unlock(&device->fault_lock);
}

void tn__cuda_work_remove(tn__cuda_device *device, const tn__cuda_work *work)
{
    pthread_mutex_lock(&device->fault_lock);
    tn__cuda_work **at = &device->works;
    while (*at && *at != work)
        at = &(*at)->next;
    if (*at)
        *at = work->next;
    pthread_mutex_unlock(&device->fault_lock);
}

void tn__cuda_good(tn__cuda_device *device, tn__cuda_point point)
{
    pthread_mutex_lock(&device->fault_lock);
    if (device->streams[point.stream].good < point.started)
        device->streams[point.stream].good = point.started;
    pthread_mutex_unlock(&device->fault_lock);
}

/* The count of starts when the work was last started, if it may still be under way; else 0. */
static uint64_t under_way(const tn__cuda_device *device, const tn__cuda_work *work)
{
    uint64_t last = 0;
    for (int i = 0; i < TN__STREAMS; i++) {
        uint64_t started = atomic_load_explicit(&work->started[i], memory_order_relaxed);
        if (started > device->streams[i].good && started > last)
            last = started;
    }
    return last;
}

/* ---- telling ---- */

typedef struct text {
    char *at;
    size_t left; /* bytes left, with that for the NUL */
} text;

TN_PRINTF(2, 3) static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    size_t taken = length < 0 ? 0 : (size_t)length < t->left ? (size_t)length : t->left - 1;
    t->at += taken;
    t->left -= taken;
}

static const char *const operation_names[TN__OP_COUNT] = {
#define TN_MAP(ID, NAME, ...) [TN__OP_##ID] = #NAME,
#define TN_REDUCE(ID, NAME, ...) [TN__OP_##ID] = #NAME,
#define TN_GENERATE(ID, NAME, ...) [TN__OP_##ID] = #NAME,
#define TN_OTHER(ID, NAME, ...) [TN__OP_##ID] = #NAME,
#include "ops/ops.def"
};

const char *tn__cuda_step_name(const tn__step *s)
{
    if (s->label || tn__step_kernel(s))
        return s->label ? s->label : tn__step_kernel(s);
    return s->op >= 0 && s->op < TN__OP_COUNT ? operation_names[s->op] : "an operation";
}

/* "k_0123456789abcdef matmul add", "sort". */
static void put_step(text *t, const tn__step *s)
{
    if (tn__step_kernel(s) && s->label)
        put(t, "%s ", tn__step_kernel(s));
    put(t, "%s", tn__cuda_step_name(s));
}

/* Writes a plan's name, "plan 3 (cubin 0a1b2c3d)": its number, and its kernels' file if it has only one. */
static void put_plan(text *t, const tn__cuda_work *work)
{
    bool kernels = false;
    for (int i = 0; i < work->step_count; i++)
        kernels = kernels || work->step[i].step->kind == TN__STEP_KERNEL;
    put(t, "plan %u", (unsigned)work->plan);
    if (kernels && work->module)
        put(t, " (cubin %.8s)", tn__cuda_module_name(work->module));
}

/* Writes as many steps as there is room for, at least one: "k_... add, k_... matmul, and 3 more steps". */
static void put_steps(text *t, const tn__cuda_work *work, size_t room)
{
    size_t taken = 0;
    for (int i = 0; i < work->step_count; i++) {
        char name[512];
        text one = {name, sizeof name};
        put_step(&one, work->step[i].step);
        size_t length = sizeof name - one.left + 2;
        if (i && taken + length > room) {
            put(t, ", and %d more step%s", work->step_count - i, work->step_count - i > 1 ? "s" : "");
            return;
        }
        put(t, "%s%.*s%s", i ? ", " : "", (int)room, name, length > room + 2 ? "..." : "");
        taken += length;
    }
}

static void put_work(text *t, const tn__cuda_device *device, const tn__cuda_work *work, size_t room)
{
    if (work->kernel) {
        put(t, "kernel %s", work->kernel);
    } else if (device->blocking && work->at >= 0 && work->at < work->step_count) {
        put_step(t, work->step[work->at].step);
        put(t, " of ");
        put_plan(t, work);
    } else {
        size_t left = t->left;
        put_plan(t, work);
        put(t, ": ");
        put_steps(t, work, room - (left - t->left));
    }
}

typedef struct candidate {
    const tn__cuda_work *work;
    uint64_t started;
} candidate;

/* Is a named before b? Users' kernels come first, as they are the likeliest cause; then what was started last. */
static bool rather(candidate a, candidate b)
{
    bool a_own = a.work->kernel, b_own = b.work && b.work->kernel;
    return b.work == NULL || (a_own == b_own ? a.started > b.started : a_own);
}

/* Finds the works to name, and returns how many candidates there are in all. */
static int find(const tn__cuda_device *device, candidate *list)
{
    int count = 0;
    for (const tn__cuda_work *work = device->works; work; work = work->next) {
        candidate fresh = {work, under_way(device, work)};
        count += fresh.started > 0;
        for (int i = 0; i < NAMED && fresh.work && fresh.started; i++)
            if (rather(fresh, list[i])) {
                candidate next = list[i];
                list[i] = fresh;
                fresh = next;
            }
    }
    return count;
}

/* Sorts works by the time of their start. */
static void sort(candidate *list, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && list[k].started < list[k - 1].started; k--) {
            candidate before = list[k - 1];
            list[k - 1] = list[k];
            list[k] = before;
        }
}

static void put_candidates(text *t, const tn__cuda_device *device)
{
    candidate list[NAMED] = {{NULL, 0}};
    int count = find(device, list), named = count < NAMED ? count : NAMED;
    if (count == 0) {
        put(t, "no work of Tanso's was under way");
        return;
    }
    sort(list, named);
    put(t, "%s ", device->blocking ? "what failed is" : "the work under way was");
    if (count > named)
        put(t, "%d pieces, among them ", count);
    for (int i = 0; i < named; i++) {
        put(t, "%s", i ? "; " : "");
        put_work(t, device, list[i].work, ROOM / (size_t)named);
    }
    put(t, "%s", count > 1 ? " (started last)" : "");
    if (!device->blocking)
        put(t, ", TANSO_CUDA_BLOCKING=1 tells which of it failed");
}

static void describe(tn__cuda_device *device, CUresult result)
{
    const char *name = "an unknown error", *words = "";
    device->driver->cuGetErrorName(result, &name);
    device->driver->cuGetErrorString(result, &words);
    text t = {device->fault, sizeof device->fault};
    put(&t, "%s is lost after %s (%s); ", device->name, name, words);
    put_candidates(&t, device);
}

bool tn__cuda_latch(tn__cuda_device *device, CUresult result)
{
    if (!ruinous(result))
        return false;
    pthread_mutex_lock(&device->fault_lock);
    if (!device->faulted)
        describe(device, result);
    device->faulted = true;
    pthread_mutex_unlock(&device->fault_lock);
    return true;
}

tn_status tn__cuda_fail_fault(tn__cuda_device *device, const char *what)
{
    device->told = true;
    return tn__fail(TN_ERR_DEVICE, what, "%s", device->fault);
}

tn_status tn__cuda_check(tn__cuda_device *device, CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return TN_OK;
    if (tn__cuda_latch(device, result))
        return tn__cuda_fail_fault(device, what);
    const char *name = "an unknown error", *words = "";
    device->driver->cuGetErrorName(result, &name);
    device->driver->cuGetErrorString(result, &words);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return tn__fail(TN_ERR_MEMORY, what, "%s has no memory left: %s", device->name, words);
    return tn__fail(TN_ERR_DEVICE, what, "%s: %s, %s", device->name, name, words);
}
