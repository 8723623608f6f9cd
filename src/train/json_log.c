/* SPDX-License-Identifier: MIT */
/* The log's file, see entry.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/error.h"
#include "core/log.h"
#include "core/number.h"
#include "engine/text/digits.h"
#include "io/file.h"
#include "train/entry.h"

#define OPERATION  "log_report"
#define END        "\n]\n"
/* Seconds that writing is put off for what it costs. */
#define LONGEST_DELAY 60.0
/* Figures, at most: as many as take some microseconds, so that no entry takes much longer than another. */
#define MOST_WAITING 256

void tn__json_number(double value, char text[32])
{
    if (!isfinite(value)) {
        strcpy(text, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    tn__digits d = tn__digits_shortest(value, TN_FLOAT64);
    char *at = text;
    if (signbit(value))
        *at++ = '-';
    bool power = d.exponent < -4 || d.exponent >= 16;
    int before = power || d.exponent < 0 ? 1 : d.exponent + 1; /* digits before the point */
    int zeros = power || d.exponent >= 0 ? 0 : -d.exponent;    /* 0.00d: that before the point is one of them */
    int shown = 0;
    for (int i = 0; i < before; i++)
        *at++ = zeros ? '0' : shown < d.count ? d.digit[shown++] : '0';
    if (!power || shown < d.count)
        *at++ = '.';
    for (int i = 1; i < zeros; i++)
        *at++ = '0';
    if (!power && shown == d.count)
        *at++ = '0';
    while (shown < d.count)
        *at++ = d.digit[shown++];
    *at = '\0';
    if (power)
        sprintf(at, "e%c%02d", d.exponent < 0 ? '-' : '+', d.exponent < 0 ? -d.exponent : d.exponent);
}

static void put_string(tn__text *out, const char *text)
{
    tn__text_add(out, "\"");
    while (*text) {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
            plain++;
        tn__text_addn(out, text, plain);
        text += plain;
        if (*text)
            tn__text_addf(out, *text < ' ' ? "\\u%04x" : "\\%c", (unsigned)*text);
        text += *text != '\0';
    }
    tn__text_add(out, "\"");
}

static void put_entry(tn__text *out, const tn__figure *figures, int count, bool first)
{
    tn__text_add(out, first ? "[\n    {" : ",\n    {");
    for (int i = 0; i < count; i++) {
        char number[32];
        tn__text_add(out, i ? ",\n        " : "\n        ");
        put_string(out, figures[i].key);
        if (figures[i].whole)
            tn__print_whole(number, (int64_t)figures[i].value);
        else
            tn__json_number(figures[i].value, number);
        tn__text_add(out, ": ");
        tn__text_add(out, number);
    }
    tn__text_add(out, count ? "\n    }" : "}");
}

/* ---- entries that wait ---- */

/* The key as the log keeps it; NULL without memory. They come in the same order each time. */
static const char *keep_key(tn__json_log *log, const char *key)
{
    for (size_t i = 0; i < log->key_count; i++) {
        size_t at = (log->next_key + i) % log->key_count;
        if (strcmp(log->key[at], key) == 0) {
            log->next_key = at + 1;
            return log->key[at];
        }
    }
    char *copy = tn__strdup(key);
    if (!copy || !tn__grow((void **)&log->key, &log->key_capacity, log->key_count + 1, sizeof *log->key)) {
        tn__free(copy);
        return NULL;
    }
    log->next_key = log->key_count + 1;
    return log->key[log->key_count++] = copy;
}

static tn_status wait_for_others(tn__json_log *log, const tn__figure *figures, int count)
{
    size_t before = log->waiting.count, after = before + 1 + (size_t)count;
    if (!tn__grow((void **)&log->waiting.figure, &log->waiting.capacity, after, sizeof *log->waiting.figure))
        return tn__fail_memory(OPERATION, after * sizeof *log->waiting.figure);
    tn__figure *to = log->waiting.figure + before;
    *to = (tn__figure){.value = count};
    for (int i = 0; i < count; i++) {
        to[1 + i] = figures[i];
        to[1 + i].key = keep_key(log, figures[i].key);
        if (!to[1 + i].key)
            return tn__fail_memory(OPERATION, strlen(figures[i].key));
    }
    log->waiting.count = after;
    return TN_OK;
}

tn_status tn__json_log_list(tn__json_log *log)
{
    size_t before = log->list.length;
    int64_t entries = log->entries;
    for (size_t i = 0; i < log->waiting.count; i += 1 + (size_t)log->waiting.figure[i].value)
        put_entry(&log->list, log->waiting.figure + i + 1, (int)log->waiting.figure[i].value, entries++ == 0);
    if (log->list.failed)
        return tn__fail_memory(OPERATION, log->list.capacity);
    log->waiting.count = 0;
    log->size += (int64_t)(log->list.length - before);
    log->entries = entries;
    return TN_OK;
}

/* ---- the file ---- */

static tn_status write_at(int fd, const char *data, size_t bytes, int64_t at, const char *path)
{
    while (bytes > 0) {
        ssize_t done = pwrite(fd, data, bytes, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return tn__fail_errno(OPERATION, "write", path, done < 0 ? errno : ENOSPC);
        data += done;
        bytes -= (size_t)done;
        at += done;
    }
    return TN_OK;
}

/* `text` goes to `size`; what may be behind it goes away. */
static tn_status write_end(const tn__json_log *log, const tn__text *text, int64_t size)
{
    int fd = open(log->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return tn__fail_errno(OPERATION, "open", log->path, errno);
    struct stat file;
    int64_t end = size + (int64_t)text->length;
    tn_status status = write_at(fd, text->data, text->length, size, log->path);
    if (status == TN_OK && fstat(fd, &file) == 0 && file.st_size > end && ftruncate(fd, end) != 0)
        status = tn__fail_errno(OPERATION, "write", log->path, errno);
    if (close(fd) != 0 && status == TN_OK)
        status = tn__fail_errno(OPERATION, "write", log->path, errno);
    return status;
}

/* Beside, and renamed: the file is the old list or the new one. It is not synced each time, which takes longer than an
 * epoch of a small network. */
static tn_status replace(const tn__json_log *log)
{
    tn__text whole = {0};
    tn__text_addn(&whole, log->list.data, log->list.length);
    tn__text_add(&whole, END);
    return tn__file_write_picture(OPERATION, log->path, &whole);
}

uint64_t tn__sum_of(uint64_t sum, const char *data, size_t bytes)
{
    sum = sum ? sum : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

bool tn__sum_of_file(int fd, int64_t bytes, uint64_t *sum)
{
    char part[4096];
    *sum = 0;
    for (int64_t at = 0; at < bytes;) {
        int64_t left = bytes - at;
        ssize_t got = pread(fd, part, left < (int64_t)sizeof part ? (size_t)left : sizeof part, at);
        if (got <= 0)
            return false;
        *sum = tn__sum_of(*sum, part, (size_t)got);
        at += got;
    }
    return true;
}

void tn__json_log_sum(tn__json_log *log)
{
    if (log->list.data && log->summed < log->size)
        log->sum = tn__sum_of(log->sum, log->list.data + (log->summed - log->from), (size_t)(log->size - log->summed));
    log->summed = log->size;
}

static bool has_at(int fd, int64_t at, char wanted)
{
    char found;
    return pread(fd, &found, 1, at) == 1 && found == wanted;
}

/* Does a file begin with the list? Its sum is known then, also where the snapshot of an older version had none. */
static bool begins_with(int fd, tn__json_log *log)
{
    uint64_t sum;
    if (!has_at(fd, 0, '[') || !has_at(fd, log->size - 1, '}') || !tn__sum_of_file(fd, log->size, &sum) ||
        (log->sum && sum != log->sum))
        return false;
    log->sum = sum;
    log->summed = log->size;
    return true;
}

/* A long list that is gone on from: the file must have what it had, and loses what came later. One that is not there
 * begins anew. */
static tn_status cut(tn__json_log *log)
{
    int fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would be waited for */
    if (fd < 0 && errno == ENOENT) {
        tn__log(TN__LOG_WARN, OPERATION,
                "the run goes on from a log of %lld entries in '%s', which is not there: that begins anew",
                (long long)log->entries, log->path);
        log->entries = log->size = log->from = log->summed = 0;
        log->sum = 0;
        return TN_OK;
    }
    bool there = fd >= 0 && begins_with(fd, log);
    if (fd >= 0)
        close(fd);
    if (!there)
        return tn__fail(TN_ERR_FORMAT, OPERATION,
                        "the run goes on from a log of %lld entries, and '%s' does not hold them: bring that file "
                        "back, or move this one away, and the log begins anew",
                        (long long)log->entries, log->path);
    tn__text end = {0};
    tn__text_add(&end, END);
    tn_status status = end.failed ? tn__fail_memory(OPERATION, sizeof END) : write_end(log, &end, log->size);
    tn__free(end.data);
    return status;
}

tn_status tn__json_log_open(tn__json_log *log, const char *path)
{
    tn__free(log->path);
    log->path = tn__strdup(path);
    if (!log->path)
        return tn__fail_memory(OPERATION, strlen(path) + 1);
    log->from = log->list.data ? 0 : log->size;
    if (log->entries)
        return log->from ? cut(log) : replace(log);
    /* The file of an earlier run stays until there is an entry. */
    char *probe;
    tn_status status = tn__file_temporary(OPERATION, path, &probe);
    if (status == TN_OK)
        tn__file_discard(probe);
    return status;
}

/* The part of a long list that is in memory goes behind what the file has. */
static tn_status append(tn__json_log *log)
{
    size_t length = log->list.length;
    tn__text_add(&log->list, END);
    tn_status status = log->list.failed ? tn__fail_memory(OPERATION, log->list.capacity)
                                        : write_end(log, &log->list, log->from);
    log->list.length = length;
    return status;
}

tn_status tn__json_log_settle(tn__json_log *log, double now)
{
    if (!log->behind)
        return TN_OK;
    if (!tn__pace_due(&log->pace, LONGEST_DELAY, now))
        return TN_OK;
    double began = tn__seconds();
    tn_status status = tn__json_log_list(log);
    if (status == TN_OK)
        status = log->from ? append(log) : replace(log);
    log->behind = status != TN_OK;
    tn__pace_note(&log->pace, began);
    if (status != TN_OK || log->size <= TN__SHORT_LOG)
        return status;
    tn__json_log_sum(log);
    tn__free(log->list.data);
    log->list = (tn__text){0};
    log->from = log->size;
    return TN_OK;
}

tn_status tn__json_log_add(tn__json_log *log, const tn__figure *figures, int count, double now)
{
    if (!log->path)
        return TN_OK;
    tn_status status = wait_for_others(log, figures, count);
    if (status == TN_OK && log->waiting.count > MOST_WAITING)
        status = tn__json_log_list(log);
    if (status != TN_OK)
        return status;
    log->behind = true;
    return tn__json_log_settle(log, now);
}

void tn__json_log_close(tn__json_log *log)
{
    for (size_t i = 0; i < log->key_count; i++)
        tn__free(log->key[i]);
    tn__free(log->key);
    tn__free(log->waiting.figure);
    tn__free(log->path);
    tn__free(log->list.data);
    *log = (tn__json_log){0};
}
