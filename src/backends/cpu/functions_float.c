/* SPDX-License-Identifier: MIT */
/* The operations in float32 and float64. */
#include "backends/cpu/functions_base.h"

#define SELECT_ALL(...) __VA_ARGS__
#define SELECT_COMPLEX(...)
#define SELECT_NUMBERS(...) __VA_ARGS__
#define SELECT_FLOATS(...)  __VA_ARGS__
#define SELECT_INTEGERS(...)
#define SELECT_BOOLS(...)
#define SELECT_UNSIGNED(...)
#define SELECT_INT64(...)

#define T      tn_f32
#define SUFFIX f32
#include "backends/cpu/functions_of_type.h"

#define T      tn_f64
#define SUFFIX f64
#include "backends/cpu/functions_of_type.h"
