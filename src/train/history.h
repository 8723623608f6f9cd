/* SPDX-License-Identifier: MIT */
/* The figures of every epoch of a run, as the log file and the snapshot keep them. */
#ifndef TN_TRAIN_HISTORY_H
#define TN_TRAIN_HISTORY_H

#include <tanso/io.h>
#include <tanso/train.h>

typedef struct tn__history {
    tn_epoch *rows;
    size_t count, capacity;
} tn__history;

void tn__history_free(tn__history *history);
tn_status tn__history_add(tn__history *history, const tn_epoch *row);
/* To and from an array of a snapshot. */
tn_status tn__history_archive(const tn__history *history, tn_archive *archive);
tn_status tn__history_restore(tn__history *history, const tn_archive *archive, const char *file);
/* Writes the log anew with all rows, or adds the last row to it: a JSON object a line, null for what is not finite. */
tn_status tn__history_write_log(const tn__history *history, const char *path);
tn_status tn__history_append_log(const tn__history *history, const char *path);

#endif
