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

static tn__node *hinge_loss(scores s, const tn_hinge_opts *opts)
{
    if (s.error)
        return s.error;
    tn_reduction reduction = TN__REDUCTION(opts);
    tn__node *loss = map(RELU, plus(tn__where(s.hit, minus(s.x), s.x), 1));
    if (opts && opts->squared)
        loss = squared(loss);
    return reduction == TN_REDUCTION_MEAN ? tn__cast(times(tn__sum_all(loss), 1 / (double)s.x->shape->dim[0]), s.dtype)
                                          : tn__reduced("hinge_loss", loss, reduction, s.dtype);
}

tn_array *tn_hinge_loss_with(const tn_array *x, const tn_array *t, const tn_hinge_opts *opts)
{
    TN__RETURN(hinge_loss(scores_of("hinge_loss", x, t), opts));
}

static tn__node *multi_margin_loss(scores s, const tn_multi_margin_opts *opts)
{
    static const char operation[] = "multi_margin_loss";
    int p = TN__OPTION(opts, p, 1);
    if (s.error)
        return s.error;
    if (p != 1 && p != 2)
        return tn__number_error(operation, "p to be 1 or 2", p);
    tn__node *own = tn__sum_over(tn__only_where(s.hit, s.x), ALONG_ROWS);
    tn__node *loss = map(RELU, plus(sub(s.x, own), TN__OPTION(opts, margin, 1)));
    loss = tn__where(s.hit, like(s.x, 0), p == 2 ? squared(loss) : loss);
    loss = times(tn__without_axis(tn__sum_over(loss, ALONG_ROWS), 1), 1 / (double)s.x->shape->dim[1]);
    return tn__reduced(operation, loss, TN__REDUCTION(opts), s.dtype);
}

tn_array *tn_multi_margin_loss_with(const tn_array *x, const tn_array *t, const tn_multi_margin_opts *opts)
{
    TN__RETURN(multi_margin_loss(scores_of("multi_margin_loss", x, t), opts));
}

static tn__node *nll_loss(tn__node *x, tn__node *labels, const tn_cross_entropy_opts *opts)
{
    static const char operation[] = "nll_loss";
    static const tn_cross_entropy_opts none = {0};
    tn__node *error = tn__first_error(2, (tn__node *[]){x, labels});
    if (error)
        return error;
    const tn__shape *shape = labels->shape;
    opts = opts ? opts : &none;
    if (!tn__class_rows(operation, opts, &x, &labels) || !tn__check_classes(operation, x, labels))
        return tn__failed();
    return tn__nll(operation, x, labels, shape, opts);
}

tn_array *tn_nll_loss_with(const tn_array *logp, const tn_array *t, const tn_cross_entropy_opts *opts)
{
    TN__RETURN(nll_loss(tn__only_floating(logp, "nll_loss"), tn__node_of(t, "nll_loss"), opts));
}

/* ---- vectors ---- */

/* Operands that also have to be of shape (N, features). */
static tn__operands rows_of(const char *operation, tn__operands o)
{
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

/* Defines a loss of pairs of rows: the function that follows gives each pair's from a, b, and y's elements, checked. */
#define PAIR_LOSS(name, a, b, y, margin) \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *y, double margin); \
    tn_array *tn_##name##_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin, \
                               const tn_loss_opts *opts) \
    { \
        TN__RETURN(pair_loss(#name, rows_of(#name, TN__OPERANDS_2(#name, a, b)), y, margin, name, opts)); \
    } \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *y, double margin)

static tn__node *pair_loss(const char *operation, tn__operands o, const tn_array *y, double margin,
                           tn__node *(*losses)(tn__node *, tn__node *, tn__node *, double), const tn_loss_opts *opts)
{
    tn__node *kinds = o.error ? o.error : kinds_of(operation, y, &o);
    TN__PASS_ERROR(kinds);
    return tn__loss(operation, &o, losses(o.x[0], o.x[1], kinds, margin), opts);
}

PAIR_LOSS(contrastive_loss, a, b, y, margin)
{
    if (!(margin > 0))
        return tn__number_error("contrastive_loss", "margin > 0", margin);
    tn__node *square = row_sum(squared(sub(a, b)));
    TN__PASS_ERROR(square);
    tn__node *gap = map(RELU, plus(minus(tn__root_of_sum(square, 0.5)), margin));
    return times(add(mul(y, square), mul(less_from(1, y), squared(gap))), 0.5);
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

static tn__node *cosine_similarity(tn__operands o, int axis, double eps)
{
    static const char operation[] = "cosine_similarity";
    if (o.error)
        return o.error;
    axis = tn__axis_check(operation, axis, o.x[0]->shape->ndim);
    if (axis < 0)
        return tn__failed();
    if (!(eps >= 0) || !isfinite(eps))
        return tn__number_error(operation, "eps >= 0", eps);
    tn__node *similarity = cosine(o.x[0], o.x[1], axis, eps == 0 ? 1e-8 : eps);
    return tn__cast(tn__without_axis(similarity, axis), o.dtype);
}

tn_array *tn_cosine_similarity(const tn_array *a, const tn_array *b, int axis, double eps)
{
    TN__RETURN(cosine_similarity(TN__OPERANDS_2("cosine_similarity", a, b), axis, eps));
}

PAIR_LOSS(cosine_embedding_loss, a, b, y, margin)
{
    tn__node *similarity = tn__without_axis(cosine(a, b, 1, 1e-8), 1);
    TN__PASS_ERROR(similarity);
    return tn__where(with(GREATER, y, 0), less_from(1, similarity), map(RELU, plus(similarity, -margin)));
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

static tn__node *pairwise_distance(tn__operands o, double p, double eps)
{
    static const char operation[] = "pairwise_distance";
    if (o.error)
        return o.error;
    if (!(p >= 1))
        return tn__number_error(operation, "an order p >= 1", p);
    if (!isfinite(eps))
        return tn__number_error(operation, "a finite eps", eps);
    if (o.x[0]->shape->ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected vectors along a last axis, got scalars");
    return tn__cast(distance(o.x[0], o.x[1], p, eps), o.dtype);
}

tn_array *tn_pairwise_distance(const tn_array *a, const tn_array *b, double p, double eps)
{
    TN__RETURN(pairwise_distance(TN__OPERANDS_2("pairwise_distance", a, b), p, eps));
}

static tn__node *triplet_loss(tn__operands o, const tn_triplet_opts *opts)
{
    static const char operation[] = "triplet_loss";
    double p = TN__OPTION(opts, p, 2), eps = TN__OPTION(opts, eps, 1e-6), margin = TN__OPTION(opts, margin, 1);
    if (o.error)
        return o.error;
    if (!(p == 0 || p >= 1))
        return tn__number_error(operation, "an order p >= 1, or 0", p);
    tn__node *near, *far;
    if (p == 0) {
        near = row_sum(squared(sub(o.x[0], o.x[1])));
        far = row_sum(squared(sub(o.x[0], o.x[2])));
        if (opts && opts->swap)
            far = map2(MINIMUM, far, row_sum(squared(sub(o.x[1], o.x[2]))));
    } else {
        near = distance(o.x[0], o.x[1], p, eps);
        far = distance(o.x[0], o.x[2], p, eps);
        if (opts && opts->swap)
            far = map2(MINIMUM, far, distance(o.x[1], o.x[2], p, eps));
    }
    tn__node *loss = map(RELU, plus(sub(near, far), margin));
    return tn__reduced(operation, loss, TN__REDUCTION(opts), o.dtype);
}

tn_array *tn_triplet_loss_with(const tn_array *anchors, const tn_array *positives, const tn_array *negatives,
                               const tn_triplet_opts *opts)
{
    TN__RETURN(triplet_loss(rows_of("triplet_loss", TN__OPERANDS_3("triplet_loss", anchors, positives, negatives)),
                            opts));
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

static tn__node *cross_covariance(tn__node *y, tn__node *z)
{
    tn__node *error = tn__first_error(2, (tn__node *[]){y, z});
    if (error)
        return error;
    if (y->shape->dim[0] != z->shape->dim[0])
        TN__REFUSE(TN_ERR_SHAPE, "cross_covariance", "expected as many rows in both, got %" PRId64 " and %" PRId64,
                   y->shape->dim[0], z->shape->dim[0]);
    return times(tn__sum_all(squared(covariances(y, z))), 0.5);
}

tn_array *tn_cross_covariance(const tn_array *y, const tn_array *z)
{
    TN__RETURN(cross_covariance(centred("cross_covariance", y), centred("cross_covariance", z)));
}

static tn__node *decov(tn__node *h)
{
    tn__node *all = covariances(h, h);
    TN__PASS_ERROR(all);
    tn__node *same = map2(EQUAL, tn__iota(all->shape, 0, all->device), tn__iota(all->shape, 1, all->device));
    return times(tn__sum_all(squared(tn__where(same, like(all, 0), all))), 0.5);
}

tn_array *tn_decov(const tn_array *h)
{
    TN__RETURN(decov(centred("decov", h)));
}
