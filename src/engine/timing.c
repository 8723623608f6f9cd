/* SPDX-License-Identifier: MIT */
/* Lists of timed runs, one a timing, under one lock; a run that goes on while its timing ends keeps it alive. */
#include "engine/timing.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <tanso/stream.h>

#include "array/node.h"
#include "core/clock.h"
#include "core/memory.h"

#define OPERATION "profile"
#define LINE 160

/* A device's clock: an event, and when the host recorded it, at a moment when nothing else was asked of the device, or
 * little. Its other events are told by how long after this one they came. */
typedef struct reference {
    const tn__device *device;
    tn_event *event;
    double host;
} reference;

struct tn__timing {
    tn__timing *next;
    int references; /* its owner, and runs under way */
    bool stopped;
    tn__timed_plan *plan;
    size_t plan_count, plan_capacity;
    tn__timed_run *run;
    size_t run_count, run_capacity, read; /* read: so many have their times */
    reference *device;
    size_t device_count, device_capacity;
};

struct tn__timed {
    tn__timed *other; /* of another timing */
    tn__timing *timing;
    tn__timed_run run;
};

_Atomic int tn__timings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__timing *all;

/* ---- what a plan does ---- */

static const char *step_name(const tn__step *step)
{
    const char *label = step->label && *step->label ? step->label : NULL;
    if (step->kind == TN__STEP_KERNEL)
        return label ? label : "kernel";
    return tn__ops[step->op].name;
}

static bool came_before(const tn__program *p, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(step_name(&p->step[k]), step_name(&p->step[i])) == 0)
            return true;
    return false;
}

/* Its steps in order, names of operations, each told once with how many they are, to about a line's length. */
static char *describe(const tn__program *p)
{
    tn__text text = {0};
    for (int i = 0; i < p->step_count; i++) {
        int same = 1;
        if (came_before(p, i))
            continue;
        if (text.length > LINE) {
            tn__text_add(&text, ", ...");
            break;
        }
        for (int k = i + 1; k < p->step_count; k++)
            same += strcmp(step_name(&p->step[k]), step_name(&p->step[i])) == 0;
        if (i)
            tn__text_add(&text, ", ");
        if (same > 1)
            tn__text_addf(&text, "%d ", same);
        tn__text_add(&text, step_name(&p->step[i]));
    }
    return tn__text_take(&text);
}

static tn_status add_plan(tn__timing *timing, const tn__loaded *loaded, const tn__device *device)
{
    const tn__program *p = &loaded->plan->program;
    tn__timed_plan made = {.number = loaded->number, .device = device, .steps = p->step_count, .text = describe(p)};
    if (!made.text || !tn__grow((void **)&timing->plan, &timing->plan_capacity, timing->plan_count + 1,
                                sizeof *timing->plan)) {
        tn__free(made.text);
        return tn__fail_memory(OPERATION, sizeof made);
    }
    for (int i = 0; i < p->step_count; i++) {
        made.bytes += p->step[i].bytes;
        made.operations += p->step[i].operations;
    }
    timing->plan[timing->plan_count++] = made;
    return TN_OK;
}

/* Its place in the list, where it is put if it is not there. A loop's plans are few. */
static tn_status find_plan(tn__timing *timing, const tn__loaded *loaded, const tn__device *device, size_t *place)
{
    for (*place = 0; *place < timing->plan_count; ++*place)
        if (timing->plan[*place].number == loaded->number)
            return TN_OK;
    return add_plan(timing, loaded, device);
}

/* ---- a run ---- */

static tn_status know_device(tn__timing *timing, tn__device *device)
{
    for (size_t i = 0; i < timing->device_count; i++)
        if (timing->device[i].device == device)
            return TN_OK;
    if (!tn__grow((void **)&timing->device, &timing->device_capacity, timing->device_count + 1,
                  sizeof *timing->device))
        return tn__fail_memory(OPERATION, sizeof *timing->device);
    tn_event *event = tn_event_new(device->id);
    double host = tn__seconds();
    tn_status status = event ? tn_event_record(event) : tn__error_status(tn__error_last());
    if (status == TN_OK)
        timing->device[timing->device_count++] = (reference){device, event, host};
    else
        tn_event_free(event);
    return status;
}

static void free_events(tn__timed_run *run)
{
    tn_event_free(run->begin);
    tn_event_free(run->end);
    run->begin = run->end = NULL;
}

/* Under the lock. */
static void destroy(tn__timing *timing)
{
    for (size_t i = 0; i < timing->run_count; i++)
        free_events(&timing->run[i]);
    for (size_t i = 0; i < timing->plan_count; i++)
        tn__free(timing->plan[i].text);
    for (size_t i = 0; i < timing->device_count; i++)
        tn_event_free(timing->device[i].event);
    tn__free(timing->run);
    tn__free(timing->plan);
    tn__free(timing->device);
    tn__free(timing);
}

static void release(tn__timing *timing)
{
    if (--timing->references == 0)
        destroy(timing);
}

static void drop(tn__timed *timed)
{
    for (tn__timed *next; timed; timed = next) {
        next = timed->other;
        free_events(&timed->run);
        release(timed->timing);
        tn__free(timed);
    }
}

static tn_status prepare(tn__timing *timing, const tn__loaded *loaded, tn__device *device, tn__timed **timed)
{
    tn__timed_run run = {.track = device->ops->streams ? tn__stream_number(device) : tn__thread_number()};
    tn_status status = find_plan(timing, loaded, device, &run.plan);
    if (status == TN_OK)
        status = know_device(timing, device);
    if (status != TN_OK)
        return status;
    tn__timed *made = tn__calloc(1, sizeof *made);
    if (!made)
        return tn__fail_memory(OPERATION, sizeof *made);
    run.begin = tn_event_new(device->id);
    run.end = run.begin ? tn_event_new(device->id) : NULL;
    *made = (tn__timed){*timed, timing, run};
    timing->references++;
    *timed = made;
    return run.end ? tn_event_record(run.begin) : tn__error_status(tn__error_last());
}

tn_status tn__timed_begin(const tn__loaded *loaded, tn__device *device, tn__timed **timed)
{
    tn_status status = TN_OK;
    *timed = NULL;
    pthread_mutex_lock(&lock);
    for (tn__timing *t = all; t && status == TN_OK; t = t->next)
        status = prepare(t, loaded, device, timed);
    if (status != TN_OK)
        drop(*timed);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Without memory, or where the device has failed, the run is not in the list. */
void tn__timed_end(tn__timed *timed)
{
    pthread_mutex_lock(&lock);
    for (tn__timed *t = timed; t; t = t->other) {
        tn__timing *timing = t->timing;
        if (timing->stopped || tn_event_record(t->run.end) != TN_OK ||
            !tn__grow((void **)&timing->run, &timing->run_capacity, timing->run_count + 1, sizeof *timing->run))
            continue;
        timing->run[timing->run_count++] = t->run;
        t->run.begin = t->run.end = NULL;
    }
    drop(timed);
    pthread_mutex_unlock(&lock);
}

/* ---- timings ---- */

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }

/* A child by fork finds the lists in order. Without memory for that, no child while others run plans. */
static void watch_forks(void) { (void)!pthread_atfork(hold, let_go, let_go); }

tn__timing *tn__timing_new(void)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    pthread_once(&watched, watch_forks);
    tn__timing *timing = tn__calloc(1, sizeof *timing);
    if (!timing) {
        tn__fail_memory(OPERATION, sizeof *timing);
        return NULL;
    }
    timing->references = 1;
    pthread_mutex_lock(&lock);
    timing->next = all;
    all = timing;
    atomic_fetch_add(&tn__timings, 1);
    pthread_mutex_unlock(&lock);
    return timing;
}

static tn_status read_run(const tn__timing *timing, tn__timed_run *run)
{
    const reference *r = timing->device;
    while (r->device != timing->plan[run->plan].device)
        r++;
    run->began = r->host + tn_event_elapsed(r->event, run->begin);
    run->seconds = tn_event_elapsed(run->begin, run->end);
    if (!isfinite(run->began) || !isfinite(run->seconds))
        return tn_error_code();
    free_events(run);
    return TN_OK;
}

static tn_status read_runs(tn__timing *timing)
{
    tn_status status = TN_OK;
    while (timing->read < timing->run_count && status == TN_OK) {
        status = read_run(timing, &timing->run[timing->read]);
        timing->read += status == TN_OK;
    }
    return status;
}

tn_status tn__timing_read(tn__timing *timing)
{
    pthread_mutex_lock(&lock);
    tn_status status = read_runs(timing);
    pthread_mutex_unlock(&lock);
    return status;
}

tn_status tn__timing_stop(tn__timing *timing)
{
    pthread_mutex_lock(&lock);
    tn_status status = TN_OK;
    if (!timing->stopped) {
        tn__timing **at = &all;
        while (*at != timing)
            at = &(*at)->next;
        *at = timing->next;
        atomic_fetch_sub(&tn__timings, 1);
        timing->stopped = true;
        status = read_runs(timing);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

const tn__timed_plan *tn__timing_plans(const tn__timing *timing, size_t *count)
{
    *count = timing->plan_count;
    return timing->plan;
}

const tn__timed_run *tn__timing_runs(const tn__timing *timing, size_t *count)
{
    *count = timing->read;
    return timing->run;
}

void tn__timing_free(tn__timing *timing)
{
    if (!timing)
        return;
    (void)tn__timing_stop(timing);
    pthread_mutex_lock(&lock);
    release(timing);
    pthread_mutex_unlock(&lock);
}
