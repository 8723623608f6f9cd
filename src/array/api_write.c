/* SPDX-License-Identifier: MIT */
/* The option `out`: results into arrays that exist; those of elementwise functions if NumPy's casting rule 'same_kind'
 * allows it. */
#include <tanso/ufunc.h>

#include "array/build_parts.h"

/* NumPy's order of kinds. */
static int kind_of(tn_dtype dtype)
{
    if (dtype == TN_BOOL)
        return 0;
    if (tn_dtype_is_integer(dtype))
        return tn__dtypes[dtype].class == TN__CLASS_UNSIGNED ? 1 : 2;
    return tn_dtype_is_float(dtype) ? 3 : 4;
}

bool tn_can_cast(tn_dtype from, tn_dtype to)
{
    return kind_of(from) <= kind_of(to);
}

tn__node *tn__mask(const char *operation, const tn_array *where)
{
    tn__node *mask = tn__node_of(where, operation);
    TN__PASS_ERROR(mask);
    if (mask->dtype != TN_BOOL && !(mask->flags & TN__NODE_WEAK))
        TN__REFUSE(TN_ERR_DTYPE, operation, "the mask is of %s, expected bool; compare it, or use tn_cast",
                   tn_dtype_name((tn_dtype)mask->dtype));
    return tn__cast(mask, TN_BOOL);
}

/* What the handle of `old` is to point at. */
static tn__node *written(tn__node *old, tn__node *value, tn__node *where)
{
    TN__PASS_ERROR(old);
    TN__PASS_ERROR(value);
    if (where)
        TN__PASS_ERROR(where);
    value = tn__without_front(value, old->shape->ndim);
    TN__PASS_ERROR(value);
    bool whole = value->flags & TN__NODE_WEAK && tn_dtype_is_integer((tn_dtype)value->dtype) && old->dtype != TN_BOOL;
    if (!whole && !tn_can_cast((tn_dtype)value->dtype, (tn_dtype)old->dtype))
        TN__REFUSE(TN_ERR_DTYPE, "out",
                   "a result of %s would lose its kind in an array of %s; expected the same kind or a higher one",
                   tn_dtype_name((tn_dtype)value->dtype), tn_dtype_name((tn_dtype)old->dtype));
    if (old->device != value->device && !tn__foldable(value))
        return tn__two_devices("out", old, value);
    value = tn__expand(tn__cast(value, (tn_dtype)old->dtype), old->shape);
    TN__PASS_ERROR(value);
    value = tn__adapt(value, (tn_dtype)old->dtype, old->shape, old->device);
    if (!where)
        return value;
    value = tn__where(tn__expand(where, old->shape), value, old);
    TN__PASS_ERROR(value);
    return value->device == old->device ? value : tn__two_devices("out", old, value); /* where alone was elsewhere */
}

/* What is no elementwise function's goes into arrays of its own shape only. */
static tn__node *fitting(tn__node *old, tn__node *result)
{
    TN__PASS_ERROR(old);
    TN__PASS_ERROR(result);
    if (old->shape != result->shape) {
        char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, "out",
                   "a result of shape %s does not fit an array of shape %s; expected its own shape",
                   tn__shape_text(result->shape->ndim, result->shape->dim, first),
                   tn__shape_text(old->shape->ndim, old->shape->dim, second));
    }
    return tn__assignable("out", old, result);
}

tn_array *tn__deliver(tn__call call, tn__node *result, tn_array *out)
{
    if (!out)
        return tn__leave_array(call, result);
    tn__node *old = tn__strong(tn__node_of(out, "out")), *value = fitting(old, result);
    if (!tn__node_is_error(value))
        (void)tn__array_write(out, value); /* a failure is latched, and met again by who reads */
    return tn__leave_array(call, value);
}

tn_array *tn_write(tn_array *out, const tn_array *x, const tn_array *where)
{
    tn__call call = tn__enter();
    tn__node *value = written(tn__strong(tn__node_of(out, "out")), tn__node_of(x, "out"),
                              where ? tn__mask("where", where) : NULL);
    if (!tn__node_is_error(value))
        (void)tn__array_write(out, value); /* a failure is latched, and met again by who reads */
    return tn__leave_array(call, value);
}
