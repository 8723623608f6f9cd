/* SPDX-License-Identifier: MIT */
#include "cuda/queues.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/fake.h"

/* How often an event was recorded, and how much of that has been reached. Kept for as long as some queue mentions
 * it. */
typedef struct event {
    uint64_t asked, reached;
    size_t moment; /* pieces of work that had been asked for when it was recorded last */
    struct stream *where;
    CUcontext context;
    int mentions;
    bool gone;
} event;

typedef enum item_kind { WORK, RECORD, WAIT } item_kind;
typedef struct item {
    item_kind kind;
    fake_work *work;
    event *event;
    uint64_t version;     /* of the event */
    struct stream *where; /* WAIT: the stream that records it */
} item;

typedef struct stream {
    struct stream *next;
    CUcontext context;
    item *item;
    size_t first, last, room;
    int questions; /* since it was asked for work: whether it is done */
} stream;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static stream *streams;
static size_t asked; /* pieces of work ever */
#define MOST_QUESTIONS 16
#define LONGEST 4096 /* of a queue: then it is worked off, as a GPU may at any time */

static void let_go(event *e)
{
    if (--e->mentions == 0 && e->gone)
        free(e);
}

static void reach(event *e, uint64_t version)
{
    e->reached = e->reached > version ? e->reached : version;
    let_go(e);
}

/* ---- doing ---- */

/* False if the first item waits for an event that has not been reached, or is not done. */
static bool step(stream *s)
{
    item i = s->item[s->first];
    if (i.kind == WAIT && i.event->reached < i.version)
        return false;
    if (i.kind == WORK && i.work->goes && !i.work->goes(i.work->call))
        return false;
    s->first++;
    if (i.kind == WORK) {
        if (!i.work->goes)
            fake_do(i.work);
        free(i.work);
    } else if (i.kind == RECORD) {
        reach(i.event, i.version);
    } else {
        let_go(i.event);
    }
    if (s->first == s->last)
        s->first = s->last = 0;
    return true;
}

/* Until an event is reached; NULL: until the stream is empty. False: not yet, for what is not done, which who is
 * patient waits for. */
static bool drain_for(stream *s, const event *until, uint64_t version, bool patient)
{
    while (s->first < s->last && !(until && until->reached >= version)) {
        item i = s->item[s->first];
        if (step(s) || (i.kind == WAIT && drain_for(i.where, i.event, i.version, patient)))
            continue;
        if (!patient)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    while (!until && s->first < s->last && s->item[s->first].kind == RECORD)
        step(s);
    return true;
}

static void drain(stream *s, const event *until, uint64_t version) { drain_for(s, until, version, true); }

/* Some of what any stream has asked for. */
static void throw_dice(void)
{
    int count = 0;
    for (stream *s = streams; s; s = s->next)
        count++;
    for (int tries = fake.dice && count ? (int)(fake.dice(8)) : 0; tries > 0; tries--) {
        stream *s = streams;
        for (int k = (int)fake.dice((unsigned)count); k > 0; k--)
            s = s->next;
        for (int n = (int)fake.dice(6); n > 0 && s->first < s->last && step(s); n--)
            ;
    }
}

void fake_flush(void)
{
    pthread_mutex_lock(&lock);
    throw_dice();
    for (stream *s = streams; s; s = s->next)
        drain(s, NULL, 0);
    pthread_mutex_unlock(&lock);
}

/* ---- asking ---- */

static void append(stream *s, item i)
{
    if (s->last == s->room) {
        size_t waiting = s->last - s->first;
        if (waiting == LONGEST) {
            drain(s, NULL, 0);
            waiting = 0;
        }
        memmove(s->item, s->item + s->first, waiting * sizeof *s->item);
        s->first = 0;
        s->last = waiting;
    }
    s->item[s->last++] = i;
    s->questions = 0;
}

CUresult fake_put(CUstream where, const fake_work *work)
{
    item i = {.kind = WORK, .work = malloc(sizeof *work)};
    if (i.work == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (fake_within(((stream *)where)->context) != CUDA_SUCCESS) {
        free(i.work);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *i.work = *work;
    pthread_mutex_lock(&lock);
    append((stream *)where, i);
    asked++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_stream(CUstream *made, unsigned flags)
{
    stream *s = calloc(1, sizeof *s);
    (void)flags;
    if (s == NULL || !(s->item = calloc(LONGEST, sizeof *s->item)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->room = LONGEST;
    s->context = fake_context();
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *made = (CUstream)s;
    return CUDA_SUCCESS;
}

/* Streams live as long as the process, as their devices do. */
CUresult fake_stream_end(CUstream gone) { return fake_stream_wait(gone); }

CUresult fake_stream_wait(CUstream awaited)
{
    pthread_mutex_lock(&lock);
    fake.count.waits++;
    throw_dice();
    if (fake.lazy)
        drain((stream *)awaited, NULL, 0);
    else
        fake_flush();
    pthread_mutex_unlock(&lock);
    return fake.next_wait;
}

size_t fake_waiting(CUstream where)
{
    const stream *s = (const stream *)where;
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = s->first; i < s->last; i++)
        count += s->item[i].kind == WORK;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Who asks on and on sees it done. */
CUresult fake_stream_ask(CUstream where)
{
    stream *s = (stream *)where;
    pthread_mutex_lock(&lock);
    if (++s->questions > MOST_QUESTIONS)
        drain_for(s, NULL, 0, false);
    pthread_mutex_unlock(&lock);
    return fake_waiting(where) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* For the event as it was recorded last, however often it is recorded from now on. */
CUresult fake_stream_follow(CUstream where, CUevent handle, unsigned flags)
{
    event *e = (event *)handle; /* of any device */
    if (fake.next_follow != CUDA_SUCCESS)
        return fake.next_follow;
    if (fake_within(((stream *)where)->context) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    fake.count.follows++;
    if (e->reached < e->asked) {
        e->mentions++;
        append((stream *)where, (item){.kind = WAIT, .event = e, .version = e->asked, .where = e->where});
    }
    pthread_mutex_unlock(&lock);
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- events ---- */

CUresult fake_event(CUevent *made, unsigned flags)
{
    (void)flags;
    event *e = calloc(1, sizeof *e);
    if (e)
        e->context = fake_context();
    *made = (CUevent)e;
    return e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fake_event_end(CUevent handle)
{
    event *e = (event *)handle;
    pthread_mutex_lock(&lock);
    e->gone = true;
    e->mentions++;
    let_go(e);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_record(CUevent handle, CUstream where)
{
    event *e = (event *)handle;
    stream *s = (stream *)where;
    if (fake_within(s->context) != CUDA_SUCCESS || fake_within(e->context) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    fake.count.records++;
    e->asked++;
    e->moment = asked;
    e->where = s;
    e->mentions++;
    if (s->first == s->last)
        reach(e, e->asked);
    else
        append(s, (item){.kind = RECORD, .event = e, .version = e->asked});
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_event_wait(CUevent handle)
{
    event *e = (event *)handle;
    if (fake.waits)
        fake.waits();
    pthread_mutex_lock(&lock);
    fake.count.event_waits++;
    throw_dice();
    if (e->reached < e->asked)
        drain(e->where, e, e->asked);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_event_ask(CUevent handle)
{
    const event *e = (const event *)handle;
    pthread_mutex_lock(&lock);
    throw_dice();
    bool reached = e->reached == e->asked;
    pthread_mutex_unlock(&lock);
    return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult fake_elapsed(float *milliseconds, CUevent from, CUevent to)
{
    *milliseconds = (float)((event *)to)->moment - (float)((event *)from)->moment; /* a piece of work takes one */
    return CUDA_SUCCESS;
}
