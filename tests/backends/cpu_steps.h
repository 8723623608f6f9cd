/* SPDX-License-Identifier: MIT */
/* Programs of one step made by hand, and run on the CPU backend. */
#ifndef TN_TESTS_BACKENDS_CPU_STEPS_H
#define TN_TESTS_BACKENDS_CPU_STEPS_H

#include "device/program.h"

#define STEP_OPERANDS 8
#define STEP_SCALARS  8

typedef struct one_step {
    tn__step step;
    tn__operand operand[STEP_OPERANDS];
    void *memory[STEP_OPERANDS]; /* of each operand: element 0 of its buffer */
    int scalar[STEP_SCALARS];
    uint64_t value[STEP_SCALARS];
    tn_dtype value_dtype[STEP_SCALARS];
    const char *source;
} one_step;

/* An operation with T `compute` and no operands yet. */
one_step step_of(int op, tn_dtype compute);
/* Adds an operand: stride NULL for C order. */
void step_operand(one_step *step, void *memory, tn_dtype dtype, int ndim, const int64_t *dim, const int64_t *stride,
                  int64_t offset);
void step_scalar(one_step *step, tn_dtype dtype, uint64_t bits);
/* Loads and runs it. */
tn_status step_run(one_step *step);
tn__device *step_device(void);

/* A generator for test inputs, whose seed is printed (support/random.h). */
uint64_t step_random(void);
int64_t step_between(int64_t low, int64_t high); /* both included */
double step_uniform(double low, double high);

#endif
