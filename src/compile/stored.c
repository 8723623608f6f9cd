/* SPDX-License-Identifier: MIT */
/* Which values are stored: what results, libraries, reductions and repeated use need. The rest is computed where it is
 * used. */
#include "compile/fuse.h"

#include "array/user.h"

#include <string.h>

#define MAX_INLINED 96  /* operations computed inside another value's loop */
#define MAX_REPEATED 8  /* operations worth computing again for each of several users */

static bool is_library(int kind)
{
    return kind == TN__KIND_MATMUL || kind == TN__KIND_SCATTER || kind == TN__KIND_UPDATE ||
           kind == TN__KIND_TRANSFER || kind == TN__KIND_ROWS || kind == TN__KIND_LIBRARY;
}

/* What is read through a window must be in memory. */
static void store_base(tn__fuser *f, int v)
{
    int base = tn__view_base(f->graph, v);
    f->base.stored[base] = true;
}

static bool is_unit_reshape(const tn__graph *graph, const tn__value *v)
{
    const tn__shape *a = graph->value[v->in[0]].shape, *b = v->shape;
    int i = 0, k = 0;
    for (;;) {
        while (i < a->ndim && a->dim[i] == 1)
            i++;
        while (k < b->ndim && b->dim[k] == 1)
            k++;
        if (i == a->ndim || k == b->ndim)
            return i == a->ndim && k == b->ndim;
        if (a->dim[i++] != b->dim[k++])
            return false;
    }
}

static void store_what_is_read(tn__fuser *f)
{
    const tn__graph *graph = f->graph;
    for (int r = 0; r < graph->result_count; r++)
        store_base(f, graph->result[r]);
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        if (!value->uses)
            continue;
        int kind = tn__value_kind(value);
        if (is_library(kind)) {
            f->base.stored[v] = true;
            for (int i = 0; i < value->arity; i++)
                store_base(f, value->in[i]);
        } else if (kind == TN__KIND_GATHER) {
            store_base(f, value->in[0]);
        } else if (kind == TN__KIND_USER) {
            for (int i = 0; i < value->arity; i++)
                if (value->attr.user->raw >> i & 1)
                    store_base(f, value->in[i]);
        } else if (kind == TN__KIND_REDUCE) {
            f->base.stored[v] = f->base.stored[v] || !tn__reduces_nothing(graph, v);
        } else if (value->op == TN__OP_RESHAPE && !is_unit_reshape(graph, value)) {
            store_base(f, v);
        }
    }
}

/* Stores what is needed several times and costly, and cuts expressions that grow too long. */
static bool store_repeated(tn__fuser *f, bool fusion)
{
    const tn__graph *graph = f->graph;
    int *weight = tn__calloc((size_t)graph->count + 1, sizeof(int));
    bool *costly = tn__calloc((size_t)graph->count + 1, sizeof(bool));
    bool done = weight && costly;
    for (int v = 0; v < graph->count && done; v++) {
        const tn__value *value = &graph->value[v];
        int kind = tn__value_kind(value);
        if (!value->uses || tn__value_is_leaf(value) || kind == TN__KIND_CONST)
            continue;
        bool computes = kind == TN__KIND_MAP || kind == TN__KIND_USER || kind == TN__KIND_GATHER ||
                        kind == TN__KIND_REDUCE || (kind == TN__KIND_GENERATE && value->op != TN__OP_IOTA);
        for (int i = 0; i < value->arity && !f->base.stored[v]; i++) {
            int in = value->in[i];
            weight[v] += f->base.stored[in] ? 0 : weight[in];
            costly[v] = costly[v] || (!f->base.stored[in] && costly[in]);
        }
        weight[v] += computes;
        costly[v] = costly[v] || kind == TN__KIND_GATHER || kind == TN__KIND_USER ||
                    (kind == TN__KIND_GENERATE && computes) || tn__ops[value->op].props & TN_EXPENSIVE;
        if (!computes)
            continue;
        if (!fusion || weight[v] > MAX_INLINED || (value->uses > 1 && (costly[v] || weight[v] > MAX_REPEATED)))
            f->base.stored[v] = true;
    }
    tn__free(weight);
    tn__free(costly);
    return done;
}

bool tn__choose_stored(tn__fuser *fuser, bool fusion)
{
    store_what_is_read(fuser);
    return store_repeated(fuser, fusion);
}
