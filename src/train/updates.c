/* SPDX-License-Identifier: MIT */
/* The updater: one epoch of minibatches, forward, backward, step. */
#include <inttypes.h>
#include <math.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "core/error.h"
#include "train/run.h"

/* A loss that was computed along with its step costs nothing to read on the CPU. Elsewhere a reading waits for the
 * device, and once in so many steps is seldom enough to cost nothing either. */
#define STEPS_BETWEEN_LOOKS 256

static tn_status not_finite(const tn__run *run, double loss, int epoch, int64_t first, int64_t step)
{
    char steps[64], kept[64] = "no snapshot was made so far";
    if (first == step)
        snprintf(steps, sizeof steps, "at step %" PRId64, step);
    else
        snprintf(steps, sizeof steps, "in steps %" PRId64 " to %" PRId64, first, step);
    if (run->snapshot_epoch)
        snprintf(kept, sizeof kept, "the last good state, after epoch %d, is in", run->snapshot_epoch);
    return tn__fail(TN_ERR_NAN, "train",
                    "the loss became %g %s of epoch %d: lower the learning rate (the optimizer is %s), "
                    "clip gradients (clip_norm=1), or look for bad values in the data; %s%s%s",
                    loss, steps, epoch, run->words.text[TN__WORD_OPTIMIZER], kept, run->snapshot_epoch ? " " : "",
                    run->snapshot_epoch ? run->snapshot_path : "");
}

/* The loss if it is time to look at it, else 0. */
static double update(tn__run *run, const tn_batch *b, bool look)
{
    double seen = 0;
    TN_SCOPE {
        tn_array *loss = tn__task_loss(run->classifies, tn_forward(run->net, b->x), b->t);
        tn_backward_with(loss, &(tn_backward_opts){0});
        /* Before the step, which computes the total too: after it, an epoch's first step would be another plan. */
        tn_meter_add(run->loss, loss, (double)b->size);
        if (tn_step(run->optimizer) == TN_OK && look)
            seen = tn_item(loss);
    }
    return seen;
}

tn_status tn__run_updates(tn__run *run, int epoch, double *loss)
{
    int64_t step = 0, looked = 0, every = run->device.kind == TN_DEVICE_CUDA ? STEPS_BETWEEN_LOOKS : 1;
    for (tn_batch b; tn_loader_next(run->train, &b);) {
        bool look = ++step % every == 0;
        double seen = update(run, &b, look);
        if (!tn__latched() && !isfinite(seen))
            not_finite(run, seen, epoch, looked + 1, step);
        if (!tn__latched() && run->stop && *run->stop)
            return tn__fail(TN_ERR_STATE, "train", "stopped after step %" PRId64 " of epoch %d, as asked", step, epoch);
        looked = look ? step : looked;
        tn__report_step(&run->report, epoch, b.size);
    }
    if (tn__latched())
        return tn_error_code();
    *loss = tn_meter_take(run->loss);
    if (!tn__latched() && !isfinite(*loss))
        not_finite(run, *loss, epoch, looked + 1, step);
    return tn_error_code();
}
