/* SPDX-License-Identifier: MIT */
/*
 * How long plans run, for whoever measures a program: while there is a timing, each run of a plan, by any thread, is
 * put between two events of its device. A GPU's times are its own, without those of the host that starts it, and nobody
 * waits for them before they are read.
 */
#ifndef TN_ENGINE_TIMING_H
#define TN_ENGINE_TIMING_H

#include <tanso/stream.h>
#include "engine/plans.h"

/* A plan that has run. */
typedef struct tn__timed_plan {
    uint64_t number;           /* tn__loaded's */
    const tn__device *device;
    int steps;
    int64_t bytes, operations; /* of a run, as tn_plan_describe has them */
    char *text;                /* what its steps are: "2 matmul, add relu" */
} tn__timed_plan;

/* A run of one. */
typedef struct tn__timed_run {
    size_t plan;              /* in the timing's list */
    int track;                /* runs of a device and a track come one after another: its stream, of a CPU the thread */
    double began, seconds;    /* began: by tn__seconds */
    tn_event *begin, *end;    /* until they are read */
} tn__timed_run;

typedef struct tn__timing tn__timing;

/* From now on runs are timed; several timings do not disturb each other. NULL with a latched error. */
tn__timing *tn__timing_new(void);
/* Reads the times of runs that have ended by now, which waits for those. */
tn_status tn__timing_read(tn__timing *timing);
/* From now on none is timed any more; reads what is there. */
tn_status tn__timing_stop(tn__timing *timing);
/* After a stop: plans in the order in which they ran first; runs whose times are read, in that of their ends. */
const tn__timed_plan *tn__timing_plans(const tn__timing *timing, size_t *count);
const tn__timed_run *tn__timing_runs(const tn__timing *timing, size_t *count);
/* NULL is ignored. */
void tn__timing_free(tn__timing *timing);

/* ---- for run.c ---- */

extern _Atomic int tn__timings; /* how many there are */
static inline bool tn__timing_any(void)
{
    return __builtin_expect(atomic_load_explicit(&tn__timings, memory_order_relaxed) != 0, 0);
}
/* A run that all timings are told of. */
typedef struct tn__timed tn__timed;
/* Before the run; *timed is NULL where there are no timings any more. It does not start if this fails. */
tn_status tn__timed_begin(const tn__loaded *loaded, tn__device *device, tn__timed **timed);
/* After it, however it went. */
void tn__timed_end(tn__timed *timed);

#endif
