/* SPDX-License-Identifier: MIT */
/* Running users' raw kernels on the CPU. */
#ifndef TN_BACKENDS_CPU_LAUNCH_H
#define TN_BACKENDS_CPU_LAUNCH_H

#include "device/launch.h"

/* Calls the function once. */
tn_status tn__cpu_launch(tn__device *device, const tn__launch *launch);

#endif
