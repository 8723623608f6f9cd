/* SPDX-License-Identifier: MIT */
/* A pool of trays that outlives its owner for as long as trays are out. */
#include "data/buffers.h"

#include <pthread.h>
#include "core/memory.h"

#define LINE 64

struct tn__trays {
    pthread_mutex_t lock;
    tn__tray *free;
    int free_count, kept;
    int out;         /* trays in use */
    bool closed;
    size_t x_bytes, t_bytes;
};

tn__trays *tn__trays_new(size_t x_bytes, size_t t_bytes, int kept)
{
    tn__trays *trays = tn__calloc(1, sizeof *trays);
    if (!trays)
        return NULL;
    pthread_mutex_init(&trays->lock, NULL);
    trays->kept = kept;
    trays->x_bytes = (x_bytes + LINE - 1) / LINE * LINE;
    trays->t_bytes = (t_bytes + LINE - 1) / LINE * LINE;
    return trays;
}

size_t tn__trays_bytes(const tn__trays *trays)
{
    return trays->x_bytes + trays->t_bytes;
}

static void tray_free(tn__tray *tray)
{
    tn__free(tray->x);
    tn__free(tray);
}

static void trays_free(tn__trays *trays)
{
    pthread_mutex_destroy(&trays->lock);
    tn__free(trays);
}

void tn__trays_close(tn__trays *trays)
{
    if (!trays)
        return;
    pthread_mutex_lock(&trays->lock);
    trays->closed = true;
    tn__tray *list = trays->free;
    bool last = trays->out == 0;
    pthread_mutex_unlock(&trays->lock);
    while (list) {
        tn__tray *next = list->next;
        tray_free(list);
        list = next;
    }
    if (last)
        trays_free(trays);
}

static tn__tray *tray_new(tn__trays *trays)
{
    tn__tray *tray = tn__alloc(sizeof *tray);
    /* One block for both halves; never empty, so that its address means something. */
    char *memory = tray ? tn__alloc_aligned(tn__trays_bytes(trays) + LINE) : NULL;
    if (!memory) {
        tn__free(tray);
        return NULL;
    }
    *tray = (tn__tray){.trays = trays, .x = memory, .t = memory + trays->x_bytes};
    return tray;
}

tn__tray *tn__tray_take(tn__trays *trays)
{
    pthread_mutex_lock(&trays->lock);
    tn__tray *tray = trays->free;
    if (tray) {
        trays->free = tray->next;
        trays->free_count--;
    }
    trays->out++;
    pthread_mutex_unlock(&trays->lock);
    if (tray || (tray = tray_new(trays)))
        return tray;
    pthread_mutex_lock(&trays->lock);
    trays->out--;
    pthread_mutex_unlock(&trays->lock);
    return NULL;
}

void tn__tray_give(tn__tray *tray)
{
    tn__trays *trays = tray->trays;
    pthread_mutex_lock(&trays->lock);
    bool keep = !trays->closed && trays->free_count < trays->kept;
    if (keep) {
        tray->next = trays->free;
        trays->free = tray;
        trays->free_count++;
    }
    bool last = --trays->out == 0 && trays->closed;
    pthread_mutex_unlock(&trays->lock);
    if (!keep)
        tray_free(tray);
    if (last)
        trays_free(trays);
}

void tn__tray_let_go(void *user, void *memory)
{
    tn__tray *tray = user;
    (void)memory;
    if (atomic_fetch_sub_explicit(&tray->holders, 1, memory_order_acq_rel) == 1)
        tn__tray_give(tray);
}
