/* SPDX-License-Identifier: MIT */
/* Sums of many arrays over the ranks' devices by one call, into memory of their own: none is copied before. */
#include <stdio.h>

#include "array/build.h"
#include "comm/comm.h"
#include "core/memory.h"
#include "engine/engine.h"

static tn_status fill_in(const tn__node *node, tn__transfer *t, tn__link_ends *ends)
{
    const tn__node *from = tn__compact((tn__node *)node);
    tn_dtype dtype = (tn_dtype)node->dtype;
    size_t itemsize = tn_dtype_size(dtype);
    tn__storage *to = from ? tn__storage_new(node->device, (size_t)node->shape->size * itemsize) : NULL;
    if (!to)
        return tn__error_status(tn__error_last());
    *ends = (tn__link_ends){from->storage, to};
    *t = (tn__transfer){.kind = TN__ALL_REDUCE,
                        .op = TN_COMM_SUM,
                        .dtype = dtype,
                        .itemsize = itemsize,
                        .count = node->shape->size,
                        .from = (const char *)from->storage->memory + from->offset * (int64_t)itemsize,
                        .to = to->memory};
    return TN_OK;
}

/* What the other ranks are told, and who waits: "all_reduce(sum) of 6 arrays, 1796010 elements". */
static void describe(char *text, size_t room, int count, tn__node *const *node)
{
    int64_t elements = 0;
    for (int i = 0; i < count; i++)
        elements += node[i]->shape->size;
    snprintf(text, room, "all_reduce(sum) of %d arrays, %lld elements", count, (long long)elements);
}

tn_status tn__comm_sums(tn_comm *comm, int count, tn__node **node, bool aside, const char *operation)
{
    char text[TN__CALL_TEXT];
    TN__FREED tn__transfer *transfers = tn__calloc((size_t)count, sizeof *transfers);
    TN__FREED tn__link_ends *ends = tn__calloc((size_t)count, sizeof *ends);
    tn_status status = transfers && ends ? TN_OK : tn__fail_memory(operation, (size_t)count * sizeof *transfers);
    describe(text, sizeof text, count, node);
    for (int i = 0; i < count && status == TN_OK; i++)
        status = fill_in(node[i], &transfers[i], &ends[i]);
    if (status == TN_OK)
        status = tn__comm_check(comm, operation, text);
    if (status == TN_OK)
        status = tn__link_transfer(comm, count, transfers, ends, aside, operation, text);
    for (int i = 0; i < count && ends; i++) {
        if (status == TN_OK)
            node[i] = tn__node_value(ends[i].to, (tn_dtype)node[i]->dtype, node[i]->shape, 0, NULL);
        if (status == TN_OK && tn__node_is_error(node[i]))
            status = tn__error_raise(node[i]->error);
        if (ends[i].to)
            tn__storage_release(ends[i].to);
    }
    return status;
}
