/* SPDX-License-Identifier: MIT */
/*
 * Activation functions beyond those of array.h (sigmoid, tanh, relu, gelu, softplus, softmax), under the names that
 * PyTorch and Chainer give them, and the layers of them. All are elementwise unless an axis is an argument, give x's
 * floating dtype (integers become floats as with tn_exp), and record no more than their operations, so that they fuse
 * with what is around them. Complex operands are TN_ERR_DTYPE. Where a function has a kink its slope there is that of
 * the flat side, as in PyTorch.
 */
#ifndef TANSO_ACTIVATIONS_H
#define TANSO_ACTIVATIONS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x where x > 0, else alpha (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015). */
TN_API tn_array *tn_elu(const tn_array *x, double alpha);
/* x where x > 0, else alpha (exp(x / alpha) - 1), whose slope is continuous (Barron 2017); alpha not 0. */
TN_API tn_array *tn_celu(const tn_array *x, double alpha);
/* 1.0507 tn_elu(x, 1.6733), which keeps mean 0 and variance 1 (Klambauer et al. 2017). */
TN_API tn_array *tn_selu(const tn_array *x);
/* x sigmoid(x); x sigmoid(beta x), beta an array that broadcasts or a number (Ramachandran et al. 2017). */
TN_API tn_array *tn_silu(const tn_array *x);
TN_API tn_array *tn_swish(const tn_array *x, const tn_array *beta);
/* x tanh(softplus(x)) (Misra 2019). */
TN_API tn_array *tn_mish(const tn_array *x);
/* tn_gelu's approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: PyTorch's approximate='tanh'. */
TN_API tn_array *tn_gelu_tanh(const tn_array *x);
/* log(1 + exp(beta x)) / beta; beta > 0. */
TN_API tn_array *tn_softplus_beta(const tn_array *x, double beta);
/* log(sigmoid(x)). */
TN_API tn_array *tn_log_sigmoid(const tn_array *x);
/* x / (1 + |x|). */
TN_API tn_array *tn_softsign(const tn_array *x);
/* min(max(x, 0), z) (Chainer's z is 20); relu6: z = 6. */
TN_API tn_array *tn_clipped_relu(const tn_array *x, double z);
TN_API tn_array *tn_relu6(const tn_array *x);
/* x where it is between low and high, else the nearer of them. */
TN_API tn_array *tn_hard_tanh(const tn_array *x, double low, double high);
/* slope x + 1/2, cut to [0, 1]; slope 0 stands for PyTorch's 1/6, Chainer's is 0.2. */
TN_API tn_array *tn_hard_sigmoid(const tn_array *x, double slope);
/* x tn_hard_sigmoid(x, 1/6) (Howard et al. 2019). */
TN_API tn_array *tn_hard_swish(const tn_array *x);
/* x where |x| > lambda, else 0; x moved toward 0 by lambda, but not over it; lambda >= 0. */
TN_API tn_array *tn_hard_shrink(const tn_array *x, double lambda);
TN_API tn_array *tn_soft_shrink(const tn_array *x, double lambda);
/* x - tanh(x). */
TN_API tn_array *tn_tanh_shrink(const tn_array *x);
/* x where x > threshold, else value. */
TN_API tn_array *tn_threshold(const tn_array *x, double threshold, double value);
/* x where x >= 0, else w x (He et al. 2015). w has one element, or its axes are x's from axis 1 on: (channels,). */
TN_API tn_array *tn_prelu(const tn_array *x, const tn_array *w);
/* x where x >= 0, else x times slopes drawn uniformly from [low, high) (Xu et al. 2015; evaluation uses tn_leaky_relu
 * of their mean); generator NULL: the thread's. */
TN_API tn_array *tn_rrelu(const tn_array *x, double low, double high, tn_generator *generator);
/* relu(x) and relu(-x) one behind the other along the axis (Shang et al. 2016). */
TN_API tn_array *tn_crelu(const tn_array *x, int axis);
/* The largest of each `pool` neighbours along the axis, whose extent is a multiple of it (Goodfellow et al. 2013). */
TN_API tn_array *tn_maxout(const tn_array *x, int64_t pool, int axis);
/* The axis' first half times the sigmoid of its second (Dauphin et al. 2016). */
TN_API tn_array *tn_glu(const tn_array *x, int axis);
/* tn_softmax(-x, axis). */
TN_API tn_array *tn_softmin(const tn_array *x, int axis);

/* ---- layers ---- */

TN_API tn_layer *tn_identity_layer(void);
TN_API tn_layer *tn_elu_layer(double alpha);
TN_API tn_layer *tn_celu_layer(double alpha);
TN_API tn_layer *tn_selu_layer(void);
TN_API tn_layer *tn_silu_layer(void);
TN_API tn_layer *tn_mish_layer(void);
TN_API tn_layer *tn_gelu_tanh_layer(void);
TN_API tn_layer *tn_log_sigmoid_layer(void);
TN_API tn_layer *tn_softsign_layer(void);
TN_API tn_layer *tn_relu6_layer(void);
TN_API tn_layer *tn_clipped_relu_layer(double z);
TN_API tn_layer *tn_hard_tanh_layer(void); /* between -1 and 1 */
TN_API tn_layer *tn_hard_sigmoid_layer(double slope);
TN_API tn_layer *tn_hard_swish_layer(void);
TN_API tn_layer *tn_hard_shrink_layer(double lambda);
TN_API tn_layer *tn_soft_shrink_layer(double lambda);
TN_API tn_layer *tn_tanh_shrink_layer(void);
TN_API tn_layer *tn_log_softmax_layer(int axis);
TN_API tn_layer *tn_softmin_layer(int axis);
TN_API tn_layer *tn_crelu_layer(int axis);
TN_API tn_layer *tn_glu_layer(int axis);
/* Parameter "W" (channels), along axis 1 of the input, or one of all when channels is 1; at first `init` (PyTorch and
 * Chainer: 0.25). */
TN_API tn_layer *tn_prelu_layer(int64_t channels, double init);
/* x sigmoid(beta x) with a parameter "beta" (features) along the last axis, 1 at first; features 0: inferred. */
TN_API tn_layer *tn_swish_layer(int64_t features);

#ifndef TN_NO_MACROS
#define tn_elu(x, alpha) TN_AT(tn_elu)(TN_ARG(x), alpha)
#define tn_celu(x, alpha) TN_AT(tn_celu)(TN_ARG(x), alpha)
#define tn_selu(x) TN_AT(tn_selu)(TN_ARG(x))
#define tn_silu(x) TN_AT(tn_silu)(TN_ARG(x))
#define tn_swish(x, beta) TN_AT(tn_swish)(TN_ARG(x), TN_ARG(beta))
#define tn_mish(x) TN_AT(tn_mish)(TN_ARG(x))
#define tn_gelu_tanh(x) TN_AT(tn_gelu_tanh)(TN_ARG(x))
#define tn_softplus_beta(x, beta) TN_AT(tn_softplus_beta)(TN_ARG(x), beta)
#define tn_log_sigmoid(x) TN_AT(tn_log_sigmoid)(TN_ARG(x))
#define tn_softsign(x) TN_AT(tn_softsign)(TN_ARG(x))
#define tn_clipped_relu(x, z) TN_AT(tn_clipped_relu)(TN_ARG(x), z)
#define tn_relu6(x) TN_AT(tn_relu6)(TN_ARG(x))
#define tn_hard_tanh(x, low, high) TN_AT(tn_hard_tanh)(TN_ARG(x), low, high)
#define tn_hard_sigmoid(x, slope) TN_AT(tn_hard_sigmoid)(TN_ARG(x), slope)
#define tn_hard_swish(x) TN_AT(tn_hard_swish)(TN_ARG(x))
#define tn_hard_shrink(x, lambda) TN_AT(tn_hard_shrink)(TN_ARG(x), lambda)
#define tn_soft_shrink(x, lambda) TN_AT(tn_soft_shrink)(TN_ARG(x), lambda)
#define tn_tanh_shrink(x) TN_AT(tn_tanh_shrink)(TN_ARG(x))
#define tn_threshold(x, threshold, value) TN_AT(tn_threshold)(TN_ARG(x), threshold, value)
#define tn_prelu(x, w) TN_AT(tn_prelu)(TN_ARG(x), TN_ARG(w))
#define tn_rrelu(x, low, high, generator) TN_AT(tn_rrelu)(TN_ARG(x), low, high, generator)
#define tn_crelu(x, axis) TN_AT(tn_crelu)(TN_ARG(x), axis)
#define tn_maxout(x, pool, axis) TN_AT(tn_maxout)(TN_ARG(x), pool, axis)
#define tn_glu(x, axis) TN_AT(tn_glu)(TN_ARG(x), axis)
#define tn_softmin(x, axis) TN_AT(tn_softmin)(TN_ARG(x), axis)
#define tn_elu_layer(...) TN_HERE(tn_elu_layer(__VA_ARGS__))
#define tn_celu_layer(...) TN_HERE(tn_celu_layer(__VA_ARGS__))
#define tn_prelu_layer(...) TN_HERE(tn_prelu_layer(__VA_ARGS__))
#define tn_swish_layer(...) TN_HERE(tn_swish_layer(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
