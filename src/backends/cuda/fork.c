/* SPDX-License-Identifier: MIT */
/* A child by fork of a process that has started CUDA has no use of it: there, every call fails and says why. */
#include <pthread.h>
#include <stdio.h>

#include "backends/cuda/cuda.h"
#include "device/registry.h"

static tn__cuda_device *_Atomic opened[TN__MAX_DEVICES];

static void lose_all(void)
{
    for (int i = 0; i < TN__MAX_DEVICES; i++) {
        tn__cuda_device *device = opened[i];
        if (device == NULL || device->faulted)
            continue;
        snprintf(
            device->fault, sizeof device->fault,
            "%s is the parent's: CUDA serves no child by fork of a process that has used it; fork before the first use "
            "of a GPU, or use the CPU in the child",
            device->name);
        device->faulted = true;
    }
}

static void watch(void)
{
    (void)!pthread_atfork(NULL, NULL, lose_all); /* without memory for that, the driver's own words must do */
}

void tn__cuda_watch_forks(tn__cuda_device *device, int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    if (index >= 0 && index < TN__MAX_DEVICES)
        opened[index] = device;
}
