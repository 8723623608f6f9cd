/* SPDX-License-Identifier: MIT */
/*
 * The record of a run of tn_train: mean losses by samples, a row of figures an epoch, a line about it, and an end to
 * the run where a loss is not finite.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tanso/comm.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "core/clock.h"
#include "comm/comm.h"
#include "train/meter.h"
#include "train/parts.h"
#include "train/run.h"

/* Before all other extensions. */
#define PRIORITY 400
#define LOSS "main/loss"

/* A loss that was computed along with its step costs nothing to read on the CPU. Elsewhere a reading waits for the
 * device, and once in so many steps is seldom enough to cost nothing either. */
#define STEPS_BETWEEN_LOOKS 256

/* Seconds. At the end of an epoch's training a device is waited for, as its rate is asked for; not in one that the host
 * was through with sooner, where the wait would take a good part of it: its rate counts the time of testing, too. */
#define BRIEF 0.01

/* ---- places ---- */

static int64_t step_of(const tn__run *run, int64_t iteration, int64_t *epoch)
{
    int64_t length = tn_loader_length(run->train);
    *epoch = (iteration - 1) / length + 1;
    return (iteration - 1) % length + 1;
}

tn__place tn__run_place(const tn__run *run, int64_t iteration)
{
    tn__place place;
    int64_t epoch, step = step_of(run, iteration, &epoch);
    if (step == tn_loader_length(run->train))
        snprintf(place.text, sizeof place.text, "epoch %" PRId64, epoch);
    else
        snprintf(place.text, sizeof place.text, "step %" PRId64 " of epoch %" PRId64, step, epoch);
    return place;
}

/* ---- losses ---- */

static const char *const tested[] = {"validation/main/loss", "validation/main/accuracy"};

static tn_status not_finite(const tn__run *run, double loss, int64_t last)
{
    char steps[80], whose[24] = "", kept[112] = "no snapshot was made so far";
    int64_t epoch, step = step_of(run, last, &epoch), since = last - run->looked, good = tn__output_snapshot(run);
    int64_t first = since < step ? step - since + 1 : 1;
    if (first == step)
        snprintf(steps, sizeof steps, "at step %" PRId64, step);
    else
        snprintf(steps, sizeof steps, "in steps %" PRId64 " to %" PRId64, first, step);
    if (good > 0)
        snprintf(kept, sizeof kept, "the last good state, after %s, is in", tn__run_place(run, good).text);
    if (run->comm)
        snprintf(whose, sizeof whose, " of rank %d", tn_comm_rank(run->comm));
    return tn__fail(TN_ERR_NAN, "train",
                    "the loss%s became %g %s of epoch %" PRId64 ": lower the learning rate (the optimizer is %s), "
                    "clip gradients (clip_norm=1), or look for bad values in the data; %s%s%s",
                    whose, loss, steps, epoch, run->config.text[TN__CONFIG_OPTIMIZER], kept, good > 0 ? " " : "",
                    good > 0 ? run->snapshot_path : "");
}

static tn_status look(tn__run *run, const tn_trainer *trainer, int64_t iteration)
{
    double loss = tn_observation_number(tn_trainer_observation(trainer), LOSS);
    if (!tn__latched() && !isfinite(loss))
        not_finite(run, loss, iteration);
    run->looked = iteration;
    return tn_error_code();
}

/* Each loss is added to the mean before the step, which computes the sum too: after it, an epoch's first step would be
 * another plan. What nobody looks at, the accuracy of a run without extensions, is not computed. That of another device
 * is sent to the run's once, for the mean and the report. */
tn_array *tn__record_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    tn__run *run = user;
    tn_array *loss, *seen;
    if (*run->config.text[TN__CONFIG_EXTEND]) {
        seen = loss = tn_usual_loss(model, batch, NULL);
    } else {
        loss = tn__task_loss(run->classifies, tn_forward(model, batch->x), batch->t);
        seen = run->devices ? tn_to(loss, run->device) : loss;
        tn_report_with(model, "loss", seen, NULL);
    }
    if (!tn_is_error(loss))
        tn_summary_add(run->losses, LOSS, seen, (double)batch->size);
    return loss;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    tn_progress at = tn_trainer_progress(trainer);
    tn_status status = tn_error_code();
    run->done += at.samples - at.previous_samples;
    bool each = run->device.kind != TN_DEVICE_CUDA;
    bool brief = !each && at.is_new_epoch && tn__seconds() - run->began < BRIEF;
    if (status == TN_OK && !brief && (each || at.is_new_epoch || at.iteration % STEPS_BETWEEN_LOOKS == 0))
        status = look(run, trainer, at.iteration);
    if (at.is_new_epoch)
        run->trained = brief ? 0 : tn__seconds();
    else
        tn__line_within(&run->lines, (int)(at.samples / at.size) + 1, at.samples % at.size, run->done,
                        tn__seconds() - run->began);
    return status;
}

/* ---- epochs ---- */

/* The sums of an epoch, over all ranks; what the test samples gave is put beside them, so that all are read by one
 * wait. */
static tn_status sum_up(const tn__run *run, const tn_observation *seen)
{
    tn_status status = run->comm ? tn__summary_share(run->losses, run->comm) : TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++)
        if (tn_observation_array(seen, tested[i]))
            status = tn_summary_add(run->losses, tested[i], tn_observation_array(seen, tested[i]), 1);
    return status;
}

static double value_of(const tn__run *run, const tn_observation *seen, const char *key)
{
    return tn_summary_has(run->losses, key) ? tn_summary_mean(run->losses, key) : tn_observation_number(seen, key);
}

static tn_status after(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    if (!tn_trainer_is_new_epoch(trainer))
        return TN_OK;
    const tn_observation *seen = tn_trainer_observation(trainer);
    if (sum_up(run, seen) != TN_OK)
        return tn_error_code();
    tn_epoch row = {.epoch = (int)tn_trainer_epoch(trainer),
                    .train_loss = value_of(run, seen, LOSS),
                    .test_loss = value_of(run, seen, tested[0]),
                    .test_accuracy = value_of(run, seen, tested[1])};
    double now = tn__seconds();
    row.seconds = run->spent + now - run->began;
    row.samples_per_second = (double)run->done / ((run->trained > 0 ? run->trained : now) - run->began);
    if (run->comm)
        row.samples_per_second *= tn_comm_size(run->comm);
    tn_summary_clear(run->losses);
    run->spent = 0;
    run->done = 0;
    run->began = now;
    if (tn__latched())
        return tn_error_code();
    if (!isfinite(row.train_loss))
        return not_finite(run, row.train_loss, tn_trainer_iteration(trainer));
    run->looked = tn_trainer_iteration(trainer);
    tn_status status = tn__history_add(&run->history, &row);
    if (status == TN_OK)
        tn__line_of_epoch(&run->lines, &row);
    return status;
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    tn__run *run = user;
    run->looked = tn_trainer_iteration(trainer);
    run->began = tn__seconds();
    run->told = -1;
    return TN_OK;
}

/* ---- snapshots ---- */

/* Each rank adds its own losses up, and one writes the snapshot: so that keeps the sums of all of them, apart, as those
 * of as many ranks then go on in the order of a run that was not stopped. */
enum { HAS_TOTAL, TOTAL, AT_ONCE, WEIGHT, RANK_LOSS };
#define RANK_LOSSES "rank_losses"

tn_status tn__record_tell(tn__run *run, int64_t iteration)
{
    tn__meter_sums sums;
    tn_shape own = {.ndim = 1, .dim = {RANK_LOSS}};
    size_t bytes = sizeof(double) * RANK_LOSS * (size_t)tn_comm_size(run->comm);
    tn_status status = tn__summary_read(run->losses, LOSS, &sums);
    const double told[] = {sums.has_total, sums.total, sums.at_once, sums.weight};
    if (!run->rank_losses)
        run->rank_losses = tn__alloc(bytes);
    if (status == TN_OK && !run->rank_losses)
        status = tn__fail_memory("train", bytes);
    if (status != TN_OK)
        return tn__comm_break(run->comm, true); /* the others wait */
    TN_SCOPE {
        const tn_create_opts on_host = {.device = tn_cpu()};
        tn_array *all = tn_comm_all_gather(run->comm, tn_from_host_with(told, own, TN_FLOAT64, &on_host));
        status = tn_to_host(all, run->rank_losses, bytes);
    }
    run->told = iteration;
    return status;
}

static tn_status save_rank_losses(const tn_serializer *s, const tn__run *run)
{
    tn_shape shape = {.ndim = 2, .dim = {tn_comm_size(run->comm), RANK_LOSS}};
    const tn_create_opts on_host = {.device = tn_cpu()};
    TN_SCOPE tn__serializer_put(s, RANK_LOSSES, tn_from_host_with(run->rank_losses, shape, TN_FLOAT64, &on_host));
    return tn_error_code();
}

/* This rank's, of as many. */
static tn_status take_rank_losses(const tn_serializer *s, tn__run *run, int64_t ranks, const double *told)
{
    int64_t own = run->comm ? tn_comm_size(run->comm) : 1;
    if (ranks != own)
        return tn__fail(TN_ERR_VALUE, "train",
                        "'%s' was made within an epoch, by %" PRId64 " ranks, each of which has taken its share of the "
                        "samples: go on from there with as many; snapshots of an epoch's end are for any number",
                        s->file, ranks);
    told += RANK_LOSS * (run->comm ? tn_comm_rank(run->comm) : 0);
    const tn__meter_sums sums = {told[HAS_TOTAL] != 0, told[TOTAL], told[AT_ONCE], told[WEIGHT]};
    tn_summary_clear(run->losses);
    return sums.weight > 0 ? tn__summary_restore(run->losses, LOSS, run->device, &sums) : TN_OK;
}

static tn_status load_rank_losses(const tn_serializer *s, tn__run *run)
{
    tn_status status = TN_OK;
    if (!tn_serializer_has(s, RANK_LOSSES)) /* of a process alone, or of an epoch's end */
        return TN_OK;
    TN_SCOPE {
        tn_array *told = tn__serializer_get(s, RANK_LOSSES);
        bool good = told && tn_ndim(told) == 2 && tn_dim(told, 1) == RANK_LOSS && tn_dtype_of(told) == TN_FLOAT64;
        int64_t ranks = good ? tn_dim(told, 0) : 0;
        TN__FREED double *numbers = tn__alloc(sizeof(double) * RANK_LOSS * (size_t)ranks + 1);
        if (!good)
            status = told ? tn__fail(TN_ERR_FORMAT, "train", "'%s': %s is no list of the ranks' losses", s->file,
                                     RANK_LOSSES) : tn_error_code();
        else if (!numbers)
            status = tn__fail_memory("train", sizeof(double) * RANK_LOSS * (size_t)ranks);
        else
            status = tn_to_host(told, numbers, sizeof(double) * RANK_LOSS * (size_t)ranks);
        if (status == TN_OK)
            status = take_rank_losses(s, run, ranks, numbers);
    }
    return status;
}

/* When the configuration's own snapshots are due: here, as all ranks ask that, and one alone has the snapshot's
 * extension. */
static tn_status serialize_every(const tn_serializer *s, tn__run *run)
{
    bool there = run->snapshot_every != NULL;
    if (s->loading && !tn_serializer_has(s, "has_every"))
        return TN_OK;
    tn_status status = tn_serialize_bool(s, "has_every", &there);
    return status == TN_OK && there && run->snapshot_every ? tn_serialize_trigger(s, "every", run->snapshot_every)
                                                           : status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    tn__run *run = user;
    double spent = run->spent + tn__seconds() - run->began;
    tn_status status = s->loading ? tn__history_restore(&run->history, s->archive, s->file)
                                  : tn__history_archive(&run->history, s->archive);
    if (status == TN_OK && !s->loading)
        status = tn__config_archive(&run->config, s->archive);
    if (status == TN_OK)
        status = tn_serialize_summary(s, "losses", run->losses);
    if (status == TN_OK && s->loading)
        status = load_rank_losses(s, run);
    else if (status == TN_OK && run->rank_losses && run->told == tn_trainer_iteration(run->trainer))
        status = save_rank_losses(s, run);
    if (status == TN_OK)
        status = serialize_every(s, run);
    if (status == TN_OK)
        status = tn_serialize_double(s, "spent", &spent);
    if (status == TN_OK && s->loading)
        run->spent = spent;
    return status;
}

static const tn_extension_kind kind = {.name = "run",
                                       .priority = PRIORITY,
                                       .initialize = initialize,
                                       .call = call,
                                       .after = after,
                                       .serialize = serialize};

tn_extension *tn__record_new(tn__run *run)
{
    run->losses = tn_summary_new_with(NULL);
    return tn_extension_new(&kind, run);
}
