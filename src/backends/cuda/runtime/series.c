/* SPDX-License-Identifier: MIT */
/*
 * Runs of one program that follow one another quickly, as the steps of a training loop do, launched several at a time.
 * Between two launches of graphs the GPU stands still for about two microseconds, and each costs the host as much; so a
 * run whose graph needs no patching is held back until there are several, and their graphs are launched as one. There
 * each run's first kernel can be started while the last one of the run before it still runs: what it does before it
 * waits for that, such as fetching a minibatch, costs no time then (see `late_trigger` in program.h). The more runs
 * together the better, up to TN__CUDA_TOGETHER; but where the GPU has no other launch to run behind the one that it is
 * at, a few do. What is left when something else comes is launched by powers of two, so that not many graphs are made.
 *
 * That is not observable: whatever else is asked of the device (a transfer, another program, an event, a wait) first
 * launches what is held back (by tn__cuda_enter). If the program has obtained a CUDA stream or a pointer, and so may
 * wait by CUDA's own functions, nothing is held back; nor if runs are more than QUICK apart, so that the GPU is not
 * idle because the program does something else in between.
 */
#include <string.h>

#include "backends/cuda/runtime/graph.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"

#define QUICK 100000 /* most nanoseconds between runs that are held back */

/* ---- series ---- */

static void forget(tn__cuda_device *device, tn__cuda_series *series)
{
    if (series->exec)
        device->libraries->graphs.cuGraphExecDestroy(series->exec);
    *series = (tn__cuda_series){0};
}

void tn__cuda_series_free(tn__cuda_device *device, tn__cuda_graph_cache *cache)
{
    for (int i = 0; i < TN__CUDA_SERIES_KEPT && cache->series; i++)
        forget(device, &cache->series[i]);
    tn__free(cache->series);
    cache->series = NULL;
}

/* Makes one graph of the parts' kernels, one part after another. */
static bool append_all(tn__cuda_series *series, CUgraph made)
{
    tn__cuda_recording recording = {.made = made};
    tn__cuda_end end = {.count = 0};
    bool done = true;
    for (int i = 0; i < series->count && done; i++)
        done = tn__cuda_graph_append(&recording, &end, series->part[i], i ? series->part[i - 1] : NULL);
    tn__free(recording.node);
    return done;
}

/* The same for captured parts, each as a child graph. */
static bool add_all(const tn__cuda_graphs *api, tn__cuda_series *series, CUgraph made)
{
    CUgraphNode node[TN__CUDA_TOGETHER];
    bool done = true;
    for (int i = 0; i < series->count && done; i++)
        done = api->cuGraphAddChildGraphNode(&node[i], made, i ? &node[i - 1] : NULL, i > 0,
                                             series->part[i]->made) == CUDA_SUCCESS;
    return done;
}

/* One graph of the parts; false if the driver refuses that. */
static bool build(const tn__cuda_device *device, tn__cuda_series *series)
{
    const tn__cuda_graphs *api = &device->libraries->graphs;
    CUgraph made;
    bool clean = !tn__latched();
    if (api->cuGraphCreate(&made, 0) != CUDA_SUCCESS)
        return false;
    bool done = series->part[0]->step ? append_all(series, made) : add_all(api, series, made);
    done = done && api->cuGraphInstantiate(&series->exec, made, 0) == CUDA_SUCCESS;
    api->cuGraphDestroy(made);
    if (!done && clean)
        tn_clear_error();
    return done;
}

/* Finds the graph of these graphs in this order; makes it when they occur for the second time. NULL: launch them one by
 * one. */
static CUgraphExec find(tn__cuda_device *device, tn__cuda_graph_cache *cache, tn__cuda_graph *const *graph, int count)
{
    size_t bytes = (size_t)count * sizeof *graph;
    if (cache->series == NULL && !(cache->series = tn__calloc(TN__CUDA_SERIES_KEPT, sizeof *cache->series)))
        return NULL;
    tn__cuda_series *series = cache->series, *oldest = series;
    for (; series < cache->series + TN__CUDA_SERIES_KEPT; series++) {
        if (series->count == count && memcmp(series->part, graph, bytes) == 0)
            break;
        oldest = series->used < oldest->used ? series : oldest;
    }
    bool known = series < cache->series + TN__CUDA_SERIES_KEPT;
    if (!known) {
        series = oldest;
        forget(device, series);
        memcpy(series->part, graph, bytes);
        series->count = count;
    } else if (series->exec == NULL && !build(device, series)) {
        cache->apart = true;
        tn__log(TN__LOG_DEBUG, "cuda", "graphs of %s cannot be launched together", device->held.label);
    }
    series->used = ++cache->uses;
    return series->exec;
}

/* ---- what is held back ---- */

tn_status tn__cuda_graph_launch_beside(const tn__cuda_run *run, const tn__cuda_graph *graph, const char *label)
{
    CUresult result = run->device->libraries->graphs.cuGraphLaunch(graph->exec, run->stream);
    if (result == CUDA_SUCCESS)
        tn__cuda_note(run->device, graph->work, run->number);
    return tn__cuda_check(run->device, result, label);
}

static tn_status launch(tn__cuda_device *device, CUgraphExec exec, const tn__cuda_graph *graph)
{
    CUresult result = device->libraries->graphs.cuGraphLaunch(exec, device->stream);
    if (result == CUDA_SUCCESS)
        tn__cuda_note(device, graph->work, 0);
    return tn__cuda_check(device, result, device->held.label);
}

/* Launches what is held back. The count is reset only after that: another thread that reads 0 without the lock goes on
 * at once. */
static tn_status launch_held(tn__cuda_device *device)
{
    tn__cuda_held *held = &device->held;
    int count = held->count;
    tn_status status = TN_OK;
    for (int i = 0, n = TN__CUDA_TOGETHER; i < count; i += n) {
        while (n > count - i)
            n /= 2;
        CUgraphExec all = n > 1 ? find(device, held->cache, held->graph + i, n) : NULL;
        if (all && status == TN_OK)
            status = launch(device, all, held->graph[i]);
        for (int k = i; k < i + n && !all && status == TN_OK; k++)
            status = launch(device, held->graph[k]->exec, held->graph[k]);
    }
    held->count = 0;
    return status;
}

/* Has the GPU finished all but the last launch, so that it needs more work? */
static bool wants_more(const tn__cuda_device *device)
{
    const tn__cuda_held *held = &device->held;
    return held->marks < 2 || device->driver->cuEventQuery(held->mark[held->marks % 2]) != CUDA_ERROR_NOT_READY;
}

static void mark(tn__cuda_device *device)
{
    CUevent *event = &device->held.mark[device->held.marks % 2];
    const tn__cuda_driver *driver = device->driver;
    if ((*event || driver->cuEventCreate(event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) &&
        driver->cuEventRecord(*event, device->stream) == CUDA_SUCCESS)
        device->held.marks++;
}

/* Launches what is held back because anything else is asked of the device. */
static tn_status let_go(tn__cuda_device *device)
{
    device->held.marks = 0;
    return launch_held(device);
}

tn_status tn__cuda_flush(tn__cuda_device *device)
{
    if (device->held.count == 0)
        return TN_OK;
    pthread_mutex_lock(&device->held.lock);
    tn_status status = let_go(device);
    pthread_mutex_unlock(&device->held.lock);
    return status;
}

tn_status tn__cuda_series_add(tn__cuda_device *device, tn__cuda_graph_cache *cache, tn__cuda_graph *graph,
                              const char *label)
{
    tn__cuda_held *held = &device->held;
    uint64_t now = (uint64_t)tn__nanoseconds();
    bool hold = now < held->last + QUICK && !graph->patched && !cache->apart && !device->owner->lent;
    held->last = now;
    pthread_mutex_lock(&held->lock);
    tn_status status = held->count && (!hold || held->cache != cache) ? let_go(device) : TN_OK;
    held->cache = cache;
    held->label = label;
    held->graph[held->count] = graph;
    int count = status == TN_OK ? ++held->count : 0;
    bool enough = count == TN__CUDA_TOGETHER || (count >= TN__CUDA_FEW && (count & (count - 1)) == 0 &&
                                                 wants_more(device));
    if (status == TN_OK && (enough || !hold))
        status = launch_held(device);
    if (enough)
        mark(device);
    pthread_mutex_unlock(&held->lock);
    return status;
}

tn_status tn__cuda_series_leave(tn__cuda_device *device, tn__cuda_graph_cache *cache, const tn__cuda_graph *graph)
{
    tn_status status = tn__cuda_flush(device);
    for (int i = 0; i < TN__CUDA_SERIES_KEPT && cache->series; i++)
        for (int k = 0; k < cache->series[i].count; k++)
            if (cache->series[i].part[k] == graph)
                forget(device, &cache->series[i]);
    return status;
}
