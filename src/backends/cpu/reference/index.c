/* SPDX-License-Identifier: MIT */
/*
 * GATHER, SCATTER_ADD and SCATTER_SET. The index operand's shape is walked one axis at a time: the last axis that is
 * not indexed is the inner loop and what threads share out, so that every element of the output belongs to one thread
 * and additions to it come in C order of the index. Where there is no other axis, the indexed one is the inner loop:
 * threads share out what they gather, and one thread scatters.
 *
 * Along the inner loop positions are the same, and strips of elements go the same way, or they vary, and elements are
 * moved one by one by a loop for their size.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "backends/cpu/base/strided.h"
#include "backends/cpu/functions/functions.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/position.h"

/* Operands of the walk: the array indexed (without its stride along the axis), the positions, the other array. */
enum { INDEXED, INDEX, OTHER, WALKED };

typedef struct index_data index_data;

/* Moves n elements, each to or from its own position; returns how many were moved before one whose position is out of
 * range. */
typedef int64_t (*one_by_one)(const index_data *data, char *indexed, const char *index, char *other, int64_t n);

struct index_data {
    int axis;
    bool alone;           /* the indexed axis is the only one */
    one_by_one each;      /* NULL: strips are moved, of a single element where positions vary */
    int64_t extent;       /* extent of the indexed axis */
    int64_t axis_step;    /* stride of the indexed array along that axis, in bytes */
    tn__cpu_space rest;   /* all axes but the inner one */
    int64_t inner;        /* extent of the inner axis */
    int64_t step[WALKED]; /* strides along the inner axis, in bytes */
    int64_t run;          /* elements that share one position: strips where the positions do not vary along `inner` */
    tn__cpu_cast copy;    /* conversion of GATHER's elements, and of the base of SCATTER_ADD */
    struct {
        tn__cpu_space space; /* SCATTER_ADD: output and base */
        int64_t item;        /* bytes of an element of these; 0: their dtypes differ */
        bool same_window;    /* output and base have the same strides, so they are the same memory if their addresses
                                are equal */
    } whole;
    struct {
        tn__cpu_map add;
        tn__cpu_cast load, other_load, store; /* to and from the compute dtype; NULL: all operands have it */
        int64_t size;        /* bytes of an element of the compute dtype */
    } sum;
};

typedef struct index_run {
    const index_data *data;
    char *base[WALKED];
    _Atomic bool fault;
    int64_t bad; /* a position that is out of range */
} index_run;

/* Position `index`, counted from the end if negative, or -1 if it is out of range. */
static int64_t position_of(const index_data *data, int64_t index)
{
    index += index < 0 ? data->extent : 0;
    return index >= 0 && index < data->extent ? index : -1;
}

#define ONE_BY_ONE(name, T, STATEMENT) \
    static int64_t name(const index_data *data, char *indexed, const char *index, char *other, int64_t n) \
    { \
        const int64_t extent = data->extent, across = data->axis_step, step = data->step[INDEXED]; \
        const int64_t index_step = data->step[INDEX], other_step = data->step[OTHER]; \
        for (int64_t i = 0; i < n; i++) { \
            int64_t place = *(const int64_t *)(index + i * index_step); \
            place += place < 0 ? extent : 0; \
            if ((uint64_t)place >= (uint64_t)extent) \
                return i; \
            T *at = (T *)(indexed + i * step + place * across), *its = (T *)(other + i * other_step); \
            STATEMENT; \
        } \
        return n; \
    }
#define MOVED(name, T) ONE_BY_ONE(gather_##name, T, *its = *at) ONE_BY_ONE(set_##name, T, *at = *its)
#define ADDED(name, T) ONE_BY_ONE(add_##name, T, *at = (T)(*at + *its))
typedef struct sixteen {
    uint64_t half[2];
} sixteen;
MOVED(1, uint8_t)
MOVED(2, uint16_t)
MOVED(4, uint32_t)
MOVED(8, uint64_t)
MOVED(16, sixteen)
ADDED(i8, uint8_t)
ADDED(i16, uint16_t)
ADDED(i32, uint32_t)
ADDED(i64, uint64_t)
ADDED(f32, float)
ADDED(f64, double)

static const struct {
    one_by_one gather, set;
} moved[] = {[1] = {gather_1, set_1}, [2] = {gather_2, set_2}, [4] = {gather_4, set_4}, [8] = {gather_8, set_8},
             [16] = {gather_16, set_16}};
/* The functions that add elements one by one; for other dtypes strips of one element are added. */
static const one_by_one added[TN_DTYPE_COUNT] =
    {[TN_INT8] = add_i8,     [TN_INT16] = add_i16,  [TN_INT32] = add_i32,  [TN_INT64] = add_i64,
     [TN_UINT8] = add_i8,    [TN_UINT16] = add_i16, [TN_UINT32] = add_i32, [TN_UINT64] = add_i64,
     [TN_FLOAT32] = add_f32, [TN_FLOAT64] = add_f64};

static void note_fault(index_run *run, int64_t index)
{
    if (!atomic_exchange(&run->fault, true))
        run->bad = index;
}

static tn_status index_fault(const tn__cpu_step *step, const index_run *run)
{
    char text[TN__POSITION_TEXT], where[32];
    snprintf(where, sizeof where, " along axis %d", __builtin_ctz(step->step->axes));
    return tn__fail(TN_ERR_INDEX, tn__cpu_ops[step->step->op].name, "%s",
                    tn__position_met(text, run->bad, where, run->data->extent));
}

static void gather_strip(const index_data *data, char *indexed, char *other, int64_t n)
{
    data->copy(other, data->step[OTHER], indexed, data->step[INDEXED], n);
}

static void scatter_strip(const index_data *data, char *indexed, char *other, int64_t n)
{
    if (data->sum.add == NULL) { /* SCATTER_SET */
        data->copy(indexed, data->step[INDEXED], other, data->step[OTHER], n);
        return;
    }
    if (data->sum.load == NULL) {
        data->sum.add((char *const[]){indexed, indexed, other},
                  (const int64_t[]){data->step[INDEXED], data->step[INDEXED], data->step[OTHER]}, n);
        return;
    }
    _Alignas(64) char sum[TN__CPU_STRIP * TN__CPU_ITEM], term[TN__CPU_STRIP * TN__CPU_ITEM];
    int64_t size = data->sum.size;
    data->sum.load(sum, size, indexed, data->step[INDEXED], n);
    data->sum.other_load(term, size, other, data->step[OTHER], n);
    data->sum.add((char *const[]){sum, sum, term}, (const int64_t[]){size, size, size}, n);
    data->sum.store(indexed, data->step[INDEXED], sum, size, n);
}

/* Calls the function for the elements [begin, end) of the inner axis, at every position along the other axes. */
static void walk(index_run *run, int64_t begin, int64_t end,
                 void (*strip)(const index_data *data, char *indexed, char *other, int64_t n))
{
    const index_data *data = run->data;
    char *base[WALKED];
    for (int k = 0; k < WALKED; k++)
        base[k] = run->base[k] + begin * data->step[k];
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->rest, base, 0);
    for (int64_t left = data->rest.size; left > 0; left--) {
        int64_t done = data->each ? data->each(data, at.p[INDEXED], at.p[INDEX], at.p[OTHER], end - begin) : 0;
        if (data->each && done < end - begin) {
            note_fault(run, *(const int64_t *)(at.p[INDEX] + done * data->step[INDEX]));
            return;
        }
        for (int64_t i = done, n; i < end - begin; i += n) {
            int64_t index = *(const int64_t *)(at.p[INDEX] + i * data->step[INDEX]), place = position_of(data, index);
            if (place < 0) {
                note_fault(run, index);
                return;
            }
            n = end - begin - i < data->run ? end - begin - i : data->run;
            strip(data, at.p[INDEXED] + i * data->step[INDEXED] + place * data->axis_step,
                  at.p[OTHER] + i * data->step[OTHER], n);
        }
        tn__cpu_cursor_move(&at, 1);
    }
}

static void gather_part(void *context, int64_t begin, int64_t end)
{
    walk(context, begin, end, gather_strip);
}

static void scatter_part(void *context, int64_t begin, int64_t end)
{
    walk(context, begin, end, scatter_strip);
}

static tn_status gather_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    char *address[3];
    tn__cpu_addresses(step, 3, buffers, address);
    index_run run = {.data = step->data, .base = {address[1], address[2], address[0]}};
    tn__cpu_for(run.data->inner, run.data->rest.size * 4, gather_part, &run);
    return run.fault ? index_fault(step, &run) : TN_OK;
}

static void no_strip(const index_data *data, char *indexed, char *other, int64_t n)
{
    (void)data, (void)indexed, (void)other, (void)n;
}

/* Checks all positions before anything is written. */
static tn_status look(const tn__cpu_step *step, const index_run *run)
{
    index_data data = *run->data;
    data.each = NULL;
    data.run = data.step[INDEX] == 0 ? TN__CPU_STRIP : 1;
    index_run looking = {.data = &data, .base = {run->base[0], run->base[1], run->base[2]}};
    walk(&looking, 0, data.inner, no_strip);
    return looking.fault ? index_fault(step, &looking) : TN_OK;
}

static tn_status scatter_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const index_data *data = step->data;
    char *address[4];
    tn__cpu_addresses(step, 4, buffers, address);
    index_run run = {.data = data, .base = {address[0], address[2], address[3]}};
    bool overwrites = step->program->buffer[step->step->operand[0].buffer].kind == TN__BUFFER_DONATED;
    tn_status status = overwrites ? look(step, &run) : TN_OK;
    if (status != TN_OK)
        return status;
    if (address[0] != address[1] || !data->whole.same_window)
        tn__cpu_move(&data->whole.space, data->copy, data->whole.item, address);
    if (data->alone)
        scatter_part(&run, 0, data->inner);
    else
        tn__cpu_for(data->inner, data->rest.size * 8, scatter_part, &run);
    return run.fault ? index_fault(step, &run) : TN_OK;
}

static tn_status prepare(tn__cpu_step *step, tn__cpu_runner run, const tn__operand *indexed, const tn__operand *index,
                         const tn__operand *other)
{
    const tn__step *s = step->step;
    const char *name = tn__cpu_ops[s->op].name;
    if (index->dtype != TN_INT64 || s->axes == 0 || s->axes >> indexed->ndim != 0)
        return tn__fail(TN_ERR_INTERNAL, name,
                        "a step needs int64 positions along one of %d axes, and has %s, axes 0x%x", indexed->ndim,
                        tn_dtype_name(index->dtype), (unsigned)s->axes);
    index_data *data = tn__calloc(1, sizeof(*data));
    if (data == NULL)
        return tn__fail_memory(name, sizeof(*data));
    data->axis = __builtin_ctz(s->axes);
    data->extent = indexed->dim[data->axis];
    int64_t itemsize[WALKED] = {tn__dtypes[indexed->dtype].size, sizeof(int64_t), tn__dtypes[other->dtype].size};
    data->axis_step = indexed->stride[data->axis] * itemsize[INDEXED];
    int64_t stride[TN_MAX_NDIM] = {0};
    for (int i = 0; i < indexed->ndim; i++)
        stride[i] = i == data->axis ? 0 : indexed->stride[i];
    const int64_t *strides[WALKED] = {stride, index->stride, other->stride};

    int inner = -1;
    for (int i = 0; i < index->ndim; i++)
        if (i != data->axis && index->dim[i] != 1)
            inner = i;
    data->alone = inner < 0;
    inner = inner < 0 && index->ndim > 0 ? data->axis : inner;
    data->inner = inner < 0 ? 1 : index->dim[inner];
    for (int k = 0; k < WALKED && inner >= 0; k++)
        data->step[k] = strides[k][inner] * itemsize[k];
    data->run = data->step[INDEX] == 0 && data->step[INDEXED] != 0 ? TN__CPU_STRIP : 1;
    tn__cpu_space_make(&data->rest, inner < 0 ? ~0u : ~(1u << inner), index->ndim, index->dim, WALKED, strides,
                       itemsize);
    step->data = data;
    step->run = run;
    return TN_OK;
}

tn_status tn__cpu_prepare_gather(tn__cpu_step *step)
{
    const tn__operand *operand = step->step->operand;
    tn_status status = prepare(step, gather_run_step, &operand[1], &operand[2], &operand[0]);
    if (status != TN_OK)
        return status;
    index_data *data = step->data;
    data->copy = tn__cpu_cast_of(operand[0].dtype, operand[1].dtype);
    data->each =
        data->run == 1 && operand[0].dtype == operand[1].dtype ? moved[tn__dtypes[operand[0].dtype].size].gather : NULL;
    return TN_OK;
}

tn_status tn__cpu_prepare_scatter(tn__cpu_step *step)
{
    const tn__operand *operand = step->step->operand;
    tn_dtype work = tn__dtypes[step->step->compute].compute;
    const tn__cpu_functions *functions = tn__cpu_functions_of(work);
    bool adds = step->step->op == TN__OP_SCATTER_ADD;
    if (adds && (functions == NULL || functions->map[TN__OP_ADD] == NULL))
        return tn__cpu_no_such_operation(step);
    tn_status status = prepare(step, scatter_run_step, &operand[0], &operand[2], &operand[3]);
    if (status != TN_OK)
        return status;
    index_data *data = step->data;
    data->sum.add = adds ? functions->map[TN__OP_ADD] : NULL;
    data->sum.size = tn__dtypes[work].size;
    if (operand[0].dtype != work || operand[3].dtype != work) {
        data->sum.load = tn__cpu_cast_of(work, operand[0].dtype);
        data->sum.other_load = tn__cpu_cast_of(work, operand[3].dtype);
        data->sum.store = tn__cpu_cast_of(operand[0].dtype, work);
    }
    data->copy = tn__cpu_cast_of(operand[0].dtype, operand[1].dtype);
    if (data->run == 1 && data->sum.load == NULL && operand[0].dtype == operand[3].dtype)
        data->each = adds ? added[operand[0].dtype] : moved[tn__dtypes[operand[0].dtype].size].set;
    tn__cpu_space_of(&data->whole.space, 2, operand);
    data->whole.item = operand[0].dtype == operand[1].dtype ? tn__dtypes[operand[0].dtype].size : 0;
    data->whole.same_window = memcmp(operand[0].stride, operand[1].stride, operand[0].ndim * sizeof(int64_t)) == 0;
    return TN_OK;
}
