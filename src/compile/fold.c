/* SPDX-License-Identifier: MIT */
/*
 * Folding updates into products: p - c (a b), where p is a leaf and nothing else needs the product, becomes one product
 * that accumulates into a copy of p; the copy vanishes where p's memory may be taken over. What is folded depends on
 * the graph alone, so that it is the same, and so are the bits, with and without kernels.
 */
#include "compile/compile.h"

#include "core/memory.h"

#include <string.h>

/* The product in an update p - c * product, -1 if v is none. *scale and *scalar: the value c * product, the slot of
 * c. */
static int product_of(const tn__graph *graph, int v, int *scale, int *scalar)
{
    const tn__value *value = &graph->value[v];
    if (value->op != TN__OP_SUBTRACT || (value->dtype != TN_FLOAT32 && value->dtype != TN_FLOAT64) ||
        value->shape->ndim != 2)
        return -1;
    const tn__value *p = &graph->value[value->in[0]], *step = &graph->value[value->in[1]];
    *scale = value->in[1];
    if (p->leaf < 0 || p->strides || step->op != TN__OP_MULTIPLY || step->uses != 1)
        return -1;
    for (int i = 0; i < 2; i++) {
        const tn__value *c = &graph->value[step->in[i]], *m = &graph->value[step->in[1 - i]];
        *scalar = c->scalar;
        if (c->op == TN__OP_CONST && m->op == TN__OP_MATMUL && m->uses == 1)
            return step->in[1 - i];
    }
    return -1;
}

void tn__find_folds(tn__draft *draft)
{
    const tn__graph *graph = draft->graph;
    int scale, scalar;
    for (int r = 0; r < graph->result_count; r++) {
        int v = graph->result[r], product = product_of(graph, v, &scale, &scalar);
        if (product < 0)
            continue;
        draft->fold[v] = TN__FOLD_UPDATE;
        draft->fold[scale] = draft->fold[product] = TN__FOLD_PART;
    }
}

int tn__folded_product(const tn__graph *graph, int v)
{
    int scale, scalar;
    return product_of(graph, v, &scale, &scalar);
}

bool tn__lower_folded(tn__draft *draft, int v)
{
    const tn__value *value = &draft->graph->value[v];
    int scale, scalar, product = product_of(draft->graph, v, &scale, &scalar);
    tn__window whole = {.base = v, .ndim = value->shape->ndim}, leaf;
    memcpy(whole.dim, value->shape->dim, sizeof whole.dim);
    tn__strides_contiguous(whole.ndim, whole.dim, whole.stride);
    leaf = whole;
    leaf.base = value->in[0];
    tn_dtype dtype = value->dtype;
    tn__draft_step *copy = tn__draft_add(draft, TN__STEP_OP);
    if (!copy || !tn__draft_operand_add(copy, &whole, dtype) || !tn__draft_operand_add(copy, &leaf, dtype))
        return false;
    copy->step.op = TN__OP_COPY;
    copy->step.compute = dtype;
    copy->output_count = 1;
    copy->adopts = true;
    copy->step.bytes = 2 * value->shape->size * (int64_t)tn_dtype_size(dtype);
    if (!tn__lower_value(draft, product))
        return false;
    tn__draft_step *step = &draft->step[draft->step_count - 1];
    step->operand[0].value = v;
    step->step.alpha = scalar;
    step->step.negate_alpha = true;
    step->step.beta = 1;
    step->step.label = tn__strdup("subtracted in place");
    return step->step.label != NULL;
}
