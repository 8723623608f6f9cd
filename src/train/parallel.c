/* SPDX-License-Identifier: MIT */
/*
 * Data parallel: a minibatch over several devices. The optimizer's layer is on the first one; each other device has a
 * copy, which gets the layer's values before each iteration. Gradients are added up on the first device, in the order
 * of the devices, and updated there. What goes from device to device does so as one vector: values, gradients, reports.
 * All of it is recorded as one graph over the devices, so that these work side by side without anybody waiting here.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "core/memory.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/observation.h"
#include "train/parts.h"

/* ---- making ---- */

static tn_status check_device(const tn_device *devices, int i)
{
    const char *why = NULL;
    for (int k = 0; k < i; k++)
        if (tn_device_equal(devices[k], devices[i]))
            return tn__fail(TN_ERR_VALUE, "parallel_updater", "%s is named twice; expected each device once",
                            tn_device_name(devices[i]));
    if (devices[i].kind == TN_DEVICE_NULL)
        return tn__fail(TN_ERR_DEVICE, "parallel_updater", "null computes nothing, so that nothing is learnt there");
    if (!tn_device_available(devices[i], &why))
        return tn__fail(TN_ERR_DEVICE, "parallel_updater", "%s cannot be used: %s", tn_device_name(devices[i]),
                        why ? why : "");
    return TN_OK;
}

tn_status tn__parallel_fill(tn_updater *updater, const tn_loader *loader, const tn_updater_opts *opts)
{
    int count = 0;
    tn_status status = TN_OK;
    while (opts->devices && opts->devices[count].kind != TN_DEVICE_DEFAULT && status == TN_OK)
        status = check_device(opts->devices, count++);
    if (status == TN_OK && count == 0)
        status = tn__fail(TN_ERR_VALUE, "parallel_updater",
                          "expected .devices, the devices to share minibatches between, as TN_DEVICES(tn_cuda(0), "
                          "tn_cuda(1))");
    int64_t batch = loader->batches.batch;
    if (status == TN_OK && batch < count)
        status = tn__fail(TN_ERR_VALUE, "parallel_updater",
                          "minibatches of %" PRId64 " sample%s cannot be shared between %d devices: give the loader a "
                          "larger .batch, or name fewer devices",
                          batch, batch == 1 ? "" : "s", count);
    if (status != TN_OK)
        return status;
    updater->devices = tn__alloc((size_t)count * sizeof *updater->devices);
    updater->replicas = tn__calloc((size_t)count, sizeof *updater->replicas);
    if (!updater->devices || !updater->replicas)
        return tn__fail_memory("parallel_updater", (size_t)count * sizeof *updater->replicas);
    for (int i = 0; i < count; i++)
        updater->devices[i] = opts->devices[i];
    updater->device_count = count;
    updater->mean_statistics = opts->mean_statistics;
    return TN_OK;
}

void tn__parallel_end(tn_updater *updater)
{
    for (int i = 0; i < updater->device_count; i++)
        tn_layer_free(updater->replicas[i]);
    tn__free(updater->replicas);
    tn__free(updater->devices);
}

/* ---- shares ---- */

typedef struct sharing {
    tn_updater *updater;
    tn_layer *layer;
    tn_batch batch;
    int shares;
    tn_observation *all, *one, *sums; /* all NULL: nobody listens */
} sharing;

/* Where a share begins: they differ by a sample at most, the first ones are the larger ones. */
static int64_t begin_of(const sharing *s, int i)
{
    int64_t least = s->batch.size / s->shares, more = s->batch.size % s->shares;
    return i * least + (i < more ? i : more);
}

/* Of the minibatch's samples. */
static double part_of(const sharing *s, int i)
{
    return (double)(begin_of(s, i + 1) - begin_of(s, i)) / (double)s->batch.size;
}

static tn_layer *model_of(const sharing *s, int i) { return i ? s->updater->replicas[i] : s->layer; }

/* The copy on device i, made once the layer has its parameters. */
static tn_status make_replica(const sharing *s, int i)
{
    tn_layer **replica = &s->updater->replicas[i];
    tn_layer *copy = tn_layer_copy_with(s->layer, NULL);
    tn_status status = tn_layer_status(copy);
    if (status == TN_OK)
        status = tn_layer_to(copy, s->updater->devices[i]);
    if (status != TN_OK)
        tn_layer_free(copy);
    else
        *replica = copy;
    return status;
}

/* Copies of a layer that has got parameters, persistent values or parts since are of no use. */
static void let_stale_go(const sharing *s)
{
    if (s->updater->copied == s->layer->changes)
        return;
    for (int i = 1; i < s->updater->device_count; i++) {
        tn_layer_free(s->updater->replicas[i]);
        s->updater->replicas[i] = NULL;
    }
    s->updater->copied = s->layer->changes;
}

/* Copies with the values of now. */
static tn_status refresh(const sharing *s)
{
    int made = 1;
    let_stale_go(s);
    while (made < s->shares && s->updater->replicas[made])
        made++;
    tn_status status = tn__layers_copy_params(made - 1, s->updater->replicas + 1, s->layer);
    for (int i = made; i < s->shares && status == TN_OK; i++)
        status = make_replica(s, i);
    return status;
}

static tn_array *cut(const sharing *s, int i, const tn_array *x)
{
    return x ? tn_to(tn_slice_axis(x, 0, begin_of(s, i), begin_of(s, i + 1), 1), s->updater->devices[i]) : NULL;
}

static tn_array *loss_of_share(const sharing *s, int i, int64_t size)
{
    tn_array *fields[TN_MAX_FIELDS] = {NULL};
    tn_batch share = {.x = cut(s, i, s->batch.x), .t = cut(s, i, s->batch.t), .size = size, .fields = fields,
                      .field_count = s->batch.field_count, .names = s->batch.names};
    for (int k = 0; k < share.field_count; k++)
        fields[k] = s->batch.fields[k] == s->batch.x   ? share.x
                    : s->batch.fields[k] == s->batch.t ? share.t
                                                       : cut(s, i, s->batch.fields[k]);
    return s->updater->loss(model_of(s, i), &share, s->updater->user);
}

/* ---- what crosses to the first device ---- */

static tn_array *handle(tn__node *node) { return tn__leave_array(tn__enter(), node); }

/* Arrays as arrays on the first device, each times a weight there; those of a share cross together. It is recorded
 * only: a step computes them along. Whole numbers become floating. What is sent as it is needs no plan of its own where
 * something else is sent of it, too, as of a loss that is added up. */
static tn_status gather(const sharing *s, int count, tn_array **x, double weight)
{
    TN__FREED tn__node **node = tn__alloc(((size_t)count + 1) * sizeof *node);
    TN__FREED tn__device **to = tn__alloc(((size_t)count + 1) * sizeof *to);
    if (!node || !to)
        return tn__fail_memory("updater", (size_t)count * sizeof *node);
    tn__call call = tn__enter();
    tn__device *first = tn__device_get(s->updater->devices[0]);
    for (int k = 0; k < count; k++) {
        node[k] = tn__node_of(x[k], "updater");
        to[k] = first;
    }
    tn_status status = first ? tn__move_together(count, node, to, false) : TN_ERR_DEVICE;
    for (int k = 0; k < count && status == TN_OK; k++)
        x[k] = tn_multiply(handle(node[k]), tn_weak_float(weight));
    tn__leave(call);
    return status;
}

/* ---- reports ---- */

/*
 * Sums over the shares, under each key of the values times their weights in parts of the minibatch, with the sum of
 * these weights: negative as long as they are the shares' samples, because none was given.
 */
static tn_status add_report(const sharing *s, const tn__observed *seen, tn_array *array, double weight)
{
    tn__observed sum = {.weight = 0};
    tn__observation_find(s->sums, seen->key, &sum);
    double all = fabs(sum.weight) + weight, number = sum.number + (array ? 0 : weight * seen->number);
    all = seen->weight != 0 || sum.weight > 0 ? all : -all;
    if (array && sum.array)
        array = tn_add(sum.array, array);
    else if (array || sum.array)
        array = tn_add(array ? array : sum.array, tn_weak_float(number));
    return array ? tn_observation_set(s->sums, seen->key, array, all)
                 : tn_observation_set_number(s->sums, seen->key, number, all);
}

static double weight_of(const sharing *s, const tn__observed *seen, int64_t size)
{
    return (seen->weight != 0 ? seen->weight : (double)size) / (double)s->batch.size;
}

/* Adds what a share of so many samples reported. Values of one weight cross together. */
static tn_status report(const sharing *s, int64_t size)
{
    int count = tn_observation_count(s->one);
    TN__FREED tn_array **array = tn__calloc((size_t)count + 1, sizeof *array);
    if (!array)
        return tn__fail_memory("updater", (size_t)count * sizeof *array);
    tn_status status = TN_OK;
    tn__observed seen, next;
    for (int i = 0, end; status == TN_OK && tn__observation_at(s->one, i, &seen); i = end) {
        double weight = weight_of(s, &seen, size);
        int found = 0;
        for (end = i; tn__observation_at(s->one, end, &next) && weight_of(s, &next, size) == weight; end++)
            if (next.array)
                array[found++] = (tn_array *)next.array;
        status = gather(s, found, array, weight);
        for (int k = i, taken = 0; k < end && status == TN_OK; k++) {
            tn__observation_at(s->one, k, &next);
            status = add_report(s, &next, next.array ? array[taken++] : NULL, weight);
        }
    }
    return status;
}

/* The means of what all shares reported. */
static tn_status report_means(const sharing *s)
{
    tn_status status = TN_OK;
    tn__observed sum;
    for (int i = 0; status == TN_OK && tn__observation_at(s->sums, i, &sum); i++) {
        double all = fabs(sum.weight), given = sum.weight > 0 ? all * (double)s->batch.size : 0;
        status = sum.array ? tn_observation_set(s->all, sum.key, tn_divide(sum.array, tn_weak_float(all)), given)
                           : tn_observation_set_number(s->all, sum.key, sum.number / all, given);
    }
    return status;
}

/* ---- a share ---- */

/* The loss of a share, backward from it, and what was reported. */
static tn_status run_share(const sharing *s, int i)
{
    int64_t size = begin_of(s, i + 1) - begin_of(s, i);
    tn_status status = i ? tn__report_twin(model_of(s, i), s->layer) : TN_OK;
    if (status != TN_OK)
        return status;
    tn_observation_clear(s->one);
    tn_report_scope_push(s->one);
    tn_array *loss = loss_of_share(s, i, size);
    tn_reporter_pop();
    status = tn__updater_backward(s->updater, loss, part_of(s, i));
    TN_NO_GRAD status = status == TN_OK && s->all ? report(s, size) : status;
    return status;
}

/* ---- statistics ---- */

typedef struct statistics {
    const sharing *s;
    tn_array **own; /* of each share those of the layer, one share after another once they are listed */
    size_t count, capacity;
    int share;
} statistics;

static tn_status list_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer;
    statistics *all = user;
    if (!slot->persistent || !slot->value || !tn_dtype_is_float(tn_dtype_of(slot->value)))
        return TN_OK;
    if (!tn__grow((void **)&all->own, &all->capacity, all->count + 1, sizeof *all->own))
        return tn__fail_memory("updater", sizeof *all->own);
    const tn__slot *own = all->share ? tn__slot_at(model_of(all->s, all->share), path) : slot;
    if (!own || !own->value)
        return tn__fail(TN_ERR_STATE, "updater",
                        "the copy of the layer on %s has no persistent value %s: what a forward adds to the layer must "
                        "be there before the first minibatch, or in each",
                        tn_device_name(all->s->updater->devices[all->share]), path);
    all->own[all->count++] = own->value;
    return TN_OK;
}

static tn_status mean_statistics(const sharing *s)
{
    statistics all = {.s = s};
    tn_status status = TN_OK;
    for (; all.share < s->shares && status == TN_OK; all.share++)
        status = tn__visit_slots(s->layer, "", list_slot, &all);
    size_t each = all.count / (size_t)s->shares;
    tn_array **mean = tn__alloc((each + 1) * sizeof *mean);
    if (status == TN_OK && !mean)
        status = tn__fail_memory("updater", each * sizeof *mean);
    for (int i = 0; i < s->shares && status == TN_OK; i++) {
        tn_array **own = all.own + (size_t)i * each;
        if (i == 0 && each)
            memcpy(mean, own, each * sizeof *mean);
        status = gather(s, (int)each, i ? own : mean, part_of(s, i));
        for (size_t k = 0; i && k < each && status == TN_OK; k++)
            mean[k] = tn_add(mean[k], own[k]);
    }
    for (size_t k = 0; k < each && status == TN_OK; k++)
        status = tn_assign(all.own[k], mean[k]);
    tn__free(mean);
    tn__free(all.own);
    return status;
}

/* ---- a minibatch ---- */

/* The first share before the copies are made: it may be what gives the layer its parameters. */
static tn_status run_shares(sharing *s)
{
    tn_status status = run_share(s, 0);
    if (status == TN_OK && s->shares > 1)
        status = refresh(s);
    for (int i = 1; i < s->shares && status == TN_OK; i++)
        TN_SCOPE { /* its loss is not computed for its own sake: that would be one more plan */
            tn_layer_clear_grads(model_of(s, i));
            status = run_share(s, i);
        }
    for (int i = 1; i < s->shares && status == TN_OK; i++) {
        status = tn_layer_add_grads(s->layer, model_of(s, i));
        tn_layer_clear_grads(model_of(s, i));
    }
    if (status == TN_OK && s->updater->mean_statistics && s->shares > 1)
        TN_NO_GRAD status = mean_statistics(s);
    if (status == TN_OK && s->all)
        TN_NO_GRAD status = report_means(s);
    return status;
}

tn_status tn__parallel_minibatch(tn_updater *updater, tn_optimizer *optimizer)
{
    sharing s = {.updater = updater, .layer = optimizer->layer, .all = tn_current_observation()};
    if (!tn_updater_next(updater, NULL, &s.batch))
        return tn_error_code();
    s.shares = s.batch.size < updater->device_count ? (int)s.batch.size : updater->device_count;
    s.one = tn_observation_new();
    s.sums = tn_observation_new();
    tn_status status = tn_error_code();
    if (status == TN_OK)
        status = run_shares(&s);
    tn_observation_free(s.one);
    tn_observation_free(s.sums);
    return status;
}
