/* SPDX-License-Identifier: MIT */
/* Softmax cross entropy with options: labels that count for nothing, weights of classes, smoothed labels, sums. */
#include "nn/cross_entropy.h"

#include <inttypes.h>
#include <tanso/array.h>
#include "core/options.h"
#include "nn/terms.h"

enum { CLASSES = 1u << 1 }; /* the axis of a row */

/* ---- rows ---- */

static bool labels_fit(const char *operation, const tn__node *x, const tn__node *t, int axis)
{
    const tn__shape *scores = x->shape, *labels = t->shape;
    bool fit = labels->ndim == scores->ndim - 1;
    for (int i = 0; fit && i < labels->ndim; i++)
        fit = labels->dim[i] == scores->dim[i + (i >= axis)];
    if (fit)
        return true;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, operation,
             "expected labels of the shape of the scores %s without the axis %d, that of the classes; got %s",
             tn__shape_text(scores->ndim, scores->dim, text), axis,
             tn__shape_text(labels->ndim, labels->dim, other));
    return false;
}

bool tn__class_rows(const char *operation, const tn_cross_entropy_opts *opts, tn__node **x, tn__node **t)
{
    const tn__shape *scores = (*x)->shape;
    int64_t wanted = TN__OPTION(opts, axis, 1);
    int axis = (int)(wanted < 0 ? wanted + scores->ndim : wanted);
    if (scores->ndim < 2 || (scores->ndim == 2 && axis == 1))
        return true; /* as they should be, or another check tells what is wrong */
    if (axis < 0 || axis >= scores->ndim) {
        tn__fail(TN_ERR_SHAPE, operation, "no axis %" PRId64 " for the classes: the scores have %d", wanted,
                 scores->ndim);
        return false;
    }
    if (!labels_fit(operation, *x, *t, axis))
        return false;
    uint8_t last[TN_MAX_NDIM];
    for (int i = 0; i < scores->ndim; i++)
        last[i] = (uint8_t)(i < scores->ndim - 1 ? i + (i >= axis) : axis);
    int64_t rows = (*t)->shape->size;
    *x = tn__reshape(tn__permute(*x, last), 2, (int64_t[]){rows, scores->dim[axis]});
    *t = tn__reshape(*t, 1, &rows);
    return !tn__node_is_error(*x) && !tn__node_is_error(*t);
}

/* ---- options ---- */

bool tn__cross_entropy_plain(const tn_cross_entropy_opts *opts)
{
    return !opts || (!TN__GIVEN(opts, ignore_index) && !opts->weight && opts->label_smoothing == 0 &&
                     opts->reduction == TN_REDUCTION_MEAN && !tn__option_is_number(opts->_, "weight"));
}

static bool check(const char *operation, const tn_cross_entropy_opts *opts, const tn__node *weight, int64_t classes)
{
    char text[TN__SHAPE_TEXT];
    if (!TN__ARRAY_WRITTEN(operation, opts, weight))
        return false;
    if (!(opts->label_smoothing >= 0 && opts->label_smoothing <= 1))
        tn__fail(TN_ERR_VALUE, operation, "expected label_smoothing from 0 to 1, got %g", opts->label_smoothing);
    else if ((unsigned)opts->reduction > TN_REDUCTION_NONE)
        tn__fail(TN_ERR_VALUE, operation, "%d is no tn_reduction", (int)opts->reduction);
    else if (weight && (weight->shape->ndim != 1 || weight->shape->dim[0] != classes))
        tn__fail(TN_ERR_SHAPE, operation, "expected a weight for each of %" PRId64 " classes, got an array of shape %s",
                 classes, tn__shape_text(weight->shape->ndim, weight->shape->dim, text));
    else if (weight && !tn_dtype_is_float((tn_dtype)weight->dtype))
        tn__fail(TN_ERR_DTYPE, operation, "expected floating weights, got %s: cast them with tn_cast",
                 tn_dtype_name((tn_dtype)weight->dtype));
    else
        return true;
    return false;
}

/* What a loss is computed of: x (rows, classes), the others (rows, 1) but for `weights`; NULL where there is none. */
typedef struct parts {
    tn__node *x, *index, *counts, *weights; /* of all classes, as x */
    tn__node *weight;                       /* that of the row's class, and 0 where the row does not count */
    bool logarithms;                        /* x holds logarithms of chances: of their sum there is none to take */
} parts;

static tn__node *zero_where_not(tn__node *counts, tn__node *x)
{
    return counts ? tn__where(counts, x, tn__const_like(x, 0)) : x;
}

static void prepare(parts *p, tn__node *x, tn__node *t, tn__node *weight, const tn_cross_entropy_opts *opts)
{
    int64_t rows = x->shape->dim[0], classes = x->shape->dim[1];
    p->x = tn__widened(x);
    tn__node *labels = tn__reshape(t, 2, (int64_t[]){rows, 1});
    if (TN__GIVEN(opts, ignore_index)) {
        p->counts = tn__is_not(labels, opts->ignore_index);
        labels = zero_where_not(p->counts, tn__integers(labels));
        p->x = zero_where_not(p->counts, p->x); /* a NaN there is nobody's matter, nor its gradient */
    }
    p->index = tn__labels(labels);
    tn__no_grad_depth++;
    if (weight && !tn__node_is_error(p->x)) {
        tn__node *row = tn__cast(tn__reshape(weight, 2, (int64_t[]){1, classes}), (tn_dtype)p->x->dtype);
        p->weights = tn__expand(row, p->x->shape);
        p->weight = zero_where_not(p->counts, tn__gather(p->weights, p->index, 1));
    } else if (p->counts) {
        p->weight = tn__cast(p->counts, (tn_dtype)p->x->dtype);
    }
    tn__no_grad_depth--;
}

/* log sum exp(x) of each row; 0 of logarithms of chances. */
static tn__node *normalizers(const parts *p)
{
    if (p->logarithms || tn__node_is_error(p->x))
        return tn__node_is_error(p->x) ? p->x : like(tn__piece(p->x, 1, 0, 1), 0);
    tn__node *max = tn__max_detached(p->x, CLASSES);
    return add(map(LOG, tn__sum_over(map(EXP, sub(p->x, max)), CLASSES)), max);
}

/* (rows, 1): (1 - e) w[t] (lse - x[t]) + e / classes sum over c of w[c] (lse - x[c]). */
static tn__node *row_losses(const parts *p, double smoothing, int64_t classes)
{
    tn__node *logsumexp = normalizers(p);
    tn__node *loss = tn__binary(TN__OP_SUBTRACT, logsumexp, tn__gather(p->x, p->index, 1));
    if (p->weight)
        loss = tn__binary(TN__OP_MULTIPLY, loss, p->weight);
    if (smoothing == 0)
        return loss;
    tn__node *all = tn__binary(TN__OP_SUBTRACT, logsumexp, p->x);
    if (p->weights)
        all = tn__binary(TN__OP_MULTIPLY, all, p->weights);
    all = zero_where_not(p->counts, tn__reduce(TN__OP_SUM, all, CLASSES));
    return tn__binary(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, loss, 1 - smoothing),
                      tn__with(TN__OP_MULTIPLY, all, smoothing / (double)classes));
}

/* The sum over the rows by the sum of their weights; 0 where nothing counts. */
static tn__node *weighted_mean(const parts *p, tn__node *loss)
{
    tn__no_grad_depth++;
    tn__node *total = tn__sum_all(p->weight);
    tn__node *none = tn__binary(TN__OP_EQUAL, total, tn__const_like(total, 0));
    total = tn__where(none, tn__const_like(total, 1), total);
    tn__no_grad_depth--;
    return tn__binary(TN__OP_DIVIDE, tn__sum_all(loss), total);
}

static tn__node *loss_of_labels(const char *operation, tn__node *x, tn__node *t, const tn__shape *labels,
                                const tn_cross_entropy_opts *opts, bool logarithms)
{
    parts p = {.logarithms = logarithms};
    int64_t classes = x->shape->dim[1];
    tn__node *weight = opts->weight ? tn__node_of(opts->weight, operation) : NULL;
    if (weight && tn__node_is_error(weight))
        return weight;
    if (!check(operation, opts, weight, classes))
        return tn__failed();
    prepare(&p, x, t, weight, opts);
    tn__node *loss = row_losses(&p, opts->label_smoothing, classes);
    if (tn__node_is_error(loss))
        return loss;
    if (opts->reduction == TN_REDUCTION_NONE)
        loss = tn__reshape_like(loss, labels);
    else if (opts->reduction == TN_REDUCTION_SUM)
        loss = tn__sum_all(loss);
    else
        loss = p.weight ? weighted_mean(&p, loss) : tn__mean_all(loss);
    return tn__cast(loss, (tn_dtype)x->dtype);
}

tn__node *tn__cross_entropy(const char *operation, tn__node *x, tn__node *t, const tn__shape *labels,
                            const tn_cross_entropy_opts *opts)
{
    return loss_of_labels(operation, x, t, labels, opts, false);
}

tn__node *tn__nll(const char *operation, tn__node *x, tn__node *t, const tn__shape *labels,
                  const tn_cross_entropy_opts *opts)
{
    return loss_of_labels(operation, x, t, labels, opts, true);
}

/* ---- chances instead of labels ---- */

tn__node *tn__soft_cross_entropy(const char *operation, tn__node *x, tn__node *t, const tn_cross_entropy_opts *opts)
{
    static const tn_cross_entropy_opts none = {0};
    if (!opts)
        opts = &none;
    int axis = tn__axis_check(operation, TN__OPTION(opts, axis, 1), x->shape->ndim);
    tn__node *weight = opts->weight ? tn__node_of(opts->weight, operation) : NULL;
    if (weight && tn__node_is_error(weight))
        return weight;
    if (axis < 0 || !check(operation, opts, weight, x->shape->dim[axis]))
        return tn__failed();
    if (TN__GIVEN(opts, ignore_index))
        TN__REFUSE(TN_ERR_VALUE, operation, "ignore_index is a label's, and chances were given: multiply those of rows "
                                            "that do not count by 0");
    double classes = (double)x->shape->dim[axis], e = opts->label_smoothing;
    tn__node *wide = tn__widened(x), *chances = tn__cast(t, (tn_dtype)wide->dtype);
    if (e > 0)
        chances = plus(times(chances, 1 - e), e / classes);
    tn__node *terms = mul(chances, tn__softmax(TN__OP_LOG_SOFTMAX, wide, 1u << axis));
    if (weight) {
        tn__no_grad_depth++;
        weight = tn__cast(tn__along(weight, axis, x->shape->ndim), (tn_dtype)wide->dtype);
        tn__no_grad_depth--;
        terms = mul(terms, weight);
    }
    tn__node *loss = tn__without_axis(minus(tn__sum_over(terms, 1u << axis)), axis);
    return tn__reduced(operation, loss, opts->reduction, (tn_dtype)x->dtype);
}
