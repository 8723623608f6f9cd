/* SPDX-License-Identifier: MIT */
/* What the extensions of tanso/extensions.h share. */
#ifndef TN_TRAIN_EXT_H
#define TN_TRAIN_EXT_H

#include <tanso/extensions.h>
#include "core/options.h"
#include "train/entry.h"
#include "train/parts.h"
#include "train/thinned.h"

/* ---- ext.c ---- */

/* Copies of names. */
typedef struct tn__keys {
    int count;
    char **names;
} tn__keys;
/* TN_ERR_VALUE for none at all, or a NULL among them. */
tn_status tn__keys_copy(tn__keys *keys, const char *operation, int count, const char *const *names);
void tn__keys_free(tn__keys *keys);

/* An extension of a state, which was made if `status` is TN_OK, or whatever there is of it is freed. `state` NULL:
 * there was no memory for it. */
tn_extension *tn__extension_of(const tn_extension_kind *kind, void *state, tn_status status);
/* The functions of a kind of report, by their usual names in its file. */
#define TN__REPORT_KIND(called) \
    {.name = called, .priority = TN_PRIORITY_READER, .initialize = initialize, .call = call, .finalize = finalize, \
     .serialize = serialize, .free = free_report}
/* A copy of an option's text, or of what it is by default; *status is set without memory. */
char *tn__text_option(const char *given, const char *absent, tn_status *status);
/* The same of a text that ends up in files, called `what` ("the title"): TN_ERR_VALUE if it is not UTF-8. */
char *tn__shown_option(const char *operation, const char *what, const char *given, const char *absent,
                       tn_status *status);
char *tn__key_option(const char *operation, const char *given, const char *absent, tn_status *status);
/* The same of a file's name: TN_ERR_VALUE for a path that leads out of the run's folder, into which files go. */
char *tn__file_option(const char *operation, const char *given, const char *absent, tn_status *status);
/* An option's trigger, or one for each epoch. */
tn_trigger *tn__each_epoch(tn_trigger *given, tn_status *status);

/* FOLDER/FILE of a run's folder, for tn__free; NULL with a latched error. */
char *tn__output_path(const tn_trainer *trainer, const char *file);
/*
 * The first field of the state of an extension that writes a file: its name, NULL for none. tn__output_claim is
 * TN_ERR_NAME if another extension of the trainer has the same, where what stands in braces counts as the same; else
 * removes what a killed run has left of it.
 */
typedef struct tn__output {
    char *file;
} tn__output;
/* Whether any of the trainer's extensions writes a file. */
bool tn__output_any(const tn_trainer *trainer);
/* Whether one of them writes a file of this name, or of this name with another ending, as a graph has its picture. */
bool tn__output_writes(const tn_trainer *trainer, const char *name);
tn_status tn__output_claim(const tn_trainer *trainer, const tn__output *mine);
/* The same, and whether a file can be written there, so that a run does not find out at its end. */
tn_status tn__output_probe(const tn_trainer *trainer, const tn__output *mine, const char *path);
extern const tn_extension_kind tn__log_report_kind, tn__print_report_kind, tn__plot_report_kind,
    tn__statistics_plot_kind, tn__dump_graph_kind, tn__profile_kind, tn__snapshot_kind, tn__snapshot_object_kind;

/* Whether the extension of this state is called each iteration, by no trigger. */
bool tn__called_each(const tn_trainer *trainer, const void *user);
/* Warns that no value of a name has come, and of which name may be meant. */
void tn__warn_missing(const char *operation, const char *key, const tn_observation *seen, const char *what);

/* Saves or loads the points of a curve. */
tn_status tn__thinned_serialize(const tn_serializer *s, const char *name, tn__thinned *curve);

/* ---- log_report.c ---- */

/* Told of each new entry of a log: its figures in order, the last three of which are the place in the run. */
typedef tn_status (*tn__log_listener)(tn_trainer *trainer, const tn_observation *entry, void *user);
/* Listens to the log of a name ("LogReport" for NULL), for good; TN_ERR_NAME if there is none. Once a user pointer. */
tn_status tn__log_listen(tn_trainer *trainer, const char *operation, const char *log, tn__log_listener listener,
                         void *user);
/* All entries so far have been told of: one of a device's figures comes some iterations late else. */
tn_status tn__log_all(tn_trainer *trainer, const char *log);
/* A value of an entry as it is shown: epochs and iterations are whole. */
tn__figure tn__entry_figure(const tn_observation *entry, const char *key);

#endif
