/* SPDX-License-Identifier: MIT */
/* Text of a table, cut into fields where it lies: quotes are taken off in place, and a NUL ends each field. */
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "io/table.h"

/* Spreadsheets have no more columns. */
#define MOST_FIELDS 16384

static tn_status damaged(const tn__fields *r, long long line, const char *what)
{
    return tn__fail(TN_ERR_FORMAT, r->operation, "'%s', line %lld: %s", r->name, line, what);
}

/* What stands between double quotes, which *at is behind the first of; doubled ones are one. */
static tn_status take_quoted(tn__fields *r, tn__field *f)
{
    long long first = r->line;
    char *out = r->at;
    f->begin = out;
    while (r->at < r->end) {
        char c = *r->at++;
        if (c == '"' && !(r->at < r->end && *r->at == '"')) {
            f->length = (size_t)(out - f->begin);
            return r->at == r->end || *r->at == r->delimiter || *r->at == '\n' || *r->at == '\r'
                       ? TN_OK
                       : damaged(r, r->line, "text follows a closing quote: a quote within a quoted field is doubled");
        }
        r->at += c == '"';
        r->line += c == '\n';
        *out++ = c;
    }
    return damaged(r, first, "a quote is not closed");
}

static tn_status take_field(tn__fields *r)
{
    tn__field f = {.begin = r->at};
    tn_status status = TN_OK;
    if (r->at < r->end && *r->at == '"') {
        r->at++;
        status = take_quoted(r, &f);
    } else {
        while (r->at < r->end && *r->at != r->delimiter && *r->at != '\n')
            r->at++;
        f.length = (size_t)(r->at - f.begin);
        bool last = r->at == r->end || *r->at == '\n';
        f.length -= last && f.length && f.begin[f.length - 1] == '\r';
    }
    if (status == TN_OK && !tn__grow((void **)&r->fields, &r->room, r->count + 1, sizeof f))
        return tn__fail_memory(r->operation, r->count * sizeof f);
    if (status == TN_OK)
        r->fields[r->count++] = f;
    return status;
}

/* The fields of a line that is not blank; the byte behind each becomes a NUL when it is no longer needed. */
static tn_status take_line(tn__fields *r)
{
    size_t before = r->count;
    long long line = r->line;
    tn_status status = TN_OK;
    for (bool more = true; more && status == TN_OK;) {
        if ((status = take_field(r)) != TN_OK)
            break;
        r->at += r->at < r->end && *r->at == '\r'; /* behind a quote */
        more = r->at < r->end && *r->at == r->delimiter;
        char *stop = r->at;
        r->line += r->at < r->end && *r->at == '\n';
        r->at += r->at < r->end;
        *stop = '\0';
        r->fields[r->count - 1].begin[r->fields[r->count - 1].length] = '\0';
    }
    size_t width = r->count - before;
    if (status == TN_OK && r->width && width != r->width)
        return tn__fail(TN_ERR_FORMAT, r->operation, "'%s', line %lld: the number of fields is %zu, expected %zu",
                        r->name, line, width, r->width);
    if (status == TN_OK && width > MOST_FIELDS)
        return damaged(r, line, "there are more than 16,384 fields");
    r->width = width;
    if (status == TN_OK && !tn__grow((void **)&r->lines, &r->row_room, r->rows + 1, sizeof *r->lines))
        return tn__fail_memory(r->operation, r->rows * sizeof *r->lines);
    if (status == TN_OK)
        r->lines[r->rows++] = line;
    return status;
}

tn_status tn__fields_take(tn__fields *r)
{
    tn_status status = TN_OK;
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) /* UTF-8's mark */
        r->at += 3;
    if (memchr(r->at, 0, (size_t)(r->end - r->at)))
        return tn__fail(TN_ERR_FORMAT, r->operation, "'%s' has NUL bytes: it is no text of UTF-8", r->name);
    while (r->at < r->end && status == TN_OK) {
        bool return_first = *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n';
        if (*r->at != '\n' && !return_first) {
            status = take_line(r);
        } else {
            r->at += 1 + return_first;
            r->line++;
        }
    }
    return status;
}
