/* SPDX-License-Identifier: MIT */
/* Entries of a log as a table on the terminal or in a file. Lines wait until the extension is called, by its trigger.
 * Called each iteration, it prints those of entries that come faster than anybody reads a few at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/log.h"
#include "io/file.h"
#include "train/bar.h"
#include "train/ext.h"

#define OPERATION "print_report"
/* Seconds that a line is put off for what printing costs, at most. */
#define LONGEST_DELAY 0.1
/* That wait: beyond them lines are made of them. */
#define MOST_ROWS     256

typedef struct print_report {
    tn__output output; /* NULL: the stream */
    tn__keys keys;
    char *log;
    FILE *stream, *file;
    bool terminal;   /* the stream is one, where a progress bar may be below */
    bool headed;     /* the header is there, in this process or in the file */
    bool checked;    /* keys that the first entry lacks were told of */
    bool each;       /* it is called each iteration */
    double from;     /* the iteration that the run goes on from, 0 for a new one */
    tn__pace pace;   /* of printing then */
    struct {
        tn__figure *row; /* one of each key, which is NULL where there is none */
        size_t count, capacity;
    } figures;       /* of entries that are no lines yet */
    char *waiting;   /* lines that are not printed yet */
    struct {
        int64_t bytes;
        uint64_t sum;
    } written;       /* to the file, which is told by it from another one */
    tn_trainer *trainer; /* NULL: of no run yet */
} print_report;

/* Before training there are no losses yet, and no column is missed. */
static void check(print_report *p, const tn_observation *entry)
{
    if (tn_observation_number(entry, "iteration") == 0)
        return;
    for (int i = 0; i < p->keys.count && !p->checked; i++)
        if (!tn_observation_has(entry, p->keys.names[i]))
            tn__warn_missing(OPERATION, p->keys.names[i], entry, "its column stays blank until it comes");
    p->checked = true;
}

/* The rows as lines. */
static tn_status write_rows(print_report *p)
{
    if (!p->figures.count)
        return TN_OK;
    int count = p->keys.count;
    tn__text text = {0};
    tn__text_add(&text, p->waiting ? p->waiting : "");
    if (!p->headed)
        tn__table_header(&text, count, (const char *const *)p->keys.names);
    for (size_t i = 0; i < p->figures.count; i++)
        tn__table_row(&text, count, (const char *const *)p->keys.names, p->figures.row + i * (size_t)count);
    char *lines = tn__text_take(&text);
    if (!lines)
        return tn__fail_memory(OPERATION, 0);
    p->figures.count = 0;
    p->headed = true;
    tn__free(p->waiting);
    p->waiting = lines;
    return TN_OK;
}

static tn_status note(tn_trainer *trainer, const tn_observation *entry, void *user)
{
    (void)trainer;
    print_report *p = user;
    if (!p->output.file && p->from && tn_observation_number(entry, "iteration") <= p->from)
        return TN_OK; /* on a stream the other run has printed it, see serialize */
    size_t count = (size_t)p->keys.count, figures = (p->figures.count + 1) * count;
    check(p, entry);
    if (!tn__grow((void **)&p->figures.row, &p->figures.capacity, figures, sizeof *p->figures.row))
        return tn__fail_memory(OPERATION, figures * sizeof *p->figures.row);
    tn__figure *row = p->figures.row + p->figures.count * count;
    for (size_t i = 0; i < count; i++)
        row[i] = tn_observation_has(entry, p->keys.names[i]) ? tn__entry_figure(entry, p->keys.names[i])
                                                             : (tn__figure){0};
    p->figures.count++;
    return p->figures.count < MOST_ROWS ? TN_OK : write_rows(p);
}

static tn_status print(print_report *p)
{
    tn_status status = write_rows(p);
    if (status != TN_OK || !p->waiting || (p->output.file && !p->file)) /* the run has failed before it was opened */
        return status;
    FILE *stream = p->file ? p->file : p->stream;
    if (p->terminal)
        fputs(TN__WIPE, stream);
    fputs(p->waiting, stream);
    if (p->file) {
        p->written.sum = tn__sum_of(p->written.sum, p->waiting, strlen(p->waiting));
        p->written.bytes += (int64_t)strlen(p->waiting);
    }
    bool failed = fflush(stream) != 0;
    tn__free(p->waiting);
    p->waiting = NULL;
    if (failed)
        return tn__fail_errno(OPERATION, "write", p->file ? p->output.file : "the table", errno);
    return TN_OK;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    print_report *p = user;
    tn_status status = p->each ? TN_OK : tn__log_all(trainer, p->log);
    if (status != TN_OK || (!p->figures.count && !p->waiting))
        return status;
    if (!p->each)
        return print(p);
    if (!tn__pace_due(&p->pace, LONGEST_DELAY, tn__trainer_now(trainer)))
        return TN_OK;
    double began = tn__seconds();
    status = print(p);
    tn__pace_note(&p->pace, began);
    return status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    print_report *p = user;
    tn__log_all(trainer, p->log);
    print(p);
}

/* Whether a file begins with what has been printed; of an older version's snapshot no more than its length is known. */
static bool holds(const char *path, print_report *p)
{
    uint64_t sum;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would be waited for */
    bool same = fd >= 0 && tn__sum_of_file(fd, p->written.bytes, &sum) && (!p->written.sum || sum == p->written.sum);
    if (fd >= 0)
        close(fd);
    if (same)
        p->written.sum = sum;
    return same;
}

/* A table that begins anew, with the lines that wait. */
static tn_status begin_anew(print_report *p)
{
    tn__text text = {0};
    if (p->waiting && p->written.bytes) { /* else the header is among them */
        tn__table_header(&text, p->keys.count, (const char *const *)p->keys.names);
        tn__text_add(&text, p->waiting);
        char *lines = tn__text_take(&text);
        if (!lines)
            return tn__fail_memory(OPERATION, 0);
        tn__free(p->waiting);
        p->waiting = lines;
    }
    p->headed = p->headed && p->waiting;
    p->written.bytes = 0;
    p->written.sum = 0;
    return TN_OK;
}

/* A file goes on where the snapshot's run had it. */
static tn_status open_file(print_report *p, const tn_trainer *trainer)
{
    char *path = tn__output_path(trainer, p->output.file);
    if (!path)
        return TN_ERR_MEMORY;
    if (p->file)
        fclose(p->file);
    bool there = p->written.bytes > 0 && holds(path, p), goes_on = there && truncate(path, p->written.bytes) == 0;
    if (p->written.bytes > 0 && !there)
        tn__log(TN__LOG_WARN, OPERATION,
                "the run goes on from a table of %lld bytes, which '%s' does not hold: that begins anew",
                (long long)p->written.bytes, path);
    p->file = fopen(path, goes_on ? "ae" : "we");
    tn_status status = p->file ? TN_OK : tn__fail_errno(OPERATION, "write", path, errno);
    tn__free(path);
    return status == TN_OK && !goes_on ? begin_anew(p) : status;
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    print_report *p = user;
    tn_status status = tn__output_claim(trainer, &p->output);
    if (status == TN_OK)
        status = tn__log_listen(trainer, OPERATION, p->log, note, p);
    p->trainer = trainer;
    if (status == TN_OK && p->output.file)
        status = open_file(p, trainer);
    p->from = (double)tn_trainer_iteration(trainer);
    p->terminal = !p->file && p->stream && isatty(fileno(p->stream));
    p->each = tn__called_each(trainer, p);
    p->pace = (tn__pace){0};
    return status;
}

/* A stream has all entries of the run up to a snapshot before that is gathered: one that goes on from there could not
 * know whether those that wait here were printed before this one ended. */
static tn_status print_all(print_report *p)
{
    tn_status status = tn__log_all(p->trainer, p->log);
    return status == TN_OK ? print(p) : status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    print_report *p = user;
    bool on_stream = !p->output.file;
    tn_status status = s->loading ? TN_OK : on_stream && p->trainer ? print_all(p) : write_rows(p);
    if (s->loading)
        p->figures.count = 0;
    if (status == TN_OK)
        status = tn__serialize_count(s, "_printed", &p->written.bytes);
    p->written.sum = s->loading ? 0 : p->written.sum;
    if (status == TN_OK && (!s->loading || tn_serializer_has(s, "_sum")))
        status = tn_serialize_int(s, "_sum", (int64_t *)&p->written.sum);
    if (status == TN_OK)
        status = tn_serialize_bool(s, "_headed", &p->headed);
    if (status == TN_OK)
        status = tn_serialize_text(s, "_waiting", &p->waiting);
    if (s->loading && on_stream) { /* of a terminal of another day, or of a file */
        tn__free(p->waiting);
        p->waiting = NULL;
        p->headed = false;
        p->written.bytes = 0;
        p->written.sum = 0;
    }
    return status;
}

static void free_report(void *user)
{
    print_report *p = user;
    if (p->file)
        fclose(p->file);
    tn__keys_free(&p->keys);
    tn__free(p->log);
    tn__free(p->figures.row);
    tn__free(p->waiting);
    tn__free(p->output.file);
    tn__free(p);
}

const tn_extension_kind tn__print_report_kind = TN__REPORT_KIND("PrintReport");

tn_extension *tn_print_report_with(int count, const char *const *keys, const tn_print_report_opts *opts)
{
    static const tn_print_report_opts defaults;
    opts = opts ? opts : &defaults;
    print_report *p = tn__calloc(1, sizeof *p);
    if (!p)
        return tn__extension_of(&tn__print_report_kind, NULL, TN_ERR_MEMORY);
    tn_status status = tn__keys_copy(&p->keys, OPERATION, count, keys);
    p->stream = opts->stream ? opts->stream : stdout;
    p->log = tn__text_option(opts->log, NULL, &status);
    p->output.file = tn__file_option("print_report", opts->file, NULL, &status);
    if (opts->stream && opts->file)
        status = tn__fail(TN_ERR_VALUE, OPERATION, "expected a .stream or a .file, got both");
    return tn__extension_quiet(tn__extension_of(&tn__print_report_kind, p, status));
}
