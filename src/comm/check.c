/* SPDX-License-Identifier: MIT */
/* TANSO_COMM_CHECK: before each collective the ranks tell each other what they are about to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "core/memory.h"

/* What a rank is about to do, and where in the program. */
typedef struct record {
    char call[TN__CALL_TEXT], place[TN__CALL_TEXT];
} record;

static bool wanted(void)
{
    const char *value = getenv("TANSO_COMM_CHECK");
    return value && *value && strcmp(value, "0") != 0;
}

static tn_status compare(const tn_comm *comm, const char *operation, const record *records)
{
    int size = comm->place.size, other = 1;
    while (other < size && strcmp(records[other].call, records[0].call) == 0)
        other++;
    if (other == size)
        return TN_OK;
    return tn__fail(TN_ERR_STATE, operation,
                    "rank %d calls %s%s, rank %d %s%s: every rank has to make the same calls, in the same order",
                    comm->members[0], records[0].call, records[0].place, comm->members[other], records[other].call,
                    records[other].place);
}

tn_status tn__comm_check(tn_comm *comm, const char *operation, const char *call)
{
    if (comm->place.size == 1 || !wanted())
        return TN_OK;
    record own = {.place = ""}, *records = tn__calloc((size_t)comm->place.size, sizeof *records);
    if (!records) {
        tn__fail_memory(operation, (size_t)comm->place.size * sizeof *records);
        return tn__comm_break(comm, true);
    }
    int line;
    const char *file = tn__caller(&line);
    snprintf(own.call, sizeof own.call, "%s", call);
    if (file)
        snprintf(own.place, sizeof own.place, " (%.200s:%d)", file, line);
    tn__transfer transfer = {.kind = TN__ALL_GATHER,
                             .dtype = TN_UINT8,
                             .itemsize = 1,
                             .count = sizeof own,
                             .from = &own,
                             .to = records};
    tn_status status = tn__comm_tell_unchecked(comm, &transfer, operation, call);
    if (status == TN_OK)
        status = compare(comm, operation, records);
    tn__free(records);
    return status;
}
