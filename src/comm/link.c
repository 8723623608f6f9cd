/* SPDX-License-Identifier: MIT */
/*
 * Links: the devices of a communicator's ranks, connected so that elements go from one's memory to another's. They are
 * made when elements on a device are first met, once all ranks have told of theirs; where two ranks share a device, or
 * one has no library for it, there is none, and elements go by way of the host.
 *
 * A transfer is put on the stream that its rank's device works on, or on one beside it, and nobody waits for it. So it
 * is whoever waits for the device later who may wait for a rank that never comes: the device has him look around
 * (`watch`), and where that is of no use the link is called off, which lets the stream go on, and what came behind the
 * transfer is poisoned.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/registry.h"

typedef struct tn__linked {
    tn_comm *comm;
    const tn__link_transport *transport;
    tn__link *link;      /* NULL: the ranks' devices are not connected */
    tn__device *device;
    pthread_t thread;    /* that transfers: who else waits leaves looking around to it */
    uint64_t first;      /* of the device's runs that may be behind a transfer under way; 0: there is none */
    tn__lookout lookout;
    char call[TN__CALL_TEXT]; /* the last one */
    struct tn__linked *next;
} tn__linked;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__linked *links; /* those that connect something, under the lock */

/* ---- looking around ---- */

static void watch(tn__device *device, double since);

/* Takes it out; whether its device has others. */
static void take_out(const tn__linked *gone)
{
    bool others = false;
    pthread_mutex_lock(&lock);
    for (tn__linked **at = &links; *at;) {
        if (*at == gone) {
            *at = gone->next;
            continue;
        }
        others |= (*at)->device == gone->device;
        at = &(*at)->next;
    }
    if (!others && gone->device)
        gone->device->watch = NULL;
    pthread_mutex_unlock(&lock);
}

/* With the failure latched last: nothing comes by it any more, and what was to come is poisoned. */
static void call_off(tn__linked *linked)
{
    if (!linked->link)
        return;
    if (linked->first)
        tn__device_poison(linked->device, linked->first, tn__error_last());
    linked->transport->free(linked->link, true);
    linked->link = NULL;
    take_out(linked);
}

/* Of a wait that began then: another one's questions are not its own. */
static void begin_lookout(tn__linked *linked, double since)
{
    if (linked->lookout.since == since)
        return;
    tn__lookout_end(&linked->lookout);
    linked->lookout = (tn__lookout){.since = since};
}

static void look_around(tn__linked *linked, double since)
{
    tn__why why = {""};
    begin_lookout(linked, since);
    bool failed = linked->transport->test(linked->link, &why) < 0;
    tn_status status = failed ? tn__fail(TN_ERR_IO, "comm", "%s failed in %s: %s", linked->call,
                                         linked->transport->name, why.text)
                              : tn__comm_look(linked->comm, &linked->lookout, "comm", linked->call);
    if (status == TN_OK)
        return;
    tn__comm_break(linked->comm, failed);
    call_off(linked);
}

static tn__linked *next_of(tn__linked *linked, const tn__device *device)
{
    pthread_mutex_lock(&lock);
    linked = linked ? linked->next : links;
    while (linked && linked->device != device)
        linked = linked->next;
    pthread_mutex_unlock(&lock);
    return linked;
}

static void watch(tn__device *device, double since)
{
    for (tn__linked *at = next_of(NULL, device), *next; at; at = next) {
        next = next_of(at, device);
        if (!at->first || !pthread_equal(at->thread, pthread_self()))
            continue;
        if (since < 0)
            at->first = 0;
        else
            look_around(at, since);
    }
}

/* ---- connecting ---- */

/* What a rank tells of its device. */
typedef struct card {
    int32_t library, node;
    char bus[24], why[200];
    tn__link_name name; /* rank 0's */
} card;

static void fill_card(card *own, const tn_comm *comm, const tn__device *device, const tn__link_transport **transport)
{
    tn__why why = {""};
    tn_device_info info = tn_device_properties(device->id);
    *own = (card){.node = comm->place.node, .library = TN__LINK_ABSENT};
    memcpy(own->bus, info.bus, sizeof own->bus);
    *transport = tn__link_transport_load(&why);
    if (*transport)
        own->library = (*transport)->open(&why);
    if (own->library == TN__LINK_THERE && comm->place.rank == 0 && !(*transport)->make_name(&own->name, &why))
        own->library = TN__LINK_REFUSED;
    snprintf(own->why, sizeof own->why, "%.199s", why.text);
}

/* Whether they can be connected, by what all have told; a failure where one refuses. */
static tn_status decide(const tn_comm *comm, const card *all, const char *operation, bool *can)
{
    *can = true;
    for (int r = 0; r < comm->place.size; r++) {
        if (all[r].library == TN__LINK_REFUSED)
            return tn__fail(TN_ERR_UNSUPPORTED, operation, "the ranks' GPUs cannot be connected: on rank %d, %s",
                            comm->members[r], all[r].why);
        if (all[r].library == TN__LINK_ABSENT && *can && comm->place.rank == 0)
            tn__log(TN__LOG_WARN, "comm", "elements go from GPU to GPU by way of the host: on rank %d, %s",
                    comm->members[r], all[r].why);
        *can &= all[r].library == TN__LINK_THERE;
        for (int k = 0; k < r && *can; k++)
            *can = all[k].node != all[r].node || strcmp(all[k].bus, all[r].bus) != 0;
    }
    return TN_OK;
}

static int test_link(void *what, tn__why *why)
{
    const tn__linked *linked = what;
    return linked->transport->test(linked->link, why);
}

static tn_status await_link(tn__linked *linked, const char *operation, const char *call)
{
    int done;
    const tn__awaited awaited = {.test = test_link, .what = linked, .name = linked->transport->name,
                                 .operation = operation, .call = call};
    return tn__comm_await(linked->comm, &awaited, &done);
}

/* In a thread of the transport's own, which tells of nothing: at the end of the process the driver may be gone. */
static bool enter(void *given)
{
    tn__device *device = given;
    bool entered = device->ops->streams->stream_enter(device) == TN_OK;
    if (!entered)
        tn_clear_error();
    return entered;
}

static void *kernel(void *given, const char *text, const char *name)
{
    tn__device *device = given;
    void *made = device->ops->streams->stream_kernel(device, text, name);
    if (!made)
        tn_clear_error();
    return made;
}

static tn_status join(tn__linked *linked, const tn__link_name *name, const char *operation)
{
    tn__why why = {""};
    const tn__comm_place *place = &linked->comm->place;
    const tn__link_place here = {.enter = enter, .kernel = kernel, .device = linked->device};
    if (linked->device->ops->streams->stream_enter(linked->device) != TN_OK)
        return tn__comm_break(linked->comm, true);
    linked->link = linked->transport->join(name, place->rank, place->size, &here, &why);
    if (!linked->link) {
        tn__fail(TN_ERR_IO, operation, "%s does not connect this rank's GPU: %s", linked->transport->name, why.text);
        return tn__comm_break(linked->comm, true);
    }
    tn_status status = await_link(linked, operation, "the connecting of GPUs");
    if (status == TN_OK)
        status = tn__link_reach(linked->comm, linked->transport, linked->link, operation);
    if (status != TN_OK) {
        linked->transport->free(linked->link, true);
        linked->link = NULL;
    }
    return status;
}

static void put_in(tn__linked *linked)
{
    pthread_mutex_lock(&lock);
    linked->next = links;
    links = linked;
    linked->device->watch = watch;
    pthread_mutex_unlock(&lock);
}

static tn_status connect(tn_comm *comm, tn__device *device, const char *operation)
{
    card own;
    bool can = false;
    TN__FREED card *all = tn__calloc((size_t)comm->place.size, sizeof *all);
    tn__linked *linked = tn__calloc(1, sizeof *linked);
    if (!all || !linked) {
        tn__free(linked);
        tn__fail_memory(operation, (size_t)comm->place.size * sizeof *all);
        return tn__comm_break(comm, true);
    }
    *linked = (tn__linked){.comm = comm, .device = device, .thread = pthread_self()};
    fill_card(&own, comm, device, &linked->transport);
    tn_status status = tn__comm_tell_all(comm, &own, all, sizeof own, operation, "the connecting of GPUs");
    if (status == TN_OK)
        status = decide(comm, all, operation, &can);
    if (status == TN_OK && can)
        status = join(linked, &all[0].name, operation);
    if (status != TN_OK) {
        tn__free(linked);
        return status;
    }
    comm->linked = linked;
    if (can)
        put_in(linked);
    return TN_OK;
}

tn_status tn__comm_link(tn_comm *comm, tn__device *device, const char *operation, bool *linked)
{
    *linked = false;
    if (!comm->devices_everywhere || device->id.kind != TN_DEVICE_CUDA)
        return TN_OK;
    tn_status status = comm->linked ? TN_OK : connect(comm, device, operation);
    *linked = status == TN_OK && comm->linked->link;
    return status;
}

bool tn__link_takes(const tn_comm *comm, tn__transfer_kind kind, tn_comm_op op, tn_dtype dtype)
{
    return comm->linked->transport->takes(kind, op, dtype);
}

tn__device *tn__link_device(const tn_comm *comm) { return comm->linked->device; }

void tn__link_end(tn_comm *comm, bool broken)
{
    tn__linked *linked = comm->linked;
    if (!linked)
        return;
    if (linked->link) {
        linked->transport->free(linked->link, broken);
        take_out(linked);
    }
    tn__lookout_end(&linked->lookout);
    tn__free(linked);
    comm->linked = NULL;
}

/* ---- transfers ---- */

static tn_status start(tn__linked *linked, int count, const tn__transfer *transfers, const char *operation,
                       const char *call)
{
    tn__why why = {""};
    const tn__stream_ops *streams = linked->device->ops->streams;
    void *stream = streams->stream_take(linked->device);
    if (!stream)
        return tn__comm_break(linked->comm, true);
    tn_status status = TN_OK;
    if (!linked->transport->start(linked->link, transfers, count, stream, &why)) {
        tn__fail(TN_ERR_IO, operation, "%s failed in %s: %s", call, linked->transport->name, why.text);
        status = tn__comm_break(linked->comm, true);
    } else {
        status = await_link(linked, operation, call);
    }
    streams->stream_give(linked->device);
    return status;
}

/* Before more is put behind transfers that are under way: if one of the ranks has left, this one waits, since the
 * driver may block who puts more and more on a stream that does not go on. */
static tn_status look_ahead(tn__linked *linked, const char *operation)
{
    tn__device *device = linked->device;
    if (!linked->first)
        return TN_OK;
    begin_lookout(linked, tn__seconds());
    tn_status status = tn__comm_look(linked->comm, &linked->lookout, operation, linked->call);
    if (status == TN_OK && linked->lookout.missed)
        status = device->ops->streams->stream_wait(device, tn__stream_number(device));
    return linked->comm->error ? tn__error_raise(linked->comm->error) : status;
}

static tn_status begin_use(tn__linked *linked, int count, const tn__link_ends *ends)
{
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++) {
        if (ends[i].from)
            status = tn__use_begin(linked->device, &ends[i].from->use, false);
        if (status == TN_OK && ends[i].to)
            status = tn__use_begin(linked->device, &ends[i].to->use, true);
        if (status == TN_OK && ends[i].from)
            status = tn__storage_check(ends[i].from);
    }
    return status;
}

static void end_use(const tn__linked *linked, int count, const tn__link_ends *ends, uint64_t run)
{
    for (int i = 0; i < count; i++) {
        if (ends[i].to)
            atomic_store_explicit(&ends[i].to->run, run, memory_order_relaxed);
        if (ends[i].from)
            tn__use_end(linked->device, &ends[i].from->use, false);
        if (ends[i].to)
            tn__use_end(linked->device, &ends[i].to->use, true);
    }
}

/* On this thread's stream. */
static tn_status put_on(tn__linked *linked, int count, const tn__transfer *transfers, const tn__link_ends *ends,
                        const char *operation, const char *call)
{
    tn__device *device = linked->device;
    tn_status status = begin_use(linked, count, ends);
    if (status != TN_OK) {
        status = tn__comm_break(linked->comm, true);
        call_off(linked);
        return status;
    }
    uint64_t run = device->runs ? device->runs : 1;
    linked->thread = pthread_self();
    linked->first = linked->first ? linked->first : run;
    snprintf(linked->call, sizeof linked->call, "%s", call);
    status = start(linked, count, transfers, operation, call);
    end_use(linked, count, ends, run);
    if (status != TN_OK)
        call_off(linked);
    return status;
}

/* The device's stream for what goes on beside its work; it lasts as long as the device. The thread's own, where there
 * are no more. */
static int stream_aside(tn__device *device)
{
    static int streams[TN__MAX_DEVICES];
    pthread_mutex_lock(&lock);
    int *stream = &streams[device->id.index];
    if (!*stream && (*stream = device->ops->streams->stream_new(device)) < 0)
        tn_clear_error();
    pthread_mutex_unlock(&lock);
    return *stream > 0 ? *stream : tn__stream_number(device);
}

tn_status tn__link_transfer(tn_comm *comm, int count, const tn__transfer *transfers, const tn__link_ends *ends,
                            bool aside, const char *operation, const char *call)
{
    tn__linked *linked = comm->linked;
    tn_status status = look_ahead(linked, operation);
    if (status != TN_OK) {
        status = tn__comm_break(comm, true);
        call_off(linked);
        return status;
    }
    int before = aside ? tn__stream_choose(linked->device, stream_aside(linked->device)) : 0;
    status = put_on(linked, count, transfers, ends, operation, call);
    if (aside)
        (void)tn__stream_choose(linked->device, before);
    return status;
}
