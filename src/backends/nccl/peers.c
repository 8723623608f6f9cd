/* SPDX-License-Identifier: MIT */
/*
 * Sums of two ranks of one host by a kernel of our own. For a few megabytes NCCL's kernels take longer with their
 * protocol than the elements are under way; here each rank has a segment of memory that the other one writes into, see
 * peers.cuh. Two H200s, 16 KiB, 1 MiB, 16 MiB: 7, 9, 67 us, of NCCL's 12, 15, 79. What is larger, of another dtype, or
 * of more ranks has not been measured and is NCCL's, as is what goes beside other work: the kernel's blocks are on all
 * processors, NCCL's on a few.
 */
#include "backends/nccl/peers.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tn_embed.h"

enum { BLOCKS = 128, THREADS = 512 };
#define HALF    ((size_t)16 << 20) /* bytes: the largest sum */
#define SEGMENT (2 * HALF + BLOCKS * sizeof(unsigned long long))

#define FUNCTIONS(X) \
    X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost) X(cuMemFreeHost) X(cuMemsetD8Async) X(cuIpcGetMemHandle) \
    X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) \
    X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamWaitEvent) X(cuStreamSynchronize) X(cuLaunchKernel)
/* Names may be macros for a version of a function, as cuMemAlloc is for cuMemAlloc_v2. */
#define MEMBER(name) __typeof__(&name) name;
#define TEXT(name)   #name
#define ENTRY(name)  {TEXT(name), offsetof(struct functions, name)},

static struct functions { FUNCTIONS(MEMBER) } cuda;
static const struct {
    const char *name;
    size_t offset;
} entries[] = {FUNCTIONS(ENTRY)};

/* The driver is there, since the device is. */
static bool open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; handle && i < sizeof entries / sizeof *entries; i++) {
        void *function = dlsym(handle, entries[i].name);
        if (!function)
            return false;
        memcpy((char *)&cuda + entries[i].offset, &function, sizeof function);
    }
    return handle;
}

/* ---- making ---- */

/* No sum is before the first. */
static CUresult clear(CUdeviceptr segment)
{
    CUstream stream;
    CUresult result = cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuda.cuMemsetD8Async(segment, 0, SEGMENT, stream);
    if (result == CUDA_SUCCESS)
        result = cuda.cuStreamSynchronize(stream);
    cuda.cuStreamDestroy(stream);
    return result;
}

static bool make_segment(tn__peers *peers, tn__link_name *own)
{
    CUipcMemHandle handle;
    void *off = NULL;
    _Static_assert(sizeof handle <= sizeof *own, "a name holds a handle");
    if (cuda.cuMemAlloc(&peers->own, SEGMENT) != CUDA_SUCCESS) {
        peers->own = 0;
        return false;
    }
    if (cuda.cuMemAllocHost(&off, sizeof *peers->off) != CUDA_SUCCESS)
        return false;
    peers->off = off;
    *peers->off = 0;
    if (cuda.cuEventCreate(&peers->behind, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
        clear(peers->own) != CUDA_SUCCESS || cuda.cuIpcGetMemHandle(&handle, peers->own) != CUDA_SUCCESS)
        return false;
    memset(own, 0, sizeof *own);
    memcpy(own, &handle, sizeof handle);
    return true;
}

bool tn__peers_show(tn__peers *peers, const tn__link_place *place, tn__link_name *own)
{
    if (!open_driver() || !place->enter(place->device))
        return false;
    peers->kernel = place->kernel(place->device, (const char *)tn__embed_nccl_peers, "tn_sum_of_two");
    if (peers->kernel && make_segment(peers, own))
        return true;
    tn__peers_end(peers);
    return false;
}

bool tn__peers_reach(tn__peers *peers, const tn__link_name *other)
{
    CUipcMemHandle handle;
    memcpy(&handle, other, sizeof handle);
    if (cuda.cuIpcOpenMemHandle(&peers->other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS)
        return true;
    peers->other = 0;
    return false;
}

bool tn__peers_end(tn__peers *peers)
{
    if (peers->last)
        cuda.cuStreamSynchronize(peers->last);
    if (peers->off && *peers->off)
        return false;
    if (peers->other)
        cuda.cuIpcCloseMemHandle(peers->other);
    if (peers->own)
        cuda.cuMemFree(peers->own);
    if (peers->off)
        cuda.cuMemFreeHost(peers->off);
    if (peers->behind)
        cuda.cuEventDestroy(peers->behind);
    *peers = (tn__peers){.own = 0};
    return true;
}

void tn__peers_agree(tn__peers *peers, bool reached)
{
    if (reached)
        peers->used = true;
    else
        tn__peers_end(peers);
}

void tn__peers_call_off(tn__peers *peers)
{
    if (peers->off)
        *peers->off = 1;
}

/* ---- sums ---- */

bool tn__peers_take(const tn__peers *peers, const tn__transfer *t)
{
    return peers->used && !t->aside && t->kind == TN__ALL_REDUCE && t->op == TN_COMM_SUM && t->dtype == TN_FLOAT32 &&
           (size_t)t->count * sizeof(float) <= HALF;
}

static CUdeviceptr flags_of(CUdeviceptr segment) { return segment + 2 * HALF; }

static long long up(long long n, long long by) { return (n + by - 1) / by; }

/* Sums come one after another, whatever streams they are put on. */
static CUresult go_behind(tn__peers *peers, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    if (peers->last && peers->last != stream) {
        result = cuda.cuEventRecord(peers->behind, peers->last);
        if (result == CUDA_SUCCESS)
            result = cuda.cuStreamWaitEvent(stream, peers->behind, 0);
    }
    peers->last = stream;
    return result;
}

bool tn__peers_sum(tn__peers *peers, const tn__transfer *t, CUstream stream, tn__why *why)
{
    unsigned long long turn = ++peers->turn;
    long long count = t->count, fours = up(count, 4);
    /* both ranks choose alike, by the count alone */
    unsigned blocks = fours >= (long long)BLOCKS * THREADS ? BLOCKS : (unsigned)up(fours, THREADS);
    blocks = blocks ? blocks : 1;
    long long size = 4 * up(fours, blocks);
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)t->from, to = (CUdeviceptr)(uintptr_t)t->to,
                here = peers->own + turn % 2 * HALF, there = peers->other + turn % 2 * HALF,
                here_flags = flags_of(peers->own), there_flags = flags_of(peers->other);
    void *off = (void *)peers->off;
    void *given[] = {&from, &to, &count, &size, &here, &there, &here_flags, &there_flags, &turn, &off};
    CUresult result = go_behind(peers, stream);
    if (result == CUDA_SUCCESS)
        result = cuda.cuLaunchKernel(peers->kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, given, NULL);
    if (result != CUDA_SUCCESS)
        snprintf(why->text, sizeof why->text, "CUDA's error %d", (int)result);
    return result == CUDA_SUCCESS;
}
