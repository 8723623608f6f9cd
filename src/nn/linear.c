/* SPDX-License-Identifier: MIT */
/* The fully connected layer. */
#include "nn/layer.h"

#include <inttypes.h>
#include <string.h>
#include <tanso/array.h>
#include "core/options.h"

static tn__node *misfit(const tn__node *x, const tn__node *w)
{
    char text[TN__SHAPE_TEXT], weights[TN__SHAPE_TEXT];
    return tn__node_error(tn__error_new(TN_ERR_SHAPE, "linear",
                                        "expected inputs whose last extent is %" PRId64
                                        ", the rows of W %s; got %s: reshape the input, or make the layer anew",
                                        w->shape->dim[0], tn__shape_text(w->shape->ndim, w->shape->dim, weights),
                                        tn__shape_text(x->shape->ndim, x->shape->dim, text)));
}

static tn__node *linear_forward(tn_layer *layer, tn__node *x)
{
    int ndim = x->shape->ndim;
    if (ndim == 0)
        return tn__node_error(tn__error_new(TN_ERR_SHAPE, "linear",
                                            "expected an input of at least one axis, the features; got a scalar"));
    int64_t features = x->shape->dim[ndim - 1];
    if (!layer->slots[0].value && tn__slots_infer(layer, features, x->device) != TN_OK)
        return tn__failed();
    tn__node *w = tn__slot_node(layer, 0);
    if (features != w->shape->dim[0])
        return misfit(x, w);
    tn_shape shape = tn__shape_value(x->shape);
    if (ndim != 2) { /* one product of matrices whatever the leading axes are */
        int64_t rows = 1;
        for (int i = 0; i < ndim - 1; i++)
            rows *= shape.dim[i];
        x = tn__reshape(x, 2, (int64_t[]){rows, features});
    }
    tn__node *y = tn__matmul_node(x, w);
    if (layer->slot_count > 1 && strcmp(layer->slots[1].name, "b") == 0) /* others' may follow */
        y = tn__binary(TN__OP_ADD, y, tn__slot_node(layer, 1));
    shape.dim[ndim - 1] = w->shape->dim[1];
    return ndim == 2 ? y : tn__reshape(y, ndim, shape.dim);
}

static void linear_describe(const tn_layer *layer, tn__text *text)
{
    tn__text_addf(text, ":%" PRId64, layer->slots[0].shape.dim[1]);
}

static const tn__layer_kind linear_kind = {
    .name = "linear", .forward = linear_forward, .transposed = "W", .describe = linear_describe};

static tn_init init_or(tn_init init, tn_init_kind kind)
{
    if (init.kind == TN_INIT_DEFAULT)
        init.kind = kind;
    return init;
}

tn_layer *tn_linear_with(int64_t out, const tn_linear_opts *opts)
{
    const tn_linear_opts none = {0};
    if (!opts)
        opts = &none;
    tn_dtype dtype = opts->dtype == TN_DTYPE_DEFAULT ? TN_FLOAT32 : opts->dtype;
    if (out < 1 || TN__OPTION(opts, in, 1) < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "linear",
                                             "expected at least one output, and one input feature, got %" PRId64
                                             " and %" PRId64, out, opts->in));
    if (!tn_dtype_is_float(dtype))
        return tn__layer_error(tn__error_new(TN_ERR_DTYPE, "linear", "parameters are floating, got %s",
                                             tn_dtype_name(dtype)));
    tn_layer *layer = tn__layer_make(&linear_kind);
    if (layer->is_static)
        return layer;
    tn_shape weights = {2, {opts->in > 0 ? opts->in : -1, out}};
    tn_status status = tn__slot_add(layer, "W", weights, dtype, init_or(opts->weight, TN_INIT_LECUN_NORMAL));
    if (status == TN_OK && !opts->no_bias)
        status = tn__slot_add(layer, "b", (tn_shape){1, {out}}, dtype, init_or(opts->bias, TN_INIT_ZEROS));
    return tn__layer_finish(layer, status);
}
