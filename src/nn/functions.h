/* SPDX-License-Identifier: MIT */
/* Functions over nodes that layers and losses share. Borrowed nodes, as in array/build.h. */
#ifndef TN_NN_FUNCTIONS_H
#define TN_NN_FUNCTIONS_H

#include <tanso/random.h>
#include "array/build.h"

/* The node, or an error if it is not floating. */
tn__node *tn__checked_floating(tn__node *node, const char *operation);
/* x in a floating dtype of at least float32: sums and exponentials need more range and digits than float16 and bfloat16
 * have. */
tn__node *tn__widened(tn__node *x);
/* Which elements of integers are another number than that one, exactly: not every int64 is a double, and no uint64 is
 * negative. */
tn__node *tn__is_not(tn__node *x, int64_t number);
/* The mean of all elements, as a 0-d array. */
tn__node *tn__mean_all(tn__node *x);
/* The largest element along the axes, as a constant of differentiation: for shifts that cancel. */
tn__node *tn__max_detached(tn__node *x, uint32_t axes);

/* Uniform numbers in [0, 1) in x's shape, float32; generator NULL: the thread's. */
tn__node *tn__uniform_like(tn__node *x, tn_generator *generator);
/* The same of standard normal ones. */
tn__node *tn__normal_like(tn__node *x, tn_generator *generator);

tn__node *tn__softmax_over(tn__node *x, int axis);
tn__node *tn__dropout(tn__node *x, double ratio, tn_generator *generator);
/* Whether an array has the extents of x's last axes, of one or more; latches if not. */
bool tn__fits_last(const char *operation, const char *what, const tn__node *x, const tn__node *vector);
/* Over as many last axes as gamma or beta has; over the last one where both are NULL. */
tn__node *tn__layer_normalize(tn__node *x, tn__node *gamma, tn__node *beta, double eps);
tn__node *tn__leaky(tn__node *x, double slope);

#endif
