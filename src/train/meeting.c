/* SPDX-License-Identifier: MIT */
/*
 * Several ranks in one run. All do the same iterations, so they have to end it after the same one, whichever of them
 * was asked to stop, and what goes by the time has to happen in the same one, though their clocks differ. So they meet
 * between two iterations: each tells whether it was asked to stop, and rank 0 what its clock says, by which triggers go
 * on all ranks until they meet again.
 *
 * A meeting takes some ten microseconds, which may be as much as an iteration. So there are no more than twenty a
 * second: at each one rank 0 names the iteration of the next, from what iterations have taken since the last one.
 */
#include "comm/comm.h"
#include "core/clock.h"
#include "train/parts.h"

#define BETWEEN 0.05 /* seconds */

/* What a rank tells; of the last two rank 0's count. */
typedef struct told {
    int64_t stops, next;
    double elapsed;
} told;

static bool asked_to_stop(const tn_trainer *trainer)
{
    return (trainer->stop_flag && *trainer->stop_flag) || (trainer->ctrl_c && tn__interrupted());
}

/* Twice as many iterations as last time at most: the first ones, in which kernels are compiled, say little. */
static int64_t next_of(const tn__meetings *m, int64_t iteration, double now)
{
    int64_t since = iteration - m->last, most = since > 0 ? 2 * since : 1;
    double taken = now - m->at, more = taken > 0 ? (double)since * BETWEEN / taken : (double)most;
    return iteration + (more >= (double)most ? most : more > 1 ? (int64_t)more : 1);
}

static tn_status meet(tn_trainer *trainer, int64_t iteration)
{
    tn__meetings *m = &trainer->meetings;
    int size = m->comm->place.size;
    double now = tn__seconds();
    const told own = {asked_to_stop(trainer), next_of(m, iteration, now), tn_trainer_elapsed_time(trainer)};
    TN__FREED told *all = tn__calloc((size_t)size, sizeof *all);
    if (!all) {
        tn__fail_memory("trainer_run", (size_t)size * sizeof *all);
        return tn__comm_break(m->comm, true); /* the others wait */
    }
    tn_status status =
        tn__comm_tell_all(m->comm, &own, all, sizeof own, "trainer_run", "a meeting between two iterations");
    if (status != TN_OK)
        return status;
    *m = (tn__meetings){m->comm, all[0].next, iteration, now, all[0].elapsed};
    for (int r = 0; r < size; r++)
        trainer->stopped |= all[r].stops != 0;
    return TN_OK;
}

void tn__meetings_begin(tn_trainer *trainer)
{
    int64_t iteration = tn_trainer_iteration(trainer);
    trainer->meetings = (tn__meetings){trainer->meetings.comm, iteration, iteration, tn__seconds(),
                                       trainer->elapsed_before};
}

tn_status tn__meet_to_stop(tn_trainer *trainer)
{
    int64_t iteration = tn_trainer_iteration(trainer);
    if (!trainer->meetings.comm) {
        trainer->stopped = asked_to_stop(trainer);
        return TN_OK;
    }
    trainer->stopped = false;
    return iteration >= trainer->meetings.next ? meet(trainer, iteration) : TN_OK;
}

double tn__trainer_told_time(const tn_trainer *trainer)
{
    return trainer->meetings.comm ? trainer->meetings.elapsed : tn_trainer_elapsed_time(trainer);
}
