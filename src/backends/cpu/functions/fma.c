/* SPDX-License-Identifier: MIT */
/*
 * The operations in float32 with fused multiply-adds, and vectors of eight: compiled kernels use them where the
 * processor has them, and the reference evaluator has to give the same bits.
 */
#if defined(__x86_64__)
#include "backends/cpu/functions/float.h"

#define tn__cpu_functions_f32 tn__cpu_functions_f32_fma
#define T      tn_f32
#define SUFFIX f32
#include "backends/cpu/functions/of_type.h"
#endif
