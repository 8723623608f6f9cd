/* SPDX-License-Identifier: MIT */
/* The reference evaluator: operation steps are checked here and prepared by the kind of their operation. */
#include "backends/cpu/base/step.h"
#include "core/dtype.h"
#include "core/error.h"
#include "tn_op_functions.h"

static tn_status prepare_none(tn__cpu_step *step)
{
    return tn__fail(TN_ERR_INTERNAL, tn__cpu_ops[step->step->op].name,
                    "is not an operation that computes, and cannot be a step of a program");
}

/* Told here which one it is: recurrence.c, whose loops take long to compile, is not compiled anew with every row. */
static tn_status prepare_recurrence(tn__cpu_step *step)
{
    return tn__cpu_prepare_recurrence(step, step->step->op == TN__OP_RECUR_BACK);
}

tn_status tn__cpu_prepare_operation(tn__cpu_step *step)
{
    static tn_status (*const prepare[TN__CPU_KIND_COUNT])(tn__cpu_step *) = {
        [TN__CPU_MAP] = tn__cpu_prepare_map,           [TN__CPU_MOVE] = tn__cpu_prepare_move,
        [TN__CPU_REDUCE] = tn__cpu_prepare_reduce,     [TN__CPU_POSITION] = tn__cpu_prepare_position,
        [TN__CPU_GENERATE] = tn__cpu_prepare_generate, [TN__CPU_GATHER] = tn__cpu_prepare_gather,
        [TN__CPU_SCATTER] = tn__cpu_prepare_scatter,   [TN__CPU_MATMUL] = tn__cpu_prepare_matmul,
        [TN__CPU_SORT_SCAN] = tn__cpu_prepare_sort_scan, [TN__CPU_LIBRARY] = tn__cpu_prepare_library,
        [TN__CPU_CONVOLVE] = tn__cpu_prepare_convolution, [TN__CPU_RECURRENCE] = prepare_recurrence,
        [TN__CPU_NONE] = prepare_none};

    const tn__step *s = step->step;
    if (s->op < 0 || s->op >= TN__OP_COUNT)
        return tn__fail(TN_ERR_INTERNAL, "load", "a step has operation number %d, and there are %d", s->op,
                        (int)TN__OP_COUNT);
    const tn__cpu_op_info *info = &tn__cpu_ops[s->op];
    if (s->operand_count != 1 + info->inputs && info->kind != TN__CPU_NONE)
        return tn__fail(TN_ERR_INTERNAL, info->name, "a step has %d operands, expected %d", s->operand_count,
                        1 + info->inputs);
    for (int k = 0; k < s->operand_count; k++)
        if (!tn__dtype_valid(s->operand[k].dtype) || s->operand[k].ndim != s->operand[0].ndim)
            return tn__fail(TN_ERR_INTERNAL, info->name,
                            "operand %d of a step has dtype %d and %d axes, the output %d axes", k,
                            (int)s->operand[k].dtype, s->operand[k].ndim, s->operand[0].ndim);
    return prepare[info->kind](step);
}
