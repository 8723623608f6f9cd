/* SPDX-License-Identifier: MIT */
/* Gathering minibatches, by the caller or ahead of it on a thread. */
#include "data/batches.h"

#include <pthread.h>
#include <signal.h>
#include "core/hash.h"
#include "core/memory.h"
#include "data/dataset.h"

/* Keeps the stream of orders apart from those that users draw with the same seed. */
#define ORDER_STREAM 0x6C6F616465720000u

tn__tray *tn__batches_gather(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t i)
{
    tn__tray *tray = tn__tray_take(trays);
    if (!tray)
        return NULL;
    if (batches->order_epoch != epoch) {
        uint64_t key = tn__hash_mix(tn__hash_mix(ORDER_STREAM, batches->seed), (uint64_t)epoch);
        tn__permutation(key, batches->count, batches->order);
        batches->order_epoch = epoch;
    }
    const int64_t *order = batches->order + i * batches->batch;
    int64_t size = tn__batch_size(batches, i);
    tn__gather_rows(tray->x, batches->x, batches->x_row, order, size);
    tn__gather_rows(tray->t, batches->t, batches->t_row, order, size);
    return tray;
}

/* A ring between two threads. Waking a thread costs more than handing over a minibatch, so the worker sleeps until half
 * of the ring is used up and then fills it. */
struct tn__prefetch {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    tn__tray *ring[TN__PREFETCH_SLOTS];
    int head, ready;
    bool worker_waits, taker_waits;
    bool stop, failed;
    unsigned restarts;       /* a minibatch gathered before a restart is dropped */
    int64_t epoch, next;     /* what the worker gathers next */
    tn__batches *batches;
    tn__trays *trays;
    pthread_t thread;
};

#define WAKE_AT (TN__PREFETCH_SLOTS / 2)

static void advance(tn__prefetch *p)
{
    if (++p->next == p->batches->length) {
        p->next = 0;
        p->epoch++;
    }
}

static void *work(void *user)
{
    tn__prefetch *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->ready == TN__PREFETCH_SLOTS || p->failed) {
            p->worker_waits = true;
            pthread_cond_wait(&p->emptied, &p->lock);
            p->worker_waits = false;
            continue;
        }
        unsigned restarts = p->restarts;
        int64_t epoch = p->epoch, i = p->next;
        advance(p);
        pthread_mutex_unlock(&p->lock);
        tn__tray *tray = tn__batches_gather(p->batches, p->trays, epoch, i);
        pthread_mutex_lock(&p->lock);
        if (restarts != p->restarts) {
            if (tray)
                tn__tray_give(tray);
            continue;
        }
        if (tray)
            p->ring[(p->head + p->ready++) % TN__PREFETCH_SLOTS] = tray;
        else
            p->failed = true;
        if (p->taker_waits)
            pthread_cond_signal(&p->filled);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

tn__prefetch *tn__prefetch_new(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t first)
{
    tn__prefetch *p = tn__calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->batches = batches;
    p->trays = trays;
    p->epoch = epoch;
    p->next = first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->filled, NULL);
    pthread_cond_init(&p->emptied, NULL);
    /* Signals are the program's business: its own threads handle them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (refused) {
        tn__free(p);
        return NULL;
    }
    return p;
}

tn__tray *tn__prefetch_take(tn__prefetch *p)
{
    tn__tray *tray = NULL;
    pthread_mutex_lock(&p->lock);
    while (p->ready == 0 && !p->failed) {
        p->taker_waits = true;
        pthread_cond_wait(&p->filled, &p->lock);
        p->taker_waits = false;
    }
    if (p->ready > 0) {
        tray = p->ring[p->head];
        p->head = (p->head + 1) % TN__PREFETCH_SLOTS;
        p->ready--;
    }
    if (p->worker_waits && p->ready <= WAKE_AT)
        pthread_cond_signal(&p->emptied);
    pthread_mutex_unlock(&p->lock);
    return tray;
}

/* Under the lock. */
static void drop_ready(tn__prefetch *p)
{
    for (; p->ready > 0; p->ready--) {
        tn__tray_give(p->ring[p->head]);
        p->head = (p->head + 1) % TN__PREFETCH_SLOTS;
    }
}

void tn__prefetch_restart(tn__prefetch *p, int64_t epoch)
{
    pthread_mutex_lock(&p->lock);
    drop_ready(p);
    p->restarts++;
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
    pthread_cond_destroy(&p->filled);
    pthread_cond_destroy(&p->emptied);
    pthread_mutex_destroy(&p->lock);
    tn__free(p);
}
