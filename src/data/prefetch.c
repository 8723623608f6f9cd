/* SPDX-License-Identifier: MIT */
/*
 * Gathering minibatches ahead on threads. Waking a thread costs more than handing over a minibatch, so the workers
 * sleep until half of the ring is used up and then fill it. A worker claims the first place of the ring that is free,
 * gathers the minibatch that belongs there and marks it as ready, so that minibatches keep their order whichever worker
 * is done first. Where samples are only copied the taker never sleeps: if the one worker is late, as on a machine whose
 * cores are all busy, it does that minibatch itself, which takes microseconds where a turn of the scheduler takes
 * milliseconds. Samples that a function makes, or several workers, are worth waiting for.
 */
#include <pthread.h>
#include <sched.h>
#include <tanso/device.h>
#include "core/memory.h"
#include "core/signals.h"
#include "data/batches.h"

/* Gathering less than this takes no longer than waking a thread (a few microseconds). */
#define LEAST_BYTES ((size_t)32 << 10)
/* With fewer cores, all of them computing, a thread beside them takes from one what it saves on another. */
#define MANY_CORES  4

bool tn__prefetch_always;

bool tn__prefetch_pays(size_t bytes, bool same_cores)
{
    cpu_set_t cores;
    if (tn__prefetch_always)
        return true;
    if (bytes < LEAST_BYTES)
        return false;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : MANY_CORES;
    return !same_cores || count >= MANY_CORES || tn_threads() < count;
}

typedef struct worker {
    tn__prefetch *prefetch;
    tn__batches batches; /* its own */
    pthread_t thread;
} worker;

struct tn__prefetch {
    pthread_mutex_t lock;
    pthread_cond_t emptied, filled;
    struct {
        struct {
            tn__batch_buffer *buffer; /* NULL: it could not be gathered */
            bool ready;
        } place[2 * TN__MOST_WORKERS];
        int slots;         /* places that are used */
        int head, claimed; /* the first place, and how many from it on are ready or being filled */
    } ring;
    int waiting;         /* workers that sleep */
    bool stop, waits;    /* waits: the taker sleeps until its minibatch is ready */
    unsigned restarts;   /* a minibatch that was begun before a restart is dropped */
    int64_t epoch, next; /* what is to be gathered next */
    tn__batch_buffers *buffers;
    int worker_count;
    worker workers[TN__MOST_WORKERS];
};

/* Under the lock, as all below but the gathering itself. */
static void go_on_after(tn__prefetch *p, int64_t epoch, int64_t i)
{
    bool last = i + 1 == p->workers[0].batches.length;
    p->next = last ? 0 : i + 1;
    p->epoch = epoch + last;
}

/* Whatever is ready or being gathered is of no use any more. */
static void supersede(tn__prefetch *p)
{
    for (int i = 0; i < p->ring.claimed; i++) {
        int place = (p->ring.head + i) % p->ring.slots;
        if (p->ring.place[place].ready && p->ring.place[place].buffer)
            tn__batch_buffer_give(p->ring.place[place].buffer);
        p->ring.place[place].ready = false;
    }
    p->ring.claimed = 0;
    p->restarts++;
}

/* A failure is told of by whoever takes the minibatch, who tries it again. */
static tn__batch_buffer *gather_quietly(worker *w, int64_t epoch, int64_t i)
{
    tn__batch_buffer *buffer = tn__batches_gather(&w->batches, w->prefetch->buffers, epoch, i);
    if (!buffer)
        tn_clear_error();
    return buffer;
}

static void gather_next(worker *w)
{
    tn__prefetch *p = w->prefetch;
    unsigned restarts = p->restarts;
    int place = (p->ring.head + p->ring.claimed++) % p->ring.slots;
    int64_t epoch = p->epoch, i = p->next;
    go_on_after(p, epoch, i);
    pthread_mutex_unlock(&p->lock);
    tn__batch_buffer *buffer = gather_quietly(w, epoch, i);
    pthread_mutex_lock(&p->lock);
    if (restarts != p->restarts) {
        if (buffer)
            tn__batch_buffer_give(buffer);
        return;
    }
    p->ring.place[place].buffer = buffer;
    p->ring.place[place].ready = true;
    if (p->waits && place == p->ring.head)
        pthread_cond_signal(&p->filled);
}

static void *work(void *user)
{
    worker *w = user;
    tn__prefetch *p = w->prefetch;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->ring.claimed < p->ring.slots) {
            gather_next(w);
        } else {
            p->waiting++;
            pthread_cond_wait(&p->emptied, &p->lock);
            p->waiting--;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void release(tn__prefetch *p)
{
    pthread_cond_destroy(&p->emptied);
    pthread_cond_destroy(&p->filled);
    pthread_mutex_destroy(&p->lock);
    for (int i = 0; i < TN__MOST_WORKERS; i++)
        tn__free(p->workers[i].batches.order);
    tn__free(p);
}

static bool start_worker(tn__prefetch *p, const tn__batches *batches)
{
    worker *w = &p->workers[p->worker_count];
    w->prefetch = p;
    w->batches = *batches;
    w->batches.order_epoch = -1;
    w->batches.order = tn__alloc((size_t)batches->count * sizeof *batches->order);
    bool running = w->batches.order && pthread_create(&w->thread, NULL, work, w) == 0;
    p->worker_count += running;
    return running;
}

tn__prefetch *tn__prefetch_new(const tn__batches *batches, tn__batch_buffers *buffers, int workers, int64_t epoch,
                               int64_t first)
{
    tn__prefetch *p = tn__calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->emptied, NULL);
    pthread_cond_init(&p->filled, NULL);
    p->waits = batches->source || workers > 1;
    p->ring.slots = tn__prefetch_slots(workers);
    p->buffers = buffers;
    p->epoch = epoch;
    p->next = first;
    sigset_t before;
    tn__signals_hold(&before);
    pthread_mutex_lock(&p->lock); /* until all are there: they read what of the others is written here */
    for (int i = 0; i < workers && i < TN__MOST_WORKERS && start_worker(p, batches); i++)
        ;
    pthread_mutex_unlock(&p->lock);
    tn__signals_let(&before);
    if (p->worker_count)
        return p;
    release(p);
    return NULL;
}

tn__batch_buffer *tn__prefetch_take(tn__prefetch *p, int64_t epoch, int64_t i)
{
    tn__batch_buffer *buffer = NULL;
    pthread_mutex_lock(&p->lock);
    while (p->waits && !p->ring.place[p->ring.head].ready)
        pthread_cond_wait(&p->filled, &p->lock);
    if (p->ring.place[p->ring.head].ready) {
        buffer = p->ring.place[p->ring.head].buffer;
        p->ring.place[p->ring.head].ready = false;
        p->ring.head = (p->ring.head + 1) % p->ring.slots;
        p->ring.claimed--;
    } else {
        supersede(p);
        go_on_after(p, epoch, i);
    }
    if (p->waiting && p->ring.claimed <= p->ring.slots / 2)
        pthread_cond_broadcast(&p->emptied);
    pthread_mutex_unlock(&p->lock);
    return buffer;
}

void tn__prefetch_restart(tn__prefetch *p, int64_t epoch, int64_t first)
{
    pthread_mutex_lock(&p->lock);
    supersede(p);
    bool ended = first == p->workers[0].batches.length;
    p->epoch = epoch + ended;
    p->next = ended ? 0 : first;
    pthread_cond_broadcast(&p->emptied);
    pthread_mutex_unlock(&p->lock);
}

void tn__prefetch_free(tn__prefetch *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->emptied);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->worker_count; i++)
        pthread_join(p->workers[i].thread, NULL);
    supersede(p);
    release(p);
}
