/* SPDX-License-Identifier: MIT */
/* Counting: bincount and histograms. Sums of weights come from scatter_add, and so do counts in very many bins. */
#include "numpy/compose.h"

#include <math.h>

#include "array/build_parts.h"
#include "core/memory.h"
#include "core/options.h"
#include "numpy/bins.h"

#define FEW_BINS      2048 /* whose counters have room near each processor */
#define MOST_COUNTERS (INT64_MAX / 64)

static tn_array *counts_between(const tn_array *edges, const tn_array *x)
{
    TN__RETURN(tn__histogram(tn__node_of(edges, "histogram"), tn__node_of(x, "histogram")));
}

/* counts_of in the host's memory: counters of few bins are there several times, as one that was just counted is not at
 * hand yet. */
static tn_array *counted(const tn_array *x, int64_t count)
{
    enum { TABLES = 4 };
    tn_array *wide = tn_cast(x, TN_INT64);
    const int64_t *value = tn_data(wide);
    if (!value)
        return tn__failed_array();
    int64_t n = tn_size(wide), i = 0;
    int64_t *table = tn__calloc((size_t)count, (count <= FEW_BINS ? TABLES : 1) * sizeof *table);
    if (!table)
        return tn__refused(TN_ERR_MEMORY, "bincount", "no memory for %lld counters", (long long)count);
    if (count <= FEW_BINS) {
        for (; i + TABLES <= n; i += TABLES)
            for (int t = 0; t < TABLES; t++)
                table[t * count + value[i + t]]++;
        for (int t = 1; t < TABLES; t++)
            for (int64_t k = 0; k < count; k++)
                table[k] += table[t * count + k];
    }
    for (; i < n; i++)
        table[value[i]]++;
    tn_array *result = tn__positions_like(x, table, count);
    tn__free(table);
    return result;
}

/* How many elements of a vector of integers are each of 0 ... count - 1. */
static tn_array *counts_of(const tn_array *x, int64_t count)
{
    if (tn_device_of(x).kind == TN_DEVICE_CPU)
        return counted(x, count);
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
        return tn__refused(TN_ERR_DTYPE, "bincount", "expected a vector of integers, got %s with %d axes",
                           tn_dtype_name(dtype), tn_ndim(x));
    if (minlength < 0 || (weights && tn_size(x) && tn_size(weights) != tn_size(x)))
        return tn__refused(TN_ERR_VALUE, "bincount",
                           "expected a minlength of 0 or more, and as many weights as elements");
    if (weights && tn_size(x) && tn_dtype_is_complex(tn_dtype_of(weights)))
        return tn__refused(TN_ERR_DTYPE, "bincount", "weights may not be complex");
    int64_t count = minlength;
    if (tn_size(x) > 0) {
        tn_array *whole = dtype == TN_BOOL ? tn_cast(x, TN_UINT8) : tn__again(x);
        tn_array *ends[] = {tn_min_with(whole, NULL), tn_max_with(whole, NULL)};
        if (tn_eval_all(2, (const tn_array *const *)ends) != TN_OK)
            return tn__failed_array();
        int64_t largest = tn_item_int(ends[1]);
        if (tn_item_int(ends[0]) < 0)
            return tn__refused(TN_ERR_VALUE, "bincount", "expected elements of 0 or more, got %lld",
                               (long long)tn_item_int(ends[0]));
        if (largest > MOST_COUNTERS)
            return tn__refused(TN_ERR_MEMORY, "bincount", "no memory for counters up to %lld", (long long)largest);
        count = largest + 1 > minlength ? largest + 1 : minlength;
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

/* Whether an edge is below the one before, or, of `level`, equals it. Evaluates. */
static bool any_step(const tn_array *edges, bool level)
{
    if (tn_is_error(edges) || tn_size(edges) < 2)
        return false;
    tn_array *high = tn_slice_axis(edges, 0, 1, TN_NONE, 1), *low = tn_slice_axis(edges, 0, 0, -1, 1);
    return tn_item(tn_any_with(level ? tn_less_equal(high, low) : tn_less(high, low), NULL)) != 0;
}

/* Bins of equal width, or an error. may_meet: edges may be equal by rounding. */
static tn_array *equal_edges(const tn_array *x, const tn_histogram_opts *opts, bool may_meet)
{
    int64_t bins = TN__OPTION(opts, bins, 10);
    double low = opts ? opts->low : 0, high = opts ? opts->high : 0;
    if (bins < 1 || bins == INT64_MAX) /* there is an edge more */
        return tn__refused(TN_ERR_VALUE, "histogram", "expected 1 or more bins, got %lld%s", (long long)bins,
                           bins < 1 ? "" : ", which is too many");
    bool limited = opts && (TN__GIVEN(opts, low) || TN__GIVEN(opts, high));
    bool own = !limited && tn_size(x) > 0; /* limits of x's dtype; others are float64 */
    if (!limited) {
        high = 1;
        if (own) {
            tn_array *ends[] = {tn_min_with(x, NULL), tn_max_with(x, NULL)};
            if (tn_eval_all(2, (const tn_array *const *)ends) != TN_OK)
                return tn__failed_array();
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
    if (opts && opts->rule && !(bins = opts->weights ? 0 : tn__bins_by_rule(x, opts->rule, low, high, own)))
        return opts->weights
                   ? tn__refused(TN_ERR_VALUE, "histogram", "no rule tells the number of bins for weighted elements")
                   : tn__failed_array();
    tn_dtype dtype = tn_dtype_is_float(tn_dtype_of(x)) ? tn_dtype_of(x) : TN_FLOAT64;
    const tn_create_opts scalar = {.dtype = own ? dtype : TN_FLOAT64, .device = tn_device_of(x)};
    tn_array *edges = tn_cast(tn_linspace_arrays_with(tn_scalar_with(low, &scalar), tn_scalar_with(high, &scalar),
                                                      bins + 1, NULL), dtype);
    /* Edges can only meet where bins are about as narrow as the numbers of the dtype are apart. */
    double apart = dtype == TN_FLOAT64 ? 0x1p-52 : dtype == TN_FLOAT32 ? 0x1p-23 : 0x1p-7;
    if (may_meet || (high - low) / (double)bins > 4 * apart * fmax(fabs(low), fabs(high)) || !any_step(edges, true))
        return edges;
    return tn__refused(TN_ERR_VALUE, "histogram", "%lld bins between %.9g and %.9g: too many for numbers of %s",
                       (long long)bins, low, high, tn_dtype_name(dtype));
}

static tn_array *edges_of(const tn_array *x, const tn_histogram_opts *opts, bool may_meet)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (!(opts && opts->edges))
        return equal_edges(x, opts, may_meet);
    tn_array *edges = tn__array_of(opts->edges);
    if (!tn_is_error(edges) && tn_ndim(edges) != 1)
        return tn__refused(TN_ERR_SHAPE, "histogram", "expected a vector of edges");
    if (any_step(edges, false))
        return tn__refused(TN_ERR_VALUE, "histogram", "the edges must ascend");
    return edges;
}

static bool weights_fit(const tn_array *x, const tn_histogram_opts *opts)
{
    const tn_array *weights = opts ? opts->weights : NULL;
    if (opts && (!TN__ARRAY_WRITTEN("histogram", opts, weights) || !TN__ARRAY_WRITTEN("histogram", opts, edges)))
        return false;
    bool fits = !weights || tn_ndim(weights) == tn_ndim(x);
    for (int d = 0; fits && weights && d < tn_ndim(x); d++)
        fits = tn_dim(weights, d) == tn_dim(x, d);
    if (!fits)
        tn__fail(TN_ERR_SHAPE, "histogram", "expected weights of the array's shape");
    return fits;
}

static tn_array *bin_edges(const tn_array *x, const tn_histogram_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    return weights_fit(x, opts) ? edges_of(x, opts, false) : tn__failed_array();
}

tn_array *tn_histogram_bin_edges_with(const tn_array *x, const tn_histogram_opts *opts)
{
    TN__COMPOSE(bin_edges(x, opts));
}

static tn_array *histogram(const tn_array *x, tn_array **edges_out, const tn_histogram_opts *opts)
{
    tn_array *flat = tn_ravel(x);
    flat = tn_dtype_of(x) == TN_BOOL ? tn_cast(flat, TN_UINT8) : flat;
    tn_array *edges = edges_of(flat, opts, false), *counts;
    if (edges_out)
        *edges_out = tn_keep(edges);
    if (tn_is_error(edges))
        return tn__again(edges);
    int64_t bins = tn_size(edges) ? tn_size(edges) - 1 : 0; /* no edges: no bins, as NumPy has it */
    const tn_array *weights = opts ? opts->weights : NULL;
    if (!weights_fit(x, opts))
        return tn__failed_array();
    if (weights && tn_dtype_of(weights) == TN_BOOL && opts->edges)
        return tn__refused(TN_ERR_DTYPE, "histogram",
                           "weights of bool are not summed between edges; tn_cast them to numbers");
    if (bins == 0 || (tn_size(x) == 0 && !weights)) {
        counts = tn_zeros_like(tn__count_up(x, bins));
        counts = weights ? tn_cast(counts, tn_dtype_of(weights)) : counts;
    } else if (!weights) {
        counts = counts_between(edges, flat);
    } else {
        const tn_search_opts right = {.right = true};
        tn_array *bin = tn_subtract(tn_searchsorted_with(edges, flat, &right), tn_weak_int(1));
        tn_array *last = tn_equal(flat, tn_index(edges, bins));
        bin = tn_where(last, tn_weak_int(bins - 1), bin);
        /* what lies outside goes to a bin of its own, which is dropped */
        tn_array *outside = tn_logical_or(tn_less(bin, tn_weak_int(0)), tn_greater_equal(bin, tn_weak_int(bins)));
        tn_dtype of = tn_dtype_of(weights),
                 sum = tn__dtype_inexact(of) || of == TN_BOOL ? tn_dtype_promote(of, TN_FLOAT64) : of;
        /* then rounded once */
        counts = sums_of(tn_where(outside, tn_weak_int(bins), bin), tn_cast(tn_ravel(weights), sum), bins + 1);
        counts = tn_cast(tn__cut(counts, 0, 0, bins), of);
    }
    if (!(opts && opts->density))
        return counts;
    tn_dtype wide = tn_dtype_promote(tn_dtype_of(counts), TN_FLOAT64); /* of complex weights complex */
    tn_array *density = tn_divide(tn_cast(counts, wide), tn_cast(tn_diff(edges, 1, 0), TN_FLOAT64));
    return tn_divide(density, tn_cast(tn_sum_with(counts, NULL), wide));
}

tn_array *tn_histogram_with(const tn_array *x, tn_array **edges, const tn_histogram_opts *opts)
{
    TN__COMPOSE(histogram(x, edges, opts));
}

/* ---- histograms of points ---- */

/* The edges of dimension d of the points, whose coordinates there are x. */
static tn_array *edges_along(const tn_array *x, int d, const tn_histogramdd_opts *opts)
{
    tn_histogram_opts own = {._ = opts->bins ? ".bins" : NULL,
                             .bins = opts->bins ? opts->bins[d] : 0,
                             .edges = opts->edges ? opts->edges[d] : NULL};
    bool limited = opts->limits && opts->limits[d][0] == opts->limits[d][0];
    if (limited || tn_size(x) == 0) /* limits are of float64 */
        x = tn_cast(x, TN_FLOAT64);
    if (!limited)
        return edges_of(x, &own, true);
    own._ = opts->bins ? ".bins, .low, .high" : ".low, .high";
    own.low = opts->limits[d][0];
    own.high = opts->limits[d][1];
    return edges_of(x, &own, true);
}

/* The bin of each x, counted from 1: 0 and the one behind the last are outside. */
static tn_array *bins_of(const tn_array *x, const tn_array *edges)
{
    const tn_search_opts right = {.right = true};
    tn_array *bin = tn_searchsorted_with(edges, x, &right), *last = tn_index(edges, -1);
    return tn_where(tn_equal(x, last), tn_subtract(bin, tn_weak_int(1)), bin);
}

static tn_array *histogramdd(const tn_array *points, tn_array **edges, const tn_histogramdd_opts *opts)
{
    static const tn_histogramdd_opts defaults = {._ = 0};
    opts = opts ? opts : &defaults;
    if (tn_is_error(points))
        return tn__again(points);
    int64_t count = tn_dim(points, 0), total = 1, many = tn_ndim(points) == 2 ? tn_dim(points, 1) : 0;
    if (many < 1 || many > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "histogramdd", "expected a row of 1 to %d coordinates for each point",
                           TN_MAX_NDIM);
    if (!TN__ARRAY_WRITTEN("histogramdd", opts, weights))
        return tn__failed_array();
    if (opts->weights && (tn_ndim(opts->weights) != 1 || tn_size(opts->weights) != count))
        return tn__refused(TN_ERR_SHAPE, "histogramdd", "expected a vector of %lld weights, one a point",
                           (long long)count);
    tn_shape padded = {.ndim = (int)many};
    tn_slice_range inside[TN_MAX_NDIM];
    tn_array *place = NULL, *own[TN_MAX_NDIM];
    for (int d = 0; d < many; d++) {
        tn_array *x = tn_squeeze(tn__cut(points, 1, d, 1), tn__axes_of(1, (int[]){1}));
        own[d] = edges_along(x, d, opts);
        if (tn_is_error(own[d]))
            return own[d];
        if (edges)
            edges[d] = tn_keep(own[d]);
        padded.dim[d] = tn_size(own[d]) + 1;
        inside[d] = (tn_slice_range){1, padded.dim[d] - 1, 1};
        tn_array *bin = bins_of(x, own[d]);
        place = place ? tn_add(tn_multiply(place, tn_weak_int(padded.dim[d])), bin) : bin;
        total *= padded.dim[d];
    }
    tn_array *counts = tn_reshape(bincount(place, opts->weights, total), padded);
    counts = tn_slice(tn_cast(counts, TN_FLOAT64), padded.ndim, inside);
    if (!opts->density)
        return counts;
    tn_array *density = counts;
    for (int d = 0; d < many; d++) {
        tn_shape along = {.ndim = padded.ndim};
        for (int i = 0; i < along.ndim; i++)
            along.dim[i] = i == d ? padded.dim[d] - 2 : 1;
        density = tn_divide(density, tn_reshape(tn_diff(own[d], 1, 0), along));
    }
    return tn_divide(density, tn_sum_with(counts, NULL));
}

tn_array *tn_histogramdd_with(const tn_array *points, tn_array **edges, const tn_histogramdd_opts *opts)
{
    TN__COMPOSE(histogramdd(points, edges, opts));
}

tn_array *tn_histogram2d_with(const tn_array *x, const tn_array *y, tn_array **edges, const tn_histogramdd_opts *opts)
{
    TN__COMPOSE(histogramdd(tn_stack(2, (const tn_array *const[]){x, y}, 1), edges, opts));
}
