/* SPDX-License-Identifier: MIT */
/* Layers of convolutions: a table of kinds over one forward; what a layer was made with lies in its settings. */
#include "nn/convolve.h"
#include "nn/layer.h"

#include <inttypes.h>
#include <tanso/conv.h>

#include "array/build_window.h"
#include "core/options.h"

typedef struct conv_layer {
    tn__conv_settings conv;
    int64_t out;
    tn_shape kernel;
} conv_layer;

static const conv_layer *settings_of(const tn_layer *layer)
{
    return (const conv_layer *)(const void *)layer->settings;
}

static tn__node *conv_forward(tn_layer *layer, tn__node *x)
{
    const conv_layer *c = settings_of(layer);
    if (!layer->slots[0].value) {
        if (x->shape->ndim != c->conv.axes + 2)
            return tn__node_error(tn__error_new(TN_ERR_SHAPE, c->conv.name,
                                                "expected an input of %d axes, (N, channels) and the extents; got %d",
                                                c->conv.axes + 2, x->shape->ndim));
        int64_t in = x->shape->dim[1];
        if (in < 1 || in % c->conv.groups != 0)
            return tn__node_error(tn__error_new(TN_ERR_SHAPE, c->conv.name,
                                                "an input of %" PRId64 " channels in %" PRId64
                                                " groups: the number of groups must divide them", in, c->conv.groups));
        if (tn__slots_infer(layer, c->conv.transposed ? in : in / c->conv.groups, x->device) != TN_OK)
            return tn__failed();
    }
    return tn__conv_of(x, tn__slot_node(layer, 0), layer->slot_count > 1 ? tn__slot_node(layer, 1) : NULL, &c->conv);
}

static void add_extents(tn__text *text, const char *name, tn_shape shape)
{
    tn__text_addf(text, ",%s", name);
    for (int i = 0; i < shape.ndim; i++)
        tn__text_addf(text, "%s%" PRId64, i ? "x" : "", shape.dim[i]);
}

static void conv_describe(const tn_layer *layer, tn__text *text)
{
    static const char *const modes[] = {"zeros", "reflect", "replicate", "circular"};
    const conv_layer *c = settings_of(layer);
    const struct {
        const char *name;
        tn_shape value;
    } lists[] = {{"stride=", c->conv.stride},         {"pad=", c->conv.pad},
                 {"pad_behind=", c->conv.pad_behind}, {"dilation=", c->conv.dilation},
                 {"output_pad=", c->conv.output_pad}};
    tn__text_addf(text, ":%" PRId64, c->out);
    add_extents(text, "", c->kernel);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].value.ndim)
            add_extents(text, lists[i].name, lists[i].value);
    if (c->conv.groups > 1)
        tn__text_addf(text, ",groups=%" PRId64, c->conv.groups);
    if (c->conv.same)
        tn__text_add(text, ",padding=same");
    if (c->conv.mode)
        tn__text_addf(text, ",pad_mode=%s", modes[c->conv.mode]);
    if (layer->slot_count == 1)
        tn__text_add(text, ",bias=0");
}

#define KIND(word) \
    {.name = word, .forward = conv_forward, .describe = conv_describe, .settings = sizeof(conv_layer), .kernels = true}
static const tn__layer_kind kinds[2][TN__CONVOLVED_AXES] = {
    {KIND("conv1d"), KIND("conv2d"), KIND("conv3d")},
    {KIND("conv_transpose1d"), KIND("conv_transpose2d"), KIND("conv_transpose3d")},
};

static tn_status check(const tn__conv_settings *s, int64_t in, int64_t out, tn_dtype dtype)
{
    if (out < 1 || in == 0 || in < -1)
        return tn__fail(TN_ERR_VALUE, s->name, "expected at least one channel in and out, got %" PRId64 " and %" PRId64,
                        in, out);
    if (s->groups < 1 || out % s->groups != 0 || (in > 0 && in % s->groups != 0))
        return tn__fail(TN_ERR_VALUE, s->name,
                        "%" PRId64 " groups; expected a number of 1 or more that divides the channels, %" PRId64
                        " of them out", s->groups, out);
    if (!tn_dtype_is_float(dtype) || tn_dtype_is_complex(dtype))
        return tn__fail(TN_ERR_DTYPE, s->name, "parameters are floating, got %s", tn_dtype_name(dtype));
    return TN_OK;
}

static tn_init init_or(tn_init init, tn_init_kind kind)
{
    init.kind = init.kind == TN_INIT_DEFAULT ? kind : init.kind;
    return init;
}

/* The layer for checked settings. */
static tn_layer *made(const tn__layer_kind *kind, const conv_layer *c, tn_shape weights, tn_dtype dtype,
                      const tn_conv_layer_opts *opts)
{
    tn_layer *layer = tn__layer_make(kind);
    if (layer->is_static)
        return layer;
    *(conv_layer *)(void *)layer->settings = *c;
    tn_status status = tn__slot_add(layer, "W", weights, dtype, init_or(opts->weight, TN_INIT_LECUN_NORMAL));
    if (status == TN_OK && !opts->no_bias)
        status = tn__slot_add(layer, "b", (tn_shape){1, {c->out}}, dtype, init_or(opts->bias, TN_INIT_ZEROS));
    return tn__layer_finish(layer, status);
}

static tn_layer *conv(int axes, bool transposed, int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts)
{
    static const tn_conv_layer_opts none;
    opts = opts ? opts : &none;
    const tn__layer_kind *kind = &kinds[transposed][axes - 1];
    tn_dtype dtype = opts->dtype == TN_DTYPE_DEFAULT ? TN_FLOAT32 : opts->dtype;
    conv_layer c = {.out = out, .kernel = kernel};
    c.conv = (tn__conv_settings){.name = kind->name, .axes = axes, .stride = opts->stride, .pad = opts->pad,
                                 .pad_behind = opts->pad_behind, .dilation = opts->dilation,
                                 .output_pad = opts->output_pad, .groups = TN__OPTION(opts, groups, 1),
                                 .transposed = transposed};
    int64_t in = TN__OPTION(opts, in, -1), extent[TN__CONVOLVED_AXES], other[TN__CONVOLVED_AXES];
    tn_status status = check(&c.conv, in, out, dtype);
    if (status == TN_OK && transposed && (opts->padding || opts->pad_mode || opts->pad_behind.ndim))
        status = tn__fail(TN_ERR_VALUE, kind->name,
                          "expected numbers by .pad alone: padding, pad_mode and pad_behind are of convolutions");
    if (status == TN_OK && !transposed && opts->output_pad.ndim)
        status = tn__fail(TN_ERR_VALUE, kind->name, "output_pad is of transposed convolutions; expected none");
    if (status == TN_OK && kernel.ndim == 0)
        status = tn__fail(TN_ERR_SHAPE, kind->name, "expected a window's extents, got none: TN_SHAPE(3), say");
    if (status != TN_OK || !TN__SHAPE_GIVEN(kind->name, opts, stride) || !TN__SHAPE_GIVEN(kind->name, opts, pad) ||
        !TN__SHAPE_GIVEN(kind->name, opts, pad_behind) || !TN__SHAPE_GIVEN(kind->name, opts, dilation) ||
        !TN__SHAPE_GIVEN(kind->name, opts, output_pad) || !tn__conv_words(&c.conv, opts->padding, opts->pad_mode) ||
        !tn__extents_of(kind->name, "window's extent", kernel, axes, 1, 1, extent) ||
        !tn__extents_of(kind->name, "stride", opts->stride, axes, 1, 1, other) ||
        !tn__extents_of(kind->name, "dilation", opts->dilation, axes, 1, 1, other) ||
        !tn__extents_of(kind->name, "pad", opts->pad, axes, 0, 0, other) ||
        !tn__extents_of(kind->name, "pad_behind", opts->pad_behind, axes, 0, 0, other) ||
        !tn__extents_of(kind->name, "output_pad", opts->output_pad, axes, 0, 0, other))
        return tn__layer_error(tn__error_retain(tn__error_last()));
    int64_t rows = transposed ? in : out, columns = transposed ? out / c.conv.groups : in / c.conv.groups;
    tn_shape weights = {.ndim = axes + 2, .dim = {rows, in < 0 && !transposed ? -1 : columns}};
    for (int i = 0; i < axes; i++)
        weights.dim[2 + i] = extent[i];
    return made(kind, &c, weights, dtype, opts);
}

#define LAYERS(n) \
    tn_layer *tn_conv##n##d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts) \
    { \
        return conv(n, false, out, kernel, opts); \
    } \
    tn_layer *tn_conv_transpose##n##d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts) \
    { \
        return conv(n, true, out, kernel, opts); \
    }
LAYERS(1)
LAYERS(2)
LAYERS(3)

tn_layer *tn_depthwise_conv2d_with(int64_t multiplier, tn_shape kernel, const tn_conv_layer_opts *opts)
{
    int64_t out;
    if (!opts || opts->in < 1 || multiplier < 1 || __builtin_mul_overflow(opts->in, multiplier, &out))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "depthwise_conv2d",
                                             "expected a multiplier of 1 or more and the input's channels by .in, got "
                                             "%" PRId64 " and %" PRId64, multiplier, opts ? opts->in : 0));
    tn_conv_layer_opts all = *opts;
    all.groups = opts->in;
    return tn_conv2d_with(out, kernel, &all);
}
