/* SPDX-License-Identifier: MIT */
/* Layers of the functions of tanso/activations.h. */
#include <inttypes.h>
#include <math.h>
#include <tanso/activations.h>

#include "nn/activation.h"
#include "nn/layer.h"

static void describe_number(const tn_layer *layer, tn__text *text) { tn__text_addf(text, ":%g", layer->number); }
static void describe_axis(const tn_layer *layer, tn__text *text) { tn__text_addf(text, ":%d", layer->axis); }

static tn_layer *with_number(const tn__layer_kind *kind, double number)
{
    tn_layer *layer = tn__layer_make(kind);
    if (!layer->is_static)
        layer->number = number;
    return layer;
}

static tn_layer *with_axis(const tn__layer_kind *kind, int axis)
{
    if (axis < -TN_MAX_NDIM || axis >= TN_MAX_NDIM)
        return tn__layer_error(tn__error_new(TN_ERR_INDEX, kind->name, "expected an axis from %d to %d, got %d",
                                             -TN_MAX_NDIM, TN_MAX_NDIM - 1, axis));
    tn_layer *layer = tn__layer_make(kind);
    if (!layer->is_static)
        layer->axis = axis;
    return layer;
}

#define FORWARD(id, argument, text_of) \
    static tn__node *id##_forward(tn_layer *layer, tn__node *x) \
    { \
        (void)layer; \
        return tn__##id(x, argument); \
    } \
    static const tn__layer_kind id##_kind = {.name = #id, .forward = id##_forward, .describe = text_of};

#define PLAIN(id, number) \
    FORWARD(id, number, NULL) \
    tn_layer *tn_##id##_layer(void) { return tn__layer_make(&id##_kind); }

#define NUMBER(id, holds, expected) \
    FORWARD(id, layer->number, describe_number) \
    tn_layer *tn_##id##_layer(double number) \
    { \
        if (!(holds)) \
            return tn__layer_error(tn__error_new(TN_ERR_VALUE, #id, "expected %s, got %g", expected, number)); \
        return with_number(&id##_kind, number); \
    }

#define AXIS(id, function) \
    static tn__node *id##_forward(tn_layer *layer, tn__node *x) { return function(x, layer->axis); } \
    static const tn__layer_kind id##_kind = {.name = #id, .forward = id##_forward, .describe = describe_axis}; \
    tn_layer *tn_##id##_layer(int axis) { return with_axis(&id##_kind, axis); }

PLAIN(selu, 0)
PLAIN(silu, 1)
PLAIN(mish, 0)
PLAIN(gelu_tanh, 0)
PLAIN(log_sigmoid, 0)
PLAIN(softsign, 0)
PLAIN(relu6, 0)
PLAIN(hard_tanh, 1)
PLAIN(hard_swish, 0)
PLAIN(tanh_shrink, 0)
NUMBER(elu, isfinite(number), "a finite alpha")
NUMBER(celu, isfinite(number) && number != 0, "a finite alpha that is not 0")
NUMBER(clipped_relu, number >= 0, "z >= 0")
NUMBER(hard_sigmoid, isfinite(number), "a finite slope")
NUMBER(hard_shrink, number >= 0, "lambda >= 0")
NUMBER(soft_shrink, number >= 0, "lambda >= 0")
AXIS(log_softmax, tn__log_softmax_over)
AXIS(softmin, tn__softmin)
AXIS(crelu, tn__crelu)
AXIS(glu, tn__glu)

/* ---- identity ---- */

static tn__node *identity_forward(tn_layer *layer, tn__node *x)
{
    (void)layer;
    return x;
}

static const tn__layer_kind identity_kind = {.name = "identity", .forward = identity_forward};

tn_layer *tn_identity_layer(void) { return tn__layer_make(&identity_kind); }

/* ---- with parameters ---- */

static tn__node *prelu_forward(tn_layer *layer, tn__node *x) { return tn__prelu(x, tn__slot_node(layer, 0)); }

static void prelu_describe(const tn_layer *layer, tn__text *text)
{
    tn__text_addf(text, ":%" PRId64, layer->slots[0].shape.dim[0]);
}

static const tn__layer_kind prelu_kind = {.name = "prelu", .forward = prelu_forward, .describe = prelu_describe};

tn_layer *tn_prelu_layer(int64_t channels, double init)
{
    if (channels < 1 || !isfinite(init))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "prelu",
                                             "expected one slope or more, finite at first; got %" PRId64 " of %g",
                                             channels, init));
    tn_layer *layer = tn__layer_make(&prelu_kind);
    if (layer->is_static)
        return layer;
    return tn__layer_finish(layer, tn__slot_add(layer, "W", (tn_shape){1, {channels}}, TN_FLOAT32,
                                                (tn_init){.kind = TN_INIT_CONSTANT, .gain = init}));
}

static tn__node *swish_forward(tn_layer *layer, tn__node *x)
{
    if (!tn__fits_features(layer, x))
        return tn__failed();
    return mul(x, map(SIGMOID, mul(x, tn__slot_node(layer, 0))));
}

static const tn__layer_kind swish_kind = {.name = "swish", .forward = swish_forward};

tn_layer *tn_swish_layer(int64_t features)
{
    if (features < 0)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "swish",
                                             "expected features >= 0 (0: inferred), got %" PRId64, features));
    tn_layer *layer = tn__layer_make(&swish_kind);
    if (layer->is_static)
        return layer;
    return tn__layer_finish(layer, tn__slot_add(layer, "beta", (tn_shape){1, {features > 0 ? features : -1}},
                                                TN_FLOAT32, (tn_init){.kind = TN_INIT_ONES}));
}
