/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks, all steps of each row by one thread: of few units, whose steps are too short to be operations of
 * their own. ops/recurrence.h says what is computed.
 */
#include "ops/recurrence.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/simd.h"
#include "backends/cpu/base/step.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/scalar_base.h"

typedef struct recurrence_data recurrence_data;

typedef struct recurrence_run {
    const recurrence_data *data;
    char *out;
    const char *in[3];
    char *transposed; /* backward: U's transpose */
    _Atomic bool no_memory;
} recurrence_run;

struct recurrence_data {
    tn__recurrence of;
    tn__recurrence_row row;
    const tn__cpu_functions *functions;
    tn__cpu_body body;
    void (*transpose)(char *to, const char *from, int64_t rows, int64_t columns); /* NULL: forward */
    int64_t item;
    tn__cpu_cast move;
    tn__cpu_space packed[3]; /* of inputs that have to be copied, to lie in C order */
    int64_t copy[3];         /* bytes of these; 0: they lie so */
};

enum { ROWS_AT_ONCE = 4 }; /* of which a product reads the weights once */
typedef tn_f32 vector_f32 __attribute__((vector_size(16)));
typedef tn_f64 vector_f64 __attribute__((vector_size(16)));

#define T                     tn_f32
#define NAME(name)            name##_f32
#define TARGET
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define VECTOR                vector_f32
#define SAME(x)               ((VECTOR){x, x, x, x})
#define ADD_ALL(a, b, c)      MULTIPLY_ADD(a, b, c)
#include "backends/cpu/reference/recurrence_of_type.h"
#undef T
#undef NAME
#undef VECTOR
#undef SAME
#define T          tn_f64
#define NAME(name) name##_f64
#define VECTOR     vector_f64
#define SAME(x)    ((VECTOR){x, x})
#include "backends/cpu/reference/recurrence_of_type.h"
#undef T
#undef NAME
#undef VECTOR
#undef SAME
#undef ADD_ALL
#undef TARGET
#undef MULTIPLY_ADD

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx2,fma")))
#define T                     tn_f32
#define NAME(name)            name##_f32_wide
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#define VECTOR                __m256
#define SAME(x)               _mm256_set1_ps(x)
#define ADD_ALL(a, b, c)      _mm256_fmadd_ps(a, b, c)
#include "backends/cpu/reference/recurrence_of_type.h"
#undef T
#undef NAME
#undef MULTIPLY_ADD
#undef VECTOR
#undef SAME
#undef ADD_ALL
#define T                     tn_f64
#define NAME(name)            name##_f64_wide
#define MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#define VECTOR                __m256d
#define SAME(x)               _mm256_set1_pd(x)
#define ADD_ALL(a, b, c)      _mm256_fmadd_pd(a, b, c)
#include "backends/cpu/reference/recurrence_of_type.h"
#define WIDE(name) name##_wide
#else
#define WIDE(name) name
#endif

typedef struct functions {
    tn__cpu_body forward, backward;
    void (*transpose)(char *to, const char *from, int64_t rows, int64_t columns);
} functions;

/* By whether the processor has wide vectors, and whether it is double precision. */
static const functions table[2][2] = {
    {{forward_f32, backward_f32, transpose_f32}, {forward_f64, backward_f64, transpose_f64}},
    {{WIDE(forward_f32), WIDE(backward_f32), WIDE(transpose_f32)},
     {WIDE(forward_f64), WIDE(backward_f64), WIDE(transpose_f64)}},
};

/* Bytes of all that a run needs beside the operands. */
static int64_t scratch_of(const recurrence_data *data)
{
    int64_t bytes = data->transpose ? data->row.gates * data->of.units * data->of.units * data->item : 0;
    for (int k = 0; k < 3; k++)
        bytes += data->copy[k];
    return bytes;
}

static tn_status run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const recurrence_data *data = step->data;
    const tn__recurrence *of = &data->of;
    int64_t width = data->row.gates * of->units, scratch = scratch_of(data);
    recurrence_run run = {.data = data};
    char *base[4], *room = scratch ? tn__alloc((size_t)scratch) : NULL, *at = room;
    if (scratch && !room)
        return tn__fail_memory(tn__cpu_ops[step->step->op].name, (size_t)scratch);
    tn__cpu_addresses(step, 4, buffers, base);
    run.out = base[0];
    for (int k = 0; k < 3; k++) {
        run.in[k] = base[k + 1];
        if (data->copy[k]) {
            tn__cpu_move(&data->packed[k], data->move, data->item, (char *[]){at, base[k + 1]});
            run.in[k] = at;
            at += data->copy[k];
        }
    }
    if (data->transpose) {
        run.transposed = at;
        data->transpose(at, run.in[2], of->units, width);
    }
    tn__cpu_for(of->rows, of->steps * of->units * (width / 4 + 16), data->body, &run);
    tn__free(room);
    return run.no_memory ? tn__fail_memory(tn__cpu_ops[step->step->op].name, (size_t)(width * data->item)) : TN_OK;
}

/* Notes how an operand is copied, if it does not lie in C order. */
static void pack(recurrence_data *data, int k, const tn__operand *o)
{
    int64_t dense[2] = {o->dim[1], 1}, size[2] = {data->item, data->item};
    if (o->stride[1] == 1 && (o->stride[0] == o->dim[1] || o->dim[0] <= 1))
        return;
    tn__cpu_space_make(&data->packed[k], ~0u, 2, o->dim, 2, (const int64_t *[]){dense, o->stride}, size);
    data->copy[k] = o->dim[0] * o->dim[1] * data->item;
}

tn_status tn__cpu_prepare_recurrence(tn__cpu_step *step, bool back)
{
    const tn__step *s = step->step;
    const char *name = tn__cpu_ops[s->op].name;
    bool wide = tn__cpu_simd() != TN__SIMD_NONE;
    if (s->compute != TN_FLOAT32 && s->compute != TN_FLOAT64)
        return tn__cpu_no_such_operation(step);
    if (s->param_count != TN__RECURRENCE_MODES || s->operand[0].ndim != 2)
        return tn__fail(TN_ERR_INTERNAL, name, "a step has %d modes and %d axes", s->param_count, s->operand[0].ndim);
    recurrence_data *data = tn__calloc(1, sizeof *data);
    if (!data)
        return tn__fail_memory(name, sizeof *data);
    memcpy(&data->of, s->param, sizeof data->of);
    const functions *f = &table[wide][s->compute == TN_FLOAT64];
    data->row = tn__recurrence_row_of(&data->of);
    data->functions = tn__cpu_functions_of((tn_dtype)s->compute);
    data->body = back ? f->backward : f->forward;
    data->transpose = back ? f->transpose : NULL;
    data->item = tn__dtypes[s->compute].size;
    data->move = tn__cpu_cast_of((tn_dtype)s->compute, (tn_dtype)s->compute);
    for (int k = 0; k < 3; k++)
        pack(data, k, &s->operand[k + 1]);
    step->data = data;
    step->run = run_step;
    return TN_OK;
}
