/* SPDX-License-Identifier: MIT */
/* The transport of a process that is alone: what it gives is what it gets. */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

/* A group has nothing to remember. */
struct tn__group {
    char unused;
};
static struct tn__group only;

static tn__group *world(tn__combine *const (*combine)[TN_DTYPE_COUNT], tn__why *why)
{
    (void)combine, (void)why;
    return &only;
}

static void finish(void) {}

static tn__comm_place place(const tn__group *group)
{
    (void)group;
    return (tn__comm_place){.size = 1, .local_size = 1, .nodes = 1};
}

static tn__group *split(tn__group *group, int color, int key, tn__why *why)
{
    (void)key, (void)why;
    return color < 0 ? NULL : group;
}

static void let_go(tn__group *group, bool broken) { (void)group, (void)broken; }

static void *start(tn__group *group, const tn__transfer *t, tn__why *why)
{
    if (t->kind == TN__SEND || t->kind == TN__RECEIVE) { /* whom to? */
        snprintf(why->text, sizeof why->text, "there is no other rank");
        return NULL;
    }
    if (t->to && t->count)
        memmove(t->to, t->from, (size_t)t->count * t->itemsize);
    return group;
}

static int test(tn__group *group, void *request, tn__why *why)
{
    (void)group, (void)request, (void)why;
    return 1;
}

static void send_note(int to, const tn__note *note) { (void)to, (void)note; }
static bool take_note(tn__note *note)
{
    (void)note;
    return false;
}

const tn__transport tn__transport_alone = {.name = "alone",
                                           .world = world,
                                           .finish = finish,
                                           .place = place,
                                           .split = split,
                                           .free = let_go,
                                           .start = start,
                                           .test = test,
                                           .send_note = send_note,
                                           .take_note = take_note};
