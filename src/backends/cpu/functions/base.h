/* SPDX-License-Identifier: MIT */
/* What the files that include of_type.h have in common. */
#ifndef TN_BACKENDS_CPU_FUNCTIONS_BASE_H
#define TN_BACKENDS_CPU_FUNCTIONS_BASE_H

#include <string.h>

#include "backends/cpu/functions/functions.h"
#include "backends/cpu/functions/operations.h"
#include "device/order.h"
#include "ops/scalar.h"

#define TN__JOIN_(a, b) a##b
#define TN__JOIN(a, b)  TN__JOIN_(a, b)

enum { TN_COMMUTATIVE = 0, TN_EXPENSIVE = 0, TN_ORDERED = 0, TN_ARG = 0, TN_REAL = 0, TN_PARTS = 0, TN_CONDITION = 1 };

#define SELECT_NONE(...)

#endif
