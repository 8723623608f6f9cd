/* SPDX-License-Identifier: MIT */
/* The table of gradient rules, made from ops.def: an operation whose rule is not written does not
 * link. */
#include "autograd/rules.h"
#include "tn_op_functions.h"

#define tn__grad_none NULL

tn__rule *const tn__rules[TN__OP_COUNT] = {
#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, ...) [TN__OP_##ID] = tn__grad_##grad,
#define TN_REDUCE(ID, name, TYPES, RESULT, grad, ...)     [TN__OP_##ID] = tn__grad_##grad,
#define TN_OTHER(ID, name, arity, KIND, grad, ...)        [TN__OP_##ID] = tn__grad_##grad,
#include "ops/ops.def"
};
