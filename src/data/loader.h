/* SPDX-License-Identifier: MIT */
/* What a loader is, for the files that make one up: its making and freeing (loader.c), its minibatches
 * (loader_batch.c), and where it stands (loader_position.c). */
#ifndef TN_DATA_LOADER_H
#define TN_DATA_LOADER_H

#include <tanso/stream.h>
#include "data/batches.h"
#include "data/dataset.h"
#include "data/resident.h"

struct tn_loader {
    tn__object object;
    tn_dataset *dataset; /* owned, or NULL */
    tn_sampler *sampler; /* owned, or NULL */
    tn__host_view x, t;  /* its arrays, held for as long as the loader lives; of a source, types and shapes alone */
    tn__batches batches;
    tn__resident *resident; /* NULL: the dataset is on the CPU */
    tn__batch_buffers *buffers;
    tn__prefetch *prefetch; /* NULL: not begun, or not wanted */
    bool no_prefetch, no_stream;
    int workers;       /* threads that gather */
    tn_stream *stream; /* for copies to a device that has streams */
    tn__device *device;
    int64_t epoch, next; /* the minibatch that comes next */
    tn_array *x_handle, *t_handle;
    tn__storage *slot[2][2]; /* where samples, and targets, are copied to, by turns */
    int turn;
    tn_loader *beside;        /* of the next two fields of samples that have more; NULL: of none */
    char *names[2];           /* owned: of x and t */
    bool half;                /* there is no t */
    tn_array *fields[TN_MAX_FIELDS]; /* of the last minibatch, of this pair and those beside it */
    const char *field_names[TN_MAX_FIELDS];
    tn_array *place_handle; /* of a resident dataset: where the next minibatch begins, computed along with a step */
    tn__error *error;
    bool is_static;
};

/* Whether minibatches are put together in buffers. Those in the dataset's own order lie there already. */
static inline bool tn__loader_gathers(const tn_loader *loader)
{
    const tn__batches *batches = &loader->batches;
    return batches->shuffle || batches->source || batches->sampler || batches->repeat;
}

/* A loader that does not own what it is made of; unless `status` is TN_OK, one that failed with the latched error. */
tn_loader *tn__loader_make(const tn_dataset *dataset, const tn_loader_opts *opts, tn_status status);
/* Makes ready what fields beyond x and t need; and the minibatch that is next of them, x and t of which are there. */
tn_status tn__loader_prepare_fields(tn_loader *loader, const tn_dataset *dataset, const tn_loader_opts *opts);
bool tn__loader_deliver_fields(tn_loader *loader, tn_batch *batch);
/* Why a loader that is NULL or failed cannot be used, latched. */
tn_status tn__loader_raise(const tn_loader *loader);
/* Goes on with minibatch `next` of an epoch; of a loader that repeats, counted on from that epoch. */
void tn__loader_go_to(tn_loader *loader, int64_t epoch, int64_t next);

#endif
