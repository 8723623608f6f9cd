/* SPDX-License-Identifier: MIT */
/* Activation functions over borrowed nodes, for their public functions and for the layers of them. */
#ifndef TN_NN_ACTIVATION_H
#define TN_NN_ACTIVATION_H

#include "nn/terms.h"

/* Those of an axis have it counted from the end where it is negative; the others get their number, or anything. */
tn__node *tn__elu(tn__node *x, double alpha);
tn__node *tn__celu(tn__node *x, double alpha);
tn__node *tn__selu(tn__node *x, double unused);
tn__node *tn__silu(tn__node *x, double beta);
tn__node *tn__mish(tn__node *x, double unused);
tn__node *tn__gelu_tanh(tn__node *x, double unused);
tn__node *tn__softplus_beta(tn__node *x, double beta);
tn__node *tn__log_sigmoid(tn__node *x, double unused);
tn__node *tn__softsign(tn__node *x, double unused);
tn__node *tn__clipped_relu(tn__node *x, double z);
tn__node *tn__relu6(tn__node *x, double unused);
tn__node *tn__hard_tanh(tn__node *x, double bound);
tn__node *tn__hard_sigmoid(tn__node *x, double slope);
tn__node *tn__hard_swish(tn__node *x, double unused);
tn__node *tn__hard_shrink(tn__node *x, double lambda);
tn__node *tn__soft_shrink(tn__node *x, double lambda);
tn__node *tn__tanh_shrink(tn__node *x, double unused);
tn__node *tn__prelu(tn__node *x, tn__node *w);
tn__node *tn__crelu(tn__node *x, int axis);
tn__node *tn__glu(tn__node *x, int axis);
tn__node *tn__maxout(tn__node *x, int64_t pool, int axis);
tn__node *tn__log_softmax_over(tn__node *x, int axis);
tn__node *tn__softmin(tn__node *x, int axis);

/* "expected alpha > 0, got -1" */
tn__node *tn__number_error(const char *operation, const char *expected, double number);

#endif
