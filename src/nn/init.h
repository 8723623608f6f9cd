/* SPDX-License-Identifier: MIT */
/* Initialisers that are more than a distribution. */
#ifndef TN_NN_INIT_H
#define TN_NN_INIT_H

#include <tanso/nn.h>
#include "array/node.h"

/* gain times a matrix with orthonormal rows or columns, whichever are fewer. */
tn_array *tn__fill_orthogonal(double gain, tn_shape shape, const tn_random_opts *opts);

#endif
