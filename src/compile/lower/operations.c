/* SPDX-License-Identifier: MIT */
/* Lowering without kernels: each operation becomes a step of its own, run by the reference evaluator or a library. */
#include "compile/lower/lower.h"

#include "core/memory.h"

#include <string.h>

/* The window of value v for a step's operand. A constant that is no result is stored as one element. */
static bool operand(tn__draft *draft, tn__draft_step *step, int v)
{
    tn__window w;
    int blocked;
    if (!tn__window_of(draft->graph, v, draft->stored, &w, &blocked))
        return false; /* tn__lower_value has stored what blocks */
    const tn__value *base = &draft->graph->value[w.base];
    if (base->op == TN__OP_CONST && draft->home[w.base] == w.base && !draft->stored[w.base]) {
        memset(w.stride, 0, sizeof w.stride);
        w.offset = 0;
    }
    return tn__draft_operand_add(step, &w, base->dtype);
}

static tn__draft_step *op_step(tn__draft *draft, tn__op op, int out, const tn__window *window)
{
    tn__draft_step *step = tn__draft_add_op(draft, op);
    if (!step)
        return NULL;
    const tn__value *v = &draft->graph->value[out];
    tn__window whole = {.base = out, .ndim = v->shape->ndim};
    if (!window) {
        memcpy(whole.dim, v->shape->dim, sizeof whole.dim);
        tn__strides_contiguous(whole.ndim, whole.dim, whole.stride);
        window = &whole;
    }
    step->step.compute = tn__dtypes[v->dtype].compute;
    step->output_count = 1;
    step->operand = NULL;
    return tn__draft_operand_add(step, window, v->dtype) ? step : NULL;
}

static void estimate(const tn__graph *graph, tn__draft_step *step, const tn__value *v)
{
    int64_t bytes = 0;
    for (int i = 0; i < step->operand_count; i++) {
        int64_t n = 1;
        for (int d = 0; d < step->operand[i].ndim; d++)
            n *= step->operand[i].stride[d] ? step->operand[i].dim[d] : 1;
        bytes += n * (int64_t)tn_dtype_size(step->operand[i].dtype);
    }
    step->step.bytes = bytes;
    step->step.operations = v->shape->size;
    if (tn__value_kind(v) == TN__KIND_REDUCE)
        step->step.operations = graph->value[v->in[0]].shape->size;
    if (v->op == TN__OP_MATMUL) {
        const tn__shape *a = graph->value[v->in[0]].shape;
        step->step.operations = 2 * v->shape->size * a->dim[a->ndim - 1];
    }
    if (tn__value_kind(v) == TN__KIND_CONVOLVE)
        step->step.operations = tn__convolution_operations(graph, v);
}

static bool copy_into(tn__draft *draft, int from, int to, const tn__window *window, bool adopts)
{
    tn__draft_step *step = op_step(draft, TN__OP_COPY, to, window);
    if (!step || !operand(draft, step, from))
        return false;
    step->adopts = adopts;
    step->operand[0].pointwise = step->operand[1].pointwise = true;
    estimate(draft->graph, step, &draft->graph->value[to]);
    return true;
}

static bool is_result(const tn__graph *graph, int v)
{
    for (int r = 0; r < graph->result_count; r++)
        if (graph->result[r] == v)
            return true;
    return false;
}

#define MOST_RANGES 16 /* that have not met others yet */

/* Ranges of an axis, apart from one another. */
typedef struct ranges {
    int count;
    int64_t begin[MOST_RANGES], end[MOST_RANGES];
} ranges;

/* Adds a range, which becomes one with those that it touches; false if it meets one, or there are too many. */
static bool add_range(ranges *r, int64_t begin, int64_t end)
{
    for (int i = r->count - 1; i >= 0; i--) {
        if (begin < r->end[i] && r->begin[i] < end)
            return false;
        if (begin != r->end[i] && end != r->begin[i])
            continue;
        begin = r->begin[i] < begin ? r->begin[i] : begin;
        end = r->end[i] > end ? r->end[i] : end;
        r->count--;
        r->begin[i] = r->begin[r->count];
        r->end[i] = r->end[r->count];
    }
    if (r->count == MOST_RANGES)
        return false;
    r->begin[r->count] = begin;
    r->end[r->count++] = end;
    return true;
}

/* The axis of which an update writes a range, all of the others. -1: more than one, or steps, or a range that moves. */
static int axis_of_range(const tn__graph *graph, const tn__value *update)
{
    const tn__shape *part = graph->value[update->in[1]].shape;
    int axis = update->shape->ndim - 1;
    for (int d = 0, found = 0; d < update->shape->ndim; d++)
        if (part->dim[d] != update->shape->dim[d]) {
            axis = d;
            if (found++)
                return -1;
        }
    return update->attr.shift || axis < 0 || update->attr.ints->v[2 * axis + 1] != 1 ? -1 : axis;
}

int tn__last_overwriting(const tn__graph *graph, int v)
{
    ranges r = {0};
    int along = -1, base = v;
    for (int u = v + 1; u < graph->count && graph->value[base].uses == 1 && !is_result(graph, base); u++) {
        const tn__value *update = &graph->value[u];
        if (update->op != TN__OP_UPDATE || !update->uses || update->in[0] != base)
            continue;
        int axis = axis_of_range(graph, update);
        if (axis < 0 || (along >= 0 && axis != along))
            return -1;
        int64_t at = update->attr.ints->v[2 * axis], size = graph->value[update->in[1]].shape->dim[axis];
        if (!add_range(&r, at, at + size))
            return -1;
        if (r.begin[0] == 0 && r.end[0] == update->shape->dim[axis])
            return u;
        along = axis;
        base = u;
    }
    return -1;
}

/* A constant's step: one element, or all of them when it is a result or another value lives in its memory. */
static bool lower_const(tn__draft *draft, int v)
{
    const tn__value *value = &draft->graph->value[v];
    bool whole = draft->stored[v];
    if (whole && tn__last_overwriting(draft->graph, v) >= 0)
        return true;
    tn__window one = {.base = v};
    tn__draft_step *step = op_step(draft, TN__OP_CONST, v, whole ? NULL : &one);
    if (!step || !tn__draft_scalars(step, value->scalar, 1))
        return false;
    estimate(draft->graph, step, value);
    return true;
}

static bool takes_over(const tn__draft *draft, int base)
{
    const tn__value *b = &draft->graph->value[base];
    return b->uses == 1 && tn__value_kind(b) != TN__KIND_VIEW && !tn__value_is_leaf(b) &&
           (b->op != TN__OP_CONST || draft->stored[base]);
}

/* UPDATE: the base's memory is taken over when nobody else needs it; else it is copied. Then the window is written. */
static bool lower_update(tn__draft *draft, int v)
{
    tn__graph *graph = draft->graph;
    const tn__value *value = &graph->value[v];
    int base = value->in[0];
    if (takes_over(draft, base))
        draft->home[v] = draft->home[base];
    else if (!copy_into(draft, base, v, NULL, true))
        return false;
    if (graph->value[value->in[1]].shape->size == 0)
        return true;
    if (draft->placed[v]) {
        int piece = value->in[1];
        while (tn__value_kind(&graph->value[piece]) == TN__KIND_VIEW)
            piece = graph->value[piece].in[0];
        draft->home[piece] = draft->home[v];
        return true;
    }
    tn__window whole, window;
    int64_t stride[TN_MAX_NDIM];
    whole = (tn__window){.base = v, .ndim = value->shape->ndim};
    tn__strides_contiguous(whole.ndim, value->shape->dim, stride);
    window = whole;
    for (int d = 0; d < whole.ndim; d++) {
        window.offset += value->attr.ints->v[2 * d] * stride[d];
        window.stride[d] = stride[d] * value->attr.ints->v[2 * d + 1];
        window.dim[d] = graph->value[value->in[1]].shape->dim[d];
    }
    if (!copy_into(draft, value->in[1], v, &window, false))
        return false;
    draft->step[draft->step_count - 1].operand[0].shift = value->attr.shift;
    return true;
}

/* Does a window show all of its base in C order? */
static bool is_whole(const tn__window *w)
{
    int64_t stride[TN_MAX_NDIM];
    tn__strides_contiguous(w->ndim, w->dim, stride);
    return w->offset == 0 && memcmp(w->stride, stride, sizeof *stride * (size_t)w->ndim) == 0;
}

/* PART: a copy out of its input, which runs tell the beginning of by C order: so in that it has to lie, as it mostly
 * does. */
static bool lower_part(tn__draft *draft, int v)
{
    tn__window in, part = {.base = -1};
    int blocked, from = draft->graph->value[v].in[0];
    if (!tn__window_of(draft->graph, from, draft->stored, &in, &blocked))
        return false;
    part.base = in.base;
    if (!is_whole(&in)) {
        const tn__shape *shape = draft->graph->value[from].shape;
        tn__window whole = {.ndim = shape->ndim};
        memcpy(whole.dim, shape->dim, sizeof whole.dim);
        tn__strides_contiguous(whole.ndim, whole.dim, whole.stride);
        whole.base = part.base = tn__draft_scratch(draft, draft->graph->value[from].dtype, shape->size);
        if (whole.base < 0 || !copy_into(draft, from, from, &whole, false))
            return false;
    }
    const tn__value *value = &draft->graph->value[v];
    part.ndim = value->shape->ndim;
    for (int d = 0; d < part.ndim; d++) {
        part.dim[d] = value->shape->dim[d];
        part.stride[d] = value->attr.ints->v[d];
        part.offset += part.stride[d] < 0 ? (part.dim[d] - 1) * -part.stride[d] : 0;
    }
    tn__draft_step *step = op_step(draft, TN__OP_COPY, v, NULL);
    if (!step || !tn__draft_operand_add(step, &part, value->dtype))
        return false;
    step->operand[1].shift = value->attr.shift;
    estimate(draft->graph, step, value);
    return true;
}

/* A reshape of what no strides express as a copy in its own memory. */
static bool copy_reshaped(tn__draft *draft, int v)
{
    const tn__shape *shape = draft->graph->value[draft->graph->value[v].in[0]].shape;
    tn__window window = {.base = v, .ndim = shape->ndim};
    memcpy(window.dim, shape->dim, sizeof window.dim);
    tn__strides_contiguous(window.ndim, window.dim, window.stride);
    draft->stored[v] = true;
    return copy_into(draft, draft->graph->value[v].in[0], v, &window, false);
}

static bool lower_view(tn__draft *draft, int v)
{
    tn__window w;
    int blocked;
    if (draft->stored[v])
        return copy_reshaped(draft, v);
    if (tn__window_of(draft->graph, v, draft->stored, &w, &blocked))
        return true;
    if (tn__value_is_leaf(&draft->graph->value[blocked]))
        return copy_reshaped(draft, v);
    if (!copy_into(draft, blocked, blocked, NULL, false))
        return false;
    draft->stored[blocked] = true;
    return true;
}

/* A library's modes are the step's parameters. */
static bool set_modes(tn__step *step, const tn__ints *modes)
{
    step->param = tn__alloc(sizeof *step->param * (size_t)modes->count);
    if (!step->param)
        return false;
    memcpy(step->param, modes->v, sizeof *step->param * (size_t)modes->count);
    step->param_count = modes->count;
    return true;
}

/* An array whose shape has its channels last as the step takes it: axes in the usual order, that lie so. */
static void channels_first(tn__draft_operand *o)
{
    int64_t dim = o->dim[o->ndim - 1], stride = o->stride[o->ndim - 1];
    memmove(&o->dim[2], &o->dim[1], sizeof *o->dim * (size_t)(o->ndim - 2));
    memmove(&o->stride[2], &o->stride[1], sizeof *o->stride * (size_t)(o->ndim - 2));
    o->dim[1] = dim;
    o->stride[1] = stride;
}

/* What is added to, or set, where the base is need not be copied: in temporary memory, or in a leaf's that the result
 * takes over. There nothing is written before it is known that no position is out of range, which the step sees to; so
 * nothing that leads to a result is written into before. */
static void scatter_in_place(tn__draft *draft, tn__draft_step *step, int v)
{
    step->operand[0].pointwise = step->operand[1].pointwise = true;
    const tn__value *value = &draft->graph->value[v], *terms = &draft->graph->value[value->in[2]];
    if (!takes_over(draft, value->in[0]) || draft->kept[v])
        return;
    draft->home[v] = draft->home[value->in[0]];
    step->step.bytes += 2 * (terms->shape->size - value->shape->size) * (int64_t)tn_dtype_size(value->dtype);
}

bool tn__lower_value(tn__draft *draft, int v)
{
    const tn__value *value = &draft->graph->value[v];
    switch (tn__value_kind(value)) {
    case TN__KIND_LEAF:
        return true;
    case TN__KIND_CONST:
        return lower_const(draft, v);
    case TN__KIND_VIEW:
        return lower_view(draft, v);
    case TN__KIND_UPDATE:
        return lower_update(draft, v);
    case TN__KIND_PART:
        return lower_part(draft, v);
    default:
        break;
    }
    tn__draft_step *step = op_step(draft, value->op, v, NULL);
    if (!step)
        return false;
    for (int i = 0; i < value->arity; i++)
        if (!operand(draft, step, value->in[i]))
            return false;
    step = &draft->step[draft->step_count - 1];
    if (tn__value_kind(value) == TN__KIND_REDUCE) {
        step->step.axes = value->attr.axes;
        step->step.compute = tn__dtypes[draft->graph->value[value->in[0]].dtype].compute;
    } else if (tn__value_kind(value) == TN__KIND_GATHER || tn__value_kind(value) == TN__KIND_SCATTER) {
        step->step.axes = 1u << value->attr.axis;
    } else if (tn__value_kind(value) == TN__KIND_SORT_SCAN || tn__value_kind(value) == TN__KIND_LIBRARY ||
               tn__value_kind(value) == TN__KIND_CONVOLVE || tn__value_kind(value) == TN__KIND_RECURRENCE) {
        step->step.compute = draft->graph->value[value->in[0]].dtype;
        if (value->attr.ints && !set_modes(&step->step, value->attr.ints))
            return false;
        if (step->step.kind == TN__STEP_CONVOLUTION)
            step->step.convolution.channels_last = value->attr.last;
        for (int i = 0; i < step->operand_count && value->attr.last; i++)
            channels_first(&step->operand[i]);
    } else if (tn__value_kind(value) == TN__KIND_MAP) {
        const tn__value *typed = &draft->graph->value[value->in[value->arity - 1]];
        step->step.compute = tn__dtypes[typed->dtype].compute;
        for (int i = 0; i < step->operand_count; i++)
            step->operand[i].pointwise = true;
    }
    if (value->scalar >= 0 && !tn__draft_scalars(step, value->scalar, value->op == TN__OP_CONST ? 1 : 2))
        return false;
    estimate(draft->graph, step, value);
    if (tn__value_kind(value) == TN__KIND_SCATTER)
        scatter_in_place(draft, step, v);
    return true;
}

/* Constants that an UPDATE starts from must be whole: the update lives in their memory. So must those that a result is
 * a view of, which keeps their memory and reads it by its own strides. */
static void mark_whole_constants(tn__draft *draft)
{
    const tn__graph *graph = draft->graph;
    for (int r = 0; r < graph->result_count; r++) {
        int base = tn__view_base(graph, graph->result[r]);
        if (graph->value[base].op == TN__OP_CONST)
            draft->stored[base] = true;
    }
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        if (value->op == TN__OP_UPDATE && value->uses && graph->value[value->in[0]].op == TN__OP_CONST &&
            graph->value[value->in[0]].uses == 1)
            draft->stored[value->in[0]] = true;
    }
}

static bool lower(tn__draft *draft, int v)
{
    switch (draft->fold[v]) {
    case TN__FOLD_UPDATE:
        return tn__lower_folded(draft, v);
    case TN__FOLD_PART:
        return true;
    default:
        return tn__lower_value(draft, v);
    }
}

bool tn__lower_operations(tn__draft *draft)
{
    mark_whole_constants(draft);
    for (int v = 0; v < draft->graph->count; v++)
        if (draft->graph->value[v].uses && !lower(draft, v))
            return false;
    return true;
}
