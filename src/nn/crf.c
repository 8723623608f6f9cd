/* SPDX-License-Identifier: MIT */
/* Conditional random fields of chains: the loss by the forward algorithm, the best labels by Viterbi's. */
#include "nn/loss_parts.h"

#include <inttypes.h>
#include <tanso/array.h>
#include "core/memory.h"
#include "core/options.h"

typedef struct chain {
    tn__node *cost;    /* (classes, classes) */
    tn__node *x;       /* (steps, N, classes) */
    tn__node *lengths; /* (N, 1), or NULL */
    int64_t steps, rows, classes;
    tn_dtype dtype;
} chain;

static tn__node *read_chain(const char *operation, chain *c, tn__node *cost, tn__node *x, tn__node *lengths)
{
    c->cost = cost;
    c->x = x;
    tn__node *error = tn__first_error(2, (tn__node *[]){c->cost, c->x});
    if (error)
        return error;
    const tn__shape *a = c->cost->shape, *b = c->x->shape;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (a->ndim != 2 || b->ndim != 3 || a->dim[0] != a->dim[1] || a->dim[0] != b->dim[2] || b->dim[0] < 1 ||
        b->dim[2] < 1)
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected cost (classes, classes) and x (steps, N, classes) of a step and a class or more, got %s "
                   "and %s",
                   tn__shape_text(a->ndim, a->dim, text), tn__shape_text(b->ndim, b->dim, other));
    c->steps = b->dim[0], c->rows = b->dim[1], c->classes = b->dim[2];
    c->dtype = tn_dtype_promote((tn_dtype)c->cost->dtype, (tn_dtype)c->x->dtype);
    c->cost = tn__widened(c->cost);
    c->x = tn__widened(c->x);
    if (lengths)
        c->lengths = tn__counts(operation, "lengths", lengths, c->rows, 1, c->steps);
    return tn__first_error(3, (tn__node *[]){c->cost, c->x, c->lengths});
}

static tn__node *step_of(tn__node *all, int64_t step) { return tn__without_axis(tn__piece(all, 0, step, 1), 0); }

/* `next` in the rows that are that long, else `now`. */
static tn__node *if_it_lasts(const chain *c, int64_t step, tn__node *next, tn__node *now)
{
    return c->lengths ? tn__where(with(GREATER, c->lengths, (double)step), next, now) : next;
}

/* (N, classes, classes): of each class before and each one after it, the score so far and the cost between. */
static tn__node *pairs(const chain *c, tn__node *now) { return add(tn__spread(now, 2), tn__spread(c->cost, 0)); }

static tn__node *log_sum(tn__node *x, int axis)
{
    TN__PASS_ERROR(x);
    uint32_t set = 1u << axis;
    tn__node *max = tn__max_detached(x, set);
    return tn__without_axis(add(map(LOG, tn__sum_over(map(EXP, sub(x, max)), set)), max), axis);
}

/* (N): the logarithm of the sum over all labels. */
static tn__node *log_partition(const chain *c)
{
    tn__node *now = step_of(c->x, 0);
    for (int64_t step = 1; step < c->steps && !tn__node_is_error(now); step++)
        now = if_it_lasts(c, step, add(log_sum(pairs(c, now), 1), step_of(c->x, step)), now);
    return log_sum(now, 1);
}

/* (N): the score of the labels t (steps, N). */
static tn__node *score(const chain *c, tn__node *t)
{
    tn__node *labels = tn__labels(t), *sum = NULL, *before = NULL;
    if (c->lengths && !tn__node_is_error(t)) { /* what lies behind the end may be anything */
        tn__node *step = tn__iota(t->shape, 0, t->device);
        tn__node *counts = tn__reshape(c->lengths, 2, (int64_t[]){1, c->rows});
        labels = tn__only_where(map2(LESS, step, counts), labels);
    }
    TN__PASS_ERROR(labels);
    labels = tn__spread(tn__positions_within(labels, 0, c->classes), 2); /* looked at as they were given */
    const tn__shape *table = tn__shape_intern(2, (int64_t[]){c->rows, c->classes});
    if (!table)
        TN__REFUSE(TN_ERR_MEMORY, "crf_loss", "no memory for a shape");
    for (int64_t i = 0; i < c->steps; i++) {
        tn__node *label = step_of(labels, i); /* (N, 1) */
        tn__node *own = tn__gather_known(step_of(c->x, i), label, 1, c->classes);
        if (before) {
            tn__node *costs = tn__gather_known(c->cost, tn__expand(before, table), 0, c->classes); /* (N, classes) */
            own = add(own, tn__gather_known(costs, label, 1, c->classes));
        }
        sum = sum ? if_it_lasts(c, i, add(sum, own), sum) : own;
        before = label;
        TN__PASS_ERROR(sum);
    }
    return tn__without_axis(sum, 1);
}

tn__node *tn__crf_loss(tn__node *cost, tn__node *x, tn__node *labels, tn__node *lengths, tn_reduction reduction)
{
    static const char operation[] = "crf_loss";
    chain c = {.steps = 0};
    tn__node *error = read_chain(operation, &c, cost, x, lengths);
    labels = error ? error : labels;
    TN__PASS_ERROR(labels);
    char text[TN__SHAPE_TEXT];
    if (labels->shape->ndim != 2 || labels->shape->dim[0] != c.steps || labels->shape->dim[1] != c.rows)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected labels of shape (%" PRId64 ", %" PRId64 "), those of x; got %s",
                   c.steps, c.rows, tn__shape_text(labels->shape->ndim, labels->shape->dim, text));
    tn__node *loss = sub(log_partition(&c), score(&c, tn__cast(labels, TN_INT64)));
    return tn__reduced(operation, loss, reduction, c.dtype);
}

static tn__node *counts_of(const tn_array *lengths, const char *operation)
{
    return lengths ? tn__node_of(lengths, operation) : NULL;
}

static tn__node *counts_given(const tn_crf_opts *opts, const char *operation)
{
    if (opts && !TN__ARRAY_WRITTEN(operation, opts, lengths))
        return tn__failed();
    return counts_of(opts ? opts->lengths : NULL, operation);
}

tn_array *tn_crf_loss_with(const tn_array *cost, const tn_array *x, const tn_array *t, const tn_crf_opts *opts)
{
    static const char operation[] = "crf_loss";
    TN__RETURN(tn__crf_loss(tn__only_floating(cost, operation), tn__only_floating(x, operation),
                            tn__only_integers(t, operation), counts_given(opts, operation),
                            TN__REDUCTION(opts)));
}

/* ---- the best labels ---- */

/* Forward: the best score that ends in each class, and, into from[step], from which class before it; where a row has
 * ended already, from the same class. */
static tn__node *best_forward(const chain *c, tn__node **from)
{
    tn__node *now = step_of(c->x, 0);
    for (int64_t step = 1; step < c->steps; step++) {
        tn__node *all = pairs(c, now);
        TN__PASS_ERROR(all);
        tn__node *best = tn__without_axis(tn__reduce(TN__OP_MAX, all, 1u << 1), 1);
        tn__node *where = tn__without_axis(tn__reduce(TN__OP_ARGMAX, all, 1u << 1), 1);
        TN__PASS_ERROR(where);
        from[step] = if_it_lasts(c, step, where, tn__iota(where->shape, 1, where->device));
        now = if_it_lasts(c, step, add(best, step_of(c->x, step)), now);
    }
    return now;
}

static tn__node *decoded(const chain *c, tn__node **from, tn__node **score_of_best)
{
    tn__node *last = best_forward(c, from);
    TN__PASS_ERROR(last);
    *score_of_best = tn__cast(tn__without_axis(tn__reduce(TN__OP_MAX, last, 1u << 1), 1), c->dtype);
    tn__node *label = tn__reduce(TN__OP_ARGMAX, last, 1u << 1); /* (N, 1) */
    for (int64_t step = c->steps - 1; step >= 0; step--) {
        tn__node *before = step > 0 ? tn__gather(from[step], label, 1) : NULL;
        tn__node *told = if_it_lasts(c, step, label, like(label, 0));
        from[step] = tn__reshape(told, 2, (int64_t[]){1, c->rows});
        label = before ? before : label;
        TN__PASS_ERROR(label);
    }
    return tn__joined((int)c->steps, from, 0);
}

tn_array *tn_crf_decode(const tn_array *cost, const tn_array *x, const tn_array *lengths, tn_array **score_out)
{
    static const char operation[] = "crf_decode";
    tn__call call = tn__enter();
    chain c = {.steps = 0};
    tn__no_grad_depth++;
    tn__node *best = read_chain(operation, &c, tn__only_floating(cost, operation), tn__only_floating(x, operation),
                                counts_of(lengths, operation)),
             *highest = best;
    tn__node **from = best ? NULL : tn__calloc((size_t)c.steps, sizeof *from);
    if (from) {
        best = decoded(&c, from, &highest);
        highest = tn__node_is_error(best) ? best : highest;
    } else if (!best) {
        tn__fail_memory(operation, (size_t)c.steps * sizeof *from);
        best = highest = tn__failed();
    }
    tn__no_grad_depth--;
    tn__free(from);
    if (score_out) {
        tn__call inner = tn__enter();
        *score_out = tn__leave_array(inner, highest);
    }
    return tn__leave_array(call, best);
}
