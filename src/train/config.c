/* SPDX-License-Identifier: MIT */
/* The configuration of a training run, from its caller, its snapshot and the recipe. */
#include "train/config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "comm/comm.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/options.h"
#include "data/dataset.h"
#include "nn/models.h"
#include "optim/optimizer.h"
#include "train/run.h"

/* Those that change the course of a run must be the same when it is resumed. */
static const struct {
    const char *key;  /* in the file */
    const char *name; /* in messages */
    bool must_agree;
    uint64_t most; /* of a number; 0: a text */
} rows[TN__CONFIG_COUNT] = {
    [TN__CONFIG_DATASET] = {"tanso.dataset", "dataset", true, 0},
    [TN__CONFIG_SAMPLES] = {"tanso.samples", "number of training samples", true, INT64_MAX},
    [TN__CONFIG_MODEL] = {"tanso.model", "model", true, 0},
    [TN__CONFIG_OPTIMIZER] = {"tanso.optimizer", "optimizer", true, 0},
    [TN__CONFIG_SCHEDULE] = {"tanso.schedule", "schedule", true, 0},
    [TN__CONFIG_EXTEND] = {"tanso.extend", "list of extensions", true, 0},
    [TN__CONFIG_BATCH] = {"tanso.batch", "batch", true, INT64_MAX},
    [TN__CONFIG_SEED] = {"tanso.seed", "seed", true, UINT64_MAX},
    [TN__CONFIG_EPOCHS] = {"tanso.epochs", "epochs", false, INT_MAX},
    [TN__CONFIG_INPUT] = {"tanso.input", "shape of a sample", true, 0},
};

void tn__config_free(tn__config *config)
{
    for (int i = 0; i < TN__CONFIG_COUNT; i++)
        tn__free(config->text[i]);
    *config = (tn__config){0};
}

tn_status tn__config_set(tn__config *config, tn__config_key key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tn__vformat(format, args);
    va_end(args);
    if (!text)
        return tn__fail_memory("train", strlen(format));
    tn__free(config->text[key]);
    config->text[key] = text;
    return TN_OK;
}

uint64_t tn__config_number(const tn__config *config, tn__config_key key)
{
    return config->text[key] ? strtoull(config->text[key], NULL, 10) : 0;
}

tn_status tn__config_given(tn__config *config, const char *dataset, const tn_train_opts *opts)
{
    if (!dataset || !*dataset)
        return tn__fail(TN_ERR_VALUE, "train", "expected the name of a dataset, got %s", dataset ? "\"\"" : "NULL");
    if (TN__OPTION(opts, epochs, 1) < 1)
        return tn__fail(TN_ERR_VALUE, "train", "expected 1 epoch or more, got %d", opts->epochs);
    if (TN__OPTION(opts, batch, 1) < 1)
        return tn__fail(TN_ERR_VALUE, "train", "expected minibatches of 1 sample or more, got %" PRId64, opts->batch);
    if (opts->shard < 0 || opts->shard > TN__SHARD_MOST)
        return tn__fail(TN_ERR_VALUE, "train", "expected shard to be 0 to %d, got %d", TN__SHARD_MOST, opts->shard);
    /* A folder is remembered by its whole path, so that the run can be resumed and evaluated from anywhere. */
    bool known = false;
    for (int i = 0; i < tn__dataset_name_count; i++)
        known |= strcmp(dataset, tn__dataset_names[i]) == 0;
    char *folder = known ? NULL : realpath(dataset, NULL);
    tn_status status = tn__config_set(config, TN__CONFIG_DATASET, "%s", folder ? folder : dataset);
    free(folder);
    if (status == TN_OK && opts->model)
        status = tn__config_set(config, TN__CONFIG_MODEL, "%s", opts->model);
    if (status == TN_OK && opts->optimizer)
        status = tn__config_set(config, TN__CONFIG_OPTIMIZER, "%s", opts->optimizer);
    if (status == TN_OK && opts->schedule)
        status = tn__config_set(config, TN__CONFIG_SCHEDULE, "%s", opts->schedule);
    if (status == TN_OK && opts->extend)
        status = tn__config_set(config, TN__CONFIG_EXTEND, "%s", opts->extend);
    if (status == TN_OK && opts->batch)
        status = tn__config_set(config, TN__CONFIG_BATCH, "%" PRId64, opts->batch);
    if (status == TN_OK && TN__GIVEN(opts, seed))
        status = tn__config_set(config, TN__CONFIG_SEED, "%" PRIu64, opts->seed);
    if (status == TN_OK && opts->epochs)
        status = tn__config_set(config, TN__CONFIG_EPOCHS, "%d", opts->epochs);
    return status;
}

/* A whole number as tn__config_set writes them, of `most` at most. */
static bool is_number(const char *text, uint64_t most)
{
    errno = 0;
    return *text && strspn(text, "0123456789") == strlen(text) && strtoull(text, NULL, 10) <= most && !errno;
}

tn_status tn__config_resume(tn__config *config, const tn_archive *snapshot, const char *path)
{
    for (int i = 0; i < TN__CONFIG_COUNT; i++) {
        const char *stored = tn_archive_text(snapshot, rows[i].key), *given = config->text[i];
        if (!stored)
            return tn__fail(TN_ERR_FORMAT, "train",
                            "'%s' does not say its %s (\"%s\"): it is no snapshot of a training run; "
                            "train without resuming",
                            path, rows[i].name, rows[i].key);
        if (rows[i].most && !is_number(stored, rows[i].most))
            return tn__fail(TN_ERR_FORMAT, "train",
                            "'%s': expected its %s (\"%s\") to be a number from 0 to %" PRIu64 ", found '%.64s': it is "
                            "damaged; train without resuming",
                            path, rows[i].name, rows[i].key, rows[i].most, stored);
        if (given && rows[i].must_agree && strcmp(given, stored) != 0)
            return tn__fail(TN_ERR_VALUE, "train",
                            "cannot resume with another %s: '%s' was made with '%s', and '%s' was asked "
                            "for; resume with the same, or train anew",
                            rows[i].name, path, stored, given);
        tn_status status = given ? TN_OK : tn__config_set(config, (tn__config_key)i, "%s", stored);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_status tn__config_fit(tn__config *config, int64_t outputs)
{
    static const char fits[] = ":*";
    const char *model = config->text[TN__CONFIG_MODEL];
    size_t length = model ? strlen(model) : 0, tail = sizeof fits - 1;
    if (length > 0 && tn__is_model(model, length))
        return tn__config_set(config, TN__CONFIG_MODEL, "%s:%" PRId64, model, outputs);
    if (length < tail || strcmp(model + length - tail, fits) != 0)
        return TN_OK;
    return tn__config_set(config, TN__CONFIG_MODEL, "%.*s%" PRId64, (int)length - 1, model, outputs);
}

tn_status tn__config_default(tn__config *config, int64_t outputs)
{
    const tn_recipe *recipe;
    const char *dataset = config->text[TN__CONFIG_DATASET];
    if (strncmp(dataset, TN__SYNTHETIC, strlen(TN__SYNTHETIC)) == 0)
        dataset += strlen(TN__SYNTHETIC); /* a stand-in is trained as what it stands for */
    for (int i = 0; (recipe = tn_train_recipe(i))->dataset[0] != '*'; i++)
        if (strcmp(recipe->dataset, dataset) == 0)
            break;
    tn_status status = TN_OK;
    if (!config->text[TN__CONFIG_MODEL])
        status = tn__config_set(config, TN__CONFIG_MODEL, "%s", recipe->model);
    if (status == TN_OK)
        status = tn__config_fit(config, outputs);
    /* A recipe's goes with its optimizer, and undoes what an extension sets the rate to. */
    bool own_rate = config->text[TN__CONFIG_OPTIMIZER] || tn__named_sets_rate(config->text[TN__CONFIG_EXTEND]);
    if (status == TN_OK && !config->text[TN__CONFIG_SCHEDULE])
        status = tn__config_set(config, TN__CONFIG_SCHEDULE, "%s", own_rate ? "constant" : recipe->schedule);
    if (status == TN_OK && !config->text[TN__CONFIG_OPTIMIZER])
        status = tn__config_set(config, TN__CONFIG_OPTIMIZER, "%s", recipe->optimizer);
    if (status == TN_OK && !config->text[TN__CONFIG_EXTEND])
        status = tn__config_set(config, TN__CONFIG_EXTEND, "%s", "");
    if (status == TN_OK && !config->text[TN__CONFIG_BATCH])
        status = tn__config_set(config, TN__CONFIG_BATCH, "%" PRId64, recipe->batch);
    if (status == TN_OK && !config->text[TN__CONFIG_SEED])
        status = tn__config_set(config, TN__CONFIG_SEED, "0");
    if (status == TN_OK && !config->text[TN__CONFIG_EPOCHS])
        status = tn__config_set(config, TN__CONFIG_EPOCHS, "%d", recipe->epochs);
    return status;
}

tn_status tn__config_compare(const tn__config *config, int shard, bool goes_on, tn_comm *comm)
{
    uint64_t own = 2 * (uint64_t)shard + goes_on;
    for (int i = 0; i < TN__CONFIG_COUNT; i++)
        if (config->text[i] && i != TN__CONFIG_DATASET) /* whose folder may have another path elsewhere */
            own = tn__hash(config->text[i], strlen(config->text[i]) + 1, own);
    uint64_t told[2] = {own, ~own}, most[2];
    const tn__transfer largest = {.kind = TN__ALL_REDUCE,
                                  .op = TN_COMM_MAX,
                                  .dtype = TN_UINT64,
                                  .itemsize = sizeof own,
                                  .count = 2,
                                  .from = told,
                                  .to = most};
    tn_status status = tn__comm_tell(comm, &largest, "train", "a comparison of settings");
    if (status != TN_OK || (most[0] == own && most[1] == ~own))
        return status;
    return tn__fail(TN_ERR_STATE, "train",
                    "the ranks were started with different settings; rank %d %s, with model \"%s\", optimizer %s, "
                    "rate %s, batch %s, %s epochs, seed %s, extensions \"%s\", shard %d: start all with the same",
                    comm->place.rank, goes_on ? "going on from a snapshot" : "from the beginning",
                    config->text[TN__CONFIG_MODEL], config->text[TN__CONFIG_OPTIMIZER],
                    config->text[TN__CONFIG_SCHEDULE], config->text[TN__CONFIG_BATCH], config->text[TN__CONFIG_EPOCHS],
                    config->text[TN__CONFIG_SEED], config->text[TN__CONFIG_EXTEND], shard);
}

tn_status tn__config_archive(const tn__config *config, tn_archive *archive)
{
    tn_status status = TN_OK;
    for (int i = 0; i < TN__CONFIG_COUNT && status == TN_OK; i++)
        if (config->text[i])
            status = tn_archive_set_text(archive, rows[i].key, config->text[i]);
    return status;
}
