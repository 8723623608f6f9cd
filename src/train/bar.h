/* SPDX-License-Identifier: MIT */
/* A progress bar of four lines, which are drawn over again and again; whatever prints below it wipes it first. */
#ifndef TN_TRAIN_BAR_H
#define TN_TRAIN_BAR_H

#include <stdio.h>
#include <tanso/base.h>
#include "core/memory.h"

/* The speed is that over so many drawings. */
#define TN__BAR_MEMORY 100
/* Wipes from the cursor to the end of the screen. */
#define TN__WIPE       "\033[J"

typedef struct tn__bar {
    FILE *stream; /* NULL: silent, as where there is no terminal */
    int length;   /* of the bars, where the terminal is wide enough */
    struct {
        double at;
        int64_t iteration;
    } drawn[TN__BAR_MEMORY];
    int64_t drawings;
} tn__bar;

/* Where a run stands. */
typedef struct tn__standing {
    int64_t iteration;
    double epoch_detail;
    double total; /* epochs or iterations in all; 0: not known */
    bool epochs;  /* what `total` counts */
} tn__standing;

/* NULL stands for stdout; silent unless that is a terminal. */
void tn__bar_begin(tn__bar *bar, FILE *stream, int length);
/* The four lines, at most `columns` wide, or two without a total; `now` in seconds of any clock. */
void tn__bar_text(tn__bar *bar, const tn__standing *where, double now, int columns, tn__text *out);
void tn__bar_draw(tn__bar *bar, const tn__standing *where, double now);
void tn__bar_wipe(tn__bar *bar);

#endif
