/* SPDX-License-Identifier: MIT */
/* A pool of buffers that outlives its owner for as long as buffers are out. */
#include "data/buffers.h"

#include <pthread.h>
#include "core/memory.h"

#define LINE 64

struct tn__batch_buffers {
    pthread_mutex_t lock;
    tn__batch_buffer *free;
    int free_count, kept;
    int out;         /* buffers in use */
    bool closed;
    size_t x_bytes, t_bytes;
};

tn__batch_buffers *tn__batch_buffers_new(size_t x_bytes, size_t t_bytes, int kept)
{
    tn__batch_buffers *buffers = tn__calloc(1, sizeof *buffers);
    if (!buffers)
        return NULL;
    pthread_mutex_init(&buffers->lock, NULL);
    buffers->kept = kept;
    buffers->x_bytes = (x_bytes + LINE - 1) / LINE * LINE;
    buffers->t_bytes = (t_bytes + LINE - 1) / LINE * LINE;
    return buffers;
}

size_t tn__batch_buffers_bytes(const tn__batch_buffers *buffers)
{
    return buffers->x_bytes + buffers->t_bytes;
}

static void buffer_free(tn__batch_buffer *buffer)
{
    tn__free(buffer->x);
    tn__free(buffer);
}

static void buffers_free(tn__batch_buffers *buffers)
{
    pthread_mutex_destroy(&buffers->lock);
    tn__free(buffers);
}

void tn__batch_buffers_close(tn__batch_buffers *buffers)
{
    if (!buffers)
        return;
    pthread_mutex_lock(&buffers->lock);
    buffers->closed = true;
    tn__batch_buffer *list = buffers->free;
    bool last = buffers->out == 0;
    pthread_mutex_unlock(&buffers->lock);
    while (list) {
        tn__batch_buffer *next = list->next;
        buffer_free(list);
        list = next;
    }
    if (last)
        buffers_free(buffers);
}

static tn__batch_buffer *buffer_new(tn__batch_buffers *buffers)
{
    tn__batch_buffer *buffer = tn__alloc(sizeof *buffer);
    /* One block for both halves; never empty, so that its address means something. */
    char *memory = buffer ? tn__alloc_aligned(tn__batch_buffers_bytes(buffers) + LINE) : NULL;
    if (!memory) {
        tn__free(buffer);
        return NULL;
    }
    *buffer = (tn__batch_buffer){.buffers = buffers, .x = memory, .t = memory + buffers->x_bytes};
    return buffer;
}

tn__batch_buffer *tn__batch_buffer_take(tn__batch_buffers *buffers)
{
    pthread_mutex_lock(&buffers->lock);
    tn__batch_buffer *buffer = buffers->free;
    if (buffer) {
        buffers->free = buffer->next;
        buffers->free_count--;
    }
    buffers->out++;
    pthread_mutex_unlock(&buffers->lock);
    if (buffer || (buffer = buffer_new(buffers)))
        return buffer;
    pthread_mutex_lock(&buffers->lock);
    buffers->out--;
    pthread_mutex_unlock(&buffers->lock);
    return NULL;
}

void tn__batch_buffer_give(tn__batch_buffer *buffer)
{
    tn__batch_buffers *buffers = buffer->buffers;
    pthread_mutex_lock(&buffers->lock);
    bool keep = !buffers->closed && buffers->free_count < buffers->kept;
    if (keep) {
        buffer->next = buffers->free;
        buffers->free = buffer;
        buffers->free_count++;
    }
    bool last = --buffers->out == 0 && buffers->closed;
    pthread_mutex_unlock(&buffers->lock);
    if (!keep)
        buffer_free(buffer);
    if (last)
        buffers_free(buffers);
}

void tn__batch_buffer_let_go(void *user, void *memory)
{
    tn__batch_buffer *buffer = user;
    (void)memory;
    if (atomic_fetch_sub_explicit(&buffer->holders, 1, memory_order_acq_rel) == 1)
        tn__batch_buffer_give(buffer);
}
