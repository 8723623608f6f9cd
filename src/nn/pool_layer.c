/* SPDX-License-Identifier: MIT */
/* Layers of pooling. */
#include "nn/layer.h"
#include "nn/pool.h"

#include <inttypes.h>

static void add_extents(tn__text *text, const char *name, tn_shape shape)
{
    if (shape.ndim)
        tn__text_add(text, name);
    for (int i = 0; i < shape.ndim; i++)
        tn__text_addf(text, "%s%" PRId64, i ? "x" : "", shape.dim[i]);
}

static const tn__pool_settings *settings_of(const tn_layer *layer)
{
    return (const tn__pool_settings *)(const void *)layer->settings;
}

static void pool_describe(const tn_layer *layer, tn__text *text)
{
    const tn__pool_settings *s = settings_of(layer);
    add_extents(text, ":", s->kernel);
    add_extents(text, ",stride=", s->stride);
    add_extents(text, ",pad=", s->pad);
    add_extents(text, ",dilation=", s->dilation);
    tn__text_addf(text, "%s%s", s->ceil ? ",ceil=1" : "", s->exclude_pad ? ",exclude_pad=1" : "");
}

static tn__node *max_forward(tn_layer *layer, tn__node *x) { return tn__max_pool(x, settings_of(layer)); }
static tn__node *average_forward(tn_layer *layer, tn__node *x) { return tn__average_pool(x, settings_of(layer)); }
static tn__node *adaptive_forward(tn_layer *layer, tn__node *x)
{
    return tn__adaptive_pool("adaptive_average_pool", x, settings_of(layer)->kernel, false);
}
static tn__node *adaptive_max_forward(tn_layer *layer, tn__node *x)
{
    return tn__adaptive_pool("adaptive_max_pool", x, settings_of(layer)->kernel, true);
}
static tn__node *global_forward(tn_layer *layer, tn__node *x)
{
    (void)layer;
    return tn__global_pool("global_average_pool", x, false);
}
static tn__node *global_max_forward(tn_layer *layer, tn__node *x)
{
    (void)layer;
    return tn__global_pool("global_max_pool", x, true);
}

#define KIND(word, of) \
    {.name = word, .forward = of, .describe = pool_describe, .settings = sizeof(tn__pool_settings)}
static const tn__layer_kind max_kind = KIND("maxpool", max_forward), average_kind = KIND("avgpool", average_forward),
                            adaptive_kind = KIND("adaptive_avgpool", adaptive_forward),
                            adaptive_max_kind = KIND("adaptive_maxpool", adaptive_max_forward),
                            global_kind = {.name = "gap", .forward = global_forward},
                            global_max_kind = {.name = "global_maxpool", .forward = global_max_forward};

static tn_layer *pool_layer(const tn__layer_kind *kind, tn__pool_settings s)
{
    int64_t extent[TN__POOLED_AXES];
    const struct {
        const char *name;
        tn_shape value;
        int64_t least;
    } lists[] = {{"window's extent", s.kernel, 1},
                 {"stride", s.stride, 1},
                 {"pad", s.pad, 0},
                 {"dilation", s.dilation, 1}};
    if (s.kernel.ndim < 1 || s.kernel.ndim > TN__POOLED_AXES)
        return tn__layer_error(tn__error_new(TN_ERR_SHAPE, s.name, "expected one to three extents, got %d",
                                             (int)s.kernel.ndim));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int axes = lists[i].value.ndim;
        if (axes > TN__POOLED_AXES ||
            !tn__extents_of(s.name, lists[i].name, lists[i].value, axes, 1, lists[i].least, extent))
            return tn__layer_error(axes > TN__POOLED_AXES
                                       ? tn__error_new(TN_ERR_SHAPE, s.name, "expected three of a %s at most, got %d",
                                                       lists[i].name, axes)
                                       : tn__error_retain(tn__error_last()));
    }
    tn_layer *layer = tn__layer_make(kind);
    if (!layer->is_static)
        *(tn__pool_settings *)(void *)layer->settings = s;
    return layer;
}

tn_layer *tn_max_pool_layer_with(tn_shape kernel, const tn_pool_opts *opts)
{
    return pool_layer(&max_kind, tn__pool_settings_of("max_pool", kernel, opts));
}

tn_layer *tn_average_pool_layer_with(tn_shape kernel, const tn_pool_opts *opts)
{
    return pool_layer(&average_kind, tn__pool_settings_of("average_pool", kernel, opts));
}

tn_layer *tn_adaptive_average_pool_layer(tn_shape out)
{
    return pool_layer(&adaptive_kind, tn__pool_settings_of("adaptive_average_pool", out, NULL));
}

tn_layer *tn_adaptive_max_pool_layer(tn_shape out)
{
    return pool_layer(&adaptive_max_kind, tn__pool_settings_of("adaptive_max_pool", out, NULL));
}

tn_layer *tn_global_average_pool_layer(void) { return tn__layer_make(&global_kind); }
tn_layer *tn_global_max_pool_layer(void) { return tn__layer_make(&global_max_kind); }

/* ---- pictures ---- */

static tn__node *image_forward(tn_layer *layer, tn__node *x)
{
    int64_t channels = layer->axis, side = 0;
    if (x->shape->ndim == 4 && x->shape->dim[1] == channels)
        return x;
    int64_t elements = x->shape->ndim == 2 ? x->shape->dim[1] : 0;
    while (channels * (side + 1) * (side + 1) <= elements)
        side++;
    char text[TN__SHAPE_TEXT];
    if (elements == 0 || channels * side * side != elements)
        return tn__node_error(tn__error_new(TN_ERR_SHAPE, "image",
                                            "expected (N, %" PRId64 ", height, width), or rows of as many squares; got "
                                            "shape %s",
                                            channels, tn__shape_text(x->shape->ndim, x->shape->dim, text)));
    return tn__reshape(x, 4, (int64_t[]){x->shape->dim[0], channels, side, side});
}

static void image_describe(const tn_layer *layer, tn__text *text) { tn__text_addf(text, ":%d", layer->axis); }

static const tn__layer_kind image_kind = {.name = "image", .forward = image_forward, .describe = image_describe};

tn_layer *tn_image_layer(int64_t channels)
{
    if (channels < 1 || channels > INT32_MAX)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "image", "expected one channel or more, got %" PRId64,
                                             channels));
    tn_layer *layer = tn__layer_make(&image_kind);
    if (!layer->is_static)
        layer->axis = (int)channels;
    return layer;
}
