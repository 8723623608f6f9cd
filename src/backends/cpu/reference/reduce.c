/* SPDX-License-Identifier: MIT */
/* Reduction steps, in exactly the order that device/order.h lays down. */
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "backends/cpu/base/strided.h"
#include "backends/cpu/functions/functions.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "device/order.h"

/* Strips hold whole rounds of the lanes, so that a strip's element i belongs to lane i mod L. */
_Static_assert(TN__CPU_STRIP % TN__REDUCE_LANES == 0 && TN__REDUCE_BLOCK % TN__CPU_STRIP == 0, "strips and blocks");

enum { OUT, IN };

typedef struct reduce_data {
    tn__cpu_space kept;    /* output and input over the axes that stay */
    tn__cpu_space reduced; /* operand 0: the input over the reduced axes */
    tn__cpu_reduce f;
    tn__cpu_reduce wide;      /* combines the results of stretches: equal to f unless these are widened */
    tn__cpu_cast load, store; /* conversions to and from the compute dtype */
    tn__cpu_cast widen, narrow; /* conversions from the compute dtype to the one in which stretches are combined, and
                                   back */
    bool widened;
    bool direct;              /* the input has the compute dtype */
    int64_t size, wide_size;  /* bytes of an element of the compute dtype, and of one of `wide` */
    int64_t blocks;           /* number of blocks of an inner reduction */
} reduce_data;

typedef struct reduce_run {
    const reduce_data *data;
    char *base[TN__CPU_OPERANDS];
    char *results; /* results of blocks, when threads share the blocks */
} reduce_run;

typedef union cell {
    char bytes[TN__CPU_ITEM];
    int64_t align;
} cell;

/* Returns the next n <= TN__CPU_STRIP elements in C order: in place if they are contiguous, else copied to
 * `scratch`. */
static const char *fetch(const reduce_data *data, tn__cpu_cursor *at, char *scratch, int64_t n)
{
    int64_t step = tn__cpu_space_step(at->space, 0);
    int64_t row = tn__cpu_cursor_row(at, n);
    if (row == n && data->direct && (step == data->size || n == 1)) {
        const char *place = at->p[0];
        tn__cpu_cursor_move(at, n);
        return place;
    }
    for (int64_t done = 0; done < n; done += row) {
        row = tn__cpu_cursor_row(at, n - done);
        data->load(scratch + done * data->size, data->size, at->p[0], step, row);
        tn__cpu_cursor_move(at, row);
    }
    return scratch;
}

/* ---- inner order ---- */

static void reduce_block(const reduce_data *data, char *input, int64_t block, void *result)
{
    int64_t begin = block * TN__REDUCE_BLOCK, end = data->reduced.size;
    if (end - begin > TN__REDUCE_BLOCK)
        end = begin + TN__REDUCE_BLOCK;
    _Alignas(64) char scratch[TN__CPU_STRIP * TN__CPU_ITEM];
    cell lane[TN__REDUCE_LANES], turn[TN__REDUCE_LANES], widened[TN__REDUCE_LANES];
    int64_t most = data->widened ? TN__REDUCE_STRETCH : TN__CPU_STRIP;
    data->wide.fill(lane, TN__REDUCE_LANES);
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->reduced, &input, begin);
    while (begin < end) {
        int64_t n = end - begin < most ? end - begin : most;
        const char *next = fetch(data, &at, scratch, n);
        begin += n;
        if (!data->widened) {
            data->f.lanes(lane, next, n);
            continue;
        }
        data->f.fill(turn, TN__REDUCE_LANES);
        data->f.lanes(turn, next, n);
        data->widen((char *)widened, data->wide_size, (const char *)turn, data->size, TN__REDUCE_LANES);
        data->wide.each(lane, widened, TN__REDUCE_LANES);
    }
    data->wide.halve(lane);
    memcpy(result, lane, data->wide_size);
}

static void reduce_inner(const reduce_data *data, char *input, void *result)
{
    if (data->blocks == 1) {
        reduce_block(data, input, 0, result);
        return;
    }
    cell lane[TN__REDUCE_LANES], one;
    data->wide.fill(lane, TN__REDUCE_LANES);
    for (int64_t k = 0; k < data->blocks; k++) {
        reduce_block(data, input, k, &one);
        data->wide.each((char *)lane + k % TN__REDUCE_LANES * data->wide_size, &one, 1);
    }
    data->wide.halve(lane);
    memcpy(result, lane, data->wide_size);
}

/* Converts and stores results to the output. */
static void store(const reduce_data *data, char *to, int64_t step, char *result, int64_t n)
{
    _Alignas(64) char narrow[TN__CPU_STRIP * TN__CPU_ITEM];
    if (data->widened) {
        data->narrow(narrow, data->size, result, data->wide_size, n);
        result = narrow;
    }
    data->store(to, step, result, data->size, n);
}

static void inner_part(void *context, int64_t begin, int64_t end)
{
    const reduce_run *run = context;
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &run->data->kept, run->base, begin);
    for (; begin < end; begin++) {
        cell result;
        reduce_inner(run->data, at.p[IN], &result);
        store(run->data, at.p[OUT], 0, result.bytes, 1);
        tn__cpu_cursor_move(&at, 1);
    }
}

static void blocks_part(void *context, int64_t begin, int64_t end)
{
    const reduce_run *run = context;
    for (; begin < end; begin++)
        reduce_block(run->data, run->base[IN], begin, run->results + begin * run->data->wide_size);
}

static tn_status inner_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    reduce_run run = {.data = step->data};
    const reduce_data *data = run.data;
    tn__cpu_addresses(step, 2, buffers, run.base);
    if (data->kept.size != 1 || data->blocks < 2 || tn__cpu_team(data->blocks, TN__REDUCE_BLOCK) < 2) {
        tn__cpu_for(data->kept.size, data->reduced.size + 8, inner_part, &run);
        return TN_OK;
    }
    run.results = tn__alloc(data->blocks * data->wide_size);
    if (run.results == NULL)
        return tn__fail_memory(tn__cpu_ops[step->step->op].name, data->blocks * data->wide_size);
    tn__cpu_for(data->blocks, TN__REDUCE_BLOCK, blocks_part, &run);
    cell lane[TN__REDUCE_LANES];
    data->wide.fill(lane, TN__REDUCE_LANES);
    data->wide.lanes(lane, run.results, data->blocks);
    data->wide.halve(lane);
    store(data, run.base[OUT], 0, lane[0].bytes, 1);
    tn__free(run.results);
    return TN_OK;
}

/* ---- outer order: a strip of outputs at a time ---- */

typedef struct outer_run {
    const reduce_data *data;
    tn__cpu_cursor at; /* the next row */
    int64_t step, n;   /* stride between rows, and length of a row */
} outer_run;

/* Combines `rows` rows one after another, in the compute dtype. */
static void rows_in_turn(outer_run *run, int64_t rows, char *sum)
{
    const reduce_data *data = run->data;
    _Alignas(64) char scratch[TN__CPU_STRIP * TN__CPU_ITEM];
    bool direct = data->direct && run->step == data->size;
    data->f.fill(sum, run->n);
    for (int64_t r = 0; r < rows; r++) {
        if (!direct)
            data->load(scratch, data->size, run->at.p[0], run->step, run->n);
        data->f.each(sum, direct ? run->at.p[0] : scratch, run->n);
        tn__cpu_cursor_move(&run->at, 1);
    }
}

/* Combines a block of rows, one stretch after another where these are widened. */
static void outer_block(outer_run *run, int64_t rows, char *sum)
{
    const reduce_data *data = run->data;
    _Alignas(64) char turn[TN__CPU_STRIP * TN__CPU_ITEM], widened[TN__CPU_STRIP * TN__CPU_ITEM];
    if (!data->widened) {
        rows_in_turn(run, rows, sum);
        return;
    }
    data->wide.fill(sum, run->n);
    for (int64_t r = 0; r < rows; r += TN__REDUCE_OUTER_STRETCH) {
        rows_in_turn(run, rows - r < TN__REDUCE_OUTER_STRETCH ? rows - r : TN__REDUCE_OUTER_STRETCH, turn);
        data->widen(widened, data->wide_size, turn, data->size, run->n);
        data->wide.each(sum, widened, run->n);
    }
}

static void reduce_outer(const reduce_data *data, char *input, int64_t step, char *total, int64_t n)
{
    _Alignas(64) char part[TN__CPU_STRIP * TN__CPU_ITEM];
    int64_t size = data->reduced.size;
    outer_run run = {.data = data, .step = step, .n = n};
    tn__cpu_cursor_set(&run.at, &data->reduced, &input, 0);
    if (size <= TN__REDUCE_OUTER_BLOCK) {
        outer_block(&run, size, total);
        return;
    }
    data->wide.fill(total, n);
    for (int64_t r = 0; r < size; r += TN__REDUCE_OUTER_BLOCK) {
        outer_block(&run, size - r < TN__REDUCE_OUTER_BLOCK ? size - r : TN__REDUCE_OUTER_BLOCK, part);
        data->wide.each(total, part, n);
    }
}

static void outer_part(void *context, int64_t begin, int64_t end)
{
    const reduce_run *run = context;
    const reduce_data *data = run->data;
    _Alignas(64) char total[TN__CPU_STRIP * TN__CPU_ITEM];
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->kept, run->base, begin);
    while (begin < end) {
        int64_t n = tn__cpu_cursor_row(&at, end - begin < TN__CPU_STRIP ? end - begin : TN__CPU_STRIP);
        reduce_outer(data, at.p[IN], tn__cpu_space_step(&data->kept, IN), total, n);
        store(data, at.p[OUT], tn__cpu_space_step(&data->kept, OUT), total, n);
        tn__cpu_cursor_move(&at, n);
        begin += n;
    }
}

static tn_status outer_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    reduce_run run = {.data = step->data};
    tn__cpu_addresses(step, 2, buffers, run.base);
    tn__cpu_for(run.data->kept.size, run.data->reduced.size + 1, outer_part, &run);
    return TN_OK;
}

/* ---- positions ---- */

static void position_part(void *context, int64_t begin, int64_t end)
{
    const reduce_run *run = context;
    const reduce_data *data = run->data;
    _Alignas(64) char scratch[TN__CPU_STRIP * TN__CPU_ITEM];
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->kept, run->base, begin);
    for (; begin < end; begin++) {
        cell best = {.align = 0};
        int64_t position = 0;
        tn__cpu_cursor in;
        tn__cpu_cursor_set(&in, &data->reduced, &at.p[IN], 0);
        for (int64_t first = 0; first < data->reduced.size; first += TN__CPU_STRIP) {
            int64_t left = data->reduced.size - first, n = left < TN__CPU_STRIP ? left : TN__CPU_STRIP;
            data->f.scan(&best, &position, fetch(data, &in, scratch, n), first, n);
        }
        memcpy(at.p[OUT], &position, sizeof(position));
        tn__cpu_cursor_move(&at, 1);
    }
}

static tn_status position_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    reduce_run run = {.data = step->data};
    tn__cpu_addresses(step, 2, buffers, run.base);
    tn__cpu_for(run.data->kept.size, run.data->reduced.size + 8, position_part, &run);
    return TN_OK;
}

/* ---- preparation ---- */

/* The inner order is for shapes whose last axis with an extent > 1, if any, is reduced. */
static bool is_inner(const tn__operand *in, uint32_t axes)
{
    for (int i = in->ndim - 1; i >= 0; i--)
        if (in->dim[i] > 1)
            return axes >> i & 1;
    return true;
}

/* Prepares the combination of stretches in twice the precision, if this reduction has it. */
static void prepare_wide(reduce_data *data, int op, tn_dtype dtype, tn_dtype work, bool inner)
{
    tn_dtype wide = tn__dtype_wide(work);
    const tn__cpu_functions *functions = tn__cpu_functions_of(wide);
    data->wide = data->f;
    data->wide_size = data->size;
    int64_t single = inner ? TN__REDUCE_STRETCH : TN__REDUCE_OUTER_STRETCH;
    if (!tn__cpu_ops[op].widened || wide == work || dtype != work || data->reduced.size <= single)
        return;
    data->widened = true;
    data->wide = functions->reduce[op];
    data->wide_size = tn__dtypes[wide].size;
    data->widen = tn__cpu_cast_of(wide, work);
    data->narrow = tn__cpu_cast_of(work, wide);
}

static tn_status prepare(tn__cpu_step *step, tn__cpu_runner run)
{
    const tn__step *s = step->step;
    const tn__operand *out = &s->operand[0], *in = &s->operand[1];
    tn_dtype work = tn__dtypes[s->compute].compute;
    const tn__cpu_functions *functions = tn__cpu_functions_of(work);
    if (functions == NULL || (functions->reduce[s->op].each == NULL && functions->reduce[s->op].scan == NULL))
        return tn__cpu_no_such_operation(step);
    reduce_data *data = tn__calloc(1, sizeof(*data));
    if (data == NULL)
        return tn__fail_memory(tn__cpu_ops[s->op].name, sizeof(*data));
    int64_t itemsize[2] = {tn__dtypes[out->dtype].size, tn__dtypes[in->dtype].size};
    tn__cpu_space_make(&data->kept, ~s->axes, in->ndim, in->dim, 2, (const int64_t *const[]){out->stride, in->stride},
                       itemsize);
    tn__cpu_space_make(&data->reduced, s->axes, in->ndim, in->dim, 1, (const int64_t *const[]){in->stride},
                       &itemsize[1]);
    data->f = functions->reduce[s->op];
    data->size = tn__dtypes[work].size;
    data->blocks = data->reduced.size <= TN__REDUCE_BLOCK
                       ? 1
                       : (data->reduced.size + TN__REDUCE_BLOCK - 1) / TN__REDUCE_BLOCK;
    data->direct = in->dtype == work;
    data->load = tn__cpu_cast_of(work, in->dtype);
    data->store = tn__cpu_cast_of(out->dtype, work);
    prepare_wide(data, s->op, out->dtype, work, run == inner_run_step);
    step->data = data;
    step->run = run;
    return TN_OK;
}

tn_status tn__cpu_prepare_reduce(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    return prepare(step, is_inner(&s->operand[1], s->axes) ? inner_run_step : outer_run_step);
}

tn_status tn__cpu_prepare_position(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    if (s->operand[0].dtype != TN_INT64)
        return tn__fail(TN_ERR_INTERNAL, tn__cpu_ops[s->op].name, "positions go to int64, not %s",
                        tn_dtype_name(s->operand[0].dtype));
    return prepare(step, position_run_step);
}
