/* SPDX-License-Identifier: MIT */
/*
 * The transport of processes that nobody but the environment tells of each other: each sends what the others need to
 * them directly. That is right for every call and fast for short ones; much data between hosts is for MPI, and
 * between GPUs for NCCL (link.c), which this one brings together.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/post.h"
#include "core/hash.h"
#include "core/memory.h"

struct tn__group {
    uint64_t number;
    tn__comm_place place;
    int *members;      /* ranks in the world */
    uint64_t children; /* that were split off */
};

enum { COLLECTIVE = -1, NOTE = -2 }; /* tags; those of messages are not negative */

static tn__group everybody;
static tn__combine *const (*combines)[TN_DTYPE_COUNT];
static bool *told; /* by rank: that its connection has ended */

/* ---- who sends what ---- */

typedef struct facts {
    bool all;               /* everybody sends to everybody */
    bool to_peer, from_peer;
    bool reduces, cut, side; /* cut: each gets another share of what is sent; side: shares lie side by side */
} facts;

static const facts kinds[TN__TRANSFER_KINDS] = {
    [TN__ALL_REDUCE] = {.all = true, .reduces = true},
    [TN__REDUCE] = {.to_peer = true, .reduces = true},
    [TN__BROADCAST] = {.from_peer = true},
    [TN__ALL_GATHER] = {.all = true, .side = true},
    [TN__GATHER] = {.to_peer = true, .side = true},
    [TN__SCATTER] = {.from_peer = true, .cut = true},
    [TN__REDUCE_SCATTER] = {.all = true, .reduces = true, .cut = true},
    [TN__ALL_TO_ALL] = {.all = true, .cut = true, .side = true},
    [TN__BARRIER] = {.all = true},
};

static bool sends(const tn__transfer *t, int own, int from, int to)
{
    const facts *kind = &kinds[t->kind];
    if (t->kind == TN__SEND)
        return from == own && to == t->peer;
    if (t->kind == TN__RECEIVE)
        return to == own && from == t->peer;
    return kind->all || (kind->to_peer && to == t->peer) || (kind->from_peer && from == t->peer);
}

/* ---- a transfer ---- */

typedef struct request {
    tn__transfer t;
    tn__message **came; /* by rank */
} request;

static int64_t tag_of(const tn__transfer *t)
{
    return t->kind == TN__SEND || t->kind == TN__RECEIVE ? t->tag : COLLECTIVE;
}

static bool send_shares(const tn__group *group, const tn__transfer *t)
{
    size_t share = (size_t)t->count * t->itemsize;
    tn__parcel *parcel = NULL;
    bool done = true, cut = kinds[t->kind].cut;
    for (int r = 0; r < group->place.size && done; r++) {
        if (r == group->place.rank || !sends(t, group->place.rank, group->place.rank, r))
            continue;
        if (!parcel || cut) {
            tn__parcel_release(parcel);
            parcel = tn__parcel_new(group->number, tag_of(t), (const char *)t->from + (cut ? (size_t)r * share : 0),
                                    share);
        }
        done = parcel && tn__post(group->members[r], parcel);
    }
    tn__parcel_release(parcel);
    return done;
}

static void request_free(const tn__group *group, request *r)
{
    for (int i = 0; r && r->came && i < group->place.size; i++)
        tn__free(r->came[i]);
    if (r)
        tn__free(r->came);
    tn__free(r);
}

static void *start(tn__group *group, const tn__transfer *t, tn__why *why)
{
    request *new = tn__calloc(1, sizeof *new);
    if (new) {
        new->t = *t;
        new->came = tn__calloc((size_t)group->place.size, sizeof(tn__message *));
    }
    if (new && new->came && send_shares(group, t))
        return new;
    snprintf(why->text, sizeof why->text, "out of memory");
    request_free(group, new);
    return NULL;
}

/* Takes what has come; whether that is all, and all has gone out. */
static bool complete(const tn__group *group, request *r)
{
    bool all = true;
    for (int i = 0; i < group->place.size; i++) {
        int own = group->place.rank;
        if (i == own)
            continue;
        if (sends(&r->t, own, i, own) && !r->came[i])
            r->came[i] = tn__post_take(group->members[i], group->number, tag_of(&r->t));
        all &= (!sends(&r->t, own, i, own) || r->came[i]) &&
               (!sends(&r->t, own, own, i) || tn__post_sent(group->members[i]));
    }
    return all;
}

static bool put_together(const tn__group *group, const request *r, tn__why *why)
{
    const tn__transfer *t = &r->t;
    const facts *kind = &kinds[t->kind];
    size_t share = (size_t)t->count * t->itemsize;
    int own = group->place.rank;
    bool first = true;
    for (int i = 0; i < group->place.size; i++) {
        if (!sends(t, own, i, own))
            continue;
        const char *from = i == own ? (const char *)t->from + (kind->cut ? (size_t)own * share : 0) : r->came[i]->bytes;
        char *to = (char *)t->to + (kind->side ? (size_t)i * share : 0);
        if (i != own && r->came[i]->envelope.bytes != share) {
            snprintf(why->text, sizeof why->text,
                     "rank %d has sent %llu bytes, and %zu were expected: the ranks' shapes or dtypes differ",
                     group->members[i], (unsigned long long)r->came[i]->envelope.bytes, share);
            return false;
        }
        if (kind->reduces && !first)
            combines[t->op][t->dtype](to, from, t->count);
        else if (share && to != from)
            memmove(to, from, share);
        first = false;
    }
    return true;
}

static int test(tn__group *group, void *pointer, tn__why *why)
{
    tn__post_move();
    if (!complete(group, pointer))
        return 0;
    bool done = put_together(group, pointer, why);
    request_free(group, pointer);
    return done ? 1 : -1;
}

/* ---- notes ---- */

static void send_note(int to, const tn__note *note)
{
    tn__parcel *parcel = tn__parcel_new(everybody.number, NOTE, note, sizeof *note);
    if (parcel)
        (void)tn__post(to, parcel);
    tn__parcel_release(parcel);
}

static bool take_note(tn__note *note)
{
    tn__post_move();
    for (int r = 0; r < everybody.place.size; r++) {
        tn__message *message = tn__post_take(r, everybody.number, NOTE);
        if (message) {
            memcpy(note, message->bytes, sizeof *note);
            told[r] |= note->kind == TN__NOTE_LEAVES;
            tn__free(message);
            return true;
        }
        if (r == everybody.place.rank || told[r] || !tn__post_gone(r))
            continue;
        told[r] = true;
        *note = (tn__note){.kind = TN__NOTE_LEAVES, .from = r};
        snprintf(note->text, sizeof note->text, "its connection has ended: it was killed, or its machine is gone");
        return true;
    }
    return false;
}

/* ---- groups ---- */

/* The place among ranks of which it is known which share a machine with which. */
static tn__comm_place place_among(const tn__meeting *m, const int *members, int size, int own)
{
    tn__comm_place p = {.size = size};
    for (int i = 0; i < size; i++) {
        const char *host = m->host[members[i]];
        bool here = strcmp(host, m->host[own]) == 0;
        int same = 0;
        for (int k = 0; k < i; k++)
            same += strcmp(m->host[members[k]], host) == 0;
        if (members[i] == own) {
            p.rank = i;
            p.local_rank = same;
        }
        if (here && same == 0)
            p.node = p.nodes;
        p.local_size += here;
        p.nodes += same == 0;
    }
    return p;
}

static char (*hosts)[TN__HOST_NAME]; /* by rank in the world */

/* Gives a group its members, which it takes over. */
static void set_up(tn__group *group, int *members, int size, int own)
{
    group->members = members;
    group->place = place_among(&(tn__meeting){.host = hosts}, members, size, own);
}

static bool open_post(tn__meeting *m, tn__why *why)
{
    int *members = tn__alloc((size_t)m->size * sizeof *members);
    hosts = tn__alloc((size_t)m->size * sizeof *hosts);
    told = tn__calloc((size_t)m->size, sizeof *told);
    if (members && hosts && told && tn__post_open(m)) {
        memcpy(hosts, m->host, (size_t)m->size * sizeof *hosts);
        for (int r = 0; r < m->size; r++)
            members[r] = r;
        set_up(&everybody, members, m->size, m->rank);
        return true;
    }
    snprintf(why->text, sizeof why->text, "out of memory");
    tn__free(members);
    tn__free(hosts);
    tn__free(told);
    hosts = NULL;
    told = NULL;
    return false;
}

static tn__group *world(tn__combine *const (*combine)[TN_DTYPE_COUNT], tn__why *why)
{
    tn__meeting m = {.rank = atoi(getenv("RANK")), .size = atoi(getenv("WORLD_SIZE"))};
    combines = combine;
    if (!tn__meet(&m, tn__comm_limit(), why))
        return NULL;
    if (open_post(&m, why))
        return &everybody;
    tn__meeting_end(&m);
    return NULL;
}

static void forget_world(void)
{
    tn__free(everybody.members);
    tn__free(hosts);
    tn__free(told);
    everybody = (tn__group){0};
    hosts = NULL;
    told = NULL;
}

/* Others may still need what was sent to them last; who does not read it for a minute has gone. */
static void finish(void)
{
    if (tn__post_is_open())
        tn__post_close(60);
}

static tn__comm_place place(const tn__group *group) { return group->place; }

typedef struct choice {
    int color, key, rank;
} choice;

static int by_key(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Those of a color, in their order. */
static tn__group *part_of(const tn__group *group, choice *all, int color)
{
    int size = 0, own = group->members[group->place.rank];
    qsort(all, (size_t)group->place.size, sizeof *all, by_key);
    tn__group *part = tn__calloc(1, sizeof *part);
    int *members = tn__alloc((size_t)group->place.size * sizeof *members);
    if (!part || !members) {
        tn__free(part);
        tn__free(members);
        return NULL;
    }
    for (int r = 0; r < group->place.size; r++)
        if (all[r].color == color)
            members[size++] = group->members[all[r].rank];
    part->number = tn__hash_mix(tn__hash_mix(group->number, group->children), (uint64_t)color);
    set_up(part, members, size, own);
    return part;
}

static tn__group *split(tn__group *group, int color, int key, tn__why *why)
{
    choice own = {color, key, group->place.rank}, *all = tn__calloc((size_t)group->place.size, sizeof *all);
    tn__transfer t = {.kind = TN__ALL_GATHER, .itemsize = 1, .count = sizeof own, .from = &own, .to = all};
    void *request = all ? start(group, &t, why) : NULL;
    int done = request ? 0 : -1;
    for (; done == 0; sched_yield()) { /* they are all in this call */
        done = test(group, request, why);
        for (int r = 0; r < group->place.size && done == 0; r++)
            if (r != group->place.rank && tn__post_gone(group->members[r]))
                snprintf(why->text, sizeof why->text, "rank %d has ended", group->members[r]), done = -2;
    }
    group->children++;
    tn__group *part = done == 1 && color >= 0 ? part_of(group, all, color) : NULL;
    if (done == -2)
        request_free(group, request);
    if (!part && !*why->text && (color >= 0 || done != 1))
        snprintf(why->text, sizeof why->text, "out of memory");
    tn__free(all);
    return part;
}

static void let_go(tn__group *group, bool broken)
{
    (void)broken;
    if (group == &everybody) {
        forget_world();
        return;
    }
    tn__free(group->members);
    tn__free(group);
}

const tn__transport tn__transport_sockets = {.name = "the meeting of ranks",
                                             .world = world,
                                             .finish = finish,
                                             .place = place,
                                             .split = split,
                                             .free = let_go,
                                             .start = start,
                                             .test = test,
                                             .send_note = send_note,
                                             .take_note = take_note};
