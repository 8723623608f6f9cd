/* SPDX-License-Identifier: MIT */
/*
 * Lanes: streams side by side. A lane waits for another one on the device, for an event that is recorded behind what
 * the other was asked; what a lane is behind already, or the host has waited for, it does not wait for again. Each time
 * that something is to come behind a lane, its event is then recorded anew: whoever comes next needs what was asked
 * until now more likely than what is asked in between. So copies into memory of the step before last do not wait for
 * the last step.
 */
#include <sched.h>
#include <time.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/clock.h"

/* Under the lock, as all below. What is held back of the own lane has been launched. */
static tn_status mark(tn__cuda_device *device, tn__cuda_lane *lane)
{
    const tn__cuda_driver *driver = device->driver;
    tn_status status = TN_OK;
    if (lane->mark == NULL)
        status = tn__cuda_check(device, driver->cuEventCreate(&lane->mark, CU_EVENT_DISABLE_TIMING), "order");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuEventRecord(lane->mark, lane->stream), "order");
    if (status == TN_OK)
        lane->marked = lane->asked;
    return status;
}

/* What a lane was asked last up to a tick, which may be another lane's: memory notes one tick for all that used it. Of
 * what is older than all that the lane remembers, the tick itself, which is later. */
static uint64_t reached(const tn__cuda_lane *lane, uint64_t tick)
{
    if (tick >= lane->asked)
        return lane->asked;
    uint64_t last = 0;
    for (int i = 0; i < TN__CUDA_ASKED_BEFORE; i++)
        if (lane->before[i] <= tick && lane->before[i] > last)
            last = lane->before[i];
    return last ? last : tick;
}

/* Whoever has got hold of a stream may have put work on it that nobody counted. */
static bool ordered(const tn__cuda_device *device, const tn__cuda_lane *lane, int other, uint64_t tick)
{
    const tn__cuda_lane *o = &device->lane[other];
    uint64_t need = reached(o, tick);
    return o->stream == NULL || (!device->owner->lent && (need <= lane->behind[other] || need <= o->done));
}

static tn_status go_behind(tn__cuda_device *device, tn__cuda_lane *lane, int other, uint64_t tick)
{
    tn__cuda_lane *o = &device->lane[other];
    tn_status status = TN_OK;
    if (device->owner->lent || o->mark == NULL || reached(o, tick) > o->marked)
        status = mark(device, o);
    if (status == TN_OK)
        status = tn__cuda_check(device, device->driver->cuStreamWaitEvent(lane->stream, o->mark, 0), "order");
    if (status != TN_OK)
        return status;
    lane->behind[other] = o->marked;
    return TN_OK;
}

tn_status tn__cuda_lane_order(tn__device *owner, uint32_t lanes, uint64_t tick)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter_held(device, "order");
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    tn__cuda_lane *lane = &device->lane[tn__lane(owner)];
    for (; lanes && status == TN_OK; lanes &= lanes - 1) {
        int other = __builtin_ctz(lanes);
        const tn__cuda_lane *o = &device->lane[other];
        bool done = ordered(device, lane, other, tick);
        if (!done || o->asked > o->marked)
            status = tn__cuda_flush(device); /* what is held back is in front of the mark, and of what waits for it */
        if (!done && status == TN_OK)
            status = go_behind(device, lane, other, tick);
        if (o->asked > o->marked && status == TN_OK)
            status = mark(device, &device->lane[other]);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* ---- making and freeing ---- */

static tn_status begin_lane(tn__cuda_device *device, int number)
{
    tn__cuda_lane *lane = &device->lane[number];
    tn_status status = TN_OK;
    if (lane->stream == NULL)
        status =
            tn__cuda_check(device, device->driver->cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING), "stream_new");
    if (status == TN_OK)
        status = tn__cuda_flush(device);
    if (status != TN_OK)
        return status;
    tn__cuda_lane_asked(device, &device->lane[0]); /* for all that was not counted so far */
    return go_behind(device, lane, 0, device->lane[0].asked);
}

int tn__cuda_lane_new(tn__device *owner)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    if (tn__cuda_enter_held(device, "stream_new") != TN_OK)
        return -1;
    pthread_mutex_lock(&device->lock);
    uint32_t taken = owner->lanes | 1;
    int number = ~taken ? __builtin_ctz(~taken) : -1;
    tn_status status =
        number > 0 ? begin_lane(device, number)
                   : tn__fail(TN_ERR_STATE, "stream_new", "%s has %d streams, the most there are: free one first",
                              device->name, TN__LANES - 1);
    if (status == TN_OK)
        atomic_fetch_or(&owner->lanes, (uint32_t)1 << number);
    pthread_mutex_unlock(&device->lock);
    return status == TN_OK ? number : -1;
}

void tn__cuda_lane_free(tn__device *owner, int number)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn__cuda_lane *lane = &device->lane[number];
    if (tn__cuda_enter(device, "stream_free") == TN_OK) {
        if (device->driver->cuStreamQuery(lane->stream) == CUDA_ERROR_NOT_READY)
            (void)tn__cuda_may_wait(device, "a stream is freed");
        (void)tn__cuda_check(device, tn__cuda_finish_lane(device, number), "stream_free"); /* a failure is latched */
    }
    /* without the lock, which in a child by fork may be held for ever */
    atomic_fetch_and(&owner->lanes, ~((uint32_t)1 << number));
}

/* ---- waiting ---- */

/* Busily at first, since a step takes as long as a pause does. */
static void pause_for(long round)
{
    if (round > 100000)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    else if (round > 1000)
        sched_yield();
}

/* Whether no lane has work any more. */
static bool is_idle(const tn__cuda_device *device)
{
    bool idle = true;
    for (uint32_t lanes = device->owner->lanes | 1; lanes && idle; lanes &= lanes - 1)
        idle = device->driver->cuStreamQuery(device->lane[__builtin_ctz(lanes)].stream) == CUDA_SUCCESS;
    return idle;
}

CUresult tn__cuda_await(tn__cuda_device *device, int number, CUevent event)
{
    const tn__cuda_driver *driver = device->driver;
    CUstream stream = device->lane[number].stream;
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

/* The lock is not held meanwhile: others go on. */
CUresult tn__cuda_finish_lane(tn__cuda_device *device, int number)
{
    tn__cuda_lane *lane = &device->lane[number];
    pthread_mutex_lock(&device->lock);
    uint64_t asked = lane->asked;
    tn__cuda_point here = tn__cuda_here(device, number);
    pthread_mutex_unlock(&device->lock);
    CUresult result = tn__cuda_await(device, number, NULL);
    if (result == CUDA_SUCCESS)
        tn__cuda_good(device, here);
    pthread_mutex_lock(&device->lock);
    if (result == CUDA_SUCCESS && lane->done < asked)
        lane->done = asked;
    pthread_mutex_unlock(&device->lock);
    return result;
}

CUresult tn__cuda_finish(tn__cuda_device *device)
{
    CUresult result = CUDA_SUCCESS;
    for (uint32_t lanes = device->owner->lanes | 1; lanes && result == CUDA_SUCCESS; lanes &= lanes - 1)
        result = tn__cuda_finish_lane(device, __builtin_ctz(lanes));
    return result;
}
