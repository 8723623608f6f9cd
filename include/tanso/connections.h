/* SPDX-License-Identifier: MIT */
/* Functions and layers that connect arrays: products, bilinear forms, bags of embeddings, attention, samples. */
#ifndef TANSO_CONNECTIONS_H
#define TANSO_CONNECTIONS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products ---- */

/* x w + b over the last axis, w (in, out), b (out) or NULL: tn_linear as a function. */
TN_API tn_array *tn_linear_function(const tn_array *x, const tn_array *w, const tn_array *b);
/* sum over i, j of a[n, i] w[i, j, k] b[n, j], + bias[k]: a (N, left), b (N, right), w (left, right, out) as Chainer
 * has it (PyTorch's is (out, left, right)), bias (out) or NULL. */
TN_API tn_array *tn_bilinear_function(const tn_array *a, const tn_array *b, const tn_array *w, const tn_array *bias);
/* The layer, of inputs (N, left) and (N, right), with parameters "W" (LeCun normal) and "b" (zeros). */
TN_API tn_layer *tn_bilinear(int64_t left, int64_t right, int64_t out);

/* Rows of the table w (count, features) chosen by integers x in [0, count), of shape x.shape + (features): tn_embedding
 * as a function. Of the options it reads .padding_index. */
TN_API tn_array *tn_embedding_function_with(const tn_array *w, const tn_array *x, const tn_embedding_opts *opts);

typedef enum tn_bag_mode { TN_BAG_MEAN, TN_BAG_SUM, TN_BAG_MAX, TN_BAG_MODE_COUNT } tn_bag_mode;
typedef struct tn_bag_opts {
    const char *_;
    tn_bag_mode mode;        /* default: mean */
    const tn_array *weights; /* of x's shape: what each row is multiplied by; sums only */
    int64_t padding_index;   /* what is no index, and counts for nothing; default: none */
} tn_bag_opts;
/* Rows of the table w (count, features), chosen by integers x (N, bag), put together for each bag: (N, features). An
 * empty bag gives zeros. */
TN_API tn_array *tn_embedding_bag_with(const tn_array *w, const tn_array *x, const tn_bag_opts *opts);

/* ---- attention (Vaswani et al. 2017) ---- */

typedef struct tn_attention_opts {
    const char *_;
    const tn_array *mask; /* broadcasts to (..., L, S): bool, true where a key may be looked at; or floating, added to
                             the scores: minus infinity where it may not */
    bool causal;          /* query i looks at keys 0 to i only */
    double scale;         /* of the scores; default 1 / sqrt(E) */
    double dropout;       /* of the weights; default 0 */
    tn_array **weights;   /* receives the softmax (..., L, S) */
} tn_attention_opts;
/* softmax(q kᵀ scale) v of queries (..., L, E), keys (..., S, E) and values (..., S, features); leading axes broadcast.
 * Composed of two products and a softmax. A query that may look at nothing gets zeros. */
TN_API tn_array *tn_scaled_dot_product_attention_with(const tn_array *q, const tn_array *k, const tn_array *v,
                                                      const tn_attention_opts *opts);

typedef struct tn_multihead_opts {
    const char *_;
    double dropout; /* of the weights, in training mode; default 0 */
    bool no_bias;
    bool causal;
} tn_multihead_opts;
/* Attention of several heads. Inputs: query (N, L, features); key and value (N, S, features), which are the query where
 * they are left out; a mask as above, of (N, heads, L, S) or what broadcasts to it. Outputs: (N, L, features), and the
 * heads' mean weights (N, L, S). PyTorch's MultiheadAttention with batch_first=True, whose weights load with .transpose
 * = "*weight *W", .rename = "W=weight b=bias": parameters "in_proj_weight" (features, 3 features), "in_proj_bias" and
 * the linear layer "out_proj". The features are a multiple of the heads. */
TN_API tn_layer *tn_multihead_attention_with(int64_t features, int64_t heads, const tn_multihead_opts *opts);

typedef struct tn_transformer_opts {
    const char *_;
    int64_t hidden;         /* units of the perceptron; default 2048 */
    double dropout;         /* of weights, of the perceptron's units and of what is added, in training mode; default
                               0.1 */
    const char *activation; /* a layer's word; default "relu" */
    bool norm_first;        /* normalize what is attended to, not the sum */
    bool causal;
    double eps; /* of the normalization; default 1e-5 */
} tn_transformer_opts;
/* A layer of a transformer's encoder: inputs x (N, length, features) and, where wanted, a mask of attention; PyTorch's
 * TransformerEncoderLayer with batch_first=True, whose weights load with .transpose = "*weight *W" and .rename =
 * "W=weight b=bias gamma=weight beta=bias": children "self_attn", "linear1", "linear2", "norm1", "norm2". */
TN_API tn_layer *tn_transformer_encoder_layer_with(int64_t features, int64_t heads, const tn_transformer_opts *opts);

/* ---- layers of linear ones ---- */

/* g activation(plain(x)) + (1 - g) x, g = sigmoid(transform(x)) (Srivastava et al. 2015): linear children "plain" and
 * "transform", whose bias is -1 at first; activation is a layer's word, NULL for "relu". */
TN_API tn_layer *tn_highway(int64_t features, const char *activation);
/* The largest of `pool` linear functions of each output: a linear child "linear" and tn_maxout. */
TN_API tn_layer *tn_maxout_layer(int64_t out, int64_t pool);

/* Each weight of w (in, out) dropped by itself, for each row of x (N, in) anew, with chance `ratio`, the others divided
 * by 1 - ratio: x w + b (Chainer's simplified_dropconnect; Wan et al. 2013). b (out) or NULL. */
TN_API tn_array *tn_dropconnect(const tn_array *x, const tn_array *w, const tn_array *b, double ratio,
                                tn_generator *generator);

/* x times W, and x plus b, which lie along x's axes from `axis` on: parameters "W" (shape), ones at first, and "b"
 * (shape), zeros; with `bias` the first has the second as its child "bias". Chainer's Scale and Bias. */
TN_API tn_layer *tn_scale_layer(int axis, tn_shape shape, bool bias);
TN_API tn_layer *tn_bias_layer(int axis, tn_shape shape);

/* ---- choosing ---- */

/* x[i, t[i]] of each row: x (N, classes), t (N) integers; (N). */
TN_API tn_array *tn_select_item(const tn_array *x, const tn_array *t);

/* ---- samples that have gradients ---- */

/* In training mode zeroes each channel of each sample of x (N, channels, ...) with probability `ratio`, and scales the
 * others by 1 / (1 - ratio) (Tompson et al. 2015): PyTorch's Dropout1d, 2d and 3d. */
TN_API tn_layer *tn_channel_dropout(double ratio);
/* In training mode makes each element, with probability `ratio`, -1.7581, where selu ends, and then scales and shifts
 * all, so that a mean of 0 and a variance of 1 stay (Klambauer et al. 2017): PyTorch's AlphaDropout. */
TN_API tn_layer *tn_alpha_dropout(double ratio);
/* p x + (1 - p) y, all of which broadcast: Chainer's linear_interpolate (PyTorch's lerp(y, x, p)). */
TN_API tn_array *tn_linear_interpolate(const tn_array *p, const tn_array *x, const tn_array *y);
/* mean + exp(ln_var / 2) times standard normal numbers: a sample of a normal distribution (Kingma and Welling 2013). */
TN_API tn_array *tn_gaussian(const tn_array *mean, const tn_array *ln_var, tn_generator *generator);
/* softmax((log_pi + Gumbel noise) / tau) along an axis: nearly one-hot samples (Jang et al. 2016). `hard`: one-hot
 * exactly, with the gradient of the soft ones. */
TN_API tn_array *tn_gumbel_softmax(const tn_array *log_pi, double tau, int axis, bool hard, tn_generator *generator);

#ifndef TN_NO_MACROS
#define tn_linear_function(...) TN_HERE(tn_linear_function(__VA_ARGS__))
#define tn_bilinear_function(...) TN_HERE(tn_bilinear_function(__VA_ARGS__))
#define tn_bilinear(...) TN_HERE(tn_bilinear(__VA_ARGS__))
#define tn_embedding_function(...) TN__CALL_VV(tn_embedding_function_with, tn_embedding_opts, __VA_ARGS__, )
#define tn_embedding_bag(...) TN__CALL_VV(tn_embedding_bag_with, tn_bag_opts, __VA_ARGS__, )
#define tn_scaled_dot_product_attention(...) \
    TN__CALL_VVV(tn_scaled_dot_product_attention_with, tn_attention_opts, __VA_ARGS__, )
#define tn_multihead_attention(...) TN__CALL_VV(tn_multihead_attention_with, tn_multihead_opts, __VA_ARGS__, )
#define tn_transformer_encoder_layer(...) \
    TN__CALL_VV(tn_transformer_encoder_layer_with, tn_transformer_opts, __VA_ARGS__, )
#define tn_highway(...) TN_HERE(tn_highway(__VA_ARGS__))
#define tn_maxout_layer(...) TN_HERE(tn_maxout_layer(__VA_ARGS__))
#define tn_scale_layer(...) TN_HERE(tn_scale_layer(__VA_ARGS__))
#define tn_bias_layer(...) TN_HERE(tn_bias_layer(__VA_ARGS__))
#define tn_select_item(...) TN_HERE(tn_select_item(__VA_ARGS__))
#define tn_dropconnect(...) TN_HERE(tn_dropconnect(__VA_ARGS__))
#define tn_channel_dropout(...) TN_HERE(tn_channel_dropout(__VA_ARGS__))
#define tn_alpha_dropout(...) TN_HERE(tn_alpha_dropout(__VA_ARGS__))
#define tn_linear_interpolate(...) TN_HERE(tn_linear_interpolate(__VA_ARGS__))
#define tn_gaussian(...) TN_HERE(tn_gaussian(__VA_ARGS__))
#define tn_gumbel_softmax(...) TN_HERE(tn_gumbel_softmax(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
