/* SPDX-License-Identifier: MIT */
/*
 * What a trainer is extended with: logs, tables, pictures, schedules, watching over values. After Chainer's
 * chainer.training.extensions (Tokui et al. 2019); what differs is said in docs/architecture.md.
 *
 *     tn_extend(trainer, tn_log_report());
 *     tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss", "elapsed_time"));
 *     tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss"), .file = "loss.svg"));
 *     tn_extend(trainer, tn_cosine_shift("lr", .warmup = 0.5), .trigger = TN_EVERY(1, TN_ITERATION));
 *     tn_extend(trainer, tn_progress_bar());
 *
 * Strings and lists that these functions are given are copied. A trigger in options belongs to the extension, in any
 * case. Files go into the trainer's folder (an absolute path is TN_ERR_VALUE); two extensions that write one file are
 * TN_ERR_NAME when the run starts.
 * Everything that has state saves it, so that a resumed run has the same log and the same pictures.
 */
#ifndef TANSO_EXTENSIONS_H
#define TANSO_EXTENSIONS_H

#include <stdio.h>
#include <tanso/trainer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- logs ---- */

typedef struct tn_log_report_opts {
    const char *_;
    const char *file;  /* default "log"; "": none */
    tn_trigger *every; /* when an entry is made of what was observed since the last one; default: each epoch */
    /* Called with each new entry, which it may change. */
    tn_status (*postprocess)(tn_observation *entry, void *user);
    void *user;
} tn_log_report_opts;
/*
 * The means of all observed values, unweighted, with "epoch", "iteration" and "elapsed_time" behind them, as an entry
 * of a list of JSON objects, indented by 4: the shortest digits that read back, NaN as NaN. With call_before_training
 * the first entry is of iteration 0. The file gets what is new as often as takes no more than 1/1000 of the time, and
 * at the end: while the list is short, by a whole new one; a list of more than 64 KiB is added to in place, in the
 * same time an entry however long it is. What a crash left of such a write is cut off when the run is resumed. Such a
 * long list is not in snapshots, so that its file is needed to go on. An entry whose means are on a device that the
 * host reads by waiting for it is made when they have come, some iterations later, and at the end at the latest; with
 * postprocess at once.
 */
TN_API tn_extension *tn_log_report_with(const tn_log_report_opts *opts);

typedef struct tn_print_report_opts {
    const char *_;
    FILE *stream;     /* default: stdout */
    const char *file; /* print into this file instead; TN_ERR_VALUE with a stream, too */
    const char *log;  /* name of the log report whose entries are printed; default "LogReport" */
} tn_print_report_opts;
/*
 * Prints entries of a log as lines of a table, a column a key; blank where an entry has none. A key that the first
 * entry does not have is warned of, with the name that is nearest. The log must be given to the trainer, too. With a
 * trigger, those so far are printed when it fires; without, each as it comes, or a few at once, a tenth of a second
 * later at most, so that printing takes 1/1000 of the time. After a resumption only new entries are printed: a stream
 * has all up to a snapshot before that is saved. A file loses the lines that came after the snapshot; if it does not
 * hold those before it, this is warned of, and the table begins anew. Macros: tn_print_report("epoch", "main/loss"),
 * and with options tn_print_report_of(TN_KEYS_OF("epoch"), .file = "table").
 */
TN_API tn_extension *tn_print_report_with(int count, const char *const *keys, const tn_print_report_opts *opts);

typedef struct tn_progress_bar_opts {
    const char *_;
    tn_length total; /* of the training; default: the stop trigger's. Without one: iterations and speed alone */
    int every;       /* iterations between two drawings; default: a tenth of a second */
    int length;      /* of the bars; default 50, less where the terminal is narrow */
    FILE *stream;    /* default: stdout. Where it is no terminal nothing is drawn */
} tn_progress_bar_opts;
/* How far the run and the epoch are, the speed over the last hundred drawings, and the time that is left. */
TN_API tn_extension *tn_progress_bar_with(const tn_progress_bar_opts *opts);

typedef enum tn_scale {
    TN_SCALE_AUTO = 0, /* logarithmic where all values are positive and the largest is many times the smallest */
    TN_SCALE_LINEAR,
    TN_SCALE_LOG
} tn_scale;
typedef struct tn_plot_report_opts {
    const char *_;
    const char *file;  /* ends in .svg, or .png where libpng is; default "plot.svg" */
    const char *x_key; /* "iteration" (the default), "epoch", or any key */
    const char *title; /* default: none */
    tn_trigger *every; /* when points are added, of what was observed since the last ones; default: each epoch */
    tn_scale scale;
} tn_plot_report_opts;
/* A picture with a curve a key. Of more than 1024 points neighbours are joined, their mean drawn as the line and their
 * range as a band, so that memory, time and the file stay what they are however long the run is. It is drawn after new
 * points as often as takes no more than 1/1000 of the time, and at the end. A key that never came is warned of. */
TN_API tn_extension *tn_plot_report_with(int count, const char *const *keys, const tn_plot_report_opts *opts);

typedef struct tn_tensorboard_opts {
    const char *_;
    const char *folder; /* default: the trainer's */
    const char *log;    /* name of the log report whose entries are written; default "LogReport" */
} tn_tensorboard_opts;
/* Writes the entries of a log as scalars into a file of events that TensorBoard reads. */
TN_API tn_extension *tn_tensorboard_with(const tn_tensorboard_opts *opts);

/* ---- values ---- */

/* Once an epoch, priority 300: observes value(trainer, user) under `key`. What was reported under it in the iteration
 * is replaced, which is warned of once. */
TN_API tn_extension *tn_observe_value(const char *key, double (*value)(tn_trainer *trainer, void *user), void *user);
typedef struct tn_observe_lr_opts {
    const char *_;
    const char *optimizer; /* default "main" */
    const char *key;       /* default "lr" */
} tn_observe_lr_opts;
/* The same of an optimizer's learning rate, as tn_optimizer_lr gives it. */
TN_API tn_extension *tn_observe_lr_with(const tn_observe_lr_opts *opts);

typedef struct tn_micro_average_opts {
    const char *_;
    tn_trigger *every; /* default: each epoch */
} tn_micro_average_opts;
/* The sum of one observed value over the sum of another, of iterations that have both, under the key `result`.
 * Priority 200. */
TN_API tn_extension *tn_micro_average_with(const char *numerator, const char *denominator, const char *result,
                                           const tn_micro_average_opts *opts);

typedef struct tn_fail_on_nan_opts {
    const char *_;
    int every; /* iterations between two looks where the host would have to wait for a device; default 100, and at each
                  epoch's end. Elsewhere each iteration is looked at */
} tn_fail_on_nan_opts;
/* Ends the run (TN_ERR_NAN, which names the optimizer and the parameter) when an element of a parameter is not finite,
 * or has been since the last look: one reduction an iteration over all parameters, read late. */
TN_API tn_extension *tn_fail_on_nan_with(const tn_fail_on_nan_opts *opts);

typedef struct tn_parameter_statistics_opts {
    const char *_;
    tn_layer *layer;    /* default: all optimizers' models, by their names */
    const char *prefix; /* in front of keys; default: none */
    bool gradients;     /* "NAME/PATH/grad/STATISTIC" too, of the last update's; they are then computed apart from it */
} tn_parameter_statistics_opts;
/* Observes, for each parameter, "NAME/PATH/data/STATISTIC": mean, std, min, max, zeros (how many there are) and
 * percentile/0 to 6 (0.13 2.28 15.87 50 84.13 97.72 99.87), the deviations -3 to 3 of a normal distribution. Once an
 * epoch, priority 300; with a trigger of each iteration a log has the means over its iterations, as Chainer's. */
TN_API tn_extension *tn_parameter_statistics_with(const tn_parameter_statistics_opts *opts);

typedef struct tn_variable_statistics_plot_opts {
    const char *_;
    const char *file;  /* default "statistics.svg" */
    tn_trigger *every; /* when values are looked at; default: each epoch */
} tn_variable_statistics_plot_opts;
/* A picture of all elements of some arrays together over the iterations: mean and standard deviation, and percentiles
 * as bands within one another. The arrays, parameters for instance, must live until the trainer is freed. */
TN_API tn_extension *tn_variable_statistics_plot_with(int count, tn_array *const *arrays,
                                                      const tn_variable_statistics_plot_opts *opts);

/* ---- looking inside ---- */

typedef struct tn_dump_graph_opts {
    const char *_;
    const char *file; /* default "cg.dot" */
} tn_dump_graph_opts;
/* Writes the computation of the first value that is reported under `key` ("main/loss") as a DOT graph, and where
 * Graphviz's `dot` is, a picture of it beside: "cg.png". A key that never came is warned of. */
TN_API tn_extension *tn_dump_graph_with(const char *key, const tn_dump_graph_opts *opts);

typedef struct tn_profile_opts {
    const char *_;
    int64_t first;    /* iteration to begin with, from 1; default 11, when all is compiled */
    int64_t count;    /* iterations; default 10 */
    const char *file; /* default "profile": profile.txt and profile.json */
} tn_profile_opts;
/* Measures some iterations, each with what extensions do at its end (snapshots): time (each is waited for),
 * evaluations, plans that were compiled, kernels, memory; and, by
 * plan (what one evaluation runs: tn_plan_describe), how long its runs took, those that took most first, its steps, the
 * bytes it moves and its operations. The time of plans is the device's own, between two events, on a GPU without the
 * host's for starting them; "none" is when no plan ran. Plans of all threads count, as do those of other extensions. A
 * table as text, and a trace that Chrome (chrome://tracing) and Perfetto show, with each run of a plan. Of a run that
 * fails, the iterations before; of one that is resumed among them, those from there on, which the table's head says. A
 * run that ends before `first` is warned of. */
TN_API tn_extension *tn_profile_with(const tn_profile_opts *opts);

/* ---- schedules ---- */

typedef struct tn_shift_opts {
    const char *_;
    const char *optimizer; /* default "main" */
    double first;          /* the value to begin with; default: the attribute's when the run starts */
    double target;         /* where the value stops; default: nowhere */
} tn_shift_opts;
/*
 * Change an attribute of an optimizer ("lr", "momentum", ..., the fields of tn_optimizer_opts) with the number t of
 * their own calls, so the trigger that they are registered with is their unit: each iteration unless tn_extend is given
 * another. The value for t = 0 is set when the run starts; one for an epoch takes effect in the iteration after it.
 * None multiplies what another has set: two for one attribute of an optimizer are TN_ERR_VALUE when the run starts,
 * unless the second is a warm-up, or both are for some points (tn_at_points) and the second's first value is its own.
 */
/* first rate^t */
TN_API tn_extension *tn_exponential_shift_with(const char *attribute, double rate, const tn_shift_opts *opts);
/* first (1 + gamma t)^-power */
TN_API tn_extension *tn_inverse_shift_with(const char *attribute, double gamma, double power,
                                           const tn_shift_opts *opts);
/* From v1 until t1 along a line to v2 from t2 on. */
TN_API tn_extension *tn_linear_shift_with(const char *attribute, double v1, double v2, double t1, double t2,
                                          const tn_shift_opts *opts);
/* first gamma^k, k the number of steps that are <= t: tn_multistep_shift("lr", 0.1, TN_POINTS(30, 60)) */
TN_API tn_extension *tn_multistep_shift_with(const char *attribute, double gamma, int count, const double *steps,
                                             const tn_shift_opts *opts);
/* first (1 - t / max)^rate, 0 from max on */
TN_API tn_extension *tn_polynomial_shift_with(const char *attribute, double rate, double max,
                                              const tn_shift_opts *opts);
/* first gamma^floor(t / step) */
TN_API tn_extension *tn_step_shift_with(const char *attribute, double gamma, double step, const tn_shift_opts *opts);
/* From start along a line to first at t = n; left alone after that. */
TN_API tn_extension *tn_warmup_shift_with(const char *attribute, double start, double n, const tn_shift_opts *opts);
#define TN_POINTS(...) TN__LIST(double, __VA_ARGS__)

typedef struct tn_course_opts {
    const char *_;
    const char *optimizer; /* default "main" */
    double first;          /* the highest value; default: the attribute's when the run starts */
    tn_length length;      /* of the course; default: the stop trigger's, in its unit */
    double warmup;         /* cosine: from `start` along a line to `first`, for so long (in the unit); default 0. One
                            * that lasts to the course's end is warned of when the run starts. */
    double start;          /* cosine: default 0 */
    double last;           /* cosine: the value at the end; default 0 */
    double rise;           /* one cycle: share of the course in which it rises; default 0.3 */
    double begin_factor;   /* one cycle: begins with first / this; default 25 */
    double end_factor;     /* one cycle: ends with what it began with / this; default 10000 */
} tn_course_opts;
/* The same by the place in the run, in epochs or iterations, whatever the trigger: warm-up and half a cosine
 * (Loshchilov and Hutter 2017), or one cycle up and down by cosines (Smith and Topin 2019). */
TN_API tn_extension *tn_cosine_shift_with(const char *attribute, const tn_course_opts *opts);
TN_API tn_extension *tn_one_cycle_shift_with(const char *attribute, const tn_course_opts *opts);

typedef struct tn_plateau_opts {
    const char *_;
    const char *optimizer; /* default "main" */
    tn_trigger *check;     /* when to look at the mean since the last look; default: each epoch */
    double factor;         /* default 0.1 */
    int patience;          /* looks without a better mean that are let pass; default 10 */
    tn_better mode;        /* default: greater if "accuracy" is in the key, else less */
    double threshold;      /* better is by this share of the best; default 0.0001 */
    int cooldown;          /* looks after a change that do not count; default 0 */
    double least;          /* the value does not fall below this; default 0 */
} tn_plateau_opts;
/* Multiplies the attribute by a factor when an observed value has not become better for a while. Beside a schedule that
 * sets the attribute throughout the run, and so would undo that, it is TN_ERR_VALUE when the run starts. */
TN_API tn_extension *tn_reduce_on_plateau_with(const char *attribute, const char *key, const tn_plateau_opts *opts);

#ifndef TN_NO_MACROS
#define tn_log_report(...) TN_AT(tn_log_report_with)(TN_OPTS(tn_log_report_opts, __VA_ARGS__))
/* tn_print_report("epoch", "main/loss") takes keys alone; with options it is
 * tn_print_report_of(TN_KEYS_OF("epoch", "main/loss"), .file = "table"). */
#define tn_print_report(...) TN_AT(tn_print_report_with)(TN__LIST(const char *, __VA_ARGS__), NULL)
#define tn_print_report_of(...) TN__CALL_VV(tn_print_report_with, tn_print_report_opts, __VA_ARGS__, )
#define tn_progress_bar(...) TN_AT(tn_progress_bar_with)(TN_OPTS(tn_progress_bar_opts, __VA_ARGS__))
#define tn_plot_report(...) TN__CALL_VV(tn_plot_report_with, tn_plot_report_opts, __VA_ARGS__, )
#define tn_tensorboard(...) TN_AT(tn_tensorboard_with)(TN_OPTS(tn_tensorboard_opts, __VA_ARGS__))
#define tn_observe_value(...) TN_HERE(tn_observe_value(__VA_ARGS__))
#define tn_observe_lr(...) TN_AT(tn_observe_lr_with)(TN_OPTS(tn_observe_lr_opts, __VA_ARGS__))
#define tn_micro_average(...) TN__CALL_VVV(tn_micro_average_with, tn_micro_average_opts, __VA_ARGS__, )
#define tn_fail_on_nan(...) TN_AT(tn_fail_on_nan_with)(TN_OPTS(tn_fail_on_nan_opts, __VA_ARGS__))
#define tn_parameter_statistics(...) \
    TN_AT(tn_parameter_statistics_with)(TN_OPTS(tn_parameter_statistics_opts, __VA_ARGS__))
#define tn_variable_statistics_plot(...) \
    TN__CALL_VV(tn_variable_statistics_plot_with, tn_variable_statistics_plot_opts, __VA_ARGS__, )
#define tn_dump_graph(...) TN__CALL_V(tn_dump_graph_with, tn_dump_graph_opts, __VA_ARGS__, )
#define tn_profile(...) TN_AT(tn_profile_with)(TN_OPTS(tn_profile_opts, __VA_ARGS__))
#define tn_exponential_shift(...) TN__CALL_VV(tn_exponential_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_inverse_shift(...) TN__CALL_VVV(tn_inverse_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_linear_shift(...) TN__CALL_VVVVV(tn_linear_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_multistep_shift(...) TN__CALL_VVVV(tn_multistep_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_polynomial_shift(...) TN__CALL_VVV(tn_polynomial_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_step_shift(...) TN__CALL_VVV(tn_step_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_warmup_shift(...) TN__CALL_VVV(tn_warmup_shift_with, tn_shift_opts, __VA_ARGS__, )
#define tn_cosine_shift(...) TN__CALL_V(tn_cosine_shift_with, tn_course_opts, __VA_ARGS__, )
#define tn_one_cycle_shift(...) TN__CALL_V(tn_one_cycle_shift_with, tn_course_opts, __VA_ARGS__, )
#define tn_reduce_on_plateau(...) TN__CALL_VV(tn_reduce_on_plateau_with, tn_plateau_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
