/* SPDX-License-Identifier: MIT */
/*
 * The host memory that minibatches are gathered in. A buffer is lent to a minibatch's arrays, which may be kept for any
 * time; it comes back when the last array lets go of its storage, in whichever thread that happens.
 */
#ifndef TN_DATA_BUFFERS_H
#define TN_DATA_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__batch_buffers tn__batch_buffers;
typedef struct tn__batch_buffer tn__batch_buffer;
struct tn__batch_buffer {
    tn__batch_buffers *buffers;
    tn__batch_buffer *next;     /* in the list of free ones */
    void *x, *t;
    int64_t longest;    /* steps of the samples in x, where they are padded */
    atomic_int holders; /* storages over x and t that live */
};

/* `kept` buffers stay allocated when free. NULL without memory. */
tn__batch_buffers *tn__batch_buffers_new(size_t x_bytes, size_t t_bytes, int kept);
/* Frees the free ones; buffers still out are freed as they come back. */
void tn__batch_buffers_close(tn__batch_buffers *buffers);
/* A free buffer, or a fresh one; NULL without memory. */
tn__batch_buffer *tn__batch_buffer_take(tn__batch_buffers *buffers);
void tn__batch_buffer_give(tn__batch_buffer *buffer);
/* Release callback of a storage over one half of a buffer. */
void tn__batch_buffer_let_go(void *buffer, void *memory);
size_t tn__batch_buffers_bytes(const tn__batch_buffers *buffers);

#endif
