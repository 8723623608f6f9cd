/* SPDX-License-Identifier: MIT */
/*
 * LARGEST on a GPU: launches of largest.cuh, each of which leaves fewer elements to the next one; where few are wanted,
 * one launch of largest_few.cuh.
 */
#include <limits.h>

#include "backends/cuda/ops/sort_scan.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

enum { THREADS_LEAST = 64, THREADS_MOST = 512, MOST = 1024, LAUNCHES = 16 };

typedef struct largest_work {
    CUdeviceptr from, to, keys, positions, next_keys, next_positions;
    long long n, parts, rows, most, from_step, to_step;
    CUdeviceptr guard;
} largest_work;

typedef struct largest_data {
    tn__cuda_rows rows;
    largest_work work[LAUNCHES];
    int launches, each; /* elements that a thread has */
    void *scratch;
    size_t bytes;
} largest_data;

static void free_largest(const tn__cuda_step *step, tn__cuda_device *device)
{
    largest_data *data = step->data;
    if (data->scratch)
        tn__device_release(device->owner, data->scratch, data->bytes);
}

static tn_status start_largest(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const largest_data *data = step->data;
    tn_status status = TN_OK;
    for (int i = 0; i < data->launches && status == TN_OK; i++) {
        largest_work work = data->work[i];
        work.to = tn__cuda_address(run, &step->step->operand[0]);
        work.from = tn__cuda_address(run, &step->step->operand[1]);
        work.guard = tn__cuda_guard(step, run);
        void *params[] = {(void *)&data->rows.walk, &work};
        long long blocks = work.rows * work.parts, part = (work.n + work.parts - 1) / work.parts;
        int threads = THREADS_LEAST;
        while (threads < THREADS_MOST && threads * data->each < part)
            threads *= 2;
        status = tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, threads, 0, params,
                                 "largest");
    }
    return status;
}

static CUdeviceptr carve(CUdeviceptr *at, long long count, size_t size)
{
    CUdeviceptr piece = *at;
    *at += ((size_t)count * size + 255) / 256 * 256;
    return piece;
}

/* The launches and what lies between them; with `base` 0, only how much that is. */
static void lay_out(largest_data *data, CUdeviceptr base, size_t itemsize)
{
    const tn__cuda_rows *rows = &data->rows;
    CUdeviceptr at = base, keys = 0, positions = 0;
    long long n = rows->count[1], most = rows->count[0], part = (long long)THREADS_MOST * data->each;
    data->launches = 0;
    for (bool last = false; !last;) {
        largest_work *work = &data->work[data->launches++];
        long long parts = (n + part - 1) / part, left = rows->walk.size * parts * most;
        last = parts == 1;
        *work = (largest_work){.keys = keys, .positions = positions, .n = n, .parts = parts, .rows = rows->walk.size,
                               .most = most, .from_step = rows->step[1], .to_step = rows->step[0]};
        n = parts * most;
        work->next_keys = keys = last ? 0 : carve(&at, left, itemsize);
        work->next_positions = positions = last ? 0 : carve(&at, left, sizeof(uint32_t));
    }
    data->bytes = (size_t)(at - base);
}

static tn_status prepare_parts(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_rows *rows)
{
    const tn__step *s = step->step;
    largest_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("largest", sizeof *data);
    step->data = data;
    step->free = free_largest;
    step->start = start_largest;
    data->rows = *rows;
    size_t itemsize = tn__dtypes[s->operand[1].dtype].size;
    data->each = itemsize == 8 ? 8 : 16;
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_largest(s->operand[1].dtype), "largest");
    if (status != TN_OK || data->rows.walk.size == 0 || data->rows.count[0] == 0)
        return status;
    lay_out(data, 0, itemsize);
    if (data->bytes == 0)
        return status;
    data->scratch = tn__device_allocate(device->owner, data->bytes);
    if (data->scratch == NULL)
        return tn__error_status(tn__error_last());
    lay_out(data, (CUdeviceptr)data->scratch, itemsize);
    return TN_OK;
}

/* ---- few of a row, by a warp ---- */

enum {
    FEW = 32,              /* a lane keeps one */
    FEW_WARPS = 4,         /* of a block */
    FEW_REGISTERS = 32,    /* that hold what a lane reads in a turn */
    FEW_TURNS = 4,         /* that a warp is through with sooner than a block with a part */
    BLOCKS_AT_ONCE = 2     /* of largest.cuh's on a multiprocessor */
};

typedef struct few_work {
    CUdeviceptr from, to;
    long long n, most, from_step, to_step;
    CUdeviceptr guard;
} few_work;

typedef struct few_data {
    tn__cuda_rows rows;
    few_work work;
} few_data;

static tn_status start_few(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const few_data *data = step->data;
    few_work work = data->work;
    work.to = tn__cuda_address(run, &step->step->operand[0]);
    work.from = tn__cuda_address(run, &step->step->operand[1]);
    work.guard = tn__cuda_guard(step, run);
    void *params[] = {(void *)&data->rows.walk, &work};
    long long blocks = (data->rows.walk.size + FEW_WARPS - 1) / FEW_WARPS;
    return tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, 32 * FEW_WARPS, 0, params,
                           "largest");
}

/* Elements that a warp reads at a time, at most. */
static long long longest_turn(size_t itemsize)
{
    return 32 * (itemsize == 8 ? FEW_REGISTERS / 2 : FEW_REGISTERS);
}

/*
 * Whether a warp a row is sooner done. A block sorts what it finds in shared memory, and its threads wait for one
 * another in each of some sixty steps, however short the row is; a warp waits for memory, once a turn of up to 1024
 * elements. So it is as soon done with a few turns as a block with one part of a row; and with any number of them when
 * there are so many rows that blocks would have to wait for others to end.
 */
static bool suits_few(const tn__cuda_device *device, const tn__cuda_rows *rows, size_t itemsize)
{
    long long most = rows->count[0], n = rows->count[1], processors = device->owner->capabilities.multiprocessors;
    return most > 0 && most <= FEW && n <= INT_MAX && rows->walk.size > 0 &&
           (n <= FEW_TURNS * longest_turn(itemsize) || rows->walk.size >= BLOCKS_AT_ONCE * processors);
}

/* Elements that a lane reads in a turn: even turns of the row. Not every number has a text of its own, as each takes a
 * while to compile. */
static int each_lane(long long n, size_t itemsize)
{
    long long longest = longest_turn(itemsize), turns = (n + longest - 1) / longest;
    int each = (int)((n + 32 * turns - 1) / (32 * turns));
    return each <= 4 ? each : (each + 3) / 4 * 4;
}

static tn_status prepare_few(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_rows *rows)
{
    few_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("largest", sizeof *data);
    step->data = data;
    step->start = start_few;
    data->rows = *rows;
    data->work = (few_work){.n = rows->count[1], .most = rows->count[0], .from_step = rows->step[1],
                            .to_step = rows->step[0]};
    tn_dtype dtype = step->step->operand[1].dtype;
    int each = each_lane(data->work.n, tn__dtypes[dtype].size);
    return tn__cuda_own_kernel(step, device, tn__cuda_text_largest_few(dtype, each), "largest_few");
}

tn_status tn__cuda_prepare_largest(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    tn__cuda_rows rows = {0};
    if (s->operand_count != 2 || !tn__cuda_rows_of(s, &rows) || rows.count[0] > MOST ||
        rows.count[0] > rows.count[1] || rows.count[1] > UINT32_MAX)
        return tn__fail(TN_ERR_INTERNAL, "largest", "a step of %d operands finds %lld of %lld elements",
                        s->operand_count, (long long)rows.count[0], (long long)rows.count[1]);
    return suits_few(device, &rows, tn__dtypes[s->operand[1].dtype].size) ? prepare_few(step, device, &rows)
                                                                          : prepare_parts(step, device, &rows);
}
