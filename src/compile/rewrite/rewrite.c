/* SPDX-License-Identifier: MIT */
/*
 * Rewriting: the graph is rebuilt value by value. Equal expressions become one value; a reshape of an elementwise value
 * becomes the elementwise value of reshapes, so that reshapes end at leaves and products, where they cost nothing (what
 * is stored anyway, for a product to read, stays as it is if they would not get there); what
 * is chosen of an array in another dtype becomes that dtype's value of what is chosen, so that the array need not be
 * stored in it; rows that are looked up by a list of indices in another shape are looked up by indices of that shape;
 * what is read of an array of which a part was replaced is read from that part, or from the array before.
 */
#include "compile/rewrite/rewrite.h"

#include "array/user.h"
#include "core/hash.h"
#include "core/memory.h"

#include <string.h>

typedef struct rewriter {
    bool one_pass;        /* sums of squared deviations without their mean first */
    bool last;            /* arrays are going to have their channels last */
    tn__graph to;         /* the new graph; values are numbered as there */
    int depth;            /* of the reshape under way */
    bool *whole;          /* by values of the old graph: needed in memory alone, by libraries, maybe through views */
    int *table;           /* open addressing: 1 + value number */
    uint32_t mask;
} rewriter;

static uint64_t value_hash(const tn__value *v)
{
    uint64_t h = tn__hash_mix((uint64_t)v->op << 8 | (uint64_t)v->dtype, v->shape->id);
    for (int i = 0; i < v->arity; i++)
        h = tn__hash_mix(h, (uint64_t)v->in[i] + 1);
    uint64_t perm;
    memcpy(&perm, v->attr.perm, sizeof perm);
    h = tn__hash_mix(h, (uint64_t)v->attr.axes << 32 | (uint32_t)(v->attr.axis << 1 | v->attr.about_mean));
    h = tn__hash_mix(h, perm ^ (v->attr.ints ? v->attr.ints->id : 0));
    h = tn__hash_mix(h, (uintptr_t)v->attr.user ^ (uint32_t)v->attr.output);
    return tn__hash_mix(h, (uint64_t)(v->leaf + 1) << 32 | (uint32_t)(v->scalar + 1));
}

static bool value_equal(const tn__value *a, const tn__value *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->shape == b->shape && a->leaf == b->leaf &&
           a->scalar == b->scalar && a->strides == b->strides && memcmp(a->in, b->in, sizeof a->in) == 0 &&
           a->attr.user == b->attr.user && a->attr.output == b->attr.output && a->attr.axes == b->attr.axes &&
           a->attr.about_mean == b->attr.about_mean && a->attr.axis == b->attr.axis &&
           a->attr.known == b->attr.known && a->attr.last == b->attr.last && a->attr.ints == b->attr.ints &&
           a->attr.shift == b->attr.shift &&
           memcmp(a->attr.perm, b->attr.perm, sizeof a->attr.perm) == 0;
}

/* The number of this value in the new graph, old or new. -1 without memory. */
static int intern(rewriter *r, const tn__value *v)
{
    uint32_t at = (uint32_t)value_hash(v) & r->mask;
    for (; r->table[at]; at = (at + 1) & r->mask)
        if (value_equal(&r->to.value[r->table[at] - 1], v)) {
            r->to.value[r->table[at] - 1].uses += v->uses;
            return r->table[at] - 1;
        }
    if ((uint32_t)r->to.count * 2 > r->mask)
        return tn__graph_add(&r->to, v); /* a full table only loses sharing */
    int number = tn__graph_add(&r->to, v);
    if (number >= 0)
        r->table[at] = number + 1;
    return number;
}

static int reshaped(rewriter *r, int v, const tn__shape *shape);

/* A leaf in another dtype, which is never worth being stored. */
static bool is_cast_leaf(const rewriter *r, const tn__value *v)
{
    return v->op == TN__OP_CAST && r->to.value[v->in[0]].leaf >= 0;
}

/* Operations in a row that a reshape goes down through: more of them are not computed in one loop anyway. */
#define MAX_RESHAPED 200

/* Reshape of an elementwise or generated value: the same operation over reshaped inputs. */
static int reshaped_map(rewriter *r, int v, const tn__shape *shape)
{
    tn__value copy = r->to.value[v];
    copy.shape = shape;
    copy.uses = 1;
    r->depth++;
    for (int i = 0; i < copy.arity; i++)
        if ((copy.in[i] = reshaped(r, copy.in[i], shape)) < 0)
            return -1;
    r->depth--;
    return intern(r, &copy);
}

static int view_of(rewriter *r, int v, const tn__shape *shape)
{
    while (r->to.value[v].op == TN__OP_RESHAPE && r->to.value[v].shape != shape)
        v = r->to.value[v].in[0];
    if (r->to.value[v].shape == shape)
        return v;
    tn__value view = {.op = TN__OP_RESHAPE, .dtype = r->to.value[v].dtype, .arity = 1, .in = {v}, .shape = shape,
                      .leaf = -1, .scalar = -1, .uses = 1};
    return intern(r, &view);
}

/* An input of an elementwise value, seen as a permuted view of that value is. */
static int permuted(rewriter *r, int v, const tn__value *view)
{
    tn__value value = r->to.value[v];
    if (tn__value_kind(&value) != TN__KIND_CONST) {
        const tn__graph_attr attr = view->attr;
        value = (tn__value){.op = TN__OP_PERMUTE, .dtype = value.dtype, .arity = 1, .in = {v}, .attr = attr,
                            .leaf = -1, .scalar = -1};
    }
    value.shape = view->shape;
    value.uses = 1;
    return intern(r, &value);
}

static bool has_strides(const tn__value *of, const tn__value *view, const tn__shape *shape)
{
    int64_t own[TN_MAX_NDIM], stride[TN_MAX_NDIM], found[TN_MAX_NDIM];
    tn__strides_contiguous(of->shape->ndim, of->shape->dim, own);
    for (int d = 0; d < view->shape->ndim; d++)
        stride[d] = own[view->attr.perm[d]];
    return tn__strides_reshape(view->shape->ndim, view->shape->dim, stride, shape->ndim, shape->dim, found);
}

/* What a reshape is of. An elementwise value whose axes are permuted first would be stored, and copied for the reshape,
 * if no strides express that: it is computed in the permuted order instead. */
static int in_order(rewriter *r, int v, const tn__shape *shape)
{
    const tn__value view = r->to.value[v];
    tn__value map = r->to.value[view.op == TN__OP_PERMUTE ? view.in[0] : v];
    if (view.op != TN__OP_PERMUTE || view.uses != 1 || map.uses != 1 || tn__value_kind(&map) != TN__KIND_MAP ||
        has_strides(&map, &view, shape))
        return v;
    map.shape = view.shape;
    for (int i = 0; i < map.arity; i++)
        if ((map.in[i] = permuted(r, map.in[i], &view)) < 0)
            return -1;
    return intern(r, &map);
}

/* Does a reshape go down through it, and of it? */
static bool is_reshaped(const rewriter *r, const tn__value *v)
{
    int kind = tn__value_kind(v);
    bool map = kind == TN__KIND_MAP || (kind == TN__KIND_USER && !v->attr.user->raw && v->arity > 0);
    bool once = v->uses == 1; /* uses of the old graph, carried along: a value needed in both shapes stays one */
    return map && (once || is_cast_leaf(r, v));
}

/* The axes that a shape has in the place of one of another, which are alike apart from that; 0: they aren't. */
static int axes_for(const tn__shape *from, int axis, const tn__shape *to)
{
    int axes = to->ndim - from->ndim + 1, behind = from->ndim - axis - 1;
    bool alike = axes > 1 && memcmp(from->dim, to->dim, (size_t)axis * sizeof *to->dim) == 0 &&
                 memcmp(from->dim + axis + 1, to->dim + axis + axes, (size_t)behind * sizeof *to->dim) == 0;
    return alike ? axes : 0;
}

/* Reshape of rows that are looked up: the same rows by as many indices in another shape, in as many views of the table
 * as the shape has other axes in the place of that of the indices. */
static int reshaped_gather(rewriter *r, int v, const tn__shape *shape, int axes)
{
    tn__value copy = r->to.value[v], view = {.op = TN__OP_EXPAND, .dtype = copy.dtype, .arity = 1, .leaf = -1,
                                             .scalar = -1, .uses = 1};
    const tn__shape *table = r->to.value[copy.in[0]].shape;
    int64_t dim[TN_MAX_NDIM];
    int axis = copy.attr.axis + axes - 1;
    memcpy(dim, shape->dim, sizeof dim);
    dim[axis] = table->dim[copy.attr.axis];
    view.shape = tn__shape_intern(shape->ndim, dim);
    for (int d = copy.attr.axis; d < axis; d++)
        dim[d] = 1;
    table = tn__shape_intern(shape->ndim, dim);
    view.in[0] = view.shape && table ? view_of(r, copy.in[0], table) : -1;
    copy.in[0] = view.in[0] < 0 ? -1 : intern(r, &view);
    r->depth++;
    copy.in[1] = copy.in[0] < 0 ? -1 : reshaped(r, copy.in[1], shape);
    r->depth--;
    copy.attr.axis = axis;
    copy.shape = shape;
    copy.uses = 1;
    return copy.in[1] < 0 ? -1 : intern(r, &copy);
}

static int reshaped(rewriter *r, int v, const tn__shape *shape)
{
    tn__value value = r->to.value[v];
    if (value.shape == shape)
        return v;
    int kind = tn__value_kind(&value), axes = 0;
    if (kind == TN__KIND_GATHER && value.uses == 1)
        axes = axes_for(value.shape, value.attr.axis, shape);
    if (axes && r->depth < MAX_RESHAPED)
        return reshaped_gather(r, v, shape, axes);
    if ((is_reshaped(r, &value) && r->depth < MAX_RESHAPED) || kind == TN__KIND_CONST || kind == TN__KIND_GENERATE)
        return reshaped_map(r, v, shape);
    if (value.op == TN__OP_RESHAPE)
        return reshaped(r, value.in[0], shape);
    int whole = in_order(r, v, shape);
    return whole < 0 ? -1 : view_of(r, whole, shape);
}

/* Would its reshape end at elementwise values, which would be stored only to be read in another shape? */
static bool gets_stuck(const rewriter *r, int v, int depth)
{
    const tn__value *value = &r->to.value[v];
    int kind = tn__value_kind(value);
    if (kind == TN__KIND_VIEW)
        return gets_stuck(r, value->in[0], depth);
    if (kind != TN__KIND_MAP && kind != TN__KIND_USER)
        return false;
    if (!is_reshaped(r, value) || depth == MAX_RESHAPED)
        return true;
    for (int i = 0; i < value->arity; i++)
        if (gets_stuck(r, value->in[i], depth + 1))
            return true;
    return false;
}

static int reshape(rewriter *r, int old, const tn__value *v)
{
    bool stays = r->whole[old] && gets_stuck(r, v->in[0], 0);
    int whole = stays ? in_order(r, v->in[0], v->shape) : -1;
    if (stays)
        return whole < 0 ? -1 : view_of(r, whole, v->shape);
    return reshaped(r, v->in[0], v->shape);
}

static bool *find_whole(const tn__graph *graph)
{
    bool *whole = tn__alloc((size_t)graph->count + 1);
    if (!whole)
        return NULL;
    memset(whole, true, (size_t)graph->count);
    for (int i = 0; i < graph->result_count; i++)
        whole[graph->result[i]] = false;
    for (int v = graph->count - 1; v >= 0; v--) {
        const tn__value *value = &graph->value[v];
        int kind = tn__value_kind(value);
        for (int i = 0; i < value->arity && value->uses; i++)
            whole[value->in[i]] &= tn__kind_is_library(kind) || (kind == TN__KIND_VIEW && whole[v]);
    }
    return whole;
}

/* Would the cast be stored only to be chosen from? Not a leaf's, and what it is of takes less memory. */
static bool widens(const rewriter *r, const tn__value *v)
{
    return v->op == TN__OP_CAST && tn_dtype_size(r->to.value[v->in[0]].dtype) < tn_dtype_size(v->dtype);
}

/* Elements chosen by indices, of what may be a cast, as of logits of 16 bits. */
static int gathered(rewriter *r, const tn__value *v)
{
    const tn__value cast = r->to.value[v->in[0]];
    if (!is_cast_leaf(r, &cast) && !widens(r, &cast))
        return intern(r, v);
    tn__value chosen = *v, wide = cast;
    chosen.in[0] = cast.in[0];
    chosen.dtype = r->to.value[cast.in[0]].dtype;
    chosen.uses = 1;
    r->to.value[cast.in[0]].uses++;
    r->to.value[v->in[0]].uses--;
    wide.in[0] = intern(r, &chosen);
    wide.shape = v->shape;
    wide.uses = v->uses;
    return wide.in[0] < 0 ? -1 : intern(r, &wide);
}

/* A window, which may be one of what was written into another one; all of that is no window, and a window of one number
 * repeated is that number, as many times as it has elements: it has no array in which a window would lie. */
static int sliced(rewriter *r, const tn__value *v)
{
    tn__value now = *v;
    if (!tn__look_through(&r->to, &now))
        return intern(r, v);
    r->to.value[v->in[0]].uses--;
    const tn__value *from = &r->to.value[now.in[0]];
    if (tn__value_kind(from) == TN__KIND_CONST) {
        tn__value number = *from;
        number.shape = now.shape;
        number.uses = v->uses;
        return intern(r, &number);
    }
    bool all = from->shape == now.shape;
    for (int d = 0; d < now.shape->ndim && all; d++)
        all = now.attr.ints->v[2 * d + 1] == 1 || now.shape->dim[d] == 1;
    r->to.value[now.in[0]].uses += all ? v->uses : 1;
    return all ? now.in[0] : intern(r, &now);
}

static void move_leaves(rewriter *r, tn__graph *graph)
{
    r->to.leaf_count = graph->leaf_count;
    r->to.leaf = graph->leaf;
    r->to.scalar_count = graph->scalar_count;
    r->to.scalar_dtype = graph->scalar_dtype;
    r->to.shift_count = graph->shift_count;
    r->to.result_count = graph->result_count;
    r->to.result = graph->result;
    graph->leaf = NULL;
    graph->scalar_dtype = NULL;
    graph->result = NULL;
}

#define MANY 4194304  /* elements that a GPU should not read twice, */
#define COLUMNS 65536 /* in columns: passes over those are two kernels each */
#define KEPT_ROW 16384 /* elements of a row that it does not: they stay in registers */

/* Is there one number for all that a channel has? */
static bool is_by_channels(const tn__shape *shape, const tn__shape *of)
{
    return of->ndim > 2 && shape->ndim == of->ndim && shape->dim[1] == of->dim[1] && shape->size == of->dim[1];
}

/* Is it the sum of squares of what many float32 numbers differ from their mean by? Kernels of a GPU find it by one
 * pass, which takes more instructions than the two that input 0 is. */
static bool in_one_pass(const rewriter *r, const tn__value *v)
{
    const tn__value *x = &r->to.value[v->in[v->arity - 1]];
    bool columns = r->last && is_by_channels(v->shape, x->shape);
    if (!r->one_pass || v->op != TN__OP_DEVIATIONS || x->dtype != TN_FLOAT32 ||
        x->shape->size < (columns ? COLUMNS : MANY) || v->shape->size == 0 ||
        v->shape == x->shape) /* of one number each, which a reduction hands on as it is */
        return false;
    if (columns)
        return true;
    int last = x->shape->ndim - 1;
    while (last > 0 && x->shape->dim[last] == 1)
        last--;
    bool row = v->shape->dim[last] != x->shape->dim[last];
    return !row || x->shape->size / v->shape->size > KEPT_ROW;
}

/* A node that is its input 0: only backward knows the difference. */
static int custom(rewriter *r, const tn__value *v)
{
    if (in_one_pass(r, v)) {
        const tn__shape *shape = r->to.value[v->in[1]].shape;
        tn__value sum = {.op = TN__OP_SUM, .dtype = v->dtype, .arity = 1, .in = {v->in[1]}, .shape = v->shape,
                         .attr.about_mean = true, .leaf = -1, .scalar = -1, .uses = v->uses};
        for (int d = 0; d < shape->ndim; d++)
            sum.attr.axes |= (uint32_t)(shape->dim[d] != v->shape->dim[d]) << d;
        r->to.value[v->in[0]].uses--;
        return intern(r, &sum);
    }
    r->to.value[v->in[0]].uses += v->uses - 1;
    for (int i = 1; i < v->arity; i++)
        r->to.value[v->in[i]].uses--;
    return v->in[0];
}

bool tn__rewrite(tn__graph *graph, bool one_pass)
{
    tn__graph_count_uses(graph);
    rewriter r = {.one_pass = one_pass, .last = tn__any_channels_last(graph), .mask = 63, .whole = find_whole(graph)};
    while (r.mask < (uint32_t)graph->count * 4)
        r.mask = r.mask * 2 + 1;
    r.table = tn__calloc((size_t)r.mask + 1, sizeof *r.table);
    int *number = tn__alloc(sizeof(int) * ((size_t)graph->count + 1));
    bool done = r.table && r.whole && number;
    for (int v = 0; v < graph->count && done; v++) {
        tn__value value = graph->value[v];
        if (!value.uses)
            continue;
        for (int i = 0; i < value.arity; i++)
            value.in[i] = number[value.in[i]];
        int kind = tn__value_kind(&value);
        number[v] = kind == TN__KIND_CUSTOM || kind == TN__KIND_TIED ? custom(&r, &value)
                    : value.op == TN__OP_RESHAPE                     ? reshape(&r, v, &value)
                    : kind == TN__KIND_GATHER                        ? gathered(&r, &value)
                    : value.op == TN__OP_SLICE                       ? sliced(&r, &value)
                                                                     : intern(&r, &value);
        done = number[v] >= 0;
    }
    if (done) {
        for (int i = 0; i < graph->result_count; i++)
            graph->result[i] = number[graph->result[i]];
        move_leaves(&r, graph);
        tn__graph_free(graph);
        *graph = r.to;
        tn__graph_count_uses(graph);
        done = tn__drop_second_looks(graph);
    } else {
        tn__graph_free(&r.to);
    }
    tn__free(number);
    tn__free(r.whole);
    tn__free(r.table);
    return done;
}
