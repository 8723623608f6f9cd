/* SPDX-License-Identifier: MIT */
/*
 * GATHER, SCATTER_ADD and SCATTER_SET. The index operand's shape is walked one axis at a time: the last axis that is not indexed is the
 * inner loop and what threads share out, so that every element of the output belongs to one thread and additions to it
 * come in C order of the index.
 */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/strided.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

/* Operands of the walk: the array indexed (without its stride along the axis), the positions, the other array. */
enum { INDEXED, INDEX, OTHER, WALKED };

typedef struct index_data {
    int axis;
    int64_t extent;       /* of the indexed axis */
    int64_t axis_step;    /* of the indexed array, in bytes */
    tn__cpu_space rest;   /* all axes but the inner one */
    int64_t inner;        /* extent of the inner axis */
    int64_t step[WALKED]; /* along it */
    int64_t run;          /* elements that share one position: strips where the positions do not vary along `inner` */
    tn__cpu_cast copy;    /* GATHER's, and of SCATTER_ADD's base */
    tn__cpu_space whole;  /* SCATTER_ADD: output and base */
    bool same_window;     /* ... which are the same place if their addresses are */
    tn__cpu_map add;
    tn__cpu_cast load, other_load, store; /* to and from the dtype computed in; NULL: all are of it */
    int64_t size;         /* of an element in that */
} index_data;

typedef struct index_run {
    const index_data *data;
    char *base[WALKED];
    _Atomic bool fault;
    int64_t bad; /* some position out of range */
} index_run;

/* Position `index`, counted from the end if negative, or -1 if it is out of range. */
static int64_t position_of(const index_data *data, int64_t index)
{
    index += index < 0 ? data->extent : 0;
    return index >= 0 && index < data->extent ? index : -1;
}

static void note_fault(index_run *run, int64_t index)
{
    if (!atomic_exchange(&run->fault, true))
        run->bad = index;
}

static tn_status index_fault(const tn__cpu_step *step, const index_run *run)
{
    const index_data *data = run->data;
    return tn__fail(TN_ERR_INDEX, tn__cpu_ops[step->step->op].name,
                    "index %lld is out of range for axis %d with extent %lld: valid are %lld to %lld", (long long)run->bad,
                    data->axis, (long long)data->extent, -(long long)data->extent, (long long)data->extent - 1);
}

static void gather_strip(const index_data *data, char *indexed, char *other, int64_t n)
{
    data->copy(other, data->step[OTHER], indexed, data->step[INDEXED], n);
}

static void scatter_strip(const index_data *data, char *indexed, char *other, int64_t n)
{
    if (data->add == NULL) { /* SCATTER_SET */
        data->copy(indexed, data->step[INDEXED], other, data->step[OTHER], n);
        return;
    }
    if (data->load == NULL) {
        data->add((char *const[]){indexed, indexed, other},
                  (const int64_t[]){data->step[INDEXED], data->step[INDEXED], data->step[OTHER]}, n);
        return;
    }
    _Alignas(64) char sum[TN__CPU_STRIP * TN__CPU_ITEM], term[TN__CPU_STRIP * TN__CPU_ITEM];
    data->load(sum, data->size, indexed, data->step[INDEXED], n);
    data->other_load(term, data->size, other, data->step[OTHER], n);
    data->add((char *const[]){sum, sum, term}, (const int64_t[]){data->size, data->size, data->size}, n);
    data->store(indexed, data->step[INDEXED], sum, data->size, n);
}

/* Elements begin to end of the inner axis, at every place of the others. */
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
        for (int64_t i = 0, n; i < end - begin; i += n) {
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

static tn_status scatter_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const index_data *data = step->data;
    char *address[4];
    tn__cpu_addresses(step, 4, buffers, address);
    if (address[0] != address[1] || !data->same_window)
        tn__cpu_move(&data->whole, data->copy, address);
    index_run run = {.data = data, .base = {address[0], address[2], address[3]}};
    tn__cpu_for(data->inner, data->rest.size * 8, scatter_part, &run);
    return run.fault ? index_fault(step, &run) : TN_OK;
}

static tn_status prepare(tn__cpu_step *step, tn__cpu_runner run, const tn__operand *indexed, const tn__operand *index,
                         const tn__operand *other)
{
    const tn__step *s = step->step;
    const char *name = tn__cpu_ops[s->op].name;
    if (index->dtype != TN_INT64 || s->axes == 0 || s->axes >> indexed->ndim != 0)
        return tn__fail(TN_ERR_INTERNAL, name, "a step needs int64 positions along one of %d axes, and has %s, axes 0x%x",
                        indexed->ndim, tn_dtype_name(index->dtype), (unsigned)s->axes);
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
    data->inner = inner < 0 ? 1 : index->dim[inner];
    for (int k = 0; k < WALKED && inner >= 0; k++)
        data->step[k] = strides[k][inner] * itemsize[k];
    data->run = data->step[INDEX] == 0 ? TN__CPU_STRIP : 1;
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
    return TN_OK;
}

tn_status tn__cpu_prepare_scatter(tn__cpu_step *step)
{
    const tn__operand *operand = step->step->operand;
    tn_dtype work = tn__dtypes[step->step->compute].compute;
    const tn__cpu_functions *functions = tn__cpu_functions_of(work);
    bool adds = step->step->op == TN__CPU_OP_SCATTER_ADD;
    if (adds && (functions == NULL || functions->map[TN__CPU_OP_ADD] == NULL))
        return tn__cpu_no_such_operation(step);
    tn_status status = prepare(step, scatter_run_step, &operand[0], &operand[2], &operand[3]);
    if (status != TN_OK)
        return status;
    index_data *data = step->data;
    data->add = adds ? functions->map[TN__CPU_OP_ADD] : NULL;
    data->size = tn__dtypes[work].size;
    if (operand[0].dtype != work || operand[3].dtype != work) {
        data->load = tn__cpu_cast_of(work, operand[0].dtype);
        data->other_load = tn__cpu_cast_of(work, operand[3].dtype);
        data->store = tn__cpu_cast_of(operand[0].dtype, work);
    }
    data->copy = tn__cpu_cast_of(operand[0].dtype, operand[1].dtype);
    tn__cpu_space_of(&data->whole, 2, operand);
    data->same_window = memcmp(operand[0].stride, operand[1].stride, operand[0].ndim * sizeof(int64_t)) == 0;
    return TN_OK;
}
