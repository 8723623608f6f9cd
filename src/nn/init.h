/* SPDX-License-Identifier: MIT */
/* What makes the arrays of parameters: initialisers that are more than a distribution, and arrays of errors. */
#ifndef TN_NN_INIT_H
#define TN_NN_INIT_H

#include <tanso/nn.h>
#include "array/node.h"

/* An array that is an error, whose reference it takes over. */
static inline tn_array *tn__error_array(tn__error *error)
{
    return tn__leave_array(tn__enter(), tn__node_error(error));
}

/* tn_initialize; kernels: weights are (out, in, extents...), of which the first two axes are the fans, each times the
 * extents. */
tn_array *tn__initialize(tn_init init, tn_shape shape, bool kernels, const tn_random_opts *opts);

/* gain times a matrix with orthonormal rows or columns, whichever are fewer. */
tn_array *tn__fill_orthogonal(double gain, tn_shape shape, const tn_random_opts *opts);

#endif
