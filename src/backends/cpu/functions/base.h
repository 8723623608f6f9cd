/* SPDX-License-Identifier: MIT */
/* What the files that include of_type.h have in common. */
#ifndef TN_BACKENDS_CPU_FUNCTIONS_BASE_H
#define TN_BACKENDS_CPU_FUNCTIONS_BASE_H

#include <string.h>

#include "backends/cpu/functions/functions.h"
#include "backends/cpu/functions/operations.h"
#include "device/order.h"
#include "ops/scalar.h"
#include "tn_op_functions.h"

#define TN__JOIN_(a, b) a##b
#define TN__JOIN(a, b)  TN__JOIN_(a, b)

#define SELECT_NONE(...)

#endif
