/* SPDX-License-Identifier: MIT */
/*
 * Gathering minibatches ahead on a thread. Waking a thread costs more than handing over a minibatch, so the worker
 * sleeps until half of the ring is used up and then fills it. The taker never sleeps: where the worker is late, as on a
 * machine whose cores are all busy, it does that minibatch itself, which takes microseconds where a turn of the
 * scheduler takes milliseconds.
 */
#include <pthread.h>
#include <sched.h>
#include <tanso/device.h>
#include "core/memory.h"
#include "core/signals.h"
#include "data/batches.h"

#define WAKE_AT (TN__PREFETCH_SLOTS / 2)
/* Gathering less than this takes no longer than waking a thread (a few microseconds). */
#define LEAST_BYTES ((size_t)32 << 10)
/* With fewer cores, all of them computing, a thread beside them takes from one what it saves on another. */
#define MANY_CORES 4

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

struct tn__prefetch {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    tn__tray *ring[TN__PREFETCH_SLOTS];
    int head, ready;
    bool worker_waits, stop, out_of_memory;
    unsigned restarts;       /* a minibatch that was begun before a restart is dropped */
    int64_t epoch, next;     /* what the worker gathers next */
    tn__batches batches;     /* the worker's own */
    tn__trays *trays;
    pthread_t thread;
};

/* Under the lock, as all below but the gathering itself. */
static void go_on_after(tn__prefetch *p, int64_t epoch, int64_t i)
{
    bool last = i + 1 == p->batches.length;
    p->next = last ? 0 : i + 1;
    p->epoch = epoch + last;
}

static void drop_ready(tn__prefetch *p)
{
    for (; p->ready > 0; p->ready--) {
        tn__tray_give(p->ring[p->head]);
        p->head = (p->head + 1) % TN__PREFETCH_SLOTS;
    }
}

/* Whatever the worker is at is of no use any more. */
static void supersede(tn__prefetch *p)
{
    p->restarts++;
    p->out_of_memory = false;
}

static void gather_next(tn__prefetch *p)
{
    unsigned restarts = p->restarts;
    int64_t epoch = p->epoch, i = p->next;
    go_on_after(p, epoch, i);
    pthread_mutex_unlock(&p->lock);
    tn__tray *tray = tn__batches_gather(&p->batches, p->trays, epoch, i);
    pthread_mutex_lock(&p->lock);
    if (restarts != p->restarts) {
        if (tray)
            tn__tray_give(tray);
        return;
    }
    if (tray)
        p->ring[(p->head + p->ready++) % TN__PREFETCH_SLOTS] = tray;
    else
        p->out_of_memory = true;
}

static void *work(void *user)
{
    tn__prefetch *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->ready < TN__PREFETCH_SLOTS && !p->out_of_memory) {
            gather_next(p);
        } else {
            p->worker_waits = true;
            pthread_cond_wait(&p->emptied, &p->lock);
            p->worker_waits = false;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void release(tn__prefetch *p)
{
    pthread_cond_destroy(&p->emptied);
    pthread_mutex_destroy(&p->lock);
    tn__free(p->batches.order);
    tn__free(p);
}

tn__prefetch *tn__prefetch_new(const tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t first)
{
    tn__prefetch *p = tn__calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->emptied, NULL);
    p->batches = *batches;
    p->batches.order_epoch = -1;
    p->batches.order = tn__alloc((size_t)batches->count * sizeof *batches->order);
    p->trays = trays;
    p->epoch = epoch;
    p->next = first;
    sigset_t before;
    tn__signals_hold(&before);
    bool running = p->batches.order && pthread_create(&p->thread, NULL, work, p) == 0;
    tn__signals_let(&before);
    if (running)
        return p;
    release(p);
    return NULL;
}

tn__tray *tn__prefetch_take(tn__prefetch *p, int64_t epoch, int64_t i)
{
    tn__tray *tray = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->ready > 0) {
        tray = p->ring[p->head];
        p->head = (p->head + 1) % TN__PREFETCH_SLOTS;
        p->ready--;
    } else {
        supersede(p);
        go_on_after(p, epoch, i);
    }
    if (p->worker_waits && p->ready <= WAKE_AT)
        pthread_cond_signal(&p->emptied);
    pthread_mutex_unlock(&p->lock);
    return tray;
}

void tn__prefetch_restart(tn__prefetch *p, int64_t epoch)
{
    pthread_mutex_lock(&p->lock);
    drop_ready(p);
    supersede(p);
    p->epoch = epoch;
    p->next = 0;
    pthread_cond_signal(&p->emptied);
    pthread_mutex_unlock(&p->lock);
}

void tn__prefetch_free(tn__prefetch *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->emptied);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    drop_ready(p);
    release(p);
}
