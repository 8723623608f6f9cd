/* SPDX-License-Identifier: MIT */
/* Trainers: making and freeing them, registering extensions, asking them about a run. */
#include <math.h>
#include <string.h>
#include "comm/comm.h"
#include "core/clock.h"
#include "core/options.h"
#include "core/utf8.h"
#include "optim/optimizer.h"
#include "train/observation.h"
#include "train/parts.h"

static tn_trainer memory_trainer = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_trainer, "trainer");

/* ---- making ---- */

/* Reports of each optimizer's model go by the optimizer's name. */
static tn_status know_models(tn_trainer *trainer)
{
    tn_status status = TN_OK;
    for (int i = 0; i < trainer->updater->optimizer_count && status == TN_OK; i++)
        status = tn_reporter_add(trainer->reporter, trainer->updater->optimizers[i].name,
                                 trainer->updater->optimizers[i].optimizer->layer);
    return status;
}

static tn_status init(tn_trainer *trainer, const tn_trainer_opts *opts)
{
    tn_status status = tn__updater_raise(trainer->updater);
    if (status == TN_OK && trainer->stop)
        status = tn__trigger_raise(trainer->stop);
    if (status == TN_OK && opts->comm)
        status = tn__comm_of_processes(opts->comm, "trainer_new");
    const char *out = opts->out ? opts->out : "result";
    bool clean = !tn__latched();
    if (status == TN_OK && !*out)
        status = tn__fail(TN_ERR_VALUE, "trainer_new", "expected the name of a folder for results, got \"\"");
    if (status != TN_OK)
        return status;
    trainer->meetings.comm = opts->comm && opts->comm->place.size > 1 ? opts->comm : NULL;
    trainer->out = tn__strdup(out);
    trainer->reporter = tn_reporter_new();
    trainer->observation = tn_observation_new();
    tn__reporter_own(trainer->reporter, "a trainer");
    tn__observation_own(trainer->observation, "a trainer");
    if (!trainer->out)
        return tn__fail_memory("trainer_new", strlen(out));
    status = know_models(trainer);
    return status == TN_OK && clean ? tn_error_code() : status;
}

tn_trainer *tn_trainer_new_with(tn_updater *updater, const tn_trainer_opts *opts)
{
    static const tn_trainer_opts defaults;
    opts = opts ? opts : &defaults;
    static const char owner[] = "a trainer";
    tn_status updating = tn__updater_take(updater, owner), stopping = tn__trigger_take(opts->stop, owner);
    updater = updating == TN_OK ? updater : NULL;
    tn_trigger *stop = stopping == TN_OK ? opts->stop : NULL;
    tn_trainer *trainer = tn__object_new(&objects);
    if (!trainer) {
        tn__fail_memory("trainer_new", sizeof *trainer);
        tn__updater_free_taken(updater);
        tn__trigger_free_taken(stop);
        return &memory_trainer;
    }
    trainer->updater = updater;
    trainer->stop = stop;
    trainer->stop_flag = opts->stop_flag;
    trainer->ctrl_c = opts->ctrl_c;
    trainer->quiet = opts->quiet;
    if (updating != TN_OK || stopping != TN_OK || init(trainer, opts) != TN_OK)
        trainer->error = tn__error_retain(tn__error_last());
    return trainer;
}

void tn_trainer_free(tn_trainer *trainer)
{
    if (!trainer || trainer->is_static || !tn__object_may_go(&objects, &trainer->object))
        return;
    if (tn__trainer_runs(trainer)) {
        tn__fail(TN_ERR_STATE, "trainer_free", "the trainer is running: free it after tn_trainer_run");
        return;
    }
    for (size_t i = trainer->extension_count; i-- > 0;) {
        tn__extension_free_taken(trainer->extensions[i].extension);
        tn__trigger_free_taken(trainer->extensions[i].trigger);
    }
    tn__free(trainer->extensions);
    if (trainer->observation)
        tn__observation_own(trainer->observation, NULL);
    if (trainer->reporter)
        tn__reporter_own(trainer->reporter, NULL);
    tn_observation_free(trainer->observation);
    tn_reporter_free(trainer->reporter);
    tn__trigger_free_taken(trainer->stop);
    tn__updater_free_taken(trainer->updater);
    tn__error_release(trainer->failure);
    tn__error_release(trainer->error);
    tn__free(trainer->out);
    tn__object_end(&objects, &trainer->object);
}

tn_status tn_trainer_status(const tn_trainer *trainer)
{
    if (!trainer || trainer->is_static)
        return trainer ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return trainer->error ? tn__error_status(trainer->error) : TN_OK;
}

tn_status tn__trainer_raise(const tn_trainer *trainer, const char *operation)
{
    if (!trainer)
        return tn__fail_null(operation, "a trainer");
    if (trainer->is_static)
        return tn__fail_memory(operation, sizeof *trainer);
    return trainer->error ? tn__error_raise(trainer->error) : TN_OK;
}

/* ---- registering ---- */

static const tn__registered *registered(const tn_trainer *trainer, const char *name)
{
    for (size_t i = 0; trainer && name && i < trainer->extension_count; i++)
        if (strcmp(tn_extension_name(trainer->extensions[i].extension), name) == 0)
            return &trainer->extensions[i];
    return NULL;
}

/* The name to register by, with a suffix if it is taken; NULL with a latched error. */
static char *free_name(const tn_trainer *trainer, const char *name)
{
    if (!*name || strchr(name, '/') || strcmp(name, "training") == 0) {
        tn__fail(TN_ERR_NAME, "extend",
                 "an extension cannot be named \"%s\": expected a name without '/', other than \"training\"", name);
        return NULL;
    }
    if (tn__check_utf8("extend", "the extension's name", name) != TN_OK)
        return NULL;
    char *made = tn__strdup(name);
    for (int i = 1; made && registered(trainer, made); i++) {
        tn__free(made);
        made = tn__format("%s_%d", name, i);
    }
    if (!made)
        tn__fail_memory("extend", strlen(name));
    return made;
}

/* Puts it behind all of its priority and of higher ones. */
static tn_status insert(tn_trainer *trainer, const tn__registered *new)
{
    if (!tn__grow((void **)&trainer->extensions, &trainer->extension_capacity, trainer->extension_count + 1,
                  sizeof *trainer->extensions))
        return tn__fail_memory("extend", sizeof *new);
    size_t at = trainer->extension_count++;
    for (; at > 0 && trainer->extensions[at - 1].priority < new->priority; at--)
        trainer->extensions[at] = trainer->extensions[at - 1];
    trainer->extensions[at] = *new;
    return TN_OK;
}

static tn_status check_extend(const tn_trainer *trainer, const tn_extension *extension, const tn_trigger *trigger)
{
    tn_status status = tn__trainer_raise(trainer, "extend");
    if (status == TN_OK && tn__trainer_runs(trainer))
        status = tn__fail(TN_ERR_STATE, "extend", "the trainer is running: give it its extensions before");
    if (status == TN_OK && !extension)
        status = tn__fail_null("extend", "an extension");
    if (status == TN_OK && extension->is_static)
        status = tn__fail_memory("extend", sizeof *extension);
    if (status == TN_OK && extension->error)
        status = tn__error_raise(extension->error);
    return status == TN_OK && trigger ? tn__trigger_raise(trigger) : status;
}

tn_status tn_extend_with(tn_trainer *trainer, tn_extension *extension, const tn_extend_opts *opts)
{
    static const tn_extend_opts defaults;
    opts = opts ? opts : &defaults;
    static const char owner[] = "a trainer";
    tn_status taken = tn__extension_take(extension, owner), status = tn__trigger_take(opts->trigger, owner);
    tn_trigger *trigger = status == TN_OK ? opts->trigger : NULL;
    status = taken == TN_OK ? status : taken;
    if (status == TN_OK)
        status = check_extend(trainer, extension, trigger);
    char *name = NULL;
    if (status == TN_OK && !trigger && extension->kind->trigger) {
        tn_trigger *usual = extension->kind->trigger();
        status = tn__trigger_take(usual, owner);
        trigger = status == TN_OK ? usual : NULL;
        if (status == TN_OK)
            status = trigger ? tn__trigger_raise(trigger) : tn_error_code();
    }
    if (status == TN_OK && !(name = free_name(trainer, opts->name ? opts->name : extension->kind->name)))
        status = tn__error_status(tn__error_last());
    if (status == TN_OK)
        status = insert(trainer, &(tn__registered){.extension = extension,
                                                   .trigger = trigger,
                                                   .priority = TN__GIVEN(opts, priority) ? opts->priority
                                                                                      : extension->kind->priority,
                                                   .before_training = opts->call_before_training});
    if (status != TN_OK) {
        tn__free(name);
        tn__trigger_free_taken(trigger);
        tn__extension_free_taken(taken == TN_OK ? extension : NULL);
        return status;
    }
    tn__free(extension->name);
    extension->name = name;
    return TN_OK;
}

tn_extension *tn_trainer_extension(const tn_trainer *trainer, const char *name)
{
    const tn__registered *found = registered(trainer, name);
    if (!found)
        tn__fail(TN_ERR_NAME, "trainer_extension", "the trainer has no extension named \"%s\"", name ? name : "NULL");
    return found ? found->extension : NULL;
}

/* ---- asking ---- */

tn_updater *tn_trainer_updater(const tn_trainer *trainer) { return trainer ? trainer->updater : NULL; }

tn_optimizer *tn_trainer_optimizer(const tn_trainer *trainer, const char *name)
{
    return tn_updater_optimizer(trainer ? trainer->updater : NULL, name);
}

const char *tn_trainer_out(const tn_trainer *trainer) { return trainer && trainer->out ? trainer->out : ""; }

tn_progress tn_trainer_progress(const tn_trainer *trainer)
{
    return tn_updater_progress(trainer ? trainer->updater : NULL);
}

int64_t tn_trainer_iteration(const tn_trainer *trainer)
{
    const tn_updater *updater = trainer ? trainer->updater : NULL;
    return updater && tn_updater_status(updater) == TN_OK ? updater->iteration : 0;
}

int64_t tn_trainer_epoch(const tn_trainer *trainer)
{
    tn_progress at = tn_trainer_progress(trainer);
    return at.samples / at.size;
}

double tn_trainer_epoch_detail(const tn_trainer *trainer)
{
    tn_progress at = tn_trainer_progress(trainer);
    return (double)at.samples / (double)at.size;
}

bool tn_trainer_is_new_epoch(const tn_trainer *trainer) { return tn_trainer_progress(trainer).is_new_epoch; }

double tn_trainer_elapsed_time(const tn_trainer *trainer)
{
    if (!trainer)
        return 0;
    return trainer->elapsed_before + (trainer->running ? tn__seconds() - trainer->began : 0);
}

double tn__trainer_now(tn_trainer *trainer)
{
    if (trainer->now == 0)
        trainer->now = tn__seconds_about();
    return trainer->now;
}

tn_observation *tn_trainer_observation(const tn_trainer *trainer) { return trainer ? trainer->observation : NULL; }

tn_reporter *tn_trainer_reporter(const tn_trainer *trainer) { return trainer ? trainer->reporter : NULL; }

tn_length tn_trainer_length(const tn_trainer *trainer) { return tn_trigger_length(trainer ? trainer->stop : NULL); }

bool tn_trainer_stopped(const tn_trainer *trainer) { return trainer && trainer->stopped; }

const char *tn_trainer_error(const tn_trainer *trainer)
{
    return trainer && trainer->failure ? tn__error_message(trainer->failure) : "";
}
