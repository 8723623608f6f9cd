/* SPDX-License-Identifier: MIT */
/*
 * Layers made of convolutions: perceptrons that slide over pictures (Lin, Chen, Yan 2014), and modules of inception
 * with and without batch normalization (Szegedy et al. 2015; Ioffe and Szegedy 2015). Children have Chainer's names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tanso/conv.h>
#include <tanso/normalization.h>

#include "nn/layer.h"
#include "nn/pool.h"
#include "nn/terms.h"

static tn_layer *child(const tn_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->child_count; i++) {
        if (strcmp(layer->children[i].name, name) == 0)
            return layer->children[i].layer;
    }
    return NULL;
}

static tn__node *through(tn_layer *layer, const char *name, tn__node *x)
{
    tn_layer *inner = child(layer, name);
    return inner ? tn__layer_forward(inner, x) : x;
}

static tn__node *relu(tn__node *x) { return map(RELU, x); }

/* The largest, or the mean, of windows of 3 x 3. */
static tn__node *pooled(const char *name, tn__node *x, bool average, int64_t stride)
{
    tn__pool_settings s = {.name = name, .kernel = {2, {3, 3}}, .stride = {2, {stride, stride}}, .pad = {2, {1, 1}}};
    return average ? tn__average_pool(x, &s) : tn__max_pool(x, &s);
}

/* Adds a convolution unless an earlier one failed. */
static void add_conv(tn_layer *layer, tn_status *status, const char *name, int64_t out, int64_t kernel, int64_t stride,
                     bool no_bias)
{
    const tn_conv_layer_opts opts = {.stride = {1, {stride}}, .pad = {1, {kernel / 2}}, .no_bias = no_bias};
    if (*status == TN_OK)
        *status = tn_layer_add(layer, name, tn_conv2d_with(out, (tn_shape){1, {kernel}}, &opts));
}

/* ---- inception ---- */

static tn__node *inception_forward(tn_layer *layer, tn__node *x)
{
    tn__node *y[] = {through(layer, "conv1", x), through(layer, "conv3", relu(through(layer, "proj3", x))),
                     through(layer, "conv5", relu(through(layer, "proj5", x))),
                     through(layer, "projp", pooled("inception", x, false, 1))};
    return relu(tn__joined(4, y, 1));
}

static const tn__layer_kind inception_kind = {.name = "inception", .forward = inception_forward};

tn_layer *tn_inception(int64_t out1, int64_t proj3, int64_t out3, int64_t proj5, int64_t out5, int64_t proj_pool)
{
    tn_layer *layer = tn__layer_make(&inception_kind);
    if (layer->is_static)
        return layer;
    tn_status status = TN_OK;
    add_conv(layer, &status, "conv1", out1, 1, 1, false);
    add_conv(layer, &status, "proj3", proj3, 1, 1, false);
    add_conv(layer, &status, "conv3", out3, 3, 1, false);
    add_conv(layer, &status, "proj5", proj5, 1, 1, false);
    add_conv(layer, &status, "conv5", out5, 5, 1, false);
    add_conv(layer, &status, "projp", proj_pool, 1, 1, false);
    return tn__layer_finish(layer, status);
}

/* ---- with batch normalization ---- */

typedef struct inception_bn {
    int64_t stride;
    bool average;
} inception_bn;

/* relu of the normalization, NAMEn, of the convolution NAME. */
static tn__node *normed(tn_layer *layer, const char *name, tn__node *x)
{
    char norm[16];
    snprintf(norm, sizeof norm, "%sn", name);
    return relu(through(layer, norm, through(layer, name, x)));
}

static tn__node *inception_bn_forward(tn_layer *layer, tn__node *x)
{
    const inception_bn *b = layer->user.data;
    tn__node *y[4], *pool = pooled("inception_bn", x, b->average, b->stride);
    int count = 0;
    if (child(layer, "conv1"))
        y[count++] = normed(layer, "conv1", x);
    y[count++] = normed(layer, "conv3", normed(layer, "proj3", x));
    y[count++] = normed(layer, "conv33b", normed(layer, "conv33a", normed(layer, "proj33", x)));
    y[count++] = child(layer, "poolp") ? normed(layer, "poolp", pool) : pool;
    return tn__joined(count, y, 1);
}

static const tn__layer_kind inception_bn_kind = {.name = "inception_bn", .forward = inception_bn_forward};

static void add_normed(tn_layer *layer, tn_status *status, const char *name, int64_t out, int64_t kernel,
                       int64_t stride)
{
    const tn_batch_norm_opts opts = {._ = ".eps", .eps = 2e-5};
    char norm[16];
    snprintf(norm, sizeof norm, "%sn", name);
    add_conv(layer, status, name, out, kernel, stride, true);
    if (*status == TN_OK)
        *status = tn_layer_add(layer, norm, tn_batch_norm_with(out, &opts));
}

tn_layer *tn_inception_bn_with(int64_t out1, int64_t proj3, int64_t out3, int64_t proj33, int64_t out33,
                               const tn_inception_bn_opts *opts)
{
    int64_t stride = opts && opts->stride ? opts->stride : 1, pool = opts ? opts->proj_pool : 0;
    if (out1 < 0 || pool < 0 || stride < 1 || (out1 > 0 && (stride != 1 || pool == 0)))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "inception_bn",
                                             "expected out1 >= 0, which is 0 with a stride and without proj_pool; got "
                                             "%" PRId64 ", a stride of %" PRId64 " and a proj_pool of %" PRId64,
                                             out1, stride, pool));
    tn_layer *layer = tn__layer_make(&inception_bn_kind);
    if (layer->is_static)
        return layer;
    inception_bn *b = tn__layer_data(layer, sizeof *b);
    if (!b)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *b = (inception_bn){stride, opts && opts->average};
    tn_status status = TN_OK;
    if (out1 > 0)
        add_normed(layer, &status, "conv1", out1, 1, 1);
    add_normed(layer, &status, "proj3", proj3, 1, 1);
    add_normed(layer, &status, "conv3", out3, 3, stride);
    add_normed(layer, &status, "proj33", proj33, 1, 1);
    add_normed(layer, &status, "conv33a", out33, 3, 1);
    add_normed(layer, &status, "conv33b", out33, 3, stride);
    if (pool > 0)
        add_normed(layer, &status, "poolp", pool, 1, 1);
    return tn__layer_finish(layer, status);
}

/* ---- perceptrons ---- */

/* The activation is the last child; it stands between the convolutions. */
static tn__node *perceptron_forward(tn_layer *layer, tn__node *x)
{
    size_t last = layer->child_count - 1;
    for (size_t i = 0; i < last; i++) {
        if (i > 0)
            x = tn__layer_forward(layer->children[last].layer, x);
        x = tn__layer_forward(layer->children[i].layer, x);
    }
    return x;
}

static const tn__layer_kind perceptron_kind = {.name = "mlp_conv2d", .forward = perceptron_forward};

tn_layer *tn_mlp_conv2d_with(tn_shape out, tn_shape kernel, const char *activation, const tn_conv_layer_opts *opts)
{
    if (out.ndim < 1 || out.ndim > TN_MAX_NDIM)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "mlp_conv2d", "expected 1 to %d numbers of channels, got %d",
                                             TN_MAX_NDIM, (int)out.ndim));
    tn_layer *layer = tn__layer_make(&perceptron_kind);
    if (layer->is_static)
        return layer;
    tn_status status = tn_layer_add(layer, "0", tn_conv2d_with(out.dim[0], kernel, opts));
    for (int i = 1; i < out.ndim && status == TN_OK; i++)
        status = tn_layer_add(layer, (char[]){(char)('0' + i), 0},
                              tn_conv2d_with(out.dim[i], (tn_shape){1, {1}}, NULL));
    if (status == TN_OK)
        status = tn_layer_add(layer, "activation", tn__layer_from_word("mlp_conv2d", activation ? activation : "relu"));
    return tn__layer_finish(layer, status);
}
