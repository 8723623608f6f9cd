/* SPDX-License-Identifier: MIT */
/* An entry of a log: numbers by name, in order; how the JSON list of a run keeps it, and how a table shows it. */
#ifndef TN_TRAIN_ENTRY_H
#define TN_TRAIN_ENTRY_H

#include <stdio.h>
#include <tanso/base.h>
#include "core/memory.h"
#include "train/pace.h"

typedef struct tn__figure {
    const char *key; /* borrowed */
    double value;
    bool whole; /* an integer: written without a point */
} tn__figure;

/* ---- json_log.c ---- */

/*
 * A JSON list of objects in a file, indented by 4, as Chainer's log: the shortest digits that read back, NaN as NaN.
 *
 * While the list is short, it is held in memory, and replaces the file by a whole new one. A long list is added to in
 * place, by one write of what is new and the closing bracket, so that an entry takes the same time however many there
 * are. What a crash left of such a write is cut off when the run is resumed.
 */
#define TN__SHORT_LOG (64 * 1024) /* bytes of a list that is short */
typedef struct tn__json_log {
    char *path; /* owned; NULL: nothing is written */
    int64_t entries;
    int64_t size;  /* bytes up to the last entry's closing brace */
    int64_t from;  /* of these, the ones that are in the file alone; 0: the list is short */
    tn__text list; /* the others */
    uint64_t sum;  /* of the first `summed` bytes (FNV-1a), by which the file is told from another one; 0: not known */
    int64_t summed;
    struct {
        tn__figure *figure; /* each entry begins with one of no key, whose value is how many follow */
        size_t count, capacity;
    } waiting; /* entries to come behind these: the text of many takes less time than that of each */
    char **key;    /* that these have */
    size_t key_count, key_capacity, next_key;
    bool behind;   /* the file lacks some of what there is */
    tn__pace pace; /* of writing it */
} tn__json_log;

/* Begins an empty list, or goes on from one that was resumed; looks whether the file can be written. */
tn_status tn__json_log_open(tn__json_log *log, const char *path);
/* The file gets it now, or as soon as that costs little (pace.h); `now` as there, INFINITY: at once. */
tn_status tn__json_log_add(tn__json_log *log, const tn__figure *figures, int count, double now);
/* Makes the sum that of the whole list. */
void tn__json_log_sum(tn__json_log *log);
/* What waits becomes part of the list, and of `entries` and `size`. */
tn_status tn__json_log_list(tn__json_log *log);
/* Writes what was put off, if it is time. */
tn_status tn__json_log_settle(tn__json_log *log, double now);
void tn__json_log_close(tn__json_log *log);
/* Fowler, Noll and Vo's sum (FNV-1a) of these bytes behind those of `sum`, 0: of none; it goes on from where it was. */
uint64_t tn__sum_of(uint64_t sum, const char *data, size_t bytes);
/* That of a file's first bytes; false if it has fewer, or can't be read. */
bool tn__sum_of_file(int fd, int64_t bytes, uint64_t *sum);
/* A double as JSON has it in Python's words: "1.0", "1e-05", "NaN". */
void tn__json_number(double value, char text[32]);

/* ---- table.c ---- */

/* Lines of a table: columns as wide as their names, 10 at least, with two blanks between. */
void tn__table_header(tn__text *out, int count, const char *const *names);
/* A figure without a key is a blank field. */
void tn__table_row(tn__text *out, int count, const char *const *names, const tn__figure *figures);

#endif
