/* SPDX-License-Identifier: MIT */
/* Rows of steps; scans of them and searches in them. */
#include "backends/cuda/ops/sort_scan.h"

#include <limits.h>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

bool tn__cuda_rows_of(const tn__step *step, tn__cuda_rows *rows)
{
    const tn__operand *operand = step->operand;
    const int64_t *stride[TN__CUDA_WALK_OPERANDS];
    int last = operand[0].ndim - 1;
    if (last < 0 || step->operand_count > TN__CUDA_WALK_OPERANDS)
        return false;
    for (int k = 0; k < step->operand_count; k++) {
        rows->count[k] = operand[k].dim[last];
        rows->step[k] = operand[k].stride[last];
        stride[k] = operand[k].stride;
    }
    tn__cuda_walk_make(&rows->walk, ~(1u << last), operand[0].ndim, operand[0].dim, step->operand_count, stride);
    return true;
}

static tn_status no_such_step(const tn__step *step)
{
    return tn__fail(TN_ERR_INTERNAL, "cuda", "operation %d has %d operands and %d axes, which no GPU can do", step->op,
                    step->operand_count, step->operand[0].ndim);
}

/* ---- scans, and positions of what is true: as scan.cuh and nonzero.cuh take them ---- */

enum { SCAN_THREADS = 256, SCAN_FOUR = 4, SCAN_SPAN = 32 * SCAN_FOUR, SCAN_WARP = 8 * SCAN_SPAN,
       SCAN_TILE = 8 * SCAN_WARP, SCAN_GROUP = 256, SCAN_STATE = 16 };

typedef struct scan_work {
    CUdeviceptr from, to;
    long long n, tiles, groups, from_step, to_step;
    CUdeviceptr ticket, totals, before, guard;
} scan_work;

typedef struct scan_data {
    tn__cuda_rows rows;
    scan_work work;
    CUfunction clear;
    int shorter;     /* rows of a warp or less: a power of 2 that is as much as they have, or more; else 0 */
    void *state;     /* the ticket, then totals and sums before groups; NULL if no row needs several blocks */
    size_t bytes;
} scan_data;

static void free_scan(const tn__cuda_step *step, tn__cuda_device *device)
{
    scan_data *data = step->data;
    if (data->state)
        tn__device_release(device->owner, data->state, data->bytes);
}

static tn_status start_scan(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const scan_data *data = step->data;
    scan_work work = data->work;
    long long rows = data->rows.walk.size;
    if (rows == 0 || work.n == 0)
        return TN_OK;
    work.to = tn__cuda_address(run, &step->step->operand[0]);
    work.from = tn__cuda_address(run, &step->step->operand[1]);
    work.guard = tn__cuda_guard(step, run);
    void *params[] = {(void *)&data->rows.walk, &work,
                      (void *)&data->rows.count[0]}; /* the last parameter is for nonzero only */
    if (data->state == NULL) {
        int lanes = data->shorter < SCAN_SPAN ? data->shorter / SCAN_FOUR : 32;
        int64_t each = data->shorter ? SCAN_THREADS / lanes : 1, blocks = (rows + each - 1) / each;
        return tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, SCAN_THREADS, 0, params,
                               "scan");
    }
    void *clear[] = {&work, &rows};
    tn_status status = tn__cuda_start(run, data->clear, rows * (work.tiles + work.groups), clear, "scan");
    return status == TN_OK ? tn__cuda_launch(run, step->function, rows * work.tiles, SCAN_THREADS, 0, params, "scan")
                           : status;
}

static int scan_shorter(int64_t n)
{
    int shorter = SCAN_FOUR;
    while (shorter < n && shorter < SCAN_WARP)
        shorter *= 2;
    return n <= shorter ? shorter : 0;
}

tn_status tn__cuda_prepare_scan(tn__cuda_step *step, tn__cuda_device *device)
{
    tn__cuda_rows rows;
    if (!tn__cuda_rows_of(step->step, &rows))
        return no_such_step(step->step);
    scan_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("scan", sizeof *data);
    step->data = data;
    step->start = start_scan;
    step->free = free_scan;
    data->rows = rows;
    scan_work *work = &data->work;
    *work = (scan_work){.n = rows.count[1], .from_step = rows.step[1], .to_step = rows.step[0]};
    bool finds = step->step->op == TN__OP_NONZERO;
    data->shorter = finds ? 0 : scan_shorter(work->n);
    bool alone = !finds && !data->shorter && work->n <= SCAN_TILE && rows.walk.size <= INT_MAX; /* a single block takes
                                                                                                   a whole row */
    char *text = finds ? tn__cuda_text_nonzero()
                       : tn__cuda_text_scan(step->step->operand[1].dtype, step->step->op, data->shorter);
    tn_status status = tn__cuda_own_kernel(
        step, device, text, finds ? "nonzero" : data->shorter ? "scan_short" : alone ? "scan_row" : "scan");
    if (status != TN_OK || data->shorter || alone)
        return status;
    work->tiles = (work->n + SCAN_TILE - 1) / SCAN_TILE;
    work->groups = (work->tiles + SCAN_GROUP - 1) / SCAN_GROUP;
    if (rows.walk.size > INT_MAX / work->tiles)
        return tn__fail(TN_ERR_VALUE, "scan",
                        "%lld rows of %lld elements are more than one scan on a GPU takes; do them in parts",
                        rows.walk.size, work->n);
    long long totals = rows.walk.size * work->tiles;
    data->bytes = SCAN_STATE * (size_t)(1 + totals + rows.walk.size * work->groups);
    data->state = tn__device_allocate(device->owner, data->bytes);
    if (data->state == NULL)
        return tn__error_status(tn__error_last());
    work->ticket = (CUdeviceptr)data->state;
    work->totals = work->ticket + SCAN_STATE;
    work->before = work->totals + SCAN_STATE * (CUdeviceptr)totals;
    return tn__cuda_module_function(device, step->module, "scan_clear", &data->clear);
}

/* ---- searches: as search.cuh takes them ---- */

typedef struct search_work {
    CUdeviceptr to, sorted, wanted;
    long long n, count, to_step, sorted_step, wanted_step;
    CUdeviceptr guard;
} search_work;

enum { GUIDED_THREADS = 512, GUIDED_CELLS = 4096, GUIDED_KEYS = 48 << 10, GUIDED_BLOCKS = 3, GUIDED_LEAST = 1 << 18 };

typedef struct search_data {
    tn__cuda_rows rows;
    int shared; /* bytes of shared memory for search_guided; 0: search by bisection */
} search_data;

static tn_status start_search(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const search_data *data = step->data;
    const tn__cuda_rows *rows = &data->rows;
    const tn__operand *operand = step->step->operand;
    search_work work = {.to = tn__cuda_address(run, &operand[0]),
                        .sorted = tn__cuda_address(run, &operand[1]),
                        .wanted = tn__cuda_address(run, &operand[2]),
                        .n = rows->count[1],
                        .count = rows->count[2],
                        .to_step = rows->step[0],
                        .sorted_step = rows->step[1],
                        .wanted_step = rows->step[2],
                        .guard = tn__cuda_guard(step, run)};
    void *params[] = {(void *)&rows->walk, &work}, *alone[] = {&work};
    return data->shared ? tn__cuda_launch(run, step->function,
                                          (int64_t)run->device->owner->capabilities.multiprocessors * GUIDED_BLOCKS,
                                          GUIDED_THREADS, data->shared, alone, "search")
                        : tn__cuda_start(run, step->function, rows->walk.size * work.count, params, "search");
}

tn_status tn__cuda_prepare_search(tn__cuda_step *step, tn__cuda_device *device)
{
    search_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("search", sizeof *data);
    step->data = data;
    step->start = start_search;
    if (step->step->operand_count != 3 || !tn__cuda_rows_of(step->step, &data->rows))
        return no_such_step(step->step);
    tn_dtype dtype = step->step->operand[1].dtype;
    int64_t keys = data->rows.count[1] * tn__dtypes[dtype].size;
    if (data->rows.walk.size == 1 && keys > 0 && keys <= GUIDED_KEYS && data->rows.count[2] >= GUIDED_LEAST)
        data->shared = GUIDED_CELLS * (int)sizeof(uint32_t) + (int)keys;
    tn_status status =
        tn__cuda_own_kernel(step, device, tn__cuda_text_search(dtype, step->step->op == TN__OP_SEARCH_RIGHT),
                            data->shared ? "search_guided" : "search");
    if (status != TN_OK || !data->shared)
        return status;
    int most = GUIDED_CELLS * (int)sizeof(uint32_t) + GUIDED_KEYS; /* as steps share the kernel */
    int result = device->driver->cuFuncSetAttribute(step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    most);
    return tn__cuda_check(device, result, "search");
}
