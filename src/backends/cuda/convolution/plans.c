/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's plans for convolutions: the fastest of what is proposed, by runtime/trial.h. Making one takes milliseconds,
 * some of them seconds, as cuDNN compiles; so a device keeps those that it has, for all steps that ask for the same.
 */
#include <string.h>
#include <time.h>

#include "backends/cuda/convolution/graph.h"
#include "backends/cuda/runtime/trial.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"

enum { TENSORS = TN__CUDNN_TENSORS };

#define WORTH_OPERATIONS 1e7 /* smaller convolutions are not timed: any engine takes only microseconds */
#define PATIENCE         2.0 /* seconds for making the plans of a convolution that are to be timed */
#define KEPT             256 /* most plans kept that no step uses */

/* ---- the device's handle ---- */

static bool open_handle(tn__cuda_device *device)
{
    if (device->dnn == NULL && tn__cuda_dnn_library(device)->cudnnCreate(&device->dnn) != 0)
        device->dnn = NULL;
    return device->dnn != NULL;
}

/* ---- choosing ---- */

typedef struct search {
    tn__cuda_device *device;
    const tn__cudnn_problem *problem;
    tn__cudnn_proposals of;
    void *plan[TN__CUDNN_PROPOSALS];
    size_t workspace[TN__CUDNN_PROPOSALS];
} search;

static bool build(search *s, int way)
{
    if (s->plan[way] == NULL)
        s->plan[way] = tn__cudnn_build(s->device, s->of.config[way], &s->workspace[way]);
    return s->plan[way] != NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool begin(void *context, const tn__cuda_bench *bench, size_t *workspace)
{
    search *s = context;
    double start = now();
    (void)bench;
    for (int i = 0; i < s->of.count && (i == 0 || now() - start < PATIENCE); i++)
        if (build(s, i) && s->workspace[i] > *workspace)
            *workspace = s->workspace[i];
    return true;
}

static bool run(void *context, int way, const tn__cuda_bench *bench)
{
    const search *s = context;
    return s->plan[way] && tn__cudnn_execute(s->device, s->problem, s->plan[way], bench->stream, bench->memory,
                                             bench->workspace);
}

/* The number of the proposal to take. */
static int choose(search *s, const char *key)
{
    const tn__cudnn_problem *problem = s->problem;
    tn__cudnn_proposal chosen;
    tn__cuda_trial trial = {.library = "cuDNN",
                            .thing = "convolution",
                            .count = s->of.count,
                            .record = s->of.proposal,
                            .record_bytes = sizeof *s->of.proposal,
                            .known = true,
                            .operations = tn__cudnn_operations(problem),
                            .worth = WORTH_OPERATIONS,
                            .dtype = problem->dtype,
                            .context = s,
                            .begin = begin,
                            .run = run};
    for (int k = 0; k < TENSORS; k++)
        trial.bytes[k] = (size_t)tn__cudnn_size(problem, tn__cudnn_operands[problem->way][k]) *
                         tn__dtypes[problem->dtype].size;
    tn__cuda_try(s->device, key, &trial, &chosen);
    int way = 0;
    while (way < s->of.count - 1 && memcmp(&s->of.proposal[way], &chosen, sizeof chosen) != 0)
        way++;
    return way;
}

/* ---- making ---- */

static void add_list(tn__text *key, const char *what, int count, const int64_t *values)
{
    tn__text_addf(key, ", %s", what);
    for (int i = 0; i < count; i++)
        tn__text_addf(key, "%s%lld", i ? " x " : " ", (long long)values[i]);
}

/* All that the fastest engine depends on. */
static char *key_of(const tn__cuda_device *device, const tn__cudnn_problem *p)
{
    static const char *const ways[] = {"result", "data", "weights"}, *const tensors[] = {"x", "w", "y"};
    tn__text key = {0};
    tn__text_addf(&key, "cuDNN %zu, %s: %s, %s%s, groups %lld", tn__cuda_dnn_library(device)->cudnnGetVersion(),
                  device->product, ways[p->way], tn_dtype_name(p->dtype), p->tf32 ? " by TF32" : "",
                  (long long)p->groups);
    for (int t = 0; t < TENSORS; t++) {
        add_list(&key, tensors[t], p->axes + 2, p->tensor[t].dim);
        add_list(&key, "strides", p->axes + 2, p->tensor[t].stride);
    }
    add_list(&key, "step", p->axes, p->step);
    add_list(&key, "spread", p->axes, p->spread);
    add_list(&key, "before", p->axes, p->before);
    add_list(&key, "behind", p->axes, p->behind);
    return tn__text_take(&key);
}

/* Takes the plan that is made of the chosen proposal, or, where cuDNN does not make it, of the first that it does. */
static void settle(search *s, int way, tn__cudnn_plan *found)
{
    if (!build(s, way))
        for (way = 0; !build(s, way) && way < s->of.count - 1;)
            way++;
    found->plan = s->plan[way];
    found->config = found->plan ? s->of.config[way] : NULL;
    found->workspace = s->workspace[way];
    s->plan[way] = NULL;
    if (found->plan)
        s->of.config[way] = NULL;
}

static tn__cudnn_plan find(tn__cuda_device *device, const tn__cudnn_problem *problem, const char *key)
{
    search s = {.device = device, .problem = problem};
    tn__cudnn_plan found = {.plan = NULL};
    pthread_mutex_lock(&device->lock);
    bool proposed = open_handle(device) && tn__cudnn_propose(device, problem, &s.of) && s.of.count > 0;
    pthread_mutex_unlock(&device->lock);
    int way = proposed ? choose(&s, key) : 0;
    pthread_mutex_lock(&device->lock);
    if (proposed)
        settle(&s, way, &found);
    for (int i = 0; i < s.of.count; i++)
        tn__cudnn_drop(device, s.plan[i]);
    tn__cudnn_proposals_free(device, &s.of);
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* ---- those that there are; all under the device's lock ---- */

static void plan_free(const tn__cuda_device *device, tn__cudnn_plan *plan)
{
    tn__cudnn_drop(device, plan->plan);
    tn__cudnn_drop(device, plan->config);
    tn__free(plan->key);
    tn__free(plan);
}

static tn__cudnn_plan *look_up(const tn__cuda_device *device, const char *key)
{
    tn__cudnn_plan *plan = device->convolutions;
    while (plan && strcmp(plan->key, key) != 0)
        plan = plan->next;
    return plan;
}

/* Frees the oldest unused plans, which are last in the list. */
static void trim(tn__cuda_device *device)
{
    int unused = 0;
    for (tn__cudnn_plan **at = &device->convolutions; *at;) {
        tn__cudnn_plan *plan = *at;
        if (plan->uses == 0 && ++unused > KEPT) {
            *at = plan->next;
            plan_free(device, plan);
        } else {
            at = &plan->next;
        }
    }
}

/* Adds a plan and takes it over; if another thread has added the same one meanwhile, frees it and returns that one. */
static tn__cudnn_plan *add(tn__cuda_device *device, char *key, const tn__cudnn_plan *made)
{
    tn__cudnn_plan *plan = look_up(device, key), *fresh = plan ? NULL : tn__calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        tn__cudnn_drop(device, made->plan);
        tn__cudnn_drop(device, made->config);
        tn__free(key);
        if (plan == NULL)
            tn__fail_memory("convolution", sizeof *fresh);
        return plan;
    }
    *fresh = *made;
    fresh->key = key;
    fresh->next = device->convolutions;
    device->convolutions = fresh;
    return fresh;
}

tn__cudnn_plan *tn__cudnn_plan_take(tn__cuda_device *device, const tn__cudnn_problem *problem)
{
    if (!tn__cuda_dnn_library(device) || tn__cuda_enter(device, "convolution") != TN_OK)
        return NULL;
    char *key = key_of(device, problem);
    if (key == NULL)
        return tn__fail_memory("convolution", 0), NULL;
    pthread_mutex_lock(&device->lock);
    tn__cudnn_plan *plan = look_up(device, key);
    if (plan == NULL) {
        pthread_mutex_unlock(&device->lock);
        tn__cudnn_plan made = find(device, problem, key);
        if (made.plan == NULL) {
            tn__log(TN__LOG_DEBUG, "cuda", "no engine for: %s", key);
            tn__free(key);
            return NULL;
        }
        pthread_mutex_lock(&device->lock);
        plan = add(device, key, &made);
    } else {
        tn__free(key);
    }
    if (plan)
        plan->uses++;
    trim(device);
    pthread_mutex_unlock(&device->lock);
    return plan;
}

void tn__cudnn_plan_give(tn__cuda_device *device, tn__cudnn_plan *plan)
{
    pthread_mutex_lock(&device->lock);
    plan->uses--;
    trim(device);
    pthread_mutex_unlock(&device->lock);
}
