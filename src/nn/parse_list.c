/* SPDX-License-Identifier: MIT */
/*
 * Words with lists of arguments, "conv:64,3x5,pad=1": the first ones by their order, all by name. A value is a whole
 * number, or several with x between, one an axis; or a word.
 */
#include "nn/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/conv.h>
#include <tanso/pool.h>

#include "core/number.h"
#include "nn/models.h"

enum { KEYS = 12 };

/* What a word was given, in the order of its row's keys. */
typedef struct arguments {
    tn_shape list[KEYS];   /* ndim 0: not given, or a word */
    const char *text[KEYS]; /* NULL: not given */
} arguments;

typedef struct list_row {
    const char *name, *usage;
    int required;                /* how many of the first keys must be there */
    const char *const key[KEYS]; /* ends with NULL */
    tn_layer *(*make)(const arguments *a);
} list_row;

/* ---- the words ---- */

enum { OUT, KERNEL, STRIDE, PAD, PAD_BEHIND, DILATION, GROUPS, PADDING, PAD_MODE, OUTPUT_PAD, BIAS, INIT };
#define CONV_KEYS \
    {"out", "kernel", "stride", "pad", "pad_behind", "dilation", "groups", "padding", "pad_mode", "output_pad", \
     "bias", "init"}

static tn_layer *conv(const arguments *a, tn_layer *(*make)(int64_t, tn_shape, const tn_conv_layer_opts *))
{
    tn_init_kind init = a->text[INIT] ? tn_init_parse(a->text[INIT]) : TN_INIT_DEFAULT;
    if (init == TN_INIT_COUNT)
        return tn__layer_error(tn__error_new(TN_ERR_NAME, "conv", "there is no initialiser '%s': expected he_normal or "
                                             "another of nn.h", a->text[INIT]));
    const tn_conv_layer_opts opts = {.stride = a->list[STRIDE], .pad = a->list[PAD], .pad_behind = a->list[PAD_BEHIND],
                                     .dilation = a->list[DILATION],
                                     .groups = a->list[GROUPS].ndim ? a->list[GROUPS].dim[0] : 1,
                                     .padding = a->text[PADDING], .pad_mode = a->text[PAD_MODE],
                                     .output_pad = a->list[OUTPUT_PAD],
                                     .weight = {.kind = init},
                                     .no_bias = a->list[BIAS].ndim && a->list[BIAS].dim[0] == 0};
    return make(a->list[OUT].dim[0], a->list[KERNEL], &opts);
}

#define CONV(word) \
    static tn_layer *make_##word(const arguments *a) { return conv(a, tn_##word##_with); }
CONV(conv1d)
CONV(conv2d)
CONV(conv3d)
CONV(conv_transpose1d)
CONV(conv_transpose2d)
CONV(conv_transpose3d)

enum { WINDOW, POOL_STRIDE, POOL_PAD, POOL_DILATION, CEIL, EXCLUDE_PAD };
#define POOL_KEYS {"kernel", "stride", "pad", "dilation", "ceil", "exclude_pad"}

static tn_layer *pool(const arguments *a, tn_layer *(*make)(tn_shape, const tn_pool_opts *))
{
    const tn_pool_opts opts = {.stride = a->list[POOL_STRIDE], .pad = a->list[POOL_PAD],
                               .dilation = a->list[POOL_DILATION],
                               .ceil = a->list[CEIL].ndim && a->list[CEIL].dim[0],
                               .exclude_pad = a->list[EXCLUDE_PAD].ndim && a->list[EXCLUDE_PAD].dim[0]};
    return make(a->list[WINDOW], &opts);
}
static tn_layer *make_maxpool(const arguments *a) { return pool(a, tn_max_pool_layer_with); }
static tn_layer *make_avgpool(const arguments *a) { return pool(a, tn_average_pool_layer_with); }
static tn_layer *make_adaptive(const arguments *a) { return tn_adaptive_average_pool_layer(a->list[WINDOW]); }
static tn_layer *make_adaptive_max(const arguments *a) { return tn_adaptive_max_pool_layer(a->list[WINDOW]); }
static tn_layer *make_gap(const arguments *a)
{
    (void)a;
    return tn_global_average_pool_layer();
}
static tn_layer *make_global_max(const arguments *a)
{
    (void)a;
    return tn_global_max_pool_layer();
}
static int64_t first_or(const arguments *a, int64_t absent)
{
    return a->list[0].ndim ? a->list[0].dim[0] : absent;
}
static tn_layer *make_image(const arguments *a) { return tn_image_layer(first_or(a, 1)); }

enum { CLASSES, WIDTH, STEM };
static tn_layer *model(const arguments *a, const char *name)
{
    tn_model_opts opts = {.stem = a->text[STEM]};
    char *end = NULL;
    opts.width = a->text[WIDTH] ? tn__read_double(a->text[WIDTH], &end) : 1;
    if ((end && *end) || !(opts.width > 0)) /* 0, unsaid, would stand for 1 */
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, name, "expected a width above 0, got '%s'", a->text[WIDTH]));
    return tn__model(name, first_or(a, -1), &opts);
}
#define MODEL(name) \
    static tn_layer *make_##name(const arguments *a) { return model(a, #name); }
TN__MODELS(MODEL, MODEL)

#define CONV_ROW(name, make) \
    {name, name ":OUT,KERNEL[,stride=,pad=,dilation=,groups=,padding=,bias=0]", 2, CONV_KEYS, make}
#define POOL_ROW(name, make) {name, name ":KERNEL[,stride=,pad=,dilation=,ceil=1,exclude_pad=1]", 1, POOL_KEYS, make}
#define MODEL_ROW(name)  {#name, #name "[:CLASSES,width=]", 0, {"classes", "width", "stem"}, make_##name},
#define RESNET_ROW(name) {#name, #name "[:CLASSES,width=,stem=cifar]", 0, {"classes", "width", "stem"}, make_##name},
static const list_row rows[] = {
    CONV_ROW("conv", make_conv2d),
    CONV_ROW("conv1d", make_conv1d),
    CONV_ROW("conv2d", make_conv2d),
    CONV_ROW("conv3d", make_conv3d),
    CONV_ROW("conv_transpose1d", make_conv_transpose1d),
    CONV_ROW("conv_transpose2d", make_conv_transpose2d),
    CONV_ROW("conv_transpose3d", make_conv_transpose3d),
    POOL_ROW("maxpool", make_maxpool),
    POOL_ROW("avgpool", make_avgpool),
    {"adaptive_avgpool", "adaptive_avgpool:EXTENTS", 1, {"extents"}, make_adaptive},
    {"adaptive_maxpool", "adaptive_maxpool:EXTENTS", 1, {"extents"}, make_adaptive_max},
    {"gap", "gap", 0, {NULL}, make_gap},
    {"global_maxpool", "global_maxpool", 0, {NULL}, make_global_max},
    {"image", "image[:CHANNELS]", 0, {"channels"}, make_image},
    TN__MODELS(MODEL_ROW, RESNET_ROW)
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

const char *tn__list_word(int i, const char **usage)
{
    if (i >= ROW_COUNT)
        return NULL;
    *usage = rows[i].usage;
    return rows[i].name;
}

/* ---- reading them ---- */

/* "3x5" as extents. */
static bool read_list(const char *text, tn_shape *list)
{
    tn_shape read = {0};
    for (;; text++) {
        char *end;
        errno = 0;
        if (*text < '0' || *text > '9' || read.ndim == TN_MAX_NDIM)
            return false;
        read.dim[read.ndim++] = strtoll(text, &end, 10);
        if (errno || (*end && *end != 'x'))
            return false;
        text = end;
        if (!*text)
            break;
    }
    *list = read;
    return true;
}

static tn_layer *refused(const char *operation, const char *word, const list_row *row, const char *part)
{
    return tn__layer_error(tn__error_new(TN_ERR_VALUE, operation, "'%s': expected %s, and '%s' does not fit that", word,
                                         row->usage, part));
}

/* Whether the value of a key is a word, or a number that is not whole. */
static bool is_word(const char *key)
{
    static const char *const keys[] = {"padding", "pad_mode", "init", "stem", "width"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* One argument, "pad=1" or a value whose place says which. False if it fits no key, or one that has a value. */
static bool read_argument(const list_row *row, char *part, int place, arguments *a)
{
    char *value = strchr(part, '=');
    int key = place;
    if (value) {
        *value++ = 0;
        for (key = 0; key < KEYS && row->key[key] && strcmp(row->key[key], part) != 0;)
            key++;
    } else {
        value = part;
    }
    if (key >= KEYS || !row->key[key] || a->text[key] || !*value)
        return false;
    if (!is_word(row->key[key]) && !read_list(value, &a->list[key]))
        return false;
    a->text[key] = value;
    return true;
}

tn_layer *tn__layer_from_list(const char *operation, const char *word)
{
    char copy[128], *state, *rest = copy;
    size_t length = strcspn(word, ":");
    const list_row *row = rows;
    while (row < rows + ROW_COUNT && (strlen(row->name) != length || memcmp(row->name, word, length) != 0))
        row++;
    if (row == rows + ROW_COUNT || strlen(word) >= sizeof copy)
        return NULL;
    memcpy(copy, word, strlen(word) + 1);
    arguments a = {0};
    int place = 0;
    rest += length + (copy[length] == ':');
    for (char *part = strtok_r(rest, ",", &state); part; part = strtok_r(NULL, ",", &state), place++) {
        char shown[128];
        memcpy(shown, part, strlen(part) + 1);
        if (!read_argument(row, part, place, &a))
            return refused(operation, word, row, shown);
    }
    for (int i = 0; i < row->required; i++)
        if (!a.text[i])
            return refused(operation, word, row, row->key[i]);
    return row->make(&a);
}
