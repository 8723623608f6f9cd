/* SPDX-License-Identifier: MIT */
/*
 * What a run says of an index out of range is its number, as it came to the kernel. Where failures are known at once,
 * what was collected is still there: so here the indices are looked at once more, as the user gave them, and the error
 * says which of them it is.
 */
#include "engine/collect.h"

#include "array/build.h"
#include "core/memory.h"

/* Looks at each once more; the status of the first that is out of range, which is latched, else TN_OK. */
static tn_status look(size_t count, tn__node *const *positions, const int64_t *extent)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        status = tn__positions_look("indexing", positions[i], extent[i]);
        if (status != TN_OK && status != TN_ERR_INDEX) { /* they can't be read now: then nothing is said of them */
            tn_clear_error();
            status = TN_OK;
        }
    }
    return status;
}

void tn__collection_name_index(tn__collection *c)
{
    size_t count = 0;
    tn__node **positions = tn__alloc((c->count + 1) * (sizeof *positions + sizeof(int64_t)));
    if (!positions) {
        tn__fail_memory("eval", c->count * sizeof *positions);
        return; /* behind the failure, which stays the first */
    }
    int64_t *extent = (int64_t *)(positions + c->count + 1);
    for (size_t i = 0; i < c->count; i++) {
        tn__node *node = tn__positions_of(c->entry[i].node, &extent[count]);
        if (node)
            positions[count++] = tn__node_retain(node);
    }
    tn__error *failure = tn__error_retain(tn__error_last());
    tn_clear_error();
    tn__call call = tn__enter();
    if (look(count, positions, extent) == TN_OK)
        (void)tn__error_raise(failure);
    tn__leave(call);
    tn__error_release(failure);
    for (size_t i = 0; i < count; i++)
        tn__node_release(positions[i]);
    tn__free(positions);
}
