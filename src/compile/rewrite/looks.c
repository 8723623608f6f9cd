/* SPDX-License-Identifier: MIT */
/*
 * Looks at indices, of which there is to be one for each list of indices that the recording gathers by, whatever of the
 * gathered is read: an index out of range is an error of all that depends on it, and not by chance of what is fused.
 *
 * Where a window leaves some of what is gathered out, kernels gather, and look at, no more than the window; and where
 * nothing is read of a value, it is not computed. There a gather of a single element is added, which is there for its
 * look at the indices. What else may fail, and is not read, becomes a result, so that it is computed.
 *
 * On the other hand, gathers that were recorded for their look at the indices go where something else looks at these.
 * The gradient of a loss looks at the labels, as the loss may not be computed with it; mostly it is.
 */
#include "compile/rewrite/rewrite.h"

#include "core/memory.h"

#include <string.h>

/* How much of a value is read, whatever later passes do: a kernel computes what is read of it. */
enum { UNREAD, READ, WHOLE };

static void read_more(uint8_t *read, int v, int how)
{
    if (read[v] < how)
        read[v] = (uint8_t)how;
}

/* Notes that a value is read from memory. What it is a view of then lies there, all of it; but windows of what windows
 * were written into may be read from elsewhere. */
static void read_memory(const tn__graph *graph, uint8_t *read, int v)
{
    int base = tn__view_base(graph, v);
    read_more(read, v, WHOLE);
    read_more(read, base, tn__value_kind(&graph->value[base]) == TN__KIND_UPDATE ? READ : WHOLE);
}

/* Notes what is read of a value's inputs, where `how` much is read of it itself. */
static void read_inputs(const tn__graph *graph, const tn__value *v, int how, uint8_t *read)
{
    int kind = tn__value_kind(v);
    const tn__shape *first = v->arity ? graph->value[v->in[0]].shape : NULL;
    if (kind == TN__KIND_CUSTOM || kind == TN__KIND_TIED) { /* is its input 0 */
        read_more(read, v->in[0], how);
    } else if (kind == TN__KIND_UPDATE) {
        for (int i = 0; i < v->arity && how == WHOLE; i++)
            read_more(read, v->in[i], WHOLE);
    } else if (kind == TN__KIND_GATHER) {
        read_memory(graph, read, v->in[0]);
        read_more(read, v->in[1], how);
    } else if (kind == TN__KIND_VIEW) {
        bool part = v->op == TN__OP_WINDOWS || (v->op == TN__OP_SLICE && first != v->shape);
        read_more(read, v->in[0], part ? READ : how);
    } else {
        bool all = tn__kind_is_library(kind) || (kind == TN__KIND_REDUCE && first != v->shape);
        for (int i = 0; i < v->arity; i++)
            read_more(read, v->in[i], all ? WHOLE : how);
    }
}

/* By values; NULL without memory. Uses are counted. */
static uint8_t *find_read(const tn__graph *graph)
{
    uint8_t *read = tn__calloc((size_t)graph->count + 1, sizeof *read);
    for (int r = 0; r < graph->result_count && read; r++)
        read_memory(graph, read, graph->result[r]);
    for (int v = graph->count - 1; v >= 0 && read; v--)
        if (read[v] && graph->value[v].uses && graph->value[v].shape->size)
            read_inputs(graph, &graph->value[v], read[v], read);
    return read;
}

static bool gathers(const tn__value *v)
{
    return v->uses && tn__value_kind(v) == TN__KIND_GATHER && !v->attr.known;
}

static int64_t extent_of(const tn__graph *graph, const tn__value *v)
{
    return graph->value[v->in[0]].shape->dim[v->attr.axis];
}

/* What a list of indices is a view of that shows each of its elements, and no others. */
static int indices_of(const tn__graph *graph, const tn__value *v)
{
    int in = v->in[1];
    for (tn__op op = graph->value[in].op; op == TN__OP_RESHAPE || op == TN__OP_PERMUTE || op == TN__OP_EXPAND;
         op = graph->value[in].op)
        in = graph->value[in].in[0];
    return in;
}

static bool look_at_same(const tn__graph *graph, const tn__value *a, const tn__value *b)
{
    return indices_of(graph, a) == indices_of(graph, b) && extent_of(graph, a) == extent_of(graph, b);
}

/* ---- looks that are added ---- */

typedef struct looking {
    const tn__graph *from;
    tn__graph to;
    uint8_t *read;
    int *number;     /* of an old value, in the new graph */
    int *looker;     /* old values by which all their indices are looked at, in this graph or in the new one */
    int lookers;
    int *result;     /* of the new graph: what is added to the results */
    int results;
} looking;

/* Is it to be computed for its failure alone? Gathers of no elements were looked at when they were recorded. */
static bool is_missed(const looking *l, int v)
{
    const tn__value *value = &l->from->value[v];
    int kind = tn__value_kind(value);
    if (kind == TN__KIND_SCATTER || kind == TN__KIND_LIBRARY)
        return value->uses && l->read[v] == UNREAD && value->shape->size;
    if (!gathers(value) || l->read[v] == WHOLE || !value->shape->size)
        return false;
    for (int i = 0; i < l->lookers; i++)
        if (look_at_same(l->from, &l->from->value[l->looker[i]], value))
            return false;
    return true;
}

static int add(looking *l, tn__op op, int in, int positions, const tn__shape *shape)
{
    tn__value value = {.op = op, .dtype = TN_INT64, .arity = tn__ops[op].arity, .in = {in, positions}, .shape = shape,
                       .leaf = -1, .scalar = -1};
    if (op == TN__OP_SLICE) {
        int64_t first[2 * TN_MAX_NDIM];
        for (int d = 0; d < shape->ndim; d++) {
            first[2 * d] = 0;
            first[2 * d + 1] = 1;
        }
        if (!(value.attr.ints = tn__ints_intern(2 * shape->ndim, first)))
            return -1;
    }
    if (op == TN__OP_MAX)
        value.attr.axes = (1u << l->to.value[in].shape->ndim) - 1;
    return tn__graph_add(&l->to, &value);
}

/* Adds a gather by all indices that a gather has, of their first one, and its largest element: one number, or -1
 * without memory. */
static int add_look(looking *l, const tn__value *gather)
{
    int indices = l->number[indices_of(l->from, gather)];
    int64_t one[TN_MAX_NDIM], seen[TN_MAX_NDIM];
    const tn__shape *shape = l->to.value[indices].shape;
    int ndim = shape->ndim > 0 ? shape->ndim : 1;
    for (int d = 0; d < ndim; d++) {
        one[d] = 1;
        seen[d] = shape->ndim > 0 ? shape->dim[d] : 1;
    }
    const tn__shape *single = tn__shape_intern(ndim, one);
    seen[0] = extent_of(l->from, gather);
    const tn__shape *table = tn__shape_intern(ndim, seen);
    if (!single || !table)
        return -1;
    if (shape->ndim == 0)
        indices = add(l, TN__OP_RESHAPE, indices, 0, shape = single);
    int first = indices;
    if (first >= 0 && l->to.value[first].op == TN__OP_CONST) { /* has no array in which a window would lie */
        tn__value number = l->to.value[first];
        number.shape = single;
        first = tn__graph_add(&l->to, &number);
    } else if (first >= 0 && shape != single) {
        first = add(l, TN__OP_SLICE, first, 0, single);
    }
    if (first >= 0 && table != single)
        first = add(l, TN__OP_EXPAND, first, 0, table);
    int looked = first < 0 ? -1 : add(l, TN__OP_GATHER, first, indices, shape);
    return looked < 0 ? -1 : add(l, TN__OP_MAX, looked, 0, single);
}

static bool copy(looking *l, int v)
{
    tn__value value = l->from->value[v];
    for (int i = 0; i < value.arity; i++)
        value.in[i] = l->number[value.in[i]];
    if ((l->number[v] = tn__graph_add(&l->to, &value)) < 0)
        return false;
    if (!is_missed(l, v))
        return true;
    bool gathered = gathers(&value);
    int result = gathered ? add_look(l, &l->from->value[v]) : l->number[v];
    l->result[l->results++] = result;
    if (gathered)
        l->looker[l->lookers++] = v;
    return result >= 0;
}

static bool add_results(tn__graph *graph, const int *result, int count)
{
    int *all = tn__alloc(((size_t)graph->result_count + (size_t)count + 1) * sizeof *all);
    if (!all)
        return false;
    memcpy(all, graph->result, (size_t)graph->result_count * sizeof *all);
    memcpy(all + graph->result_count, result, (size_t)count * sizeof *all);
    tn__free(graph->result);
    graph->result = all;
    graph->result_count += count;
    tn__graph_count_uses(graph);
    return true;
}

bool tn__keep_looks(tn__graph *graph)
{
    tn__graph_count_uses(graph);
    size_t bytes = ((size_t)graph->count + 1) * sizeof(int);
    TN__FREED int *number = tn__alloc(bytes), *looker = tn__alloc(bytes), *result = tn__alloc(bytes);
    TN__FREED uint8_t *read = find_read(graph);
    looking l = {.from = graph, .read = read, .number = number, .looker = looker, .result = result};
    if (!number || !looker || !result || !read)
        return false;
    for (int v = 0; v < graph->count; v++) {
        bool scatters = graph->value[v].uses && tn__value_kind(&graph->value[v]) == TN__KIND_SCATTER;
        if ((gathers(&graph->value[v]) && read[v] == WHOLE) || (scatters && read[v] != UNREAD))
            looker[l.lookers++] = v;
    }
    bool missed = false, done = true;
    for (int v = 0; v < graph->count && !missed; v++)
        missed = is_missed(&l, v);
    for (int v = 0; v < graph->count && missed && done; v++)
        done = copy(&l, v);
    if (!missed)
        return true;
    tn__graph_take(graph, &l.to, number, done);
    return done && add_results(graph, result, l.results);
}

/* ---- looks that go ---- */

/* The one element that a gather finds wherever it looks, or -1. */
static int only_element(const tn__graph *graph, const tn__value *gather)
{
    int v = gather->in[0];
    while (graph->value[v].op == TN__OP_EXPAND)
        v = graph->value[v].in[0];
    const tn__shape *shape = graph->value[v].shape;
    return shape->size == 1 && shape->ndim == gather->shape->ndim ? v : -1;
}

/* Does another value look at all of the same indices? Of two that are there for nothing else, the first counts. */
static bool is_looked_at(const tn__graph *graph, int gather, const uint8_t *read)
{
    const tn__value *v = &graph->value[gather];
    for (int u = 0; u < graph->count; u++) {
        const tn__value *other = &graph->value[u];
        if (u != gather && gathers(other) && read[u] == WHOLE && other->in[1] == v->in[1] &&
            extent_of(graph, other) == extent_of(graph, v) && (u < gather || only_element(graph, other) < 0))
            return true;
    }
    return false;
}

bool tn__drop_second_looks(tn__graph *graph)
{
    TN__FREED uint8_t *read = find_read(graph);
    for (int g = 0; g < graph->count && read; g++) {
        tn__value *v = &graph->value[g];
        int element = gathers(v) ? only_element(graph, v) : -1;
        if (element < 0 || !is_looked_at(graph, g, read))
            continue;
        *v = (tn__value){.op = TN__OP_EXPAND, .dtype = v->dtype, .arity = 1, .in = {element}, .shape = v->shape,
                         .leaf = -1, .scalar = -1, .uses = v->uses};
        tn__graph_count_uses(graph);
    }
    return read != NULL;
}
