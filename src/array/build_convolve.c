/* SPDX-License-Identifier: MIT */
/*
 * Convolutions composed of windows and matrix products: windows of the data become the columns of a matrix, which the
 * weights, a matrix of a row a channel, are multiplied by. Between them there are no other loops than those of a copy.
 */
#include "array/build_convolve.h"

#include <string.h>

#include "array/build_parts.h"
#include "array/build_window.h"

/* ---- extents ---- */

typedef struct layout {
    const tn__convolution *c;
    int axes;
    int64_t n, in, out, groups;
    int64_t places, taps;          /* of a result, of a window: products of extents */
    const int64_t *result, *taken; /* these extents */
    tn__window_axis window[TN__CONVOLVED_AXES];
} layout;

static int64_t product(int count, const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < count; i++)
        n *= extent[i];
    return n;
}

static layout lay_out(const tn__convolution *c, const tn__shape *x, const tn__shape *w, const tn__shape *y)
{
    layout l = {.c = c, .axes = c->axes, .n = x->dim[0], .in = x->dim[1], .out = y->dim[1], .groups = c->groups,
                .result = &y->dim[2], .taken = &w->dim[2]};
    l.places = product(l.axes, l.result);
    l.taps = product(l.axes, l.taken);
    for (int i = 0; i < l.axes; i++)
        l.window[i] = (tn__window_axis){2 + i, l.taken[i], c->axis[i].step, c->axis[i].spread};
    return l;
}

/* Elements along axis i of the data that windows reach over. */
static int64_t reach(const layout *l, int i)
{
    return (l->result[i] - 1) * l->c->axis[i].step + (l->taken[i] - 1) * l->c->axis[i].spread + 1;
}

/* A channel of its own for each result: nothing is to be multiplied as matrices. */
static bool is_depthwise(const layout *l) { return l->groups == l->in && l->groups == l->out && l->groups > 1; }

/* ---- the parts ---- */

/* (N, in, places..., taps...) of the data. */
static tn__node *windows_of(tn__node *x, const layout *l)
{
    int64_t start[TN_MAX_NDIM] = {0}, dim[TN_MAX_NDIM] = {l->n, l->in};
    for (int i = 0; i < l->axes; i++) {
        start[2 + i] = -l->c->axis[i].pad;
        dim[2 + i] = reach(l, i);
    }
    return tn__windows(tn__framed(x, start, dim, 0), l->axes, l->window);
}

/* The data of such windows' sums. */
static tn__node *data_of(tn__node *windows, const layout *l, const tn__shape *shape)
{
    int64_t start[TN_MAX_NDIM] = {0};
    tn_shape value = tn__shape_value(shape);
    for (int i = 0; i < l->axes; i++) {
        start[2 + i] = l->c->axis[i].pad;
        value.dim[2 + i] = reach(l, i);
    }
    TN__PASS_ERROR(windows);
    const tn__shape *reached = tn__shape_make("conv", value, (tn_dtype)windows->dtype);
    return reached ? tn__framed(tn__fold(windows, l->axes, l->window, reached), start, shape->dim, 0) : tn__failed();
}

/* A matrix a group: (groups, rows, columns), or one without that axis. */
static tn__node *matrices(tn__node *a, const layout *l, int64_t rows, int64_t columns)
{
    TN__PASS_ERROR(a);
    if (l->groups == 1)
        return tn__reshape(a, 2, (int64_t[]){rows, columns});
    return tn__reshape(a, 3, (int64_t[]){l->groups, rows / l->groups, columns});
}

/* (in taps, N places): a column is a window. */
static tn__node *columns_of(tn__node *x, const layout *l)
{
    uint8_t perm[TN_MAX_NDIM] = {1};
    int axes = l->axes;
    for (int i = 0; i < axes; i++) {
        perm[1 + i] = (uint8_t)(2 + axes + i);
        perm[2 + axes + i] = (uint8_t)(2 + i);
    }
    perm[1 + axes] = 0;
    tn__node *windows = windows_of(x, l);
    TN__PASS_ERROR(windows);
    return matrices(tn__permute(windows, perm), l, l->in * l->taps, l->n * l->places);
}

/* (out, N places) of a result; and back. */
static tn__node *swapped(tn__node *a)
{
    TN__PASS_ERROR(a);
    uint8_t perm[TN_MAX_NDIM];
    for (int i = 0; i < TN_MAX_NDIM; i++)
        perm[i] = (uint8_t)i;
    perm[0] = 1;
    perm[1] = 0;
    return tn__permute(a, perm);
}
static tn__node *rows_of(tn__node *y, const layout *l)
{
    return matrices(swapped(y), l, l->out, l->n * l->places);
}
static tn__node *result_of(tn__node *rows, const layout *l, const tn__shape *shape)
{
    TN__PASS_ERROR(rows);
    int64_t dim[TN_MAX_NDIM] = {l->out, l->n};
    memcpy(&dim[2], &shape->dim[2], sizeof *dim * (size_t)l->axes);
    return swapped(tn__reshape(rows, shape->ndim, dim));
}

static tn__node *weights_of(tn__node *w, const layout *l)
{
    return matrices(w, l, l->out, l->in / l->groups * l->taps);
}

/* (N, channels, places..., taps...) have such shapes with axes of extent 1: the taps of weights, the places of a
 * result. */
static tn__node *taps_beside(tn__node *w, const layout *l)
{
    int64_t dim[TN_MAX_NDIM] = {1, l->out, 1, 1, 1};
    memcpy(&dim[2 + l->axes], l->taken, sizeof *dim * (size_t)l->axes);
    return tn__reshape(w, 2 + 2 * l->axes, dim);
}
static tn__node *places_beside(tn__node *y, const layout *l)
{
    int64_t dim[TN_MAX_NDIM] = {l->n, l->out, 1, 1, 1, 1, 1, 1};
    memcpy(&dim[2], l->result, sizeof *dim * (size_t)l->axes);
    return tn__reshape(y, 2 + 2 * l->axes, dim);
}

static uint32_t taps_set(const layout *l) { return ((1u << l->axes) - 1) << (2 + l->axes); }
static uint32_t places_set(const layout *l) { return ((1u << l->axes) - 1) << 2 | 1; }

static tn__node *times(tn__node *a, tn__node *b) { return tn__binary(TN__OP_MULTIPLY, a, b); }

static tn__node *wide(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn__cast(a, (tn_dtype)tn__dtypes[a->dtype].compute);
}

/* ---- the three operations, without their gradients ---- */

static tn__node *value(tn__node *x, tn__node *w, const layout *l, const tn__shape *shape)
{
    if (is_depthwise(l)) {
        tn__node *y = times(windows_of(wide(x), l), taps_beside(wide(w), l));
        return tn__reshape_like(tn__reduce(TN__OP_SUM, y, taps_set(l)), shape);
    }
    return result_of(tn__matmul_node(weights_of(w, l), columns_of(x, l)), l, shape);
}

/* As a convolution with the weights flipped, for steps of 1: no sum is rounded on its way. */
static tn__node *data_by_flipped(tn__node *g, tn__node *w, const layout *l, const tn__shape *shape)
{
    int64_t start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM] = {1, 1}, per = l->in / l->groups;
    tn__convolution back = *l->c;
    for (int i = 0; i < l->axes; i++) {
        start[2 + i] = l->taken[i] - 1;
        step[2 + i] = -1;
        back.axis[i].pad = (l->taken[i] - 1) * l->c->axis[i].spread - l->c->axis[i].pad;
    }
    tn__node *flipped = tn__slice_node(w, start, step, w->shape->dim);
    int64_t dim[TN_MAX_NDIM] = {l->groups, l->out / l->groups, per, l->taps};
    flipped = tn__permute(tn__reshape(flipped, 4, dim), (uint8_t[TN_MAX_NDIM]){0, 2, 1, 3});
    int64_t last[TN_MAX_NDIM] = {l->in, l->out / l->groups};
    memcpy(&last[2], l->taken, sizeof *last * (size_t)l->axes);
    flipped = tn__reshape(flipped, 2 + l->axes, last);
    TN__PASS_ERROR(flipped);
    layout flipped_layout = lay_out(&back, g->shape, flipped->shape, shape);
    return value(g, flipped, &flipped_layout, shape);
}

/* The other way copies windows of the data about FOLDING times, this one windows of the result once. */
#define FOLDING 3
static bool is_flipped(const layout *l, const tn__shape *shape)
{
    for (int i = 0; i < l->axes; i++)
        if (l->c->axis[i].step != 1)
            return false;
    return (double)l->out * (double)product(l->axes, &shape->dim[2]) <= FOLDING * (double)l->in * (double)l->places;
}

static tn__node *data(tn__node *g, tn__node *w, const layout *l, const tn__shape *shape)
{
    if (is_flipped(l, shape))
        return data_by_flipped(g, w, l, shape);
    if (is_depthwise(l))
        return data_of(times(places_beside(wide(g), l), taps_beside(wide(w), l)), l, shape);
    tn__node *columns = tn__matmul_node(tn__swap_last(weights_of(wide(w), l)), rows_of(wide(g), l));
    int64_t dim[TN_MAX_NDIM] = {l->in};
    uint8_t perm[TN_MAX_NDIM] = {(uint8_t)(1 + l->axes)};
    dim[1 + l->axes] = l->n;
    for (int i = 0; i < l->axes; i++) {
        dim[1 + i] = l->taken[i];
        dim[2 + l->axes + i] = l->result[i];
        perm[2 + i] = (uint8_t)(2 + l->axes + i);
        perm[2 + l->axes + i] = (uint8_t)(1 + i);
    }
    columns = tn__reshape(columns, 2 + 2 * l->axes, dim);
    TN__PASS_ERROR(columns);
    return data_of(tn__permute(columns, perm), l, shape);
}

static tn__node *weights(tn__node *x, tn__node *g, const layout *l, const tn__shape *shape)
{
    if (is_depthwise(l)) {
        tn__node *y = times(windows_of(wide(x), l), places_beside(wide(g), l));
        return tn__reshape_like(tn__reduce(TN__OP_SUM, y, places_set(l)), shape);
    }
    return tn__reshape_like(tn__matmul_node(rows_of(g, l), tn__swap_last(columns_of(x, l))), shape);
}

/* ---- with them ---- */

void tn__convolution_of(const tn__node *node, tn__convolution *c)
{
    const int64_t *v = node->attr.ints->v;
    *c = (tn__convolution){.axes = (node->attr.ints->count - 1) / 3, .groups = v[0]};
    for (int i = 0; i < c->axes; i++) {
        c->axis[i].step = v[1 + 3 * i];
        c->axis[i].spread = v[2 + 3 * i];
        c->axis[i].pad = v[3 + 3 * i];
    }
}

typedef tn__node *(*composer)(tn__node *a, tn__node *b, const layout *l, const tn__shape *shape);

/* The value has no part in backward, which would keep its windows. */
static tn__node *tied(tn__op op, composer compose, tn__node *a, tn__node *b, const layout *l, const tn__shape *shape)
{
    int64_t list[1 + 3 * TN__CONVOLVED_AXES] = {l->c->groups};
    memcpy(&list[1], l->c->axis, sizeof *list * 3 * (size_t)l->axes);
    const tn__ints *ints = tn__ints_intern(1 + 3 * l->axes, list);
    if (!ints) {
        tn__fail_memory(tn__ops[op].name, sizeof list);
        return tn__failed();
    }
    tn_dtype dtype = (tn_dtype)a->dtype;
    tn__no_grad_depth++;
    tn__node *y = shape->size == 0 || a->shape->size == 0 || b->shape->size == 0
                      ? tn__const(0, dtype, shape, a->device)
                      : tn__cast(compose(a, b, l, shape), dtype);
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    return tn__node_new(op, dtype, shape, y->device, 3, (tn__node *[]){y, a, b}, (tn__attr){.ints = ints});
}

tn__node *tn__convolve(tn__node *x, tn__node *w, const tn__convolution *c, const tn__shape *shape)
{
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(w);
    layout l = lay_out(c, x->shape, w->shape, shape);
    return tied(TN__OP_CONV, value, x, w, &l, shape);
}

tn__node *tn__convolve_data(tn__node *g, tn__node *w, const tn__convolution *c, const tn__shape *shape)
{
    TN__PASS_ERROR(g);
    TN__PASS_ERROR(w);
    layout l = lay_out(c, shape, w->shape, g->shape);
    return tied(TN__OP_CONV_DATA, data, g, w, &l, shape);
}

tn__node *tn__convolve_weights(tn__node *x, tn__node *g, const tn__convolution *c, const tn__shape *shape)
{
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(g);
    layout l = lay_out(c, x->shape, shape, g->shape);
    return tied(TN__OP_CONV_WEIGHTS, weights, x, g, &l, shape);
}
