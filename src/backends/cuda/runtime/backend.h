/* SPDX-License-Identifier: MIT */
/* The functions that the CUDA backend puts in its device's table. */
#ifndef TN_BACKENDS_CUDA_RUNTIME_BACKEND_H
#define TN_BACKENDS_CUDA_RUNTIME_BACKEND_H

#include "backends/cuda/runtime/cuda.h"

tn_status tn__cuda_device_open(int index, tn__device *device);
void *tn__cuda_allocate(tn__device *device, size_t bytes);
void tn__cuda_release(tn__device *device, void *memory, size_t bytes);
tn_status tn__cuda_read(tn__device *device, void *host, const void *memory, size_t bytes);
void *tn__cuda_read_begin(tn__device *device, const void *memory, size_t bytes);
tn_status tn__cuda_read_end(tn__device *device, void *begun, void *host, size_t bytes, bool wait, bool *done);
tn_status tn__cuda_write(tn__device *device, void *memory, const void *host, size_t bytes);
tn_status tn__cuda_copy(tn__device *device, void *to, const void *from, size_t bytes);
tn_status tn__cuda_copy_from(tn__device *device, void *to, tn__device *other, const void *from, size_t bytes);
tn_status tn__cuda_synchronize(tn__device *device);
tn_status tn__cuda_load(tn__device *device, const tn__program *program, tn__executable **executable);
tn_status tn__cuda_run_program(tn__executable *executable, void *const *buffers, const uint64_t *scalars);
void tn__cuda_unload(tn__executable *executable);
tn_status tn__cuda_launch_source(tn__device *device, const struct tn__launch *launch);
void tn__cuda_describe(tn__device *device, tn_device_info *info);
const char *tn__cuda_missing(tn__device *device, int i);
extern const tn__stream_ops tn__cuda_streams;
bool tn__cuda_supports(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape);

#endif
