/* SPDX-License-Identifier: MIT */
/*
 * Channels last: libraries convolve on tensor cores what lies so, and copy anything else to and fro. Convolutions that
 * are to (convolution.c) become values whose shapes have their channels last, and so does what is computed from them,
 * elementwise or by reductions, windows and views; whoever needs the axes as they were recorded sees them through a
 * permutation. So nothing is copied along a chain of layers, and no emitter knows of layouts: what is stored lies in
 * its shape's C order. Only what comes into a chain is copied, once.
 */
#include "compile/rewrite/rewrite.h"

#include "core/memory.h"
#include "tn_op_functions.h"

#include <string.h>

/* The value that an old one is a view of: axis d of that is its axis perm[d]. */
typedef struct laid {
    int value; /* of the new graph, -1: none */
    uint8_t perm[TN_MAX_NDIM];
} laid;

typedef struct layouts {
    const tn__graph *from;
    tn__graph to;
    int *number; /* of each old value with its axes as recorded, in the new graph; -1: made when it is asked for */
    laid *laid;
    bool failed; /* there was no memory */
} layouts;

static void last_of(int ndim, uint8_t *perm)
{
    memset(perm, 0, TN_MAX_NDIM);
    for (int d = 1; d < ndim; d++)
        perm[d] = (uint8_t)(d == 1 ? ndim - 1 : d - 1);
}

static const tn__shape *permuted(layouts *l, const tn__shape *shape, const uint8_t *perm)
{
    int64_t dim[TN_MAX_NDIM] = {0};
    for (int d = 0; d < shape->ndim; d++)
        dim[perm[d]] = shape->dim[d];
    const tn__shape *made = tn__shape_intern(shape->ndim, dim);
    l->failed = l->failed || !made;
    return made;
}

static int add(layouts *l, const tn__value *value)
{
    int v = l->failed || !value->shape ? -1 : tn__graph_add(&l->to, value);
    l->failed = l->failed || v < 0;
    return v < 0 ? 0 : v;
}

static int add_view(layouts *l, tn__op op, int in, const tn__shape *shape, const uint8_t *perm)
{
    if (l->failed || (op == TN__OP_RESHAPE && l->to.value[in].shape == shape))
        return in;
    tn__value view = {.op = op, .dtype = l->to.value[in].dtype, .arity = 1, .in = {in}, .shape = shape, .leaf = -1,
                      .scalar = -1};
    if (perm)
        memcpy(view.attr.perm, perm, sizeof view.attr.perm);
    return add(l, &view);
}

/* Do the axes that are no mere 1 lie in the order that they had, so that a reshape tells them apart? */
static bool keeps_order(const tn__shape *shape, const uint8_t *perm)
{
    int before = -1;
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->dim[d] == 1)
            continue;
        if (perm[d] < before)
            return false;
        before = perm[d];
    }
    return true;
}

/* Is the order of these axes the same by both? */
static bool agree(const tn__shape *shape, const uint8_t *a, const uint8_t *b)
{
    uint8_t between[TN_MAX_NDIM] = {0}; /* from the places of a to those of b */
    int64_t dim[TN_MAX_NDIM] = {0};
    tn__shape placed = {.ndim = shape->ndim};
    for (int d = 0; d < shape->ndim; d++) {
        between[a[d]] = b[d];
        dim[a[d]] = shape->dim[d];
    }
    memcpy(placed.dim, dim, sizeof dim);
    return keeps_order(&placed, between);
}

/* An old value with its axes as recorded. */
static int plain(layouts *l, int v)
{
    if (l->number[v] < 0)
        l->number[v] = add_view(l, TN__OP_PERMUTE, l->laid[v].value, l->from->value[v].shape, l->laid[v].perm);
    return l->number[v];
}

/* An old value with axis d at perm[d]. */
static int in_order(layouts *l, int v, const uint8_t *perm)
{
    const tn__value *old = &l->from->value[v];
    const tn__shape *shape = permuted(l, old->shape, perm);
    uint8_t back[TN_MAX_NDIM] = {0};
    if (l->failed)
        return 0;
    if (l->laid[v].value >= 0) {
        if (agree(old->shape, l->laid[v].perm, perm))
            return add_view(l, TN__OP_RESHAPE, l->laid[v].value, shape, NULL);
        for (int d = 0; d < old->shape->ndim; d++)
            back[perm[d]] = l->laid[v].perm[d];
        return add_view(l, TN__OP_PERMUTE, l->laid[v].value, shape, back);
    }
    if (old->op == TN__OP_CONST) {
        tn__value number = *old;
        number.shape = shape;
        return add(l, &number);
    }
    if (keeps_order(old->shape, perm))
        return add_view(l, TN__OP_RESHAPE, plain(l, v), shape, NULL);
    if (old->op == TN__OP_EXPAND)
        return add_view(l, TN__OP_EXPAND, in_order(l, old->in[0], perm), shape, NULL);
    for (int d = 0; d < old->shape->ndim; d++)
        back[perm[d]] = (uint8_t)d;
    return add_view(l, TN__OP_PERMUTE, plain(l, v), shape, back);
}

/* Notes that old value v is `value`, but for the order of its axes. */
static void settle(layouts *l, int v, int value, const uint8_t *perm)
{
    const tn__shape *shape = l->from->value[v].shape;
    if (keeps_order(shape, perm)) {
        l->number[v] = add_view(l, TN__OP_RESHAPE, value, shape, NULL);
        return;
    }
    l->laid[v].value = value;
    memcpy(l->laid[v].perm, perm, sizeof l->laid[v].perm);
}

/* ---- convolutions ---- */

/* Is a leaf in memory as it is to be, under other axes? */
static bool lies_so(const tn__value *leaf)
{
    int64_t next = 1;
    if (!tn__value_is_leaf(leaf) || !leaf->strides)
        return false;
    for (int i = 0; i < leaf->shape->ndim; i++) {
        int d = i == 0 ? 1 : i == leaf->shape->ndim - 1 ? 0 : leaf->shape->ndim - i;
        if (leaf->shape->dim[d] != 1 && leaf->strides->v[d] != next)
            return false;
        next *= leaf->shape->dim[d];
    }
    return true;
}

/* What a library reads: in memory with its channels last, by a copy if need be. */
static int operand(layouts *l, int v)
{
    const tn__value *old = &l->from->value[v];
    uint8_t perm[TN_MAX_NDIM];
    last_of(old->shape->ndim, perm);
    int value = in_order(l, v, perm);
    if (l->failed || lies_so(old) || keeps_order(old->shape, perm) ||
        (l->laid[v].value >= 0 && agree(old->shape, l->laid[v].perm, perm)))
        return value;
    tn__value copy = {.op = TN__OP_COPY, .dtype = old->dtype, .arity = 1, .in = {value},
                      .shape = l->to.value[value].shape, .leaf = -1, .scalar = -1};
    return add(l, &copy);
}

/* Weights' gradients are for weights, which lie as recorded: nothing follows them. */
static bool convolution(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    uint8_t perm[TN_MAX_NDIM];
    if (!value.attr.last)
        return false;
    last_of(value.shape->ndim, perm);
    for (int i = 0; i < value.arity; i++)
        value.in[i] = operand(l, value.in[i]);
    value.shape = permuted(l, value.shape, perm);
    settle(l, v, add(l, &value), perm);
    if (value.op == TN__OP_CONVOLVE_WEIGHTS) {
        plain(l, v);
        l->laid[v].value = -1;
    }
    return true;
}

/* ---- what follows them; false: it takes its inputs as they were recorded ---- */

/* The first input that lies in another order, -1: none does. */
static int leader(const layouts *l, const tn__value *v)
{
    for (int i = 0; i < v->arity; i++)
        if (l->laid[v->in[i]].value >= 0)
            return v->in[i];
    return -1;
}

static bool map(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    uint8_t perm[TN_MAX_NDIM];
    int first = leader(l, &value);
    if (first < 0)
        return false;
    memcpy(perm, l->laid[first].perm, sizeof perm);
    for (int i = 0; i < value.arity; i++)
        value.in[i] = in_order(l, value.in[i], perm);
    value.shape = permuted(l, value.shape, perm);
    settle(l, v, add(l, &value), perm);
    return true;
}

/* One whose result depends on the order of the elements keeps that. */
static bool reduction(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    const laid *in = &l->laid[value.in[0]];
    const tn__shape *shape = l->from->value[value.in[0]].shape;
    uint32_t axes = 0;
    int before = -1;
    bool ordered = tn__ops[value.op].props & (TN_ORDERED | TN_ARG);
    for (int d = 0; d < shape->ndim && in->value >= 0; d++)
        if (value.attr.axes >> d & 1) {
            if (ordered && in->perm[d] < before)
                return false;
            before = in->perm[d];
            axes |= 1u << in->perm[d];
        }
    if (in->value < 0)
        return false;
    value.attr.axes = axes;
    value.in[0] = in->value;
    value.shape = permuted(l, value.shape, in->perm);
    settle(l, v, add(l, &value), in->perm);
    return true;
}

static bool expand(layouts *l, int v)
{
    const tn__value *value = &l->from->value[v];
    const laid in = l->laid[value->in[0]];
    settle(l, v, add_view(l, TN__OP_EXPAND, in.value, permuted(l, value->shape, in.perm), NULL), in.perm);
    return true;
}

static bool permute(layouts *l, int v)
{
    const tn__value *value = &l->from->value[v];
    const laid in = l->laid[value->in[0]];
    uint8_t perm[TN_MAX_NDIM] = {0};
    for (int d = 0; d < value->shape->ndim; d++)
        perm[d] = in.perm[value->attr.perm[d]];
    settle(l, v, in.value, perm);
    return true;
}

/* Pairs of numbers, an axis each, in another order of the axes. */
static const tn__ints *pairs(layouts *l, const tn__ints *ints, const uint8_t *perm)
{
    int64_t list[2 * TN_MAX_NDIM];
    for (int d = 0; d < ints->count / 2; d++)
        memcpy(&list[2 * perm[d]], &ints->v[2 * d], 2 * sizeof *list);
    const tn__ints *made = tn__ints_intern(ints->count, list);
    l->failed = l->failed || !made;
    return made;
}

static bool slice(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    const laid in = l->laid[value.in[0]];
    value.in[0] = in.value;
    value.attr.ints = pairs(l, value.attr.ints, in.perm);
    value.shape = permuted(l, value.shape, in.perm);
    settle(l, v, add(l, &value), in.perm);
    return true;
}

static bool windows(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    laid in = l->laid[value.in[0]];
    int64_t list[3 * TN_MAX_NDIM];
    memcpy(list, value.attr.ints->v, sizeof *list * (size_t)value.attr.ints->count);
    for (int i = 0; i < value.attr.ints->count; i += 3)
        list[i] = in.perm[list[i]];
    for (int d = l->from->value[value.in[0]].shape->ndim; d < value.shape->ndim; d++)
        in.perm[d] = (uint8_t)d;
    value.in[0] = in.value;
    value.attr.ints = tn__ints_intern(value.attr.ints->count, list);
    l->failed = l->failed || !value.attr.ints;
    value.shape = permuted(l, value.shape, in.perm);
    settle(l, v, add(l, &value), in.perm);
    return true;
}

/* Axes [begin, end) of a shape and [to, to_end) of another are the same elements in C order. */
typedef struct part {
    int begin, end, to, to_end;
    int key; /* where its elements lie among those of the others */
} part;

/* The smallest of such parts, of two shapes of one size; how many. */
static int split(const tn__shape *a, const tn__shape *b, part *parts)
{
    int i = 0, k = 0, count = 0;
    while (i < a->ndim || k < b->ndim) {
        part *p = &parts[count++];
        *p = (part){.begin = i, .to = k};
        int64_t left = i < a->ndim ? a->dim[i++] : 1, right = k < b->ndim ? b->dim[k++] : 1;
        while (left != right)
            *(left < right ? &left : &right) *= left < right ? a->dim[i++] : b->dim[k++];
        p->end = i;
        p->to_end = k;
    }
    return count;
}

/* Where the elements of a part lie; -1 if between them are others, or they lie in another order. */
static int key_of(const tn__shape *shape, const uint8_t *perm, const part *p, int otherwise)
{
    int first = -1, before = -1;
    for (int d = p->begin; d < p->end; d++) {
        if (shape->dim[d] == 1)
            continue;
        for (int other = 0; other < shape->ndim && before >= 0; other++)
            if (shape->dim[other] != 1 && perm[other] > before && perm[other] < perm[d])
                return -1;
        if (perm[d] < before)
            return -1;
        before = perm[d];
        first = first < 0 ? perm[d] : first;
    }
    return first < 0 ? otherwise : first;
}

/* What takes apart or joins axes that lie beside each other does so in the other order, too. */
static bool reshape(layouts *l, int v)
{
    const tn__value *value = &l->from->value[v];
    const tn__shape *shape = l->from->value[value->in[0]].shape;
    const laid in = l->laid[value->in[0]];
    part parts[2 * TN_MAX_NDIM];
    uint8_t perm[TN_MAX_NDIM] = {0};
    int count = shape->size == 0 ? 0 : split(shape, value->shape, parts), place = 0;
    for (int i = 0; i < count; i++)
        if ((parts[i].key = key_of(shape, in.perm, &parts[i], i ? parts[i - 1].key : 0)) < 0)
            return false;
    for (int key = 0; key < TN_MAX_NDIM; key++)
        for (int i = 0; i < count; i++)
            for (int k = parts[i].to; parts[i].key == key && k < parts[i].to_end; k++)
                perm[k] = (uint8_t)place++;
    if (count == 0)
        return false;
    settle(l, v, add_view(l, TN__OP_RESHAPE, in.value, permuted(l, value->shape, perm), NULL), perm);
    return true;
}

/* What is written into a constant, as zeros around an array are. */
static bool update(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    int first = leader(l, &value);
    bool fresh = l->from->value[value.in[0]].op == TN__OP_CONST;
    if (first < 0 || value.attr.shift || (l->laid[value.in[0]].value < 0 && !fresh))
        return false;
    const laid lead = l->laid[first];
    for (int i = 0; i < value.arity; i++)
        value.in[i] = in_order(l, value.in[i], lead.perm);
    value.attr.ints = pairs(l, value.attr.ints, lead.perm);
    value.shape = permuted(l, value.shape, lead.perm);
    settle(l, v, add(l, &value), lead.perm);
    return true;
}

static bool (*const views[TN__OP_COUNT])(layouts *l, int v) = {
    [TN__OP_RESHAPE] = reshape, [TN__OP_PERMUTE] = permute, [TN__OP_EXPAND] = expand, [TN__OP_SLICE] = slice,
    [TN__OP_WINDOWS] = windows};

static bool follows(layouts *l, int v)
{
    const tn__value *value = &l->from->value[v];
    switch (tn__value_kind(value)) {
    case TN__KIND_CONVOLVE:
        return convolution(l, v);
    case TN__KIND_MAP:
        return map(l, v);
    case TN__KIND_REDUCE:
        return reduction(l, v);
    case TN__KIND_UPDATE:
        return update(l, v);
    case TN__KIND_VIEW:
        return l->laid[value->in[0]].value >= 0 && views[value->op](l, v);
    default:
        return false;
    }
}

static void lay(layouts *l, int v)
{
    tn__value value = l->from->value[v];
    l->number[v] = l->laid[v].value = -1;
    if (!value.uses || follows(l, v) || l->failed)
        return;
    for (int i = 0; i < value.arity; i++)
        value.in[i] = plain(l, value.in[i]);
    l->number[v] = add(l, &value);
}

bool tn__any_channels_last(const tn__graph *graph)
{
    bool any = false;
    for (int v = 0; v < graph->count; v++)
        any = any || (graph->value[v].uses && graph->value[v].attr.last);
    return any;
}

bool tn__lay_channels_last(tn__graph *graph, bool *changed)
{
    if (!(*changed = tn__any_channels_last(graph)))
        return true;
    layouts l = {.from = graph, .number = tn__alloc(sizeof(int) * (size_t)graph->count),
                 .laid = tn__alloc(sizeof(laid) * (size_t)graph->count)};
    l.failed = !l.number || !l.laid;
    for (int v = 0; v < graph->count && !l.failed; v++)
        lay(&l, v);
    for (int r = 0; r < graph->result_count && !l.failed; r++)
        graph->result[r] = plain(&l, graph->result[r]);
    tn__graph_take(graph, &l.to, NULL, !l.failed);
    tn__free(l.number);
    tn__free(l.laid);
    return !l.failed;
}
