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

void tn__collection_value(const tn__collection *c, const tn__entry *e, tn__value *v)
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

/* Adds the value of an entry, the windows before `next` having been used. Where the window of an UPDATE begins is a
 * run-time shift, if it moves. Its number, or -1 without memory. */
static int add_entry(const tn__collection *c, int entry, size_t *next, const int *number, tn__graph *graph)
{
    const tn__entry *e = &c->entry[entry];
    tn__value v;
    bool moves = c->moves && *next < c->moving_count && c->moving[*next].entry == (int32_t)entry;
    if (moves && e->node->op == TN__OP_SLICE)
        return tn__slice_values(c, next, number, graph);
    tn__collection_value(c, e, &v);
    for (int i = 0; i < v.arity; i++)
        v.in[i] = number[v.in[i]];
    if (moves) {
        v.attr.ints = c->moving[*next].list;
        v.attr.shift = (int)++*next;
    }
    return tn__graph_add(graph, &v);
}

/* The leaves, those that move last. What they are windows of is not overwritten. */
static void fill_leaves(const tn__collection *c, size_t moving, tn__leaf *leaf)
{
    for (int i = 0; i < (int)c->leaf_count; i++)
        leaf[i] = (tn__leaf){.storage = tn__collection_storage(c, i),
                             .donatable = tn__collection_donatable(c, i),
                             .storage_bytes = c->entry[c->leaf[i]].node->storage->bytes};
    for (size_t i = 0; i < moving; i++)
        if (c->moving[i].leaf >= 0) {
            leaf[c->moving[i].leaf].donatable = false;
            leaf[c->leaf_count + i].storage = leaf[c->moving[i].leaf].storage;
        }
}

bool tn__collection_graph(const tn__collection *c, tn__graph *graph)
{
    size_t moving = c->moves ? c->moving_count : 0, next = 0;
    memset(graph, 0, sizeof *graph);
    graph->leaf = tn__calloc(c->leaf_count + moving + 1, sizeof *graph->leaf);
    graph->result = tn__alloc(sizeof *graph->result * (c->root_count + 1));
    graph->scalar_dtype = tn__calloc(c->scalar_count + 1, sizeof *graph->scalar_dtype);
    TN__FREED int *number = tn__alloc(sizeof *number * (c->count + 1)); /* of an entry's value */
    bool done = graph->leaf && graph->result && graph->scalar_dtype && number;
    for (size_t i = 0; i < c->count && done; i++) {
        const tn__entry *e = &c->entry[i];
        done = (number[i] = add_entry(c, (int)i, &next, number, graph)) >= 0;
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
    graph->leaf_count = (int)(c->leaf_count + moving);
    graph->shift_count = (int)moving;
    fill_leaves(c, moving, graph->leaf);
    graph->result_count = (int)c->root_count;
    for (int i = 0; i < graph->result_count; i++)
        graph->result[i] = number[c->root[i]];
    graph->scalar_count = (int)c->scalar_count;
    return true;
}
