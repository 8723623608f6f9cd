/* SPDX-License-Identifier: MIT */
/*
 * A run's folder. The log gets a line every epoch; the snapshot, the model and the curve are made after the first epoch
 * and the last, and between them whenever that keeps what they cost below a twentieth of the time: epochs may take
 * milliseconds, and bringing a file to the disk may take longer. The snapshot comes first: whatever happens between two
 * files, it is the one to go on from, and resuming makes the others anew from it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "io/archive.h"
#include "io/file.h"
#include "optim/optimizer.h"
#include "train/ext.h"
#include "train/parts.h"
#include "train/run.h"
#include "train/snapshot.h"

#define TIME_FOR_EACH_COST 20

static const char snapshot_name[] = "snapshot.safetensors", model_name[] = "model.safetensors",
                  log_name[] = "log.jsonl", curve_name[] = "curve.svg";

/* OUT/name, for the caller to free; NULL with a latched error. */
static char *path_of(const tn__run *run, const char *name)
{
    size_t length = strlen(run->out);
    char *path = tn__format("%s%s%s", run->out, length && run->out[length - 1] == '/' ? "" : "/", name);
    if (!path)
        tn__fail_memory("train", length + strlen(name));
    return path;
}

static const char *const finals[] = {snapshot_name, model_name, log_name, curve_name};
enum { FINALS = sizeof finals / sizeof *finals };

bool tn__output_reserved(const char *file)
{
    bool found = false;
    for (int i = 0; i < FINALS; i++)
        found |= strcmp(finals[i], file) == 0;
    return found;
}

/* True for "snapshot.safetensors.tmp-77-3" and its like, see tn__file_temporary, when nobody else is in the folder or
 * there is no process 77. In a container this one may have the number of the one that was killed. */
static bool is_left_over(const char *name, bool alone)
{
    for (int i = 0; i < FINALS; i++) {
        size_t length = strlen(finals[i]);
        long process;
        unsigned number;
        int end = 0;
        if (strncmp(name, finals[i], length) == 0 &&
            sscanf(name + length, ".tmp-%ld-%u%n", &process, &number, &end) == 2 && name[length + (size_t)end] == 0)
            return alone || (process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH);
    }
    return false;
}

/* What a run that was killed while it wrote has left. */
static void clear_left_overs(const tn__run *run, bool alone)
{
    DIR *folder = opendir(run->out);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_left_over(entry->d_name, alone))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

void tn__output_close(tn__run *run)
{
    if (run->folder >= 0)
        close(run->folder);
    run->folder = -1;
}

/* Whether all files can be written, before anything is computed for them. */
static tn_status probe(const tn__run *run)
{
    tn_status status = TN_OK;
    for (int i = 0; i < FINALS && status == TN_OK; i++) {
        char *path = path_of(run, finals[i]), *temporary = NULL;
        status = path ? tn__file_temporary("train", path, &temporary) : TN_ERR_MEMORY;
        if (status == TN_OK)
            tn__file_discard(temporary);
        tn__free(path);
    }
    return status;
}

static bool holds_results(const tn__run *run)
{
    bool found = false;
    for (int i = 0; i < FINALS && !found; i++) {
        char *path = path_of(run, finals[i]);
        found = path && access(path, F_OK) == 0;
        tn__free(path);
    }
    return found;
}

tn_status tn__output_open(tn__run *run)
{
    if (!run->out)
        return TN_OK;
    if (!*run->out)
        return tn__fail(TN_ERR_VALUE, "train", "expected the name of a folder for the results, got \"\"");
    run->snapshot_path = path_of(run, snapshot_name);
    if (run->follows)
        return run->snapshot_path ? TN_OK : TN_ERR_MEMORY;
    tn_status status = run->snapshot_path ? tn__folder_make("train", run->out) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn__folder_lock("train", run->out, &run->folder);
    if (status != TN_OK)
        return status;
    run->saves = tn__archive_known("train", run->snapshot_path) == TN_OK;
    if (!run->saves) {
        tn__log(TN__LOG_WARN, "train", "the network will not be saved: %s", tn_error());
        tn_clear_error();
    }
    clear_left_overs(run, run->folder >= 0);
    run->guards = holds_results(run);
    return probe(run);
}

/* ---- what an earlier run has left ---- */

#define OTHERS_SHOWN 6

typedef struct others {
    char **name;
    size_t count, capacity;
} others;

static bool is_other(const tn__run *run, int folder, const char *name)
{
    struct stat file;
    return *name != '.' && fstatat(folder, name, &file, 0) == 0 && S_ISREG(file.st_mode) &&
           !tn__output_reserved(name) && !tn__output_writes(run->trainer, name);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Without memory for all of them, those that there is memory for. */
static void find_others(const tn__run *run, others *found)
{
    DIR *folder = opendir(run->out);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_other(run, dirfd(folder), entry->d_name) &&
            tn__grow((void **)&found->name, &found->capacity, found->count + 1, sizeof *found->name) &&
            (found->name[found->count] = tn__strdup(entry->d_name)))
            found->count++;
    if (folder)
        closedir(folder);
    if (found->count)
        qsort(found->name, found->count, sizeof *found->name, by_name);
}

void tn__output_tell_others(const tn__run *run)
{
    others found = {0};
    if (run->guards && run->resumed < 0)
        find_others(run, &found);
    tn__text names = {0};
    for (size_t i = 0; i < found.count && i < OTHERS_SHOWN; i++)
        tn__text_addf(&names, "%s%s", i ? ", " : "", found.name[i]);
    if (found.count > OTHERS_SHOWN)
        tn__text_addf(&names, " and %zu more", found.count - OTHERS_SHOWN);
    if (found.count && !names.failed)
        tn__log(TN__LOG_NOTE, "train", "%s has files that this run does not write, which stay as they are: %s",
                run->out, names.data);
    tn__free(names.data);
    for (size_t i = 0; i < found.count; i++)
        tn__free(found.name[i]);
    tn__free(found.name);
}

/* ---- what is written ---- */

tn_status tn__output_fill_model(tn__run *run, tn_archive *archive)
{
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK)
        status = tn__config_archive(&run->config, archive);
    return status == TN_OK ? tn__archive_params(archive, run->net) : status;
}

static tn_status save_model(tn__run *run)
{
    char *path = path_of(run, model_name);
    tn_archive *archive = tn_archive_new();
    tn_status status = path ? tn__output_fill_model(run, archive) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    tn_archive_free(archive);
    tn__free(path);
    return status;
}

static tn_status save_curve(tn__run *run)
{
    char *path = path_of(run, curve_name);
    char *title = tn__format("%s: %s", run->config.text[TN__CONFIG_DATASET], run->config.text[TN__CONFIG_MODEL]);
    tn_status status = path && title ? tn__curve_write(&run->history, run->classifies, title, path)
                                     : tn__fail_memory("train", strlen(run->out) + sizeof curve_name);
    tn__free(title);
    tn__free(path);
    return status;
}

static tn_status save_log(const tn__run *run, bool anew)
{
    char *path = path_of(run, log_name);
    tn_status status = !path  ? TN_ERR_MEMORY
                       : anew ? tn__history_write_log(&run->history, path)
                              : tn__history_append_log(&run->history, path);
    tn__free(path);
    return status;
}

/* The model and, once there is a figure to be seen, the curve. */
static tn_status save_results(tn__run *run)
{
    run->written = tn_trainer_iteration(run->trainer);
    tn_status status = run->saves ? save_model(run) : TN_OK;
    return status == TN_OK && run->history.count ? save_curve(run) : status;
}

/* ---- when ---- */

/* Whether there is something to be written, and files of an earlier run, if there are any, may be replaced. Of what
 * ranks have in parts that is so where it was brought together. */
static bool may_replace(tn_trainer *trainer, void *user)
{
    const tn__run *run = user;
    return tn_trainer_iteration(trainer) > 0 && (!run->guards || tn_trainer_epoch(trainer) > 0) &&
           tn__optimizer_has_all(run->optimizer);
}

/* Asked once an iteration, by the snapshot's trigger or, where there is none, by the other files' extension. */
static bool is_due(tn__run *run, const tn_trainer *trainer)
{
    run->due = false;
    if (!tn_trainer_is_new_epoch(trainer))
        return false;
    double now = tn__seconds();
    bool first = run->checkpoint_ended == 0, last = tn_trainer_epoch(trainer) >= run->epochs;
    run->due = first || last || now - run->checkpoint_ended > TIME_FOR_EACH_COST * run->checkpoint_cost;
    run->checkpoint_began = now;
    return run->due;
}

static bool in_parts(const tn__run *run) { return run->comm && run->shard; }

static bool due_fire(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    bool due = is_due(run, trainer);
    if (!run->snapshot_every)
        return due;
    return run->comm ? run->brought : tn_trigger_fire(run->snapshot_every, trainer);
}

static const tn_trigger_kind due_kind = {.name = "due", .fire = due_fire};

int64_t tn__output_snapshot(const tn__run *run)
{
    int64_t made = run->snapshot ? tn__snapshot_iteration(run->snapshot) : -1;
    return made >= 0 ? made : run->resumed;
}

/* ---- the extension that writes all but the snapshot, after it ---- */

/* After resuming: the log, the model and the curve as they were at the snapshot. */
static tn_status files_initialize(tn_trainer *trainer, void *user)
{
    (void)trainer;
    tn__run *run = user;
    run->guards = run->guards && run->resumed < 0;
    if (run->resumed < 0)
        return TN_OK;
    tn_status status = run->history.count ? save_log(run, true) : TN_OK;
    return status == TN_OK ? save_results(run) : status;
}

static tn_status files_after(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    if (!tn_trainer_is_new_epoch(trainer))
        return TN_OK;
    bool due = run->snapshot ? run->due : is_due(run, trainer);
    tn_status status = due ? save_results(run) : TN_OK;
    if (due) {
        run->checkpoint_ended = tn__seconds();
        run->checkpoint_cost = run->checkpoint_ended - run->checkpoint_began;
    }
    if (status == TN_OK)
        status = save_log(run, run->history.count == 1);
    run->began = tn__seconds(); /* what files took is no epoch's */
    return status;
}

/* The snapshot's own `on_stop` has been called. */
static tn_status files_on_stop(tn_trainer *trainer, void *user)
{
    return may_replace(trainer, user) ? save_results(user) : TN_OK;
}

/* A run that was stopped early, or whose snapshots have an interval of their own, ends with its last state, too. Each
 * file is asked for, as a snapshot may have been made without the others; an earlier run's give way to what is done. */
static void files_finalize(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    int64_t last = tn_trainer_iteration(trainer);
    run->guards = false;
    if (tn_trainer_stopped(trainer) || *tn_trainer_error(trainer) || !may_replace(trainer, run))
        return;
    bool there = !run->snapshot || tn__output_snapshot(run) == last;
    if ((there || tn__snapshot_take(run->snapshot, trainer) == TN_OK) && run->written != last)
        save_results(run);
}

static const tn_extension_kind files_kind = {.name = "files",
                                             .priority = -200,
                                             .initialize = files_initialize,
                                             .after = files_after,
                                             .on_stop = files_on_stop,
                                             .finalize = files_finalize};

/* ---- the extension that brings together what ranks have apart, before the snapshot ---- */

/* What they have in parts and, within an epoch, the losses that each has added up. */
static tn_status bring(tn_trainer *trainer, tn__run *run)
{
    tn_status status = in_parts(run) ? tn_optimizer_gather(run->optimizer) : TN_OK;
    return status == TN_OK && !tn_trainer_is_new_epoch(trainer) ? tn__record_tell(run, tn_trainer_iteration(trainer))
                                                                : status;
}

/* On all ranks alike: so it is here that the configuration's trigger is asked. A snapshot that is due is taken at once,
 * as later ones find parts again. */
static tn_status together_call(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    run->brought = run->snapshot_every && tn_trigger_fire(run->snapshot_every, trainer);
    return run->brought || tn_trainer_is_new_epoch(trainer) ? bring(trainer, run) : TN_OK;
}

/* All ranks stop after the same iteration. */
static tn_status together_on_stop(tn_trainer *trainer, void *user)
{
    return tn_trainer_iteration(trainer) > 0 ? bring(trainer, user) : TN_OK;
}

/* A run that ends early does so on all ranks, and may end within an epoch. */
static void together_finalize(tn_trainer *trainer, void *user)
{
    const tn__run *run = user;
    if (run->stopped_early && !tn_trainer_stopped(trainer) && !*tn_trainer_error(trainer))
        bring(trainer, user);
}

static const tn_extension_kind together_kind = {.name = "together",
                                                .priority = -50,
                                                .call = together_call,
                                                .on_stop = together_on_stop,
                                                .finalize = together_finalize};

tn_status tn__output_extend(tn__run *run)
{
    tn_status status = TN_OK;
    if (run->out && run->comm)
        status = tn_extend_with(run->trainer, tn_extension_new(&together_kind, run), NULL);
    if (!run->out || run->follows || status != TN_OK)
        return status;
    if (run->saves) {
        tn_snapshot_opts opts = {.file = snapshot_name, .condition = may_replace, .user = run,
                                 .wait = run->snapshot_every == NULL || in_parts(run)};
        tn_extend_opts when = {.trigger = tn_trigger_new(&due_kind, run)};
        tn_extension *made = tn_snapshot_with(&opts);
        status = tn_extend_with(run->trainer, made, &when);
        run->snapshot = status == TN_OK ? made : NULL;
    }
    return status == TN_OK ? tn_extend_with(run->trainer, tn_extension_new(&files_kind, run), NULL) : status;
}
