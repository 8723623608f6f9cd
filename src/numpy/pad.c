/* SPDX-License-Identifier: MIT */
/* Padding, by NumPy's modes: a table of what stands before and behind an axis. */
#include "numpy/compose.h"

#include <string.h>

#include "array/build_parts.h"
#include "core/memory.h"

/* One side of one axis. */
typedef struct side {
    int axis;
    int64_t width;       /* of this side */
    bool behind;
    const tn_pad_opts *opts;
} side;

/* width elements that continue x on one side. */
typedef tn_array *filler(const tn_array *x, const side *s);

static tn_shape widened(const tn_array *x, const side *s)
{
    tn_shape shape = tn_shape_of(x);
    shape.dim[s->axis] = s->width;
    return shape;
}

static tn_array *edge_of(const tn_array *x, const side *s)
{
    return tn__cut(x, s->axis, s->behind ? tn_dim(x, s->axis) - 1 : 0, 1);
}

static double value_of(const side *s)
{
    return s->opts && s->opts->values ? s->opts->values[s->axis][s->behind] : 0;
}

/* The value beside x as an array of no axes; from the option `constants` if that is given. */
static tn_array *exact_value(const tn_array *x, const side *s, tn_dtype dtype)
{
    const tn_create_opts like = {.dtype = dtype, .device = tn_device_of(x)};
    if (!s->opts || !s->opts->constants)
        return tn_full_with((tn_shape){0}, value_of(s), &like);
    if (!tn_is_error(s->opts->constants) && tn_dtype_is_complex(tn_dtype_of(s->opts->constants)) &&
        !tn_dtype_is_complex(dtype))
        return tn__refused(TN_ERR_DTYPE, "pad", "complex constants beside an array of %s; expected real ones",
                           tn_dtype_name(tn_dtype_of(x)));
    if (tn__is_weak(s->opts->constants))
        return tn_cast(s->opts->constants, dtype);
    tn_array *pairs = tn_broadcast_to(s->opts->constants, (tn_shape){2, {tn_ndim(x), 2}});
    return tn_cast(tn_index(tn_index(pairs, s->axis), s->behind), like.dtype);
}

static tn_array *constant(const tn_array *x, const side *s)
{
    return tn_broadcast_to(exact_value(x, s, tn_dtype_of(x)), widened(x, s));
}

static tn_array *edge(const tn_array *x, const side *s)
{
    return tn_broadcast_to(edge_of(x, s), widened(x, s));
}

static tn_array *ramp(const tn_array *x, const side *s)
{
    tn_array *last = edge_of(x, s);
    const tn_space_opts opts = {.axis = s->axis, .open = true};
    tn_shape flat = tn_shape_of(last);
    memmove(&flat.dim[s->axis], &flat.dim[s->axis + 1], sizeof(int64_t) * (size_t)(flat.ndim - 1 - s->axis));
    flat.ndim--;
    tn_dtype wide = tn_dtype_is_complex(tn_dtype_of(x)) ? TN_COMPLEX128 : TN_FLOAT64;
    tn_array *y =
        tn_linspace_arrays_with(exact_value(x, s, wide), tn_cast(tn_reshape(last, flat), wide), s->width, &opts);
    if (tn_dtype_is_integer(tn_dtype_of(x)))
        y = tn_floor(y);
    y = tn_cast(y, tn_dtype_of(x));
    return s->behind ? tn_flip(y, tn__axes_of(1, &s->axis)) : y;
}

/* A statistic of the nearest elements, rounded for integers. */
static tn_array *statistic(const tn_array *x, const side *s, tn_array *(*of)(const tn_array *, const tn_reduce_opts *))
{
    int64_t extent = tn_dim(x, s->axis), length = extent;
    if (s->opts && s->opts->stat_length && s->opts->stat_length[s->axis][s->behind] < extent)
        length = s->opts->stat_length[s->axis][s->behind];
    tn_array *near = tn__cut(x, s->axis, s->behind ? extent - length : 0, length);
    const tn_reduce_opts opts = {.axis = tn__axes_of(1, &s->axis), .keepdims = true};
    tn_array *y = of(near, &opts);
    if (tn_dtype_is_float(tn_dtype_of(y)) && tn_dtype_is_integer(tn_dtype_of(x))) /* bool is true of any mean but 0 */
        y = tn_rint(y);
    return tn_broadcast_to(tn_cast(y, tn_dtype_of(x)), widened(x, s));
}

static tn_array *largest(const tn_array *x, const side *s) { return statistic(x, s, tn_max_with); }
static tn_array *smallest(const tn_array *x, const side *s) { return statistic(x, s, tn_min_with); }
static tn_array *mean(const tn_array *x, const side *s) { return statistic(x, s, tn_mean_with); }
static tn_array *median(const tn_array *x, const side *s) { return statistic(x, s, tn_median_with); }

/* Are the lengths such that they have a statistic? Of nothing, means and medians are NaN, and extremes are none. */
static bool has_lengths(const tn_array *x, const tn_pad_opts *opts, filler *fill)
{
    bool extreme = fill == largest || fill == smallest;
    for (int i = 0; i < 2 * tn_ndim(x) && (extreme || fill == mean || fill == median); i++) {
        int64_t length = opts && opts->stat_length ? opts->stat_length[i / 2][i % 2] : 1;
        if (length < extreme)
            return tn__fail(TN_ERR_VALUE, "pad", "expected a stat_length of %d or more, got %lld", extreme,
                            (long long)length),
                   false;
    }
    return true;
}

/* The elements at places that a rule gives for the places outside: i from 1 outward on this side, n the extent. */
static tn_array *mapped(const tn_array *x, const side *s, int64_t (*place)(int64_t i, int64_t n))
{
    int64_t n = tn_dim(x, s->axis), *places = tn__alloc(sizeof(int64_t) * (size_t)(s->width + 1));
    if (!places)
        return tn__refused(TN_ERR_MEMORY, "pad", "no memory for %lld places", (long long)s->width);
    for (int64_t i = 0; i < s->width; i++) {
        int64_t near = place(s->behind ? i + 1 : s->width - i, n); /* counted from this side's edge */
        places[i] = s->behind ? n - 1 - near : near;
    }
    tn_array *y = tn_take(x, tn__positions_like(x, places, s->width), s->axis);
    tn__free(places);
    return y;
}

static int64_t place_reflect(int64_t i, int64_t n)
{
    if (n == 1)
        return 0;
    i %= 2 * (n - 1);
    return i < n ? i : 2 * (n - 1) - i;
}
static int64_t place_symmetric(int64_t i, int64_t n)
{
    i = (i - 1) % (2 * n);
    return i < n ? i : 2 * n - 1 - i;
}
static int64_t place_wrap(int64_t i, int64_t n) { return n - 1 - (i - 1) % n; }

/*
 * Reflected about the edge's value too: 2 edge - x. Farther out the reflection, with its new edge, is reflected again,
 * and so on: a lap of `reach` elements each. Lap k is x where k is even, and near + far - x, which turns x over between
 * its two edges, where it is odd; either raised by k (near - far).
 */
static tn_array *odd(const tn_array *x, const side *s, tn_array *y, int64_t reach)
{
    if (!(s->opts && s->opts->odd) || reach == 0) /* one element has no reflection but itself */
        return y;
    tn_array *near = edge_of(x, s), *far = edge_of(x, &(side){.axis = s->axis, .behind = !s->behind});
    bool truth = tn_dtype_of(x) == TN_BOOL; /* 2 edge - x is not 0 where one of the two is not */
    if (s->width <= reach)
        return truth ? tn_logical_or(near, y) : tn_subtract(tn_multiply(near, tn_weak_int(2)), y);
    int64_t *laps = tn__alloc(sizeof(int64_t) * (size_t)(s->width + 1));
    if (!laps)
        return tn__refused(TN_ERR_MEMORY, "pad", "no memory for %lld places", (long long)s->width);
    for (int64_t i = 0; i < s->width; i++)
        laps[i] = (s->behind ? i : s->width - 1 - i) / reach + 1;
    tn_shape along = {.ndim = tn_ndim(x)};
    for (int d = 0; d < along.ndim; d++)
        along.dim[d] = d == s->axis ? s->width : 1;
    tn_array *lap = tn_reshape(tn__positions_like(x, laps, s->width), along);
    tn__free(laps);
    if (truth)
        return tn_logical_or(y, tn_logical_or(near, tn_logical_and(far, tn_greater(lap, tn_weak_int(1)))));
    tn_array *odd_lap = tn_equal(tn_bitwise_and(lap, tn_weak_int(1)), tn_weak_int(1));
    tn_dtype dtype = tn_dtype_of(x);
    tn_array *rise = tn_multiply(tn_subtract(near, far), tn_cast(lap, dtype)); /* once a lap */
    tn_array *mirrored = tn_subtract(tn_add(near, far), y); /* back in x's own span */
    return tn_cast(tn_add(tn_where(odd_lap, mirrored, y), rise), dtype);
}

static tn_array *reflect(const tn_array *x, const side *s)
{
    return odd(x, s, mapped(x, s, place_reflect), tn_dim(x, s->axis) - 1);
}
static tn_array *symmetric(const tn_array *x, const side *s)
{
    return odd(x, s, mapped(x, s, place_symmetric), tn_dim(x, s->axis));
}
static tn_array *wrap(const tn_array *x, const side *s) { return mapped(x, s, place_wrap); }

static const struct {
    const char *name;
    filler *fill;
    bool needs_elements; /* an empty axis has none to continue */
} modes[] = {
    {"constant", constant, false}, {"edge", edge, true},         {"linear_ramp", ramp, true},
    {"maximum", largest, true},    {"mean", mean, true},         {"median", median, true},
    {"minimum", smallest, true},   {"reflect", reflect, true},   {"symmetric", symmetric, true},
    {"wrap", wrap, true},          {"empty", constant, false},
};

/* Constants around x: one array, what stands beside each axis written into it, and then x, so that everything is
 * written once. Of the corners the last axis says what they are. */
static tn_array *framed(const tn_array *x, const int64_t (*width)[2], const tn_pad_opts *opts)
{
    int ndim = tn_ndim(x);
    tn_shape shape = tn_shape_of(x);
    tn_slice_range inner[TN_MAX_NDIM], all[TN_MAX_NDIM];
    for (int axis = 0; axis < ndim; axis++) {
        inner[axis] = (tn_slice_range){width[axis][0], width[axis][0] + shape.dim[axis], 1};
        shape.dim[axis] += width[axis][0] + width[axis][1];
        all[axis] = (tn_slice_range){0, shape.dim[axis], 1};
    }
    const tn_create_opts like = {.dtype = tn_dtype_of(x), .device = tn_device_of(x)};
    side s = {.opts = opts};
    double first = 0;
    bool uniform = !(opts && opts->constants), any = false;
    for (int i = 0; i < 2 * ndim; i++) {
        double value = value_of(&(side){.axis = i / 2, .behind = i % 2, .opts = opts});
        if (width[i / 2][i % 2] == 0)
            continue;
        uniform = uniform && (!any || value == first);
        first = any ? first : value;
        any = true;
    }
    tn_array *y = tn_full_with(shape, first, &like);
    for (s.axis = 0; s.axis < ndim && !uniform; s.axis++)
        for (int behind = 0; behind < 2; behind++) {
            s.behind = behind;
            s.width = width[s.axis][behind];
            if (s.width == 0)
                continue;
            tn_slice_range range[TN_MAX_NDIM];
            memcpy(range, all, sizeof range);
            range[s.axis] =
                behind ? (tn_slice_range){inner[s.axis].stop, shape.dim[s.axis], 1} : (tn_slice_range){0, s.width, 1};
            tn_shape beside = shape;
            beside.dim[s.axis] = s.width;
            y = tn_slice_update(y, ndim, range, tn_broadcast_to(exact_value(x, &s, like.dtype), beside));
        }
    return tn_slice_update(y, ndim, inner, x);
}

/* Is it something that framed() makes? */
static bool is_framed(const tn_array *x, const int64_t (*width)[2], filler *fill)
{
    bool any = false;
    for (int axis = 0; axis < tn_ndim(x) && fill == constant; axis++) {
        if (tn_dim(x, axis) == 0)
            return false;
        any = any || width[axis][0] + width[axis][1] > 0;
    }
    return any;
}

/* May an array have these extents? */
static bool fits(const tn_array *x, const int64_t (*width)[2])
{
    tn_shape shape = tn_shape_of(x);
    for (int axis = 0; axis < shape.ndim; axis++) {
        if (width[axis][0] < 0 || width[axis][1] < 0)
            return tn__fail(TN_ERR_VALUE, "pad", "widths %lld and %lld of axis %d; expected 0 or more",
                            (long long)width[axis][0], (long long)width[axis][1], axis),
                   false;
        if (__builtin_add_overflow(shape.dim[axis], width[axis][0], &shape.dim[axis]) ||
            __builtin_add_overflow(shape.dim[axis], width[axis][1], &shape.dim[axis]))
            shape.dim[axis] = INT64_MAX;
    }
    return tn__shape_check("pad", shape, tn_dtype_size(tn_dtype_of(x))) == TN_OK;
}

static tn_array *padded(const tn_array *x, const int64_t (*width)[2], const tn_pad_opts *opts)
{
    const char *name = opts && opts->mode ? opts->mode : "constant";
    size_t m = 0;
    while (m < sizeof modes / sizeof *modes && strcmp(modes[m].name, name) != 0)
        m++;
    if (m == sizeof modes / sizeof *modes)
        return tn__refused(TN_ERR_NAME, "pad",
                           "no mode '%s'; there are constant, edge, linear_ramp, maximum, mean, median, "
                           "minimum, reflect, symmetric, wrap, empty",
                           name);
    tn_array *y = tn__array_of(x);
    if (!fits(y, width))
        return tn__failed_array();
    if (is_framed(x, width, modes[m].fill))
        return framed(y, width, opts);
    if (!has_lengths(x, opts, modes[m].fill))
        return tn__failed_array();
    for (int axis = 0; axis < tn_ndim(x) && !tn_is_error(y); axis++) {
        side before = {.axis = axis, .width = width[axis][0], .opts = opts};
        side behind = {.axis = axis, .width = width[axis][1], .behind = true, .opts = opts};
        if (before.width + behind.width == 0)
            continue;
        if (modes[m].needs_elements && tn_dim(y, axis) == 0)
            return tn__refused(TN_ERR_VALUE, "pad", "axis %d has extent 0: mode '%s' has nothing to continue", axis,
                               name);
        const tn_array *parts[] = {modes[m].fill(y, &before), y, modes[m].fill(y, &behind)};
        int first = before.width == 0, count = 3 - first - (behind.width == 0);
        y = tn_concatenate(count, parts + first, axis);
    }
    return y;
}

tn_array *tn_pad_with(const tn_array *x, const int64_t (*width)[2], const tn_pad_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (!width && tn_ndim(x))
        return tn__refused(TN_ERR_VALUE, "pad", "expected a pair of widths for each of %d axes, got NULL", tn_ndim(x));
    TN__COMPOSE(padded(x, width, opts));
}
