/* SPDX-License-Identifier: MIT */
/* TN_EACH: a loop over an epoch's minibatches with a scope a round, which any way out of the loop leaves. */
#include <tanso/data.h>

tn__each_guard tn__each_enter(tn_loader *loader)
{
    return (tn__each_guard){.loader = loader, .depth = tn_scope_depth()};
}

bool tn__each_next(tn__each_guard *guard, tn_batch *batch)
{
    tn__each_leave(guard);
    if (!tn_loader_next(guard->loader, batch))
        return false;
    tn_scope_push();
    return true;
}

void tn__each_leave(tn__each_guard *guard)
{
    tn__scope_leave(&(tn__scope_guard){.depth = guard->depth});
}
