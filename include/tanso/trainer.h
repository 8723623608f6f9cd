/* SPDX-License-Identifier: MIT */
/*
 * The training loop in parts: an updater makes one iteration, triggers say when, extensions do everything else
 * (evaluate, log, plot, save), and the trainer runs them. After Chainer's chainer.training (Tokui et al. 2019).
 *
 *     tn_updater *updater = tn_standard_updater(loader, optimizer, .device = device);
 *     tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(20, TN_EPOCH), .out = "result");
 *     tn_extend(trainer, tn_evaluator(test_loader, model));
 *     tn_extend(trainer, tn_snapshot(.keep = 3, .autoload = true));
 *     tn_status status = tn_trainer_run(trainer);
 *     tn_trainer_free(trainer);
 *
 * Constructors never return NULL; one that fails gives an inert object, and its error is latched. A trigger, an
 * extension, an updater belongs to what it is given to, in any case, but for one that is another object's already,
 * which is TN_ERR_STATE; loaders, optimizers and layers stay the caller's, and a run that comes upon one that has been
 * freed ends with TN_ERR_STATE.
 */
#ifndef TANSO_TRAINER_H
#define TANSO_TRAINER_H

#include <tanso/comm.h>
#include <tanso/data.h>
#include <tanso/io.h>
#include <tanso/optim.h>
#include <tanso/report.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_trainer tn_trainer;
typedef struct tn_updater tn_updater;
typedef struct tn_trigger tn_trigger;
typedef struct tn_extension tn_extension;

/* ---- saving and restoring ---- */

/*
 * A place in an archive, and a direction. What has state gives one function that names its values; the same function
 * saves and restores them:
 *
 *     static tn_status serialize(const tn_serializer *s, void *user)
 *     {
 *         counter *c = user;
 *         tn_serialize_int(s, "count", &c->count);
 *         return tn_serialize_double(s, "best", &c->best);
 *     }
 *
 * Each call gives a status, which is latched too; once a call failed, later ones do nothing and give it again. Numbers
 * are 0-d arrays of int64 and float64 under the path ("extensions/LogReport/count"), texts text entries.
 */
typedef struct tn_serializer {
    tn_archive *archive;
    bool loading;
    const char *file;                    /* for messages; may be NULL */
    const struct tn_serializer *parent;  /* NULL: the root */
    const char *name;                    /* under the parent */
    const tn_load_opts *weights;         /* how layers are loaded; NULL: as they were saved. Of a file of Chainer's,
                                            what it does not have keeps its value */
    unsigned long long *met;             /* the library's own: which patterns of `weights` some layer has a name for */
} tn_serializer;

/* A place below another, "_trigger"; both strings are borrowed. */
TN_API tn_serializer tn_serializer_in(const tn_serializer *s, const char *name);
/* Whether something is there to be loaded under a name (false while saving): for values of newer versions. */
TN_API bool tn_serializer_has(const tn_serializer *s, const char *name);
/* Saves *value, or loads it; a missing or unsuitable entry is TN_ERR_FORMAT, which names the path and the file. */
TN_API tn_status tn_serialize_int(const tn_serializer *s, const char *name, int64_t *value);
TN_API tn_status tn_serialize_double(const tn_serializer *s, const char *name, double *value);
TN_API tn_status tn_serialize_bool(const tn_serializer *s, const char *name, bool *value);
/* A text; *text is freed (tn_string_free) and replaced when loading. NULL is kept as such. */
TN_API tn_status tn_serialize_text(const tn_serializer *s, const char *name, char **text);
/* Numbers: *values (freed with tn_serialized_free, replaced when loading), *count of them. */
TN_API tn_status tn_serialize_doubles(const tn_serializer *s, const char *name, int64_t *count, double **values);
TN_API void tn_serialized_free(double *values);
/* An array: saving keeps its value as of now; loading points it at the file's, which must have its shape and dtype, on
 * its device. */
TN_API tn_status tn_serialize_array(const tn_serializer *s, const char *name, tn_array *x);
/* The objects that a run is made of: parameters, and an optimizer's state, steps and learning rate, by their paths with
 * '/' for '.'; a loader's place; a generator; means under way. */
TN_API tn_status tn_serialize_layer(const tn_serializer *s, const char *name, tn_layer *layer);
TN_API tn_status tn_serialize_optimizer(const tn_serializer *s, const char *name, tn_optimizer *optimizer);
TN_API tn_status tn_serialize_loader(const tn_serializer *s, const char *name, tn_loader *loader);
TN_API tn_status tn_serialize_generator(const tn_serializer *s, const char *name, tn_generator *generator);
TN_API tn_status tn_serialize_summary(const tn_serializer *s, const char *name, tn_summary *summary);
TN_API tn_status tn_serialize_trigger(const tn_serializer *s, const char *name, tn_trigger *trigger);

/* ---- triggers ---- */

typedef enum tn_unit { TN_ITERATION = 0, TN_EPOCH = 1 } tn_unit;

/* So many iterations or epochs. */
typedef struct tn_length {
    double count; /* 0: not known */
    tn_unit unit;
} tn_length;

/* A trigger of one's own: functions of its state `user`; only `fire` must be there. */
typedef struct tn_trigger_kind {
    const char *name;
    /* Asked once an iteration, after the update: whether what it belongs to is due. Errors are latched. */
    bool (*fire)(tn_trainer *trainer, void *user);
    tn_status (*serialize)(const tn_serializer *s, void *user);
    /* Of a stop trigger: how long the training is, for progress bars and schedules. A run that goes on from further
     * than that ends at once. */
    tn_length (*length)(const void *user);
    void (*free)(void *user);
    /* Of a stop trigger: it has fired, and the run ends. Asked again in the same iteration, as when what is saved from
     * here on is loaded, it is to fire once more, unless it has become a later one. NULL: it does that anyway. */
    void (*ended)(void *user);
} tn_trigger_kind;

/* Takes over `user` in any case. `kind` must live as long as the trigger. */
TN_API tn_trigger *tn_trigger_new(const tn_trigger_kind *kind, void *user);
/* Of a plain function. */
TN_API tn_trigger *tn_trigger_of(bool (*fire)(tn_trainer *trainer, void *user), void *user);
/* Frees one that nobody took over. NULL is ignored. */
TN_API void tn_trigger_free(tn_trigger *trigger);
/* TN_OK, or why it could not be made. */
TN_API tn_status tn_trigger_status(const tn_trigger *trigger);
/* Asks it, as what owns it does once each time it is called; NULL never fires. */
TN_API bool tn_trigger_fire(tn_trigger *trigger, tn_trainer *trainer);
TN_API tn_length tn_trigger_length(const tn_trigger *trigger);

/* Fires when a multiple of the period was reached or passed since it was asked last: every(2, TN_EPOCH). Epochs may be
 * fractions; they are counted in samples, exactly. Iterations are whole. A period of 0, or below, is TN_ERR_VALUE. */
TN_API tn_trigger *tn_every(double period, tn_unit unit);
#define TN_EVERY(period, unit) tn_every(period, unit)
/* Fires when one of the points was reached or passed: tn_at_points(TN_EPOCH, 1, 2.5). 0 is the very beginning, which
 * was reached before anybody asks; nothing but that is TN_ERR_VALUE, as it would never fire. */
TN_API tn_trigger *tn_at_points_of(tn_unit unit, int count, const double *points);
typedef struct tn_once_opts {
    const char *_;
    bool on_resume; /* after resuming, too */
} tn_once_opts;
/* Fires the first time it is asked. */
TN_API tn_trigger *tn_once_with(const tn_once_opts *opts);
/* Fires after each `seconds` of elapsed time; after a pause, once for each period that has gone by. */
TN_API tn_trigger *tn_every_seconds(double seconds);

typedef struct tn_best_value_opts {
    const char *_;
    tn_trigger *check; /* when to compare; default: each epoch */
} tn_best_value_opts;
/* Fires when, as `check` fires, the mean of an observed value since then is better than all before: greater, less, or
 * by a comparison. Without a value since the last check, or with NaN, it does not fire. */
TN_API tn_trigger *tn_max_value_with(const char *key, const tn_best_value_opts *opts);
TN_API tn_trigger *tn_min_value_with(const char *key, const tn_best_value_opts *opts);
TN_API tn_trigger *tn_best_value_with(const char *key, bool (*better)(double best, double value, void *user),
                                      void *user, const tn_best_value_opts *opts);

typedef enum tn_better { TN_BETTER_AUTO = 0, TN_BETTER_GREATER, TN_BETTER_LESS } tn_better;
typedef struct tn_early_stopping_opts {
    const char *_;
    tn_trigger *check;   /* when to look; default: each epoch */
    const char *monitor; /* key; default "main/loss" */
    int patience;        /* looks without a better mean before it stops; default 3 */
    tn_better mode;      /* default: greater if "accuracy" is in the key, else less */
    tn_trigger *max;     /* stops in any case; default: after 100 epochs */
    bool verbose;        /* tells of each look on stderr */
} tn_early_stopping_opts;
/* A stop trigger: fires when the monitored mean has not become better for `patience` looks, or `max` fires. A look in
 * an iteration in which the key was not reported does not count; the first of them is warned of. */
TN_API tn_trigger *tn_early_stopping_with(const tn_early_stopping_opts *opts);

/* ---- updaters ---- */

/* The loss of a minibatch, a scalar; NULL or an error array ends the run. It may report what it likes. */
typedef tn_array *(*tn_loss_function)(tn_layer *model, const tn_batch *batch, void *user);
/* The loss that is used where none is given: softmax cross entropy for integer targets, else mean squared error, of
 * tn_forward(model, batch->x); reports "loss", and "accuracy" for classes, as the model's. A model that wants two
 * inputs (tn_flow_layer) gives the loss itself, tn_forward(model, batch->x, batch->t), and reports what it likes. */
TN_API tn_array *tn_usual_loss(tn_layer *model, const tn_batch *batch, void *user);

typedef struct tn_named_loader {
    const char *name;
    tn_loader *loader;
} tn_named_loader;
typedef struct tn_named_optimizer {
    const char *name;
    tn_optimizer *optimizer;
} tn_named_optimizer;
/* .loaders = TN_LOADERS({"real", a}, {"noise", b}): the array that an option wants, ended by an empty name. Lives to
 * the end of the block (C). */
#ifndef __cplusplus
#define TN_LOADERS(...) ((const tn_named_loader[]){__VA_ARGS__, {NULL, NULL}})
#define TN_OPTIMIZERS(...) ((const tn_named_optimizer[]){__VA_ARGS__, {NULL, NULL}})
#endif

typedef struct tn_updater_opts {
    const char *_;
    tn_device device;      /* models move there, and so does what a loss is computed of (not what an updating function
                              takes by tn_updater_next); a loader's own .device copies ahead. Default: all stays */
    tn_loss_function loss; /* default: tn_usual_loss */
    void *user;            /* of the loss, or of the updating function */
    void (*free_user)(void *user);
    int accumulate;        /* minibatches an update, of whose gradients it takes the mean; default 1 */
    const tn_named_loader *loaders;       /* more of them, beside "main" */
    const tn_named_optimizer *optimizers; /* more of them, beside "main" */
    const tn_device *devices; /* of a parallel updater: TN_DEVICES(...) */
    bool mean_statistics;     /* of a parallel updater: persistent floating values of the model (means and variances of
                                 batch normalization) become the mean of all devices'; default: the first one's own */
} tn_updater_opts;

/* An iteration is a minibatch of the loader: loss (of one element, else TN_ERR_SHAPE), backward, a step of the
 * optimizer and of each of the others whose parameters have got gradients; values reported meanwhile are those of the
 * model of the optimizer, named "main". Of more loaders "main" alone is asked. */
TN_API tn_updater *tn_standard_updater_with(tn_loader *loader, tn_optimizer *optimizer, const tn_updater_opts *opts);
/*
 * The same over several devices (.devices, each once), of which the first is the main one: the model moves there, and
 * a copy of it to each of the others. Of each minibatch each device gets a share, which differ by a sample at most; of
 * one that has fewer samples than there are devices, as an epoch's last one may be, the first ones get a sample each.
 * The losses are means over their shares, so gradients are added up on the main device with the weights of the shares,
 * and what is reported is the weighted mean, as if one device had had the whole minibatch, but for the order of sums;
 * the same bits run after run. The optimizer updates the model, whose parameters and persistent values the copies get
 * before the next iteration. Nobody waits between devices but for each other's values. Loaders of a batch of fewer
 * samples than devices are TN_ERR_VALUE, as are devices named twice; one that does not exist is TN_ERR_DEVICE.
 */
TN_API tn_updater *tn_parallel_updater_with(tn_loader *loader, tn_optimizer *optimizer, const tn_updater_opts *opts);
/* An iteration is what `update` does (with opts->user), by tn_updater_next, tn_updater_optimizer and whatever it likes:
 * several losses, several optimizers, several steps. The loader may be NULL: then an iteration is a sample of an epoch
 * that never ends; the optimizer, too. */
TN_API tn_updater *tn_updater_of_with(tn_status (*update)(tn_updater *updater, void *user), tn_loader *loader,
                                      tn_optimizer *optimizer, const tn_updater_opts *opts);
TN_API void tn_updater_free(tn_updater *updater);
TN_API tn_status tn_updater_status(const tn_updater *updater);
/* The next minibatch of a loader by its name, epoch after epoch; false on an error (latched). */
TN_API bool tn_updater_next(tn_updater *updater, const char *loader, tn_batch *batch);
/* By name; NULL, with TN_ERR_NAME latched, if there is none. Or all, i from 0; NULL from the end on. */
TN_API tn_loader *tn_updater_loader(const tn_updater *updater, const char *name);
TN_API tn_optimizer *tn_updater_optimizer(const tn_updater *updater, const char *name);
TN_API tn_named_optimizer tn_updater_optimizer_at(const tn_updater *updater, int i);
/* One iteration, as the trainer asks for it. */
TN_API tn_status tn_updater_update(tn_updater *updater);
/* Where it stands: iterations done; samples of the main loader taken in all, and how many an epoch has, so that the
 * epoch is samples / size; whether the last iteration ended an epoch; samples before it. */
typedef struct tn_progress {
    int64_t iteration, samples, size, previous_samples;
    bool is_new_epoch;
} tn_progress;
TN_API tn_progress tn_updater_progress(const tn_updater *updater);

/* ---- extensions ---- */

/* Higher is earlier. */
#define TN_PRIORITY_WRITER 300   /* adds to the observation */
#define TN_PRIORITY_EDITOR 200   /* changes what is there */
#define TN_PRIORITY_READER 100   /* only reads */

/* An extension of one's own: functions of its state `user`; any may be NULL. A function that returns a status ends the
 * run if it is not TN_OK, or if it latches an error. */
typedef struct tn_extension_kind {
    const char *name;            /* unless tn_extend gives another */
    int priority;
    tn_trigger *(*trigger)(void); /* makes its usual trigger; NULL: every iteration */
    /* Before the first iteration, and before any `initialize`: loads what a run goes on from. */
    tn_status (*prepare)(tn_trainer *trainer, void *user);
    /* Before the first iteration, in the order of calls. */
    tn_status (*initialize)(tn_trainer *trainer, void *user);
    /* When its trigger fires. */
    tn_status (*call)(tn_trainer *trainer, void *user);
    /* At the end of each iteration, after the calls of all extensions. */
    tn_status (*after)(tn_trainer *trainer, void *user);
    /* When a run is stopped by its flag, between two iterations. */
    tn_status (*on_stop)(tn_trainer *trainer, void *user);
    /* When the run fails after this extension has been initialized: also before training, where another one could not
     * be. The error is not latched meanwhile, and told by tn_trainer_error. Own errors are only shown. */
    void (*on_error)(tn_trainer *trainer, void *user);
    /* At the end of a run, however it ends. */
    void (*finalize)(tn_trainer *trainer, void *user);
    /* What a snapshot keeps of it. An optimizer's learning rate is in snapshots and is there again in `initialize`:
     * what starts from its first value keeps that itself. */
    tn_status (*serialize)(const tn_serializer *s, void *user);
    void (*free)(void *user);
} tn_extension_kind;

/* Takes over `user` in any case. `kind` must live as long as the extension. */
TN_API tn_extension *tn_extension_new(const tn_extension_kind *kind, void *user);
/* Frees one that nobody took over. NULL is ignored. */
TN_API void tn_extension_free(tn_extension *extension);
TN_API tn_status tn_extension_status(const tn_extension *extension);
/* Its name: the kind's, or, once a trainer has it, the one it is registered by. */
TN_API const char *tn_extension_name(const tn_extension *extension);
/* Its state, and of which kind it is. */
TN_API void *tn_extension_user(const tn_extension *extension);
TN_API const tn_extension_kind *tn_extension_kind_of(const tn_extension *extension);
/* Calls it, beside all triggers. */
TN_API tn_status tn_extension_call(tn_extension *extension, tn_trainer *trainer);

typedef struct tn_extend_opts {
    const char *_;
    const char *name;          /* default: the kind's; one that is taken gets a suffix: LogReport_1 */
    tn_trigger *trigger;       /* default: the kind's */
    int priority;              /* default: the kind's */
    bool call_before_training; /* once before the first iteration of a run that is not resumed */
} tn_extend_opts;
/* Gives the trainer an extension; both it and the trigger are the trainer's then, or freed if that fails. Extensions
 * are registered under the same names in the same order before a run is resumed. */
TN_API tn_status tn_extend_with(tn_trainer *trainer, tn_extension *extension, const tn_extend_opts *opts);
/* A plain function as an extension, of priority 100 and each iteration unless opts say otherwise. */
TN_API tn_status tn_extend_function_with(tn_trainer *trainer, tn_status (*function)(tn_trainer *trainer, void *user),
                                         void *user, const tn_extend_opts *opts);

/* ---- the trainer ---- */

typedef struct tn_trainer_opts {
    const char *_;
    tn_trigger *stop;              /* asked before each iteration; default: never */
    const char *out;               /* folder for results, made with its parents; default "result". While one runs
                                      that writes there another one is TN_ERR_STATE */
    volatile const int *stop_flag; /* becomes non-zero, as by a signal handler: the run ends after this iteration */
    bool ctrl_c;                   /* the same on SIGINT and SIGTERM, whose handlers are as before after the run; a
                                      second one ends the process as ever */
    bool quiet;                    /* do not show an error on stderr when it ends the run */
    tn_comm *comm;                 /* whose ranks all do this run: one that is asked to stop ends it on all of them,
                                      after the same iteration; triggers by seconds go by rank 0's clock, which it
                                      tells twenty times a second at most; early stopping and reducing on a plateau
                                      go by means over the ranks. Default: this process alone */
} tn_trainer_opts;

/* Takes over the updater and the trigger in any case. */
TN_API tn_trainer *tn_trainer_new_with(tn_updater *updater, const tn_trainer_opts *opts);
/* Frees it with its updater, extensions and triggers. NULL is ignored; one that is running is TN_ERR_STATE. */
TN_API void tn_trainer_free(tn_trainer *trainer);
TN_API tn_status tn_trainer_status(const tn_trainer *trainer);

/*
 * Runs until the stop trigger fires, the flag is raised, or something fails. Each iteration: the update, then the
 * extensions by falling priority, those of one priority in the order of registration, each when its trigger fires,
 * which is asked right before. TN_OK, also for a run that was stopped (tn_trainer_stopped). A failure is shown and told
 * to the extensions that have been initialized (on_error), and latched when all are finalized; another call then goes
 * on from where it stood. After a run that has ended by its trigger another one is TN_ERR_STATE.
 */
TN_API tn_status tn_trainer_run(tn_trainer *trainer);
/* Whether the last run was ended by its flag or a signal. */
TN_API bool tn_trainer_stopped(const tn_trainer *trainer);

TN_API tn_updater *tn_trainer_updater(const tn_trainer *trainer);
/* The extension of a name; NULL with TN_ERR_NAME latched if there is none. */
TN_API tn_extension *tn_trainer_extension(const tn_trainer *trainer, const char *name);
/* Optimizer "main" for NULL; NULL with TN_ERR_NAME latched if there is none. */
TN_API tn_optimizer *tn_trainer_optimizer(const tn_trainer *trainer, const char *name);
TN_API const char *tn_trainer_out(const tn_trainer *trainer);
TN_API tn_progress tn_trainer_progress(const tn_trainer *trainer);
TN_API int64_t tn_trainer_iteration(const tn_trainer *trainer);
/* Completed epochs; with the part of the one under way; whether the last iteration ended one. */
TN_API int64_t tn_trainer_epoch(const tn_trainer *trainer);
TN_API double tn_trainer_epoch_detail(const tn_trainer *trainer);
TN_API bool tn_trainer_is_new_epoch(const tn_trainer *trainer);
/* Seconds of the run, with those before it was resumed. */
TN_API double tn_trainer_elapsed_time(const tn_trainer *trainer);
/* What was reported in this iteration. */
TN_API tn_observation *tn_trainer_observation(const tn_trainer *trainer);
TN_API tn_reporter *tn_trainer_reporter(const tn_trainer *trainer);
/* The stop trigger's length. */
TN_API tn_length tn_trainer_length(const tn_trainer *trainer);
/* The message of the failure that ends the run, for on_error; "" if there is none. */
TN_API const char *tn_trainer_error(const tn_trainer *trainer);

/* A run's whole state: updater, loaders, optimizers, models, triggers, extensions, the thread's random generator and
 * the elapsed time, to be loaded into a trainer that was built in the same way (the stop trigger may be another one of
 * its kind). One that is saved after its end ends at once when it is run again, without an update, unless its stop
 * trigger is a later one. The path ends in .safetensors or .npz. */
TN_API tn_status tn_trainer_save(tn_trainer *trainer, const char *path) TN_MUST_CHECK;
/*
 * Loads it. A snapshot of Chainer 7 (an .npz, usually without that ending) is told by its contents: its weights of
 * tn_linear, and what .transpose names, are transposed; optimizers, iterators, triggers, schedules, the log, plots and
 * averages go on. It has no hyperparameters and random generators: those stay as the trainer has them, as does what
 * else it does not hold. The order of samples of the epoch under way is the loader's own: later epochs' orders are not
 * in the file either. Options are those of tn_layer_load; a pattern of .transpose or .ignore that matches nothing in
 * any layer is TN_ERR_NAME.
 *
 * All or nothing: where something is missing or does not fit, the trainer and everything it is made of stay as they
 * were. (Should the memory not even suffice for that, the trainer has the error for good: make another one.)
 */
TN_API tn_status tn_trainer_load_with(tn_trainer *trainer, const char *path, const tn_load_opts *opts) TN_MUST_CHECK;
TN_API tn_status tn_serialize_trainer(const tn_serializer *s, const char *name, tn_trainer *trainer);

/* A pattern with the run's numbers in place of {iteration}, {epoch} and Chainer's {.updater.iteration}, as a string to
 * be freed with tn_string_free; NULL with a latched error for another word in braces. */
TN_API char *tn_trainer_format(const tn_trainer *trainer, const char *pattern);

/* ---- the extensions of the core ---- */

typedef struct tn_evaluator_opts {
    const char *_;
    tn_device device;      /* where the model is to be, and minibatches with it; default: where they are */
    tn_loss_function loss; /* default: tn_usual_loss; what it gives is not used, what it reports is */
    void *user;
    const char *name;      /* default "main": the model's, in keys */
    tn_status (*hook)(void *user); /* before each evaluation: stateful networks start anew there */
    tn_comm *comm;         /* means over all ranks' samples, the same for all; each evaluates its own loader, that of
                              tn_rank_sampler with .uneven for exact ones; borrowed */
} tn_evaluator_opts;
/* Means of what is reported over one epoch of a loader, in evaluation mode and without gradients; each layer's own mode
 * is restored. Reported under the extension's name, "validation": "validation/main/loss". Means are weighted by
 * samples, so they are those of the whole set. Priority 300, each epoch. */
TN_API tn_extension *tn_evaluator_with(tn_loader *loader, tn_layer *model, const tn_evaluator_opts *opts);

typedef struct tn_snapshot_opts {
    const char *_;
    const char *file;  /* pattern (tn_trainer_format); default "snapshot_iter_{iteration}"; ".safetensors" is added
                          unless it ends so, or in .npz */
    int keep;          /* the newest so many files of the pattern stay; default: all. With 1 the training does not even
                          wait for a disk that is slower, see below */
    bool autoload;     /* go on from the one of the largest number in the folder, if there is any */
    bool on_error;     /* one when the run fails, too, once it has trained */
    bool not_on_stop;  /* none when the run is stopped by its flag; of an object or a layer there is none then anyway:
                          its file is of an iteration that its trigger chose, as the best one so far */
    bool wait;         /* write in the caller's thread */
    bool (*condition)(tn_trainer *trainer, void *user); /* asked at each call and stop; default: yes */
    void *user;
} tn_snapshot_opts;
/*
 * Saves the whole trainer, at the end of the iteration; a thread of its own writes the file (beside, synced, renamed)
 * while the training goes on. Priority -100, each epoch.
 *
 * With .keep = 1 (and without .wait) only the newest state matters: a snapshot that is due while the last one is being
 * written, or so soon after it that snapshots would take more than 1/1000 of the time, is taken at the end of the first
 * iteration when neither is so any more, 1 second later at most if the disk keeps up; the file's name tells which
 * iteration that was. At the end of the run one that is still due is taken of the last iteration. A run that is killed
 * has lost what it did since then, a run that fails may have, too, unless .on_error is set. An object's or a layer's
 * snapshot is always of the iteration that it was asked for in; with .keep = 1 it gives way to a newer one while it
 * waits for the disk.
 *
 * A model whose weights were finite and have become NaN or infinite is not saved, neither alone nor with its trainer,
 * which is warned of once, until they are finite again: the last good files stay, and are what .autoload finds. Weights
 * that are not finite when the run begins may be meant to be so: they are saved, and warned of once, with the name of
 * the first such array.
 */
TN_API tn_extension *tn_snapshot_with(const tn_snapshot_opts *opts);
/* The same for one object by a function that serializes it, as one that calls tn_serialize_layer with its name; the
 * pattern has no default. */
typedef tn_status (*tn_serialize_function)(const tn_serializer *s, void *object);
TN_API tn_extension *tn_snapshot_object_with(tn_serialize_function serialize, void *object, const char *file,
                                             const tn_snapshot_opts *opts);
/* The same for a model: a file for tn_layer_load. */
TN_API tn_extension *tn_snapshot_layer_with(tn_layer *layer, const char *file, const tn_snapshot_opts *opts);

#ifndef TN_NO_MACROS
#define tn_every(...) TN_HERE(tn_every(__VA_ARGS__))
#define tn_trigger_new(...) TN_HERE(tn_trigger_new(__VA_ARGS__))
#define tn_trigger_of(...) TN_HERE(tn_trigger_of(__VA_ARGS__))
#define tn_extension_new(...) TN_HERE(tn_extension_new(__VA_ARGS__))
#define tn_updater_next(...) TN_HERE(tn_updater_next(__VA_ARGS__))
#define tn_updater_loader(...) TN_HERE(tn_updater_loader(__VA_ARGS__))
#define tn_updater_optimizer(...) TN_HERE(tn_updater_optimizer(__VA_ARGS__))
#define tn_updater_update(...) TN_HERE(tn_updater_update(__VA_ARGS__))
#define tn_trainer_extension(...) TN_HERE(tn_trainer_extension(__VA_ARGS__))
#define tn_trainer_optimizer(...) TN_HERE(tn_trainer_optimizer(__VA_ARGS__))
#define tn_trainer_format(...) TN_HERE(tn_trainer_format(__VA_ARGS__))
#define tn_at_points(unit, ...) TN_AT(tn_at_points_of)(unit, TN__LIST(double, __VA_ARGS__))
#define tn_once(...) TN_AT(tn_once_with)(TN_OPTS(tn_once_opts, __VA_ARGS__))
#define tn_every_seconds(...) TN_HERE(tn_every_seconds(__VA_ARGS__))
#define tn_max_value(...) TN__CALL_V(tn_max_value_with, tn_best_value_opts, __VA_ARGS__, )
#define tn_min_value(...) TN__CALL_V(tn_min_value_with, tn_best_value_opts, __VA_ARGS__, )
#define tn_best_value(...) TN__CALL_VVV(tn_best_value_with, tn_best_value_opts, __VA_ARGS__, )
#define tn_early_stopping(...) TN_AT(tn_early_stopping_with)(TN_OPTS(tn_early_stopping_opts, __VA_ARGS__))
#define tn_standard_updater(...) TN__CALL_VV(tn_standard_updater_with, tn_updater_opts, __VA_ARGS__, )
#define tn_parallel_updater(...) TN__CALL_VV(tn_parallel_updater_with, tn_updater_opts, __VA_ARGS__, )
#define tn_updater_of(...) TN__CALL_VVV(tn_updater_of_with, tn_updater_opts, __VA_ARGS__, )
#define tn_extend(...) TN__CALL_VV(tn_extend_with, tn_extend_opts, __VA_ARGS__, )
#define tn_extend_function(...) TN__CALL_VVV(tn_extend_function_with, tn_extend_opts, __VA_ARGS__, )
#define tn_trainer_new(...) TN__CALL_V(tn_trainer_new_with, tn_trainer_opts, __VA_ARGS__, )
#define tn_trainer_run(trainer) TN_HERE(tn_trainer_run(trainer))
#define tn_trainer_load(...) TN__CALL_VV(tn_trainer_load_with, tn_load_opts, __VA_ARGS__, )
#define tn_evaluator(...) TN__CALL_VV(tn_evaluator_with, tn_evaluator_opts, __VA_ARGS__, )
#define tn_snapshot(...) TN_AT(tn_snapshot_with)(TN_OPTS(tn_snapshot_opts, __VA_ARGS__))
#define tn_snapshot_object(...) TN__CALL_VVV(tn_snapshot_object_with, tn_snapshot_opts, __VA_ARGS__, )
#define tn_snapshot_layer(...) TN__CALL_VV(tn_snapshot_layer_with, tn_snapshot_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
