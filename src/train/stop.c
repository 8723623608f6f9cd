/* SPDX-License-Identifier: MIT */
/*
 * When a run of tn_train ends. Its epochs are looked at without any memory: so a snapshot that is made after the end is
 * one to go on from with more of them. That it was stopped early is remembered, as an early stopping is asked once an
 * iteration.
 */
#include <stdio.h>
#include "train/parts.h"
#include "train/run.h"

static bool stop_fire(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    if (tn_trainer_epoch(trainer) >= run->epochs)
        return true;
    for (int i = 0; i < run->stopper_count && !run->stopped_early; i++)
        run->stopped_early = tn_trigger_fire(run->stoppers[i], trainer);
    return run->stopped_early;
}

static tn_status stop_serialize(const tn_serializer *s, void *user)
{
    tn__run *run = user;
    tn_status status = tn_serialize_bool(s, "stopped_early", &run->stopped_early);
    for (int i = 0; i < run->stopper_count && status == TN_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        status = tn_serialize_trigger(s, name, run->stoppers[i]);
    }
    return status;
}

static tn_length stop_length(const void *user) { return (tn_length){((const tn__run *)user)->epochs, TN_EPOCH}; }

static const tn_trigger_kind stop_kind = {
    .name = "run", .fire = stop_fire, .serialize = stop_serialize, .length = stop_length};

tn_trigger *tn__stop_new(tn__run *run) { return tn_trigger_new(&stop_kind, run); }
