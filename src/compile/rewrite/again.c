/* SPDX-License-Identifier: MIT */
/*
 * What is computed again. A value that a library or a window reads is in memory, and whoever needs it much later reads
 * it there. Where it is little work on one other array that is there until then, too, those compute it anew: a layer's
 * gradient reads what is normalized for its statistics, and need not also read the normalized values to know which of
 * them were above zero; these may be let go sooner. Bits are the same, as each operation's are wherever it is fused.
 */
#include "compile/rewrite/rewrite.h"

#include "core/memory.h"

#define FEW  16 /* times fewer elements cost nothing beside */
#define MOST 8  /* operations that are done again */

/* Products and the like lie one behind another; `made`: how many up to a value. `needed` and `last`: behind how many it
 * is first and last read where something that is kept is made of it, by whoever reads what it becomes otherwise. */
typedef struct place {
    bool kept;
    int made, needed, last, again; /* again: its copy in the new graph, -1: none yet */
} place;

typedef struct passes {
    const tn__graph *from;
    int64_t least; /* elements of what is worth it */
    tn__graph to;
    place *place;
    int *number;
} passes;

static bool is_view(const tn__value *v) { return tn__value_kind(v) == TN__KIND_VIEW; }

/* What is in memory for its readers' sake. */
static void keep_what_is_read(passes *p)
{
    const tn__graph *graph = p->from;
    for (int r = 0; r < graph->result_count; r++)
        p->place[tn__view_base(graph, graph->result[r])].kept = true;
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        int kind = tn__value_kind(value);
        p->place[v].kept |= tn__value_is_leaf(value) || kind == TN__KIND_REDUCE || tn__kind_is_library(kind);
        for (int i = 0; i < value->arity && value->uses && tn__kind_is_library(kind); i++)
            p->place[tn__view_base(graph, value->in[i])].kept = true;
        if (value->uses && value->op == TN__OP_WINDOWS)
            p->place[tn__view_base(graph, v)].kept = true;
    }
}

static void find_places(passes *p)
{
    const tn__graph *graph = p->from;
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        place *at = &p->place[v];
        *at = (place){.needed = INT32_MAX, .again = -1};
        for (int i = 0; i < value->arity; i++) {
            int in = value->in[i], made = p->place[in].made + tn__kind_is_library(tn__value_kind(&graph->value[in]));
            at->made = made > at->made ? made : at->made;
        }
    }
    keep_what_is_read(p);
    for (int v = graph->count - 1; v >= 0; v--) {
        const tn__value *value = &graph->value[v];
        const place *at = &p->place[v];
        int first = at->kept || at->needed == INT32_MAX ? at->made : at->needed;
        int last = at->kept || at->last < at->made ? at->made : at->last;
        for (int i = 0; i < value->arity && value->uses; i++) {
            place *in = &p->place[value->in[i]];
            in->needed = first < in->needed ? first : in->needed;
            in->last = last > in->last ? last : in->last;
        }
    }
}

/* How a value is made of what is kept: counts its operations, and finds the one large array. */
typedef struct making {
    int64_t size;
    int operations, array; /* array: -1: none so far */
    bool simple;
} making;

static void look(const passes *p, int v, making *m)
{
    const tn__value *value = &p->from->value[v];
    int kind = tn__value_kind(value);
    bool large = value->shape->size > m->size / FEW;
    if (!m->simple || kind == TN__KIND_CONST || !(large || p->place[v].kept || is_view(value)))
        return;
    if (p->place[v].kept) {
        m->simple = !large || ((m->array < 0 || m->array == v) && value->shape->size == m->size);
        m->array = large ? v : m->array;
        return;
    }
    m->operations += kind == TN__KIND_MAP && value->op != TN__OP_CAST; /* which is one instruction, or part of one */
    m->simple = (kind == TN__KIND_MAP && !(tn__ops[value->op].props & TN_EXPENSIVE)) || is_view(value);
    m->simple = m->simple && m->operations <= MOST;
    for (int i = 0; i < value->arity; i++)
        look(p, value->in[i], m);
}

/* Is v kept for others, and made by little work of one array that is there as long as `user` needs it? */
static bool is_made_again(const passes *p, int v, int user)
{
    const tn__value *value = &p->from->value[v], *of = &p->from->value[user];
    const place *at = &p->place[v], *by = &p->place[user];
    if (!at->kept || tn__value_kind(value) != TN__KIND_MAP || value->shape->size < p->least ||
        tn__value_kind(of) != TN__KIND_MAP || by->kept || by->needed <= at->made)
        return false;
    making m = {.size = value->shape->size, .operations = 1, .array = -1, .simple = true};
    m.simple = !(tn__ops[value->op].props & TN_EXPENSIVE);
    for (int i = 0; i < value->arity; i++)
        look(p, value->in[i], &m);
    return m.simple && m.array >= 0 && p->place[m.array].last >= by->last;
}

static bool add(passes *p, int v)
{
    tn__value value = p->from->value[v];
    for (int i = 0; i < value.arity; i++) {
        int in = value.in[i];
        value.in[i] = p->number[in];
        if (!value.uses || !is_made_again(p, in, v))
            continue;
        tn__value copy = p->from->value[in];
        for (int k = 0; k < copy.arity; k++)
            copy.in[k] = p->number[copy.in[k]];
        if (p->place[in].again < 0)
            p->place[in].again = tn__graph_add(&p->to, &copy);
        if ((value.in[i] = p->place[in].again) < 0)
            return false;
    }
    p->number[v] = tn__graph_add(&p->to, &value);
    return p->number[v] >= 0;
}

bool tn__make_again(tn__graph *graph, int64_t least)
{
    passes p = {.from = graph,
                .least = least,
                .place = tn__calloc((size_t)graph->count + 1, sizeof *p.place),
                .number = tn__alloc(sizeof(int) * ((size_t)graph->count + 1))};
    bool done = p.place && p.number;
    if (done)
        find_places(&p);
    for (int v = 0; v < graph->count && done; v++)
        done = add(&p, v);
    tn__graph_take(graph, &p.to, p.number, done);
    tn__free(p.place);
    tn__free(p.number);
    return done;
}
