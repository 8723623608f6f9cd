/* SPDX-License-Identifier: MIT */
/*
 * Elementwise steps, strip by strip: operands stored in another dtype than the one computed in (float16, bfloat16) pass
 * through scratch. Moves (COPY, CAST, CONST) are one cast, those of short rows without a change of dtype loops over
 * them; GENERATE fills a strip by position.
 */
#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "backends/cpu/base/strided.h"
#include "backends/cpu/functions/functions.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

#define MAP_COST 4 /* cost of an element's operation, in units of a load or store */

typedef struct map_data {
    tn__cpu_space space;
    tn__cpu_map map;
    tn__cpu_generate generate;
    tn__cpu_cast cast[TN__CPU_OPERANDS]; /* conversion to or from scratch; NULL: the operand is used in place */
    int64_t size[TN__CPU_OPERANDS];      /* bytes of an element in scratch */
} map_data;

typedef struct map_run {
    const map_data *data;
    char *base[TN__CPU_OPERANDS];
    uint64_t key, offset;
} map_run;

static map_data *map_new(tn__cpu_step *step, tn__cpu_runner run, int operands)
{
    map_data *data = tn__calloc(1, sizeof(*data));
    if (data == NULL) {
        tn__fail_memory(tn__cpu_ops[step->step->op].name, sizeof(*data));
        return NULL;
    }
    tn__cpu_space_of(&data->space, operands, step->step->operand);
    step->data = data;
    step->run = run;
    return data;
}

static void map_part(void *context, int64_t begin, int64_t end)
{
    const map_run *run = context;
    const map_data *data = run->data;
    const tn__cpu_space *space = &data->space;
    _Alignas(64) char scratch[TN__CPU_OPERANDS][TN__CPU_STRIP * TN__CPU_ITEM];
    int64_t step[TN__CPU_OPERANDS];
    for (int k = 0; k < space->count; k++)
        step[k] = data->cast[k] ? data->size[k] : tn__cpu_space_step(space, k);

    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, space, run->base, begin);
    while (begin < end) {
        int64_t n = tn__cpu_cursor_row(&at, end - begin < TN__CPU_STRIP ? end - begin : TN__CPU_STRIP);
        char *p[TN__CPU_OPERANDS];
        for (int k = 0; k < space->count; k++) {
            p[k] = data->cast[k] ? scratch[k] : at.p[k];
            if (k > 0 && data->cast[k])
                data->cast[k](p[k], step[k], at.p[k], tn__cpu_space_step(space, k), n);
        }
        data->map(p, step, n);
        if (data->cast[0])
            data->cast[0](at.p[0], tn__cpu_space_step(space, 0), p[0], step[0], n);
        tn__cpu_cursor_move(&at, n);
        begin += n;
    }
}

static tn_status map_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    map_run run = {.data = step->data};
    tn__cpu_addresses(step, run.data->space.count, buffers, run.base);
    tn__cpu_for(run.data->space.size, MAP_COST, map_part, &run);
    return TN_OK;
}

tn_status tn__cpu_prepare_map(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    tn_dtype work = tn__dtypes[s->compute].compute;
    const tn__cpu_op_info *info = &tn__cpu_ops[s->op];
    const tn__cpu_functions *functions = tn__cpu_functions_of(work);
    if (functions == NULL || functions->map[s->op] == NULL)
        return tn__cpu_no_such_operation(step);
    map_data *data = map_new(step, map_run_step, s->operand_count);
    if (data == NULL)
        return TN_ERR_MEMORY;
    data->map = functions->map[s->op];
    tn_dtype result = info->boolean ? TN_BOOL : work;
    for (int k = 0; k < s->operand_count; k++) {
        tn_dtype stored = s->operand[k].dtype;
        tn_dtype used = k == 0 ? result : k == 1 && info->condition ? TN_BOOL : work;
        data->size[k] = tn__dtypes[used].size;
        if (stored != used)
            data->cast[k] = k == 0 ? tn__cpu_cast_of(stored, used) : tn__cpu_cast_of(used, stored);
    }
    return TN_OK;
}

/* ---- moves ---- */

static tn_status move_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const map_data *data = step->data;
    char *base[2];
    tn__cpu_addresses(step, 2, buffers, base);
    tn__cpu_move(&data->space, data->cast[0], data->size[0], base);
    return TN_OK;
}

static tn_status const_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    const map_data *data = step->data;
    uint64_t value = scalars[step->step->scalar[0]];
    char *base[2];
    tn__cpu_addresses(step, 1, buffers, base);
    base[1] = (char *)&value;
    tn__cpu_move(&data->space, data->cast[0], 0, base);
    return TN_OK;
}

tn_status tn__cpu_prepare_move(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    bool constant = s->op == TN__OP_CONST;
    if (constant && s->scalar_count < 1)
        return tn__fail(TN_ERR_INTERNAL, "const", "a step names no scalar");
    map_data *data = map_new(step, constant ? const_run_step : move_run_step, s->operand_count);
    if (data == NULL)
        return TN_ERR_MEMORY;
    data->space.count = 2; /* of CONST, the second is the scalar: all its strides are 0 */
    /* a constant complex number is real, and given as its part */
    tn_dtype from =
        constant ? (tn_dtype)tn__dtypes[step->program->scalar_dtype[s->scalar[0]]].component : s->operand[1].dtype;
    data->cast[0] = tn__cpu_cast_of(s->operand[0].dtype, from);
    data->size[0] = !constant && s->operand[0].dtype == from ? tn__dtypes[from].size : 0;
    return TN_OK;
}

/* ---- values by position ---- */

static void generate_part(void *context, int64_t begin, int64_t end)
{
    const map_run *run = context;
    const map_data *data = run->data;
    int64_t step = tn__cpu_space_step(&data->space, 0);
    _Alignas(64) char scratch[TN__CPU_STRIP * TN__CPU_ITEM];
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->space, run->base, begin);
    while (begin < end) {
        int64_t n = tn__cpu_cursor_row(&at, end - begin < TN__CPU_STRIP ? end - begin : TN__CPU_STRIP);
        data->generate(scratch, begin, n, run->key, run->offset);
        data->cast[0](at.p[0], step, scratch, data->size[0], n);
        tn__cpu_cursor_move(&at, n);
        begin += n;
    }
}

static tn_status generate_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    const tn__step *s = step->step;
    map_run run = {.data = step->data};
    if (s->scalar_count >= 2) {
        run.key = scalars[s->scalar[0]];
        run.offset = scalars[s->scalar[1]];
    }
    tn__cpu_addresses(step, 1, buffers, run.base);
    tn__cpu_for(run.data->space.size, 8 * MAP_COST, generate_part, &run);
    return TN_OK;
}

tn_status tn__cpu_prepare_generate(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    tn_dtype work = tn__dtypes[s->compute].compute;
    const tn__cpu_functions *functions = tn__cpu_functions_of(work);
    if (functions == NULL || functions->generate[s->op] == NULL)
        return tn__cpu_no_such_operation(step);
    map_data *data = map_new(step, generate_run_step, 1);
    if (data == NULL)
        return TN_ERR_MEMORY;
    data->generate = functions->generate[s->op];
    data->size[0] = tn__dtypes[work].size;
    data->cast[0] = tn__cpu_cast_of(s->operand[0].dtype, work);
    return TN_OK;
}
