/* SPDX-License-Identifier: MIT */
/* Streams and events of a GPU, as programs have them. */
#include "backends/cuda/runtime/backend.h"
#include "core/memory.h"

typedef struct event {
    CUevent event;
    _Atomic int stream; /* the stream that it was recorded in */
    _Atomic uint64_t started; /* see tn__cuda_point */
} event;

static tn_status stream_wait(tn__device *owner, int stream)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "stream_synchronize");
    if (status == TN_OK)
        status = tn__cuda_may_wait(device, "stream_synchronize");
    if (status == TN_OK)
        status = tn__cuda_check(device, tn__cuda_finish_stream(device, stream), "stream_synchronize");
    return status == TN_OK ? tn__cuda_look(device) : status;
}

static void *stream_native(tn__device *owner)
{
    owner->lent = true;
    return tn__cuda_enter(tn__cuda_of(owner), "stream_native") == TN_OK ? tn__cuda_stream(tn__cuda_of(owner)) : NULL;
}

static void *event_new(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    event *made = tn__calloc(1, sizeof *made);
    if (made == NULL) {
        tn__fail_memory("event_new", sizeof *made);
        return NULL;
    }
    tn_status status = tn__cuda_enter(device, "event_new");
    if (status == TN_OK)
        status = tn__cuda_check(device, device->driver->cuEventCreate(&made->event, CU_EVENT_DEFAULT), "event_new");
    if (status == TN_OK)
        return made;
    tn__free(made);
    return NULL;
}

static void event_free(tn__device *owner, void *handle)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    event *gone = handle;
    if (device->driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS)
        device->driver->cuEventDestroy(gone->event);
    tn__free(gone);
}

static tn_status event_record(tn__device *owner, void *handle)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    event *recorded = handle;
    tn_status status = tn__cuda_enter(device, "event_record");
    if (status != TN_OK)
        return status;
    tn__cuda_point here = tn__cuda_here(device, tn__stream_number(owner));
    recorded->stream = here.stream;
    recorded->started = here.started;
    return tn__cuda_check(device, device->driver->cuEventRecord(recorded->event, tn__cuda_stream(device)),
                          "event_record");
}

/* A stream that waits for an event of its own is behind it already. */
static tn_status event_follow(tn__device *owner, void *handle)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    event *awaited = handle;
    tn_status status = tn__cuda_enter(device, "event_wait");
    if (status != TN_OK || awaited->stream == tn__stream_number(owner))
        return status;
    return tn__cuda_check(device, device->driver->cuStreamWaitEvent(tn__cuda_stream(device), awaited->event, 0),
                          "event_wait");
}

static tn_status event_wait(tn__device *owner, void *handle)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    event *awaited = handle;
    tn_status status = tn__cuda_enter(device, "event_synchronize");
    tn__cuda_point point = {awaited->stream, awaited->started};
    return status == TN_OK ? tn__cuda_wait_event(device, awaited->event, point, "event_synchronize") : status;
}

static tn_status event_elapsed(tn__device *owner, void *from, void *to, double *seconds)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    float milliseconds = 0;
    CUevent first = ((event *)from)->event, last = ((event *)to)->event;
    tn_status status = tn__cuda_enter_held(device, "event_elapsed"); /* the thread may not have a current context yet */
    if (status == TN_OK)
        status =
            tn__cuda_check(device, device->driver->cuEventElapsedTime(&milliseconds, first, last), "event_elapsed");
    *seconds = (double)milliseconds / 1e3;
    return status;
}

static void *stream_take(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "comm");
    if (status == TN_OK)
        status = tn__cuda_look(device);
    if (status == TN_OK)
        status = tn__cuda_be_sure(device, "what goes to another process may yet fail");
    return status == TN_OK ? tn__cuda_stream(device) : NULL;
}

static void stream_give(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    pthread_mutex_lock(&device->lock);
    device->started++;
    tn__cuda_asked(device);
    pthread_mutex_unlock(&device->lock);
}

static tn_status stream_enter(tn__device *owner) { return tn__cuda_enter_held(tn__cuda_of(owner), "comm"); }

static void *stream_kernel(tn__device *owner, const char *text, const char *name)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn__cuda_module *module;
    CUfunction kernel;
    tn_status status = tn__cuda_enter_held(device, "comm");
    if (status == TN_OK)
        status = tn__cuda_module_load(device, text, &module);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, module, name, &kernel);
    return status == TN_OK ? kernel : NULL;
}

const tn__stream_ops tn__cuda_streams = {
    .stream_new = tn__cuda_stream_new,
    .stream_free = tn__cuda_stream_free,
    .stream_wait = stream_wait,
    .stream_native = stream_native,
    .stream_order = tn__cuda_stream_order,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_follow = event_follow,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .stream_take = stream_take,
    .stream_give = stream_give,
    .stream_enter = stream_enter,
    .stream_kernel = stream_kernel,
};
