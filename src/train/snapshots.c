/* SPDX-License-Identifier: MIT */
/*
 * The snapshot extensions. What is to be saved is gathered into an archive, which holds values and copies none, at the
 * end of the iteration: all extensions have been called then, so that a resumed run repeats none of them and leaves
 * none out. A thread writes the archive; the end of the run waits for it, and so does the next snapshot.
 *
 * Where one file alone is kept, nobody waits. An object's snapshot that comes too early is kept in memory until the
 * thread is free, as its trigger asked for this very state. A trainer's is put off, and taken of a later iteration:
 * there the newest state is as good, and gathering it costs as much as some iterations of a small network.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <tanso/engine.h>
#include "core/options.h"
#include "core/signals.h"
#include "io/archive.h"
#include "io/file.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/ext.h"
#include "train/generations.h"
#include "train/pace.h"
#include "train/parts.h"
#include "train/snapshot.h"
#include "train/sound.h"

#define DEFAULT_FILE "snapshot_iter_{iteration}"
#define DEFAULT_ENDING ".safetensors"
#define PRIORITY (-100)
/* Seconds that a snapshot of which one file is kept is put off for what it costs. */
#define LONGEST_DELAY 1.0

/* A file to be written. */
typedef struct job {
    tn_archive *archive;
    char *path;
    tn__error *error; /* why it could not be */
    int64_t iteration;
} job;

typedef struct snapshot {
    tn__output output; /* of which the file is a pattern */
    tn_snapshot_opts opts;
    char *folder;
    tn_serialize_function serialize; /* NULL: the trainer */
    void *object;
    tn__soundness weights; /* of the thread while it writes */
    bool due;
    int64_t saved;       /* the iteration of the last one, -1: none */
    tn__pace pace;       /* of gathering */
    job job;             /* of the thread */
    bool writing;        /* `thread` is to be joined */
    atomic_bool written; /* which takes no time any more */
    pthread_t thread;
    job waiting;         /* for that, archive NULL: none */
} snapshot;

/* ---- writing ---- */

static void write_job(snapshot *s)
{
    const job *j = &s->job;
    bool saved = tn__archive_fetch(j->archive) == TN_OK &&
                 tn__soundness_look(&s->weights, j->archive, j->iteration) &&
                 tn_archive_save(j->archive, j->path) == TN_OK;
    if (saved && s->opts.keep > 0)
        tn__generations_keep(s->folder, s->output.file, s->opts.keep);
    s->job.error = tn__error_take();
    tn_archive_free(s->job.archive);
    s->job.archive = NULL;
}

static void *write_beside(void *user)
{
    snapshot *s = user;
    write_job(s);
    s->written = true;
    return NULL;
}

static void job_free(job *j)
{
    tn_archive_free(j->archive);
    tn__free(j->path);
    *j = (job){0};
}

/* Waits for the file under way; its error becomes this thread's. */
static tn_status finish(snapshot *s)
{
    if (s->writing)
        pthread_join(s->thread, NULL);
    s->writing = false;
    tn__free(s->job.path);
    tn__error *error = s->job.error;
    s->job = (job){0};
    if (!error)
        return TN_OK;
    tn_status status = tn__error_raise(error);
    tn__error_release(error);
    return status;
}

static tn_status start(snapshot *s, bool wait)
{
    sigset_t before;
    tn__signals_hold(&before);
    s->written = false;
    s->writing = !wait && pthread_create(&s->thread, NULL, write_beside, s) == 0;
    tn__signals_let(&before);
    if (s->writing)
        return TN_OK;
    write_job(s);
    return finish(s);
}

/* The one that waits, if there is one. */
static tn_status start_waiting(snapshot *s, bool wait)
{
    tn_status status = finish(s);
    if (status != TN_OK || !s->waiting.archive)
        return status;
    s->job = s->waiting;
    s->waiting = (job){0};
    return start(s, wait);
}

/* What is still only recorded is computed here, in one evaluation: the writing thread could not. */
static tn_status compute(const tn_archive *archive)
{
    int count = tn_archive_count(archive);
    TN__FREED const tn_array **values = tn__alloc(((size_t)count + 1) * sizeof *values);
    if (!values)
        return tn__fail_memory("snapshot", (size_t)count * sizeof *values);
    for (int i = 0; i < count; i++)
        values[i] = tn_archive_array(archive, i);
    return tn_eval_all(count, values);
}

/* The state as an archive that holds each value as it is now, or a copy on its device. */
static tn_status gather(snapshot *s, tn_trainer *trainer, job *j)
{
    j->archive = tn_archive_new();
    tn_serializer root = {.archive = j->archive, .file = j->path};
    tn_status status = tn_archive_status(j->archive);
    if (status == TN_OK)
        status = s->serialize ? tn__or_latched(s->serialize(&root, s->object)) : tn__trainer_fill(trainer, &root);
    if (status == TN_OK)
        status = compute(j->archive);
    return status == TN_OK ? tn__archive_put_aside(j->archive) : status;
}

static tn_status finish_objects(tn_trainer *trainer);

static bool is_busy(const snapshot *s) { return s->writing && !s->written; }

/* Whether a snapshot that is due is to be of a later iteration. */
static bool is_early(const snapshot *s, tn_trainer *trainer)
{
    if (s->opts.keep != 1 || s->opts.wait || s->serialize)
        return false;
    return is_busy(s) || !tn__pace_due(&s->pace, LONGEST_DELAY, tn__trainer_now(trainer));
}

/* An object's that cannot be written yet waits, in place of an older one, if one file alone is kept. */
static tn_status save(snapshot *s, tn_trainer *trainer, bool wait)
{
    bool later = !wait && s->opts.keep == 1 && s->serialize && is_busy(s);
    double began = tn__seconds();
    s->due = false;
    tn_status status = later ? TN_OK : finish(s);
    if (status == TN_OK && !s->serialize)
        status = finish_objects(trainer);
    job made = {0};
    char *name = status == TN_OK ? tn_trainer_format(trainer, s->output.file) : NULL;
    if (!name)
        return tn__or_latched(status);
    made.path = tn__format("%s/%s", s->folder, name);
    tn__free(name);
    made.iteration = tn_trainer_iteration(trainer);
    status = made.path ? gather(s, trainer, &made) : tn__fail_memory("snapshot", 64);
    if (status != TN_OK) {
        job_free(&made);
        return status;
    }
    int64_t before = s->saved;
    s->saved = made.iteration;
    job_free(&s->waiting);
    *(later ? &s->waiting : &s->job) = made;
    status = later ? TN_OK : start(s, wait);
    if (wait && s->weights.refused)
        s->saved = before;
    tn__pace_note(&s->pace, began);
    return status;
}

/* ---- in a run ---- */

static tn_status autoload(snapshot *s, tn_trainer *trainer)
{
    char *path = tn__generations_newest(s->folder, s->output.file);
    if (!path)
        return tn_error_code();
    tn_archive *archive = tn_archive_load(path);
    tn_serializer root = {.archive = archive, .loading = true, .file = path};
    tn_status status = tn_archive_status(archive);
    if (status == TN_OK && s->serialize)
        status = tn__or_latched(s->serialize(&root, s->object));
    else if (status == TN_OK)
        status = tn__trainer_restore(trainer, archive, path, false, NULL);
    if (status == TN_OK && !s->serialize)
        s->saved = tn_trainer_iteration(trainer);
    if (status == TN_OK)
        tn__soundness_look(&s->weights, archive, tn_trainer_iteration(trainer));
    tn_archive_free(archive);
    tn__free(path);
    return tn__or_latched(status);
}

/* A run that goes on after a failure is further than any file. */
static tn_status snapshot_prepare(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    const char *out = tn_trainer_out(trainer);
    tn__free(s->folder);
    s->folder = tn__strdup(out);
    s->saved = -1;
    s->pace = (tn__pace){0};
    s->weights.refused = false;
    s->due = false;
    if (!s->folder)
        return tn__fail_memory("snapshot", strlen(out));
    char *path = tn__output_path(trainer, s->output.file);
    tn_status status = path ? tn__output_probe(trainer, &s->output, path) : TN_ERR_MEMORY;
    tn__free(path);
    if (status != TN_OK)
        return status;
    return s->opts.autoload && tn_trainer_iteration(trainer) == 0 ? autoload(s, trainer) : TN_OK;
}

/* All that was to be loaded has been. Of what ranks have in parts nothing is known. */
static tn_status snapshot_initialize(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    const tn_updater *updater = trainer->updater;
    int count = s->serialize ? 1 : updater->optimizer_count;
    if (!s->weights.prefix || s->weights.sound)
        return TN_OK;
    TN__FREED const tn_layer **layers = tn__alloc(((size_t)count + 1) * sizeof *layers);
    if (!layers)
        return tn__fail_memory("snapshot", (size_t)count * sizeof *layers);
    layers[0] = s->object;
    for (int i = 0; i < count && !s->serialize; i++) {
        if (!tn__optimizer_has_all(updater->optimizers[i].optimizer))
            return TN_OK;
        layers[i] = updater->optimizers[i].optimizer->layer;
    }
    return tn__soundness_begin(&s->weights, count, layers);
}

static bool wanted(const snapshot *s, tn_trainer *trainer)
{
    return !s->opts.condition || s->opts.condition(trainer, s->opts.user);
}

static tn_status snapshot_call(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    if (!wanted(s, trainer))
        return tn_error_code();
    if (tn_trainer_iteration(trainer) == 0) /* before training: there is no iteration to end */
        return save(s, trainer, s->opts.wait);
    s->due = true;
    return TN_OK;
}

static tn_status snapshot_after(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    tn_status status = s->writing && s->written ? finish(s) : TN_OK; /* one that failed ends the run at once */
    if (status != TN_OK)
        return status;
    if (!s->due)
        return s->waiting.archive && !s->writing ? start_waiting(s, false) : TN_OK;
    return is_early(s, trainer) ? TN_OK : save(s, trainer, s->opts.wait);
}

/* An object's file is of the iteration that its trigger chose, as that of the best model so far. */
static tn_status snapshot_on_stop(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    if (s->serialize || s->opts.not_on_stop || s->saved == tn_trainer_iteration(trainer) || !wanted(s, trainer))
        return tn_error_code();
    return save(s, trainer, s->opts.wait);
}

/* A run that fails before it has trained, in its first update at the latest, leaves what is there, as there is nothing
 * new. So does one that fails in the iteration after that of the file: the loader and the random generator have gone
 * on since. */
static void snapshot_on_error(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    s->due = false;
    int64_t iteration = tn_trainer_iteration(trainer);
    if (s->opts.on_error && trainer->iterates && iteration > 0 && s->saved != iteration)
        save(s, trainer, true);
}

/* What was put off is taken now, unless the run has failed, in the middle of an iteration perhaps. */
static void snapshot_finalize(tn_trainer *trainer, void *user)
{
    snapshot *s = user;
    if (s->due && !*tn_trainer_error(trainer))
        save(s, trainer, true);
    else
        start_waiting(s, true);
}

static void snapshot_free(void *user)
{
    snapshot *s = user;
    bool clean = !tn__latched();
    finish(s); /* of a trainer that is freed in the middle */
    job_free(&s->waiting);
    if (clean)
        tn_clear_error();
    tn__free(s->output.file);
    tn__free(s->folder);
    tn__free(s);
}

static tn_trigger *each_epoch(void) { return tn_every(1, TN_EPOCH); }

#define SNAPSHOT_KIND(called) \
    {.name = called, .priority = PRIORITY, .trigger = each_epoch, .prepare = snapshot_prepare, \
     .initialize = snapshot_initialize, .call = snapshot_call, .after = snapshot_after, .on_stop = snapshot_on_stop, \
     .on_error = snapshot_on_error, .finalize = snapshot_finalize, .free = snapshot_free}
const tn_extension_kind tn__snapshot_kind = SNAPSHOT_KIND("snapshot");
const tn_extension_kind tn__snapshot_object_kind = SNAPSHOT_KIND("snapshot_object");

/* The trainer's snapshot says that other files have been written, as that of the best model so far: a run that is
 * killed and goes on from it would not write them again. So they come first, those of this iteration too. */
static tn_status finish_objects(tn_trainer *trainer)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < trainer->extension_count && status == TN_OK; i++) {
        const tn_extension *extension = trainer->extensions[i].extension;
        if (extension->kind != &tn__snapshot_object_kind)
            continue;
        status = snapshot_after(trainer, extension->user);
        if (status == TN_OK)
            status = start_waiting(extension->user, true);
    }
    return status;
}

/* ---- for tn_train ---- */

tn_status tn__snapshot_take(tn_extension *extension, tn_trainer *trainer)
{
    snapshot *s = tn_extension_user(extension);
    return wanted(s, trainer) && !tn__latched() ? save(s, trainer, true) : tn_error_code();
}

int64_t tn__snapshot_iteration(const tn_extension *extension)
{
    const snapshot *s = tn_extension_user(extension);
    return s->saved;
}

/* ---- making ---- */

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

static tn_status set_pattern(snapshot *s, const char *file)
{
    if (!file || !*file || strchr(file, '/'))
        return tn__fail(TN_ERR_VALUE, "snapshot", "expected the name of a file in the trainer's folder, got %s%s%s",
                        file ? "'" : "NULL", file ? file : "", file ? "'" : "");
    bool known = ends_in(file, ".npz") || ends_in(file, DEFAULT_ENDING);
    s->output.file = tn__format("%s%s", file, known ? "" : DEFAULT_ENDING);
    if (!s->output.file)
        return tn__fail_memory("snapshot", strlen(file));
    char *tried = tn_trainer_format(NULL, s->output.file);
    tn__free(tried);
    return tried ? tn__archive_known("snapshot", s->output.file) : tn_error_code();
}

static tn_extension *make(const tn_extension_kind *kind, const char *file, tn_serialize_function serialize,
                          void *object, const tn_snapshot_opts *opts)
{
    snapshot *s = tn__calloc(1, sizeof *s);
    if (!s) {
        tn__fail_memory("snapshot", sizeof *s);
        return tn__extension_error();
    }
    s->opts = *opts;
    s->serialize = serialize;
    s->object = object;
    s->saved = -1;
    tn_status status = set_pattern(s, file);
    if (status == TN_OK && TN__GIVEN(opts, keep) && opts->keep < 1)
        status = tn__fail(TN_ERR_VALUE, "snapshot", "expected 1 file or more to keep, got %d", opts->keep);
    if (status == TN_OK)
        return tn_extension_new(kind, s);
    tn__error *error = tn__error_retain(tn__error_last());
    snapshot_free(s);
    tn__error_raise(error);
    tn__error_release(error);
    return tn__extension_error();
}

static tn_extension *with_weights(tn_extension *made, const char *weights)
{
    snapshot *s = tn_extension_user(made);
    if (s)
        s->weights.prefix = weights;
    return made;
}

static const tn_snapshot_opts defaults;

tn_extension *tn_snapshot_with(const tn_snapshot_opts *opts)
{
    opts = opts ? opts : &defaults;
    tn_extension *made = make(&tn__snapshot_kind, opts->file ? opts->file : DEFAULT_FILE, NULL, NULL, opts);
    return with_weights(made, "updater/model:");
}

tn_extension *tn_snapshot_object_with(tn_serialize_function serialize, void *object, const char *file,
                                      const tn_snapshot_opts *opts)
{
    if (!serialize) {
        tn__fail_null("snapshot_object", "a serializing function");
        return tn__extension_error();
    }
    return make(&tn__snapshot_object_kind, file, serialize, object, opts ? opts : &defaults);
}

/* By the names that tn_layer_load wants. */
static tn_status serialize_model(const tn_serializer *s, void *layer)
{
    return s->loading ? tn__layer_load_from(layer, s->archive, s->file, NULL) : tn__archive_params(s->archive, layer);
}

tn_extension *tn_snapshot_layer_with(tn_layer *layer, const char *file, const tn_snapshot_opts *opts)
{
    if (!layer) {
        tn__fail_null("snapshot_layer", "a layer");
        return tn__extension_error();
    }
    return with_weights(make(&tn__snapshot_object_kind, file, serialize_model, layer, opts ? opts : &defaults), "");
}
