/* SPDX-License-Identifier: MIT */
/* The public elementwise functions: one a row of ops.def, and tn_cast, tn_where, tn_clip. */
#include <tanso/array.h>
#include <tanso/complex.h>

#include "array/build_parts.h"
#include "array/plain.h"
#include "tn_op_functions.h"

/* A row makes a function of its arity, but for the rows that SKIP_<ID> names: CHOOSE(SKIP_CAST, f)
 * is NOTHING since SKIP_CAST expands to two arguments, and f for every other row. */
#define SECOND(a, b, ...) b
#define CHOOSE(...)       SECOND(__VA_ARGS__, )
#define SKIP_COPY         ~, NOTHING
#define SKIP_CAST         ~, NOTHING
#define SKIP_WHERE        ~, NOTHING
#define SKIP_LDEXP        ~, NOTHING
#define SKIP_POWER        ~, NOTHING
#define SKIP_NEXTAFTER    ~, NOTHING
#define SKIP_RECIPROCAL   ~, NOTHING
#define SKIP_IMAGINARY    ~, NOTHING
#define SKIP_PACK         ~, NOTHING
#define SKIP_DRAW_GAMMA   ~, NOTHING
#define SKIP_DRAW_LOG_GAMMA ~, NOTHING
#define SKIP_DRAW_POISSON ~, NOTHING
#define SKIP_DRAW_BINOMIAL ~, NOTHING
#define SKIP_DRAW_VONMISES ~, NOTHING
#define SKIP_DRAW_HYPERGEOMETRIC ~, NOTHING
#define NOTHING(ID, name)
#define FUNCTION_1(ID, name) \
    tn_array *tn_##name(const tn_array *x) \
    { \
        return tn__map_1(TN__OP_##ID, x); \
    }
#define FUNCTION_2(ID, name) \
    tn_array *tn_##name(const tn_array *a, const tn_array *b) \
    { \
        return tn__map_2(TN__OP_##ID, a, b); \
    }
#define TN_MAP(ID, name, arity, ...) CHOOSE(SKIP_##ID, FUNCTION_##arity)(ID, name)
#include "ops/ops.def"

/* The exponents are integers, and the dtype is the first operand's. */
static tn__node *ldexp_of(tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    a = tn__strong(a);
    if (!tn_dtype_is_integer((tn_dtype)b->dtype))
        TN__REFUSE(TN_ERR_DTYPE, "ldexp", "exponents must be integers, got %s", tn_dtype_name((tn_dtype)b->dtype));
    tn_dtype dtype = tn__dtype_to_float((tn_dtype)a->dtype);
    return tn__binary(TN__OP_LDEXP, tn__cast(a, dtype), tn__cast(b, dtype));
}

tn_array *tn_ldexp(const tn_array *a, const tn_array *b)
{
    TN__RETURN(ldexp_of(tn__node_of(a, "ldexp"), tn__node_of(b, "ldexp")));
}

/* The neighbours of numbers of 16 bits, by their distance: 2^(e - digits) for x = f 2^e, half of it from a power of two
 * toward zero, and never below the smallest number. */
static tn__node *half_neighbour(tn__node *x, tn__node *to, tn_dtype dtype)
{
    bool bfloat = dtype == TN_BFLOAT16;
    double digits = bfloat ? 8 : 11, least = bfloat ? -133 : -24, largest = bfloat ? 0x1.fep127 : 65504;
    tn__node *up = tn__binary(TN__OP_GREATER, to, x), *positive = tn__with(TN__OP_GREATER, x, 0),
             *zero = tn__with(TN__OP_EQUAL, x, 0);
    tn__node *inward = tn__binary(TN__OP_NOT_EQUAL, up, positive);
    tn__node *fraction = tn__unary(TN__OP_ABS, tn__unary(TN__OP_FREXP_FRACTION, x));
    tn__node *power_of_two = tn__binary(TN__OP_LOGICAL_AND, inward, tn__with(TN__OP_EQUAL, fraction, 0.5));
    tn__node *exponent = tn__with(TN__OP_SUBTRACT, tn__unary(TN__OP_FREXP_EXPONENT, x), digits);
    TN__PASS_ERROR(exponent);
    TN__PASS_ERROR(power_of_two);
    exponent = tn__binary(TN__OP_SUBTRACT, exponent, tn__cast(power_of_two, TN_FLOAT32));
    exponent = tn__where(zero, tn__const_like(exponent, least), tn__with(TN__OP_MAXIMUM, exponent, least));
    tn__node *step = tn__binary(TN__OP_LDEXP, tn__const_like(exponent, 1), exponent);
    tn__node *y = tn__binary(TN__OP_ADD, x, tn__where(up, step, tn__unary(TN__OP_NEGATIVE, step)));
    TN__PASS_ERROR(y);
    y = tn__where(tn__unary(TN__OP_ISINF, x), tn__binary(TN__OP_COPYSIGN, tn__const_like(x, largest), x), y);
    y = tn__where(tn__binary(TN__OP_EQUAL, x, to), to, y);
    return tn__cast(tn__where(tn__unary(TN__OP_ISNAN, to), to, y), dtype);
}

static tn__node *nextafter_of(tn__node *a, tn__node *b)
{
    tn__node *y = tn__binary(TN__OP_NEXTAFTER, a, b);
    TN__PASS_ERROR(y);
    tn_dtype dtype = (tn_dtype)y->dtype;
    if (dtype != TN_FLOAT16 && dtype != TN_BFLOAT16)
        return y;
    tn__node *in[] = {a, b};
    for (int i = 0; i < 2; i++)
        in[i] = tn__expand(tn__cast(tn__cast(tn__strong(in[i]), dtype), TN_FLOAT32), y->shape);
    return half_neighbour(in[0], in[1], dtype);
}

tn_array *tn_nextafter(const tn_array *a, const tn_array *b)
{
    TN__RETURN(nextafter_of(tn__node_of(a, "nextafter"), tn__node_of(b, "nextafter")));
}

/* The smallest element, as an integer; 0, too, where there is none or it cannot be computed. */
static int64_t smallest(tn__node *a)
{
    int64_t value = 0;
    if (a->shape->size == 0)
        return 0;
    tn__node *least = tn__reduce(TN__OP_MIN, tn__cast(a, TN_INT64), (1u << a->shape->ndim) - 1);
    if (tn__node_is_error(least) || !tn__engine.evaluate || tn__engine.evaluate(least) != TN_OK)
        return 0;
    const char *memory = (const char *)least->storage->memory + least->offset * (int64_t)sizeof value;
    return tn__storage_read(least->storage, &value, memory, sizeof value) == TN_OK ? value : 0;
}

/*
 * Powers that a multiplication or a root gives: of the C numbers 2, 3, -1, 0.5. The others need a logarithm. 0.5: of -0
 * it is 0. Products of three are rounded twice, which is too much for 16 bits. NULL: none of these.
 */
static tn__node *easy_power(tn__node *a, const tn__node *b)
{
    if (tn__node_is_error(a) || a->flags & TN__NODE_WEAK || !(b->flags & TN__NODE_WEAK) || !tn__foldable(b))
        return NULL;
    bool floats = tn_dtype_is_float((tn_dtype)a->dtype), whole = b->dtype == TN_INT64;
    if (!(whole ? floats || tn_dtype_is_integer((tn_dtype)a->dtype) : floats && b->dtype == TN_FLOAT64))
        return NULL;
    double e = whole ? (double)b->attr.scalar.i : b->attr.scalar.f64;
    if (e == 2)
        return tn__unary(TN__OP_SQUARE, a);
    if (e == 3 && (!floats || tn__dtypes[a->dtype].size > 2))
        return tn__binary(TN__OP_MULTIPLY, tn__unary(TN__OP_SQUARE, a), a);
    if (e == -1 && floats)
        return tn__unary(TN__OP_RECIPROCAL, a);
    return e == 0.5 ? tn__unary(TN__OP_SQRT, tn__with(TN__OP_ADD, a, 0)) : NULL;
}

/* Integers to a negative integer power are refused, as NumPy does it: exponents in an array are looked at for that. */
static tn__node *power(tn__node *a, tn__node *b)
{
    tn__node *easy = tn__node_is_error(b) ? NULL : easy_power(a, b);
    if (easy)
        return easy;
    bool integers = !tn__node_is_error(a) && !tn__node_is_error(b) &&
                    tn_dtype_is_integer(tn_dtype_promote((tn_dtype)a->dtype, (tn_dtype)b->dtype));
    if (integers && a->shape->size > 0 && tn__dtypes[b->dtype].class == TN__CLASS_SIGNED &&
        !(b->flags & TN__NODE_WEAK) && smallest(b) < 0)
        TN__REFUSE(TN_ERR_VALUE, "power",
                   "integers to negative integer powers are fractions; cast the base to a float dtype");
    return tn__binary(TN__OP_POWER, a, b);
}

tn_array *tn_power(const tn_array *a, const tn_array *b)
{
    TN__RETURN(power(tn__node_of(a, "power"), tn__node_of(b, "power")));
}

/* Of integers NumPy's quotient is whole: not 0 for 1 and -1 only, and of 0 what infinity is cast to. */
static tn__node *reciprocal(tn__node *a)
{
    TN__PASS_ERROR(a);
    a = a->dtype == TN_BOOL ? tn__cast(a, TN_INT8) : a;
    TN__PASS_ERROR(a);
    if (!tn_dtype_is_integer((tn_dtype)a->dtype) || a->flags & TN__NODE_WEAK)
        return tn__unary(TN__OP_RECIPROCAL, a);
    tn__node *unit = tn__with(TN__OP_EQUAL, tn__unary(TN__OP_ABS, a), 1),
             *quotient = tn__where(unit, a, tn__const_like(a, 0));
    if (a->dtype != TN_INT32 && a->dtype != TN_INT64)
        return quotient;
    return tn__where(tn__with(TN__OP_EQUAL, a, 0),
                     tn__const_like(a, a->dtype == TN_INT32 ? INT32_MIN : (double)INT64_MIN), quotient);
}

tn_array *tn_reciprocal(const tn_array *x)
{
    TN__RETURN(reciprocal(tn__node_of(x, "reciprocal")));
}

tn_array *tn_cast(const tn_array *x, tn_dtype dtype)
{
    TN__RETURN(tn__cast(tn__node_of(x, "cast"), dtype));
}

tn_array *tn_where(const tn_array *condition, const tn_array *a, const tn_array *b)
{
    TN__RETURN(tn__where(tn__node_of(condition, "where"), tn__node_of(a, "where"),
                         tn__node_of(b, "where")));
}

/* A bound that is a C number beyond an integer dtype is the end of that: nothing lies between the two. */
static tn__node *bound(tn__node *b, tn_dtype dtype)
{
    int bits = 8 * tn__dtypes[dtype].size - (tn__dtypes[dtype].class == TN__CLASS_SIGNED);
    if (!tn__weak_integer(b) || tn__weak_holds(b, dtype))
        return b;
    int64_t most = bits < 64 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
    int64_t least = tn__dtypes[dtype].class == TN__CLASS_SIGNED ? -most - 1 : 0;
    bool below = b->dtype == TN_INT64 && b->attr.scalar.i < least;
    tn__node *end = tn__const_scalar((tn__scalar){.i = below ? least : most}, TN_INT64, b->shape, b->device);
    if (!tn__node_is_error(end))
        end->flags |= TN__NODE_WEAK;
    return end;
}

/* In what holds all three: bool, a C number and int32 are int32, though bool and the number alone are int64. */
static tn__node *clip(tn__node *x, tn__node *low, tn__node *high)
{
    tn__node *in[] = {x, low, high};
    bool all_weak;
    for (int i = 0; i < 3; i++)
        TN__PASS_ERROR(in[i]);
    tn_dtype dtype = tn__common_dtype(3, in, &all_weak);
    if (!tn__dtype_inexact((tn_dtype)x->dtype) && !(x->flags & TN__NODE_WEAK))
        x = tn__cast(x, dtype);
    if (low->flags & high->flags & TN__NODE_WEAK) { /* beside an array NumPy refuses such a number */
        low = bound(low, dtype);
        high = bound(high, dtype);
        TN__PASS_ERROR(low);
        TN__PASS_ERROR(high);
    }
    return tn__binary(TN__OP_MINIMUM, tn__binary(TN__OP_MAXIMUM, x, low), high);
}

tn_array *tn_clip(const tn_array *x, const tn_array *low, const tn_array *high)
{
    TN__RETURN(clip(tn__node_of(x, "clip"), tn__node_of(low, "clip"), tn__node_of(high, "clip")));
}
