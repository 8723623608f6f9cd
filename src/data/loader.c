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
#include "core/log.h"
#include "core/object.h"
#include "core/options.h"
#include "data/loader.h"
#include "engine/engine.h"

#define DEFAULT_BATCH  32
/* Copying less takes no longer than the calls that put it beside a step, and the next step behind it. */
#define WORTH_A_STREAM ((size_t)256 << 10)
/* Beside the ring's: the one the caller has, and the one a recorded but unevaluated graph holds. */
#define TRAYS_OUT      2

static tn_loader out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_loader, "loader");

/* Whether minibatches are put together in buffers. Those in the dataset's own order lie there already. */
static bool gathers(const tn_loader *loader)
{
    const tn__batches *batches = &loader->batches;
    return batches->shuffle || batches->source || batches->sampler || batches->repeat;
}

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
    if (!gathers(loader) || batches->length == 0 || loader->buffers)
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
    if (!(loader->device = tn__device_get(opts->device)))
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

/* ---- one minibatch ---- */

/* A node over half a buffer; the half counts as held from here on, and is let go of if no node can be made. */
static tn__node *tray_node(tn_loader *loader, tn__batch_buffer *buffer, void *memory, const tn__host_view *all,
                           const tn__shape *shape)
{
    size_t bytes = (size_t)shape->size * tn__dtypes[all->dtype].size;
    tn__storage *storage = tn__storage_wrap(loader->device, memory, bytes, tn__batch_buffer_let_go, buffer);
    if (!storage) {
        tn__batch_buffer_let_go(buffer, memory);
        return NULL;
    }
    tn__node *node = tn__node_value(storage, all->dtype, shape, 0, NULL);
    tn__storage_release(storage);
    return node;
}

/* Memory on the device for samples or targets: that of the minibatch before last, so that a step finds its operands
 * where it has found them before; what something still holds is left to that. */
static tn__storage *take_slot(tn_loader *loader, bool targets)
{
    const tn__batches *batches = &loader->batches;
    tn__storage **slot = &loader->slot[targets][loader->turn];
    if (*slot && atomic_load(&(*slot)->references) > 1) {
        tn__storage_release(*slot);
        *slot = NULL;
    }
    if (*slot == NULL)
        *slot = tn__storage_new(loader->device, (size_t)batches->batch * (targets ? batches->t_row : batches->x_row));
    return *slot;
}

/* A copy of rows there. Labels are looked at, so that a loss need not do so again: nobody writes into a slot. */
static tn__node *copied_node(tn_loader *loader, const tn__host_view *all, const void *data, const tn__shape *shape)
{
    bool targets = all == &loader->t;
    size_t bytes = (size_t)shape->size * tn__dtypes[all->dtype].size;
    tn__storage *slot = take_slot(loader, targets);
    if (!slot || (bytes && tn__storage_write(slot, data, bytes) != TN_OK))
        return tn__failed();
    tn__node *node = tn__node_value(slot, all->dtype, shape, 0, NULL);
    if (targets && shape->ndim == 1 && !tn__node_is_error(node))
        node->attr.below = tn__labels_below(data, all->dtype, shape->size);
    return node;
}

/* Rows from `first` on of the dataset's array, as a view where the device allows it. */
static tn__node *window_node(tn_loader *loader, const tn__host_view *all, int64_t first, const tn__shape *shape)
{
    int64_t row = shape->dim[0] ? shape->size / shape->dim[0] : 0;
    if (!all->copy && all->node->device == loader->device)
        return tn__node_value(all->node->storage, all->dtype, shape, all->node->offset + first * row, NULL);
    const char *data = (const char *)all->data + (size_t)(first * row) * tn__dtypes[all->dtype].size;
    return copied_node(loader, all, data, shape);
}

static const tn__shape *batch_shape(const tn__host_view *all, int64_t size)
{
    int64_t dim[TN_MAX_NDIM];
    memcpy(dim, all->shape->dim, sizeof dim);
    dim[0] = size;
    return tn__shape_intern(all->shape->ndim, dim);
}

static void begin_prefetch(tn_loader *loader)
{
    if (loader->no_prefetch || loader->prefetch)
        return;
    bool worth = loader->workers > 1 || loader->batches.source;
    if (!worth &&
        !tn__prefetch_pays(tn__batch_buffers_bytes(loader->buffers), loader->device->capabilities.host_memory)) {
        loader->no_prefetch = true;
        return;
    }
    loader->prefetch =
        tn__prefetch_new(&loader->batches, loader->buffers, loader->workers, loader->epoch, loader->next);
    if (!loader->prefetch) {
        loader->no_prefetch = true;
        tn__log(TN__LOG_WARN, "data", "no thread to prefetch minibatches on: they are prepared as they are asked for");
    }
}

/* The shape of samples of so many steps; NULL with a latched error. */
static const tn__shape *trimmed(const tn__shape *shape, int64_t steps)
{
    int64_t dim[TN_MAX_NDIM];
    memcpy(dim, shape->dim, sizeof dim);
    dim[1] = steps;
    const tn__shape *made = tn__shape_intern(shape->ndim, dim);
    if (!made)
        tn__fail_memory("loader", sizeof *made);
    return made;
}

static bool gathered_nodes(tn_loader *loader, const tn__shape *x_shape, const tn__shape *t_shape, tn__node *node[2])
{
    begin_prefetch(loader);
    tn__batch_buffer *buffer =
        loader->prefetch ? tn__prefetch_take(loader->prefetch, loader->epoch, loader->next) : NULL;
    if (!buffer)
        buffer = tn__batches_gather(&loader->batches, loader->buffers, loader->epoch, loader->next);
    if (!buffer)
        return false;
    if (loader->batches.source && loader->batches.source->length && !(x_shape = trimmed(x_shape, buffer->longest))) {
        tn__batch_buffer_give(buffer);
        return false;
    }
    if (loader->device->capabilities.host_memory) {
        atomic_store_explicit(&buffer->holders, 2, memory_order_relaxed);
        node[0] = tray_node(loader, buffer, buffer->x, &loader->x, x_shape);
        node[1] = tray_node(loader, buffer, buffer->t, &loader->t, t_shape);
    } else {
        node[0] = copied_node(loader, &loader->x, buffer->x, x_shape);
        node[1] = copied_node(loader, &loader->t, buffer->t, t_shape);
        tn__batch_buffer_give(buffer);
    }
    return true;
}

/* The stream for copies, made when it is first asked for; NULL: they go where everything else goes. */
static tn_stream *stream_for_copies(tn_loader *loader)
{
    const tn__batches *batches = &loader->batches;
    bool clean = !tn__latched();
    if (loader->stream || loader->no_stream)
        return loader->stream;
    if (loader->device->ops->streams && (size_t)batches->batch * (batches->x_row + batches->t_row) >= WORTH_A_STREAM)
        loader->stream = tn_stream_new(loader->device->id);
    loader->no_stream = loader->stream == NULL;
    if (clean)
        tn_clear_error();
    return loader->stream;
}

/* The minibatch's samples and targets, from the host. */
static bool host_nodes(tn_loader *loader, const tn__shape *x_shape, const tn__shape *t_shape, tn__node *node[2])
{
    if (gathers(loader))
        return gathered_nodes(loader, x_shape, t_shape, node);
    int64_t first = loader->next * loader->batches.batch;
    node[0] = window_node(loader, &loader->x, first, x_shape);
    node[1] = window_node(loader, &loader->t, first, t_shape);
    return true;
}

/* Points a handle, made the first time, at a node. */
static bool point(tn_array **handle, tn__node *node)
{
    if (!node)
        return false;
    if (tn__node_is_error(node)) {
        tn__error_raise(node->error);
        return false;
    }
    /* A pending node is its thread's, and so is its handle. */
    if (*handle && tn__handle_of(*handle)->owner != tn__thread_number()) {
        tn__array_free_kept(*handle);
        *handle = NULL;
    }
    if (*handle) {
        tn__array_set(*handle, node);
        return true;
    }
    tn_array *made = tn__array_own_new(node);
    if (tn__handle_of(made)->is_static || tn__node_is_error(tn__array_node(made))) {
        tn__array_free_kept(made);
        return false;
    }
    *handle = made;
    return true;
}

static bool deliver(tn_loader *loader, int64_t size)
{
    const tn__shape *x_shape = batch_shape(&loader->x, size), *t_shape = batch_shape(&loader->t, size);
    if (!x_shape || !t_shape) {
        tn__fail_memory("loader", sizeof *x_shape);
        return false;
    }
    tn__node *node[3] = {0};
    tn__call call = tn__enter();
    bool done = true;
    if (loader->resident) {
        tn__resident_batch(loader->resident, loader->epoch, loader->next, loader->place_handle, node);
        done = point(&loader->place_handle, node[2]) && point(&loader->x_handle, node[0]) &&
               point(&loader->t_handle, node[1]);
        if (done) { /* a step computes the place; the samples are there as long as the dataset is */
            tn__pending_leave(loader->x_handle);
            tn__pending_leave(loader->t_handle);
        }
    } else {
        TN_ON_STREAM (stream_for_copies(loader))
            done = host_nodes(loader, x_shape, t_shape, node);
        loader->turn = !loader->turn;
    }
    if (!loader->resident)
        done = done && point(&loader->x_handle, node[0]) && point(&loader->t_handle, node[1]);
    tn__leave(call);
    return done;
}

/* A place that no step has computed, as in an evaluation, is told anew: left pending, it would come along with the
 * first step that follows, which would be another graph than the others. */
static void drop_place(tn_loader *loader)
{
    if (!loader->place_handle || !tn__node_pending(tn__array_node(loader->place_handle)))
        return;
    tn__array_free_kept(loader->place_handle);
    loader->place_handle = NULL;
}

bool tn_loader_next(tn_loader *loader, tn_batch *batch)
{
    if (batch)
        *batch = (tn_batch){0};
    if (tn__latched())
        return false;
    if (!loader || loader->is_static || loader->error) {
        tn__loader_raise(loader);
        return false;
    }
    if (!batch) {
        tn__fail_null("loader_next", "a tn_batch to fill in");
        return false;
    }
    if (loader->next == loader->batches.length) {
        drop_place(loader);
        loader->next = 0;
        loader->epoch++;
        if (loader->beside)
            tn_loader_next(loader->beside, batch); /* which ends, too */
        return false;
    }
    TN__GUARD_OF("loader_next", loader); /* samples may be made by a function of the program's, in this thread */
    int64_t size = tn__batch_size(&loader->batches, loader->next);
    bool done = deliver(loader, size);
    tn_batch next = {.x = loader->x_handle, .t = loader->t_handle, .size = size};
    if (!done || !tn__loader_deliver_fields(loader, &next)) {
        loader->error = tn__error_retain(tn__error_last());
        return false;
    }
    loader->next++;
    *batch = next;
    return true;
}
