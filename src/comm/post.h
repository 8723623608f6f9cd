/* SPDX-License-Identifier: MIT */
/* Messages between processes that have met: what is posted goes out, and what comes in waits for whoever takes it. */
#ifndef TN_COMM_POST_H
#define TN_COMM_POST_H

#include "comm/meet.h"

/* In front of a message's bytes. Messages of one rank, group and tag arrive in order. */
typedef struct tn__envelope {
    uint64_t group, bytes;
    int64_t tag;
} tn__envelope;

/* A message that has come. */
typedef struct tn__message {
    tn__envelope envelope;
    struct tn__message *next;
    char bytes[];
} tn__message;

/* Something to send, to one rank or to several. */
typedef struct tn__parcel {
    int references;
    size_t bytes; /* of all that follows */
    tn__envelope envelope;
    char data[];
} tn__parcel;

/* From here on a meeting's sockets are the post's. */
bool tn__post_open(tn__meeting *meeting);
/* Sends what is still to go out, for so many seconds at most, and closes all. */
void tn__post_close(double seconds);
bool tn__post_is_open(void);

/* A parcel of a copy of these bytes, with one reference; NULL without memory. */
tn__parcel *tn__parcel_new(uint64_t group, int64_t tag, const void *data, size_t bytes);
void tn__parcel_release(tn__parcel *parcel);
/* Puts it on its way; false without memory. */
bool tn__post(int rank, tn__parcel *parcel);
/* Moves what can be moved without waiting. */
void tn__post_move(void);
/* Whether nothing is to go out to a rank any more: it is on its way, or nobody is there. */
bool tn__post_sent(int rank);
/* Whether the connection to a rank has ended. */
bool tn__post_gone(int rank);
/* The first that has come of a rank, group and tag, for tn__free; NULL: none yet. */
tn__message *tn__post_take(int rank, uint64_t group, int64_t tag);

#endif
