/* SPDX-License-Identifier: MIT */
/* Accuracies, confusion matrices and what is counted from them, the coefficient of determination. */
#include <inttypes.h>
#include <math.h>
#include <tanso/metrics.h>

#include "core/options.h"
#include "nn/activation.h"

/* Labels and predictions of rows, int64 (rows), and which of them count. */
typedef struct rows {
    tn__node *scores;            /* (rows, classes), or NULL */
    tn__node *labels, *predicted; /* labels that do not count are 0 */
    tn__node *counts;            /* bool, or NULL: all */
    int64_t classes, count;
    tn__node *error;
} rows;

static tn__node *check(const char *operation, const tn__node *y, const tn__node *t)
{
    const tn__shape *a = y->shape, *b = t->shape;
    bool scores = tn_dtype_is_float((tn_dtype)y->dtype);
    bool fits = a->ndim == b->ndim + scores && b->ndim >= 1;
    for (int i = 0; fits && i < b->ndim; i++)
        fits = b->dim[i] == a->dim[i + (scores && i > 0)];
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (!fits)
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected scores (N, classes, ...), or classes as integers, and labels (N, ...); got %s and %s",
                   tn__shape_text(a->ndim, a->dim, text), tn__shape_text(b->ndim, b->dim, other));
    if (scores && a->dim[1] < 1)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected scores of at least one class");
    return NULL;
}

/* Scores with the classes' axis last, as (rows, classes). */
static tn__node *classes_last(tn__node *y, int64_t count)
{
    uint8_t perm[TN_MAX_NDIM] = {0};
    int ndim = y->shape->ndim;
    for (int i = 1; i < ndim; i++)
        perm[i] = (uint8_t)(i < ndim - 1 ? i + 1 : 1);
    return tn__reshape(tn__permute(y, perm), 2, (int64_t[]){count, y->shape->dim[1]});
}

static rows rows_of(const char *operation, const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    rows r = {NULL};
    tn__node *in = tn__node_of(y, operation), *labels = tn__only_integers(t, operation);
    r.error = tn__first_error(2, (tn__node *[]){in, labels});
    if (!r.error)
        r.error = check(operation, in, labels);
    if (r.error)
        return r;
    bool scores = tn_dtype_is_float((tn_dtype)in->dtype);
    r.count = labels->shape->size;
    r.classes = TN__OPTION(opts, classes, scores ? in->shape->dim[1] : 0);
    if (r.classes < 1 || (scores && r.classes != in->shape->dim[1])) {
        r.error = tn__node_error(tn__error_new(TN_ERR_VALUE, operation,
                                               "expected the number of .classes, that of the scores; got %" PRId64,
                                               r.classes));
        return r;
    }
    labels = tn__reshape(labels, 1, &r.count);
    r.counts = opts && TN__GIVEN(opts, ignore_index) ? tn__is_not(labels, opts->ignore_index) : NULL;
    labels = tn__integers(labels);
    if (r.counts)
        labels = tn__only_where(r.counts, labels);
    r.labels = tn__positions_within(tn__labels(labels), 0, r.classes);
    r.scores = scores ? classes_last(in, r.count) : NULL;
    r.predicted = scores ? tn__reshape(tn__reduce(TN__OP_ARGMAX, r.scores, 1u << 1), 1, &r.count)
                         : tn__positions_within(tn__labels(tn__integers(tn__reshape(in, 1, &r.count))), 0,
                                                r.classes);
    r.error = tn__first_error(3, (tn__node *[]){r.labels, r.predicted, r.counts});
    return r;
}

/* The share of rows that hold, among those that count. */
static tn__node *share(tn__node *hits, tn__node *counts)
{
    TN__PASS_ERROR(hits);
    hits = tn__cast(hits, TN_FLOAT32);
    if (!counts)
        return tn__mean_all(hits);
    return over(tn__sum_all(tn__only_where(counts, hits)), tn__sum_all(tn__cast(counts, TN_FLOAT32)));
}

/* Is the label among the `top` largest: are fewer than that many scores larger, or equal and before it? */
static tn__node *among(const rows *r, int64_t top)
{
    tn__node *label = tn__reshape(r->labels, 2, (int64_t[]){r->count, 1});
    tn__node *own = tn__gather(r->scores, tn__labels(label), 1);
    TN__PASS_ERROR(own);
    tn__node *before = map2(LESS, tn__iota(r->scores->shape, 1, r->scores->device), label);
    tn__node *ahead = map2(LOGICAL_OR, map2(GREATER, r->scores, own),
                           map2(LOGICAL_AND, map2(EQUAL, r->scores, own), before));
    tn__node *place = tn__sum_over(tn__cast(ahead, TN_INT64), 1u << 1);
    return tn__reshape(with(LESS, place, (double)top), 1, &r->count);
}

tn_array *tn_class_accuracy_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    static const char operation[] = "class_accuracy";
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    rows r = rows_of(operation, y, t, opts);
    int64_t top = TN__OPTION(opts, top, 1);
    tn__node *result = r.error;
    if (!result && (top < 1 || (top > 1 && !r.scores)))
        result = tn__number_error(operation, "a .top of 1 or more, and scores where it is more", (double)top);
    if (!result)
        result = share(top > 1 ? among(&r, top) : map2(EQUAL, r.predicted, r.labels), r.counts);
    tn__no_grad_depth--;
    return tn__leave_array(call, result);
}

tn_array *tn_binary_accuracy(const tn_array *y, const tn_array *t)
{
    static const char operation[] = "binary_accuracy";
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    tn__node *logits = tn__floating(y, operation), *labels = tn__only_integers(t, operation);
    tn__node *result = tn__first_error(2, (tn__node *[]){logits, labels});
    if (!result && !tn__same_shape(operation, "logits", logits, "labels", labels))
        result = tn__failed();
    if (!result) {
        labels = tn__integers(labels);
        tn__node *positive = tn__cast(with(GREATER_EQUAL, logits, 0), TN_INT64);
        result = share(map2(EQUAL, positive, labels), with(NOT_EQUAL, labels, -1));
    }
    tn__no_grad_depth--;
    return tn__leave_array(call, result);
}

/* ---- counts of pairs ---- */

static tn__node *confusion(const rows *r)
{
    int64_t cells = r->classes * r->classes;
    tn__node *at = add(times(r->labels, (double)r->classes), r->predicted);
    tn__node *one = like(at, 1);
    const tn__shape *shape = tn__shape_intern(1, &cells);
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "confusion_matrix", "no memory for a shape");
    tn__node *none = tn__const(0, TN_INT64, shape, at->device);
    if (r->counts)
        one = tn__only_where(r->counts, one);
    return tn__reshape(tn__scatter_add_node(none, at, one, 0), 2, (int64_t[]){r->classes, r->classes});
}

tn_array *tn_confusion_matrix_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    rows r = rows_of("confusion_matrix", y, t, opts);
    tn__node *result = r.error ? r.error : confusion(&r);
    tn__no_grad_depth--;
    return tn__leave_array(call, result);
}

typedef struct shares {
    tn__node *precision, *recall, *support;
} shares;

static shares shares_of(const rows *r)
{
    tn__node *all = confusion(r);
    if (tn__node_is_error(all))
        return (shares){all, all, all};
    tn__node *same = map2(EQUAL, tn__iota(all->shape, 0, all->device), tn__iota(all->shape, 1, all->device));
    tn__node *right = tn__cast(tn__without_axis(tn__sum_over(tn__only_where(same, all), 1u << 1), 1), TN_FLOAT32);
    tn__node *relevant = tn__cast(tn__without_axis(tn__sum_over(all, 1u << 0), 0), TN_FLOAT32);
    tn__node *support = tn__without_axis(tn__sum_over(all, 1u << 1), 1);
    return (shares){over(right, relevant), over(right, tn__cast(support, TN_FLOAT32)), support};
}

typedef enum which { PRECISION, RECALL, SUPPORT, SCORE } which;

static tn_array *score(const char *operation, which what, const tn_array *y, const tn_array *t,
                       const tn_metric_opts *opts)
{
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    rows r = rows_of(operation, y, t, opts);
    double beta = TN__OPTION(opts, beta, 1), square = beta * beta;
    tn__node *result = r.error;
    if (!result && !(beta >= 0 && isfinite(beta)))
        result = tn__number_error(operation, "beta >= 0", beta);
    if (!result) {
        shares s = shares_of(&r);
        result = what == PRECISION ? s.precision
                 : what == RECALL  ? s.recall
                 : what == SUPPORT ? s.support
                                   : over(times(mul(s.precision, s.recall), 1 + square),
                                          add(times(s.precision, square), s.recall));
    }
    tn__no_grad_depth--;
    return tn__leave_array(call, result);
}

tn_array *tn_precision_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    return score("precision", PRECISION, y, t, opts);
}

tn_array *tn_recall_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    return score("recall", RECALL, y, t, opts);
}

tn_array *tn_support_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    return score("support", SUPPORT, y, t, opts);
}

tn_array *tn_f_score_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts)
{
    return score("f_score", SCORE, y, t, opts);
}

/* ---- numbers ---- */

tn_array *tn_r2_score(const tn_array *y, const tn_array *t)
{
    static const char operation[] = "r2_score";
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    tn__node *predicted = tn__floating(y, operation), *target = tn__floating(t, operation);
    tn__node *result = tn__first_error(2, (tn__node *[]){predicted, target});
    if (!result && !tn__same_shape(operation, "predictions", predicted, "targets", target))
        result = tn__failed();
    if (!result && predicted->shape->ndim == 0)
        result = tn__node_error(tn__error_new(TN_ERR_SHAPE, operation, "expected samples along axis 0, got a scalar"));
    if (!result) {
        target = tn__widened(target);
        tn__node *rest = tn__sum_over(squared(sub(target, predicted)), 1), *all = tn__deviations(target, 1);
        tn__node *none = with(EQUAL, all, 0);
        tn__node *columns = less_from(1, over(rest, tn__where(none, like(all, 1), all)));
        result = tn__mean_all(tn__where(none, like(all, 0), columns));
    }
    tn__no_grad_depth--;
    return tn__leave_array(call, result);
}
