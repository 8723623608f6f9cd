/* SPDX-License-Identifier: MIT */
/* Statistics of parameters, as values that are observed, and over the iterations as a picture. */
#include <math.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include <tanso/manipulate.h>
#include <tanso/statistics.h>
#include "optim/optimizer.h"
#include "train/ext.h"
#include "train/gradients.h"

#define OPERATION "parameter_statistics"

/* Where a normal distribution has -3 to 3 deviations. */
static const double percentiles[] = {0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87};
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

static tn_array *mean(const tn_array *x) { return tn_mean_with(x, NULL); }
static tn_array *deviation(const tn_array *x) { return tn_std_with(x, NULL); }
static tn_array *least(const tn_array *x) { return tn_min_with(x, NULL); }
static tn_array *most(const tn_array *x) { return tn_max_with(x, NULL); }
static tn_array *zeros(const tn_array *x) { return tn_sum_with(tn_logical_not(x), NULL); }

static const struct {
    const char *name;
    tn_array *(*of)(const tn_array *x);
} statistics[] = {{"mean", mean}, {"std", deviation}, {"min", least}, {"max", most}, {"zeros", zeros}};
enum { STATISTICS = sizeof statistics / sizeof *statistics };

static tn_array *percentiles_of(const tn_array *x)
{
    tn_create_opts there = {.device = tn_device_of(x)};
    tn_array *q = tn_from_host_with(percentiles, (tn_shape){1, {PERCENTILES}}, TN_FLOAT64, &there);
    return tn_percentile_with(x, q, NULL);
}

/* ---- observed ---- */

typedef struct observing {
    tn_layer *layer; /* NULL: all that is trained */
    char *prefix;
    bool wants_gradients;
    tn__gradients gradients;
} observing;

static tn_status set(tn_observation *seen, const char *begin, const char *end, const tn_array *value)
{
    char *key = tn__format("%s%s", begin, end);
    tn_status status = key ? tn_observation_set(seen, key, value, 0) : tn__fail_memory(OPERATION, strlen(begin));
    tn__free(key);
    return status;
}

/* Values stay where they are, and nobody waits. */
static tn_status observe_param(tn_observation *seen, const char *begin, const tn_array *x)
{
    tn_status status = TN_OK;
    for (int i = 0; i < STATISTICS && status == TN_OK; i++)
        status = set(seen, begin, statistics[i].name, statistics[i].of(x));
    tn_array *spread = status == TN_OK ? percentiles_of(x) : NULL;
    for (int i = 0; i < PERCENTILES && status == TN_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "percentile/%d", i);
        status = set(seen, begin, name, tn_slice_axis(spread, 0, i, i + 1, 1));
    }
    return status;
}

/* "PREFIX/NAME/0/W/data/": in keys levels are parted by one sign. */
static char *key_begin(const observing *o, const char *name, const char *path, const char *end)
{
    char *begin =
        tn__format("%s%s%s%s%s%s", o->prefix ? o->prefix : "", o->prefix ? "/" : "", name, *name ? "/" : "", path, end);
    char *at = begin ? begin + strlen(begin) - strlen(end) - strlen(path) : NULL;
    while (at && (at = strchr(at, '.')))
        *at = '/';
    if (!begin)
        tn__fail_memory(OPERATION, strlen(path));
    return begin;
}

static tn_status observe(const observing *o, tn_observation *seen, const char *name, const char *path,
                         const char *what, const tn_array *x)
{
    char *begin = key_begin(o, name, path, what);
    tn_status status = !begin ? TN_ERR_MEMORY : tn_size(x) > 0 ? observe_param(seen, begin, x) : TN_OK;
    tn__free(begin);
    return status;
}

static tn_status observe_layer(const observing *o, tn_observation *seen, const char *name, const tn_layer *layer)
{
    tn_status status = TN_OK;
    for (int i = 0; i < tn_param_count(layer) && status == TN_OK; i++) {
        const tn_array *x = tn_param(layer, i), *gradient = tn__gradients_of(&o->gradients, x);
        status = observe(o, seen, name, tn_param_name(layer, i), "/data/", x);
        if (status == TN_OK && gradient)
            status = observe(o, seen, name, tn_param_name(layer, i), "/grad/", gradient);
    }
    return status;
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    observing *o = user;
    return o->wants_gradients ? tn__gradients_watch(&o->gradients, trainer) : TN_OK;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    const observing *o = user;
    tn_observation *seen = tn_trainer_observation(trainer);
    tn_status status = TN_OK;
    TN_SCOPE
        TN_NO_GRAD {
            if (o->layer)
                status = observe_layer(o, seen, "", o->layer);
            tn_named_optimizer named;
            for (int i = 0; !o->layer && status == TN_OK; i++) {
                named = tn_updater_optimizer_at(tn_trainer_updater(trainer), i);
                if (!named.optimizer)
                    break;
                status = observe_layer(o, seen, named.name, named.optimizer->layer);
            }
        }
    return tn__or_latched(status);
}

static tn_trigger *each_epoch(void) { return tn_every(1, TN_EPOCH); }

static void free_observing(void *user)
{
    observing *o = user;
    tn__gradients_free(&o->gradients);
    tn__free(o->prefix);
    tn__free(o);
}

static const tn_extension_kind kind = {
    .name = OPERATION, .priority = TN_PRIORITY_WRITER, .trigger = each_epoch, .initialize = initialize, .call = call,
    .free = free_observing};

tn_extension *tn_parameter_statistics_with(const tn_parameter_statistics_opts *opts)
{
    observing *o = tn__calloc(1, sizeof *o);
    tn_status status = TN_OK;
    if (o && opts) {
        o->layer = opts->layer;
        o->wants_gradients = opts->gradients;
        o->prefix = tn__shown_option("parameter_statistics", "the prefix", opts->prefix, NULL, &status);
    }
    return tn__extension_of(&kind, o, status);
}
