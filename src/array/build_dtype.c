/* SPDX-License-Identifier: MIT */
/*
 * In which dtype an elementwise operation computes: NumPy's promotion (NEP 50) of the operands,
 * then the operation's own column TYPES, with NumPy's exceptions for bool in one table. A weak
 * scalar counts by its kind only, but an integer that does not fit the dtype so found is an error
 * rather than a wrong number.
 */
#include "array/build_parts.h"
#include "tn_op_functions.h"

typedef struct bool_rule {
    unsigned char as;    /* the operation that does it for bool */
    bool int8;           /* computes as int8 instead */
    const char *refused; /* what to do instead */
} bool_rule;

/* As NumPy: + is or, * is and; other arithmetic is of int8 or refused. Operations of TYPES NUMBERS
 * left out are of int8. */
static const bool_rule bool_rules[TN__OP_COUNT] = {
    [TN__OP_ADD] = {.as = TN__OP_LOGICAL_OR},
    [TN__OP_MULTIPLY] = {.as = TN__OP_LOGICAL_AND},
    [TN__OP_MAXIMUM] = {.as = TN__OP_LOGICAL_OR},
    [TN__OP_MINIMUM] = {.as = TN__OP_LOGICAL_AND},
    [TN__OP_FMAX] = {.as = TN__OP_LOGICAL_OR},
    [TN__OP_FMIN] = {.as = TN__OP_LOGICAL_AND},
    [TN__OP_ABS] = {.as = TN__OP_COPY},
    [TN__OP_LEFT_SHIFT] = {.int8 = true},
    [TN__OP_RIGHT_SHIFT] = {.int8 = true},
    [TN__OP_SUBTRACT] = {.refused = "use tn_logical_xor or tn_not_equal, or tn_cast to a number"},
    [TN__OP_NEGATIVE] = {.refused = "use tn_logical_not, or tn_cast to a number"},
    [TN__OP_GCD] = {.refused = "tn_cast it to a number"},
    [TN__OP_LCM] = {.refused = "tn_cast it to a number"},
    [TN__OP_SIGN] = {.refused = "tn_cast it to a number"},
};

static bool is_integer_or_bool(tn_dtype dtype)
{
    return dtype == TN_BOOL || tn_dtype_is_integer(dtype);
}

tn_dtype tn__common_dtype(int count, tn__node *const *in, bool *all_weak)
{
    tn_dtype strong = TN_DTYPE_DEFAULT;
    int weak = -1;
    bool large = false; /* a C number beyond int64, which is an integer like others beside arrays */
    for (int i = 0; i < count; i++) {
        int class = tn__dtypes[in[i]->dtype].class;
        if (in[i]->flags & TN__NODE_WEAK) {
            large |= in[i]->dtype == TN_UINT64;
            class = class == TN__CLASS_UNSIGNED ? TN__CLASS_SIGNED : class;
            weak = class > weak ? class : weak;
        } else if (!strong ||
                 class > tn__dtypes[strong].class) /* the highest first: uint16, int16, float16 are float32 */
            strong = (tn_dtype)in[i]->dtype;
    }
    for (int i = 0; i < count && strong; i++)
        if (!(in[i]->flags & TN__NODE_WEAK))
            strong = tn_dtype_promote(strong, in[i]->dtype);
    *all_weak = !strong;
    if (strong)
        return weak < 0 ? strong : tn__dtype_with_weak(strong, (tn__dtype_class)weak);
    return weak == TN__CLASS_COMPLEX ? TN_COMPLEX64
           : weak == TN__CLASS_FLOAT ? TN_FLOAT32
           : weak == TN__CLASS_BOOL  ? TN_BOOL
           : large                   ? TN_UINT64
                                     : TN_INT64;
}

/* The float dtype that holds integer operands: each one's own, promoted. (Promoted first, int8 and
 * uint8 would be int16, and so float32, where float16 holds both.) */
static tn_dtype float_of(int count, tn__node *const *in, tn_dtype common)
{
    tn_dtype dtype = TN_DTYPE_DEFAULT;
    for (int i = 0; i < count; i++) {
        if (in[i]->flags & TN__NODE_WEAK)
            return tn__dtype_to_float(common);
        tn_dtype own = tn__dtype_to_float((tn_dtype)in[i]->dtype);
        dtype = dtype ? tn_dtype_promote(dtype, own) : own;
    }
    return dtype;
}

/* Checks weak integers against T. A comparison with one beyond T has an answer all the same, in a
 * wider dtype: beyond int64 (build_map.c: and not beside a signed one) in uint64. */
static bool weak_integers_fit(tn__op op, int arity, tn__node *const *in, tn__map_rule *rule)
{
    const tn__op_info *info = &tn__ops[op];
    for (int i = info->props & TN_CONDITION ? 1 : 0; i < arity; i++) {
        const tn__node *a = in[i];
        if (!tn__weak_integer(a))
            continue;
        int64_t value = a->attr.scalar.i;
        bool large = a->dtype == TN_UINT64 && value < 0; /* beyond int64 */
        if (rule->compute == TN_BOOL || tn__weak_holds(a, rule->compute))
            ;
        else if (info->result == TN__RESULT_BOOL && info->types == TN__TYPES_ALL)
            rule->compute = large ? TN_UINT64 : tn_dtype_promote(rule->compute, TN_INT64);
        else
            return tn__fail(TN_ERR_VALUE, info->name,
                            "the number %s does not fit %s, the dtype of the other operand; cast that operand "
                            "to a wider dtype with tn_cast",
                            tn__weak_text(a, (char[TN__NUMBER_TEXT]){0}), tn_dtype_name(rule->compute)),
                   false;
        if (op == TN__OP_POWER && i == 1 && value < 0 && !large && tn_dtype_is_integer(rule->compute) &&
            in[0]->shape->size > 0)
            return tn__fail(TN_ERR_VALUE, info->name,
                            "integers to a negative integer power (%lld) are fractions; cast the base to a float "
                            "dtype, or give the exponent as a float",
                            (long long)value),
                   false;
    }
    return true;
}

static bool apply_bool_rule(tn__map_rule *rule)
{
    const tn__op_info *info = &tn__ops[rule->op];
    const bool_rule *special = &bool_rules[rule->op];
    if (special->refused)
        return tn__fail(TN_ERR_DTYPE, info->name, "does not take bool; %s", special->refused),
               false;
    if (special->as)
        rule->op = (tn__op)special->as;
    else if (special->int8 || info->types == TN__TYPES_NUMBERS)
        rule->compute = TN_INT8;
    return true;
}

bool tn__map_infer(tn__op op, int arity, tn__node *const *in, tn__map_rule *rule)
{
    const tn__op_info *info = &tn__ops[op];
    int first = info->props & TN_CONDITION ? 1 : 0;
    tn_dtype common = tn__common_dtype(arity - first, in + first, &rule->weak);
    *rule = (tn__map_rule){.op = op, .compute = common, .weak = rule->weak};

    if (info->types == TN__TYPES_BOOLS) {
        rule->compute = TN_BOOL;
    } else if (info->types == TN__TYPES_FLOATS && is_integer_or_bool(common)) {
        /* NumPy has true division of small integers in float64 only */
        rule->compute = rule->weak            ? TN_FLOAT32
                        : op == TN__OP_DIVIDE ? TN_FLOAT64
                                              : float_of(arity, in, common);
    } else if (info->types == TN__TYPES_INTEGERS && !is_integer_or_bool(common)) {
        tn__fail(TN_ERR_DTYPE, info->name,
                 "takes integers and bool, got %s; cast it to an integer dtype with tn_cast",
                 tn_dtype_name(common));
        return false;
    } else if (common == TN_BOOL && !apply_bool_rule(rule)) {
        return false;
    }
    if ((tn_dtype_is_complex(rule->compute) || info->types == TN__TYPES_NONE) &&
        !tn__op_computes(rule->op, rule->compute)) {
        tn__fail(TN_ERR_DTYPE, info->name, "cannot be computed in %s; take parts with tn_real and tn_imag, or tn_abs",
                 tn_dtype_name(rule->compute));
        return false;
    }
    if (!weak_integers_fit(op, arity, in, rule))
        return false;
    rule->result = tn__ops[rule->op].result == TN__RESULT_BOOL ? TN_BOOL : rule->compute;
    return true;
}
