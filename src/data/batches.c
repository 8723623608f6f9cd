/* SPDX-License-Identifier: MIT */
/* The order of samples in an epoch, and gathering them. */
#include "data/batches.h"

#include <string.h>
#include "core/error.h"
#include "core/hash.h"
#include "data/dataset.h"

/* Keeps the stream of orders apart from those that users draw with the same seed. */
#define ORDER_STREAM 0x6C6F616465720000u

uint64_t tn__batches_key(const tn__batches *batches, int64_t epoch)
{
    return tn__hash_mix(tn__hash_mix(ORDER_STREAM, batches->seed), (uint64_t)epoch);
}

tn_status tn__batches_order(tn__batches *batches, int64_t epoch)
{
    if (batches->order_epoch == epoch)
        return TN_OK;
    uint64_t key = tn__batches_key(batches, epoch);
    if (batches->sampler) {
        tn__epoch_order want = {epoch, batches->batch, batches->size, batches->count, key, batches->order};
        batches->order_epoch = -1;
        tn_status status = tn__sampler_order(batches->sampler, &want);
        if (status != TN_OK)
            return status;
    } else if (batches->shuffle) {
        tn__permutation(key, batches->count, batches->order);
    } else {
        for (int64_t i = 0; i < batches->count; i++)
            batches->order[i] = i;
    }
    batches->order_epoch = epoch;
    return TN_OK;
}

/* Samples at `order` of an epoch, one behind the other, from place `first` of the buffer on. */
static tn_status take_rows(const tn__batches *batches, tn__batch_buffer *buffer, int64_t first, int64_t epoch,
                           const int64_t *order, int64_t count)
{
    char *x = (char *)buffer->x + (size_t)first * batches->x_row,
         *t = (char *)buffer->t + (size_t)first * batches->t_row;
    tn_status status = TN_OK;
    if (!batches->source) {
        tn__gather_rows(x, batches->x, batches->x_row, order, count);
        tn__gather_rows(t, batches->t, batches->t_row, order, count);
    }
    for (int64_t i = 0; batches->source && i < count && status == TN_OK; i++)
        status = tn__source_get(batches->source, batches->seed, epoch, order[i], x + (size_t)i * batches->x_row,
                                t + (size_t)i * batches->t_row);
    return status;
}

/* Of a buffer that was not handed on: also where a function of the program's throws an exception. */
static void buffer_back(tn__batch_buffer **buffer)
{
    if (*buffer)
        tn__batch_buffer_give(*buffer);
}

/* The longest of samples that are padded, in steps. */
static void measure(const tn__batches *batches, tn__batch_buffer *buffer, const int64_t *order, int64_t count)
{
    tn__source *source = batches->source;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = source->length(source, order[i]), multiple = source->multiple;
        length = (length + multiple - 1) / multiple * multiple;
        buffer->longest = length > buffer->longest ? length : buffer->longest;
    }
}

/* Leaves out the steps that no sample of the minibatch has. */
static void trim(const tn__batches *batches, tn__batch_buffer *buffer, int64_t size)
{
    int64_t steps = batches->source->x.shape.dim[0];
    size_t row = steps ? batches->x_row / (size_t)steps * (size_t)buffer->longest : 0;
    for (int64_t i = 1; i < size && row < batches->x_row; i++)
        memmove((char *)buffer->x + (size_t)i * row, (char *)buffer->x + (size_t)i * batches->x_row, row);
}

tn__batch_buffer *tn__batches_gather(tn__batches *batches, tn__batch_buffers *buffers, int64_t epoch, int64_t i)
{
    tn__batch_buffer *buffer __attribute__((cleanup(buffer_back))) = tn__batch_buffer_take(buffers);
    if (!buffer) {
        tn__fail_memory("loader", tn__batch_buffers_bytes(buffers));
        return NULL;
    }
    buffer->longest = 0;
    /* From the first epoch on; a minibatch that repeats goes over the end of one, or of several. */
    int64_t size = tn__batch_size(batches, i), at = i * batches->batch;
    tn_status status = TN_OK;
    for (int64_t done = 0; done < size && status == TN_OK;) {
        int64_t now = epoch + at / batches->count, place = at % batches->count, left = batches->count - place;
        int64_t rows = left < size - done ? left : size - done;
        if ((status = tn__batches_order(batches, now)) == TN_OK)
            status = take_rows(batches, buffer, done, now, batches->order + place, rows);
        if (status == TN_OK && batches->source && batches->source->length)
            measure(batches, buffer, batches->order + place, rows);
        done += rows;
        at += rows;
    }
    if (status == TN_OK && batches->source && batches->source->length)
        trim(batches, buffer, size);
    tn__batch_buffer *full = status == TN_OK ? buffer : NULL;
    if (full)
        buffer = NULL;
    return full;
}
