/* SPDX-License-Identifier: MIT */
/* A training run: what its parts (updates, evaluation, report, files) share. */
#ifndef TN_TRAIN_RUN_H
#define TN_TRAIN_RUN_H

#include <tanso/train.h>
#include "train/history.h"
#include "train/report.h"
#include "train/schedule.h"
#include "train/words.h"

typedef struct tn__run {
    tn__words words;
    tn_device device;
    int epochs;
    bool classifies; /* integer targets */
    const tn__schedule *schedule;
    double first_rate; /* the optimizer's learning rate as it was given */
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *train, *test;
    tn_meter *loss, *accuracy;
    tn__history history;
    tn__report report;
    volatile const int *stop;
    const char *out;                          /* NULL: nothing is written */
    char *snapshot_path;                      /* NULL without `out` */
    int folder;                               /* `out`, open and locked; -1: not */
    bool saves;                               /* whether this build can write archives */
    int snapshot_epoch;                       /* the epoch after which the snapshot was made, 0: none */
    double checkpoint_ended, checkpoint_cost; /* of tn__seconds */
} tn__run;


/* ---- updates.c ---- */
/* One epoch of updates; the mean loss into *loss. */
tn_status tn__run_updates(tn__run *run, int epoch, double *loss);

/* ---- evaluate.c ---- */
/* The loss of a task. */
tn_array *tn__task_loss(bool classifies, const tn_array *y, const tn_array *t);
/* Mean loss and accuracy over one round of a loader. */
tn_status tn__evaluate_loader(tn_layer *net, tn_loader *loader, bool classifies, tn_device device, double *loss,
                              double *accuracy);

/* ---- output.c ---- */
/* Makes the folder, keeps other runs out of it, and sees that files can be written there; notes the paths. */
tn_status tn__output_open(tn__run *run);
/* Lets others in again. */
void tn__output_close(tn__run *run);
/* After an epoch: the log, and as often as is due, or `last`, the snapshot, the model and the curve. */
tn_status tn__output_epoch(tn__run *run, bool last);
/* After resuming: the log, the model and the curve as they were at the snapshot. */
tn_status tn__output_resumed(tn__run *run);

/* ---- curve.c ---- */
/* Draws the history as an SVG picture. */
tn_status tn__curve_write(const tn__history *history, bool classifies, const char *title, const char *path);

#endif
