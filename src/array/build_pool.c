/* SPDX-License-Identifier: MIT */
/*
 * Reductions of windows that may meet, and their gradients, in which each element asks the windows that it is in: no
 * window's elements are written down, so that neither the overlap nor the stride costs memory.
 */
#include "array/build_pool.h"

#include <math.h>
#include <string.h>

#include "array/build_parts.h"

#define INTS       4  /* an axis of attr.ints */
#define NOT_CHOSEN -1 /* for a place in a window: none is */
#define NO_PLACE   -2 /* the same, of an element */

static int64_t covered_by(const tn__window_axis *w) { return (w->extent - 1) * w->spread + 1; }

/* As many axes as x has behind N and channels, from `first` on. */
static void around(const tn__pooling *p, const tn__shape *x, int64_t *dim)
{
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    memcpy(&dim[2], p->reached, sizeof *dim * (size_t)p->axes);
}

tn__node *tn__pooling_exchanged(tn__node *windows, int axes)
{
    TN__PASS_ERROR(windows);
    uint8_t perm[TN_MAX_NDIM] = {0, 1};
    for (int i = 0; i < axes; i++) {
        perm[2 + i] = (uint8_t)(2 + axes + i);
        perm[2 + axes + i] = (uint8_t)(2 + i);
    }
    return tn__permute(windows, perm);
}

tn__node *tn__pooling_windows(tn__node *x, const tn__pooling *p, double fill)
{
    TN__PASS_ERROR(x);
    int64_t start[TN_MAX_NDIM] = {0}, dim[TN_MAX_NDIM];
    around(p, x->shape, dim);
    for (int i = 0; i < p->axes; i++)
        start[2 + i] = -p->pad[i];
    return tn__pooling_exchanged(tn__windows(tn__framed(x, start, dim, fill), p->axes, p->window), p->axes);
}

tn__node *tn__pooling_fold(tn__node *windows, const tn__pooling *p)
{
    TN__PASS_ERROR(windows);
    int64_t start[TN_MAX_NDIM] = {0}, dim[TN_MAX_NDIM];
    tn_shape all = {.ndim = 2 + p->axes};
    around(p, windows->shape, all.dim);
    memcpy(dim, all.dim, sizeof dim);
    for (int i = 0; i < p->axes; i++) {
        start[2 + i] = p->pad[i];
        dim[2 + i] = p->extent[i];
    }
    const tn__shape *shape = tn__shape_make("fold", all, (tn_dtype)windows->dtype);
    return shape ? tn__framed(tn__fold(windows, p->axes, p->window, shape), start, dim, 0) : tn__failed();
}

/* ---- reductions ---- */

/* Of no windows there is no largest element to look for. */
static tn__node *reduced(tn__op op, tn__node *windows, uint32_t places)
{
    TN__PASS_ERROR(windows);
    op = windows->shape->size || op == TN__OP_ARGMAX ? op : TN__OP_SUM;
    return tn__drop_axes(tn__reduce(op, windows, places), places);
}

tn__node *tn__pooled(tn__op op, tn__node *x, const tn__pooling *p)
{
    TN__PASS_ERROR(x);
    int64_t list[1 + INTS * TN__POOLED_AXES] = {op == TN__OP_MAX};
    for (int i = 0; i < p->axes; i++) {
        const tn__window_axis *w = &p->window[i];
        memcpy(&list[1 + INTS * i], (int64_t[INTS]){w->extent, w->step, w->spread, p->pad[i]}, INTS * sizeof *list);
    }
    tn__no_grad_depth++;
    tn__node *windows = tn__pooling_windows(x, p, op == TN__OP_SUM ? 0 : -INFINITY);
    tn__node *y = reduced(op, windows, tn__pooling_places(p));
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    if (op == TN__OP_ARGMAX)
        return y;
    const tn__ints *ints = tn__ints_intern(1 + INTS * p->axes, list);
    if (!ints) {
        tn__fail_memory("pool", sizeof(tn__ints));
        return tn__failed();
    }
    return tn__node_new(TN__OP_POOL, (tn_dtype)y->dtype, y->shape, y->device, 3, (tn__node *[]){y, x, windows},
                        (tn__attr){.ints = ints});
}

/* As few bytes as hold a place in a window: many are compared. */
static tn_dtype dtype_of_places(const tn__pooling *p)
{
    double places = 1;
    for (int i = 0; i < p->axes; i++)
        places *= (double)p->window[i].extent;
    return places < INT32_MAX ? TN_INT32 : TN_INT64;
}

tn__node *tn__pooling_gradient(const tn__node *pooled, tn__node *g)
{
    tn__node *x = pooled->in[1], *windows = pooled->in[2], *chosen = NULL;
    const int64_t *list = pooled->attr.ints->v;
    tn__pooling p = {.axes = x->shape->ndim - 2};
    for (int i = 0; i < p.axes; i++) {
        const int64_t *v = &list[1 + INTS * i];
        p.window[i] = (tn__window_axis){2 + i, v[0], v[1], v[2]};
        p.pad[i] = v[3];
        p.extent[i] = x->shape->dim[2 + i];
        p.count[i] = pooled->shape->dim[2 + i];
        p.reached[i] = (p.count[i] - 1) * v[1] + covered_by(&p.window[i]);
    }
    if (list[0] && windows->shape->size) {
        uint32_t places = tn__pooling_places(&p);
        chosen = tn__cast(tn__reduce(TN__OP_ARGMAX, windows, places), dtype_of_places(&p));
        chosen = tn__drop_axes(chosen, places);
    }
    return tn__pooling_cover(g, chosen, &p);
}

/* ---- what each element asks ---- */

/*
 * Along an axis, element i is place r of block A of `step` elements: i = A step + r. It is in window a if i + pad is
 * a step + k spread for a place k. With pad = ahead step - behind, 0 <= behind < step, and a = A + ahead - m, that is
 * k spread = m step + r - behind, whatever A is; of m there are 0 to most - 1.
 */
typedef struct asking {
    int64_t step, blocks, ahead, behind, most;
    bool under, over; /* k may come out as less than 0, or as more than there are places */
} asking;

static asking asking_of(const tn__pooling *p, int i)
{
    const tn__window_axis *w = &p->window[i];
    asking q = {.step = w->step, .blocks = (p->extent[i] - 1) / w->step + 1};
    q.ahead = (p->pad[i] + w->step - 1) / w->step;
    q.behind = q.ahead * w->step - p->pad[i];
    q.most = (covered_by(w) - 1 + q.behind) / w->step + 1;
    q.under = q.behind > 0;
    q.over = q.most * w->step - q.behind > w->extent;
    return q;
}

/* Values of windows (rows, windows...) as (rows, A, .., r, .., m, .., last A), m counting down: of one or two axes. */
static tn__node *asked(tn__node *g, const asking *q, int axes, double fill)
{
    TN__PASS_ERROR(g);
    int64_t start[TN_MAX_NDIM] = {0}, dim[TN_MAX_NDIM] = {g->shape->dim[0]};
    tn__window_axis window[2];
    for (int i = 0; i < axes; i++) {
        start[1 + i] = q[i].ahead - (q[i].most - 1);
        dim[1 + i] = q[i].blocks + q[i].most - 1;
        window[i] = (tn__window_axis){1 + i, q[i].most, 1, 1};
    }
    g = tn__windows(tn__framed(g, start, dim, fill), axes, window);
    TN__PASS_ERROR(g);
    uint8_t perm[TN_MAX_NDIM] = {0};
    int n = 1, d = 1;
    for (int i = 0; i + 1 < axes; i++)
        perm[n++] = (uint8_t)(1 + i);
    for (int i = 0; i < axes; i++)
        perm[n++] = (uint8_t)(1 + axes + i);
    perm[n] = (uint8_t)axes;
    for (int i = 0; i + 1 < axes; i++)
        dim[d++] = q[i].blocks;
    for (int i = 0; i < axes; i++)
        dim[d++] = 1;
    for (int i = 0; i < axes; i++)
        dim[d++] = q[i].most;
    dim[d++] = q[axes - 1].blocks;
    return tn__reshape(tn__permute(g, perm), d, dim);
}

static void also(tn__node **has, tn__node *condition)
{
    *has = *has ? tn__binary(TN__OP_LOGICAL_AND, *has, condition) : condition;
}

/* The place that an element has in the window asked, along all axes in C order, for each r and m; in *has, whether it
 * has one, or NULL: all have. */
static tn__node *place_asked(const tn__pooling *p, const asking *q, tn__device *device, tn__node **has)
{
    int axes = p->axes;
    *has = NULL;
    tn_shape value = {.ndim = 3 * axes + 1};
    for (int d = 0; d < value.ndim; d++)
        value.dim[d] = d < axes || d == 3 * axes ? 1 : d < 2 * axes ? q[d - axes].step : q[d - 2 * axes].most;
    const tn__shape *shape = tn__shape_make("pool", value, TN_INT64);
    if (!shape)
        return tn__failed();
    tn__node *place = NULL;
    for (int i = 0; i < axes; i++) {
        const tn__window_axis *w = &p->window[i];
        tn__node *less = tn__with(TN__OP_MULTIPLY, tn__iota(shape, 2 * axes + i, device), (double)w->step);
        tn__node *k = tn__binary(TN__OP_SUBTRACT, tn__iota(shape, axes + i, device), less);
        k = tn__with(TN__OP_ADD, k, (double)((q[i].most - 1) * w->step - q[i].behind));
        if (w->spread > 1) {
            also(has, tn__with(TN__OP_EQUAL, tn__with(TN__OP_REMAINDER, k, (double)w->spread), 0));
            k = tn__with(TN__OP_FLOOR_DIVIDE, k, (double)w->spread);
        }
        if (q[i].under)
            also(has, tn__with(TN__OP_GREATER_EQUAL, k, 0));
        if (q[i].over)
            also(has, tn__with(TN__OP_LESS, k, (double)w->extent));
        place = place ? tn__binary(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, place, (double)w->extent), k) : k;
    }
    return place;
}

/* (rows, A, .., r, .., last A) as (rows, extents...). */
static tn__node *in_order(tn__node *y, const tn__pooling *p, const asking *q)
{
    TN__PASS_ERROR(y);
    uint8_t perm[TN_MAX_NDIM] = {0};
    int64_t dim[TN_MAX_NDIM], start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM] = {1};
    int axes = p->axes;
    dim[0] = y->shape->dim[0];
    for (int i = 0; i < axes; i++) {
        perm[1 + 2 * i] = (uint8_t)(i + 1 < axes ? 1 + i : 2 * axes);
        perm[2 + 2 * i] = (uint8_t)(axes + i);
        dim[1 + i] = q[i].blocks * q[i].step;
        step[1 + i] = 1;
    }
    y = tn__reshape(tn__permute(y, perm), 1 + axes, dim);
    TN__PASS_ERROR(y);
    memcpy(&dim[1], p->extent, sizeof *dim * (size_t)axes);
    return tn__slice_node(y, start, step, dim);
}

/* Of one or two axes: g and chosen are (rows, windows...). */
static tn__node *cover(tn__node *g, tn__node *chosen, const tn__pooling *p)
{
    TN__PASS_ERROR(g);
    asking q[2];
    uint32_t asks = 0;
    for (int i = 0; i < p->axes; i++) {
        q[i] = asking_of(p, i);
        asks |= 1u << (2 * p->axes + i);
    }
    tn__node *has, *place = place_asked(p, q, g->device, &has), *y = asked(g, q, p->axes, 0);
    TN__PASS_ERROR(y);
    if (chosen) {
        place = has ? tn__where(has, place, tn__const_like(place, NO_PLACE)) : place;
        place = tn__cast(place, (tn_dtype)chosen->dtype);
        chosen = asked(chosen, q, p->axes, NOT_CHOSEN);
        y = tn__where(tn__binary(TN__OP_EQUAL, chosen, place), y, tn__const_like(y, 0));
    } else if (has) {
        y = tn__where(has, y, tn__const_like(y, 0));
    }
    y = tn__drop_axes(tn__reduce(TN__OP_SUM, y, asks), asks);
    TN__PASS_ERROR(y);
    tn_shape whole = tn__shape_value(y->shape);
    for (int i = 0; i < p->axes; i++)
        whole.dim[p->axes + i] = q[i].step;
    const tn__shape *shape = tn__shape_make("pool", whole, (tn_dtype)y->dtype);
    return shape ? in_order(tn__expand(y, shape), p, q) : tn__failed();
}

/* Values of windows (N, channels, windows...) as those of each place along the first axis, which `chosen` are counted
 * from: (N channels windows, places, windows of the other two). */
static tn__node *each_place(tn__node *v, const tn__pooling *p, bool counted)
{
    TN__PASS_ERROR(v);
    int64_t taps = p->window[0].extent, rows = v->shape->dim[0] * v->shape->dim[1] * p->count[0];
    tn_shape wide = {4, {rows, taps, p->count[1], p->count[2]}};
    const tn__shape *shape = tn__shape_make("pool", wide, (tn_dtype)v->dtype);
    if (!shape)
        return tn__failed();
    v = tn__expand(tn__reshape(v, 4, (int64_t[]){rows, 1, p->count[1], p->count[2]}), shape);
    if (!counted)
        return v;
    double apart = (double)p->window[1].extent * (double)p->window[2].extent;
    tn__node *first = tn__with(TN__OP_MULTIPLY, tn__iota(shape, 1, v->device), apart);
    v = tn__binary(TN__OP_SUBTRACT, v, tn__cast(first, (tn_dtype)v->dtype));
    return tn__with(TN__OP_MAXIMUM, v, NOT_CHOSEN);
}

/* Of three axes: the first one is folded, as a cover of it and the others has more axes than arrays may have. */
static tn__node *cover_behind(tn__node *g, tn__node *chosen, const tn__pooling *p)
{
    int64_t n = g->shape->dim[0], channels = g->shape->dim[1];
    tn__pooling behind = {.axes = 2}, first = {.axes = 1};
    for (int i = 0; i < 3; i++) {
        tn__pooling *part = i ? &behind : &first;
        int at = i ? i - 1 : 0;
        part->extent[at] = p->extent[i];
        part->count[at] = p->count[i];
        part->pad[at] = p->pad[i];
        part->reached[at] = p->reached[i];
        part->window[at] = p->window[i];
    }
    tn__node *y = tn__pooling_cover(each_place(g, p, false), chosen ? each_place(chosen, p, true) : NULL, &behind);
    int64_t around_first = n * channels, others = p->extent[1] * p->extent[2];
    y = tn__reshape(y, 4, (int64_t[]){around_first, p->count[0], p->window[0].extent, others});
    y = tn__permute(y, (uint8_t[TN_MAX_NDIM]){0, 3, 1, 2});
    y = tn__pooling_fold(y, &first);
    y = tn__permute(y, (uint8_t[TN_MAX_NDIM]){0, 2, 1});
    return tn__reshape(y, 5, (int64_t[]){n, channels, p->extent[0], p->extent[1], p->extent[2]});
}

tn__node *tn__pooling_cover(tn__node *g, tn__node *chosen, const tn__pooling *p)
{
    TN__PASS_ERROR(g);
    if (chosen)
        TN__PASS_ERROR(chosen);
    int64_t dim[TN_MAX_NDIM] = {g->shape->dim[0], g->shape->dim[1]}, flat[TN_MAX_NDIM] = {dim[0] * dim[1]};
    memcpy(&dim[2], p->extent, sizeof *dim * (size_t)p->axes);
    memcpy(&flat[1], p->count, sizeof *flat * (size_t)p->axes);
    if (g->shape->size == 0) {
        tn_shape none = {.ndim = 2 + p->axes};
        memcpy(none.dim, dim, sizeof dim);
        const tn__shape *shape = tn__shape_make("pool", none, (tn_dtype)g->dtype);
        return shape ? tn__made_of_none(tn__const(0, (tn_dtype)g->dtype, shape, g->device), g) : tn__failed();
    }
    if (p->axes == TN__POOLED_AXES)
        return cover_behind(g, chosen, p);
    tn__node *y = cover(tn__reshape(g, 1 + p->axes, flat), chosen ? tn__reshape(chosen, 1 + p->axes, flat) : NULL, p);
    return tn__reshape(y, 2 + p->axes, dim);
}
