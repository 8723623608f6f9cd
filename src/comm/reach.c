/* SPDX-License-Identifier: MIT */
/* Two ranks of one host whose devices are connected: whether each may write into the other one's memory. */
#include "comm/comm.h"

typedef struct shown {
    int32_t shows;
    tn__link_name name;
} shown;

/* Both end alike: the memory is used only if each has reached it. */
tn_status tn__link_reach(tn_comm *comm, const tn__link_transport *transport, tn__link *link, const char *operation)
{
    const tn__comm_place *place = &comm->place;
    shown own = {.shows = false}, all[2];
    int32_t reached, both[2] = {false, false};
    if (place->size != 2 || place->local_size != 2)
        return TN_OK;
    own.shows = transport->show(link, &own.name);
    tn_status status = tn__comm_tell_all(comm, &own, all, sizeof own, operation, "the connecting of GPUs");
    if (status == TN_OK && all[0].shows && all[1].shows) {
        reached = transport->reach(link, &all[1 - place->rank].name);
        status = tn__comm_tell_all(comm, &reached, both, sizeof reached, operation, "the connecting of GPUs");
    }
    if (status == TN_OK)
        transport->agree(link, both[0] && both[1]);
    return status;
}
