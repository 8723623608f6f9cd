/* SPDX-License-Identifier: MIT */
/*
 * Matrix products by plain loops, for the dtypes that no library multiplies: a strip of a row of the result at a time, as a
 * sum over k of multiples of rows of b. Integers wrap around, bool is "or" of "and".
 */
#include <string.h>

#include "array/scalar_base.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/parallel.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

/* sum[j] += a x[j]; sum[j] = alpha sum[j] + old[j], old NULL for none */
typedef void (*axpy_function)(void *sum, const void *a, const void *x, int64_t n);
typedef void (*finish_function)(void *sum, const void *alpha, const void *old, int64_t n);

#define TYPED(s, T, PLUS, TIMES) \
    static void axpy_##s(void *sum, const void *a, const void *x, int64_t n) \
    { \
        T *to = sum; \
        const T factor = *(const T *)a, *from = x; \
        INDEPENDENT for (int64_t j = 0; j < n; j++) to[j] = (T)(to[j] PLUS(factor TIMES from[j])); \
    } \
    static void finish_##s(void *sum, const void *alpha, const void *old, int64_t n) \
    { \
        T *to = sum; \
        const T factor = *(const T *)alpha, *from = old; \
        for (int64_t j = 0; j < n; j++) \
            to[j] = (T)(from ? (T)(factor TIMES to[j]) PLUS from[j] : factor TIMES to[j]); \
    }

#define EACH_TYPE(X) \
    X(TN_BOOL, b8, tn_b8, |, &) \
    X(TN_INT8, i8, tn_i8, +, *) \
    X(TN_INT16, i16, tn_i16, +, *) \
    X(TN_INT32, i32, tn_i32, +, *) \
    X(TN_INT64, i64, tn_i64, +, *) \
    X(TN_UINT8, u8, tn_u8, +, *) \
    X(TN_UINT16, u16, tn_u16, +, *) \
    X(TN_UINT32, u32, tn_u32, +, *) \
    X(TN_UINT64, u64, tn_u64, +, *) \
    X(TN_FLOAT32, f32, tn_f32, +, *) \
    X(TN_FLOAT64, f64, tn_f64, +, *)

#define DEFINE(DTYPE, s, T, PLUS, TIMES) TYPED(s, T, PLUS, TIMES)
EACH_TYPE(DEFINE)

static const axpy_function axpy_of[TN_DTYPE_COUNT] = {
#define AXPY(DTYPE, s, T, PLUS, TIMES) [DTYPE] = axpy_##s,
    EACH_TYPE(AXPY)};
static const finish_function finish_of[TN_DTYPE_COUNT] = {
#define FINISH(DTYPE, s, T, PLUS, TIMES) [DTYPE] = finish_##s,
    EACH_TYPE(FINISH)};

typedef struct plain {
    tn__matmul matmul;
    axpy_function axpy;
    finish_function finish;
    tn__cpu_cast load[TN__MATMUL_OPERANDS], store;
    int64_t size;
    bool direct; /* rows of b can be used where they lie */
} plain;

typedef struct plain_run {
    const plain *data;
    char *base[TN__CPU_OPERANDS];
    tn__matmul_factor alpha;
} plain_run;

/* Elements [j, j + n) of one row. */
static void strip(const plain_run *run, char *out, const char *a, const char *b, int64_t n)
{
    const plain *data = run->data;
    const tn__matmul *mm = &data->matmul;
    _Alignas(64) char sum[TN__CPU_STRIP * 8], row[TN__CPU_STRIP * 8];
    memset(sum, 0, n * data->size);
    for (int64_t p = 0; p < mm->k; p++) {
        int64_t factor;
        const char *x = b + p * mm->step[TN__MATMUL_B].row;
        data->load[TN__MATMUL_A]((char *)&factor, 0, a + p * mm->step[TN__MATMUL_A].column, 0, 1);
        if (!data->direct) {
            data->load[TN__MATMUL_B](row, data->size, x, mm->step[TN__MATMUL_B].column, n);
            x = row;
        }
        data->axpy(sum, &factor, x, n);
    }
    if (mm->beta)
        data->load[TN__MATMUL_OUT](row, data->size, out, mm->step[TN__MATMUL_OUT].column, n);
    data->finish(sum, &run->alpha, mm->beta ? row : NULL, n);
    data->store(out, mm->step[TN__MATMUL_OUT].column, sum, data->size, n);
}

/* Rows of all batches, in order. */
static void rows_part(void *context, int64_t begin, int64_t end)
{
    const plain_run *run = context;
    const tn__matmul *mm = &run->data->matmul;
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &mm->batch, run->base, begin / mm->m);
    for (; begin < end; begin++) {
        int64_t i = begin % mm->m;
        char *out = at.p[TN__MATMUL_OUT] + i * mm->step[TN__MATMUL_OUT].row;
        const char *a = at.p[TN__MATMUL_A] + i * mm->step[TN__MATMUL_A].row, *b = at.p[TN__MATMUL_B];
        for (int64_t j = 0; j < mm->n; j += TN__CPU_STRIP)
            strip(run, out + j * mm->step[TN__MATMUL_OUT].column, a, b + j * mm->step[TN__MATMUL_B].column,
                  mm->n - j < TN__CPU_STRIP ? mm->n - j : TN__CPU_STRIP);
        if (i == mm->m - 1)
            tn__cpu_cursor_move(&at, 1);
    }
}

static tn_status plain_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    plain_run run = {.data = step->data, .alpha = tn__matmul_alpha(step, scalars)};
    const tn__matmul *mm = &run.data->matmul;
    tn__cpu_addresses(step, TN__MATMUL_OPERANDS, buffers, run.base);
    tn__cpu_for(mm->batch.size * mm->m, mm->n * (mm->k + 1), rows_part, &run);
    return TN_OK;
}

tn_status tn__matmul_prepare_plain(tn__cpu_step *step)
{
    const tn__operand *operand = step->step->operand;
    plain *data = tn__calloc(1, sizeof(*data));
    if (data == NULL)
        return tn__fail_memory("matmul", sizeof(*data));
    tn__matmul_describe(step, &data->matmul);
    tn_dtype work = data->matmul.work;
    if (!axpy_of[work]) {
        tn__free(data);
        return tn__cpu_no_such_operation(step);
    }
    data->axpy = axpy_of[work];
    data->finish = finish_of[work];
    data->size = tn__dtypes[work].size;
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++)
        data->load[k] = tn__cpu_cast_of(work, operand[k].dtype);
    data->store = tn__cpu_cast_of(operand[TN__MATMUL_OUT].dtype, work);
    data->direct = operand[TN__MATMUL_B].dtype == work && data->matmul.step[TN__MATMUL_B].column == data->size;
    step->data = data;
    step->run = plain_run_step;
    return TN_OK;
}
