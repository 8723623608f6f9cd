/* SPDX-License-Identifier: MIT */
/*
 * What carries elements between processes. Of host memory: MPI, in a shared object of its own, sockets, or nothing but
 * memory for a process that is alone. Such a transport starts transfers and tells when they are done; who waits, for
 * how long, and what is told of it is the library's (wait.c). Of devices' memory: NCCL, in a shared object of its own.
 * It puts a transfer on a stream, and nobody waits. Their functions are called by one thread at a time.
 *
 * A plug-in uses nothing of the library but what it is given here, so that programs that carry libtanso.a have it too.
 */
#ifndef TN_COMM_TRANSPORT_H
#define TN_COMM_TRANSPORT_H

#include <tanso/comm.h>
#include <tanso/device.h>

typedef enum tn__transfer_kind {
    TN__ALL_REDUCE,
    TN__REDUCE,
    TN__BROADCAST,
    TN__ALL_GATHER,
    TN__GATHER,
    TN__SCATTER,
    TN__REDUCE_SCATTER,
    TN__ALL_TO_ALL,
    TN__SEND,
    TN__RECEIVE,
    TN__BARRIER,
    TN__TRANSFER_KINDS
} tn__transfer_kind;

/* to[i] becomes from[i] and to[i], combined. */
typedef void tn__combine(void *to, const void *from, int64_t count);
#define TN__COMBINES (TN_COMM_PROD + 1) /* by tn_comm_op; the mean has none */

/* One rank's part of a transfer. */
typedef struct tn__transfer {
    tn__transfer_kind kind;
    tn_comm_op op;    /* of reductions */
    tn_dtype dtype;
    size_t itemsize;
    int64_t count;    /* elements of a share: what one rank gives to, or gets from, one other */
    const void *from; /* NULL where the rank gives nothing, `to` where it gets nothing */
    void *to;
    int peer;         /* the root, or the other end */
    int tag;
    bool aside;       /* between devices: beside other work of theirs, which it should leave room */
} tn__transfer;

/* Where a rank is among the others. */
typedef struct tn__comm_place {
    int rank, size, local_rank, local_size, node, nodes;
} tn__comm_place;

/* A short message to a process beside all transfers: of one that leaves, and questions of those that wait. */
#define TN__NOTE_TEXT 500
typedef struct tn__note {
    int kind, from; /* the rank in the world */
    char text[TN__NOTE_TEXT];
} tn__note;

typedef struct tn__why {
    char text[500];
} tn__why;

typedef struct tn__group tn__group;

typedef struct tn__transport {
    const char *version; /* TN_BUILD_VERSION of the build */
    const char *name;    /* "MPI" */
    /* The processes that were launched together; NULL with why not. Functions to combine stay where they are. */
    tn__group *(*world)(tn__combine *const (*combine)[TN_DTYPE_COUNT], tn__why *why);
    /* The end of the process, of the world; nothing is called after it. */
    void (*finish)(void);
    tn__comm_place (*place)(const tn__group *group);
    /* All ranks of the group are in this call. NULL: with a negative color; else with why. */
    tn__group *(*split)(tn__group *group, int color, int key, tn__why *why);
    /* Broken: something is under way in it that may never end. */
    void (*free)(tn__group *group, bool broken);
    /* Starts one. NULL with why not. */
    void *(*start)(tn__group *group, const tn__transfer *transfer, tn__why *why);
    /* 1: done, and the request is gone; 0: not yet; -1: failed, with why, and gone. */
    int (*test)(tn__group *group, void *request, tn__why *why);
    /* Notes, between ranks of the world. take: whether there was one. */
    void (*send_note)(int to, const tn__note *note);
    bool (*take_note)(tn__note *note);
} tn__transport;

/* ---- between devices ---- */

/* What one rank makes and all need to know, so that their devices find each other. */
typedef struct tn__link_name {
    char bytes[128];
} tn__link_name;

/* The device that is connected; `enter` makes its context that of the thread that calls, `kernel` makes a kernel of a
 * text, in the driver's form, or NULL. */
typedef struct tn__link_place {
    bool (*enter)(void *device);
    void *(*kernel)(void *device, const char *text, const char *name);
    void *device;
} tn__link_place;

typedef struct tn__link tn__link; /* one rank's end of what connects the devices of a group */

typedef enum tn__link_library { TN__LINK_ABSENT, TN__LINK_REFUSED, TN__LINK_THERE } tn__link_library;

typedef struct tn__link_transport {
    const char *version; /* TN_BUILD_VERSION of the build */
    const char *name;    /* "NCCL" */
    tn_device_kind kind; /* of the devices whose memory it takes */
    /* Opens its library, once; unless that is there, with why. */
    tn__link_library (*open)(tn__why *why);
    /* Whether it carries, and combines, this dtype; what only moves elements carries them all. */
    bool (*takes)(tn__transfer_kind kind, tn_comm_op op, tn_dtype dtype);
    bool (*make_name)(tn__link_name *name, tn__why *why);
    /* Begins to connect a device; tested until it is done. NULL with why not. */
    tn__link *(*join)(const tn__link_name *name, int rank, int size, const tn__link_place *place, tn__why *why);
    /* Between two ranks of one host: what the other one needs in order to reach this one's memory; then whether it has
     * been reached by that; then, what both have found, whether transfers may use it. */
    bool (*show)(tn__link *link, tn__link_name *own);
    bool (*reach)(tn__link *link, const tn__link_name *other);
    void (*agree)(tn__link *link, bool reached);
    /* Puts transfers, whose addresses are the device's, on a stream as one; tested until they are there. The list lasts
     * until then. False with why not. */
    bool (*start)(tn__link *link, const tn__transfer *transfers, int count, void *stream, tn__why *why);
    /* 1: what was begun is done, so far as the host is concerned; 0: not yet; -1: the link has failed, with why. */
    int (*test)(tn__link *link, tn__why *why);
    /* Broken: what is under way is called off, and streams go on behind it. */
    void (*free)(tn__link *link, bool broken);
} tn__link_transport;

#endif
