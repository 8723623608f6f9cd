/* SPDX-License-Identifier: MIT */
/* Reductions over sets of axes, and the checks of axes that all of the array room uses. */
#include "array/build_parts.h"

#include <float.h>
#include <string.h>

int tn__axis_check(const char *operation, int axis, int ndim)
{
    if (axis >= -ndim && axis < ndim)
        return axis < 0 ? axis + ndim : axis;
    if (ndim == 0)
        tn__fail(TN_ERR_INDEX, operation, "axis %d given for an array of 0 axes, which has none",
                 axis);
    else
        tn__fail(TN_ERR_INDEX, operation,
                 "axis %d is out of range for an array of %d axes; expected %d to %d", axis, ndim,
                 -ndim, ndim - 1);
    return -1;
}

bool tn__axes_fit(const char *operation, tn_axes axes, int most)
{
    if (axes.count >= 0 && axes.count <= most)
        return true;
    if (most == 1)
        tn__fail(TN_ERR_VALUE, operation, "%d axes given, expected one", axes.count);
    else
        tn__fail(TN_ERR_VALUE, operation, "a list of %d axes, expected 0 to %d", axes.count, most);
    return false;
}

int tn__axis_of_list(const char *operation, tn_axes axes, int absent, int ndim)
{
    return tn__axes_fit(operation, axes, 1) ? tn__axis_check(operation, axes.count ? axes.axis[0] : absent, ndim) : -1;
}

bool tn__axes_set(const char *operation, tn_axes axes, int ndim, uint32_t *set)
{
    if (!tn__axes_fit(operation, axes, TN_MAX_NDIM))
        return false;
    *set = axes.count == 0 ? (1u << ndim) - 1 : 0;
    for (int i = 0; i < axes.count; i++) {
        int axis = tn__axis_check(operation, axes.axis[i], ndim);
        if (axis < 0)
            return false;
        if (*set >> axis & 1) {
            tn__fail(TN_ERR_VALUE, operation, "axis %d is listed twice; list each axis once", axis);
            return false;
        }
        *set |= 1u << axis;
    }
    return true;
}

/* The operation and operand that compute a reduction of bool: sums count, extremes are any and all. */
static tn__node *reduce_operand(tn__op *op, tn__node *a)
{
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (tn__ops[*op].types == TN__TYPES_BOOLS)
        return tn__cast(a, TN_BOOL);
    if (a->dtype != TN_BOOL)
        return a;
    if (tn__ops[*op].types == TN__TYPES_NUMBERS)
        return tn__cast(a, TN_INT64);
    if (*op == TN__OP_MAX || *op == TN__OP_MIN)
        *op = *op == TN__OP_MAX ? TN__OP_ANY : TN__OP_ALL;
    return a;
}

tn__node *tn__reduce(tn__op op, tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    /* of TYPES ALL are the extremes, which have no identity */
    const tn__op_info *info = &tn__ops[op];
    a = reduce_operand(&op, a);
    TN__PASS_ERROR(a);
    tn_shape value = tn__shape_value(a->shape);
    for (int i = 0; i < value.ndim; i++) {
        if (!(axes >> i & 1))
            continue;
        if (value.dim[i] == 0 && info->types == TN__TYPES_ALL) {
            char text[TN__SHAPE_TEXT];
            TN__REFUSE(TN_ERR_SHAPE, info->name,
                       "axis %d of shape %s has extent 0, and nothing has no %.*s; check for tn_size(x) == 0 first",
                       i, tn__shape_text(value.ndim, value.dim, text), (int)strcspn(info->doc, ";"), info->doc);
        }
        value.dim[i] = 1;
    }
    const tn__shape *shape = tn__shape_intern(value.ndim, value.dim);
    if (!shape) {
        tn__fail_memory(info->name, sizeof(tn__shape));
        return tn__failed();
    }
    bool position = info->props & TN_ARG;
    if (shape == a->shape)
        return position ? tn__const(0, TN_INT64, shape, a->device) : a;
    return tn__apply(op, position ? TN_INT64 : a->dtype, shape, 1, &a, (tn__attr){.axes = axes});
}

tn__node *tn__drop_axes(tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    int64_t dim[TN_MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < a->shape->ndim; i++)
        if (!(axes >> i & 1))
            dim[ndim++] = a->shape->dim[i];
    return tn__reshape(a, ndim, dim);
}

static tn__node *root(tn__node *a, double power)
{
    return power == 0.5 ? tn__unary(TN__OP_SQRT, a) : tn__with(TN__OP_POWER, a, power);
}

tn__node *tn__root_of_sum(tn__node *sum, double power)
{
    TN__PASS_ERROR(sum);
    if (!(sum->flags & TN__NODE_NEEDS_GRAD))
        return root(sum, power);
    tn__node *none = tn__with(TN__OP_EQUAL, sum, 0);
    return tn__where(none, tn__const_like(sum, 0), root(tn__where(none, tn__const_like(sum, 1), sum), power));
}

tn__node *tn__sum_to(tn__node *a, const tn__shape *shape)
{
    TN__PASS_ERROR(a);
    if (a->shape == shape)
        return a;
    int new_axes = a->shape->ndim - shape->ndim;
    uint32_t set = 0;
    for (int i = 0; i < a->shape->ndim; i++)
        if (i < new_axes || (shape->dim[i - new_axes] == 1 && a->shape->dim[i] != 1))
            set |= 1u << i;
    return tn__reshape_like(tn__reduce(TN__OP_SUM, a, set), shape);
}

/* What computes the value has no part in backward, which would keep the powers, too: the gradient is one of the value.
 * By the largest, whose choice changes nothing, powers do not overflow. */
static tn__node *softmax_value(tn__op op, tn__node *a, uint32_t axes)
{
    tn__node *shifted = tn__binary(TN__OP_SUBTRACT, a, tn__reduce(TN__OP_MAX, a, axes));
    tn__node *power = tn__unary(TN__OP_EXP, shifted), *sum = tn__reduce(TN__OP_SUM, power, axes);
    return op == TN__OP_SOFTMAX ? tn__binary(TN__OP_DIVIDE, power, sum)
                                : tn__binary(TN__OP_SUBTRACT, shifted, tn__unary(TN__OP_LOG, sum));
}

static tn__node *with_value(tn__op op, tn__node *y, tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(y);
    return tn__node_new(op, (tn_dtype)y->dtype, y->shape, y->device, 2, (tn__node *[]){y, a}, (tn__attr){.axes = axes});
}

tn__node *tn__softmax(tn__op op, tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    tn__no_grad_depth++;
    tn__node *y = softmax_value(op, a, axes);
    tn__no_grad_depth--;
    return with_value(op, y, a, axes);
}

tn__node *tn__softmax_kept(tn__node *a, tn__node *allowed, tn_dtype dtype, uint32_t axes)
{
    TN__PASS_ERROR(a);
    tn__no_grad_depth++;
    tn__node *y = softmax_value(TN__OP_SOFTMAX, a, axes);
    if (allowed && !tn__node_is_error(y))
        y = tn__where(allowed, y, tn__const_like(y, 0));
    y = tn__cast(y, dtype);
    tn__no_grad_depth--;
    return with_value(TN__OP_SOFTMAX, y, a, axes);
}

tn__node *tn__first_max(tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    tn__no_grad_depth++;
    tn__node *y = tn__reduce(TN__OP_MAX, a, axes);
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    return tn__node_new(TN__OP_FIRST_MAX, (tn_dtype)y->dtype, y->shape, y->device, 2, (tn__node *[]){y, a},
                        (tn__attr){.axes = axes});
}

static double reduced_count(const tn__node *a, uint32_t axes)
{
    double count = 1;
    for (int d = 0; d < a->shape->ndim; d++)
        count *= axes >> d & 1 ? (double)a->shape->dim[d] : 1;
    return count;
}

tn__node *tn__average(tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    return tn__with(TN__OP_DIVIDE, tn__reduce(TN__OP_SUM, a, axes), reduced_count(a, axes));
}

#define MANY     (1 << 20) /* numbers, of which one more sum costs nothing: their memory does; */
#define GPU_MANY 16384     /* the same of a GPU, whose sums of fewer than 2^18 are less exact */

bool tn__reduced_many(const tn__node *a, uint32_t axes)
{
    bool gpu = tn__on_gpu(a->device);
    return reduced_count(a, axes) > (gpu ? GPU_MANY : MANY);
}

/* Squares about a mean that is rounded, less those of what it is away from the mean (T. Chan, G. Golub, R. LeVeque,
 * "Algorithms for computing the sample variance", 1983): of 1e6 and 1e6 + 1 in turn, a hundredth of the whole. */
static tn__node *about_exact_mean(tn__node *squares, tn__node *deviation, uint32_t axes, double count)
{
    tn__node *sum = tn__reduce(TN__OP_SUM, deviation, axes);
    tn__node *away = tn__binary(TN__OP_MULTIPLY, sum, tn__with(TN__OP_DIVIDE, sum, count));
    TN__PASS_ERROR(away);
    /* Squares that have overflown stay infinite. */
    away = tn__with(TN__OP_MINIMUM, away, away->dtype == TN_FLOAT64 ? DBL_MAX : FLT_MAX);
    return tn__with(TN__OP_MAXIMUM, tn__binary(TN__OP_SUBTRACT, squares, away), 0);
}

/* A value of two passes; what can do with one does (compile/rewrite/rewrite.c). */
tn__node *tn__deviations(tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    tn__no_grad_depth++;
    double count = reduced_count(a, axes);
    tn__node *deviation = tn__binary(TN__OP_SUBTRACT, a, tn__average(a, axes));
    tn__node *y = tn__reduce(TN__OP_SUM, tn__unary(TN__OP_SQUARE, deviation), axes);
    if (tn__reduced_many(a, axes) && tn__dtypes[a->dtype].class == TN__CLASS_FLOAT)
        y = about_exact_mean(y, deviation, axes, count);
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    return tn__node_new(TN__OP_DEVIATIONS, (tn_dtype)y->dtype, y->shape, y->device, 2, (tn__node *[]){y, a},
                        (tn__attr){.axes = axes});
}
