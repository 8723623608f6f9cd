/* SPDX-License-Identifier: MIT */
/* Losses and accuracy. All means over all elements, or over the rows, in at least float32. */
#include "nn/cross_entropy.h"
#include "nn/loss_parts.h"

#include <float.h>
#include <inttypes.h>
#include <tanso/array.h>
#include <tanso/nn.h>
#include "core/options.h"

/* ---- checks ---- */

static bool check_floating(const char *operation, const char *what, const tn__node *x)
{
    if (tn_dtype_is_float((tn_dtype)x->dtype))
        return true;
    tn__fail(TN_ERR_DTYPE, operation, "expected floating %s, got %s: cast them with tn_cast", what,
             tn_dtype_name((tn_dtype)x->dtype));
    return false;
}

/* Scores (N, classes) and labels (N). */
bool tn__check_classes(const char *operation, const tn__node *x, const tn__node *t)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    const tn__shape *scores = x->shape, *labels = t->shape;
    if (scores->ndim != 2 || scores->dim[1] < 1) {
        tn__fail(TN_ERR_SHAPE, operation, "expected scores of shape (N, classes) with at least one class, got %s",
                 tn__shape_text(scores->ndim, scores->dim, text));
        return false;
    }
    if (labels->ndim != 1 || labels->dim[0] != scores->dim[0]) {
        tn__fail(TN_ERR_SHAPE, operation,
                 "expected labels of shape (%" PRId64 ",), one a row of the scores %s; got %s%s", scores->dim[0],
                 tn__shape_text(scores->ndim, scores->dim, text), tn__shape_text(labels->ndim, labels->dim, other),
                 labels == scores ? ": one-hot labels become numbers with tn_argmax" : "");
        return false;
    }
    if (!tn_dtype_is_integer((tn_dtype)t->dtype)) {
        tn__fail(TN_ERR_DTYPE, operation, "expected integer labels, got %s: cast them with tn_cast",
                 tn_dtype_name((tn_dtype)t->dtype));
        return false;
    }
    return true;
}

/* ---- cross entropies ---- */

/* Labels of a loader's minibatch, which has looked at all of them once. */
static bool labels_known(const tn__node *t, int64_t classes)
{
    int64_t below = tn__elements_below(t);
    return below > 0 && below <= classes;
}

/* The gradient reaches x through exp and the sum alone: softmax(x) - onehot(t), without a rule of its own. */
static tn__node *softmax_cross_entropy(tn__node *x, tn__node *t)
{
    const uint32_t rows = 1u << 1;
    tn__node *wide = tn__widened(x);
    tn__node *max = tn__max_detached(wide, rows);
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__unary(TN__OP_EXP, tn__binary(TN__OP_SUBTRACT, wide, max)), rows);
    tn__node *logsumexp = tn__binary(TN__OP_ADD, tn__unary(TN__OP_LOG, sum), max);
    tn__node *index = tn__reshape(t, 2, (int64_t[]){t->shape->dim[0], 1});
    tn__node *hit = labels_known(t, x->shape->dim[1])
                        ? tn__gather_known(wide, tn__cast(index, TN_INT64), 1, 0)
                        : tn__gather(wide, tn__labels(index), 1);
    tn__node *loss = tn__mean_all(tn__binary(TN__OP_SUBTRACT, logsumexp, hit));
    return tn__cast(loss, (tn_dtype)x->dtype);
}

static tn__node *class_loss(tn__node *x, tn__node *t, const tn_cross_entropy_opts *opts)
{
    static const char operation[] = "softmax_cross_entropy";
    tn__node *error = tn__first_error(2, (tn__node *[]){x, t});
    if (error)
        return error;
    const tn__shape *shape = t->shape;
    if (tn_dtype_is_float((tn_dtype)t->dtype) && shape == x->shape)
        return tn__soft_cross_entropy(operation, x, t, opts);
    if (!check_floating(operation, "scores", x) || !tn__class_rows(operation, opts, &x, &t) ||
        !tn__check_classes(operation, x, t))
        return tn__failed();
    return tn__cross_entropy_plain(opts) ? softmax_cross_entropy(x, t)
                                         : tn__cross_entropy(operation, x, t, shape, opts);
}

tn_array *tn_softmax_cross_entropy_with(const tn_array *x, const tn_array *t, const tn_cross_entropy_opts *opts)
{
    static const char operation[] = "softmax_cross_entropy";
    TN__RETURN(class_loss(tn__node_of(x, operation), tn__node_of(t, operation), opts));
}

tn_array *tn_softmax_cross_entropy(const tn_array *x, const tn_array *t)
{
    return tn_softmax_cross_entropy_with(x, t, NULL);
}

/* The targets in x's dtype; an error where an operand is one or may not be. */
static tn__node *element_targets(const char *operation, const char *name, tn__node *x, tn__node *t)
{
    tn__node *error = tn__first_error(2, (tn__node *[]){x, t});
    if (error)
        return error;
    if (!check_floating(operation, name, x) || !tn__same_shape(operation, name, x, "targets", t))
        return tn__failed();
    return tn__cast(t, (tn_dtype)x->dtype);
}

/* The number that a weight is multiplied with: a floating one of at least float32 that gets no gradient. */
static tn__node *weight_of(const char *operation, const tn_array *weight, const tn__node *x)
{
    tn__node *w = tn__only_floating(weight, operation);
    TN__PASS_ERROR(w);
    if (!tn__broadcasts_to(w->shape, x->shape)) {
        char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected weights that broadcast to the logits %s, got %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text),
                   tn__shape_text(w->shape->ndim, w->shape->dim, other));
    }
    return tn__cast(w, (tn_dtype)x->dtype);
}

/* softplus(x) - x t, which is max(x, 0) - x t + log1p(exp(-|x|)), with the right gradient at 0 too; or, with w weighing
 * the first term, (1 - t) x + (1 + (w - 1) t) softplus(-x). */
static tn__node *logistic_losses(tn__node *x, tn__node *t, tn__node *w)
{
    if (!w)
        return sub(map(SOFTPLUS, x), mul(x, t));
    return add(mul(less_from(1, t), x), mul(plus(mul(plus(w, -1), t), 1), map(SOFTPLUS, minus(x))));
}

static tn__node *sigmoid_cross_entropy(tn__node *x, tn__node *t, const tn_sigmoid_opts *opts)
{
    static const char operation[] = "sigmoid_cross_entropy";
    t = element_targets(operation, "logits", x, t);
    TN__PASS_ERROR(t);
    if (opts && (!TN__ARRAY_WRITTEN(operation, opts, weight) || !TN__ARRAY_WRITTEN(operation, opts, pos_weight)))
        return tn__failed();
    bool ignores = opts && TN__GIVEN(opts, ignore_index);
    if (!opts || (!ignores && !opts->weight && !opts->pos_weight && opts->reduction == TN_REDUCTION_MEAN))
        return tn__mean_all(logistic_losses(x, t, NULL));
    tn_dtype dtype = (tn_dtype)x->dtype;
    tn__node *counts = NULL;
    if (ignores) {
        counts = with(NOT_EQUAL, t, opts->ignore_index);
        x = tn__only_where(counts, x); /* a NaN there is nobody's matter */
        t = tn__only_where(counts, t);
    }
    x = tn__widened(x);
    t = tn__cast(t, (tn_dtype)x->dtype);
    tn__no_grad_depth++;
    tn__node *own = opts->pos_weight ? weight_of(operation, opts->pos_weight, x) : NULL;
    tn__node *weight = opts->weight ? weight_of(operation, opts->weight, x) : NULL;
    tn__no_grad_depth--;
    tn__node *error = tn__first_error(2, (tn__node *[]){own, weight});
    if (error)
        return error;
    tn__node *loss = logistic_losses(x, t, own);
    if (weight)
        loss = mul(loss, weight);
    if (!counts)
        return tn__reduced(operation, loss, opts->reduction, dtype);
    loss = tn__only_where(counts, loss);
    if (opts->reduction != TN_REDUCTION_MEAN)
        return tn__reduced(operation, loss, opts->reduction, dtype);
    tn__node *count = with(MAXIMUM, tn__sum_all(tn__cast(counts, (tn_dtype)x->dtype)), 1);
    return tn__cast(over(tn__sum_all(loss), count), dtype);
}

tn_array *tn_sigmoid_cross_entropy_with(const tn_array *x, const tn_array *t, const tn_sigmoid_opts *opts)
{
    static const char operation[] = "sigmoid_cross_entropy";
    TN__RETURN(sigmoid_cross_entropy(tn__node_of(x, operation), tn__node_of(t, operation), opts));
}

tn_array *tn_sigmoid_cross_entropy(const tn_array *x, const tn_array *t)
{
    return tn_sigmoid_cross_entropy_with(x, t, NULL);
}

/* Half the distance from 1 to the next number: the closest to 0 and 1 that 1 - p tells from both. */
static double rounding_unit(tn_dtype dtype)
{
    return dtype == TN_FLOAT64 ? DBL_EPSILON / 2 : dtype == TN_FLOAT32 ? FLT_EPSILON / 2
                                               : dtype == TN_FLOAT16   ? 0x1p-11
                                                                       : 0x1p-8;
}

static tn__node *binary_cross_entropy(tn__node *p, tn__node *t)
{
    t = element_targets("binary_cross_entropy", "probabilities", p, t);
    TN__PASS_ERROR(t);
    double unit = rounding_unit((tn_dtype)p->dtype);
    tn__node *q = with(MINIMUM, with(MAXIMUM, p, unit), 1 - unit);
    tn__node *one = like(q, 1), *hit = mul(t, map(LOG, q)), *miss = mul(sub(one, t), map(LOG, sub(one, q)));
    return tn__mean_all(minus(add(hit, miss)));
}

tn_array *tn_binary_cross_entropy(const tn_array *p, const tn_array *t)
{
    static const char operation[] = "binary_cross_entropy";
    TN__RETURN(binary_cross_entropy(tn__node_of(p, operation), tn__node_of(t, operation)));
}

/* ---- squared error, accuracy ---- */

static tn__node *mean_squared_error(tn__node *a, tn__node *b, tn_reduction reduction)
{
    static const char operation[] = "mean_squared_error";
    tn__node *wrong = tn__first_error(2, (tn__node *[]){a, b});
    if (wrong)
        return wrong;
    bool a_floating = tn_dtype_is_float((tn_dtype)a->dtype), b_floating = tn_dtype_is_float((tn_dtype)b->dtype);
    if ((!a_floating && !check_floating(operation, "predictions or targets", b)) ||
        !tn__same_shape(operation, "predictions", a, "targets", b))
        return tn__failed();
    if (a_floating != b_floating) { /* integer targets don't turn float32 predictions into float64 */
        a = tn__cast(a, (tn_dtype)(a_floating ? a : b)->dtype);
        b = tn__cast(b, (tn_dtype)a->dtype);
    }
    tn_dtype dtype = tn_dtype_promote((tn_dtype)a->dtype, (tn_dtype)b->dtype);
    return tn__reduced(operation, squared(tn__widened(sub(a, b))), reduction, dtype);
}

tn_array *tn_mean_squared_error_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts)
{
    static const char operation[] = "mean_squared_error";
    TN__RETURN(mean_squared_error(tn__node_of(a, operation), tn__node_of(b, operation), TN__REDUCTION(opts)));
}

tn_array *tn_mean_squared_error(const tn_array *a, const tn_array *b)
{
    return tn_mean_squared_error_with(a, b, NULL);
}

static tn__node *accuracy(tn__node *y, tn__node *t)
{
    tn__node *error = tn__first_error(2, (tn__node *[]){y, t});
    if (error)
        return error;
    if (!tn__check_classes("accuracy", y, t))
        return tn__failed();
    tn__no_grad_depth++;
    tn__node *best = tn__reshape_like(tn__reduce(TN__OP_ARGMAX, y, 1u << 1), t->shape);
    tn__node *hits = map2(EQUAL, best, tn__cast(t, TN_INT64));
    tn__node *share = tn__mean_all(tn__cast(hits, TN_FLOAT32));
    tn__no_grad_depth--;
    return share;
}

tn_array *tn_accuracy(const tn_array *y, const tn_array *t)
{
    TN__RETURN(accuracy(tn__node_of(y, "accuracy"), tn__node_of(t, "accuracy")));
}
