/* SPDX-License-Identifier: MIT */
/* Layers without parameters: activations, softmax, flatten, dropout. */
#include "nn/functions.h"
#include "nn/layer.h"

#include <tanso/array.h>

/* ---- one operation ---- */

#define ACTIVATION(id, OP) \
    static tn__node *id##_forward(tn_layer *layer, tn__node *x) \
    { \
        (void)layer; \
        return tn__unary(TN__OP_##OP, x); \
    } \
    static const tn__layer_kind id##_kind = {.name = #id, .forward = id##_forward}; \
    tn_layer *tn_##id##_layer(void) \
    { \
        return tn__layer_make(&id##_kind); \
    }
ACTIVATION(sigmoid, SIGMOID)
ACTIVATION(relu, RELU)
ACTIVATION(tanh, TANH)
ACTIVATION(gelu, GELU)
ACTIVATION(softplus, SOFTPLUS)

/* ---- leaky ReLU ---- */

static void describe_number(const tn_layer *layer, tn__text *text)
{
    tn__text_addf(text, ":%g", layer->number);
}

static tn__node *leaky_relu_forward(tn_layer *layer, tn__node *x)
{
    return tn__leaky(x, layer->number);
}

static const tn__layer_kind leaky_relu_kind = {
    .name = "leaky_relu", .forward = leaky_relu_forward, .describe = describe_number};

tn_layer *tn_leaky_relu_layer(double slope)
{
    tn_layer *layer = tn__layer_make(&leaky_relu_kind);
    if (!layer->is_static)
        layer->number = slope;
    return layer;
}

/* ---- softmax ---- */

static tn__node *softmax_forward(tn_layer *layer, tn__node *x)
{
    int axis = tn__axis_check("softmax", layer->axis, x->shape->ndim);
    return axis < 0 ? tn__failed() : tn__softmax_over(x, axis);
}

static void softmax_describe(const tn_layer *layer, tn__text *text)
{
    tn__text_addf(text, ":%d", layer->axis);
}

static const tn__layer_kind softmax_kind = {
    .name = "softmax", .forward = softmax_forward, .describe = softmax_describe};

tn_layer *tn_softmax_layer(int axis)
{
    if (axis < -TN_MAX_NDIM || axis >= TN_MAX_NDIM)
        return tn__layer_error(tn__error_new(TN_ERR_INDEX, "softmax", "expected an axis from %d to %d, got %d",
                                             -TN_MAX_NDIM, TN_MAX_NDIM - 1, axis));
    tn_layer *layer = tn__layer_make(&softmax_kind);
    if (!layer->is_static)
        layer->axis = axis;
    return layer;
}

/* ---- flatten ---- */

static tn__node *flatten_forward(tn_layer *layer, tn__node *x)
{
    (void)layer;
    if (x->shape->ndim == 0)
        return tn__node_error(tn__error_new(TN_ERR_SHAPE, "flatten",
                                            "expected an input whose first axis is the minibatch, got a scalar"));
    int64_t features = 1;
    for (int i = 1; i < x->shape->ndim; i++)
        features *= x->shape->dim[i];
    return x->shape->ndim == 2 ? x : tn__reshape(x, 2, (int64_t[]){x->shape->dim[0], features});
}

static const tn__layer_kind flatten_kind = {.name = "flatten", .forward = flatten_forward};

tn_layer *tn_flatten_layer(void)
{
    return tn__layer_make(&flatten_kind);
}

/* ---- dropout ---- */

static tn__node *dropout_forward(tn_layer *layer, tn__node *x)
{
    return layer->evaluating ? x : tn__dropout(x, layer->number, NULL);
}

static const tn__layer_kind dropout_kind = {.name = "dropout", .forward = dropout_forward, .describe = describe_number};

tn_layer *tn_dropout(double ratio)
{
    if (!(ratio >= 0 && ratio < 1))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "dropout", "expected a ratio in [0, 1), got %g", ratio));
    tn_layer *layer = tn__layer_make(&dropout_kind);
    if (!layer->is_static)
        layer->number = ratio;
    return layer;
}
