/* SPDX-License-Identifier: MIT */
/* The operations in integers and bool. */
#include "backends/cpu/functions/base.h"

#define SELECT_ALL(...) __VA_ARGS__
#define SELECT_COMPLEX(...)
#define SELECT_NUMBERS(...)  __VA_ARGS__
#define SELECT_FLOATS(...)
#define SELECT_INTEGERS(...) __VA_ARGS__
#define SELECT_BOOLS(...)
#define SELECT_UNSIGNED(...)
#define SELECT_INT64(...)

#define T      tn_i8
#define SUFFIX i8
#include "backends/cpu/functions/of_type.h"

#define T      tn_i16
#define SUFFIX i16
#include "backends/cpu/functions/of_type.h"

#define T      tn_i32
#define SUFFIX i32
#include "backends/cpu/functions/of_type.h"

#define T      tn_u8
#define SUFFIX u8
#include "backends/cpu/functions/of_type.h"

#define T      tn_u16
#define SUFFIX u16
#include "backends/cpu/functions/of_type.h"

#undef SELECT_INT64
#define SELECT_INT64(...) __VA_ARGS__
#define T      tn_i64
#define SUFFIX i64
#include "backends/cpu/functions/of_type.h"
#undef SELECT_INT64
#define SELECT_INT64(...)

#undef SELECT_UNSIGNED
#define SELECT_UNSIGNED(...) __VA_ARGS__
#define T      tn_u32
#define SUFFIX u32
#include "backends/cpu/functions/of_type.h"

#define T      tn_u64
#define SUFFIX u64
#include "backends/cpu/functions/of_type.h"
#undef SELECT_UNSIGNED
#define SELECT_UNSIGNED(...)

#undef SELECT_NUMBERS
#define SELECT_NUMBERS(...)
#undef SELECT_BOOLS
#define SELECT_BOOLS(...) __VA_ARGS__
#define T      tn_b8
#define SUFFIX b8
#include "backends/cpu/functions/of_type.h"
