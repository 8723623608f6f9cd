/* SPDX-License-Identifier: MIT */
/*
 * How many bins a histogram gets by a rule: each rule gives a width, as NumPy's rules of the same names do
 * (numpy.histogram_bin_edges names their sources: Freedman and Diaconis, Scott, Doane, Rice, Sturges, Stone).
 */
#include "numpy/compose.h"

#include <math.h>
#include <string.h>

#include "array/build_parts.h"
#include "core/dtype.h"
#include "numpy/bins.h"

/* What the rules look at, as numbers. */
typedef struct sample {
    const tn_array *x;   /* a float64 vector with elements */
    const tn_array *raw; /* the same in the dtype they came in */
    double n, extent, low, high;
    tn_dtype dtype; /* NumPy's for what rules compute of the extent and of Python's numbers */
    bool own;       /* low and high are the least and the largest element */
} sample;

/* A width that is a whole part of the extent lies at a step of the number of bins, so the last bit counts. */
static double rounded(const sample *s, double value)
{
    return tn__scalar_to_double(tn__scalar_from_double(value, s->dtype), s->dtype);
}

static double sqrt_width(const sample *s)
{
    return s->extent / sqrt(s->n);
}

static double sturges_width(const sample *s)
{
    return s->extent / (log2(s->n) + 1);
}

static double rice_width(const sample *s)
{
    return rounded(s, s->extent / (2 * cbrt(s->n)));
}

static double scott_width(const sample *s)
{
    return rounded(s, cbrt(24 * sqrt(M_PI) / s->n) * rounded(s, tn_item(tn_std_with(s->x, NULL))));
}

/* Twice the distance between the quartiles over the cube root of how many there are. */
static double fd_width(const sample *s)
{
    const double q[] = {0.75, 0.25};
    const tn_create_opts opts = {.device = tn_device_of(s->x)};
    tn_array *quartiles = tn_quantile_with(s->x, tn_from_host_with(q, tn__vector(2), TN_FLOAT64, &opts), NULL);
    return 2 * (tn_item(tn_index(quartiles, 0)) - tn_item(tn_index(quartiles, 1))) / cbrt(s->n);
}

static double doane_width(const sample *s)
{
    double sigma = s->n > 2 ? tn_item(tn_std_with(s->x, NULL)) : 0;
    if (!(sigma > 0))
        return 0;
    double unit = sqrt(6 * (s->n - 2) / ((s->n + 1) * (s->n + 3)));
    tn_array *deviation = tn_divide(tn_subtract(s->x, tn_mean_with(s->x, NULL)), tn_weak_float(sigma));
    double skewness = tn_item(tn_mean_with(tn_power(deviation, tn_weak_int(3)), NULL));
    return s->extent / (1 + log2(s->n) + log2(1 + fabs(skewness) / unit));
}

/* The number of bins for which an estimate of the squared error is the least. */
static double stone_width(const sample *s)
{
    if (s->n <= 1 || s->extent == 0)
        return 0;
    int64_t most = s->n > 10000 ? (int64_t)sqrt(s->n) : 100, best = 1;
    double least = INFINITY;
    for (int64_t bins = 1; bins <= most; bins++) {
        const tn_histogram_opts opts = {
            ._ = s->own ? NULL : ".low, .high", .bins = bins, .low = s->own ? 0 : s->low, .high = s->own ? 0 : s->high};
        tn_scope_push();
        tn_array *share = tn_divide(tn_histogram_with(s->raw, NULL, &opts), tn_weak_float(s->n));
        double loss =
            (2 - (s->n + 1) * tn_item(tn_sum_with(tn_square(share), NULL))) / rounded(s, s->extent / (double)bins);
        tn_scope_pop();
        if (loss < least) {
            least = loss;
            best = bins;
        }
    }
    return rounded(s, s->extent / (double)best);
}

static double auto_width(const sample *s)
{
    double fd = fd_width(s), sturges = sturges_width(s), least = sqrt_width(s) / 2;
    fd = fd > least ? fd : least; /* NumPy 2: few bins for data with outliers */
    return fd < sturges ? fd : sturges;
}

static const struct {
    const char *name;
    double (*width)(const sample *s);
    bool narrow; /* NumPy's width has x's dtype, otherwise float64 */
} rules[] = {{"auto", auto_width, false},       {"fd", fd_width, false},      {"doane", doane_width, false},
             {"scott", scott_width, true},      {"stone", stone_width, true}, {"rice", rice_width, true},
             {"sturges", sturges_width, false}, {"sqrt", sqrt_width, false}};

int64_t tn__bins_by_rule(const tn_array *x, const char *rule, double low, double high, bool own)
{
    size_t k = 0;
    while (k < sizeof rules / sizeof *rules && strcmp(rules[k].name, rule) != 0)
        k++;
    if (k == sizeof rules / sizeof *rules) {
        tn__fail(TN_ERR_NAME, "histogram",
                 "no rule '%s'; there are auto, fd, doane, scott, stone, rice, sturges and sqrt", rule);
        return 0;
    }
    tn_scope_push();
    tn_array *all = tn_ravel(x), *wide = tn_cast(all, TN_FLOAT64);
    tn_array *inside =
        tn_logical_and(tn_greater_equal(wide, tn_weak_float(low)), tn_less_equal(wide, tn_weak_float(high)));
    tn_array *raw = tn_take(all, tn_flatnonzero(inside), 0), *y = tn_cast(raw, TN_FLOAT64);
    int64_t bins = 1, n = tn_size(y);
    if (n > 0 && !tn_is_error(y)) {
        tn_dtype narrow = tn_dtype_of(x) == TN_FLOAT16 || tn_dtype_of(x) == TN_FLOAT32 ? tn_dtype_of(x) : TN_FLOAT64;
        sample s = {y, raw, (double)n, 0, low, high, narrow, own};
        s.extent = rounded(&s, tn_item(tn_max_with(y, NULL)) - tn_item(tn_min_with(y, NULL)));
        double width = rules[k].width(&s), range = own ? rounded(&s, high - low) : high - low;
        bool whole = tn_dtype_is_integer(tn_dtype_of(x)) || tn_dtype_of(x) == TN_BOOL;
        width = whole && width > 0 && width < 1 ? 1 : width;
        double count = ceil(own && rules[k].narrow ? rounded(&s, range / width) : range / width);
        bins = width > 0 && count >= 1 && count < 0x1p31 ? (int64_t)count : 1;
    }
    bins = tn_is_error(y) ? 0 : bins;
    tn_scope_pop();
    return bins;
}
