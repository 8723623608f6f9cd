/* SPDX-License-Identifier: MIT */
/* Which leaves of a collection a plan may overwrite: what depends on them, and what is still needed afterwards. */
#include "engine/collect.h"

static uint32_t references(const tn__node *node) { return __atomic_load_n(&node->references, __ATOMIC_ACQUIRE); }

bool tn__entry_is_held(const tn__entry *e) { return references(e->node) > e->edges; }

/* Nobody outside this evaluation holds the leaf, and its storage is its own and whole. */
static bool exclusive(const tn__entry *e)
{
    const tn__node *n = e->node;
    return references(n) == e->edges && !n->strides && n->offset == 0 && !n->storage->release &&
           atomic_load(&n->storage->references) == 1 &&
           n->storage->bytes == (size_t)n->shape->size * tn_dtype_size(n->dtype) && n->storage->bytes > 0;
}

void tn__collection_survivors(tn__collection *c, bool step)
{
    bool any = false;
    for (size_t i = 0; i < c->leaf_count; i++) {
        tn__entry *e = &c->entry[c->leaf[i]];
        any |= e->depends = exclusive(e);
    }
    if (!any)
        return;
    for (size_t i = 0; i < c->count; i++) {
        tn__entry *e = &c->entry[i];
        for (int k = 0; e->leaf < 0 && k < e->node->arity; k++)
            e->depends |= c->entry[tn__collection_input(c, e, k)].depends;
    }
    tn__collection_mark_survivors(c, step);
}

void tn__collection_mark_survivors(tn__collection *c, bool step)
{
    for (size_t i = c->count; i-- > 0;) {
        tn__entry *e = &c->entry[i];
        if (e->leaf >= 0)
            continue;
        bool held = tn__entry_is_held(e);
        bool keeps;
        if (e->root) {
            keeps = tn__keeps_inputs(e->node);
        } else {
            e->released = step && held && e->depends;
            keeps = (held && !e->released) || e->survives;
        }
        for (int k = 0; k < e->node->arity && keeps; k++)
            c->entry[tn__collection_input(c, e, k)].survives = true;
    }
}
