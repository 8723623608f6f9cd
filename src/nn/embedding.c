/* SPDX-License-Identifier: MIT */
/* The layers with a table or a scale a feature: embedding and layer normalisation. */
#include "nn/terms.h"
#include "nn/layer.h"

#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include <tanso/connections.h>

#include "core/options.h"

/* ---- embedding ---- */

tn__node *tn__embed(const char *operation, tn__node *w, tn__node *x)
{
    TN__PASS_ERROR(w);
    TN__PASS_ERROR(x);
    if (!tn_dtype_is_integer((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected integer indices, got %s: cast them with tn_cast",
                   tn_dtype_name((tn_dtype)x->dtype));
    char text[TN__SHAPE_TEXT];
    if (w->shape->ndim != 2)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected a table of shape (count, features), got %s",
                   tn__shape_text(w->shape->ndim, w->shape->dim, text));
    int ndim = x->shape->ndim;
    if (ndim == TN_MAX_NDIM)
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected indices of at most %d axes, as the features become one more; got %d", TN_MAX_NDIM - 1,
                   ndim);
    int64_t features = w->shape->dim[1], count = x->shape->size;
    const tn__shape *rows = tn__shape_intern(2, (int64_t[]){count, features});
    if (!rows)
        TN__REFUSE(TN_ERR_MEMORY, operation, "no memory for a shape");
    tn__node *indices = tn__reshape(tn__labels(x), 2, (int64_t[]){count, 1});
    tn__node *y = tn__gather(w, tn__expand(indices, rows), 0);
    tn_shape shape = tn__shape_value(x->shape);
    shape.dim[ndim] = features;
    return tn__reshape(y, ndim + 1, shape.dim);
}

static tn__node *embed_padded(const char *operation, tn__node *w, tn__node *x, int64_t padding)
{
    TN__PASS_ERROR(x);
    if (!tn_dtype_is_integer((tn_dtype)x->dtype))
        return tn__embed(operation, w, x); /* which says so */
    tn__node *words = tn__is_not(x, padding), *y = tn__embed(operation, w, tn__only_where(words, x));
    TN__PASS_ERROR(y);
    return tn__only_where(tn__spread(words, x->shape->ndim), y);
}

tn_array *tn_embedding_function_with(const tn_array *w, const tn_array *x, const tn_embedding_opts *opts)
{
    static const char operation[] = "embedding";
    tn__call call = tn__enter();
    tn__node *table = tn__only_floating(w, operation), *indices = tn__node_of(x, operation);
    return tn__leave_array(call, opts && TN__GIVEN(opts, padding_index)
                                     ? embed_padded(operation, table, indices, opts->padding_index)
                                     : tn__embed(operation, table, indices));
}

typedef struct embedding {
    bool padded;
    int64_t padding;
} embedding;

static tn__node *embedding_forward(tn_layer *layer, tn__node *x)
{
    const embedding *e = layer->settings;
    tn__node *w = tn__slot_node(layer, 0);
    return e->padded ? embed_padded("embedding", w, x, e->padding) : tn__embed("embedding", w, x);
}

static void embedding_describe(const tn_layer *layer, tn__text *text)
{
    const int64_t *dim = layer->slots[0].shape.dim;
    tn__text_addf(text, ":%" PRId64 ":%" PRId64, dim[0], dim[1]);
}

static const tn__layer_kind embedding_kind = {
    .name = "embedding", .forward = embedding_forward, .describe = embedding_describe, .settings = sizeof(embedding)};

tn_layer *tn_embedding_with(int64_t count, int64_t features, const tn_embedding_opts *opts)
{
    tn_init init = opts ? opts->weight : (tn_init){0};
    if (count < 1 || features < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "embedding",
                                             "expected a table of at least one row and feature, got %" PRId64
                                             " and %" PRId64,
                                             count, features));
    tn_layer *layer = tn__layer_make(&embedding_kind);
    if (layer->is_static)
        return layer;
    if (opts && TN__GIVEN(opts, padding_index))
        *(embedding *)layer->settings = (embedding){true, opts->padding_index};
    if (init.kind == TN_INIT_DEFAULT)
        init.kind = TN_INIT_NORMAL;
    return tn__layer_finish(layer, tn__slot_add(layer, "W", (tn_shape){2, {count, features}}, TN_FLOAT32, init));
}

/* ---- layer normalisation ---- */

static tn__node *layer_norm_forward(tn_layer *layer, tn__node *x)
{
    if (!tn__fits_features(layer, x))
        return tn__failed();
    return tn__layer_normalize(x, tn__slot_node(layer, 0), tn__slot_node(layer, 1), layer->number);
}

static void layer_norm_describe(const tn_layer *layer, tn__text *text)
{
    if (layer->slots[0].shape.dim[0] > 0)
        tn__text_addf(text, ":%" PRId64, layer->slots[0].shape.dim[0]);
}

static const tn__layer_kind layer_norm_kind = {
    .name = "layer_norm", .forward = layer_norm_forward, .describe = layer_norm_describe};

tn_layer *tn_layer_norm(int64_t features, double eps)
{
    if (features < 0 || !(eps >= 0) || !isfinite(eps))
        return tn__layer_error(
            tn__error_new(TN_ERR_VALUE, "layer_norm",
                          "expected features >= 0 (0: inferred) and eps >= 0, got %" PRId64 " and %g", features, eps));
    tn_layer *layer = tn__layer_make(&layer_norm_kind);
    if (layer->is_static)
        return layer;
    layer->number = eps == 0 ? 1e-5 : eps;
    tn_shape shape = {1, {features > 0 ? features : -1}};
    tn_status status = tn__slot_add(layer, "gamma", shape, TN_FLOAT32, (tn_init){.kind = TN_INIT_ONES});
    if (status == TN_OK)
        status = tn__slot_add(layer, "beta", shape, TN_FLOAT32, (tn_init){.kind = TN_INIT_ZEROS});
    return tn__layer_finish(layer, status);
}
