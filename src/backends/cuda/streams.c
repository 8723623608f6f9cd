/* SPDX-License-Identifier: MIT */
/*
 * Streams and events of a GPU. All of Tanso's work on a device goes on the device's one stream, as results share memory in the
 * order of that stream; so a stream that a program asks for is that one, under another name.
 */
#include "backends/cuda/backend.h"
#include "core/memory.h"

static void *stream_new(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    return tn__cuda_enter(device, "stream_new") == TN_OK ? device->stream : NULL;
}

static tn_status stream_wait(tn__device *owner, void *stream)
{
    (void)stream;
    return tn__cuda_synchronize(owner);
}

static void stream_free(tn__device *owner, void *stream)
{
    (void)stream_wait(owner, stream); /* a failure is latched */
}

static tn_status stream_enter(tn__device *owner, void *stream)
{
    (void)stream;
    return tn__cuda_enter(tn__cuda_of(owner), "on_stream");
}

static void *stream_native(tn__device *owner)
{
    owner->lent = true;
    return tn__cuda_enter(tn__cuda_of(owner), "stream_native") == TN_OK ? tn__cuda_of(owner)->stream : NULL;
}

static void *event_new(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    CUevent event = NULL;
    tn_status status = tn__cuda_enter(device, "event_new");
    if (status == TN_OK)
        status = tn__cuda_check(device, device->driver->cuEventCreate(&event, CU_EVENT_DEFAULT), "event_new");
    return status == TN_OK ? event : NULL;
}

static void event_free(tn__device *owner, void *event)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    if (device->driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS)
        device->driver->cuEventDestroy(event);
}

static tn_status event_record(tn__device *owner, void *event)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "event_record");
    return status == TN_OK
               ? tn__cuda_check(device, device->driver->cuEventRecord(event, device->stream), "event_record")
               : status;
}

/* An event of the stream that waits for it is behind that stream already. */
static tn_status event_follow(tn__device *owner, void *event)
{
    (void)event;
    return tn__cuda_enter(tn__cuda_of(owner), "event_wait");
}

static tn_status event_wait(tn__device *owner, void *event)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "event_synchronize");
    return status == TN_OK ? tn__cuda_wait_event(device, event, "event_synchronize") : status;
}

static tn_status event_elapsed(tn__device *owner, void *from, void *to, double *seconds)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    float milliseconds = 0;
    tn_status status = tn__cuda_enter_held(device, "event_elapsed"); /* in a thread that has no context yet, too */
    if (status == TN_OK)
        status = tn__cuda_check(device, device->driver->cuEventElapsedTime(&milliseconds, from, to), "event_elapsed");
    *seconds = (double)milliseconds / 1e3;
    return status;
}

const tn__stream_ops tn__cuda_streams = {
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_enter = stream_enter,
    .stream_wait = stream_wait,
    .stream_native = stream_native,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_follow = event_follow,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
};
