/* SPDX-License-Identifier: MIT */
/* The order of samples in an epoch, and gathering them. */
#include "data/batches.h"

#include "core/error.h"
#include "core/hash.h"
#include "data/dataset.h"

/* Keeps the stream of orders apart from those that users draw with the same seed. */
#define ORDER_STREAM 0x6C6F616465720000u

uint64_t tn__batches_key(const tn__batches *batches, int64_t epoch)
{
    return tn__hash_mix(tn__hash_mix(ORDER_STREAM, batches->seed), (uint64_t)epoch);
}

static void put_in_order(tn__batches *batches, int64_t epoch)
{
    if (batches->order_epoch == epoch)
        return;
    if (batches->shuffle)
        tn__permutation(tn__batches_key(batches, epoch), batches->count, batches->order);
    for (int64_t i = 0; !batches->shuffle && i < batches->count; i++)
        batches->order[i] = i;
    batches->order_epoch = epoch;
}

/* Samples that the source makes, one behind the other. */
static tn_status make_rows(const tn__batches *batches, tn__tray *tray, int64_t epoch, const int64_t *order,
                           int64_t count)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status =
            tn__source_get(batches->source, batches->seed, epoch, order[i],
                           (char *)tray->x + (size_t)i * batches->x_row, (char *)tray->t + (size_t)i * batches->t_row);
    return status;
}

tn__tray *tn__batches_gather(tn__batches *batches, tn__trays *trays, int64_t epoch, int64_t i)
{
    tn__tray *tray = tn__tray_take(trays);
    if (!tray) {
        tn__fail_memory("loader", tn__trays_bytes(trays));
        return NULL;
    }
    put_in_order(batches, epoch);
    const int64_t *order = batches->order + i * batches->batch;
    int64_t size = tn__batch_size(batches, i);
    if (!batches->source) {
        tn__gather_rows(tray->x, batches->x, batches->x_row, order, size);
        tn__gather_rows(tray->t, batches->t, batches->t_row, order, size);
    } else if (make_rows(batches, tray, epoch, order, size) != TN_OK) {
        tn__tray_give(tray);
        return NULL;
    }
    return tray;
}
