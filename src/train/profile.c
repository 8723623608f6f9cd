/* SPDX-License-Identifier: MIT */
/* Measuring some iterations of a run: a table, and a trace that browsers show. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/device.h>
#include <tanso/stream.h>
#include <tanso/engine.h>
#include "core/clock.h"
#include "core/log.h"
#include "engine/timing.h"
#include "io/file.h"
#include "train/ext.h"
#include "train/generations.h"

#define OPERATION "profile"
/* Its `after` is the last of all, so that an iteration is measured with what others do at its end: with its snapshot,
 * with the files of tn_train. */
#define PRIORITY  (-300)

/* What is known at the end of an iteration. */
typedef struct moment {
    double seconds;
    tn_engine_counters counters;
    tn_memory_info memory;
} moment;

typedef struct profile {
    tn__output output;           /* without an ending */
    int64_t first, count, began; /* began: the iteration that the first moment is the end of */
    moment *moments;             /* 1 + count of them: the one before the first iteration, too */
    int64_t taken;
    tn__timing *timing;          /* of plans, from the first moment on; */
    size_t runs;                 /* of these, up to the last moment */
} profile;

/* The device is waited for: what an iteration has started counts as its own. */
static tn_status take(profile *p, const tn_trainer *trainer)
{
    if (p->taken == 0) {
        tn__timing_free(p->timing);
        if (!(p->timing = tn__timing_new()))
            return tn_error_code();
    }
    moment *m = &p->moments[p->taken++];
    const tn_optimizer *optimizer = tn_updater_optimizer_at(tn_trainer_updater(trainer), 0).optimizer;
    tn_device device = optimizer ? tn_optimizer_device(optimizer) : tn_current_device();
    tn_status status = tn_synchronize(device);
    m->seconds = tn__seconds();
    m->counters = tn_engine_stats();
    m->memory = tn_memory_stats(device);
    if (status == TN_OK)
        status = tn__timing_read(p->timing);
    tn__timing_runs(p->timing, &p->runs);
    return status;
}

static double milliseconds(const moment *from, const moment *to) { return 1e3 * (to->seconds - from->seconds); }

/* Of all runs of a plan. */
typedef struct total {
    size_t plan;
    int64_t runs;
    double seconds;
} total;

static int by_seconds(const void *a, const void *b)
{
    double x = ((const total *)a)->seconds, y = ((const total *)b)->seconds;
    return (x < y) - (x > y);
}

/* Those that take most first; for tn__free. NULL without memory. */
static total *total_up(const profile *p, size_t *count, double *seconds)
{
    size_t read;
    tn__timing_plans(p->timing, count);
    const tn__timed_run *run = tn__timing_runs(p->timing, &read);
    total *all = tn__calloc(*count + 1, sizeof *all);
    for (size_t i = 0; all && i < *count; i++)
        all[i].plan = i;
    for (size_t i = 0; all && i < p->runs; i++) {
        all[run[i].plan].runs++;
        all[run[i].plan].seconds += run[i].seconds;
        *seconds += run[i].seconds;
    }
    if (all)
        qsort(all, *count, sizeof *all, by_seconds);
    return all;
}

static tn_status put_plans(const profile *p, double whole, tn__text *out)
{
    size_t count;
    double seconds = 0;
    const tn__timed_plan *plans = tn__timing_plans(p->timing, &count);
    total *all = total_up(p, &count, &seconds);
    if (!all)
        return tn__fail_memory(OPERATION, count * sizeof *all);
    tn__text_add(out, "\n      plan          ms    share     runs    ms a run    steps   MiB a run  of\n");
    for (size_t i = 0; i < count; i++) {
        const tn__timed_plan *plan = &plans[all[i].plan];
        if (all[i].runs)
            tn__text_addf(out, "%10zu  %10.3f  %6.1f%%  %7" PRId64 "  %10.4f  %7d  %10.3f  %s: %s\n",
                          all[i].plan + 1, 1e3 * all[i].seconds, 100 * all[i].seconds / whole, all[i].runs,
                          1e3 * all[i].seconds / (double)all[i].runs, plan->steps, (double)plan->bytes / 1048576,
                          plan->device->name, plan->text);
    }
    if (seconds < whole) /* else some ran side by side */
        tn__text_addf(out, "%10s  %10.3f  %6.1f%%\n", "none", 1e3 * (whole - seconds),
                      100 * (whole - seconds) / whole);
    tn__free(all);
    return TN_OK;
}

static tn_status put_table(const profile *p, tn__text *out)
{
    if (p->began >= p->first)
        tn__text_addf(out, "of iterations %" PRId64 " to %" PRId64 " those from %" PRId64 " on: the others were in the "
                      "run that this one goes on from\n", p->first, p->first + p->count - 1, p->began + 1);
    tn__text_add(out, " iteration          ms  evaluations  compiled  kernels    used MiB    peak MiB\n");
    for (int64_t i = 1; i < p->taken; i++) {
        const moment *a = &p->moments[i - 1], *b = &p->moments[i];
        tn__text_addf(out, "%10" PRId64 "  %10.3f  %11" PRIu64 "  %8" PRIu64 "  %7" PRIu64 "  %10.2f  %10.2f\n",
                      p->began + i, milliseconds(a, b), b->counters.evaluations - a->counters.evaluations,
                      b->counters.plan_misses - a->counters.plan_misses, b->counters.kernels - a->counters.kernels,
                      (double)b->memory.used / 1048576, (double)b->memory.peak / 1048576);
    }
    const moment *first = &p->moments[0], *last = &p->moments[p->taken - 1];
    double n = (double)(p->taken - 1);
    tn__text_addf(out, "%10s  %10.3f  %11.2f  %8.2f  %7.2f\n", "mean", milliseconds(first, last) / n,
                  (double)(last->counters.evaluations - first->counters.evaluations) / n,
                  (double)(last->counters.plan_misses - first->counters.plan_misses) / n,
                  (double)(last->counters.kernels - first->counters.kernels) / n);
    return put_plans(p, last->seconds - first->seconds, out);
}

/* The format of Chrome's traces: complete events ("X") with times in microseconds, counters ("C"), and names ("M").
 * The run is process 1; a device is one for itself, as what it does is by its own clock. */
static void put_event(tn__text *out, const char *name, int process, int thread, double start, double duration)
{
    tn__text_addf(out, "  {\"name\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, ", name, process, thread);
    tn__text_addf(out, "\"ts\": %.3f, \"dur\": %.3f, ", start, duration);
}

static void put_iterations(const profile *p, tn__text *out)
{
    for (int64_t i = 1; i < p->taken; i++) {
        const moment *a = &p->moments[i - 1], *b = &p->moments[i];
        double start = 1e6 * (a->seconds - p->moments[0].seconds);
        char name[48];
        snprintf(name, sizeof name, "iteration %" PRId64, p->began + i);
        put_event(out, name, 1, 1, start, 1e3 * milliseconds(a, b));
        tn__text_addf(out,
                      "\"args\": {\"evaluations\": %" PRIu64 ", \"compiled\": %" PRIu64 ", \"kernels\": %" PRIu64
                      "}},\n",
                      b->counters.evaluations - a->counters.evaluations,
                      b->counters.plan_misses - a->counters.plan_misses, b->counters.kernels - a->counters.kernels);
        tn__text_addf(out,
                      "  {\"name\": \"bytes\", \"ph\": \"C\", \"pid\": 1, \"ts\": %.3f, "
                      "\"args\": {\"used\": %zu}},\n",
                      start, b->memory.used);
    }
}

static int process_of(const tn__device *device) { return 2 + device->number; }

static void put_processes(const profile *p, tn__text *out)
{
    size_t count;
    const tn__timed_plan *plan = tn__timing_plans(p->timing, &count);
    for (size_t i = 0; i < count; i++) {
        bool before = false;
        for (size_t k = 0; k < i && !before; k++)
            before = plan[k].device == plan[i].device;
        if (!before)
            tn__text_addf(out,
                          "  {\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, "
                          "\"args\": {\"name\": \"%s\"}},\n",
                          process_of(plan[i].device), plan[i].device->name);
    }
}

static void put_runs(const profile *p, tn__text *out)
{
    size_t plans, read;
    const tn__timed_plan *all = tn__timing_plans(p->timing, &plans);
    const tn__timed_run *run = tn__timing_runs(p->timing, &read);
    for (size_t i = 0; i < p->runs; i++) {
        const tn__timed_plan *plan = &all[run[i].plan];
        char name[32];
        snprintf(name, sizeof name, "plan %zu", run[i].plan + 1);
        put_event(out, name, process_of(plan->device), run[i].track, 1e6 * (run[i].began - p->moments[0].seconds),
                  1e6 * run[i].seconds);
        tn__text_addf(out,
                      "\"args\": {\"steps\": %d, \"bytes\": %" PRId64 ", \"operations\": %" PRId64
                      ", \"of\": \"%s\"}},\n",
                      plan->steps, plan->bytes, plan->operations, plan->text);
    }
}

static tn_status put_trace(const profile *p, tn__text *out)
{
    tn__text_add(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    put_iterations(p, out);
    put_processes(p, out);
    put_runs(p, out);
    tn__text_add(out, "  {\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"run\"}}\n");
    tn__text_add(out, "]}\n");
    return TN_OK;
}

static tn_status write(profile *p, const tn_trainer *trainer, const char *ending,
                       tn_status (*put)(const profile *p, tn__text *out))
{
    tn__text text = {0};
    tn_status status = put(p, &text);
    char *path = tn__format("%s/%s%s", tn_trainer_out(trainer), p->output.file, ending);
    if (status == TN_OK && !path)
        status = tn__fail_memory(OPERATION, 0);
    if (status == TN_OK)
        status = tn__file_write_text(OPERATION, path, &text);
    else
        tn__free(text.data);
    tn__free(path);
    return status;
}

static tn_status write_both(profile *p, const tn_trainer *trainer)
{
    tn_status status = p->timing ? tn__timing_stop(p->timing) : TN_OK;
    if (status == TN_OK && p->taken > 1)
        status = write(p, trainer, ".txt", put_table);
    if (status == TN_OK && p->taken > 1)
        status = write(p, trainer, ".json", put_trace);
    p->taken = 0;
    tn__timing_free(p->timing);
    p->timing = NULL;
    return status;
}

static tn_status after(tn_trainer *trainer, void *user)
{
    profile *p = user;
    int64_t iteration = tn_trainer_iteration(trainer);
    if (iteration < p->first - 1 || iteration > p->first + p->count - 1)
        return TN_OK;
    if (p->taken == 0)
        p->began = iteration;
    tn_status status = take(p, trainer);
    return status == TN_OK && iteration == p->first + p->count - 1 ? write_both(p, trainer) : status;
}

/* Whether both files can be written, without what a killed run has left of them. */
static tn_status prepare_files(const profile *p, const tn_trainer *trainer)
{
    static const char *const endings[] = {".txt", ".json"};
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        char *name = tn__format("%s%s", p->output.file, endings[i]);
        char *path = name ? tn__output_path(trainer, name) : NULL;
        status = path ? tn__output_probe(trainer, &p->output, path) : tn__fail_memory(OPERATION, 0);
        if (status == TN_OK)
            tn__generations_clear(tn_trainer_out(trainer), name);
        tn__free(path);
        tn__free(name);
    }
    return status;
}

/* A run that is resumed among them measures what is left. */
static tn_status initialize(tn_trainer *trainer, void *user)
{
    profile *p = user;
    int64_t done = tn_trainer_iteration(trainer);
    p->taken = 0;
    p->began = done;
    tn_status status = prepare_files(p, trainer);
    return status == TN_OK && done >= p->first - 1 && done < p->first + p->count - 1 ? take(p, trainer) : status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    const profile *p = user;
    int64_t done = tn_trainer_iteration(trainer);
    if (done < p->first && !trainer->stopped && !trainer->failure)
        tn__log(TN__LOG_WARN, OPERATION,
                "nothing was measured: the run has ended after %" PRId64 " iterations, and .first is %" PRId64, done,
                p->first);
    write_both(user, trainer);
}

static void free_profile(void *user)
{
    profile *p = user;
    tn__timing_free(p->timing);
    tn__free(p->moments);
    tn__free(p->output.file);
    tn__free(p);
}

const tn_extension_kind tn__profile_kind = {.name = "Profile",
                                            .priority = PRIORITY,
                                            .initialize = initialize,
                                            .after = after,
                                            .finalize = finalize,
                                            .free = free_profile};

tn_extension *tn_profile_with(const tn_profile_opts *opts)
{
    profile *p = tn__calloc(1, sizeof *p);
    if (!p)
        return tn__extension_of(&tn__profile_kind, NULL, TN_ERR_MEMORY);
    tn_status status = TN_OK;
    p->first = TN__OPTION(opts, first, 11);
    p->count = TN__OPTION(opts, count, 10);
    p->output.file = tn__file_option("profile", opts ? opts->file : NULL, "profile", &status);
    if (p->first < 1 || p->count < 1 || p->count > 1000000)
        status = tn__fail(TN_ERR_VALUE, OPERATION,
                          "expected .first from 1 on and 1 to 1000000 iterations, got %" PRId64 " and %" PRId64,
                          p->first, p->count);
    else if (!(p->moments = tn__alloc((size_t)(p->count + 1) * sizeof *p->moments)))
        status = tn__fail_memory(OPERATION, (size_t)p->count * sizeof *p->moments);
    return tn__extension_of(&tn__profile_kind, p, status);
}
