/* SPDX-License-Identifier: MIT */
/* A trainer's state in archives and files, under Chainer's paths, and names of files with a run's numbers in them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "array/guard.h"
#include "train/chainer.h"
#include "train/observation.h"
#include "train/undo.h"

/* Metadata: the version of what is beside Chainer's own. */
#define VERSION_KEY "tanso.trainer"
#define VERSION "1"

/* ---- what was observed last ---- */

/* The stop trigger is asked after a snapshot, about this iteration's values. Arrays are kept as they are: the writing
 * thread reads them. */
static tn_status serialize_value(const tn_serializer *s, int i, tn_observation *observation)
{
    char name[24];
    snprintf(name, sizeof name, "%d", i);
    tn_serializer at = tn_serializer_in(s, name);
    char *key = NULL;
    double number = 0, weight = 0;
    if (!s->loading) {
        key = tn__strdup(tn_observation_key(observation, i));
        weight = tn_observation_weight(observation, key);
        if (!key)
            return tn__fail_memory("trainer_save", 64);
    }
    tn_array *array = key ? tn_observation_array(observation, key) : NULL;
    tn_serialize_text(&at, "key", &key);
    tn_serialize_double(&at, "weight", &weight);
    tn_status status;
    if (s->loading) {
        status = tn_serialize_double(&at, "value", &number);
        if (status == TN_OK)
            status = tn_observation_set_number(observation, key, number, weight);
    } else if (array) {
        status = tn__serializer_put(&at, "value", array);
    } else {
        number = tn_observation_number(observation, key);
        status = tn_serialize_double(&at, "value", &number);
    }
    tn__free(key);
    return status;
}

static tn_status serialize_observation(const tn_serializer *s, tn_trainer *trainer)
{
    tn_serializer at = tn_serializer_in(s, "observation");
    int64_t count = tn_observation_count(trainer->observation);
    if (s->loading && !tn_serializer_has(&at, "count"))
        return TN_OK; /* Chainer's */
    tn_status status = s->loading ? TN_OK : tn__observation_eval(trainer->observation); /* another thread reads it */
    if (status == TN_OK)
        status = tn__serialize_count(&at, "count", &count);
    if (s->loading)
        tn_observation_clear(trainer->observation);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = serialize_value(&at, (int)i, trainer->observation);
    return status;
}

/* ---- all of it ---- */

static tn_status serialize_extension(const tn_serializer *extensions, const tn_serializer *triggers,
                                     const tn_trainer *trainer, size_t i)
{
    const tn__registered *r = &trainer->extensions[i];
    const char *name = tn_extension_name(r->extension);
    char *theirs = tn__of_chainer(extensions) ? tn__chainer_extension(trainer, i, name) : NULL;
    if (tn__of_chainer(extensions) && !theirs)
        return TN_ERR_MEMORY;
    tn_serializer at = tn_serializer_in(extensions, theirs ? theirs : name);
    tn_status status = TN_OK;
    if (r->extension->kind->serialize)
        status = tn__or_latched(r->extension->kind->serialize(&at, r->extension->user));
    if (status == TN_OK && r->trigger)
        status = tn_serialize_trigger(triggers, theirs ? theirs : name, r->trigger);
    tn__free(theirs);
    return status;
}

static tn_status serialize_random(const tn_serializer *s)
{
    tn_serializer at = tn_serializer_in(s, "random_generator");
    if (s->loading && !tn_serializer_has(&at, "key"))
        return TN_OK;
    return tn_serialize_generator(s, "random_generator", tn_default_generator());
}

tn_status tn_serialize_trainer(const tn_serializer *s, const char *name, tn_trainer *trainer)
{
    tn_status status = tn__serializer_check(s, name, trainer);
    if (status == TN_OK)
        status = tn__trainer_raise(trainer, s->loading ? "trainer_load" : "trainer_save");
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name), extensions = tn_serializer_in(&at, "extensions"),
                  triggers = tn_serializer_in(&at, "extension_triggers"), updater = tn_serializer_in(&at, "updater");
    double elapsed = tn_trainer_elapsed_time(trainer);
    status = tn__updater_serialize(&updater, trainer->updater);
    if (status == TN_OK && trainer->stop)
        status = tn_serialize_trigger(&at, "stop_trigger", trainer->stop);
    for (size_t i = 0; i < trainer->extension_count && status == TN_OK; i++)
        status = serialize_extension(&extensions, &triggers, trainer, i);
    if (status == TN_OK)
        status = serialize_observation(&at, trainer);
    if (status == TN_OK)
        status = serialize_random(&at);
    if (status == TN_OK)
        status = tn_serialize_double(&at, "_snapshot_elapsed_time", &elapsed);
    if (status == TN_OK && s->loading)
        trainer->elapsed_before = elapsed;
    return status;
}

/* ---- files ---- */

tn_status tn__trainer_fill(tn_trainer *trainer, const tn_serializer *root)
{
    tn_status status = tn_archive_set_text(root->archive, VERSION_KEY, VERSION);
    return status == TN_OK ? tn_serialize_trainer(root, "", trainer) : status;
}

tn_status tn_trainer_save(tn_trainer *trainer, const char *path)
{
    TN__NO_PLACE();
    tn_status status = tn__trainer_raise(trainer, "trainer_save");
    if (status != TN_OK)
        return status;
    TN__GUARD("trainer_save");
    tn_archive *archive __attribute__((cleanup(tn__archive_end))) = tn_archive_new();
    tn_serializer root = {.archive = archive, .file = path};
    status = tn_archive_status(archive);
    if (status == TN_OK)
        status = tn__trainer_fill(trainer, &root);
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    return status;
}

static tn_status check_version(const tn_archive *archive, const char *path, const char *version, bool own)
{
    if (!version && own)
        return tn__fail(TN_ERR_FORMAT, "train",
                        "'%s' is no snapshot of a trainer: its metadata has no \"" VERSION_KEY "\", as of a model, or "
                        "of a run of an older version; train without resuming", path);
    if (version && strcmp(version, VERSION) != 0)
        return tn__fail(TN_ERR_FORMAT, "trainer_load",
                        "'%s' is a snapshot of version %s, and this library reads version %s: it was saved by a newer "
                        "one",
                        path, version, VERSION);
    if (!version && !tn_archive_find(archive, "updater/iteration")) /* Chainer's have that */
        return tn__fail(TN_ERR_FORMAT, "trainer_load",
                        "'%s' is no snapshot of a trainer: it has no \"updater/iteration\"; models are loaded with "
                        "tn_layer_load",
                        path);
    return TN_OK;
}

static tn_status note(tn__undo *undo, tn_trainer *trainer)
{
    tn_status status = TN_OK;
    for (int i = 0; i < trainer->updater->optimizer_count && status == TN_OK; i++)
        status = tn__undo_note(undo, trainer->updater->optimizers[i].optimizer);
    if (status == TN_OK)
        status = tn__undo_archive(undo);
    tn_serializer root = {.archive = undo->archive};
    return status == TN_OK ? tn_serialize_trainer(&root, "", trainer) : status;
}

/* The state from before the load whose error is latched, and stays so. A trainer that can't have it back, for want of
 * memory, has the error for good. */
static void take_back(tn__undo *undo, tn_trainer *trainer, double elapsed_before, tn_status status)
{
    if (!tn__latched())
        tn__fail(status, "trainer_load", "a serializing function returned %s and latched no error that says why",
                 tn_status_name(status));
    tn__error *error = tn__error_take();
    tn_serializer root = {.archive = undo->archive, .loading = true};
    tn__undo_reset(undo);
    if (tn_serialize_trainer(&root, "", trainer) == TN_OK) {
        for (size_t i = 0; i < undo->optimizer_count; i++)
            undo->optimizers[i].optimizer->base = undo->optimizers[i].base;
        trainer->elapsed_before = elapsed_before;
    } else {
        tn_clear_error();
        trainer->error = tn__error_retain(error);
    }
    tn__error_raise(error);
    tn__error_release(error);
}

tn_status tn__trainer_restore(tn_trainer *trainer, tn_archive *archive, const char *path, bool own,
                              const tn_load_opts *opts)
{
    tn_load_opts weights = opts ? *opts : (tn_load_opts){0};
    tn_status status = tn_archive_status(archive);
    const char *version = status == TN_OK ? tn_archive_text(archive, VERSION_KEY) : NULL;
    if (status == TN_OK)
        status = check_version(archive, path, version, own);
    if (status != TN_OK)
        return status;
    weights.chainer = weights.chainer || !version;
    tn_archive *readable = weights.chainer ? tn__chainer_archive(archive) : NULL;
    unsigned long long met[TN__LOAD_PATTERNS] = {0};
    tn_serializer root = {.archive = readable ? readable : archive, .loading = true, .file = path, .weights = &weights,
                          .met = met};
    tn__undo undo __attribute__((cleanup(tn__undo_end))) = {0};
    status = tn_archive_status(root.archive);
    if (status == TN_OK)
        status = note(&undo, trainer);
    if (status == TN_OK) {
        double elapsed = trainer->elapsed_before;
        status = tn__or_latched(tn_serialize_trainer(&root, "", trainer));
        if (status == TN_OK)
            status = tn__load_patterns_check("trainer_load", &weights, met);
        if (status != TN_OK)
            take_back(&undo, trainer, elapsed, status);
    }
    tn_archive_free(readable);
    return status;
}

tn_status tn_trainer_load_with(tn_trainer *trainer, const char *path, const tn_load_opts *opts)
{
    tn_status status = tn__trainer_raise(trainer, "trainer_load");
    if (status == TN_OK && !path)
        status = tn__fail_null("trainer_load", "a path");
    if (status != TN_OK)
        return status;
    TN__GUARD("trainer_load");
    tn_archive *archive __attribute__((cleanup(tn__archive_end))) = tn_archive_load(path);
    status = tn__trainer_restore(trainer, archive, path, false, opts);
    return status;
}

/* ---- names of files ---- */

/* The number that a word in braces stands for; false if it is none. */
static bool number_of(const tn_trainer *trainer, const char *word, size_t length, int64_t *number)
{
    static const char *const prefixes[] = {"0.updater.", ".updater.", "0.", "."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t skip = strlen(prefixes[i]);
        if (length > skip && strncmp(word, prefixes[i], skip) == 0) {
            word += skip, length -= skip;
            break;
        }
    }
    bool iteration = length == 9 && strncmp(word, "iteration", length) == 0;
    if (!iteration && !(length == 5 && strncmp(word, "epoch", length) == 0))
        return false;
    *number = !trainer ? 0 : iteration ? tn_trainer_iteration(trainer) : tn_trainer_epoch(trainer);
    return true;
}

char *tn_trainer_format(const tn_trainer *trainer, const char *pattern)
{
    tn__text text = {0};
    if (!pattern) {
        tn__fail_null("trainer_format", "a pattern");
        return NULL;
    }
    for (const char *at = pattern; *at;) {
        size_t plain = strcspn(at, "{");
        tn__text_addn(&text, at, plain);
        at += plain;
        if (!*at)
            break;
        size_t length = strcspn(at + 1, "}");
        int64_t number;
        if (at[1 + length] != '}' || !number_of(trainer, at + 1, length, &number)) {
            tn__free(text.data);
            tn__fail(TN_ERR_NAME, "trainer_format",
                     "expected {iteration} or {epoch} (or {.updater.iteration}) in the name of a file, got '%s'",
                     pattern);
            return NULL;
        }
        tn__text_addf(&text, "%" PRId64, number);
        at += length + 2;
    }
    tn__text_add(&text, "");
    char *made = tn__text_take(&text);
    if (!made)
        tn__fail_memory("trainer_format", strlen(pattern));
    return made;
}
