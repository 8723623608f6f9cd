/* SPDX-License-Identifier: MIT */
/* Communicators as objects: the world, oneself, parts of one; and the end of the process. */
#include "comm/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"

static tn__object_kind kind = TN__OBJECT_KIND(tn_comm, "communicator");
/* Those that live, under the lock; and the two that last as long as the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_comm *living;
static tn_comm *world, *self;
static pid_t owner; /* the process that the world is of: no child by fork ends it */

/* Without memory even for that. */
static tn_comm no_memory;

static tn_comm *no_comm(void)
{
    no_memory.error = tn__error_no_memory();
    no_memory.object.owner = "the library";
    return &no_memory;
}

/* One that is inert: carries the failure latched last. */
static tn_comm *failed_comm(void)
{
    tn_comm *comm = tn__object_new(&kind);
    if (!comm)
        return no_comm();
    comm->error = tn__error_retain(tn__error_last());
    return comm;
}

tn_status tn__comm_usable(const tn_comm *comm, const char *operation)
{
    if (!comm)
        return tn__fail_null(operation, "a communicator");
    return comm->error ? tn__error_raise(comm->error) : TN_OK;
}

tn_status tn__comm_of_processes(const tn_comm *comm, const char *operation)
{
    tn_status status = tn__comm_usable(comm, operation);
    if (status == TN_OK && comm->devices)
        status = tn__fail(TN_ERR_UNSUPPORTED, operation,
                          "the communicator is of %d devices of one process, which are all called for at once, by "
                          "functions like tn_comm_all_reduce_each",
                          comm->place.size);
    return status;
}

static void put_in(tn_comm *comm)
{
    static uint32_t numbers;
    pthread_mutex_lock(&lock);
    comm->number = ++numbers;
    comm->next = living;
    living = comm;
    pthread_mutex_unlock(&lock);
}

static void take_out(const tn_comm *comm)
{
    pthread_mutex_lock(&lock);
    for (tn_comm **at = &living; *at; at = &(*at)->next) {
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

tn_comm *tn__comm_numbered(uint32_t number)
{
    pthread_mutex_lock(&lock);
    tn_comm *comm = living;
    while (comm && comm->number != number)
        comm = comm->next;
    pthread_mutex_unlock(&lock);
    return comm;
}

tn_status tn__comm_break(tn_comm *comm, bool tell)
{
    tn__error *error = tn__error_last();
    if (comm->place.size == 1)
        return tn__error_status(error); /* nobody waits, and nothing is under way */
    if (!comm->error)
        comm->error = tn__error_retain(error);
    if (tell && world && world->place.size > 1)
        tn__comm_tell_leaving(world, tn__error_message(error));
    return tn__error_status(error);
}

/* Lets go what it holds. */
static void forget(tn_comm *comm)
{
    tn__link_end(comm, comm->error != NULL);
    if (comm->group)
        comm->transport->free(comm->group, comm->error != NULL);
    tn__free(comm->members);
    tn__free(comm->devices);
    tn__error_release(comm->error);
    comm->group = NULL;
    comm->devices = NULL;
    comm->members = NULL;
    comm->error = NULL;
}

/* ---- the ranks of a group ---- */

/* What a rank of a new communicator tells the others. */
typedef struct member {
    int number; /* in the world */
    int devices;
} member;

/* Fills in which ranks of the world the ranks of a new communicator are, and whether all have devices. */
static tn_status find_members(tn_comm *comm, int number)
{
    int size = comm->place.size;
    const member own = {number, size > 1 ? tn_device_count(TN_DEVICE_CUDA) : 0};
    TN__FREED member *all = tn__calloc((size_t)size, sizeof *all);
    comm->members = tn__calloc((size_t)size, sizeof *comm->members);
    if (!comm->members || !all)
        return tn__fail_memory("comm", (size_t)size * sizeof *all);
    comm->members[comm->place.rank] = number; /* which names it, if the others do not come */
    tn_status status = tn__comm_tell_all(comm, &own, all, sizeof own, "comm", "the making of a communicator");
    comm->devices_everywhere = status == TN_OK && size > 1;
    for (int r = 0; r < size && status == TN_OK; r++) {
        comm->members[r] = all[r].number;
        comm->devices_everywhere &= all[r].devices > 0;
    }
    return status;
}

/* A communicator over a group, which it takes over. */
static tn_comm *comm_over(const tn__transport *transport, tn__group *group, int own)
{
    tn_comm *comm = tn__object_new(&kind);
    if (!comm) {
        transport->free(group, false);
        tn__fail_memory("comm", sizeof *comm);
        return no_comm();
    }
    comm->transport = transport;
    comm->group = group;
    comm->place = transport->place(group);
    if (find_members(comm, own) == TN_OK) {
        put_in(comm);
        return comm;
    }
    if (!comm->error)
        tn__comm_break(comm, true);
    if (!comm->error)
        comm->error = tn__error_retain(tn__error_last());
    return comm;
}

/* ---- devices ---- */

static tn_status check_devices(const tn_device *devices, int count)
{
    if (!count)
        return tn__fail(TN_ERR_VALUE, "comm_devices",
                        "expected one device or more, as TN_DEVICES(tn_cuda(0), tn_cuda(1))");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (tn_device_equal(devices[k], devices[i]))
                return tn__fail(TN_ERR_VALUE, "comm_devices", "%s is named twice; expected each device once",
                                tn_device_name(devices[k]));
    return TN_OK;
}

static tn_status fill_devices(tn_comm *comm, const tn_device *devices, int count)
{
    comm->place = (tn__comm_place){.size = count, .local_size = count, .nodes = 1};
    tn_status status = check_devices(devices, count);
    if (status != TN_OK)
        return status;
    comm->devices = tn__calloc((size_t)count, sizeof *comm->devices);
    comm->members = tn__calloc((size_t)count, sizeof *comm->members);
    if (!comm->devices || !comm->members)
        return tn__fail_memory("comm_devices", (size_t)count * sizeof *comm->devices);
    for (int r = 0; r < count; r++) {
        comm->members[r] = r;
        comm->devices[r] = tn__device_get(devices[r]);
        if (!comm->devices[r])
            return tn__error_status(tn__error_last());
    }
    return TN_OK;
}

tn_comm *tn_comm_devices(const tn_device *devices)
{
    int count = 0;
    if (!devices) {
        tn__fail_null("comm_devices", "devices");
        return failed_comm();
    }
    while (devices[count].kind != TN_DEVICE_DEFAULT)
        count++;
    tn_comm *comm = tn__object_new(&kind);
    if (!comm) {
        tn__fail_memory("comm_devices", sizeof *comm);
        return no_comm();
    }
    if (fill_devices(comm, devices, count) != TN_OK)
        comm->error = tn__error_retain(tn__error_last());
    return comm;
}

tn_device tn_comm_device(const tn_comm *comm, int rank)
{
    TN__NO_PLACE();
    tn_status status = tn__comm_usable(comm, "comm_device");
    if (status == TN_OK && !comm->devices)
        status = tn__fail(TN_ERR_VALUE, "comm_device", "expected a communicator that tn_comm_devices made");
    if (status == TN_OK)
        status = tn__comm_check_peer(comm, "comm_device", "a rank", rank, false);
    return status == TN_OK ? comm->devices[rank]->id : (tn_device){TN_DEVICE_DEFAULT, 0};
}

/* ---- the world ---- */

static bool any_pending(void)
{
    bool pending = false;
    for (const tn_comm *comm = living; comm; comm = comm->next)
        pending |= comm->pending;
    return pending;
}

/* Those who still wait for this process are told that it has gone. MPI's own end waits for everybody, and so everybody
 * says before what has happened to him: once one has ended with an error, launchers kill the others. Where a rank may
 * never come, it is left out: the launcher then ends what is left. */
static void end_world(void)
{
    if (getpid() != owner)
        return;
    tn__comm_tell_leaving(world, tn__latched() ? tn__error_message(tn__error_last()) : "");
    tn__error_tell();
    if (any_pending()) {
        tn__comm_await_leavers(world); /* the others, too, have something to say */
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL); /* which the launcher passes on */
    } else {
        world->transport->finish();
    }
}

static tn_comm *new_world(void)
{
    const tn__transport *transport = tn__transport_of_launch();
    tn__why why = {""};
    tn__group *group = transport ? transport->world(tn__combines, &why) : NULL;
    if (!group) {
        if (transport)
            tn__fail(TN_ERR_IO, "comm_world", "%s does not start: %s", transport->name, why.text);
        return failed_comm();
    }
    tn_comm *comm = comm_over(transport, group, transport->place(group).rank);
    if (!comm->error && transport != &tn__transport_alone) {
        owner = getpid();
        (void)!atexit(end_world); /* without memory for it the launcher ends the others */
    }
    return comm;
}

/* One that lasts. One that could not be made does so until it is asked for again. */
static tn_comm *lasting(tn_comm **place, tn_comm *(*make)(void))
{
    if (*place && (*place)->number)
        return *place;
    if (*place && *place != &no_memory) {
        forget(*place);
        tn__object_end(&kind, &(*place)->object);
    }
    *place = make();
    (*place)->object.owner = "the library";
    return *place;
}

tn_comm *tn_comm_world(void) { return lasting(&world, new_world); }

static tn_comm *new_self(void)
{
    tn_comm *comm = comm_over(&tn__transport_alone, tn__transport_alone.world(tn__combines, NULL), 0);
    if (!comm->error && world)
        comm->members[0] = world->place.rank;
    return comm;
}

tn_comm *tn_comm_self(void) { return lasting(&self, new_self); }

tn_comm *tn_comm_split(tn_comm *comm, int color, int key)
{
    if (tn__comm_of_processes(comm, "comm_split") != TN_OK || tn__comm_check(comm, "comm_split", "comm_split") != TN_OK)
        return failed_comm();
    /* The transport's own call waits for all: so they are all to be there. */
    if (tn__comm_transfer(comm, &(tn__transfer){.kind = TN__BARRIER}, "comm_split", "comm_split") != TN_OK)
        return failed_comm();
    tn__why why = {""};
    tn__group *group = comm->transport->split(comm->group, color, key, &why);
    if (group)
        return comm_over(comm->transport, group, comm->members[comm->place.rank]);
    if (color < 0 && !*why.text)
        return NULL;
    tn__fail(TN_ERR_IO, "comm_split", "%s gives no communicator: %s", comm->transport->name, why.text);
    return failed_comm();
}

void tn_comm_free(tn_comm *comm)
{
    if (!comm || !tn__object_may_go(&kind, &comm->object))
        return;
    take_out(comm);
    forget(comm);
    tn__object_end(&kind, &comm->object);
}

/* ---- what it says of itself ---- */

tn_status tn_comm_status(const tn_comm *comm)
{
    TN__NO_PLACE();
    return tn__comm_usable(comm, "comm_status");
}

#define TELL(name, field, usable) \
    int tn_comm_##name(const tn_comm *comm) \
    { \
        return usable(comm, "comm_" #name) == TN_OK ? comm->place.field : -1; \
    }
TELL(rank, rank, tn__comm_of_processes)
TELL(size, size, tn__comm_usable)
TELL(local_rank, local_rank, tn__comm_of_processes)
TELL(local_size, local_size, tn__comm_usable)
TELL(node, node, tn__comm_usable)
TELL(node_count, nodes, tn__comm_usable)

/* ---- the end ---- */

static void free_one(tn_comm *comm)
{
    if (comm && comm != &no_memory) {
        forget(comm);
        tn__free(comm);
    }
}

__attribute__((destructor)) static void free_lasting(void)
{
    free_one(world);
    free_one(self);
    world = self = NULL;
}
