/* SPDX-License-Identifier: MIT */
/*
 * Convolutions as steps of a device's library. They are recorded as products of windows, of which only backward knows
 * more; where the library takes one, the windows are left out and it becomes one value.
 */
#include "compile/rewrite/rewrite.h"

#include <string.h>

/* CONV, CONV_DATA and CONV_WEIGHTS are numbered as their CONVOLVE rows are. */
_Static_assert(TN__OP_CONV_DATA - TN__OP_CONV == TN__OP_CONVOLVE_DATA - TN__OP_CONVOLVE &&
                   TN__OP_CONV_WEIGHTS - TN__OP_CONV == TN__OP_CONVOLVE_WEIGHTS - TN__OP_CONVOLVE,
               "operations of ops/numbers.txt stand in another order");
static tn__op step_op(tn__op op) { return (tn__op)(TN__OP_CONVOLVE + (op - TN__OP_CONV)); }

static void strides_last(int ndim, const int64_t *dim, int64_t *stride)
{
    stride[1] = 1;
    int64_t next = dim[1];
    for (int d = ndim - 1; d > 1; next *= dim[d--])
        stride[d] = next;
    stride[0] = next;
}

static tn__operand operand_of(const tn__value *v, bool last)
{
    tn__operand operand = {.dtype = v->dtype, .ndim = v->shape->ndim};
    memcpy(operand.dim, v->shape->dim, sizeof operand.dim);
    if (last)
        strides_last(operand.ndim, operand.dim, operand.stride);
    else
        tn__strides_contiguous(operand.ndim, operand.dim, operand.stride);
    return operand;
}

static bool takes(const tn__graph *graph, const tn__device *device, const tn__value *v, int precision, bool last)
{
    const tn__value *a = &graph->value[v->in[1]], *b = &graph->value[v->in[2]];
    if (v->shape->size == 0 || a->shape->size == 0 || b->shape->size == 0)
        return false;
    tn__operand operand[] = {operand_of(v, last), operand_of(a, last), operand_of(b, last)};
    int64_t param[1 + 3 * TN_MAX_NDIM];
    memcpy(param, v->attr.ints->v, sizeof *param * (size_t)v->attr.ints->count);
    tn__step step = {.kind = TN__STEP_CONVOLUTION, .op = (int)step_op(v->op), .compute = v->dtype,
                     .convolution = {.precision = precision, .channels_last = last},
                     .operand_count = 3, .output_count = 1, .operand = operand, .param = param,
                     .param_count = v->attr.ints->count};
    return device->ops->convolves((tn__device *)device, &step);
}

/* ---- the order of axes ---- */

#define FACTOR 8 /* channels that tensor cores take together */

typedef struct channels {
    int64_t in, out, groups;
} channels;

static channels channels_of(const tn__graph *graph, const tn__value *v)
{
    const tn__shape *w = v->op == TN__OP_CONV_WEIGHTS ? v->shape : graph->value[v->in[2]].shape;
    int64_t groups = v->attr.ints->v[0];
    return (channels){w->dim[1] * groups, w->dim[0], groups};
}

/* By tensor cores, and not a few channels at a time? */
static bool may_be_last(const tn__graph *graph, const tn__value *v, int precision)
{
    bool narrow = v->dtype == TN_FLOAT16 || v->dtype == TN_BFLOAT16;
    return (narrow || (v->dtype == TN_FLOAT32 && precision == TN_MATMUL_TF32)) && channels_of(graph, v).groups == 1;
}

/* Channels last serve those whose channels fill tensor cores; others would have to follow them, or be given copies. So
 * those decide that do most of the work. */
static bool are_last(const tn__graph *graph, int precision)
{
    double with = 0, without = 0;
    for (int i = 0; i < graph->count; i++) {
        const tn__value *v = &graph->value[i];
        if (tn__value_kind(v) != TN__KIND_TIED)
            continue;
        channels c = channels_of(graph, v);
        bool serves = may_be_last(graph, v, precision) && c.in % FACTOR == 0 && c.out % FACTOR == 0;
        *(serves ? &with : &without) += (double)tn__convolution_operations(graph, v);
    }
    return with > without;
}

void tn__keep_convolutions(tn__graph *graph, const tn__device *device, int precision)
{
    if (!device->capabilities.convolutions)
        return;
    bool last = device->capabilities.channels_last && are_last(graph, precision);
    for (int i = 0; i < graph->count; i++) {
        tn__value *v = &graph->value[i];
        if (tn__value_kind(v) != TN__KIND_TIED)
            continue;
        v->attr.last = last && may_be_last(graph, v, precision) && takes(graph, device, v, precision, true);
        if (!v->attr.last && !takes(graph, device, v, precision, false))
            continue;
        v->op = step_op(v->op);
        v->arity = 2;
        v->in[0] = v->in[1];
        v->in[1] = v->in[2];
        v->in[2] = 0;
    }
}
