/* SPDX-License-Identifier: MIT */
/* The log of a run: means of what was observed, entry by entry, in a file and for whoever listens. */
#include <math.h>
#include <string.h>
#include <tanso/engine.h>
#include "core/log.h"
#include "io/archive.h"
#include "train/chainer.h"
#include "train/ext.h"
#include "train/late.h"

#define OPERATION "log_report"

typedef struct listener {
    tn__log_listener told;
    void *user;
} listener;

typedef struct log_report {
    tn__output output;
    tn_trigger *every;
    tn_status (*postprocess)(tn_observation *entry, void *user);
    void *user;
    tn_summary *summary;
    tn__late late; /* of the last entry, if it is not made yet */
    tn_observation *entry;
    tn__json_log log;
    listener *listeners;
    size_t listener_count, listener_capacity;
    bool warned;
} log_report;

tn__figure tn__entry_figure(const tn_observation *entry, const char *key)
{
    double value = tn_observation_number(entry, key);
    bool counted = strcmp(key, "epoch") == 0 || strcmp(key, "iteration") == 0;
    bool whole = counted && fabs(value) < 1e18 && value == floor(value);
    return (tn__figure){key, value, whole};
}

static tn_status fill(log_report *r, tn_summary *means, const tn__place *place)
{
    tn_observation *entry = r->entry;
    tn_observation_clear(entry);
    tn_status status = TN_OK;
    for (int i = 0; i < tn_summary_count(means) && status == TN_OK; i++) {
        const char *key = tn_summary_key(means, i);
        status = tn_observation_set_number(entry, key, tn_summary_mean(means, key), 0);
    }
    if (status == TN_OK)
        status = tn_observation_set_number(entry, "epoch", place->epoch, 0);
    if (status == TN_OK)
        status = tn_observation_set_number(entry, "iteration", place->iteration, 0);
    if (status == TN_OK)
        status = tn_observation_set_number(entry, "elapsed_time", place->elapsed, 0);
    if (status == TN_OK && r->postprocess)
        status = r->postprocess(entry, r->user);
    return tn__or_latched(status);
}

static tn_status write(log_report *r, tn_trainer *trainer)
{
    int count = tn_observation_count(r->entry);
    tn__figure *figures = tn__alloc(((size_t)count + 1) * sizeof *figures);
    if (!figures)
        return tn__fail_memory(OPERATION, (size_t)count * sizeof *figures);
    for (int i = 0; i < count; i++)
        figures[i] = tn__entry_figure(r->entry, tn_observation_key(r->entry, i));
    tn_status status = tn__json_log_add(&r->log, figures, count, tn__trainer_now(trainer));
    tn__free(figures);
    return status;
}

/* Once a run: whoever looks at the log or the table later would find it too late. */
static void warn_of_nan(log_report *r, const tn_trainer *trainer, double iteration)
{
    int count = tn_observation_count(r->entry);
    for (int i = 0; i < count && !r->warned && !trainer->quiet; i++) {
        const char *key = tn_observation_key(r->entry, i);
        r->warned = isnan(tn_observation_number(r->entry, key));
        if (r->warned)
            tn__log(TN__LOG_WARN, OPERATION,
                    "'%s' is NaN in iteration %.0f: lower the learning rate, clip gradients, or look for bad values in "
                    "the data; tn_fail_on_nan ends a run that goes wrong", key, iteration);
    }
}

/* The entry of these means, for the list and for who listens. */
static tn_status make_entry(log_report *r, tn_trainer *trainer, tn_summary *means, const tn__place *place)
{
    tn_status status = fill(r, means, place);
    warn_of_nan(r, trainer, place->iteration);
    if (status == TN_OK)
        status = write(r, trainer);
    for (size_t i = 0; i < r->listener_count && status == TN_OK; i++)
        status = tn__or_latched(r->listeners[i].told(trainer, r->entry, r->listeners[i].user));
    return status;
}

/* The last entry, if its means have come. */
static tn_status make_late(log_report *r, tn_trainer *trainer, bool wait)
{
    bool come;
    tn_status status = tn__late_come(&r->late, wait, &come);
    if (status == TN_OK && come)
        status = make_entry(r, trainer, r->late.means, &r->late.place);
    if (come)
        tn__late_end(&r->late);
    return status;
}

/* A function of the program's is called with its entry at once: it may look at what there is in this iteration. */
static tn_status call(tn_trainer *trainer, void *user)
{
    log_report *r = user;
    tn_status status = tn_summary_add_observation(r->summary, tn_trainer_observation(trainer));
    bool due = tn_trainer_iteration(trainer) == 0 || tn_trigger_fire(r->every, trainer);
    if (status == TN_OK && r->late.pending)
        status = make_late(r, trainer, due);
    if (status == TN_OK && !due && r->log.behind)
        status = tn__json_log_settle(&r->log, tn__trainer_now(trainer));
    if (status == TN_OK && due && !r->postprocess)
        status = tn__late_begin(&r->late, &r->summary, trainer);
    if (status != TN_OK || !due || r->late.pending)
        return status;
    tn__place place = tn__place_of(trainer);
    status = make_entry(r, trainer, r->summary, &place);
    tn_summary_clear(r->summary);
    return status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    log_report *r = user;
    make_late(r, trainer, true);
    tn__json_log_settle(&r->log, INFINITY);
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    log_report *r = user;
    tn_status status = tn__output_claim(trainer, &r->output);
    if (status != TN_OK || !r->output.file)
        return status;
    char *path = tn__output_path(trainer, r->output.file);
    status = path ? tn__json_log_open(&r->log, path) : TN_ERR_MEMORY;
    tn__free(path);
    return status;
}

/* The list itself while it is short: so a snapshot alone is enough to go on from. Else the file, which is to last
 * before the snapshot does. */
static tn_status save_list(const tn_serializer *s, tn__json_log *log)
{
    bool is_long = log->from || log->size > TN__SHORT_LOG;
    tn_status status = is_long ? tn__json_log_settle(log, INFINITY) : TN_OK;
    char *list = log->list.data;
    if (status == TN_OK)
        status = tn_serialize_text(s, "_list", &list);
    if (is_long)
        tn__json_log_sum(log);
    if (is_long && status == TN_OK)
        status = tn_serialize_int(s, "_sum", &(int64_t){(int64_t)log->sum});
    return status == TN_OK && log->from && log->path ? tn__archive_after(s->archive, log->path) : status;
}

static tn_status load_list(const tn_serializer *s, tn__json_log *log)
{
    char *list = NULL;
    tn_status status = tn_serialize_text(s, "_list", &list);
    if (status == TN_OK && list && strlen(list) != (size_t)log->size)
        status = tn__fail(TN_ERR_FORMAT, OPERATION, "the snapshot's list has %zu bytes, not %lld: it is damaged",
                          strlen(list), (long long)log->size);
    tn__free(log->list.data);
    log->list = (tn__text){0};
    if (status == TN_OK && list)
        tn__text_add(&log->list, list);
    log->from = list ? 0 : log->size;
    log->summed = log->from;
    int64_t sum = 0;
    if (status == TN_OK && !list && tn_serializer_has(s, "_sum"))
        status = tn_serialize_int(s, "_sum", &sum);
    log->sum = (uint64_t)sum;
    tn_string_free(list);
    return log->list.failed ? tn__fail_memory(OPERATION, (size_t)log->size) : status;
}

static tn_status take_chainer_list(const tn_serializer *s, tn__json_log *log)
{
    char *list = tn__chainer_log(s, &log->entries);
    tn__free(log->list.data);
    log->list = (tn__text){0};
    if (list)
        tn__text_add(&log->list, list);
    tn__free(list);
    log->size = (int64_t)log->list.length;
    log->from = log->summed = 0;
    log->sum = 0;
    return log->list.failed ? tn__fail_memory(OPERATION, (size_t)log->size) : tn_error_code();
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    log_report *r = user;
    tn_status status = tn_serialize_trigger(s, "_trigger", r->every);
    if (status == TN_OK)
        status = tn_serialize_summary(s, "_summary", r->summary);
    if (status == TN_OK)
        status = tn__late_serialize(s, &r->late);
    if (status == TN_OK && !s->loading)
        status = tn__json_log_list(&r->log);
    if (s->loading)
        r->log.waiting.count = 0; /* of a run that goes on from somewhere else */
    if (status == TN_OK && tn__of_chainer(s))
        return take_chainer_list(s, &r->log);
    if (status == TN_OK)
        status = tn__serialize_count(s, "_entries", &r->log.entries);
    if (status == TN_OK)
        status = tn__serialize_count(s, "_size", &r->log.size);
    if (status != TN_OK)
        return status;
    return s->loading ? load_list(s, &r->log) : save_list(s, &r->log);
}

static void free_report(void *user)
{
    log_report *r = user;
    tn__trigger_free_taken(r->every);
    tn_summary_free(r->summary);
    tn__late_free(&r->late);
    tn_observation_free(r->entry);
    tn__json_log_close(&r->log);
    tn__free(r->listeners);
    tn__free(r->output.file);
    tn__free(r);
}

const tn_extension_kind tn__log_report_kind = TN__REPORT_KIND("LogReport");

tn_extension *tn_log_report_with(const tn_log_report_opts *opts)
{
    static const tn_log_report_opts defaults;
    opts = opts ? opts : &defaults;
    log_report *r = tn__calloc(1, sizeof *r);
    tn_status status = TN_OK;
    if (!r) {
        tn__trigger_discard(opts->every);
        return tn__extension_of(&tn__log_report_kind, NULL, TN_ERR_MEMORY);
    }
    r->every = tn__each_epoch(opts->every, &status);
    r->postprocess = opts->postprocess;
    r->user = opts->user;
    r->summary = tn_summary_new_with(NULL);
    r->entry = tn_observation_new();
    if (!opts->file || *opts->file)
        r->output.file = tn__file_option("log_report", opts->file, "log", &status);
    tn_extension *made = tn__extension_of(&tn__log_report_kind, r, status);
    return opts->postprocess ? made : tn__extension_quiet(made);
}

static log_report *find_log(const tn_trainer *trainer, const char *name)
{
    for (size_t i = 0; i < trainer->extension_count; i++) {
        const tn_extension *extension = trainer->extensions[i].extension;
        if (extension->kind == &tn__log_report_kind && strcmp(tn_extension_name(extension), name) == 0)
            return extension->user;
    }
    return NULL;
}

tn_status tn__log_all(tn_trainer *trainer, const char *log)
{
    log_report *r = find_log(trainer, log ? log : tn__log_report_kind.name);
    return r ? make_late(r, trainer, true) : TN_OK;
}

tn_status tn__log_listen(tn_trainer *trainer, const char *operation, const char *log, tn__log_listener told, void *user)
{
    const char *name = log ? log : tn__log_report_kind.name;
    log_report *r = find_log(trainer, name);
    if (!r)
        return tn__fail(TN_ERR_NAME, operation,
                        "it shows the entries of the log report '%s', and the trainer has none of that name: give it "
                        "tn_log_report(), too",
                        name);
    for (size_t i = 0; i < r->listener_count; i++)
        if (r->listeners[i].user == user)
            return TN_OK;
    if (!tn__grow((void **)&r->listeners, &r->listener_capacity, r->listener_count + 1, sizeof *r->listeners))
        return tn__fail_memory(operation, sizeof *r->listeners);
    r->listeners[r->listener_count++] = (listener){told, user};
    return TN_OK;
}
