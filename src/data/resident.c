/* SPDX-License-Identifier: MIT */
/* Datasets on devices, and minibatches as gathers that are recorded. */
#include "data/resident.h"

#include <string.h>
#include "array/build.h"
#include "core/memory.h"
#include "device/allocator.h"
#include "engine/engine.h"

/* Of the memory that is free, what a dataset may take. */
#define SHARE 4

struct tn__resident {
    tn__device *device;
    tn__node *x, *t;     /* all samples */
    int64_t labels_below; /* targets lie in 0..labels_below-1; 0: not known */
    tn__batches batches;
    bool shuffle;
    /* The order of an epoch, on the device. The next one is drawn bit by bit, with each minibatch some steps, so that
     * an epoch begins without waiting for it. */
    struct {
        tn__node *now, *next;
        int64_t epoch, next_epoch;
        tn__storage *place[2]; /* of their memory, by turns */
        int turn;
        tn__shuffling drawn;   /* the next one, as far as it is */
    } order;
    tn__node *first;    /* where the last minibatch begins: held, so that no step overwrites it and all its kernels may
                           read it */
    int64_t next_first; /* where the minibatch after the last one begins: what its place is when it has been computed */
    uint64_t failures;   /* of the device's runs, so far */
};

bool tn__resident_fits(const tn__device *device, size_t bytes)
{
    tn_memory_info memory = tn__allocator_stats(device->allocator);
    size_t most = memory.limit && memory.limit < memory.total ? memory.limit
                  : memory.total                              ? memory.total
                                                              : memory.limit;
    return most == 0 || bytes <= (most > memory.used ? most - memory.used : 0) / SHARE;
}

/* ---- making ---- */

int64_t tn__labels_below(const void *labels, tn_dtype dtype, int64_t count)
{
    const tn__dtype_info *info = &tn__dtypes[dtype];
    int64_t largest = -1;
    if (!tn_dtype_is_integer(dtype) || dtype == TN_UINT64)
        return 0;
    for (int64_t i = 0; i < count; i++) {
        tn__scalar element = {0};
        memcpy(element.bytes, (const char *)labels + (size_t)i * info->size, info->size);
        int64_t value = tn__scalar_to_int(element, dtype);
        if (value < 0)
            return 0;
        largest = value > largest ? value : largest;
    }
    return largest < INT64_MAX ? largest + 1 : 0;
}

/* A value on the device that is held; NULL with a latched error. */
static tn__node *upload(const void *data, tn_dtype dtype, const tn__shape *shape, tn__device *device)
{
    tn__node *node = shape ? tn__value_from_host(data, dtype, shape, device) : NULL;
    if (!node) {
        tn__fail_memory("loader", sizeof *shape);
        return NULL;
    }
    return tn__node_is_error(node) ? NULL : tn__node_retain(node);
}

/* The order drawn, as a value that is held; in one of two places by turns, so that a step finds its operands where it
 * found them before. A place that something else still holds is left to that. */
static tn__node *upload_order(tn__resident *r)
{
    const tn__shape *shape = tn__shape_intern(1, &r->batches.count);
    tn__storage **place = &r->order.place[r->order.turn];
    size_t bytes = (size_t)r->batches.count * sizeof *r->batches.order;
    if (*place && atomic_load(&(*place)->references) > 1) {
        tn__storage_release(*place);
        *place = NULL;
    }
    if (!shape || (!*place && !(*place = tn__storage_new(r->device, bytes)))) {
        tn__fail_memory("loader", bytes);
        return NULL;
    }
    if (tn__storage_write(*place, r->batches.order, bytes) != TN_OK)
        return NULL;
    tn__node *node = tn__node_value(*place, TN_INT64, shape, 0, NULL);
    r->order.turn = !r->order.turn;
    return tn__node_is_error(node) ? NULL : tn__node_retain(node);
}

tn__resident *tn__resident_new(const tn__host_view *x, const tn__host_view *t, const tn__batches *batches, bool shuffle,
                               tn__device *device)
{
    tn__resident *r = tn__calloc(1, sizeof *r);
    if (!r) {
        tn__fail_memory("loader", sizeof *r);
        return NULL;
    }
    r->device = device;
    r->batches = *batches;
    r->batches.order = NULL;
    r->shuffle = shuffle;
    r->order.epoch = r->order.next_epoch = -1;
    r->labels_below = tn__labels_below(t->data, t->dtype, t->shape->size);
    tn__call call = tn__enter();
    r->x = upload(x->data, x->dtype, x->shape, device);
    r->t = r->x ? upload(t->data, t->dtype, t->shape, device) : NULL;
    tn__leave(call);
    size_t bytes = (size_t)batches->count * sizeof *batches->order;
    if (r->t && shuffle && !(r->batches.order = tn__alloc(bytes)))
        tn__fail_memory("loader", bytes);
    if (r->t && (r->batches.order || !shuffle))
        return r;
    tn__resident_free(r);
    return NULL;
}

void tn__resident_free(tn__resident *r)
{
    if (!r)
        return;
    tn__node *held[] = {r->x, r->t, r->order.now, r->order.next, r->first};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i])
            tn__node_release(held[i]);
    for (int i = 0; i < 2; i++)
        if (r->order.place[i])
            tn__storage_release(r->order.place[i]);
    tn__free(r->batches.order);
    tn__free(r);
}

/* ---- the order ---- */

static void begin_order(tn__resident *r, int64_t epoch)
{
    if (!r->batches.sampler)
        tn__shuffling_begin(&r->order.drawn, tn__batches_key(&r->batches, epoch), r->batches.count, r->batches.order);
    r->order.next_epoch = epoch;
    if (r->order.next)
        tn__node_release(r->order.next);
    r->order.next = NULL;
}

/* Goes on drawing the next order, and copies it to the device when it is done. */
static bool go_on(tn__resident *r, int64_t steps)
{
    if (r->order.next || r->order.next_epoch < 0)
        return true;
    if (r->batches.sampler) {
        if (tn__batches_order(&r->batches, r->order.next_epoch) != TN_OK)
            return false;
    } else if (tn__shuffling_go_on(&r->order.drawn, steps)) {
        return true;
    }
    r->order.next = upload_order(r);
    return r->order.next != NULL;
}

static bool have_order(tn__resident *r, int64_t epoch)
{
    if (r->order.epoch != epoch) {
        if (r->order.next_epoch != epoch)
            begin_order(r, epoch);
        if (!go_on(r, r->batches.count))
            return false;
        if (r->order.now)
            tn__node_release(r->order.now);
        r->order.now = r->order.next;
        r->order.epoch = epoch;
        r->order.next = NULL;
        r->order.next_epoch = -1;
        if (!r->batches.sampler) /* which are asked for one when it is due, and as a whole */
            begin_order(r, epoch + 1);
    }
    return go_on(r, r->batches.count / r->batches.length + 1);
}

/* ---- minibatches ---- */

static tn__node *integer(const tn__resident *r, int64_t value, const tn__shape *shape)
{
    return tn__const_scalar((tn__scalar){.bits = (uint64_t)value}, TN_INT64, shape, r->device);
}

/* Where the minibatch begins, as a value on the device: what the step of the last minibatch has computed, if it has. A
 * number given to each step would be another parameter of its kernels each time. */
static tn__node *first_position(tn__resident *r, int64_t first, const tn_array *place)
{
    const int64_t one = 1;
    uint64_t failures = atomic_load_explicit(&r->device->failures, memory_order_relaxed);
    bool lost = failures != r->failures; /* what a failed run was to overwrite is as it was */
    r->failures = failures;
    if (place && !lost && r->next_first == first && tn__array_node(place)->storage && !tn__array_node(place)->error)
        return tn__array_node(place);
    return tn__value_from_host(&first, TN_INT64, tn__shape_intern(1, &one), r->device);
}

/* Where in the epoch's order the samples are. */
static tn__node *positions(const tn__resident *r, tn__node *first, int64_t size)
{
    const tn__shape *shape = tn__shape_intern(1, &size);
    if (!shape)
        return tn__node_error(tn__error_retain(tn__error_no_memory()));
    return tn__binary(TN__OP_ADD, tn__iota(shape, 0, r->device), first);
}

/* Which samples, from where they are in the order. */
static tn__node *samples(const tn__resident *r, tn__node *at)
{
    return r->shuffle ? tn__gather_known(r->order.now, at, 0, 0) : at;
}

static tn__node *rows(tn__node *all, tn__node *at, int64_t below)
{
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i < all->shape->ndim; i++)
        dim[i] = i == 0 ? at->shape->size : 1;
    return tn__gather_known(all, tn__reshape(at, all->shape->ndim, dim), 0, below);
}

void tn__resident_batch(tn__resident *r, int64_t epoch, int64_t i, const tn_array *place, tn__node *node[3])
{
    epoch += i / r->batches.length;
    i %= r->batches.length;
    int64_t first = i * r->batches.batch, size = tn__batch_size(&r->batches, i);
    tn__no_grad_depth++;
    if (r->shuffle && !have_order(r, epoch)) {
        node[0] = node[1] = node[2] = tn__failed();
    } else {
        tn__node *at = tn__node_retain(first_position(r, first, place));
        if (r->first)
            tn__node_release(r->first);
        r->first = at;
        tn__node *of = samples(r, positions(r, at, size));
        node[0] = rows(r->x, of, 0);
        node[1] = rows(r->t, of, r->labels_below);
        r->next_first = i + 1 < r->batches.length ? first + r->batches.batch : 0;
        /* Around the end, so that the numbers that a step is given are the same in an epoch's last one. */
        node[2] = tn__binary(TN__OP_REMAINDER, tn__binary(TN__OP_ADD, at, integer(r, r->batches.batch, at->shape)),
                             integer(r, r->batches.batch * r->batches.length, at->shape));
    }
    tn__no_grad_depth--;
}
