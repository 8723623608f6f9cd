/* SPDX-License-Identifier: MIT */
/*
 * Random arrays. A call draws from the stream (generator.key, generator.counter), and then advances
 * the counter by the Philox blocks its elements took, as scalar_random.h counts them: four elements
 * a block for 32-bit draws (float32 and the half precisions), two for 64-bit ones (float64,
 * integers). Streams of successive calls thus never overlap.
 */
#include <tanso/array.h>
#include <tanso/device.h>
#include <tanso/random.h>

#include <math.h>

#include "array/draw.h"
#include "core/memory.h"
#include "core/options.h"
#include "ops/scalar.h"

static _Thread_local tn_generator thread_generator;

void tn_seed(uint64_t seed)
{
    thread_generator = (tn_generator){.key = seed, .counter = 0};
}

tn_generator *tn_default_generator(void)
{
    return &thread_generator;
}

tn_device tn_generator_device(const tn_generator *generator)
{
    if (!generator)
        tn__fail_null("device_of", "a generator");
    return (tn_device){0};
}

tn__draw tn__draw_new(const char *operation, tn_shape shape, tn_dtype default_dtype,
                     const tn_random_opts *opts)
{
    tn__draw d = {.opts = opts ? *opts : (tn_random_opts){.dtype = TN_DTYPE_DEFAULT}};
    d.dtype = d.opts.dtype ? d.opts.dtype : default_dtype;
    d.generator = d.opts.generator ? d.opts.generator : &thread_generator;
    if (!tn__dtype_valid(d.dtype)) {
        tn__fail(TN_ERR_DTYPE, operation,
                 "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128", (int)d.dtype);
        return d;
    }
    if (!TN__DEVICE_GIVEN(operation, &d.opts))
        return d;
    d.device = tn__device_get(d.opts.device);
    d.shape = d.device ? tn__shape_make(operation, shape, d.dtype) : NULL;
    return d;
}

static bool is_float_draw(const char *operation, const tn__draw *d)
{
    if (!d->shape)
        return false;
    if (tn_dtype_is_float(d->dtype))
        return true;
    tn__fail(TN_ERR_DTYPE, operation,
             "draws floats, and the dtype asked for is %s; use tn_random_integers",
             tn_dtype_name(d->dtype));
    return false;
}

tn__node *tn__draw_next(const tn__draw *d, tn__op op, tn_dtype dtype)
{
    uint64_t size = (uint64_t)d->shape->size;
    tn__node *node =
        tn__random(op, dtype, d->shape, d->device, d->generator->key, d->generator->counter);
    d->generator->counter += tn__dtypes[dtype].size == 8 ? (size + 1) / 2 : (size + 3) / 4;
    return node;
}

static bool is_finite_in(double x, tn_dtype dtype)
{
    return isfinite(tn__scalar_to_double(tn__scalar_from_double(x, dtype), dtype));
}

/* The largest number of a float dtype below x. */
static tn__scalar below(double x, tn_dtype dtype)
{
    tn__scalar s = tn__scalar_from_double(x, dtype);
    if (tn__scalar_to_double(s, dtype) < x)
        return s;
    uint64_t sign = 1ull << (8 * tn__dtypes[dtype].size - 1);
    if ((s.bits & ~sign & (sign | (sign - 1))) == 0)
        s.bits = sign | 1; /* below zero comes the smallest negative number */
    else
        s.bits += s.bits & sign ? 1 : (uint64_t)-1;
    return s;
}

static tn__node *uniform(tn_shape shape, const tn_random_opts *opts)
{
    tn__draw d = tn__draw_new("random_uniform", shape, TN_FLOAT32, opts);
    if (!is_float_draw("random_uniform", &d))
        return tn__failed();
    double low = d.opts.low, high = TN__OPTION(&d.opts, high, 1);
    if (!(low <= high) || !is_finite_in(low, d.dtype) || !is_finite_in(high, d.dtype))
        TN__REFUSE(TN_ERR_VALUE, "random_uniform", "low %g, high %g: expected finite numbers of %s with low <= high",
                   low, high, tn_dtype_name(d.dtype));
    tn_dtype compute = (tn_dtype)tn__dtypes[d.dtype].compute;
    tn__node *u = tn__draw_next(&d, TN__OP_RANDOM_UNIFORM, compute);
    if (low == 0 && high == 1 && compute == d.dtype)
        return u;
    if (is_finite_in(high - low, compute))
        u = tn__with(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, u, high - low), low);
    else /* by halves, as the distance is beyond the dtype that it is computed in */
        u = tn__with(TN__OP_MULTIPLY,
                     tn__with(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, u, high / 2 - low / 2), low / 2), 2);
    u = tn__cast(u, d.dtype);
    /* rounding may reach high, which is left out */
    tn__scalar most = low < high ? below(high, d.dtype) : tn__scalar_from_double(high, d.dtype);
    return tn__binary(TN__OP_MINIMUM, u, tn__const_scalar(most, d.dtype, d.shape, d.device));
}

tn_array *tn_random_uniform_with(tn_shape shape, const tn_random_opts *opts)
{
    TN__RETURN(uniform(shape, opts));
}

static tn__node *normal(tn_shape shape, const tn_random_opts *opts)
{
    tn__draw d = tn__draw_new("random_normal", shape, TN_FLOAT32, opts);
    if (!is_float_draw("random_normal", &d))
        return tn__failed();
    double loc = d.opts.loc, scale = TN__OPTION(&d.opts, scale, 1);
    if (!is_finite_in(loc, d.dtype) || !(scale >= 0 && is_finite_in(scale, d.dtype)))
        TN__REFUSE(TN_ERR_VALUE, "random_normal", "loc %g, scale %g: expected finite numbers of %s, scale not negative",
                   loc, scale, tn_dtype_name(d.dtype));
    tn__node *z = tn__draw_next(&d, TN__OP_RANDOM_NORMAL, (tn_dtype)tn__dtypes[d.dtype].compute);
    if (scale != 1)
        z = tn__with(TN__OP_MULTIPLY, z, scale);
    if (loc != 0)
        z = tn__with(TN__OP_ADD, z, loc);
    return tn__cast(z, d.dtype);
}

tn_array *tn_random_normal_with(tn_shape shape, const tn_random_opts *opts)
{
    TN__RETURN(normal(shape, opts));
}

static tn__node *u64(tn__op op, tn__node *a, uint64_t b)
{
    TN__PASS_ERROR(a);
    return tn__binary(op, a,
                      tn__const_scalar((tn__scalar){.bits = b}, TN_UINT64, a->shape, a->device));
}

/* The upper half of bits * n, by halves, as tns_random_below_u64 computes it: a value's probability
 * is off by less than n / 2^64, relatively. */
static tn__node *multiply_high(tn__node *bits, uint64_t n)
{
    const uint64_t half = 0xffffffffu;
    tn__node *low = u64(TN__OP_BITWISE_AND, bits, half), *high = u64(TN__OP_RIGHT_SHIFT, bits, 32);
    tn__node *middle = tn__binary(TN__OP_ADD, u64(TN__OP_MULTIPLY, high, n & half),
                                  u64(TN__OP_RIGHT_SHIFT, u64(TN__OP_MULTIPLY, low, n & half), 32));
    tn__node *result = u64(TN__OP_RIGHT_SHIFT, middle, 32);
    if (n >> 32 == 0)
        return result;
    tn__node *rest = tn__binary(TN__OP_ADD, u64(TN__OP_MULTIPLY, low, n >> 32),
                                u64(TN__OP_BITWISE_AND, middle, half));
    result = tn__binary(TN__OP_ADD, result, u64(TN__OP_MULTIPLY, high, n >> 32));
    return tn__binary(TN__OP_ADD, result, u64(TN__OP_RIGHT_SHIFT, rest, 32));
}

tn__node *tn__draw_below(const tn__draw *d, uint64_t n)
{
    return multiply_high(tn__draw_next(d, TN__OP_RANDOM_BITS, TN_UINT64), n);
}

/* True if all of low .. last are values of the integer dtype. */
static bool holds(tn_dtype dtype, int64_t low, int64_t last)
{
    return tn__scalar_to_int(tn__scalar_from_int(low, dtype), dtype) == low &&
           tn__scalar_to_int(tn__scalar_from_int(last, dtype), dtype) == last &&
           (dtype != TN_UINT64 || low >= 0);
}

static tn__node *integers(int64_t low, int64_t high, tn_shape shape, const tn_random_opts *opts)
{
    tn__draw d = tn__draw_new("random_integers", shape, TN_INT64, opts);
    if (!d.shape)
        return tn__failed();
    if (!tn_dtype_is_integer(d.dtype))
        TN__REFUSE(TN_ERR_DTYPE, "random_integers",
                   "expected an integer dtype, got %s; cast the result with tn_cast",
                   tn_dtype_name(d.dtype));
    if (low >= high)
        TN__REFUSE(TN_ERR_VALUE, "random_integers",
                   "low %lld, high %lld: expected low < high, which is left out", (long long)low,
                   (long long)high);
    if (!holds(d.dtype, low, high - 1))
        TN__REFUSE(TN_ERR_VALUE, "random_integers",
                   "%lld to %lld do not all fit %s; give a wider dtype", (long long)low,
                   (long long)high - 1, tn_dtype_name(d.dtype));
    tn__node *value =
        tn__draw_below(&d, (uint64_t)high - (uint64_t)low);
    if (low != 0)
        value = u64(TN__OP_ADD, value, (uint64_t)low);
    return tn__cast(value, d.dtype);
}

tn_array *tn_random_integers_with(int64_t low, int64_t high, tn_shape shape,
                                  const tn_random_opts *opts)
{
    TN__RETURN(integers(low, high, shape, opts));
}

/* The order that sorts 64 random bits an element: two of n elements share theirs, and keep their order, in one of 2^65
 * / n^2 permutations. */
static tn__node *permutation(int64_t n, const tn_random_opts *opts)
{
    tn__draw d = tn__draw_new("random_permutation", (tn_shape){.ndim = 1, .dim = {n}}, TN_INT64, opts);
    if (!d.shape)
        return tn__failed();
    if (d.dtype != TN_INT64)
        TN__REFUSE(TN_ERR_DTYPE, "random_permutation", "gives int64, and the dtype asked for is %s; use tn_cast",
                   tn_dtype_name(d.dtype));
    return tn__sort_scan(TN__OP_ARGSORT, tn__draw_next(&d, TN__OP_RANDOM_BITS, TN_UINT64), NULL);
}

tn_array *tn_random_permutation_with(int64_t n, const tn_random_opts *opts)
{
    TN__RETURN(permutation(n, opts));
}

/* Of which uniform numbers: float32's are multiples of 2^-24, too coarse for what is rare, be it true or false. */
static tn_dtype fine_enough(double p)
{
    double rare = p < 0.5 ? p : 1 - p;
    return rare >= 0x1p-10 || p * 0x1p24 == floor(p * 0x1p24) ? TN_FLOAT32 : TN_FLOAT64;
}

static tn__node *bernoulli(double p, tn_shape shape, const tn_random_opts *opts)
{
    tn__draw d = tn__draw_new("random_bernoulli", shape, TN_BOOL, opts);
    if (!d.shape)
        return tn__failed();
    if (!(p >= 0 && p <= 1))
        TN__REFUSE(TN_ERR_VALUE, "random_bernoulli", "p is %g, expected a probability from 0 to 1",
                   p);
    tn__node *u = tn__draw_next(&d, TN__OP_RANDOM_UNIFORM, fine_enough(p));
    return tn__cast(tn__with(TN__OP_LESS, u, p), d.dtype);
}

tn_array *tn_random_bernoulli_with(double p, tn_shape shape, const tn_random_opts *opts)
{
    TN__RETURN(bernoulli(p, shape, opts));
}
