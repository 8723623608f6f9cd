/* SPDX-License-Identifier: MIT */
/* Streams and events: the backend's where it has some; else work is done when its call returns, and an event is a
 * moment. */
#include <math.h>
#include <tanso/device.h>
#include <tanso/stream.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/object.h"
#include "device/device.h"

struct tn_stream {
    tn__object object;
    tn__error *error; /* that it has been freed */
    tn__device *device;
    int number; /* among its streams; 0: on devices without */
};

struct tn_event {
    tn__object object;
    tn__error *error; /* that it has been freed */
    tn__device *device;
    void *handle;
    bool recorded;
    double moment; /* seconds, without a backend's event */
};

static tn__object_kind streams = TN__OBJECT_KIND(tn_stream, "stream"), events = TN__OBJECT_KIND(tn_event, "event");

tn_status tn_synchronize(tn_device device)
{
    TN__NO_PLACE();
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return tn__error_status(tn__error_last());
    return opened->ops->synchronize ? opened->ops->synchronize(opened) : TN_OK;
}

/* ---- streams ---- */

tn_stream *tn_stream_new(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return NULL;
    tn_stream *stream = tn__object_new(&streams);
    if (!stream) {
        tn__fail_memory("stream", sizeof *stream);
        return NULL;
    }
    stream->device = opened;
    const tn__stream_ops *ops = opened->ops->streams;
    if (ops && (stream->number = ops->stream_new(opened)) < 0) {
        tn__free(stream);
        return NULL;
    }
    return stream;
}

void tn_stream_free(tn_stream *stream)
{
    if (!stream || !tn__object_may_go(&streams, &stream->object))
        return;
    const tn__stream_ops *ops = stream->device->ops->streams;
    if (ops)
        ops->stream_free(stream->device, stream->number);
    tn__object_end(&streams, &stream->object);
}

static tn_status stream_there(const tn_stream *stream, const char *operation)
{
    if (!stream)
        return tn__fail_null(operation, "a stream");
    return stream->error ? tn__error_raise(stream->error) : TN_OK;
}

tn_device tn_stream_device(const tn_stream *stream)
{
    return stream_there(stream, "device_of") == TN_OK ? stream->device->id : (tn_device){0};
}

tn_status tn_stream_synchronize(tn_stream *stream)
{
    TN__NO_PLACE();
    tn_status status = stream_there(stream, "stream_synchronize");
    if (status != TN_OK)
        return status;
    const tn__stream_ops *ops = stream->device->ops->streams;
    return ops ? ops->stream_wait(stream->device, stream->number) : TN_OK;
}

void *tn_stream_native(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    return opened && opened->ops->streams ? opened->ops->streams->stream_native(opened) : NULL;
}

tn__stream_guard tn__stream_enter(tn_stream *stream)
{
    if (stream && stream_there(stream, "on_stream") != TN_OK)
        stream = NULL;
    return (tn__stream_guard){stream, stream ? tn__stream_choose(stream->device, stream->number) : 0};
}

void tn__stream_leave(tn__stream_guard *guard)
{
    if (guard->stream && !guard->stream->error)
        (void)tn__stream_choose(guard->stream->device, guard->before);
}

/* ---- events ---- */

tn_event *tn_event_new(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return NULL;
    tn_event *event = tn__object_new(&events);
    if (!event) {
        tn__fail_memory("event", sizeof *event);
        return NULL;
    }
    event->device = opened;
    const tn__stream_ops *ops = opened->ops->streams;
    if (ops && !(event->handle = ops->event_new(opened))) {
        tn__free(event);
        return NULL;
    }
    return event;
}

static tn_status event_there(const tn_event *event, const char *operation)
{
    if (!event)
        return tn__fail_null(operation, "an event");
    return event->error ? tn__error_raise(event->error) : TN_OK;
}

tn_device tn_event_device(const tn_event *event)
{
    return event_there(event, "device_of") == TN_OK ? event->device->id : (tn_device){0};
}

void tn_event_free(tn_event *event)
{
    if (!event || !tn__object_may_go(&events, &event->object))
        return;
    if (event->handle)
        event->device->ops->streams->event_free(event->device, event->handle);
    tn__object_end(&events, &event->object);
}

tn_status tn_event_record(tn_event *event)
{
    TN__NO_PLACE();
    tn_status status = event_there(event, "event_record");
    if (status != TN_OK)
        return status;
    status = event->handle ? event->device->ops->streams->event_record(event->device, event->handle) : TN_OK;
    event->moment = tn__seconds();
    event->recorded = event->recorded || status == TN_OK;
    return status;
}

static tn_status recorded(const tn_event *event, const char *operation)
{
    tn_status status = event_there(event, operation);
    if (status != TN_OK)
        return status;
    if (!event->recorded)
        return tn__fail(TN_ERR_STATE, operation, "the event has not been recorded: call tn_event_record first");
    return TN_OK;
}

tn_status tn_event_wait(tn_event *event)
{
    TN__NO_PLACE();
    tn_status status = recorded(event, "event_wait");
    return status == TN_OK && event->handle ? event->device->ops->streams->event_follow(event->device, event->handle)
                                            : status;
}

static tn_status reach(tn_event *event, const char *operation)
{
    tn_status status = recorded(event, operation);
    return status == TN_OK && event->handle ? event->device->ops->streams->event_wait(event->device, event->handle)
                                            : status;
}

tn_status tn_event_synchronize(tn_event *event)
{
    TN__NO_PLACE();
    return reach(event, "event_synchronize");
}

double tn_event_elapsed(tn_event *from, tn_event *to)
{
    double seconds = NAN;
    if (reach(from, "event_elapsed") != TN_OK || reach(to, "event_elapsed") != TN_OK)
        return NAN;
    if (from->device != to->device) {
        tn__fail(TN_ERR_DEVICE, "event_elapsed",
                 "expected events of one device, got %s and %s, which have no common clock",
                 from->device->name, to->device->name);
        return NAN;
    }
    if (!from->handle)
        return to->moment - from->moment;
    tn_status status = from->device->ops->streams->event_elapsed(from->device, from->handle, to->handle, &seconds);
    return status == TN_OK ? seconds : NAN;
}
