/* SPDX-License-Identifier: MIT */
/* Facts about operations that this backend goes by, made from ops.def. */
#ifndef TN_BACKENDS_CPU_FUNCTIONS_OPERATIONS_H
#define TN_BACKENDS_CPU_FUNCTIONS_OPERATIONS_H

#include "ops/ops.h"

typedef enum tn__cpu_kind {
    TN__CPU_MAP,
    TN__CPU_MOVE, /* COPY, CAST and CONST: elements moved and converted */
    TN__CPU_REDUCE,
    TN__CPU_POSITION, /* ARGMAX, ARGMIN */
    TN__CPU_GENERATE,
    TN__CPU_GATHER,
    TN__CPU_SCATTER,
    TN__CPU_SORT_SCAN,
    TN__CPU_LIBRARY,
    TN__CPU_MATMUL,
    TN__CPU_CONVOLVE,
    TN__CPU_RECURRENCE,
    TN__CPU_NONE, /* leaves, views and transfers: never a step */
    TN__CPU_KIND_COUNT
} tn__cpu_kind;

typedef struct tn__cpu_op_info {
    const char *name;
    unsigned char kind;      /* tn__cpu_kind */
    unsigned char inputs;    /* input operands of a step */
    unsigned char boolean;   /* the result is bool */
    unsigned char condition; /* input 0 is bool whatever the compute dtype */
    unsigned char widened;   /* reductions: stretches go on in twice the precision (device/order.h) */
} tn__cpu_op_info;
extern const tn__cpu_op_info tn__cpu_ops[]; /* by number */

#endif
