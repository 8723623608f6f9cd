/* SPDX-License-Identifier: MIT */
/* What a run of tn_train says in lines: an epoch each, and within epochs that take long where there is no bar. */
#ifndef TN_TRAIN_LINES_H
#define TN_TRAIN_LINES_H

#include <stdio.h>
#include <tanso/train.h>

typedef struct tn__lines {
    FILE *stream;  /* NULL: silent */
    bool terminal; /* there a progress bar may stand below, which each line wipes */
    int epochs;
    int64_t samples; /* of an epoch */
    double pace;     /* seconds of an epoch before, test included; 0: none yet */
    double next;     /* when a line within an epoch is due */
} tn__lines;

/* `samples` is the number of training samples an epoch. */
void tn__lines_begin(tn__lines *lines, FILE *stream, int epochs, int64_t samples);
/* A line of text. */
void tn__lines_say(tn__lines *lines, const char *format, ...) TN_PRINTF(2, 3);
/* `done` of epoch `epoch`'s samples are done, `here` of them in `spent` seconds. */
void tn__line_within(tn__lines *lines, int epoch, int64_t done, int64_t here, double spent);
void tn__line_of_epoch(tn__lines *lines, const tn_epoch *figures);

#endif
