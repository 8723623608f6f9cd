/* SPDX-License-Identifier: MIT */
/*
 * Waiting for transfers. Others may come late, or never: so who waits looks at notes meanwhile. A process that ends, or
 * fails within a call, has left one; who waits longer than the limit asks everybody, and names who does not answer, as
 * whoever waits, too, does.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "core/clock.h"
#include "core/memory.h"

#define LIMIT 300.0 /* seconds that a call waits, unless TANSO_COMM_TIMEOUT says otherwise */
#define GRACE 2.0   /* seconds that what is under way has to come from one that has left */
#define ANSWER 4.0  /* seconds that the others have to answer, on machines that are busy */

/* The processes that were heard to have left. */
typedef struct leaver {
    tn__note note;
    struct leaver *next;
} leaver;
static leaver *leavers;
static int waiters; /* who waited, too, when this process gave up: they will say so and end, as it does */

double tn__comm_limit(void)
{
    const char *text = getenv("TANSO_COMM_TIMEOUT");
    double seconds = text ? strtod(text, NULL) : 0;
    return seconds > 0 ? seconds : LIMIT;
}

/* A wait in progress: what for, since when, and, once it has asked (0: not yet), who has answered; `missed` is since
 * when it is known that one of them has left. */
typedef struct wait {
    tn_comm *comm;
    const char *operation, *call;
    tn__lookout *l;
} wait;

static tn__note note_of(const wait *w, int kind)
{
    tn__note note = {.kind = kind, .from = w->comm->members[w->comm->place.rank]};
    snprintf(note.text, sizeof note.text, "%s", w->call);
    return note;
}

static int rank_of(const tn_comm *comm, int member)
{
    for (int r = 0; r < comm->place.size; r++) {
        if (comm->members[r] == member)
            return r;
    }
    return -1;
}

static void add_leaver(const tn__note *note)
{
    leaver *new = tn__alloc(sizeof *new);
    if (!new)
        return; /* who waits for it does so until the limit */
    *new = (leaver){.note = *note, .next = leavers};
    leavers = new;
}

static void take_notes(const wait *w)
{
    tn__note note;
    while (w->comm->transport->take_note(&note)) {
        int rank = rank_of(w->comm, note.from);
        if (note.kind == TN__NOTE_LEAVES) {
            add_leaver(&note);
        } else if (note.kind == TN__NOTE_ASKS) {
            tn__note answer = note_of(w, TN__NOTE_WAITS);
            w->comm->transport->send_note(note.from, &answer);
        } else if (note.kind == TN__NOTE_WAITS && rank >= 0 && w->l->answers) {
            w->l->answers[rank] = note;
        }
    }
}

static const leaver *leaver_among(const tn_comm *comm)
{
    const leaver *found = NULL; /* the first that was heard of: others may have left because of it */
    for (const leaver *l = leavers; l; l = l->next)
        found = rank_of(comm, l->note.from) >= 0 ? l : found;
    return found;
}

static tn_status somebody_left(const wait *w, const leaver *l)
{
    return tn__fail(TN_ERR_IO, w->operation,
                    "rank %d has ended, or failed, while rank %d waits in %s: %s", l->note.from,
                    w->comm->members[w->comm->place.rank], w->call,
                    *l->note.text ? l->note.text : "it has met no error, so it makes fewer calls");
}

static tn_status took_too_long(const wait *w)
{
    tn__text text = {0};
    for (int r = 0; r < w->comm->place.size; r++) {
        if (r != w->comm->place.rank && w->l->answers[r].kind != TN__NOTE_WAITS)
            tn__text_addf(&text, "; rank %d does not answer: it computes, or hangs", w->comm->members[r]);
    }
    for (int r = 0; r < w->comm->place.size; r++) {
        if (r == w->comm->place.rank || w->l->answers[r].kind != TN__NOTE_WAITS)
            continue;
        waiters++;
        tn__text_addf(&text, "; rank %d waits in %s", w->comm->members[r], w->l->answers[r].text);
    }
    char *who = tn__text_take(&text);
    tn_status status = tn__fail(TN_ERR_IO, w->operation,
                                "rank %d has waited in %s for more than %g s (TANSO_COMM_TIMEOUT sets the limit)%s",
                                w->comm->members[w->comm->place.rank], w->call, tn__comm_limit(), who ? who : "");
    tn__free(who);
    return status;
}

static tn_status ask(const wait *w)
{
    int size = w->comm->place.size;
    w->l->answers = tn__calloc((size_t)size, sizeof *w->l->answers);
    if (!w->l->answers)
        return tn__fail_memory(w->operation, (size_t)size * sizeof *w->l->answers);
    for (int r = 0; r < size; r++)
        w->l->answers[r].kind = TN__NOTE_ASKS;
    tn__note question = note_of(w, TN__NOTE_ASKS);
    for (int r = 0; r < size; r++) {
        if (r != w->comm->place.rank)
            w->comm->transport->send_note(w->comm->members[r], &question);
    }
    w->l->asked = tn__seconds();
    return TN_OK;
}

/* A look around while it is not done: an error if waiting is of no use any more. */
static tn_status look(const wait *w)
{
    take_notes(w);
    double now = tn__seconds();
    const leaver *l = leaver_among(w->comm);
    if (l && w->l->missed && now - w->l->missed > GRACE)
        return somebody_left(w, l);
    if (l && !w->l->missed)
        w->l->missed = now;
    if (!w->l->asked && now - w->l->since > tn__comm_limit())
        return ask(w);
    return w->l->asked && now - w->l->asked > ANSWER ? took_too_long(w) : TN_OK;
}

/* Longer and longer pauses: others may want this processor. */
static void pause_for(long round)
{
    if (round < 1000)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = round < 3000 ? 20000 : 200000}, NULL);
}

tn_status tn__comm_look(tn_comm *comm, tn__lookout *lookout, const char *operation, const char *call)
{
    tn_status status = look(&(wait){.comm = comm, .operation = operation, .call = call, .l = lookout});
    comm->pending |= status != TN_OK && lookout->asked;
    return status;
}

void tn__lookout_end(tn__lookout *lookout)
{
    tn__free(lookout->answers);
    lookout->answers = NULL;
}

tn_status tn__comm_await(tn_comm *comm, const tn__awaited *awaited, int *done)
{
    tn__why why = {""};
    *done = awaited->test(awaited->what, &why);
    tn__lookout lookout = {.since = *done ? 0 : tn__seconds()};
    tn_status status = TN_OK;
    for (long round = 0; *done == 0 && status == TN_OK; round++) {
        if (round % 64 == 63 || round > 1000)
            status = tn__comm_look(comm, &lookout, awaited->operation, awaited->call);
        pause_for(round);
        if (status == TN_OK)
            *done = awaited->test(awaited->what, &why);
    }
    tn__lookout_end(&lookout);
    if (*done < 0)
        status = tn__fail(TN_ERR_IO, awaited->operation, "%s failed in %s: %s", awaited->call, awaited->name, why.text);
    return status == TN_OK ? TN_OK : tn__comm_break(comm, *done < 0);
}

typedef struct started {
    tn_comm *comm;
    void *request; /* NULL: it was not, for a reason */
    const tn__why *not;
} started;

static int test_transfer(void *what, tn__why *why)
{
    const started *s = what;
    if (s->request)
        return s->comm->transport->test(s->comm->group, s->request, why);
    *why = *s->not;
    return -1;
}

tn_status tn__comm_transfer(tn_comm *comm, const tn__transfer *transfer, const char *operation, const char *call)
{
    tn__why not = {""};
    started s = {.comm = comm, .request = comm->transport->start(comm->group, transfer, &not), .not = &not};
    int done;
    tn_status status = tn__comm_await(comm, &(tn__awaited){.test = test_transfer, .what = &s, .operation = operation,
                                                           .name = comm->transport->name, .call = call}, &done);
    comm->given_up |= done == 0;
    return status;
}

void tn__comm_await_leavers(const tn_comm *world)
{
    double since = tn__seconds();
    tn__lookout none = {0};
    wait w = {.comm = (tn_comm *)world, .call = "the end of the process", .l = &none};
    for (int left = 0; left < waiters && tn__seconds() - since < ANSWER; pause_for(3000)) {
        take_notes(&w);
        left = 0;
        for (const leaver *l = leavers; l; l = l->next)
            left++;
    }
}

void tn__comm_tell_leaving(const tn_comm *world, const char *text)
{
    tn__note note = {.kind = TN__NOTE_LEAVES, .from = world->place.rank};
    snprintf(note.text, sizeof note.text, "%s", text);
    for (int r = 0; r < world->place.size; r++) {
        if (r != world->place.rank)
            world->transport->send_note(r, &note);
    }
}

__attribute__((destructor)) static void forget(void)
{
    while (leavers) {
        leaver *next = leavers->next;
        tn__free(leavers);
        leavers = next;
    }
}
