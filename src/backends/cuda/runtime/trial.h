/* SPDX-License-Identifier: MIT */
/* Choosing the fastest of a library's ways to compute something by timing, once. */
#ifndef TN_BACKENDS_CUDA_RUNTIME_TRIAL_H
#define TN_BACKENDS_CUDA_RUNTIME_TRIAL_H

#include "backends/cuda/runtime/cuda.h"

#define TN__CUDA_TRIAL_OPERANDS 3

/* The stream and the memory of a trial. */
typedef struct tn__cuda_bench {
    tn__cuda_device *device;
    CUstream stream;
    CUdeviceptr memory[TN__CUDA_TRIAL_OPERANDS], workspace;
} tn__cuda_bench;

/* What to time: one thing by each of `count` ways, the library's own choice first. */
typedef struct tn__cuda_trial {
    const char *library, *thing;   /* names for messages */
    int count;
    const void *record;            /* an array: for each way, the record that is stored for it */
    size_t record_bytes;           /* bytes of a record */
    bool known;                    /* a stored record must be one of `record`, else the choice is made anew */
    double operations;             /* operations of the work: small work is not timed */
    double worth;                  /* least operations for which timing pays */
    size_t bytes[TN__CUDA_TRIAL_OPERANDS]; /* of each operand */
    tn_dtype dtype;
    void *context;
    /* Called before the first run, once there is memory. *workspace: the most bytes that any way needs. False: nothing
     * is timed. */
    bool (*begin)(void *context, const tn__cuda_bench *bench, size_t *workspace);
    /* Puts the work on the stream, which may be in capture mode; false if this way is impossible. */
    bool (*run)(void *context, int way, const tn__cuda_bench *bench);
} tn__cuda_trial;

/* Puts the record of a way into *record: what the folder of kernels remembers for `key` (all that the work, the library
 * and the GPU are), else the fastest one's, which is then remembered; the first one's where the work is small, or there
 * is no memory to try it in. Never while a stream is captured, and not under the device's lock. */
void tn__cuda_try(tn__cuda_device *device, const char *key, const tn__cuda_trial *trial, void *record);

#endif
