/* SPDX-License-Identifier: MIT */
/* What random functions draw: checked options and the generator's next numbers. */
#ifndef TN_ARRAY_DRAW_H
#define TN_ARRAY_DRAW_H

#include <tanso/random.h>

#include "array/build_parts.h"

/* shape is NULL, with a latched failure, when a call cannot draw. */
typedef struct tn__draw {
    tn_random_opts opts;
    tn_generator *generator;
    const tn__shape *shape;
    tn__device *device;
    tn_dtype dtype;
} tn__draw;

tn__draw tn__draw_new(const char *operation, tn_shape shape, tn_dtype default_dtype, const tn_random_opts *opts);
/* A node of the generator's next numbers in `dtype`; advances it past them. */
tn__node *tn__draw_next(const tn__draw *d, tn__op op, tn_dtype dtype);
/* Integers from 0 to n - 1, uint64. */
tn__node *tn__draw_below(const tn__draw *d, uint64_t n);

/* Whole numbers of float64 as the integers of a dtype: those beyond are its largest, NaN is 0. */
tn__node *tn__draw_integers(tn__node *x, tn_dtype dtype);

/* In float64 and the draw's shape, of parameters that are so. */
tn__node *tn__draw_binomial(const tn__draw *d, tn__node *n, tn__node *p);
tn__node *tn__draw_log_gamma(const tn__draw *d, tn__node *shape);
tn__node *tn__draw_exponential(const tn__draw *d);

#endif
