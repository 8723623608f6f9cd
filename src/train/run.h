/* SPDX-License-Identifier: MIT */
/* A run of tn_train: a trainer over a named dataset, with what its files (set-up, record, folder, configuration) share.
 */
#ifndef TN_TRAIN_RUN_H
#define TN_TRAIN_RUN_H

#include <tanso/extensions.h>
#include <tanso/train.h>
#include "core/plugin.h"
#include "train/config.h"
#include "train/history.h"
#include "train/lines.h"

/* Early stoppings of one run. */
#define TN__STOPPERS_MOST 4

typedef struct tn__run {
    tn__config config;
    tn_device device;
    const tn_device *devices; /* several that share minibatches, the first is `device`; NULL: one */
    tn_comm *comm;   /* of several ranks; NULL: this process alone */
    bool follows;    /* another rank writes and reports */
    int64_t share;   /* samples of a minibatch that are this rank's */
    int shard;       /* what ranks have in parts: tn_distribute_opts */
    int epochs;
    bool classifies; /* integer targets */
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *train, *test;
    tn_trainer *trainer;
    /* record.c */
    tn__history history;
    tn__lines lines;
    tn_summary *losses;    /* of the epoch under way, weighted by samples */
    double *rank_losses;   /* what each rank had added to them after iteration `told`: RANK_LOSS numbers a rank */
    int64_t told;
    int64_t looked;        /* the iteration whose loss was looked at last */
    double began, trained; /* the epoch, and its last update, by tn__seconds */
    double spent;          /* seconds of the epoch before the run was resumed */
    int64_t done;          /* samples of the epoch since `began` */
    /* stop.c */
    tn_trigger *stoppers[TN__STOPPERS_MOST];
    int stopper_count;
    bool stopped_early;
    /* output.c */
    const char *out;           /* NULL: nothing is written */
    char *snapshot_path;       /* NULL without `out` */
    int folder;                /* `out`, open and locked; -1: not */
    bool saves;                /* whether this build can write archives */
    bool guards;               /* files of an earlier run stay until the first epoch is done */
    tn_trigger *snapshot_every; /* of the configuration; NULL: as often as costs little */
    bool brought;              /* what ranks have in parts was brought together for a snapshot of those */
    tn_extension *snapshot;    /* the trainer's; NULL: none is made */
    int64_t resumed;           /* the iteration of the snapshot that the run goes on from; -1: none */
    int64_t written;           /* the iteration of the model and the curve in the folder; -1: none of this run */
    bool due;                  /* the model and the curve are to be written in this iteration */
    double checkpoint_began, checkpoint_ended, checkpoint_cost; /* by tn__seconds */
} tn__run;

/* Where an iteration is: "epoch 3" if it ended that one, else "step 5 of epoch 4". */
typedef struct tn__place {
    char text[64];
} tn__place;
tn__place tn__run_place(const tn__run *run, int64_t iteration);

/* ---- evaluate.c ---- */
/* The loss of a task. */
tn_array *tn__task_loss(bool classifies, const tn_array *y, const tn_array *t);

/* ---- record.c ---- */
/* The extension that keeps the run's history, says each epoch's line, and looks whether losses are finite. The run is
 * borrowed. */
tn_extension *tn__record_new(tn__run *run);
/* For a snapshot within an epoch: all ranks tell what losses each has added up. */
tn_status tn__record_tell(tn__run *run, int64_t iteration);
/* The run's loss function, which adds losses to the record. */
tn_array *tn__record_loss(tn_layer *model, const tn_batch *batch, void *run);

/* ---- stop.c ---- */
/* The trigger that ends the run: by its epochs, or early. */
tn_trigger *tn__stop_new(tn__run *run);

/* ---- named_words.c ---- */
/* Gives the trainer what the words name: a schedule, and extensions with blanks between them. A NULL run only checks
 * the words. */
tn_status tn__named_extend(tn__run *run, const char *schedule, const char *extend);
/* Whether schedules of the learning rate are among these extensions (NULL: there are none). The command asks, too. */
TN__PLUGIN_BEGIN
bool tn__named_sets_rate(const char *extend);
TN__PLUGIN_END

/* ---- output.c ---- */
/* Makes the folder, keeps other runs out of it, and sees that files can be written there; notes the paths. */
tn_status tn__output_open(tn__run *run);
/* Lets others in again. */
void tn__output_close(tn__run *run);
/* Gives the trainer its snapshot, and the extension that writes the log, the model and the curve. */
tn_status tn__output_extend(tn__run *run);
/* Names the files of an earlier run that this one does not write: they stay, and are not its own. */
void tn__output_tell_others(const tn__run *run);
/* The iteration that the run could be resumed from now; -1: none. */
int64_t tn__output_snapshot(const tn__run *run);
/* Whether a run's folder has a file of that name in any case. */
bool tn__output_reserved(const char *file);
/* The configuration and the parameters, as in model.safetensors. */
tn_status tn__output_fill_model(tn__run *run, tn_archive *archive);

/* ---- curve.c ---- */
/* Draws the history as an SVG picture. */
tn_status tn__curve_write(const tn__history *history, bool classifies, const char *title, const char *path);

#endif
