/* SPDX-License-Identifier: MIT */
/*
 * Weighted means on the device. The total is a float64 scalar that each addition records one node upon; it is computed
 * along with the next optimizer's step, or here when the recording would grow too long. A value that is there already,
 * in memory the processor reads, is added at once: recorded, it would make an epoch's first step another graph than the
 * others.
 */
#include <math.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include <tanso/train.h>
#include "array/build.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/object.h"
#include "engine/engine.h"
#include "train/meter.h"

/* Additions of values that are there already, recorded before one evaluation does them all. */
#define LONGEST_CHAIN 64

struct tn_meter {
    tn__object object;
    tn__error *error; /* of one that was freed; else NULL */
    bool is_static;  /* the out-of-memory meter */
    bool failed;     /* an addition was refused: there is no mean */
    bool told;       /* why there is no mean */
    int chain;
    uint64_t heavy;  /* devices, by bit_of, whose computation of a value the recording holds, beside additions */
    tn_device device;
    tn_array *total; /* of what was recorded; NULL: nothing yet */
    bool known;      /* it has been read, and is `read` */
    double read;
    double at_once;  /* total of what was added at once */
    double weight;
};

static tn_meter memory_meter = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_meter, "meter");

tn_meter *tn_meter_new(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    tn_meter *meter = tn__object_new(&objects);
    if (!meter) {
        tn__fail_memory("meter", sizeof *meter);
        return &memory_meter;
    }
    meter->failed = !opened;
    meter->device = opened ? opened->id : device;
    return meter;
}

tn_device tn_meter_device(const tn_meter *meter)
{
    if (!meter)
        tn__fail_null("device_of", "a meter");
    else if (meter->error)
        tn__error_raise(meter->error);
    return meter ? meter->device : (tn_device){0};
}

void tn_meter_free(tn_meter *meter)
{
    if (!meter || meter->is_static || !tn__object_may_go(&objects, &meter->object))
        return;
    tn__array_free_kept(meter->total);
    tn__object_end(&objects, &meter->object);
}

static tn__node *start(tn__device *device)
{
    const double zero = 0;
    return tn__value_from_host(&zero, TN_FLOAT64, tn__shape_scalar(), device);
}

/* By the device that computes a value, wherever it is sent. */
static uint64_t bit_of(const tn__node *x)
{
    bool sent = tn__node_pending(x) && x->op == TN__OP_TRANSFER;
    return (uint64_t)1 << (sent ? x->in[0] : x)->device->number % 64;
}

/* Computes what was recorded before, unless a step has: else a loop without steps would record all its rounds. But
 * values of several devices may be those of one round, each computed beside the others, and twice if it were here. */
static tn_status settle(tn_meter *meter, const tn__node *x)
{
    if (!meter->total)
        return TN_OK;
    bool pending = tn__node_pending(tn__array_node(meter->total));
    if (pending && !(meter->heavy & bit_of(x)) && meter->chain < LONGEST_CHAIN)
        return TN_OK;
    meter->chain = 0;
    meter->heavy = 0;
    return pending ? tn_eval(meter->total) : TN_OK;
}

static tn_status add(tn_meter *meter, const tn_array *value, double weight)
{
    tn__node *x = tn__node_of(value, "meter_add");
    if (tn__node_is_error(x))
        return tn__error_raise(x->error);
    char text[TN__SHAPE_TEXT];
    if (x->shape->size != 1)
        return tn__fail(TN_ERR_SHAPE, "meter_add",
                        "expected an array of one element, got shape %s: reduce it with tn_mean",
                        tn__shape_text(x->shape->ndim, x->shape->dim, text));
    tn__device *device = tn__device_get(meter->device);
    if (!device)
        return tn__error_status(tn__error_last());
    if (x->storage && x->device->capabilities.host_memory) {
        meter->at_once += tn_item(value) * weight;
        meter->weight += weight;
        meter->told = false;
        return TN_OK;
    }
    tn_status status = settle(meter, x);
    if (status != TN_OK)
        return status;
    meter->known = false;
    tn__node *total = meter->total ? tn__array_node(meter->total) : start(device);
    meter->heavy |= tn__node_pending(x) || x->device != device ? bit_of(x) : 0;
    x = tn__to(x, device);
    x = tn__cast(tn__reshape(x, 0, NULL), TN_FLOAT64);
    if (weight != 1) /* half of what is recorded for a sum of means, which goes round each iteration */
        x = tn__binary(TN__OP_MULTIPLY, x, tn__const_like(x, weight));
    total = tn__binary(TN__OP_ADD, total, x);
    if (tn__node_is_error(total))
        return tn__error_raise(total->error);
    if (meter->total)
        tn__array_set(meter->total, total);
    else
        meter->total = tn__array_own_new(total);
    meter->weight += weight;
    meter->told = false;
    meter->chain++;
    bool failed = tn__handle_of(meter->total)->is_static || tn__node_is_error(tn__array_node(meter->total));
    return failed ? TN_ERR_MEMORY : TN_OK;
}

void tn_meter_add(tn_meter *meter, const tn_array *value, double weight)
{
    if (!meter || meter->is_static) {
        tn__fail(meter ? TN_ERR_MEMORY : TN_ERR_VALUE, "meter_add", "expected a meter, got %s",
                 meter ? "one that was made without memory" : "NULL");
        return;
    }
    if (meter->error) {
        tn__error_raise(meter->error);
        return;
    }
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    if (add(meter, value, weight) != TN_OK)
        meter->failed = true;
    tn__no_grad_depth--;
    tn__leave(call);
}

static void reset(tn_meter *meter)
{
    tn__array_free_kept(meter->total);
    meter->total = NULL;
    meter->known = false;
    meter->at_once = 0;
    meter->weight = 0;
    meter->chain = 0;
    meter->heavy = 0;
    meter->failed = false;
}

/* A loop that an error keeps from its minibatches, as where a dataset is missing, prints a NaN an epoch, and what is
 * wrong only when it looks: the reason comes before the first. */
static void tell_why(tn_meter *meter)
{
    if (!meter->told)
        tn__log(TN__LOG_WARN, "train", "a mean is NaN, as nothing was added to its meter: %s", tn_error());
    meter->told = true;
}

/* ---- for summaries, see meter.h ---- */

void tn__meter_add_number(tn_meter *meter, double value, double weight)
{
    if (meter->is_static)
        return;
    meter->at_once += value * weight;
    meter->weight += weight;
    meter->told = false;
}

const tn_array *tn__meter_pending(const tn_meter *meter)
{
    return meter->total && !meter->failed && tn__node_pending(tn__array_node(meter->total)) ? meter->total : NULL;
}

const tn_array *tn__meter_unread(const tn_meter *meter)
{
    return meter->failed || meter->known ? NULL : meter->total;
}

void tn__meter_know(tn_meter *meter, double total)
{
    meter->known = true;
    meter->read = total;
}

void tn__meter_stand_in(tn_meter *meter, tn__node *copy)
{
    if (!tn__node_is_error(copy))
        tn__array_set(meter->total, copy);
}

double tn__meter_mean(tn_meter *meter)
{
    if (meter->is_static || meter->failed || meter->weight == 0)
        return NAN;
    double total = meter->known ? meter->read : meter->total ? tn_item(meter->total) : 0;
    return (total + meter->at_once) / meter->weight;
}

tn_array *tn__meter_array(tn_meter *meter)
{
    if (!meter->total || meter->failed || meter->weight == 0)
        return NULL;
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    tn__node *total = tn__array_node(meter->total);
    tn__node *sum = tn__binary(TN__OP_ADD, total, tn__const_like(total, meter->at_once));
    tn__node *mean = tn__binary(TN__OP_DIVIDE, sum, tn__const_like(total, meter->weight));
    tn__no_grad_depth--;
    return tn__leave_array(call, mean);
}

tn_status tn__meter_look(const tn_meter *meter, tn__meter_sums *sums, const tn_array **total)
{
    *sums = (tn__meter_sums){0};
    *total = NULL;
    if (meter->is_static)
        return tn__fail_memory("meter", sizeof *meter);
    *sums = (tn__meter_sums){.has_total = meter->total != NULL,
                             .total = meter->failed ? NAN : 0,
                             .at_once = meter->at_once,
                             .weight = meter->weight};
    *total = meter->failed ? NULL : meter->total;
    return tn_error_code();
}

tn_status tn__meter_read(tn_meter *meter, tn__meter_sums *sums)
{
    const tn_array *total;
    tn_status status = tn__meter_look(meter, sums, &total);
    if (!total)
        return status;
    sums->total = tn_item(total);
    return tn_error_code();
}

tn_status tn__meter_restore(tn_meter *meter, const tn__meter_sums *sums)
{
    tn__device *device = meter->is_static ? NULL : tn__device_get(meter->device);
    if (!device)
        return tn__error_status(tn__error_last());
    reset(meter);
    meter->at_once = sums->at_once;
    meter->weight = sums->weight;
    if (!sums->has_total)
        return TN_OK;
    tn__call call = tn__enter();
    meter->total = tn__array_own_new(tn__value_from_host(&sums->total, TN_FLOAT64, tn__shape_scalar(), device));
    tn__leave(call);
    return tn_status_of(meter->total);
}

double tn_meter_take(tn_meter *meter)
{
    if (!meter || meter->is_static)
        return NAN;
    if (meter->error)
        return tn__error_raise(meter->error), NAN;
    if (meter->weight == 0 && !meter->failed && tn__latched())
        tell_why(meter);
    double mean = tn__meter_mean(meter);
    reset(meter);
    return mean;
}
