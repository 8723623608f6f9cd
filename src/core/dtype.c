/* SPDX-License-Identifier: MIT */
/* The table of dtypes, NumPy's promotion as rules over it, and scalars of any dtype. */
#include "core/dtype.h"

#include <math.h>
#include <string.h>

#define PARTS(id, name, suffix, size, class, compute, component) \
    [id] = {name, #suffix, "tn_" #suffix, size, TN__CLASS_##class, compute, component}
#define ROW(id, name, suffix, size, class, compute) PARTS(id, name, suffix, size, class, compute, id)
const tn__dtype_info tn__dtypes[TN_DTYPE_COUNT] = {
    ROW(TN_BOOL, "bool", b8, 1, BOOL, TN_BOOL),
    ROW(TN_INT8, "int8", i8, 1, SIGNED, TN_INT8),
    ROW(TN_INT16, "int16", i16, 2, SIGNED, TN_INT16),
    ROW(TN_INT32, "int32", i32, 4, SIGNED, TN_INT32),
    ROW(TN_INT64, "int64", i64, 8, SIGNED, TN_INT64),
    ROW(TN_UINT8, "uint8", u8, 1, UNSIGNED, TN_UINT8),
    ROW(TN_UINT16, "uint16", u16, 2, UNSIGNED, TN_UINT16),
    ROW(TN_UINT32, "uint32", u32, 4, UNSIGNED, TN_UINT32),
    ROW(TN_UINT64, "uint64", u64, 8, UNSIGNED, TN_UINT64),
    ROW(TN_FLOAT16, "float16", f16, 2, FLOAT, TN_FLOAT32),
    ROW(TN_BFLOAT16, "bfloat16", bf16, 2, FLOAT, TN_FLOAT32),
    ROW(TN_FLOAT32, "float32", f32, 4, FLOAT, TN_FLOAT32),
    ROW(TN_FLOAT64, "float64", f64, 8, FLOAT, TN_FLOAT64),
    PARTS(TN_COMPLEX64, "complex64", c64, 8, COMPLEX, TN_COMPLEX64, TN_FLOAT32),
    PARTS(TN_COMPLEX128, "complex128", c128, 16, COMPLEX, TN_COMPLEX128, TN_FLOAT64),
};
#undef ROW
#undef PARTS

/* ---- the public face ---- */

const char *tn_dtype_name(tn_dtype dtype)
{
    return tn__dtype_valid(dtype) ? tn__dtypes[dtype].name : "invalid";
}

size_t tn_dtype_size(tn_dtype dtype)
{
    return tn__dtype_valid(dtype) ? tn__dtypes[dtype].size : 0;
}

tn_dtype tn_dtype_parse(const char *name)
{
    for (int d = TN_DTYPE_DEFAULT + 1; name && d < TN_DTYPE_COUNT; d++)
        if (strcmp(name, tn__dtypes[d].name) == 0)
            return (tn_dtype)d;
    return TN_DTYPE_DEFAULT;
}

bool tn_dtype_is_float(tn_dtype dtype)
{
    return tn__dtype_valid(dtype) && tn__dtypes[dtype].class == TN__CLASS_FLOAT;
}

bool tn_dtype_is_integer(tn_dtype dtype)
{
    return tn__dtype_valid(dtype) &&
           (tn__dtypes[dtype].class == TN__CLASS_SIGNED || tn__dtypes[dtype].class == TN__CLASS_UNSIGNED);
}

bool tn_dtype_is_complex(tn_dtype dtype)
{
    return tn__dtype_valid(dtype) && tn__dtypes[dtype].class == TN__CLASS_COMPLEX;
}

/* ---- promotion ---- */

static tn_dtype signed_of(size_t size)
{
    return size == 1 ? TN_INT8 : size == 2 ? TN_INT16 : size == 4 ? TN_INT32 : TN_INT64;
}

tn_dtype tn__dtype_to_float(tn_dtype dtype)
{
    const tn__dtype_info *info = &tn__dtypes[dtype];
    if (tn__dtype_inexact(dtype))
        return dtype;
    return info->size == 1 ? TN_FLOAT16 : info->size == 2 ? TN_FLOAT32 : TN_FLOAT64;
}

tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b)
{
    if (!tn__dtype_valid(a) || !tn__dtype_valid(b))
        return TN_DTYPE_DEFAULT;
    if (a == b)
        return a;
    if (tn__dtypes[a].class == TN__CLASS_COMPLEX || tn__dtypes[b].class == TN__CLASS_COMPLEX)
        return tn__dtype_to_complex(
            tn_dtype_promote((tn_dtype)tn__dtypes[a].component, (tn_dtype)tn__dtypes[b].component));
    /* x: the one of the higher class, bool < integers < floats; y: the other */
    bool swap = tn__dtypes[a].class < tn__dtypes[b].class;
    tn_dtype x = swap ? b : a, y = swap ? a : b;
    const tn__dtype_info *xi = &tn__dtypes[x], *yi = &tn__dtypes[y];

    if (yi->class == TN__CLASS_BOOL)
        return x;
    if (xi->class == TN__CLASS_FLOAT) {
        if (yi->class == TN__CLASS_FLOAT && xi->size == yi->size)
            return TN_FLOAT32; /* float16 and bfloat16 */
        /* an integer asks for a float that holds (nearly) all its values; a byte for none beyond those there are */
        size_t needed = yi->class == TN__CLASS_FLOAT ? yi->size : tn__dtypes[tn__dtype_to_float(y)].size;
        return needed <= xi->size ? x : needed == 4 ? TN_FLOAT32 : TN_FLOAT64;
    }
    if (xi->class == yi->class)
        return xi->size > yi->size ? x : y;
    /* x unsigned, y signed: a signed dtype that holds both */
    if (yi->size > xi->size)
        return y;
    return xi->size < 8 ? signed_of(2u * xi->size) : TN_FLOAT64;
}

tn_dtype tn__dtype_with_weak(tn_dtype dtype, tn__dtype_class weak)
{
    tn__dtype_class own = (tn__dtype_class)tn__dtypes[dtype].class;
    if (weak == TN__CLASS_COMPLEX)
        return own >= TN__CLASS_FLOAT ? tn__dtype_to_complex(dtype) : TN_COMPLEX128;
    if (weak == TN__CLASS_BOOL || own >= TN__CLASS_FLOAT)
        return dtype;
    if (weak == TN__CLASS_FLOAT)
        return TN_FLOAT64;
    return own == TN__CLASS_BOOL ? TN_INT64 : dtype;
}

/* ---- scalars ---- */

/* The two 16-bit formats: a sign, an exponent of the given bits, a fraction in the rest. */
static int exponent_bits(tn_dtype dtype)
{
    return dtype == TN_FLOAT16 ? 5 : 8;
}

/* Rounds once, to nearest, ties to even; a NaN keeps the upper bits of its payload and is made quiet. */
static uint16_t narrow(double value, int exponent)
{
    int fraction = 15 - exponent, bias = (1 << (exponent - 1)) - 1;
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint32_t sign = (uint32_t)(bits >> 63) << 15, infinity = ((1u << exponent) - 1) << fraction;
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (fraction - 1) |
                          ((uint32_t)(bits >> (52 - fraction)) & ((1u << fraction) - 1)));
    double magnitude = fabs(value);
    if (isinf(value) || magnitude >= ldexp(1, bias + 1))
        return (uint16_t)(sign | infinity);
    if (magnitude == 0)
        return (uint16_t)sign;
    int power = ilogb(magnitude), least = 1 - bias;
    bool subnormal = power < least;
    if (subnormal)
        power = least;
    /* in units of the last place; a carry out of the fraction runs on into the exponent, as it should */
    uint32_t units = (uint32_t)nearbyint(ldexp(magnitude, fraction - power));
    uint32_t body = subnormal ? units : ((uint32_t)(power + bias - 1) << fraction) + units;
    return (uint16_t)(sign | body);
}

static double widen(uint16_t half, int exponent)
{
    int fraction = 15 - exponent, bias = (1 << (exponent - 1)) - 1, power = (half >> fraction) & ((1 << exponent) - 1);
    double units = half & ((1 << fraction) - 1), magnitude;
    if (power == (1 << exponent) - 1)
        magnitude = units != 0 ? (double)NAN : INFINITY;
    else if (power == 0)
        magnitude = ldexp(units, 1 - bias - fraction);
    else
        magnitude = ldexp(units + (1 << fraction), power - bias - fraction);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* Truncates to an integer of 32 or 64 bits; NaN and what is beyond gives the least. */
static int64_t truncate_to(unsigned bits, double value)
{
    double end = ldexp(1, (int)bits - 1);
    return value >= -end && value < end ? (int64_t)value : bits == 32 ? INT32_MIN : INT64_MIN;
}

/* As ops/scalar_cast.h: narrow integers by way of 32 bits, uint32 of 64, uint64 from 2^63 on by what is beyond it. */
static uint64_t truncated(double value, const tn__dtype_info *info)
{
    bool is_signed = info->class == TN__CLASS_SIGNED, upper = info->size == 8 && !is_signed && value >= 0x1p63;
    unsigned bits = info->size == 8 || (info->size == 4 && !is_signed) ? 64 : 32;
    return (uint64_t)truncate_to(bits, upper ? value - 0x1p63 : value) ^ (uint64_t)upper << 63;
}

/* The low `size` bytes of an integer, as an array stores them. */
static tn__scalar store_integer(uint64_t value, size_t size)
{
    return (tn__scalar){.bits = size == 8 ? value : value & (((uint64_t)1 << 8 * size) - 1)};
}

tn__scalar tn__scalar_from_double(double value, tn_dtype dtype)
{
    dtype = (tn_dtype)tn__dtypes[dtype].component;
    const tn__dtype_info *info = &tn__dtypes[dtype];
    tn__scalar scalar = {0};
    switch ((tn__dtype_class)info->class) {
    case TN__CLASS_BOOL:
        scalar.bits = value != 0;
        break;
    case TN__CLASS_SIGNED:
    case TN__CLASS_UNSIGNED:
        scalar = store_integer(truncated(value, info), info->size);
        break;
    case TN__CLASS_FLOAT:
    case TN__CLASS_COMPLEX:
        if (dtype == TN_FLOAT64)
            scalar.f64 = value;
        else if (dtype == TN_FLOAT32)
            scalar.f32 = (float)value;
        else
            scalar.bits = narrow(value, exponent_bits(dtype));
        break;
    }
    return scalar;
}

tn__scalar tn__scalar_from_int(int64_t value, tn_dtype dtype)
{
    dtype = (tn_dtype)tn__dtypes[dtype].component;
    const tn__dtype_info *info = &tn__dtypes[dtype];
    if (info->class == TN__CLASS_BOOL)
        return (tn__scalar){.bits = value != 0};
    if (dtype == TN_FLOAT32) { /* not by way of double, which would round twice */
        tn__scalar scalar = {0};
        scalar.f32 = (float)value;
        return scalar;
    }
    if (info->class == TN__CLASS_FLOAT)
        return tn__scalar_from_double((double)value, dtype);
    return store_integer((uint64_t)value, info->size);
}

/* An integer of the dtype, sign-extended; of uint64 the bits. */
static int64_t load_integer(tn__scalar scalar, const tn__dtype_info *info)
{
    unsigned unused = 64 - 8u * info->size;
    uint64_t high = scalar.bits << unused;
    return info->class == TN__CLASS_SIGNED ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

double tn__scalar_to_double(tn__scalar scalar, tn_dtype dtype)
{
    dtype = (tn_dtype)tn__dtypes[dtype].component;
    const tn__dtype_info *info = &tn__dtypes[dtype];
    if (info->class == TN__CLASS_FLOAT)
        return dtype == TN_FLOAT64   ? scalar.f64
               : dtype == TN_FLOAT32 ? scalar.f32
                                     : widen((uint16_t)scalar.bits, exponent_bits(dtype));
    int64_t value = load_integer(scalar, info);
    return info->class == TN__CLASS_SIGNED ? (double)value : (double)(uint64_t)value;
}

int64_t tn__scalar_to_int(tn__scalar scalar, tn_dtype dtype)
{
    dtype = (tn_dtype)tn__dtypes[dtype].component;
    const tn__dtype_info *info = &tn__dtypes[dtype];
    if (info->class == TN__CLASS_FLOAT)
        return truncate_to(64, tn__scalar_to_double(scalar, dtype));
    return load_integer(scalar, info);
}
