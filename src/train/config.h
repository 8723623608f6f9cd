/* SPDX-License-Identifier: MIT */
/* The words that describe a training run: what was asked for, what the defaults fill in, what a snapshot remembers. */
#ifndef TN_TRAIN_CONFIG_H
#define TN_TRAIN_CONFIG_H

#include <tanso/io.h>
#include <tanso/train.h>

typedef enum tn__word {
    TN__WORD_DATASET,
    TN__WORD_SAMPLES,
    TN__WORD_MODEL,
    TN__WORD_OPTIMIZER,
    TN__WORD_SCHEDULE,
    TN__WORD_EXTEND,
    TN__WORD_BATCH,
    TN__WORD_SEED,
    TN__WORD_EPOCHS,
    TN__WORD_INPUT, /* the shape of one sample: "64" or "28,28" */
    TN__WORD_COUNT
} tn__word;

typedef struct tn__config {
    char *text[TN__WORD_COUNT]; /* owned; NULL: not said */
} tn__config;

void tn__config_free(tn__config *words);
tn_status tn__config_set(tn__config *words, tn__word word, const char *format, ...) TN_PRINTF(3, 4);
/* A word that is a number; 0 when it is not said. */
uint64_t tn__config_number(const tn__config *words, tn__word word);

/* What the caller of tn_train_with said. */
tn_status tn__config_given(tn__config *words, const char *dataset, const tn_train_opts *opts);
/* A model that ends in ":*", as "linear:*", or is one of tanso/models.h by its name alone, gets its number of outputs:
 * that of classes, or of values a target has. */
tn_status tn__config_fit(tn__config *words, int64_t outputs);
/* Takes what was not said from a snapshot, and refuses what was said otherwise. */
tn_status tn__config_resume(tn__config *words, const tn_archive *snapshot, const char *path);
/* Takes what is still not said from the recipe. */
tn_status tn__config_default(tn__config *words, int64_t outputs);
/* TN_OK if all ranks have the same, and all go on from a snapshot or none; else latched, on each. */
tn_status tn__config_compare(const tn__config *words, int shard, bool goes_on, tn_comm *comm);
/* Adds them to a file's metadata as "tanso.dataset" and so on. */
tn_status tn__config_archive(const tn__config *words, tn_archive *archive);

#endif
