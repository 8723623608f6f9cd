/* SPDX-License-Identifier: MIT */
/*
 * Samples at places that an array gives (spatial transformers, Jaderberg et al. 2015): sums of few gathered elements
 * with weights that are functions of the places, through which the gradient reaches these. Places are PyTorch's.
 */
#include "core/options.h"
#include "nn/pool.h"
#include "nn/terms.h"

#include <inttypes.h>
#include <string.h>

#define MOST_TAPS 4

typedef enum mode { LINEAR, NEAREST, CUBIC, MODES } mode;
typedef enum beyond { ZEROS, BORDER, REFLECT, BEYONDS } beyond;

static const char *const mode_names[MODES] = {"linear", "nearest", "cubic"};
static const char *const beyond_names[BEYONDS] = {"zeros", "border", "reflect"};

/* One call: where along an axis of n elements, and how what lies beyond it is seen. */
typedef struct line {
    int64_t n;
    mode how;
    beyond outside;
    bool corners;
} line;

/* The elements that a sample is made of along an axis: int64 places in it and weights. */
typedef struct taps {
    int count;
    tn__node *place[MOST_TAPS], *weight[MOST_TAPS];
} taps;

/* -1 and 1 are the first and last elements, or, without `corners`, their outer edges. */
static tn__node *in_elements(const line *l, tn__node *g)
{
    double n = (double)l->n;
    return l->corners ? times(plus(g, 1), (n - 1) / 2) : plus(times(plus(g, 1), n / 2), -0.5);
}

/* A place beyond the ends moved to the nearest end, or mirrored there as often as it takes. */
static tn__node *moved_inside(const line *l, tn__node *at)
{
    double n = (double)l->n, low = l->corners ? 0 : -0.5, span = l->corners ? n - 1 : n;
    if (l->outside == REFLECT && span > 0) {
        tn__node *wrapped = with(REMAINDER, plus(at, -low), 2 * span);
        at = plus(less_from(span, map(ABS, less_from(span, wrapped))), low);
    }
    return l->outside == ZEROS ? at : tn__between(at, 0, n - 1);
}

/* One tap at a whole place, of that weight; beyond the ends it counts for nothing. */
static void add_tap(taps *t, const line *l, tn__node *place, tn__node *weight)
{
    double last = (double)(l->n - 1);
    tn__node *inside = map2(LOGICAL_AND, with(GREATER_EQUAL, place, 0), with(LESS_EQUAL, place, last));
    t->place[t->count] = tn__cast(with(MINIMUM, with(MAXIMUM, place, 0), last), TN_INT64);
    t->weight[t->count++] = weight ? tn__only_where(inside, weight) : inside;
}

static taps taps_at(const line *l, tn__node *g)
{
    taps t = {0};
    tn__node *at = in_elements(l, g);
    if (l->how != CUBIC)
        at = moved_inside(l, at);
    if (l->how == NEAREST) {
        add_tap(&t, l, map(RINT, at), NULL);
        return t;
    }
    tn__node *below = map(FLOOR, at), *part = sub(at, below);
    if (l->how == LINEAR) {
        add_tap(&t, l, below, less_from(1, part));
        add_tap(&t, l, plus(below, 1), part);
        return t;
    }
    for (int i = -1; i <= 2; i++)
        add_tap(&t, l, moved_inside(l, plus(below, i)), tn__cubic_weight(i < 1 ? plus(part, -i) : less_from(i, part),
                                                                         i == 0 || i == 1));
    return t;
}

/* The sum over all combinations of the axes' taps: y (N, channels, places). */
static tn__node *gathered(tn__node *x, int axes, const taps *t, const int64_t *extent)
{
    tn__node *sum = NULL;
    int many = 1;
    for (int i = 0; i < axes; i++)
        many *= t[i].count;
    for (int k = 0; k < many; k++) {
        tn__node *place = NULL, *weight = NULL;
        for (int i = 0, rest = k; i < axes; rest /= t[i++].count) {
            const int which = rest % t[i].count;
            place = place ? add(times(place, (double)extent[i]), t[i].place[which]) : t[i].place[which];
            weight = !weight                      ? t[i].weight[which]
                     : weight->dtype == TN_BOOL ? map2(LOGICAL_AND, weight, t[i].weight[which])
                                                : mul(weight, t[i].weight[which]);
            tn__node *error = tn__first_error(2, (tn__node *[]){place, weight});
            if (error)
                return error;
        }
        tn__node *value = tn__gather_known(x, place, 2, x->shape->dim[2]);
        value = weight->dtype == TN_BOOL ? tn__only_where(weight, value)
                                         : mul(value, tn__cast(weight, (tn_dtype)x->dtype));
        sum = sum ? add(sum, value) : value;
    }
    return sum;
}

static int named(const char *name, const char *given, int count, const char *const *names)
{
    int which = 0;
    while (given && which < count && strcmp(given, names[which]) != 0)
        which++;
    if (which == count)
        tn__fail(TN_ERR_NAME, name, "no '%s'; there are %s, %s, %s", given, names[0], names[1], names[2]);
    return which < count ? which : -1;
}

static tn__node *grid_sample(tn__node *x, tn__node *grid, const tn_grid_sample_opts *opts)
{
    static const char name[] = "grid_sample";
    static const tn_grid_sample_opts none;
    opts = opts ? opts : &none;
    int how = named(name, opts->mode, MODES, mode_names), outside = named(name, opts->pad_mode, BEYONDS, beyond_names);
    x = tn__pooled_operand(name, x);
    tn__node *error = tn__first_error(2, (tn__node *[]){x, grid});
    if (how < 0 || outside < 0 || error)
        return error ? error : tn__failed();
    int axes = x->shape->ndim - 2;
    const int64_t *dim = grid->shape->dim;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (grid->shape->ndim != axes + 2 || dim[0] != x->shape->dim[0] || dim[axes + 1] != axes)
        TN__REFUSE(TN_ERR_SHAPE, name, "expected a grid (N, extents, %d) of %d extents for x %s, got %s", axes, axes,
                   tn__shape_text(x->shape->ndim, x->shape->dim, text),
                   tn__shape_text(grid->shape->ndim, dim, other));
    if (how == CUBIC && axes != 2)
        TN__REFUSE(TN_ERR_VALUE, name, "cubic samples are of two axes, got %d", axes);
    tn_shape result = {.ndim = axes + 2, .dim = {dim[0], x->shape->dim[1]}};
    int64_t places = 1, elements = 1;
    for (int i = 0; i < axes; i++) {
        places *= result.dim[2 + i] = dim[1 + i];
        elements *= x->shape->dim[2 + i];
    }
    if (elements == 0)
        TN__REFUSE(TN_ERR_SHAPE, name, "x of shape %s has nothing to sample",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text));
    tn__node *flat = tn__reshape(tn__widened(x), 3, (int64_t[]){dim[0], x->shape->dim[1], elements});
    tn__node *rows = tn__reshape(tn__widened(grid), 4, (int64_t[]){dim[0], 1, places, axes});
    error = tn__first_error(2, (tn__node *[]){flat, rows});
    taps t[TN__POOLED_AXES];
    for (int i = 0; i < axes && !error; i++) {
        line l = {x->shape->dim[2 + i], (mode)how, (beyond)outside, opts->align_corners};
        t[i] = taps_at(&l, tn__without_axis(tn__piece(rows, 3, axes - 1 - i, 1), 3));
    }
    tn__node *y = error ? error : gathered(flat, axes, t, &x->shape->dim[2]);
    return tn__reshape(tn__cast(y, (tn_dtype)x->dtype), result.ndim, result.dim);
}

tn_array *tn_grid_sample_with(const tn_array *x, const tn_array *grid, const tn_grid_sample_opts *opts)
{
    TN__RETURN(grid_sample(tn__node_of(x, "grid_sample"), tn__only_floating(grid, "grid_sample"), opts));
}

/* ---- affine grids ---- */

/* The coordinates of n places, of which -1 and 1 are the first and last, or their outer edges. */
static tn__node *coordinates(tn__node *theta, const tn__shape *shape, int axis, bool corners)
{
    double n = (double)shape->dim[axis];
    tn__node *i = tn__cast(tn__iota(shape, axis, theta->device), (tn_dtype)theta->dtype);
    if (corners)
        return n > 1 ? plus(times(i, 2 / (n - 1)), -1) : times(i, 0);
    return plus(times(plus(i, 0.5), 2 / n), -1);
}

static tn__node *affine_grid(tn__node *theta, tn_shape out, bool corners)
{
    static const char name[] = "affine_grid";
    TN__PASS_ERROR(theta);
    int axes = theta->shape->ndim == 3 ? (int)theta->shape->dim[1] : 0;
    char text[TN__SHAPE_TEXT];
    int64_t extent[TN__POOLED_AXES], ones[TN_MAX_NDIM] = {theta->shape->dim[0], 1, 1, 1, 1};
    if (axes < 1 || axes > TN__POOLED_AXES || theta->shape->dim[2] != axes + 1)
        TN__REFUSE(TN_ERR_SHAPE, name, "expected theta (N, axes, axes + 1) of one to three axes, got %s",
                   tn__shape_text(theta->shape->ndim, theta->shape->dim, text));
    if (!tn__extents_of(name, "extent of the result", out, axes, 1, 1, extent))
        return tn__failed();
    tn_shape one = {.ndim = axes + 1, .dim = {1}};
    memcpy(&one.dim[1], extent, sizeof *extent * (size_t)axes);
    const tn__shape *shape = tn__shape_make(name, one, TN_FLOAT64);
    if (!shape)
        return tn__failed();
    tn_dtype dtype = (tn_dtype)theta->dtype;
    theta = tn__widened(theta);
    tn__node *parts[TN__POOLED_AXES];
    for (int r = 0; r < axes; r++) {
        tn__node *row = tn__piece(theta, 1, r, 1);
        tn__node *sum = tn__reshape(tn__piece(row, 2, axes, 1), axes + 1, ones);
        for (int c = 0; c < axes; c++)
            sum = add(sum, mul(tn__reshape(tn__piece(row, 2, c, 1), axes + 1, ones),
                               coordinates(theta, shape, axes - c, corners)));
        parts[r] = tn__spread(sum, axes + 1);
    }
    return tn__cast(tn__joined(axes, parts, axes + 1), dtype);
}

tn_array *tn_affine_grid(const tn_array *theta, tn_shape out, bool align_corners)
{
    TN__RETURN(affine_grid(tn__only_floating(theta, "affine_grid"), out, align_corners));
}
