/* SPDX-License-Identifier: MIT */
/*
 * SCATTER_ADD of many terms that no atomics may add, as their order would be left to chance: the positions are sorted,
 * and the terms of each added up piece by piece, by the kernels sorted_keys and fold of scatter.cuh.
 */
#include "backends/cuda/ops/sort_scan.h"
#include "backends/cuda/ops/scatter.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

enum { FOLDED = 32, MOST_LEVELS = 12 };

typedef struct fold {
    CUdeviceptr keys, order, values, next_keys, next_values;
    long long terms, pieces, lanes, rows;
} fold;

struct tn__cuda_sorted_sums {
    tn__operand operand[2];       /* the sort's operands: positions, keys */
    tn__step argsort;
    tn__cuda_step sort;
    CUfunction keys, fold, fold_lanes;
    int lanes; /* lanes that a thread adds up where these are neighbours in memory */
    CUdeviceptr order;
    fold level[MOST_LEVELS];
    int levels;
    void *memory;
    size_t bytes, itemsize;
};

bool tn__cuda_sorted_sums_take(const tn__cuda_scatter_args *args)
{
    return args->extent < UINT32_MAX && args->count <= INT32_MAX / (args->rows ? args->rows : 1) && args->count > 1;
}

static CUdeviceptr carve(CUdeviceptr *at, long long count, size_t size)
{
    CUdeviceptr piece = *at;
    *at += ((size_t)count * size + 255) / 256 * 256;
    return piece;
}

/* Divides memory among the keys, the order, and each level's keys and sums; if `base` is 0, only computes the size. */
static void lay_out(tn__cuda_sorted_sums *sums, CUdeviceptr base, long long terms, long long lanes, long long rows,
                    size_t itemsize)
{
    CUdeviceptr at = base, keys = carve(&at, rows * terms, sizeof(uint32_t)), values = 0;
    sums->order = carve(&at, rows * terms, sizeof(int64_t));
    CUdeviceptr order = sums->order;
    sums->levels = 0;
    for (bool last = false; !last;) {
        fold *f = &sums->level[sums->levels++];
        long long pieces = (terms + FOLDED - 1) / FOLDED;
        last = pieces == 1;
        *f = (fold){.keys = keys, .order = order, .values = values, .terms = terms, .pieces = pieces, .lanes = lanes,
                    .rows = rows};
        terms = 2 * pieces;
        order = 0;
        f->next_keys = keys = last ? 0 : carve(&at, terms * lanes, sizeof(uint32_t));
        f->next_values = values = last ? 0 : carve(&at, terms * lanes, itemsize < 4 ? 4 : itemsize);
    }
    sums->bytes = (size_t)(at - base);
}

static void describe_sort(tn__cuda_sorted_sums *sums, const tn__cuda_step *step, long long rows, long long terms)
{
    for (int i = 0; i < 2; i++)
        sums->operand[i] = (tn__operand){.buffer = i, .dtype = i ? TN_UINT32 : TN_INT64, .ndim = 2,
                                         .dim = {rows, terms}, .stride = {terms, 1}};
    sums->argsort = (tn__step){.kind = TN__STEP_OP, .op = TN__OP_ARGSORT, .compute = TN_UINT32, .operand_count = 2,
                               .output_count = 1, .operand = sums->operand, .label = step->step->label};
    sums->sort = (tn__cuda_step){.step = &sums->argsort, .program = step->program, .number = step->number};
}

tn_status tn__cuda_sorted_sums_make(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_walk *walk,
                                    const tn__cuda_scatter_args *args, tn__cuda_sorted_sums **made)
{
    tn__cuda_sorted_sums *sums = *made = tn__calloc(1, sizeof *sums);
    if (sums == NULL)
        return tn__fail_memory("scatter", sizeof *sums);
    long long rows = args->rows;
    size_t itemsize = tn__dtypes[step->step->operand[0].dtype].size;
    sums->lanes = itemsize < 4 ? 4 : 16 / (int)itemsize;
    sums->itemsize = itemsize;
    describe_sort(sums, step, rows, args->count);
    tn_status status = tn__cuda_module_function(device, step->module, "sorted_keys", &sums->keys);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "fold", &sums->fold);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "fold_lanes", &sums->fold_lanes);
    if (status == TN_OK)
        status = tn__cuda_prepare_sort(&sums->sort, device);
    if (status == TN_OK)
        tn__cuda_sort_below(&sums->sort, (uint64_t)args->extent);
    if (status != TN_OK || walk->size == 0)
        return status;
    lay_out(sums, 0, args->count, walk->size, rows, itemsize);
    sums->memory = tn__device_allocate(device->owner, sums->bytes);
    if (sums->memory == NULL)
        return tn__error_status(tn__error_last());
    lay_out(sums, (CUdeviceptr)sums->memory, args->count, walk->size, rows, itemsize);
    return TN_OK;
}

/* Are lanes neighbours in memory, in whole groups, whose addresses are multiples of 16 bytes (less for small
 * elements)? */
static bool side_by_side(const tn__cuda_sorted_sums *sums, const tn__cuda_walk *walk, const tn__cuda_scatter_args *args)
{
    long long lanes = sums->lanes;
    size_t bytes = lanes * sums->itemsize;
    return args->rows == 1 && walk->ndim == 1 && walk->stride[0][0] == 1 && walk->stride[2][0] == 1 &&
           walk->size % lanes == 0 && args->to_step % lanes == 0 && args->from_step % lanes == 0 &&
           args->to % bytes == 0 && args->from % bytes == 0;
}

tn_status tn__cuda_sorted_sums_start(const tn__cuda_sorted_sums *sums, const tn__cuda_run *run,
                                     const tn__cuda_walk *walk, tn__cuda_scatter_args *args, tn__cuda_failure *failure)
{
    fold first = sums->level[0];
    void *params[] = {(void *)walk, args, &first, failure};
    tn_status status = tn__cuda_start(run, sums->keys, first.rows * first.terms, params, "scatter");
    void *const buffers[] = {(void *)sums->order, (void *)first.keys};
    tn__cuda_run own = *run;
    own.buffers = buffers;
    if (status == TN_OK)
        status = sums->sort.start(&sums->sort, &own);
    bool beside = side_by_side(sums, walk, args);
    for (int i = 0; i < sums->levels && status == TN_OK; i++) {
        fold level = sums->level[i];
        params[2] = &level;
        status = beside ? tn__cuda_start(run, sums->fold_lanes, level.lanes / sums->lanes * level.pieces, params + 1,
                                         "scatter")
                        : tn__cuda_start(run, sums->fold, level.lanes * level.pieces, params, "scatter");
    }
    return status;
}

void tn__cuda_sorted_sums_free(tn__cuda_sorted_sums *sums, tn__cuda_device *device)
{
    if (sums == NULL)
        return;
    if (sums->sort.free && sums->sort.data)
        sums->sort.free(&sums->sort, device);
    if (sums->sort.module)
        tn__cuda_module_release(device, sums->sort.module);
    tn__free(sums->sort.data);
    if (sums->memory)
        tn__device_release(device->owner, sums->memory, sums->bytes);
    tn__free(sums);
}
