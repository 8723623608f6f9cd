/* SPDX-License-Identifier: MIT */
/* Lowering to kernels, between compile.c and lower_kernels.c. */
#ifndef TN_COMPILE_LOWER_KERNELS_H
#define TN_COMPILE_LOWER_KERNELS_H

#include "compile/emit/emit.h"

/* What kernels for a device are written by. */
const tn__emit_target *tn__target_of(const tn__device *device);
/* Fused kernels and library calls. False without memory. */
bool tn__lower_kernels(tn__draft *draft, const tn__device *device, bool fusion);

#endif
