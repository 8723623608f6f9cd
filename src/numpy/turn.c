/* SPDX-License-Identifier: MIT */
/* Turning: flipped, rotated, rolled. */
#include "numpy/compose.h"

#include "array/build_parts.h"

static tn_array *flipped(const char *operation, const tn_array *x, int axis, int least)
{
    if (!tn_is_error(x) && tn_ndim(x) < least)
        return tn__refused(TN_ERR_SHAPE, operation, "expected at least %d axes, got %d", least, tn_ndim(x));
    return tn_flip(x, tn__axes_of(1, &axis));
}

tn_array *tn_fliplr(const tn_array *x)
{
    return flipped("fliplr", x, 1, 2);
}

tn_array *tn_flipud(const tn_array *x)
{
    return flipped("flipud", x, 0, 1);
}

static tn_array *rotated(const tn_array *x, int k, tn_axes axes)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (axes.count == 0)
        axes = tn__axes_of(2, (int[]){0, 1});
    if (axes.count != 2)
        return tn__refused(TN_ERR_VALUE, "rot90", "%d axes given, expected two", axes.count);
    int a = tn__axis_of("rot90", x, axes.axis[0]), b = a < 0 ? -1 : tn__axis_of("rot90", x, axes.axis[1]);
    if (b < 0)
        return tn__failed_array();
    if (a == b)
        return tn__refused(TN_ERR_VALUE, "rot90", "axis %d is given twice, expected two axes", a);
    const tn_axes second = tn__axes_of(1, &b), both = tn__axes_of(2, (int[]){a, b});
    int quarter = ((k % 4) + 4) % 4;
    return quarter == 0   ? tn__again(x)
           : quarter == 1 ? tn_swapaxes(tn_flip(x, second), a, b)
           : quarter == 2 ? tn_flip(x, both)
                          : tn_flip(tn_swapaxes(x, a, b), second);
}

tn_array *tn_rot90(const tn_array *x, int k, tn_axes axes)
{
    TN__COMPOSE(rotated(x, k, axes));
}

static tn_array *rolled(tn_array *x, int axis, int64_t shift)
{
    int64_t n = tn_dim(x, axis), by = n > 0 ? ((shift % n) + n) % n : 0;
    if (by == 0)
        return x;
    const tn_array *parts[] = {tn__cut(x, axis, n - by, by), tn__cut(x, axis, 0, n - by)};
    return tn_concatenate(2, parts, axis);
}

static tn_array *roll(const tn_array *x, int count, const int64_t *shift, tn_axes axes)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (!tn__axes_fit("roll", axes, TN_MAX_NDIM))
        return tn__failed_array();
    if (count < 1 || !shift || (axes.count == 0 && count != 1) ||
        (axes.count && count != 1 && axes.count != 1 && count != axes.count))
        return tn__refused(TN_ERR_VALUE, "roll", "%d shifts for %d axes; expected one, or one an axis", count,
                           axes.count);
    if (axes.count == 0)
        return tn_reshape(rolled(tn_ravel(x), 0, shift[0]), tn_shape_of(x));
    tn_array *y = tn__again(x);
    for (int i = 0; i < axes.count || i < count; i++) {
        int axis = tn__axis_of("roll", x, axes.axis[axes.count == 1 ? 0 : i]);
        if (axis < 0)
            return tn__failed_array();
        y = rolled(y, axis, shift[count == 1 ? 0 : i]);
    }
    return y;
}

tn_array *tn_roll(const tn_array *x, int count, const int64_t *shift, tn_axes axes)
{
    TN__COMPOSE(roll(x, count, shift, axes));
}
