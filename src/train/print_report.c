/* SPDX-License-Identifier: MIT */
/* Entries of a log as a table on the terminal or in a file. Lines wait until the extension is called, by its trigger.
 * Called each iteration, it prints those of entries that come faster than anybody reads a few at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
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
    bool headed;     /* the header is there, in this run or in the file */
    bool checked;    /* keys that the first entry lacks were told of */
    bool each;       /* it is called each iteration */
    double from;     /* the iteration that the run goes on from, 0 for a new one */
    tn__pace pace;   /* of printing then */
    tn__figure *rows; /* of entries that are no lines yet, one of each key, which is NULL where there is none */
    size_t row_count, row_capacity;
    char *waiting;   /* lines that are not printed yet */
    int64_t printed; /* bytes of the file */
} print_report;

static void check(print_report *p, const tn_observation *entry)
{
    for (int i = 0; i < p->keys.count && !p->checked; i++)
        if (!tn_observation_has(entry, p->keys.names[i]))
            tn__warn_missing(OPERATION, p->keys.names[i], entry, "its column stays blank until it comes");
    p->checked = true;
}

/* The rows as lines. */
static tn_status write_rows(print_report *p)
{
    if (!p->row_count)
        return TN_OK;
    int count = p->keys.count;
    tn__text text = {0};
    tn__text_add(&text, p->waiting ? p->waiting : "");
    if (!p->headed)
        tn__table_header(&text, count, (const char *const *)p->keys.names);
    for (size_t i = 0; i < p->row_count; i++)
        tn__table_row(&text, count, (const char *const *)p->keys.names, p->rows + i * (size_t)count);
    char *lines = tn__text_take(&text);
    if (!lines)
        return tn__fail_memory(OPERATION, 0);
    p->row_count = 0;
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
        return TN_OK; /* on a stream the other run has printed it */
    size_t count = (size_t)p->keys.count, figures = (p->row_count + 1) * count;
    check(p, entry);
    if (!tn__grow((void **)&p->rows, &p->row_capacity, figures, sizeof *p->rows))
        return tn__fail_memory(OPERATION, figures * sizeof *p->rows);
    tn__figure *row = p->rows + p->row_count * count;
    for (size_t i = 0; i < count; i++)
        row[i] = tn_observation_has(entry, p->keys.names[i]) ? tn__entry_figure(entry, p->keys.names[i])
                                                             : (tn__figure){0};
    p->row_count++;
    return p->row_count < MOST_ROWS ? TN_OK : write_rows(p);
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
    p->printed += (int64_t)strlen(p->waiting);
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
    if (status != TN_OK || (!p->row_count && !p->waiting))
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

/* A file goes on where the snapshot's run had it. */
static tn_status open_file(print_report *p, const tn_trainer *trainer)
{
    char *path = tn__output_path(trainer, p->output.file);
    if (!path)
        return TN_ERR_MEMORY;
    if (p->file)
        fclose(p->file);
    struct stat old;
    bool goes_on = p->printed > 0 && stat(path, &old) == 0 && old.st_size >= p->printed &&
                   truncate(path, p->printed) == 0;
    p->file = fopen(path, goes_on ? "ae" : "we");
    p->headed = p->headed && (goes_on || p->waiting);
    p->printed = goes_on ? p->printed : 0;
    tn_status status = p->file ? TN_OK : tn__fail_errno(OPERATION, "write", path, errno);
    tn__free(path);
    return status;
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    print_report *p = user;
    tn_status status = tn__output_claim(trainer, &p->output);
    if (status == TN_OK)
        status = tn__log_listen(trainer, OPERATION, p->log, note, p);
    p->headed = p->headed && (p->output.file || p->waiting); /* a terminal of another day has no header above */
    if (status == TN_OK && p->output.file)
        status = open_file(p, trainer);
    p->from = (double)tn_trainer_iteration(trainer);
    p->terminal = !p->file && p->stream && isatty(fileno(p->stream));
    p->each = tn__called_each(trainer, p);
    p->pace = (tn__pace){0};
    return status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    print_report *p = user;
    tn_status status = s->loading ? TN_OK : write_rows(p);
    if (s->loading)
        p->row_count = 0;
    if (status == TN_OK)
        status = tn__serialize_count(s, "_printed", &p->printed);
    if (status == TN_OK)
        status = tn_serialize_bool(s, "_headed", &p->headed);
    if (status == TN_OK)
        status = tn_serialize_text(s, "_waiting", &p->waiting);
    if (s->loading && !p->output.file) { /* as in note */
        tn__free(p->waiting);
        p->waiting = NULL;
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
    tn__free(p->rows);
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
    return tn__extension_quiet(tn__extension_of(&tn__print_report_kind, p, status));
}
