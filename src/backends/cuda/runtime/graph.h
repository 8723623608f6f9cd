/* SPDX-License-Identifier: MIT */
/* Programs as CUDA graphs (graph.c), and several of them launched as one (series.c). */
#ifndef TN_BACKENDS_CUDA_RUNTIME_GRAPH_H
#define TN_BACKENDS_CUDA_RUNTIME_GRAPH_H

#include "backends/cuda/runtime/cuda.h"

struct tn__cuda_graph {
    CUgraph made;        /* the graph from which exec was instantiated: its nodes identify exec's */
    CUgraphExec exec;
    tn__cuda_recording recording;
    uint64_t used;
    unsigned long long guard;
    bool patched;        /* exec's parameters are no longer those of `made` */
    int steady;          /* runs since then that needed no patching */
    size_t *first;       /* for each step, the number of its first node */
    const tn__cuda_step *step; /* the steps that its nodes were made from; NULL if it was captured */
    int step_count;
    tn__cuda_run run;    /* the run that it was made for, with the buffers and scalars below */
    uint64_t *scalars;
    tn__cuda_work *work; /* the work of its program */
    void *buffers[];
};

/* The last nodes of a graph that is being made: what is added next waits for them, or may start early (see
 * program.h). */
typedef struct tn__cuda_end {
    CUgraphNode node[TN__CUDA_ORDERED];
    size_t count;
    bool early;
} tn__cuda_end;

/* Appends the kernels of `graph` to recording->made, whose last nodes are those of `before`, a graph of the same
 * program (NULL: recording->made is empty). */
bool tn__cuda_graph_append(tn__cuda_recording *recording, tn__cuda_end *end, const tn__cuda_graph *graph,
                           const tn__cuda_graph *before);

/* Launches a graph of the cache, or holds it back for a moment, to launch it together with those that follow. The
 * caller holds the device's lock. */
tn_status tn__cuda_series_add(tn__cuda_device *device, tn__cuda_graph_cache *cache, tn__cuda_graph *graph,
                              const char *label);
/* Launches a graph at once, on the stream of a run that is not on the device's own stream. */
tn_status tn__cuda_graph_launch_beside(const tn__cuda_run *run, const tn__cuda_graph *graph, const char *label);
/* Called before a graph changes or is freed: launches what is held back, and drops the series that contain the
 * graph. */
tn_status tn__cuda_series_leave(tn__cuda_device *device, tn__cuda_graph_cache *cache, const tn__cuda_graph *graph);
/* Frees all series of a cache. */
void tn__cuda_series_free(tn__cuda_device *device, tn__cuda_graph_cache *cache);

#endif
