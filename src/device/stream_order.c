/* SPDX-License-Identifier: MIT */
/* Which lane a thread's work goes on, and the order of lanes that use the same memory. */
#include "device/device.h"

#define MOST_DEVICES 80 /* that are opened first; others have one lane */

static _Thread_local uint8_t lane_of[MOST_DEVICES]; /* by the device's number */

int tn__lane_of_thread(const tn__device *device)
{
    int lane = device->number < MOST_DEVICES ? lane_of[device->number] : 0;
    return atomic_load_explicit(&device->lanes, memory_order_relaxed) >> lane & 1 ? lane : 0;
}

int tn__lane_enter(const tn__device *device, int lane)
{
    if (device->number >= MOST_DEVICES)
        return 0;
    int before = lane_of[device->number];
    lane_of[device->number] = (uint8_t)lane;
    return before;
}

tn_status tn__use_begin(tn__device *device, const tn__use *use, bool writes)
{
    if (!tn__has_lanes(device))
        return TN_OK;
    uint32_t lanes = atomic_load_explicit(writes ? &use->lanes : &use->writers, memory_order_relaxed);
    lanes &= ~((uint32_t)1 << tn__lane(device));
    if (!lanes)
        return TN_OK;
    uint64_t tick = atomic_load_explicit(writes ? &use->last : &use->wrote, memory_order_relaxed);
    return device->ops->streams->stream_order(device, lanes, tick);
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
    if (!tn__has_lanes(device))
        return;
    uint32_t lane = (uint32_t)1 << tn__lane(device);
    uint64_t tick = atomic_load_explicit(&device->tick, memory_order_relaxed);
    if (writes) {
        atomic_store_explicit(&use->lanes, lane, memory_order_relaxed);
        atomic_store_explicit(&use->writers, lane, memory_order_relaxed);
        atomic_store_explicit(&use->wrote, tick, memory_order_relaxed);
    } else {
        atomic_fetch_or_explicit(&use->lanes, lane, memory_order_relaxed);
    }
    raise_to(&use->last, tick);
}

void tn__use_unite(tn__use *to, const tn__use *other)
{
    to->lanes |= other->lanes;
    to->writers |= other->writers;
    raise_to(&to->last, other->last);
    raise_to(&to->wrote, other->wrote);
}
