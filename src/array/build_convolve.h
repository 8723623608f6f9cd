/* SPDX-License-Identifier: MIT */
/*
 * Convolution as nodes, along one to three axes, with the two operations that are its gradients: each of the three is
 * differentiable through the other two, so that there are gradients of any order.
 *
 * Data are (N, in, extents), weights (out, in / groups, extents), results (N, out, extents):
 *     y[n, o, p] = sum over c, k of x[n, c, p step + k spread - pad] w[o, c, k]
 * with c over the channels of o's group, and x zero outside. Operands are floating, of one dtype; sums are in its
 * compute dtype.
 */
#ifndef TN_ARRAY_BUILD_CONVOLVE_H
#define TN_ARRAY_BUILD_CONVOLVE_H

#include "array/build.h"

#define TN__CONVOLVED_AXES 3

typedef struct tn__convolution {
    int axes;
    int64_t groups;
    struct {
        int64_t step, spread, pad; /* pad: zeros before; those behind follow from the result's extent */
    } axis[TN__CONVOLVED_AXES];
} tn__convolution;

/* The third operand of the three, of shape `shape`: the result, from data and weights; the data, from a result and
 * weights; the weights, from data and a result. Extents are the caller's to check. */
tn__node *tn__convolve(tn__node *x, tn__node *w, const tn__convolution *c, const tn__shape *shape);
tn__node *tn__convolve_data(tn__node *g, tn__node *w, const tn__convolution *c, const tn__shape *shape);
tn__node *tn__convolve_weights(tn__node *x, tn__node *g, const tn__convolution *c, const tn__shape *shape);
/* What one of these nodes was made with. */
void tn__convolution_of(const tn__node *node, tn__convolution *c);

#endif
