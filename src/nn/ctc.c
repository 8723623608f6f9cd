/* SPDX-License-Identifier: MIT */
/*
 * Connectionist temporal classification. The labels with a blank before, between and behind them are a row of states;
 * forward[s] is the logarithm of the chance of all paths that are in state s after the steps so far. A state follows
 * itself, the one before, and, where it is a label that differs from the one two before, that too. All in one
 * expression a step, over (N, states); the gradient is the expression's own.
 *
 * What is impossible has a logarithm of about NEVER instead of minus infinity: sums of such differ from one another, so
 * no gradient is NaN, and none reaches what is possible.
 */
#include "nn/loss_parts.h"

#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include "core/options.h"
#include "tn_op_functions.h"

#define NEVER (-1e30)

typedef struct ctc {
    tn__node *x;               /* (steps, N, classes) logarithms of chances */
    tn__node *labels, *counts; /* (N, most) int64; (N, 1): how many count */
    tn__node *lengths;         /* (N, 1), or NULL */
    int64_t steps, rows, most, states, blank;
} ctc;

/* ---- operands ---- */

/* Looks at the labels that count, where none may be the blank; the others become it. */
static tn__node *labels_of(const ctc *c)
{
    const tn__shape *shape = c->labels->shape;
    tn__node *t = c->labels, *coded = tn__labels(t);
    if (shape->size == 0)
        return t;
    TN__PASS_ERROR(coded);
    tn__node *told =
        tn__const_scalar((tn__scalar){.i = c->blank - TN__BLANK_SHIFT}, TN_INT64, shape, coded->device);
    coded = tn__where(with(EQUAL, t, (double)c->blank), told, coded);
    if (c->counts)
        coded = tn__where(map2(LESS, tn__iota(shape, 1, t->device), c->counts), coded, like(coded, (double)c->blank));
    return tn__positions_within(coded, 1, c->x->shape->dim[2]);
}

static tn__node *read_operands(ctc *c, const tn_array *x, const tn_array *labels, const tn_ctc_opts *opts)
{
    static const char operation[] = "ctc_loss";
    tn__node *scores = tn__only_floating(x, operation), *t = tn__only_integers(labels, operation);
    tn__node *error = tn__first_error(2, (tn__node *[]){scores, t});
    if (error)
        return error;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    const int64_t *dim = scores->shape->dim;
    if (scores->shape->ndim != 3 || t->shape->ndim != 2 || t->shape->dim[0] != dim[1] || dim[0] < 1 || dim[2] < 1)
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected x (steps, N, classes) of a step and a class or more, and labels (N, most), got %s and %s",
                   tn__shape_text(scores->shape->ndim, dim, text),
                   tn__shape_text(t->shape->ndim, t->shape->dim, other));
    c->steps = dim[0], c->rows = dim[1], c->most = t->shape->dim[1], c->states = 2 * c->most + 1;
    c->blank = opts ? opts->blank : 0;
    if (c->blank < 0 || c->blank >= dim[2])
        TN__REFUSE(TN_ERR_INDEX, operation, "expected the blank among the %" PRId64 " classes, got %" PRId64, dim[2],
                   c->blank);
    c->x = tn__widened(scores);
    if (!opts || !opts->log_probabilities)
        c->x = tn__softmax(TN__OP_LOG_SOFTMAX, c->x, 1u << 2);
    c->labels = tn__integers(t);
    if (opts && (!TN__ARRAY_WRITTEN(operation, opts, input_lengths) ||
                 !TN__ARRAY_WRITTEN(operation, opts, label_lengths)))
        return tn__failed();
    if (opts && opts->input_lengths)
        c->lengths = tn__counts(operation, "input_lengths", tn__node_of(opts->input_lengths, operation), c->rows, 1,
                                c->steps);
    if (opts && opts->label_lengths)
        c->counts = tn__counts(operation, "label_lengths", tn__node_of(opts->label_lengths, operation), c->rows, 0,
                               c->most);
    error = tn__first_error(4, (tn__node *[]){c->x, c->labels, c->lengths, c->counts});
    c->labels = error ? error : labels_of(c);
    return tn__first_error(2, (tn__node *[]){error, c->labels});
}

/* ---- states ---- */

/* (N, states): blank, label, blank, ..., label, blank; what lies beyond a row's labels is blank, too. */
static tn__node *classes_of_states(const ctc *c)
{
    const tn__shape *shape = tn__shape_intern(2, (int64_t[]){c->rows, c->states});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "ctc_loss", "no memory for a shape");
    tn__node *blanks = tn__const((double)c->blank, TN_INT64, shape, c->x->device);
    if (c->most == 0)
        return blanks;
    tn__node *labels = c->labels;
    tn__node *pairs = tn__joined(2, (tn__node *[]){like(tn__spread(labels, 2), (double)c->blank),
                                                   tn__spread(labels, 2)}, 2);
    return tn__update_along(blanks, tn__reshape(pairs, 2, (int64_t[]){c->rows, 2 * c->most}), 1, 0);
}

/* x moved `by` states on, `first` in front. */
static tn__node *moved(tn__node *x, int64_t by, double first)
{
    TN__PASS_ERROR(x);
    int64_t states = x->shape->dim[1];
    return by >= states ? like(x, first) : tn__update_along(like(x, first), tn__piece(x, 1, 0, states - by), 1, by);
}

/* (steps, N, states): the logarithm of the chance of each state's class. */
static tn__node *chances_of_states(const ctc *c, tn__node *classes)
{
    TN__PASS_ERROR(classes);
    const tn__shape *shape = tn__shape_intern(3, (int64_t[]){c->steps, c->rows, c->states});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "ctc_loss", "no memory for a shape");
    return tn__gather_known(c->x, tn__expand(tn__spread(classes, 0), shape), 2, c->x->shape->dim[2]);
}

static tn__node *log_add(tn__node *a, tn__node *b) { return map2(LOGADDEXP, a, b); }

static tn__node *step_of(tn__node *all, int64_t step) { return tn__without_axis(tn__piece(all, 0, step, 1), 0); }

/* The logarithms of the chances of ending in each state. */
static tn__node *forward(const ctc *c, tn__node *chances, tn__node *skips)
{
    TN__PASS_ERROR(chances);
    tn__node *first = step_of(chances, 0);
    TN__PASS_ERROR(first);
    tn__node *state = tn__iota(first->shape, 1, first->device);
    tn__node *now = tn__where(with(LESS_EQUAL, state, 1), first, like(first, NEVER));
    for (int64_t step = 1; step < c->steps && !tn__node_is_error(now); step++) {
        tn__node *before = log_add(now, moved(now, 1, NEVER));
        before = log_add(before, tn__where(skips, moved(now, 2, NEVER), like(now, NEVER)));
        tn__node *next = with(MAXIMUM, add(before, step_of(chances, step)), NEVER);
        now = c->lengths ? tn__where(with(GREATER, c->lengths, (double)step), next, now) : next;
    }
    return now;
}

static tn__node *losses(const ctc *c)
{
    tn__node *classes = classes_of_states(c);
    tn__node *differs = map2(NOT_EQUAL, classes, moved(classes, 2, (double)c->blank));
    tn__node *skips = map2(LOGICAL_AND, with(NOT_EQUAL, classes, (double)c->blank), differs);
    tn__node *last = forward(c, chances_of_states(c, classes), skips);
    TN__PASS_ERROR(last);
    if (!c->counts && c->most > 0)
        return minus(log_add(tn__piece(last, 1, c->states - 1, 1), tn__piece(last, 1, c->states - 2, 1)));
    if (c->most == 0)
        return minus(last);
    tn__node *end = times(c->counts, 2);
    tn__node *in_label = tn__gather(last, with(MAXIMUM, plus(end, -1), 0), 1);
    in_label = tn__where(with(GREATER, end, 0), in_label, like(in_label, NEVER));
    return minus(log_add(tn__gather(last, end, 1), in_label));
}

/* (N): what is impossible gets its infinity here. */
static tn__node *finished(tn__node *loss, const tn_ctc_opts *opts)
{
    TN__PASS_ERROR(loss);
    double instead = opts && opts->zero_infinity ? 0 : INFINITY;
    loss = tn__where(with(GREATER, loss, -NEVER / 2), like(loss, instead), loss);
    return tn__without_axis(loss, 1);
}

static tn__node *mean_by_label(const ctc *c, tn__node *loss)
{
    TN__PASS_ERROR(loss);
    if (!c->counts)
        return tn__mean_all(times(loss, 1 / (double)(c->most > 0 ? c->most : 1)));
    tn__node *counts = tn__cast(tn__without_axis(with(MAXIMUM, c->counts, 1), 1), (tn_dtype)loss->dtype);
    return tn__mean_all(over(loss, counts));
}

tn_array *tn_ctc_loss_with(const tn_array *x, const tn_array *labels, const tn_ctc_opts *opts)
{
    tn__call call = tn__enter();
    ctc c = {.steps = 0};
    tn__node *error = read_operands(&c, x, labels, opts);
    if (error)
        return tn__leave_array(call, error);
    tn_dtype dtype = tn_dtype_of(x);
    tn__node *loss = finished(losses(&c), opts);
    tn_reduction reduction = TN__REDUCTION(opts);
    if (opts && opts->by_label && reduction == TN_REDUCTION_MEAN)
        return tn__leave_array(call, tn__cast(mean_by_label(&c, loss), dtype));
    return tn__leave_array(call, tn__reduced("ctc_loss", loss, reduction, dtype));
}
