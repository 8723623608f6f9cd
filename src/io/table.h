/* SPDX-License-Identifier: MIT */
/* The parser of tables, over bytes in memory: what the reader of files calls, and a fuzzer; and its two halves. */
#ifndef TN_IO_TABLE_H
#define TN_IO_TABLE_H

#include <tanso/table.h>

/* Parses text, which is changed, and behind which a byte more is writable; `name` stands for the file in messages.
 * Never NULL. `opts` may be NULL. */
tn_table *tn__table_parse(const char *operation, const char *name, char *text, size_t size, const tn_table_opts *opts);

typedef struct tn__field {
    char *begin;
    size_t length;
} tn__field;

/* A text, and the fields that it was cut into. */
typedef struct tn__fields {
    const char *operation, *name;
    char *at, *end;
    char delimiter;
    long long line;      /* of what is read, from 1 */
    tn__field *fields;   /* of all lines */
    size_t count, room;
    size_t width;        /* fields of a line; 0: none is read yet */
    long long *lines;    /* where each row begins */
    size_t rows, row_room;
} tn__fields;

/* Cuts [at, end) up. Lists are the caller's to free, whatever it gives. */
tn_status tn__fields_take(tn__fields *fields);

#endif
