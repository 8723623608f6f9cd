/* SPDX-License-Identifier: MIT */
/* Making arrays: ranges, grids, diagonals and triangles. */
#include "numpy/compose.h"

#include <math.h>

#include "array/build_parts.h"
#include "core/options.h"

/* ---- filled arrays ---- */

tn_array *tn_empty_with(tn_shape shape, const tn_create_opts *opts)
{
    return tn_zeros_with(shape, opts);
}

tn_array *tn_full_like_with(const tn_array *x, long double value, const tn_create_opts *opts)
{
    if (tn_is_error(x))
        return tn__again(x);
    bool other = opts && opts->device.kind != TN_DEVICE_DEFAULT;
    tn_create_opts own = {.dtype = opts && opts->dtype ? opts->dtype : tn_dtype_of(x),
                          .device = other ? opts->device : tn_device_of(x)};
    return tn_full_with(tn_shape_of(x), value, &own);
}

tn_array *tn_empty_like_with(const tn_array *x, const tn_create_opts *opts)
{
    return tn_full_like_with(x, 0, opts);
}

static tn_array *integers_from(int64_t start, int64_t stop, int64_t step, const tn_create_opts *opts)
{
    tn_create_opts own = opts ? *opts : (tn_create_opts){._ = 0};
    own.dtype = own.dtype ? own.dtype : TN_INT64;
    if (step == 0)
        return tn__refused(TN_ERR_VALUE, "arange", "a step of 0; expected another number");
    bool up = step > 0, none = up ? start >= stop : start <= stop;
    uint64_t way = none ? 0 : up ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = up ? (uint64_t)step : 0 - (uint64_t)step, count = way / stride + (way % stride != 0);
    if (count > INT64_MAX / 8)
        return tn__refused(TN_ERR_SHAPE, "arange", "%llu numbers are too many", (unsigned long long)count);
    uint64_t last = (uint64_t)start + (count - 1) * (uint64_t)step;
    if (count > 0 && (!tn__number_fits("arange", (long double)start, own.dtype) ||
                      !tn__number_fits("arange", (long double)(int64_t)last, own.dtype)))
        return tn__failed_array();
    const tn_create_opts whole = {.dtype = TN_INT64, .device = own.device};
    tn_array *steps = tn_multiply(tn_arange_with(0, (double)count, 1, &whole), tn_weak_int(step));
    return tn_cast(tn_add(steps, tn_weak_int(start)), own.dtype);
}

tn_array *tn_arange_int64_with(int64_t start, int64_t stop, int64_t step, const tn_create_opts *opts)
{
    TN__COMPOSE(integers_from(start, stop, step, opts));
}

tn_array *tn_identity_with(int64_t n, const tn_create_opts *opts)
{
    return tn_eye_with(n, n, opts);
}

/* ---- diagonals and triangles ---- */

/* column - row of a matrix, int64. */
static tn_array *column_less_row(int64_t rows, int64_t columns, tn_device device)
{
    const tn_create_opts opts = {.dtype = TN_INT64, .device = device};
    tn_array *row = tn_expand_dims(tn_arange_with(0, (double)rows, 1, &opts), 1);
    return tn_subtract(tn_arange_with(0, (double)columns, 1, &opts), row);
}

tn_array *tn_tri_with(int64_t n, int64_t m, int k, const tn_create_opts *opts)
{
    n = n < 0 ? 0 : n; /* as NumPy has it */
    tn_dtype dtype = opts && opts->dtype ? opts->dtype : TN_FLOAT32;
    tn_device device = opts ? opts->device : (tn_device){0, 0};
    TN__COMPOSE(tn_cast(tn_less_equal(column_less_row(n, m < 0 ? n : m, device), tn_weak_int(k)), dtype));
}

static tn_array *triangle(const char *operation, const tn_array *x, int k, bool lower)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (tn_ndim(x) == 0)
        return tn__refused(TN_ERR_SHAPE, operation, "expected at least 1 axis, got a 0-d array");
    /* NumPy has a vector as every row of a square matrix */
    int64_t columns = tn_dim(x, -1), rows = tn_ndim(x) > 1 ? tn_dim(x, -2) : columns;
    tn_array *place = column_less_row(rows, columns, tn_device_of(x));
    tn_array *kept = lower ? tn_less_equal(place, tn_weak_int(k)) : tn_greater_equal(place, tn_weak_int(k));
    return tn_where(kept, x, tn_zeros_like(x));
}

tn_array *tn_tril(const tn_array *x, int k)
{
    TN__COMPOSE(triangle("tril", x, k, true));
}

tn_array *tn_triu(const tn_array *x, int k)
{
    TN__COMPOSE(triangle("triu", x, k, false));
}

/* Element i of the vector at row i - min(k, 0) and column i + max(k, 0) of zeros. */
static tn_array *vector_as_diagonal(const tn_array *x, int k)
{
    int64_t n = tn_size(x), above = k > 0 ? k : 0, left = k < 0 ? -(int64_t)k : 0, extent = n + above + left;
    const int64_t width[1][2] = {{left, above}};
    tn_array *column = tn_expand_dims(tn_pad_with(x, width, NULL), 1);
    tn_array *place = column_less_row(extent, extent, tn_device_of(x));
    return tn_where(tn_equal(place, tn_weak_int(k)), column, tn_zeros_like(column));
}

tn_array *tn_diagflat(const tn_array *x, int k)
{
    TN__COMPOSE(vector_as_diagonal(tn_ravel(x), k));
}

tn_array *tn_diag(const tn_array *x, int k)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (tn_ndim(x) == 1)
        TN__COMPOSE(vector_as_diagonal(x, k));
    if (tn_ndim(x) == 2)
        return tn_diagonal(x, k, 0, 1);
    return tn__refused(TN_ERR_SHAPE, "diag", "expected a vector or a matrix, got an array of %d axes", tn_ndim(x));
}

/* The matrices flat: a diagonal is every (columns + 1)-th element. */
static tn_array *diagonal(const char *operation, const tn_array *x, int offset, int axis1, int axis2)
{
    int a = tn__axis_of(operation, x, axis1), b = a < 0 ? -1 : tn__axis_of(operation, x, axis2);
    if (tn_is_error(x))
        return tn__again(x);
    if (a < 0 || b < 0)
        return tn__failed_array();
    if (a == b)
        return tn__refused(TN_ERR_VALUE, operation, "axis %d is given twice, expected two axes", a);
    int ndim = tn_ndim(x);
    tn_array *last = tn_moveaxis(x, tn__axes_of(2, (int[]){a, b}), tn__axes_of(2, (int[]){ndim - 2, ndim - 1}));
    int64_t rows = tn_dim(last, -2), columns = tn_dim(last, -1);
    int64_t down = offset < 0 ? -(int64_t)offset : 0, right = offset > 0 ? offset : 0;
    int64_t height = rows - down, width = columns - right, count = height < width ? height : width;
    count = count < 0 ? 0 : count;
    tn_shape flat = tn_shape_of(last);
    flat.ndim--;
    flat.dim[flat.ndim - 1] = rows * columns;
    int64_t start = count ? down * columns + right : 0, stop = count ? start + (count - 1) * (columns + 1) + 1 : 0;
    return tn_slice_axis(tn_reshape(last, flat), -1, start, stop, columns + 1);
}

tn_array *tn_diagonal(const tn_array *x, int offset, int axis1, int axis2)
{
    TN__COMPOSE(diagonal("diagonal", x, offset, axis1, axis2));
}

tn_array *tn_trace(const tn_array *x, int offset, int axis1, int axis2, tn_dtype dtype)
{
    const tn_reduce_opts opts = {.axis = {1, {-1}}, .dtype = dtype};
    TN__COMPOSE(tn_sum_with(diagonal("trace", x, offset, axis1, axis2), &opts));
}

tn_array *tn_trace_with(const tn_array *x, int offset, int axis1, int axis2, const tn_out_opts *opts)
{
    TN__COMPOSE(tn__given_out("trace", tn_trace(x, offset, axis1, axis2, opts ? opts->dtype : TN_DTYPE_DEFAULT), opts));
}

/* ---- spaced numbers ---- */

/* The dtype numbers are computed in: float64 for C numbers and integers. */
static tn_dtype space_dtype(const tn_array *start, const tn_array *stop)
{
    tn_dtype both = tn_dtype_promote(tn_dtype_of(start), tn_dtype_of(stop));
    return tn__dtype_inexact(both) ? both : TN_FLOAT64;
}

/* A C number adapts to the other end where that is of floats; of two, they are float64, or complex128. */
static tn_array *end_of(const tn_array *x, const tn_array *other)
{
    if (!tn__is_weak(x) || tn_is_error(other))
        return tn__again(x);
    tn_dtype both = tn_result_type(2, (const tn_array *const[]){x, other});
    if (tn__is_weak(other))
        both = tn_dtype_is_complex(both) ? TN_COMPLEX128 : TN_FLOAT64;
    return tn_cast(x, tn__dtype_inexact(both) ? both : TN_FLOAT64);
}

static tn_array *spaced(tn_array *start, tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    tn_dtype dtype = space_dtype(start, stop);
    start = tn_cast(start, dtype);
    stop = tn_cast(stop, dtype);
    bool open = opts && opts->open;
    int64_t parts = open ? count : count - 1;
    tn_array *delta = tn_subtract(stop, start), *i = tn_cast(tn__count_up(delta, count), dtype);
    tn_shape column = {.ndim = 1 + tn_ndim(delta), .dim = {count}};
    for (int d = 1; d < column.ndim && d < TN_MAX_NDIM; d++)
        column.dim[d] = 1;
    i = tn_reshape(i, column);
    if (parts > 0) {
        tn_array *step = tn_divide(delta, tn_weak_float((double)parts));
        /* a step too small to be represented: divide first */
        tn_array *fine = tn_multiply(tn_divide(i, tn_weak_float((double)parts)), delta);
        i = tn_where(tn_equal(step, tn_weak_int(0)), fine, tn_multiply(i, step));
    } else {
        i = tn_multiply(i, delta);
    }
    tn_array *y = tn_add(i, start);
    if (!open && count > 1)
        y = tn_where(tn_equal(tn_reshape(tn__count_up(delta, count), column), tn_weak_int(count - 1)), stop, y);
    return y;
}

/* In the dtype asked for, along the axis asked for. */
static tn_array *finished(tn_array *y, const tn_space_opts *opts)
{
    if (opts && opts->dtype)
        y = tn_cast(tn_dtype_is_integer(opts->dtype) ? tn_floor(y) : y, opts->dtype);
    int axis = opts ? opts->axis : 0;
    return axis == 0 ? y : tn_moveaxis(y, tn__axes_of(1, (int[]){0}), tn__axes_of(1, &axis));
}

static bool bad_count(const char *operation, int64_t count, tn_array **error)
{
    if (count < 0)
        *error = tn__refused(TN_ERR_VALUE, operation, "expected a count of 0 or more, got %lld", (long long)count);
    return count < 0;
}

tn_array *tn_linspace_arrays_with(const tn_array *start, const tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    tn_array *error;
    if (bad_count("linspace", count, &error))
        return error;
    TN__COMPOSE(finished(spaced(end_of(start, stop), end_of(stop, start), count, opts), opts));
}

/* Does the dtype asked for hold the ends, where they are C numbers? powers: of this base, unless that is 0. */
static bool ends_fit(const char *operation, const tn_array *start, const tn_array *stop, int64_t count,
                     const tn_space_opts *opts, double base)
{
    const tn_array *end[] = {start, stop};
    for (int i = 0; i < 2 && opts && i < count && !(i == 1 && opts->open); i++) {
        if (!tn__is_weak(end[i]) || !tn_dtype_is_integer(opts->dtype) || tn_dtype_is_complex(tn_dtype_of(end[i])))
            continue;
        double value = tn_item(end[i]);
        if (!tn__number_fits(operation, base != 0 ? pow(base, value) : value, opts->dtype))
            return false;
    }
    return true;
}

static tn_array *logspace(const tn_array *start, const tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    double base = TN__OPTION(opts, base, 10);
    if (!ends_fit("logspace", start, stop, count, opts, base))
        return tn__failed_array();
    tn_array *exponents = spaced(end_of(start, stop), end_of(stop, start), count, opts);
    const tn_create_opts own = {.dtype = tn_dtype_of(exponents), .device = tn_device_of(exponents)};
    tn_array *y = tn_power(tn_scalar_with(base, &own), exponents);
    return opts && opts->dtype ? tn_cast(y, opts->dtype) : y;
}

tn_array *tn_logspace_with(const tn_array *start, const tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    tn_array *error;
    if (bad_count("logspace", count, &error))
        return error;
    tn_space_opts plain = opts ? *opts : (tn_space_opts){.axis = 0};
    plain.dtype = opts ? opts->dtype : TN_DTYPE_DEFAULT;
    const tn_space_opts axis = {.axis = plain.axis};
    TN__COMPOSE(finished(logspace(start, stop, count, &plain), &axis));
}

static tn_array *geomspace(const tn_array *start, const tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    if (!ends_fit("geomspace", start, stop, count, opts, 0))
        return tn__failed_array();
    tn_array *a = end_of(start, stop), *b = end_of(stop, start);
    tn_dtype dtype = space_dtype(a, b);
    if (opts && tn_dtype_is_complex(opts->dtype)) /* a half turn, where the signs differ */
        dtype = tn_dtype_promote(dtype, opts->dtype);
    a = tn_cast(a, dtype);
    b = tn_cast(b, dtype);
    tn_array *size = tn_abs(a), *nothing = tn_concatenate(2, (const tn_array *const[]){tn_ravel(a), tn_ravel(b)}, 0);
    if (tn_is_error(nothing) || tn_item(tn_all_with(nothing, NULL)) != 1)
        return tn_is_error(nothing) ? nothing
                                    : tn__refused(TN_ERR_VALUE, "geomspace", "no power leads to 0, or from it");
    tn_array *sign = tn_divide(a, size); /* of complex numbers the direction: a spiral */
    const tn_space_opts own = {.open = opts && opts->open, .base = 10};
    tn_array *y =
        tn_multiply(logspace(tn_log10(tn_cast(size, dtype)), tn_log10(tn_divide(b, sign)), count, &own), sign);
    if (count > 0) { /* the ends exact */
        tn_shape column = {.ndim = tn_ndim(y), .dim = {count}};
        for (int d = 1; d < column.ndim; d++)
            column.dim[d] = 1;
        tn_array *i = tn_reshape(tn__count_up(y, count), column);
        if (count > 1 && !own.open)
            y = tn_where(tn_equal(i, tn_weak_int(count - 1)), b, y);
        y = tn_where(tn_equal(i, tn_weak_int(0)), a, y);
    }
    if (opts && opts->dtype)
        y = tn_cast(y, opts->dtype);
    const tn_space_opts axis = {.axis = opts ? opts->axis : 0};
    return finished(y, &axis);
}

tn_array *tn_geomspace_with(const tn_array *start, const tn_array *stop, int64_t count, const tn_space_opts *opts)
{
    tn_array *error;
    if (bad_count("geomspace", count, &error))
        return error;
    TN__COMPOSE(geomspace(start, stop, count, opts));
}

/* ---- grids ---- */

tn_status tn_meshgrid_with(int count, const tn_array *const *vectors, tn_array **out, const tn_grid_opts *opts)
{
    bool swapped = count > 1 && !(opts && opts->ij);
    if (count < 0 || count > TN_MAX_NDIM || (count > 0 && (!vectors || !out)))
        return tn__fail(TN_ERR_VALUE, "meshgrid", "expected 0 to %d vectors, got %d", TN_MAX_NDIM, count);
    tn_scope_push();
    tn_shape whole = {.ndim = count};
    for (int i = 0; i < count; i++)
        whole.dim[swapped && i < 2 ? 1 - i : i] = tn_size(vectors[i]);
    for (int i = 0; i < count; i++) {
        int axis = swapped && i < 2 ? 1 - i : i;
        tn_shape own = {.ndim = count};
        for (int d = 0; d < count; d++)
            own.dim[d] = d == axis ? whole.dim[d] : 1;
        out[i] = tn_reshape(vectors[i], own);
        if (!(opts && opts->sparse))
            out[i] = tn_broadcast_to(out[i], whole);
    }
    return tn__composed_all(count, out);
}

static tn_array *grid_positions(tn_shape shape, const tn_create_opts *opts)
{
    tn_create_opts own = {.dtype = opts && opts->dtype ? opts->dtype : TN_INT64,
                          .device = opts ? opts->device : (tn_device){0, 0}};
    tn_array *axes[TN_MAX_NDIM];
    if (shape.ndim < 0 || shape.ndim >= TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "indices", "expected 0 to %d axes, got %d", TN_MAX_NDIM - 1, shape.ndim);
    for (int d = 0; d < shape.ndim; d++) {
        tn_shape aligned = {.ndim = shape.ndim};
        for (int e = 0; e < shape.ndim; e++)
            aligned.dim[e] = e == d ? shape.dim[e] : 1;
        axes[d] = tn_broadcast_to(tn_reshape(tn_arange_with(0, (double)shape.dim[d], 1, &own), aligned), shape);
    }
    return shape.ndim ? tn_stack(shape.ndim, (const tn_array *const *)axes, 0) : tn_zeros_with(tn__vector(0), &own);
}

tn_array *tn_indices_with(tn_shape shape, const tn_create_opts *opts)
{
    TN__COMPOSE(grid_positions(shape, opts));
}

static tn_array *vander(const tn_array *x, int64_t columns, bool increasing)
{
    if (tn_is_error(x))
        return tn__again(x);
    if (tn_ndim(x) != 1)
        return tn__refused(TN_ERR_SHAPE, "vander", "expected a vector, got an array of %d axes", tn_ndim(x));
    columns = columns < 0 ? tn_size(x) : columns;
    tn_dtype dtype = tn_dtype_promote(tn_dtype_of(x), TN_INT64);
    if (tn_dtype_is_float(tn_dtype_of(x)))
        dtype = tn_dtype_of(x) == TN_FLOAT64 ? TN_FLOAT64 : dtype;
    tn_array *column = tn_expand_dims(tn_cast(x, dtype), 1);
    tn_shape shape = {.ndim = 2, .dim = {tn_size(x), columns}};
    tn_array *first = tn_equal(tn__count_up(x, columns), tn_weak_int(0));
    tn_array *factors = tn_where(first, tn_ones_like(column), tn_broadcast_to(column, shape));
    const tn_axis_opts along = {.axis = {1, {1}}};
    tn_array *y = tn_cumprod_with(factors, &along);
    return increasing ? y : tn_fliplr(y);
}

tn_array *tn_vander(const tn_array *x, int64_t columns, bool increasing)
{
    TN__COMPOSE(vander(x, columns, increasing));
}
