/* SPDX-License-Identifier: MIT */
/*
 * Data parallel: a minibatch over several devices. The optimizer's layer is on the first one; each other device has a
 * copy, which gets the layer's values before each iteration. Gradients are added up on the first device, in the order
 * of the devices, and updated there. All of it is recorded as one graph over the devices, so that these work side by
 * side without anybody waiting here.
 */
#include <inttypes.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "core/memory.h"
#include "data/loader.h"
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
    tn_observation *all, *one; /* all NULL: nobody listens */
} sharing;

/* Where a share begins: they differ by a sample at most, the first ones are the larger ones. */
static int64_t begin_of(const sharing *s, int i)
{
    int64_t least = s->batch.size / s->shares, more = s->batch.size % s->shares;
    return i * least + (i < more ? i : more);
}

static tn_layer *model_of(const sharing *s, int i) { return i ? s->updater->replicas[i] : s->layer; }

/* The copy on device i, with the values of now; made once the layer has its parameters. */
static tn_status refresh(const sharing *s, int i)
{
    tn_layer **replica = &s->updater->replicas[i];
    if (*replica)
        return tn_layer_copy_params(*replica, s->layer);
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

/* x on the first device, times a number: a part of it, so whole numbers become floating. */
static tn_array *scaled(const sharing *s, const tn_array *x, double by)
{
    return tn_multiply(tn_to(x, s->updater->devices[0]), tn_weak_float(by));
}

/* Adds what a share reported to the means over all of them, which are recorded only: a step computes them along. */
static tn_status report(const sharing *s, int i, double part)
{
    tn_status status = TN_OK;
    for (int k = 0, count = tn_observation_count(s->one); k < count && status == TN_OK; k++) {
        const char *key = tn_observation_key(s->one, k);
        const tn_array *value = tn_observation_array(s->one, key), *sum = tn_observation_array(s->all, key);
        double weight = tn_observation_weight(s->one, key);
        if (!value) {
            double before = i && tn_observation_has(s->all, key) ? tn_observation_number(s->all, key) : 0;
            double number = before + part * tn_observation_number(s->one, key);
            status = tn_observation_set_number(s->all, key, number, weight);
            continue;
        }
        tn_array *more = scaled(s, value, part);
        status = tn_observation_set(s->all, key, i && sum ? tn_add(sum, more) : more, weight);
    }
    return status;
}

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
    double part = (double)size / (double)s->batch.size;
    status = tn__updater_backward(s->updater, loss, part);
    TN_NO_GRAD status = status == TN_OK && s->all ? report(s, i, part) : status;
    return status;
}

/* ---- statistics ---- */

static tn_status mean_of_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer;
    const sharing *s = user;
    if (!slot->persistent || !slot->value || !tn_dtype_is_float(tn_dtype_of(slot->value)))
        return TN_OK;
    tn_array *mean = NULL;
    for (int i = 0; i < s->shares; i++) {
        tn_array *own = i ? tn__slot_at(model_of(s, i), path)->value : slot->value;
        double part = (double)(begin_of(s, i + 1) - begin_of(s, i)) / (double)s->batch.size;
        tn_array *weighted = scaled(s, own, part);
        mean = mean ? tn_add(mean, weighted) : weighted;
    }
    return tn_assign(slot->value, mean);
}

/* ---- a minibatch ---- */

/* The first share before the copies are made: it may be what gives the layer its parameters. */
static tn_status run_shares(sharing *s)
{
    tn_status status = run_share(s, 0);
    for (int i = 1; i < s->shares && status == TN_OK; i++) {
        status = refresh(s, i);
        if (status == TN_OK) {
            tn_layer_clear_grads(model_of(s, i));
            status = run_share(s, i);
        }
    }
    for (int i = 1; i < s->shares && status == TN_OK; i++) {
        status = tn_layer_add_grads(s->layer, model_of(s, i));
        tn_layer_clear_grads(model_of(s, i));
    }
    if (status == TN_OK && s->updater->mean_statistics && s->shares > 1)
        TN_NO_GRAD status = tn__visit_slots(s->layer, "", mean_of_slot, s);
    return status;
}

tn_status tn__parallel_minibatch(tn_updater *updater, tn_optimizer *optimizer)
{
    sharing s = {.updater = updater, .layer = optimizer->layer, .all = tn_current_observation()};
    if (!tn_updater_next(updater, NULL, &s.batch))
        return tn_error_code();
    s.shares = s.batch.size < updater->device_count ? (int)s.batch.size : updater->device_count;
    s.one = tn_observation_new();
    tn_status status = tn_error_code();
    if (status == TN_OK)
        status = run_shares(&s);
    tn_observation_free(s.one);
    return status;
}
