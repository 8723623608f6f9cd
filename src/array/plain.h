/* SPDX-License-Identifier: MIT */
/* Whole calls of elementwise functions: an operation on handles, as a handle in the innermost scope. */
#ifndef TN_ARRAY_PLAIN_H
#define TN_ARRAY_PLAIN_H

#include "array/node.h"

/* A public elementwise function of one operand, of two. */
tn_array *tn__map_1(tn__op op, const tn_array *x);
tn_array *tn__map_2(tn__op op, const tn_array *x, const tn_array *y);

#endif
