/* SPDX-License-Identifier: MIT */
/*
 * Programs as CUDA graphs, made with the addresses of one run; a later run with the same addresses is one launch.
 * Kernels become nodes that wait for the nodes whose memory they touch, so that others may run beside them; if the chip
 * can, they are started early and wait themselves (programmatic dependent launch). If some step does anything other
 * than launch kernels, the whole program is captured on a stream of its own instead.
 *
 * Scalars lie by value in the parameters of kernels: those that have changed since are put into the nodes of the
 * kernels that use them, which costs the host one to two microseconds each and the GPU nothing, where a copy to the
 * device before each launch would cost the GPU two microseconds.
 *
 * An executable keeps some graphs, as a loop's results may alternate between addresses. When there is no place left,
 * the graph with the fewest steps at other addresses is patched: their nodes get the new ones. If some graph has not
 * been used for long, that one is patched instead, or captured anew if it cannot be patched. A patched graph that then
 * serves many runs unchanged is made again, so that it can be part of a series (series.c).
 */
#include <limits.h>
#include <string.h>

#include "backends/cuda/runtime/graph.h"
#include "core/dtype.h"
#include "core/log.h"
#include "core/memory.h"

/* After so many launches without using a graph, its addresses are not expected again. */
#define FORGOTTEN (16 * TN__CUDA_GRAPHS_KEPT)
#define STEADY 16 /* runs of a patched graph, unchanged, after which it pays to make it again */

static void graph_free(tn__cuda_graph *graph, tn__cuda_device *device)
{
    if (graph == NULL)
        return;
    if (graph->exec)
        device->libraries->graphs.cuGraphExecDestroy(graph->exec);
    if (graph->made)
        device->libraries->graphs.cuGraphDestroy(graph->made);
    tn__free(graph->recording.node);
    tn__free(graph->first);
    tn__free(graph->scalars);
    tn__free(graph);
}

void tn__cuda_graphs_free(tn__cuda_graph_cache *cache, tn__cuda_device *device)
{
    tn__cuda_series_free(device, cache);
    for (int i = 0; i < TN__CUDA_GRAPHS_KEPT; i++)
        graph_free(cache->graph[i], device);
    *cache = (tn__cuda_graph_cache){.refused = cache->refused};
}

/* ---- making ---- */

static tn__cuda_graph *graph_new(const tn__program *program, int count)
{
    tn__cuda_graph *graph = tn__calloc(1, sizeof *graph + program->buffer_count * sizeof *graph->buffers);
    if (graph == NULL)
        return NULL;
    graph->first = tn__calloc((size_t)count + 1, sizeof *graph->first);
    graph->scalars = tn__calloc((size_t)program->scalar_count + 1, sizeof *graph->scalars);
    return graph;
}

bool tn__cuda_open_recorder(tn__cuda_device *device)
{
    return device->recorder ||
           device->driver->cuStreamCreate(&device->recorder, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

/* Records the steps of a run. first: for each step, the number of its first node. waits: for each step, the set of
 * steps that it waits for; NULL: in order. A step that waits for no other waits for the nodes that the whole graph
 * comes after. */
static bool record(size_t *first, const tn__cuda_step *step, int count, const tn__cuda_run *run, uint64_t *waits,
                   const tn__cuda_end *behind)
{
    tn__cuda_recording *recording = run->recording;
    CUgraphNode wait[TN__CUDA_ORDERED];
    bool done = true;
    recording->wait = wait;
    for (int i = 0; i < count && done; i++) {
        first[i] = recording->count;
        recording->waits = 0;
        recording->early = run->device->architecture >= 90 && step[i].step->kind == TN__STEP_KERNEL;
        /* waits for the last node of each such step, or, if that has none, for what it waits for */
        for (int k = i - 1; k >= 0 && waits; k--) {
            bool empty = first[k + 1] == first[k];
            if (waits[i] >> k & 1 && empty)
                waits[i] |= waits[k];
            else if (waits[i] >> k & 1)
                wait[recording->waits++] = recording->node[first[k + 1] - 1];
        }
        if (behind && recording->waits == 0) {
            recording->waits = behind->count;
            memcpy(wait, behind->node, behind->count * sizeof *wait);
            recording->early = recording->early && behind->early;
        }
        done = step[i].start(&step[i], run) == TN_OK;
        first[i + 1] = recording->count;
    }
    recording->wait = NULL;
    return done;
}

static bool only_kernels(const tn__cuda_step *step, int count)
{
    for (int i = 0; i < count; i++)
        if (step[i].opaque)
            return false;
    return count <= TN__CUDA_ORDERED;
}

/* Makes a graph by adding a node for each kernel. */
static bool assemble(tn__cuda_graph *graph, const tn__cuda_step *step, int count, const tn__cuda_run *given)
{
    const tn__cuda_graphs *api = &given->device->libraries->graphs;
    tn__cuda_run run = *given;
    uint64_t waits[TN__CUDA_ORDERED];
    tn__cuda_order(step, count, waits);
    if (api->cuGraphCreate(&graph->made, 0) != CUDA_SUCCESS)
        return false;
    run.recording = &graph->recording;
    graph->recording.made = graph->made;
    bool done = record(graph->first, step, count, &run, waits, NULL);
    graph->recording.made = NULL;
    graph->step = step;
    graph->step_count = count;
    graph->run = *given;
    graph->run.buffers = graph->buffers;
    graph->run.scalars = graph->scalars;
    return done;
}

/* Makes a graph by stream capture. False if that is not possible, with or without a latched error. */
static bool capture(tn__cuda_graph *graph, const tn__cuda_step *step, int count, const tn__cuda_run *given)
{
    const tn__cuda_graphs *api = &given->device->libraries->graphs;
    tn__cuda_run run = *given;
    if (!tn__cuda_open_recorder(run.device))
        return false;
    run.stream = run.device->recorder;
    run.recording = &graph->recording;
    if (api->cuStreamBeginCapture(run.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
        return false;
    bool done = record(graph->first, step, count, &run, NULL, NULL);
    return api->cuStreamEndCapture(run.stream, &graph->made) == CUDA_SUCCESS && done;
}

static bool instantiate(tn__cuda_graph *graph, const tn__cuda_device *device)
{
    CUresult result;
    do
        result = device->libraries->graphs.cuGraphInstantiate(&graph->exec, graph->made, 0);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && tn__device_relieve(device->owner));
    return result == CUDA_SUCCESS;
}

static tn__cuda_graph *build(const tn__cuda_step *step, int count, const tn__cuda_run *run)
{
    const tn__program *program = step->program;
    bool clean = !tn__latched();
    tn__cuda_graph *graph = graph_new(program, count);
    bool done = graph && graph->first && graph->scalars &&
                (only_kernels(step, count) ? assemble : capture)(graph, step, count, run) &&
                    instantiate(graph, run->device);
    if (!done) {
        graph_free(graph, run->device);
        if (clean)
            tn_clear_error();
        tn__log(TN__LOG_DEBUG, "cuda", "a program of %d steps cannot be captured as a graph", count);
        return NULL;
    }
    memcpy(graph->buffers, run->buffers, program->buffer_count * sizeof *graph->buffers);
    if (program->scalar_count)
        memcpy(graph->scalars, run->scalars, program->scalar_count * sizeof *graph->scalars);
    graph->guard = run->failure.guard;
    graph->work = run->work;
    return graph;
}

/* ---- appending ---- */

static bool is_overwritten(const tn__program *program, int buffer)
{
    for (int b = 0; b < program->buffer_count; b++)
        if (program->buffer[b].kind == TN__BUFFER_DONATED && program->buffer[b].donor == buffer)
            return true;
    return false;
}

/* The memory of an operand's elements, [begin, end); empty if it has none. */
static void reach(const tn__cuda_graph *graph, const tn__operand *o, const char **begin, const char **end)
{
    int64_t size = tn__dtypes[o->dtype].size, low = o->offset, high = o->offset + 1;
    for (int d = 0; d < o->ndim; d++) {
        int64_t span = (o->dim[d] - 1) * o->stride[d];
        *(span < 0 ? &low : &high) += span;
        if (o->dim[d] == 0) {
            *begin = *end = NULL;
            return;
        }
    }
    *begin = (const char *)graph->buffers[o->buffer] + low * size;
    *end = (const char *)graph->buffers[o->buffer] + high * size;
}

static bool apart(const tn__cuda_graph *a, const tn__operand *x, const tn__cuda_graph *b, const tn__operand *y)
{
    const char *begin[2], *end[2];
    reach(a, x, &begin[0], &end[0]);
    reach(b, y, &begin[1], &end[1]);
    return begin[0] >= end[1] || begin[1] >= end[0];
}

static bool triggers_late(const tn__step *s)
{
    return s->kind == TN__STEP_KERNEL && s->kernel.launch.late_trigger && s->kernel.launch.blocks > 0;
}

/* May a run begin while the last step of the run before it still runs? Its first step then reads only memory that no
 * run overwrites, and that must not be what the last step writes. */
static bool overlap(const tn__cuda_graph *before, const tn__cuda_graph *graph, const uint64_t *waits)
{
    const tn__step *first = graph->step[0].step, *last = graph->step[graph->step_count - 1].step;
    bool overlap = triggers_late(first) && triggers_late(last);
    for (int i = 1; i < graph->step_count; i++)
        overlap = overlap && waits[i] >> (i - 1) & 1;
    for (int i = first->output_count; i < first->operand_count && overlap; i++)
        for (int k = 0; k < last->output_count; k++)
            overlap = overlap && (apart(graph, &first->operand[i], before, &last->operand[k]) ||
                                  is_overwritten(graph->step->program, first->operand[i].buffer));
    return overlap;
}

bool tn__cuda_graph_append(tn__cuda_recording *recording, tn__cuda_end *end, const tn__cuda_graph *graph,
                           const tn__cuda_graph *before)
{
    int count = graph->step_count;
    tn__cuda_run run = graph->run;
    uint64_t waits[TN__CUDA_ORDERED], inner = 0;
    size_t first[TN__CUDA_ORDERED + 1];
    run.recording = recording;
    tn__cuda_order(graph->step, count, waits);
    end->early = before && overlap(before, graph, waits);
    if (!record(first, graph->step, count, &run, waits, before ? end : NULL))
        return false;
    for (int i = 0; i < count; i++)
        inner |= first[i + 1] > first[i] ? waits[i] : 0;
    size_t kept = 0;
    for (int i = 0; i < count; i++)
        if (first[i + 1] > first[i] && !(inner >> i & 1))
            end->node[kept++] = recording->node[first[i + 1] - 1];
    end->count = kept ? kept : end->count; /* a graph without nodes ends where the one before it does */
    return true;
}

/* ---- patching ---- */

static bool other_addresses(const tn__cuda_graph *graph, const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__step *s = step->step;
    for (int k = 0; k < s->operand_count; k++)
        if (graph->buffers[s->operand[k].buffer] != run->buffers[s->operand[k].buffer])
            return true;
    return step->overwrites && graph->guard != run->failure.guard;
}

static bool other_scalars(const tn__cuda_graph *graph, const tn__step *s, const uint64_t *scalars)
{
    for (int i = 0; i < s->scalar_count; i++)
        if (graph->scalars[s->scalar[i]] != scalars[s->scalar[i]])
            return true;
    return s->kind == TN__STEP_PRODUCT && s->product.alpha >= 0 &&
           graph->scalars[s->product.alpha] != scalars[s->product.alpha];
}

/* Called before the first node of a run is patched: runs that are held back must be launched with the old parameters
 * first. */
static tn_status begin_patching(tn__cuda_graph_cache *cache, tn__cuda_graph *graph, tn__cuda_device *device)
{
    tn_status status = graph->patched ? TN_OK : tn__cuda_series_leave(device, cache, graph);
    graph->patched = true;
    graph->steady = 0;
    return status;
}

/* Patches the nodes whose parameters differ from this run's. False if the graph cannot be patched to fit. */
static bool patch(tn__cuda_graph_cache *cache, tn__cuda_graph *graph, const tn__cuda_step *step, int count,
                  const tn__cuda_run *given, bool bound, tn_status *status)
{
    tn__cuda_run run = *given;
    for (int i = 0; i < count && !bound; i++)
        if (step[i].opaque && other_addresses(graph, &step[i], &run))
            return false;
    run.recording = &graph->recording;
    graph->recording.patched = graph->exec;
    for (int i = 0; i < count && *status == TN_OK; i++) {
        bool differs = step[i].may_fail || other_scalars(graph, step[i].step, run.scalars) ||
                       (!bound && other_addresses(graph, &step[i], &run));
        graph->recording.next = graph->first[i];
        if (differs && graph->first[i + 1] > graph->first[i]) {
            *status = begin_patching(cache, graph, run.device);
            if (*status == TN_OK)
                *status = step[i].start(&step[i], &run);
        }
    }
    const tn__program *program = step->program;
    if (!bound)
        memcpy(graph->buffers, run.buffers, program->buffer_count * sizeof *graph->buffers);
    if (program->scalar_count)
        memcpy(graph->scalars, run.scalars, program->scalar_count * sizeof *graph->scalars);
    graph->guard = run.failure.guard;
    return true;
}

/* Has the graph been patched, and then served STEADY runs unchanged? */
static bool renew(tn__cuda_graph *graph) { return graph->patched && ++graph->steady > STEADY; }

/* ---- finding ---- */

/* The number of steps whose addresses would have to be patched; INT_MAX: it cannot be patched. */
static int distance(const tn__cuda_graph *graph, const tn__cuda_step *step, int count, const tn__cuda_run *run)
{
    int away = 0;
    for (int i = 0; i < count; i++)
        if (other_addresses(graph, &step[i], run)) {
            if (step[i].opaque)
                return INT_MAX;
            away++;
        }
    return away;
}

/* The graph of which the fewest steps differ, so that a loop that keeps results, which lie elsewhere in each round,
 * has the fewest nodes patched. `otherwise`: what to return if none can be patched. */
static int nearest(const tn__cuda_graph_cache *cache, const tn__cuda_step *step, int count, const tn__cuda_run *run,
                   int otherwise)
{
    int found = otherwise, least = INT_MAX;
    for (int i = 0; i < TN__CUDA_GRAPHS_KEPT; i++) {
        int away = distance(cache->graph[i], step, count, run);
        if (away < least || (away == least && cache->graph[i]->used < cache->graph[found]->used)) {
            found = i;
            least = away;
        }
    }
    return least < INT_MAX ? found : otherwise;
}

static bool fits(const tn__cuda_graph *graph, const tn__program *program, const tn__cuda_run *run)
{
    return graph && graph->guard == run->failure.guard &&
           memcmp(graph->buffers, run->buffers, (size_t)program->buffer_count * sizeof *run->buffers) == 0;
}

/* The graph made with these addresses, most likely the one that came after the last one before; else an empty place;
 * else a graph that has not been used for long; else the nearest one. */
static int find(const tn__cuda_graph_cache *cache, const tn__cuda_step *step, int count, const tn__cuda_run *run,
                bool *bound)
{
    int place = cache->next[cache->last];
    *bound = fits(cache->graph[place], step->program, run);
    if (*bound)
        return place;
    for (int i = 0; i < TN__CUDA_GRAPHS_KEPT; i++) {
        const tn__cuda_graph *graph = cache->graph[i], *oldest = cache->graph[place];
        *bound = fits(graph, step->program, run);
        if (*bound)
            return i;
        if (oldest && (graph == NULL || graph->used < oldest->used))
            place = i;
    }
    bool needed = cache->graph[place] && cache->uses - cache->graph[place]->used < FORGOTTEN;
    return needed ? nearest(cache, step, count, run, place) : place;
}

/* ---- running ---- */

tn_status tn__cuda_graph_run(tn__cuda_graph_cache *cache, const tn__cuda_step *step, int count, tn__cuda_run *run,
                             bool *done)
{
    bool bound;
    tn_status status = TN_OK;
    *done = false;
    if (cache->refused)
        return TN_OK;
    int place = find(cache, step, count, run, &bound);
    cache->next[cache->last] = (unsigned char)place;
    cache->last = (unsigned char)place;
    tn__cuda_graph *graph = cache->graph[place];
    if (graph && (!patch(cache, graph, step, count, run, bound, &status) || status != TN_OK || renew(graph))) {
        tn_status left = tn__cuda_series_leave(run->device, cache, graph);
        status = status == TN_OK ? left : status;
        graph_free(graph, run->device);
        graph = cache->graph[place] = NULL;
    }
    if (status != TN_OK)
        return status;
    if (graph == NULL)
        graph = cache->graph[place] = build(step, count, run);
    cache->refused = graph == NULL;
    if (graph == NULL)
        return TN_OK;
    *done = true;
    graph->used = ++cache->uses;
    const char *label = tn__cuda_step_name(step->step);
    return run->number ? tn__cuda_graph_launch_beside(run, graph, label)
                     : tn__cuda_series_add(run->device, cache, graph, label);
}
