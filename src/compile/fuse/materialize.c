/* SPDX-License-Identifier: MIT */
/* Which values get memory: results, what libraries read and write, reductions, and what costs more to compute again
 * than to keep. The expressions of all others become part of their users' nests. */
#include "compile/fuse/fuse.h"

#include "array/user.h"
#include "core/memory.h"

#include <string.h>

#define MAX_INLINED 96  /* operations computed inside another value's loop */
#define MAX_REPEATED 8  /* operations worth computing again for each of several users */
#define FEW 16          /* times fewer elements, which cost nothing beside */
#define LARGE (1 << 20) /* a GPU computes so many elements again faster than it writes and reads them */
#define MOST_READ 16    /* different arrays that a value worth computing again is made of */

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
        if (tn__kind_is_library(kind)) {
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
        } else if (value->op == TN__OP_WINDOWS || (value->op == TN__OP_RESHAPE && !is_unit_reshape(graph, value))) {
            store_base(f, v);
        }
    }
}

/* What it takes to compute a value again. */
typedef struct cost {
    int weight;     /* operations, of which those that are used twice may be counted twice */
    int expensive;  /* of them, exp and its like: functions of one float32 number */
    bool costly;    /* what is worse */
} cost;

static bool computes_something(const tn__value *v)
{
    int kind = tn__value_kind(v);
    return kind == TN__KIND_MAP || kind == TN__KIND_USER || kind == TN__KIND_GATHER || kind == TN__KIND_REDUCE ||
           (kind == TN__KIND_GENERATE && v->op != TN__OP_IOTA);
}

static int64_t bytes_of(const tn__value *v) { return v->shape->size * (int64_t)tn_dtype_size(v->dtype); }

/* How many products and the like lie behind one another up to a value, and up to the first and the last of its users:
 * no kernel computes users that such a value lies between. */
typedef struct level {
    int own, first, last;
} level;

static level *find_levels(const tn__graph *graph)
{
    level *level_of = tn__calloc((size_t)graph->count + 1, sizeof *level_of);
    for (int v = 0; v < graph->count && level_of; v++) {
        const tn__value *value = &graph->value[v];
        level_of[v].first = INT32_MAX;
        for (int i = 0; i < value->arity; i++) {
            const level *in = &level_of[value->in[i]];
            int own = in->own + tn__kind_is_library(tn__value_kind(&graph->value[value->in[i]]));
            level_of[v].own = own > level_of[v].own ? own : level_of[v].own;
        }
        for (int i = 0; i < value->arity && value->uses; i++) {
            level *in = &level_of[value->in[i]];
            in->first = level_of[v].own < in->first ? level_of[v].own : in->first;
            in->last = level_of[v].own > in->last ? level_of[v].own : in->last;
        }
    }
    return level_of;
}

/* Lists what is read from memory where a value is computed; false if that is too much to be listed. */
static bool list_read(const tn__fuser *f, int v, int *list, int *count)
{
    const tn__value *value = &f->graph->value[v];
    for (int i = 0; i < value->arity; i++) {
        int in = value->in[i];
        bool known = false;
        if (!f->base.stored[in] && !tn__value_is_leaf(&f->graph->value[in])) {
            if (!list_read(f, in, list, count))
                return false;
            continue;
        }
        for (int k = 0; k < *count; k++)
            known = known || list[k] == in;
        if (!known && *count == MOST_READ)
            return false;
        list[*count] = in;
        *count += !known;
    }
    return true;
}

/* The bytes that are read where a value is computed, each array once; -1: those of too many arrays. */
static int64_t bytes_read(const tn__fuser *f, int v)
{
    int list[MOST_READ + 1], count = 0;
    if (!list_read(f, v, list, &count))
        return -1;
    int64_t bytes = 0, own = bytes_of(&f->graph->value[v]);
    for (int i = 0; i < count; i++) { /* it may read a window of more */
        int64_t read = bytes_of(&f->graph->value[list[i]]);
        bytes += read < own ? read : own;
    }
    return bytes;
}

/* A GPU has an exponential sooner than the bytes of a large array, unless what it is made of is even more of them. */
static bool is_costly(const tn__fuser *f, int v, const cost *c)
{
    int64_t own = bytes_of(&f->graph->value[v]);
    if (c->costly || !c->expensive || !tn__on_gpu(f->device) || f->graph->value[v].shape->size < LARGE)
        return c->costly || c->expensive;
    int64_t read = bytes_read(f, v);
    return c->expensive > (read >= 0 && read <= own + own / 8);
}

/* Is it sooner written and read again than computed again, from more than two arrays of its size, in another kernel? As
 * a sum that goes on from layer to layer is. */
static bool reads_much(const tn__fuser *f, int v, const level *l)
{
    return l->first < l->last && bytes_read(f, v) > 2 * bytes_of(&f->graph->value[v]);
}

/* Does it take more than MAX_REPEATED operations to compute a value of so many elements, each of them counted once, and
 * those of few elements, as of a row's statistics, not at all? */
static bool takes_many(const tn__fuser *f, int v, int64_t size, int *list, int *count)
{
    const tn__value *value = &f->graph->value[v];
    for (int k = 0; k < *count; k++)
        if (list[k] == v)
            return false;
    if (computes_something(value) && value->op != TN__OP_CAST && value->shape->size > size / FEW) {
        if (*count == MAX_REPEATED)
            return true;
        list[(*count)++] = v;
    }
    for (int i = 0; i < value->arity; i++)
        if (!f->base.stored[value->in[i]] && takes_many(f, value->in[i], size, list, count))
            return true;
    return false;
}

/* By value: is it needed for nothing but to say where others are gathered from? */
static bool *find_positions(const tn__graph *graph)
{
    bool *only = tn__alloc((size_t)graph->count + 1);
    if (!only)
        return NULL;
    memset(only, true, (size_t)graph->count);
    for (int r = 0; r < graph->result_count; r++)
        only[graph->result[r]] = false;
    for (int v = graph->count - 1; v >= 0; v--) {
        const tn__value *value = &graph->value[v];
        bool view = tn__value_kind(value) == TN__KIND_VIEW, gather = tn__value_kind(value) == TN__KIND_GATHER;
        for (int i = 0; i < value->arity && value->uses; i++)
            only[value->in[i]] &= (view && only[v]) || (gather && i == 1);
    }
    return only;
}

/* Stores what is needed several times and costly, and cuts expressions that grow too long. */
static bool store_repeated(tn__fuser *f, bool fusion)
{
    const tn__graph *graph = f->graph;
    cost *cost_of = tn__calloc((size_t)graph->count + 1, sizeof *cost_of);
    level *level_of = find_levels(graph);
    bool *positions = find_positions(graph);
    bool done = cost_of && level_of && positions;
    for (int v = 0; v < graph->count && done; v++) {
        const tn__value *value = &graph->value[v];
        int kind = tn__value_kind(value);
        if (!value->uses || tn__value_is_leaf(value) || kind == TN__KIND_CONST)
            continue;
        bool computes = computes_something(value);
        cost *c = &cost_of[v];
        for (int i = 0; i < value->arity && !f->base.stored[v]; i++) {
            const cost *of = &cost_of[value->in[i]];
            bool stored = f->base.stored[value->in[i]];
            c->weight += stored ? 0 : of->weight;
            c->expensive += stored ? 0 : of->expensive;
            c->costly |= !stored && of->costly;
        }
        c->weight += computes;
        bool expensive = tn__ops[value->op].props & TN_EXPENSIVE;
        bool brief = value->arity == 1 && tn__dtypes[value->dtype].compute == TN_FLOAT32;
        c->expensive += expensive && brief;
        c->costly |= kind == TN__KIND_GATHER || kind == TN__KIND_USER || (kind == TN__KIND_GENERATE && computes) ||
                     (expensive && !brief);
        if (!computes)
            continue;
        /* A position that is read from a list, as that of a sample, is read sooner for each array that is gathered from
         * than written by a kernel of its own. */
        bool listed = kind == TN__KIND_GATHER && value->attr.known && positions[v];
        int list[MAX_REPEATED], count = 0;
        bool again =
            value->uses > 1 && !listed &&
            (is_costly(f, v, c) || (c->weight > MAX_REPEATED && takes_many(f, v, value->shape->size, list, &count)) ||
             (kind == TN__KIND_MAP && reads_much(f, v, &level_of[v])));
        if (!fusion || c->weight > MAX_INLINED || again)
            f->base.stored[v] = true;
    }
    tn__free(cost_of);
    tn__free(level_of);
    tn__free(positions);
    return done;
}

/* Divisions and roots take a GPU long, beside a few bytes for each element. No more than so many values are looked at:
 * where values are used twice there are exponentially many ways down, and longer expressions are stored anyway. */
static bool takes_long(const tn__fuser *f, int v, int *looks)
{
    const tn__value *value = &f->graph->value[v];
    if (f->base.stored[v] || tn__value_is_leaf(value) || --*looks < 0)
        return false;
    if (value->op == TN__OP_DIVIDE || value->op == TN__OP_RECIPROCAL || value->op == TN__OP_SQRT ||
        value->op == TN__OP_RSQRT || tn__ops[value->op].props & TN_EXPENSIVE)
        return true;
    for (int i = 0; i < value->arity; i++)
        if (takes_long(f, value->in[i], looks))
            return true;
    return false;
}

/* Is the view one number for each place along its last axis, of a few numbers for much? A kernel that goes along that
 * axis would compute them for each element; what is one number for a row it computes once a row. */
static bool repeats_columns(const tn__fuser *f, int v)
{
    tn__window w;
    int blocked;
    const tn__shape *shape = f->graph->value[v].shape;
    if (shape->size < LARGE || f->graph->value[tn__view_base(f->graph, v)].shape->size > shape->size / FEW ||
        !tn__window_of(f->graph, v, NULL, &w, &blocked))
        return false;
    int last = w.ndim - 1;
    while (last > 0 && w.dim[last] == 1)
        last--;
    return last >= 0 && w.stride[last] != 0;
}

static void store_columns(tn__fuser *f)
{
    for (int v = 0; v < f->graph->count && tn__on_gpu(f->device); v++) {
        const tn__value *value = &f->graph->value[v];
        if (!value->uses || value->op != TN__OP_EXPAND)
            continue;
        int base = tn__view_base(f->graph, v), looks = MAX_INLINED;
        bool map = tn__value_kind(&f->graph->value[base]) == TN__KIND_MAP;
        if (map && takes_long(f, base, &looks) && repeats_columns(f, v))
            f->base.stored[base] = true;
    }
}

bool tn__choose_stored(tn__fuser *fuser, bool fusion)
{
    store_what_is_read(fuser);
    if (fusion)
        store_columns(fuser);
    return store_repeated(fuser, fusion);
}
