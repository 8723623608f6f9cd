/* SPDX-License-Identifier: MIT */
/*
 * What a network tells while it computes: values by name, reported from anywhere, and their means.
 *
 * tn_report(layer, "loss", loss), called inside a layer's forward, lands in the observation of whoever runs it, under
 * the path of the layer: "main/loss" in a training iteration, "validation/main/loss" in an evaluation. Values stay on
 * their device: nobody waits for one until it is read. Where nobody listens a report costs nothing and does nothing.
 */
#ifndef TANSO_REPORT_H
#define TANSO_REPORT_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keys as the two arguments that functions take them by: tn_plot_report(TN_KEYS_OF("main/loss", "lr")). */
#define TN_KEYS_OF(...) TN__LIST(const char *, __VA_ARGS__)

/* ---- observations ---- */

/* An ordered map from keys to scalars: numbers, or arrays of one element on their device; each with a weight. Never
 * NULL, like all of these objects: one that could not be made is inert. */
typedef struct tn_observation tn_observation;
TN_API tn_observation *tn_observation_new(void);
/* NULL is ignored. */
TN_API void tn_observation_free(tn_observation *observation);
/* Forgets all entries. */
TN_API void tn_observation_clear(tn_observation *observation);
/* Sets an entry; one that is there is replaced and keeps its place. A key that is not UTF-8 is TN_ERR_VALUE here and
 * wherever else one is given: logs and snapshots need that. The array must have one element (else TN_ERR_SHAPE); the
 * observation gets a handle of its own to its value. A weight of 0 stands for "not given". */
TN_API tn_status tn_observation_set(tn_observation *observation, const char *key, const tn_array *value, double weight);
TN_API tn_status tn_observation_set_number(tn_observation *observation, const char *key, double value, double weight);
TN_API int tn_observation_count(const tn_observation *observation);
/* Key i, from 0, in the order of first setting; "" with TN_ERR_INDEX latched out of range. */
TN_API const char *tn_observation_key(const tn_observation *observation, int i);
TN_API bool tn_observation_has(const tn_observation *observation, const char *key);
/* The array of an entry, the observation's; NULL if there is none or it is a number. */
TN_API tn_array *tn_observation_array(const tn_observation *observation, const char *key);
/* The value of an entry as a number: an array is computed and read, which waits for its device. NaN if there is no
 * such entry (nothing is latched) or on an error (latched). */
TN_API double tn_observation_number(const tn_observation *observation, const char *key);
/* The weight that was given, 0 if none was or there is no entry. */
TN_API double tn_observation_weight(const tn_observation *observation, const char *key);

/* ---- reporting ---- */

typedef struct tn_report_opts {
    const char *_;
    double weight; /* of the value in a mean, as its number of samples; default: the minibatch's samples in an
                      evaluation, else 1 */
} tn_report_opts;

/* Reports a value (one element) of a layer; a NULL observer gives the key `name` as it is. Goes to the thread's current
 * reporter; without one, nothing happens. A layer that the reporter does not know, it nor one above it, is TN_ERR_NAME.
 * A later report of one key in an observation replaces the earlier one. */
TN_API tn_status tn_report_with(const tn_layer *observer, const char *name, const tn_array *value,
                                const tn_report_opts *opts);
TN_API tn_status tn_report_number_with(const tn_layer *observer, const char *name, double value,
                                       const tn_report_opts *opts);

/* A table of layers by name, and who wants to see what as it is reported. */
typedef struct tn_reporter tn_reporter;
TN_API tn_reporter *tn_reporter_new(void);
/* NULL is ignored. */
TN_API void tn_reporter_free(tn_reporter *reporter);
/* Knows a layer by a name, and what is below it, now or later, by that name and the path: "main/predictor/0". The layer
 * must live until the reporter is freed. One known already gets the new name. */
TN_API tn_status tn_reporter_add(tn_reporter *reporter, const char *name, const tn_layer *layer);
/* Calls `seen` with each value that is reported under the key, at that moment: what it is computed from is still there
 * to be drawn. Several may watch one key. */
TN_API tn_status tn_reporter_watch(tn_reporter *reporter, const char *key,
                                   void (*seen)(const tn_array *value, void *user), void *user);
/* Takes away what was asked with this user pointer. */
TN_API void tn_reporter_unwatch(tn_reporter *reporter, void *user);

/* Reports of this thread go to `reporter` and into `observation`, until the pop. They nest; each push wants its pop,
 * even one that failed. tn_report_scope_push keeps the current reporter (nothing is reported without one). */
TN_API tn_status tn_reporter_push(tn_reporter *reporter, tn_observation *observation);
TN_API tn_status tn_report_scope_push(tn_observation *observation);
TN_API void tn_reporter_pop(void);
/* Where reports of this thread go now; NULL: nowhere. */
TN_API tn_observation *tn_current_observation(void);

typedef struct tn__report_guard {
    char _;
} tn__report_guard;
TN_API tn__report_guard tn__report_enter(tn_reporter *reporter, tn_observation *observation);
TN_API tn__report_guard tn__report_scope_enter(tn_observation *observation);
TN_API void tn__report_leave(tn__report_guard *guard);
#if defined(__GNUC__)
/* TN_REPORTER(reporter, observation) { ... } and TN_REPORT_SCOPE(observation) { ... }: left however the block is. */
#define TN_REPORTER(reporter, observation) TN__BLOCK(report, tn__report_enter(reporter, observation))
#define TN_REPORT_SCOPE(observation) TN__BLOCK(report, tn__report_scope_enter(observation))
#endif

/* ---- means ---- */

/*
 * Weighted means by key over any number of observations, in the order in which keys came first; each key's mean is over
 * those observations that had it. Sums are float64, made on the device where the values are, as tn_meter's: adding
 * waits for nothing, reading waits once.
 */
typedef struct tn_summary tn_summary;
typedef struct tn_summary_opts {
    const char *_;
    bool deviations; /* keep sums of squares as well, for tn_summary_deviation */
} tn_summary_opts;
TN_API tn_summary *tn_summary_new_with(const tn_summary_opts *opts);
/* NULL is ignored. */
TN_API void tn_summary_free(tn_summary *summary);
/* Adds an array of one element, or a number; a weight of 0 stands for 1. A failure is latched, and that key's mean is
 * NaN. */
TN_API tn_status tn_summary_add(tn_summary *summary, const char *key, const tn_array *value, double weight);
TN_API tn_status tn_summary_add_number(tn_summary *summary, const char *key, double value, double weight);
/* Adds what an observation holds, each with its weight, 1 where none was given. */
TN_API tn_status tn_summary_add_observation(tn_summary *summary, const tn_observation *observation);
/* Starts anew, without keys. */
TN_API void tn_summary_clear(tn_summary *summary);
TN_API int tn_summary_count(const tn_summary *summary);
/* "" with TN_ERR_INDEX latched out of range. */
TN_API const char *tn_summary_key(const tn_summary *summary, int i);
TN_API bool tn_summary_has(const tn_summary *summary, const char *key);
/* The mean of a key so far, which goes on; NaN if nothing was added, or on an error (latched). */
TN_API double tn_summary_mean(tn_summary *summary, const char *key);
/* The square root of the weighted mean of squares less the mean's square; NaN without `deviations`. */
TN_API double tn_summary_deviation(tn_summary *summary, const char *key);
/* Sets each key's mean in an observation under `prefix` and the key (prefix NULL: the key alone), as arrays where the
 * sums are on a device, without waiting. */
TN_API tn_status tn_summary_observe(tn_summary *summary, const char *prefix, tn_observation *observation);

#ifndef TN_NO_MACROS
#define tn_report(...) TN__CALL_VVV(tn_report_with, tn_report_opts, __VA_ARGS__, )
#define tn_report_number(...) TN__CALL_VVV(tn_report_number_with, tn_report_opts, __VA_ARGS__, )
#define tn_summary_new(...) TN_AT(tn_summary_new_with)(TN_OPTS(tn_summary_opts, __VA_ARGS__))
#define tn_observation_set_number(...) TN_HERE(tn_observation_set_number(__VA_ARGS__))
#define tn_observation_key(...) TN_HERE(tn_observation_key(__VA_ARGS__))
#define tn_observation_array(...) TN_HERE(tn_observation_array(__VA_ARGS__))
#define tn_observation_has(...) TN_HERE(tn_observation_has(__VA_ARGS__))
#define tn_observation_weight(...) TN_HERE(tn_observation_weight(__VA_ARGS__))
#define tn_observation_count(...) TN_HERE(tn_observation_count(__VA_ARGS__))
#define tn_observation_clear(...) TN_HERE(tn_observation_clear(__VA_ARGS__))
#define tn_reporter_add(...) TN_HERE(tn_reporter_add(__VA_ARGS__))
#define tn_reporter_watch(...) TN_HERE(tn_reporter_watch(__VA_ARGS__))
#define tn_reporter_push(...) TN_HERE(tn_reporter_push(__VA_ARGS__))
#define tn_report_scope_push(...) TN_HERE(tn_report_scope_push(__VA_ARGS__))
#define tn_summary_add(...) TN_HERE(tn_summary_add(__VA_ARGS__))
#define tn_summary_add_number(...) TN_HERE(tn_summary_add_number(__VA_ARGS__))
#define tn_summary_add_observation(...) TN_HERE(tn_summary_add_observation(__VA_ARGS__))
#define tn_summary_clear(...) TN_HERE(tn_summary_clear(__VA_ARGS__))
#define tn_summary_count(...) TN_HERE(tn_summary_count(__VA_ARGS__))
#define tn_summary_key(...) TN_HERE(tn_summary_key(__VA_ARGS__))
#define tn_summary_has(...) TN_HERE(tn_summary_has(__VA_ARGS__))
#define tn_summary_mean(...) TN_HERE(tn_summary_mean(__VA_ARGS__))
#define tn_summary_deviation(...) TN_HERE(tn_summary_deviation(__VA_ARGS__))
#define tn_summary_observe(...) TN_HERE(tn_summary_observe(__VA_ARGS__))
#define tn_reporter_pop() TN_HERE(tn_reporter_pop())
#define tn_observation_set(...) TN_HERE(tn_observation_set(__VA_ARGS__))
#define tn_observation_number(...) TN_HERE(tn_observation_number(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
