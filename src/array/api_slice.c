/* SPDX-License-Identifier: MIT */
/* Parts of arrays: slices, single subarrays, updates of a slice, flips, splits. */
#include <tanso/array.h>

#include "array/build_parts.h"

/* A window on an array: what SLICE and UPDATE take. */
typedef struct window {
    int64_t start[TN_MAX_NDIM], step[TN_MAX_NDIM], dim[TN_MAX_NDIM];
} window;

static window whole_window(const tn__shape *shape)
{
    window w;
    for (int i = 0; i < TN_MAX_NDIM; i++) {
        w.start[i] = 0;
        w.step[i] = 1;
        w.dim[i] = i < shape->ndim ? shape->dim[i] : 0;
    }
    return w;
}

/* One end of a slice: counted from the end when negative, then brought into [lower, upper]. */
static int64_t slice_end(int64_t value, int64_t absent, int64_t extent, int64_t lower,
                         int64_t upper)
{
    if (value == TN_NONE)
        return absent;
    if (value < 0)
        value += extent;
    return value < lower ? lower : value > upper ? upper : value;
}

/* Python's slice.indices(extent). Windows of one element and of none have one form each, so that
 * plans are shared. */
static void set_range(window *w, int axis, tn_slice_range range)
{
    int64_t extent = w->dim[axis], step = range.step == TN_NONE || range.step == 0 ? 1 : range.step;
    int64_t lower = step > 0 ? 0 : -1, upper = step > 0 ? extent : extent - 1;
    int64_t start = slice_end(range.start, step > 0 ? lower : upper, extent, lower, upper);
    int64_t stop = slice_end(range.stop, step > 0 ? upper : lower, extent, lower, upper);
    int64_t count = 0;
    if (step > 0 && start < stop)
        count = (stop - start - 1) / step + 1;
    else if (step < 0 && start > stop)
        count = (start - stop - 1) / -step + 1;
    w->start[axis] = count > 0 ? start : 0;
    w->step[axis] = count > 1 ? step : 1;
    w->dim[axis] = count;
}

static bool set_ranges(const char *operation, window *w, const tn__shape *shape, int count,
                       const tn_slice_range *ranges)
{
    if (count < 0 || count > shape->ndim || (count > 0 && !ranges)) {
        tn__fail(TN_ERR_INDEX, operation,
                 "%d ranges for an array of %d axes; give one an axis at most, from the first",
                 count, shape->ndim);
        return false;
    }
    *w = whole_window(shape);
    for (int i = 0; i < count; i++)
        set_range(w, i, ranges[i]);
    return true;
}

static tn__node *cut(tn__node *a, const window *w)
{
    return tn__slice_node(a, w->start, w->step, w->dim);
}

static tn__node *slice(tn__node *a, int count, const tn_slice_range *ranges)
{
    TN__PASS_ERROR(a);
    window w;
    return set_ranges("slice", &w, a->shape, count, ranges) ? cut(a, &w) : tn__failed();
}

tn_array *tn_slice(const tn_array *x, int count, const tn_slice_range *ranges)
{
    TN__RETURN(slice(tn__node_of(x, "slice"), count, ranges));
}

static tn__node *slice_axis(tn__node *a, int axis, tn_slice_range range)
{
    TN__PASS_ERROR(a);
    axis = tn__axis_check("slice_axis", axis, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    window w = whole_window(a->shape);
    set_range(&w, axis, range);
    return cut(a, &w);
}

tn_array *tn_slice_axis(const tn_array *x, int axis, int64_t start, int64_t stop, int64_t step)
{
    TN__RETURN(slice_axis(tn__node_of(x, "slice_axis"), axis, (tn_slice_range){start, stop, step}));
}

static tn__node *subarray(tn__node *a, int64_t i)
{
    TN__PASS_ERROR(a);
    if (a->shape->ndim == 0)
        TN__REFUSE(TN_ERR_INDEX, "index",
                   "an array of 0 axes cannot be indexed; read its one element with tn_item");
    int64_t extent = a->shape->dim[0];
    if (i < -extent || i >= extent)
        TN__REFUSE(TN_ERR_INDEX, "index",
                   "index %lld is out of range for an axis of extent %lld; expected %lld to %lld",
                   (long long)i, (long long)extent, (long long)-extent, (long long)extent - 1);
    window w = whole_window(a->shape);
    w.start[0] = i < 0 ? i + extent : i;
    w.dim[0] = 1;
    return tn__drop_axes(cut(a, &w), 1);
}

tn_array *tn_index(const tn_array *x, int64_t i)
{
    TN__RETURN(subarray(tn__node_of(x, "index"), i));
}

static tn__node *flip(tn__node *a, tn_axes axes)
{
    TN__PASS_ERROR(a);
    uint32_t set;
    if (!tn__axes_set("flip", axes, a->shape->ndim, &set))
        return tn__failed();
    window w = whole_window(a->shape);
    for (int i = 0; i < a->shape->ndim; i++)
        if (set >> i & 1)
            set_range(&w, i, (tn_slice_range){TN_NONE, TN_NONE, -1});
    return cut(a, &w);
}

tn_array *tn_flip(const tn_array *x, tn_axes axes)
{
    TN__RETURN(flip(tn__node_of(x, "flip"), axes));
}

static tn__node *slice_update(tn__node *a, int count, const tn_slice_range *ranges, tn__node *value)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(value);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    window w;
    if (!set_ranges("slice_update", &w, a->shape, count, ranges))
        return tn__failed();
    const tn__shape *shape = tn__shape_intern(a->shape->ndim, w.dim);
    int64_t list[2 * TN_MAX_NDIM];
    for (int i = 0; i < a->shape->ndim; i++) {
        list[2 * i] = w.start[i];
        list[2 * i + 1] = w.step[i];
    }
    const tn__ints *ints = tn__ints_intern(2 * a->shape->ndim, list);
    if (!shape || !ints) {
        tn__fail_memory("slice_update", sizeof(tn__shape));
        return tn__failed();
    }
    value = tn__without_front(tn__cast(value, a->dtype), shape->ndim);
    return tn__update(a, tn__expand(value, shape), ints);
}

tn_array *tn_slice_update(const tn_array *x, int count, const tn_slice_range *ranges,
                          const tn_array *value)
{
    TN__RETURN(slice_update(tn__node_of(x, "slice_update"), count, ranges,
                            tn__node_of(value, "slice_update")));
}

/* Section `i` of `sections`, all checked anew for each: they are few. */
static tn__node *section(tn__node *a, int sections, int axis, int i)
{
    TN__PASS_ERROR(a);
    axis = tn__axis_check("split", axis, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    int64_t extent = a->shape->dim[axis];
    if (extent % sections != 0)
        TN__REFUSE(
            TN_ERR_SHAPE, "split",
            "axis %d has extent %lld, which %d sections do not divide; use tn_slice_axis for parts "
            "of different extents",
            axis, (long long)extent, sections);
    window w = whole_window(a->shape);
    w.dim[axis] = extent / sections;
    w.start[axis] = i * w.dim[axis];
    return cut(a, &w);
}

tn_status tn_split(const tn_array *x, int sections, int axis, tn_array **out)
{
    if (sections < 1 || !out)
        return tn__fail(TN_ERR_VALUE, "split", "expected 1 or more sections, got %d, and an array for them%s", sections,
                        out ? "" : ", got NULL");
    tn_status status = TN_OK;
    for (int i = 0; i < sections; i++) {
        tn__call call = tn__enter();
        out[i] = tn__leave_array(call, section(tn__node_of(x, "split"), sections, axis, i));
        if (status == TN_OK)
            status = tn_status_of(out[i]);
    }
    return status;
}
