/* SPDX-License-Identifier: MIT */
/* The backends that come with the library. */
#ifndef TN_BACKENDS_BUILTIN_H
#define TN_BACKENDS_BUILTIN_H

#include "device/device.h"

extern const tn__backend tn__backend_cpu;
extern const tn__backend tn__backend_null;
extern const tn__backend tn__backend_virtual;

#endif
