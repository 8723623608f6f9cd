/* SPDX-License-Identifier: MIT */
/* Extensions that observe values of their own: of a function, of an optimizer, ratios of sums. */
#include <math.h>
#include <string.h>
#include "core/log.h"
#include "train/chainer.h"
#include "train/ext.h"

static tn_trigger *each_epoch(void) { return tn_every(1, TN_EPOCH); }

/* ---- a value of a function ---- */

/* Told once of a key that another one has reported under, too. */
static void tell_replaced(tn_trainer *trainer, const char *operation, const char *key, bool *told)
{
    if (*told || !tn_observation_has(tn_trainer_observation(trainer), key))
        return;
    *told = true;
    tn__log(TN__LOG_WARN, operation,
            "'%s' has been reported in iteration %lld already, and is replaced: observe under another key", key,
            (long long)tn_trainer_iteration(trainer));
}

typedef struct observing {
    const char *operation;
    char *key, *optimizer;
    double (*value)(tn_trainer *trainer, void *user);
    void *user;
    bool told; /* that the key is another one's, too */
} observing;

static tn_status observe(tn_trainer *trainer, void *user)
{
    observing *o = user;
    double value = o->value(trainer, o->user);
    tell_replaced(trainer, o->operation, o->key, &o->told);
    return tn__latched() ? tn_error_code()
                         : tn_observation_set_number(tn_trainer_observation(trainer), o->key, value, 0);
}

static void free_observing(void *user)
{
    observing *o = user;
    tn__free(o->key);
    tn__free(o->optimizer);
    tn__free(o);
}

static const tn_extension_kind observe_kind = {.name = "observe_value",
                                               .priority = TN_PRIORITY_WRITER,
                                               .trigger = each_epoch,
                                               .call = observe,
                                               .free = free_observing};

tn_extension *tn_observe_value(const char *key, double (*value)(tn_trainer *trainer, void *user), void *user)
{
    observing *o = tn__calloc(1, sizeof *o);
    tn_status status = TN_OK;
    if (o && (!key || !value))
        status = tn__fail_null("observe_value", "a key and a function");
    if (o)
        *o = (observing){.operation = "observe_value",
                         .key = tn__key_option("observe_value", key, NULL, &status),
                         .value = value,
                         .user = user};
    return tn__extension_of(&observe_kind, o, status);
}

static double learning_rate(tn_trainer *trainer, void *user)
{
    const observing *o = user;
    tn_optimizer *optimizer = tn_trainer_optimizer(trainer, o->optimizer);
    return optimizer ? tn_optimizer_lr(optimizer) : NAN;
}

/* Told at the beginning that there is no such optimizer. */
static tn_status find_optimizer(tn_trainer *trainer, void *user)
{
    return tn_trainer_optimizer(trainer, ((observing *)user)->optimizer) ? TN_OK : tn_error_code();
}

static const tn_extension_kind lr_kind = {.name = "observe_lr",
                                          .priority = TN_PRIORITY_WRITER,
                                          .trigger = each_epoch,
                                          .initialize = find_optimizer,
                                          .call = observe,
                                          .free = free_observing};

tn_extension *tn_observe_lr_with(const tn_observe_lr_opts *opts)
{
    static const tn_observe_lr_opts defaults;
    opts = opts ? opts : &defaults;
    observing *o = tn__calloc(1, sizeof *o);
    tn_status status = TN_OK;
    if (o) {
        o->operation = "observe_lr";
        o->key = tn__key_option(o->operation, opts->key, "lr", &status);
        o->optimizer = tn__text_option(opts->optimizer, NULL, &status);
        o->value = learning_rate;
        o->user = o;
    }
    return tn__extension_of(&lr_kind, o, status);
}

/* ---- the ratio of two sums ---- */

typedef struct micro {
    char *numerator, *denominator, *result;
    tn_trigger *every;
    bool seen;        /* there was an average, or a warning that there is none */
    bool told;        /* that the result's key is another one's, too */
    tn_summary *sums; /* both means are over the same iterations, so that their ratio is that of the sums */
} micro;

static tn_status add(micro *m, const tn_observation *seen, const char *key, const char *name)
{
    const tn_array *value = tn_observation_array(seen, key);
    return value ? tn_summary_add(m->sums, name, value, 0)
                 : tn_summary_add_number(m->sums, name, tn_observation_number(seen, key), 0);
}

static tn_status average(tn_trainer *trainer, void *user)
{
    micro *m = user;
    tn_observation *seen = tn_trainer_observation(trainer);
    tn_status status = TN_OK;
    if (tn_observation_has(seen, m->numerator) && tn_observation_has(seen, m->denominator)) {
        status = add(m, seen, m->numerator, "numerator");
        if (status == TN_OK)
            status = add(m, seen, m->denominator, "denominator");
    }
    if (status != TN_OK || !tn_trigger_fire(m->every, trainer))
        return status;
    bool some = tn_summary_count(m->sums) > 0;
    if (!some && !m->seen)
        tn__warn_missing("micro_average", tn_observation_has(seen, m->numerator) ? m->denominator : m->numerator, seen,
                         "there is no average until it comes");
    m->seen = true;
    if (!some)
        return TN_OK;
    double ratio = tn_summary_mean(m->sums, "numerator") / tn_summary_mean(m->sums, "denominator");
    tn_summary_clear(m->sums);
    tell_replaced(trainer, "micro_average", m->result, &m->told);
    return !tn__latched() ? tn_observation_set_number(seen, m->result, ratio, 0) : tn_error_code();
}

/* Chainer's sums; when they were last taken is not in its files. */
static tn_status take_chainer_sums(const tn_serializer *s, tn_summary *sums)
{
    double numerator = 0, denominator = 0;
    tn_serialize_double(s, "_numerator", &numerator);
    tn_status status = tn_serialize_double(s, "_denominator", &denominator);
    tn_summary_clear(sums);
    if (status != TN_OK || (numerator == 0 && denominator == 0))
        return status;
    status = tn_summary_add_number(sums, "numerator", numerator, 1);
    return status == TN_OK ? tn_summary_add_number(sums, "denominator", denominator, 1) : status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    micro *m = user;
    tn_status status = tn_serialize_trigger(s, "_trigger", m->every);
    if (status == TN_OK && tn__of_chainer(s))
        return take_chainer_sums(s, m->sums);
    return status == TN_OK ? tn_serialize_summary(s, "_sums", m->sums) : status;
}

static void free_micro(void *user)
{
    micro *m = user;
    tn__free(m->numerator);
    tn__free(m->denominator);
    tn__free(m->result);
    tn__trigger_free_taken(m->every);
    tn_summary_free(m->sums);
    tn__free(m);
}

static const tn_extension_kind micro_kind = {.name = "MicroAverage",
                                             .priority = TN_PRIORITY_EDITOR,
                                             .call = average,
                                             .serialize = serialize,
                                             .free = free_micro};

tn_extension *tn_micro_average_with(const char *numerator, const char *denominator, const char *result,
                                    const tn_micro_average_opts *opts)
{
    micro *m = tn__calloc(1, sizeof *m);
    if (!m) {
        tn__trigger_discard(opts ? opts->every : NULL);
        return tn__extension_of(&micro_kind, NULL, TN_ERR_MEMORY);
    }
    tn_status status = TN_OK;
    m->every = tn__each_epoch(opts ? opts->every : NULL, &status);
    if (!numerator || !denominator || !result)
        status = tn__fail_null("micro_average", "three keys");
    m->numerator = tn__key_option("micro_average", numerator, NULL, &status);
    m->denominator = tn__key_option("micro_average", denominator, NULL, &status);
    m->result = tn__key_option("micro_average", result, NULL, &status);
    m->sums = tn_summary_new_with(NULL);
    return tn__extension_of(&micro_kind, m, status);
}
