/* SPDX-License-Identifier: MIT */
/* Scopes: who frees which array. Each thread has a stack of them over a base scope that lasts as long as the thread. */
#include "array/places.h"
#include "array/thread.h"

void tn_scope_push(void)
{
    tn__thread *self = tn__self();
    bool ready = tn__thread_begin(self);
    self->depth++;
    if (!ready)
        return;
    tn__scope *scope = tn__thread_take(self, TN__SLAB_SCOPE);
    if (!scope) {
        tn__fail_memory("tn_scope_push", sizeof *scope);
        self->innermost->unmade++;
        return;
    }
    *scope = (tn__scope){.outer = self->innermost};
    scope->file = tn__caller(&scope->line);
    self->innermost = scope;
}

static void empty(tn__scope *scope)
{
    if (!scope->first)
        return;
    uint32_t place = tn__place_of_scope(scope->file, scope->line);
    while (scope->first)
        tn__handle_free(scope->first, place);
}

void tn_scope_pop(void)
{
    tn__thread *self = tn__self();
    bool ready = tn__thread_begin(self);
    if (self->depth == 0) {
        tn__fail(TN_ERR_STATE, "tn_scope_pop",
                 "no scope is open in this thread: every pop needs a tn_scope_push before it");
        return;
    }
    self->depth--;
    if (!ready)
        return;
    tn__scope *scope = self->innermost;
    if (scope->unmade) {
        scope->unmade--;
        return;
    }
    if (!scope->outer)
        return; /* pushed before the thread could be registered */
    empty(scope);
    self->innermost = scope->outer;
    tn__thread_put(self, TN__SLAB_SCOPE, scope);
}

int tn_scope_depth(void)
{
    tn__guards_check(tn__self());
    return tn__self()->depth;
}

tn__scope_guard tn__scope_enter(void)
{
    tn_scope_push();
    return (tn__scope_guard){tn__self()->depth - 1};
}

void tn__scope_leave(tn__scope_guard *guard)
{
    while (tn__self()->depth > guard->depth)
        tn_scope_pop();
}

void tn__scopes_end(void)
{
    while (tn__self()->depth > 0)
        tn_scope_pop();
    empty(&tn__self()->base);
}
