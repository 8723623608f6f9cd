/* SPDX-License-Identifier: MIT */
/*
 * A driver, a compiler and no products library, for tests of the CUDA backend's host side without a GPU. Device memory
 * is host memory. What a stream is given waits in a queue (queues.h) until somebody waits for it, as it may on a GPU,
 * so that memory reused too early shows; so do graphs, which are lists of such work. Kernels named k<digits>, as
 * tests name theirs, or k_<hash>, as programs name theirs, are "run" by a function of the test; others are only
 * counted.
 */
#ifndef TN_TESTS_CUDA_FAKE_H
#define TN_TESTS_CUDA_FAKE_H

#include "cuda/queues.h"

typedef struct fake_counts {
    int allocations, releases, pinned, unpinned, host_to_device, device_to_host, device_to_device, launches, waits,
        event_waits, modules, unloads, compilations, sets, captures, graphs, graphs_gone, graph_launches, patches,
        records, follows, peers, reaches;
} fake_counts;

typedef struct fake_driver {
    fake_counts count;
    size_t memory_left;        /* bytes that cuMemAlloc still gives */
    CUresult next_launch;      /* what launches answer */
    CUresult next_wait;        /* what waiting answers */
    CUresult next_follow;      /* what a stream answers that is to wait for an event */
    unsigned blocks, threads, shared; /* of the last launch */
    char kernel[64];           /* its name */
    char target[64];           /* what was compiled last was compiled for: "sm_90a" */
    size_t words, scalars;     /* of parameter blocks: what a launch copies */
    bool no_capture;           /* no graph can be made, no stream captured */
    bool no_pinned;            /* there is no more pinned memory */
    int no_room;               /* so many times, there is no memory for an executable graph */
    int most_nodes;            /* of a graph; 0: as many as there is room for */
    int edges, early;          /* of the graph made last: what its nodes wait for, and how much of that while it runs */
    int roots, last_root;      /* nodes that wait for nothing; whether the last one does */
    int astray; /* calls in the context of another device than what they are about */
    void (*compiles)(const char *text); /* is shown each text; may be NULL */
    bool lazy;                          /* see queues.h */
    unsigned (*dice)(unsigned sides);   /* a number from 0 on, below `sides`; NULL: none are thrown */
    void (*waits)(void); /* when the host begins to wait for an event; may be NULL */
    /* Kernels of a test's own: what is found is told, a launch of it becomes what the test makes of it, NULL: what it
     * is without, and that is called as often as it is run. */
    void (*finds)(CUfunction function, const char *name);
    const void *(*closes)(CUfunction function, void **params);
    void (*calls)(const void *closure);
    void (*kernel_runs)(const char *name, const int64_t *words, const uint64_t *scalars,
                        const tn__cuda_failure *failure);
} fake_driver;

extern fake_driver fake;

/* Makes this driver the one that cuda:0 and cuda:1 are found on, for tests of the whole library: kernels are compiled
 * by nobody, do nothing, and memory holds what it holds. */
void fake_use(void);
/* The context that is current; what is made belongs to it. */
CUcontext fake_context(void);
/* Notes that a call is about something of this context: an error where another one is current. */
CUresult fake_within(CUcontext context);

/* A device of the backend on this driver, fresh counts; with a driver that has graphs, or not. */
tn__device *fake_open(void);
tn__device *fake_open_without_graphs(void);
/* What a kernel does that meets an index out of range. */
void fake_fail(const tn__cuda_failure *failure, int64_t operand, int64_t index);
/* True if the kernel must do nothing. */
bool fake_stopped(const tn__cuda_failure *failure);
#endif
