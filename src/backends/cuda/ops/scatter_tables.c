/* SPDX-License-Identifier: MIT */
/*
 * SCATTER_ADD of many terms to few positions, which no atomics may add, as their order would be left to chance: pieces
 * of the terms are added up in tables in shared memory, by the kernels of scatter_tables.cuh. How terms are cut into
 * pieces and how many tables a warp has follow from the step's numbers alone, not from the GPU: so the order of
 * additions is the same on all.
 */
#include <limits.h>

#include "backends/cuda/ops/scatter.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

enum {
    WARP = 32,
    ROUND = WARP * 8,        /* terms that a warp adds in a round */
    MOST_PIECES = 2048,      /* 15 warps for each multiprocessor of an H100 */
    LEAST_TERMS = 2 * ROUND, /* least terms of a piece ... */
    TERMS_SHARE = 4,         /* ... and a term for 4 positions: sums are written and read again */
    MANY_TABLES = 24 << 10,  /* most bytes of a warp's tables, if it has several: a multiprocessor has room for 6 to
                                9 warps then */
    MOST_BYTES = 48 << 10,   /* most bytes of a single table: shared memory that needs no opt-in */
    FEW_PLACES = 4,          /* most places of the loop where terms are not neighbours in memory: each place reads
                                all cache lines */
    JOINED = 8, JOIN_THREADS = 512
};

typedef struct tables {
    CUdeviceptr sums;
    long long pieces, length;
    int count, unused;
} tables;

struct tn__cuda_table_sums {
    tables tables;
    CUfunction add, join;
    int shared;
    void *memory;
    size_t bytes;
};

/* Most bytes of a sum, in the dtype that kernels add in. */
static long long bytes_of_sum(tn_dtype dtype)
{
    long long size = tn__dtypes[dtype].size;
    return size < 4 ? 4 : size;
}

/* Bytes of a table, which has one entry more, for terms that go nowhere. */
static long long bytes_of_table(const tn__cuda_scatter_args *args, tn_dtype dtype)
{
    return (args->extent + 1) * bytes_of_sum(dtype);
}

static long long divide_up(long long a, long long b) { return (a + b - 1) / b; }

/* Divides the terms into pieces of whole rounds. */
static tables cut(const tn__cuda_walk *walk, const tn__cuda_scatter_args *args, tn_dtype dtype)
{
    tables t = {.pieces = MOST_PIECES / walk->size, .count = WARP};
    long long least = args->extent / TERMS_SHARE;
    least = least > LEAST_TERMS ? least : LEAST_TERMS;
    t.length = t.pieces > 1 ? divide_up(args->count, t.pieces) : args->count;
    t.length = divide_up(t.length > least ? t.length : least, ROUND) * ROUND;
    t.pieces = divide_up(args->count, t.length);
    while (t.count > 1 && t.count * bytes_of_table(args, dtype) > MANY_TABLES)
        t.count /= 2;
    return t;
}

bool tn__cuda_table_sums_take(const tn__cuda_walk *walk, const tn__cuda_scatter_args *args, tn_dtype dtype)
{
    if (walk->size < 1 || walk->size > INT_MAX / MOST_BYTES || args->extent < 1 || args->extent > args->count ||
        args->extent > MOST_BYTES || args->count > INT_MAX / 2 || bytes_of_table(args, dtype) > MOST_BYTES)
        return false;
    return walk->size <= FEW_PLACES || args->from_step == 1;
}

tn_status tn__cuda_table_sums_make(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_walk *walk,
                                   const tn__cuda_scatter_args *args, tn__cuda_table_sums **made)
{
    tn__cuda_table_sums *sums = *made = tn__calloc(1, sizeof *sums);
    if (sums == NULL)
        return tn__fail_memory("scatter", sizeof *sums);
    tn_dtype dtype = step->step->operand[0].dtype;
    sums->tables = cut(walk, args, dtype);
    sums->shared = (int)(sums->tables.count * bytes_of_table(args, dtype));
    tn_status status = tn__cuda_module_function(device, step->module, "add_to_tables", &sums->add);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "join_tables", &sums->join);
    if (status == TN_OK) /* terms are read once, so shared memory is worth more than cache */
        status = tn__cuda_check(device,
                                device->driver->cuFuncSetAttribute(sums->add,
                                                                   CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                                                   CU_SHAREDMEM_CARVEOUT_MAX_SHARED),
                                "scatter");
    if (status != TN_OK || sums->tables.pieces == 1)
        return status;
    sums->bytes = (size_t)(walk->size * sums->tables.pieces * args->extent * bytes_of_sum(dtype));
    sums->memory = tn__device_allocate(device->owner, sums->bytes);
    if (sums->memory == NULL)
        return tn__error_status(tn__error_last());
    sums->tables.sums = (CUdeviceptr)sums->memory;
    return TN_OK;
}

tn_status tn__cuda_table_sums_start(const tn__cuda_table_sums *sums, const tn__cuda_run *run, const tn__cuda_walk *walk,
                                    tn__cuda_scatter_args *args, tn__cuda_failure *failure)
{
    tables t = sums->tables;
    void *params[] = {(void *)walk, args, &t, failure};
    tn_status status = tn__cuda_launch(run, sums->add, walk->size * t.pieces, WARP, sums->shared, params, "scatter");
    if (status != TN_OK || t.pieces == 1)
        return status;
    return tn__cuda_launch(run, sums->join, walk->size * divide_up(args->extent, JOINED), JOIN_THREADS, 0, params,
                           "scatter");
}

void tn__cuda_table_sums_free(tn__cuda_table_sums *sums, tn__cuda_device *device)
{
    if (sums && sums->memory)
        tn__device_release(device->owner, sums->memory, sums->bytes);
    tn__free(sums);
}
