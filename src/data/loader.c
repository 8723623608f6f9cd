/* SPDX-License-Identifier: MIT */
/*
 * Loaders. On a device with memory of its own the dataset lies there, if it takes a fair share of it at most, and
 * minibatches are gathered by whatever computes with them (resident.c). Else shuffled minibatches are gathered into
 * buffers, ahead on a thread where that pays and is not turned off, and the batch's arrays are pointed at them.
 * Minibatches in order need no gathering: on the CPU they are views of the dataset. Samples that a source makes
 * (source.h) are always gathered, ahead on as many threads as were asked for. What is copied to a device goes on a
 * stream of the loader's own, beside the step that is under way.
 */
#include <string.h>
#include <tanso/device.h>
#include "array/guard.h"
#include "core/memory.h"
#include "core/object.h"
#include "core/options.h"
#include "data/loader.h"

#define DEFAULT_BATCH  32
/* Beside the ring's: the one the caller has, and the one a recorded but unevaluated graph holds. */
#define TRAYS_OUT      2

static tn_loader out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_loader, "loader");

/* Brings the dataset to the device where it may lie there. A device that turns out to have no room is no failure. */
static bool settle_down(tn_loader *loader)
{
    const tn__device *device = loader->device;
    tn__batches batches = loader->batches;
    size_t order = 2 * (size_t)batches.count * sizeof(int64_t);
    if (batches.repeat && batches.count % batches.batch)
        return false;
    if (batches.repeat) { /* minibatches that end with an epoch are the same as those of a loader that does not */
        batches.repeat = false;
        batches.length = batches.count / batches.batch;
    }
    if (device->capabilities.host_memory || !tn__resident_fits(device, loader->x.bytes + loader->t.bytes + order))
        return false;
    bool clean = !tn__latched();
    loader->resident =
        tn__resident_new(&loader->x, &loader->t, &batches, batches.shuffle || batches.sampler, loader->device);
    if (!loader->resident && clean)
        tn_clear_error();
    return loader->resident != NULL;
}

/* The samples that the loader cuts into minibatches: those of two arrays, or what a source will make. */
static tn_status look_at(tn_loader *loader, const tn_dataset *dataset)
{
    tn_status status = TN_OK;
    for (int targets = 0; targets < 2 && status == TN_OK; targets++) {
        tn__host_view *view = targets ? &loader->t : &loader->x;
        if (!dataset->source) {
            status = tn__host_view_of("loader", targets ? dataset->t : dataset->x, view);
            continue;
        }
        tn_sample_type type = targets ? dataset->source->t : dataset->source->x;
        int64_t dim[TN_MAX_NDIM] = {dataset->size};
        memcpy(dim + 1, type.shape.dim, (size_t)type.shape.ndim * sizeof *dim);
        *view = (tn__host_view){.dtype = type.dtype, .shape = tn__shape_intern(type.shape.ndim + 1, dim)};
        view->bytes = (size_t)dataset->size * (targets ? dataset->source->t_bytes : dataset->source->x_bytes);
        status = view->shape ? TN_OK : tn__fail_memory("loader", sizeof *view->shape);
    }
    loader->batches.source = status == TN_OK && dataset->source ? tn__source_retain(dataset->source) : NULL;
    return status;
}

/* What minibatches on the loader's device need: the dataset there, or memory to gather them in. */
static tn_status prepare(tn_loader *loader)
{
    tn__batches *batches = &loader->batches;
    if (batches->length && !batches->source && settle_down(loader))
        return TN_OK;
    if (!tn__loader_gathers(loader) || batches->length == 0 || loader->buffers)
        return TN_OK;
    size_t rows = (size_t)batches->batch, order = (size_t)batches->count * sizeof(int64_t);
    loader->buffers = tn__batch_buffers_new(rows * batches->x_row, rows * batches->t_row,
                                  tn__prefetch_slots(loader->workers) + TRAYS_OUT);
    batches->order = loader->buffers ? tn__alloc(order) : NULL;
    return batches->order ? TN_OK : tn__fail_memory("loader", order);
}

static tn_status loader_init(tn_loader *loader, const tn_dataset *dataset, const tn_loader_opts *opts)
{
    const char *operation = "loader";
    if (!dataset)
        return tn__fail(TN_ERR_VALUE, operation, "expected a dataset, got NULL");
    tn_status status = tn_dataset_status(dataset);
    if (status != TN_OK)
        return dataset->error ? tn__error_raise(dataset->error) : tn__fail_memory(operation, sizeof *dataset);
    int64_t batch = TN__OPTION(opts, batch, DEFAULT_BATCH);
    if (batch < 1)
        return tn__fail(TN_ERR_VALUE, operation, "expected a batch of 1 sample or more, got %lld", (long long)batch);
    if (opts->workers < 0 || opts->workers > TN__MOST_WORKERS)
        return tn__fail(TN_ERR_VALUE, operation, "expected 1 to %d workers (0: one where it pays), got %d",
                        TN__MOST_WORKERS, opts->workers);
    if (!TN__DEVICE_GIVEN(operation, opts) || !(loader->device = tn__device_get(opts->device)))
        return tn__error_status(tn__error_last());
    status = look_at(loader, dataset);
    if (status != TN_OK)
        return status;

    int64_t size = dataset->size, count = size;
    if (opts->sampler && (status = tn__sampler_check(opts->sampler, size, &count)) != TN_OK)
        return status;
    if (opts->repeat && count == 0)
        return tn__fail(TN_ERR_VALUE, operation, "there are no samples to repeat: the dataset is empty");
    if (!opts->repeat && opts->drop_last && count > 0 && count < batch)
        return tn__fail(TN_ERR_VALUE, operation,
                        "%lld samples make no minibatch of %lld, and drop_last drops what is left over: ask for "
                        "smaller ones",
                        (long long)count, (long long)batch);
    if (opts->repeat && batch > (int64_t)(PTRDIFF_MAX / (loader->x.bytes + loader->t.bytes + 1)))
        return tn__fail(TN_ERR_VALUE, operation, "minibatches of %lld samples are larger than the memory",
                        (long long)batch);
    int64_t whole = count / batch, rest = count % batch;
    loader->workers = opts->workers ? opts->workers : 1;
    loader->no_prefetch = opts->no_prefetch;
    loader->batches = (tn__batches){
        .x = loader->x.data,
        .t = loader->t.data,
        .source = loader->batches.source,
        .shuffle = opts->shuffle,
        .repeat = opts->repeat,
        .sampler = opts->sampler,
        .x_row = size ? loader->x.bytes / (size_t)size : 0,
        .t_row = size ? loader->t.bytes / (size_t)size : 0,
        .size = size,
        .count = count,
        .batch = opts->repeat || batch < count ? batch : count,
        .length = opts->repeat ? INT64_MAX : whole + (rest && !opts->drop_last),
        .seed = opts->seed,
        .order_epoch = -1,
    };
    return prepare(loader);
}

tn_loader *tn__loader_make(const tn_dataset *dataset, const tn_loader_opts *opts, tn_status status)
{
    tn_loader *loader = tn__object_new(&objects);
    if (!loader) {
        tn__fail_memory("loader", sizeof *loader);
        return &out_of_memory;
    }
    if (status == TN_OK)
        status = loader_init(loader, dataset, opts);
    if (status == TN_OK)
        status = tn__loader_prepare_fields(loader, dataset, opts);
    if (status != TN_OK) {
        loader->error = tn__error_retain(tn__error_last());
        loader->batches.length = 0;
    }
    return loader;
}

tn_loader *tn_loader_new_with(tn_dataset *dataset, const tn_loader_opts *opts)
{
    static const tn_loader_opts defaults;
    opts = opts ? opts : &defaults;
    tn_status status = opts->keep_dataset ? TN_OK : tn__dataset_take(dataset, "a loader");
    tn_dataset *taken = opts->keep_dataset || status != TN_OK ? NULL : dataset;
    tn_status sampling = tn__sampler_take(opts->sampler, "a loader");
    tn_sampler *sampler = sampling == TN_OK ? opts->sampler : NULL;
    tn_loader *loader = tn__loader_make(dataset, opts, status == TN_OK ? sampling : status);
    if (loader->is_static) {
        tn__dataset_free_taken(taken);
        tn__sampler_free_taken(sampler);
    } else {
        loader->dataset = taken;
        loader->sampler = sampler;
    }
    return loader;
}

void tn_loader_free(tn_loader *loader)
{
    if (!loader || loader->is_static || !tn__object_may_go(&objects, &loader->object) ||
        tn__at_work(loader, "loader"))
        return;
    tn_loader_free(loader->beside);
    tn__free(loader->names[0]);
    tn__free(loader->names[1]);
    tn__prefetch_free(loader->prefetch);
    tn__array_free_kept(loader->x_handle);
    tn__array_free_kept(loader->t_handle);
    tn__array_free_kept(loader->place_handle);
    for (int i = 0; i < 4; i++)
        if (loader->slot[i / 2][i % 2])
            tn__storage_release(loader->slot[i / 2][i % 2]);
    tn__resident_free(loader->resident);
    tn__batch_buffers_close(loader->buffers);
    tn_stream_free(loader->stream);
    tn__free(loader->batches.order);
    tn__source_release(loader->batches.source);
    tn__host_view_end(&loader->x);
    tn__host_view_end(&loader->t);
    tn__sampler_free_taken(loader->sampler);
    tn__dataset_free_taken(loader->dataset);
    if (loader->error)
        tn__error_release(loader->error);
    tn__object_end(&objects, &loader->object);
}

tn_status tn_loader_status(const tn_loader *loader)
{
    if (!loader || loader->is_static)
        return loader ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return loader->error ? tn__error_status(loader->error) : TN_OK;
}

tn_device tn_loader_device(const tn_loader *loader)
{
    if (!loader)
        tn__fail_null("device_of", "a loader");
    return loader && loader->device ? loader->device->id : (tn_device){0};
}

tn_device tn_batch_device(const tn_batch *batch)
{
    if (!batch || !batch->x)
        tn__fail(TN_ERR_VALUE, "device_of", "expected a minibatch of tn_loader_next, got %s",
                 batch ? "an empty one" : "NULL");
    return batch && batch->x ? tn_device_of(batch->x) : (tn_device){0};
}

/* Lets go of what lay on the device before: its dataset, memory for copies, and a stream for them. */
static void leave_device(tn_loader *loader, tn__resident *resident)
{
    tn__resident_free(resident);
    tn__array_free_kept(loader->place_handle);
    loader->place_handle = NULL;
    for (int i = 0; i < 4; i++) {
        tn__storage **slot = &loader->slot[i / 2][i % 2];
        if (*slot)
            tn__storage_release(*slot);
        *slot = NULL;
    }
    tn_stream_free(loader->stream);
    loader->stream = NULL;
    loader->no_stream = false;
}

tn_status tn_loader_to(tn_loader *loader, tn_device device)
{
    if (!loader || loader->is_static || loader->error)
        return tn__loader_raise(loader);
    tn__device *before = loader->device, *to = tn__device_get(device);
    if (!to)
        return tn__error_status(tn__error_last());
    if (to == before)
        return TN_OK;
    tn_status status = loader->beside ? tn_loader_to(loader->beside, device) : TN_OK;
    if (status != TN_OK)
        return status;
    tn__resident *resident = loader->resident;
    loader->resident = NULL;
    loader->device = to;
    status = prepare(loader);
    if (status != TN_OK) {
        loader->device = before;
        loader->resident = resident;
        if (loader->beside)
            tn_loader_to(loader->beside, before->id);
        return status;
    }
    leave_device(loader, resident);
    tn__loader_go_to(loader, loader->epoch, loader->next);
    return TN_OK;
}
