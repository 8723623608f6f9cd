/* SPDX-License-Identifier: MIT */
/* Nests: their domains and targets, what they hold, loops that become one. */
#include "compile/loops/nest.h"

#include "array/user.h"
#include "core/memory.h"

#include <string.h>

/* ---- domains ---- */

static const tn__shape *domain_shape(const tn__graph *graph, int value)
{
    const tn__value *v = &graph->value[value];
    return tn__value_kind(v) == TN__KIND_REDUCE ? graph->value[v->in[0]].shape : v->shape;
}

bool tn__nest_add_target(tn__nest *nest, int value)
{
    if (!tn__grow((void **)&nest->target, &nest->target_capacity, (size_t)nest->target_count + 1, sizeof(int)))
        return false;
    int at = nest->target_count++;
    while (at > 0 && nest->target[at - 1] > value) { /* topological order */
        nest->target[at] = nest->target[at - 1];
        at--;
    }
    nest->target[at] = value;
    return true;
}

bool tn__nest_start(const tn__fusion *fusion, int value, tn__nest *nest)
{
    const tn__value *v = &fusion->graph->value[value];
    const tn__shape *shape = domain_shape(fusion->graph, value);
    memset(nest, 0, sizeof *nest);
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->dim[d] == 1)
            continue;
        if (tn__value_kind(v) == TN__KIND_REDUCE && v->attr.axes >> d & 1)
            nest->reduced |= 1u << nest->loop_count;
        nest->extent[nest->loop_count++] = shape->dim[d];
    }
    nest->last_kept = nest->loop_count && !(nest->reduced >> (nest->loop_count - 1) & 1);
    return tn__nest_add_target(nest, value);
}

int64_t tn__nest_points(const tn__nest *nest)
{
    int64_t n = 1;
    for (int l = 0; l < nest->loop_count; l++)
        n *= nest->extent[l];
    return n;
}

int64_t tn__nest_rows(const tn__nest *nest)
{
    int64_t n = 1;
    for (int l = 0; l < nest->loop_count; l++)
        n *= nest->reduced >> l & 1 ? 1 : nest->extent[l];
    return n;
}

bool tn__nest_same_loops(const tn__nest *a, const tn__nest *b)
{
    return a->loop_count == b->loop_count &&
           memcmp(a->extent, b->extent, sizeof *a->extent * (size_t)a->loop_count) == 0;
}

void tn__nest_drop_store(tn__nest *nest, int value)
{
    int kept = 0;
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].value != value)
            nest->store[kept++] = nest->store[s];
        else
            nest->access[nest->store[s].access].value = -1;
    nest->store_count = kept;
}

void tn__nest_clear(tn__nest *nest)
{
    nest->product.there = false;
    nest->expr_count = nest->access_count = nest->reduction_count = nest->store_count = nest->memo_count = 0;
}

void tn__nest_free(tn__nest *nest)
{
    tn__free(nest->target);
    tn__free(nest->expr);
    tn__free(nest->access);
    tn__free(nest->reduction);
    tn__free(nest->store);
    tn__free(nest->memo);
    memset(nest, 0, sizeof *nest);
}

/* ---- collapsing loops ---- */

static bool walks_as_one(const tn__nest *nest, int l)
{
    if ((nest->reduced >> l & 1) != (nest->reduced >> (l + 1) & 1) ||
        (nest->product.there && l + 1 == nest->product.column_loop))
        return false;
    for (int i = 0; i < nest->access_count; i++) {
        const tn__access *a = &nest->access[i];
        bool dropped = a->kind == TN__ACCESS_STORE && a->value < 0;
        if (!dropped && a->stride[l] != a->stride[l + 1] * nest->extent[l + 1])
            return false;
    }
    return true;
}

/* Drops bit l of a set of loops and closes the gap. */
static uint32_t without_bit(uint32_t set, int l) { return (set & ((1u << l) - 1)) | (set >> (l + 1)) << l; }

static void merge_loops(tn__nest *nest, int l)
{
    nest->extent[l] *= nest->extent[l + 1];
    for (int i = 0; i < nest->access_count; i++) {
        int64_t *s = nest->access[i].stride;
        s[l] = s[l + 1];
        memmove(&s[l + 1], &s[l + 2], sizeof *s * (size_t)(TN__MAX_LOOPS - l - 2));
        s[TN__MAX_LOOPS - 1] = 0;
    }
    memmove(&nest->extent[l + 1], &nest->extent[l + 2], sizeof(int64_t) * (size_t)(TN__MAX_LOOPS - l - 2));
    nest->reduced = without_bit(nest->reduced, l + 1);
    for (int e = 0; e < nest->expr_count; e++) {
        uint32_t loops = nest->expr[e].loops;
        loops |= loops >> (l + 1) & 1 ? 1u << l : 0;
        nest->expr[e].loops = without_bit(loops, l + 1);
    }
    nest->loop_count--;
    nest->product.row_loop -= nest->product.row_loop > l;
    nest->product.column_loop -= nest->product.column_loop > l;
}

void tn__nest_collapse(tn__nest *nest)
{
    if (nest->reduced)
        nest->innermost = nest->extent[31 - __builtin_clz(nest->reduced)];
    for (int l = nest->loop_count - 2; l >= 0; l--)
        while (l + 1 < nest->loop_count && walks_as_one(nest, l))
            merge_loops(nest, l);
}
