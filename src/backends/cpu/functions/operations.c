/* SPDX-License-Identifier: MIT */
/* The backend's table of facts about operations, made from ops.def. */
#include "backends/cpu/functions/operations.h"
#include "tn_op_functions.h"

#define BOOLEAN_SAME  0
#define BOOLEAN_BOOL  1
#define BOOLEAN_INT64 0

/* The kinds of ops.def's TN_OTHER rows. */
#define KIND_LEAF     TN__CPU_NONE
#define KIND_CONST    TN__CPU_MOVE
#define KIND_VIEW     TN__CPU_NONE
#define KIND_UPDATE   TN__CPU_NONE
#define KIND_PART     TN__CPU_NONE
#define KIND_TRANSFER TN__CPU_NONE
#define KIND_COLLECTIVE TN__CPU_NONE
#define KIND_GATHER   TN__CPU_GATHER
#define KIND_SCATTER  TN__CPU_SCATTER
#define KIND_SORT_SCAN TN__CPU_SORT_SCAN
#define KIND_LIBRARY  TN__CPU_LIBRARY
#define KIND_MATMUL   TN__CPU_MATMUL
#define KIND_USER     TN__CPU_NONE
#define KIND_REDUCE   TN__CPU_NONE /* a user's; the table's own are TN_REDUCE rows */
#define KIND_CUSTOM   TN__CPU_NONE
#define KIND_TIED     TN__CPU_NONE
#define KIND_CONVOLVE TN__CPU_CONVOLVE
#define KIND_RECURRENCE TN__CPU_RECURRENCE

const tn__cpu_op_info tn__cpu_ops[TN__OP_COUNT] = {
#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, props, EXPR, doc) \
    [TN__OP_##ID] = {#name, \
                         TN__OP_##ID == TN__OP_COPY || TN__OP_##ID == TN__OP_CAST \
                             ? TN__CPU_MOVE \
                             : TN__CPU_MAP, \
                         arity, BOOLEAN_##RESULT, ((props) & TN_CONDITION) != 0, 0},
#define TN_REDUCE(ID, name, TYPES, RESULT, grad, props, IDENTITY, COMBINE, doc) \
    [TN__OP_##ID] = {#name, (props) & TN_ARG ? TN__CPU_POSITION : TN__CPU_REDUCE, 1, \
                         BOOLEAN_##RESULT, 0, ((props) & TN_WIDENED) != 0},
#define TN_GENERATE(ID, name, TYPES, EXPR, doc) [TN__OP_##ID] = {#name, TN__CPU_GENERATE, 0, 0, 0, 0},
#define TN_OTHER(ID, name, arity, KIND, grad, props, doc) \
    [TN__OP_##ID] = {#name, KIND_##KIND, arity, 0, 0, 0},
#include "ops/ops.def"
};
