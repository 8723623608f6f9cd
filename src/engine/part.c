/* SPDX-License-Identifier: MIT */
/*
 * A part of a step that is evaluated before the rest, as gradients that are to go to other ranks while the others are
 * computed: which values it has to keep, so that the rest need not compute them again. Those are what both need; but
 * not what elementwise operations make of others that are kept, nor views, nor constants.
 */
#include "engine/collect.h"

#include "core/memory.h"

static tn_status no_memory(void) { return tn__fail_memory("eval", 0); }

typedef struct walk {
    tn__collection *c;
    uint32_t stamp; /* of the rest's nodes that have been seen */
    size_t depth;   /* of those in c->stack whose inputs are to be seen */
    bool *wanted;   /* by entry: the rest needs it */
} walk;

static tn_status see(walk *w, tn__node *node)
{
    tn__collection *c = w->c;
    int entry = node->storage ? -1 : tn__collection_find(c, node);
    uint64_t mark = tn__node_mark(node);
    if (entry >= 0)
        w->wanted[entry] = true;
    if (entry >= 0 || node->storage || node->error || mark >> 32 == w->stamp)
        return TN_OK;
    uint32_t again = tn__was_collected(node) ? TN__COLLECTED : 0; /* the mark goes on saying so */
    tn__node_set_mark(node, (uint64_t)w->stamp << 32 | again);
    if (!tn__grow((void **)&c->stack, &c->stack_capacity, w->depth + 1, sizeof *c->stack))
        return no_memory();
    c->stack[w->depth++].node = node;
    return TN_OK;
}

static tn_status see_under(walk *w, tn__node *node)
{
    tn_status status = see(w, node);
    while (status == TN_OK && w->depth > 0) {
        const tn__node *user = w->c->stack[--w->depth].node;
        for (int i = 0; i < user->arity && status == TN_OK; i++)
            status = see(w, user->in[i]);
    }
    return status;
}

/* What the step has still to compute: gradients, and handles like the loss. */
static tn_status see_rest(walk *w)
{
    tn__handle *const *handle;
    int handles = tn__pending_handles(&handle), count = tn__pending_gradients(NULL, 0);
    TN__FREED tn__node **gradient = tn__alloc(sizeof *gradient * ((size_t)count + 1));
    tn_status status = gradient ? TN_OK : no_memory();
    if (gradient)
        tn__pending_gradients(gradient, count);
    for (int i = 0; i < count && status == TN_OK; i++)
        status = see_under(w, gradient[i]);
    for (int i = 0; i < handles && status == TN_OK; i++)
        if (tn__computed_along(handle[i], w->c->device, TN__COLLECT_STEP))
            status = see_under(w, handle[i]->node);
    return status;
}

static bool is_view(const tn__node *node)
{
    return tn__ops[node->op].kind == TN__KIND_VIEW || node->op == TN__OP_EXPAND || node->op == TN__OP_SLICE;
}

/* Instead of views what they view is wanted. */
static void pass_on(walk *w)
{
    for (size_t i = w->c->count; i-- > 0;) {
        const tn__entry *e = &w->c->entry[i];
        if (w->wanted[i] && !e->root && e->leaf < 0 && is_view(e->node)) {
            w->wanted[i] = false;
            w->wanted[tn__collection_input(w->c, e, 0)] = true;
        }
    }
}

/* Makes roots of what is wanted, inputs first; `wanted` becomes whether a value is at hand, or soon made. */
static tn_status keep(walk *w)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < w->c->count && status == TN_OK; i++) {
        const tn__entry *e = &w->c->entry[i];
        bool light = tn__ops[e->node->op].kind == TN__KIND_MAP || is_view(e->node) || e->node->arity == 0;
        bool soon = e->leaf < 0 && light;
        for (int k = 0; k < e->node->arity && soon; k++)
            soon = w->wanted[tn__collection_input(w->c, e, k)];
        if (w->wanted[i] && !soon && e->leaf < 0)
            status = tn__collection_add_root(w->c, (int)i);
        w->wanted[i] |= soon || e->root || e->leaf >= 0;
    }
    return status;
}

tn_status tn__collection_add_shared(tn__collection *c)
{
    TN__FREED bool *wanted = tn__calloc(c->count + 1, sizeof *wanted);
    walk w = {.c = c, .stamp = tn__stamp(), .wanted = wanted};
    if (!wanted)
        return no_memory();
    tn_status status = see_rest(&w);
    if (status != TN_OK)
        return status;
    pass_on(&w);
    return keep(&w);
}
