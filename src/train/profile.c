/* SPDX-License-Identifier: MIT */
/* Measuring some iterations of a run: a table, and a trace that browsers show. */
#include <inttypes.h>
#include <tanso/device.h>
#include <tanso/stream.h>
#include <tanso/engine.h>
#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "train/ext.h"
#include "train/generations.h"

#define OPERATION "profile"

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
} profile;

/* The device is waited for: what an iteration has started counts as its own. */
static tn_status take(profile *p, const tn_trainer *trainer)
{
    moment *m = &p->moments[p->taken++];
    const tn_optimizer *optimizer = tn_updater_optimizer_at(tn_trainer_updater(trainer), 0).optimizer;
    tn_device device = optimizer ? tn_optimizer_device(optimizer) : tn_current_device();
    tn_status status = tn_synchronize(device);
    m->seconds = tn__seconds();
    m->counters = tn_engine_stats();
    m->memory = tn_memory_stats(device);
    return status;
}

static double milliseconds(const moment *from, const moment *to) { return 1e3 * (to->seconds - from->seconds); }

static void put_table(const profile *p, tn__text *out)
{
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
}

/* The format of Chrome's traces: complete events ("X") with times in microseconds, and counters ("C"). */
static void put_trace(const profile *p, tn__text *out)
{
    tn__text_add(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (int64_t i = 1; i < p->taken; i++) {
        const moment *a = &p->moments[i - 1], *b = &p->moments[i];
        double start = 1e6 * (a->seconds - p->moments[0].seconds);
        tn__text_addf(out,
                      "%s  {\"name\": \"iteration %" PRId64 "\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, "
                      "\"dur\": %.3f, \"args\": {\"evaluations\": %" PRIu64 ", \"compiled\": %" PRIu64
                      ", \"kernels\": %" PRIu64 "}},\n",
                      i > 1 ? ",\n" : "", p->began + i, start, 1e3 * milliseconds(a, b),
                      b->counters.evaluations - a->counters.evaluations,
                      b->counters.plan_misses - a->counters.plan_misses, b->counters.kernels - a->counters.kernels);
        tn__text_addf(out,
                      "  {\"name\": \"bytes\", \"ph\": \"C\", \"pid\": 1, \"ts\": %.3f, \"args\": {\"used\": %zu}}",
                      start, b->memory.used);
    }
    tn__text_add(out, "\n]}\n");
}

static tn_status write(profile *p, const tn_trainer *trainer, const char *ending,
                       void (*put)(const profile *p, tn__text *out))
{
    tn__text text = {0};
    put(p, &text);
    char *path = tn__format("%s/%s%s", tn_trainer_out(trainer), p->output.file, ending);
    tn_status status = TN_OK;
    if (path)
        status = tn__file_write_text(OPERATION, path, &text);
    else
        tn__free(text.data), status = tn__fail_memory(OPERATION, 0);
    tn__free(path);
    return status;
}

static tn_status write_both(profile *p, const tn_trainer *trainer)
{
    tn_status status = p->taken > 1 ? write(p, trainer, ".txt", put_table) : TN_OK;
    if (status == TN_OK && p->taken > 1)
        status = write(p, trainer, ".json", put_trace);
    p->taken = 0;
    return status;
}

/* After all other extensions, so that an iteration is measured with what they do. */
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

/* What a killed run has left of both files. */
static void clear(const profile *p, const tn_trainer *trainer)
{
    static const char *const endings[] = {".txt", ".json"};
    for (int i = 0; i < 2; i++) {
        char *name = tn__format("%s%s", p->output.file, endings[i]);
        if (name)
            tn__generations_clear(tn_trainer_out(trainer), name);
        tn__free(name);
    }
}

/* A run that is resumed among them measures what is left. */
static tn_status initialize(tn_trainer *trainer, void *user)
{
    profile *p = user;
    int64_t done = tn_trainer_iteration(trainer);
    p->taken = 0;
    p->began = done;
    tn_status status = tn__output_claim(trainer, &p->output);
    clear(p, trainer);
    return status == TN_OK && done >= p->first - 1 && done < p->first + p->count - 1 ? take(p, trainer) : status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    const profile *p = user;
    int64_t done = tn_trainer_iteration(trainer);
    if (done < p->first && !trainer->stopped && !trainer->failure && !trainer->quiet)
        tn__log(TN__LOG_WARN, OPERATION,
                "nothing was measured: the run has ended after %" PRId64 " iterations, and .first is %" PRId64, done,
                p->first);
    write_both(user, trainer);
}

static void free_profile(void *user)
{
    profile *p = user;
    tn__free(p->moments);
    tn__free(p->output.file);
    tn__free(p);
}

const tn_extension_kind tn__profile_kind = {.name = "Profile",
                                            .priority = TN_PRIORITY_READER,
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
    p->output.file = tn__text_option(opts ? opts->file : NULL, "profile", &status);
    if (p->first < 1 || p->count < 1 || p->count > 1000000)
        status = tn__fail(TN_ERR_VALUE, OPERATION,
                          "expected .first from 1 on and 1 to 1000000 iterations, got %" PRId64 " and %" PRId64,
                          p->first, p->count);
    else if (!(p->moments = tn__alloc((size_t)(p->count + 1) * sizeof *p->moments)))
        status = tn__fail_memory(OPERATION, (size_t)p->count * sizeof *p->moments);
    return tn__extension_of(&tn__profile_kind, p, status);
}
