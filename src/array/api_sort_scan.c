/* SPDX-License-Identifier: MIT */
/* Sorting, scans and searching along an axis. */
#include <tanso/sort.h>


#include "array/build_library.h"
#include "array/build_parts.h"
#include "core/options.h"

/* The axis that options name: `absent` if none; -1 and a latched failure if it is none of the array's. */
static int one_axis(const char *operation, const tn_axis_opts *opts, int absent, int ndim)
{
    if (opts && !TN__AXES_GIVEN(operation, opts, axis))
        return -1;
    return tn__axis_of_list(operation, opts ? opts->axis : (tn_axes){0}, absent, ndim);
}

/* ---- sorting ---- */

/* Complex numbers by their real parts, those of equal ones by their imaginary parts: the latter first, then stably the
 * former. One with a NaN in it comes last. */
static tn__node *complex_order(tn__node *rows)
{
    int last = rows->shape->ndim - 1;
    tn__node *re = tn__real(rows), *im = tn__imaginary(rows);
    TN__PASS_ERROR(re);
    TN__PASS_ERROR(im);
    tn__node *nan = tn__unary(TN__OP_ISNAN, re);
    tn__node *order = tn__sort_scan(TN__OP_ARGSORT, im, NULL);
    if (rows->shape->size == 0)
        return order;
    order = tn__gather(order, tn__sort_scan(TN__OP_ARGSORT, tn__gather(re, order, last), NULL), last);
    tn__node *broken = tn__cast(tn__binary(TN__OP_LOGICAL_OR, nan, tn__unary(TN__OP_ISNAN, im)), TN_UINT8);
    return tn__gather(order, tn__sort_scan(TN__OP_ARGSORT, tn__gather(broken, order, last), NULL), last);
}

static tn__node *sort(const char *operation, const tn_array *x, const tn_axis_opts *opts, bool positions)
{
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    int axis = one_axis(operation, opts, -1, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    tn__node *rows = tn__axis_to_last(a, axis);
    bool complex = tn__dtypes[a->dtype].class == TN__CLASS_COMPLEX;
    if (positions || complex || a->flags & TN__NODE_NEEDS_GRAD) {
        tn__node *order = complex ? complex_order(rows) : tn__sort_scan(TN__OP_ARGSORT, rows, NULL);
        rows = positions ? order : rows->shape->size == 0 ? rows : tn__gather(rows, order, rows->shape->ndim - 1);
    } else {
        rows = tn__sort_scan(TN__OP_SORT, rows, NULL);
    }
    return tn__axis_from_last(rows, axis);
}

tn_array *tn_sort_with(const tn_array *x, const tn_axis_opts *opts)
{
    tn__call call = tn__enter();
    return tn__deliver(call, sort("sort", x, opts, false), opts ? opts->out : NULL);
}

tn_array *tn_argsort_with(const tn_array *x, const tn_axis_opts *opts)
{
    tn__call call = tn__enter();
    return tn__deliver(call, sort("argsort", x, opts, true), opts ? opts->out : NULL);
}

/* ---- scans ---- */

/* Products of beginnings by doubling: after step k each element is the product of 2^k of them, up to its own. Made of
 * multiplications and windows, so that zeros need no care in any derivative. */
static tn__node *products_by_doubling(tn__node *a)
{
    int last = a->shape->ndim - 1;
    int64_t n = a->shape->dim[last];
    for (int64_t by = 1; by < n; by *= 2) {
        tn__node *before = tn__last_slice(a, 0, n - by);
        a = tn__binary(TN__OP_MULTIPLY, a, tn__update_along(tn__const_like(a, 1), before, last, by));
        TN__PASS_ERROR(a);
    }
    return a;
}

/* Sums and products of small integers are of int64 or uint64, unless a dtype is asked for. */
static tn__node *scan_operand(tn__node *a, tn__op op, tn_dtype dtype)
{
    bool total = op == TN__OP_CUMSUM || op == TN__OP_CUMPROD;
    if (!dtype && total && !tn_dtype_is_float((tn_dtype)a->dtype) && tn__dtypes[a->dtype].class <= TN__CLASS_UNSIGNED)
        dtype = tn__dtypes[a->dtype].class == TN__CLASS_UNSIGNED ? TN_UINT64 : TN_INT64;
    return dtype ? tn__cast(a, dtype) : a;
}

/* Of complex numbers: by their places in sorted order, of which the largest so far names the element. NaN wins: for the
 * least, elements with a NaN come first. */
static tn__node *complex_extremes(tn__node *rows, tn__op op)
{
    int last = rows->shape->ndim - 1;
    tn__node *order = complex_order(rows), *place = tn__sort_scan(TN__OP_ARGSORT, order, NULL);
    TN__PASS_ERROR(place);
    if (op == TN__OP_CUMMIN) {
        tn__node *nan = tn__unary(TN__OP_ISNAN, rows);
        place = tn__where(nan, tn__with(TN__OP_SUBTRACT, place, (double)rows->shape->dim[last]), place);
    }
    place = tn__sort_scan(op, place, NULL);
    TN__PASS_ERROR(place);
    if (op == TN__OP_CUMMIN) {
        tn__node *before = tn__with(TN__OP_LESS, place, 0);
        place = tn__where(before, tn__with(TN__OP_ADD, place, (double)rows->shape->dim[last]), place);
    }
    return tn__gather(rows, tn__gather(order, place, last), last);
}

/* The same elements, taken from their places, of equal ones the last: so gradients go there. */
static tn__node *taken_extremes(tn__node *rows, tn__op op)
{
    int last = rows->shape->ndim - 1;
    tn__node *most = tn__sort_scan(op, rows, NULL);
    TN__PASS_ERROR(most);
    tn__node *here = tn__binary(TN__OP_LOGICAL_OR, tn__binary(TN__OP_EQUAL, rows, most), tn__unary(TN__OP_ISNAN, rows));
    TN__PASS_ERROR(here);
    tn__node *place = tn__iota(here->shape, last, here->device);
    TN__PASS_ERROR(place);
    place = tn__sort_scan(TN__OP_CUMMAX, tn__where(here, place, tn__const_like(place, 0)), NULL);
    TN__PASS_ERROR(place);
    return tn__gather(rows, place, last);
}

static tn__node *scan(tn__op op, const tn_array *x, const tn_axis_opts *opts)
{
    const char *operation = tn__ops[op].name;
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    tn_dtype asked = opts ? opts->dtype : TN_DTYPE_DEFAULT,
             out = opts && opts->out && !tn_is_error(opts->out) ? tn_dtype_of(opts->out) : asked;
    if (!asked && out && tn__dtype_inexact((tn_dtype)a->dtype) && tn__dtype_inexact(out))
        asked = tn_dtype_promote((tn_dtype)a->dtype, out); /* in what holds both, as in NumPy */
    a = scan_operand(a, op, asked);
    TN__PASS_ERROR(a);
    if (!opts || (opts->axis.count == 0 && TN__AXES_GIVEN(operation, opts, axis)))
        a = tn__reshape(a, 1, &a->shape->size);
    TN__PASS_ERROR(a);
    int axis = one_axis(operation, opts, 0, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    tn_dtype dtype = (tn_dtype)a->dtype;
    if (dtype == TN_BOOL) { /* of bool: or, and */
        op = op == TN__OP_CUMSUM ? TN__OP_CUMMAX : op == TN__OP_CUMPROD ? TN__OP_CUMMIN : op;
    }
    a = tn__axis_to_last(a, axis);
    TN__PASS_ERROR(a);
    bool extremes = op == TN__OP_CUMMAX || op == TN__OP_CUMMIN;
    if (extremes && a->shape->size == 0)
        return tn__axis_from_last(a, axis);
    if (extremes && tn__dtypes[a->dtype].class == TN__CLASS_COMPLEX)
        return tn__axis_from_last(complex_extremes(a, op), axis);
    if (extremes && a->flags & TN__NODE_NEEDS_GRAD)
        return tn__axis_from_last(taken_extremes(a, op), axis);
    a = op == TN__OP_CUMPROD && a->flags & TN__NODE_NEEDS_GRAD ? products_by_doubling(a) : tn__sort_scan(op, a, NULL);
    return tn__axis_from_last(a, axis);
}

#define SCAN(name, ID) \
    tn_array *tn_##name##_with(const tn_array *x, const tn_axis_opts *opts) \
    { \
        tn__call call = tn__enter(); \
        return tn__deliver(call, scan(TN__OP_##ID, x, opts), opts ? opts->out : NULL); \
    }
SCAN(cumsum, CUMSUM)
SCAN(cumprod, CUMPROD)
SCAN(cummax, CUMMAX)
SCAN(cummin, CUMMIN)

/* ---- searching ---- */

/* Two vectors as one. */
static tn__node *joined(tn__node *a, tn__node *b)
{
    if (a->shape->size == 0 || b->shape->size == 0)
        return a->shape->size ? a : b;
    tn_shape both = {.ndim = 1, .dim = {a->shape->size + b->shape->size}};
    const tn__shape *shape = tn__shape_make("searchsorted", both, (tn_dtype)a->dtype);
    if (!shape)
        return tn__failed();
    tn__node *zeros = tn__const(0, (tn_dtype)a->dtype, shape, a->device);
    return tn__update_along(tn__update_along(zeros, a, 0, 0), b, 0, a->shape->size);
}

/* Complex values have places by sorting them and the sorted ones together: how many of those stand before each. */
static tn__node *complex_search(tn__node *sorted, tn__node *values, bool right)
{
    int64_t n = sorted->shape->size, m = values->shape->size;
    /* equal ones stay in the order in which they are joined */
    tn__node *order = complex_order(right ? joined(sorted, values) : joined(values, sorted));
    TN__PASS_ERROR(order);
    tn__node *ours = right ? tn__with(TN__OP_LESS, order, (double)n) : tn__with(TN__OP_GREATER_EQUAL, order, (double)m);
    tn__node *before = tn__sort_scan(TN__OP_CUMSUM, tn__cast(ours, TN_INT64), NULL),
             *place = tn__sort_scan(TN__OP_ARGSORT, order, NULL);
    TN__PASS_ERROR(before);
    TN__PASS_ERROR(place);
    int64_t start = right ? n : 0, step = 1;
    return tn__gather(before, tn__slice_node(place, &start, &step, &m), 0);
}

static tn__node *search(tn__node *sorted, tn__node *values, bool right)
{
    TN__PASS_ERROR(sorted);
    TN__PASS_ERROR(values);
    if (sorted->shape->ndim != 1)
        TN__REFUSE(TN_ERR_SHAPE, "searchsorted", "expected a sorted vector, got an array of %d axes",
                   sorted->shape->ndim);
    tn__node *in[] = {sorted, values};
    bool weak;
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    for (int i = 0; i < 2; i++) /* a number beyond the other's dtype has a place all the same */
        if (tn__weak_integer(in[i]) && !tn__weak_holds(in[i], dtype))
            dtype = tn_dtype_promote(dtype, (tn_dtype)in[i]->dtype);
    tn__device *device = tn__common_device("searchsorted", 2, in);
    if (!device)
        return tn__failed();
    const tn__shape *shape = values->shape;
    sorted = tn__adapt(sorted, dtype, sorted->shape, device);
    values = tn__reshape(tn__adapt(values, dtype, shape, device), 1, &shape->size);
    if (tn__dtypes[dtype].class == TN__CLASS_COMPLEX)
        return shape->size == 0 ? tn__const(0, TN_INT64, shape, device)
                                : tn__reshape_like(complex_search(sorted, values, right), shape);
    return tn__reshape_like(tn__sort_scan(right ? TN__OP_SEARCH_RIGHT : TN__OP_SEARCH_LEFT, sorted, values), shape);
}

tn_array *tn_searchsorted_with(const tn_array *sorted, const tn_array *values, const tn_search_opts *opts)
{
    TN__RETURN(search(tn__node_of(sorted, "searchsorted"), tn__node_of(values, "searchsorted"), opts && opts->right));
}
