/* SPDX-License-Identifier: MIT */
/*
 * Functions against the values and gradients in torch.npz, which gen_torch.py tells of; and each function's gradients
 * of both orders against differences.
 */
#ifndef TESTS_NN_TORCH_H
#define TESTS_NN_TORCH_H

#include "nn/check.h"

/* Computes a case's output of its floating inputs x and its integers t. */
typedef tn_array *(*torch_function)(tn_array *const *x, tn_array *const *t);

typedef struct torch_case {
    const char *name;
    torch_function f;
    bool only_values; /* no differences: of a kink, or where a gradient is none on purpose */
} torch_case;

/* The values; NULL where there are none, and the test is to skip. Freed by torch_close. */
tn_archive *torch_open(void);
/* The same of another file beside it: chainer.npz, which gen_chainer.py tells of. */
tn_archive *values_open(const char *name);
void torch_close(void);
/* One of them. */
tn_array *torch_value(const char *name);
/* Checks all cases in float32, and their differences in float64. */
void torch_check(int count, const torch_case *cases);

#endif
