/* SPDX-License-Identifier: MIT */
/* The operations in float32 and float64. */
#include "backends/cpu/functions/float.h"

#define T      tn_f32
#define SUFFIX f32
#include "backends/cpu/functions/of_type.h"

#define T      tn_f64
#define SUFFIX f64
#include "backends/cpu/functions/of_type.h"
