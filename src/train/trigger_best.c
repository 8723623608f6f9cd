/* SPDX-License-Identifier: MIT */
/*
 * Triggers by a reported value: a best mean so far, early stopping. A value is read, and its device waited for, only
 * when the inner trigger says that it is time to compare.
 */
#include <math.h>
#include <string.h>
#include "core/log.h"
#include "core/options.h"
#include "core/utf8.h"
#include "train/chainer.h"
#include "train/ext.h"
#include "train/meter.h"

#define OWNER "another trigger"

/* Means of one key between two checks. */
typedef struct watched {
    char *key;
    tn_trigger *check;
    tn_summary *values;
} watched;

static void watched_free(watched *w)
{
    tn__free(w->key);
    tn__trigger_free_taken(w->check);
    tn_summary_free(w->values);
}

/* Takes over the trigger in any case. */
static tn_status watched_init(watched *w, const char *operation, const char *key, tn_trigger *check)
{
    *w = (watched){0};
    tn_status status = tn__trigger_take(check, OWNER);
    if (status != TN_OK)
        return status;
    w->check = check;
    if (!key || !*key)
        return tn__fail(TN_ERR_VALUE, operation, "expected the key of a reported value, got %s", key ? "\"\"" : "NULL");
    status = tn__check_utf8(operation, "the key", key);
    if (status != TN_OK)
        return status;
    if (!w->check)
        w->check = tn_every(1, TN_EPOCH);
    status = tn__trigger_raise(w->check);
    if (status != TN_OK)
        return status;
    w->key = tn__strdup(key);
    w->values = tn_summary_new_with(NULL);
    return w->key ? tn_error_code() : tn__fail_memory(operation, strlen(key));
}

static bool watched_add(watched *w, const tn_trainer *trainer)
{
    const tn_observation *seen = tn_trainer_observation(trainer);
    if (!tn_observation_has(seen, w->key))
        return false;
    const tn_array *array = tn_observation_array(seen, w->key);
    double weight = tn_observation_weight(seen, w->key);
    if (array)
        tn_summary_add(w->values, w->key, array, weight);
    else
        tn_summary_add_number(w->values, w->key, tn_observation_number(seen, w->key), weight);
    return true;
}

static double watched_take(watched *w)
{
    double mean = tn_summary_mean(w->values, w->key);
    tn_summary_clear(w->values);
    return mean;
}

/* ---- the best value ---- */

typedef struct best {
    watched watched;
    bool (*better)(double best, double value, void *user);
    void *user;
    bool has_best, seen;
    bool ended; /* it has ended a run: fires when it is asked again */
    double best;
} best;

static bool best_fire(tn_trainer *trainer, void *user)
{
    best *b = user;
    if (b->ended) {
        b->ended = false;
        return true;
    }
    b->seen = watched_add(&b->watched, trainer) || b->seen;
    if (!tn_trigger_fire(b->watched.check, trainer))
        return false;
    if (!tn_summary_has(b->watched.values, b->watched.key)) {
        if (!b->seen && !b->has_best)
            tn__warn_missing("best_value", b->watched.key, tn_trainer_observation(trainer),
                             "the trigger does not fire until it comes");
        b->seen = true; /* once is enough */
        return false;
    }
    double value = watched_take(&b->watched);
    if (tn__latched() || isnan(value) || (b->has_best && !b->better(b->best, value, b->user)))
        return false;
    b->has_best = true;
    b->best = value;
    return true;
}

/* Whether it has ended a run, which files of Chainer's do not say. */
static void serialize_ended(const tn_serializer *s, bool *ended)
{
    if (!s->loading || tn_serializer_has(s, "ended"))
        tn_serialize_bool(s, "ended", ended);
}

static tn_status best_serialize(const tn_serializer *s, void *user)
{
    best *b = user;
    tn_serialize_trigger(s, "interval_trigger", b->watched.check);
    tn_serialize_summary(s, "summary", b->watched.values);
    serialize_ended(s, &b->ended);
    if (tn__of_chainer(s))
        b->has_best = tn__chainer_has(s, "best_value");
    else
        tn_serialize_bool(s, "has_best", &b->has_best);
    return tn_serialize_double(s, "best_value", &b->best);
}

static void best_ended(void *user) { ((best *)user)->ended = true; }

static void best_free(void *user)
{
    best *b = user;
    watched_free(&b->watched);
    tn__free(b);
}

static const tn_trigger_kind best_kind = {
    .name = "best_value", .fire = best_fire, .serialize = best_serialize, .free = best_free, .ended = best_ended};

tn_trigger *tn_best_value_with(const char *key, bool (*better)(double best, double value, void *user), void *user,
                               const tn_best_value_opts *opts)
{
    tn_trigger *check = opts ? opts->check : NULL;
    best *made = tn__calloc(1, sizeof *made);
    if (!made || !better) {
        if (made)
            tn__fail_null("best_value", "a comparison");
        else
            tn__fail_memory("best_value", sizeof *made);
        tn__free(made);
        tn__trigger_discard(check);
        return tn__trigger_error();
    }
    made->better = better;
    made->user = user;
    if (watched_init(&made->watched, "best_value", key, check) != TN_OK) {
        best_free(made);
        return tn__trigger_error();
    }
    return tn_trigger_new(&best_kind, made);
}

static bool is_greater(double best, double value, void *user)
{
    (void)user;
    return value > best;
}

static bool is_less(double best, double value, void *user)
{
    (void)user;
    return value < best;
}

tn_trigger *tn_max_value_with(const char *key, const tn_best_value_opts *opts)
{
    return tn_best_value_with(key, is_greater, NULL, opts);
}

tn_trigger *tn_min_value_with(const char *key, const tn_best_value_opts *opts)
{
    return tn_best_value_with(key, is_less, NULL, opts);
}

/* ---- early stopping ---- */

typedef struct early {
    watched watched;
    tn_trigger *max;
    bool greater, verbose;
    bool ended;  /* it has ended a run, and has this iteration's value */
    bool looked; /* that was by a look, not by `max` */
    bool told;   /* that there was nothing to look at, which is said once */
    int64_t patience, count;
    double best;
} early;

/* A look at the mean, of all ranks where several do the run: they end it together. Whether patience is at its end. */
static bool early_look(early *e, tn_comm *comm)
{
    if (comm && tn__summary_share(e->watched.values, comm) != TN_OK)
        return false;
    double mean = watched_take(&e->watched);
    bool better = e->greater ? mean > e->best : mean < e->best;
    e->count = better ? 0 : e->count + 1;
    if (better)
        e->best = mean;
    if (e->verbose)
        tn__log(TN__LOG_NOTE, "train",
                "early stopping: %s is %g, the best so far %g; %lld of %lld looks without a better one",
                e->watched.key, mean, e->best, (long long)e->count, (long long)e->patience);
    return e->count >= e->patience;
}

static bool early_fire(tn_trainer *trainer, void *user)
{
    early *e = user;
    bool again = e->ended, there = again ? tn_observation_has(tn_trainer_observation(trainer), e->watched.key)
                                         : watched_add(&e->watched, trainer);
    e->ended = false;
    if (tn_trigger_fire(e->max, trainer)) {
        e->looked = false;
        return true;
    }
    if (again && e->looked)
        return e->count >= e->patience;
    if (!tn_trigger_fire(e->watched.check, trainer))
        return false;
    if (!there && !e->told)
        tn__log(TN__LOG_WARN, "train",
                "early stopping: \"%s\" is not among what was reported in iteration %lld, when it was to be looked at: "
                "such a look does not count",
                e->watched.key, (long long)tn_trainer_iteration(trainer));
    if (!there) {
        e->told = true;
        return false;
    }
    e->looked = true;
    return early_look(e, trainer->meetings.comm) && !tn__latched();
}

static tn_status early_serialize(const tn_serializer *s, void *user)
{
    early *e = user;
    tn_serialize_trigger(s, "check_trigger", e->watched.check);
    tn_serialize_trigger(s, "max_trigger", e->max);
    tn_serialize_summary(s, "summary", e->watched.values);
    tn__serialize_count(s, "count", &e->count);
    serialize_ended(s, &e->ended);
    if (e->ended)
        tn_serialize_bool(s, "looked", &e->looked);
    return tn_serialize_double(s, "best", &e->best);
}

static tn_length early_length(const void *user)
{
    const early *e = user;
    return tn_trigger_length(e->max);
}

static void early_ended(void *user)
{
    early *e = user;
    e->ended = true;
    if (!e->looked)
        tn__trigger_ended(e->max);
}

static void early_free(void *user)
{
    early *e = user;
    watched_free(&e->watched);
    tn__trigger_free_taken(e->max);
    tn__free(e);
}

static const tn_trigger_kind early_kind = {.name = "early_stopping",
                                           .fire = early_fire,
                                           .serialize = early_serialize,
                                           .length = early_length,
                                           .free = early_free,
                                           .ended = early_ended};

/* Both triggers of the options are taken over. */
static tn_status early_init(early *e, const tn_early_stopping_opts *opts)
{
    const char *key = opts->monitor ? opts->monitor : "main/loss";
    tn_status maximum = tn__trigger_take(opts->max, OWNER);
    e->max = maximum == TN_OK ? opts->max : NULL;
    tn_status status = watched_init(&e->watched, "early_stopping", key, opts->check);
    if (status == TN_OK)
        status = maximum;
    if (status == TN_OK && !e->max)
        e->max = tn_every(100, TN_EPOCH);
    if (status == TN_OK)
        status = tn__trigger_raise(e->max);
    if (status != TN_OK)
        return status;
    if ((TN__GIVEN(opts, patience) && opts->patience < 1) || (unsigned)opts->mode > TN_BETTER_LESS)
        return tn__fail(TN_ERR_VALUE, "early_stopping", "expected a patience of 1 look or more and one of "
                        "tn_better, got %d and %d", opts->patience, (int)opts->mode);
    e->patience = opts->patience ? opts->patience : 3;
    e->verbose = opts->verbose;
    e->greater = opts->mode == TN_BETTER_AUTO ? strstr(key, "accuracy") != NULL : opts->mode == TN_BETTER_GREATER;
    e->best = e->greater ? -INFINITY : INFINITY;
    return TN_OK;
}

tn_trigger *tn_early_stopping_with(const tn_early_stopping_opts *opts)
{
    static const tn_early_stopping_opts defaults;
    opts = opts ? opts : &defaults;
    early *made = tn__calloc(1, sizeof *made);
    if (!made) {
        tn__fail_memory("early_stopping", sizeof *made);
        tn__trigger_discard(opts->check);
        tn__trigger_discard(opts->max);
        return tn__trigger_error();
    }
    if (early_init(made, opts) == TN_OK)
        return tn_trigger_new(&early_kind, made);
    early_free(made);
    return tn__trigger_error();
}
