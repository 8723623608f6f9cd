/* SPDX-License-Identifier: MIT */
/* One start of a function of a user's own source: what the engine hands to a device that takes such. */
#ifndef TN_DEVICE_LAUNCH_H
#define TN_DEVICE_LAUNCH_H

#include "core/dtype.h"
#include "device/device.h"

#define TN__LAUNCH_ARGS 16

typedef struct tn__launch {
    const char *source, *name; /* live as long as the process: an address stands for its text */
    unsigned grid[3], block[3], shared;
    int count;
    tn_dtype dtype[TN__LAUNCH_ARGS]; /* of a number; DEFAULT: a pointer */
    tn__scalar value[TN__LAUNCH_ARGS]; /* the number's bytes, or the address */
} tn__launch;

#endif
