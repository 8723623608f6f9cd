/* SPDX-License-Identifier: MIT */
/*
 * Files that TensorBoard reads: records of a length, a masked CRC32C of it, a protocol buffer message "Event", and a
 * masked CRC32C of that (tensorflow/core/lib/io/record_writer, tensorflow/core/util/event.proto).
 */
#ifndef TN_TRAIN_EVENTS_H
#define TN_TRAIN_EVENTS_H

#include <stdio.h>
#include <tanso/base.h>

typedef struct tn__events {
    FILE *file;
    char *path;
} tn__events;

/* A new file in a folder, named by time and process. `step` > 0: a run that goes on; what other files of the folder say
 * of later steps does not count any more. */
tn_status tn__events_open(tn__events *events, const char *folder, int64_t step);
/* A value of a curve; lasts in the file from the next tn__events_flush on. */
tn_status tn__events_scalar(tn__events *events, const char *tag, double value, int64_t step);
tn_status tn__events_flush(tn__events *events);
/* NULL file: does nothing. */
void tn__events_close(tn__events *events);

#endif
