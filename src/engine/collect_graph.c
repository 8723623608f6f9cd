/* SPDX-License-Identifier: MIT */
/* A collection as the compiler's graph: only where no cached plan serves. */
#include "engine/collect.h"

#include "core/memory.h"

#include <string.h>

int64_t tn__collection_work(const tn__collection *c)
{
    int64_t work = 0;
    for (size_t i = 0; i < c->count; i++) {
        const tn__node *n = c->entry[i].node;
        if (c->entry[i].leaf < 0 && tn__ops[n->op].kind != TN__KIND_VIEW)
            work += (n->arity ? n->in[0] : n)->shape->size;
    }
    return work;
}

static void fill_value(const tn__collection *c, const tn__entry *e, tn__value *v)
{
    const tn__node *n = e->node;
    *v = (tn__value){.op = e->leaf >= 0 ? TN__OP_VALUE : n->op, .dtype = n->dtype, .shape = n->shape, .leaf = e->leaf,
                     .scalar = e->scalar, .strides = e->leaf >= 0 ? n->strides : NULL};
    if (e->leaf >= 0)
        return;
    v->arity = n->arity;
    for (int i = 0; i < n->arity; i++)
        v->in[i] = tn__collection_input(c, e, i);
    switch ((tn__attribute)tn__attribute_of[tn__ops[n->op].kind]) {
    case TN__ATTRIBUTE_AXES:
        v->attr.axes = n->attr.axes;
        v->attr.user = n->op == TN__OP_USER_REDUCE ? n->attr.user : NULL;
        break;
    case TN__ATTRIBUTE_OUTPUT:
        v->attr.user = n->attr.user;
        v->attr.output = (int)n->attr.output;
        break;
    case TN__ATTRIBUTE_PLACES:
        v->attr.known = n->attr.known;
        v->attr.axis = n->attr.axis;
        break;
    case TN__ATTRIBUTE_AXIS:
        v->attr.axis = n->attr.axis;
        break;
    case TN__ATTRIBUTE_LIST:
        if (n->op == TN__OP_PERMUTE)
            memcpy(v->attr.perm, n->attr.perm, sizeof v->attr.perm);
        else if (n->op != TN__OP_RESHAPE && n->op != TN__OP_EXPAND)
            v->attr.ints = n->attr.ints;
        break;
    case TN__ATTRIBUTE_NONE:
        break;
    }
}

bool tn__collection_graph(const tn__collection *c, tn__graph *graph)
{
    memset(graph, 0, sizeof *graph);
    graph->leaf = tn__calloc(c->leaf_count + 1, sizeof *graph->leaf);
    graph->result = tn__alloc(sizeof *graph->result * (c->root_count + 1));
    graph->scalar_dtype = tn__calloc(c->scalar_count + 1, sizeof *graph->scalar_dtype);
    bool done = graph->leaf && graph->result && graph->scalar_dtype;
    for (size_t i = 0; i < c->count && done; i++) {
        const tn__entry *e = &c->entry[i];
        tn__value v;
        fill_value(c, e, &v);
        done = tn__graph_add(graph, &v) >= 0;
        if (done && e->scalar >= 0) {
            bool constant = e->node->op == TN__OP_CONST;
            graph->scalar_dtype[e->scalar] = constant ? (tn_dtype)e->node->dtype : TN_UINT64;
            if (!constant)
                graph->scalar_dtype[e->scalar + 1] = TN_UINT64;
        }
    }
    if (!done) {
        tn__graph_free(graph);
        return false;
    }
    graph->leaf_count = (int)c->leaf_count;
    for (int i = 0; i < graph->leaf_count; i++)
        graph->leaf[i] = (tn__leaf){.storage = tn__collection_storage(c, i),
                                    .donatable = tn__collection_donatable(c, i),
                                    .storage_bytes = c->entry[c->leaf[i]].node->storage->bytes};
    graph->result_count = (int)c->root_count;
    for (int i = 0; i < graph->result_count; i++)
        graph->result[i] = c->root[i];
    graph->scalar_count = (int)c->scalar_count;
    return true;
}
