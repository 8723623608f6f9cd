/* SPDX-License-Identifier: MIT */
/* Lowering an attribute where an observed value has stopped to become better. */
#include <math.h>
#include <string.h>
#include "train/ext.h"
#include "train/meter.h"
#include "train/parts.h"

#define OPERATION "ReduceOnPlateau"

typedef struct plateau {
    char *optimizer, *name, *key;
    tn_trigger *check;
    tn_summary *summary;
    struct {
        double factor, threshold, least;
        int patience, cooldown;
        bool greater;
    } how; /* as it was asked for */
    bool has_best, seen;
    double best;
    int64_t bad, cooling; /* looks without a better mean; looks that do not count any more */
    tn_optimizer *target;
} plateau;

static bool is_better(const plateau *p, double mean)
{
    if (!p->has_best)
        return mean == mean;
    double by = fabs(p->best) * p->how.threshold;
    return p->how.greater ? mean > p->best + by : mean < p->best - by;
}

static tn_status look(plateau *p, double mean)
{
    bool better = is_better(p, mean);
    if (better) {
        p->best = mean;
        p->has_best = true;
    }
    p->bad = better ? 0 : p->bad + 1;
    if (p->cooling > 0) {
        p->cooling--;
        p->bad = 0;
    }
    if (p->bad <= p->how.patience)
        return TN_OK;
    p->bad = 0;
    p->cooling = p->how.cooldown;
    double now = tn_optimizer_get(p->target, p->name);
    return tn_optimizer_set(p->target, p->name, fmax(p->how.factor * now, p->how.least));
}

static tn_status call(tn_trainer *trainer, void *user)
{
    plateau *p = user;
    const tn_observation *seen = tn_trainer_observation(trainer);
    tn_status status = TN_OK;
    if (tn_observation_has(seen, p->key)) {
        p->seen = true;
        const tn_array *value = tn_observation_array(seen, p->key);
        status = value ? tn_summary_add(p->summary, p->key, value, 0)
                       : tn_summary_add_number(p->summary, p->key, tn_observation_number(seen, p->key), 0);
    }
    if (status != TN_OK || !tn_trigger_fire(p->check, trainer))
        return status;
    if (!tn_summary_has(p->summary, p->key)) {
        if (!p->seen && !p->has_best)
            tn__warn_missing("reduce_on_plateau", p->key, seen, "nothing is changed until it comes");
        p->seen = true; /* once is enough */
        return TN_OK;
    }
    tn_comm *comm = trainer->meetings.comm;
    status = comm ? tn__summary_share(p->summary, comm) : TN_OK; /* all ranks lower the same */
    if (status != TN_OK)
        return status;
    double mean = tn_summary_mean(p->summary, p->key);
    tn_summary_clear(p->summary);
    return !tn__latched() ? look(p, mean) : tn_error_code();
}

/* A resumed run's attribute came with the optimizer. A schedule that sets it again and again would undo what is done to
 * it here; one that comes later sees to that itself. */
static tn_status initialize(tn_trainer *trainer, void *user)
{
    plateau *p = user;
    p->target = tn_trainer_optimizer(trainer, p->optimizer);
    if (p->target)
        tn_optimizer_get(p->target, p->name); /* which tells of a name that there is not */
    tn_status status = tn_error_code();
    const tn__registered *r = trainer->extensions;
    for (; status == TN_OK && r->extension->user != p; r++) {
        const char *other = tn__sets_throughout(r, p->target, p->name);
        if (other)
            status = tn__fail_undone(other, OPERATION, p->name);
    }
    return status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    plateau *p = user;
    tn_serialize_trigger(s, "_check", p->check);
    tn_serialize_summary(s, "_summary", p->summary);
    tn_serialize_bool(s, "_has_best", &p->has_best);
    tn_serialize_double(s, "_best", &p->best);
    tn__serialize_count(s, "_bad", &p->bad);
    return tn__serialize_count(s, "_cooling", &p->cooling);
}

static void free_plateau(void *user)
{
    plateau *p = user;
    tn__free(p->optimizer);
    tn__free(p->name);
    tn__free(p->key);
    tn__trigger_free_taken(p->check);
    tn_summary_free(p->summary);
    tn__free(p);
}

bool tn__is_plateau_of(const tn_extension *extension, const tn_optimizer *optimizer, const char *attribute)
{
    const plateau *p = extension->kind->free == free_plateau ? extension->user : NULL;
    return p && p->target == optimizer && strcmp(p->name, attribute) == 0;
}

static const tn_extension_kind kind = {.name = OPERATION,
                                       .priority = TN_PRIORITY_READER,
                                       .initialize = initialize,
                                       .call = call,
                                       .serialize = serialize,
                                       .free = free_plateau};

tn_extension *tn_reduce_on_plateau_with(const char *attribute, const char *key, const tn_plateau_opts *opts)
{
    static const tn_plateau_opts defaults;
    opts = opts ? opts : &defaults;
    plateau *p = tn__calloc(1, sizeof *p);
    if (!p) {
        tn__trigger_discard(opts->check);
        return tn__extension_of(&kind, NULL, TN_ERR_MEMORY);
    }
    tn_status status = TN_OK;
    p->check = tn__each_epoch(opts->check, &status);
    if (!attribute || !key)
        status = tn__fail_null(OPERATION, "the names of an attribute and of an observed value");
    p->name = tn__text_option(attribute, NULL, &status);
    p->key = tn__key_option("reduce_on_plateau", key, NULL, &status);
    p->optimizer = tn__text_option(opts->optimizer, NULL, &status);
    p->summary = tn_summary_new_with(NULL);
    p->how.factor = TN__OPTION(opts, factor, 0.1);
    p->how.patience = TN__OPTION(opts, patience, 10);
    p->how.threshold = TN__OPTION(opts, threshold, 1e-4);
    p->how.cooldown = opts->cooldown;
    p->how.least = opts->least;
    bool accuracy = key && strstr(key, "accuracy");
    p->how.greater = opts->mode == TN_BETTER_GREATER || (opts->mode == TN_BETTER_AUTO && accuracy);
    if (status == TN_OK && !(p->how.factor >= 0 && p->how.factor < 1 && p->how.patience >= 0 && p->how.threshold >= 0 &&
                             p->how.cooldown >= 0 && p->how.least >= 0))
        status = tn__fail(TN_ERR_VALUE, OPERATION, "expected a factor below 1, and other numbers of 0 or more");
    return tn__extension_of(&kind, p, status);
}
