/* SPDX-License-Identifier: MIT */
/* Recurrent layers: making them, and forgetting and cutting off the states that they keep. */
#include "nn/rnn.h"

#include <inttypes.h>
#include <stdio.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "core/options.h"

typedef tn__rnn rnn;

static void rnn_describe(const tn_layer *layer, tn__text *text)
{
    const rnn *net = layer->user.data;
    tn__text_addf(text, ":%" PRId64 ":%d", net->units, net->layers);
}

#define KIND(name_) \
    {.name = name_, .flow = tn__rnn_flow, .describe = rnn_describe, .from_chainer = tn__rnn_from_chainer}
static const tn__layer_kind kinds[TN_RNN_KIND_COUNT] = {
    [TN_RNN_TANH] = KIND("rnn"), [TN_RNN_RELU] = KIND("rnn_relu"), [TN_RNN_LSTM] = KIND("lstm"),
    [TN_RNN_GRU] = KIND("gru"), [TN_RNN_MGU] = KIND("mgu"), [TN_RNN_GRU_BEFORE] = KIND("gru_before"),
};

static rnn *rnn_of(const tn_layer *layer)
{
    return layer->kind >= kinds && layer->kind < kinds + TN_RNN_KIND_COUNT ? layer->user.data : NULL;
}

static void forget(void *data)
{
    rnn *net = data;
    tn__array_free_kept(net->h);
    tn__array_free_kept(net->c);
    net->h = net->c = NULL;
}

/* A copy has a state of its own, none. */
static tn_status copied(tn_layer *copy, void *data)
{
    (void)copy;
    rnn *net = data;
    net->h = net->c = NULL;
    return TN_OK;
}

static tn_status add_slot(tn_layer *layer, int l, int d, const char *what, tn_shape shape, const tn_rnn_opts *opts,
                          tn_init init)
{
    char name[48];
    snprintf(name, sizeof name, "%s_l%d%s", what, l, d ? "_reverse" : "");
    return tn__slot_add(layer, name, shape, opts && opts->dtype ? opts->dtype : TN_FLOAT32, init);
}

/* The slots of a layer and direction, in this order. */
static tn_status add_slots(tn_layer *layer, rnn *net, int l, int d, const tn_rnn_opts *opts)
{
    int64_t sums = tn__rnn_rows[net->kind].gates * net->units, in = TN__OPTION(opts, in, -1);
    tn_init init = opts ? opts->weight : (tn_init){0};
    if (init.kind == TN_INIT_DEFAULT)
        init.kind = TN_INIT_LECUN_NORMAL;
    const tn_init zeros = {.kind = TN_INIT_ZEROS};
    in = l > 0 ? net->directions * net->units : in;
    tn_status status = add_slot(layer, l, d, "weight_ih", (tn_shape){2, {in, sums}}, opts, init);
    if (status == TN_OK)
        status = add_slot(layer, l, d, "weight_hh", (tn_shape){2, {net->units, sums}}, opts, init);
    if (status == TN_OK && net->bias)
        status = add_slot(layer, l, d, "bias_ih", (tn_shape){1, {sums}}, opts, zeros);
    if (status == TN_OK && net->bias)
        status = add_slot(layer, l, d, "bias_hh", (tn_shape){1, {sums}}, opts, zeros);
    if (status == TN_OK && net->peepholes)
        status = add_slot(layer, l, d, "peepholes", (tn_shape){2, {3, net->units}}, opts, init);
    return status;
}

static tn__error *refusal(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts)
{
    if ((unsigned)kind >= TN_RNN_KIND_COUNT)
        return tn__error_new(TN_ERR_VALUE, "rnn", "%d is no tn_rnn_kind", (int)kind);
    const char *name = tn__rnn_rows[kind].name;
    int layers = TN__OPTION(opts, layers, 1);
    if (units < 1 || units > INT32_MAX || layers < 1 || layers > 1024 || TN__OPTION(opts, in, 1) < 1)
        return tn__error_new(TN_ERR_VALUE, name,
                             "expected at least one unit, layer and input feature, got %" PRId64 ", %d and %" PRId64,
                             units, layers, TN__OPTION(opts, in, 1));
    if (!opts)
        return NULL;
    if (!(opts->dropout >= 0 && opts->dropout < 1) || !(opts->zoneout >= 0 && opts->zoneout <= 1))
        return tn__error_new(TN_ERR_VALUE, name, "expected dropout in [0, 1) and zoneout in [0, 1], got %g and %g",
                             opts->dropout, opts->zoneout);
    if (opts->dtype && !tn_dtype_is_float(opts->dtype))
        return tn__error_new(TN_ERR_DTYPE, name, "parameters are floating, got %s", tn_dtype_name(opts->dtype));
    if (kind != TN_RNN_LSTM && (opts->peepholes || opts->forget_bias != 0))
        return tn__error_new(TN_ERR_VALUE, name, "peepholes and forget_bias are of lstm alone");
    if (opts->bidirectional && opts->stateful)
        return tn__error_new(TN_ERR_VALUE, name,
                             "a state goes on from call to call in one direction only: without .bidirectional");
    return NULL;
}

static void set_up(rnn *net, tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts, bool one_step)
{
    *net = (rnn){.kind = kind, .units = units, .layers = TN__OPTION(opts, layers, 1), .directions = 1, .bias = true,
                 .stateful = one_step, .one_step = one_step};
    if (opts) {
        net->directions = opts->bidirectional ? 2 : 1;
        net->dropout = opts->dropout;
        net->zoneout = opts->zoneout;
        net->forget_bias = opts->forget_bias;
        net->bias = !opts->no_bias;
        net->peepholes = opts->peepholes;
        net->stateful = one_step || opts->stateful;
    }
    const bool there[TN__RNN_SLOTS] = {true, true, net->bias, net->bias, net->peepholes};
    for (int i = 0; i < TN__RNN_SLOTS; i++)
        net->place[i] = there[i] ? net->per++ : -1;
}

static tn_layer *make(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts, bool one_step)
{
    tn__error *error = refusal(kind, units, opts);
    if (!error && one_step && opts && opts->bidirectional)
        error = tn__error_new(TN_ERR_VALUE, tn__rnn_rows[kind].name, "one step has one direction");
    if (error)
        return tn__layer_error(error);
    tn_layer *layer = tn__layer_make(&kinds[kind]);
    if (layer->is_static)
        return layer;
    rnn *net = tn__layer_data(layer, sizeof *net);
    if (!net)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    set_up(net, kind, units, opts, one_step);
    layer->user.free_data = forget;
    layer->user.copied = copied;
    bool cell = tn__rnn_rows[kind].cell;
    layer->ports = (tn__ports){.inputs = cell ? 4 : 3, .optional = cell ? 3 : 2, .outputs = cell ? 3 : 2};
    tn_status status = TN_OK;
    for (int l = 0; l < net->layers && status == TN_OK; l++) {
        for (int d = 0; d < net->directions && status == TN_OK; d++)
            status = add_slots(layer, net, l, d, opts);
    }
    if (status == TN_OK && layer->slots[0].value && net->forget_bias != 0 && net->bias)
        status = tn__rnn_set_forget_bias(layer);
    return tn__layer_finish(layer, status);
}

tn_layer *tn_rnn_with(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts)
{
    return make(kind, units, opts, false);
}

tn_layer *tn_lstm_with(int64_t units, const tn_rnn_opts *opts) { return make(TN_RNN_LSTM, units, opts, false); }
tn_layer *tn_gru_with(int64_t units, const tn_rnn_opts *opts) { return make(TN_RNN_GRU, units, opts, false); }

tn_layer *tn_rnn_step_with(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts)
{
    return make(kind, units, opts, true);
}

/* ---- states ---- */

static tn_status detach(rnn *net)
{
    tn_array **states[] = {&net->h, &net->c};
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        tn_array *cut = *states[i] ? tn_detach(*states[i]) : NULL;
        status = cut ? tn_status_of(cut) : TN_OK;
        if (cut && status == TN_OK) {
            tn__array_free_kept(*states[i]);
            *states[i] = tn__array_keep(cut);
        } else {
            tn_free(cut);
        }
    }
    return status;
}

static tn_status each_state(tn_layer *layer, bool cut)
{
    rnn *net = rnn_of(layer);
    tn_status status = TN_OK;
    if (net && cut)
        status = detach(net);
    else if (net)
        forget(net);
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++)
        status = each_state(layer->children[i].layer, cut);
    return status;
}

tn_status tn_layer_reset_state(tn_layer *layer)
{
    if (!layer)
        return tn__fail_null("layer_reset_state", "a layer");
    tn_status status = tn__layer_raise(layer);
    return status == TN_OK ? each_state(layer, false) : status;
}

tn_status tn_layer_detach_state(tn_layer *layer)
{
    if (!layer)
        return tn__fail_null("layer_detach_state", "a layer");
    tn_status status = tn__layer_raise(layer);
    return status == TN_OK ? each_state(layer, true) : status;
}
