/* SPDX-License-Identifier: MIT */
/* Checks the steps of a draft, which name values: what the memory plan relies on. The finished plan, whose operands
 * name buffers, has a verifier of its own (memory/verify.c). */
#include "compile/ir/draft.h"

/* Does an operand lie in the memory of the value that its value lives in? Leaves are as large as their storage; what
 * begins further on by a run-time shift is looked at when it is told; and a constant that is not stored whole, an empty
 * one, too, is one element. */
static bool is_inside(const tn__draft *draft, const tn__draft_operand *o)
{
    const tn__value *home = &draft->graph->value[draft->home[o->value]];
    int64_t low = o->offset, high = o->offset;
    for (int d = 0; d < o->ndim; d++) {
        if (o->dim[d] == 0)
            return true;
        int64_t span = (o->dim[d] - 1) * o->stride[d];
        *(span < 0 ? &low : &high) += span;
    }
    bool one = home->op == TN__OP_CONST && !draft->stored[draft->home[o->value]];
    return tn__value_is_leaf(home) || o->shift || (low >= 0 && high < (one ? 1 : home->shape->size));
}

static const char *check_operand(const tn__draft *draft, const tn__draft_operand *o)
{
    if (o->value < 0 || o->value >= draft->graph->count)
        return "an operand that is no value";
    int home = draft->home[o->value];
    if (home < 0 || home >= draft->graph->count || draft->home[home] != home)
        return "a value that lives in no buffer";
    if (tn_dtype_size(o->dtype) != tn_dtype_size(draft->graph->value[home].dtype))
        return "an operand in another dtype than its memory's";
    return is_inside(draft, o) ? NULL : "an operand reaches outside its value";
}

static const char *check_step(const tn__draft *draft, const tn__draft_step *s)
{
    const char *wrong = NULL;
    if (s->output_count < 0 || s->output_count > s->operand_count)
        return "a step with more outputs than operands";
    if (s->step.kind == TN__STEP_KERNEL ? !s->step.kernel.name : s->step.op == TN__OP_VALUE)
        return "a step without a kernel or an operation";
    if ((s->step.kind == TN__STEP_PRODUCT || s->step.kind == TN__STEP_CONVOLUTION) && s->operand_count < 3)
        return "a product without its factors";
    for (int i = 0; i < s->operand_count && !wrong; i++)
        wrong = check_operand(draft, &s->operand[i]);
    for (int i = 0; i < s->output_count && !wrong; i++)
        if (tn__value_is_leaf(&draft->graph->value[draft->home[s->operand[i].value]]))
            wrong = "a step writes to a leaf";
    return wrong;
}

/* A result keeps the memory of what it is a view of, all of which must be there. */
static const char *check_result(const tn__draft *draft, int v)
{
    const tn__graph *graph = draft->graph;
    while (tn__value_kind(&graph->value[v]) == TN__KIND_VIEW && !draft->stored[v])
        v = graph->value[v].in[0];
    int home = draft->home[v];
    bool one = graph->value[home].op == TN__OP_CONST && !draft->stored[home];
    return one ? "a result is of a constant stored once" : NULL;
}

const char *tn__draft_verify(const tn__draft *draft)
{
    const char *wrong = NULL;
    for (int r = 0; r < draft->graph->result_count && !wrong; r++)
        wrong = check_result(draft, draft->graph->result[r]);
    for (int i = 0; i < draft->step_count && !wrong; i++)
        wrong = check_step(draft, &draft->step[i]);
    return wrong;
}
