/* SPDX-License-Identifier: MIT */
/* Choosing the fastest of a library's ways to compute something by timing, once. */
#ifndef TN_BACKENDS_CUDA_RUNTIME_TRIAL_H
#define TN_BACKENDS_CUDA_RUNTIME_TRIAL_H

#include "backends/cuda/runtime/cuda.h"

#define TN__CUDA_TRIAL_OPERANDS 3

/* Where a trial is made: on which stream, in what memory. */
typedef struct tn__cuda_bench {
    tn__cuda_device *device;
    CUstream stream;
    CUdeviceptr memory[TN__CUDA_TRIAL_OPERANDS], workspace;
} tn__cuda_bench;

/* What to time: one thing by each of `count` ways, the library's own choice first. */
typedef struct tn__cuda_trial {
    const char *library, *thing;   /* for people */
    int count;
    const void *record;            /* of each way what is remembered of it, one behind the other */
    size_t record_bytes;           /* of each */
    bool known;                    /* what is remembered must be one of them, else it is chosen anew */
    double operations;             /* of what is small, no way is worth the timing */
    double worth;                  /* operations from which it is */
    size_t bytes[TN__CUDA_TRIAL_OPERANDS]; /* of each operand */
    tn_dtype dtype;
    void *context;
    /* Before the first run, once there is memory: what the ways need of workspace at most. False: nothing is timed. */
    bool (*begin)(void *context, const tn__cuda_bench *bench, size_t *workspace);
    /* Puts the work on the stream, which may be captured; false if it cannot be done so. */
    bool (*run)(void *context, int way, const tn__cuda_bench *bench);
} tn__cuda_trial;

/* Puts the record of a way into *record: what the folder of kernels remembers for `key` (all that the work, the library
 * and the GPU are), else the fastest one's, which is then remembered; the first one's where the work is small, or there
 * is no memory to try it in. Never while a stream is captured, and not under the device's lock. */
void tn__cuda_try(tn__cuda_device *device, const char *key, const tn__cuda_trial *trial, void *record);

#endif
