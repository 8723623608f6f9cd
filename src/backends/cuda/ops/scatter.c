/* SPDX-License-Identifier: MIT */
/*
 * SCATTER_ADD and SCATTER_SET: the base is copied to the output, then terms go to their positions, by the kernels of
 * scatter.cuh. Few terms are added in their order, those of whole numbers in any order, which is the same, and many
 * others in an order that follows from how many there are (scatter_tables.c) or, where there are many positions, from
 * these (scatter_sorted.c).
 */
#include <limits.h>
#include <string.h>

#include "backends/cuda/ops/sort_scan.h"
#include "backends/cuda/ops/scatter.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

enum { IN_ORDER_TERMS = 64, IN_ORDER_SUMS = 256, IN_BLOCK_EXTENT = 4096, IN_BLOCK_BLOCKS = 1024, BLOCK_THREADS = 256 };

typedef enum scatter_way { IN_ORDER, AT_ONCE, IN_BLOCK, LAST_WINS, BY_TABLES, SORTED } scatter_way;

typedef struct scatter_data {
    tn__cuda_walk walk; /* over all axes but the indexed one: output, positions, terms */
    tn__cuda_scatter_args args;
    scatter_way way;
    CUfunction check, choose;
    tn__cuda_step base; /* of copying the base to the output */
    void *last;
    size_t last_bytes;
    tn__cuda_table_sums *tables; /* BY_TABLES */
    tn__cuda_sorted_sums *sums;  /* SORTED */
} scatter_data;

/* Bytes of a dtype that atomic instructions can add, else 0. */
static int atomic_bytes(tn_dtype dtype)
{
    int size = tn__dtypes[dtype].size;
    return tn_dtype_is_integer(dtype) && size >= 4 ? size : 0;
}

char *tn__cuda_text_scatter(tn_dtype dtype)
{
    int bytes = atomic_bytes(dtype);
    return tn__format("%s#define NOTHING %s\n%s%s%s%s%s",
                      bytes == 8 ? "#define ATOMIC 8\n" : bytes ? "#define ATOMIC 4\n" : "",
                      tn_dtype_is_complex(dtype) ? "W(-0.0f, -0.0f)" : "W(-0.0f)", tn__cuda_types(dtype),
                      tn__cuda_walk_text, tn__cuda_failure_text, (const char *)tn__embed_cuda_scatter,
                      (const char *)tn__embed_cuda_scatter_tables);
}

static tn_status put(const tn__cuda_step *step, const tn__cuda_run *run, const tn__cuda_scatter_args *args,
                     const tn__cuda_failure *failure)
{
    const scatter_data *data = step->data;
    const char *label = step->step->label ? step->step->label : "scatter";
    int64_t lanes = data->walk.size, terms = lanes * args->count;
    void *params[] = {(void *)&data->walk, (void *)args, (void *)failure};
    tn__cuda_scatter_args own = *args;
    tn__cuda_failure own_failure = *failure;
    tn_status status = TN_OK;
    switch (data->way) {
    case BY_TABLES:
        return tn__cuda_table_sums_start(data->tables, run, &data->walk, &own, &own_failure);
    case SORTED:
        return tn__cuda_sorted_sums_start(data->sums, run, &data->walk, &own, &own_failure);
    case IN_ORDER:
        return tn__cuda_start(run, step->function, lanes, params, label);
    case AT_ONCE:
        return tn__cuda_start(run, step->function, terms, params, label);
    case IN_BLOCK:
        return tn__cuda_launch(run, step->function,
                               terms < IN_BLOCK_BLOCKS * BLOCK_THREADS ? (terms + BLOCK_THREADS - 1) / BLOCK_THREADS
                                                                       : IN_BLOCK_BLOCKS,
                               BLOCK_THREADS, 0, params, label);
    case LAST_WINS:
        status = tn__cuda_start(run, data->choose, args->rows * args->count, params, label);
        return status == TN_OK ? tn__cuda_start(run, step->function, terms, params, label) : status;
    }
    return status;
}

static tn_status start_scatter(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    scatter_data *data = step->data;
    tn__cuda_scatter_args args = data->args;
    CUdeviceptr base = tn__cuda_address(run, &operand[1]);
    args.to = tn__cuda_address(run, &operand[0]);
    args.index = tn__cuda_address(run, &operand[2]);
    args.from = tn__cuda_address(run, &operand[3]);
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    tn__cuda_run guarded = *run;
    tn_status status = TN_OK;
    if (step->overwrites || data->way == LAST_WINS) {
        void *params[] = {&data->walk, &args, &failure};
        status = tn__cuda_start(run, data->check, args.rows * args.count, params, "scatter");
    }
    if (step->overwrites && args.count)
        guarded.failure.guard = failure.guard = failure.latch;
    bool in_place = args.to == base && memcmp(operand[0].stride, operand[1].stride,
                                              operand[0].ndim * sizeof *operand[0].stride) == 0;
    if (status == TN_OK && !in_place)
        status = data->base.start(&data->base, &guarded);
    return status != TN_OK || args.count == 0 || data->walk.size == 0 ? status : put(step, run, &args, &failure);
}

static void free_scatter(const tn__cuda_step *step, tn__cuda_device *device)
{
    scatter_data *data = step->data;
    tn__cuda_module_release(device, data->base.module);
    tn__free(data->base.data);
    tn__cuda_table_sums_free(data->tables, device);
    tn__cuda_sorted_sums_free(data->sums, device);
    if (data->last)
        tn__device_release(device->owner, data->last, data->last_bytes);
}

/* The way of sums in a dtype that atomic instructions cannot add. */
static scatter_way way_of_sums(tn_dtype dtype, const scatter_data *data)
{
    const tn__cuda_scatter_args *args = &data->args;
    if (args->count <= IN_ORDER_SUMS)
        return IN_ORDER;
    return tn__cuda_table_sums_take(&data->walk, args, dtype) ? BY_TABLES
           : tn__cuda_sorted_sums_take(args)                  ? SORTED
                                                              : IN_ORDER;
}

static scatter_way way_of(const tn__step *step, const scatter_data *data)
{
    const tn__cuda_scatter_args *args = &data->args;
    bool many = args->count > IN_ORDER_TERMS;
    if (!args->add)
        return many && args->count < UINT_MAX ? LAST_WINS : IN_ORDER;
    if (!many || !atomic_bytes(step->operand[0].dtype))
        return way_of_sums(step->operand[0].dtype, data);
    return data->walk.size == 1 && args->extent <= IN_BLOCK_EXTENT ? IN_BLOCK : AT_ONCE;
}

static long long rows_of_positions(const tn__cuda_walk *walk)
{
    for (int d = 0; d < walk->ndim; d++)
        if (walk->stride[1][d] != 0)
            return walk->size;
    return walk->size > 0;
}

static tn_status load_kernels(tn__cuda_step *step, tn__cuda_device *device)
{
    static const char *const name[] = {[IN_ORDER] = "in_order", [AT_ONCE] = "at_once", [IN_BLOCK] = "in_block",
                                       [LAST_WINS] = "write", [BY_TABLES] = "add_to_tables", [SORTED] = "fold"};
    scatter_data *data = step->data;
    tn_status status =
        tn__cuda_own_kernel(step, device, tn__cuda_text_scatter(step->step->operand[0].dtype), name[data->way]);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, data->way == LAST_WINS ? "clear" : "check",
                                          &data->check);
    if (status == TN_OK && data->way == BY_TABLES)
        return tn__cuda_table_sums_make(step, device, &data->walk, &data->args, &data->tables);
    if (status == TN_OK && data->way == SORTED)
        return tn__cuda_sorted_sums_make(step, device, &data->walk, &data->args, &data->sums);
    if (status != TN_OK || data->way != LAST_WINS)
        return status;
    data->last_bytes = (size_t)data->args.rows * (size_t)data->args.extent * sizeof(unsigned);
    data->last = data->last_bytes ? tn__device_allocate(device->owner, data->last_bytes) : NULL;
    if (data->last_bytes && data->last == NULL)
        return tn__error_status(tn__error_last());
    data->args.last = (CUdeviceptr)data->last;
    return tn__cuda_module_function(device, step->module, "choose", &data->choose);
}

tn_status tn__cuda_prepare_scatter(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    const tn__operand *out = &s->operand[0], *index = &s->operand[2], *from = &s->operand[3];
    if (index->dtype != TN_INT64 || s->axes == 0 || s->axes >> out->ndim != 0 || from->dtype != out->dtype)
        return tn__fail(TN_ERR_INTERNAL, "scatter",
                        "a step needs int64 positions along one of %d axes, and has %s, axes 0x%x",
                        out->ndim, tn_dtype_name(index->dtype), (unsigned)s->axes);
    scatter_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("scatter", sizeof *data);
    step->data = data;
    step->free = free_scatter;
    step->start = start_scatter;
    int axis = __builtin_ctz(s->axes);
    tn__cuda_walk_make(&data->walk, ~s->axes, index->ndim, index->dim, 3,
                       (const int64_t *const[]){out->stride, index->stride, from->stride});
    data->args = (tn__cuda_scatter_args){.count = index->dim[axis],
                                         .extent = out->dim[axis],
                                         .rows = rows_of_positions(&data->walk),
                                         .to_step = out->stride[axis],
                                         .index_step = index->stride[axis],
                                         .from_step = from->stride[axis],
                                         .add = s->op == TN__OP_SCATTER_ADD};
    data->way = way_of(s, data);
    step->may_fail = true;
    step->opaque = true; /* what it starts depends on whether the output is the base's memory */
    step->fault_extent = data->args.extent;
    data->base = (tn__cuda_step){.step = s, .program = step->program, .number = step->number,
                                 .overwrites = step->overwrites};
    tn_status status = tn__cuda_prepare_copy(&data->base, device);
    return status == TN_OK ? load_kernels(step, device) : status;
}
