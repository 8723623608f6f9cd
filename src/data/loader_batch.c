/* SPDX-License-Identifier: MIT */
/*
 * The next minibatch of a loader, as arrays: those of the resident dataset, views of a dataset on the CPU, or buffers
 * that samples were gathered in, where need be copied to the device.
 */
#include <string.h>

#include "array/guard.h"
#include "core/log.h"
#include "data/loader.h"
#include "engine/engine.h"

/* Copying less takes no longer than the calls that put it beside a step, and the next step behind it. */
#define WORTH_A_STREAM ((size_t)256 << 10)

/* A node over half a buffer; the half counts as held from here on, and is let go of if no node can be made. */
static tn__node *buffer_node(tn_loader *loader, tn__batch_buffer *buffer, void *memory, const tn__host_view *all,
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
        node[0] = buffer_node(loader, buffer, buffer->x, &loader->x, x_shape);
        node[1] = buffer_node(loader, buffer, buffer->t, &loader->t, t_shape);
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
    if (tn__loader_gathers(loader))
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
