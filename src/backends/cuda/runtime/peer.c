/* SPDX-License-Identifier: MIT */
/*
 * Copies between GPUs, which the host does not wait for. The copy is put on the receiving GPU's stream, which first
 * waits for an event on the sending GPU's stream; the sending GPU's stream then waits for the copy, so that no later
 * work overwrites what is being copied. Where GPUs reach each other's memory, by NVLink or over the bus, the driver
 * copies straight from one to the other, else by way of the host.
 */
#include "backends/cuda/runtime/backend.h"

/* Waits for runs that may fail. A failing run marks its results and later ones as poisoned (failure.c), but could not
 * mark another device's copy of them. */
tn_status tn__cuda_be_sure(tn__cuda_device *device, const char *why)
{
    tn_status status = TN_OK;
    uint64_t last = device->may_fail;
    if (device->sure >= last)
        return TN_OK;
    for (uint32_t streams = device->owner->streams | 1; streams && status == TN_OK; streams &= streams - 1) {
        int stream = __builtin_ctz(streams);
        CUresult result = device->driver->cuStreamQuery(device->streams[stream].handle);
        if (result == CUDA_ERROR_NOT_READY) {
            status = tn__cuda_may_wait(device, why);
            result = status == TN_OK ? tn__cuda_finish_stream(device, stream) : CUDA_SUCCESS;
        }
        if (status == TN_OK)
            status = tn__cuda_check(device, result, "to");
    }
    if (status == TN_OK)
        status = tn__cuda_look(device);
    if (status == TN_OK)
        device->sure = last; /* another thread may have stored a later run meanwhile: that costs one more wait */
    return status;
}

/* Enables peer access, once for each pair of GPUs and direction. Without it the driver copies by way of the host. */
static void reach(tn__cuda_device *device, const tn__cuda_device *other)
{
    const tn__cuda_driver *driver = device->driver;
    uint32_t bit = (uint32_t)1 << other->owner->id.index;
    int can = 0;
    if (device->reaches & bit)
        return;
    device->reaches |= bit;
    if (driver->cuDeviceCanAccessPeer(&can, device->device, other->device) == CUDA_SUCCESS && can &&
        driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS)
        (void)driver->cuCtxEnablePeerAccess(other->context, 0);
}

/* Records the current end of this thread's stream, for other devices. */
static tn_status hand_over(tn__cuda_device *device)
{
    const tn__cuda_driver *driver = device->driver;
    tn_status status = tn__cuda_check(device, driver->cuCtxSetCurrent(device->context), "to");
    if (status == TN_OK && device->handed == NULL)
        status = tn__cuda_check(device, driver->cuEventCreate(&device->handed, CU_EVENT_DISABLE_TIMING), "to");
    return status == TN_OK
               ? tn__cuda_check(device, driver->cuEventRecord(device->handed, tn__cuda_stream(device)), "to")
               : status;
}

/* This thread's stream waits for what the other device has handed over. */
static tn_status follow(tn__cuda_device *device, const tn__cuda_device *other)
{
    const tn__cuda_driver *driver = device->driver;
    tn_status status = tn__cuda_check(device, driver->cuCtxSetCurrent(device->context), "to");
    return status == TN_OK ? tn__cuda_check(
                                 device, driver->cuStreamWaitEvent(tn__cuda_stream(device), other->handed, 0), "to")
                           : status;
}

/* Latches a fault of both devices: the driver does not say which one is at fault. */
static tn_status blame(tn__cuda_device *device, tn__cuda_device *other, CUresult result)
{
    const tn__cuda_driver *driver = device->driver;
    if (result != CUDA_SUCCESS && driver->cuCtxSetCurrent(other->context) == CUDA_SUCCESS &&
        tn__cuda_latch(other, driver->cuStreamQuery(other->stream)))
        return tn__cuda_fail_fault(other, "to");
    return tn__cuda_check(device, result, "to");
}

/* The caller holds the locks of both devices. */
static tn_status copy(tn__cuda_device *device, CUdeviceptr to, tn__cuda_device *other, CUdeviceptr from, size_t bytes)
{
    reach(device, other);
    reach(other, device);
    tn_status status = hand_over(other);
    if (status == TN_OK)
        status = follow(device, other);
    if (status == TN_OK)
        status = blame(device, other, device->driver->cuMemcpyPeerAsync(to, device->context, from, other->context,
                                                                        bytes, tn__cuda_stream(device)));
    if (status == TN_OK)
        status = hand_over(device);
    if (status == TN_OK)
        status = follow(other, device);
    tn__cuda_asked(device);
    tn__cuda_asked(other);
    return status;
}

tn_status tn__cuda_copy_from(tn__device *owner, void *to, tn__device *other_owner, const void *from, size_t bytes)
{
    tn__cuda_device *device = tn__cuda_of(owner), *other = tn__cuda_of(other_owner);
    tn_status status = tn__cuda_enter(other, "to");
    if (status == TN_OK)
        status = tn__cuda_look(other);
    if (status == TN_OK)
        status = tn__cuda_be_sure(other, "what goes to another GPU may yet fail");
    if (status == TN_OK)
        status = tn__cuda_enter(device, "to");
    if (status == TN_OK)
        status = tn__cuda_look(device);
    if (status != TN_OK || bytes == 0)
        return status;
    bool first = owner->id.index < other_owner->id.index; /* locks are taken in the order of the devices' numbers, so
                                                             that no two threads wait for each other */
    pthread_mutex_lock(first ? &device->lock : &other->lock);
    pthread_mutex_lock(first ? &other->lock : &device->lock);
    status = copy(device, (CUdeviceptr)to, other, (CUdeviceptr)from, bytes);
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_unlock(&other->lock);
    return status;
}
