/* SPDX-License-Identifier: MIT */
/* Attention, as products and a softmax; the layer of several heads. */
#include <inttypes.h>
#include <math.h>
#include <tanso/connections.h>

#include "core/options.h"
#include "nn/activation.h"
#include "nn/layer.h"

/* What keys each query may look at. */
typedef struct looks {
    tn__node *shown; /* bool, or NULL: all, but for those that `added` makes minus infinity */
    tn__node *added; /* to the scores, or NULL */
    tn__node *some;  /* bool: what it may look at, where a query may look at nothing; NULL: each has a key at least */
} looks;

static tn__node *causal_mask(const tn__node *scores)
{
    const tn__shape *shape = scores->shape;
    int ndim = shape->ndim;
    const tn__shape *pairs = tn__shape_intern(2, shape->dim + ndim - 2);
    if (!pairs)
        TN__REFUSE(TN_ERR_MEMORY, "attention", "no memory for a shape");
    return map2(GREATER_EQUAL, tn__iota(pairs, 0, scores->device), tn__iota(pairs, 1, scores->device));
}

static looks looks_of(tn__node *mask, bool causal, const tn__node *scores)
{
    looks l = {.shown = causal ? causal_mask(scores) : NULL};
    if (mask && mask->dtype == TN_BOOL) {
        l.some = l.shown = l.shown ? map2(LOGICAL_AND, mask, l.shown) : mask;
    } else if (mask) {
        l.added = tn__cast(mask, (tn_dtype)scores->dtype);
        l.some = tn__node_is_error(l.added) ? l.added : with(NOT_EQUAL, l.added, -INFINITY);
        l.some = l.shown ? map2(LOGICAL_AND, l.some, l.shown) : l.some;
    }
    return l;
}

/* The softmax over the keys that may be looked at: an infinite score makes zeros of the others; zeros where there are
 * none. What the product with the values reads is all that backward keeps of it. */
static tn__node *weights_of(tn__node *scores, const looks *l, tn_dtype dtype)
{
    TN__PASS_ERROR(scores);
    uint32_t last = 1u << (scores->shape->ndim - 1);
    if (l->added)
        scores = add(scores, l->added);
    TN__PASS_ERROR(scores);
    if (l->shown)
        scores = tn__where(l->shown, scores, like(scores, -INFINITY));
    return tn__softmax_kept(scores, l->some, dtype, last);
}

static bool fit(const tn__node *q, const tn__node *k, const tn__node *v)
{
    int nq = q->shape->ndim, nk = k->shape->ndim, nv = v->shape->ndim;
    if (nq >= 2 && nk >= 2 && nv >= 2 && q->shape->dim[nq - 1] == k->shape->dim[nk - 1] &&
        k->shape->dim[nk - 2] == v->shape->dim[nv - 2])
        return true;
    char a[TN__SHAPE_TEXT], b[TN__SHAPE_TEXT], c[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, "attention",
             "expected queries (..., L, E), keys (..., S, E) and values (..., S, features), got %s, %s and %s",
             tn__shape_text(nq, q->shape->dim, a), tn__shape_text(nk, k->shape->dim, b),
             tn__shape_text(nv, v->shape->dim, c));
    return false;
}

/* The attended values; the weights into *weights. Dropout counts here whatever the mode. */
static tn__node *attend(tn__node *q, tn__node *k, tn__node *v, tn__node *mask, bool causal, double scale,
                        double dropout, tn__node **weights)
{
    if (!fit(q, k, v))
        return tn__failed();
    tn__node *scores = tn__matmul_node(times(q, scale), tn__swap_last(k));
    TN__PASS_ERROR(scores);
    tn_dtype dtype = (tn_dtype)scores->dtype;
    scores = tn__widened(scores);
    if (mask && !tn__broadcasts_to(mask->shape, scores->shape)) {
        char a[TN__SHAPE_TEXT], b[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, "attention", "expected a mask that broadcasts to the scores %s, got %s",
                   tn__shape_text(scores->shape->ndim, scores->shape->dim, a),
                   tn__shape_text(mask->shape->ndim, mask->shape->dim, b));
    }
    looks l = looks_of(mask, causal, scores);
    *weights = weights_of(scores, &l, dtype);
    tn__node *kept = tn__dropout(*weights, dropout, NULL);
    return tn__matmul_node(kept, v);
}

static double scale_of(const tn__node *q, const tn_attention_opts *opts)
{
    int ndim = q->shape->ndim;
    double extent = ndim > 0 && q->shape->dim[ndim - 1] > 0 ? (double)q->shape->dim[ndim - 1] : 1;
    return TN__OPTION(opts, scale, 1 / sqrt(extent));
}

tn_array *tn_scaled_dot_product_attention_with(const tn_array *q, const tn_array *k, const tn_array *v,
                                               const tn_attention_opts *opts)
{
    static const char operation[] = "attention";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(q, operation), tn__only_floating(k, operation),
                      tn__only_floating(v, operation),
                      opts && opts->mask ? tn__node_of(opts->mask, operation) : NULL};
    tn__node *y = tn__first_error(4, in), *weights = y;
    double dropout = opts ? opts->dropout : 0;
    if (!(dropout >= 0 && dropout < 1))
        y = tn__number_error(operation, "a dropout in [0, 1)", dropout);
    else if (!y && in[3] && in[3]->dtype != TN_BOOL && !tn_dtype_is_float((tn_dtype)in[3]->dtype))
        y = tn__node_error(tn__error_new(TN_ERR_DTYPE, operation, "expected a mask of bool or floats, got %s",
                                         tn_dtype_name((tn_dtype)in[3]->dtype)));
    if (!y)
        y = attend(in[0], in[1], in[2], in[3], opts && opts->causal, scale_of(in[0], opts), dropout, &weights);
    if (opts && opts->weights)
        *opts->weights = tn__leave_array(tn__enter(), tn__node_is_error(y) ? y : weights);
    return tn__leave_array(call, y);
}

/* ---- several heads ---- */

typedef struct multihead {
    int64_t features, heads;
    double dropout;
    bool bias, causal;
} multihead;

/* x (N, L, features) times a third of in_proj_weight: (N, heads, L, features / heads). */
static tn__node *projected(const tn_layer *layer, const multihead *m, tn__node *x, int third)
{
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim != 3 || x->shape->dim[2] != m->features)
        TN__REFUSE(TN_ERR_SHAPE, "multihead_attention", "expected inputs (N, length, %" PRId64 "), got %s", m->features,
                   tn__shape_text(x->shape->ndim, x->shape->dim, text));
    int64_t rows = x->shape->dim[0] * x->shape->dim[1], f = m->features;
    tn__node *y = tn__matmul_node(tn__reshape(x, 2, (int64_t[]){rows, f}),
                                  tn__piece(tn__slot_node(layer, 0), 1, third * f, f));
    if (m->bias)
        y = add(y, tn__piece(tn__slot_node(layer, 1), 0, third * f, f));
    y = tn__reshape(y, 4, (int64_t[]){x->shape->dim[0], x->shape->dim[1], m->heads, f / m->heads});
    return tn__node_is_error(y) ? y : tn__permute(y, (uint8_t[TN_MAX_NDIM]){0, 2, 1, 3, 4, 5, 6, 7});
}

static void multihead_flow(tn_layer *layer, const tn__flow *flow)
{
    const multihead *m = layer->user.data;
    tn__node *x = flow->in[0], *key = flow->in_count > 1 && flow->in[1] ? flow->in[1] : x;
    tn__node *value = flow->in_count > 2 && flow->in[2] ? flow->in[2] : key;
    tn__node *mask = flow->in_count > 3 ? flow->in[3] : NULL, *weights = NULL;
    tn__node *in[] = {projected(layer, m, x, 0), projected(layer, m, key, 1), projected(layer, m, value, 2)};
    tn__node *y = tn__first_error(3, in);
    if (!y)
        y = attend(in[0], in[1], in[2], mask, m->causal, 1 / sqrt((double)(m->features / m->heads)),
                   layer->evaluating ? 0 : m->dropout, &weights);
    if (!tn__node_is_error(y)) {
        y = tn__permute(y, (uint8_t[TN_MAX_NDIM]){0, 2, 1, 3, 4, 5, 6, 7});
        y = tn__reshape(y, 3, (int64_t[]){x->shape->dim[0], x->shape->dim[1], m->features});
        y = tn__layer_forward(layer->children[0].layer, y);
    }
    flow->out[0] = y;
    if (flow->out_count > 1)
        flow->out[1] = tn__node_is_error(y) ? y : tn__without_axis(tn__mean_over(weights, 1u << 1), 1);
}

static void multihead_describe(const tn_layer *layer, tn__text *text)
{
    const multihead *m = layer->user.data;
    tn__text_addf(text, ":%" PRId64 ":%" PRId64, m->features, m->heads);
}

static const tn__layer_kind multihead_kind = {
    .name = "multihead_attention", .flow = multihead_flow, .describe = multihead_describe};

tn_layer *tn_multihead_attention_with(int64_t features, int64_t heads, const tn_multihead_opts *opts)
{
    double dropout = opts ? opts->dropout : 0;
    if (features < 1 || heads < 1 || features % heads != 0 || !(dropout >= 0 && dropout < 1))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "multihead_attention",
                                             "expected heads that divide the features, and dropout in [0, 1); got "
                                             "%" PRId64 " heads of %" PRId64 ", and %g",
                                             heads, features, dropout));
    tn_layer *layer = tn__layer_make(&multihead_kind);
    if (layer->is_static)
        return layer;
    multihead *m = tn__layer_data(layer, sizeof *m);
    if (!m)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *m = (multihead){features, heads, dropout, !(opts && opts->no_bias), opts && opts->causal};
    layer->ports = (tn__ports){.inputs = 4, .optional = 3, .outputs = 2};
    tn_status status = tn__slot_add(layer, "in_proj_weight", (tn_shape){2, {features, 3 * features}}, TN_FLOAT32,
                                    (tn_init){.kind = TN_INIT_GLOROT_UNIFORM});
    if (status == TN_OK && m->bias)
        status = tn__slot_add(layer, "in_proj_bias", (tn_shape){1, {3 * features}}, TN_FLOAT32,
                              (tn_init){.kind = TN_INIT_ZEROS});
    const tn_linear_opts linear = {.in = features, .no_bias = !m->bias};
    if (status == TN_OK)
        status = tn_layer_add(layer, "out_proj", tn_linear_with(features, &linear));
    return tn__layer_finish(layer, status);
}
