/* SPDX-License-Identifier: MIT */
/* Building nests: from target values to expressions over affine accesses. */
#include "compile/loops/nest.h"

#include "array/user.h"
#include "core/memory.h"

#include <string.h>

/* ---- expressions ---- */

typedef struct builder {
    const tn__fusion *fusion;
    const tn__graph *graph;
    tn__nest *nest;
    bool no_memory;
} builder;

enum { MISFIT = -1 };

static int no_memory(builder *b)
{
    b->no_memory = true;
    return MISFIT;
}

static int add_expr(builder *b, const tn__expr *expr)
{
    tn__nest *n = b->nest;
    if (!tn__grow((void **)&n->expr, &n->expr_capacity, (size_t)n->expr_count + 1, sizeof *expr))
        return no_memory(b);
    tn__expr *e = &n->expr[n->expr_count];
    *e = *expr;
    for (int i = 0; i < e->arity; i++) {
        e->loops |= n->expr[e->arg[i]].loops;
        e->level = n->expr[e->arg[i]].level > e->level ? n->expr[e->arg[i]].level : e->level;
    }
    return n->expr_count++;
}

/* The access of a window under a map; loops it does not vary with get stride 0. */
static int add_access(builder *b, tn__access_kind kind, int value, tn_dtype dtype, const tn__window *w,
                      const tn__map *map)
{
    tn__nest *n = b->nest;
    if (!tn__grow((void **)&n->access, &n->access_capacity, (size_t)n->access_count + 1, sizeof *n->access))
        return no_memory(b);
    tn__access *a = &n->access[n->access_count];
    *a = (tn__access){.kind = kind, .value = value, .dtype = dtype, .offset = w->offset, .pointwise = true};
    a->early = kind == TN__ACCESS_LOAD && tn__value_is_leaf(&b->fusion->graph->value[value]);
    a->constant = a->early && !b->fusion->graph->leaf[b->fusion->graph->value[value].leaf].donatable;
    for (int d = 0; d < w->ndim; d++) {
        a->offset += map->offset[d] * w->stride[d];
        if (map->loop[d] >= 0)
            a->stride[map->loop[d]] += map->coefficient[d] * w->stride[d];
    }
    return n->access_count++;
}

static uint32_t access_loops(const tn__access *a)
{
    uint32_t loops = 0;
    for (int l = 0; l < TN__MAX_LOOPS; l++)
        loops |= a->stride[l] ? 1u << l : 0;
    return loops;
}

static int evaluate(builder *b, int v, const tn__map *map);

/* Whose memory v is read from: its own or, of a view, that of the first below it which is stored or no view. */
static int read_from(const builder *b, int v)
{
    while (tn__value_kind(&b->graph->value[v]) == TN__KIND_VIEW && !b->fusion->stored[v])
        v = b->graph->value[v].in[0];
    return v;
}

static int memoized(const builder *b, int v, const tn__map *map)
{
    for (int i = b->nest->memo_count; i-- > 0;) {
        const tn__memo *m = &b->nest->memo[i];
        if (m->value == v && tn__map_equal(&m->map, map, b->graph->value[v].shape->ndim))
            return m->expr;
    }
    return MISFIT;
}

static bool memoize(builder *b, int v, const tn__map *map, int expr)
{
    tn__nest *n = b->nest;
    if (!tn__grow((void **)&n->memo, &n->memo_capacity, (size_t)n->memo_count + 1, sizeof *n->memo))
        return false;
    n->memo[n->memo_count++] = (tn__memo){v, expr, *map};
    return true;
}

/* An element of v as the window gives it. */
static int load_window(builder *b, int v, const tn__window *w, const tn__map *map)
{
    int access = add_access(b, TN__ACCESS_LOAD, w->base, b->graph->value[v].dtype, w, map);
    if (access < 0)
        return MISFIT;
    return add_expr(b, &(tn__expr){.kind = TN__EXPR_LOAD, .dtype = b->graph->value[v].dtype, .access = access,
                                   .loops = access_loops(&b->nest->access[access])});
}

static int load(builder *b, int v, const tn__map *map)
{
    tn__window w;
    int blocked;
    return tn__window_of(b->graph, v, b->fusion->stored, &w, &blocked) ? load_window(b, v, &w, map) : MISFIT;
}

/* A view's element where what is below the view is in memory; the view itself may be what is to be stored. */
static int load_below(builder *b, int v, const tn__map *map)
{
    tn__window w;
    int blocked;
    return tn__window_below(b->graph, v, b->fusion->stored, &w, &blocked) ? load_window(b, v, &w, map) : MISFIT;
}

/* A target of this nest used by another one: at its own position, its expression; anywhere else they can't share
 * loops. */
static int own_target(builder *b, int v, const tn__map *map)
{
    tn__map own;
    const tn__shape *shape = b->graph->value[v].shape;
    bool reduction = tn__value_kind(&b->graph->value[v]) == TN__KIND_REDUCE && !tn__reduces_nothing(b->graph, v);
    for (int row = reduction; row < 2; row++)
        if (tn__map_identity(b->nest, shape, row, &own) && tn__map_equal(&own, map, shape->ndim))
            return memoized(b, v, &own);
    return MISFIT;
}

static int gather(builder *b, const tn__value *v, const tn__map *map)
{
    int index = evaluate(b, v->in[1], map);
    tn__window w;
    int blocked, axis = v->attr.axis;
    if (index < 0 || !tn__window_of(b->graph, v->in[0], b->fusion->stored, &w, &blocked))
        return MISFIT;
    if (b->fusion->owner[read_from(b, v->in[0])] == b->nest->number)
        return MISFIT;
    tn__map source = *map;
    source.loop[axis] = -1;
    source.offset[axis] = 0;
    int access = add_access(b, TN__ACCESS_LOAD, w.base, v->dtype, &w, &source);
    if (access < 0)
        return MISFIT;
    tn__access *a = &b->nest->access[access];
    a->gathered = true;
    a->known = v->attr.known;
    a->pointwise = false;
    a->gather_stride = w.stride[axis];
    a->gather_extent = w.dim[axis];
    return add_expr(b, &(tn__expr){.kind = TN__EXPR_LOAD,
                                   .dtype = v->dtype,
                                   .access = access,
                                   .arity = 1,
                                   .arg = {index},
                                   .loops = access_loops(a)});
}

/* A raw argument: its whole memory, which is in C order (array/build_user.c sees to it). */
static int raw_argument(builder *b, int v)
{
    tn__window w;
    int blocked;
    if (!tn__window_of(b->graph, v, b->fusion->stored, &w, &blocked) ||
        b->fusion->owner[read_from(b, v)] == b->nest->number)
        return MISFIT;
    tn__map whole = {.loop = {-1, -1, -1, -1, -1, -1, -1, -1}};
    int access = add_access(b, TN__ACCESS_LOAD, w.base, b->graph->value[v].dtype, &w, &whole);
    if (access < 0)
        return MISFIT;
    tn__access *a = &b->nest->access[access];
    a->raw = true;
    a->pointwise = false;
    a->gather_stride = 1;
    a->gather_extent = b->graph->value[v].shape->size;
    return add_expr(b, &(tn__expr){.kind = TN__EXPR_RAW, .dtype = b->graph->value[v].dtype, .access = access});
}

static int user(builder *b, const tn__value *v, const tn__map *map)
{
    tn__expr e = {.kind = TN__EXPR_OP, .op = v->op, .dtype = v->dtype, .arity = v->arity, .user = v->attr.user,
                  .output = v->attr.output};
    for (int i = 0; i < v->arity; i++)
        if ((e.arg[i] = e.user->raw >> i & 1 ? raw_argument(b, v->in[i]) : evaluate(b, v->in[i], map)) < 0)
            return MISFIT;
    return add_expr(b, &e);
}

static int generate(builder *b, const tn__value *v, const tn__map *map)
{
    tn__window dense = {.ndim = v->shape->ndim};
    memcpy(dense.dim, v->shape->dim, sizeof dense.dim);
    tn__strides_contiguous(dense.ndim, dense.dim, dense.stride);
    int access = add_access(b, TN__ACCESS_INDEX, -1, TN_INT64, &dense, map);
    if (access < 0)
        return MISFIT;
    return add_expr(b, &(tn__expr){.kind = TN__EXPR_INDEX, .op = v->op, .dtype = v->dtype, .access = access,
                                   .scalar = v->scalar, .loops = access_loops(&b->nest->access[access])});
}

static bool little(const builder *b, int v, int *steps);

/* The positions that an expression gives are those along k, of which there are `count`. */
static void count_places(tn__nest *nest, int expr, int64_t count)
{
    const tn__expr *e = &nest->expr[expr];
    if (e->kind == TN__EXPR_LOAD) {
        nest->access[e->access].counted = count;
        nest->access[e->access].pointwise = false;
    }
    for (int i = 0; i < e->arity; i++)
        count_places(nest, e->arg[i], count);
}

/* Rows of a minibatch as a product's first factor, or their transpose: read where they are in the dataset, so that the
 * product does not wait for a kernel that gathers them. MISFIT: they are nothing of the kind. */
static int gathered_rows(builder *b, const tn__value *v, const tn__map *map)
{
    const tn__value *first = &b->graph->value[v->in[0]];
    bool by_k = first->op == TN__OP_PERMUTE && first->shape->ndim == 2 && first->attr.perm[0] == 1;
    int rows = by_k ? first->in[0] : v->in[0], blocked, steps = 0;
    const tn__value *in = &b->graph->value[rows];
    tn__window w;
    if (!b->fusion->parallel || tn__value_kind(in) != TN__KIND_GATHER || !in->attr.known || in->attr.axis != 0 ||
        in->shape->ndim != 2 || v->shape->ndim != 2 || map->loop[0] < 0 ||
        (by_k && in->shape->dim[0] > TN__MOST_PLACES) || !little(b, rows, &steps) ||
        !tn__window_of(b->graph, in->in[0], b->fusion->stored, &w, &blocked))
        return MISFIT;
    tn__map lines = *map;
    if (by_k) { /* counted by that variable, which elsewhere counts the product's rows */
        lines.offset[0] = 0;
        lines.coefficient[0] = 1;
    }
    lines.loop[1] = -1;
    lines.offset[1] = 0;
    int index = evaluate(b, in->in[1], &lines),
        access = index < 0 ? MISFIT : add_access(b, TN__ACCESS_LOAD, w.base, in->dtype, &w, &lines);
    if (access < 0)
        return MISFIT;
    tn__access *a = &b->nest->access[access];
    a->offset += (by_k ? map->offset[0] * w.stride[1] : 0) - lines.offset[0] * w.stride[0];
    a->stride[map->loop[0]] = by_k ? map->coefficient[0] * w.stride[1] : w.stride[0];
    a->lines = w.dim[0];
    a->lines_at = index;
    a->by_k = by_k;
    a->factor = true;
    a->pointwise = false;
    a->gather_stride = w.stride[!by_k];
    a->gather_extent = by_k ? in->shape->dim[0] : w.dim[1];
    if (by_k)
        count_places(b->nest, index, a->gather_extent);
    return access;
}

/* The factor number k of a product: a window over all loops but the other factor's, and along k. */
static int factor(builder *b, const tn__value *v, int k, const tn__map *map)
{
    tn__window w;
    tn__map lines = *map;
    int blocked, along = v->shape->ndim - 1 - k, in = v->in[k], rows = k ? MISFIT : gathered_rows(b, v, map);
    if (rows >= 0)
        return rows;
    if (b->fusion->owner[read_from(b, in)] == b->nest->number ||
        !tn__window_of(b->graph, in, b->fusion->stored, &w, &blocked))
        return MISFIT;
    lines.loop[along] = -1;
    lines.offset[along] = 0;
    int access = add_access(b, TN__ACCESS_LOAD, w.base, b->graph->value[in].dtype, &w, &lines);
    if (access < 0)
        return MISFIT;
    tn__access *a = &b->nest->access[access];
    a->factor = true;
    a->pointwise = false;
    a->gather_stride = w.stride[along];
    a->gather_extent = w.dim[along];
    return access;
}

/* A product, the only one of a nest over exactly its elements. */
static int product(builder *b, const tn__value *v, const tn__map *map)
{
    tn__nest_product *p = &b->nest->product;
    int axes = v->shape->ndim, loops = 0;
    for (int d = 0; d < axes; d++)
        loops += map->loop[d] >= 0;
    if (p->there || loops != b->nest->loop_count || (p->access[0] = factor(b, v, 0, map)) < 0 ||
        (p->access[1] = factor(b, v, 1, map)) < 0)
        return MISFIT;
    p->there = true;
    p->dtype = v->dtype;
    p->tensor = v->dtype == TN_FLOAT32 && b->fusion->draft->precision == TN_MATMUL_TF32X3;
    p->row_loop = map->loop[axes - 2];
    p->column_loop = map->loop[axes - 1];
    return add_expr(b, &(tn__expr){.kind = TN__EXPR_PRODUCT, .op = v->op, .dtype = v->dtype,
                                   .loops = (1u << b->nest->loop_count) - 1});
}

/* The expression of v computed afresh from its inputs. */
static int define(builder *b, int v, const tn__map *map)
{
    const tn__value *value = &b->graph->value[v];
    tn__map in;
    switch (tn__value_kind(value)) {
    case TN__KIND_VIEW:
        if (tn__map_through(b->graph, value, map, &in))
            return evaluate(b, value->in[0], &in);
        /* what this nest itself computes is not in memory yet */
        return b->fusion->owner[read_from(b, value->in[0])] == b->nest->number ? MISFIT : load_below(b, v, map);
    case TN__KIND_CONST:
        return add_expr(b, &(tn__expr){.kind = TN__EXPR_SCALAR, .dtype = value->dtype, .scalar = value->scalar});
    case TN__KIND_GENERATE:
        return generate(b, value, map);
    case TN__KIND_GATHER:
        return gather(b, value, map);
    case TN__KIND_MATMUL:
        return product(b, value, map);
    case TN__KIND_MAP: {
        tn__expr e = {.kind = TN__EXPR_OP, .op = value->op, .dtype = value->dtype, .arity = value->arity};
        for (int i = 0; i < value->arity; i++)
            if ((e.arg[i] = evaluate(b, value->in[i], map)) < 0)
                return MISFIT;
        return add_expr(b, &e);
    }
    case TN__KIND_USER:
        return user(b, value, map);
    case TN__KIND_REDUCE: { /* over extents of 1 only; others are targets */
        tn__expr e = {.kind = TN__EXPR_SINGLE, .op = value->op, .dtype = value->dtype, .arity = 1,
                      .user = value->attr.user};
        e.arg[0] = evaluate(b, value->in[0], map);
        return e.arg[0] < 0 || !tn__reduces_nothing(b->graph, v) ? MISFIT : add_expr(b, &e);
    }
    default:
        return MISFIT;
    }
}

#define FEW_GATHERED 8192 /* elements that are gathered again instead of read where they were gathered to */
#define FEW_STEPS 16

/* Positions, leaves, constants, and what little is computed from them. */
static bool little(const builder *b, int v, int *steps)
{
    const tn__value *value = &b->graph->value[v];
    int kind = tn__value_kind(value);
    if (tn__value_is_leaf(value) || kind == TN__KIND_CONST || value->op == TN__OP_IOTA)
        return true;
    if (++*steps > FEW_STEPS ||
        (kind != TN__KIND_VIEW && kind != TN__KIND_MAP && !(kind == TN__KIND_GATHER && value->attr.known)))
        return false;
    for (int i = 0; i < value->arity; i++)
        if (!little(b, value->in[i], steps))
            return false;
    return true;
}

/* A minibatch's labels, say: who needs them does not wait for a kernel that has stored them, too. */
static bool gathered_again(const builder *b, int v)
{
    const tn__value *value = &b->graph->value[v];
    int steps = 0;
    return b->fusion->parallel && tn__value_kind(value) == TN__KIND_GATHER && value->shape->size <= FEW_GATHERED &&
           little(b, v, &steps);
}

static int evaluate(builder *b, int v, const tn__map *map)
{
    const tn__value *value = &b->graph->value[v];
    int expr = memoized(b, v, map), base = read_from(b, v);
    if (expr >= 0)
        return expr;
    if (b->fusion->owner[v] == b->nest->number)
        return own_target(b, v, map);
    bool in_memory = b->fusion->stored[v] || tn__value_is_leaf(value);
    if (tn__value_kind(value) == TN__KIND_VIEW && b->fusion->owner[base] != b->nest->number)
        in_memory = in_memory || ((b->fusion->stored[base] || tn__value_is_leaf(&b->graph->value[base])) &&
                                  b->graph->value[base].op != TN__OP_CONST);
    in_memory = in_memory && value->op != TN__OP_CONST && !gathered_again(b, tn__view_base(b->graph, v));
    expr = in_memory ? load(b, v, map) : define(b, v, map);
    return expr >= 0 && !memoize(b, v, map, expr) ? no_memory(b) : expr;
}

/* ---- targets ---- */

static bool add_store(builder *b, int v, int expr, bool row, const tn__map *map)
{
    tn__nest *n = b->nest;
    tn__window w = {.base = v, .ndim = b->graph->value[v].shape->ndim};
    memcpy(w.dim, b->graph->value[v].shape->dim, sizeof w.dim);
    tn__strides_contiguous(w.ndim, w.dim, w.stride);
    int access = add_access(b, TN__ACCESS_STORE, v, b->graph->value[v].dtype, &w, map);
    if (access < 0 || !tn__grow((void **)&n->store, &n->store_capacity, (size_t)n->store_count + 1, sizeof *n->store))
        return no_memory(b) >= 0;
    n->store[n->store_count++] = (tn__store){v, expr, access, row, n->expr[expr].level};
    return true;
}

static bool add_reduction(builder *b, int v)
{
    const tn__value *value = &b->graph->value[v];
    tn__nest *n = b->nest;
    tn__map all, kept;
    if (!tn__map_identity(n, b->graph->value[value->in[0]].shape, false, &all) ||
        !tn__map_identity(n, value->shape, true, &kept))
        return false;
    int arg = evaluate(b, value->in[0], &all);
    if (arg < 0)
        return false;
    if (!tn__grow((void **)&n->reduction, &n->reduction_capacity, (size_t)n->reduction_count + 1, sizeof *n->reduction))
        return no_memory(b) >= 0;
    int level = n->expr[arg].level;
    n->reduction[n->reduction_count] =
        (tn__reduction){.value = v, .op = value->op, .dtype = b->graph->value[value->in[0]].dtype,
                        .user = value->attr.user, .about_mean = value->attr.about_mean, .arg = arg, .level = level};
    uint32_t kept_loops = ((1u << n->loop_count) - 1) & ~n->reduced;
    int expr = add_expr(b, &(tn__expr){.kind = TN__EXPR_REDUCED, .op = value->op, .dtype = value->dtype,
                                       .reduction = n->reduction_count, .loops = kept_loops, .level = level + 1});
    n->reduction_count++;
    return expr >= 0 && (memoize(b, v, &kept, expr) || no_memory(b) >= 0) && add_store(b, v, expr, true, &kept);
}

static bool add_elementwise(builder *b, int v)
{
    tn__map map;
    const tn__shape *shape = b->graph->value[v].shape;
    bool row = !tn__map_identity(b->nest, shape, false, &map);
    if (row && !tn__map_identity(b->nest, shape, true, &map))
        return false;
    int expr = memoized(b, v, &map);
    if (expr < 0)
        expr = define(b, v, &map);
    if (expr < 0)
        return false;
    return (memoize(b, v, &map, expr) || no_memory(b) >= 0) && add_store(b, v, expr, row, &map);
}

tn__built tn__nest_build(const tn__fusion *fusion, tn__nest *nest)
{
    builder b = {.fusion = fusion, .graph = fusion->graph, .nest = nest};
    tn__nest_clear(nest);
    for (int t = 0; t < nest->target_count; t++) {
        int v = nest->target[t];
        bool reduce = tn__value_kind(&b.graph->value[v]) == TN__KIND_REDUCE && !tn__reduces_nothing(b.graph, v);
        if (!(reduce ? add_reduction(&b, v) : add_elementwise(&b, v)))
            return b.no_memory ? TN__BUILT_NO_MEMORY : TN__BUILT_MISFIT;
    }
    return TN__BUILT;
}
