/* SPDX-License-Identifier: MIT */
/* Elementwise operations: promotion, broadcasting and devices made explicit as CAST and EXPAND
 * nodes. */
#include "array/build_parts.h"

tn__node *tn__two_devices(const char *operation, const tn__node *a, const tn__node *b)
{
    TN__REFUSE(TN_ERR_DEVICE, operation,
               "operands are on %s and %s, expected one device; move one with tn_to(x, tn_device_of(y))",
               a->device->name, b->device->name);
}

tn__device *tn__common_device(const char *operation, int count, tn__node *const *in)
{
    const tn__node *fixed = NULL, *constant = NULL;
    for (int i = 0; i < count; i++) {
        if (tn__foldable(in[i])) {
            if (!constant || (constant->flags & TN__NODE_WEAK))
                constant = in[i];
        } else if (!fixed) {
            fixed = in[i];
        } else if (fixed->device != in[i]->device) {
            (void)tn__two_devices(operation, fixed, in[i]);
            return NULL;
        }
    }
    return (fixed ? fixed : constant)->device;
}

tn__node *tn__adapt(tn__node *a, tn_dtype dtype, const tn__shape *shape, tn__device *device)
{
    bool weak = a->flags & TN__NODE_WEAK;
    if (a->dtype == dtype && a->shape == shape && a->device == device && !weak)
        return a;
    if (weak && !tn__weak_fits("number", a, dtype))
        return tn__failed();
    if (tn__foldable(a))
        return tn__const_scalar(tn__scalar_cast(a->attr.scalar, a->dtype, dtype), dtype, shape,
                                device);
    return tn__expand(tn__cast(a, dtype), shape);
}

/* Latches the failure of shapes that do not broadcast; says at which axis. */
static void fail_broadcast(const char *operation, const tn_shape *a, const tn__shape *b)
{
    char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT];
    tn__shape_text(a->ndim, a->dim, first);
    tn__shape_text(b->ndim, b->dim, second);
    for (int axis = -1; - axis <= a->ndim && -axis <= b->ndim; axis--) {
        int64_t m = a->dim[a->ndim + axis], n = b->dim[b->ndim + axis];
        if (m != n && m != 1 && n != 1) {
            tn__fail(TN_ERR_SHAPE, operation,
                     "shapes %s and %s do not broadcast: extents %lld and %lld differ at axis %d and neither is 1; "
                     "reshape an operand (tn_reshape, tn_expand_dims) so that they agree from the last axis on",
                     first, second, (long long)m, (long long)n, axis);
            return;
        }
    }
    tn__fail(TN_ERR_SHAPE, operation, "shapes %s and %s do not broadcast", first, second);
}

const tn__shape *tn__common_shape(const char *operation, int count, tn__node *const *in, tn_dtype dtype)
{
    const tn__shape *shape = in[0]->shape;
    for (int i = 1; i < count; i++) {
        const tn__shape *next = in[i]->shape;
        if (next == shape || next->ndim == 0)
            continue;
        if (shape->ndim == 0) {
            shape = next;
            continue;
        }
        tn_shape both;
        if (!tn__shape_broadcast(shape, next, &both)) {
            tn_shape value = tn__shape_value(shape);
            fail_broadcast(operation, &value, next);
            return NULL;
        }
        shape = tn__shape_make(operation, both, dtype);
        if (!shape)
            return NULL;
    }
    return shape;
}

/* Operands of one float dtype, shape and device, as most are, need no inference for most operations. */
static bool is_plain(const tn__op_info *info, int arity, tn__node *const *operands)
{
    const tn__node *first = operands[0];
    bool plain = tn__dtypes[first->dtype].class == TN__CLASS_FLOAT && !(info->props & TN_CONDITION) &&
                 (info->types == TN__TYPES_FLOATS || info->types == TN__TYPES_NUMBERS || info->types == TN__TYPES_ALL);
    for (int i = 0; i < arity; i++) {
        const tn__node *a = operands[i];
        plain = plain && a->dtype == first->dtype && a->shape == first->shape && a->device == first->device &&
                !(a->flags & TN__NODE_WEAK) && !tn__node_is_error(a);
    }
    return plain;
}

static tn__node *map(tn__op op, int arity, tn__node *const *operands)
{
    const tn__op_info *info = &tn__ops[op];
    if (__builtin_expect(is_plain(info, arity, operands), 1))
        return tn__apply(op, info->result == TN__RESULT_BOOL ? TN_BOOL : (tn_dtype)operands[0]->dtype,
                         operands[0]->shape, arity, operands, (tn__attr){.raw = {0}});
    for (int i = 0; i < arity; i++)
        TN__PASS_ERROR(operands[i]);
    tn__map_rule rule;
    if (!tn__map_infer(op, arity, operands, &rule))
        return tn__failed();
    const tn__shape *shape = tn__common_shape(info->name, arity, operands, rule.compute);
    tn__device *device = shape ? tn__common_device(info->name, arity, operands) : NULL;
    if (!device)
        return tn__failed();

    tn__node *in[TN__MAX_ARITY];
    for (int i = 0; i < arity; i++) {
        bool condition = i == 0 && (info->props & TN_CONDITION);
        in[i] = tn__adapt(operands[i], condition ? TN_BOOL : rule.compute, shape, device);
        TN__PASS_ERROR(in[i]);
        if (condition && !(operands[i]->flags & TN__NODE_WEAK))
            rule.weak = false;
    }
    if (rule.op == TN__OP_COPY && op != TN__OP_COPY)
        return in[0];
    tn__node *node = tn__apply(rule.op, rule.result, shape, arity, in, (tn__attr){.raw = {0}});
    if (tn__ops[rule.op].props & TN_REAL && tn_dtype_is_complex(rule.compute))
        node = tn__cast(node, (tn_dtype)tn__dtypes[rule.compute].component);
    if (rule.weak && !tn__node_is_error(node))
        node->flags |= TN__NODE_WEAK;
    return node;
}

/* Whole numbers already are what rounding makes of them, and keep their dtype (NumPy 2.1 and later; also bool). */
static bool is_rounding(tn__op op)
{
    return op == TN__OP_FLOOR || op == TN__OP_CEIL || op == TN__OP_TRUNC;
}

tn__node *tn__unary(tn__op op, tn__node *a)
{
    if (is_rounding(op) && !tn__node_is_error(a) && !tn__dtype_inexact((tn_dtype)a->dtype))
        return a;
    return map(op, 1, &a);
}

/* uint64 beside a signed integer: no integer dtype holds both, and float64 would make neighbours one number. */
static bool is_of_either_sign(tn__op op, const tn__node *a, const tn__node *b)
{
    if (tn__ops[op].result != TN__RESULT_BOOL || tn__ops[op].types != TN__TYPES_ALL)
        return false;
    const tn__node *other = a->dtype == TN_UINT64 ? b : b->dtype == TN_UINT64 ? a : NULL;
    return other && tn__dtypes[other->dtype].class == TN__CLASS_SIGNED && !(other->flags & TN__NODE_WEAK) &&
           !tn__node_is_error(a) && !tn__node_is_error(b);
}

/* A comparison of the two, exact as NumPy's: a negative number is below all of uint64, others fit it. */
static tn__node *compare_either_sign(tn__op op, tn__node *a, tn__node *b)
{
    bool first = a->dtype != TN_UINT64; /* the first operand is the signed one */
    bool negative_holds = op == TN__OP_NOT_EQUAL || (first ? op == TN__OP_LESS || op == TN__OP_LESS_EQUAL
                                                           : op == TN__OP_GREATER || op == TN__OP_GREATER_EQUAL);
    tn__node *same = tn__binary(op, tn__cast(a, TN_UINT64), tn__cast(b, TN_UINT64));
    TN__PASS_ERROR(same);
    if (negative_holds)
        return tn__binary(TN__OP_LOGICAL_OR, same, tn__with(TN__OP_LESS, first ? a : b, 0));
    return tn__binary(TN__OP_LOGICAL_AND, same, tn__with(TN__OP_GREATER_EQUAL, first ? a : b, 0));
}

/* Apart, so that operands of one dtype, as most are, pass without it. */
static __attribute__((noinline)) tn__node *binary_of_two_dtypes(tn__op op, tn__node *a, tn__node *b)
{
    if (is_of_either_sign(op, a, b))
        return compare_either_sign(op, a, b);
    return map(op, 2, (tn__node *[]){a, b});
}

tn__node *tn__binary(tn__op op, tn__node *a, tn__node *b)
{
    if (__builtin_expect(a->dtype != b->dtype, 0))
        return binary_of_two_dtypes(op, a, b);
    return map(op, 2, (tn__node *[]){a, b});
}

tn__node *tn__where(tn__node *condition, tn__node *a, tn__node *b)
{
    return map(TN__OP_WHERE, 3, (tn__node *[]){condition, a, b});
}

tn__node *tn__cast(tn__node *a, tn_dtype dtype)
{
    TN__PASS_ERROR(a);
    if (a->dtype == dtype && !(a->flags & TN__NODE_WEAK)) /* nearly all that an optimizer asks for */
        return a;
    if (!tn__dtype_valid(dtype))
        TN__REFUSE(TN_ERR_DTYPE, "cast",
                   "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128", (int)dtype);
    if (!tn__weak_fits("cast", a, dtype))
        return tn__failed();
    if (tn__foldable(a) && (a->dtype != dtype || (a->flags & TN__NODE_WEAK)))
        return tn__const_scalar(tn__scalar_cast(a->attr.scalar, a->dtype, dtype), dtype, a->shape,
                                a->device);
    if (a->dtype == dtype)
        return a;
    return tn__apply(TN__OP_CAST, dtype, a->shape, 1, &a, (tn__attr){.raw = {0}});
}

tn__node *tn__with(tn__op op, tn__node *a, double b)
{
    TN__PASS_ERROR(a);
    if (tn__dtypes[a->dtype].class == TN__CLASS_FLOAT && !(a->flags & TN__NODE_WEAK) &&
        tn__ops[op].types != TN__TYPES_BOOLS)
        return tn__binary(op, a, tn__const_like(a, b)); /* what promotion would come to */
    /* a whole number keeps integers what they are */
    bool whole =
        tn_dtype_is_integer(a->dtype) && b > -0x1p62 && b < 0x1p62 && b == (double)(int64_t)b;
    tn_dtype dtype = whole ? TN_INT64 : TN_FLOAT64;
    tn__node *scalar = tn__const(b, dtype, tn__shape_scalar(), a->device);
    TN__PASS_ERROR(scalar);
    scalar->flags |= TN__NODE_WEAK;
    return tn__binary(op, a, scalar);
}
