/* SPDX-License-Identifier: MIT */
/*
 * The host memory that minibatches are gathered in. A tray is lent to a minibatch's arrays, which may be kept for any
 * time; it comes back when the last array lets go of its storage, in whichever thread that happens.
 */
#ifndef TN_DATA_BUFFERS_H
#define TN_DATA_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__trays tn__trays;
typedef struct tn__tray tn__tray;
struct tn__tray {
    tn__trays *trays;
    tn__tray *next;     /* in the list of free ones */
    void *x, *t;
    int64_t longest;    /* steps of the samples in x, where they are padded */
    atomic_int holders; /* storages over x and t that live */
};

/* `kept` trays stay allocated when free. NULL without memory. */
tn__trays *tn__trays_new(size_t x_bytes, size_t t_bytes, int kept);
/* Frees the free ones; trays still out are freed as they come back. */
void tn__trays_close(tn__trays *trays);
/* A free tray, or a fresh one; NULL without memory. */
tn__tray *tn__tray_take(tn__trays *trays);
void tn__tray_give(tn__tray *tray);
/* Release callback of a storage over one half of a tray. */
void tn__tray_let_go(void *tray, void *memory);
size_t tn__trays_bytes(const tn__trays *trays);

#endif
