/* SPDX-License-Identifier: MIT */
/* Moving axes, shapes that fit one another, tiling and repeating, windows. */
#include "numpy/compose.h"

#include <string.h>

#include "array/build_parts.h"
#include "array/build_window.h"
#include "core/memory.h"

/* ---- axes ---- */

tn_array *tn_ravel(const tn_array *x)
{
    return tn_flatten(x);
}

static tn_array *moveaxis(const tn_array *x, tn_axes source, tn_axes destination)
{
    int ndim = tn_ndim(x), from[TN_MAX_NDIM], used = 0;
    tn_axes order = {.count = ndim};
    if (tn_is_error(x))
        return tn__again(x);
    if (source.count != destination.count || source.count < 0 || source.count > ndim)
        return tn__refused(TN_ERR_VALUE, "moveaxis", "%d axes to %d places; expected as many, at most %d", source.count,
                           destination.count, ndim);
    memset(from, -1, sizeof from);
    for (int i = 0; i < source.count; i++) {
        int a = tn__axis_of("moveaxis", x, source.axis[i]),
            b = a < 0 ? -1 : tn__axis_of("moveaxis", x, destination.axis[i]);
        if (b < 0)
            return tn__failed_array();
        if (used >> a & 1 || from[b] >= 0)
            return tn__refused(TN_ERR_VALUE, "moveaxis", "axis %d or place %d is listed twice", a, b);
        from[b] = a;
        used |= 1 << a;
    }
    for (int i = 0, next = 0; i < ndim; i++) {
        while (used >> next & 1)
            next++;
        order.axis[i] = from[i] >= 0 ? from[i] : next++;
    }
    return ndim ? tn_transpose(x, order) : tn__again(x);
}

tn_array *tn_moveaxis(const tn_array *x, tn_axes source, tn_axes destination)
{
    TN__COMPOSE(moveaxis(x, source, destination));
}

tn_array *tn_rollaxis(const tn_array *x, int axis, int start)
{
    int ndim = tn_ndim(x), from = tn__axis_of("rollaxis", x, axis);
    if (tn_is_error(x))
        return tn__again(x);
    if (from < 0)
        return tn__failed_array();
    int to = start < 0 ? start + ndim : start;
    if (to < 0 || to > ndim)
        return tn__refused(TN_ERR_INDEX, "rollaxis", "start %d is out of range for an array of %d axes", start, ndim);
    to -= from < to;
    return tn_moveaxis(x, tn__axes_of(1, &from), tn__axes_of(1, &to));
}

/* Axes of extent 1 added until there are ndim, `behind` of them behind those of x. */
static tn_array *at_least(const tn_array *x, int ndim, int behind)
{
    tn_shape shape = tn_shape_of(x);
    int missing = ndim - shape.ndim;
    if (missing <= 0 || tn_is_error(x))
        return tn__again(x);
    int front = missing - (behind && shape.ndim > 0 ? behind : 0);
    tn_shape full = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        full.dim[d] = d >= front && d < front + shape.ndim ? shape.dim[d - front] : 1;
    return tn_reshape(x, full);
}

tn_array *tn__at_least(const tn_array *x, int ndim)
{
    return at_least(x, ndim, 0);
}

tn_array *tn_atleast_1d(const tn_array *x)
{
    return at_least(x, 1, 0);
}

tn_array *tn_atleast_2d(const tn_array *x)
{
    return at_least(x, 2, 0);
}

/* (n) becomes (1, n, 1), (m, n) becomes (m, n, 1). */
tn_array *tn_atleast_3d(const tn_array *x)
{
    return at_least(x, 3, 1);
}

tn_status tn_broadcast_shapes(int count, const tn_shape *shapes, tn_shape *out)
{
    if (!shapes || !out)
        return tn__fail_null("broadcast_shapes", "shapes, and room for one");
    tn_shape shape = {0};
    for (int i = 0; i < count; i++) {
        tn_status status = tn__shape_check("broadcast_shapes", shapes[i], 1);
        if (status != TN_OK)
            return status;
        tn_shape next = shapes[i], both = shape.ndim > next.ndim ? shape : next;
        for (int d = 1; d <= both.ndim; d++) {
            int64_t a = d <= shape.ndim ? shape.dim[shape.ndim - d] : 1,
                    b = d <= next.ndim ? next.dim[next.ndim - d] : 1;
            if (a != b && a != 1 && b != 1)
                return tn__fail(TN_ERR_SHAPE, "broadcast_shapes",
                                "shape %d has extent %lld where those before it have %lld", i, (long long)b,
                                (long long)a);
            both.dim[both.ndim - d] = a == 1 ? b : a;
        }
        shape = both;
    }
    *out = shape;
    return TN_OK;
}

tn_status tn_broadcast_arrays(int count, const tn_array *const *arrays, tn_array **out)
{
    if (count > 0 && (!arrays || !out))
        return tn__fail_null("broadcast_arrays", "arrays, and room for as many");
    tn_shape shape = {0};
    for (int i = 0; i < count; i++) {
        tn_shape next = tn_shape_of(arrays[i]), both = shape.ndim > next.ndim ? shape : next;
        for (int d = 1; d <= both.ndim; d++) {
            int64_t a = d <= shape.ndim ? shape.dim[shape.ndim - d] : 1,
                    b = d <= next.ndim ? next.dim[next.ndim - d] : 1;
            both.dim[both.ndim - d] = a == 1 ? b : a; /* what does not fit is refused below */
        }
        shape = both;
    }
    tn_scope_push();
    for (int i = 0; i < count; i++)
        out[i] = tn_broadcast_to(arrays[i], shape);
    return tn__composed_all(count, out);
}

/* ---- copies ---- */

/* Along one axis each run of `run` places `count` times: extents (before, n / run, run and behind) with a repeated axis
 * between. */
static tn_array *copies(tn_array *x, int axis, int64_t run, int64_t count)
{
    tn_shape shape = tn_shape_of(x), three = {.ndim = 3, .dim = {1, 1, run}}, repeated;
    for (int d = 0; d < shape.ndim; d++)
        three.dim[d < axis ? 0 : 2] *= d == axis ? 1 : shape.dim[d];
    three.dim[0] *= run ? shape.dim[axis] / run : 1;
    repeated = three;
    repeated.dim[1] = count;
    shape.dim[axis] *= count;
    return tn_reshape(tn_broadcast_to(tn_reshape(x, three), repeated), shape);
}

static tn_array *tile(const tn_array *x, tn_shape reps)
{
    if (reps.ndim < 0 || reps.ndim > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "tile", "expected copies along 0 to %d axes, got %d", TN_MAX_NDIM, reps.ndim);
    tn_array *y = at_least(x, reps.ndim, 0);
    for (int i = 0; i < reps.ndim && !tn_is_error(y); i++) {
        int axis = tn_ndim(y) - reps.ndim + i;
        if (reps.dim[i] < 0)
            return tn__refused(TN_ERR_VALUE, "tile", "expected 0 or more copies, got %lld", (long long)reps.dim[i]);
        if (reps.dim[i] != 1)
            y = copies(y, axis, tn_dim(y, axis), reps.dim[i]);
    }
    return y;
}

tn_array *tn_tile(const tn_array *x, tn_shape reps)
{
    TN__COMPOSE(tile(x, reps));
}

/* The array and axis that "one axis, or the flat array" means; -1 and a latched failure for a bad one. */
static int axis_or_flat(const char *operation, tn_array **x, tn_axes axis)
{
    if (axis.count == 0) {
        *x = tn_ravel(*x);
        return tn_is_error(*x) ? -1 : 0;
    }
    return tn_is_error(*x) ? -1 : tn__axis_of_list(operation, axis, 0, tn_ndim(*x));
}

static tn_array *repeat(const tn_array *x, int64_t count, tn_axes axis)
{
    tn_array *y = tn__again(x);
    int along = axis_or_flat("repeat", &y, axis);
    if (along < 0)
        return tn_is_error(y) ? y : tn__failed_array();
    if (count < 0)
        return tn__refused(TN_ERR_VALUE, "repeat", "expected a count of 0 or more, got %lld", (long long)count);
    return copies(y, along, 1, count);
}

tn_array *tn_repeat(const tn_array *x, int64_t count, tn_axes axis)
{
    TN__COMPOSE(repeat(x, count, axis));
}

/* Each position as often as counted, `total` in all. */
static tn_array *repeated_places(const tn_array *like, const int64_t *count, int64_t n, int64_t total)
{
    enum { AHEAD = 4 }; /* are written at once, beyond what is counted: how many are counted is chance, which branches
                           dislike */
    int64_t *places = total < INT64_MAX / 8 - AHEAD ? tn__alloc(sizeof *places * (size_t)(total + AHEAD)) : NULL;
    if (!places)
        return tn__refused(TN_ERR_MEMORY, "repeat", "no memory for %lld positions", (long long)total);
    for (int64_t i = 0, *end = places; i < n; i++) {
        int64_t *to = end;
        end += count[i];
        do {
            for (int k = 0; k < AHEAD; k++)
                to[k] = i;
            to += AHEAD;
        } while (to < end);
    }
    tn_array *result = tn__positions_like(like, places, total);
    tn__free(places);
    return result;
}

static tn_array *repeat_each(const tn_array *x, const tn_array *counts, tn_axes axis)
{
    tn_array *y = tn__again(x);
    int along = axis_or_flat("repeat", &y, axis);
    if (along < 0)
        return tn_is_error(y) ? y : tn__failed_array();
    int64_t *count = tn__integers_of("repeat", counts), n = tn_size(counts), extent = tn_dim(y, along), total = 0;
    if (!count)
        return tn_is_error(counts) ? tn__again(counts) : tn__failed_array();
    bool good = tn_ndim(counts) <= 1 && (n == extent || n == 1);
    for (int64_t i = 0; good && i < n; i++)
        good = count[i] >= 0 && !__builtin_add_overflow(total, count[i], &total);
    int64_t one = n == 1 ? count[0] : 0;
    tn_array *places = good && n != 1 ? repeated_places(y, count, n, total) : NULL;
    tn__free(count);
    if (!good)
        return tn__refused(TN_ERR_VALUE, "repeat", "expected %lld counts of 0 or more, one for each place of the axis",
                           (long long)extent);
    if (n == 1)
        return copies(y, along, 1, one);
    return tn_take(y, places, along);
}

tn_array *tn_repeat_each(const tn_array *x, const tn_array *counts, tn_axes axis)
{
    TN__COMPOSE(repeat_each(x, counts, axis));
}

static tn_array *resize(const tn_array *x, tn_shape shape)
{
    int64_t size = 1, own = tn_size(x);
    if (tn__shape_check("resize", shape, tn_dtype_size(tn_dtype_of(x))) != TN_OK)
        return tn__failed_array();
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    if (own == 0) {
        tn_create_opts opts = {.dtype = tn_dtype_of(x), .device = tn_device_of(x)};
        return tn_is_error(x) ? tn__again(x) : tn_zeros_with(shape, &opts);
    }
    tn_array *flat = tn_tile(tn_ravel(x), tn__vector((size + own - 1) / own));
    return tn_reshape(tn__cut(flat, 0, 0, size), shape);
}

tn_array *tn_resize(const tn_array *x, tn_shape shape)
{
    TN__COMPOSE(resize(x, shape));
}

/* ---- windows ---- */

tn_array *tn_matrix_transpose(const tn_array *x)
{
    if (!tn_is_error(x) && tn_ndim(x) < 2)
        return tn__refused(TN_ERR_SHAPE, "matrix_transpose", "expected two axes or more, got %d", tn_ndim(x));
    return tn_swapaxes(x, -1, -2);
}

/* Along one axis: its positions in windows stand in a new last axis. */
static tn_array *windows_along(const tn_array *x, int axis, int64_t length)
{
    if (length < 1 || length > tn_dim(x, axis))
        return tn__refused(TN_ERR_SHAPE, "sliding_window_view",
                           "no window of extent %lld is in axis %d, of extent %lld", (long long)length, axis,
                           (long long)tn_dim(x, axis));
    TN__RETURN(tn__windows(tn__node_of(x, "sliding_window_view"), 1, &(tn__window_axis){axis, length, 1, 1}));
}

static tn_array *sliding_windows(const tn_array *x, tn_shape window, tn_axes axes)
{
    tn_array *y = tn__again(x);
    if (tn_is_error(y))
        return y;
    int ndim = tn_ndim(x), count = axes.count ? axes.count : ndim;
    if (!tn__axes_fit("sliding_window_view", axes, TN_MAX_NDIM))
        return tn__failed_array();
    if (window.ndim != count || ndim + count > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "sliding_window_view",
                           "a window of %d axes along %d of %d; expected one extent each, and %d axes in all at most",
                           window.ndim, count, ndim, TN_MAX_NDIM);
    for (int i = 0; i < count && !tn_is_error(y); i++) {
        int axis = axes.count ? tn__axis_of("sliding_window_view", x, axes.axis[i]) : i;
        y = axis < 0 ? tn__failed_array() : windows_along(y, axis, window.dim[i]);
    }
    return y;
}

tn_array *tn_sliding_window_view(const tn_array *x, tn_shape window, tn_axes axes)
{
    TN__COMPOSE(sliding_windows(x, window, axes));
}

/* Does each place of `shape` lie within x, an array of `size` elements? */
static bool lies_within(tn_shape shape, tn_shape strides, int64_t offset, int64_t size)
{
    int64_t low = offset, high = offset, way;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] <= 0)
            return true; /* there are none; a negative extent is told of elsewhere */
        int64_t *end = strides.dim[i] < 0 ? &low : &high;
        if (__builtin_mul_overflow(strides.dim[i], shape.dim[i] - 1, &way) || __builtin_add_overflow(*end, way, end))
            return false;
    }
    return low >= 0 && high < size;
}

static tn_array *as_strided(const tn_array *x, tn_shape shape, tn_shape strides, int64_t offset)
{
    if (tn_is_error(x))
        return tn__array_of(x);
    if (strides.ndim != shape.ndim)
        return tn__refused(TN_ERR_SHAPE, "as_strided", "expected a stride for each of %d axes, got %d", shape.ndim,
                           strides.ndim);
    const tn_create_opts whole = {.dtype = TN_INT64, .device = tn_device_of(x)};
    tn_array *place = tn_zeros_with(shape, &whole);
    if (!tn_is_error(place) && !lies_within(shape, strides, offset, tn_size(x)))
        return tn__refused(TN_ERR_INDEX, "as_strided", "places lie outside x, of %lld elements", (long long)tn_size(x));
    for (int i = 0; i < shape.ndim && !tn_is_error(place); i++) {
        tn_shape along = {shape.ndim - i, {shape.dim[i], 1, 1, 1, 1, 1, 1, 1}};
        tn_array *step = tn_arange_with(0, (double)shape.dim[i], 1, &whole);
        place = tn_add(place, tn_reshape(tn_multiply(step, tn_weak_int(strides.dim[i])), along));
    }
    return tn_take(tn_ravel(x), tn_size(place) ? tn_add(place, tn_weak_int(offset)) : place, 0);
}

tn_array *tn_as_strided(const tn_array *x, tn_shape shape, tn_shape strides, int64_t offset)
{
    TN__COMPOSE(as_strided(x, shape, strides, offset));
}
