/* SPDX-License-Identifier: MIT */
/* Losses over rows: of labels and scores, of pairs and triples of vectors; similarities; covariances. */
#include "nn/loss_parts.h"

#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include "core/options.h"
#include "nn/activation.h"
#include "nn/cross_entropy.h"

enum { ALONG_ROWS = 1u << 1 };

/* ---- labels ---- */

tn__node *tn__row_labels(const char *operation, const tn_array *t, int64_t rows)
{
    return tn__fit_rows(operation, tn__only_integers(t, operation), rows);
}

tn__node *tn__fit_rows(const char *operation, tn__node *labels, int64_t rows)
{
    TN__PASS_ERROR(labels);
    char text[TN__SHAPE_TEXT];
    if (labels->shape->ndim != 1 || labels->shape->dim[0] != rows || !tn_dtype_is_integer((tn_dtype)labels->dtype))
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected integer labels of shape (%" PRId64 ",), one a row; got %s %s",
                   rows, tn_dtype_name((tn_dtype)labels->dtype),
                   tn__shape_text(labels->shape->ndim, labels->shape->dim, text));
    return labels;
}

/* Which class each row's label is: bool (rows, classes); a label out of range is an error of the evaluation. */
static tn__node *is_label(tn__node *t, const tn__node *x)
{
    int64_t rows = x->shape->dim[0];
    tn__node *labels = tn__reshape(tn__labels(t), 2, (int64_t[]){rows, 1});
    TN__PASS_ERROR(labels);
    tn__node *known = tn__positions_within(labels, 0, x->shape->dim[1]);
    return map2(EQUAL, known, tn__iota(x->shape, 1, x->device));
}

typedef struct scores {
    tn__node *x, *hit, *error;
    tn_dtype dtype;
} scores;

static scores scores_of(const char *operation, const tn_array *x, const tn_array *t)
{
    scores s = {.x = tn__only_floating(x, operation)};
    tn__node *labels = tn__node_of(t, operation);
    s.error = tn__first_error(2, (tn__node *[]){s.x, labels});
    if (!s.error && !tn__check_classes(operation, s.x, labels))
        s.error = tn__failed();
    if (s.error)
        return s;
    s.dtype = (tn_dtype)s.x->dtype;
    s.x = tn__widened(s.x);
    s.hit = is_label(labels, s.x);
    s.error = tn__first_error(2, (tn__node *[]){s.x, s.hit});
    return s;
}

tn_array *tn_hinge_loss_with(const tn_array *x, const tn_array *t, const tn_hinge_opts *opts)
{
    tn__call call = tn__enter();
    scores s = scores_of("hinge_loss", x, t);
    if (s.error)
        return tn__leave_array(call, s.error);
    tn_reduction reduction = opts ? opts->reduction : TN_REDUCTION_MEAN;
    tn__node *loss = map(RELU, plus(tn__where(s.hit, minus(s.x), s.x), 1));
    if (opts && opts->squared)
        loss = squared(loss);
    if (reduction == TN_REDUCTION_MEAN)
        loss = tn__cast(times(tn__sum_all(loss), 1 / (double)s.x->shape->dim[0]), s.dtype);
    else
        loss = tn__reduced("hinge_loss", loss, reduction, s.dtype);
    return tn__leave_array(call, loss);
}

tn_array *tn_multi_margin_loss_with(const tn_array *x, const tn_array *t, const tn_multi_margin_opts *opts)
{
    static const char operation[] = "multi_margin_loss";
    tn__call call = tn__enter();
    scores s = scores_of(operation, x, t);
    int p = TN__OPTION(opts, p, 1);
    if (!s.error && p != 1 && p != 2)
        s.error = tn__number_error(operation, "p to be 1 or 2", p);
    if (s.error)
        return tn__leave_array(call, s.error);
    tn__node *own = tn__sum_over(tn__only_where(s.hit, s.x), ALONG_ROWS);
    tn__node *loss = map(RELU, plus(sub(s.x, own), TN__OPTION(opts, margin, 1)));
    loss = tn__where(s.hit, like(s.x, 0), p == 2 ? squared(loss) : loss);
    loss = times(tn__without_axis(tn__sum_over(loss, ALONG_ROWS), 1), 1 / (double)s.x->shape->dim[1]);
    return tn__leave_array(call, tn__reduced(operation, loss, opts ? opts->reduction : TN_REDUCTION_MEAN, s.dtype));
}

tn_array *tn_nll_loss_with(const tn_array *logp, const tn_array *t, const tn_cross_entropy_opts *opts)
{
    static const char operation[] = "nll_loss";
    static const tn_cross_entropy_opts none = {0};
    tn__call call = tn__enter();
    tn__node *x = tn__only_floating(logp, operation), *labels = tn__node_of(t, operation);
    tn__node *error = tn__first_error(2, (tn__node *[]){x, labels});
    if (error)
        return tn__leave_array(call, error);
    const tn__shape *shape = labels->shape;
    opts = opts ? opts : &none;
    if (!tn__class_rows(operation, opts, &x, &labels) || !tn__check_classes(operation, x, labels))
        return tn__leave_error(call);
    return tn__leave_array(call, tn__nll(operation, x, labels, shape, opts));
}

/* ---- vectors ---- */

/* Operands of shape (N, features); of the third kind (N). */
static tn__operands rows_of(const char *operation, int count, const tn_array *const *arrays, const char *const *names)
{
    tn__operands o = tn__operands_of(operation, count, arrays, names);
    char text[TN__SHAPE_TEXT];
    if (!o.error && o.x[0]->shape->ndim != 2) {
        tn__fail(TN_ERR_SHAPE, operation, "expected vectors of shape (N, features), got %s",
                 tn__shape_text(o.x[0]->shape->ndim, o.x[0]->shape->dim, text));
        o.error = tn__failed();
    }
    return o;
}

/* Whether rows are alike: (N), as numbers of the operands. */
static tn__node *kinds_of(const char *operation, const tn_array *y, const tn__operands *o)
{
    tn__node *kinds = tn__node_of(y, operation);
    TN__PASS_ERROR(kinds);
    char text[TN__SHAPE_TEXT];
    if (kinds->shape->ndim != 1 || kinds->shape->dim[0] != o->x[0]->shape->dim[0])
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected y of shape (%" PRId64 ",), one a row; got %s",
                   o->x[0]->shape->dim[0], tn__shape_text(kinds->shape->ndim, kinds->shape->dim, text));
    return tn__cast(kinds, (tn_dtype)o->x[0]->dtype);
}

static tn__node *row_sum(tn__node *x) { return tn__without_axis(tn__sum_over(x, ALONG_ROWS), 1); }

static tn__node *contrastive(const tn__operands *o, tn__node *y, double margin)
{
    tn__node *square = row_sum(squared(sub(o->x[0], o->x[1])));
    TN__PASS_ERROR(square);
    tn__node *gap = map(RELU, plus(minus(tn__root_of_sum(square, 0.5)), margin));
    return times(add(mul(y, square), mul(less_from(1, y), squared(gap))), 0.5);
}

tn_array *tn_contrastive_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                   const tn_loss_opts *opts)
{
    static const char operation[] = "contrastive_loss";
    tn__call call = tn__enter();
    tn__operands o = rows_of(operation, 2, (const tn_array *[]){a, b}, (const char *[]){"a", "b"});
    if (!(margin > 0))
        o.error = tn__number_error(operation, "margin > 0", margin);
    tn__node *kinds = o.error ? o.error : kinds_of(operation, y, &o);
    if (tn__node_is_error(kinds))
        return tn__leave_array(call, kinds);
    return tn__leave_array(call, tn__loss(operation, &o, contrastive(&o, kinds, margin), opts));
}

/* The cosine of the angle along an axis, which stays. The norms' product is the root of the product of squares, each no
 * smaller than eps², as in PyTorch. */
static tn__node *cosine(tn__node *a, tn__node *b, int axis, double eps)
{
    uint32_t set = 1u << axis;
    tn__node *squares = mul(with(MAXIMUM, tn__sum_over(squared(a), set), eps * eps),
                            with(MAXIMUM, tn__sum_over(squared(b), set), eps * eps));
    return mul(tn__sum_over(mul(a, b), set), map(RSQRT, squares));
}

tn_array *tn_cosine_similarity(const tn_array *a, const tn_array *b, int axis, double eps)
{
    static const char operation[] = "cosine_similarity";
    tn__call call = tn__enter();
    tn__operands o = tn__operands_of(operation, 2, (const tn_array *[]){a, b}, (const char *[]){"a", "b"});
    if (o.error)
        return tn__leave_array(call, o.error);
    axis = tn__axis_check(operation, axis, o.x[0]->shape->ndim);
    if (axis < 0)
        return tn__leave_error(call);
    if (!(eps >= 0) || !isfinite(eps))
        return tn__leave_array(call, tn__number_error(operation, "eps >= 0", eps));
    tn__node *similarity = cosine(o.x[0], o.x[1], axis, eps == 0 ? 1e-8 : eps);
    return tn__leave_array(call, tn__cast(tn__without_axis(similarity, axis), o.dtype));
}

tn_array *tn_cosine_embedding_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                        const tn_loss_opts *opts)
{
    static const char operation[] = "cosine_embedding_loss";
    tn__call call = tn__enter();
    tn__operands o = rows_of(operation, 2, (const tn_array *[]){a, b}, (const char *[]){"a", "b"});
    tn__node *kinds = o.error ? o.error : kinds_of(operation, y, &o);
    if (tn__node_is_error(kinds))
        return tn__leave_array(call, kinds);
    tn__node *similarity = tn__without_axis(cosine(o.x[0], o.x[1], 1, 1e-8), 1);
    if (tn__node_is_error(similarity))
        return tn__leave_array(call, similarity);
    tn__node *loss = tn__where(with(GREATER, kinds, 0), less_from(1, similarity),
                               map(RELU, plus(similarity, -margin)));
    return tn__leave_array(call, tn__loss(operation, &o, loss, opts));
}

/* The norm of the difference along the last axis, which is dropped. */
static tn__node *distance(tn__node *a, tn__node *b, double p, double eps)
{
    tn__node *d = plus(sub(a, b), eps);
    TN__PASS_ERROR(d);
    int last = d->shape->ndim - 1;
    uint32_t set = 1u << last;
    if (p == 1)
        return tn__without_axis(tn__sum_over(map(ABS, d), set), last);
    if (isinf(p))
        return tn__without_axis(tn__reduce(TN__OP_MAX, map(ABS, d), set), last);
    tn__node *powers = p == 2 ? squared(d) : with(POWER, map(ABS, d), p);
    return tn__without_axis(tn__root_of_sum(tn__sum_over(powers, set), 1 / p), last);
}

tn_array *tn_pairwise_distance(const tn_array *a, const tn_array *b, double p, double eps)
{
    static const char operation[] = "pairwise_distance";
    tn__call call = tn__enter();
    tn__operands o = tn__operands_of(operation, 2, (const tn_array *[]){a, b}, (const char *[]){"a", "b"});
    if (!(p >= 1))
        o.error = tn__number_error(operation, "an order p >= 1", p);
    else if (!isfinite(eps))
        o.error = tn__number_error(operation, "a finite eps", eps);
    if (o.error)
        return tn__leave_array(call, o.error);
    if (o.x[0]->shape->ndim == 0) {
        tn__fail(TN_ERR_SHAPE, operation, "expected vectors along a last axis, got scalars");
        return tn__leave_error(call);
    }
    return tn__leave_array(call, tn__cast(distance(o.x[0], o.x[1], p, eps), o.dtype));
}

static tn__node *triplet(const tn__operands *o, const tn_triplet_opts *opts)
{
    double p = TN__OPTION(opts, p, 2), eps = TN__OPTION(opts, eps, 1e-6), margin = TN__OPTION(opts, margin, 1);
    tn__node *near, *far;
    if (p == 0) {
        near = row_sum(squared(sub(o->x[0], o->x[1])));
        far = row_sum(squared(sub(o->x[0], o->x[2])));
        if (opts && opts->swap)
            far = map2(MINIMUM, far, row_sum(squared(sub(o->x[1], o->x[2]))));
    } else {
        near = distance(o->x[0], o->x[1], p, eps);
        far = distance(o->x[0], o->x[2], p, eps);
        if (opts && opts->swap)
            far = map2(MINIMUM, far, distance(o->x[1], o->x[2], p, eps));
    }
    return map(RELU, plus(sub(near, far), margin));
}

tn_array *tn_triplet_loss_with(const tn_array *anchor, const tn_array *positive, const tn_array *negative,
                               const tn_triplet_opts *opts)
{
    static const char operation[] = "triplet_loss";
    tn__call call = tn__enter();
    tn__operands o = rows_of(operation, 3, (const tn_array *[]){anchor, positive, negative},
                             (const char *[]){"anchors", "positives", "negatives"});
    double p = TN__OPTION(opts, p, 2);
    if (!o.error && !(p == 0 || p >= 1))
        o.error = tn__number_error(operation, "an order p >= 1, or 0", p);
    if (o.error)
        return tn__leave_array(call, o.error);
    return tn__leave_array(call, tn__reduced(operation, triplet(&o, opts),
                                             opts ? opts->reduction : TN_REDUCTION_MEAN, o.dtype));
}

/* ---- covariances ---- */

/* The columns less their means, (N, features). */
static tn__node *centred(const char *operation, const tn_array *x)
{
    tn__node *node = tn__only_floating(x, operation);
    TN__PASS_ERROR(node);
    char text[TN__SHAPE_TEXT];
    if (node->shape->ndim != 2)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected (N, features), got %s",
                   tn__shape_text(node->shape->ndim, node->shape->dim, text));
    node = tn__widened(node);
    return sub(node, tn__mean_over(node, 1));
}

static tn__node *covariances(tn__node *y, tn__node *z)
{
    tn__node *error = tn__first_error(2, (tn__node *[]){y, z});
    if (error)
        return error;
    return times(tn__matmul_node(tn__swap_last(y), z), 1 / (double)y->shape->dim[0]);
}

tn_array *tn_cross_covariance(const tn_array *y, const tn_array *z)
{
    tn__call call = tn__enter();
    tn__node *a = centred("cross_covariance", y), *b = centred("cross_covariance", z);
    if (!tn__node_is_error(a) && !tn__node_is_error(b) && a->shape->dim[0] != b->shape->dim[0]) {
        tn__fail(TN_ERR_SHAPE, "cross_covariance", "expected as many rows in both, got %" PRId64 " and %" PRId64,
                 a->shape->dim[0], b->shape->dim[0]);
        return tn__leave_error(call);
    }
    return tn__leave_array(call, times(tn__sum_all(squared(covariances(a, b))), 0.5));
}

tn_array *tn_decov(const tn_array *h)
{
    tn__call call = tn__enter();
    tn__node *x = centred("decov", h), *all = covariances(x, x);
    if (tn__node_is_error(all))
        return tn__leave_array(call, all);
    tn__node *same = map2(EQUAL, tn__iota(all->shape, 0, all->device), tn__iota(all->shape, 1, all->device));
    return tn__leave_array(call, times(tn__sum_all(squared(tn__where(same, like(all, 0), all))), 0.5));
}
