/* SPDX-License-Identifier: MIT */
/*
 * Folding into the steps of products: updates of a leaf, and what a library does while it writes. An update
 * p - c (a b), where p is a leaf and nothing else needs the product, becomes one product that accumulates into a copy
 * of p; the copy vanishes where p's memory may be taken over. What is folded so depends on the graph alone, so that it
 * is the same, and so are the bits, with and without kernels. A bias that the library adds saves reading and writing
 * the product once more.
 */
#include "compile/lower/lower.h"

#include "core/memory.h"

#include <string.h>

/* ---- updates ---- */

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

static bool lower_update(tn__draft *draft, int v)
{
    const tn__value *value = &draft->graph->value[v];
    int scale, scalar, product = product_of(draft->graph, v, &scale, &scalar);
    tn__window whole = {.base = v, .ndim = value->shape->ndim}, leaf;
    memcpy(whole.dim, value->shape->dim, sizeof whole.dim);
    tn__strides_contiguous(whole.ndim, whole.dim, whole.stride);
    leaf = whole;
    leaf.base = value->in[0];
    tn_dtype dtype = value->dtype;
    tn__draft_step *copy = tn__draft_add_op(draft, TN__OP_COPY);
    if (!copy || !tn__draft_operand_add(copy, &whole, dtype) || !tn__draft_operand_add(copy, &leaf, dtype))
        return false;
    copy->step.compute = dtype;
    copy->output_count = 1;
    copy->adopts = true;
    copy->step.bytes = 2 * value->shape->size * (int64_t)tn_dtype_size(dtype);
    if (!tn__lower_value(draft, product))
        return false;
    tn__draft_step *step = &draft->step[draft->step_count - 1];
    step->operand[0].value = v;
    step->step.product.alpha = scalar;
    step->step.product.negate_alpha = true;
    step->step.product.beta = 1;
    step->step.label = tn__strdup("subtracted in place");
    return step->step.label != NULL;
}

/* ---- epilogues ---- */

typedef struct epilogue {
    int product, bias; /* bias: a leaf that lies along the columns */
    int64_t offset;
} epilogue;

/* The product of two matrices that v is, maybe with its rows in several axes, if nothing else needs it; else -1. */
static int product_with(const tn__graph *graph, int v, int64_t columns)
{
    while (graph->value[v].op == TN__OP_RESHAPE && graph->value[v].uses == 1)
        v = graph->value[v].in[0];
    const tn__value *m = &graph->value[v];
    return m->op == TN__OP_MATMUL && m->uses == 1 && m->shape->ndim == 2 && m->shape->dim[1] == columns ? v : -1;
}

/* A view of a leaf in which all rows are one, without gaps. */
static bool find_bias(const tn__graph *graph, int v, epilogue *e)
{
    tn__window w;
    int blocked;
    if (tn__value_kind(&graph->value[v]) != TN__KIND_VIEW || !tn__window_of(graph, v, NULL, &w, &blocked) ||
        !tn__value_is_leaf(&graph->value[w.base]) || w.stride[w.ndim - 1] != 1)
        return false;
    for (int d = 0; d < w.ndim - 1; d++)
        if (w.stride[d] && w.dim[d] > 1)
            return false;
    e->bias = w.base;
    e->offset = w.offset;
    return true;
}

/* The product and the bias that v is the sum of. Of float32 alone: narrower types are rounded before and after the sum,
 * and by an epilogue once. */
static bool epilogue_of(const tn__graph *graph, int v, epilogue *e)
{
    const tn__value *value = &graph->value[v];
    e->product = -1;
    if (value->op != TN__OP_ADD || value->dtype != TN_FLOAT32 || value->shape->ndim < 2)
        return false;
    int64_t columns = value->shape->dim[value->shape->ndim - 1];
    for (int i = 0; i < 2 && e->product < 0; i++)
        if (find_bias(graph, value->in[i], e))
            e->product = product_with(graph, value->in[1 - i], columns);
    return e->product >= 0;
}

void tn__unfold_own_products(tn__draft *draft, const tn__device *device)
{
    const tn__graph *graph = draft->graph;
    for (int v = 0; v < graph->count; v++) {
        if (draft->fold[v] != TN__FOLD_UPDATE)
            continue;
        int product = tn__folded_product(draft, v);
        if (tn__is_own_product(draft, product, device))
            draft->fold[v] = draft->fold[product] = draft->fold[graph->value[v].in[1]] = TN__FOLD_NONE;
    }
}

void tn__find_epilogues(tn__draft *draft, const tn__device *device)
{
    const tn__graph *graph = draft->graph;
    if (!device->capabilities.epilogues || draft->precision == TN_MATMUL_TF32X3)
        return;
    /* Of a value that is computed where it is used, a kernel behind the product reads it anyway. */
    for (int v = 0; v < graph->count; v++) {
        epilogue e;
        if (!graph->value[v].uses || !draft->stored[v] || draft->fold[v] || !epilogue_of(graph, v, &e) ||
            draft->fold[e.product] || !draft->policy->leaves_to_library(draft, e.product, device))
            continue;
        draft->fold[v] = TN__FOLD_EPILOGUE;
        draft->fold[e.product] = TN__FOLD_PART;
    }
}

static bool lower_epilogue(tn__draft *draft, int v)
{
    const tn__graph *graph = draft->graph;
    epilogue e;
    if (!epilogue_of(graph, v, &e) || !tn__lower_value(draft, e.product))
        return false;
    tn__draft_step *step = &draft->step[draft->step_count - 1];
    const tn__shape *shape = graph->value[e.product].shape;
    tn__window row = {.base = e.bias, .ndim = 1, .dim = {shape->dim[1]}, .stride = {1}, .offset = e.offset};
    step->operand[0].value = v;
    if (!tn__draft_operand_add(step, &row, TN_FLOAT32))
        return false;
    step->step.product.bias = true;
    step->step.bytes += shape->dim[1] * (int64_t)sizeof(float);
    step->step.operations += shape->size;
    step->step.label = tn__strdup("product + bias");
    return step->step.label != NULL;
}

/* ---- either ---- */

int tn__folded_product(const tn__draft *draft, int v)
{
    int scale, scalar;
    epilogue e;
    if (draft->fold[v] == TN__FOLD_EPILOGUE)
        return epilogue_of(draft->graph, v, &e) ? e.product : -1;
    return product_of(draft->graph, v, &scale, &scalar);
}

bool tn__lower_folded(tn__draft *draft, int v)
{
    return draft->fold[v] == TN__FOLD_EPILOGUE ? lower_epilogue(draft, v) : lower_update(draft, v);
}
