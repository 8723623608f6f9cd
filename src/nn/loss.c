/* SPDX-License-Identifier: MIT */
/* Losses and accuracy. All means over all elements, or over the rows, in at least float32. */
#include "nn/cross_entropy.h"
#include "nn/terms.h"

#include <inttypes.h>
#include <float.h>
#include <tanso/array.h>
#include <tanso/nn.h>
#include "core/options.h"

/* ---- checks ---- */

static bool any_error(const tn__node *a, const tn__node *b)
{
    return tn__node_is_error(a) || tn__node_is_error(b);
}

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

static tn__node *first_error(tn__node *a, tn__node *b)
{
    return tn__node_is_error(a) ? a : b;
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

tn_array *tn_softmax_cross_entropy(const tn_array *x, const tn_array *t)
{
    return tn_softmax_cross_entropy_with(x, t, NULL);
}

tn_array *tn_softmax_cross_entropy_with(const tn_array *x, const tn_array *t, const tn_cross_entropy_opts *opts)
{
    static const char operation[] = "softmax_cross_entropy";
    tn__call call = tn__enter();
    tn__node *scores = tn__node_of(x, operation), *labels = tn__node_of(t, operation);
    if (any_error(scores, labels))
        return tn__leave_array(call, first_error(scores, labels));
    const tn__shape *shape = labels->shape;
    if (tn_dtype_is_float((tn_dtype)labels->dtype) && shape == scores->shape)
        return tn__leave_array(call, tn__soft_cross_entropy(operation, scores, labels, opts));
    if (!check_floating(operation, "scores", scores) || !tn__class_rows(operation, opts, &scores, &labels) ||
        !tn__check_classes(operation, scores, labels))
        return tn__leave_error(call);
    return tn__leave_array(call, tn__cross_entropy_plain(opts)
                                     ? softmax_cross_entropy(scores, labels)
                                     : tn__cross_entropy(operation, scores, labels, shape, opts));
}

/* Checks the operands of a loss over elements; the targets become x's dtype. NULL after a failure. */
static tn__node *element_targets(const char *operation, const char *name, const tn__node *x, tn__node *t)
{
    if (!check_floating(operation, name, x) || !tn__same_shape(operation, name, x, "targets", t))
        return NULL;
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

static tn__node *sigmoid_cross_entropy(const char *operation, tn__node *x, tn__node *t, const tn_sigmoid_opts *opts)
{
    if (!opts)
        return tn__mean_all(logistic_losses(x, t, NULL));
    tn_dtype dtype = (tn_dtype)x->dtype;
    tn__node *counts = NULL;
    if (TN__GIVEN(opts, ignore_index)) {
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

tn_array *tn_sigmoid_cross_entropy(const tn_array *x, const tn_array *t)
{
    return tn_sigmoid_cross_entropy_with(x, t, NULL);
}

tn_array *tn_sigmoid_cross_entropy_with(const tn_array *x, const tn_array *t, const tn_sigmoid_opts *opts)
{
    static const char operation[] = "sigmoid_cross_entropy";
    tn__call call = tn__enter();
    tn__node *logits = tn__node_of(x, operation), *targets = tn__node_of(t, operation);
    if (any_error(logits, targets))
        return tn__leave_array(call, first_error(logits, targets));
    targets = element_targets(operation, "logits", logits, targets);
    if (!targets)
        return tn__leave_error(call);
    bool plain = !opts || (!TN__GIVEN(opts, ignore_index) && !opts->weight && !opts->pos_weight &&
                           opts->reduction == TN_REDUCTION_MEAN);
    return tn__leave_array(call, sigmoid_cross_entropy(operation, logits, targets, plain ? NULL : opts));
}

/* Half the distance from 1 to the next number: the closest to 0 and 1 that 1 - p tells from both. */
static double rounding_unit(tn_dtype dtype)
{
    return dtype == TN_FLOAT64 ? DBL_EPSILON / 2 : dtype == TN_FLOAT32 ? FLT_EPSILON / 2
                                               : dtype == TN_FLOAT16   ? 0x1p-11
                                                                       : 0x1p-8;
}

tn_array *tn_binary_cross_entropy(const tn_array *p, const tn_array *t)
{
    static const char operation[] = "binary_cross_entropy";
    tn__call call = tn__enter();
    tn__node *probabilities = tn__node_of(p, operation), *targets = tn__node_of(t, operation);
    if (any_error(probabilities, targets))
        return tn__leave_array(call, first_error(probabilities, targets));
    targets = element_targets(operation, "probabilities", probabilities, targets);
    if (!targets)
        return tn__leave_error(call);
    double unit = rounding_unit((tn_dtype)probabilities->dtype);
    tn__node *q = tn__with(TN__OP_MINIMUM, tn__with(TN__OP_MAXIMUM, probabilities, unit), 1 - unit);
    tn__node *one = tn__const_like(q, 1);
    tn__node *hit = tn__binary(TN__OP_MULTIPLY, targets, tn__unary(TN__OP_LOG, q));
    tn__node *miss = tn__binary(TN__OP_MULTIPLY, tn__binary(TN__OP_SUBTRACT, one, targets),
                                tn__unary(TN__OP_LOG, tn__binary(TN__OP_SUBTRACT, one, q)));
    return tn__leave_array(call, tn__mean_all(tn__unary(TN__OP_NEGATIVE, tn__binary(TN__OP_ADD, hit, miss))));
}

/* ---- squared error, accuracy ---- */

tn_array *tn_mean_squared_error(const tn_array *a, const tn_array *b)
{
    return tn_mean_squared_error_with(a, b, NULL);
}

tn_array *tn_mean_squared_error_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts)
{
    static const char operation[] = "mean_squared_error";
    tn__call call = tn__enter();
    tn__node *left = tn__node_of(a, operation), *right = tn__node_of(b, operation);
    if (any_error(left, right))
        return tn__leave_array(call, first_error(left, right));
    bool left_floating = tn_dtype_is_float((tn_dtype)left->dtype);
    bool right_floating = tn_dtype_is_float((tn_dtype)right->dtype);
    if (!left_floating && !check_floating(operation, "predictions or targets", right))
        return tn__leave_error(call);
    if (!tn__same_shape(operation, "predictions", left, "targets", right))
        return tn__leave_error(call);
    if (left_floating != right_floating) { /* integer targets don't turn float32 predictions into float64 */
        left = tn__cast(left, (tn_dtype)(left_floating ? left : right)->dtype);
        right = tn__cast(right, (tn_dtype)left->dtype);
    }
    tn__node *error = tn__widened(tn__binary(TN__OP_SUBTRACT, left, right));
    tn_dtype dtype = tn_dtype_promote((tn_dtype)left->dtype, (tn_dtype)right->dtype);
    tn_reduction reduction = opts ? opts->reduction : TN_REDUCTION_MEAN;
    return tn__leave_array(call, tn__reduced(operation, squared(error), reduction, dtype));
}

tn_array *tn_accuracy(const tn_array *y, const tn_array *t)
{
    static const char operation[] = "accuracy";
    tn__call call = tn__enter();
    tn__node *scores = tn__node_of(y, operation), *labels = tn__node_of(t, operation);
    if (any_error(scores, labels))
        return tn__leave_array(call, first_error(scores, labels));
    if (!tn__check_classes(operation, scores, labels))
        return tn__leave_error(call);
    tn__no_grad_depth++;
    tn__node *best = tn__reshape_like(tn__reduce(TN__OP_ARGMAX, scores, 1u << 1), labels->shape);
    tn__node *hits = tn__binary(TN__OP_EQUAL, best, tn__cast(labels, TN_INT64));
    tn__node *share = tn__mean_all(tn__cast(hits, TN_FLOAT32));
    tn__no_grad_depth--;
    return tn__leave_array(call, share);
}
