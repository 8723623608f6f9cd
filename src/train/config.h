/* SPDX-License-Identifier: MIT */
/* The configuration of a training run: what was asked for, what the defaults fill in, what a snapshot remembers. */
#ifndef TN_TRAIN_CONFIG_H
#define TN_TRAIN_CONFIG_H

#include <tanso/io.h>
#include <tanso/train.h>

typedef enum tn__config_key {
    TN__CONFIG_DATASET,
    TN__CONFIG_SAMPLES,
    TN__CONFIG_MODEL,
    TN__CONFIG_OPTIMIZER,
    TN__CONFIG_SCHEDULE,
    TN__CONFIG_EXTEND,
    TN__CONFIG_BATCH,
    TN__CONFIG_SEED,
    TN__CONFIG_EPOCHS,
    TN__CONFIG_INPUT, /* the shape of one sample: "64" or "28,28" */
    TN__CONFIG_COUNT
} tn__config_key;

typedef struct tn__config {
    char *text[TN__CONFIG_COUNT]; /* owned; NULL: not said */
} tn__config;

void tn__config_free(tn__config *config);
tn_status tn__config_set(tn__config *config, tn__config_key key, const char *format, ...) TN_PRINTF(3, 4);
/* An entry that is a number; 0 when it is not said. */
uint64_t tn__config_number(const tn__config *config, tn__config_key key);

/* What the caller of tn_train_with said. */
tn_status tn__config_given(tn__config *config, const char *dataset, const tn_train_opts *opts);
/* A model that ends in ":*", as "linear:*", or is one of tanso/models.h by its name alone, gets its number of outputs:
 * that of classes, or of values a target has. */
tn_status tn__config_fit(tn__config *config, int64_t outputs);
/* Takes what was not said from a snapshot, and refuses what was said otherwise. */
tn_status tn__config_resume(tn__config *config, const tn_archive *snapshot, const char *path);
/* Takes what is still not said from the recipe. */
tn_status tn__config_default(tn__config *config, int64_t outputs);
/* TN_OK if all ranks have the same, and all go on from a snapshot or none; else latched, on each. */
tn_status tn__config_compare(const tn__config *config, int shard, bool goes_on, tn_comm *comm);
/* Adds them to a file's metadata as "tanso.dataset" and so on. */
tn_status tn__config_archive(const tn__config *config, tn_archive *archive);

#endif
