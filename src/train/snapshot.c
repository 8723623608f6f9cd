/* SPDX-License-Identifier: MIT */
/*
 * A run's state in a file. Parameters lie under their own paths, so that a snapshot can be loaded as a model too;
 * optimizer states under "optimizer/"; numbers in the metadata, in full precision.
 */
#include "train/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/train.h>
#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/undo.h"

#define STATE_PREFIX "optimizer/"

/* The metadata, with how each is written. */
#define KEY_GENERATOR   "tanso.generator" /* key and counter */
#define KEY_STEPS       "tanso.steps"
#define KEY_COUNTS      "tanso.param_steps" /* of each parameter, where they differ */
#define KEY_RATE        "tanso.lr"
#define KEY_EPOCH       "tanso.epoch"
#define KEY_DESCRIPTION "tanso.description"

tn_status tn__archive_params(tn_archive *archive, const tn_layer *net)
{
    return tn__layer_archive(net, archive);
}

static tn_status fill_states(tn_archive *archive, const tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (int i = 0, count = tn_optimizer_state_count(optimizer); i < count && status == TN_OK; i++) {
        char *name = tn__format(STATE_PREFIX "%s", tn_optimizer_state_name(optimizer, i));
        status = name ? tn_archive_add(archive, name, tn_optimizer_state(optimizer, i))
                      : tn__fail_memory("snapshot_save", sizeof STATE_PREFIX);
        tn__free(name);
    }
    return status;
}

static tn_status fill_numbers(tn_archive *archive, const tn_optimizer *optimizer, const tn_loader *loader)
{
    char text[64];
    const tn_generator *generator = tn_default_generator();
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, generator->key, generator->counter);
    tn_status status = tn_archive_set_text(archive, KEY_GENERATOR, text);
    snprintf(text, sizeof text, "%" PRId64, tn_optimizer_steps(optimizer));
    if (status == TN_OK)
        status = tn_archive_set_text(archive, KEY_STEPS, text);
    char *counts = status == TN_OK ? tn__optimizer_counts(optimizer) : NULL;
    if (status == TN_OK)
        status = counts ? tn_archive_set_text(archive, KEY_COUNTS, counts) : TN_ERR_MEMORY;
    tn__free(counts);
    tn__print_into(text, sizeof text, "%.17g", tn_optimizer_lr(optimizer));
    if (status == TN_OK)
        status = tn_archive_set_text(archive, KEY_RATE, text);
    snprintf(text, sizeof text, "%" PRId64, loader ? tn_loader_epoch(loader) : 0);
    return status == TN_OK ? tn_archive_set_text(archive, KEY_EPOCH, text) : status;
}

static tn_status fill(tn_archive *archive, tn_layer *net, tn_optimizer *optimizer, tn_loader *loader)
{
    tn_status status = tn__archive_params(archive, net);
    if (status == TN_OK)
        status = fill_states(archive, optimizer);
    return status == TN_OK ? fill_numbers(archive, optimizer, loader) : status;
}

/* ---- bringing it back ---- */

static tn_status missing(const char *file, const char *key)
{
    return tn__fail(TN_ERR_FORMAT, "snapshot_load",
                    "'%s' is no snapshot: its metadata has no good \"%s\"; models without "
                    "training state are loaded with tn_layer_load",
                    file, key);
}

typedef struct numbers {
    tn_generator generator;
    int64_t steps, epoch;
    double rate;
} numbers;

/* A number of steps or epochs, to which a run can go on adding. */
static bool read_count(const char *text, int64_t *count)
{
    char *end;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : -1;
    *count = value;
    return text && end != text && !*end && !errno && value >= 0 && value <= INT64_MAX / 2;
}

static tn_status read_numbers(const tn_archive *archive, const char *file, numbers *read)
{
    char *rest;
    const char *text = tn_archive_text(archive, KEY_GENERATOR);
    if (!text || sscanf(text, "%" SCNu64 " %" SCNu64, &read->generator.key, &read->generator.counter) != 2)
        return missing(file, KEY_GENERATOR);
    if (!read_count(tn_archive_text(archive, KEY_STEPS), &read->steps))
        return missing(file, KEY_STEPS);
    if (!read_count(tn_archive_text(archive, KEY_EPOCH), &read->epoch))
        return missing(file, KEY_EPOCH);
    text = tn_archive_text(archive, KEY_RATE);
    read->rate = text ? tn__read_double(text, &rest) : 0;
    return text && rest != text && !*rest ? TN_OK : missing(file, KEY_RATE);
}

static tn_status restore_states(const tn_archive *archive, tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (int i = 0, count = tn_archive_count(archive); i < count && status == TN_OK; i++) {
        const char *name = tn_archive_name(archive, i);
        if (strncmp(name, STATE_PREFIX, strlen(STATE_PREFIX)) == 0)
            status = tn_optimizer_set_state(optimizer, name + strlen(STATE_PREFIX), tn_archive_array(archive, i));
    }
    return status;
}

static tn_status restore(const tn_archive *archive, const char *file, tn_layer *net, tn_optimizer *optimizer,
                         tn_loader *loader)
{
    numbers read;
    tn_status status = read_numbers(archive, file, &read);
    if (status == TN_OK)
        status = tn__layer_load_from(net, archive, file, NULL);
    if (status == TN_OK)
        status = restore_states(archive, optimizer);
    if (status != TN_OK)
        return status;
    tn_optimizer_set_steps(optimizer, read.steps);
    tn_optimizer_set_lr(optimizer, read.rate);
    const char *counts = tn_archive_text(archive, KEY_COUNTS);
    status = tn__optimizer_set_counts(optimizer, counts ? counts : "");
    if (status == TN_OK && loader) /* last, as it cannot be taken back */
        status = tn_loader_set_epoch(loader, read.epoch);
    if (status == TN_OK)
        *tn_default_generator() = read.generator;
    return status;
}

/* All or nothing: a restore that fails is followed by one of the state from before. Its error stays. */
static tn_status restore_whole(const tn_archive *archive, const char *file, tn_layer *net, tn_optimizer *optimizer,
                               tn_loader *loader)
{
    tn__undo undo __attribute__((cleanup(tn__undo_end))) = {0};
    tn_status status = tn__undo_note(&undo, optimizer);
    if (status == TN_OK)
        status = tn__undo_archive(&undo);
    if (status == TN_OK)
        status = fill(undo.archive, net, optimizer, loader);
    if (status != TN_OK)
        return status;
    status = restore(archive, file, net, optimizer, loader);
    if (status == TN_OK)
        return TN_OK;
    tn__error *error = tn__error_take();
    tn__undo_reset(&undo);
    restore(undo.archive, file, net, optimizer, NULL);
    optimizer->base = undo.optimizers[0].base;
    tn_clear_error();
    tn__error_raise(error);
    tn__error_release(error);
    return status;
}

/* ---- the public pair ---- */

tn_status tn_snapshot_save(const char *path, tn_layer *net, tn_optimizer *optimizer, tn_loader *loader,
                           const char *description)
{
    TN__NO_PLACE();
    if (!path || !net || !optimizer)
        return tn__fail(TN_ERR_VALUE, "snapshot_save", "expected a path, a layer and an optimizer, got NULL");
    tn_status status = tn__optimizer_is_whole(optimizer, "snapshot_save");
    if (status != TN_OK)
        return status;
    tn_archive *archive = tn_archive_new();
    status = tn_archive_status(archive);
    if (status == TN_OK)
        status = fill(archive, net, optimizer, loader);
    if (status == TN_OK && description)
        status = tn_archive_set_text(archive, KEY_DESCRIPTION, description);
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    tn_archive_free(archive);
    return status;
}

tn_status tn_snapshot_load(const char *path, tn_layer *net, tn_optimizer *optimizer, tn_loader *loader)
{
    TN__NO_PLACE();
    if (!path || !net || !optimizer)
        return tn__fail(TN_ERR_VALUE, "snapshot_load", "expected a path, a layer and an optimizer, got NULL");
    tn_archive *archive = tn_archive_load(path);
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK)
        status = restore_whole(archive, path, net, optimizer, loader);
    tn_archive_free(archive);
    return status;
}
