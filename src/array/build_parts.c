/* SPDX-License-Identifier: MIT */
/* What every builder uses: checked shapes, the scalars of constants. */
#include "array/build_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define FAR_FROM_TOO_LARGE ((int64_t)1 << 48) /* elements: tn__shape_check has nothing to say of such a shape */

const tn__shape *tn__shape_make(const char *operation, tn_shape shape, tn_dtype dtype)
{
    const tn__shape *known = tn__shape_recent(shape.ndim, shape.dim);
    if (__builtin_expect(known && known->size > 0 && known->size < FAR_FROM_TOO_LARGE, 1))
        return known;
    if (tn__shape_check(operation, shape, tn_dtype_size(dtype)) != TN_OK)
        return NULL;
    const tn__shape *interned = tn__shape_intern(shape.ndim, shape.dim);
    if (!interned)
        tn__fail_memory(operation, sizeof(tn__shape));
    return interned;
}

tn__node *tn__apply(tn__op op, tn_dtype dtype, const tn__shape *shape, int arity,
                    tn__node *const *in, tn__attr attr)
{
    return tn__node_new(op, dtype, shape, in[0]->device, arity, in, attr);
}

tn__node *tn__tied(tn__node *y, int count, tn__node *const *xs)
{
    TN__PASS_ERROR(y);
    tn__node *in[TN__MAX_INPUTS] = {y};
    for (int i = 0; i < count; i++) {
        in[i + 1] = tn__to(xs[i], y->device);
        TN__PASS_ERROR(in[i + 1]);
    }
    return tn__node_new(TN__OP_CUSTOM, (tn_dtype)y->dtype, y->shape, y->device, count + 1, in,
                        (tn__attr){.raw = {0}});
}

tn__node *tn__made_of_none(tn__node *y, tn__node *x)
{
    TN__PASS_ERROR(y);
    bool followed = tn__dtype_inexact((tn_dtype)x->dtype) && tn__dtype_inexact((tn_dtype)y->dtype) &&
                    (y->shape->size == 0 || x->flags & TN__NODE_NEEDS_GRAD);
    return followed ? tn__tied(y, 1, &x) : y;
}

tn__scalar tn__scalar_cast(tn__scalar scalar, tn_dtype from, tn_dtype to)
{
    if (from == to)
        return scalar;
    bool beyond_int64 = from == TN_UINT64 && scalar.bits > INT64_MAX && !tn_dtype_is_integer(to);
    if (beyond_int64 && tn__dtypes[to].component == TN_FLOAT32) { /* not by way of double, which would round twice */
        tn__scalar rounded = {0};
        rounded.f32 = (float)scalar.bits;
        return rounded;
    }
    if (tn__dtype_inexact(from) || beyond_int64)
        return tn__scalar_from_double(tn__scalar_to_double(scalar, from), to);
    return tn__scalar_from_int(tn__scalar_to_int(scalar, from), to);
}

static bool beyond(const char *operation, const char *number, tn_dtype dtype)
{
    int bits = 8 * tn__dtypes[dtype].size;
    bool is_signed = tn__dtypes[dtype].class == TN__CLASS_SIGNED;
    uint64_t most = ~(uint64_t)0 >> (64 - bits + is_signed);
    tn__fail(TN_ERR_VALUE, operation, "the number %s does not fit %s, which holds %lld to %llu; give a wider dtype",
             number, tn_dtype_name(dtype), is_signed ? -(long long)most - 1 : 0, (unsigned long long)most);
    return false;
}

bool tn__number_fits(const char *operation, long double value, tn_dtype dtype)
{
    if (!tn_dtype_is_integer(dtype))
        return true;
    bool is_signed = tn__dtypes[dtype].class == TN__CLASS_SIGNED;
    long double end = ldexpl(1, 8 * tn__dtypes[dtype].size - is_signed), whole = truncl(value);
    if (whole >= (is_signed ? -end : 0) && whole < end)
        return true;
    char number[TN__NUMBER_TEXT];
    snprintf(number, sizeof number, fabsl(value) < 0x1p64L ? "%.20Lg" : "%.17Lg", value);
    return beyond(operation, number, dtype);
}

bool tn__weak_fits(const char *operation, const tn__node *a, tn_dtype dtype)
{
    if (!(a->flags & TN__NODE_WEAK) || !tn__foldable(a) || !tn_dtype_is_integer(dtype) || a->dtype == TN_BOOL)
        return true;
    if (!tn_dtype_is_integer((tn_dtype)a->dtype))
        return tn__number_fits(operation, tn__scalar_to_double(a->attr.scalar, (tn_dtype)a->dtype), dtype);
    char number[TN__NUMBER_TEXT];
    return tn__weak_holds(a, dtype) || beyond(operation, tn__weak_text(a, number), dtype);
}

bool tn__weak_holds(const tn__node *integer, tn_dtype dtype)
{
    int64_t value = integer->attr.scalar.i;
    if (!tn_dtype_is_integer(dtype))
        return true;
    if (value < 0 && (integer->dtype == TN_UINT64 || dtype == TN_UINT64))
        return integer->dtype == dtype;
    return tn__scalar_to_int(tn__scalar_from_int(value, dtype), dtype) == value;
}

const char *tn__weak_text(const tn__node *integer, char *text)
{
    int64_t value = integer->attr.scalar.i;
    if (integer->dtype == TN_UINT64)
        snprintf(text, TN__NUMBER_TEXT, "%" PRIu64, (uint64_t)value);
    else
        snprintf(text, TN__NUMBER_TEXT, "%" PRId64, value);
    return text;
}

tn__node *tn__strong(tn__node *a)
{
    if (!(a->flags & TN__NODE_WEAK) || !tn__foldable(a))
        return a;
    tn_dtype dtype = tn_dtype_is_float(a->dtype) ? TN_FLOAT32 : a->dtype;
    return tn__const_scalar(tn__scalar_cast(a->attr.scalar, a->dtype, dtype), dtype, a->shape,
                            a->device);
}
