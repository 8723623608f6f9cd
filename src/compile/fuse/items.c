/* SPDX-License-Identifier: MIT */
/* Items: what is computed by a nest, or on its own, in topological order, and which need which. */
#include "compile/fuse/fuse.h"
#include "compile/lower/lower.h"

static int add_item(tn__fuser *f)
{
    if (!tn__grow((void **)&f->item, &f->item_capacity, (size_t)f->item_count + 1, sizeof *f->item))
        return -1;
    tn__item *item = &f->item[f->item_count];
    *item = (tn__item){.value = -1, .into = f->item_count, .group = -1, .mark = {-1, -1, -1}};
    return f->item_count++;
}

/* An item, as it is made, has those before it only, and each once. */
static bool need_item(tn__fuser *f, int item, int other)
{
    if (other < 0 || other == item || f->item[other].mark[0] == item)
        return true;
    f->item[other].mark[0] = item;
    f->item[other].used++;
    return tn__numbers_add(&f->item[item].needs, other);
}

static bool need_value(tn__fuser *f, int item, int v)
{
    bool done = true;
    for (; tn__value_kind(&f->graph->value[v]) == TN__KIND_VIEW; v = f->graph->value[v].in[0])
        if (f->base.stored[v])
            done = done && need_item(f, item, f->item_of[v]);
    return done && need_item(f, item, f->item_of[v]);
}

static bool need_inputs(tn__fuser *f, int item, const tn__value *v)
{
    bool done = true;
    for (int k = 0; k < v->arity; k++)
        done = done && need_value(f, item, v->in[k]);
    return done;
}

static bool need_accesses(tn__fuser *f, int item)
{
    const tn__nest *nest = f->item[item].nest;
    bool done = true;
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].kind == TN__ACCESS_LOAD)
            done = done && need_item(f, item, f->item_of[nest->access[i].value]);
    return done;
}

static bool single(tn__fuser *f, int v)
{
    int i = add_item(f);
    if (i < 0)
        return false;
    f->item[i].value = v;
    f->item_of[v] = i;
    bool fold = tn__is_folded(f->base.draft, v);
    return need_inputs(f, i, &f->graph->value[fold ? tn__folded_product(f->base.draft, v) : v]);
}

/* A nest of its own for value v. */
static bool nest_item(tn__fuser *f, int v)
{
    int i = add_item(f);
    tn__nest *nest = tn__calloc(1, sizeof *nest);
    if (i < 0 || !nest) {
        tn__free(nest);
        return false;
    }
    f->item[i].nest = nest;
    if (!tn__nest_start(&f->base, v, nest))
        return false;
    nest->number = i;
    f->base.owner[v] = i;
    tn__built built = tn__nest_build(&f->base, nest);
    if (built == TN__BUILT_NO_MEMORY)
        return false;
    if (built == TN__BUILT_MISFIT) { /* not a loop nest after all: a single operation, over stored inputs */
        f->base.owner[v] = -1;
        tn__nest_free(nest);
        tn__free(nest);
        f->item[i].nest = NULL;
        f->item[i].value = v;
        f->item_of[v] = i;
        return need_inputs(f, i, &f->graph->value[v]);
    }
    f->item_of[v] = i;
    return need_accesses(f, i);
}

/* Reshapes that no strides express: the input is stored by a nest that copies; a leaf has its place already, so then
 * the reshape itself is a copy. All of them are found before anything is made that reads one. */
static void unblock(tn__fuser *f)
{
    const tn__graph *graph = f->graph;
    for (int v = 0; v < graph->count; v++) {
        tn__window w;
        int blocked;
        if (graph->value[v].uses && graph->value[v].op == TN__OP_RESHAPE && f->base.stored[tn__view_base(graph, v)] &&
            !tn__window_of(graph, v, f->base.stored, &w, &blocked))
            f->base.stored[tn__value_is_leaf(&graph->value[blocked]) ? v : blocked] = true;
    }
}

/* Does one operation, by a library or in memory, make the value? */
static bool is_single(const tn__fuser *f, int v)
{
    const tn__value *value = &f->graph->value[v];
    switch (tn__value_kind(value)) {
    case TN__KIND_MATMUL:
        return !tn__is_own_product(f->base.draft, v, f->device) || f->base.draft->fold[v] == TN__FOLD_UPDATE;
    case TN__KIND_VIEW:
        return value->op == TN__OP_RESHAPE && tn__value_is_leaf(&f->graph->value[value->in[0]]);
    case TN__KIND_SCATTER:
    case TN__KIND_SORT_SCAN:
    case TN__KIND_LIBRARY:
    case TN__KIND_CONVOLVE:
    case TN__KIND_RECURRENCE:
    case TN__KIND_UPDATE:
    case TN__KIND_PART:
    case TN__KIND_CONST:
        return true;
    default:
        return tn__is_folded(f->base.draft, v);
    }
}

bool tn__make_items(tn__fuser *f)
{
    const tn__graph *graph = f->graph;
    unblock(f);
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        if (!value->uses || tn__value_is_leaf(value) || !f->base.stored[v] || f->base.draft->fold[v] == TN__FOLD_PART)
            continue;
        if (!(is_single(f, v) ? single(f, v) : nest_item(f, v)))
            return false;
    }
    f->search = f->item_count; /* marks up to here are numbers of items */
    return true;
}
