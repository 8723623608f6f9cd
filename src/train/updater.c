/* SPDX-License-Identifier: MIT */
/* Updaters: loaders and optimizers by name, what an iteration does with them, and where it stands. */
#include <math.h>
#include <string.h>
#include "array/guard.h"
#include "core/options.h"
#include "core/utf8.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/observation.h"
#include "train/parts.h"

/* Samples of an epoch that never ends. */
#define ENDLESS ((int64_t)1 << 62)
#define MAIN "main"

static tn_updater memory_updater = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_updater, "updater");

/* ---- making ---- */

static tn_updater *updater_error(tn_updater *updater)
{
    tn__error *error = tn__error_retain(tn__error_last());
    updater->error = error;
    return updater;
}

static tn_status check_name(const tn_updater *updater, const char *name, bool loader)
{
    bool taken = false;
    for (int i = 0; loader && i < updater->loader_count; i++)
        taken |= strcmp(updater->loaders[i].name, name) == 0;
    for (int i = 0; !loader && i < updater->optimizer_count; i++)
        taken |= strcmp(updater->optimizers[i].name, name) == 0;
    if (!*name || strchr(name, '/') || taken)
        return tn__fail(TN_ERR_NAME, "updater", "expected another name for %s than \"%s\", %s",
                        loader ? "a loader" : "an optimizer", name,
                        taken ? "which is taken" : "without '/', not empty");
    return tn__check_utf8("updater", loader ? "a loader's name" : "an optimizer's name", name);
}

static tn_status add_loader(tn_updater *updater, const char *name, tn_loader *loader)
{
    tn_status status = check_name(updater, name, true);
    if (status == TN_OK && tn_loader_status(loader) != TN_OK)
        status = tn_loader_set_epoch(loader, 0); /* which gives its error */
    if (status == TN_OK && tn_loader_length(loader) == 0)
        status = tn__fail(TN_ERR_VALUE, "updater", "the loader \"%s\" has no minibatches: its dataset holds too few "
                          "samples", name);
    if (status != TN_OK)
        return status;
    char *copy = tn__strdup(name);
    if (!copy)
        return tn__fail_memory("updater", strlen(name));
    if (updater->loader_count == 0 && strcmp(name, MAIN) == 0)
        updater->main = loader;
    updater->loaders[updater->loader_count++] = (tn_named_loader){copy, loader};
    return TN_OK;
}

static tn_status add_optimizer(tn_updater *updater, const char *name, tn_optimizer *optimizer)
{
    tn_status status = check_name(updater, name, false);
    if (status == TN_OK)
        status = optimizer ? tn__optimizer_raise(optimizer) : tn__fail_null("updater", "an optimizer");
    if (status != TN_OK)
        return status;
    char *copy = tn__strdup(name);
    if (!copy)
        return tn__fail_memory("updater", strlen(name));
    updater->optimizers[updater->optimizer_count++] = (tn_named_optimizer){copy, optimizer};
    return TN_OK;
}

static tn_status fill(tn_updater *updater, tn_loader *loader, tn_optimizer *optimizer, const tn_updater_opts *opts)
{
    int loaders = 1, optimizers = 1;
    while (opts->loaders && opts->loaders[loaders - 1].name)
        loaders++;
    while (opts->optimizers && opts->optimizers[optimizers - 1].name)
        optimizers++;
    updater->loaders = tn__calloc((size_t)loaders, sizeof *updater->loaders);
    updater->optimizers = tn__calloc((size_t)optimizers, sizeof *updater->optimizers);
    if (!updater->loaders || !updater->optimizers)
        return tn__fail_memory("updater", (size_t)(loaders + optimizers) * sizeof *updater->loaders);
    tn_status status = loader ? add_loader(updater, MAIN, loader) : TN_OK;
    for (int i = 0; i < loaders - 1 && status == TN_OK; i++)
        status = add_loader(updater, opts->loaders[i].name, opts->loaders[i].loader);
    if (status == TN_OK && optimizer)
        status = add_optimizer(updater, MAIN, optimizer);
    for (int i = 0; i < optimizers - 1 && status == TN_OK; i++)
        status = add_optimizer(updater, opts->optimizers[i].name, opts->optimizers[i].optimizer);
    for (int i = 0; i < updater->optimizer_count && status == TN_OK && opts->device.kind != TN_DEVICE_DEFAULT; i++)
        status = tn_layer_to(updater->optimizers[i].optimizer->layer, opts->device);
    return status;
}

static tn_updater *make(tn_status (*update)(tn_updater *updater, void *user), tn_loader *loader,
                        tn_optimizer *optimizer, const tn_updater_opts *opts, tn_status status)
{
    tn_updater *updater = tn__object_new(&objects);
    if (!updater) {
        tn__fail_memory("updater", sizeof *updater);
        if (opts->free_user)
            opts->free_user(opts->user);
        return &memory_updater;
    }
    updater->update = update;
    updater->minibatch = tn__one_minibatch;
    updater->loss = opts->loss ? opts->loss : tn_usual_loss;
    updater->user = opts->user;
    updater->free_user = opts->free_user;
    updater->device = opts->device;
    updater->accumulate = TN__GIVEN(opts, accumulate) ? opts->accumulate : 1;
    if (status == TN_OK && updater->accumulate < 1)
        status = tn__fail(TN_ERR_VALUE, "updater", "expected 1 minibatch an update or more, got %d", opts->accumulate);
    if (status == TN_OK)
        status = fill(updater, loader, optimizer, opts);
    return status == TN_OK ? updater : updater_error(updater);
}

tn_updater *tn_standard_updater_with(tn_loader *loader, tn_optimizer *optimizer, const tn_updater_opts *opts)
{
    static const tn_updater_opts defaults;
    tn_status status = TN_OK;
    if (!loader || !optimizer)
        status = tn__fail(TN_ERR_VALUE, "standard_updater", "expected a loader and an optimizer, got NULL");
    return make(tn__standard_update, loader, optimizer, opts ? opts : &defaults, status);
}

tn_updater *tn_parallel_updater_with(tn_loader *loader, tn_optimizer *optimizer, const tn_updater_opts *opts)
{
    static const tn_updater_opts defaults;
    tn_updater_opts given = opts ? *opts : defaults;
    tn_status status = TN_OK;
    if (!loader || !optimizer)
        status = tn__fail(TN_ERR_VALUE, "parallel_updater", "expected a loader and an optimizer, got NULL");
    if (given.devices)
        given.device = given.devices[0];
    tn_updater *updater = make(tn__standard_update, loader, optimizer, &given, status);
    if (updater->is_static || updater->error)
        return updater;
    updater->minibatch = tn__parallel_minibatch;
    return tn__parallel_fill(updater, loader, &given) == TN_OK ? updater : updater_error(updater);
}

tn_updater *tn_updater_of_with(tn_status (*update)(tn_updater *updater, void *user), tn_loader *loader,
                               tn_optimizer *optimizer, const tn_updater_opts *opts)
{
    static const tn_updater_opts defaults;
    tn_status status = update ? TN_OK : tn__fail_null("updater_of", "an updating function");
    return make(update, loader, optimizer, opts ? opts : &defaults, status);
}

void tn_updater_free(tn_updater *updater)
{
    if (!updater || updater->is_static || !tn__object_may_go(&objects, &updater->object) ||
        tn__at_work(updater, "updater"))
        return;
    if (updater->free_user)
        updater->free_user(updater->user);
    for (int i = 0; i < updater->loader_count; i++)
        tn__free((char *)updater->loaders[i].name);
    for (int i = 0; i < updater->optimizer_count; i++)
        tn__free((char *)updater->optimizers[i].name);
    tn__free(updater->loaders);
    tn__free(updater->optimizers);
    tn__parallel_end(updater);
    tn__error_release(updater->error);
    tn__object_end(&objects, &updater->object);
}

TN__PART_FUNCTIONS(updater)

tn_status tn_updater_status(const tn_updater *updater)
{
    if (!updater || updater->is_static)
        return updater ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return updater->error ? tn__error_status(updater->error) : TN_OK;
}

tn_status tn__updater_raise(const tn_updater *updater)
{
    if (!updater)
        return tn__fail_null("updater", "an updater");
    if (updater->is_static)
        return tn__fail_memory("updater", sizeof *updater);
    return updater->error ? tn__error_raise(updater->error) : TN_OK;
}

/* ---- its parts ---- */

tn_loader *tn_updater_loader(const tn_updater *updater, const char *name)
{
    if (updater && updater->main && !name)
        return updater->main;
    name = name ? name : MAIN;
    for (int i = 0; updater && i < updater->loader_count; i++)
        if (strcmp(updater->loaders[i].name, name) == 0)
            return updater->loaders[i].loader;
    tn__fail(TN_ERR_NAME, "updater_loader", "the updater has no loader named \"%s\"", name);
    return NULL;
}

tn_optimizer *tn_updater_optimizer(const tn_updater *updater, const char *name)
{
    name = name ? name : MAIN;
    for (int i = 0; updater && i < updater->optimizer_count; i++)
        if (strcmp(updater->optimizers[i].name, name) == 0)
            return updater->optimizers[i].optimizer;
    tn__fail(TN_ERR_NAME, "updater_optimizer", "the updater has no optimizer named \"%s\"", name);
    return NULL;
}

tn_named_optimizer tn_updater_optimizer_at(const tn_updater *updater, int i)
{
    if (!updater || i < 0 || i >= updater->optimizer_count)
        return (tn_named_optimizer){0};
    return updater->optimizers[i];
}

bool tn_updater_next(tn_updater *updater, const char *name, tn_batch *batch)
{
    tn_loader *loader = tn__updater_raise(updater) == TN_OK ? tn_updater_loader(updater, name) : NULL;
    if (batch)
        *batch = (tn_batch){0};
    if (!loader)
        return false;
    return tn_loader_next(loader, batch) || (!tn__latched() && tn_loader_next(loader, batch));
}

/* ---- where it stands ---- */

/* Samples of the main loader, and of an epoch. */
static int64_t samples_taken(const tn_updater *updater, int64_t *size)
{
    const tn_loader *loader = updater->main;
    if (!loader) {
        *size = ENDLESS;
        return updater->iteration;
    }
    int64_t samples = tn_loader_samples(loader);
    *size = samples > 0 ? samples : 1; /* none: the loader has been freed */
    return tn_loader_epoch(loader) * *size + tn_loader_position(loader);
}

tn_status tn_updater_update(tn_updater *updater)
{
    tn_status status = tn__updater_raise(updater);
    if (status != TN_OK)
        return status;
    if (tn__guarded(updater))
        return tn__fail(TN_ERR_STATE, "updater_update",
                        "this updater is updating: an updating function does what an iteration is, by tn_updater_next, "
                        "tn_backward and tn_step");
    TN__GUARD_OF("updater_update", updater);
    int64_t size, before = samples_taken(updater, &size);
    status = tn__or_latched(updater->update(updater, updater->user));
    if (status != TN_OK)
        return status;
    updater->iteration++;
    updater->previous_samples = before;
    updater->is_new_epoch = before / size != samples_taken(updater, &size) / size;
    return TN_OK;
}

tn_progress tn_updater_progress(const tn_updater *updater)
{
    tn_progress at = {.size = 1};
    if (!updater || tn_updater_status(updater) != TN_OK)
        return at;
    at.iteration = updater->iteration;
    at.samples = samples_taken(updater, &at.size);
    at.previous_samples = updater->previous_samples;
    at.is_new_epoch = updater->is_new_epoch;
    return at;
}

/* ---- snapshots ---- */

static tn_status serialize_parts(const tn_serializer *s, const char *what, const char *name,
                                 tn_status (*serialize)(const tn_serializer *s, const char *name, void *object),
                                 void *object)
{
    char *path = tn__format("%s:%s", what, name);
    if (!path)
        return tn__fail_memory("updater", strlen(name));
    tn_status status = serialize(s, path, object);
    tn__free(path);
    return status;
}

static tn_status one_loader(const tn_serializer *s, const char *name, void *loader)
{
    return tn_serialize_loader(s, name, loader);
}

static tn_status one_optimizer(const tn_serializer *s, const char *name, void *optimizer)
{
    return tn_serialize_optimizer(s, name, optimizer);
}

static tn_status one_layer(const tn_serializer *s, const char *name, void *layer)
{
    return tn_serialize_layer(s, name, layer);
}

/* What Chainer's iterators keep beside their place. */
static tn_status serialize_progress(const tn_serializer *s, tn_updater *updater)
{
    tn_serializer at = tn_serializer_in(s, "iterator:" MAIN);
    double previous = -1;
    int64_t size;
    samples_taken(updater, &size);
    if (updater->iteration > 0)
        previous = (double)updater->previous_samples / (double)size;
    tn_serialize_bool(&at, "is_new_epoch", &updater->is_new_epoch);
    tn_status status = tn_serialize_double(&at, "previous_epoch_detail", &previous);
    if (status == TN_OK && s->loading)
        updater->previous_samples = previous < 0 ? 0 : llround(previous * (double)size);
    return status;
}

tn_status tn__updater_serialize(const tn_serializer *s, tn_updater *updater)
{
    tn_status status = tn__updater_raise(updater);
    for (int i = 0; i < updater->loader_count && status == TN_OK; i++)
        status = serialize_parts(s, "iterator", updater->loaders[i].name, one_loader, updater->loaders[i].loader);
    for (int i = 0; i < updater->optimizer_count && status == TN_OK; i++) {
        const tn_named_optimizer *o = &updater->optimizers[i]; /* parameters first: states are of theirs */
        status = tn__optimizer_raise(o->optimizer);
        if (status == TN_OK)
            status = serialize_parts(s, "model", o->name, one_layer, o->optimizer->layer);
        if (status == TN_OK)
            status = serialize_parts(s, "optimizer", o->name, one_optimizer, o->optimizer);
    }
    if (status == TN_OK)
        status = tn__serialize_count(s, "iteration", &updater->iteration);
    return status == TN_OK ? serialize_progress(s, updater) : status;
}
