/* SPDX-License-Identifier: MIT */
/*
 * Other extents: interpolation, an axis at a time, as sums of few gathered elements with weights; and what is done to
 * channels. Places are PyTorch's.
 */
#include "array/build_parts.h"
#include "core/options.h"
#include "nn/functions.h"
#include "nn/pool.h"

#include <inttypes.h>
#include <string.h>

#define with(op, a, b) tn__with(TN__OP_##op, a, b)
#define both(op, a, b) tn__binary(TN__OP_##op, a, b)

typedef enum mode { NEAREST, LINEAR, CUBIC, AREA, MODES } mode;

/* Places along an axis of n elements, of which m are wanted. */
typedef struct places {
    int axis;
    int64_t n;
    tn__node *at;    /* float64: where each is */
    tn__node *whole; /* int64: the element there or before */
    tn__node *part;  /* how far behind that it is, in the dtype of weights */
} places;

static bool find(places *p, tn__node *x, int axis, int64_t m, mode how, bool corners)
{
    tn_shape value = {.ndim = x->shape->ndim};
    for (int d = 0; d < value.ndim; d++)
        value.dim[d] = d == axis ? m : 1;
    const tn__shape *shape = tn__shape_make("interpolate", value, TN_FLOAT64);
    if (!shape)
        return false;
    p->axis = axis;
    p->n = x->shape->dim[axis];
    tn__node *i = tn__iota(shape, axis, x->device);
    if (how == NEAREST) {
        p->whole = with(FLOOR_DIVIDE, with(MULTIPLY, i, (double)p->n), (double)m);
        return true;
    }
    i = tn__cast(i, TN_FLOAT64);
    if (corners)
        p->at = with(MULTIPLY, i, m > 1 ? (double)(p->n - 1) / (double)(m - 1) : 0);
    else
        p->at = with(SUBTRACT, with(MULTIPLY, with(ADD, i, 0.5), (double)p->n / (double)m), 0.5);
    if (how == LINEAR)
        p->at = with(MAXIMUM, p->at, 0);
    tn__node *below = tn__unary(TN__OP_FLOOR, p->at);
    p->whole = tn__cast(below, TN_INT64);
    p->part = tn__cast(both(SUBTRACT, p->at, below), (tn_dtype)x->dtype);
    return true;
}

/* The element `ahead` of the whole place, at the edge where there is none. */
static tn__node *tap(tn__node *x, const places *p, int ahead)
{
    tn__node *place = with(MINIMUM, with(MAXIMUM, with(ADD, p->whole, ahead), 0), (double)(p->n - 1));
    return tn__gather_known(x, place, p->axis, p->n);
}

static tn__node *linear(tn__node *x, const places *p)
{
    tn__node *a = tap(x, p, 0), *b = tap(x, p, 1);
    tn__node *rest = tn__binary(TN__OP_SUBTRACT, tn__const_like(p->part, 1), p->part);
    return both(ADD, both(MULTIPLY, a, rest), both(MULTIPLY, b, p->part));
}

tn__node *tn__cubic_weight(tn__node *d, bool near)
{
    const double a = -0.75, of[2][4] = {{a, -5 * a, 8 * a, -4 * a}, {a + 2, -(a + 3), 0, 1}};
    tn__node *sum = with(MULTIPLY, d, of[near][0]);
    for (int i = 1; i < 3; i++)
        sum = both(MULTIPLY, with(ADD, sum, of[near][i]), d);
    return with(ADD, sum, of[near][3]);
}

static tn__node *cubic(tn__node *x, const places *p)
{
    tn__node *sum = NULL, *rest = tn__binary(TN__OP_SUBTRACT, tn__const_like(p->part, 1), p->part);
    tn__node *const distance[] = {with(ADD, p->part, 1), p->part, rest, with(ADD, rest, 1)};
    for (int i = 0; i < 4; i++) {
        tn__node *term = both(MULTIPLY, tap(x, p, i - 1), tn__cubic_weight(distance[i], i == 1 || i == 2));
        sum = sum ? both(ADD, sum, term) : term;
    }
    return sum;
}

static tn__node *interpolate(tn__node *x, tn_shape out, const tn_interpolate_opts *opts)
{
    static const char name[] = "interpolate", *const modes[] = {"nearest", "linear", "cubic", "area"};
    static const tn_interpolate_opts none;
    opts = opts ? opts : &none;
    int how = 0;
    while (opts->mode && how < MODES && strcmp(opts->mode, modes[how]) != 0)
        how++;
    if (how == MODES)
        TN__REFUSE(TN_ERR_NAME, name, "no mode '%s'; there are nearest, linear, cubic, area", opts->mode);
    if (opts->align_corners && how != LINEAR && how != CUBIC)
        TN__REFUSE(TN_ERR_VALUE, name, "align_corners is of the modes linear and cubic; got it with %s", modes[how]);
    if (how == AREA)
        return tn__adaptive_pool(name, x, out, false);
    x = tn__pooled_operand(name, x);
    TN__PASS_ERROR(x);
    int64_t extent[TN__POOLED_AXES];
    int axes = x->shape->ndim - 2;
    if (out.ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, name, "expected the result's extents, got none: TN_SHAPE(2), say");
    if (!tn__extents_of(name, "extent of the result", out, axes, 1, 1, extent))
        return tn__failed();
    tn__node *y = how == NEAREST ? x : tn__widened(x);
    for (int i = 0; i < axes; i++) {
        places p;
        if (x->shape->dim[2 + i] == 0)
            TN__REFUSE(TN_ERR_SHAPE, name, "axis %d has extent 0: there is nothing between", 2 + i);
        if (!find(&p, y, 2 + i, extent[i], (mode)how, opts->align_corners))
            return tn__failed();
        y = how == NEAREST ? tap(y, &p, 0) : how == LINEAR ? linear(y, &p) : cubic(y, &p);
        TN__PASS_ERROR(y);
    }
    return tn__cast(y, (tn_dtype)x->dtype);
}

tn_array *tn_interpolate_with(const tn_array *x, tn_shape out, const tn_interpolate_opts *opts)
{
    TN__RETURN(interpolate(tn__node_of(x, "interpolate"), out, opts));
}

/* ---- channels ---- */

/* Blocks of r x r elements of a channel as so many channels, or back. */
static tn__node *blocks(const char *name, tn__node *x, int64_t r, const tn_depth_opts *opts, bool to_space)
{
    static const uint8_t order[2][2][TN_MAX_NDIM] = {{{0, 1, 3, 5, 2, 4}, {0, 3, 5, 1, 2, 4}},
                                                     {{0, 1, 4, 2, 5, 3}, {0, 3, 4, 1, 5, 2}}};
    TN__PASS_ERROR(x);
    x = tn__strong(x);
    TN__PASS_ERROR(x);
    char text[TN__SHAPE_TEXT];
    const int64_t *dim = x->shape->dim;
    bool fits = x->shape->ndim == 4 && r > 0 && r < (1 << 15) &&
                (to_space ? dim[1] % (r * r) == 0 : dim[2] % r == 0 && dim[3] % r == 0);
    if (!fits)
        TN__REFUSE(TN_ERR_SHAPE, name,
                   "expected (N, channels, height, width) with %s, of r = %" PRId64 "; got shape %s",
                   to_space ? "r r dividing the channels" : "r dividing height and width", r,
                   tn__shape_text(x->shape->ndim, dim, text));
    bool first = opts && opts->depth_first;
    int64_t c = to_space ? dim[1] / (r * r) : dim[1], h = to_space ? dim[2] : dim[2] / r,
            w = to_space ? dim[3] : dim[3] / r;
    const int64_t apart[2][2][6] = {{{dim[0], c, h, r, w, r}, {dim[0], c, h, r, w, r}},
                                    {{dim[0], c, r, r, h, w}, {dim[0], r, r, c, h, w}}};
    x = tn__permute(tn__reshape(x, 6, apart[to_space][first]), order[to_space][first]);
    return to_space ? tn__reshape(x, 4, (int64_t[]){dim[0], c, h * r, w * r})
                    : tn__reshape(x, 4, (int64_t[]){dim[0], c * r * r, h, w});
}

tn_array *tn_depth_to_space_with(const tn_array *x, int64_t r, const tn_depth_opts *opts)
{
    TN__RETURN(blocks("depth_to_space", tn__node_of(x, "depth_to_space"), r, opts, true));
}

tn_array *tn_space_to_depth_with(const tn_array *x, int64_t r, const tn_depth_opts *opts)
{
    TN__RETURN(blocks("space_to_depth", tn__node_of(x, "space_to_depth"), r, opts, false));
}

static tn__node *response(tn__node *x, const tn_response_opts *opts)
{
    static const char name[] = "local_response_norm";
    int64_t size = TN__OPTION(opts, size, 5);
    TN__PASS_ERROR(x);
    x = tn__strong(x);
    TN__PASS_ERROR(x);
    if (x->shape->ndim < 2 || x->shape->ndim == TN_MAX_NDIM || !tn_dtype_is_float((tn_dtype)x->dtype) || size < 1 ||
        size > INT32_MAX)
        TN__REFUSE(TN_ERR_VALUE, name,
                   "expected a floating (N, channels, ...) of 2 to %d axes and a size of 1 or more; got %s of %d axes, "
                   "%" PRId64,
                   TN_MAX_NDIM - 1, tn_dtype_name((tn_dtype)x->dtype), x->shape->ndim, size);
    tn__node *wide = tn__widened(x);
    int64_t start[TN_MAX_NDIM] = {0}, dim[TN_MAX_NDIM];
    int last = x->shape->ndim;
    memcpy(dim, x->shape->dim, sizeof dim);
    start[1] = -(size / 2);
    dim[1] += size - 1;
    if (x->shape->size == 0)
        return x;
    tn__node *squares = tn__framed(tn__unary(TN__OP_SQUARE, wide), start, dim, 0);
    squares = tn__windows(squares, 1, &(tn__window_axis){1, size, 1, 1});
    tn__node *sum = tn__drop_axes(tn__reduce(TN__OP_SUM, squares, 1u << last), 1u << last);
    TN__PASS_ERROR(sum);
    sum = with(ADD, with(MULTIPLY, sum, TN__OPTION(opts, alpha, 1e-4)), TN__OPTION(opts, k, 2));
    tn__node *y = both(MULTIPLY, wide, with(POWER, sum, -TN__OPTION(opts, beta, 0.75)));
    return tn__node_is_error(y) ? y : tn__cast(y, (tn_dtype)x->dtype);
}

tn_array *tn_local_response_norm_with(const tn_array *x, const tn_response_opts *opts)
{
    TN__RETURN(response(tn__node_of(x, "local_response_norm"), opts));
}
