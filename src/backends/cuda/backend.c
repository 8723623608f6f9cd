/* SPDX-License-Identifier: MIT */
/* The CUDA backend as the library sees it: its table, and what the plug-in exports. */
#include "backends/cuda/runtime/backend.h"

#include "backends/cuda/convolution/convolution.h"
#include "backends/plugin.h"
#include "tn_build_config.h"

static const tn__device_ops cuda_ops = {
    .allocate = tn__cuda_allocate,
    .release = tn__cuda_release,
    .read = tn__cuda_read,
    .read_begin = tn__cuda_read_begin,
    .read_end = tn__cuda_read_end,
    .write = tn__cuda_write,
    .copy = tn__cuda_copy,
    .copy_from = tn__cuda_copy_from,
    .load = tn__cuda_load,
    .run = tn__cuda_run_program,
    .unload = tn__cuda_unload,
    .synchronize = tn__cuda_synchronize,
    .describe = tn__cuda_describe,
    .missing = tn__cuda_missing,
    .streams = &tn__cuda_streams,
    .supports = tn__cuda_supports,
    .convolves = tn__cuda_convolves,
    .launch = tn__cuda_launch_source,
};

static int cuda_count(const char **why)
{
    const tn__cuda_libraries *libraries = tn__cuda_open(why);
    return libraries ? libraries->device_count : 0;
}

static tn_status cuda_open(int index, tn__device *device)
{
    device->ops = &cuda_ops;
    return tn__cuda_device_open(index, device);
}

static const tn__backend backend = {.name = "cuda", .kind = TN_DEVICE_CUDA, .count = cuda_count, .open = cuda_open};

const tn__plugin tn__plugin_cuda = {.version = TN_BUILD_VERSION, .backend = &backend};
