/* SPDX-License-Identifier: MIT */
/*
 * Convolutions as steps of a device's library. They are recorded as products of windows, of which only backward knows
 * more; where the library takes one, the windows are left out and it becomes one value.
 */
#include "compile/rewrite/rewrite.h"

#include <string.h>

/* CONV, CONV_DATA and CONV_WEIGHTS stand in ops.def as their CONVOLVE rows do. */
static tn__op step_op(tn__op op) { return (tn__op)(TN__OP_CONVOLVE + (op - TN__OP_CONV)); }

static tn__operand operand_of(const tn__value *v)
{
    tn__operand operand = {.dtype = v->dtype, .ndim = v->shape->ndim};
    memcpy(operand.dim, v->shape->dim, sizeof operand.dim);
    tn__strides_contiguous(operand.ndim, operand.dim, operand.stride);
    return operand;
}

static bool takes(const tn__graph *graph, const tn__device *device, const tn__value *v, int precision)
{
    const tn__value *a = &graph->value[v->in[1]], *b = &graph->value[v->in[2]];
    if (v->shape->size == 0 || a->shape->size == 0 || b->shape->size == 0)
        return false;
    tn__operand operand[] = {operand_of(v), operand_of(a), operand_of(b)};
    int64_t param[1 + 3 * TN_MAX_NDIM];
    memcpy(param, v->attr.ints->v, sizeof *param * (size_t)v->attr.ints->count);
    tn__step step = {.kind = TN__STEP_OP, .op = (int)step_op(v->op), .compute = v->dtype, .precision = precision,
                     .operand_count = 3, .output_count = 1, .operand = operand, .param = param,
                     .param_count = v->attr.ints->count};
    return device->ops->convolves((tn__device *)device, &step);
}

void tn__keep_convolutions(tn__graph *graph, const tn__device *device, int precision)
{
    if (!device->capabilities.convolutions)
        return;
    for (int i = 0; i < graph->count; i++) {
        tn__value *v = &graph->value[i];
        if (tn__value_kind(v) != TN__KIND_TIED || !takes(graph, device, v, precision))
            continue;
        v->op = step_op(v->op);
        v->arity = 2;
        v->in[0] = v->in[1];
        v->in[1] = v->in[2];
        v->in[2] = 0;
    }
}
