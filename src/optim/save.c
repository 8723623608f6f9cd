/* SPDX-License-Identifier: MIT */
/* Optimizers to and from archives: state arrays by their names, and as metadata the kind, the options and the counts. A
 * file is looked at as a whole before anything is set. */
#include "optim/optimizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/number.h"

/* ---- counts ---- */

char *tn__optimizer_counts(const tn_optimizer *optimizer)
{
    tn__text text = {0};
    bool differ = false;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        differ |= optimizer->tracked[i].steps != optimizer->steps;
        tn__text_addf(&text, "%s%" PRId64, i ? " " : "", optimizer->tracked[i].steps);
    }
    tn__text_add(&text, "");
    char *counts = tn__text_take(&text);
    if (!counts)
        tn__fail_memory("optimizer_save", text.capacity);
    else if (!differ)
        counts[0] = 0;
    return counts;
}

/* Reads a count and moves on; -1 if there is none. */
static int64_t next_count(const char **at)
{
    char *end;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    bool fine = end != *at && !errno && value >= 0 && value <= INT64_MAX / 2;
    *at = end;
    return fine ? value : -1;
}

static tn_status check_counts(const tn_optimizer *optimizer, const char *text)
{
    size_t count = 0;
    const char *at = text;
    bool fine = true;
    for (; *at && fine; count++)
        fine = next_count(&at) >= 0;
    if (fine && (count == 0 || count == optimizer->tracked_count))
        return TN_OK;
    return tn__fail(TN_ERR_FORMAT, "optimizer_load",
                    "the counts of updates in the file (%.40s) are not those of the layer's %zu parameters", text,
                    optimizer->tracked_count);
}

tn_status tn__optimizer_set_counts(tn_optimizer *optimizer, const char *text)
{
    tn_status status = tn__optimizer_sync(optimizer);
    if (status == TN_OK)
        status = check_counts(optimizer, text);
    for (size_t i = 0; *text && i < optimizer->tracked_count && status == TN_OK; i++)
        optimizer->tracked[i].steps = next_count(&text);
    return status;
}

/* ---- saving ---- */

static tn_status set_text(tn_archive *archive, const char *prefix, const char *key, const char *value)
{
    char *name = tn__format("%s%s", prefix, key);
    tn_status status = name ? tn_archive_set_text(archive, name, value) : tn__fail_memory("optimizer_save", 64);
    tn__free(name);
    return status;
}

static tn_status add_states(tn_archive *archive, const char *prefix, const tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (int i = 0, count = tn_optimizer_state_count(optimizer); i < count && status == TN_OK; i++) {
        char *name = tn__format("%s%s", prefix, tn_optimizer_state_name(optimizer, i));
        status = name ? tn_archive_add(archive, name, tn_optimizer_state(optimizer, i))
                      : tn__fail_memory("optimizer_save", 64);
        tn__free(name);
    }
    return status;
}

tn_status tn__optimizer_archive(const tn_optimizer *optimizer, tn_archive *archive, const char *prefix)
{
    char text[64];
    tn_status status = tn__optimizer_raise(optimizer);
    if (status == TN_OK)
        status = tn__optimizer_is_whole(optimizer, "optimizer_save");
    if (status == TN_OK)
        status = tn__clip_look((tn_optimizer *)optimizer, true); /* what is saved is no silent failure */
    if (status == TN_OK)
        status = tn__optimizer_sync((tn_optimizer *)optimizer);
    if (status == TN_OK)
        status = add_states(archive, prefix, optimizer);
    if (status == TN_OK)
        status = set_text(archive, prefix, "kind", optimizer->rule->name);
    for (int i = 0; i < TN__FIELD_COUNT && status == TN_OK; i++) {
        if (!(tn__rule_fields(optimizer->rule) >> i & 1))
            continue;
        tn__print_into(text, sizeof text, "%.17g", tn__field_get(&optimizer->set, i));
        status = set_text(archive, prefix, tn__optimizer_fields[i].name, text);
    }
    tn__print_into(text, sizeof text, "%.17g", optimizer->first_lr);
    if (status == TN_OK)
        status = set_text(archive, prefix, "first_lr", text);
    snprintf(text, sizeof text, "%" PRId64, optimizer->steps);
    if (status == TN_OK)
        status = set_text(archive, prefix, "steps", text);
    char *counts = status == TN_OK ? tn__optimizer_counts(optimizer) : NULL;
    if (status == TN_OK)
        status = counts ? set_text(archive, prefix, "counts", counts) : TN_ERR_MEMORY;
    tn__free(counts);
    return status;
}

/* ---- loading ---- */

typedef struct loaded {
    const tn_archive *archive;
    const char *prefix, *file;
    tn_optimizer_opts set;
    double first_lr;
    int64_t steps;
    const char *counts;
} loaded;

/* The metadata of a key; NULL, latched, if there is none. */
static const char *text_of(const loaded *l, const char *key)
{
    char *name = tn__format("%s%s", l->prefix, key);
    if (!name) {
        tn__fail_memory("optimizer_load", 64);
        return NULL;
    }
    const char *text = tn_archive_text(l->archive, name);
    if (!text)
        tn__fail(TN_ERR_FORMAT, "optimizer_load",
                 "'%s' does not say the optimizer's '%s': it holds none, or is damaged", l->file, key);
    tn__free(name);
    return text;
}

static tn_status read_number(const loaded *l, const char *key, double *value)
{
    char *end;
    const char *text = text_of(l, key);
    if (!text)
        return tn__error_status(tn__error_last());
    *value = tn__read_double(text, &end);
    if (end != text && !*end)
        return TN_OK;
    return tn__fail(TN_ERR_FORMAT, "optimizer_load", "'%s': expected a number for '%s', found '%.40s'", l->file, key,
                    text);
}

static tn_status read_settings(const tn_optimizer *optimizer, loaded *l)
{
    const char *kind = text_of(l, "kind");
    if (!kind)
        return tn__error_status(tn__error_last());
    if (strcmp(kind, optimizer->rule->name) != 0)
        return tn__fail(TN_ERR_NAME, "optimizer_load",
                        "'%s' is of %.40s, and this optimizer is %s: make one of that kind", l->file, kind,
                        optimizer->rule->name);
    tn_status status = read_number(l, "first_lr", &l->first_lr);
    for (int i = 0; i < TN__FIELD_COUNT && status == TN_OK; i++) {
        double value = 0;
        if (!(tn__rule_fields(optimizer->rule) >> i & 1))
            continue;
        status = read_number(l, tn__optimizer_fields[i].name, &value);
        if (status == TN_OK && value != tn__optimizer_fields[i].usual)
            status = tn__field_check("optimizer_load", optimizer->rule, i, value);
        tn__field_put(&l->set, i, value);
    }
    const char *steps = status == TN_OK ? text_of(l, "steps") : NULL;
    l->steps = steps ? next_count(&steps) : -1;
    l->counts = l->steps >= 0 ? text_of(l, "counts") : NULL;
    if (status == TN_OK && !l->counts)
        status = steps && l->steps < 0 ? tn__fail(TN_ERR_FORMAT, "optimizer_load", "'%s': bad steps", l->file)
                                       : tn__error_status(tn__error_last());
    return status == TN_OK ? check_counts(optimizer, l->counts) : status;
}

/* Each state array of the file, to be checked, or to be set. */
static tn_status each_state(tn_optimizer *optimizer, const loaded *l, bool check)
{
    tn_status status = TN_OK;
    size_t length = strlen(l->prefix);
    for (int i = 0, count = tn_archive_count(l->archive); i < count && status == TN_OK; i++) {
        const char *name = tn_archive_name(l->archive, i);
        if (strncmp(name, l->prefix, length) != 0)
            continue;
        const tn_array *value = tn_archive_array(l->archive, i);
        status = check ? tn__optimizer_fits_state(optimizer, name + length, value)
                       : tn_optimizer_set_state(optimizer, name + length, value);
    }
    return status;
}

tn_status tn__optimizer_restore(tn_optimizer *optimizer, const tn_archive *archive, const char *prefix,
                                const char *file)
{
    loaded l = {.archive = archive, .prefix = prefix, .file = file, .set = optimizer->set};
    tn_status status = tn__optimizer_sync(optimizer);
    if (status == TN_OK)
        status = read_settings(optimizer, &l);
    if (status == TN_OK)
        status = each_state(optimizer, &l, true);
    if (status == TN_OK)
        status = each_state(optimizer, &l, false);
    if (status != TN_OK)
        return status;
    optimizer->set = l.set;
    optimizer->first_lr = l.first_lr;
    tn_optimizer_set_steps(optimizer, l.steps);
    return tn__optimizer_set_counts(optimizer, l.counts);
}

/* ---- files of their own ---- */

tn_status tn_optimizer_save(const tn_optimizer *optimizer, const char *path)
{
    TN__NO_PLACE();
    if (!optimizer || !path)
        return tn__fail_null("optimizer_save", "an optimizer and a path");
    tn_archive *archive = tn_archive_new();
    tn_status status = tn__optimizer_archive(optimizer, archive, "");
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    tn_archive_free(archive);
    return status;
}

tn_status tn_optimizer_load(tn_optimizer *optimizer, const char *path)
{
    TN__NO_PLACE();
    if (!optimizer || !path)
        return tn__fail_null("optimizer_load", "an optimizer and a path");
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    tn_archive *archive = tn_archive_load(path);
    status = tn_archive_status(archive);
    if (status == TN_OK)
        status = tn__optimizer_restore(optimizer, archive, "", path);
    tn_archive_free(archive);
    return status;
}
