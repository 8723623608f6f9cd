/* SPDX-License-Identifier: MIT */
/*
 * The field's networks in the words of tn_layer_parse. In a row's text
 *
 *     @64    is a number of channels, which the width multiplies; @16*6 is six times as many as @16
 *     $      is the number of classes
 *
 * Names and places are those of PyTorch's torchvision, whose files so load.
 */
#include "nn/models.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tanso/array.h>
#include <tanso/pool.h>

#include "core/options.h"
#include "nn/layer.h"

/* A convolution that batch normalization follows. */
#define BARE ",bias=0,init=he_normal "

/* ---- ResNets: the first block of a stage changes channels and stride, the others add their input itself ---- */

#define BASIC(c, stride) \
    "residual(conv1=conv:@" #c ",3,pad=1,stride=" #stride BARE "bn1=bn relu conv2=conv:@" #c ",3,pad=1" BARE "bn2=bn|"
#define BOTTLENECK(c, stride) \
    "residual(conv1=conv:@" #c ",1" BARE "bn1=bn relu conv2=conv:@" #c ",3,pad=1,stride=" #stride BARE \
    "bn2=bn relu conv3=conv:@" #c "*4,1" BARE "bn3=bn|"
#define DOWN(channels, stride) "downsample=(conv:@" #channels ",1,stride=" #stride BARE "bn)|relu)"
#define SAME "|relu)"

#define BASIC_STAGE(name, c, more) name "=(" BASIC(c, 2) DOWN(c, 2) "repeat:" #more "(" BASIC(c, 1) SAME "))"
#define BOTTLENECK_STAGE(name, c, stride, more) \
    name "=(" BOTTLENECK(c, stride) DOWN(c*4, stride) "repeat:" #more "(" BOTTLENECK(c, 1) SAME "))"
#define HEAD " gap fc=linear:$"

#define BASIC_NET(a, b, c, d) \
    "layer1=(repeat:" #a "(" BASIC(64, 1) SAME "))" BASIC_STAGE("layer2", 128, b) BASIC_STAGE("layer3", 256, c) \
    BASIC_STAGE("layer4", 512, d) HEAD
#define BOTTLENECK_NET(a, b, c, d) \
    BOTTLENECK_STAGE("layer1", 64, 1, a) BOTTLENECK_STAGE("layer2", 128, 2, b) \
    BOTTLENECK_STAGE("layer3", 256, 2, c) BOTTLENECK_STAGE("layer4", 512, 2, d) HEAD

#define STEM_IMAGENET "conv1=conv:@64,7,stride=2,pad=3" BARE "bn1=bn relu maxpool:3,stride=2,pad=1 "
#define STEM_CIFAR    "conv1=conv:@64,3,pad=1" BARE "bn1=bn relu "

/* ---- VGG: convolutions a stage from the third on ---- */

#define VGG(deep) \
    "features=(repeat:2(conv:@64,3,pad=1 relu)maxpool:2 repeat:2(conv:@128,3,pad=1 relu)maxpool:2 repeat:" #deep \
    "(conv:@256,3,pad=1 relu)maxpool:2 repeat:2(repeat:" #deep "(conv:@512,3,pad=1 relu)maxpool:2)) " \
    "adaptive_avgpool:7 flatten classifier=(repeat:2(linear:@4096 relu dropout)linear:$)"

/* ---- VGG for small pictures: each layer normalized, dropout between those of one size ---- */

#define UNIT(name, c) "block" name "=(conv=conv:@" #c ",3,pad=1" BARE "bn=bn relu)"
#define PAIR(b, c, ratio)   UNIT(b "_1", c) "dropout:" ratio " " UNIT(b "_2", c)
#define TRIPLE(b, c, ratio) PAIR(b, c, ratio) "dropout:" ratio " " UNIT(b "_3", c) "maxpool:2 "

/* ---- GoogLeNet ---- */

#define CONV(name, c, window) name "=(conv=conv:@" #c "," window BARE "bn=bn:0:0.001 relu)"
#define NARROW(name, c)       CONV(name, c, "1")
#define WIDE(name, c)         CONV(name, c, "3,pad=1")
#define INCEPTION(name, one, three, three_out, five, five_out, pooled) \
    "inception" name "=concat(" NARROW("branch1", one) "|branch2=(" NARROW("0", three) WIDE("1", three_out) \
    ")|branch3=(" NARROW("0", five) WIDE("1", five_out) \
    ")|branch4=(maxpool:3,stride=1,pad=1,ceil=1 " NARROW("1", pooled) "))"

/* ---- MobileNet: channels in and out of a block, which has six times as many within ---- */

#define CONV6(c, window) "(conv:@" #c "," window BARE "bn relu6)"
#define INVERTED(in, out, stride) \
    "conv=(" CONV6(in*6, "1") CONV6(in*6, "3,pad=1,stride=" #stride ",groups=@" #in "*6") "conv:@" #out ",1" BARE "bn)"
#define STAGE(in, out, stride, more) \
    "(" INVERTED(in, out, stride) ")repeat:" #more "(residual(" INVERTED(out, out, 1) "))"

/* ---- U-Net: what a level gives is joined by what those below it make of it at half the extents ---- */

#define TWICE(c) "(repeat:2(conv:@" #c ",3,pad=1" BARE "bn relu))"
#define LEVEL(c, below) TWICE(c) "concat(|maxpool:2 " below " conv_transpose2d:@" #c ",2,stride=2)" TWICE(c)

typedef struct model {
    const char *name;
    int64_t classes; /* if none were given */
    const char *imagenet, *cifar; /* stems; NULL: it has one, which is in the text */
    const char *text;
} model;

static const model models[] = {
    {"lenet5", 10, NULL, NULL,
     "image:1 conv:@20,5 relu maxpool:2 conv:@50,5 relu maxpool:2 flatten linear:@500 relu linear:$"},
    {"alexnet", 1000, NULL, NULL,
     "features=(conv:@64,11,stride=4,pad=2 relu maxpool:3,stride=2 conv:@192,5,pad=2 relu maxpool:3,stride=2 "
     "conv:@384,3,pad=1 relu repeat:2(conv:@256,3,pad=1 relu)maxpool:3,stride=2) adaptive_avgpool:6 flatten "
     "classifier=(repeat:2(dropout linear:@4096 relu)linear:$)"},
    {"vgg16", 1000, NULL, NULL, VGG(3)},
    {"vgg19", 1000, NULL, NULL, VGG(4)},
    {"vgg_cifar", 10, NULL, NULL,
     PAIR("1", 64, "0.3") "maxpool:2 " PAIR("2", 128, "0.4") "maxpool:2 " TRIPLE("3", 256, "0.4")
     TRIPLE("4", 512, "0.4") TRIPLE("5", 512, "0.4")
     "flatten dropout:0.5 fc1=linear:@512:0 bn_fc1=bn relu dropout:0.5 fc2=linear:$:0"},
    {"googlenet", 1000, NULL, NULL,
     CONV("conv1", 64, "7,stride=2,pad=3") "maxpool:3,stride=2,ceil=1 " NARROW("conv2", 64) WIDE("conv3", 192)
     "maxpool:3,stride=2,ceil=1 " INCEPTION("3a", 64, 96, 128, 16, 32, 32) INCEPTION("3b", 128, 128, 192, 32, 96, 64)
     "maxpool:3,stride=2,ceil=1 " INCEPTION("4a", 192, 96, 208, 16, 48, 64)
     INCEPTION("4b", 160, 112, 224, 24, 64, 64) INCEPTION("4c", 128, 128, 256, 24, 64, 64)
     INCEPTION("4d", 112, 144, 288, 32, 64, 64) INCEPTION("4e", 256, 160, 320, 32, 128, 128)
     "maxpool:2,ceil=1 " INCEPTION("5a", 256, 160, 320, 32, 128, 128) INCEPTION("5b", 384, 192, 384, 48, 128, 128)
     " gap dropout:0.2 fc=linear:$"},
    {"resnet18", 1000, STEM_IMAGENET, STEM_CIFAR, BASIC_NET(2, 1, 1, 1)},
    {"resnet34", 1000, STEM_IMAGENET, STEM_CIFAR, BASIC_NET(3, 3, 5, 2)},
    {"resnet50", 1000, STEM_IMAGENET, STEM_CIFAR, BOTTLENECK_NET(2, 3, 5, 2)},
    {"resnet101", 1000, STEM_IMAGENET, STEM_CIFAR, BOTTLENECK_NET(2, 3, 22, 2)},
    {"resnet152", 1000, STEM_IMAGENET, STEM_CIFAR, BOTTLENECK_NET(2, 7, 35, 2)},
    {"mobilenet_v2", 1000, NULL, NULL,
     "features=(" CONV6(32, "3,stride=2,pad=1") "(conv=(" CONV6(32, "3,pad=1,groups=@32") "conv:@16,1" BARE "bn))"
     STAGE(16, 24, 2, 1) STAGE(24, 32, 2, 2) STAGE(32, 64, 2, 3) "(" INVERTED(64, 96, 1) ")"
     "repeat:2(residual(" INVERTED(96, 96, 1) "))" STAGE(96, 160, 2, 2) "(" INVERTED(160, 320, 1) ")"
     "(conv:@1280,1" BARE "bn relu6)) gap classifier=(dropout:0.2 linear:$)"},
    {"unet", 2, NULL, NULL, LEVEL(64, LEVEL(128, LEVEL(256, LEVEL(512, TWICE(1024))))) "conv:$,1"},
};
enum { MODELS = sizeof models / sizeof *models };

const char *tn__model_name(int i) { return i < MODELS ? models[i].name : NULL; }

static const model *find(const char *name, size_t length)
{
    for (int i = 0; i < MODELS; i++)
        if (strlen(models[i].name) == length && memcmp(models[i].name, name, length) == 0)
            return &models[i];
    return NULL;
}

bool tn__is_model(const char *word, size_t length) { return find(word, length) != NULL; }

/* Appends what stands for "@64" or "@16*6"; the place behind it. */
static const char *add_number(tn__text *words, const char *at, double width)
{
    char *end;
    double near = floor((double)strtoll(at + 1, &end, 10) * width + 0.5);
    int64_t n = near < 1 ? 1 : (int64_t)near;
    if (*end == '*')
        n *= strtoll(end + 1, &end, 10);
    tn__text_addf(words, "%" PRId64, n);
    return end;
}

static void add_text(tn__text *words, const char *text, int64_t classes, double width)
{
    while (*text) {
        size_t plain = strcspn(text, "@$");
        tn__text_addn(words, text, plain);
        text += plain;
        if (*text == '$') {
            tn__text_addf(words, "%" PRId64, classes);
            text++;
        } else if (*text) {
            text = add_number(words, text, width);
        }
    }
}

/* The stem's words; NULL and latched if the model has no such one. */
static const char *stem_of(const model *m, const char *stem)
{
    if (!stem && !m->imagenet)
        return "";
    if (!stem || (m->imagenet && strcmp(stem, "imagenet") == 0))
        return m->imagenet;
    if (m->cifar && strcmp(stem, "cifar") == 0)
        return m->cifar;
    tn__fail(TN_ERR_NAME, m->name, "there is no stem '%s': expected %s", stem,
             m->imagenet ? "\"imagenet\" or \"cifar\"" : "none, as it has one alone");
    return NULL;
}

tn_layer *tn__model(const char *name, int64_t classes, const tn_model_opts *opts)
{
    const model *m = find(name, strlen(name));
    double width = TN__OPTION(opts, width, 1);
    if (!(width > 0 && width <= 1000))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, name, "expected a width above 0, 1000 at most, got %g",
                                             width));
    const char *stem = stem_of(m, opts ? opts->stem : NULL);
    if (!stem)
        return tn__layer_error(tn__error_retain(tn__error_last()));
    classes = classes < 0 ? m->classes : classes;
    if (classes < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, name, "expected at least one output, got 0 classes"));
    tn__text words = {0};
    add_text(&words, stem, classes, width);
    add_text(&words, m->text, classes, width);
    char *text = tn__text_take(&words);
    if (!text) {
        tn__fail_memory(name, words.capacity);
        return tn__layer_error(tn__error_retain(tn__error_last()));
    }
    tn_layer *net = tn_layer_parse(text);
    tn__free(text);
    return net;
}

#define MODEL(name) \
    tn_layer *tn_##name##_with(int64_t classes, const tn_model_opts *opts) \
    { \
        return tn__model(#name, classes < 0 ? 0 : classes, opts); \
    }
TN__MODELS(MODEL, MODEL)

/* ---- pictures ---- */

static tn_array *colours(const float *of, tn_device device)
{
    return tn_from_host_with(of, (tn_shape){3, {3, 1, 1}}, TN_FLOAT32, &(tn_create_opts){.device = device});
}

tn_array *tn_prepare(const tn_array *picture)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    tn_shape shape = tn_shape_of(picture);
    int channels = shape.ndim - 3;
    if (!tn_is_error(picture) && (channels < 0 || channels > 1 || shape.dim[channels] != 3)) {
        tn__call call = tn__enter();
        tn__fail(TN_ERR_SHAPE, "prepare", "expected pictures of three colours, (3, height, width) or (N, 3, height, "
                 "width), got an array of %d axes", shape.ndim);
        return tn__leave_error(call);
    }
    tn__scope_guard scope = tn__scope_enter();
    tn_device device = tn_device_of(picture);
    const tn_array *x = tn_dtype_is_float(tn_dtype_of(picture))
                            ? picture : tn_divide(tn_cast(picture, TN_FLOAT32), tn_weak_float(255));
    x = channels == 0 ? tn_expand_dims(x, 0) : x;
    x = tn_interpolate_with(x, (tn_shape){2, {224, 224}}, &(tn_interpolate_opts){.mode = "linear"});
    x = tn_subtract(x, colours(mean, device));
    tn_array *y = tn_keep(tn_divide(x, colours(deviation, device)));
    tn__scope_leave(&scope);
    return y;
}
