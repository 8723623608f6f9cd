/* SPDX-License-Identifier: MIT */
/* Items, and merging nests that can share loops: producers with consumers, and siblings that read the same values. */
#include "compile/fuse.h"
#include "compile/product.h"

#include <string.h>

#define MAX_EXPRESSIONS 400 /* in a nest: compilers slow down beyond */
#define MAX_ACCESSES 48
#define LOOK_BACK 64        /* nests that each one is tried with: keeps planning linear in the size of the graph */

static int add_item(tn__fuser *f)
{
    if (!tn__grow((void **)&f->item, &f->item_capacity, (size_t)f->item_count + 1, sizeof *f->item))
        return -1;
    tn__item *item = &f->item[f->item_count];
    *item = (tn__item){.value = -1, .needs = tn__calloc((size_t)f->words, sizeof(uint64_t))};
    return item->needs ? f->item_count++ : -1;
}

static void need_item(tn__fuser *f, int item, int other)
{
    if (other < 0 || other == item)
        return;
    tn__set_add(f->item[item].needs, other);
    for (int w = 0; w < f->words; w++)
        f->item[item].needs[w] |= f->item[other].needs[w];
}

static void need_value(tn__fuser *f, int item, int v)
{
    for (; tn__value_kind(&f->graph->value[v]) == TN__KIND_VIEW; v = f->graph->value[v].in[0])
        if (f->base.stored[v])
            need_item(f, item, f->item_of[v]);
    need_item(f, item, f->item_of[v]);
}

static void need_accesses(tn__fuser *f, int item)
{
    const tn__nest *nest = f->item[item].nest;
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].kind == TN__ACCESS_LOAD)
            need_item(f, item, f->item_of[nest->access[i].value]);
}

static bool single(tn__fuser *f, int v)
{
    int i = add_item(f);
    if (i < 0)
        return false;
    f->item[i].value = v;
    f->item_of[v] = i;
    bool fold = f->base.draft->fold[v] == TN__FOLD_UPDATE;
    const tn__value *reads = &f->graph->value[fold ? tn__folded_product(f->graph, v) : v];
    for (int k = 0; k < reads->arity; k++)
        need_value(f, i, reads->in[k]);
    return true;
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
        for (int k = 0; k < f->graph->value[v].arity; k++)
            need_value(f, i, f->graph->value[v].in[k]);
        return true;
    }
    f->item_of[v] = i;
    need_accesses(f, i);
    return true;
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
        return !tn__product_own(f->base.draft, v, f->device) || f->base.draft->fold[v] == TN__FOLD_UPDATE;
    case TN__KIND_VIEW:
        return value->op == TN__OP_RESHAPE && tn__value_is_leaf(&f->graph->value[value->in[0]]);
    case TN__KIND_SCATTER:
    case TN__KIND_ROWS:
    case TN__KIND_LIBRARY:
    case TN__KIND_UPDATE:
    case TN__KIND_CONST:
        return true;
    default:
        return f->base.draft->fold[v] == TN__FOLD_UPDATE;
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
    return true;
}

/* ---- merging ---- */

/* The loops of `row` are the kept loops of `whole`. */
static bool row_loops(const tn__nest *row, const tn__nest *whole)
{
    int k = 0;
    if (!whole->reduced || row->reduced)
        return false;
    for (int l = 0; l < whole->loop_count; l++) {
        if (whole->reduced >> l & 1)
            continue;
        if (k == row->loop_count || row->extent[k++] != whole->extent[l])
            return false;
    }
    return k == row->loop_count;
}

/* Do the domains fit, whatever the values refer to? The merged nest gets the loops and reduced set of the wider one. */
static bool domains_fit(const tn__nest *into, const tn__nest *nest)
{
    if ((into->product.there || nest->product.there) && !tn__product_joins(into, nest))
        return false;
    if (tn__nest_same_loops(into, nest))
        return !into->reduced || !nest->reduced || into->reduced == nest->reduced;
    return row_loops(nest, into) || row_loops(into, nest);
}

/* Something to gain: one reads what the other writes or reads. */
static bool related(const tn__fuser *f, int into, int nest)
{
    const tn__nest *a = f->item[into].nest, *b = f->item[nest].nest;
    if (tn__set_has(f->item[nest].needs, into))
        return true;
    for (int i = 0; i < a->access_count; i++)
        for (int k = 0; k < b->access_count; k++)
            if (a->access[i].kind != TN__ACCESS_INDEX && a->access[i].value == b->access[k].value)
                return true;
    return false;
}

/* Would `nest` and `into` wait for each other through a third item? */
static bool would_cycle(const tn__fuser *f, int into, int nest)
{
    for (int i = 0; i < f->item_count; i++)
        if (i != into && !f->item[i].dead && tn__set_has(f->item[nest].needs, i) && tn__set_has(f->item[i].needs, into))
            return true;
    return tn__set_has(f->item[into].needs, nest);
}

static void own(tn__fuser *f, const tn__nest *nest, int item)
{
    for (int t = 0; t < nest->target_count; t++)
        f->base.owner[nest->target[t]] = item;
}

/* Everybody that needs either of the two now needs what both need. */
static void join_needs(tn__fuser *f, int into, int nest)
{
    for (int w = 0; w < f->words; w++)
        f->item[into].needs[w] |= f->item[nest].needs[w];
    f->item[into].needs[into / 64] &= ~((uint64_t)1 << (into % 64));
    for (int i = 0; i < f->item_count; i++) {
        if (i == into || f->item[i].dead)
            continue;
        if (!tn__set_has(f->item[i].needs, into) && !tn__set_has(f->item[i].needs, nest))
            continue;
        f->item[i].needs[nest / 64] &= ~((uint64_t)1 << (nest % 64));
        tn__set_add(f->item[i].needs, into);
        for (int w = 0; w < f->words; w++)
            f->item[i].needs[w] |= f->item[into].needs[w];
    }
}

/* Would a sum over rows keep a product from being computed in the blocks of the one before it? It is better done
 * later. */
static bool holds_back(const tn__fuser *f, const tn__nest *a, const tn__nest *b)
{
    const tn__nest *next = a->product.there ? a : b, *sum = a->product.there ? b : a;
    if (!next->product.there || next->product.row_loop < 0 || !(sum->reduced >> next->product.row_loop & 1))
        return false;
    int first = f->item_of[next->access[next->product.access[0]].value];
    return first >= 0 && f->item[first].nest && tn__product_goes_on(f->item[first].nest, next, f->device);
}

/* A number that only the next run needs, such as where its minibatch begins: on a GPU it is computed early (see
 * launches.c), not along with what comes late. */
static bool is_ahead(const tn__fuser *f, int i)
{
    if (!tn__on_gpu(f->device) || tn__nest_points(f->item[i].nest) != 1)
        return false;
    for (int w = 0; w < f->words; w++)
        if (f->item[i].needs[w])
            return false;
    for (int k = 0; k < f->item_count; k++)
        if (!f->item[k].dead && tn__set_has(f->item[k].needs, i))
            return false;
    return true;
}

/* Tries to run the targets of item `nest` in the loops of item `into`. */
static tn__built merge(tn__fuser *f, int into, int nest)
{
    tn__nest *a = f->item[into].nest, *b = f->item[nest].nest;
    const tn__nest *wide = row_loops(a, b) ? b : a;
    tn__nest *both = tn__calloc(1, sizeof *both);
    if (!both)
        return TN__BUILT_NO_MEMORY;
    both->number = into;
    both->loop_count = wide->loop_count;
    memcpy(both->extent, wide->extent, sizeof both->extent);
    both->reduced = a->reduced | b->reduced;
    if (wide == a && !tn__nest_same_loops(a, b))
        both->reduced = a->reduced;
    if (wide == b)
        both->reduced = b->reduced;
    both->last_kept = both->loop_count && !(both->reduced >> (both->loop_count - 1) & 1);
    tn__built built = TN__BUILT_NO_MEMORY;
    bool added = true;
    for (int t = 0; t < a->target_count && added; t++)
        added = tn__nest_add_target(both, a->target[t]);
    for (int t = 0; t < b->target_count && added; t++)
        added = tn__nest_add_target(both, b->target[t]);
    if (added) {
        own(f, b, into);
        built = tn__nest_build(&f->base, both);
        if (built == TN__BUILT && (both->expr_count > MAX_EXPRESSIONS || both->access_count > MAX_ACCESSES ||
                                   tn__pieces_rather(&f->device->capabilities, both)))
            built = TN__BUILT_MISFIT;
    }
    if (built != TN__BUILT) {
        own(f, b, nest);
        tn__nest_free(both);
        tn__free(both);
        return built;
    }
    for (int t = 0; t < b->target_count; t++)
        f->item_of[b->target[t]] = into;
    tn__nest_free(a);
    tn__free(a);
    tn__nest_free(b);
    tn__free(b);
    f->item[into].nest = both;
    f->item[nest].nest = NULL;
    join_needs(f, into, nest);
    f->item[nest].dead = true;
    return TN__BUILT;
}

bool tn__merge_nests(tn__fuser *f)
{
    for (int i = 1; i < f->item_count; i++) {
        if (!f->item[i].nest)
            continue;
        for (int k = i - 1, tried = 0; k >= 0 && tried < LOOK_BACK; k--) {
            tried += f->item[k].nest != NULL;
            if (!f->item[k].nest || !domains_fit(f->item[k].nest, f->item[i].nest) || !related(f, k, i) ||
                would_cycle(f, k, i) || tn__apart(f, f->item[k].nest, f->item[i].nest) ||
                holds_back(f, f->item[k].nest, f->item[i].nest) || is_ahead(f, k) != is_ahead(f, i))
                continue;
            tn__built built = merge(f, k, i);
            if (built == TN__BUILT_NO_MEMORY)
                return false;
            if (built == TN__BUILT)
                break;
        }
    }
    return true;
}
