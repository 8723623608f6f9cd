/* SPDX-License-Identifier: MIT */
/* Differences, gradients, integrals, interpolation. */
#include "numpy/compose.h"

#include "array/build_parts.h"

/* ---- differences ---- */

static tn_array *diff(const tn_array *x, int n, int axis)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (n < 0)
        return tn__refused(TN_ERR_VALUE, "diff", "expected an order of 0 or more, got %d", n);
    int along = n > 0 ? tn__axis_of("diff", x, axis) : 0;
    if (along < 0)
        return tn__failed_array();
    tn_array *y = tn__again(x);
    for (; n > 0 && !tn_is_error(y) && tn_dim(y, along) > 0; n--) { /* of nothing there are none */
        tn_array *high = tn_slice_axis(y, along, 1, TN_NONE, 1), *low = tn_slice_axis(y, along, 0, -1, 1);
        y = tn_dtype_of(x) == TN_BOOL ? tn_not_equal(high, low) : tn_subtract(high, low);
    }
    return y;
}

tn_array *tn_diff(const tn_array *x, int n, int axis)
{
    TN__COMPOSE(diff(x, n, axis));
}

static tn_array *ediff1d(const tn_array *x, const tn_array *end, const tn_array *begin)
{
    tn_array *parts[3];
    int count = 0;
    tn_dtype dtype = tn_dtype_of(x);
    for (int side = 0; side < 2; side++) {
        const tn_array *given = side ? end : begin;
        if (given && !tn_is_error(given) && !tn_is_error(x) && !tn__is_weak(given) &&
            !tn_can_cast(tn_dtype_of(given), dtype))
            return tn__refused(TN_ERR_DTYPE, "ediff1d", "%s does not go with differences of %s",
                               tn_dtype_name(tn_dtype_of(given)), tn_dtype_name(dtype));
    }
    if (begin)
        parts[count++] = tn_cast(tn_ravel(tn__number_as(x, begin)), dtype);
    parts[count++] = diff(tn_ravel(x), 1, 0);
    if (end)
        parts[count++] = tn_cast(tn_ravel(tn__number_as(x, end)), dtype);
    for (int i = 0; i < count; i++)
        if (tn_is_error(parts[i]))
            return parts[i];
    if (dtype == TN_BOOL)
        return tn__refused(TN_ERR_DTYPE, "ediff1d", "does not take bool; tn_cast it to a number");
    return tn_concatenate(count, (const tn_array *const *)parts, 0);
}

tn_array *tn_ediff1d(const tn_array *x, const tn_array *end, const tn_array *begin)
{
    TN__COMPOSE(ediff1d(x, end, begin));
}

/* ---- gradients ---- */

/* A vector along one axis of x. */
static tn_array *along_axis(const tn_array *vector, const tn_array *x, int axis)
{
    tn_shape shape = {.ndim = tn_ndim(x)};
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = d == axis ? tn_size(vector) : 1;
    return tn_reshape(vector, shape);
}

/* a f0 + b f1 + c f2 of three neighbouring elements (or windows of them) from `start`. */
static tn_array *three(const tn_array *x, int axis, int64_t start, int64_t count, const tn_array *a, const tn_array *b,
                       const tn_array *c)
{
    tn_array *first = tn_multiply(a, tn__cut(x, axis, start, count));
    tn_array *second = tn_multiply(b, tn__cut(x, axis, start + 1, count));
    return tn_add(tn_add(first, second), tn_multiply(c, tn__cut(x, axis, start + 2, count)));
}

/* Two-point difference at an end, over the distance h. */
static tn_array *one_sided(const tn_array *x, int axis, int64_t start, const tn_array *h)
{
    return tn_divide(tn_subtract(tn__cut(x, axis, start + 1, 1), tn__cut(x, axis, start, 1)), h);
}

/* Samples spacing apart; distances are then C numbers. */
static tn_array *even_gradient(const tn_array *x, double h, int axis, int order)
{
    int64_t n = tn_dim(x, axis);
    tn_array *inner =
        tn_divide(tn_subtract(tn__cut(x, axis, 2, n - 2), tn__cut(x, axis, 0, n - 2)), tn_weak_float(2 * h));
    tn_array *first, *last;
    if (order == 1) {
        first = one_sided(x, axis, 0, tn_weak_float(h));
        last = one_sided(x, axis, n - 2, tn_weak_float(h));
    } else {
        first = three(x, axis, 0, 1, tn_weak_float(-1.5 / h), tn_weak_float(2 / h), tn_weak_float(-0.5 / h));
        last = three(x, axis, n - 3, 1, tn_weak_float(0.5 / h), tn_weak_float(-2 / h), tn_weak_float(1.5 / h));
    }
    return tn_concatenate(3, (const tn_array *const[]){first, inner, last}, axis);
}

/* The second-order formulas for distances h1 and h2 to the neighbours. */
static tn_array *uneven_gradient(const tn_array *x, const tn_array *coordinates, int axis, int order)
{
    int64_t n = tn_dim(x, axis);
    tn_array *h = along_axis(diff(tn__as_float(coordinates), 1, 0), x, axis);
    tn_array *h1 = tn__cut(h, axis, 0, n - 2), *h2 = tn__cut(h, axis, 1, n - 2), *sum = tn_add(h1, h2);
    tn_array *a = tn_negative(tn_divide(h2, tn_multiply(h1, sum)));
    tn_array *b = tn_divide(tn_subtract(h2, h1), tn_multiply(h1, h2)), *c = tn_divide(h1, tn_multiply(h2, sum));
    tn_array *inner = three(x, axis, 0, n - 2, a, b, c), *first, *last;
    if (order == 1) {
        first = one_sided(x, axis, 0, tn__cut(h, axis, 0, 1));
        last = one_sided(x, axis, n - 2, tn__cut(h, axis, n - 2, 1));
    } else {
        tn_array *p = tn__cut(h, axis, 0, 1), *q = tn__cut(h, axis, 1, 1), *both = tn_add(p, q);
        first = three(x, axis, 0, 1,
                      tn_negative(tn_divide(tn_add(tn_multiply(p, tn_weak_int(2)), q), tn_multiply(p, both))),
                      tn_divide(both, tn_multiply(p, q)), tn_negative(tn_divide(p, tn_multiply(q, both))));
        p = tn__cut(h, axis, n - 3, 1);
        q = tn__cut(h, axis, n - 2, 1);
        both = tn_add(p, q);
        last = three(x, axis, n - 3, 1, tn_divide(q, tn_multiply(p, both)),
                     tn_negative(tn_divide(both, tn_multiply(p, q))),
                     tn_divide(tn_add(tn_multiply(q, tn_weak_int(2)), p), tn_multiply(q, both)));
    }
    return tn_concatenate(3, (const tn_array *const[]){first, inner, last}, axis);
}

static tn_array *gradient(const tn_array *x, double spacing, const tn_array *coordinates, int axis, int edge_order)
{
    int along = tn__axis_of("gradient", x, axis);
    if (tn_is_error(x))
        return tn__again(x);
    if (along < 0)
        return tn__failed_array();
    if (edge_order < 1 || edge_order > 2 || tn_dim(x, along) < edge_order + 1)
        return tn__refused(TN_ERR_VALUE, "gradient",
                           "edge order %d on an axis of extent %lld; expected 1 or 2, and an element more", edge_order,
                           (long long)tn_dim(x, along));
    if (tn_dtype_of(x) == TN_BOOL)
        return tn__refused(TN_ERR_DTYPE, "gradient", "does not take bool; tn_cast it to a number");
    tn_array *y = tn__dtype_inexact(tn_dtype_of(x)) ? tn__again(x) : tn_cast(x, TN_FLOAT64);
    if (!coordinates)
        return even_gradient(y, spacing, along, edge_order);
    if (tn_ndim(coordinates) != 1 || tn_size(coordinates) != tn_dim(x, along))
        return tn__refused(TN_ERR_SHAPE, "gradient", "expected a vector of %lld coordinates",
                           (long long)tn_dim(x, along));
    return tn_cast(uneven_gradient(y, coordinates, along, edge_order), tn_dtype_of(y));
}

tn_array *tn_gradient(const tn_array *x, double spacing, const tn_array *coordinates, int axis, int edge_order)
{
    TN__COMPOSE(gradient(x, spacing, coordinates, axis, edge_order));
}

/* ---- integrals ---- */

static tn_array *trapezoid(const tn_array *y, const tn_array *coordinates, double dx, int axis)
{
    int along = tn__axis_of("trapezoid", y, axis);
    if (tn_is_error(y))
        return tn__again(y);
    if (along < 0)
        return tn__failed_array();
    const tn_array *step = tn_weak_float(dx);
    if (coordinates && tn_ndim(coordinates) == 1)
        step = along_axis(diff(coordinates, 1, 0), y, along);
    else if (coordinates)
        step = diff(coordinates, 1, axis);
    tn_array *pairs = tn_add(tn_slice_axis(y, along, 1, TN_NONE, 1), tn_slice_axis(y, along, 0, -1, 1));
    const tn_reduce_opts opts = {.axis = tn__axes_of(1, &along)};
    return tn_sum_with(tn_divide(tn_multiply(step, pairs), tn_weak_float(2)), &opts);
}

tn_array *tn_trapezoid(const tn_array *y, const tn_array *coordinates, double dx, int axis)
{
    TN__COMPOSE(trapezoid(y, coordinates, dx, axis));
}

/* ---- interpolation ---- */

/* y, but `exact` where `at` says so and y is NaN or of the other sign: elsewhere there y is that already, and has the
 * slope's gradient, which the exact number has not. */
static tn_array *made_exact(const tn_array *y, const tn_array *at, const tn_array *exact)
{
    tn_array *off = tn_logical_or(tn_isnan(y), tn_not_equal(tn_signbit(y), tn_signbit(exact)));
    return tn_where(tn_logical_and(at, off), exact, y);
}

static tn_array *interp(const tn_array *x, const tn_array *xp, const tn_array *fp, const double *left,
                        const double *right)
{
    if (tn_dtype_is_complex(tn_dtype_of(fp))) { /* part by part: an infinite one leaves the other as it is */
        double zero = 0;
        return tn_complex(interp(x, xp, tn_real(fp), left, right),
                          interp(x, xp, tn_imag(fp), left ? &zero : NULL, right ? &zero : NULL));
    }
    if (tn_is_error(xp) || tn_is_error(fp))
        return tn__again(tn_is_error(xp) ? xp : fp);
    if (tn_dtype_is_complex(tn_dtype_of(x)) || tn_dtype_is_complex(tn_dtype_of(xp)))
        return tn__refused(TN_ERR_DTYPE, "interp", "places cannot be complex; values can");
    int64_t n = tn_size(xp);
    if (tn_ndim(xp) != 1 || tn_ndim(fp) != 1 || tn_size(fp) != n || n == 0)
        return tn__refused(TN_ERR_SHAPE, "interp", "expected two vectors of the same extent, not empty");
    tn_array *v = tn_cast(x, TN_FLOAT64), *px = tn_cast(xp, TN_FLOAT64), *py = tn_cast(fp, TN_FLOAT64);
    const tn_search_opts behind = {.right = true};
    tn_array *i = tn_clip(tn_subtract(tn_searchsorted_with(px, v, &behind), tn_weak_int(1)), tn_weak_int(0),
                          tn_weak_int(n > 1 ? n - 2 : 0));
    tn_array *k = tn_minimum(tn_add(i, tn_weak_int(1)), tn_weak_int(n - 1));
    tn_array *x0 = tn_take(px, i, 0), *y0 = tn_take(py, i, 0), *x1 = tn_take(px, k, 0);
    tn_array *y1 = tn_take(py, k, 0), *dx = tn_subtract(x1, x0), *dy = tn_subtract(y1, y0);
    tn_array *flat = tn_equal(dx, tn_weak_int(0));
    tn_array *slope = tn_where(flat, tn_weak_int(0), tn_divide(dy, tn_where(flat, tn_weak_int(1), dx)));
    tn_array *y = tn_add(tn_multiply(slope, tn_subtract(v, x0)), y0);
    /* At the end, and where infinities made that NaN, from the other end; between equal values, that value. */
    tn_array *at_end = tn_equal(v, tn_index(px, n - 1));
    y = tn_where(tn_logical_or(tn_isnan(y), at_end), tn_add(tn_multiply(slope, tn_subtract(v, x1)), y1), y);
    y = tn_where(tn_logical_and(tn_isnan(y), tn_equal(y0, y1)), y0, y);
    y = made_exact(y, tn_equal(v, x0), y0);
    tn_array *low = left ? tn_weak_float(*left) : tn_index(py, 0),
             *high = right ? tn_weak_float(*right) : tn_index(py, n - 1);
    y = tn_where(tn_less(v, tn_index(px, 0)), low, y);
    y = made_exact(y, at_end, tn_index(py, n - 1));
    y = n == 1 ? y : tn_where(tn_isnan(v), v, y); /* through one point NumPy lays a constant, of NaN too */
    return tn_where(tn_greater(v, tn_index(px, n - 1)), high, n == 1 ? tn_where(tn_isnan(v), y0, y) : y);
}

/* The points brought into one period, sorted, and one more at either side. */
static tn_array *interp_periodic(const tn_array *x, const tn_array *xp, const tn_array *fp, double period)
{
    if (!(period > 0 || period < 0))
        return tn__refused(TN_ERR_VALUE, "interp", "a period of %g; expected another number than 0", period);
    if (tn_is_error(x) || tn_is_error(xp) || tn_is_error(fp) || tn_ndim(xp) != 1 || tn_ndim(fp) != 1 ||
        tn_size(xp) == 0 || tn_size(fp) != tn_size(xp))
        return interp(x, xp, fp, NULL, NULL);
    double p = period < 0 ? -period : period;
    int64_t n = tn_size(xp);
    tn_array *place = tn_remainder(tn_cast(xp, TN_FLOAT64), tn_weak_float(p)), *order = tn_argsort_with(place, NULL);
    place = tn_take(place, order, 0);
    tn_array *value = tn_take(fp, order, 0);
    tn_array *before = tn_subtract(tn__cut(place, 0, n - 1, 1), tn_weak_float(p)),
             *behind = tn_add(tn__cut(place, 0, 0, 1), tn_weak_float(p));
    place = tn_concatenate(3, (const tn_array *const[]){before, place, behind}, 0);
    value =
        tn_concatenate(3, (const tn_array *const[]){tn__cut(value, 0, n - 1, 1), value, tn__cut(value, 0, 0, 1)}, 0);
    return interp(tn_remainder(tn_cast(x, TN_FLOAT64), tn_weak_float(p)), place, value, NULL, NULL);
}

tn_array *tn_interp_periodic(const tn_array *x, const tn_array *xp, const tn_array *fp, double period)
{
    TN__COMPOSE(interp_periodic(x, xp, fp, period));
}

tn_array *tn_interp(const tn_array *x, const tn_array *xp, const tn_array *fp, const double *left, const double *right)
{
    TN__COMPOSE(interp(x, xp, fp, left, right));
}
