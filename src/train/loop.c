/* SPDX-License-Identifier: MIT */
/* The training loop: what happens in a run and in an iteration, and in which order. */
#include <unistd.h>
#include "array/build.h"
#include "array/guard.h"
#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "train/ext.h"
#include "train/observation.h"
#include "train/parts.h"

/* ---- an iteration ---- */

static tn_status call_extensions(tn_trainer *trainer)
{
    for (size_t i = 0; i < trainer->extension_count; i++) {
        tn__registered *r = &trainer->extensions[i];
        bool due = !r->trigger || tn_trigger_fire(r->trigger, trainer);
        tn_status status = tn_error_code();
        if (due && status == TN_OK)
            status = tn_extension_call(r->extension, trainer);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* A function of a kind, by its place there, for all extensions until one fails. *done: how many before that. */
typedef tn_status (*stage)(tn_trainer *trainer, void *user);

static tn_status call_stage(tn_trainer *trainer, size_t place, size_t *done)
{
    tn_status status = TN_OK;
    for (*done = 0; *done < trainer->extension_count; ++*done) {
        const tn_extension *extension = trainer->extensions[*done].extension;
        stage call = *(const stage *)((const char *)extension->kind + place);
        if (call)
            status = tn__or_latched(call(trainer, extension->user));
        if (status != TN_OK)
            break;
    }
    return status;
}
#define CALL_STAGE_COUNTED(trainer, name, done) call_stage(trainer, offsetof(tn_extension_kind, name), done)
#define CALL_STAGE(trainer, name)               CALL_STAGE_COUNTED(trainer, name, &(size_t){0})

static tn_status iterate(tn_trainer *trainer)
{
    int depth = tn__report_depth();
    tn_status status = TN_OK;
    trainer->under_way = tn_trainer_iteration(trainer) + 1;
    trainer->iterates = true;
    tn_observation_clear(trainer->observation);
    TN_SCOPE {
        tn_reporter_push(trainer->reporter, trainer->observation);
        status = tn_updater_update(trainer->updater);
        trainer->now = 0;
        if (status == TN_OK)
            status = tn__observation_eval(trainer->observation);
        if (status == TN_OK)
            status = call_extensions(trainer);
        if (status == TN_OK)
            status = CALL_STAGE(trainer, after);
    }
    tn__report_back_to(depth); /* what a failure left open, too */
    return tn__or_latched(status);
}

/* Whether what is gone on from has been trained for as long as this run is to be, or longer. */
static bool is_past(const tn_trainer *trainer)
{
    tn_length length = tn_trainer_length(trainer);
    tn_progress at = tn_trainer_progress(trainer);
    double done = length.unit == TN_EPOCH ? (double)at.samples / (double)at.size : (double)at.iteration;
    return length.count > 0 && at.iteration > 0 && done > length.count;
}

/* The stop trigger is asked after the flag: what a snapshot of a stopped run keeps of it is as in any other. */
static tn_status loop(tn_trainer *trainer)
{
    tn_status status = TN_OK;
    if (is_past(trainer))
        return tn_error_code();
    while (status == TN_OK) {
        status = tn__meet_to_stop(trainer);
        if (status != TN_OK || trainer->stopped)
            break;
        if (tn_trigger_fire(trainer->stop, trainer)) {
            tn__trigger_ended(trainer->stop);
            break;
        }
        status = tn__latched() ? tn_error_code() : iterate(trainer);
    }
    return tn__or_latched(status);
}

/* ---- a run ---- */

static tn_status before_training(tn_trainer *trainer)
{
    tn_status status = TN_OK;
    tn_observation_clear(trainer->observation);
    int depth = tn__report_depth();
    TN_SCOPE {
        tn_reporter_push(trainer->reporter, trainer->observation);
        for (size_t i = 0; i < trainer->extension_count && status == TN_OK; i++)
            if (trainer->extensions[i].before_training)
                status = tn_extension_call(trainer->extensions[i].extension, trainer);
    }
    tn__report_back_to(depth);
    return tn__or_latched(status);
}

/* *initialized: how many extensions have been, the first ones. */
static tn_status begin(tn_trainer *trainer, size_t *initialized)
{
    tn_status status = CALL_STAGE(trainer, prepare);
    return status == TN_OK ? CALL_STAGE_COUNTED(trainer, initialize, initialized) : status;
}

static void show_and_forget(const tn_trainer *trainer, const char *when)
{
    if (tn__latched() && !trainer->quiet)
        tn__log(TN__LOG_ERROR, "train", "%s: %s", when, tn_error());
    tn_clear_error();
}

/* The extensions hear of a failure with the thread clean, so that they can save what there is; those that have been
 * initialized, the first `count`. */
static void tell_failure(tn_trainer *trainer, size_t count)
{
    char when[40] = "before training";
    if (trainer->under_way)
        snprintf(when, sizeof when, "iteration %lld", (long long)trainer->under_way);
    if (!trainer->quiet)
        tn__log(TN__LOG_ERROR, "train", "%s: %s", when, tn__error_message(trainer->failure));
    for (size_t i = 0; i < count; i++) {
        const tn_extension *extension = trainer->extensions[i].extension;
        if (extension->kind->on_error)
            extension->kind->on_error(trainer, extension->user);
        show_and_forget(trainer, "after an error");
    }
}

static void finalize(tn_trainer *trainer)
{
    for (size_t i = 0; i < trainer->extension_count; i++) {
        const tn_extension *extension = trainer->extensions[i].extension;
        if (extension->kind->finalize)
            extension->kind->finalize(trainer, extension->user);
        if (trainer->failure)
            show_and_forget(trainer, "at the end");
        else
            trainer->failure = tn__error_take();
    }
}

/* What ended a stage of the run: the latched error, or a status that a function of the program's gave without one. */
static tn__error *take_failure(tn_status status)
{
    if (status != TN_OK && !tn__latched())
        tn__fail(status, "trainer_run",
                 "an extension's function, a hook or the updater's returned %s and latched no error that says why",
                 tn_status_name(status));
    return tn__error_take();
}

static tn_status run(tn_trainer *trainer)
{
    size_t initialized = 0;
    trainer->iterates = false;
    tn_status status = begin(trainer, &initialized);
    bool began = status == TN_OK;
    trainer->under_way = tn_trainer_iteration(trainer);
    if (began && tn_trainer_iteration(trainer) == 0)
        status = before_training(trainer);
    if (status == TN_OK)
        status = loop(trainer);
    trainer->failure = take_failure(status);
    if (trainer->failure && (began || initialized > 0))
        tell_failure(trainer, initialized);
    if (!trainer->failure && trainer->stopped)
        trainer->failure = take_failure(CALL_STAGE(trainer, on_stop));
    finalize(trainer);
    if (!trainer->failure)
        return status;
    tn__error *failure = trainer->failure;
    trainer->failure = NULL;
    status = tn__error_raise(failure);
    tn__error_release(failure);
    return status;
}

bool tn__trainer_runs(const tn_trainer *trainer)
{
    return trainer->running && (trainer->runner != tn__thread_number() || tn__guarded(trainer));
}

static tn_status check_run(const tn_trainer *trainer)
{
    tn_status status = tn__trainer_raise(trainer, "trainer_run");
    if (status == TN_OK && tn__trainer_runs(trainer))
        status = tn__fail(TN_ERR_STATE, "trainer_run", "the trainer is running already");
    if (status == TN_OK && trainer->done)
        status = tn__fail(TN_ERR_STATE, "trainer_run",
                          "the trainer has done its run: make another one, with a later stop, and load a snapshot");
    return tn__or_latched(status);
}

typedef struct under_way {
    tn_trainer *trainer;
    tn__interrupts *interrupts;
} under_way;

/* Also where one of the program's functions throws an exception: then another run goes on. */
static void end_run(under_way *run)
{
    run->trainer->elapsed_before = tn_trainer_elapsed_time(run->trainer);
    run->trainer->running = false;
    if (run->trainer->folder >= 0)
        close(run->trainer->folder);
    run->trainer->folder = -1;
    tn__interrupts_let(run->interrupts);
}

tn_status tn_trainer_run(tn_trainer *trainer)
{
    tn_status status = check_run(trainer);
    if (status == TN_OK)
        status = tn__folder_make("trainer_run", trainer->out);
    if (status != TN_OK)
        return status;
    trainer->folder = -1;
    if (!trainer->in_own_folder && tn__output_any(trainer))
        status = tn__folder_lock("trainer_run", trainer->out, &trainer->folder);
    if (status != TN_OK)
        return status;
    TN__GUARD_OF("trainer_run", trainer);
    under_way this __attribute__((cleanup(end_run))) = {trainer, trainer->ctrl_c ? tn__interrupts_catch() : NULL};
    trainer->stopped = false;
    trainer->running = true;
    trainer->runner = tn__thread_number();
    trainer->began = tn__seconds();
    tn__meetings_begin(trainer);
    int depth = tn__report_depth();
    tn__report_hold();
    status = run(trainer);
    tn__report_back_to(depth);
    trainer->done = status == TN_OK && !trainer->stopped;
    return status;
}
