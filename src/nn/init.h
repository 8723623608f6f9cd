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

/* gain times a matrix with orthonormal rows or columns, whichever are fewer. */
tn_array *tn__fill_orthogonal(double gain, tn_shape shape, const tn_random_opts *opts);

#endif
