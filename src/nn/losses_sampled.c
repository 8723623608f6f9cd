/* SPDX-License-Identifier: MIT */
/* Losses that compare a label's score with those of a few sampled ones: negative sampling, BlackOut. */
#include "nn/loss_parts.h"

#include <inttypes.h>
#include <tanso/array.h>

/* Scores x w[i] of the label, (N, 1), and of the samples, (N, k); which rows count. */
typedef struct sampled {
    tn__node *own, *others, *counts, *error;
    tn_dtype dtype;
} sampled;

static tn__node *checked(const char *operation, tn__node *x, tn__node *w, tn__node *s)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (x->shape->ndim != 2 || w->shape->ndim != 2 || x->shape->dim[1] != w->shape->dim[1])
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected x (N, features) and w (words, features), got %s and %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text),
                   tn__shape_text(w->shape->ndim, w->shape->dim, other));
    if (s->shape->ndim != 2 || s->shape->dim[0] != x->shape->dim[0])
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected samples of shape (%" PRId64 ", k), a row for each of x; got %s",
                   x->shape->dim[0], tn__shape_text(s->shape->ndim, s->shape->dim, text));
    return NULL;
}

/* The products of each row of x (N, features) with its rows of the table, (N, k, features). */
static tn__node *products(tn__node *x, tn__node *rows)
{
    tn__node *y = tn__sum_over(mul(tn__spread(x, 1), rows), 1u << 2);
    return tn__without_axis(y, 2);
}

static sampled sampled_of(const char *operation, tn__node *x, tn__node *t, tn__node *w, tn__node *samples)
{
    tn__node *in[] = {x, w, samples};
    sampled s = {.error = tn__first_error(3, in)};
    if (!s.error)
        s.error = checked(operation, in[0], in[1], in[2]);
    if (s.error)
        return s;
    int64_t rows = in[0]->shape->dim[0];
    tn__node *label = tn__fit_rows(operation, t, rows);
    if ((s.error = tn__first_error(1, &label)))
        return s;
    s.dtype = tn_dtype_promote((tn_dtype)in[0]->dtype, (tn_dtype)in[1]->dtype);
    label = tn__reshape(tn__integers(label), 2, (int64_t[]){rows, 1});
    s.counts = with(NOT_EQUAL, label, -1);
    label = tn__only_where(s.counts, label);
    tn__node *wide = tn__widened(in[0]);
    s.own = products(wide, tn__embed(operation, in[1], label));
    s.others = products(wide, tn__embed(operation, in[1], in[2]));
    s.error = tn__first_error(2, (tn__node *[]){s.own, s.others});
    return s;
}

static tn__node *reduced(const char *operation, const sampled *s, tn__node *loss, tn_reduction reduction)
{
    loss = tn__without_axis(tn__only_where(s->counts, loss), 1);
    return tn__reduced(operation, loss, reduction, s->dtype);
}

tn__node *tn__negative_sampling(tn__node *x, tn__node *t, tn__node *w, tn__node *samples, tn_reduction reduction)
{
    static const char operation[] = "negative_sampling";
    sampled s = sampled_of(operation, x, t, w, samples);
    if (s.error)
        return s.error;
    tn__node *loss = add(map(SOFTPLUS, minus(s.own)), tn__sum_over(map(SOFTPLUS, s.others), 1u << 1));
    return reduced(operation, &s, loss, reduction);
}

tn__node *tn__black_out(tn__node *x, tn__node *t, tn__node *w, tn__node *samples, tn_reduction reduction)
{
    static const char operation[] = "black_out";
    sampled s = sampled_of(operation, x, t, w, samples);
    if (s.error)
        return s.error;
    tn__node *all = tn__joined(2, (tn__node *[]){s.own, s.others}, 1);
    tn__node *logp = tn__softmax(TN__OP_LOG_SOFTMAX, all, 1u << 1);
    TN__PASS_ERROR(logp);
    tn__node *own = tn__piece(logp, 1, 0, 1), *others = tn__piece(logp, 1, 1, logp->shape->dim[1] - 1);
    tn__node *rest = map(LOG1P, minus(map(EXP, others)));
    return reduced(operation, &s, minus(add(own, tn__sum_over(rest, 1u << 1))), reduction);
}

#define SAMPLED(function, name, of) \
    tn_array *function(const tn_array *x, const tn_array *t, const tn_array *w, const tn_array *samples, \
                       const tn_loss_opts *opts) \
    { \
        TN__RETURN(of(tn__only_floating(x, name), tn__only_integers(t, name), tn__only_floating(w, name), \
                      tn__only_integers(samples, name), TN__REDUCTION(opts))); \
    }
SAMPLED(tn_negative_sampling_with, "negative_sampling", tn__negative_sampling)
SAMPLED(tn_black_out_with, "black_out", tn__black_out)
