/* SPDX-License-Identifier: MIT */
/* The operations in complex64 and complex128. */
#include "backends/cpu/functions/base.h"

#define SELECT_ALL(...)
#define SELECT_NUMBERS(...)
#define SELECT_FLOATS(...)
#define SELECT_INTEGERS(...)
#define SELECT_BOOLS(...)
#define SELECT_UNSIGNED(...)
#define SELECT_INT64(...)
#define SELECT_COMPLEX(...) __VA_ARGS__

#define T      tn_c64
#define SUFFIX c64
#include "backends/cpu/functions/of_type.h"

#define T      tn_c128
#define SUFFIX c128
#include "backends/cpu/functions/of_type.h"
