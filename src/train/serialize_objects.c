/* SPDX-License-Identifier: MIT */
/*
 * The objects of a run at paths of an archive, as Chainer's snapshots lay them out: paths of parameters with '/'
 * between names, an optimizer's state below its parameter's path.
 */
#include <string.h>
#include <tanso/array.h>
#include <tanso/device.h>
#include "io/archive.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/chainer.h"

static void exchange(char *text, char from, char to)
{
    for (; *text; text++)
        if (*text == from)
            *text = to;
}

/* Keeps an array under a place and a path with dots. */
static tn_status put_dotted(const tn_serializer *at, const char *dotted, const tn_array *x)
{
    char *path = tn__strdup(dotted);
    if (!path)
        return tn__fail_memory("serialize", strlen(dotted));
    exchange(path, '.', '/');
    tn_status status = tn__serializer_put(at, path, x);
    tn__free(path);
    return status;
}

/* What lies below a place, with what the archive calls it: `take` gets the rest of each path, with dots. */
static tn_status each_below(const tn_serializer *at, tn_status (*take)(const char *dotted, tn_array *x, void *user),
                            void *user)
{
    char *place = tn__serializer_path(at, "");
    if (!place)
        return TN_ERR_MEMORY;
    size_t length = strlen(place);
    tn_status status = TN_OK;
    for (int i = 0, count = tn_archive_count(at->archive); i < count && status == TN_OK; i++) {
        const char *name = tn_archive_name(at->archive, i);
        if (strncmp(name, place, length) != 0 || name[length] != '/')
            continue;
        char *dotted = tn__strdup(name + length + 1);
        if (!dotted) {
            status = tn__fail_memory("serialize", strlen(name));
            break;
        }
        exchange(dotted, '/', '.');
        status = take(dotted, tn_archive_array(at->archive, i), user);
        tn__free(dotted);
    }
    tn__free(place);
    return status;
}

/* ---- layers ---- */

static tn_status into_archive(const char *dotted, tn_array *x, void *user) { return tn_archive_add(user, dotted, x); }

/* Marks of parameters that were still to be inferred. */
static tn_status marks_below(const tn_serializer *at, tn_archive *found)
{
    char *place = tn__serializer_path(at, "");
    size_t length = place ? strlen(place) : 0;
    tn_status status = place ? TN_OK : TN_ERR_MEMORY;
    for (size_t i = 0; i < at->archive->text_count && status == TN_OK; i++) {
        const tn__archive_text *text = &at->archive->texts[i];
        if (strncmp(text->key, place, length) != 0 || text->key[length] != '/')
            continue;
        char *dotted = tn__strdup(text->key + length + 1);
        if (dotted)
            exchange(dotted, '/', '.');
        status = dotted ? tn_archive_set_text(found, dotted, text->value)
                        : tn__fail_memory("serialize", strlen(text->key));
        tn__free(dotted);
    }
    tn__free(place);
    return status;
}

static tn_status load_layer(const tn_serializer *at, tn_layer *layer)
{
    tn_archive *found = tn_archive_new();
    tn_status status = tn_archive_status(found);
    if (status == TN_OK)
        status = each_below(at, into_archive, found);
    if (status == TN_OK)
        status = marks_below(at, found);
    if (status == TN_OK)
        status = tn__layer_load_from(layer, found, at->file ? at->file : "the archive", at->weights);
    if (status == TN_OK && at->met && at->weights)
        status = tn__load_patterns_note(at->weights, layer, at->met);
    tn_archive_free(found);
    return status;
}

static tn_status put_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer;
    const tn_serializer *at = user;
    if (slot->value)
        return put_dotted(at, path, slot->value);
    char *place = tn__serializer_path(at, path);
    if (!place)
        return TN_ERR_MEMORY;
    exchange(place + strlen(place) - strlen(path), '.', '/');
    tn_status status = tn_archive_set_text(at->archive, place, TN__TO_INFER);
    tn__free(place);
    return status;
}

tn_status tn_serialize_layer(const tn_serializer *s, const char *name, tn_layer *layer)
{
    tn_status status = tn__serializer_check(s, name, layer);
    if (status == TN_OK)
        status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    if (s->loading)
        return load_layer(&at, layer);
    return tn__visit_slots(layer, "", put_slot, &at);
}

/* ---- optimizers ---- */

static tn_status into_state(const char *dotted, tn_array *x, void *user)
{
    return strchr(dotted, '.') ? tn_optimizer_set_state(user, dotted, x) : TN_OK; /* its own numbers lie beside */
}

/* All options that its rule reads, by their names: what changes them in a run need not be there in the next one. */
static tn_status serialize_options(const tn_serializer *at, tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (int i = 0; i < TN__FIELD_COUNT && status == TN_OK; i++) {
        const char *name = tn__optimizer_fields[i].name;
        if (!(tn__rule_fields(optimizer->rule) >> i & 1) || (at->loading && !tn_serializer_has(at, name)))
            continue;
        double value = tn_optimizer_get(optimizer, name), before = value;
        status = tn_serialize_double(at, name, &value);
        if (status == TN_OK && value != before) /* bounds that are off, infinite, can be no option's value */
            status = tn_optimizer_set(optimizer, name, value);
    }
    return status;
}

/* The rule's name, which files of before it was kept have not. */
static tn_status serialize_kind(const tn_serializer *at, const tn_optimizer *optimizer)
{
    if (at->loading && !tn_serializer_has(at, "kind"))
        return TN_OK;
    TN__FREED char *kind = at->loading ? NULL : tn__strdup(optimizer->rule->name);
    if (!at->loading && !kind)
        return tn__fail_memory("serialize", strlen(optimizer->rule->name));
    tn_status status = tn_serialize_text(at, "kind", &kind);
    if (status == TN_OK && kind && strcmp(kind, optimizer->rule->name) != 0)
        return tn__fail(TN_ERR_NAME, "serialize",
                        "the snapshot is of %.40s, and this optimizer is %s: make one of that kind", kind,
                        optimizer->rule->name);
    return status;
}

/* Updates done: of all, and of each parameter where they differ. */
static tn_status serialize_steps(const tn_serializer *at, tn_optimizer *optimizer)
{
    int64_t steps = tn_optimizer_steps(optimizer);
    tn_status status = tn__serialize_count(at, "t", &steps);
    if (status == TN_OK && at->loading)
        tn_optimizer_set_steps(optimizer, steps);
    if (status != TN_OK || (at->loading && !tn_serializer_has(at, "counts")))
        return tn__or_latched(status);
    char *counts = at->loading ? NULL : tn__optimizer_counts(optimizer);
    status = at->loading || counts ? tn_serialize_text(at, "counts", &counts) : TN_ERR_MEMORY;
    if (status == TN_OK && at->loading && counts)
        status = tn__optimizer_set_counts(optimizer, counts);
    tn__free(counts);
    return tn__or_latched(status);
}

tn_status tn_serialize_optimizer(const tn_serializer *s, const char *name, tn_optimizer *optimizer)
{
    tn_status status = tn__serializer_check(s, name, optimizer);
    if (status == TN_OK)
        status = tn__optimizer_raise(optimizer);
    if (status == TN_OK && !s->loading && s->file) /* without a file it is for this process alone: parts will do */
        status = tn__optimizer_is_whole(optimizer, "serialize");
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    if (tn__of_chainer(s))
        return tn__chainer_states(&at, optimizer);
    status = serialize_kind(&at, optimizer);
    if (status == TN_OK && s->loading)
        status = each_below(&at, into_state, optimizer);
    for (int i = 0, count = tn_optimizer_state_count(optimizer); !s->loading && i < count && status == TN_OK; i++)
        status = put_dotted(&at, tn_optimizer_state_name(optimizer, i), tn_optimizer_state(optimizer, i));
    if (status == TN_OK)
        status = serialize_steps(&at, optimizer);
    return status == TN_OK ? serialize_options(&at, optimizer) : status;
}

/* ---- loaders, generators, triggers ---- */

tn_status tn_serialize_loader(const tn_serializer *s, const char *name, tn_loader *loader)
{
    tn_status status = tn__serializer_check(s, name, loader);
    if (status == TN_OK && tn_loader_status(loader) != TN_OK)
        status = tn_loader_set_epoch(loader, 0); /* which gives its error */
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    int64_t size = tn_loader_samples(loader), position = tn_loader_position(loader), epoch = tn_loader_epoch(loader);
    if (size > 0 && position == size) { /* the epoch counts as soon as its last sample was taken */
        position = 0;
        epoch++;
    }
    tn__serialize_count(&at, "current_position", &position);
    status = tn__serialize_count(&at, "epoch", &epoch);
    return status == TN_OK && s->loading ? tn_loader_set_position(loader, epoch, position) : status;
}

tn_status tn_serialize_generator(const tn_serializer *s, const char *name, tn_generator *generator)
{
    tn_status status = tn__serializer_check(s, name, generator);
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    int64_t key = (int64_t)generator->key, counter = (int64_t)generator->counter; /* their bits */
    tn_serialize_int(&at, "key", &key);
    status = tn_serialize_int(&at, "counter", &counter);
    if (status == TN_OK)
        *generator = (tn_generator){(uint64_t)key, (uint64_t)counter};
    return status;
}

tn_status tn_serialize_trigger(const tn_serializer *s, const char *name, tn_trigger *trigger)
{
    tn_status status = tn__serializer_check(s, name, trigger);
    if (status == TN_OK)
        status = tn__trigger_raise(trigger);
    if (status != TN_OK || !trigger->kind->serialize)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    return tn__or_latched(trigger->kind->serialize(&at, trigger->user));
}
