/* SPDX-License-Identifier: MIT */
/*
 * Stacks of recurrent layers over sequences. The products of the inputs of all steps are one; the steps themselves are
 * recorded one after another. Sequences of several lengths are masked: a step beyond an end changes no state and gives
 * zeros, so that both directions meet each sequence's end where it is.
 */
#include "nn/rnn.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "core/options.h"
#include "nn/layer.h"

enum { W, U, B, C, P, SLOTS }; /* of a layer and direction: x's weights, h's, both biases, peepholes */

typedef struct rnn {
    tn_rnn_kind kind;
    int layers, directions;
    int64_t units;
    double dropout, zoneout, forget_bias;
    bool bias, peepholes, stateful, one_step;
    int place[SLOTS], per; /* of a layer and direction's slots among their `per`; -1: none */
    tn_array *h, *c;       /* the state, owned; NULL: zeros */
} rnn;

/* One call: x (steps, N, features) and what belongs to it. */
typedef struct run {
    tn_layer *layer;
    const rnn *net;
    const tn__rnn_row *row;
    tn__node *h, *c;     /* (layers × directions, N, units), or NULL */
    tn__node *lengths;   /* (N, 1), or NULL */
    tn__node **last_h, **last_c; /* of each layer and direction, (1, N, units) */
    tn__node **parts;    /* room for the outputs of all steps */
    int64_t steps, rows;
} run;

static tn__node *slot_of(const run *r, int at, int which)
{
    int place = r->net->place[which];
    return place < 0 ? NULL : tn__slot_node(r->layer, at * r->net->per + place);
}

/* ---- steps ---- */

/* x W and all biases that are no product's with h's gate: (steps, N, gates × units). */
static tn__node *inputs_of(const run *r, int at, tn__node *x)
{
    TN__PASS_ERROR(x);
    int64_t features = x->shape->dim[2];
    tn__node *rows = tn__reshape(x, 2, (int64_t[]){r->steps * r->rows, features});
    tn__node *y = tn__matmul_node(rows, slot_of(r, at, W)), *bias = slot_of(r, at, B);
    if (bias)
        y = add(y, r->row->apart ? bias : add(bias, slot_of(r, at, C)));
    TN__PASS_ERROR(y);
    return tn__reshape(y, 3, (int64_t[]){r->steps, r->rows, y->shape->dim[1]});
}

/* The state that a layer and direction begins with, (N, units). */
static tn__node *first_state(const run *r, tn__node *given, int at, const tn__node *like_it)
{
    if (given)
        return tn__cast(tn__without_axis(tn__piece(given, 0, at, 1), 0), (tn_dtype)like_it->dtype);
    const tn__shape *shape = tn__shape_intern(2, (int64_t[]){r->rows, r->net->units});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, r->row->name, "no memory for a shape");
    return tn__const(0, (tn_dtype)like_it->dtype, shape, like_it->device);
}

static tn__node *zoned(const run *r, tn__node *before, tn__node *next)
{
    return tn__zoneout(before, next, r->net->zoneout, !r->layer->evaluating, NULL);
}

/* One layer in one direction; its output is (steps, N, units). */
static tn__node *pass(const run *r, int at, tn__node *x, bool backwards)
{
    tn__node *gx = inputs_of(r, at, x);
    TN__PASS_ERROR(gx);
    tn__rnn_step s = {.u = slot_of(r, at, U), .b = r->row->apart ? slot_of(r, at, C) : NULL,
                      .peepholes = slot_of(r, at, P), .units = r->net->units};
    s.h = first_state(r, r->h, at, gx);
    s.c = r->row->cell ? first_state(r, r->c, at, gx) : NULL;
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t step = backwards ? r->steps - 1 - i : i;
        s.gx = tn__without_axis(tn__piece(gx, 0, step, 1), 0);
        tn__node *c = s.c, *h = zoned(r, s.h, r->row->step(&s, &c)), *y = h;
        c = s.c ? zoned(r, s.c, c) : NULL;
        TN__PASS_ERROR(h);
        if (r->lengths) {
            tn__node *lasts = with(GREATER, r->lengths, (double)step);
            y = tn__only_where(lasts, h);
            h = tn__where(lasts, h, s.h);
            c = c ? tn__where(lasts, c, s.c) : NULL;
        }
        s.h = h;
        s.c = c;
        r->parts[step] = tn__spread(y, 0);
        TN__PASS_ERROR(r->parts[step]);
    }
    r->last_h[at] = tn__spread(s.h, 0);
    r->last_c[at] = s.c ? tn__spread(s.c, 0) : NULL;
    if (r->steps > 0)
        return tn__joined((int)r->steps, r->parts, 0);
    const tn__shape *none = tn__shape_intern(3, (int64_t[]){0, r->rows, r->net->units});
    return none ? tn__const(0, (tn_dtype)gx->dtype, none, gx->device)
                : tn__node_error(tn__error_new(TN_ERR_MEMORY, r->row->name, "no memory for a shape"));
}

static tn__node *all_layers(const run *r, tn__node *x)
{
    const rnn *net = r->net;
    for (int l = 0; l < net->layers && !tn__node_is_error(x); l++) {
        if (l > 0 && !r->layer->evaluating)
            x = tn__dropout(x, net->dropout, NULL);
        tn__node *y[2] = {pass(r, l * net->directions, x, false)};
        if (net->directions == 2)
            y[1] = pass(r, l * net->directions + 1, x, true);
        x = tn__joined(net->directions, y, 2);
    }
    return x;
}

/* ---- parameters that wait for the first input ---- */

/* Adds forget_bias to that gate's part of the biases, which are zeros still. */
static tn_status set_forget_bias(const tn_layer *layer)
{
    const rnn *net = layer->user.data;
    tn_status status = TN_OK;
    for (int at = 0; at < net->layers * net->directions && status == TN_OK; at++) {
        tn_array *bias = layer->slots[at * net->per + net->place[B]].value;
        tn__scope_guard scope = tn__scope_enter();
        tn__no_grad_depth++;
        tn_array *part = tn_slice_axis(bias, 0, net->units, 2 * net->units, 1);
        const tn_slice_range range = {net->units, 2 * net->units, 1};
        status = tn_assign(bias, tn_slice_update(bias, 1, &range, tn_add(part, tn_weak_float(net->forget_bias))));
        tn__no_grad_depth--;
        tn__scope_leave(&scope);
    }
    return status;
}

/* Infers the input features; false and latched if x (steps, N, features) has others. */
static bool ready(tn_layer *layer, const tn__node *x)
{
    const rnn *net = layer->user.data;
    int64_t features = x->shape->dim[2];
    if (!layer->slots[0].value) {
        if (tn__slots_infer(layer, features, x->device) != TN_OK)
            return false;
        return net->forget_bias == 0 || net->place[B] < 0 || set_forget_bias(layer) == TN_OK;
    }
    if (layer->slots[0].shape.dim[0] == features)
        return true;
    char text[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, tn__layer_name(layer), "expected inputs of %" PRId64 " features, got %s",
             layer->slots[0].shape.dim[0], tn__shape_text(x->shape->ndim, x->shape->dim, text));
    return false;
}

/* ---- operands ---- */

static tn__node *checked_state(const run *r, const char *what, tn__node *state, tn__device *device)
{
    if (!state || tn__node_is_error(state))
        return state;
    const int64_t count = r->net->layers * r->net->directions, *dim = state->shape->dim;
    char text[TN__SHAPE_TEXT];
    if (state->shape->ndim != 3 || dim[0] != count || dim[1] != r->rows || dim[2] != r->net->units)
        TN__REFUSE(TN_ERR_SHAPE, r->row->name, "expected %s of shape (%" PRId64 ", %" PRId64 ", %" PRId64
                   "): layers and directions, the minibatch, units; got %s%s", what, count, r->rows, r->net->units,
                   tn__shape_text(3, dim, text),
                   r->net->stateful ? ": tn_layer_reset_state forgets the state of another minibatch" : "");
    return state->device == device || tn__foldable(state) ? state : tn__transfer_hook(state, device);
}

/* The state that the layer kept, or the one given. */
static tn__node *state_of(const tn_array *kept, const tn__flow *flow, int input)
{
    if (input < flow->in_count && flow->in[input])
        return flow->in[input];
    return kept ? tn__array_node(kept) : NULL;
}

static tn__node *read_operands(run *r, const tn__flow *flow, tn__node **x)
{
    tn__node *in = flow->in[0];
    char text[TN__SHAPE_TEXT];
    int ndim = r->net->one_step ? 2 : 3, lengths = r->row->cell ? 3 : 2;
    if (in->shape->ndim != ndim || !tn_dtype_is_float((tn_dtype)in->dtype))
        TN__REFUSE(TN_ERR_SHAPE, r->row->name, "expected floating inputs %s, got %s of shape %s",
                   ndim == 2 ? "(N, features)" : "(steps, N, features)", tn_dtype_name((tn_dtype)in->dtype),
                   tn__shape_text(in->shape->ndim, in->shape->dim, text));
    *x = in = ndim == 2 ? tn__spread(in, 0) : in;
    TN__PASS_ERROR(in);
    r->steps = in->shape->dim[0];
    r->rows = in->shape->dim[1];
    if (!ready(r->layer, in))
        return tn__failed();
    r->h = checked_state(r, "h", state_of(r->net->h, flow, 1), in->device);
    if (r->row->cell)
        r->c = checked_state(r, "c", state_of(r->net->c, flow, 2), in->device);
    if (lengths < flow->in_count && flow->in[lengths])
        r->lengths = tn__counts(r->row->name, "lengths", flow->in[lengths], r->rows, 0, r->steps);
    return tn__first_error(3, (tn__node *[]){r->h, r->c, r->lengths});
}

/* Points the layer's state at a node, which may still be pending. */
static tn_status keep_state(tn_array **state, tn__node *node)
{
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    if (*state)
        tn_free(*state);
    *state = tn__array_own_new(node);
    return TN_OK;
}

static void run_all(run *r, const tn__flow *flow)
{
    rnn *net = r->layer->user.data;
    int count = net->layers * net->directions, outs = r->row->cell ? 3 : 2;
    tn__node *x = NULL, *error = read_operands(r, flow, &x), *y[3] = {error, error, error};
    if (!error) {
        y[0] = all_layers(r, x);
        bool failed = tn__node_is_error(y[0]);
        y[1] = failed ? y[0] : tn__joined(count, r->last_h, 0);
        y[2] = failed ? y[0] : r->row->cell ? tn__joined(count, r->last_c, 0) : NULL;
    }
    if (!error && net->one_step)
        y[0] = tn__without_axis(y[0], 0);
    if (net->stateful && !tn__first_error(outs, y) &&
        (keep_state(&net->h, y[1]) != TN_OK || (r->row->cell && keep_state(&net->c, y[2]) != TN_OK)))
        y[0] = y[1] = y[2] = tn__failed();
    for (int i = 0; i < flow->out_count; i++)
        flow->out[i] = y[i];
}

static void rnn_flow(tn_layer *layer, const tn__flow *flow)
{
    const rnn *net = layer->user.data;
    size_t count = (size_t)(net->layers * net->directions);
    const tn__node *x = flow->in[0];
    size_t steps = net->one_step || x->shape->ndim == 0 ? 1 : (size_t)x->shape->dim[0];
    tn__node **room = tn__calloc(2 * count + steps, sizeof *room);
    run r = {.layer = layer, .net = net, .row = &tn__rnn_rows[net->kind], .last_h = room, .last_c = room + count,
             .parts = room + 2 * count};
    if (room)
        run_all(&r, flow);
    else
        tn__fail_memory(r.row->name, (2 * count + steps) * sizeof *room);
    for (int i = 0; i < flow->out_count && !room; i++)
        flow->out[i] = tn__failed();
    tn__free(room);
}

/* ---- the layer ---- */

static void rnn_describe(const tn_layer *layer, tn__text *text)
{
    const rnn *net = layer->user.data;
    tn__text_addf(text, ":%" PRId64 ":%d", net->units, net->layers);
}

#define KIND(name_) {.name = name_, .flow = rnn_flow, .describe = rnn_describe}
static const tn__layer_kind kinds[TN_RNN_KIND_COUNT] = {
    [TN_RNN_TANH] = KIND("rnn"), [TN_RNN_RELU] = KIND("rnn_relu"), [TN_RNN_LSTM] = KIND("lstm"),
    [TN_RNN_GRU] = KIND("gru"), [TN_RNN_MGU] = KIND("mgu"),
};

static rnn *rnn_of(const tn_layer *layer)
{
    return layer->kind >= kinds && layer->kind < kinds + TN_RNN_KIND_COUNT ? layer->user.data : NULL;
}

static void forget(void *data)
{
    rnn *net = data;
    tn_free(net->h);
    tn_free(net->c);
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
    const bool there[SLOTS] = {true, true, net->bias, net->bias, net->peepholes};
    for (int i = 0; i < SLOTS; i++)
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
        status = set_forget_bias(layer);
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
    for (int i = 0; i < 2; i++) {
        if (!*states[i])
            continue;
        tn_array *cut = tn_own(tn_detach(*states[i]));
        if (tn_is_error(cut)) {
            tn_status status = tn_status_of(cut);
            tn_free(cut);
            return status;
        }
        tn_free(*states[i]);
        *states[i] = cut;
    }
    return TN_OK;
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
