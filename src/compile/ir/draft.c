/* SPDX-License-Identifier: MIT */
/* Steps under construction: their operands name values; memory.c turns them into a program. */
#include "compile/ir/draft.h"

#include "core/memory.h"

#include <string.h>

static void mark_kept(const tn__graph *graph, bool *kept)
{
    for (int r = 0; r < graph->result_count; r++)
        kept[graph->result[r]] = true;
    for (int v = graph->count - 1; v >= 0; v--) {
        int kind = tn__value_kind(&graph->value[v]);
        if (kept[v] && (kind == TN__KIND_UPDATE || kind == TN__KIND_SCATTER || kind == TN__KIND_VIEW))
            kept[graph->value[v].in[0]] = true;
    }
}

bool tn__draft_init(tn__draft *draft, tn__graph *graph)
{
    memset(draft, 0, sizeof *draft);
    draft->graph = graph;
    draft->home = tn__alloc(sizeof(int) * ((size_t)graph->count + 1));
    draft->stored = tn__calloc((size_t)graph->count + 1, sizeof *draft->stored);
    draft->fold = tn__calloc((size_t)graph->count + 1, sizeof *draft->fold);
    draft->kept = tn__calloc((size_t)graph->count + 1, sizeof *draft->kept);
    draft->placed = tn__calloc((size_t)graph->count + 1, sizeof *draft->placed);
    for (int v = 0; draft->home && v < graph->count; v++)
        draft->home[v] = v;
    if (draft->kept)
        mark_kept(graph, draft->kept);
    return draft->home && draft->stored && draft->fold && draft->kept && draft->placed;
}

static tn__draft_step *add(tn__draft *draft, tn__step_kind kind)
{
    if (!tn__grow((void **)&draft->step, &draft->step_capacity, (size_t)draft->step_count + 1, sizeof *draft->step))
        return NULL;
    tn__draft_step *step = &draft->step[draft->step_count++];
    memset(step, 0, sizeof *step);
    step->step.kind = kind;
    return step;
}

tn__draft_step *tn__draft_add_kernel(tn__draft *draft) { return add(draft, TN__STEP_KERNEL); }

static tn__step_kind kind_of(tn__op op)
{
    int kind = tn__ops[op].kind;
    return kind == TN__KIND_MATMUL ? TN__STEP_PRODUCT :
           kind == TN__KIND_CONVOLVE ? TN__STEP_CONVOLUTION : TN__STEP_OP;
}

tn__draft_step *tn__draft_add_op(tn__draft *draft, tn__op op)
{
    tn__draft_step *step = add(draft, kind_of(op));
    if (!step)
        return NULL;
    step->step.op = op;
    if (step->step.kind == TN__STEP_PRODUCT)
        step->step.product = (tn__product_step){.alpha = -1, .precision = draft->precision};
    if (step->step.kind == TN__STEP_CONVOLUTION)
        step->step.convolution.precision = draft->precision;
    return step;
}

bool tn__draft_operand_add(tn__draft_step *step, const tn__window *window, tn_dtype dtype)
{
    if (!tn__grow((void **)&step->operand, &step->operand_capacity, (size_t)step->operand_count + 1,
                  sizeof *step->operand))
        return false;
    tn__draft_operand *o = &step->operand[step->operand_count++];
    *o = (tn__draft_operand){.value = window->base, .dtype = dtype, .ndim = window->ndim, .offset = window->offset};
    memcpy(o->dim, window->dim, sizeof o->dim);
    memcpy(o->stride, window->stride, sizeof o->stride);
    return true;
}

int tn__draft_scratch(tn__draft *draft, tn_dtype dtype, int64_t size)
{
    size_t n = (size_t)draft->graph->count + 2;
    int *home = tn__realloc(draft->home, n * sizeof *home);
    draft->home = home ? home : draft->home;
    bool *stored = tn__realloc(draft->stored, n * sizeof *stored);
    draft->stored = stored ? stored : draft->stored;
    uint8_t *fold = tn__realloc(draft->fold, n * sizeof *fold);
    draft->fold = fold ? fold : draft->fold;
    const tn__shape *shape = tn__shape_intern(1, &size);
    if (!home || !stored || !fold || !shape)
        return -1;
    tn__value value = {.op = TN__OP_COPY, .dtype = dtype, .shape = shape, .leaf = -1, .scalar = -1};
    int v = tn__graph_add(draft->graph, &value);
    if (v >= 0) {
        home[v] = v;
        stored[v] = true;
        fold[v] = TN__FOLD_NONE;
    }
    return v;
}

bool tn__draft_scalars(tn__draft_step *step, int first, int count)
{
    step->step.scalar = tn__alloc(sizeof(int) * (size_t)count);
    if (!step->step.scalar)
        return false;
    for (int i = 0; i < count; i++)
        step->step.scalar[i] = first + i;
    step->step.scalar_count = count;
    return true;
}

void tn__draft_step_free(tn__draft_step *step)
{
    tn__free(step->operand);
    tn__free(step->step.scalar);
    tn__free(step->step.param);
    tn__free(step->step.label);
    if (step->step.kind == TN__STEP_KERNEL)
        tn__free((char *)step->step.kernel.name);
}

void tn__draft_free(tn__draft *draft)
{
    for (int i = 0; i < draft->step_count; i++)
        tn__draft_step_free(&draft->step[i]);
    tn__free(draft->step);
    tn__free(draft->home);
    tn__free(draft->kept);
    tn__free(draft->placed);
    tn__free(draft->stored);
    tn__free(draft->fold);
    tn__free(draft->source);
    tn__program_text_free(&draft->text);
}

void tn__draft_remove(tn__draft *draft, int i)
{
    tn__draft_step_free(&draft->step[i]);
    memmove(&draft->step[i], &draft->step[i + 1], sizeof *draft->step * (size_t)(draft->step_count - i - 1));
    draft->step_count--;
}
