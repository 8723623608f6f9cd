/* SPDX-License-Identifier: MIT */
/*
 * Fourier transforms, made of three operations: the complex transform of the last axis, that of real numbers, and the
 * one back to them.
 */
#include <tanso/fft.h>
#include <tanso/ufunc.h>

#include <math.h>
#include "core/options.h"

#include "linalg/matrix.h"

typedef enum transform { FFT, IFFT, RFFT, IRFFT, HFFT, IHFFT } transform;

static const struct {
    const char *name;
    bool of_real, to_real, inverse;
} kinds[] = {
    [FFT] = {.name = "fft"},
    [IFFT] = {.name = "ifft", .inverse = true},
    [RFFT] = {.name = "rfft", .of_real = true},
    [IRFFT] = {.name = "irfft", .to_real = true, .inverse = true},
    [HFFT] = {.name = "hfft", .to_real = true},
    [IHFFT] = {.name = "ihfft", .of_real = true, .inverse = true},
};

static tn__node *operand(const char *operation, tn__node *a)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (a->shape->ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected an array of at least 1 axis");
    if (tn_dtype_is_complex((tn_dtype)a->dtype))
        return a;
    return tn__cast(a,
                    tn__dtypes[a->dtype].class == TN__CLASS_FLOAT && a->dtype != TN_FLOAT64 ? TN_FLOAT32 : TN_FLOAT64);
}

static tn__node *to_complex(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn__cast(a, tn__dtype_to_complex((tn_dtype)a->dtype));
}

/* The last axis cropped, or padded with zeros, to n elements. */
static tn__node *resized(tn__node *a, int64_t n)
{
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    int64_t extent = a->shape->dim[ndim - 1];
    if (n <= extent)
        return n == extent ? a : tn__last_slice(a, 0, n);
    tn_shape value = tn__shape_value(a->shape);
    value.dim[ndim - 1] = n;
    const tn__shape *shape = tn__shape_make("fft", value, (tn_dtype)a->dtype);
    return shape ? tn__update_along(tn__const(0, (tn_dtype)a->dtype, shape, a->device), a, ndim - 1, 0) : tn__failed();
}

/* The operation for a kind, of an operand of the right dtype and extent. */
static tn__node *library(transform kind, tn__node *a, int64_t n)
{
    TN__PASS_ERROR(a);
    bool of_real = kinds[kind].of_real, to_real = kinds[kind].to_real;
    const tn__ints *modes = tn__ints_intern(1, (int64_t[]){of_real || to_real ? n : kind == IFFT});
    if (!modes) {
        tn__fail_memory("fft", sizeof(tn__ints));
        return tn__failed();
    }
    tn_shape shape = tn__shape_value(a->shape);
    shape.dim[shape.ndim - 1] = of_real ? n / 2 + 1 : n;
    tn_dtype dtype = (tn_dtype)a->dtype;
    if (to_real)
        return tn__library(TN__OP_IRFFT, tn__dtypes[dtype].component, shape, 1, &a, modes);
    return tn__library(of_real ? TN__OP_RFFT : TN__OP_FFT, tn__dtype_to_complex(dtype), shape, 1, &a, modes);
}

/* One transform of the last axis; n <= 0: the default length. */
static tn__node *last_axis(transform kind, tn__node *a, int64_t n, tn_fft_norm norm)
{
    TN__PASS_ERROR(a);
    int64_t extent = a->shape->dim[a->shape->ndim - 1];
    bool of_real = kinds[kind].of_real, to_real = kinds[kind].to_real;
    if (n <= 0)
        n = to_real ? 2 * (extent - 1) : extent;
    if (n < 1)
        TN__REFUSE(TN_ERR_VALUE, kinds[kind].name, "expected a transform of at least 1 number, got %lld", (long long)n);
    if (of_real && tn_dtype_is_complex((tn_dtype)a->dtype))
        TN__REFUSE(TN_ERR_DTYPE, kinds[kind].name, "takes real numbers, got %s; use tn_fft_fft, or tn_real first",
                   tn_dtype_name((tn_dtype)a->dtype));
    a = of_real ? a : to_complex(a);
    if (kind == HFFT)
        a = tn__conjugate(a);
    tn__node *result = library(kind, resized(a, to_real ? n / 2 + 1 : n), n);
    if (kind == IHFFT)
        result = tn__conjugate(result);
    bool scaled = norm == TN_FFT_ORTHO || (norm == TN_FFT_FORWARD) != kinds[kind].inverse;
    TN__PASS_ERROR(result);
    return scaled ? tn__with(TN__OP_MULTIPLY, result, norm == TN_FFT_ORTHO ? 1 / sqrt((double)n) : 1 / (double)n)
                  : result;
}

static tn__node *along(transform kind, tn__node *a, int axis, int64_t n, tn_fft_norm norm)
{
    TN__PASS_ERROR(a);
    if (axis == a->shape->ndim - 1)
        return last_axis(kind, a, n, norm);
    return tn__axis_from_last(last_axis(kind, tn__axis_to_last(a, axis), n, norm), axis);
}

/* Real results of float16 alone are float16, as NumPy's are. */
static tn__node *narrowed(tn__node *a, bool half)
{
    TN__PASS_ERROR(a);
    return half ? tn__cast(a, TN_FLOAT16) : a;
}

static tn__node *one(transform kind, tn__node *a, const tn_fft_opts *opts)
{
    static const tn_fft_opts defaults = {.n = 0};
    opts = opts ? opts : &defaults;
    bool half = !tn__node_is_error(a) && a->dtype == TN_FLOAT16 && kinds[kind].to_real;
    a = operand(kinds[kind].name, a);
    TN__PASS_ERROR(a);
    if (opts->n < 0 || (opts->n == 0 && TN__GIVEN(opts, n)))
        TN__REFUSE(TN_ERR_VALUE, kinds[kind].name, "expected a transform of at least 1 number, got %lld",
                   (long long)opts->n);
    if (!TN__AXES_GIVEN(kinds[kind].name, opts, axis))
        return tn__failed();
    int axis = tn__axis_of_list(kinds[kind].name, opts->axis, -1, a->shape->ndim);
    return axis < 0 ? tn__failed() : narrowed(along(kind, a, axis, opts->n, opts->norm), half);
}

/* Over several axes: `kind` over the last one, `others` over the rest. */
static tn__node *several(const char *operation, transform kind, transform others, bool two, tn__node *a,
                         const tn_fft_opts *opts)
{
    static const tn_fft_opts defaults = {.n = 0};
    opts = opts ? opts : &defaults;
    bool half = !tn__node_is_error(a) && a->dtype == TN_FLOAT16 && kind == IRFFT;
    a = operand(operation, a);
    TN__PASS_ERROR(a);
    if (!TN__AXES_GIVEN(operation, opts, axes) || !TN__SHAPE_GIVEN(operation, opts, s))
        return tn__failed();
    int axis[TN_MAX_NDIM], ndim = a->shape->ndim;
    int count = opts->axes.count ? opts->axes.count : opts->s.ndim ? opts->s.ndim : two ? 2 : ndim;
    if (count < 1 || count > TN_MAX_NDIM || (opts->s.ndim && opts->s.ndim != count) ||
        (!opts->axes.count && count > ndim))
        TN__REFUSE(TN_ERR_VALUE, operation, "%d lengths for %d axes of an array of %d: they must agree", opts->s.ndim,
                   count, ndim);
    for (int i = 0; i < count; i++) {
        axis[i] = tn__axis_check(operation, opts->axes.count ? opts->axes.axis[i] : ndim - count + i, ndim);
        if (axis[i] < 0)
            return tn__failed();
        if (opts->s.ndim && (opts->s.dim[i] == 0 || opts->s.dim[i] < -1))
            TN__REFUSE(TN_ERR_VALUE, operation, "expected a transform of at least 1 number, got %lld",
                       (long long)opts->s.dim[i]);
    }
#define LENGTH(i) (opts->s.ndim ? opts->s.dim[i] : 0)
    if (kind == RFFT)
        a = along(kind, a, axis[count - 1], LENGTH(count - 1), opts->norm);
    for (int i = kind == others ? count - 1 : count - 2; i >= 0; i--)
        a = along(others, a, axis[i], LENGTH(i), opts->norm);
    if (kind == IRFFT)
        a = along(kind, a, axis[count - 1], LENGTH(count - 1), opts->norm);
    return narrowed(a, half && count == 1);
}

/* Into `out`, if it holds the result's kind. */
static tn_array *deliver(tn__call call, const char *operation, tn__node *result, const tn_fft_opts *opts)
{
    tn_dtype to = opts && opts->out ? tn_dtype_of(opts->out) : TN_DTYPE_DEFAULT;
    if (to && !tn__node_is_error(result) && !tn_can_cast((tn_dtype)result->dtype, to)) {
        tn__fail(TN_ERR_DTYPE, operation, "a result of %s loses its kind in an array of %s",
                 tn_dtype_name((tn_dtype)result->dtype), tn_dtype_name(to));
        result = tn__failed();
    }
    return tn__deliver(call, result, opts ? opts->out : NULL);
}

#define ONE(name, KIND) \
    tn_array *tn_fft_##name##_with(const tn_array *x, const tn_fft_opts *opts) \
    { \
        tn__call call = tn__enter(); \
        return deliver(call, #name, one(KIND, tn__node_of(x, #name), opts), opts); \
    }
ONE(fft, FFT)
ONE(ifft, IFFT)
ONE(rfft, RFFT)
ONE(irfft, IRFFT)
ONE(hfft, HFFT)
ONE(ihfft, IHFFT)

#define SEVERAL(name, KIND, OTHERS) \
    tn_array *tn_fft_##name##n_with(const tn_array *x, const tn_fft_opts *opts) \
    { \
        tn__call call = tn__enter(); \
        return deliver(call, #name "n", several(#name "n", KIND, OTHERS, false, tn__node_of(x, #name "n"), opts), \
                       opts); \
    } \
    tn_array *tn_fft_##name##2_with(const tn_array *x, const tn_fft_opts *opts) \
    { \
        tn__call call = tn__enter(); \
        return deliver(call, #name "2", several(#name "2", KIND, OTHERS, true, tn__node_of(x, #name "2"), opts), \
                       opts); \
    }
SEVERAL(fft, FFT, FFT)
SEVERAL(ifft, IFFT, IFFT)
SEVERAL(rfft, RFFT, FFT)
SEVERAL(irfft, IRFFT, IFFT)

/* ---- frequencies ---- */

/* 0, 1, ... below n, from `negative` on less n; each over n d. */
static tn__node *frequencies(const char *operation, int64_t n, int64_t count, int64_t negative, double d,
                             const tn_create_opts *opts)
{
    if (n < 1)
        TN__REFUSE(TN_ERR_VALUE, operation, "expected at least 1 number, got %lld", (long long)n);
    tn_dtype dtype = opts && opts->dtype ? opts->dtype : TN_FLOAT64;
    tn__device *device = tn__device_get(opts ? opts->device : (tn_device){0, 0});
    const tn__shape *shape = device ? tn__shape_make(operation, (tn_shape){.ndim = 1, .dim = {count}}, dtype) : NULL;
    if (!shape)
        return tn__failed();
    if (!tn__dtype_valid(dtype) || !tn_dtype_is_float(dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "gives floats, and the dtype asked for is %s", tn_dtype_name(dtype));
    tn__node *i = tn__iota(shape, 0, device);
    if (negative < count)
        i = tn__where(tn__with(TN__OP_GREATER_EQUAL, i, (double)negative), tn__with(TN__OP_SUBTRACT, i, (double)n), i);
    return tn__cast(tn__with(TN__OP_MULTIPLY, tn__cast(i, TN_FLOAT64), 1 / ((double)n * d)), dtype);
}

tn_array *tn_fft_fftfreq_with(int64_t n, double d, const tn_create_opts *opts)
{
    TN__RETURN(frequencies("fftfreq", n, n, (n + 1) / 2, d, opts));
}

tn_array *tn_fft_rfftfreq_with(int64_t n, double d, const tn_create_opts *opts)
{
    TN__RETURN(frequencies("rfftfreq", n, n / 2 + 1, n / 2 + 1, d, opts));
}

/* The last axis rolled by `shift` positions: its end comes to the front. */
static tn__node *rolled(tn__node *a, int64_t shift)
{
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    int64_t n = a->shape->dim[ndim - 1];
    if (shift == 0 || a->shape->size == 0)
        return a;
    tn__node *front = tn__update_along(tn__const_like(a, 0), tn__last_slice(a, n - shift, shift), ndim - 1, 0);
    return tn__update_along(front, tn__last_slice(a, 0, n - shift), ndim - 1, shift);
}

static tn__node *shifted(const char *operation, tn__node *a, tn_axes axes, bool back)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    uint32_t set;
    if (!tn__axes_set(operation, axes, a->shape->ndim, &set))
        return tn__failed();
    for (int axis = 0; axis < TN_MAX_NDIM; axis++) {
        if (!(set >> axis & 1))
            continue;
        int64_t n = a->shape->dim[axis];
        a = tn__axis_from_last(rolled(tn__axis_to_last(a, axis), back ? n - n / 2 : n / 2), axis);
        TN__PASS_ERROR(a);
    }
    return a;
}

tn_array *tn_fft_fftshift(const tn_array *x, tn_axes axes)
{
    TN__RETURN(shifted("fftshift", tn__node_of(x, "fftshift"), axes, false));
}

tn_array *tn_fft_ifftshift(const tn_array *x, tn_axes axes)
{
    TN__RETURN(shifted("ifftshift", tn__node_of(x, "ifftshift"), axes, true));
}
