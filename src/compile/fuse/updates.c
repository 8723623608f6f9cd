/* SPDX-License-Identifier: MIT */
/*
 * Keeping what may fail apart from what overwrites, for devices that tell of a failure after the call which started the
 * run has returned. By then the old values of what the run overwrites have no other copy. So no kernel both reads
 * through indices that may be out of range and writes into a leaf's memory, and those that write there come after all
 * that may fail: a failure then leaves the leaves as they were. And on a GPU, keeping apart what reads little of a
 * large array, so that others can write over it.
 */
#include "compile/fuse/fuse.h"

#define SEARCH 64 /* values looked at: as far as the memory plan looks for a leaf */

/* May the memory plan write this result into the memory of a leaf that it is computed from? */
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
    /* A gather that is stored has a nest of its own, apart from those of its users, which may overwrite. */
    for (int v = 0; v < graph->count && any; v++)
        if (tn__value_kind(&graph->value[v]) == TN__KIND_GATHER && !graph->value[v].attr.known && graph->value[v].uses)
            f->base.stored[v] = true;
    return true;
}

bool tn__may_fail(const tn__nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].gathered && !nest->access[i].known)
            return true;
    return false;
}

bool tn__overwrites(const tn__fuser *f, const tn__nest *nest)
{
    for (int t = 0; t < nest->target_count && f->updates; t++)
        if (f->updates[nest->target[t]])
            return true;
    return false;
}

#define HUGE_BYTES (1 << 26) /* worth a launch more: to read so many takes ten times that long */

/* Does it choose elements by indices of a large array, which others read all of? Alone and before them it leaves them
 * the array to write into (share_temporaries of memory/memory.c), as the gradient of logits into these. */
static bool chooses(const tn__fuser *f, const tn__nest *nest)
{
    for (int i = 0; i < nest->access_count && tn__on_gpu(f->device); i++) {
        const tn__access *a = &nest->access[i];
        const tn__value *v = &f->graph->value[a->value];
        if (a->gathered && v->leaf < 0 && v->uses > 1 &&
            v->shape->size * (int64_t)tn_dtype_size(v->dtype) >= HUGE_BYTES)
            return true;
    }
    return false;
}

bool tn__apart(const tn__fuser *f, const tn__nest *a, const tn__nest *b)
{
    if (f->updates && ((tn__may_fail(a) && tn__overwrites(f, b)) || (tn__overwrites(f, a) && tn__may_fail(b))))
        return true;
    return chooses(f, a) || chooses(f, b);
}

bool tn__item_chooses(const tn__fuser *f, int i) { return f->item[i].nest && chooses(f, f->item[i].nest); }

bool tn__item_may_fail(const tn__fuser *f, int i)
{
    const tn__item *item = &f->item[i];
    return item->nest ? tn__may_fail(item->nest) : tn__value_kind(&f->graph->value[item->value]) == TN__KIND_SCATTER;
}

bool tn__item_overwrites(const tn__fuser *f, int i)
{
    const tn__item *item = &f->item[i];
    return item->nest ? tn__overwrites(f, item->nest) : f->updates && f->updates[item->value];
}
