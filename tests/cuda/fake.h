/* SPDX-License-Identifier: MIT */
/*
 * A driver, a compiler and no products library, for tests of the CUDA backend's host side without a GPU. Device memory is
 * host memory. What a stream is given waits in a queue until somebody waits for it, as it may on a GPU, so that memory
 * reused too early shows. Kernels named k<digits> are "run" by a function of the test; others are only counted.
 */
#ifndef TN_TESTS_CUDA_FAKE_H
#define TN_TESTS_CUDA_FAKE_H

#include "backends/cuda/cuda.h"

typedef struct fake_counts {
    int allocations, releases, pinned, unpinned, host_to_device, device_to_host, device_to_device, launches, waits,
        event_waits, modules, unloads, compilations, sets;
} fake_counts;

typedef struct fake_driver {
    fake_counts count;
    size_t memory_left;        /* bytes that cuMemAlloc still gives */
    CUresult next_launch;      /* what launches answer */
    CUresult next_wait;        /* what waiting answers */
    unsigned blocks, threads, shared; /* of the last launch */
    char kernel[64];           /* its name */
    size_t words;              /* of parameter blocks: what a launch copies */
    void (*kernel_runs)(const char *name, const int64_t *words, const uint64_t *scalars, int64_t *fault);
} fake_driver;

extern fake_driver fake;

/* A device of the backend on this driver, fresh counts. */
tn__device *fake_open(void);
/* Does what waits in the stream. */
void fake_flush(void);

#endif
