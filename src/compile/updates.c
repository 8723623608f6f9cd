/* SPDX-License-Identifier: MIT */
/*
 * Keeping what may fail apart from what overwrites, for devices whose runs fail after they have returned. By then
 * whoever started the run has let go of the old values, so a result that is to take over a leaf's memory must do so
 * even where indices may be out of range: it must not come from a kernel that reads through such indices, and it comes
 * after all of these.
 */
#include "compile/fuse.h"

#define SEARCH 64 /* values looked at: as far as the memory plan looks for a leaf */

/* Whether the memory plan may give this result the memory of a leaf that it is computed from. */
static bool updates(const tn__graph *graph, int result)
{
    int queue[SEARCH], count = 0;
    queue[count++] = result;
    for (int at = 0; at < count; at++) {
        const tn__value *v = &graph->value[queue[at]];
        int kind = tn__value_kind(v);
        if (v->leaf >= 0 && graph->leaf[v->leaf].donatable)
            return true;
        if (kind == TN__KIND_MAP || kind == TN__KIND_UPDATE || kind == TN__KIND_SCATTER)
            for (int i = 0; i < v->arity && count < SEARCH; i++)
                queue[count++] = v->in[i];
    }
    return false;
}

bool tn__mark_updates(tn__fuser *f)
{
    const tn__graph *graph = f->graph;
    if (!f->device->capabilities.late_failures)
        return true;
    f->updates = tn__calloc((size_t)graph->count + 1, sizeof(bool));
    if (!f->updates)
        return false;
    bool any = false;
    for (int r = 0; r < graph->result_count; r++) {
        int v = tn__view_base(graph, graph->result[r]);
        f->updates[v] = updates(graph, v);
        any = any || f->updates[v];
    }
    /* Stored, what is read through an index is computed by a nest of its own, not by its users'. */
    for (int v = 0; v < graph->count && any; v++)
        if (tn__value_kind(&graph->value[v]) == TN__KIND_GATHER && !graph->value[v].attr.known && graph->value[v].uses)
            f->base.stored[v] = true;
    return true;
}

static bool may_fail(const tn__nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].gathered && !nest->access[i].known)
            return true;
    return false;
}

static bool overwrites(const tn__fuser *f, const tn__nest *nest)
{
    for (int t = 0; t < nest->target_count; t++)
        if (f->updates[nest->target[t]])
            return true;
    return false;
}

bool tn__apart(const tn__fuser *f, const tn__nest *a, const tn__nest *b)
{
    return f->updates && ((may_fail(a) && overwrites(f, b)) || (overwrites(f, a) && may_fail(b)));
}

static bool item_may_fail(const tn__fuser *f, const tn__item *item)
{
    return item->nest ? may_fail(item->nest) : tn__value_kind(&f->graph->value[item->value]) == TN__KIND_SCATTER;
}

static bool failing(const tn__fuser *f, int i, const uint64_t *done)
{
    return !f->item[i].dead && !tn__set_has(done, i) && item_may_fail(f, &f->item[i]);
}

bool tn__failing_left(const tn__fuser *f, const uint64_t *done)
{
    for (int i = 0; i < f->item_count && f->updates; i++)
        if (failing(f, i, done))
            return true;
    return false;
}

bool tn__must_wait(const tn__fuser *f, int item, const uint64_t *done)
{
    const tn__item *own = &f->item[item];
    if (!(own->nest ? overwrites(f, own->nest) : f->updates[own->value]))
        return false;
    for (int i = 0; i < f->item_count; i++)
        if (i != item && failing(f, i, done) && !tn__set_has(f->item[i].needs, item))
            return true;
    return false;
}
