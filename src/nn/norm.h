/* SPDX-License-Identifier: MIT */
/* Normalizations over borrowed nodes, for their public functions and their layers. gamma and beta may be NULL. */
#ifndef TN_NN_NORM_H
#define TN_NN_NORM_H

#include "nn/terms.h"

tn__node *tn__group_norm(const char *operation, tn__node *x, int64_t groups, tn__node *gamma, tn__node *beta,
                         double eps);
/* Over the axes of gamma, or `axes` last ones if that is NULL. */
tn__node *tn__rms_norm(tn__node *x, tn__node *gamma, int axes, double eps);

#endif
