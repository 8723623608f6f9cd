/* SPDX-License-Identifier: MIT */
/* Sorting rows on a GPU that a few threads have room for, by sort_rows.cuh. */
#include <limits.h>

#include "backends/cuda/ops/sort_scan.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

enum { SIZE_LEAST = 32, LANES_LEAST = 8, THREADS_LEAST = 128, WORDS = 4 };

/*
 * By the 32-bit words of what is compared, how many of it a thread has (registers for them, and code that compiles
 * soon), and the longest row that is sorted here. A row filled up to 2^k elements takes k (k + 1) / 2 comparisons by
 * pairs of each; the passes of sort.cuh take as long for any row of one tile, which is 4096 elements or more. By counts
 * of instructions a row of 4096 is done in a third of their time if one word is compared, in two thirds if two are. Of
 * three words 48 KiB have room for no more than 2048. Keys of a byte are one pass, which is as fast from there on.
 */
static const struct {
    int each, longest;
} limits[WORDS] = {{32, 2048}, {32, 4096}, {16, 4096}, {16, 2048}}; /* the first: one word, of keys of one byte */

typedef struct sort_rows_work {
    CUdeviceptr in, out;
    long long n, from_step, to_step;
    CUdeviceptr guard;
} sort_rows_work;

typedef struct sort_rows_data {
    tn__cuda_rows rows;
    int threads, rows_each; /* threads, and rows, of a block */
} sort_rows_data;

/* The 32-bit words that are compared; keys of up to 16 bits share a word with their positions. */
static int words_of(const tn__step *step)
{
    int itemsize = (int)tn__dtypes[step->operand[1].dtype].size;
    bool positions = step->op == TN__OP_ARGSORT;
    return itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize / 4 + positions;
}

bool tn__cuda_sorts_rows(const tn__step *step, int64_t n) { return n <= limits[words_of(step)].longest; }

static tn_status start_rows(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const sort_rows_data *data = step->data;
    const tn__cuda_rows *rows = &data->rows;
    if (rows->walk.size == 0 || rows->count[1] == 0)
        return TN_OK;
    sort_rows_work work = {.in = tn__cuda_address(run, &step->step->operand[1]),
                           .out = tn__cuda_address(run, &step->step->operand[0]),
                           .n = rows->count[1],
                           .from_step = rows->step[1],
                           .to_step = rows->step[0],
                           .guard = tn__cuda_guard(step, run)};
    void *params[] = {(void *)&rows->walk, &work};
    int64_t blocks = (rows->walk.size + data->rows_each - 1) / data->rows_each;
    return tn__cuda_launch(run, step->function, blocks < INT_MAX ? blocks : INT_MAX, data->threads, 0, params, "sort");
}

tn_status tn__cuda_prepare_sort_rows(tn__cuda_step *step, tn__cuda_device *device, const tn__cuda_rows *rows)
{
    const tn__step *s = step->step;
    sort_rows_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("sort", sizeof *data);
    step->data = data;
    step->start = start_rows;
    data->rows = *rows;
    int size = SIZE_LEAST, most = limits[words_of(s)].each;
    while (size < rows->count[1])
        size *= 2;
    int each = size / LANES_LEAST < most ? size / LANES_LEAST : most, lanes = size / each;
    data->threads = lanes < THREADS_LEAST ? THREADS_LEAST : lanes;
    data->rows_each = data->threads / lanes;
    char *text = tn__cuda_text_sort_rows(s->operand[1].dtype, s->op == TN__OP_ARGSORT, each, lanes, data->threads);
    return tn__cuda_own_kernel(step, device, text, "sort_rows");
}
