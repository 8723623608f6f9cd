/* SPDX-License-Identifier: MIT */
/*
 * Pieces computed where they lie. What is joined is a row of UPDATEs into one array, each of which copies a piece from
 * where it was computed. A piece that nothing else reads is written into its window by the nest that computes it, and
 * the UPDATE copies nothing. So it is with the gradients of a recurrence's gates, side by side, and with those of
 * queries, keys and values. The windows of such an array do not meet and are all of it, so it does not matter when each
 * is written; whoever reads the array needs the last UPDATE, and with it all of the others and their pieces.
 */
#include "compile/fuse/fuse.h"
#include "compile/lower/lower.h"

#include <string.h>

#define SHORTEST 8 /* elements of the last loop: fewer neighbours are sooner copied all at once */

/* The value whose elements, and nobody else's, an UPDATE's piece views; else -1. */
static int piece_of(const tn__fuser *f, int v)
{
    const tn__value *value = &f->graph->value[v];
    for (; tn__value_kind(value) == TN__KIND_VIEW; value = &f->graph->value[v = value->in[0]])
        if (value->uses != 1 || f->base.stored[v])
            return -1;
    return value->uses == 1 && f->base.stored[v] && f->item_of[v] >= 0 ? v : -1;
}

/* The access by which a nest of elements stores v, in loops that are v's axes. */
static tn__access *store_of(const tn__fuser *f, int v, const int64_t *stride)
{
    tn__nest *nest = f->item[f->item_of[v]].nest;
    const tn__shape *shape = f->graph->value[v].shape;
    tn__access *access = NULL;
    if (!nest || nest->reduced || nest->product.there)
        return NULL;
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].value == v && !nest->store[s].row)
            access = &nest->access[nest->store[s].access];
    int loop = 0;
    for (int d = 0; d < shape->ndim && access; d++)
        if (shape->dim[d] != 1) {
            bool same = loop < nest->loop_count && nest->extent[loop] == shape->dim[d] &&
                        access->stride[loop] == stride[d];
            access = same ? access : NULL;
            loop++;
        }
    return access && loop == nest->loop_count && loop > 0 && nest->extent[loop - 1] >= SHORTEST ? access : NULL;
}

/* The axis of a window that goes through v's memory as an axis of v does, by that step; -1: none. */
static int axis_of(const tn__window *w, int64_t extent, int64_t stride)
{
    for (int d = 0; d < w->ndim; d++)
        if (w->dim[d] == extent && w->stride[d] == stride)
            return d;
    return -1;
}

/* Does a window repeat elements of a value of that size, or leave some out? */
static bool shows_each_once(const tn__window *w, int64_t size)
{
    int64_t count = 1;
    for (int d = 0; d < w->ndim; d++)
        count *= w->dim[d];
    return count == size;
}

/* Has the piece of an UPDATE stored where that would copy it, if it can be. */
static void place(tn__fuser *f, int u)
{
    const tn__value *update = &f->graph->value[u];
    int v = piece_of(f, update->in[1]), blocked, loops = 0;
    tn__window w;
    if (v < 0 || !tn__window_of(f->graph, update->in[1], f->base.stored, &w, &blocked) || w.base != v || w.offset)
        return;
    const tn__shape *shape = f->graph->value[v].shape;
    int64_t own[TN_MAX_NDIM], whole[TN_MAX_NDIM], stride[TN__MAX_LOOPS] = {0}, offset = 0;
    tn__strides_contiguous(shape->ndim, shape->dim, own);
    tn__strides_contiguous(update->shape->ndim, update->shape->dim, whole);
    tn__access *access = store_of(f, v, own);
    if (!access || w.ndim != update->shape->ndim || !shows_each_once(&w, shape->size))
        return;
    for (int d = 0; d < w.ndim; d++)
        offset += update->attr.ints->v[2 * d] * whole[d];
    for (int d = 0; d < shape->ndim; d++) {
        int axis = shape->dim[d] == 1 ? -1 : axis_of(&w, shape->dim[d], own[d]);
        if (shape->dim[d] == 1)
            continue;
        if (axis < 0)
            return;
        stride[loops++] = whole[axis] * update->attr.ints->v[2 * axis + 1];
    }
    if (stride[loops - 1] != 1)
        return;
    memcpy(access->stride, stride, sizeof access->stride);
    access->offset = offset;
    f->base.draft->placed[u] = true;
}

void tn__place_pieces(tn__fuser *f)
{
    const tn__graph *graph = f->graph;
    for (int v = 0; v < graph->count; v++) {
        const tn__value *value = &graph->value[v];
        if (value->op != TN__OP_CONST || !f->base.stored[v] || value->uses != 1 || f->base.draft->kept[v])
            continue;
        int last = tn__last_overwriting(graph, v);
        for (int u = v + 1, base = v; u <= last; u++)
            if (graph->value[u].op == TN__OP_UPDATE && graph->value[u].uses && graph->value[u].in[0] == base)
                place(f, base = u);
    }
}
