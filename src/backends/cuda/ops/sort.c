/* SPDX-License-Identifier: MIT */
/*
 * Sorting rows on a GPU: the passes of sort.cuh and the memory between them. Passes go from one buffer to the other by
 * turns; an output that lies as a whole is one of the two. Which passes a row takes, the GPU finds out: the others
 * return at once. Short rows go to sort_rows.c.
 */
#include <limits.h>

#include "backends/cuda/ops/sort_scan.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

enum { SORT_THREADS = 512, SORT_DIGITS = 256, SORT_TILES_AT_ONCE = 8, SORT_PASSES = 8,
       SORT_ROWS_AT_ONCE = 1 << 15, SORT_BLOCKS_AT_ONCE = 1 /* blocks of sort_count on a multiprocessor */ };
#define SORT_WIDE ((int64_t)1 << 30) /* rows of so many elements and more need 64-bit counters */

typedef struct sort_pass {
    CUdeviceptr in, out, between[2], positions[2], published[2], starts, differs, ticket;
    long long n, tiles, rows, from_step, to_step;
    int passes, number, even, at_once;
    CUdeviceptr guard;
} sort_pass;

typedef struct sort_data {
    tn__cuda_rows rows;
    sort_pass pass;                    /* parameters that all passes share */
    bool positions, whole;             /* ARGSORT; SORT into a contiguous output */
    CUfunction clear, count, plan;     /* step->function is sort_move */
    int shared;                        /* bytes of shared memory of sort_move */
    void *scratch;
    size_t bytes;
} sort_data;

static void free_sort(const tn__cuda_step *step, tn__cuda_device *device)
{
    sort_data *data = step->data;
    if (data->scratch)
        tn__device_release(device->owner, data->scratch, data->bytes);
}

static sort_pass pass_of(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const sort_data *data = step->data;
    sort_pass pass = data->pass;
    pass.in = tn__cuda_address(run, &step->step->operand[1]);
    pass.out = tn__cuda_address(run, &step->step->operand[0]);
    if (data->whole)
        pass.between[1] = pass.out;
    pass.guard = tn__cuda_guard(step, run);
    return pass;
}

static tn_status start_sort(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const sort_data *data = step->data;
    sort_pass pass = pass_of(step, run);
    if (pass.rows == 0)
        return TN_OK;
    int64_t shares = (pass.tiles + pass.at_once - 1) / pass.at_once;
    void *alone[] = {&pass}, *params[] = {(void *)&data->rows.walk, &pass};
    tn_status status = tn__cuda_start(run, data->clear, pass.rows * pass.tiles * SORT_DIGITS, alone, "sort");
    if (status == TN_OK)
        status = tn__cuda_launch(run, data->count, pass.rows * shares, SORT_THREADS, 0, params, "sort");
    if (status == TN_OK)
        status = tn__cuda_launch(run, data->plan, pass.rows < SORT_ROWS_AT_ONCE ? pass.rows : SORT_ROWS_AT_ONCE,
                                 SORT_DIGITS, 0, alone, "sort");
    for (; pass.number < pass.passes && status == TN_OK; pass.number++)
        status = tn__cuda_launch(run, step->function, pass.rows * pass.tiles, SORT_THREADS, data->shared, params,
                                 "sort");
    return status;
}

static CUdeviceptr carve(CUdeviceptr *at, size_t bytes)
{
    CUdeviceptr piece = *at;
    *at += (bytes + 255) / 256 * 256;
    return bytes ? piece : 0;
}

/* Divides one block of memory; if `base` is 0, only computes its size. */
static void lay_out(sort_data *data, CUdeviceptr base, size_t itemsize)
{
    sort_pass *pass = &data->pass;
    size_t rows = (size_t)pass->rows, all = rows * (size_t)pass->n, word = pass->n < SORT_WIDE ? 4 : 8;
    bool between = pass->passes > 1;
    CUdeviceptr at = base;
    pass->ticket = carve(&at, SORT_PASSES * sizeof(uint64_t));
    pass->differs = carve(&at, rows * sizeof(uint32_t));
    pass->starts = carve(&at, rows * SORT_DIGITS * itemsize * sizeof(uint32_t));
    for (int i = 0; i < 2; i++) {
        pass->published[i] = carve(&at, rows * SORT_DIGITS * (size_t)pass->tiles * word);
        pass->between[i] = carve(&at, between && (i == 0 || !data->whole) ? all * itemsize : 0);
        pass->positions[i] = carve(&at, between && data->positions ? all * sizeof(uint32_t) : 0);
    }
    data->bytes = (size_t)(at - base);
}

static tn_status make_scratch(sort_data *data, tn__cuda_device *device, size_t itemsize)
{
    lay_out(data, 0, itemsize);
    data->scratch = tn__device_allocate(device->owner, data->bytes);
    if (data->scratch == NULL)
        return tn__error_status(tn__error_last());
    lay_out(data, (CUdeviceptr)data->scratch, itemsize);
    return TN_OK;
}

static tn_status find_kernels(tn__cuda_step *step, tn__cuda_device *device)
{
    sort_data *data = step->data;
    tn_status status = tn__cuda_module_function(device, step->module, "sort_clear", &data->clear);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "sort_count", &data->count);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "sort_plan", &data->plan);
    if (status != TN_OK)
        return status;
    int result = device->driver->cuFuncSetAttribute(step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    data->shared);
    return tn__cuda_check(device, result, "sort");
}

static bool without_gaps(const tn__operand *operand)
{
    int64_t reach = 1;
    for (int d = operand->ndim - 1; d >= 0; d--) {
        if (operand->dim[d] != 1 && operand->stride[d] != reach)
            return false;
        reach *= operand->dim[d];
    }
    return true;
}

/* The number of tiles that a block of sort_count counts: few enough that every multiprocessor has a block. */
static int tiles_at_once(const tn__cuda_device *device, int64_t tiles)
{
    int64_t each = tiles / ((int64_t)device->owner->capabilities.multiprocessors * SORT_BLOCKS_AT_ONCE + 1);
    return each < 1 ? 1 : each < SORT_TILES_AT_ONCE ? (int)each : SORT_TILES_AT_ONCE;
}

void tn__cuda_sort_below(tn__cuda_step *step, uint64_t limit)
{
    if (step->start != start_sort) /* sorted by comparisons (sort_rows.c) */
        return;
    sort_data *data = step->data;
    int bytes = 1;
    while (bytes < data->pass.passes && (limit - 1) >> (8 * bytes))
        bytes++;
    data->pass.passes = bytes;
}

tn_status tn__cuda_prepare_sort(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    tn__cuda_rows found;
    if (s->operand_count != 2 || !tn__cuda_rows_of(s, &found))
        return tn__fail(TN_ERR_INTERNAL, "sort", "a step of %d operands", s->operand_count);
    if (tn__cuda_sorts_rows(s, found.count[1]))
        return tn__cuda_prepare_sort_rows(step, device, &found);
    sort_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("sort", sizeof *data);
    step->data = data;
    step->start = start_sort;
    step->free = free_sort;
    data->rows = found;
    int64_t n = data->rows.count[1], rows = data->rows.walk.size, itemsize = tn__dtypes[s->operand[1].dtype].size;
    data->positions = s->op == TN__OP_ARGSORT;
    int each = data->positions ? (itemsize == 8 ? 8 : 16) : itemsize == 8 ? 10 : 20;
    int64_t tile = SORT_THREADS * each, tiles = (n + tile - 1) / tile;
    data->shared = (int)(SORT_THREADS / 32 * SORT_DIGITS * 4 + tile * (itemsize < 4 ? 4 : itemsize));
    data->whole = !data->positions && without_gaps(&s->operand[0]);
    data->pass = (sort_pass){.n = n, .tiles = tiles, .rows = rows, .from_step = data->rows.step[1],
                             .to_step = data->rows.step[0],
                             .passes = itemsize == 1 && step->overwrites ? 2 : (int)itemsize, .even = step->overwrites};
    data->pass.at_once = tiles_at_once(device, rows * tiles);
    tn_status status = tn__cuda_own_kernel(step, device,
                                           tn__cuda_text_sort(s->operand[1].dtype, data->positions, n >= SORT_WIDE),
                                           "sort_move");
    if (status != TN_OK || rows == 0)
        return status;
    if (n > UINT32_MAX || rows > INT_MAX / tiles)
        return tn__fail(TN_ERR_VALUE, "sort",
                        "%lld rows of %lld elements are more than one sort on a GPU takes; do them in parts",
                        (long long)rows, (long long)n);
    status = make_scratch(data, device, (size_t)itemsize);
    return status == TN_OK ? find_kernels(step, device) : status;
}
