/* SPDX-License-Identifier: MIT */
/* Means that are read late, see late.h. */
#include "train/late.h"

#include "core/memory.h"
#include "train/chainer.h"
#include "train/meter.h"

tn__place tn__place_of(const tn_trainer *trainer)
{
    return (tn__place){.epoch = (double)tn_trainer_epoch(trainer),
                       .iteration = (double)tn_trainer_iteration(trainer),
                       .elapsed = tn_trainer_elapsed_time(trainer)};
}

static tn__reading *begin_reading(int count, tn_meter *const *far)
{
    TN__FREED tn__node **totals = tn__alloc((size_t)count * sizeof *totals);
    if (!totals)
        return NULL;
    for (int i = 0; i < count; i++)
        totals[i] = tn__array_node(tn__meter_unread(far[i]));
    for (int i = 1; i < count; i++)
        if (totals[i]->device != totals[0]->device)
            return NULL;
    return tn__reading_begin(count, totals);
}

/* The next means begin in the memory of these, and so do those of each epoch: at other addresses the step's graph would
 * be made anew for each. */
static void leave_to_copies(const tn__reading *reading, int count, tn_meter *const *far)
{
    tn__call call = tn__enter();
    for (int i = 0; i < count; i++)
        tn__meter_stand_in(far[i], tn__reading_copy(reading, i));
    tn__leave(call);
}

tn_status tn__late_begin(tn__late *late, tn_summary **means, const tn_trainer *trainer)
{
    if (late->pending || tn__latched())
        return tn_error_code();
    int count;
    tn_meter **far;
    tn_status status = tn__summary_far(*means, &count, &far);
    if (status == TN_OK && count && !late->means)
        late->means = tn_summary_new_with(NULL);
    tn__reading *reading = status == TN_OK && count ? begin_reading(count, far) : NULL;
    if (!reading || tn__latched()) { /* also where there was no memory for the next means */
        tn__reading_free(reading);
        tn__free(far);
        return tn_error_code();
    }
    leave_to_copies(reading, count, far);
    tn_summary *empty = late->means;
    *late = (tn__late){true, *means, tn__place_of(trainer), reading, count, far};
    *means = empty;
    return TN_OK;
}

static void stop_reading(tn__late *late)
{
    tn__reading_free(late->reading);
    tn__free(late->far);
    late->reading = NULL;
    late->far = NULL;
}

tn_status tn__late_come(tn__late *late, bool wait, bool *come)
{
    *come = late->pending;
    tn_status status = late->reading ? tn__reading_end(late->reading, wait, come) : TN_OK;
    if (!*come || !late->reading)
        return status;
    for (int i = 0; i < late->count && status == TN_OK; i++)
        tn__meter_know(late->far[i], tn__reading_value(late->reading, i));
    stop_reading(late);
    return status;
}

void tn__late_end(tn__late *late)
{
    stop_reading(late);
    tn_summary_clear(late->means);
    late->pending = false;
}

tn_status tn__late_serialize(const tn_serializer *s, tn__late *late)
{
    if (s->loading)
        tn__late_end(late);
    if (s->loading ? tn__of_chainer(s) || !tn_serializer_has(s, "_late/iteration") : !late->pending)
        return tn_error_code();
    if (!late->means)
        late->means = tn_summary_new_with(NULL);
    tn_serializer at = tn_serializer_in(s, "_late");
    tn_serialize_double(&at, "epoch", &late->place.epoch);
    tn_serialize_double(&at, "iteration", &late->place.iteration);
    tn_serialize_double(&at, "elapsed_time", &late->place.elapsed);
    tn_status status = tn_serialize_summary(&at, "_summary", late->means);
    late->pending = status == TN_OK;
    return status;
}

void tn__late_free(tn__late *late)
{
    stop_reading(late);
    tn_summary_free(late->means);
}
