/* SPDX-License-Identifier: MIT */
/* One step of each kind of recurrent network. */
#include "nn/rnn.h"

#include <inttypes.h>
#include <tanso/array.h>
#include "nn/activation.h"
#include "ops/recurrence.h"

static tn__node *gate(tn__node *gates, int64_t units, int i) { return tn__piece(gates, 1, i * units, units); }

static tn__node *sigmoid(tn__node *x) { return map(SIGMOID, x); }

/* h U, and the bias beside it. */
static tn__node *from_state(const tn__rnn_step *s)
{
    tn__node *y = tn__matmul_node(s->h, s->u);
    return s->b ? add(y, s->b) : y;
}

static tn__node *tanh_step(const tn__rnn_step *s, tn__node **c)
{
    (void)c;
    return map(TANH, add(s->gx, from_state(s)));
}

static tn__node *relu_step(const tn__rnn_step *s, tn__node **c)
{
    (void)c;
    return map(RELU, add(s->gx, from_state(s)));
}

/* Row i of the peepholes times c, added. */
static tn__node *peep(tn__node *x, tn__node *peepholes, int i, tn__node *c)
{
    return peepholes ? add(x, mul(tn__piece(peepholes, 0, i, 1), c)) : x;
}

static tn__node *lstm_of(tn__node *gates, tn__node *c, tn__node *peepholes, int64_t units, tn__node **c_next)
{
    tn__node *i = sigmoid(peep(gate(gates, units, 0), peepholes, 0, c));
    tn__node *f = sigmoid(peep(gate(gates, units, 1), peepholes, 1, c));
    *c_next = add(mul(f, c), mul(i, map(TANH, gate(gates, units, 2))));
    return mul(sigmoid(peep(gate(gates, units, 3), peepholes, 2, *c_next)), map(TANH, *c_next));
}

static tn__node *lstm_step(const tn__rnn_step *s, tn__node **c)
{
    return lstm_of(add(s->gx, from_state(s)), s->c, s->peepholes, s->units, c);
}

static tn__node *gru_of(tn__node *gx, tn__node *gh, tn__node *h, int64_t units)
{
    tn__node *r = sigmoid(add(gate(gx, units, 0), gate(gh, units, 0)));
    tn__node *z = sigmoid(add(gate(gx, units, 1), gate(gh, units, 1)));
    tn__node *n = map(TANH, add(gate(gx, units, 2), mul(r, gate(gh, units, 2))));
    return add(n, mul(z, sub(h, n)));
}

static tn__node *gru_step(const tn__rnn_step *s, tn__node **c)
{
    (void)c;
    return gru_of(s->gx, from_state(s), s->h, s->units);
}

/* The candidate's product is of what the gate lets through. */
static tn__node *mgu_step(const tn__rnn_step *s, tn__node **c)
{
    (void)c;
    tn__node *f = sigmoid(add(gate(s->gx, s->units, 0), tn__matmul_node(s->h, gate(s->u, s->units, 0))));
    tn__node *kept = tn__matmul_node(mul(f, s->h), gate(s->u, s->units, 1));
    tn__node *n = map(TANH, add(gate(s->gx, s->units, 1), kept));
    return add(s->h, mul(f, sub(n, s->h)));
}

static tn__node *gru_before_step(const tn__rnn_step *s, tn__node **c)
{
    (void)c;
    tn__node *gh = tn__matmul_node(s->h, tn__piece(s->u, 1, 0, 2 * s->units));
    tn__node *r = sigmoid(add(gate(s->gx, s->units, 0), gate(gh, s->units, 0)));
    tn__node *z = sigmoid(add(gate(s->gx, s->units, 1), gate(gh, s->units, 1)));
    tn__node *kept = tn__matmul_node(mul(r, s->h), gate(s->u, s->units, 2));
    tn__node *n = map(TANH, add(gate(s->gx, s->units, 2), kept));
    return add(n, mul(z, sub(s->h, n)));
}

const tn__rnn_row tn__rnn_rows[TN_RNN_KIND_COUNT] = {
    [TN_RNN_TANH] = {"rnn", 1, false, false, tanh_step, TN__RECUR_TANH},
    [TN_RNN_RELU] = {"rnn_relu", 1, false, false, relu_step, TN__RECUR_RELU},
    [TN_RNN_LSTM] = {"lstm", 4, true, false, lstm_step, TN__RECUR_LSTM},
    [TN_RNN_GRU] = {"gru", 3, false, true, gru_step, TN__RECUR_GRU},
    [TN_RNN_MGU] = {"mgu", 2, false, false, mgu_step, -1},
    [TN_RNN_GRU_BEFORE] = {"gru_before", 3, false, false, gru_before_step, -1},
};

/* ---- public steps ---- */

/* Operands that are (N, gates × units), the last of them (N, units); latches if not. */
static bool fit(const char *operation, int count, tn__node *const *gates, int per, const tn__node *state)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    for (int i = 0; i < count; i++) {
        const tn__shape *a = gates[i]->shape, *b = state->shape;
        if (a->ndim == 2 && b->ndim == 2 && a->dim[0] == b->dim[0] && a->dim[1] == per * b->dim[1])
            continue;
        tn__fail(TN_ERR_SHAPE, operation, "expected gates (N, %d units) and a state (N, units), got %s and %s", per,
                 tn__shape_text(a->ndim, a->dim, text), tn__shape_text(b->ndim, b->dim, other));
        return false;
    }
    return true;
}

static tn_array *lstm_function(const char *operation, const tn_array *gates, const tn_array *c,
                               const tn_array *peepholes, bool peeps, tn_array **c_next)
{
    tn__call call = tn__enter();
    tn__node *in = tn__only_floating(gates, operation), *cell = tn__only_floating(c, operation);
    tn__node *weights = peeps ? tn__only_floating(peepholes, operation) : NULL, *next = NULL, *h;
    tn__node *error = tn__first_error(3, (tn__node *[]){in, cell, weights});
    if (!error && !fit(operation, 1, &in, 4, cell))
        error = tn__failed();
    if (!error && weights &&
        (weights->shape->ndim != 2 || weights->shape->dim[0] != 3 || weights->shape->dim[1] != cell->shape->dim[1])) {
        tn__fail(TN_ERR_SHAPE, operation, "expected peepholes (3, %" PRId64 ")", cell->shape->dim[1]);
        error = tn__failed();
    }
    h = error ? error : lstm_of(in, cell, weights, cell->shape->dim[1], &next);
    if (c_next)
        *c_next = tn__leave_array(tn__enter(), error ? error : next);
    return tn__leave_array(call, h);
}

tn_array *tn_lstm_step(const tn_array *gates, const tn_array *c, tn_array **c_next)
{
    return lstm_function("lstm_step", gates, c, NULL, false, c_next);
}

tn_array *tn_lstm_peephole_step(const tn_array *gates, const tn_array *c, const tn_array *peepholes, tn_array **c_next)
{
    return lstm_function("lstm_peephole_step", gates, c, peepholes, true, c_next);
}

/* What one of the two sides gives the cell: its own, past its forget gate, and its candidate. */
static tn__node *side_of(tn__node *gates, tn__node *c, int64_t units)
{
    tn__node *kept = mul(sigmoid(gate(gates, units, 1)), c);
    return add(kept, mul(sigmoid(gate(gates, units, 0)), map(TANH, gate(gates, units, 2))));
}

tn_array *tn_slstm_step(const tn_array *gates, const tn_array *c, const tn_array *other_gates, const tn_array *other_c,
                        tn_array **c_next)
{
    static const char operation[] = "slstm_step";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(gates, operation), tn__only_floating(other_gates, operation),
                      tn__only_floating(c, operation), tn__only_floating(other_c, operation)};
    tn__node *error = tn__first_error(4, in), *cell = error, *h = error;
    if (!error && (!fit(operation, 2, in, 4, in[2]) || !tn__same_shape(operation, "c", in[2], "other_c", in[3])))
        cell = h = error = tn__failed();
    if (!error) {
        int64_t units = in[2]->shape->dim[1];
        cell = add(side_of(in[0], in[2], units), side_of(in[1], in[3], units));
        h = mul(sigmoid(add(gate(in[0], units, 3), gate(in[1], units, 3))), map(TANH, cell));
    }
    if (c_next)
        *c_next = tn__leave_array(tn__enter(), cell);
    return tn__leave_array(call, h);
}

tn_array *tn_gru_step(const tn_array *gx, const tn_array *gh, const tn_array *h)
{
    static const char operation[] = "gru_step";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(gx, operation), tn__only_floating(gh, operation),
                      tn__only_floating(h, operation)};
    tn__node *error = tn__first_error(3, in);
    if (!error && !fit(operation, 2, in, 3, in[2]))
        error = tn__failed();
    return tn__leave_array(call, error ? error : gru_of(in[0], in[1], in[2], in[2]->shape->dim[1]));
}

tn__node *tn__zoneout(tn__node *h, tn__node *next, double ratio, bool training, tn_generator *generator)
{
    if (ratio == 0)
        return next;
    if (!training)
        return add(next, times(sub(h, next), ratio));
    TN__PASS_ERROR(next);
    return tn__where(with(LESS, tn__uniform_like(next, generator), ratio), h, next);
}

tn_array *tn_zoneout(const tn_array *h, const tn_array *next, double ratio, bool training, tn_generator *generator)
{
    static const char operation[] = "zoneout";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(h, operation), tn__only_floating(next, operation)};
    tn__node *error = tn__first_error(2, in);
    if (!(ratio >= 0 && ratio <= 1))
        error = tn__number_error(operation, "a ratio from 0 to 1", ratio);
    if (!error && !tn__same_shape(operation, "h", in[0], "the next one", in[1]))
        error = tn__failed();
    return tn__leave_array(call, error ? error : tn__zoneout(in[0], in[1], ratio, training, generator));
}
