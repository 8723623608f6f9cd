/* SPDX-License-Identifier: MIT */
/* Creation: weak scalars, constants, ranges, copies of host memory, and moves between devices. */
#include <tanso/array.h>
#include <tanso/device.h>

#include <math.h>
#include <string.h>

#include "array/build_parts.h"
#include "core/options.h"

static tn__node *weak(tn__scalar value, tn_dtype dtype)
{
    tn__device *device = tn__device_current();
    if (!device)
        return tn__failed();
    tn__node *node = tn__const_scalar(value, dtype, tn__shape_scalar(), device);
    if (!tn__node_is_error(node))
        node->flags |= TN__NODE_WEAK;
    return node;
}

tn_array *tn_weak_int(long long value)
{
    TN__RETURN(weak((tn__scalar){.i = value}, TN_INT64));
}

tn_array *tn_weak_uint(unsigned long long value)
{
    TN__RETURN(weak((tn__scalar){.bits = value}, value > INT64_MAX ? TN_UINT64 : TN_INT64));
}

tn_array *tn_weak_float(double value)
{
    TN__RETURN(weak((tn__scalar){.f64 = value}, TN_FLOAT64));
}

tn_array *tn_weak_bool(bool value)
{
    TN__RETURN(weak((tn__scalar){.i = value}, TN_BOOL));
}

/* Where and as what a new array is to be made; shape is NULL, with a latched failure, when it
 * cannot be. */
typedef struct target {
    const tn__shape *shape;
    tn__device *device;
    tn_dtype dtype;
} target;

static target new_target(const char *operation, tn_shape shape, tn_dtype default_dtype,
                         const tn_create_opts *opts)
{
    target t = {.dtype = opts && opts->dtype ? opts->dtype : default_dtype};
    if (!tn__dtype_valid(t.dtype)) {
        tn__fail(TN_ERR_DTYPE, operation,
                 "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128", (int)t.dtype);
        return t;
    }
    if (opts && !TN__DEVICE_GIVEN(operation, opts))
        return t;
    t.device = tn__device_get(opts ? opts->device : (tn_device){0, 0});
    t.shape = t.device ? tn__shape_make(operation, shape, t.dtype) : NULL;
    return t;
}

/* Not by way of double, which does not hold all integers of 64 bits. */
static tn__scalar exactly(long double value, tn_dtype dtype)
{
    if (!tn_dtype_is_integer(dtype))
        return tn__scalar_from_double((double)value, dtype);
    return tn__scalar_from_int(value < 0 ? (int64_t)value : (int64_t)(uint64_t)value, dtype);
}

static tn__node *full(const char *operation, tn_shape shape, long double value, const tn_create_opts *opts)
{
    target t = new_target(operation, shape, TN_FLOAT32, opts);
    if (!t.shape || !tn__number_fits(operation, value, t.dtype))
        return tn__failed();
    return tn__const_scalar(exactly(value, t.dtype), t.dtype, t.shape, t.device);
}

tn_array *tn_zeros_with(tn_shape shape, const tn_create_opts *opts)
{
    TN__RETURN(full("zeros", shape, 0, opts));
}

tn_array *tn_ones_with(tn_shape shape, const tn_create_opts *opts)
{
    TN__RETURN(full("ones", shape, 1, opts));
}

tn_array *tn_full_with(tn_shape shape, long double value, const tn_create_opts *opts)
{
    TN__RETURN(full("full", shape, value, opts));
}

tn_array *tn_scalar_with(long double value, const tn_create_opts *opts)
{
    TN__RETURN(full("scalar", (tn_shape){.ndim = 0}, value, opts));
}

static tn__node *full_like(const char *operation, const tn_array *x, double value)
{
    tn__node *like = tn__strong(tn__node_of(x, operation));
    return tn__const_like(like, value);
}

tn_array *tn_zeros_like(const tn_array *x)
{
    TN__RETURN(full_like("zeros_like", x, 0));
}

tn_array *tn_ones_like(const tn_array *x)
{
    TN__RETURN(full_like("ones_like", x, 1));
}

/* ---- ranges ---- */

/* first + i * delta over a vector, in one dtype. */
static tn__node *ramp(const target *t, tn_dtype dtype, tn__scalar first, tn__scalar delta)
{
    tn__node *i = tn__cast(tn__iota(t->shape, 0, t->device), dtype);
    if (tn__scalar_to_double(delta, dtype) != 1)
        i = tn__binary(TN__OP_MULTIPLY, i, tn__const_scalar(delta, dtype, t->shape, t->device));
    if (tn__scalar_to_double(first, dtype) != 0)
        i = tn__binary(TN__OP_ADD, i, tn__const_scalar(first, dtype, t->shape, t->device));
    return i;
}

static bool whole(double x)
{
    return x == floor(x) && fabs(x) < 0x1p62;
}

/* NumPy computes the first two elements in the dtype and goes on by their difference, integers in
 * int64 and half precision in float32. */
static tn__node *arange(double start, double stop, double step, const tn_create_opts *opts)
{
    if (!(isfinite(start) && isfinite(stop)) || isnan(step) || step == 0)
        TN__REFUSE(TN_ERR_VALUE, "arange",
                   "start %g, stop %g, step %g: expected finite numbers and a step other than 0",
                   start, stop, step);
    double steps = (stop - start) / step, count = ceil(steps);
    if (steps == 0 && stop != start) /* a step that is infinite, or nearly: the start alone, if it goes to the stop */
        count = !signbit(steps);
    if (!(count < 0x1p62))
        TN__REFUSE(TN_ERR_VALUE, "arange", "from %g to %g by %g is too many elements", start, stop,
                   step);
    tn_dtype dtype = whole(start) && whole(stop) && whole(step) ? TN_INT64 : TN_FLOAT32;
    tn_shape shape = {.ndim = 1, .dim = {count > 0 ? (int64_t)count : 0}};
    target t = new_target("arange", shape, dtype, opts);
    if (!t.shape)
        return tn__failed();
    if (t.dtype == TN_BOOL && t.shape->size > 2)
        TN__REFUSE(TN_ERR_DTYPE, "arange",
                   "bool has 2 values, %lld are asked for; give another dtype",
                   (long long)t.shape->size);

    double last = count > 1 ? start + step * (count - 1) : start;
    if (count > 0 && (!tn__number_fits("arange", start, t.dtype) || !tn__number_fits("arange", last, t.dtype)))
        return tn__failed();

    tn_dtype real = (tn_dtype)tn__dtypes[t.dtype].component; /* of complex numbers the real parts */
    tn_dtype integer = t.dtype == TN_UINT64 ? TN_UINT64 : TN_INT64;
    tn_dtype compute = tn_dtype_is_float(real) ? (tn_dtype)tn__dtypes[real].compute : integer;
    tn_dtype stored = compute == integer ? integer : real;
    tn__scalar first = tn__scalar_from_double(start, stored),
               second = tn__scalar_from_double(count > 1 ? start + step : start, stored), delta;
    if (compute == integer) {
        delta.i = (int64_t)((uint64_t)second.i - (uint64_t)first.i);
    } else {
        double difference =
            tn__scalar_to_double(second, stored) - tn__scalar_to_double(first, stored);
        delta = tn__scalar_from_double(difference, compute);
        first = tn__scalar_cast(first, stored, compute);
    }
    return tn__cast(ramp(&t, compute, first, delta), t.dtype);
}

tn_array *tn_arange_with(double start, double stop, double step, const tn_create_opts *opts)
{
    TN__RETURN(arange(start, stop, step, opts));
}

/* NumPy's: in float64, the last element exactly stop, rounded down for integers. */
static tn__node *linspace(double start, double stop, int64_t count, const tn_create_opts *opts)
{
    if (count < 0)
        TN__REFUSE(TN_ERR_VALUE, "linspace", "expected a count of 0 or more, got %lld",
                   (long long)count);
    target t = new_target("linspace", (tn_shape){.ndim = 1, .dim = {count}}, TN_FLOAT32, opts);
    if (!t.shape || (count > 0 && !tn__number_fits("linspace", start, t.dtype)) ||
        (count > 1 && !tn__number_fits("linspace", stop, t.dtype)))
        return tn__failed();
    tn__node *y;
    double step = count > 1 ? (stop - start) / (double)(count - 1) : 0;
    if (count > 1 && step == 0 && stop != start) {
        /* a step too small to be represented: divide first */
        y = tn__cast(tn__iota(t.shape, 0, t.device), TN_FLOAT64);
        y = tn__with(TN__OP_MULTIPLY, tn__with(TN__OP_DIVIDE, y, (double)(count - 1)),
                     stop - start);
        y = tn__with(TN__OP_ADD, y, start);
    } else {
        y = ramp(&t, TN_FLOAT64, (tn__scalar){.f64 = start}, (tn__scalar){.f64 = step});
    }
    if (count > 1) {
        tn__node *last =
            tn__with(TN__OP_EQUAL, tn__iota(t.shape, 0, t.device), (double)(count - 1));
        y = tn__where(last, tn__const(stop, TN_FLOAT64, t.shape, t.device), y);
    }
    if (tn_dtype_is_integer(t.dtype))
        y = tn__unary(TN__OP_FLOOR, y);
    return tn__cast(y, t.dtype);
}

tn_array *tn_linspace_with(double start, double stop, int64_t count, const tn_create_opts *opts)
{
    TN__RETURN(linspace(start, stop, count, opts));
}

static tn__node *eye(int64_t n, int64_t m, const tn_create_opts *opts)
{
    target t =
        new_target("eye", (tn_shape){.ndim = 2, .dim = {n, m < 0 ? n : m}}, TN_FLOAT32, opts);
    if (!t.shape)
        return tn__failed();
    tn__node *diagonal =
        tn__binary(TN__OP_EQUAL, tn__iota(t.shape, 0, t.device), tn__iota(t.shape, 1, t.device));
    return tn__cast(diagonal, t.dtype);
}

tn_array *tn_eye_with(int64_t n, int64_t m, const tn_create_opts *opts)
{
    TN__RETURN(eye(n, m, opts));
}

/* ---- host memory ---- */

static tn__node *from_host(const char *operation, const void *data, tn_shape shape, tn_dtype dtype,
                           const tn_create_opts *opts)
{
    tn_create_opts options = {.dtype = dtype, .device = opts ? opts->device : (tn_device){0, 0}};
    if (opts && opts->dtype && opts->dtype != dtype)
        TN__REFUSE(
            TN_ERR_DTYPE, operation,
            "the data are %s, and the option dtype says %s; leave the option out and tn_cast",
            tn_dtype_name(dtype), tn_dtype_name(opts->dtype));
    if (!tn__dtype_valid(dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation,
                   "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128", (int)dtype);
    target t = new_target(operation, shape, dtype, &options);
    if (!t.shape)
        return tn__failed();
    int64_t size = t.shape->size;
    if (size > 0 && !data)
        TN__REFUSE(TN_ERR_VALUE, operation, "data is NULL, expected %lld elements of %s",
                   (long long)size, tn_dtype_name(dtype));
    for (int64_t i = 0; dtype == TN_BOOL && i < size; i++)
        if (((const unsigned char *)data)[i] > 1)
            TN__REFUSE(
                TN_ERR_VALUE, operation,
                "element %lld is %d, bool elements are 0 or 1; give the data as uint8 and tn_cast",
                (long long)i, ((const unsigned char *)data)[i]);

    size_t bytes = (size_t)size * tn_dtype_size(dtype);
    tn__storage *storage = tn__storage_new(t.device, bytes);
    if (!storage)
        return tn__failed();
    tn__node *node;
    if (bytes > 0 && tn__storage_write(storage, data, bytes) != TN_OK)
        node = tn__failed();
    else
        node = tn__node_value(storage, dtype, t.shape, 0, NULL);
    tn__storage_release(storage);
    return node;
}

tn_array *tn_from_host_with(const void *data, tn_shape shape, tn_dtype dtype,
                            const tn_create_opts *opts)
{
    TN__RETURN(from_host("from_host", data, shape, dtype, opts));
}

#define FROM_HOST(name, type, dtype) \
    tn_array *tn_from_##name(const type *data, int64_t count) \
    { \
        TN__RETURN( \
            from_host("from_" #name, data, (tn_shape){.ndim = 1, .dim = {count}}, dtype, NULL)); \
    }
FROM_HOST(floats, float, TN_FLOAT32)
FROM_HOST(doubles, double, TN_FLOAT64)
FROM_HOST(int64s, int64_t, TN_INT64)

static tn__node *to(const tn_array *x, tn_device id)
{
    tn__node *a = tn__node_of(x, "to");
    TN__PASS_ERROR(a);
    tn__device *device = tn__device_get(id);
    if (!device)
        return tn__failed();
    return tn__to(tn__strong(a), device);
}

tn_array *tn_to(const tn_array *x, tn_device device)
{
    TN__RETURN(to(x, device));
}

tn_array *tn_to_cpu(const tn_array *x)
{
    TN__RETURN(to(x, tn_cpu()));
}

tn_array *tn_to_cuda(const tn_array *x)
{
    tn_device current = tn_current_device();
    TN__RETURN(to(x, current.kind == TN_DEVICE_CUDA ? current : tn_cuda(0)));
}
