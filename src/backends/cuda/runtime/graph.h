/* SPDX-License-Identifier: MIT */
/* Programs as CUDA graphs (graph.c), and several of them launched as one (series.c). */
#ifndef TN_BACKENDS_CUDA_RUNTIME_GRAPH_H
#define TN_BACKENDS_CUDA_RUNTIME_GRAPH_H

#include "backends/cuda/runtime/cuda.h"

struct tn__cuda_graph {
    CUgraph made;        /* whose nodes name those of the executable one */
    CUgraphExec exec;
    tn__cuda_recording recording;
    uint64_t used;
    unsigned long long guard;
    bool patched;        /* exec is no longer what was made */
    int steady;          /* runs since then that it was right for as it is */
    size_t *first;       /* by step: its first node */
    const tn__cuda_step *step; /* what its nodes are made of, NULL if they were captured */
    int step_count;
    tn__cuda_run run;    /* the one it was made for, with the buffers and scalars below */
    uint64_t *scalars;
    tn__cuda_work *work; /* its program's */
    void *buffers[];
};

/* The last nodes of a graph that is being made: what comes behind waits for them, or is started early (see
 * program.h). */
typedef struct tn__cuda_end {
    CUgraphNode node[TN__CUDA_ORDERED];
    size_t count;
    bool early;
} tn__cuda_end;

/* Adds the kernels of `graph` to recording->made, where those of `before` are last, a graph of the same program (NULL:
 * it is empty). */
bool tn__cuda_graph_append(tn__cuda_recording *recording, tn__cuda_end *end, const tn__cuda_graph *graph,
                           const tn__cuda_graph *before);

/* Launches a graph of the cache, or holds it back for a moment, to be launched together with those that follow it. The
 * device's lock is held. */
tn_status tn__cuda_series_add(tn__cuda_device *device, tn__cuda_graph_cache *cache, tn__cuda_graph *graph,
                              const char *label);
/* Launches it at once, on the stream of a run that goes beside the device's own. */
tn_status tn__cuda_graph_launch_beside(const tn__cuda_run *run, const tn__cuda_graph *graph, const char *label);
/* A graph that is about to change or to go: launches what is held back, and forgets the series that it is a part of. */
tn_status tn__cuda_series_leave(tn__cuda_device *device, tn__cuda_graph_cache *cache, const tn__cuda_graph *graph);
/* All series of a cache. */
void tn__cuda_series_free(tn__cuda_device *device, tn__cuda_graph_cache *cache);

#endif
