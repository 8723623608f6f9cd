/* SPDX-License-Identifier: MIT */
/* A finished program with the windows of its results: what compiling gives. */
#ifndef TN_COMPILE_IR_PLAN_H
#define TN_COMPILE_IR_PLAN_H

#include "core/shape.h"
#include "device/program.h"

struct tn__text;

/* Where a result of the evaluation lies: a window of a buffer. */
typedef struct tn__result_window {
    int buffer;
    int64_t offset;      /* in elements */
    const tn__ints *strides; /* NULL: C order */
} tn__result_window;

/* A program with the windows of its results. */
typedef struct tn__plan {
    tn__program program;
    int result_count;
    tn__result_window *result;
} tn__plan;

/* Appends what the plan does, a line a step. */
void tn__plan_print(const tn__plan *plan, struct tn__text *text);

#endif
