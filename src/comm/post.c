/* SPDX-License-Identifier: MIT */
/* Messages over connected sockets. Nothing here waits but the end. */
#include "comm/post.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "core/clock.h"
#include "core/memory.h"

typedef struct outgoing {
    tn__parcel *parcel;
    struct outgoing *next;
} outgoing;

typedef struct peer {
    bool gone;
    outgoing *first, **last;
    size_t sent;           /* bytes of the first */
    tn__envelope envelope; /* of what comes in */
    size_t received;       /* bytes of it and of what is behind it */
    tn__message *coming;   /* NULL: the envelope is not complete, or there is no memory yet */
    tn__message *there, **last_there;
} peer;

static tn__meeting met;
static peer *peers; /* by rank; NULL: not open */

bool tn__post_is_open(void) { return peers != NULL; }

bool tn__post_open(tn__meeting *meeting)
{
    peers = tn__calloc((size_t)meeting->size, sizeof *peers);
    if (!peers)
        return false;
    met = *meeting;
    for (int r = 0; r < met.size; r++) {
        peers[r].last = &peers[r].first;
        peers[r].last_there = &peers[r].there;
        peers[r].gone = r == met.rank;
    }
    return true;
}

/* ---- out ---- */

tn__parcel *tn__parcel_new(uint64_t group, int64_t tag, const void *data, size_t bytes)
{
    tn__parcel *new = tn__alloc(sizeof *new + bytes);
    if (!new)
        return NULL;
    new->references = 1;
    new->bytes = sizeof new->envelope + bytes;
    new->envelope = (tn__envelope){.group = group, .tag = tag, .bytes = bytes};
    if (bytes)
        memcpy(new->data, data, bytes);
    return new;
}

void tn__parcel_release(tn__parcel *parcel)
{
    if (parcel && --parcel->references == 0)
        tn__free(parcel);
}

static void drop_first(peer *p)
{
    outgoing *sent = p->first;
    p->first = sent->next;
    p->last = p->first ? p->last : &p->first;
    p->sent = 0;
    tn__parcel_release(sent->parcel);
    tn__free(sent);
}

static void lose(peer *p)
{
    p->gone = true;
    while (p->first)
        drop_first(p);
}

static void push(int rank)
{
    peer *p = &peers[rank];
    while (p->first && !p->gone) {
        const tn__parcel *parcel = p->first->parcel;
        const char *from = (const char *)&parcel->envelope + p->sent;
        ssize_t sent = send(met.socket[rank], from, parcel->bytes - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) {
            lose(p);
            return;
        }
        p->sent += (size_t)sent;
        if (p->sent == parcel->bytes)
            drop_first(p);
    }
}

bool tn__post(int rank, tn__parcel *parcel)
{
    peer *p = &peers[rank];
    if (p->gone)
        return true; /* whoever waits for it hears of that */
    outgoing *new = tn__alloc(sizeof *new);
    if (!new)
        return false;
    *new = (outgoing){.parcel = parcel};
    parcel->references++;
    *p->last = new;
    p->last = &new->next;
    push(rank);
    return true;
}

bool tn__post_sent(int rank) { return !peers[rank].first; }

/* ---- in ---- */

/* The message whose envelope has come; false without memory for it, which may be there another time. */
static bool begin_message(peer *p)
{
    if (p->coming)
        return true;
    p->coming = tn__alloc(sizeof *p->coming + p->envelope.bytes);
    if (p->coming)
        *p->coming = (tn__message){.envelope = p->envelope};
    return p->coming != NULL;
}

static void end_message(peer *p)
{
    *p->last_there = p->coming;
    p->last_there = &p->coming->next;
    p->coming = NULL;
    p->received = 0;
}

/* Some bytes of what comes next; false: no more for now. */
static bool pull_some(int rank)
{
    peer *p = &peers[rank];
    const size_t head = sizeof p->envelope;
    bool within = p->received >= head;
    if (within && !begin_message(p))
        return false;
    size_t wanted = within ? head + p->envelope.bytes - p->received : head - p->received;
    char *to = within ? p->coming->bytes + (p->received - head) : (char *)&p->envelope + p->received;
    ssize_t got = wanted ? recv(met.socket[rank], to, wanted, MSG_DONTWAIT) : 0;
    if (got < 0 && errno == EINTR)
        return true;
    if (wanted && got <= 0) {
        if (got == 0 || errno != EAGAIN)
            lose(p);
        return false;
    }
    p->received += (size_t)got;
    if (within && p->received == head + p->envelope.bytes)
        end_message(p);
    return true;
}

void tn__post_move(void)
{
    for (int r = 0; r < met.size; r++) {
        if (peers[r].gone)
            continue;
        push(r);
        while (!peers[r].gone && pull_some(r)) {
        }
    }
}

tn__message *tn__post_take(int rank, uint64_t group, int64_t tag)
{
    peer *p = &peers[rank];
    for (tn__message **at = &p->there; *at; at = &(*at)->next) {
        tn__message *found = *at;
        if (found->envelope.group != group || found->envelope.tag != tag)
            continue;
        *at = found->next;
        if (!found->next)
            p->last_there = at;
        return found;
    }
    return NULL;
}

bool tn__post_gone(int rank) { return peers[rank].gone; }

/* ---- the end ---- */

/* Whether the other end has all that was sent, so that closing loses nothing. */
static bool delivered(int rank)
{
    int left = 0;
    return peers[rank].gone || (!peers[rank].first && ioctl(met.socket[rank], SIOCOUTQ, &left) == 0 && left == 0);
}

static void free_peer(peer *p)
{
    lose(p);
    tn__free(p->coming);
    while (p->there) {
        tn__message *next = p->there->next;
        tn__free(p->there);
        p->there = next;
    }
}

void tn__post_close(double seconds)
{
    double until = tn__seconds() + seconds;
    bool done = false;
    while (!done && tn__seconds() < until) {
        tn__post_move();
        done = true;
        for (int r = 0; r < met.size; r++)
            done &= delivered(r);
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    for (int r = 0; r < met.size; r++)
        free_peer(&peers[r]);
    tn__meeting_end(&met);
    tn__free(peers);
    peers = NULL;
}
