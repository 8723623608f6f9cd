/* SPDX-License-Identifier: MIT */
/* The progress bar as an extension. */
#include "train/bar.h"
#include "train/ext.h"

/* Seconds between two drawings. */
#define REDRAW 0.1

typedef struct progress {
    tn__bar bar;
    tn_progress_bar_opts opts;
    double next;
} progress;

static tn_status initialize(tn_trainer *trainer, void *user)
{
    progress *p = user;
    if (p->opts.total.count == 0)
        p->opts.total = tn_trainer_length(trainer);
    tn__bar_begin(&p->bar, p->opts.stream, p->opts.length);
    p->next = 0;
    return TN_OK;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    progress *p = user;
    if (!p->bar.stream)
        return TN_OK;
    double now = tn__trainer_now(trainer);
    int64_t iteration = tn_trainer_iteration(trainer);
    if (p->opts.every > 0 ? iteration % p->opts.every : now < p->next)
        return TN_OK;
    p->next = now + REDRAW;
    tn__standing where = {iteration, tn_trainer_epoch_detail(trainer), p->opts.total.count,
                          p->opts.total.unit == TN_EPOCH};
    tn__bar_draw(&p->bar, &where, now);
    return TN_OK;
}

static void finalize(tn_trainer *trainer, void *user)
{
    (void)trainer;
    tn__bar_wipe(&((progress *)user)->bar);
}

static const tn_extension_kind kind = {.name = "ProgressBar",
                                       .priority = TN_PRIORITY_READER,
                                       .initialize = initialize,
                                       .call = call,
                                       .finalize = finalize,
                                       .free = tn__free};

tn_extension *tn_progress_bar_with(const tn_progress_bar_opts *opts)
{
    progress *p = tn__calloc(1, sizeof *p);
    tn_status status = TN_OK;
    if (p && opts)
        p->opts = *opts;
    if (p && (p->opts.every < 0 || p->opts.length < 0 || p->opts.total.count < 0))
        status = tn__fail(TN_ERR_VALUE, "progress_bar",
                          "expected counts of 0 or more, got .every = %d, .length = %d, "
                          "a total of %g",
                          p->opts.every, p->opts.length, p->opts.total.count);
    return tn__extension_quiet(tn__extension_of(&kind, p, status));
}
