/* SPDX-License-Identifier: MIT */
/* Means, variances and extremes: weighted, without NaN, of pairs. */
#include "numpy/compose.h"

#include <math.h>

#include "array/build_parts.h"
#include "core/options.h"

static const tn_reduce_opts no_opts = {._ = 0};

/* ---- options of reductions for the steps of a composite ---- */

static tn_reduce_opts plain(const tn_reduce_opts *opts)
{
    opts = opts ? opts : &no_opts;
    return (tn_reduce_opts){._ = opts->_, .axis = opts->axis, .keepdims = opts->keepdims};
}

static bool holds_nan(const tn_array *x)
{
    return tn__dtype_inexact(tn_dtype_of(x));
}

tn_array *tn_ptp_with(const tn_array *x, const tn_reduce_opts *opts)
{
    const tn_reduce_opts own = plain(opts);
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, tn_subtract(tn_max_with(x, &own), tn_min_with(x, &own))));
}

static tn_array *count_nonzero(const tn_array *x, const tn_reduce_opts *opts)
{
    tn_reduce_opts own = plain(opts);
    own.dtype = TN_INT64;
    return tn_sum_with(tn_cast(x, TN_BOOL), &own);
}

tn_array *tn_count_nonzero_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, count_nonzero(x, opts)));
}

/* ---- without NaN ---- */

static tn_array *instead_of_nan(const tn_array *x, double value)
{
    return holds_nan(x) ? tn_where(tn_isnan(x), tn_weak_float(value), x) : tn__array_of(x);
}

tn_array *tn_nansum_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn_sum_with(instead_of_nan(x, 0), opts));
}

tn_array *tn_nanprod_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn_prod_with(instead_of_nan(x, 1), opts));
}

/* The options of a mean or variance that leaves NaNs out: they become elements that do not count. */
static tn_reduce_opts without_nan(const tn_array *x, const tn_reduce_opts *opts)
{
    tn_reduce_opts own = opts ? *opts : no_opts;
    tn_array *number = tn_logical_not(tn_isnan(x));
    if (own.where && (tn_is_error(own.where) || tn_dtype_of(own.where) == TN_BOOL || tn__is_weak(own.where)))
        own.where = tn_logical_and(number, own.where); /* what is no mask is refused by the reduction */
    own.where = own.where ? own.where : number;
    own.out = NULL;
    return own;
}

static tn_array *nanmean(const tn_array *x, const tn_reduce_opts *opts)
{
    if (opts && !TN__ARRAY_GIVEN("nanmean", opts, where, "tn_weak_bool(false)"))
        return tn__failed_array();
    if (!holds_nan(x)) {
        tn_reduce_opts own = opts ? *opts : no_opts;
        own.out = NULL;
        return tn_mean_with(x, &own);
    }
    tn_reduce_opts own = without_nan(x, opts);
    if (opts && opts->out && !own.dtype && !tn_is_error(opts->out) && holds_nan(opts->out))
        own.dtype = tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(opts->out));
    return tn_mean_with(instead_of_nan(x, 0), &own);
}

tn_array *tn_nanmean_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nanmean(x, opts)));
}

/* As the variance, but NaN where no degree of freedom is left. */
static tn_array *nanvar(const tn_array *x, const tn_reduce_opts *opts)
{
    if (opts && !TN__ARRAY_GIVEN("nanvar", opts, where, "tn_weak_bool(false)"))
        return tn__failed_array();
    if (!holds_nan(x)) {
        tn_reduce_opts own = opts ? *opts : no_opts;
        own.out = NULL;
        return tn_var_with(x, &own);
    }
    const tn_reduce_opts own = without_nan(x, opts);
    const tn_reduce_opts counted = {.axis = own.axis, .keepdims = own.keepdims, .dtype = TN_INT64};
    tn_array *count = tn_sum_with(tn_broadcast_to(own.where, tn_shape_of(x)), &counted);
    tn_array *variance = tn_var_with(instead_of_nan(x, 0), &own);
    return tn_where(tn_greater(count, tn_weak_float(own.ddof)), variance, tn_weak_float(NAN));
}

tn_array *tn_nanvar_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nanvar(x, opts)));
}

static tn_array *root(const tn_array *variance)
{
    TN__RETURN(tn__root_of_sum(tn__node_of(variance, "nanstd"), 0.5));
}

tn_array *tn_nanstd_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, root(nanvar(x, opts))));
}

static tn_array *nan_extreme(const tn_array *x, const tn_reduce_opts *opts, bool largest)
{
    tn_reduce_opts own = opts ? *opts : no_opts, plain_opts = plain(opts);
    own.out = NULL;
    tn_array *unset = NULL; /* where the initial value is NaN, which is left out too */
    if (holds_nan(x) && own.initial && !tn_is_error(own.initial)) {
        tn_array *initial = tn__is_weak(own.initial) ? tn_cast(own.initial, tn_dtype_of(x)) : tn__array_of(own.initial);
        unset = tn_isnan(initial);
        own.initial = instead_of_nan(initial, largest ? -INFINITY : INFINITY);
    }
    tn_array *y =
        largest ? tn_max_with(instead_of_nan(x, -INFINITY), &own) : tn_min_with(instead_of_nan(x, INFINITY), &own);
    if (!holds_nan(x) || (own.initial && !unset))
        return y;
    tn_array *left_out = tn_isnan(x);
    if (own.where && !tn_is_error(own.where) && tn_dtype_of(own.where) == TN_BOOL)
        left_out = tn_logical_or(left_out, tn_logical_not(own.where));
    tn_array *nothing = tn_all_with(left_out, &plain_opts);
    if (unset)
        nothing = tn_logical_and(nothing, unset);
    return tn_where(nothing, tn_weak_float(NAN), y);
}

tn_array *tn_nanmax_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nan_extreme(x, opts, true)));
}

tn_array *tn_nanmin_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nan_extreme(x, opts, false)));
}

static tn_array *nan_position(const char *operation, const tn_array *x, const tn_reduce_opts *opts, bool largest)
{
    tn_reduce_opts own = plain(opts);
    if (opts && opts->out && !tn_is_error(opts->out) && tn_dtype_promote(tn_dtype_of(opts->out), TN_INT64) != TN_INT64)
        return tn__refused(TN_ERR_DTYPE, operation, "positions are integers, out is %s",
                           tn_dtype_name(tn_dtype_of(opts->out)));
    tn_array *y = largest ? tn_argmax_with(instead_of_nan(x, -INFINITY), &own)
                          : tn_argmin_with(instead_of_nan(x, INFINITY), &own);
    if (!holds_nan(x) || tn_is_error(y))
        return y;
    tn_array *empty = tn_any_with(tn_all_with(tn_isnan(x), &own), NULL);
    if (tn_eval(empty) != TN_OK)
        return tn__failed_array();
    if (tn_item(empty) != 0)
        return tn__refused(TN_ERR_VALUE, operation, "a slice holds NaN only, and has no %s element",
                           largest ? "largest" : "smallest");
    return y;
}

tn_array *tn_nanargmax_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nan_position("nanargmax", x, opts, true)));
}

tn_array *tn_nanargmin_with(const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, nan_position("nanargmin", x, opts, false)));
}

tn_array *tn_nancumsum_with(const tn_array *x, const tn_axis_opts *opts)
{
    TN__COMPOSE(tn_cumsum_with(instead_of_nan(x, 0), opts));
}

tn_array *tn_nancumprod_with(const tn_array *x, const tn_axis_opts *opts)
{
    TN__COMPOSE(tn_cumprod_with(instead_of_nan(x, 1), opts));
}

/* ---- weighted means ---- */

/* Weights in x's axes: of its shape already, or a vector along one axis. */
static tn_array *aligned_weights(const tn_array *x, const tn_array *weights, const tn_reduce_opts *opts)
{
    int count = opts ? opts->axis.count : 0, odd = tn_ndim(weights) == tn_ndim(x) ? -1 : 0;
    for (int d = 0; odd < 0 && d < tn_ndim(x); d++)
        odd = tn_dim(weights, d) != tn_dim(x, d) ? d : -1;
    if (odd < 0)
        return tn__again(weights);
    if (tn_ndim(weights) == tn_ndim(x) && count < tn_ndim(x))
        return tn__refused(TN_ERR_SHAPE, "average", "the weights' axis %d has extent %lld, the array's %lld", odd,
                           (long long)tn_dim(weights, odd), (long long)tn_dim(x, odd));
    bool fit = count > 0 && tn_ndim(weights) == count;
    tn_shape shape = {.ndim = tn_ndim(x)};
    tn_axes ascending = {.count = count};
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = 1;
    for (int i = 0; fit && i < count; i++) { /* the weights' axis i lies along the array's axis given i-th */
        int axis = tn__axis_of("average", x, opts->axis.axis[i]), place = 0;
        fit = axis >= 0 && tn_dim(weights, i) == tn_dim(x, axis);
        for (int j = 0; fit && j < count; j++)
            place += tn__axis_of("average", x, opts->axis.axis[j]) < axis;
        if (fit)
            shape.dim[axis] = tn_dim(x, axis);
        ascending.axis[place] = i;
    }
    if (!fit)
        return tn__refused(TN_ERR_SHAPE, "average",
                           "expected weights of the array's shape, or of the extents of the axes given");
    return tn_broadcast_to(tn_reshape(tn_transpose(weights, ascending), shape), tn_shape_of(x));
}

static tn_array *average(const tn_array *x, const tn_array *weights, tn_array **total, const tn_reduce_opts *opts)
{
    tn_reduce_opts own = plain(opts);
    tn_array *mean, *sum;
    if (!weights) {
        mean = tn_mean_with(x, &own);
        int64_t count = tn_size(mean) ? tn_size(x) / tn_size(mean) : 0;
        sum = tn_add(tn_zeros_like(mean), tn_weak_int(count));
    } else {
        tn_array *w = aligned_weights(x, weights, opts);
        tn_dtype dtype = tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(w));
        if (dtype && !tn_dtype_is_float(dtype) && (dtype == TN_BOOL || tn_dtype_is_integer(dtype)))
            dtype = TN_FLOAT64;
        if (!tn_is_error(w) && !tn_is_error(x) && !tn_dtype_is_float(tn_dtype_of(x)) && tn_dtype_is_float(dtype))
            dtype = TN_FLOAT64; /* as NumPy: integers are averaged in float64 */
        own.dtype = dtype;
        sum = tn_sum_with(w, &own);
        mean = tn_divide(tn_sum_with(tn_multiply(tn_cast(x, dtype), tn_cast(w, dtype)), &own), sum);
        if (total && !tn_is_error(sum) && tn_item(tn_any_with(tn_equal(sum, tn_weak_int(0)), NULL)) != 0)
            return tn__refused(TN_ERR_VALUE, "average", "the weights add up to zero");
    }
    if (total)
        *total = tn_keep(sum);
    return mean;
}

tn_array *tn_average_with(const tn_array *x, const tn_array *weights, tn_array **total, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, average(x, weights, total, opts)));
}

/* ---- pairs of variables ---- */

/* An error array, or NULL: the weights are read, as a covariance by negative ones looks like any other. */
static tn_array *wrong_weights(const tn_array *w, const char *name)
{
    if (!w || tn_is_error(w))
        return w ? tn__again(w) : NULL;
    if (name[0] == 'f' && tn_dtype_is_float(tn_dtype_of(w)) &&
        tn_item(tn_all_with(tn_equal(w, tn_rint(w)), NULL)) != 1)
        return tn__refused(TN_ERR_VALUE, "cov", "%s are not whole: expected how often each observation occurs", name);
    if (tn_dtype_is_complex(tn_dtype_of(w)))
        return tn__refused(TN_ERR_DTYPE, "cov", "%s are complex, expected real numbers", name);
    if (tn_item(tn_any_with(tn_less(w, tn_weak_int(0)), NULL)) != 0)
        return tn__refused(TN_ERR_VALUE, "cov", "%s are negative in places: expected none below 0", name);
    return NULL;
}

static tn_array *covariance(const tn_array *x, const tn_cov_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (tn_ndim(x) > 2)
        return tn__refused(TN_ERR_SHAPE, "cov", "expected at most 2 axes, got %d", tn_ndim(x));
    if (opts->dtype && !tn__dtype_inexact(opts->dtype))
        return tn__refused(TN_ERR_DTYPE, "cov", "a covariance is a fraction: expected a dtype of floats, got %s",
                           tn_dtype_name(opts->dtype));
    tn_dtype dtype = opts->dtype ? opts->dtype : tn_dtype_promote(tn_dtype_of(x), TN_FLOAT64);
    tn_array *rows = tn_atleast_2d(tn_cast(x, dtype));
    if (opts->by_columns && tn_ndim(x) == 2)
        rows = tn_transpose(rows, (tn_axes){0});
    int64_t count = tn_dim(rows, 1);
    if (tn_dim(rows, 0) == 0) /* of no variables, whatever the weights */
        return tn_zeros_with((tn_shape){2, {0, 0}},
                             &(tn_create_opts){.dtype = dtype, .device = tn_device_of(x)});
    int ddof = TN__OPTION(opts, ddof, 1);
    const tn_array *f = opts->fweights, *a = opts->aweights;
    if (!TN__ARRAY_WRITTEN("cov", opts, fweights) || !TN__ARRAY_WRITTEN("cov", opts, aweights))
        return tn__failed_array();
    if ((f && (tn_ndim(f) != 1 || tn_size(f) != count)) || (a && (tn_ndim(a) != 1 || tn_size(a) != count)))
        return tn__refused(TN_ERR_SHAPE, "cov", "expected vectors of %lld weights, one an observation",
                           (long long)count);
    tn_array *wrong = wrong_weights(f, "fweights");
    wrong = wrong ? wrong : wrong_weights(a, "aweights");
    if (wrong)
        return wrong;
    tn_array *both = f && a ? tn_multiply(f, a) : NULL;
    if ((f || a) && tn_item(tn_any_with(both ? both : f ? f : a, NULL)) != 1)
        return tn__refused(TN_ERR_VALUE, "cov", "the weights are 0 all over: expected one that is more");
    const tn_reduce_opts along = {.axis = {1, {1}}, .keepdims = true};
    tn_array *deviation, *weighted, *divisor;
    if (!f && !a) {
        weighted = deviation = tn_subtract(rows, tn_mean_with(rows, &along));
        divisor = tn_weak_float((double)(count > ddof ? count - ddof : 0));
    } else {
        tn_array *w = tn_cast(both ? both : f ? f : a, TN_FLOAT64), *sum = tn_sum_with(w, NULL);
        deviation = tn_cast(tn_subtract(rows, tn_divide(tn_sum_with(tn_multiply(rows, w), &along), sum)), dtype);
        weighted = tn_multiply(deviation, w);
        tn_array *spent = a ? tn_divide(tn_sum_with(tn_multiply(w, a), NULL), sum) : tn_weak_float(1);
        divisor = tn_maximum(tn_subtract(sum, tn_multiply(spent, tn_weak_float(ddof))), tn_weak_float(0));
    }
    tn_array *products = tn_matmul(deviation, tn_conjugate(tn_transpose(weighted, (tn_axes){0})));
    dtype = f || a ? tn_dtype_promote(dtype, TN_FLOAT64) : dtype; /* that of weights */
    return tn_squeeze(tn_cast(tn_divide(products, divisor), dtype), (tn_axes){0});
}

tn_array *tn_cov_with(const tn_array *x, const tn_cov_opts *opts)
{
    static const tn_cov_opts defaults;
    TN__COMPOSE(covariance(x, opts ? opts : &defaults));
}

tn_array *tn_cov(const tn_array *x, bool by_columns, int ddof)
{
    const tn_cov_opts opts = {._ = ".ddof", .by_columns = by_columns, .ddof = ddof < 0 ? 1 : ddof};
    TN__COMPOSE(covariance(x, &opts));
}

static tn_array *correlation(const tn_array *x, bool by_columns)
{
    const tn_cov_opts opts = {.by_columns = by_columns};
    tn_array *c = covariance(x, &opts);
    if (tn_ndim(c) == 0)
        return tn_divide(c, c);
    tn_array *deviation = tn_sqrt(tn_diagonal(c, 0, 0, 1));
    c = tn_divide(tn_divide(c, tn_expand_dims(deviation, 1)), deviation);
    if (!tn_is_error(c) && tn_dtype_is_complex(tn_dtype_of(c))) /* each part */
        return tn_complex(tn_clip(tn_real(c), tn_weak_float(-1), tn_weak_float(1)),
                          tn_clip(tn_imag(c), tn_weak_float(-1), tn_weak_float(1)));
    return tn_clip(c, tn_weak_float(-1), tn_weak_float(1));
}

tn_array *tn_corrcoef(const tn_array *x, bool by_columns)
{
    TN__COMPOSE(correlation(x, by_columns));
}
