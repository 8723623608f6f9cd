/* SPDX-License-Identifier: MIT */
/* Distinct elements and rows, and what is made of them: sets. */
#include "numpy/compose.h"

#include "array/build_parts.h"
#include "core/options.h"
#include "numpy/distinct.h"

/* ---- distinct elements ---- */

/* True at the first of each run of equal elements of a sorted vector, or equal rows of a matrix. */
static tn_array *run_starts(const tn_array *sorted, bool distinct_nan)
{
    tn_array *high = tn_slice_axis(sorted, 0, 1, TN_NONE, 1), *low = tn_slice_axis(sorted, 0, 0, -1, 1);
    tn_array *differs = tn_not_equal(high, low);
    if (!distinct_nan && tn__dtype_inexact(tn_dtype_of(sorted)))
        differs = tn_logical_and(differs, tn_logical_not(tn_logical_and(tn_isnan(high), tn_isnan(low))));
    const tn_create_opts opts = {.dtype = TN_BOOL, .device = tn_device_of(sorted)};
    const tn_reduce_opts rows = {.axis = {1, {1}}};
    differs = tn_ndim(differs) == 2 ? tn_any_with(differs, &rows) : differs;
    tn_array *first = tn_ones_with(tn__vector(tn_dim(sorted, 0) > 0), &opts);
    return tn_concatenate(2, (const tn_array *const[]){first, differs}, 0);
}

/* The order of a matrix's rows: by the last column, then stably by the one before it, and so on. */
static tn_array *order_of_rows(const tn_array *rows)
{
    tn_array *order = tn__count_up(rows, tn_dim(rows, 0));
    for (int64_t k = tn_dim(rows, 1) - 1; k >= 0; k--) {
        const tn_slice_range column[] = {{TN_NONE, TN_NONE, 1}, {k, k + 1, 1}};
        tn_array *key = tn_take(tn_ravel(tn_slice(rows, 2, column)), order, 0);
        order = tn_take(order, tn_argsort_with(key, NULL), 0);
    }
    return order;
}

/* Distinct elements of a vector, or rows of a matrix; the inverse has the shape given. */
static tn_array *distinct(const tn_array *flat, tn_shape inverse, const tn_unique_opts *opts)
{
    bool order_needed = tn_ndim(flat) == 2 || (opts && (opts->index || opts->inverse));
    bool distinct_nan = opts && opts->distinct_nan;
    tn_array *first = order_needed || (opts && (opts->counts || distinct_nan)) ? NULL : tn__first_places(flat);
    if (first) { /* few enough to be sorted by themselves */
        tn_array *few = tn_take(flat, first, 0);
        return tn_take(flat, tn_take(first, tn_argsort_with(few, NULL), 0), 0);
    }
    tn_array *order = !order_needed ? NULL : tn_ndim(flat) == 2 ? order_of_rows(flat) : tn_argsort_with(flat, NULL);
    tn_array *sorted = order ? tn_take(flat, order, 0) : tn_sort_with(flat, NULL);
    /* several evaluations read them */
    const tn_array *const read[] = {sorted, order};
    if (tn_eval_all(order ? 2 : 1, read) != TN_OK)
        return tn__failed_array();
    tn_array *starts = run_starts(sorted, distinct_nan), *places = tn_flatnonzero(starts);
    if (opts && opts->index)
        *opts->index = tn_keep(tn_take(order, places, 0));
    if (opts && opts->inverse) {
        tn_array *number = tn_subtract(tn_cumsum_with(starts, NULL), tn_weak_int(1));
        *opts->inverse = tn_keep(tn_reshape(tn_scatter_set(tn_zeros_like(order), order, number, 0), inverse));
    }
    if (opts && opts->counts) {
        const int64_t size = tn_dim(flat, 0);
        tn_array *end = tn__positions_like(flat, &size, 1);
        *opts->counts = tn_keep(tn_diff(tn_concatenate(2, (const tn_array *const[]){places, end}, 0), 1, 0));
    }
    return tn_take(sorted, places, 0);
}

/* Along an axis: that axis in front, the others as one, which come back behind it. */
static tn_array *unique(const tn_array *x, const tn_unique_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (opts && !TN__AXES_GIVEN("unique", opts, axis))
        return tn__failed_array();
    if (!opts || opts->axis.count == 0)
        return distinct(tn_ravel(x), tn_shape_of(x), opts);
    int axis = tn__axis_of_list("unique", opts->axis, 0, tn_ndim(x));
    if (axis < 0)
        return tn__failed_array();
    if (tn_ndim(x) == 1)
        return distinct(x, tn_shape_of(x), opts);
    tn_unique_opts apart = *opts; /* subarrays that hold a NaN equal none */
    apart.distinct_nan = true;
    tn_array *front = tn_moveaxis(x, tn__axes_of(1, &axis), tn__axes_of(1, (int[]){0}));
    tn_shape shape = tn_shape_of(front), rows = {.ndim = 2, .dim = {shape.dim[0], 1}};
    for (int d = 1; d < shape.ndim; d++)
        rows.dim[1] *= shape.dim[d];
    tn_array *y = distinct(tn_reshape(front, rows), tn__vector(rows.dim[0]), &apart);
    if (tn_is_error(y))
        return y;
    shape.dim[0] = tn_dim(y, 0);
    return tn_moveaxis(tn_reshape(y, shape), tn__axes_of(1, (int[]){0}), tn__axes_of(1, &axis));
}

tn_array *tn_unique_with(const tn_array *x, const tn_unique_opts *opts)
{
    tn_array **extra[] = {opts ? opts->index : NULL, opts ? opts->inverse : NULL, opts ? opts->counts : NULL};
    for (int i = 0; i < 3; i++)
        if (extra[i])
            *extra[i] = NULL;
    tn_scope_push();
    tn_array *result = tn__composed(unique(x, opts));
    for (int i = 0; i < 3; i++)
        if (extra[i] && !*extra[i])
            *extra[i] = tn__again(result);
    return result;
}

/* ---- sets ---- */

enum { ROOM = 6 }; /* places of a table, by element that is looked up or put in */

static tn_dtype common_dtype(const tn_array *a, const tn_array *b)
{
    return tn_dtype_promote(tn_dtype_of(a), tn_dtype_of(b));
}

/* A set of integers that lie close together is a table of truth values, from the least to the largest; NULL for
 * others. */
static tn_array *isin_table(const tn_array *x, const tn_array *set)
{
    const tn_array *const ends[] = {tn_min_with(set, NULL), tn_max_with(set, NULL)};
    if (tn_eval_all(2, ends) != TN_OK)
        return tn__failed_array();
    tn_dtype dtype = tn_dtype_of(x);
    int64_t size = tn_size(x) + tn_size(set), least = tn_item_int(ends[0]), range = tn_item_int(ends[1]) - least;
    if (dtype == TN_UINT64 ? least < 0 : (double)tn_item_int(ends[1]) - (double)least > (double)ROOM * (double)size)
        return NULL;
    if (range < 0 || range / ROOM > size)
        return NULL;
    const tn_create_opts opts = {.dtype = TN_BOOL, .device = tn_device_of(x)};
    tn_array *inside = tn_logical_and(tn_greater_equal(x, ends[0]), tn_less_equal(x, ends[1]));
    tn_array *members = tn_subtract(tn_cast(tn_ravel(set), TN_INT64), tn_weak_int(least));
    tn_array *table = tn_scatter_set(tn_zeros_with(tn__vector(range + 1), &opts), members,
                                     tn_cast(tn_ones_like(members), TN_BOOL), 0);
    tn_array *place = tn_subtract(tn_cast(tn_minimum(tn_maximum(x, ends[0]), ends[1]), TN_INT64), tn_weak_int(least));
    return tn_logical_and(inside, tn_take(table, place, 0));
}

/* Whether what stands in the sorted set where x would go is x. */
static tn_array *isin(const tn_array *x, const tn_array *set, bool invert)
{
    if (tn_is_error(x) || tn_is_error(set))
        return tn__again(tn_is_error(x) ? x : set);
    tn_dtype dtype = common_dtype(x, set);
    tn_array *found;
    bool integers = tn_dtype_is_integer(tn_dtype_of(x)) && tn_dtype_is_integer(tn_dtype_of(set));
    if (integers && !tn_dtype_is_integer(dtype)) { /* uint64 and a signed dtype: what is in both fits either */
        found = tn_logical_and(isin(tn_cast(x, TN_UINT64), tn_cast(set, TN_UINT64), false),
                               tn_greater_equal(tn_cast(x, TN_INT64), tn_weak_int(0)));
    } else if (tn_size(set) == 0) {
        found = tn_cast(tn_zeros_like(x), TN_BOOL);
    } else if (tn_dtype_is_complex(dtype)) { /* which nothing searches in: by their numbers among all */
        tn_array *all = tn_concatenate(2, (const tn_array *const[]){tn_ravel(set), tn_ravel(x)}, 0), *number;
        const tn_unique_opts opts = {.inverse = &number, .distinct_nan = true};
        tn_free(tn_unique_with(all, &opts));
        int64_t n = tn_size(set);
        tn_array *own = tn_reshape(tn__cut(number, 0, n, tn_size(x)), tn_shape_of(x));
        found = isin(own, tn__cut(number, 0, 0, n), false);
    } else if (tn_dtype_is_integer(dtype) && (found = isin_table(tn_cast(x, dtype), tn_cast(set, dtype)))) {
        return invert ? tn_logical_not(found) : found;
    } else {
        tn_array *v = tn_cast(x, dtype), *sorted = tn_sort_with(tn_cast(tn_ravel(set), dtype), NULL);
        tn_array *place = tn_minimum(tn_searchsorted_with(sorted, v, NULL), tn_weak_int(tn_size(set) - 1));
        found = tn_equal(tn_take(sorted, place, 0), v);
    }
    return invert ? tn_logical_not(found) : found;
}

tn_array *tn_isin(const tn_array *x, const tn_array *set, bool invert)
{
    TN__COMPOSE(isin(x, set, invert));
}

/* The elements of a vector for which a mask is true. */
static tn_array *those(const tn_array *x, const tn_array *mask)
{
    return tn_take(x, tn_flatnonzero(mask), 0);
}

static tn_array *both_flat(const tn_array *a, const tn_array *b)
{
    return tn_concatenate(2, (const tn_array *const[]){tn_ravel(a), tn_ravel(b)}, 0);
}

static tn_array *intersection(const tn_array *a, const tn_array *b)
{
    tn_array *x = tn_unique_with(tn_cast(a, common_dtype(a, b)), NULL);
    return those(x, isin(x, b, false));
}

static tn_array *difference(const tn_array *a, const tn_array *b)
{
    tn_array *x = tn_unique_with(a, NULL);
    return those(x, isin(x, b, true));
}

static tn_array *exclusive(const tn_array *a, const tn_array *b)
{
    tn_dtype dtype = common_dtype(a, b);
    tn_array *x = tn_unique_with(tn_cast(a, dtype), NULL), *y = tn_unique_with(tn_cast(b, dtype), NULL);
    return tn_sort_with(both_flat(those(x, isin(x, y, true)), those(y, isin(y, x, true))), NULL);
}

tn_array *tn_intersect1d(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(intersection(a, b));
}

tn_array *tn_union1d(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(tn_unique_with(both_flat(a, b), NULL));
}

tn_array *tn_setdiff1d(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(difference(a, b));
}

tn_array *tn_setxor1d(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(exclusive(a, b));
}
