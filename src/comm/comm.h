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
/* Whether a launcher has started this process as one of several, or of one. */
bool tn__launched(void);
/* Fails where it is one of several by variables that no transport here goes by. */
tn_status tn__comm_check_launch(void);
/* The plug-in named, once it has been loaded; NULL with a latched error. */
const tn__transport *tn__transport_load(const char *name);
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
/* The same of a few bytes, which are copied: they may be on the stack. */
tn_status tn__comm_tell(tn_comm *comm, const tn__transfer *transfer, const char *operation, const char *call);
/* Free a block, or let go of a storage, that a transfer in `comm` has used, unless it was given up: see kept.c. NULL is
 * ignored. */
void tn__comm_block_free(const tn_comm *comm, void *block);
void tn__comm_storage_release(const tn_comm *comm, tn__storage *storage);
/* Tells the whole world that this process takes part in nothing any more; `text` why. */
void tn__comm_tell_leaving(const tn_comm *world, const char *text);
/* After a wait that was given up: until those who waited, too, have told that, a moment at most. */
void tn__comm_await_leavers(const tn_comm *world);

/* Under TANSO_COMM_CHECK: compares this call with the other ranks' calls. */
tn_status tn__comm_check(tn_comm *comm, const char *operation, const char *call);

/* What collectives ask: the latched error of a root, or another end; of shares along the first axis; of an op. */
tn_status tn__comm_check_peer(const tn_comm *comm, const char *operation, const char *what, int peer, bool other);
tn_status tn__comm_check_shares(const tn_comm *comm, const char *operation, const tn__node *x);
tn_status tn__comm_check_op(const char *operation, tn_comm_op op, const tn__node *x);

/* ---- collectives over nodes ---- */

#define TN__CALL_TEXT 256
/* One call: what nodes of the operation COLLECTIVE keep as their attribute. */
typedef struct tn__collective_call {
    tn__transfer_kind kind;
    tn_comm_op op;
    int peer, tag;
} tn__collective_call;

/* What the ranks tell of an array before it comes. */
typedef struct tn__heading {
    int32_t dtype, ndim;
    int64_t dim[TN_MAX_NDIM];
    int32_t needs_grad, fails;
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

#endif
