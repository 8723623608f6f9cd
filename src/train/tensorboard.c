/* SPDX-License-Identifier: MIT */
/* Entries of a log as TensorBoard's scalars. */
#include <math.h>
#include <string.h>
#include "train/events.h"
#include "train/ext.h"

#define OPERATION "tensorboard"

typedef struct board {
    char *folder, *log;
    tn__events events;
} board;

static tn_status note(tn_trainer *trainer, const tn_observation *entry, void *user)
{
    board *b = user;
    /* An entry that comes late has its own. One that a function of the program's has changed comes at once. */
    double own = tn_observation_number(entry, "iteration");
    int64_t iteration = isfinite(own) ? (int64_t)own : tn_trainer_iteration(trainer);
    tn_status status = TN_OK;
    for (int i = 0; i < tn_observation_count(entry) && status == TN_OK; i++) {
        const char *key = tn_observation_key(entry, i);
        if (strcmp(key, "iteration") != 0) /* that is where the others are */
            status = tn__events_scalar(&b->events, key, tn_observation_number(entry, key), iteration);
    }
    return status == TN_OK ? tn__events_flush(&b->events) : status;
}

/* A run that goes on voids what the one before has written since the snapshot. */
static tn_status initialize(tn_trainer *trainer, void *user)
{
    board *b = user;
    int64_t done = tn_trainer_iteration(trainer);
    tn_status status = tn__log_listen(trainer, OPERATION, b->log, note, b);
    tn__events_close(&b->events);
    if (status == TN_OK)
        status = tn__events_open(&b->events, b->folder ? b->folder : tn_trainer_out(trainer), done ? done + 1 : 0);
    return status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    board *b = user;
    tn__log_all(trainer, b->log);
    tn__events_close(&b->events);
}

static void free_board(void *user)
{
    board *b = user;
    tn__events_close(&b->events);
    tn__free(b->folder);
    tn__free(b->log);
    tn__free(b);
}

static const tn_extension_kind kind = {.name = "TensorBoard",
                                       .priority = TN_PRIORITY_READER,
                                       .initialize = initialize,
                                       .finalize = finalize,
                                       .free = free_board};

tn_extension *tn_tensorboard_with(const tn_tensorboard_opts *opts)
{
    static const tn_tensorboard_opts defaults;
    opts = opts ? opts : &defaults;
    board *b = tn__calloc(1, sizeof *b);
    tn_status status = TN_OK;
    if (b) {
        b->folder = tn__text_option(opts->folder, NULL, &status);
        b->log = tn__text_option(opts->log, NULL, &status);
    }
    return tn__extension_of(&kind, b, status);
}
