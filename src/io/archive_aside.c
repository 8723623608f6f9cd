/* SPDX-License-Identifier: MIT */
/* Archives whose values are on a device, while another thread saves them. */
#include "core/memory.h"
#include "engine/engine.h"
#include "io/archive.h"

/* The entries whose values the host can't read, which `change` makes others of. */
static tn_status change_far(tn_archive *archive, const char *operation,
                            tn_status (*change)(int count, tn__node **node))
{
    TN__FREED tn__node **node = tn__alloc((archive->count + 1) * sizeof *node);
    TN__FREED size_t *place = tn__alloc((archive->count + 1) * sizeof *place);
    int count = 0;
    if (!node || !place)
        return tn__fail_memory(operation, archive->count * sizeof *node);
    for (size_t i = 0; i < archive->count; i++) {
        tn__node *value = tn__array_node(archive->entries[i].array);
        if (tn__node_is_error(value) || !value->storage || value->device->capabilities.host_memory)
            continue;
        place[count] = i;
        node[count++] = value;
    }
    if (!count)
        return TN_OK;
    tn__call call = tn__enter();
    tn_status status = change(count, node);
    for (int i = 0; i < count && status == TN_OK; i++)
        tn__array_set(archive->entries[place[i]].array, node[i]);
    tn__leave(call);
    return status;
}

tn_status tn__archive_put_aside(tn_archive *archive) { return change_far(archive, "archive_put_aside", tn__put_aside); }

tn_status tn__archive_fetch(tn_archive *archive) { return change_far(archive, "archive_fetch", tn__fetch_aside); }
