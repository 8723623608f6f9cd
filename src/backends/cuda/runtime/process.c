/* SPDX-License-Identifier: MIT */
/*
 * What happens to open devices when the process forks or ends. CUDA cannot be used in a forked child: there, every call
 * fails and says why. When the process ends, a device that has faulted without any call having failed is reported on
 * stderr: work that nobody waited for would otherwise fail silently.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/clock.h"
#include "core/log.h"
#include "device/registry.h"

#define PATIENCE 2.0 /* seconds that the end of the process waits for work, which may be endless */

static tn__cuda_device *_Atomic opened[TN__MAX_DEVICES];
static _Atomic int open_count;
static bool is_child;

bool tn__cuda_is_child(void) { return is_child; }

static void lose_all(void)
{
    is_child = true;
    for (int i = 0; i < TN__MAX_DEVICES; i++) {
        tn__cuda_device *device = opened[i];
        if (device == NULL)
            continue;
        device->told = true; /* the child has nothing to report at its end */
        if (device->faulted)
            continue;
        snprintf(device->fault, sizeof device->fault, "%s is the parent's: " TN__CUDA_NO_CHILD, device->name);
        device->faulted = true;
    }
}

/* Until a stream has nothing to do, without a lock: another thread may hold it for ever by now. */
static CUresult ask(tn__cuda_device *device, CUstream stream, double end)
{
    const struct timespec moment = {.tv_nsec = 100000};
    CUresult result = device->driver->cuStreamQuery(stream);
    if (result == CUDA_ERROR_NOT_READY && tn__cuda_may_wait(device, "the process ends") == TN_OK)
        while (result == CUDA_ERROR_NOT_READY && tn__seconds() < end) {
            nanosleep(&moment, NULL);
            result = device->driver->cuStreamQuery(stream);
        }
    return result;
}

static void look(tn__cuda_device *device, double end)
{
    bool told = device->told;
    if (!device->faulted && device->driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS) {
        (void)tn__cuda_flush(device); /* no caller is left to be told of a failure */
        for (uint32_t streams = device->owner->streams | 1; streams && !device->faulted; streams &= streams - 1)
            (void)tn__cuda_latch(device, ask(device, device->streams[__builtin_ctz(streams)].handle, end));
    }
    if (device->faulted && !told)
        tn__log(TN__LOG_ERROR, "cuda", "%s; no call has waited for it: tn_synchronize would have failed",
                device->fault);
}

/* Runs before the driver's own exit handler, as it was registered after that. */
static void look_at_all(void)
{
    double end = tn__seconds() + PATIENCE;
    for (int i = 0; i < TN__MAX_DEVICES; i++)
        if (opened[i])
            look(opened[i], end);
}

/* If there is no memory to register them, the driver's own messages remain, if any. */
static void watch(void)
{
    (void)!pthread_atfork(NULL, NULL, lose_all);
    (void)!atexit(look_at_all);
}

void tn__cuda_watch(tn__cuda_device *device, int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    if (index < 0 || index >= TN__MAX_DEVICES)
        return;
    opened[index] = device;
    open_count++;
}

/* Leaves an error that was met on another device to that device's next caller. */
static void leave_failure(tn__cuda_device *other, bool told)
{
    tn__error *none = NULL, *error = tn__error_retain(tn__error_last());
    other->told = told;
    if (other->faulted || !__atomic_compare_exchange_n(&other->failure, &none, error, false, __ATOMIC_ACQ_REL,
                                                       __ATOMIC_RELAXED))
        tn__error_release(error);
    tn_clear_error();
}

void tn__cuda_flush_others(const tn__cuda_device *device)
{
    bool entered = false;
    if (open_count < 2 || tn__latched())
        return;
    for (int i = 0; i < TN__MAX_DEVICES; i++) {
        tn__cuda_device *other = opened[i];
        if (other == NULL || other == device || other->held.count == 0 || other->faulted)
            continue;
        bool told = other->told;
        entered = true;
        if (tn__cuda_enter(other, "run") != TN_OK)
            leave_failure(other, told);
    }
    if (entered)
        (void)device->driver->cuCtxSetCurrent(device->context);
}
