/* SPDX-License-Identifier: MIT */
/*
 * Around the loop: meters, the trainer that `tanso train` runs, snapshots.
 */
#ifndef TANSO_TRAIN_H
#define TANSO_TRAIN_H

#include <stdio.h>
#include <tanso/data.h>
#include <tanso/nn.h>
#include <tanso/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A weighted mean accumulated on the device: adding costs no synchronisation. Never NULL. */
typedef struct tn_meter tn_meter;
TN_API tn_meter *tn_meter_new(tn_device device);
/* Adds a one-element array with a weight (a minibatch's size). A failure is latched, and makes the next mean NaN. */
TN_API void tn_meter_add(tn_meter *meter, const tn_array *value, double weight);
/* The mean so far, and a fresh start; NaN when nothing was added or on an error (latched). */
TN_API double tn_meter_take(tn_meter *meter);
/* NULL is ignored. */
TN_API void tn_meter_free(tn_meter *meter);

/* One epoch's figures. */
typedef struct tn_epoch {
    int epoch;                 /* from 1 */
    double train_loss, test_loss;
    double test_accuracy;      /* 0 to 1; NaN for regressions */
    double seconds;            /* the whole epoch, test included */
    double samples_per_second; /* training samples over training time, over all of a very short epoch */
    int64_t further;           /* steps of the next epoch that the run has ended after, untested: its model is of there;
                                  0: none */
} tn_epoch;

typedef struct tn_train_opts {
    const char *_;
    const char *model;     /* words of tn_layer_parse, of which a last one "linear:*" has the outputs that the
                              dataset asks for; default suits the dataset */
    const char *optimizer; /* words of tn_optimizer_parse; default suits the dataset */
    const char *schedule;  /* of the learning rate: "constant", "linear" (falls to 0 along a line over the epochs),
                              "cosine" (along half a cosine) or another that tn_train_part_at names, with settings as
                              "step:gamma=0.1,step=30"; default suits the dataset, constant if `optimizer` is given or
                              `extend` has a schedule of the learning rate */
    const char *extend;    /* extensions, with blanks between them: "early-stopping:patience=5 plot:main/loss"; see
                              tn_train_part_at */
    int epochs;            /* default suits the dataset */
    int64_t batch;         /* samples a minibatch; default suits the dataset */
    uint64_t seed;         /* of first weights, shuffling and dropout */
    tn_device device;      /* default: best */
    const char *out;       /* folder for model.safetensors, log.jsonl, curve.svg, snapshot; NULL: nothing is written */
    bool resume;           /* go on from out's snapshot, bit for bit: settings left at their default are the
                              snapshot's, others must agree with it, but for epochs; without a snapshot there, from
                              the beginning */
    FILE *report;          /* progress and epoch lines; NULL: silent */
    /* Becomes non-zero, as by a signal handler: stop after the current step; NULL: never. Give handlers a stack of
     * their own (sigaltstack, SA_ONSTACK): oneDNN's products may have other memory under the stack pointer. */
    volatile const int *stop;
    const tn_device *devices; /* several, instead of `device`: TN_DEVICES(...), which share each minibatch, as those of
                                 a tn_parallel_updater; tests are on the first; NULL: one */
    tn_comm *comm; /* ranks that train together (comm.h): each, on one device, takes its share of every minibatch, whose
                      samples they must divide, and of the test samples; what is written and reported is by rank 0
                      alone; figures are of all. All of them read the snapshot to go on from */
    int shard;     /* of tn_optimizer_distribute, for these ranks: 1 shares states and updates out between them, 2
                      gradients, 3 parameters, too, by the model's words. Then a run that is stopped between snapshots
                      makes none of that step */
} tn_train_opts;

/*
 * Trains a network on a named dataset (tn_dataset_named) and reports; the last epoch's figures into *last (may be
 * NULL). Integer targets are classes, learned with softmax cross entropy; floating ones are values, learned with mean
 * squared error. The thread's generator is as before afterwards. This is a trainer (tanso/trainer.h) with a standard
 * updater, an evaluator, a schedule, a progress bar and snapshots, to which `extend` adds.
 *
 * Into `out` go snapshot.safetensors (the trainer's), model.safetensors (parameters, and in the file's metadata the
 * words to build the network anew: "tanso.model", "tanso.dataset", "tanso.input", the shape of a sample), log.jsonl (an
 * object a line an epoch) and curve.svg: after the first epoch and the last, and between them as often as costs at most
 * a twentieth of the time; the log every epoch. Each is written beside, synced and renamed. Files of an earlier run
 * there are replaced when the first epoch is done; those that this run does not write (other pictures, logs, models of
 * `extend`) stay, and are told of by their names. While a run goes on, another one into the same folder is
 * TN_ERR_STATE.
 *
 * A loss that is not finite stops with TN_ERR_NAN and leaves the last good snapshot. Stopped by *stop: TN_ERR_STATE,
 * with a snapshot of that step.
 */
TN_API tn_status tn_train_with(const char *dataset, const tn_train_opts *opts, tn_epoch *last) TN_MUST_CHECK;
/* What `schedule` (those that are `schedules`) and `extend` may name, a row each, with their settings and defaults and
 * what they do. NULL from the end on. */
typedef struct tn_train_part {
    const char *name, *settings, *text;
    bool schedules;
} tn_train_part;
TN_API const tn_train_part *tn_train_part_at(int i);
/* Whether such words are sound: TN_ERR_NAME or TN_ERR_VALUE, told with what is possible. Either may be NULL. */
TN_API tn_status tn_train_check(const char *schedule, const char *extend) TN_MUST_CHECK;
/* The defaults of tn_train_with, a row a dataset; the last row, named "*", is for folders. NULL from the end on. */
typedef struct tn_recipe {
    const char *dataset, *model, *optimizer, *schedule;
    int epochs;
    int64_t batch;
} tn_recipe;
TN_API const tn_recipe *tn_train_recipe(int i);

typedef struct tn_plot_runs_opts {
    const char *_;
    const char *const *keys; /* of figures, a panel each, 8 at most, ended by NULL; default: train_loss, test_loss and
                                test_accuracy, which in the log of a log report are main/loss, validation/main/loss and
                                validation/main/accuracy */
    const char *x_key;       /* default "epoch" */
    int *drawn;              /* NULL, or gets how many of the runs have a curve */
} tn_plot_runs_opts;
/* Draws runs beside one another into a picture (.svg, or .png where libpng is), by the logs in their folders:
 * log.jsonl, as tn_train writes it, and "log", as a log report does. Of a folder that has both, as with tn_train's
 * "log", a figure is taken from log.jsonl, and from "log" what is not in there: "main/loss", for instance. A "log" of
 * epochs or of test losses that log.jsonl does not have is another run's: it is left out, with a warning, as are
 * rubbish and runs that have no curve. Figures that no run has are left out. */
TN_API tn_status tn_plot_runs_with(int count, const char *const *folders, const char *path,
                                   const tn_plot_runs_opts *opts) TN_MUST_CHECK;

/* Mean loss and accuracy (NaN for floating targets) of a network over a dataset, in evaluation mode and without
 * gradients, in minibatches of `batch` (0: 1000); either result may be NULL. An empty dataset is TN_ERR_VALUE. */
TN_API tn_status tn_evaluate(tn_layer *net, tn_dataset *dataset, int64_t batch, tn_device device, double *loss,
                             double *accuracy) TN_MUST_CHECK;

/*
 * A training run's whole state between two epochs: parameters, optimizer state, step count and learning rate, the
 * thread's random generator, the loader's epoch (NULL: the program has no loader), and a text that describes it (may
 * be NULL), kept as the file's metadata "tanso.description". The path ends in .safetensors or .npz; the file is written
 * beside, synced and renamed.
 */
TN_API tn_status tn_snapshot_save(const char *path, tn_layer *net, tn_optimizer *optimizer, tn_loader *loader,
                                  const char *description) TN_MUST_CHECK;
/* Brings that state back into a network, an optimizer and a loader made as the saved ones were; a misfit is named,
 * and all of them stay as they were. */
TN_API tn_status tn_snapshot_load(const char *path, tn_layer *net, tn_optimizer *optimizer,
                                  tn_loader *loader) TN_MUST_CHECK;

#ifndef TN_NO_MACROS
#define tn_meter_new(...) TN_HERE(tn_meter_new(__VA_ARGS__))
#define tn_meter_add(...) TN_HERE(tn_meter_add(__VA_ARGS__))
#define tn_meter_take(...) TN_HERE(tn_meter_take(__VA_ARGS__))
#define tn_plot_runs(...) TN__CALL_VVV(tn_plot_runs_with, tn_plot_runs_opts, __VA_ARGS__, )
#define tn_train(...) TN__TRAIN(__VA_ARGS__, )
#define TN__TRAIN(dataset, last, ...) TN_AT(tn_train_with)(dataset, TN_OPTS(tn_train_opts, __VA_ARGS__), last)
#endif

#ifdef __cplusplus
}
#endif
#endif
