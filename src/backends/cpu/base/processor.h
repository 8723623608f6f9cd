/* SPDX-License-Identifier: MIT */
/* What processor this is: for names of compiled kernels, and for people. */
#ifndef TN_BACKENDS_CPU_BASE_PROCESSOR_H
#define TN_BACKENDS_CPU_BASE_PROCESSOR_H

#include "core/memory.h"
#include "device/device.h"

/* Adds a description of the processor's model and instruction sets, the same on equal machines. */
void tn__processor_identity(tn__text *text);
/* The model's name, the last level of cache, and the memory that could be had now. */
void tn__processor_describe(tn__device *device, tn_device_info *info);

#endif
