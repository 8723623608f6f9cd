/* SPDX-License-Identifier: MIT */
/* Counting: bincount and histograms. Sums of weights come from scatter_add, and so do counts in very many bins. */
#include "numpy/compose.h"

#include "array/build_parts.h"
#include "numpy/bins.h"

#define FEW_BINS 2048 /* whose counters have room near each processor */

static tn_array *counts_between(const tn_array *edges, const tn_array *x)
{
    TN__RETURN(tn__histogram(tn__node_of(edges, "histogram"), tn__node_of(x, "histogram")));
}

/* How many elements of a vector of integers are each of 0 ... count - 1. */
static tn_array *counts_of(const tn_array *x, int64_t count)
{
    tn_dtype dtype = tn_dtype_of(x);
    if (count <= FEW_BINS) {
        tn_dtype wide = tn_dtype_size(dtype) < 4 ? TN_INT32 : dtype;
        return counts_between(tn_cast(tn__count_up(x, count + 1), wide), tn_cast(x, wide));
    }
    tn_array *zeros = tn_zeros_like(tn__count_up(x, count)), *places = tn_cast(x, TN_INT64);
    return tn_scatter_add(zeros, places, tn_ones_like(places), 0);
}

static tn_array *sums_of(const tn_array *places, const tn_array *weights, int64_t count)
{
    const tn_create_opts opts = {.dtype = tn_dtype_of(weights), .device = tn_device_of(places)};
    return tn_scatter_add(tn_zeros_with(tn__vector(count), &opts), places, weights, 0);
}

static tn_array *bincount(const tn_array *x, const tn_array *weights, int64_t minlength)
{
    if (tn_is_error(x))
        return tn__again(x);
    tn_dtype dtype = tn_dtype_of(x);
    if (tn_ndim(x) != 1 || (tn_size(x) && (!tn_dtype_is_integer(dtype) && dtype != TN_BOOL)))
        return tn__refused(TN_ERR_DTYPE, "bincount", "expected a vector of integers, got %s with %d axes", tn_dtype_name(dtype),
                           tn_ndim(x));
    if (minlength < 0 || (weights && tn_size(weights) != tn_size(x)))
        return tn__refused(TN_ERR_VALUE, "bincount", "expected a minlength of 0 or more, and as many weights as elements");
    int64_t count = minlength;
    if (tn_size(x) > 0) {
        tn_array *whole = dtype == TN_BOOL ? tn_cast(x, TN_UINT8) : tn__again(x);
        tn_array *ends[] = {tn_min_with(whole, NULL), tn_max_with(whole, NULL)};
        if (tn_eval_all(2, (const tn_array *const *)ends) != TN_OK)
            return tn__again(ends[0]);
        if (tn_item_int(ends[0]) < 0)
            return tn__refused(TN_ERR_VALUE, "bincount", "an element is negative");
        count = tn_item_int(ends[1]) + 1 > minlength ? tn_item_int(ends[1]) + 1 : minlength;
        if (!weights)
            return counts_of(whole, count);
        return sums_of(tn_cast(whole, TN_INT64), tn_cast(tn_ravel(weights), TN_FLOAT64), count);
    }
    return tn_zeros_like(tn__count_up(x, count));
}

tn_array *tn_bincount(const tn_array *x, const tn_array *weights, int64_t minlength)
{
    TN__COMPOSE(bincount(x, weights, minlength));
}

/* ---- histograms ---- */

/* Bins of equal width, or an error. */
static tn_array *equal_edges(const tn_array *x, const tn_histogram_opts *opts)
{
    int64_t bins = opts && opts->bins ? opts->bins : 10;
    double low = opts ? opts->low : 0, high = opts ? opts->high : 0;
    if (bins < 1)
        return tn__refused(TN_ERR_VALUE, "histogram", "expected 1 or more bins, got %lld", (long long)bins);
    bool own = low == 0 && high == 0 && tn_size(x) > 0; /* limits of x's dtype; others are float64 */
    if (low == 0 && high == 0) {
        high = 1;
        if (own) {
            tn_array *ends[] = {tn_min_with(x, NULL), tn_max_with(x, NULL)};
            if (tn_eval_all(2, (const tn_array *const *)ends) != TN_OK)
                return tn__again(ends[0]);
            low = tn_item(ends[0]);
            high = tn_item(ends[1]);
        }
    }
    if (!(low <= high) || low - low != 0 || high - high != 0)
        return tn__refused(TN_ERR_VALUE, "histogram", "limits %g and %g: expected finite ones, in order", low, high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    if (opts && opts->rule && !(bins = opts->weights ? 0 : tn__bins_by_rule(x, opts->rule, low, high)))
        return opts->weights ? tn__refused(TN_ERR_VALUE, "histogram", "no rule tells the number of bins for weighted elements")
                             : tn__leave_error(tn__enter());
    tn_dtype dtype = tn_dtype_is_float(tn_dtype_of(x)) ? tn_dtype_of(x) : TN_FLOAT64;
    const tn_create_opts scalar = {.dtype = own ? dtype : TN_FLOAT64, .device = tn_device_of(x)};
    return tn_cast(tn_linspace_arrays_with(tn_scalar_with(low, &scalar), tn_scalar_with(high, &scalar), bins + 1, NULL), dtype);
}

static tn_array *edges_of(const tn_array *x, const tn_histogram_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (!(opts && opts->edges))
        return equal_edges(x, opts);
    tn_array *edges = tn__array_of(opts->edges);
    if (!tn_is_error(edges) && (tn_ndim(edges) != 1 || tn_size(edges) < 1))
        return tn__refused(TN_ERR_SHAPE, "histogram", "expected a vector of edges");
    tn_array *steps = tn_less(tn_slice_axis(edges, 0, 1, TN_NONE, 1), tn_slice_axis(edges, 0, 0, -1, 1));
    if (!tn_is_error(edges) && tn_size(steps) && tn_item(tn_any_with(steps, NULL)) != 0)
        return tn__refused(TN_ERR_VALUE, "histogram", "the edges must ascend");
    return edges;
}

tn_array *tn_histogram_bin_edges_with(const tn_array *x, const tn_histogram_opts *opts)
{
    TN__COMPOSE(edges_of(x, opts));
}

static tn_array *histogram(const tn_array *x, tn_array **edges_out, const tn_histogram_opts *opts)
{
    tn_array *flat = tn_ravel(x);
    flat = tn_dtype_of(x) == TN_BOOL ? tn_cast(flat, TN_UINT8) : flat;
    tn_array *edges = edges_of(flat, opts), *counts;
    if (edges_out)
        *edges_out = tn_keep(edges);
    if (tn_is_error(edges))
        return tn__again(edges);
    int64_t bins = tn_size(edges) - 1;
    const tn_array *weights = opts ? opts->weights : NULL;
    if (weights && tn_size(weights) != tn_size(x))
        return tn__refused(TN_ERR_SHAPE, "histogram", "%lld weights for %lld elements", (long long)tn_size(weights),
                           (long long)tn_size(x));
    if (bins == 0 || (tn_size(x) == 0 && !weights)) {
        counts = tn_zeros_like(tn__count_up(x, bins));
    } else if (!weights) {
        counts = counts_between(edges, flat);
    } else {
        const tn_search_opts right = {.right = true};
        tn_array *bin = tn_subtract(tn_searchsorted_with(edges, flat, &right), tn_weak_int(1));
        tn_array *last = tn_equal(flat, tn_index(edges, bins));
        bin = tn_where(last, tn_weak_int(bins - 1), bin);
        /* what lies outside goes to a bin of its own, which is dropped */
        tn_array *outside = tn_logical_or(tn_less(bin, tn_weak_int(0)), tn_greater_equal(bin, tn_weak_int(bins)));
        counts = tn__cut(sums_of(tn_where(outside, tn_weak_int(bins), bin), tn_ravel(weights), bins + 1), 0, 0, bins);
    }
    if (!(opts && opts->density))
        return counts;
    tn_array *density = tn_divide(tn_cast(counts, TN_FLOAT64), tn_cast(tn_diff(edges, 1, 0), TN_FLOAT64));
    return tn_divide(density, tn_cast(tn_sum_with(counts, NULL), TN_FLOAT64));
}

tn_array *tn_histogram_with(const tn_array *x, tn_array **edges, const tn_histogram_opts *opts)
{
    TN__COMPOSE(histogram(x, edges, opts));
}
