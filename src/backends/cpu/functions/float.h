/* SPDX-License-Identifier: MIT */
/* For of_type.h: what of ops.def there is in floating-point dtypes. */
#ifndef TN_BACKENDS_CPU_FUNCTIONS_FLOAT_H
#define TN_BACKENDS_CPU_FUNCTIONS_FLOAT_H

#include "backends/cpu/functions/base.h"

#define SELECT_ALL(...) __VA_ARGS__
#define SELECT_COMPLEX(...)
#define SELECT_NUMBERS(...) __VA_ARGS__
#define SELECT_FLOATS(...)  __VA_ARGS__
#define SELECT_INTEGERS(...)
#define SELECT_BOOLS(...)
#define SELECT_UNSIGNED(...)
#define SELECT_INT64(...)

#endif
