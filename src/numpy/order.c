/* SPDX-License-Identifier: MIT */
/* What sorting gives: partitions, the largest k, orders by several keys, bins, sets. */
#include "numpy/compose.h"

#include "array/build_parts.h"

static int axis_of(const tn_axis_opts *opts)
{
    return opts && opts->axis.count ? opts->axis.axis[0] : -1;
}

/* ---- partitions: the sorted order is one ---- */

static tn_array *partition(const char *operation, const tn_array *x, int count, const int64_t *kth, const tn_axis_opts *opts,
                           bool positions)
{
    int axis = tn__axis_of(operation, x, axis_of(opts));
    if (tn_is_error(x))
        return tn__again(x);
    if (axis < 0)
        return tn__leave_error(tn__enter());
    int64_t extent = tn_dim(x, axis);
    for (int i = 0; i < count; i++)
        if (kth[i] < -extent || kth[i] >= extent)
            return tn__refused(TN_ERR_VALUE, operation, "place %lld is out of range for an axis of extent %lld",
                               (long long)kth[i], (long long)extent);
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

static tn_array *topk(const tn_array *x, int64_t k, tn_array **positions, const tn_axis_opts *opts)
{
    int axis = tn__axis_of("topk", x, axis_of(opts));
    if (tn_is_error(x))
        return tn__again(x);
    if (axis < 0)
        return tn__leave_error(tn__enter());
    int64_t extent = tn_dim(x, axis);
    if (k < 0 || k > extent)
        return tn__refused(TN_ERR_VALUE, "topk", "%lld largest of %lld elements", (long long)k, (long long)extent);
    const tn_axis_opts own = {.axis = tn__axes_of(1, &axis)};
    tn_array *order = tn_flip(tn__cut(tn_argsort_with(x, &own), axis, extent - k, k), tn__axes_of(1, &axis));
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
    int axis = tn__axis_of("lexsort", keys[0], axis_of(opts));
    if (tn_is_error(keys[0]))
        return tn__again(keys[0]);
    if (axis < 0)
        return tn__leave_error(tn__enter());
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
    bool ascends = n < 2 || tn_item(tn_all_with(tn_greater_equal(high, low), NULL)) != 0;
    bool descends = !ascends && tn_item(tn_all_with(tn_less_equal(high, low), NULL)) != 0;
    if (!ascends && !descends)
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

/* ---- distinct elements ---- */

/* True at the first of each run of equal elements of a sorted vector; NaNs are equal. */
static tn_array *run_starts(const tn_array *sorted)
{
    tn_array *high = tn_slice_axis(sorted, 0, 1, TN_NONE, 1), *low = tn_slice_axis(sorted, 0, 0, -1, 1);
    tn_array *differs = tn_not_equal(high, low);
    if (tn_dtype_is_float(tn_dtype_of(sorted)))
        differs = tn_logical_and(differs, tn_logical_not(tn_logical_and(tn_isnan(high), tn_isnan(low))));
    const tn_create_opts opts = {.dtype = TN_BOOL, .device = tn_device_of(sorted)};
    tn_array *first = tn_ones_with(tn__vector(tn_size(sorted) > 0), &opts);
    return tn_concatenate(2, (const tn_array *const[]){first, differs}, 0);
}

static tn_array *unique(const tn_array *x, const tn_unique_opts *opts)
{
    tn_array *flat = tn_ravel(x);
    bool order_needed = opts && (opts->index || opts->inverse);
    if (tn_is_error(flat))
        return flat;
    tn_array *order = order_needed ? tn_argsort_with(flat, NULL) : NULL;
    tn_array *sorted = order ? tn_take(flat, order, 0) : tn_sort_with(flat, NULL);
    /* several evaluations read them */
    const tn_array *const read[] = {sorted, order};
    if (tn_eval_all(order ? 2 : 1, read) != TN_OK)
        return tn__again(sorted);
    tn_array *starts = run_starts(sorted), *places = tn_flatnonzero(starts);
    if (opts && opts->index)
        *opts->index = tn_keep(tn_take(order, places, 0));
    if (opts && opts->inverse) {
        tn_array *number = tn_subtract(tn_cumsum_with(starts, NULL), tn_weak_int(1));
        *opts->inverse = tn_keep(tn_scatter_set(tn_zeros_like(order), order, number, 0));
    }
    if (opts && opts->counts) {
        const int64_t size = tn_size(flat);
        tn_array *end = tn__positions_like(flat, &size, 1);
        *opts->counts = tn_keep(tn_diff(tn_concatenate(2, (const tn_array *const[]){places, end}, 0), 1, 0));
    }
    return tn_take(sorted, places, 0);
}

tn_array *tn_unique_with(const tn_array *x, const tn_unique_opts *opts)
{
    tn_array **extra[] = {opts ? opts->index : NULL, opts ? opts->inverse : NULL, opts ? opts->counts : NULL};
    for (int i = 0; i < 3; i++)
        if (extra[i])
            *extra[i] = NULL;
    tn_scope_push();
    tn_array *distinct = tn__composed(unique(x, opts));
    for (int i = 0; i < 3; i++)
        if (extra[i] && !*extra[i])
            *extra[i] = tn__again(distinct);
    return distinct;
}

/* ---- sets ---- */

static tn_dtype common_dtype(const tn_array *a, const tn_array *b)
{
    return tn_dtype_promote(tn_dtype_of(a), tn_dtype_of(b));
}

/* Whether what stands in the sorted set where x would go is x. */
static tn_array *isin(const tn_array *x, const tn_array *set, bool invert)
{
    if (tn_is_error(x) || tn_is_error(set))
        return tn__again(tn_is_error(x) ? x : set);
    tn_dtype dtype = common_dtype(x, set);
    tn_array *found;
    if (tn_size(set) == 0) {
        found = tn_cast(tn_zeros_like(x), TN_BOOL);
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
    tn_array *x = tn_unique_with(a, NULL), *y = tn_unique_with(b, NULL);
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
