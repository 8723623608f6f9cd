/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of Chainer 7: weights of fully connected layers as (out, in), states of optimizers by other names, texts as
 * JSON, None for what is not made yet. Its hyperparameters, random generators and orders of samples are not in its
 * files.
 */
#include "train/chainer.h"

#include <stdio.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/engine.h>
#include "core/number.h"
#include "io/archive.h"
#include "nn/layer.h"
#include "optim/optimizer.h"

#define OPERATION "trainer_load"

bool tn__chainer_has(const tn_serializer *s, const char *name)
{
    char *path = tn__serializer_path(s, name);
    bool found = path && tn_archive_find(s->archive, path);
    tn__free(path);
    return found;
}

tn_archive *tn__chainer_archive(const tn_archive *from)
{
    tn_archive *made = tn_archive_new();
    tn_status status = tn_archive_status(made);
    for (size_t i = 0; i < from->count && status == TN_OK; i++) {
        const tn__archive_entry *e = &from->entries[i];
        status = tn_is_error(e->array) ? tn_archive_set_text(made, e->name, TN__TO_INFER)
                                       : tn_archive_add(made, e->name, e->array);
    }
    for (size_t i = 0; i < from->text_count && status == TN_OK; i++)
        status = tn_archive_set_text(made, from->texts[i].key, from->texts[i].value);
    return made;
}

/* ---- optimizers ---- */

static const char *own_name(const char *state)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"msg", "s"}, {"msdx", "x"}, {"ms", "s"}, {"g", "a"}, {"delta", "d"}, {"mem", "k"}, {"g2", "b"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(state, names[i].theirs) == 0)
            return names[i].ours;
    return state;
}

typedef struct taking {
    const tn_serializer *at;
    tn_optimizer *optimizer;
} taking;

static tn_status take_state(const taking *t, tn_layer *layer, tn__slot *slot, const char *path, const char *state,
                            const tn_array *x)
{
    tn_status status = TN_OK;
    bool transposed = tn_ndim(x) == 2 && tn__load_turns(t->at->weights, layer, slot, path, &status);
    char *name = tn__format("%s.%s", path, own_name(state));
    if (!name)
        return tn__fail_memory(OPERATION, strlen(path));
    if (status == TN_OK)
        TN_SCOPE
            status = tn_optimizer_set_state(t->optimizer, name, transposed ? tn_transpose(x, (tn_axes){0}) : x);
    tn__free(name);
    return status;
}

static void take_count(const taking *t, const tn_array *value, const tn_array *x)
{
    for (size_t i = 0; i < t->optimizer->tracked_count; i++)
        if (t->optimizer->tracked[i].param == value)
            t->optimizer->tracked[i].steps = tn_item_int(x);
}

/* All that lies below a parameter's place: "t", and the rule's states. */
static tn_status take_param(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    const taking *t = user;
    const tn_archive *archive = t->at->archive;
    if (slot->persistent || !slot->value)
        return TN_OK;
    char *place = tn__serializer_path(t->at, path);
    if (!place)
        return TN_ERR_MEMORY;
    size_t length = strlen(place);
    for (char *at = place + length - strlen(path); (at = strchr(at, '.'));)
        *at = '/';
    tn_status status = TN_OK;
    for (size_t i = 0; i < archive->count && status == TN_OK; i++) {
        const tn__archive_entry *e = &archive->entries[i];
        if (strncmp(e->name, place, length) != 0 || e->name[length] != '/' || strchr(e->name + length + 1, '/'))
            continue;
        if (strcmp(e->name + length, "/t") == 0)
            take_count(t, slot->value, e->array);
        else
            status = take_state(t, layer, slot, path, e->name + length + 1, e->array);
    }
    tn__free(place);
    return tn__or_latched(status);
}

tn_status tn__chainer_states(const tn_serializer *at, tn_optimizer *optimizer)
{
    tn_status status = tn__optimizer_sync(optimizer);
    int64_t steps = 0;
    if (status == TN_OK)
        status = tn_serialize_int(at, "t", &steps);
    if (status != TN_OK)
        return status;
    tn_optimizer_set_steps(optimizer, steps);
    return tn__visit_slots(optimizer->layer, "", take_param, &(taking){at, optimizer});
}

/* ---- texts ---- */

/* The next string of a JSON list behind *at, for tn__free, as its characters are in the file but for escaped ones; NULL
 * at the end, or without memory. */
static char *next_string(const char **at)
{
    const char *begin = strchr(*at, '"'), *end = begin;
    while (end && *++end && *end != '"')
        end += *end == '\\' && end[1];
    if (!begin || !*end)
        return NULL;
    *at = end + 1;
    char *text = tn__format("%.*s", (int)(end - begin - 1), begin + 1), *to = text;
    for (const char *from = text; text && (*to = *from); to++, from++)
        if (*from == '\\' && from[1])
            *to = *++from;
    return text;
}

static tn_status take_sums(const tn_serializer *at, int index, const char *key, tn__chainer_sum take, void *user)
{
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    tn_serializer all = tn_serializer_in(at, "_summaries"), one = tn_serializer_in(&all, number);
    double x = 0, squares = 0, weight = 0;
    tn_serialize_double(&one, "_x", &x);
    tn_serialize_double(&one, "_x2", &squares);
    tn_status status = tn_serialize_double(&one, "_n", &weight);
    return status == TN_OK && weight > 0 ? take(user, key, x, squares, weight) : status;
}

tn_status tn__chainer_summary(const tn_serializer *at, tn__chainer_sum take, void *user)
{
    char *path = tn__serializer_path(at, "_names"), *key;
    const char *names = path ? tn_archive_text(at->archive, path) : NULL;
    tn_status status = path ? TN_OK : TN_ERR_MEMORY;
    for (int i = 0; names && status == TN_OK && (key = next_string(&names)); i++) {
        status = take_sums(at, i, key, take, user);
        tn__free(key);
    }
    tn__free(path);
    return status;
}

/* The text of the first entry below a place whose name begins so, in JSON; NULL if there is none. */
static const char *text_below(const tn_serializer *at, const char *begin)
{
    char *path = tn__serializer_path(at, begin);
    const char *found = NULL;
    for (size_t i = 0; path && i < at->archive->text_count && !found; i++)
        if (strncmp(at->archive->texts[i].key, path, strlen(path)) == 0)
            found = at->archive->texts[i].value;
    tn__free(path);
    return found;
}

/* A number of JSON as Python writes it, NaN and Infinity, too, behind brackets and commas; false at a list's end. */
static bool next_number(const char **at, double *value)
{
    char *end;
    *at += strspn(*at, "[, \n");
    *value = **at == ']' || !**at ? 0 : tn__read_double(*at, &end);
    if (**at == ']' || !**at || end == *at)
        return false;
    *at = end;
    return true;
}

/* {"main/loss": [[4, 1.5], [7, 1.25]], ...}: pairs up to the list's second bracket. */
tn_status tn__chainer_curve(const tn_serializer *at, const char *key, tn__chainer_point take, void *user)
{
    const char *json = text_below(at, "_plot_");
    tn_status status = tn_error_code();
    char *name;
    while (json && status == TN_OK && (name = next_string(&json))) {
        bool wanted = strcmp(name, key) == 0;
        double x, y;
        json += strcspn(json, "[");
        while (status == TN_OK && next_number(&json, &x) && next_number(&json, &y)) {
            status = wanted ? take(user, x, y) : TN_OK;
            json += *json == ']';
        }
        tn__free(name);
    }
    return status;
}

/* A flat list of objects with other white space: lines, indented by 4. */
static void put_indented(tn__text *out, const char *json, int64_t *entries, size_t *end)
{
    bool quoted = false;
    int depth = 0;
    for (const char *at = json; *at; at++) {
        if (*at == '\\' && quoted && at[1]) {
            tn__text_addn(out, at++, 2);
            continue;
        }
        quoted ^= *at == '"';
        if (!quoted && strchr(" \n\t\r", *at))
            continue;
        if (!quoted && *at == '}')
            tn__text_add(out, "\n    ");
        depth += quoted || *at == '"' ? 0 : *at == '{' ? 1 : *at == '}' ? -1 : 0;
        tn__text_addn(out, at, 1);
        if (quoted || *at == '"')
            continue;
        if (*at == '}')
            ++*entries, *end = out->length;
        if (*at == '[' || (*at == ',' && depth == 0))
            tn__text_add(out, "\n    ");
        else if (*at == '{' || *at == ',')
            tn__text_add(out, "\n        ");
        else if (*at == ':')
            tn__text_add(out, " ");
    }
}

char *tn__chainer_log(const tn_serializer *at, int64_t *entries)
{
    char *path = tn__serializer_path(at, "_log");
    const char *json = path ? tn_archive_text(at->archive, path) : NULL;
    tn__text out = {0};
    size_t end = 0;
    *entries = 0;
    if (json)
        put_indented(&out, json, entries, &end);
    tn__free(path);
    char *list = *entries ? tn__text_take(&out) : NULL;
    if (list)
        list[end] = '\0';
    else
        tn__free(out.data);
    if (*entries && !list)
        tn__fail_memory(OPERATION, end);
    return list;
}

/* ---- names of extensions ---- */

/* Several kinds here are one of Chainer's, which counts them together. */
static const char *chainer_kind(const char *kind)
{
    static const struct {
        const char *ours, *theirs;
    } names[] = {{"snapshot", "_Snapshot"}, {"snapshot_object", "_Snapshot"}, {"observe_lr", "_observe_value"},
                 {"observe_value", "_observe_value"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(kind, names[i].ours) == 0)
            return names[i].theirs;
    return NULL;
}

/* Whether a name is the kind's own, perhaps with a number: not one that the program gave. */
static const char *kind_named(const tn_extension *extension)
{
    const char *kind = extension->kind->name, *theirs = chainer_kind(kind);
    return theirs && strncmp(tn_extension_name(extension), kind, strlen(kind)) == 0 ? theirs : NULL;
}

char *tn__chainer_extension(const tn_trainer *trainer, size_t i, const char *name)
{
    const char *theirs = kind_named(trainer->extensions[i].extension);
    int before = 0;
    for (size_t k = 0; theirs && k < i; k++) {
        const char *other = kind_named(trainer->extensions[k].extension);
        before += other && strcmp(other, theirs) == 0;
    }
    char *made = !theirs ? tn__strdup(name) : before ? tn__format("%s_%d", theirs, before) : tn__strdup(theirs);
    if (!made)
        tn__fail_memory(OPERATION, strlen(name));
    return made;
}
