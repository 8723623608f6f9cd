/* SPDX-License-Identifier: MIT */
/* Which stream a thread's work goes on, and the order of streams that use the same memory. */
#include "device/device.h"

#define MOST_DEVICES 80 /* that are opened first; others have one stream */

static _Thread_local uint8_t stream_of[MOST_DEVICES]; /* by the device's number */

int tn__stream_of_thread(const tn__device *device)
{
    int stream = device->number < MOST_DEVICES ? stream_of[device->number] : 0;
    return atomic_load_explicit(&device->streams, memory_order_relaxed) >> stream & 1 ? stream : 0;
}

int tn__stream_choose(const tn__device *device, int stream)
{
    if (device->number >= MOST_DEVICES)
        return 0;
    int before = stream_of[device->number];
    stream_of[device->number] = (uint8_t)stream;
    return before;
}

tn_status tn__use_begin(tn__device *device, const tn__use *use, bool writes)
{
    if (!tn__has_streams(device))
        return TN_OK;
    uint32_t streams = atomic_load_explicit(writes ? &use->streams : &use->writers, memory_order_relaxed);
    streams &= ~((uint32_t)1 << tn__stream_number(device));
    if (!streams)
        return TN_OK;
    uint64_t tick = atomic_load_explicit(writes ? &use->last : &use->wrote, memory_order_relaxed);
    return device->ops->streams->stream_order(device, streams, tick);
}

/* Threads may read the same memory at the same time. */
static void raise_to(_Atomic uint64_t *to, uint64_t tick)
{
    uint64_t now = atomic_load_explicit(to, memory_order_relaxed);
    while (now < tick &&
           !atomic_compare_exchange_weak_explicit(to, &now, tick, memory_order_relaxed, memory_order_relaxed))
        ;
}

void tn__use_end(tn__device *device, tn__use *use, bool writes)
{
    if (!tn__has_streams(device))
        return;
    uint32_t stream = (uint32_t)1 << tn__stream_number(device);
    uint64_t tick = atomic_load_explicit(&device->tick, memory_order_relaxed);
    if (writes) {
        atomic_store_explicit(&use->streams, stream, memory_order_relaxed);
        atomic_store_explicit(&use->writers, stream, memory_order_relaxed);
        atomic_store_explicit(&use->wrote, tick, memory_order_relaxed);
    } else {
        atomic_fetch_or_explicit(&use->streams, stream, memory_order_relaxed);
    }
    raise_to(&use->last, tick);
}

void tn__use_unite(tn__use *to, const tn__use *other)
{
    to->streams |= other->streams;
    to->writers |= other->writers;
    raise_to(&to->last, other->last);
    raise_to(&to->wrote, other->wrote);
}
