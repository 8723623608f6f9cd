/* SPDX-License-Identifier: MIT */
/* Communicators within the library: the object, a transfer that is waited for, and collectives over nodes. */
#ifndef TN_COMM_COMM_H
#define TN_COMM_COMM_H

#include "array/node.h"
#include "comm/transport.h"
#include "core/object.h"

struct tn_comm {
    tn__object object;
    tn__error *error;     /* NULL: works */
    const tn__transport *transport;
    tn__group *group;
    tn__comm_place place;
    int *members;         /* ranks in the world, by rank */
    bool pending;         /* has waited too long for a rank that may never come */
    bool given_up;        /* a transfer in it may go on, with nobody waiting for it */
    tn__device **devices; /* by rank, of a communicator of devices; NULL: of processes */
    struct tn__linked *linked; /* how its ranks' devices are connected; NULL: not yet, or not at all */
    bool devices_everywhere;   /* each of its ranks has some that could be */
    uint32_t number;      /* of this process's communicators: what nodes name it by */
    tn_comm *next;        /* in the list of those that live */
};

/* Latches TN_ERR_VALUE for NULL, or the communicator's error. */
tn_status tn__comm_usable(const tn_comm *comm, const char *operation);
/* The living one with this number; NULL: it has been freed. */
tn_comm *tn__comm_numbered(uint32_t number);
/* The same for a call of one rank, which a communicator of devices has not. */
tn_status tn__comm_of_processes(const tn_comm *comm, const char *operation);
/* Notes that it does not work any more, with the failure latched last, and returns that; tells the other ranks, who may
 * wait for this one, if they cannot know. */
tn_status tn__comm_break(tn_comm *comm, bool tell);

/* ---- transports ---- */

/* Of a process that is alone. */
extern const tn__transport tn__transport_alone;
/* Of one of several that know each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. */
extern const tn__transport tn__transport_sockets;
/* The one for how this process was launched; NULL with a latched error. */
const tn__transport *tn__transport_of_launch(void);
/* The plug-in of transfers between devices; NULL with why not. */
const tn__link_transport *tn__link_transport_load(tn__why *why);
/* By op and dtype; NULL: none. */
extern tn__combine *const tn__combines[TN__COMBINES][TN_DTYPE_COUNT];

/* ---- transfers ---- */

typedef enum tn__note_kind {
    TN__NOTE_LEAVES, /* the process ends, or has failed within a call: nobody need wait for it */
    TN__NOTE_ASKS,   /* who has waited too long asks everybody what he is doing */
    TN__NOTE_WAITS   /* the answer of somebody who waits, too */
} tn__note_kind;

/* Does a transfer and waits for its end, telling by `call` what is waited for: "all_reduce of float32 (3,)". On failure
 * the communicator is broken; what the transfer reads and writes is then freed by the functions below alone. */
tn_status tn__comm_transfer(tn_comm *comm, const tn__transfer *transfer, const char *operation, const char *call);
/* The same of a few bytes, which are copied: they may be on the stack. Checked as collectives are, but the latter. */
tn_status tn__comm_tell(tn_comm *comm, const tn__transfer *transfer, const char *operation, const char *call);
tn_status tn__comm_tell_unchecked(tn_comm *comm, const tn__transfer *transfer, const char *operation,
                                  const char *call);
/* Checked: tells all ranks `bytes` of `own`; `all` is filled with those of each, in the order of ranks. */
tn_status tn__comm_tell_all(tn_comm *comm, const void *own, void *all, size_t bytes, const char *operation,
                            const char *call);
/* Seconds that a call waits for others. */
double tn__comm_limit(void);
/* Free a block, or let go of a storage, that a transfer in `comm` has used, unless it was given up: see kept.c. NULL is
 * ignored. */
void tn__comm_block_free(const tn_comm *comm, void *block);
void tn__comm_storage_release(const tn_comm *comm, tn__storage *storage);
/* Tells the whole world that this process takes part in nothing any more; `text` why. */
void tn__comm_tell_leaving(const tn_comm *world, const char *text);
/* After a wait that was given up: until those who waited, too, have told that, a moment at most. */
void tn__comm_await_leavers(const tn_comm *world);

/* Something of `name` that is begun and tested until it is done (1) or has failed (-1, with why). */
typedef struct tn__awaited {
    int (*test)(void *what, tn__why *why);
    void *what;
    const char *name, *operation, *call;
} tn__awaited;
/* Waits for it as for a transfer; `*done` is what it told last. */
tn_status tn__comm_await(tn_comm *comm, const tn__awaited *awaited, int *done);
/* A look around for who waits by other means since a moment, of tn__seconds: an error if that is of no use. `asked` is
 * his: when he has asked, and who has answered. */
typedef struct tn__lookout {
    double since, asked, missed;
    tn__note *answers;
} tn__lookout;
tn_status tn__comm_look(tn_comm *comm, tn__lookout *lookout, const char *operation, const char *call);
void tn__lookout_end(tn__lookout *lookout);

/* ---- between devices (link.c) ---- */

/* Whether elements on this device go from there to the other ranks' devices: all ranks of a call get the same answer.
 * The first time they connect them. TN_OK, or what is wrong. */
tn_status tn__comm_link(tn_comm *comm, tn__device *device, const char *operation, bool *linked);
/* Has two ranks of one host, whose devices are connected, look whether each reaches the other's memory (reach.c). */
tn_status tn__link_reach(tn_comm *comm, const tn__link_transport *transport, tn__link *link, const char *operation);
/* Whether a link takes a call. */
bool tn__link_takes(const tn_comm *comm, tn__transfer_kind kind, tn_comm_op op, tn_dtype dtype);
/* What a transfer reads and writes: storages of the link's device; NULL: it gives, or gets, nothing. */
typedef struct tn__link_ends {
    tn__storage *from, *to;
} tn__link_ends;
/* Transfers between the devices, as one, without waiting for them. Addresses in them are as in transfers of host
 * memory. `aside`: by a stream of their own, beside what the device is asked next. */
tn_status tn__link_transfer(tn_comm *comm, int count, const tn__transfer *transfers, const tn__link_ends *ends,
                            bool aside, const char *operation, const char *call);
tn__device *tn__link_device(const tn_comm *comm);
/* Lets go of the link; broken: what is under way is called off. */
void tn__link_end(tn_comm *comm, bool broken);

/* Under TANSO_COMM_CHECK: compares this call with the other ranks' calls. */
tn_status tn__comm_check(tn_comm *comm, const char *operation, const char *call);

/* What collectives ask: the latched error of a root, or another end; of shares along the first axis; of an op. */
tn_status tn__comm_check_peer(const tn_comm *comm, const char *operation, const char *what, int peer, bool other);
tn_status tn__comm_check_shares(const tn_comm *comm, const char *operation, const tn__node *x);
tn_status tn__comm_check_op(const char *operation, tn_comm_op op, const tn__node *x);

/* ---- collectives over nodes ---- */

#define TN__CALL_TEXT 256
/* The way that elements take, the same for all ranks of a call. */
typedef enum tn__way {
    TN__BY_OPERANDS, /* that of the operand's device, which all ranks then have of one kind */
    TN__BY_HOST,
    TN__BY_LINK
} tn__way;

/* One call: what nodes of the operation COLLECTIVE keep as their attribute. */
typedef struct tn__collective_call {
    tn__transfer_kind kind;
    tn_comm_op op;
    int peer, tag;
    tn__way way;
} tn__collective_call;

/* What the ranks tell of an array before it comes. */
typedef struct tn__heading {
    int32_t dtype, ndim;
    int64_t dim[TN_MAX_NDIM];
    int32_t needs_grad, fails, on_device;
} tn__heading;

/*
 * Evaluates `in`, does the transfer, and gives a node that has its value and, for backward, `in` as its input. `in` may
 * be an empty stand-in where this rank gives nothing; the result has `shape`, or is empty where it gets nothing.
 */
tn__node *tn__collective(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn_dtype dtype,
                         const tn__shape *shape);
/* Whether a rank gives, or gets, elements in a call. */
bool tn__collective_gives(const tn_comm *comm, const tn__collective_call *call);
bool tn__collective_gets(const tn_comm *comm, const tn__collective_call *call);
const char *tn__collective_name(tn__transfer_kind kind);
/* Evaluated nodes on the device of the communicator's link, each of which becomes its sum over the ranks, borrowed: all
 * of them by one call, `aside` as above. Their dtypes are such as the link adds. Without gradients. */
tn_status tn__comm_sums(tn_comm *comm, int count, tn__node **node, bool aside, const char *operation);

#endif
