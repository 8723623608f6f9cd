/* SPDX-License-Identifier: MIT */
/* Layers without parameters: activations, softmax, flatten, dropout. */
#include "nn/functions.h"
#include "nn/layer.h"

#include <math.h>
#include <tanso/array.h>
#include <tanso/connections.h>

#include "array/build_parts.h"

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

/* One number a sample and channel, or element: is it kept? */
static tn__node *kept(tn__node *x, int axes, double ratio)
{
    int64_t extents[TN_MAX_NDIM];
    for (int i = 0; i < x->shape->ndim; i++)
        extents[i] = i < axes ? x->shape->dim[i] : 1;
    const tn__shape *shape = tn__shape_intern(x->shape->ndim, extents);
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "dropout", "no memory for a shape");
    tn__node *place = tn__const(0, TN_FLOAT32, shape, x->device);
    return tn__with(TN__OP_GREATER_EQUAL, tn__uniform_like(place, NULL), ratio);
}

static tn__node *channel_forward(tn_layer *layer, tn__node *x)
{
    if (layer->evaluating || layer->number == 0)
        return x;
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim < 2 || !tn_dtype_is_float((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_SHAPE, "channel_dropout", "expected floating (N, channels, ...), got %s %s",
                   tn_dtype_name((tn_dtype)x->dtype), tn__shape_text(x->shape->ndim, x->shape->dim, text));
    tn__node *scaled = tn__with(TN__OP_MULTIPLY, x, 1 / (1 - layer->number));
    return tn__where(kept(x, 2, layer->number), scaled, tn__const_like(x, 0));
}

#define SELU_END -1.7580993408473766 /* selu of minus infinity */

static tn__node *alpha_forward(tn_layer *layer, tn__node *x)
{
    double ratio = layer->number, scale = 1 / sqrt((1 - ratio) * (1 + ratio * SELU_END * SELU_END));
    if (layer->evaluating || ratio == 0)
        return x;
    if (!tn_dtype_is_float((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_DTYPE, "alpha_dropout", "expected a floating input, got %s: cast it with tn_cast",
                   tn_dtype_name((tn_dtype)x->dtype));
    tn__node *y = tn__where(kept(x, x->shape->ndim, ratio), x, tn__const_like(x, SELU_END));
    return tn__with(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, y, scale), -scale * SELU_END * ratio);
}

#define KIND(word, of) {.name = word, .forward = of, .describe = describe_number}
static const tn__layer_kind dropout_kind = KIND("dropout", dropout_forward),
                            channel_kind = KIND("channel_dropout", channel_forward),
                            alpha_kind = KIND("alpha_dropout", alpha_forward);

static tn_layer *of_ratio(const tn__layer_kind *kind, double ratio)
{
    if (!(ratio >= 0 && ratio < 1))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, kind->name, "expected a ratio in [0, 1), got %g", ratio));
    tn_layer *layer = tn__layer_make(kind);
    if (!layer->is_static)
        layer->number = ratio;
    return layer;
}

tn_layer *tn_dropout(double ratio) { return of_ratio(&dropout_kind, ratio); }
tn_layer *tn_channel_dropout(double ratio) { return of_ratio(&channel_kind, ratio); }
tn_layer *tn_alpha_dropout(double ratio) { return of_ratio(&alpha_kind, ratio); }
