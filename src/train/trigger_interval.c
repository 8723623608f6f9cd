/* SPDX-License-Identifier: MIT */
/* Triggers by iterations and epochs: at multiples of a period, at points. */
#include <math.h>
#include "train/chainer.h"

/* ---- when it was asked last ---- */

static tn__asked asked_at(const tn_progress *at)
{
    return (tn__asked){at->iteration, (double)at->samples, (double)at->size};
}

static double epoch_detail(const tn__asked *asked)
{
    return asked->size == 0 ? asked->samples : asked->samples / asked->size;
}

void tn__asked_move(tn__asked *asked, tn_unit unit, const tn_trainer *trainer, int64_t *before, int64_t *now,
                    int64_t *size)
{
    tn_progress at = tn_trainer_progress(trainer);
    double detail = epoch_detail(asked);
    bool unknown = asked->iteration < 0 || !(detail >= 0); /* snapshots of old have no such number */
    *size = unit == TN_EPOCH ? at.size : 1;
    *now = unit == TN_EPOCH ? at.samples : at.iteration;
    if (unit == TN_EPOCH)
        *before = unknown ? at.previous_samples : llround(detail * (double)at.size);
    else
        *before = unknown ? at.iteration - 1 : asked->iteration;
    *asked = asked_at(&at);
}

tn_status tn__asked_serialize(const tn_serializer *s, tn__asked *asked)
{
    if (tn__of_chainer(s) && !tn__chainer_has(s, "previous_iteration"))
        tn__asked_forget(asked); /* of an extension that the run did not have: nothing was missed */
    double detail = epoch_detail(asked);
    tn_serialize_int(s, "previous_iteration", &asked->iteration);
    tn_status status = tn_serialize_double(s, "previous_epoch_detail", &detail);
    if (s->loading)
        *asked = (tn__asked){asked->iteration, detail, 0};
    return status;
}

void tn__asked_forget(tn__asked *asked) { *asked = (tn__asked){-1, -1, 0}; }

static bool good_unit(tn_unit unit, const char *operation)
{
    if (unit == TN_ITERATION || unit == TN_EPOCH)
        return true;
    tn__fail(TN_ERR_VALUE, operation, "expected TN_ITERATION or TN_EPOCH for a unit, got %d", (int)unit);
    return false;
}

/* ---- at multiples ---- */

typedef struct interval {
    tn__fraction period;
    double given;
    tn_unit unit;
    tn__asked asked, before; /* last, and the time before that */
    /* Counts in which no multiple lies behind the one that was asked about last, of that size; size 0: not known. So
     * that an iteration that does not fire divides nothing. */
    struct {
        int64_t size, from, to;
    } still;
} interval;

/* The first count that has more multiples behind it than `count`. */
static int64_t next_multiple(tn__fraction period, int64_t count, int64_t size)
{
    __int128 above = ((__int128)tn__fraction_multiples(period, count, size) + 1) * period.p * size + period.q - 1;
    __int128 next = above / period.q;
    return next < INT64_MAX ? (int64_t)next : INT64_MAX;
}

static bool interval_fire(tn_trainer *trainer, void *user)
{
    interval *i = user;
    tn_progress at = tn_trainer_progress(trainer);
    int64_t before, size = i->unit == TN_EPOCH ? at.size : 1, now = i->unit == TN_EPOCH ? at.samples : at.iteration;
    i->before = i->asked;
    if (size == i->still.size && now >= i->still.from && now < i->still.to) {
        i->asked = asked_at(&at);
        return false;
    }
    tn__asked_move(&i->asked, i->unit, trainer, &before, &now, &size);
    i->still.size = size;
    i->still.from = now;
    i->still.to = next_multiple(i->period, now, size);
    return tn__fraction_multiples(i->period, before, size) != tn__fraction_multiples(i->period, now, size);
}

static tn_status interval_serialize(const tn_serializer *s, void *user)
{
    interval *i = user;
    i->still.size = 0;
    return tn__asked_serialize(s, &i->asked);
}

static tn_length interval_length(const void *user)
{
    const interval *i = user;
    return (tn_length){i->given, i->unit};
}

static void interval_ended(void *user)
{
    interval *i = user;
    i->asked = i->before;
    i->still.size = 0;
}

static void interval_free(void *user) { tn__free(user); }

static const tn_trigger_kind interval_kind = {.name = "every",
                                              .fire = interval_fire,
                                              .serialize = interval_serialize,
                                              .length = interval_length,
                                              .free = interval_free,
                                              .ended = interval_ended};

tn_trigger *tn_every(double period, tn_unit unit)
{
    tn__fraction fraction;
    if (!good_unit(unit, "every"))
        return tn__trigger_error();
    if (!tn__fraction_of(period, &fraction) || (unit == TN_ITERATION && period != floor(period))) {
        tn__fail(TN_ERR_VALUE, "every", "expected a period of %s, at most 1e9, got %g %s",
                 unit == TN_EPOCH ? "more than 0 epochs" : "1 iteration or more, whole ones", period,
                 unit == TN_EPOCH ? "epochs" : "iterations");
        return tn__trigger_error();
    }
    interval *made = tn__calloc(1, sizeof *made);
    if (!made) {
        tn__fail_memory("every", sizeof *made);
        return tn__trigger_error();
    }
    *made = (interval){.period = fraction, .given = period, .unit = unit};
    return tn__trigger_quiet(&interval_kind, made);
}

/* ---- at points ---- */

typedef struct points {
    tn_unit unit;
    tn__asked asked, before; /* last, and the time before that */
    int count;
    tn__fraction at[]; /* p 0: the very beginning, which was reached before anybody asked */
} points;

static bool points_fire(tn_trainer *trainer, void *user)
{
    points *p = user;
    int64_t before, now, size;
    p->before = p->asked;
    tn__asked_move(&p->asked, p->unit, trainer, &before, &now, &size);
    for (int i = 0; i < p->count; i++)
        if (!tn__fraction_reached(p->at[i], before, size) && tn__fraction_reached(p->at[i], now, size))
            return true;
    return false;
}

static tn_status points_serialize(const tn_serializer *s, void *user)
{
    points *p = user;
    return tn__asked_serialize(s, &p->asked);
}

static void points_ended(void *user)
{
    points *p = user;
    p->asked = p->before;
}

static const tn_trigger_kind points_kind = {.name = "at_points",
                                            .fire = points_fire,
                                            .serialize = points_serialize,
                                            .free = interval_free,
                                            .ended = points_ended};

static tn_status set_points(points *p, const double *given)
{
    bool any = false;
    for (int i = 0; i < p->count; i++) {
        p->at[i] = (tn__fraction){0, 1};
        if (given[i] != 0 && !tn__fraction_of(given[i], &p->at[i]))
            return tn__fail(TN_ERR_VALUE, "at_points", "expected points from 0 to 1e9, got %g for point %d", given[i],
                            i);
        any |= given[i] != 0;
    }
    if (!any)
        return tn__fail(TN_ERR_VALUE, "at_points",
                        "expected a point above 0: 0 is the very beginning, which is reached before anybody asks");
    return TN_OK;
}

tn_trigger *tn_at_points_of(tn_unit unit, int count, const double *at)
{
    if (!good_unit(unit, "at_points"))
        return tn__trigger_error();
    if (count < 1 || !at) {
        tn__fail(TN_ERR_VALUE, "at_points", "expected at least one point, got %d", at ? count : 0);
        return tn__trigger_error();
    }
    points *made = tn__calloc(1, sizeof *made + (size_t)count * sizeof *made->at);
    if (!made) {
        tn__fail_memory("at_points", (size_t)count * sizeof *made->at);
        return tn__trigger_error();
    }
    made->unit = unit;
    made->count = count;
    if (set_points(made, at) != TN_OK) {
        tn__free(made);
        return tn__trigger_error();
    }
    return tn__trigger_quiet(&points_kind, made);
}
