/* SPDX-License-Identifier: MIT */
/*
 * Windows that slide over an array, as a view, and their reverse, which adds what windows hold to the places it came
 * from. Convolution, pooling and unfolding, and all their gradients, are made of these two.
 */
#include "array/build_window.h"

#include <string.h>

#include "array/build_parts.h"

int64_t tn__window_count(int64_t extent, const tn__window_axis *w)
{
    int64_t reach;
    if (__builtin_mul_overflow(w->extent - 1, w->spread, &reach) || reach >= extent)
        return 0;
    return (extent - reach - 1) / w->step + 1;
}

tn__node *tn__windows(tn__node *a, int count, const tn__window_axis *window)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    tn_shape value = tn__shape_value(a->shape);
    int64_t list[3 * TN_MAX_NDIM];
    if (value.ndim + count > TN_MAX_NDIM)
        TN__REFUSE(TN_ERR_SHAPE, "windows", "%d axes and windows along %d of them; expected %d axes in all at most",
                   value.ndim, count, TN_MAX_NDIM);
    for (int i = 0; i < count; i++) {
        const tn__window_axis *w = &window[i];
        int64_t places = tn__window_count(value.dim[w->axis], w);
        if (w->extent < 1 || w->step < 1 || w->spread < 1 || places < 1)
            TN__REFUSE(TN_ERR_SHAPE, "windows",
                       "no window of %lld elements, %lld apart, by steps of %lld is in axis %d, of extent %lld",
                       (long long)w->extent, (long long)w->spread, (long long)w->step, w->axis,
                       (long long)value.dim[w->axis]);
        value.dim[w->axis] = places;
        value.dim[value.ndim++] = w->extent;
        memcpy(&list[3 * i], (int64_t[]){w->axis, w->step, w->spread}, 3 * sizeof *list);
    }
    const tn__shape *shape = tn__shape_make("windows", value, (tn_dtype)a->dtype);
    if (!shape)
        return tn__failed();
    if (tn__foldable(a))
        return tn__const_scalar(a->attr.scalar, (tn_dtype)a->dtype, shape, a->device);
    const tn__ints *ints = tn__ints_intern(3 * count, list);
    if (!ints) {
        tn__fail_memory("windows", sizeof(tn__ints));
        return tn__failed();
    }
    return tn__apply(TN__OP_WINDOWS, (tn_dtype)a->dtype, shape, 1, &a, (tn__attr){.ints = ints});
}

bool tn__extents_of(const char *operation, const char *what, tn_shape given, int count, int64_t absent, int64_t least,
                    int64_t *out)
{
    if (given.ndim != 0 && given.ndim != 1 && given.ndim != count) {
        tn__fail(TN_ERR_SHAPE, operation, "expected one %s, or %d of them, an axis each; got %d", what, count,
                 (int)given.ndim);
        return false;
    }
    for (int i = 0; i < count; i++) {
        out[i] = given.ndim == 0 ? absent : given.dim[given.ndim == 1 ? 0 : i];
        if (out[i] < least) {
            tn__fail(TN_ERR_VALUE, operation, "expected a %s of %lld or more, got %lld", what, (long long)least,
                     (long long)out[i]);
            return false;
        }
    }
    return true;
}

/* ---- the reverse, an axis at a time ---- */

/* `fill` in a shape with `value` in it, from `start` on by `step` along each axis. */
static tn__node *placed_in(double fill, tn__node *value, tn_shape zeros, const int64_t *start, const int64_t *step)
{
    TN__PASS_ERROR(value);
    const tn__shape *shape = tn__shape_make("windows", zeros, (tn_dtype)value->dtype);
    int64_t list[2 * TN_MAX_NDIM];
    for (int d = 0; d < zeros.ndim; d++) {
        list[2 * d] = start[d];
        list[2 * d + 1] = step[d];
    }
    const tn__ints *ints = shape ? tn__ints_intern(2 * zeros.ndim, list) : NULL;
    if (!shape)
        return tn__failed();
    if (!ints) {
        tn__fail_memory("windows", sizeof(tn__ints));
        return tn__failed();
    }
    if (shape == value->shape)
        return value;
    return tn__update(tn__const(fill, (tn_dtype)value->dtype, shape, value->device), value, ints);
}

static tn__node *placed(tn__node *value, tn_shape zeros, const int64_t *start, const int64_t *step)
{
    return placed_in(0, value, zeros, start, step);
}

/* The last two axes, (windows, places in one), as what they add up to in an axis of `extent`. `rest` axes in front. */
typedef struct folding {
    int rest;
    int64_t extent, count, taps; /* of the axis; windows; places in one */
    int64_t step, spread;
} folding;

/* The first axes and two more. */
static tn__node *shaped(tn__node *g, const folding *f, int more, const int64_t *dim)
{
    TN__PASS_ERROR(g);
    int64_t all[TN_MAX_NDIM];
    for (int d = 0; d < f->rest; d++)
        all[d] = g->shape->dim[d];
    memcpy(&all[f->rest], dim, sizeof *dim * (size_t)more);
    return tn__reshape(g, f->rest + more, all);
}

/* Windows that lie apart by several places and begin at every `step`-th one as those that begin at each: between, there
 * are zeros. */
static tn__node *step_filled(tn__node *g, folding *f)
{
    int64_t start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM];
    TN__PASS_ERROR(g);
    tn_shape zeros = tn__shape_value(g->shape);
    for (int d = 0; d < zeros.ndim; d++)
        step[d] = d == f->rest ? f->step : 1;
    f->count = zeros.dim[f->rest] = (f->count - 1) * f->step + 1;
    f->step = 1;
    return placed(g, zeros, start, step);
}

/*
 * With taps k = q step + r: element a step + r of the axis is the sum over q of g[a - q spread, q step + r] (step or
 * spread being 1). The sums are of a window that slides over all q, and within a q over a, of a copy with zeros around:
 * one more place of q is one row less `spread` elements further on.
 */
static tn__node *folded(tn__node *g, folding f)
{
    if (f.step > 1 && f.spread > 1)
        g = step_filled(g, &f);
    int64_t q = (f.taps + f.step - 1) / f.step, a = (f.extent + f.step - 1) / f.step, before = (q - 1) * f.spread;
    int64_t row = before + a, start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM];
    TN__PASS_ERROR(g);
    tn_shape zeros = tn__shape_value(g->shape);
    for (int d = 0; d < TN_MAX_NDIM; d++)
        step[d] = 1;
    zeros.dim[f.rest + 1] = q * f.step;
    g = placed(g, zeros, start, step);                                        /* (count, q step) */
    g = shaped(g, &f, 3, (int64_t[]){f.count, q, f.step});
    uint8_t perm[TN_MAX_NDIM];
    for (int d = 0; d < TN_MAX_NDIM; d++)
        perm[d] = (uint8_t)d;
    perm[f.rest] = (uint8_t)(f.rest + 1);
    perm[f.rest + 1] = (uint8_t)f.rest;
    if (q > 1) {
        g = tn__permute(g, perm);                                             /* (q, count, step) */
        zeros.ndim = f.rest + 3;
        memcpy(&zeros.dim[f.rest], (int64_t[]){q, row, f.step}, 3 * sizeof *zeros.dim);
        start[f.rest + 1] = before;
        g = placed(g, zeros, start, step);
        g = shaped(g, &f, 2, (int64_t[]){q * row, f.step});
        int64_t dim[TN_MAX_NDIM];
        start[f.rest + 1] = 0;
        start[f.rest] = before;
        memcpy(dim, zeros.dim, sizeof dim);
        dim[f.rest] = q * row - before;
        dim[f.rest + 1] = f.step;
        TN__PASS_ERROR(g);
        g = tn__slice_node(g, start, step, dim);
        g = tn__windows(g, 1, &(tn__window_axis){f.rest, a, row - f.spread, 1}); /* (q, step, a) */
        g = tn__reduce(TN__OP_SUM, g, 1u << f.rest);
        perm[f.rest] = (uint8_t)f.rest;
        perm[f.rest + 1] = (uint8_t)(f.rest + 2);
        perm[f.rest + 2] = (uint8_t)(f.rest + 1);
        TN__PASS_ERROR(g);
        g = tn__permute(g, perm);
        f.count = a;
    }
    g = shaped(g, &f, 1, (int64_t[]){f.count * f.step});
    TN__PASS_ERROR(g);
    zeros = tn__shape_value(g->shape);
    zeros.dim[f.rest] = f.extent;
    if (f.count * f.step > f.extent)
        return tn__slice_node(g, (int64_t[TN_MAX_NDIM]){0}, step, zeros.dim);
    return placed(g, zeros, (int64_t[TN_MAX_NDIM]){0}, step);
}

/* The windows along `axis`, whose places are the last axis, as that axis of `extent`. */
static tn__node *fold_axis(tn__node *g, int axis, int64_t extent, int64_t step, int64_t spread)
{
    TN__PASS_ERROR(g);
    int last = g->shape->ndim - 1, rest = last - 1;
    uint8_t perm[TN_MAX_NDIM] = {0}, back[TN_MAX_NDIM] = {0};
    int64_t dim[TN_MAX_NDIM], lead = 1;
    for (int d = 0, n = 0; d < last; d++) {
        int to = d == axis ? rest : n++;
        perm[to] = (uint8_t)d;
        back[d] = (uint8_t)to;
        if (d != axis)
            lead *= dim[to] = g->shape->dim[d];
    }
    perm[last] = (uint8_t)last;
    folding f = {rest, extent, g->shape->dim[axis], g->shape->dim[last], step, spread};
    g = tn__permute(g, perm);
    if (rest + 4 > TN_MAX_NDIM) { /* there is no room for as many axes */
        g = tn__reshape(g, 3, (int64_t[]){lead, f.count, f.taps});
        f.rest = 1;
    }
    g = folded(g, f);
    dim[rest] = extent;
    return tn__permute(tn__reshape(g, last, dim), back);
}

tn__node *tn__fold(tn__node *g, int count, const tn__window_axis *window, const tn__shape *shape)
{
    TN__PASS_ERROR(g);
    if (shape->size == 0 || g->shape->size == 0)
        return tn__made_of_none(tn__const(0, (tn_dtype)g->dtype, shape, g->device), g);
    for (int i = count; i-- > 0;)
        g = fold_axis(g, window[i].axis, shape->dim[window[i].axis], window[i].step, window[i].spread);
    return g;
}

tn__node *tn__framed(tn__node *a, const int64_t *start, const int64_t *dim, double value)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    tn_shape whole = {.ndim = a->shape->ndim};
    int64_t from[TN_MAX_NDIM], to[TN_MAX_NDIM], one[TN_MAX_NDIM], inner[TN_MAX_NDIM];
    for (int d = 0; d < whole.ndim; d++) {
        int64_t end = start[d] + dim[d], extent = a->shape->dim[d];
        one[d] = 1;
        whole.dim[d] = dim[d];
        from[d] = start[d] > 0 ? start[d] : 0;
        to[d] = from[d] - start[d];
        inner[d] = (end < extent ? end : extent) - from[d];
        inner[d] = inner[d] > 0 ? inner[d] : 0;
        if (inner[d] == 0)
            from[d] = to[d] = 0;
    }
    return placed_in(value, tn__slice_node(a, from, one, inner), whole, to, one);
}
