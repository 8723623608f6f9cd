/* SPDX-License-Identifier: MIT */
/*
 * A run's folder. The log gets a line every epoch; the snapshot, the model and the curve are made after the first epoch
 * and the last, and between them whenever that keeps what they cost below a twentieth of the time: epochs may take
 * milliseconds, and bringing a file to the disk may take longer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "io/archive.h"
#include "io/file.h"
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

/* Files of two runs in one folder would be a mixture. The lock goes with the process, however that ends; where the file
 * system has none there is no such care. */
static tn_status lock(tn__run *run, bool *alone)
{
    run->folder = open(run->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *alone = run->folder >= 0 && flock(run->folder, LOCK_EX | LOCK_NB) == 0;
    if (run->folder >= 0 && !*alone && errno == EWOULDBLOCK)
        return tn__fail(TN_ERR_STATE, "train",
                        "another run is training into '%s': wait until it has ended, or give this one another folder",
                        run->out);
    return TN_OK;
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

tn_status tn__output_open(tn__run *run)
{
    bool alone = false;
    if (!run->out)
        return TN_OK;
    if (!*run->out)
        return tn__fail(TN_ERR_VALUE, "train", "expected the name of a folder for the results, got \"\"");
    run->snapshot_path = path_of(run, snapshot_name);
    tn_status status = run->snapshot_path ? tn__folder_make("train", run->out) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = lock(run, &alone);
    if (status != TN_OK)
        return status;
    run->saves = tn__archive_known("train", run->snapshot_path) == TN_OK;
    if (!run->saves) {
        tn__log(TN__LOG_WARN, "train", "the network will not be saved: %s", tn_error());
        tn_clear_error();
    }
    clear_left_overs(run, alone);
    return probe(run);
}

/* An archive of the run's words and parameters. */
static tn_status fill_model(tn__run *run, tn_archive *archive)
{
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK)
        status = tn__words_archive(&run->words, archive);
    return status == TN_OK ? tn__archive_params(archive, run->net) : status;
}

static tn_status save_model(tn__run *run)
{
    char *path = path_of(run, model_name);
    tn_archive *archive = tn_archive_new();
    tn_status status = path ? fill_model(run, archive) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    tn_archive_free(archive);
    tn__free(path);
    return status;
}

static tn_status save_snapshot(tn__run *run)
{
    tn_archive *archive = tn_archive_new();
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK)
        status = tn__words_archive(&run->words, archive);
    if (status == TN_OK)
        status = tn__snapshot_fill(archive, run->net, run->optimizer, run->train);
    if (status == TN_OK)
        status = tn__history_archive(&run->history, archive);
    if (status == TN_OK)
        status = tn_archive_save(archive, run->snapshot_path);
    tn_archive_free(archive);
    if (status == TN_OK)
        run->snapshot_epoch = run->history.rows[run->history.count - 1].epoch;
    return status;
}

static tn_status save_curve(tn__run *run)
{
    char *path = path_of(run, curve_name);
    char *title = tn__format("%s: %s", run->words.text[TN__WORD_DATASET], run->words.text[TN__WORD_MODEL]);
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

/* The snapshot comes first: whatever happens between two files, it is the one to go on from, and resuming makes the
 * others anew from it. */
static tn_status checkpoint(tn__run *run)
{
    double began = tn__seconds();
    tn_status status = run->saves ? save_snapshot(run) : TN_OK;
    if (status == TN_OK && run->saves)
        status = save_model(run);
    if (status == TN_OK)
        status = save_curve(run);
    run->checkpoint_ended = tn__seconds();
    run->checkpoint_cost = run->checkpoint_ended - began;
    return status;
}

tn_status tn__output_epoch(tn__run *run, bool last)
{
    if (!run->out)
        return TN_OK;
    bool first = run->checkpoint_ended == 0;
    bool due = last || first || tn__seconds() - run->checkpoint_ended > TIME_FOR_EACH_COST * run->checkpoint_cost;
    tn_status status = due ? checkpoint(run) : TN_OK;
    return status == TN_OK ? save_log(run, run->history.count == 1) : status;
}

tn_status tn__output_resumed(tn__run *run)
{
    tn_status status = save_log(run, true);
    if (status == TN_OK && run->saves)
        status = save_model(run);
    return status == TN_OK ? save_curve(run) : status;
}
