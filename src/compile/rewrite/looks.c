/* SPDX-License-Identifier: MIT */
/*
 * Gathers that are there for their look at the indices go where something else looks at these. The gradient of a loss
 * looks at the labels, as the loss may not be computed with it; mostly it is.
 */
#include "compile/rewrite/rewrite.h"

/* The one element that a gather finds wherever it looks, or -1. */
static int only_element(const tn__graph *graph, const tn__value *gather)
{
    int v = gather->in[0];
    while (graph->value[v].op == TN__OP_EXPAND)
        v = graph->value[v].in[0];
    const tn__shape *shape = graph->value[v].shape;
    return shape->size == 1 && shape->ndim == gather->shape->ndim ? v : -1;
}

static bool looks(const tn__value *v)
{
    return v->uses && tn__value_kind(v) == TN__KIND_GATHER && !v->attr.known;
}

static int64_t extent_of(const tn__graph *graph, const tn__value *gather)
{
    return graph->value[gather->in[0]].shape->dim[gather->attr.axis];
}

/* Does another value look at the same indices? Of two that are there for nothing else, the first counts. */
static bool is_looked_at(const tn__graph *graph, int gather)
{
    const tn__value *v = &graph->value[gather];
    for (int u = 0; u < graph->count; u++) {
        const tn__value *other = &graph->value[u];
        if (u != gather && looks(other) && other->in[1] == v->in[1] &&
            extent_of(graph, other) == extent_of(graph, v) && (u < gather || only_element(graph, other) < 0))
            return true;
    }
    return false;
}

void tn__drop_second_looks(tn__graph *graph)
{
    for (int g = 0; g < graph->count; g++) {
        tn__value *v = &graph->value[g];
        int element = looks(v) ? only_element(graph, v) : -1;
        if (element < 0 || !is_looked_at(graph, g))
            continue;
        *v = (tn__value){.op = TN__OP_EXPAND, .dtype = v->dtype, .arity = 1, .in = {element}, .shape = v->shape,
                         .leaf = -1, .scalar = -1, .uses = v->uses};
        tn__graph_count_uses(graph);
    }
}
