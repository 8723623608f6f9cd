/* SPDX-License-Identifier: MIT */
/*
 * Statistics, differences, histograms and interpolation, as NumPy has them. Differentiable but for counts and
 * positions. Functions that take tn_reduce_opts reduce all axes by default and honour axis, keepdims, dtype, ddof and
 * out as tn_sum and tn_var do; the functions of sums, means, variances and extremes read `where` and `initial` too.
 */
#ifndef TANSO_STATISTICS_H
#define TANSO_STATISTICS_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- order statistics ---- */

/* The middle element, of an even number the mean of the two; NaN where there is one. */
TN_API tn_array *tn_median_with(const tn_array *x, const tn_reduce_opts *opts);
/* Largest less smallest. */
TN_API tn_array *tn_ptp_with(const tn_array *x, const tn_reduce_opts *opts);

typedef struct tn_quantile_opts {
    const char *_;
    tn_axes axis;       /* default: all */
    bool keepdims;
    const char *method; /* NumPy's: "linear" (default), "lower", "higher", "midpoint", "nearest", "inverted_cdf",
                           "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
                           "weibull", "median_unbiased", "normal_unbiased" (Hyndman and Fan 1996) */
    tn_array *out;      /* receives the result, as tn_assign does */
    /* None negative, of x's shape, or a vector along the one axis given; "inverted_cdf" only. */
    const tn_array *weights;
} tn_quantile_opts;

/* The quantiles q (of any shape, in [0, 1]; percentile: in [0, 100]): q's axes come first. q is read, so it is
 * evaluated. A NaN in a slice makes its quantiles NaN; the nan functions leave NaNs out. */
TN_API tn_array *tn_quantile_with(const tn_array *x, const tn_array *q, const tn_quantile_opts *opts);
TN_API tn_array *tn_percentile_with(const tn_array *x, const tn_array *q, const tn_quantile_opts *opts);
TN_API tn_array *tn_nanquantile_with(const tn_array *x, const tn_array *q, const tn_quantile_opts *opts);
TN_API tn_array *tn_nanpercentile_with(const tn_array *x, const tn_array *q, const tn_quantile_opts *opts);

/* ---- means ---- */

/* The mean with weights of x's shape, or with one axis for each axis given, in that order (NULL: equal weights); the
 * sums of weights, in the result's shape, into *total unless that is NULL. */
TN_API tn_array *tn_average_with(const tn_array *x, const tn_array *weights, tn_array **total,
                                 const tn_reduce_opts *opts);
typedef struct tn_cov_opts {
    const char *_;
    bool by_columns;          /* variables are columns (NumPy's rowvar=False) */
    int ddof;                 /* divisor: count - ddof; default 1 */
    const tn_array *fweights; /* vectors, read by the call: how often each observation occurs, a whole number, */
    const tn_array *aweights; /* and how much it weighs; none below 0 */
    tn_dtype dtype;           /* computed in; default: at least float64 */
} tn_cov_opts;
/* tn_cov with weights and a dtype. */
TN_API tn_array *tn_cov_with(const tn_array *x, const tn_cov_opts *opts);
/* n x n covariances of n variables (rows; one row: a 0-d result) from observations in columns; divisor: count - ddof,
 * ddof -1 stands for the usual 1. `by_columns`: variables are columns. */
TN_API tn_array *tn_cov(const tn_array *x, bool by_columns, int ddof);
/* Covariances over the product of both deviations, -1 to 1. */
TN_API tn_array *tn_corrcoef(const tn_array *x, bool by_columns);
/* Sums of products at all shifts of two vectors: mode "full", "same" or "valid" (NumPy's convolve and correlate);
 * NULL: their defaults, "full" and "valid". */
TN_API tn_array *tn_convolve(const tn_array *a, const tn_array *b, const char *mode);
TN_API tn_array *tn_correlate(const tn_array *a, const tn_array *b, const char *mode);

/* ---- without NaN ---- */

/* The functions of these names, of the elements that are no NaN. */
TN_API tn_array *tn_nansum_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanprod_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanmean_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanvar_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanstd_with(const tn_array *x, const tn_reduce_opts *opts);
/* A slice of NaNs only gives NaN. */
TN_API tn_array *tn_nanmax_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanmin_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanmedian_with(const tn_array *x, const tn_reduce_opts *opts);
/* A slice of NaNs only is an error; these read whether there is one, so they evaluate. */
TN_API tn_array *tn_nanargmax_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_nanargmin_with(const tn_array *x, const tn_reduce_opts *opts);
/* How many elements are not zero; int64. */
TN_API tn_array *tn_count_nonzero_with(const tn_array *x, const tn_reduce_opts *opts);

/* ---- differences and integrals ---- */

/* n-th differences of neighbours along an axis; of bool: whether they differ. */
TN_API tn_array *tn_diff(const tn_array *x, int n, int axis);
/* Differences of neighbours of the flat array, between `begin` and `end` (either may be NULL). */
TN_API tn_array *tn_ediff1d(const tn_array *x, const tn_array *end, const tn_array *begin);
/* Second-order central differences along an axis, one-sided at the ends of order 1 (edge_order 2: 2), for samples
 * `spacing` apart, or at the coordinates of a vector. */
TN_API tn_array *tn_gradient(const tn_array *x, double spacing, const tn_array *coordinates, int axis, int edge_order);
/* The integral along an axis by the trapezoidal rule, for samples `dx` apart, or at `coordinates` (x's shape, or a
 * vector along the axis; NULL: dx). */
TN_API tn_array *tn_trapezoid(const tn_array *y, const tn_array *coordinates, double dx, int axis);
/* Piecewise linear interpolation through (xp, fp), xp ascending; fp's ends beyond them, or `left` and `right` (NULL:
 * fp's ends). */
TN_API tn_array *tn_interp(const tn_array *x, const tn_array *xp, const tn_array *fp, const double *left,
                           const double *right);
/* The same of a function that repeats itself: x and xp are taken modulo `period` (not 0), in any order. */
TN_API tn_array *tn_interp_periodic(const tn_array *x, const tn_array *xp, const tn_array *fp, double period);

/* ---- counting ---- */

/* How often each of 0, 1, ... occurs in a vector of non-negative integers, or its sum of weights (may be NULL; float64
 * then); at least `minlength` of them. Reads the largest, so it evaluates. */
TN_API tn_array *tn_bincount(const tn_array *x, const tn_array *weights, int64_t minlength);

typedef struct tn_histogram_opts {
    const char *_;
    int64_t bins;           /* equal bins between the limits; default 10 */
    const char *rule;       /* or the rule that tells their number: "auto", "fd", "doane", "scott", "stone", "rice",
                               "sturges",       "sqrt" (NumPy 2's); not with weights */
    const tn_array *edges;  /* or an ascending vector of edges */
    double low, high;       /* limits of equal bins, 0 where only the other is given; default: the smallest and the
                               largest element */
    bool density;           /* probability density instead of counts */
    const tn_array *weights; /* of x's shape */
} tn_histogram_opts;

/* Counts of x's elements in bins (int64; the dtype of weights with those), closed on the left, the last one on both
 * sides; the edges, one more than bins, into *edges unless that is NULL. Reads the limits, so it evaluates. */
TN_API tn_array *tn_histogram_with(const tn_array *x, tn_array **edges, const tn_histogram_opts *opts);
/* The edges alone. */
TN_API tn_array *tn_histogram_bin_edges_with(const tn_array *x, const tn_histogram_opts *opts);

typedef struct tn_histogramdd_opts {
    const char *_;
    const int64_t *bins;          /* equal bins, a number a dimension; default: 10 in each */
    const tn_array *const
        *edges; /* or ascending vectors of edges, one a dimension; NULL among them: equal bins there */
    const double (*limits)[2];    /* of equal bins, a pair a dimension (NaN, NaN: the data's); default: the data's */
    bool density;                 /* probability density instead of counts */
    const tn_array *weights;      /* a vector, one a point */
} tn_histogramdd_opts;

/* Counts of points in boxes, float64, an axis a dimension: points are rows of a matrix, dimensions its columns. The
 * edges, one vector a dimension, into edges[] unless that is NULL. Reads the limits, so it evaluates. */
TN_API tn_array *tn_histogramdd_with(const tn_array *points, tn_array **edges, const tn_histogramdd_opts *opts);
/* The same of points with the coordinates x and y, vectors. */
TN_API tn_array *tn_histogram2d_with(const tn_array *x, const tn_array *y, tn_array **edges,
                                     const tn_histogramdd_opts *opts);

#ifndef TN_NO_MACROS
#define tn_cov_with(...) TN_AT(tn_cov_with)(__VA_ARGS__)
#define tn_cov(x, by_columns, ddof) TN_AT(tn_cov)(TN_ARG(x), by_columns, ddof)
#define tn_corrcoef(x, by_columns) TN_AT(tn_corrcoef)(TN_ARG(x), by_columns)
#define tn_convolve(a, b, mode) TN_AT(tn_convolve)(TN_ARG(a), TN_ARG(b), mode)
#define tn_correlate(a, b, mode) TN_AT(tn_correlate)(TN_ARG(a), TN_ARG(b), mode)
#define tn_diff(x, n, axis) TN_AT(tn_diff)(TN_ARG(x), n, axis)
#define tn_ediff1d(x, end, begin) TN_AT(tn_ediff1d)(TN_ARG(x), end, begin)
#define tn_gradient(x, spacing, coordinates, axis, edge_order) \
    TN_AT(tn_gradient)(TN_ARG(x), spacing, coordinates, axis, edge_order)
#define tn_trapezoid(y, coordinates, dx, axis) TN_AT(tn_trapezoid)(TN_ARG(y), coordinates, dx, axis)
#define tn_interp(x, xp, fp, left, right) TN_AT(tn_interp)(TN_ARG(x), TN_ARG(xp), TN_ARG(fp), left, right)
#define tn_interp_periodic(x, xp, fp, period) TN_AT(tn_interp_periodic)(TN_ARG(x), TN_ARG(xp), TN_ARG(fp), period)
#define tn_bincount(x, weights, minlength) TN_AT(tn_bincount)(TN_ARG(x), weights, minlength)
#define tn_median(...) TN__CALL_A(tn_median_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_ptp(...) TN__CALL_A(tn_ptp_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_quantile(...) TN__CALL_AA(tn_quantile_with, tn_quantile_opts, __VA_ARGS__, )
#define tn_percentile(...) TN__CALL_AA(tn_percentile_with, tn_quantile_opts, __VA_ARGS__, )
#define tn_nanquantile(...) TN__CALL_AA(tn_nanquantile_with, tn_quantile_opts, __VA_ARGS__, )
#define tn_nanpercentile(...) TN__CALL_AA(tn_nanpercentile_with, tn_quantile_opts, __VA_ARGS__, )
#define tn_average(...) TN__CALL_AVV(tn_average_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nansum(...) TN__CALL_A(tn_nansum_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanprod(...) TN__CALL_A(tn_nanprod_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanmean(...) TN__CALL_A(tn_nanmean_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanvar(...) TN__CALL_A(tn_nanvar_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanstd(...) TN__CALL_A(tn_nanstd_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanmax(...) TN__CALL_A(tn_nanmax_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanmin(...) TN__CALL_A(tn_nanmin_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanmedian(...) TN__CALL_A(tn_nanmedian_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanargmax(...) TN__CALL_A(tn_nanargmax_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_nanargmin(...) TN__CALL_A(tn_nanargmin_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_count_nonzero(...) TN__CALL_A(tn_count_nonzero_with, tn_reduce_opts, __VA_ARGS__, )
#define tn_histogramdd(...) TN__CALL_AV(tn_histogramdd_with, tn_histogramdd_opts, __VA_ARGS__, )
#define tn_histogram2d(...) TN__CALL_AAV(tn_histogram2d_with, tn_histogramdd_opts, __VA_ARGS__, )
#define tn_histogram(...) TN__CALL_AV(tn_histogram_with, tn_histogram_opts, __VA_ARGS__, )
#define tn_histogram_bin_edges(...) TN__CALL_A(tn_histogram_bin_edges_with, tn_histogram_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
