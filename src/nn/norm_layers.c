/* SPDX-License-Identifier: MIT */
/* Layers of normalizations that keep no statistics. */
#include <inttypes.h>
#include <math.h>
#include <tanso/normalization.h>

#include "core/options.h"
#include "nn/layer.h"
#include "nn/norm.h"

static tn_status add_vector(tn_layer *layer, const char *name, int64_t extent, tn_init_kind init)
{
    tn_shape shape = {.ndim = 1, .dim = {extent > 0 ? extent : -1}};
    return tn__slot_add(layer, name, shape, TN_FLOAT32, (tn_init){.kind = init});
}

static tn_layer *refused(const char *name, int64_t extent, double eps)
{
    return tn__layer_error(tn__error_new(TN_ERR_VALUE, name,
                                         "expected an extent >= 0 (0: inferred) and eps >= 0, got %" PRId64 " and %g",
                                         extent, eps));
}

/* ---- groups and instances ---- */

/* Infers channels, the extent of axis 1; false and latched for an input of other ones. */
static bool fits_channels(tn_layer *layer, const tn__node *x)
{
    const char *name = tn__layer_name(layer);
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim < 2) {
        tn__fail(TN_ERR_SHAPE, name, "expected an input (N, channels, ...), got %s",
                 tn__shape_text(x->shape->ndim, x->shape->dim, text));
        return false;
    }
    if (layer->slot_count == 0)
        return true;
    if (!layer->slots[0].value)
        return tn__slots_infer(layer, x->shape->dim[1], x->device) == TN_OK;
    if (x->shape->dim[1] == layer->slots[0].shape.dim[0])
        return true;
    tn__fail(TN_ERR_SHAPE, name, "expected inputs with %" PRId64 " channels along axis 1, got %s",
             layer->slots[0].shape.dim[0], tn__shape_text(x->shape->ndim, x->shape->dim, text));
    return false;
}

static tn__node *slot_or_null(const tn_layer *layer, size_t i)
{
    return i < layer->slot_count ? tn__slot_node(layer, (int)i) : NULL;
}

static tn__node *group_norm_forward(tn_layer *layer, tn__node *x)
{
    const int64_t *groups = layer->user.data; /* 0: each channel is one */
    if (!fits_channels(layer, x))
        return tn__failed();
    return tn__group_norm(tn__layer_name(layer), x, *groups ? *groups : x->shape->dim[1], slot_or_null(layer, 0),
                          slot_or_null(layer, 1), layer->number);
}

static void group_norm_describe(const tn_layer *layer, tn__text *text)
{
    tn__text_addf(text, ":%" PRId64, *(const int64_t *)layer->user.data);
}

static const tn__layer_kind group_norm_kind = {
    .name = "group_norm", .forward = group_norm_forward, .describe = group_norm_describe};
static const tn__layer_kind instance_norm_kind = {.name = "instance_norm", .forward = group_norm_forward};

static tn_layer *channel_norm(const tn__layer_kind *kind, int64_t groups, int64_t channels, bool affine, double eps)
{
    tn_layer *layer = tn__layer_make(kind);
    if (layer->is_static)
        return layer;
    int64_t *data = tn__layer_data(layer, sizeof *data);
    if (!data)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *data = groups;
    layer->number = eps;
    tn_status status = affine ? add_vector(layer, "gamma", channels, TN_INIT_ONES) : TN_OK;
    if (status == TN_OK && affine)
        status = add_vector(layer, "beta", channels, TN_INIT_ZEROS);
    return tn__layer_finish(layer, status);
}

tn_layer *tn_group_norm(int64_t groups, int64_t channels, double eps)
{
    if (channels < 0 || !(eps >= 0) || !isfinite(eps))
        return refused("group_norm", channels, eps);
    if (groups < 1 || channels % groups != 0)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "group_norm",
                                             "expected groups that divide the %" PRId64 " channels, got %" PRId64,
                                             channels, groups));
    return channel_norm(&group_norm_kind, groups, channels, true, eps);
}

tn_layer *tn_instance_norm_with(int64_t channels, const tn_instance_norm_opts *opts)
{
    double eps = TN__OPTION(opts, eps, 1e-5);
    if (channels < 0 || !(eps >= 0) || !isfinite(eps))
        return refused("instance_norm", channels, eps);
    return channel_norm(&instance_norm_kind, 0, channels, opts && opts->affine, eps);
}

/* ---- features ---- */

static tn__node *rms_norm_forward(tn_layer *layer, tn__node *x)
{
    return tn__fits_features(layer, x) ? tn__rms_norm(x, tn__slot_node(layer, 0), 1, layer->number) : tn__failed();
}

static void rms_norm_describe(const tn_layer *layer, tn__text *text)
{
    if (layer->slots[0].shape.dim[0] > 0)
        tn__text_addf(text, ":%" PRId64, layer->slots[0].shape.dim[0]);
}

static const tn__layer_kind rms_norm_kind = {
    .name = "rms_norm", .forward = rms_norm_forward, .describe = rms_norm_describe};

tn_layer *tn_rms_norm(int64_t features, double eps)
{
    if (features < 0 || !(eps >= 0) || !isfinite(eps))
        return refused("rms_norm", features, eps);
    tn_layer *layer = tn__layer_make(&rms_norm_kind);
    if (layer->is_static)
        return layer;
    layer->number = eps;
    return tn__layer_finish(layer, add_vector(layer, "gamma", features, TN_INIT_ONES));
}

static tn__node *layer_norm_over_forward(tn_layer *layer, tn__node *x)
{
    tn__node *gamma = tn__slot_node(layer, 0);
    if (!tn__fits_last("layer_norm", "gamma", x, gamma))
        return tn__failed();
    return tn__layer_normalize(x, gamma, tn__slot_node(layer, 1), layer->number);
}

static const tn__layer_kind layer_norm_over_kind = {.name = "layer_norm_over", .forward = layer_norm_over_forward};

tn_layer *tn_layer_norm_over(tn_shape shape, double eps)
{
    bool fine = shape.ndim >= 1 && shape.ndim <= TN_MAX_NDIM && eps >= 0 && isfinite(eps);
    for (int i = 0; fine && i < shape.ndim; i++)
        fine = shape.dim[i] >= 1;
    if (!fine)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "layer_norm_over",
                                             "expected the extents of one to %d last axes, 1 or more each, and "
                                             "eps >= 0",
                                             TN_MAX_NDIM));
    tn_layer *layer = tn__layer_make(&layer_norm_over_kind);
    if (layer->is_static)
        return layer;
    layer->number = eps == 0 ? 1e-5 : eps;
    tn_status status = tn__slot_add(layer, "gamma", shape, TN_FLOAT32, (tn_init){.kind = TN_INIT_ONES});
    if (status == TN_OK)
        status = tn__slot_add(layer, "beta", shape, TN_FLOAT32, (tn_init){.kind = TN_INIT_ZEROS});
    return tn__layer_finish(layer, status);
}
