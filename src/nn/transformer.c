/* SPDX-License-Identifier: MIT */
/* Layers of transformers (Vaswani et al. 2017): attention and a perceptron, each added to what it is of. */
#include <inttypes.h>
#include <math.h>
#include <tanso/activations.h>
#include <tanso/connections.h>

#include "core/options.h"
#include "nn/layer.h"
#include "nn/terms.h"

/* The children's places. */
enum { ATTENTION, LINEAR_1, LINEAR_2, NORM_1, NORM_2, ACTIVATION };

typedef struct transformer {
    double dropout;
    bool norm_first;
} transformer;

static tn__node *inner(tn_layer *layer, int place, tn__node *x)
{
    return tn__layer_forward(layer->children[place].layer, x);
}

static tn__node *dropped(const tn_layer *layer, tn__node *x)
{
    const transformer *t = layer->user.data;
    return layer->evaluating ? x : tn__dropout(x, t->dropout, NULL);
}

static tn__node *attended(tn_layer *layer, tn__node *x, tn__node *mask)
{
    TN__PASS_ERROR(x);
    tn__node *y = NULL, *in[] = {x, NULL, NULL, mask};
    const tn__flow flow = {mask ? 4 : 1, 1, in, &y};
    tn__layer_flow(layer->children[ATTENTION].layer, &flow);
    return dropped(layer, y);
}

static tn__node *perceptron(tn_layer *layer, tn__node *x)
{
    tn__node *h = inner(layer, ACTIVATION, inner(layer, LINEAR_1, x));
    return dropped(layer, inner(layer, LINEAR_2, dropped(layer, h)));
}

static void encoder_flow(tn_layer *layer, const tn__flow *flow)
{
    const transformer *t = layer->user.data;
    tn__node *x = flow->in[0], *mask = flow->in_count > 1 ? flow->in[1] : NULL;
    if (t->norm_first) {
        x = add(x, attended(layer, inner(layer, NORM_1, x), mask));
        x = add(x, perceptron(layer, inner(layer, NORM_2, x)));
    } else {
        x = inner(layer, NORM_1, add(x, attended(layer, x, mask)));
        x = inner(layer, NORM_2, add(x, perceptron(layer, x)));
    }
    flow->out[0] = x;
}

static const tn__layer_kind encoder_kind = {.name = "transformer_encoder_layer", .flow = encoder_flow};

tn_layer *tn_transformer_encoder_layer_with(int64_t features, int64_t heads, const tn_transformer_opts *opts)
{
    int64_t hidden = TN__OPTION(opts, hidden, 2048);
    double dropout = TN__OPTION(opts, dropout, 0.1), eps = TN__OPTION(opts, eps, 1e-5);
    if (hidden < 1 || !(dropout >= 0 && dropout < 1))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, encoder_kind.name,
                                             "expected one hidden unit or more and dropout in [0, 1), got %" PRId64
                                             " and %g", hidden, dropout));
    tn_layer *layer = tn__layer_make(&encoder_kind);
    if (layer->is_static)
        return layer;
    transformer *t = tn__layer_data(layer, sizeof *t);
    if (!t)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *t = (transformer){dropout, opts && opts->norm_first};
    layer->ports = (tn__ports){.inputs = 2, .optional = 1, .outputs = 1};
    const tn_multihead_opts attention = {.dropout = dropout, .causal = opts && opts->causal};
    const tn_linear_opts in = {.in = features}, back = {.in = hidden};
    const char *activation = opts && opts->activation ? opts->activation : "relu";
    tn_status status = tn_layer_add(layer, "self_attn", tn_multihead_attention_with(features, heads, &attention));
    if (status == TN_OK)
        status = tn_layer_add(layer, "linear1", tn_linear_with(hidden, &in));
    if (status == TN_OK)
        status = tn_layer_add(layer, "linear2", tn_linear_with(features, &back));
    if (status == TN_OK)
        status = tn_layer_add(layer, "norm1", tn_layer_norm(features, eps));
    if (status == TN_OK)
        status = tn_layer_add(layer, "norm2", tn_layer_norm(features, eps));
    if (status == TN_OK)
        status = tn_layer_add(layer, "activation", tn__layer_from_word(encoder_kind.name, activation));
    return tn__layer_finish(layer, status);
}
