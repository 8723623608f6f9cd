/* SPDX-License-Identifier: MIT */
/* LARGEST on a GPU: launches of largest.cuh, each of which leaves fewer elements to the next one. */
#include <limits.h>

#include "backends/cuda/rows.h"
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

tn_status tn__cuda_prepare_largest(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    largest_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("largest", sizeof *data);
    step->data = data;
    step->free = free_largest;
    step->start = start_largest;
    if (s->operand_count != 2 || !tn__cuda_rows_of(s, &data->rows) || data->rows.count[0] > MOST ||
        data->rows.count[0] > data->rows.count[1] || data->rows.count[1] > UINT32_MAX)
        return tn__fail(TN_ERR_INTERNAL, "largest", "a step of %d operands finds %lld of %lld elements",
                        s->operand_count, (long long)data->rows.count[0], (long long)data->rows.count[1]);
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
