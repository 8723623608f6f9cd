/* SPDX-License-Identifier: MIT */
/* The words of which networks are written, "linear:1000 sigmoid linear:10": names and arguments with colons between. */
#include "nn/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/activations.h>
#include <tanso/connections.h>
#include <tanso/normalization.h>
#include <tanso/recurrent.h>

#include "core/number.h"

#define MAX_ARGUMENTS 2

typedef struct word_row {
    const char *name;
    const char *usage; /* as errors show it */
    tn_layer *(*make)(const double *argument);
    int required, allowed;
    double defaults[MAX_ARGUMENTS];
    bool whole[MAX_ARGUMENTS]; /* the argument is a whole number */
} word_row;

#define PLAIN(id) \
    static tn_layer *make_##id(const double *argument) \
    { \
        (void)argument; \
        return tn_##id##_layer(); \
    }
PLAIN(sigmoid)
PLAIN(relu)
PLAIN(tanh)
PLAIN(gelu)
PLAIN(softplus)
PLAIN(flatten)
PLAIN(identity)
PLAIN(selu)
PLAIN(silu)
PLAIN(mish)
PLAIN(gelu_tanh)
PLAIN(log_sigmoid)
PLAIN(softsign)
PLAIN(relu6)
PLAIN(hard_tanh)
PLAIN(hard_swish)
PLAIN(tanh_shrink)

#define OF_NUMBER(id) \
    static tn_layer *make_##id(const double *argument) { return tn_##id##_layer(argument[0]); }
OF_NUMBER(leaky_relu)
OF_NUMBER(elu)
OF_NUMBER(celu)
OF_NUMBER(clipped_relu)
OF_NUMBER(hard_sigmoid)
OF_NUMBER(hard_shrink)
OF_NUMBER(soft_shrink)

#define OF_WHOLE(id) \
    static tn_layer *make_##id(const double *argument) { return tn_##id##_layer((int)argument[0]); }
OF_WHOLE(softmax)
OF_WHOLE(log_softmax)
OF_WHOLE(softmin)
OF_WHOLE(crelu)
OF_WHOLE(glu)
OF_WHOLE(swish)

static tn_layer *make_prelu(const double *argument)
{
    return tn_prelu_layer((int64_t)argument[0], argument[1]);
}

static tn_layer *make_linear(const double *argument)
{
    if (argument[1] != 0 && argument[1] != 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "linear", "BIAS is %g, expected 0 (no) or 1", argument[1]));
    return tn_linear_with((int64_t)argument[0], &(tn_linear_opts){.no_bias = argument[1] == 0});
}

static tn_layer *make_dropout(const double *argument)
{
    return tn_dropout(argument[0]);
}

static tn_layer *make_channel_dropout(const double *argument) { return tn_channel_dropout(argument[0]); }
static tn_layer *make_alpha_dropout(const double *argument) { return tn_alpha_dropout(argument[0]); }

static tn_layer *make_embedding(const double *argument)
{
    return tn_embedding_with((int64_t)argument[0], (int64_t)argument[1], NULL);
}

static tn_layer *make_layer_norm(const double *argument)
{
    return tn_layer_norm((int64_t)argument[0], argument[1]);
}

static tn_layer *make_batch_norm(const double *argument)
{
    const tn_batch_norm_opts opts = {.eps = argument[1]};
    return tn_batch_norm_with((int64_t)argument[0], &opts);
}

static tn_layer *make_group_norm(const double *argument)
{
    return tn_group_norm((int64_t)argument[0], (int64_t)argument[1], 0);
}

static tn_layer *make_instance_norm(const double *argument)
{
    return tn_instance_norm_with((int64_t)argument[0], NULL);
}

static tn_layer *make_rms_norm(const double *argument)
{
    return tn_rms_norm((int64_t)argument[0], argument[1]);
}

static tn_layer *recurrent(tn_rnn_kind kind, const double *argument)
{
    if (!(fabs(argument[1]) <= 1024))
        return tn_rnn_with(kind, 0, NULL);
    const tn_rnn_opts opts = {._ = ".layers", .layers = (int)argument[1]};
    return tn_rnn_with(kind, (int64_t)argument[0], &opts);
}

static tn_layer *make_rnn(const double *argument) { return recurrent(TN_RNN_TANH, argument); }
static tn_layer *make_lstm(const double *argument) { return recurrent(TN_RNN_LSTM, argument); }
static tn_layer *make_gru(const double *argument) { return recurrent(TN_RNN_GRU, argument); }

static tn_layer *make_multihead_attention(const double *argument)
{
    return tn_multihead_attention_with((int64_t)argument[0], (int64_t)argument[1], NULL);
}

static tn_layer *make_highway(const double *argument)
{
    return tn_highway((int64_t)argument[0], NULL);
}

static tn_layer *make_maxout(const double *argument)
{
    return tn_maxout_layer((int64_t)argument[0], (int64_t)argument[1]);
}

/* The defaults of leaky_relu and dropout are Chainer's. */
static const word_row words[] = {
    {"linear", "linear:OUT[:BIAS]", make_linear, 1, 2, {0, 1}, {true, true}},
    {"sigmoid", "sigmoid", make_sigmoid, 0, 0, {0}, {0}},
    {"relu", "relu", make_relu, 0, 0, {0}, {0}},
    {"tanh", "tanh", make_tanh, 0, 0, {0}, {0}},
    {"gelu", "gelu", make_gelu, 0, 0, {0}, {0}},
    {"softplus", "softplus", make_softplus, 0, 0, {0}, {0}},
    {"leaky_relu", "leaky_relu[:SLOPE]", make_leaky_relu, 0, 1, {0.2}, {0}},
    {"elu", "elu[:ALPHA]", make_elu, 0, 1, {1}, {0}},
    {"celu", "celu[:ALPHA]", make_celu, 0, 1, {1}, {0}},
    {"selu", "selu", make_selu, 0, 0, {0}, {0}},
    {"silu", "silu", make_silu, 0, 0, {0}, {0}},
    {"mish", "mish", make_mish, 0, 0, {0}, {0}},
    {"gelu_tanh", "gelu_tanh", make_gelu_tanh, 0, 0, {0}, {0}},
    {"log_sigmoid", "log_sigmoid", make_log_sigmoid, 0, 0, {0}, {0}},
    {"softsign", "softsign", make_softsign, 0, 0, {0}, {0}},
    {"relu6", "relu6", make_relu6, 0, 0, {0}, {0}},
    {"clipped_relu", "clipped_relu[:Z]", make_clipped_relu, 0, 1, {20}, {0}},
    {"hard_tanh", "hard_tanh", make_hard_tanh, 0, 0, {0}, {0}},
    {"hard_sigmoid", "hard_sigmoid[:SLOPE]", make_hard_sigmoid, 0, 1, {0}, {0}},
    {"hard_swish", "hard_swish", make_hard_swish, 0, 0, {0}, {0}},
    {"hard_shrink", "hard_shrink[:LAMBDA]", make_hard_shrink, 0, 1, {0.5}, {0}},
    {"soft_shrink", "soft_shrink[:LAMBDA]", make_soft_shrink, 0, 1, {0.5}, {0}},
    {"tanh_shrink", "tanh_shrink", make_tanh_shrink, 0, 0, {0}, {0}},
    {"prelu", "prelu[:CHANNELS[:FIRST]]", make_prelu, 0, 2, {1, 0.25}, {true}},
    {"swish", "swish[:FEATURES]", make_swish, 0, 1, {0}, {true}},
    {"softmax", "softmax[:AXIS]", make_softmax, 0, 1, {-1}, {true}},
    {"log_softmax", "log_softmax[:AXIS]", make_log_softmax, 0, 1, {-1}, {true}},
    {"softmin", "softmin[:AXIS]", make_softmin, 0, 1, {-1}, {true}},
    {"crelu", "crelu[:AXIS]", make_crelu, 0, 1, {1}, {true}},
    {"glu", "glu[:AXIS]", make_glu, 0, 1, {-1}, {true}},
    {"flatten", "flatten", make_flatten, 0, 0, {0}, {0}},
    {"identity", "identity", make_identity, 0, 0, {0}, {0}},
    {"dropout", "dropout[:RATIO]", make_dropout, 0, 1, {0.5}, {0}},
    {"channel_dropout", "channel_dropout[:RATIO]", make_channel_dropout, 0, 1, {0.5}, {0}},
    {"alpha_dropout", "alpha_dropout[:RATIO]", make_alpha_dropout, 0, 1, {0.5}, {0}},
    {"embedding", "embedding:COUNT:FEATURES", make_embedding, 2, 2, {0}, {true, true}},
    {"rnn", "rnn:UNITS[:LAYERS]", make_rnn, 1, 2, {0, 1}, {true, true}},
    {"lstm", "lstm:UNITS[:LAYERS]", make_lstm, 1, 2, {0, 1}, {true, true}},
    {"gru", "gru:UNITS[:LAYERS]", make_gru, 1, 2, {0, 1}, {true, true}},
    {"multihead_attention", "multihead_attention:FEATURES:HEADS", make_multihead_attention, 2, 2, {0}, {true, true}},
    {"highway", "highway:FEATURES", make_highway, 1, 1, {0}, {true}},
    {"maxout", "maxout:OUT:POOL", make_maxout, 2, 2, {0}, {true, true}},
    {"batch_norm", "batch_norm[:CHANNELS[:EPS]]", make_batch_norm, 0, 2, {0}, {true}},
    {"bn", "bn[:CHANNELS[:EPS]]", make_batch_norm, 0, 2, {0}, {true}},
    {"group_norm", "group_norm:GROUPS[:CHANNELS]", make_group_norm, 1, 2, {0}, {true, true}},
    {"instance_norm", "instance_norm[:CHANNELS]", make_instance_norm, 0, 1, {0}, {true}},
    {"rms_norm", "rms_norm[:FEATURES[:EPS]]", make_rms_norm, 0, 2, {0}, {true}},
    {"layer_norm", "layer_norm[:FEATURES[:EPS]]", make_layer_norm, 0, 2, {0}, {true}},
};
enum { WORD_COUNT = sizeof words / sizeof *words };
#define MOST_OTHERS 48 /* words with lists, and of groups */

#define LONGEST_WORD 127
#define BLANKS " \t\r\n"

/* The other words, and how they are written. */
static const char *other_word(int i, const char **usage)
{
    int lists = 0, groups = 0;
    while (tn__list_word(lists, usage))
        lists++;
    while (tn__nest_word(groups, usage))
        groups++;
    return i < lists ? tn__list_word(i, usage) : i < lists + groups ? tn__nest_word(i - lists, usage) : NULL;
}

static tn_layer *unknown(const char *operation, const char *name)
{
    const char *names[WORD_COUNT + MOST_OTHERS], *usage;
    int count = WORD_COUNT;
    for (int i = 0; i < WORD_COUNT; i++)
        names[i] = words[i].name;
    while (count < WORD_COUNT + MOST_OTHERS && (names[count] = other_word(count - WORD_COUNT, &usage)))
        count++;
    const char *near = tn__nearest_name(name, names, count);
    if (near)
        return tn__layer_error(tn__error_new(TN_ERR_NAME, operation, "there is no layer '%s': did you mean '%s'?", name,
                                             near));
    tn__text list = {0};
    for (int i = 0; i < WORD_COUNT; i++)
        tn__text_addf(&list, "%s%s", i ? " " : "", words[i].usage);
    for (int i = 0; other_word(i, &usage); i++)
        tn__text_addf(&list, " %s", usage);
    char *text = tn__text_take(&list);
    tn__error *error = tn__error_new(TN_ERR_NAME, operation, "there is no layer '%s'; the layers are: %s", name,
                                     text ? text : "");
    tn__free(text);
    return tn__layer_error(error);
}

/* A whole argument must be exact as a double and fit an int64: below 2^53 in magnitude. */
static bool read_number(const char *text, bool whole, double *number)
{
    char *end;
    if (!*text || strchr(BLANKS, *text))
        return false;
    *number = tn__read_double(text, &end);
    return !*end && isfinite(*number) && (!whole || (*number == floor(*number) && fabs(*number) < 0x1p53));
}

tn_layer *tn__layer_from_word(const char *operation, const char *word)
{
    char copy[LONGEST_WORD + 1];
    size_t length = strlen(word);
    if (length > LONGEST_WORD)
        return tn__layer_error(
            tn__error_new(TN_ERR_NAME, operation, "a word of %zu characters is no layer: '%.40s...'", length, word));
    tn_layer *listed = tn__layer_from_list(operation, word);
    if (listed)
        return listed;
    memcpy(copy, word, length + 1);
    char *rest = strchr(copy, ':');
    if (rest)
        *rest++ = 0;
    const word_row *row = words;
    while (row < words + WORD_COUNT && strcmp(row->name, copy) != 0)
        row++;
    if (row == words + WORD_COUNT)
        return unknown(operation, copy);

    double arguments[MAX_ARGUMENTS];
    memcpy(arguments, row->defaults, sizeof arguments);
    int given = 0;
    for (; rest; given++) {
        char *argument = rest;
        if ((rest = strchr(rest, ':')))
            *rest++ = 0;
        if (given == row->allowed)
            return tn__layer_error(tn__error_new(TN_ERR_VALUE, operation,
                                                 "'%s': expected %s, and '%s' is one argument too many", word,
                                                 row->usage, argument));
        if (!read_number(argument, row->whole[given], &arguments[given]))
            return tn__layer_error(tn__error_new(TN_ERR_VALUE, operation, "'%s': expected %s, and '%s' is no %snumber",
                                                 word, row->usage, argument, row->whole[given] ? "whole " : ""));
    }
    if (given < row->required)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, operation, "'%s': expected %s", word, row->usage));
    return row->make(arguments);
}
