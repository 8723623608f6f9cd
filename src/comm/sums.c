/* SPDX-License-Identifier: MIT */
/*
 * Sums of many arrays over the ranks' devices by one call. They lie side by side in a block of memory, where
 * tn__evaluate_side_by_side has put them, or else copies of them do, and their sums in another such block: so those of
 * a dtype that follow one another are summed as one array, with what lies between them, which nobody reads. How many
 * arrays travel, and how large they are, follows from shapes and dtypes alone, and so is the same on all ranks.
 */
#include <stdio.h>

#include "array/build.h"
#include "comm/comm.h"
#include "core/memory.h"
#include "engine/engine.h"

static const char *memory_of(const tn__node *node)
{
    return (const char *)node->storage->memory + node->offset * (int64_t)tn_dtype_size((tn_dtype)node->dtype);
}

static int64_t bytes_of(const tn__node *node)
{
    return node->shape->size * (int64_t)tn_dtype_size((tn_dtype)node->dtype);
}

/* Bytes from the first to the end of the last. */
static int64_t extent_of(int count, tn__node *const *node)
{
    int64_t begin = 0;
    for (int i = 0; i < count - 1; i++)
        begin = tn__side_by_side(begin, node[i]);
    return begin + bytes_of(node[count - 1]);
}

static bool lie_side_by_side(int count, tn__node *const *node)
{
    int64_t begin = 0;
    bool are = true;
    for (int i = 0; i < count && are; i++) {
        are = !node[i]->strides && node[i]->storage == node[0]->storage &&
              memory_of(node[i]) == memory_of(node[0]) + begin;
        begin = tn__side_by_side(begin, node[i]);
    }
    return are;
}

/* Their copies in a block; NULL with a latched error. */
static tn__storage *put_side_by_side(int count, tn__node *const *node)
{
    tn__storage *block = tn__storage_new(node[0]->device, (size_t)extent_of(count, node));
    tn_status status = block ? TN_OK : tn__error_status(tn__error_last());
    int64_t begin = 0;
    for (int i = 0; i < count && status == TN_OK; i++) {
        const tn__node *from = tn__compact(node[i]);
        status = from ? tn__storage_copy(block, (size_t)begin, from->storage, memory_of(from), (size_t)bytes_of(from))
                      : tn__error_status(tn__error_last());
        begin = tn__side_by_side(begin, node[i]);
    }
    if (status == TN_OK || !block)
        return block;
    tn__storage_release(block);
    return NULL;
}

/* A transfer for each dtype in turn; how many there are. */
static int list(int count, tn__node *const *node, const char *from, tn__storage *to, bool aside,
                tn__transfer *transfers)
{
    int sent = 0;
    int64_t begin = 0;
    for (int i = 0, next; i < count; i = next) {
        size_t itemsize = tn_dtype_size((tn_dtype)node[i]->dtype);
        for (next = i + 1; next < count && node[next]->dtype == node[i]->dtype; next++)
            ;
        transfers[sent++] = (tn__transfer){.kind = TN__ALL_REDUCE,
                                           .op = TN_COMM_SUM,
                                           .dtype = (tn_dtype)node[i]->dtype,
                                           .itemsize = itemsize,
                                           .count = extent_of(next - i, node + i) / (int64_t)itemsize,
                                           .from = from + begin,
                                           .to = (char *)to->memory + begin,
                                           .aside = aside};
        for (int k = i; k < next; k++)
            begin = tn__side_by_side(begin, node[k]);
    }
    return sent;
}

/* What the other ranks are told, and who waits: "all_reduce(sum) of 6 arrays, 1796010 elements". */
static void describe(char *text, size_t room, int count, tn__node *const *node)
{
    int64_t elements = 0;
    for (int i = 0; i < count; i++)
        elements += node[i]->shape->size;
    snprintf(text, room, "all_reduce(sum) of %d arrays, %lld elements", count, (long long)elements);
}

/* The sums in the place of what was summed. */
static tn_status take(int count, tn__node **node, tn__storage *sums)
{
    tn_status status = TN_OK;
    int64_t begin = 0;
    for (int i = 0; i < count && status == TN_OK; i++) {
        int64_t next = tn__side_by_side(begin, node[i]), itemsize = (int64_t)tn_dtype_size((tn_dtype)node[i]->dtype);
        node[i] = tn__node_value(sums, (tn_dtype)node[i]->dtype, node[i]->shape, begin / itemsize, NULL);
        status = tn__node_is_error(node[i]) ? tn__error_raise(node[i]->error) : TN_OK;
        begin = next;
    }
    return status;
}

tn_status tn__comm_sums(tn_comm *comm, int count, tn__node **node, bool aside, const char *operation)
{
    char text[TN__CALL_TEXT];
    bool there = lie_side_by_side(count, node);
    TN__FREED tn__transfer *transfers = tn__calloc((size_t)count, sizeof *transfers);
    TN__FREED tn__link_ends *ends = tn__calloc((size_t)count, sizeof *ends);
    tn__storage *from = there ? tn__storage_retain(node[0]->storage) : put_side_by_side(count, node), *to = NULL;
    tn_status status = transfers && ends ? TN_OK : tn__fail_memory(operation, (size_t)count * sizeof *transfers);
    describe(text, sizeof text, count, node);
    if (from)
        to = tn__storage_new(node[0]->device, (size_t)extent_of(count, node));
    if (status == TN_OK && !to)
        status = tn__error_status(tn__error_last());
    if (status == TN_OK)
        status = tn__comm_check(comm, operation, text);
    if (status == TN_OK) {
        int sent = list(count, node, there ? memory_of(node[0]) : from->memory, to, aside, transfers);
        ends[0] = (tn__link_ends){from, to}; /* of all of them */
        status = tn__link_transfer(comm, sent, transfers, ends, aside, operation, text);
    }
    if (status == TN_OK)
        status = take(count, node, to);
    if (to)
        tn__storage_release(to);
    if (from)
        tn__storage_release(from);
    return status;
}
