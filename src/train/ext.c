/* SPDX-License-Identifier: MIT */
/* What the extensions share, see ext.h. */
#include "train/ext.h"

#include <string.h>
#include "core/log.h"
#include "core/utf8.h"
#include "io/file.h"
#include "train/generations.h"

tn_status tn__keys_copy(tn__keys *keys, const char *operation, int count, const char *const *names)
{
    if (count < 1 || !names)
        return tn__fail(TN_ERR_VALUE, operation, "expected at least one key, got %d: name what is to be shown", count);
    keys->names = tn__calloc((size_t)count, sizeof *keys->names);
    for (int i = 0; keys->names && i < count; i++) {
        if (!names[i])
            return tn__fail(TN_ERR_VALUE, operation, "expected %d keys, and number %d is NULL", count, i + 1);
        tn_status status = tn__check_utf8(operation, "the key", names[i]);
        if (status != TN_OK)
            return status;
        keys->names[i] = tn__strdup(names[i]);
        if (!keys->names[i])
            break;
        keys->count++;
    }
    return keys->count == count ? TN_OK : tn__fail_memory(operation, (size_t)count * sizeof *keys->names);
}

void tn__keys_free(tn__keys *keys)
{
    for (int i = 0; i < keys->count; i++)
        tn__free(keys->names[i]);
    tn__free(keys->names);
    *keys = (tn__keys){0};
}

tn_extension *tn__extension_of(const tn_extension_kind *kind, void *state, tn_status status)
{
    if (!state)
        tn__fail_memory("extension", sizeof(tn_extension));
    if (state && status == TN_OK)
        return tn_extension_new(kind, state);
    tn_extension *failed = tn__extension_error();
    if (state)
        kind->free(state);
    return failed;
}

char *tn__text_option(const char *given, const char *absent, tn_status *status)
{
    const char *text = given ? given : absent;
    char *copy = text ? tn__strdup(text) : NULL;
    if (text && !copy)
        *status = tn__fail_memory("extension", strlen(text) + 1);
    return copy;
}

char *tn__shown_option(const char *operation, const char *what, const char *given, const char *absent,
                       tn_status *status)
{
    if (given && tn__check_utf8(operation, what, given) != TN_OK)
        *status = TN_ERR_VALUE;
    return tn__text_option(given, absent, status);
}

char *tn__key_option(const char *operation, const char *given, const char *absent, tn_status *status)
{
    if (given && !*given && *status == TN_OK)
        *status = tn__fail(TN_ERR_VALUE, operation, "expected a key, as \"main/loss\", got \"\"");
    return tn__shown_option(operation, "the key", given, absent, status);
}

/* Whether a path leads above the folder that it begins in: "../x", "a/../../x". */
static bool leads_out(const char *path)
{
    int depth = 0;
    while (*path && depth >= 0) {
        size_t length = strcspn(path, "/");
        bool up = length == 2 && strncmp(path, "..", 2) == 0, here = length == 0 || (length == 1 && *path == '.');
        depth += up ? -1 : !here;
        path += length + (path[length] == '/');
    }
    return depth < 0;
}

char *tn__file_option(const char *operation, const char *given, const char *absent, tn_status *status)
{
    if (given && *given == '/')
        *status = tn__fail(TN_ERR_VALUE, operation,
                           "expected the name of a file in the run's folder, got the absolute path '%s'", given);
    else if (given && leads_out(given))
        *status = tn__fail(TN_ERR_VALUE, operation,
                           "expected the name of a file in the run's folder, got '%s', which lies outside", given);
    return tn__text_option(given, absent, status);
}

tn_trigger *tn__each_epoch(tn_trigger *given, tn_status *status)
{
    tn_status taken = tn__trigger_take(given, "an extension");
    if (taken != TN_OK) {
        *status = taken;
        return NULL;
    }
    tn_trigger *trigger = given ? given : tn_every(1, TN_EPOCH);
    if (tn_trigger_status(trigger) != TN_OK)
        *status = tn__trigger_raise(trigger);
    return trigger;
}

char *tn__output_path(const tn_trainer *trainer, const char *file)
{
    char *path = tn__format("%s/%s", tn_trainer_out(trainer), file);
    if (!path)
        tn__fail_memory("extension", strlen(file));
    return path;
}

static const char *without_here(const char *file)
{
    while (file[0] == '.' && file[1] == '/')
        file += 2;
    return file;
}

/* Behind a character, or a whole {word}. */
static const char *next(const char *pattern)
{
    const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
    return (end ? end : pattern) + 1;
}

/* The same name in one folder, or patterns that may give the same: each would write, and remove, the other's files. */
static bool is_same_file(const char *a, const char *b)
{
    a = without_here(a);
    b = without_here(b);
    while (*a && *a == *b) {
        a = next(a);
        b = next(b);
    }
    return *a == *b;
}

/* What an extension writes; NULL: nothing, or it is none of the library's. */
static const tn__output *output_of(const tn_extension *extension)
{
    static const tn_extension_kind *const writers[] = {&tn__log_report_kind,  &tn__print_report_kind,
                                                       &tn__plot_report_kind, &tn__statistics_plot_kind,
                                                       &tn__dump_graph_kind,  &tn__profile_kind,
                                                       &tn__snapshot_kind,    &tn__snapshot_object_kind};
    const tn__output *output = extension->user;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (extension->kind == writers[i])
            return output->file ? output : NULL;
    return NULL;
}

bool tn__output_any(const tn_trainer *trainer)
{
    for (size_t i = 0; i < trainer->extension_count; i++)
        if (output_of(trainer->extensions[i].extension))
            return true;
    return false;
}

/* Without its ending; a pattern's braces may have points in them. */
static char *stem_of(const char *file)
{
    const char *point = strrchr(file, '.');
    return point && !strpbrk(point, "}/") ? tn__format("%.*s", (int)(point - file), file) : tn__strdup(file);
}

bool tn__output_writes(const tn_trainer *trainer, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < trainer->extension_count && !found; i++) {
        const tn__output *output = output_of(trainer->extensions[i].extension);
        if (!output)
            continue;
        char *pattern = stem_of(without_here(output->file)), *stem = stem_of(name);
        found = pattern && stem && tn__generations_match(pattern, stem);
        tn__free(pattern);
        tn__free(stem);
    }
    return found;
}

tn_status tn__output_claim(const tn_trainer *trainer, const tn__output *mine)
{
    for (size_t i = 0; i < trainer->extension_count; i++) {
        const tn_extension *extension = trainer->extensions[i].extension;
        const tn__output *other = output_of(extension);
        if (other && other != mine && mine->file && is_same_file(other->file, mine->file))
            return tn__fail(TN_ERR_NAME, "extend",
                            "'%s' is written by the extension %s already: give one of the two another .file",
                            mine->file, tn_extension_name(extension));
    }
    if (mine->file)
        tn__generations_clear(tn_trainer_out(trainer), mine->file);
    return TN_OK;
}

tn_status tn__output_probe(const tn_trainer *trainer, const tn__output *mine, const char *path)
{
    tn_status status = tn__output_claim(trainer, mine);
    char *probe = NULL;
    if (status == TN_OK)
        status = tn__file_temporary("extend", path, &probe);
    if (status == TN_OK)
        tn__file_discard(probe);
    return status;
}

bool tn__called_each(const tn_trainer *trainer, const void *user)
{
    for (size_t i = 0; i < trainer->extension_count; i++)
        if (trainer->extensions[i].extension->user == user)
            return trainer->extensions[i].trigger == NULL;
    return false;
}

void tn__warn_missing(const char *operation, const char *key, const tn_observation *seen, const char *what)
{
    int count = tn_observation_count(seen);
    const char **names = tn__alloc(((size_t)count + 1) * sizeof *names);
    for (int i = 0; names && i < count; i++)
        names[i] = tn_observation_key(seen, i);
    const char *near = names ? tn__nearest_name(key, names, count) : NULL;
    tn__log(TN__LOG_WARN, operation, "nothing has been observed under '%s'%s%s%s: %s", key,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", what);
    tn__free(names);
}

tn_status tn__thinned_serialize(const tn_serializer *s, const char *name, tn__thinned *curve)
{
    if (s->loading && !tn_serializer_has(s, name))
        return TN_OK; /* a key that the saved run did not plot */
    int64_t count = (int64_t)curve->count * TN__SPAN_COLUMNS;
    double *rows = (double *)curve->spans;
    if (!s->loading)
        return tn_serialize_doubles(s, name, &count, &rows);
    rows = NULL;
    tn_status status = tn_serialize_doubles(s, name, &count, &rows);
    if (status == TN_OK)
        status = tn__thinned_restore(curve, rows, (size_t)count / TN__SPAN_COLUMNS);
    tn_serialized_free(rows);
    return status;
}
