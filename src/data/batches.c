/* SPDX-License-Identifier: MIT */
/* The order of samples in an epoch, and gathering them. */
#include "data/batches.h"

#include "core/hash.h"
#include "data/dataset.h"

/* Keeps the stream of orders apart from those that users draw with the same seed. */
#define ORDER_STREAM 0x6C6F616465720000u

uint64_t tn__batches_key(const tn__batches *batches, int64_t epoch)
{
    return tn__hash_mix(tn__hash_mix(ORDER_STREAM, batches->seed), (uint64_t)epoch);
}

tn__tray *tn__batches_gather(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t i)
{
    tn__tray *tray = tn__tray_take(trays);
    if (!tray)
        return NULL;
    if (batches->order_epoch != epoch) {
        tn__permutation(tn__batches_key(batches, epoch), batches->count, batches->order);
        batches->order_epoch = epoch;
    }
    const int64_t *order = batches->order + i * batches->batch;
    int64_t size = tn__batch_size(batches, i);
    tn__gather_rows(tray->x, batches->x, batches->x_row, order, size);
    tn__gather_rows(tray->t, batches->t, batches->t_row, order, size);
    return tray;
}
