/* SPDX-License-Identifier: MIT */
/* Layers of numbers that are multiplied by or added, and lie along some axes of the input: Chainer's Scale and Bias. */
#include <inttypes.h>
#include <tanso/connections.h>

#include "nn/layer.h"
#include "nn/terms.h"

/* The layer's only parameter as an operand of x; an error if x has other extents there. */
static tn__node *along_input(const tn_layer *layer, const tn__node *x)
{
    int axis = layer->axis;
    tn__node *w = tn__slot_node(layer, 0);
    TN__PASS_ERROR(w);
    const tn__shape *own = w->shape;
    bool fits = axis + own->ndim <= x->shape->ndim;
    for (int i = 0; i < own->ndim && fits; i++)
        fits = own->dim[i] == x->shape->dim[axis + i];
    char text[2][TN__SHAPE_TEXT];
    if (!fits)
        TN__REFUSE(TN_ERR_SHAPE, tn__layer_name(layer), "expected an input with extents %s from axis %d on, got %s",
                   tn__shape_text(own->ndim, own->dim, text[0]), axis,
                   tn__shape_text(x->shape->ndim, x->shape->dim, text[1]));
    return tn__along(w, axis, x->shape->ndim);
}

static tn__node *scale_forward(tn_layer *layer, tn__node *x)
{
    tn__node *w = along_input(layer, x);
    TN__PASS_ERROR(w);
    tn__node *y = mul(x, w);
    return layer->child_count ? tn__layer_forward(layer->children[0].layer, y) : y;
}

static tn__node *bias_forward(tn_layer *layer, tn__node *x)
{
    tn__node *b = along_input(layer, x);
    TN__PASS_ERROR(b);
    return add(x, b);
}

static const tn__layer_kind scale_kind = {.name = "scale", .forward = scale_forward},
                            bias_kind = {.name = "bias", .forward = bias_forward};

static tn_layer *along_layer(const tn__layer_kind *kind, int axis, tn_shape shape, const char *name, tn_init_kind init)
{
    if (axis < 0 || axis + shape.ndim > TN_MAX_NDIM)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, kind->name,
                                             "expected an axis from 0 to %d, where %d axes begin; got %d",
                                             TN_MAX_NDIM - (int)shape.ndim, (int)shape.ndim, axis));
    tn_layer *layer = tn__layer_make(kind);
    if (layer->is_static)
        return layer;
    layer->axis = axis;
    return tn__layer_finish(layer, tn__slot_add(layer, name, shape, TN_FLOAT32, (tn_init){.kind = init}));
}

tn_layer *tn_bias_layer(int axis, tn_shape shape) { return along_layer(&bias_kind, axis, shape, "b", TN_INIT_ZEROS); }

tn_layer *tn_scale_layer(int axis, tn_shape shape, bool bias)
{
    tn_layer *layer = along_layer(&scale_kind, axis, shape, "W", TN_INIT_ONES);
    if (!bias || tn_layer_status(layer) != TN_OK)
        return layer;
    return tn__layer_finish(layer, tn_layer_add(layer, "bias", tn_bias_layer(axis, shape)));
}
