/* SPDX-License-Identifier: MIT */
/*
 * Sorting rows on a GPU: the passes of sort.cuh and the memory between them. A pass goes from one buffer to another; with an
 * output that lies as a whole, that is one of the two.
 */
#include <limits.h>

#include "backends/cuda/rows.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

enum { SORT_THREADS = 512, SORT_DIGITS = 256, SORT_SHORT = 32, SORT_TILES_AT_ONCE = 8, SORT_PASSES = 8 };

typedef struct sort_pass {
    CUdeviceptr from, to, positions, positions_to, published, totals, ticket;
    long long n, tiles, from_step, to_step;
    int number, shift, first, last;
    CUdeviceptr guard;
} sort_pass;

typedef struct sort_data {
    tn__cuda_rows rows;
    sort_pass pass;                    /* what all passes have in common */
    int passes;
    bool positions, whole;             /* ARGSORT; SORT into an output without gaps */
    CUfunction clear, count;           /* and step->function moves */
    CUdeviceptr element[2], position[2];
    void *scratch;
    size_t bytes;
} sort_data;

static void free_sort(const tn__cuda_step *step, tn__cuda_device *device)
{
    sort_data *data = step->data;
    if (data->scratch)
        tn__device_release(device->owner, data->scratch, data->bytes);
}

/* Pass number `i`: its buffers are those of the passes before and after it. */
static sort_pass pass_of(const sort_data *data, const tn__cuda_step *step, const tn__cuda_run *run, int i)
{
    CUdeviceptr out = tn__cuda_address(run, &step->step->operand[0]), in = tn__cuda_address(run, &step->step->operand[1]);
    CUdeviceptr guard = tn__cuda_guard(step, run);
    CUdeviceptr even = data->whole ? out : data->element[1]; /* after an even number of further passes it is the output */
    int left = data->passes - 1 - i;
    sort_pass pass = data->pass;
    pass.number = i;
    pass.first = i == 0;
    pass.last = left == 0;
    pass.shift = i < tn__dtypes[step->step->operand[1].dtype].size ? 8 * i : 0;
    pass.from = pass.first ? in : left % 2 ? even : data->element[0];
    pass.to = pass.last && !data->positions ? out : left % 2 ? data->element[0] : even;
    pass.guard = pass.last || pass.to == out ? guard : 0;
    if (data->positions) {
        pass.positions = pass.first ? 0 : data->position[left % 2];
        pass.positions_to = pass.last ? out : data->position[1 - left % 2];
    }
    return pass;
}

static tn_status start_short(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const sort_data *data = step->data;
    sort_pass pass = pass_of(data, step, run, 0);
    pass.to = pass.positions_to = tn__cuda_address(run, &step->step->operand[0]);
    pass.guard = tn__cuda_guard(step, run);
    void *params[] = {(void *)&data->rows.walk, &pass};
    int64_t blocks = (data->rows.walk.size + SORT_THREADS / 32 - 1) / (SORT_THREADS / 32);
    if (blocks == 0 || pass.n == 0)
        return TN_OK;
    return tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, SORT_THREADS, 0, params, "sort");
}

static tn_status start_sort(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const sort_data *data = step->data;
    long long rows = data->rows.walk.size;
    if (rows == 0)
        return TN_OK;
    sort_pass pass = pass_of(data, step, run, 0);
    int64_t shares = (pass.tiles + SORT_TILES_AT_ONCE - 1) / SORT_TILES_AT_ONCE;
    void *clear[] = {&pass, &rows, (void *)&data->passes}, *params[] = {(void *)&data->rows.walk, &pass};
    tn_status status = tn__cuda_start(run, data->clear, rows * pass.tiles * SORT_DIGITS, clear, "sort");
    if (status == TN_OK)
        status = tn__cuda_launch(run, data->count, rows * shares, SORT_THREADS, 0, params, "sort");
    for (int i = 0; i < data->passes && status == TN_OK; i++) {
        pass = pass_of(data, step, run, i);
        status = tn__cuda_launch(run, step->function, rows * pass.tiles, SORT_THREADS, 0, params, "sort");
    }
    return status;
}

/* One block: tickets, what tiles publish, totals, the elements between passes, their positions. */
static tn_status make_scratch(sort_data *data, tn__cuda_device *device, size_t itemsize)
{
    size_t all = (size_t)(data->rows.walk.size * data->pass.n), rows = (size_t)data->rows.walk.size;
    size_t element = (all * itemsize + 255) / 256 * 256, position = (all * sizeof(uint32_t) + 255) / 256 * 256;
    size_t published = rows * SORT_DIGITS * (size_t)data->pass.tiles * sizeof(uint64_t);
    size_t totals = rows * SORT_DIGITS * itemsize * sizeof(uint32_t), tickets = SORT_PASSES * sizeof(uint64_t);
    size_t elements = data->passes < 2 ? 0 : data->whole ? 1 : 2, positions = data->positions && data->passes > 1 ? 2 : 0;
    data->bytes = tickets + published + totals + elements * element + positions * position;
    data->scratch = tn__device_allocate(device->owner, data->bytes);
    if (data->scratch == NULL)
        return tn__error_status(tn__error_last());
    CUdeviceptr at = (CUdeviceptr)data->scratch;
    data->pass.ticket = at;
    data->pass.published = at + tickets;
    data->pass.totals = at + tickets + published;
    at += tickets + published + totals;
    for (size_t i = 0; i < elements; i++, at += element)
        data->element[i] = at;
    for (size_t i = 0; i < positions; i++, at += position)
        data->position[i] = at;
    return TN_OK;
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

tn_status tn__cuda_prepare_sort(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    sort_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("sort", sizeof *data);
    step->data = data;
    step->free = free_sort;
    if (s->operand_count != 2 || !tn__cuda_rows_of(s, &data->rows))
        return tn__fail(TN_ERR_INTERNAL, "sort", "a step of %d operands", s->operand_count);
    int64_t n = data->rows.count[1], rows = data->rows.walk.size, itemsize = tn__dtypes[s->operand[1].dtype].size;
    data->positions = s->op == TN__CUDA_OP_ARGSORT;
    int64_t tile = SORT_THREADS * (itemsize == 8 ? 8 : data->positions ? 12 : 16), tiles = (n + tile - 1) / tile;
    data->whole = !data->positions && without_gaps(&s->operand[0]);
    /* a single pass must not write over what it reads */
    data->passes = itemsize == 1 && step->overwrites ? 2 : (int)itemsize;
    data->pass = (sort_pass){.n = n, .tiles = tiles, .from_step = data->rows.step[1], .to_step = data->rows.step[0]};
    bool brief = n <= SORT_SHORT;
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_sort(s->operand[1].dtype, data->positions),
                                           brief ? "sort_short" : "sort_move");
    step->start = brief ? start_short : start_sort;
    if (status != TN_OK || brief || rows == 0)
        return status;
    if (n > UINT32_MAX || rows > INT_MAX / tiles)
        return tn__fail(TN_ERR_VALUE, "sort", "%lld rows of %lld elements are more than one sort on a GPU takes; do them in parts",
                        (long long)rows, (long long)n);
    status = make_scratch(data, device, (size_t)itemsize);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "sort_count", &data->count);
    return status == TN_OK ? tn__cuda_module_function(device, step->module, "sort_clear", &data->clear) : status;
}
