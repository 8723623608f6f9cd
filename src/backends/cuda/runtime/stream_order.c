/* SPDX-License-Identifier: MIT */
/*
 * Streams side by side. One waits for another on the device, for an event that is recorded behind what the other was
 * asked; what a stream is behind already, or the host has waited for, it does not wait for again. Each time that
 * something is to come behind a stream, its event is then recorded anew: whoever comes next needs what was asked until
 * now more likely than what is asked in between. So copies into memory of the step before last do not wait for the last
 * step.
 */
#include <sched.h>
#include <time.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/clock.h"

/* Records a stream's event anew. The caller holds the lock, as for all functions below, and held-back runs of this
 * stream have been launched. */
static tn_status mark(tn__cuda_device *device, tn__cuda_stream_state *stream)
{
    const tn__cuda_driver *driver = device->driver;
    tn_status status = TN_OK;
    if (stream->mark == NULL)
        status = tn__cuda_check(device, driver->cuEventCreate(&stream->mark, CU_EVENT_DISABLE_TIMING), "order");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuEventRecord(stream->mark, stream->handle), "order");
    if (status == TN_OK)
        stream->marked = stream->asked;
    return status;
}

/* What a stream was asked last up to a tick, which may be another stream's: memory notes one tick for all that used it.
 * Of what is older than all that the stream remembers, the tick itself, which is later. */
static uint64_t reached(const tn__cuda_stream_state *stream, uint64_t tick)
{
    if (tick >= stream->asked)
        return stream->asked;
    uint64_t last = 0;
    for (int i = 0; i < TN__CUDA_ASKED_BEFORE; i++)
        if (stream->before[i] <= tick && stream->before[i] > last)
            last = stream->before[i];
    return last ? last : tick;
}

/* If the program has obtained the CUDA stream itself, it may have put work on it that is not counted here. */
static bool ordered(const tn__cuda_device *device, const tn__cuda_stream_state *stream, int other, uint64_t tick)
{
    const tn__cuda_stream_state *o = &device->streams[other];
    uint64_t need = reached(o, tick);
    return o->handle == NULL || (!device->owner->lent && (need <= stream->behind[other] || need <= o->done));
}

static tn_status go_behind(tn__cuda_device *device, tn__cuda_stream_state *stream, int other, uint64_t tick)
{
    tn__cuda_stream_state *o = &device->streams[other];
    tn_status status = TN_OK;
    if (device->owner->lent || o->mark == NULL || reached(o, tick) > o->marked)
        status = mark(device, o);
    if (status == TN_OK)
        status = tn__cuda_check(device, device->driver->cuStreamWaitEvent(stream->handle, o->mark, 0), "order");
    if (status != TN_OK)
        return status;
    stream->behind[other] = o->marked;
    return TN_OK;
}

tn_status tn__cuda_stream_order(tn__device *owner, uint32_t streams, uint64_t tick)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter_held(device, "order");
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    tn__cuda_stream_state *stream = &device->streams[tn__stream_number(owner)];
    for (; streams && status == TN_OK; streams &= streams - 1) {
        int other = __builtin_ctz(streams);
        const tn__cuda_stream_state *o = &device->streams[other];
        bool done = ordered(device, stream, other, tick);
        if (!done || o->asked > o->marked)
            status = tn__cuda_flush(device); /* held-back runs come before the event, and before the work that waits
                                                for it */
        if (!done && status == TN_OK)
            status = go_behind(device, stream, other, tick);
        if (o->asked > o->marked && status == TN_OK)
            status = mark(device, &device->streams[other]);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* ---- making and freeing ---- */

static tn_status begin_stream(tn__cuda_device *device, int number)
{
    tn__cuda_stream_state *stream = &device->streams[number];
    tn_status status = TN_OK;
    if (stream->handle == NULL)
        status = tn__cuda_check(device, device->driver->cuStreamCreate(&stream->handle, CU_STREAM_NON_BLOCKING),
                                "stream_new");
    if (status == TN_OK)
        status = tn__cuda_flush(device);
    if (status != TN_OK)
        return status;
    tn__cuda_stream_asked(device, &device->streams[0]); /* stands for all earlier work, which was not counted */
    return go_behind(device, stream, 0, device->streams[0].asked);
}

int tn__cuda_stream_new(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    if (tn__cuda_enter_held(device, "stream_new") != TN_OK)
        return -1;
    pthread_mutex_lock(&device->lock);
    uint32_t taken = owner->streams | 1;
    int number = ~taken ? __builtin_ctz(~taken) : -1;
    tn_status status =
        number > 0 ? begin_stream(device, number)
                   : tn__fail(TN_ERR_STATE, "stream_new", "%s has %d streams, the most there are: free one first",
                              device->name, TN__STREAMS - 1);
    if (status == TN_OK)
        atomic_fetch_or(&owner->streams, (uint32_t)1 << number);
    pthread_mutex_unlock(&device->lock);
    return status == TN_OK ? number : -1;
}

void tn__cuda_stream_free(tn__device *owner, int number)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn__cuda_stream_state *stream = &device->streams[number];
    if (tn__cuda_enter(device, "stream_free") == TN_OK) {
        if (device->driver->cuStreamQuery(stream->handle) == CUDA_ERROR_NOT_READY)
            (void)tn__cuda_may_wait(device, "a stream is freed");
        (void)tn__cuda_check(device, tn__cuda_finish_stream(device, number), "stream_free"); /* a failure is latched */
    }
    /* without the lock, which in a forked child may be held for ever */
    atomic_fetch_and(&owner->streams, ~((uint32_t)1 << number));
}

/* ---- waiting ---- */

/* Polls without sleeping at first, as a training step takes no longer than the shortest sleep. */
static void pause_for(long round)
{
    if (round > 100000)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    else if (round > 1000)
        sched_yield();
}

/* True if no stream has work left. */
static bool is_idle(const tn__cuda_device *device)
{
    bool idle = true;
    for (uint32_t streams = device->owner->streams | 1; streams && idle; streams &= streams - 1)
        idle = device->driver->cuStreamQuery(device->streams[__builtin_ctz(streams)].handle) == CUDA_SUCCESS;
    return idle;
}

CUresult tn__cuda_await(tn__cuda_device *device, int number, CUevent event)
{
    const tn__cuda_driver *driver = device->driver;
    CUstream stream = device->streams[number].handle;
    void (*watch)(tn__device *, double) = device->owner->watch;
    if (!watch)
        return event ? driver->cuEventSynchronize(event) : driver->cuStreamSynchronize(stream);
    double since = tn__seconds();
    CUresult result;
    for (long round = 0;; round++) {
        result = event ? driver->cuEventQuery(event) : driver->cuStreamQuery(stream);
        if (result != CUDA_ERROR_NOT_READY)
            break;
        if (event && round % 8 == 7)
            (void)driver->cuStreamQuery(stream); /* a driver of the tests' goes on when its stream is asked */
        if (round % 64 == 63)
            watch(device->owner, since);
        pause_for(round);
    }
    if (!event && is_idle(device))
        watch(device->owner, -1);
    return result;
}

/* The lock is not held during the wait, so that other threads go on. */
CUresult tn__cuda_finish_stream(tn__cuda_device *device, int number)
{
    tn__cuda_stream_state *stream = &device->streams[number];
    pthread_mutex_lock(&device->lock);
    uint64_t asked = stream->asked;
    tn__cuda_point here = tn__cuda_here(device, number);
    pthread_mutex_unlock(&device->lock);
    CUresult result = tn__cuda_await(device, number, NULL);
    if (result == CUDA_SUCCESS)
        tn__cuda_good(device, here);
    pthread_mutex_lock(&device->lock);
    if (result == CUDA_SUCCESS && stream->done < asked)
        stream->done = asked;
    pthread_mutex_unlock(&device->lock);
    return result;
}

CUresult tn__cuda_finish(tn__cuda_device *device)
{
    CUresult result = CUDA_SUCCESS;
    for (uint32_t streams = device->owner->streams | 1; streams && result == CUDA_SUCCESS; streams &= streams - 1)
        result = tn__cuda_finish_stream(device, __builtin_ctz(streams));
    return result;
}
