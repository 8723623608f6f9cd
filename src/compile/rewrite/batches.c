/* SPDX-License-Identifier: MIT */
/*
 * Batches of products in one call: a library takes matrices that lie at equal distances. Those of attention's heads do
 * not, as they are views of rows that hold all heads; so such an operand is copied, once for all products that read it
 * or its transpose. The copy is an elementwise value: what computes the operand stores it this way in the first place,
 * unless somebody needs it the other way, too.
 */

#include "compile/rewrite/rewrite.h"

#include "compile/ir/draft.h"
#include "core/memory.h"
#include "device/device.h"

#include <string.h>

#define FEW_CALLS 4                   /* are not worth it */
#define LARGE     ((int64_t)1 << 30)  /* multiplications of a call that fills the chip by itself */

typedef struct packed {
    tn__window window; /* of the old graph */
    int value;         /* of the new one */
} packed;

typedef struct packer {
    const tn__graph *from;
    tn__graph to;
    int *number; /* of each old value, in the new graph */
    packed *list;
    int count;
    size_t capacity;
} packer;

/* The axis of the batch that lies inside of axis d; extents of 1 do not count. -1: there is none. */
static int inside(const tn__window *w, int d)
{
    do
        d++;
    while (d < w->ndim - 2 && w->dim[d] == 1);
    return d < w->ndim - 2 ? d : -1;
}

/* May axis d and the one inside of it be one? */
static bool merges(const tn__window *w, int d)
{
    int in = inside(w, d);
    return in < 0 || w->dim[d] == 1 || w->stride[d] == w->stride[in] * w->dim[in];
}

static bool is_one_batch(const tn__window *w)
{
    for (int d = 0; d < w->ndim - 2; d++)
        if (!merges(w, d))
            return false;
    return true;
}

/* Are elements read several times? Then a copy would be larger than what it is of. */
static bool repeats(const tn__window *w)
{
    for (int d = 0; d < w->ndim; d++)
        if (w->dim[d] > 1 && w->stride[d] == 0)
            return true;
    return false;
}

/* Calls of the library for the operands as they are. */
static int64_t calls(const tn__window *w)
{
    int64_t outer = 1;
    bool open = true;
    for (int d = w->ndim - 3; d >= 0; d--) {
        open = open && merges(&w[0], d) && merges(&w[1], d);
        outer *= open ? 1 : w->dim[d];
    }
    return outer;
}

/* Fills in the windows of a product's operands; whether some are to be copied. */
static bool is_scattered(const packer *p, const tn__value *v, tn__window *w)
{
    int blocked;
    for (int i = 0; i < 2; i++)
        if (!tn__window_of(p->from, v->in[i], NULL, &w[i], &blocked) || w[i].ndim != v->shape->ndim)
            return false;
    int64_t outer = calls(w), k = w[0].dim[w[0].ndim - 1];
    if (outer < FEW_CALLS || v->shape->size * k / outer > LARGE)
        return false;
    return (is_one_batch(&w[0]) || !repeats(&w[0])) && (is_one_batch(&w[1]) || !repeats(&w[1]));
}

static int add(packer *p, tn__op op, int in, const tn__window *w, const uint8_t *perm)
{
    tn__value value = {.op = op, .dtype = p->to.value[in].dtype, .arity = 1, .in = {in}, .leaf = -1, .scalar = -1};
    if (perm)
        memcpy(value.attr.perm, perm, sizeof value.attr.perm);
    value.shape = tn__shape_intern(w->ndim, w->dim);
    return value.shape ? tn__graph_add(&p->to, &value) : -1;
}

static void swap(tn__window *w)
{
    int64_t dim = w->dim[w->ndim - 1], stride = w->stride[w->ndim - 1];
    w->dim[w->ndim - 1] = w->dim[w->ndim - 2];
    w->stride[w->ndim - 1] = w->stride[w->ndim - 2];
    w->dim[w->ndim - 2] = dim;
    w->stride[w->ndim - 2] = stride;
}

static bool is_same(const tn__window *a, const tn__window *b)
{
    size_t bytes = (size_t)a->ndim * sizeof *a->dim;
    return a->base == b->base && a->ndim == b->ndim && a->offset == b->offset && memcmp(a->dim, b->dim, bytes) == 0 &&
           memcmp(a->stride, b->stride, bytes) == 0;
}

/* A copy of what the window reads, whose rows lie as they do there; `value` is the operand in the new graph. */
static int copy_of(packer *p, int value, const tn__window *w)
{
    for (int i = 0; i < p->count; i++)
        if (is_same(&p->list[i].window, w))
            return p->list[i].value;
    int copy = add(p, TN__OP_COPY, value, w, NULL);
    if (copy < 0 || !tn__grow((void **)&p->list, &p->capacity, (size_t)p->count + 1, sizeof *p->list))
        return -1;
    p->list[p->count++] = (packed){*w, copy};
    return copy;
}

/* The operand as one batch. Of a matrix by columns, the transpose is copied. -1 without memory. */
static int pack(packer *p, int value, tn__window w)
{
    uint8_t perm[TN_MAX_NDIM] = {0};
    for (int d = 0; d < w.ndim; d++)
        perm[d] = (uint8_t)(d < w.ndim - 2 ? d : 2 * w.ndim - 3 - d);
    if (w.stride[w.ndim - 2] >= w.stride[w.ndim - 1])
        return copy_of(p, value, &w);
    tn__window as_it_was = w;
    swap(&w);
    value = add(p, TN__OP_PERMUTE, value, &w, perm);
    value = value < 0 ? -1 : copy_of(p, value, &w);
    return value < 0 ? -1 : add(p, TN__OP_PERMUTE, value, &as_it_was, perm);
}

static bool add_value(packer *p, int v, const tn__draft *draft, const tn__device *device)
{
    tn__value value = p->from->value[v];
    tn__window w[2];
    for (int i = 0; i < value.arity; i++)
        value.in[i] = p->number[value.in[i]];
    if (value.op == TN__OP_MATMUL && value.shape->ndim > 3 && tn_dtype_is_float(value.dtype) &&
        draft->policy->leaves_to_library(draft, v, device) && is_scattered(p, &p->from->value[v], w))
        for (int i = 0; i < 2; i++) {
            if (!is_one_batch(&w[i]))
                value.in[i] = pack(p, value.in[i], w[i]);
            if (value.in[i] < 0)
                return false;
        }
    p->number[v] = tn__graph_add(&p->to, &value);
    return p->number[v] >= 0;
}

bool tn__pack_batches(tn__graph *graph, const tn__device *device, const tn__target_policy *policy, int precision)
{
    tn__draft draft = {
        .graph = graph, .precision = precision, .policy = policy}; /* as far as products are asked about */
    packer p = {.from = graph, .number = tn__alloc(sizeof(int) * ((size_t)graph->count + 1))};
    bool done = p.number != NULL;
    for (int v = 0; v < graph->count && done; v++)
        done = add_value(&p, v, &draft, device);
    tn__graph_take(graph, &p.to, p.number, done);
    tn__free(p.list);
    tn__free(p.number);
    return done;
}
