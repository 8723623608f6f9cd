/* SPDX-License-Identifier: MIT */
/*
 * Parts of pictures that boxes cut out, each brought to the same extents: pooled over bins of whole elements (Girshick
 * 2015), or averaged over samples between the elements (He et al. 2017); and pyramids of poolings (He et al. 2014).
 * Boxes get no gradient, as in both frameworks.
 */
#include "core/options.h"
#include "nn/activation.h"
#include "nn/pool.h"
#include "nn/terms.h"

#include <inttypes.h>
#include <math.h>

/* One call: x (N, channels, height, width), boxes (R, 5) as (R, 1) columns, the bins. */
typedef struct cut {
    const char *name;
    tn__node *x;
    tn__node *picture;                /* (R, 1) int64, looked at where it is used */
    tn__node *begin[2], *end[2];      /* along height and width, floating, scaled */
    int64_t boxes, bins[2];
} cut;

static tn__node *column(tn__node *boxes, int i) { return tn__piece(boxes, 1, i, 1); }

static tn__node *cut_of(cut *c, tn__node *x, tn__node *boxes, tn_shape out, double scale)
{
    c->x = tn__pooled_operand(c->name, x);
    tn__node *error = tn__first_error(2, (tn__node *[]){c->x, boxes});
    if (error)
        return error;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    const tn__shape *shape = c->x->shape;
    if (shape->ndim != 4 || boxes->shape->ndim != 2 || boxes->shape->dim[1] != 5)
        TN__REFUSE(TN_ERR_SHAPE, c->name,
                   "expected x (N, channels, height, width) and boxes (R, 5): picture, x1, y1, x2, y2; got %s and %s",
                   tn__shape_text(shape->ndim, shape->dim, text),
                   tn__shape_text(boxes->shape->ndim, boxes->shape->dim, other));
    if (!(scale > 0) || !isfinite(scale) || shape->dim[2] == 0 || shape->dim[3] == 0)
        TN__REFUSE(TN_ERR_VALUE, c->name, "expected a scale above 0 and pictures of an element or more, got %g and %s",
                   scale, tn__shape_text(shape->ndim, shape->dim, text));
    if (!tn__extents_of(c->name, "extent of the result", out, 2, 1, 1, c->bins))
        return tn__failed();
    c->boxes = boxes->shape->dim[0];
    boxes = tn__widened(boxes);
    tn__node *picture = tn__labels(tn__cast(tn__reshape(column(boxes, 0), 1, &c->boxes), TN_INT64));
    picture = tn__positions_within(picture, 0, shape->dim[0]);
    c->picture = tn__reshape(picture, 2, (int64_t[]){c->boxes, 1});
    for (int i = 0; i < 2; i++) {
        c->begin[i] = times(column(boxes, 2 - i), scale);
        c->end[i] = times(column(boxes, 4 - i), scale);
    }
    return tn__first_error(1, &c->picture);
}

/* Whole numbers 0 .. n-1 along a row, (1, n), int64. */
static tn__node *numbers(const cut *c, int64_t n)
{
    const tn__shape *shape = tn__shape_make(c->name, (tn_shape){2, {1, n}}, TN_INT64);
    return shape ? tn__iota(shape, 1, c->x->device) : tn__failed();
}

/* ---- samples between the elements ---- */

/* Samples along an axis: the elements below and above each, (R, samples), and their weights. */
typedef struct samples {
    tn__node *low, *high, *weight_low, *weight_high;
    tn__node *inside; /* where it is: no more than an element beyond the picture */
} samples;

static samples samples_of(const cut *c, int axis, int64_t each, bool aligned)
{
    double shift = aligned ? -0.5 : 0, last = (double)(c->x->shape->dim[2 + axis] - 1);
    tn__node *begin = plus(c->begin[axis], shift), *size = sub(plus(c->end[axis], shift), begin);
    size = aligned ? size : with(MAXIMUM, size, 1);
    tn__node *k = tn__cast(numbers(c, c->bins[axis] * each), (tn_dtype)(tn__node_is_error(size) ? TN_FLOAT32
                                                                                                 : size->dtype));
    tn__node *at = add(begin, mul(size, times(plus(k, 0.5), 1 / ((double)c->bins[axis] * (double)each))));
    tn__node *inside = map2(LOGICAL_AND, with(GREATER_EQUAL, at, -1), with(LESS_EQUAL, at, last + 1));
    at = with(MINIMUM, with(MAXIMUM, at, 0), last);
    tn__node *below = map(FLOOR, at), *part = sub(at, below);
    return (samples){tn__cast(below, TN_INT64), tn__cast(with(MINIMUM, plus(below, 1), last), TN_INT64),
                     tn__only_where(inside, less_from(1, part)), tn__only_where(inside, part), inside};
}

/* x (R, n) as (R, n, 1) or (R, 1, n). */
static tn__node *along(tn__node *x, bool height) { return tn__spread(x, height ? 2 : 1); }

/* The elements of all channels at places (R, height, width) of each box's picture: (channels, R height width). */
static tn__node *elements(const cut *c, tn__node *flat, tn__node *row, tn__node *column_of, tn__node *weight)
{
    const int64_t *dim = c->x->shape->dim;
    tn__node *place = add(times(tn__spread(c->picture, 2), (double)dim[2]), along(row, true));
    place = add(times(place, (double)dim[3]), along(column_of, false));
    tn__node *error = tn__first_error(3, (tn__node *[]){flat, place, weight});
    if (error)
        return error;
    int64_t all[2] = {1, place->shape->size};
    tn__node *y = tn__gather_known(flat, tn__reshape(place, 2, all), 1, flat->shape->dim[1]);
    return mul(y, tn__reshape(tn__cast(weight, (tn_dtype)flat->dtype), 2, all));
}

/* The largest of the samples that are inside; 0 where none is. */
static tn__node *largest(tn__node *x, tn__node *inside, uint32_t axes)
{
    tn__node *y = tn__where(inside, x, like(x, -INFINITY)), *any = tn__reduce(TN__OP_ANY, inside, axes);
    TN__PASS_ERROR(y);
    return tn__only_where(any, tn__first_max(y, axes));
}

static tn__node *aligned(cut *c, int64_t each, bool on_edges, bool max)
{
    const int64_t *dim = c->x->shape->dim;
    tn__node *flat = tn__permute(tn__widened(c->x), (uint8_t[TN_MAX_NDIM]){1, 0, 2, 3, 4, 5, 6, 7}), *sum = NULL;
    flat = tn__reshape(flat, 2, (int64_t[]){dim[1], dim[0] * dim[2] * dim[3]});
    tn__no_grad_depth++;
    samples y = samples_of(c, 0, each, on_edges), x = samples_of(c, 1, each, on_edges);
    tn__no_grad_depth--;
    tn__node *const row[] = {y.low, y.high}, *const row_weight[] = {y.weight_low, y.weight_high};
    tn__node *const column_of[] = {x.low, x.high}, *const column_weight[] = {x.weight_low, x.weight_high};
    for (int k = 0; k < 4; k++) {
        tn__node *weight = mul(along(row_weight[k / 2], true), along(column_weight[k % 2], false));
        tn__node *term = elements(c, flat, row[k / 2], column_of[k % 2], weight);
        sum = sum ? add(sum, term) : term;
    }
    int64_t parted[] = {dim[1], c->boxes, c->bins[0], each, c->bins[1], each};
    sum = tn__reshape(sum, 6, parted);
    TN__PASS_ERROR(sum);
    parted[0] = 1;
    const uint32_t each_axis = 1u << 3 | 1u << 5;
    tn__node *inside = map2(LOGICAL_AND, along(y.inside, true), along(x.inside, false));
    sum = max && sum->shape->size ? largest(sum, tn__reshape(inside, 6, parted), each_axis)
                                  : tn__mean_over(sum, each_axis);
    sum = tn__drop_axes(sum, each_axis);
    return tn__node_is_error(sum) ? sum : tn__permute(sum, (uint8_t[TN_MAX_NDIM]){1, 0, 2, 3, 4, 5, 6, 7});
}

tn_array *tn_roi_align_with(const tn_array *x, const tn_array *boxes, tn_shape out, const tn_roi_opts *opts)
{
    cut c = {.name = "roi_align"};
    tn__call call = tn__enter();
    int64_t each = TN__OPTION(opts, samples, 2);
    tn__node *error = cut_of(&c, tn__node_of(x, c.name), tn__only_floating(boxes, c.name), out,
                             TN__OPTION(opts, scale, 1));
    if (!error && (each < 1 || each > 1024))
        error = tn__number_error(c.name, "1 to 1024 samples", (double)each);
    if (error)
        return tn__leave_array(call, error);
    tn__node *y = aligned(&c, each, opts && opts->aligned, opts && opts->max);
    return tn__leave_array(call, tn__cast(y, (tn_dtype)c.x->dtype));
}

/* ---- bins of whole elements ---- */

/* Bins along an axis, from `from` to `to`, (R, bins) int64. */
typedef struct bins {
    tn__node *from, *to;
} bins;

static bins bins_of(const cut *c, int axis, bool open)
{
    double n = (double)c->x->shape->dim[2 + axis], m = (double)c->bins[axis];
    tn__node *begin = tn__cast(map(RINT, c->begin[axis]), TN_INT64), *end = tn__cast(map(RINT, c->end[axis]), TN_INT64);
    tn__node *size = with(MAXIMUM, plus(sub(end, begin), open ? 0 : 1), 1), *k = numbers(c, c->bins[axis]);
    tn__node *from = with(FLOOR_DIVIDE, mul(size, k), m);
    tn__node *to = with(FLOOR_DIVIDE, plus(mul(size, plus(k, 1)), m - 1), m);
    from = with(MINIMUM, with(MAXIMUM, add(begin, from), 0), n);
    to = with(MINIMUM, with(MAXIMUM, add(begin, to), 0), n);
    return (bins){from, to};
}

/* y (R, channels, ..., n) over the bins of its axis, behind which the axes stay: that axis is of bins then. */
static tn__node *over_bins(const cut *c, tn__node *y, int axis, const bins *b, bool average)
{
    int64_t n = c->x->shape->dim[axis];
    tn__node *i = tn__reshape(numbers(c, n), 3, (int64_t[]){1, 1, n});
    tn__node *inside = map2(LOGICAL_AND, map2(GREATER_EQUAL, i, tn__spread(b->from, 2)),
                            map2(LESS, i, tn__spread(b->to, 2)));
    int64_t dim[] = {c->boxes, 1, 1, c->bins[axis - 2], n};
    if (axis == 2)
        inside = tn__reshape(inside, 5, (int64_t[]){c->boxes, 1, c->bins[0], n, 1});
    else
        inside = tn__reshape(inside, 5, dim);
    y = tn__spread(y, axis);
    tn__node *error = tn__first_error(2, (tn__node *[]){y, inside});
    if (error)
        return error;
    uint32_t elements_axis = 1u << (axis + 1);
    y = tn__where(inside, y, like(y, average ? 0 : -INFINITY));
    TN__PASS_ERROR(y);
    y = average || y->shape->size == 0 ? tn__sum_over(y, elements_axis) : tn__first_max(y, elements_axis);
    return tn__drop_axes(y, elements_axis);
}

static tn__node *pooled(cut *c, bool open, bool average)
{
    tn__no_grad_depth++;
    bins b[2] = {bins_of(c, 0, open), bins_of(c, 1, open)};
    tn__node *rows = along(sub(b[0].to, b[0].from), true), *columns = along(sub(b[1].to, b[1].from), false);
    tn__node *count = tn__spread(mul(with(MAXIMUM, rows, 0), with(MAXIMUM, columns, 0)), 1);
    tn__no_grad_depth--;
    tn__node *picture = tn__reshape(c->picture, 4, (int64_t[]){c->boxes, 1, 1, 1});
    tn__node *y = tn__gather_known(tn__widened(c->x), picture, 0, c->x->shape->dim[0]);
    for (int axis = 2; axis < 4; axis++)
        y = over_bins(c, y, axis, &b[axis - 2], average);
    tn__node *error = tn__first_error(2, (tn__node *[]){y, count});
    if (error)
        return error;
    tn__node *some = with(GREATER, count, 0);
    if (average)
        return over(y, tn__cast(with(MAXIMUM, count, 1), (tn_dtype)y->dtype));
    return tn__only_where(some, y);
}

tn_array *tn_roi_pool_with(const tn_array *x, const tn_array *boxes, tn_shape out, const tn_roi_opts *opts)
{
    cut c = {.name = "roi_pool"};
    tn__call call = tn__enter();
    tn__node *error = cut_of(&c, tn__node_of(x, c.name), tn__only_floating(boxes, c.name), out,
                             TN__OPTION(opts, scale, 1));
    if (error)
        return tn__leave_array(call, error);
    tn__node *y = pooled(&c, opts && opts->open, opts && opts->average);
    return tn__leave_array(call, tn__cast(y, (tn_dtype)c.x->dtype));
}

/* ---- pyramids ---- */

static tn__node *pyramid(tn__node *x, int levels)
{
    static const char name[] = "spatial_pyramid_pool";
    enum { MOST_LEVELS = 16 };
    x = tn__pooled_operand(name, x);
    TN__PASS_ERROR(x);
    tn__node *parts[MOST_LEVELS];
    if (x->shape->ndim != 4 || levels < 1 || levels > MOST_LEVELS)
        TN__REFUSE(TN_ERR_VALUE, name, "expected (N, channels, height, width) and 1 to %d levels, got %d axes and %d",
                   MOST_LEVELS, x->shape->ndim, levels);
    for (int i = 0; i < levels; i++) {
        tn__pool_settings s = {.name = name, .kernel = {.ndim = 2}, .pad = {.ndim = 2}, .ceil = true};
        for (int k = 0; k < 2; k++) {
            int64_t n = x->shape->dim[2 + k], m = (int64_t)1 << i;
            if (n < m)
                TN__REFUSE(TN_ERR_SHAPE, name, "expected %" PRId64 " elements or more along axis %d, got %" PRId64, m,
                           2 + k, n);
            s.kernel.dim[k] = (n + m - 1) / m;
            s.pad.dim[k] = (s.kernel.dim[k] * m - n) / 2;
        }
        tn__node *y = tn__max_pool(x, &s);
        TN__PASS_ERROR(y);
        int64_t row = y->shape->dim[1] * y->shape->dim[2] * y->shape->dim[3];
        parts[i] = tn__reshape(y, 2, (int64_t[]){y->shape->dim[0], row});
    }
    return tn__joined(levels, parts, 1);
}

tn_array *tn_spatial_pyramid_pool(const tn_array *x, int levels)
{
    TN__RETURN(pyramid(tn__node_of(x, "spatial_pyramid_pool"), levels));
}
