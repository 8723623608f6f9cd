/* SPDX-License-Identifier: MIT */
/* Programs as CUDA graphs (graph.c), and several of them launched as one (series.c). */
#ifndef TN_BACKENDS_CUDA_GRAPH_H
#define TN_BACKENDS_CUDA_GRAPH_H

#include "backends/cuda/cuda.h"

struct tn__cuda_graph {
    CUgraph made;        /* whose nodes name those of the executable one */
    CUgraphExec exec;
    tn__cuda_recording recording;
    uint64_t used;
    unsigned long long guard;
    bool patched;        /* exec is no longer what was made */
    int steady;          /* runs since then that it was right for as it is */
    size_t *first;       /* by step: its first node */
    uint64_t *scalars;
    void *buffers[];
};

/* Launches a graph of the cache, or holds it back for a moment, to be launched together with those that follow it. The device's
 * lock is held. */
tn_status tn__cuda_series_add(tn__cuda_device *device, tn__cuda_graph_cache *cache, tn__cuda_graph *graph, const char *label);
/* A graph that is about to change or to go: launches what is held back, and forgets the series that it is a part of. */
tn_status tn__cuda_series_leave(tn__cuda_device *device, tn__cuda_graph_cache *cache, const tn__cuda_graph *graph);
/* All series of a cache. */
void tn__cuda_series_free(tn__cuda_device *device, tn__cuda_graph_cache *cache);

#endif
