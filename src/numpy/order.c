/* SPDX-License-Identifier: MIT */
/* What sorting gives: partitions, the largest k, orders by several keys, bins. */
#include "numpy/compose.h"

#include <math.h>

#include "array/build_parts.h"
#include "array/partition.h"
#include "core/options.h"

static int axis_of(const char *operation, const tn_array *x, const tn_axis_opts *opts)
{
    if (opts && !TN__AXES_GIVEN(operation, opts, axis))
        return -1;
    return tn_is_error(x) ? -1 : tn__axis_of_list(operation, opts ? opts->axis : (tn_axes){0}, -1, tn_ndim(x));
}

/* ---- partitions ---- */

/* About one place, where the device has them and rows are long; else the sorted order, which is one. */
static tn_array *partition(const char *operation, const tn_array *x, int count, const int64_t *kth,
                           const tn_axis_opts *opts, bool positions)
{
    int axis = axis_of(operation, x, opts);
    if (tn_is_error(x))
        return tn__again(x);
    if (axis < 0)
        return tn__failed_array();
    if (count > 0 && !kth)
        return tn__refused(TN_ERR_VALUE, operation, "expected %d places, got NULL", count);
    int64_t extent = tn_dim(x, axis);
    for (int i = 0; i < count; i++)
        if (tn_size(x) > 0 && (kth[i] < -extent || kth[i] >= extent))
            return tn__refused(TN_ERR_VALUE, operation, "place %lld is out of range for an axis of extent %lld",
                               (long long)kth[i], (long long)extent);
    if (count == 1 && tn__partitions(x, axis))
        return tn__partitioned(operation, x, axis, kth[0] < 0 ? kth[0] + extent : kth[0], positions,
                               opts ? opts->out : NULL);
    const tn_axis_opts own = {.axis = tn__axes_of(1, &axis), .out = opts ? opts->out : NULL};
    return positions ? tn_argsort_with(x, &own) : tn_sort_with(x, &own);
}

tn_array *tn_partition_with(const tn_array *x, int count, const int64_t *kth, const tn_axis_opts *opts)
{
    return partition("partition", x, count, kth, opts, false);
}

tn_array *tn_argpartition_with(const tn_array *x, int count, const int64_t *kth, const tn_axis_opts *opts)
{
    return partition("argpartition", x, count, kth, opts, true);
}

/* The positions of the k largest, the least of them first; of equal ones, those at higher positions count as
 * greater. */
static tn_array *last_places(const tn_array *x, int axis, int64_t k)
{
    int64_t extent = tn_dim(x, axis);
    const tn_axis_opts own = {.axis = tn__axes_of(1, &axis)};
    if (k == 0 || k > extent / 2 || !tn__partitions(x, axis))
        return tn__cut(tn_argsort_with(x, &own), axis, extent - k, k);
    tn_array *places = tn__cut(tn__partitioned("topk", x, axis, extent - k, true, NULL), axis, extent - k, k);
    places = tn_sort_with(places, &own);
    return tn_take_along_axis(places, tn_argsort_with(tn_take_along_axis(x, places, axis), &own), axis);
}

/*
 * Of many rows a few: one is found after the other, the largest of those not taken yet and where it is; of equal ones
 * the last, as in the sorted order backwards. These are passes over a row that stays in registers or in the nearest
 * cache.
 */
#define FEW_TAKEN    5
#define MANY_ROWS    64
#define LONGEST_ROW  50000

static bool takes_in_turn(const tn_array *x, int axis, int64_t k)
{
    int64_t extent = tn_dim(x, axis);
    return k > 0 && k <= FEW_TAKEN && axis == tn_ndim(x) - 1 && tn_dtype_is_float(tn_dtype_of(x)) && extent >= 16 * k &&
           extent <= LONGEST_ROW && tn_size(x) / extent >= MANY_ROWS && !tn__finds_largest(x, axis, k);
}

static tn_array *places_in_turn(const tn_array *x, int axis, int64_t k)
{
    const tn_reduce_opts along = {.axis = tn__axes_of(1, &axis), .keepdims = true};
    const tn_create_opts numbers = {.dtype = TN_INT32, .device = tn_device_of(x)};
    tn_array *at = tn_arange_with(0, (double)tn_dim(x, axis), 1, &numbers), *taken = NULL, *places[FEW_TAKEN];
    for (int i = 0; i < k; i++) {
        tn_array *largest = tn_max_with(taken ? tn_where(taken, tn_weak_float(-HUGE_VAL), x) : x, &along);
        tn_array *here = tn_logical_or(tn_equal(x, largest), tn_logical_and(tn_isnan(x), tn_isnan(largest)));
        if (taken)
            here = tn_logical_and(here, tn_logical_not(taken));
        places[i] = tn_max_with(tn_where(here, at, tn_weak_int(-1)), &along);
        tn_array *this = tn_equal(at, places[i]);
        taken = taken ? tn_logical_or(taken, this) : this;
    }
    return tn_cast(tn_concatenate((int)k, (const tn_array *const *)places, axis), TN_INT64);
}

static tn_array *topk(const tn_array *x, int64_t k, tn_array **positions, const tn_axis_opts *opts)
{
    int axis = axis_of("topk", x, opts);
    if (tn_is_error(x))
        return tn__again(x);
    if (axis < 0)
        return tn__failed_array();
    int64_t extent = tn_dim(x, axis);
    if (k < 0 || k > extent)
        return tn__refused(TN_ERR_VALUE, "topk", "%lld largest of %lld elements", (long long)k, (long long)extent);
    bool in_turn = takes_in_turn(x, axis, k);
    if (in_turn || tn__finds_largest(x, axis, k)) {
        tn_array *order = in_turn ? places_in_turn(x, axis, k) : tn__largest_places("topk", x, axis, k);
        if (positions)
            *positions = tn_keep(order);
        return tn_take_along_axis(x, order, axis);
    }
    if (!positions && k > 0 && k <= extent / 2 && tn__partitions(x, axis)) { /* values tell all that is asked for */
        const tn_axis_opts own = {.axis = tn__axes_of(1, &axis)};
        tn_array *values = tn__cut(tn__partitioned("topk", x, axis, extent - k, false, NULL), axis, extent - k, k);
        return tn_flip(tn_sort_with(values, &own), own.axis);
    }
    tn_array *order = tn_flip(last_places(x, axis, k), tn__axes_of(1, &axis));
    if (positions)
        *positions = tn_keep(order);
    return tn_take_along_axis(x, order, axis);
}

tn_array *tn_topk_with(const tn_array *x, int64_t k, tn_array **positions, const tn_axis_opts *opts)
{
    if (positions)
        *positions = NULL;
    tn_scope_push();
    tn_array *largest = tn__composed(tn__into(opts ? opts->out : NULL, topk(x, k, positions, opts)));
    if (positions && !*positions)
        *positions = tn__again(largest);
    return largest;
}

/* By the first key, then stably by the next, and so on: the last one decides. */
static tn_array *lexsort(int count, const tn_array *const *keys, const tn_axis_opts *opts)
{
    if (count < 1 || !keys)
        return tn__refused(TN_ERR_VALUE, "lexsort", "expected 1 or more keys, got %d", count);
    int axis = axis_of("lexsort", keys[0], opts);
    if (tn_is_error(keys[0]))
        return tn__again(keys[0]);
    if (axis < 0)
        return tn__failed_array();
    const tn_axis_opts own = {.axis = tn__axes_of(1, &axis)};
    tn_array *order = tn_argsort_with(keys[0], &own);
    for (int i = 1; i < count; i++)
        order = tn_take_along_axis(order, tn_argsort_with(tn_take_along_axis(keys[i], order, axis), &own), axis);
    return order;
}

tn_array *tn_lexsort_with(int count, const tn_array *const *keys, const tn_axis_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, lexsort(count, keys, opts)));
}

/* ---- bins ---- */

/* NumPy: for descending bins the search goes through them backwards. */
static tn_array *digitize(const tn_array *x, const tn_array *bins, bool right)
{
    if (tn_is_error(bins) || tn_is_error(x))
        return tn__again(tn_is_error(x) ? x : bins);
    int64_t n = tn_size(bins);
    if (tn_ndim(bins) != 1)
        return tn__refused(TN_ERR_SHAPE, "digitize", "expected a vector of bins, got %d axes", tn_ndim(bins));
    tn_array *high = tn_slice_axis(bins, 0, 1, TN_NONE, 1), *low = tn_slice_axis(bins, 0, 0, -1, 1);
    /* NumPy's: the first two neighbours that differ say which way, and none may go the other way, as none with a NaN
     * does */
    tn_array *up = tn_less(low, high), *down = tn_greater(low, high), *differ = tn_not_equal(low, high);
    bool ascends = n < 2 || tn_item(tn_any_with(differ, NULL)) == 0 ||
                   tn_item(tn_take(up, tn_argmax_with(differ, NULL), 0)) == 1;
    if (n >= 2 && tn_item(tn_any_with(ascends ? down : up, NULL)) != 0)
        return tn__refused(TN_ERR_VALUE, "digitize", "the bins must ascend or descend");
    const tn_search_opts opts = {.right = !right};
    if (ascends)
        return tn_searchsorted_with(bins, x, &opts);
    return tn_subtract(tn_weak_int(n), tn_searchsorted_with(tn_flip(bins, (tn_axes){0}), x, &opts));
}

tn_array *tn_digitize_with(const tn_array *x, const tn_array *bins, const tn_search_opts *opts)
{
    TN__COMPOSE(digitize(x, bins, opts && opts->right));
}

/* ---- as complex numbers ---- */

static tn_array *sort_complex(const tn_array *x)
{
    tn_array *sorted = tn_sort_with(x, NULL);
    tn_dtype dtype = tn_dtype_of(sorted);
    if (tn_is_error(sorted) || tn_dtype_is_complex(dtype))
        return sorted;
    return tn_cast(sorted, tn_dtype_is_integer(dtype) && tn_dtype_size(dtype) <= 2 ? TN_COMPLEX64 : TN_COMPLEX128);
}

tn_array *tn_sort_complex(const tn_array *x)
{
    TN__COMPOSE(sort_complex(x));
}
