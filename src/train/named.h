/* SPDX-License-Identifier: MIT */
/* Extensions of a run by name: the table (named.c), and how words are looked up in it (named_words.c). */
#ifndef TN_TRAIN_NAMED_H
#define TN_TRAIN_NAMED_H

#include "train/parts.h"
#include "train/run.h"
#include "train/settings.h"

/* What one word makes, besides the extension. */
typedef struct tn__making {
    tn__run *run; /* NULL: words are only checked */
    tn__settings *settings;
    tn_trigger *trigger;        /* of the extension; NULL: by the row */
    const char *every;          /* instead of the row's, where these settings want it; NULL: the row's */
    tn_trigger *stop;           /* ends the run, too */
    tn_trigger *snapshot_every; /* when the run's snapshot is made */
} tn__making;

typedef struct tn__named_part {
    tn_train_part part;
    tn_extension *(*make)(tn__making *making); /* NULL: there is no extension, or settings that say why */
    const char *every; /* its trigger unless the setting `every` gives one; NULL: the extension's usual one */
    bool own_every;    /* `make` asks for that setting */
    bool gathers;      /* all ranks have it, as what they have apart is brought together for it */
    bool writes;       /* files into the run's folder */
    bool reads_log;    /* entries of a log report */
} tn__named_part;
extern const tn__named_part tn__named_parts[];
extern const int tn__named_part_count;

#endif
