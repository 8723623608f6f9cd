/* SPDX-License-Identifier: MIT */
/*
 * Stacks of recurrent layers over sequences. The products of the inputs of all steps are one; the steps themselves are
 * one operation where the device has it and that is sooner done, else recorded one after another. Sequences of several
 * lengths are masked: a step beyond an end changes no state and gives zeros, so that both directions meet each
 * sequence's end where it is.
 */
#include "nn/rnn.h"

#include <inttypes.h>
#include <tanso/array.h>
#include "array/build_recurrence.h"

typedef tn__rnn rnn;

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

/* x W and all biases that are no product's with h's gate: (steps N, gates × units). */
static tn__node *inputs_of(const run *r, int at, tn__node *x)
{
    TN__PASS_ERROR(x);
    int64_t features = x->shape->dim[2];
    tn__node *rows = tn__reshape(x, 2, (int64_t[]){r->steps * r->rows, features});
    tn__node *y = tn__matmul_node(rows, slot_of(r, at, TN__RNN_W)), *bias = slot_of(r, at, TN__RNN_B);
    return bias ? add(y, r->row->apart ? bias : add(bias, slot_of(r, at, TN__RNN_C))) : y;
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

/* ---- all steps as one operation ---- */

static bool is_whole(const run *r, tn__recurrence *of, const tn__node *gx, bool bias, bool backwards)
{
    *of = (tn__recurrence){.kind = r->row->whole, .steps = r->steps, .rows = r->rows, .units = r->net->units,
                           .bias = bias, .lengths = r->lengths != NULL, .backwards = backwards};
    return r->row->whole >= 0 && r->net->zoneout == 0 && !r->net->peepholes &&
           tn__recurrence_suits(of, (tn_dtype)gx->dtype, gx->device);
}

/* The number of steps of each row, in each column, as the operation wants it. */
static tn__node *lengths_as(const run *r, const tn__node *state)
{
    tn__node *counts = tn__cast(r->lengths, (tn_dtype)state->dtype);
    return tn__node_is_error(counts) ? counts : tn__expand(counts, state->shape);
}

/* y (steps, N, units), but zeros beyond each row's length. */
static tn__node *within_lengths(const run *r, tn__node *y)
{
    TN__PASS_ERROR(y);
    const tn__shape *shape = tn__shape_intern(3, (int64_t[]){r->steps, 1, 1});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, r->row->name, "no memory for a shape");
    return tn__only_where(map2(GREATER, r->lengths, tn__iota(shape, 0, y->device)), y);
}

/* A part of the operation's value. Where no backward needs the rest, of up to five times its size, it has memory of its
 * own, since whoever keeps a view keeps all of it. */
static tn__node *part_of(const tn__recurrence *of, tn__node *all, int block, int64_t place, int64_t count)
{
    tn__node *part = tn__recurrence_part(of, all, block, place, count);
    if (tn__node_is_error(part) || part->flags & TN__NODE_NEEDS_GRAD)
        return part;
    return tn__update_along(tn__const_like(part, 0), part, 0, 0);
}

/* s begins with the first states, and ends with the last ones. */
static tn__node *all_steps(const run *r, const tn__recurrence *of, tn__node *gx, tn__rnn_step *s)
{
    tn_dtype dtype = (tn_dtype)gx->dtype;
    tn__node *state[3] = {s->h}, *weights[] = {s->u, s->b};
    tn__node *error = tn__first_error(3, (tn__node *[]){s->h, s->c, s->b});
    int states = 1, first = of->backwards ? 0 : 1;
    if (error)
        return error;
    if (s->c)
        state[states++] = s->c;
    if (r->lengths)
        state[states++] = lengths_as(r, s->h);
    if (s->b)
        weights[1] = tn__spread(s->b, 0);
    tn__node *all = tn__recur(of, gx, tn__cast(tn__joined(1 + (s->b != NULL), weights, 0), dtype),
                              tn__joined(states, state, 0));
    s->h = part_of(of, all, 0, first * of->steps, 1);
    s->c = s->c ? part_of(of, all, 1, first * of->steps, 1) : NULL;
    tn__node *y = tn__reshape(part_of(of, all, 0, first, of->steps), 3,
                              (int64_t[]){r->steps, r->rows, r->net->units});
    return r->lengths ? within_lengths(r, y) : y;
}

/* One layer in one direction; its output is (steps, N, units). */
static tn__node *pass(const run *r, int at, tn__node *x, bool backwards)
{
    tn__recurrence of;
    tn__node *gx = inputs_of(r, at, x);
    TN__PASS_ERROR(gx);
    tn__rnn_step s = {.u = slot_of(r, at, TN__RNN_U), .b = r->row->apart ? slot_of(r, at, TN__RNN_C) : NULL,
                      .peepholes = slot_of(r, at, TN__RNN_P), .units = r->net->units};
    s.h = first_state(r, r->h, at, gx);
    s.c = r->row->cell ? first_state(r, r->c, at, gx) : NULL;
    if (is_whole(r, &of, gx, s.b != NULL, backwards)) {
        tn__node *y = all_steps(r, &of, gx, &s);
        r->last_h[at] = tn__spread(s.h, 0);
        r->last_c[at] = s.c ? tn__spread(s.c, 0) : NULL;
        return y;
    }
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t step = backwards ? r->steps - 1 - i : i;
        s.gx = tn__piece(gx, 0, step * r->rows, r->rows);
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
        r->parts[step] = y;
        TN__PASS_ERROR(r->parts[step]);
    }
    r->last_h[at] = tn__spread(s.h, 0);
    r->last_c[at] = s.c ? tn__spread(s.c, 0) : NULL;
    if (r->steps > 0) {
        tn__node *y = tn__joined((int)r->steps, r->parts, 0);
        return tn__reshape(y, 3, (int64_t[]){r->steps, r->rows, r->net->units});
    }
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

tn_status tn__rnn_set_forget_bias(const tn_layer *layer)
{
    const rnn *net = layer->user.data;
    tn_status status = TN_OK;
    for (int at = 0; at < net->layers * net->directions && status == TN_OK; at++) {
        tn_array *bias = layer->slots[at * net->per + net->place[TN__RNN_B]].value;
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
        return net->forget_bias == 0 || net->place[TN__RNN_B] < 0 || tn__rnn_set_forget_bias(layer) == TN_OK;
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
    return state->device == device || tn__foldable(state) ? state : tn__to(state, device);
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
    tn__array_free_kept(*state);
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

void tn__rnn_flow(tn_layer *layer, const tn__flow *flow)
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
