/* SPDX-License-Identifier: MIT */
/* A GPU's context, its memory, and waiting for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/runtime/backend.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/signals.h"

/* ---- coming in ---- */

tn_status tn__cuda_enter_held(tn__cuda_device *device, const char *what)
{
    if (device->faulted)
        return tn__cuda_fail_fault(device, what);
    return tn__cuda_check(device, device->driver->cuCtxSetCurrent(device->context), what);
}

tn_status tn__cuda_enter(tn__cuda_device *device, const char *what)
{
    tn_status status = tn__cuda_enter_held(device, what);
    return status == TN_OK ? tn__cuda_flush(device) : status;
}

/* ---- waiting ---- */

tn_status tn__cuda_may_wait(tn__cuda_device *device, const char *why)
{
    device->wait_count++;
    tn__cuda_flush_others(device);
    if (device->waits == TN__CUDA_WAITS_ALLOWED)
        return TN_OK;
    if (device->waits == TN__CUDA_WAITS_FORBIDDEN)
        return tn__fail(TN_ERR_STATE, why, "this waits for %s, which TANSO_CUDA_SYNC=forbid forbids", device->name);
    tn__log(TN__LOG_WARN, "cuda", "waiting for %s: %s", device->name, why);
    return TN_OK;
}

void tn__cuda_may_wait_if_busy(tn__cuda_device *device, const char *why)
{
    for (uint32_t streams = device->owner->streams | 1; streams; streams &= streams - 1)
        if (device->driver->cuStreamQuery(device->streams[__builtin_ctz(streams)].handle) == CUDA_ERROR_NOT_READY)
            (void)tn__cuda_may_wait(device, why);
}

tn_status tn__cuda_wait(tn__cuda_device *device, const char *why)
{
    tn_status status = TN_OK;
    for (uint32_t streams = device->owner->streams | 1; streams && status == TN_OK; streams &= streams - 1) {
        status = tn__cuda_may_wait(device, why);
        if (status == TN_OK)
            status = tn__cuda_check(device, tn__cuda_finish_stream(device, __builtin_ctz(streams)), why);
    }
    return status;
}

tn_status tn__cuda_wait_event(tn__cuda_device *device, CUevent event, tn__cuda_point point, const char *why)
{
    tn_status status = tn__cuda_may_wait(device, why);
    if (status == TN_OK)
        status = tn__cuda_check(device, tn__cuda_await(device, point.stream, event), why);
    if (status == TN_OK)
        tn__cuda_good(device, point);
    return status;
}

tn_status tn__cuda_started(const tn__cuda_run *run, CUresult result, const char *label)
{
    tn__cuda_device *device = run->device;
    if (result != CUDA_SUCCESS || run->recording)
        return tn__cuda_check(device, result, label);
    tn__cuda_note(device, run->work, run->number);
    return device->blocking ? tn__cuda_check(device, tn__cuda_finish_stream(device, run->number), label) : TN_OK;
}

/* ---- memory ---- */

void *tn__cuda_allocate(tn__device *device, size_t bytes)
{
    tn__cuda_device *cuda = tn__cuda_of(device);
    CUdeviceptr memory = 0;
    if (tn__cuda_enter_held(cuda, "allocate") != TN_OK)
        return NULL;
    CUresult result = cuda->driver->cuMemAlloc(&memory, bytes ? bytes : 1);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) /* the allocator's own error for that says more */
        tn__cuda_check(cuda, result, "allocate");
    return result == CUDA_SUCCESS ? (void *)memory : NULL;
}

tn_status tn__cuda_own_memory(tn__cuda_device *device, CUdeviceptr *memory, size_t bytes, const char *what)
{
    CUresult result;
    do
        result = device->driver->cuMemAlloc(memory, bytes);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && tn__device_relieve(device->owner));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? tn__device_exhausted(device->owner, bytes)
                                              : tn__cuda_check(device, result, what);
}

void tn__cuda_release(tn__device *device, void *memory, size_t bytes)
{
    (void)bytes;
    tn__cuda_device *cuda = tn__cuda_of(device);
    /* At exit the driver may have shut down and freed all memory; a faulted context has none either. */
    if (cuda->driver->cuCtxSetCurrent(cuda->context) != CUDA_SUCCESS)
        return;
    (void)tn__cuda_flush(cuda); /* runs that are held back may use the memory; a failure is latched */
    tn__cuda_may_wait_if_busy(cuda, "memory goes back to the driver");
    cuda->driver->cuMemFree((CUdeviceptr)memory);
}

tn_status tn__cuda_copy(tn__device *device, void *to, const void *from, size_t bytes)
{
    tn__cuda_device *cuda = tn__cuda_of(device);
    tn_status status = tn__cuda_enter(cuda, "copy");
    if (status == TN_OK)
        status = tn__cuda_look(cuda);
    if (status != TN_OK || bytes == 0 || to == from)
        return status;
    pthread_mutex_lock(&cuda->lock);
    CUresult result = cuda->driver->cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes, tn__cuda_stream(cuda));
    tn__cuda_asked(cuda);
    pthread_mutex_unlock(&cuda->lock);
    return tn__cuda_check(cuda, result, "copy");
}

tn_status tn__cuda_synchronize(tn__device *device)
{
    tn__cuda_device *cuda = tn__cuda_of(device);
    tn_status status = tn__cuda_enter(cuda, "synchronize");
    if (status == TN_OK)
        status = tn__cuda_wait(cuda, "synchronize");
    return status == TN_OK ? tn__cuda_look(cuda) : status;
}

/* ---- opening ---- */

static int attribute(tn__cuda_device *device, CUdevice_attribute which)
{
    int value = 0;
    device->driver->cuDeviceGetAttribute(&value, which, device->device);
    return value;
}

static tn_status open_context(tn__cuda_device *device, int index)
{
    const tn__cuda_driver *driver = device->driver;
    tn_status status = tn__cuda_check(device, driver->cuDeviceGet(&device->device, index), "open");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuDevicePrimaryCtxRetain(&device->context, device->device), "open");
    if (status != TN_OK)
        return status;
    status = tn__cuda_check(device, driver->cuCtxSetCurrent(device->context), "open");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuStreamCreate(&device->stream, CU_STREAM_NON_BLOCKING), "open");
    device->streams[0].handle = device->stream;
    if (status == TN_OK)
        status = tn__cuda_failures_open(device);
    if (status == TN_OK)
        return TN_OK;
    if (device->stream)
        driver->cuStreamDestroy(device->stream);
    driver->cuDevicePrimaryCtxRelease(device->device);
    return status;
}

static tn__cuda_waits waits_wanted(void)
{
    const char *given = getenv("TANSO_CUDA_SYNC");
    if (given == NULL || !*given)
        return TN__CUDA_WAITS_ALLOWED;
    if (strcmp(given, "report") == 0)
        return TN__CUDA_WAITS_REPORTED;
    if (strcmp(given, "forbid") == 0)
        return TN__CUDA_WAITS_FORBIDDEN;
    tn__log(TN__LOG_WARN, "cuda", "TANSO_CUDA_SYNC: expected report or forbid, got '%s'", given);
    return TN__CUDA_WAITS_ALLOWED;
}

static bool switched_off(const char *name)
{
    const char *given = getenv(name);
    bool off = given && (strcmp(given, "off") == 0 || strcmp(given, "0") == 0);
    if (given && *given && !off && strcmp(given, "on") != 0 && strcmp(given, "1") != 0)
        tn__log(TN__LOG_WARN, "cuda", "%s: expected off or on, got '%s'", name, given);
    return off;
}

/* A device that has no context yet; NULL without memory. */
static tn__cuda_device *device_new(const tn__cuda_libraries *libraries, int index, tn__device *owner)
{
    tn__cuda_device *device = tn__calloc(1, sizeof *device);
    if (device == NULL)
        return NULL;
    device->libraries = libraries;
    device->driver = &libraries->driver;
    device->owner = owner;
    device->waits = waits_wanted();
    device->blocking = getenv("TANSO_CUDA_BLOCKING") != NULL && !switched_off("TANSO_CUDA_BLOCKING");
    device->graphs = libraries->has_graphs && !device->blocking && !switched_off("TANSO_CUDA_GRAPHS");
    snprintf(device->name, sizeof device->name, "cuda:%d", index);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&device->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_mutex_init(&device->fault_lock, NULL);
    pthread_mutex_init(&device->held.lock, NULL);
    return device;
}

static void device_free(tn__cuda_device *device)
{
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->fault_lock);
    pthread_mutex_destroy(&device->held.lock);
    tn__free(device);
}

/* Finds out the device's capabilities; it has a context by now. */
static void find_capabilities(tn__cuda_device *device)
{
    size_t memory = 0;
    device->driver->cuDeviceTotalMem(&memory, device->device);
    device->driver->cuDeviceGetName(device->product, sizeof device->product, device->device);
    device->architecture = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                           attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->owner->capabilities = (tn__capabilities){
        .target = TN__TARGET_CUDA,
        .late_failures = true,
        .clusters = device->architecture >= 90,
        .product_kernels = device->architecture >= 80, /* they need asynchronous copies to shared memory */
        .epilogues = device->libraries->has_blas,
        .channels_last = true,
        .convolutions = true, /* if there is cuDNN, which is loaded when the first convolution is compiled */
        .threads = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .shared_memory = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .total_memory = memory,
    };
    int version = device->libraries->driver_version;
    tn__log(TN__LOG_INFO, "cuda", "%s is %s, sm_%d, %zu MiB; driver %d.%d", device->name, device->product,
            device->architecture, memory >> 20, version / 1000, version % 1000 / 10);
}

tn_status tn__cuda_device_open(int index, tn__device *owner)
{
    const char *why = NULL;
    const tn__cuda_libraries *libraries = tn__cuda_open(&why);
    if (libraries == NULL)
        return tn__fail(TN_ERR_DEVICE, "cuda", "%s", why);
    if (tn__cuda_is_child())
        return tn__fail(TN_ERR_DEVICE, "cuda", "a GPU of the parent's: " TN__CUDA_NO_CHILD);
    tn__cuda_device *device = device_new(libraries, index, owner);
    if (device == NULL)
        return tn__fail_memory("cuda", sizeof *device);
    sigset_t before;
    tn__signals_hold(&before); /* so that the driver's threads handle no signals of the program's */
    tn_status status = open_context(device, index);
    tn__signals_let(&before);
    if (status != TN_OK) {
        device_free(device);
        return status;
    }
    owner->backend_data = device;
    tn__cuda_watch(device, index);
    find_capabilities(device);
    return TN_OK;
}
