/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 and libnvrtc (cuda/library.h) of a GPU that is lost by the launch number TANSO_LOSE_AFTER, of a kernel
 * or a graph: from then on all that asks how it is, and each launch, is told of an illegal address. Unset: never.
 */
#include "cuda/library.h"

static long left;
static bool lost;

static CUresult now(CUresult result) { return lost ? CUDA_ERROR_ILLEGAL_ADDRESS : result; }

static CUresult launched_one(CUresult result)
{
    lost = lost || --left == 0;
    return result;
}

static CUresult launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                       unsigned shared, CUstream stream, void **params, void **extra)
{
    return lost ? now(CUDA_SUCCESS)
                : launched_one(fake_launch(function, x, y, z, tx, ty, tz, shared, stream, params, extra));
}

static CUresult launch_graph(CUgraphExec exec, CUstream stream)
{
    return lost ? now(CUDA_SUCCESS) : launched_one(fake_graph_launch(exec, stream));
}

static CUresult wait_stream(CUstream stream) { return now(fake_stream_wait(stream)); }
static CUresult ask_stream(CUstream stream) { return now(fake_stream_ask(stream)); }
static CUresult wait_event(CUevent event) { return now(fake_event_wait(event)); }
static CUresult ask_event(CUevent event) { return now(fake_event_ask(event)); }

__attribute__((constructor)) static void prepare(void)
{
    const char *after = getenv("TANSO_LOSE_AFTER");
    library_prepare();
    left = after ? atol(after) : 0;
    libraries.driver.cuLaunchKernel = launch;
    libraries.graphs.cuGraphLaunch = launch_graph;
    libraries.driver.cuStreamSynchronize = wait_stream;
    libraries.driver.cuStreamQuery = ask_stream;
    libraries.driver.cuEventSynchronize = wait_event;
    libraries.driver.cuEventQuery = ask_event;
}
