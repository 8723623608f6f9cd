/* SPDX-License-Identifier: MIT */
/* What is computed along with what was asked for: pending arrays, gradients, and what new values were built on. */
#include "engine/collect.h"

#include "core/memory.h"

/* Arrays up to this size that still have a handle are computed along with an optimizer's step. */
#define SMALL_SIZE 16384

/* Where a recording is as deep as may be, arrays of the last so many levels are computed along: what a loop goes on
 * from, which would get there next, and be computed alone and from the beginning again. */
#define LAST_LEVELS 24

bool tn__computed_along(const tn__handle *handle, const tn__device *device, tn__collect_mode mode)
{
    const tn__node *node = handle->node;
    bool small = node->flags & TN__NODE_BACKWARD || node->shape->size <= SMALL_SIZE;
    bool last = mode == TN__COLLECT_DEEP && node->depth + LAST_LEVELS > tn__max_depth();
    bool wanted = handle->written || (mode == TN__COLLECT_STEP && small) || last;
    return wanted && !node->storage && !node->error && node->device == device && !(node->flags & TN__NODE_WEAK);
}

/* Pending arrays of this thread that are computed along with what was asked for: those that the program writes into,
 * and more of them by a step, or of a deep recording. */
tn_status tn__collection_add_handles(tn__collection *c, tn__collect_mode mode)
{
    tn__handle *const *handle = NULL;
    bool only_written = mode == TN__COLLECT_ALONG || mode == TN__COLLECT_WRITTEN;
    int count = mode == TN__COLLECT_REGION || (only_written && !tn__any_written()) ? 0 : tn__pending_handles(&handle);
    for (int i = 0; i < count; i++) {
        bool wanted = tn__computed_along(handle[i], c->device, mode);
        for (size_t k = 0; k < c->refused_count && wanted; k++)
            wanted = handle[i]->node != c->refused[k];
        tn_status status = wanted ? tn__collection_add_node(c, handle[i]->node) : TN_OK;
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Gradients of others than the step's own parameters: they are computed along, since they depend on what it overwrites,
 * and another optimizer's step, or the next backward, goes on from them. */
tn_status tn__collection_add_gradients(tn__collection *c)
{
    int count = tn__pending_gradients(c->gradient, (int)c->gradient_capacity);
    if ((size_t)count > c->gradient_capacity) {
        if (!tn__grow((void **)&c->gradient, &c->gradient_capacity, (size_t)count, sizeof *c->gradient))
            return tn__fail_memory("eval", 0);
        count = tn__pending_gradients(c->gradient, count);
    }
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++)
        if (c->gradient[i]->device == c->device)
            status = tn__collection_add_node(c, c->gradient[i]);
    return status;
}

/* The entry whose value is kept for an input that is computed again, or -1: an array without its broadcasting; nothing
 * that costs nothing, nor a large one that only a part of was asked for. */
static int kept_for(const tn__collection *c, const tn__entry *user, int input)
{
    int at = tn__collection_input(c, user, input);
    bool part = user->node->op == TN__OP_SLICE || (user->node->op == TN__OP_GATHER && input == 0);
    if (!c->entry[at].again || (part && c->entry[at].node->shape->size > SMALL_SIZE))
        return -1;
    while (c->entry[at].leaf < 0 && c->entry[at].node->op == TN__OP_EXPAND)
        at = tn__collection_input(c, &c->entry[at], 0);
    const tn__entry *e = &c->entry[at];
    return e->leaf < 0 && e->node->arity > 0 ? at : -1;
}

/*
 * What an earlier evaluation computed on its way and did not keep is computed again by each later one that needs it. If
 * what was asked for now is new and was built on it, so may be what is asked for next: a loop that carries a state, and
 * reads something else, would compute all its rounds so far in each. So the value is kept, where anybody will need it.
 * An array that is evaluated once, however it is used, is none of these.
 */
tn_status tn__collection_add_built_on(tn__collection *c)
{
    tn_status status = TN_OK;
    tn__collection_mark_survivors(c, false);
    for (size_t i = 0; i < c->count && status == TN_OK; i++) {
        const tn__entry *user = &c->entry[i];
        for (int k = 0; user->leaf < 0 && !user->again && k < user->node->arity && status == TN_OK; k++) {
            int at = kept_for(c, user, k);
            if (at >= 0 && (c->entry[at].survives || tn__entry_is_held(&c->entry[at])))
                status = tn__collection_add_root(c, at);
        }
    }
    for (size_t i = 0; i < c->count; i++)
        c->entry[i].survives = false;
    return status;
}
