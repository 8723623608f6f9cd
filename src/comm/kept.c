/* SPDX-License-Identifier: MIT */
/*
 * Memory of transfers that were given up. Nobody can call back what was started: it may still read and write its blocks
 * whenever the transport is used, be it for notes. So they are kept until the process ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "core/memory.h"
#include "device/device.h"

/* Only so that a leak checker finds them: without memory for an entry a block stays just the same. */
typedef struct kept {
    const void *what;
    struct kept *next;
} kept;
static _Atomic(kept *) list;

static void keep(const void *what)
{
    kept *entry = tn__alloc(sizeof *entry);
    if (!entry)
        return;
    *entry = (kept){.what = what, .next = list};
    while (!atomic_compare_exchange_weak(&list, &entry->next, entry)) {
    }
}

void tn__comm_block_free(const tn_comm *comm, void *block)
{
    if (comm->given_up && block)
        keep(block);
    else
        tn__free(block);
}

void tn__comm_storage_release(const tn_comm *comm, tn__storage *storage)
{
    if (comm->given_up && storage)
        keep(storage);
    else if (storage)
        tn__storage_release(storage);
}

tn_status tn__comm_tell(tn_comm *comm, const tn__transfer *transfer, const char *operation, const char *call)
{
    char text[TN__CALL_TEXT];
    snprintf(text, sizeof text, "%.200s, of %" PRId64 " x %zu bytes", call, transfer->count, transfer->itemsize);
    tn_status status = tn__comm_check(comm, operation, text);
    return status == TN_OK ? tn__comm_tell_unchecked(comm, transfer, operation, call) : status;
}

tn_status tn__comm_tell_all(tn_comm *comm, const void *own, void *all, size_t bytes, const char *operation,
                            const char *call)
{
    const tn__transfer t = {.kind = TN__ALL_GATHER,
                            .dtype = TN_UINT8,
                            .itemsize = 1,
                            .count = (int64_t)bytes,
                            .from = own,
                            .to = all};
    return tn__comm_tell(comm, &t, operation, call);
}

tn_status tn__comm_tell_unchecked(tn_comm *comm, const tn__transfer *transfer, const char *operation,
                                  const char *call)
{
    tn__transfer t = *transfer;
    size_t share = (size_t)t.count * t.itemsize;
    size_t got = t.to ? share * (t.kind == TN__ALL_GATHER ? (size_t)comm->place.size : 1) : 0;
    char *block = tn__alloc(share + got);
    if (!block) {
        tn__fail_memory(operation, share + got);
        return tn__comm_break(comm, true);
    }
    if (t.from)
        memcpy(block, t.from, share);
    t.from = t.from ? block : NULL;
    t.to = t.to ? block + share : NULL;
    tn_status status = tn__comm_transfer(comm, &t, operation, call);
    if (status == TN_OK && got)
        memcpy(transfer->to, t.to, got);
    tn__comm_block_free(comm, block);
    return status;
}
