/* SPDX-License-Identifier: MIT */
/* What a run says while it goes on: a progress bar on a terminal, plain lines elsewhere, a line an epoch on both. */
#ifndef TN_TRAIN_REPORT_H
#define TN_TRAIN_REPORT_H

#include <stdio.h>
#include <tanso/train.h>

typedef struct tn__report {
    FILE *stream; /* NULL: silent */
    bool terminal;
    bool bar_shown; /* on the current line of the terminal */
    int epochs;
    int64_t samples;                     /* of an epoch */
    int64_t done;                        /* of this epoch */
    double epoch_began, next_draw, pace; /* pace: seconds of an epoch before, test included; 0: none yet */
} tn__report;

/* `samples` is the number of training samples an epoch. */
void tn__report_begin(tn__report *report, FILE *stream, int epochs, int64_t samples);
/* A line of text. */
void tn__report_line(tn__report *report, const char *format, ...) TN_PRINTF(2, 3);
void tn__report_epoch_begins(tn__report *report);
/* `size` samples more are done. */
void tn__report_step(tn__report *report, int epoch, int64_t size);
void tn__report_epoch(tn__report *report, const tn_epoch *figures);
/* Leaves the terminal's line clean. */
void tn__report_end(tn__report *report);

#endif
