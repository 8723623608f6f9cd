/* SPDX-License-Identifier: MIT */
/*
 * Matrix products by plain loops, for the dtypes that no library multiplies: a strip of a row of the result at a time,
 * as a sum over k of multiples of rows of b. Integers wrap around, bool is "or" of "and". Long sums of float32 are made
 * in stretches, which are added up in float64.
 */
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/matmul/matmul.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/scalar_base.h"

/* For each of `count` rows x: sum[j] += a x[j]; sum[j] = alpha sum[j] + old[j], old NULL for none */
typedef void (*axpy_function)(void *sum, const void *a, const void *const *x, int count, int64_t n);
typedef void (*finish_function)(void *sum, const void *alpha, const void *old, int64_t n);

/* Rows of b that are added at once, so that sums are loaded and stored less often. */
enum { AT_ONCE = 4 };

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2"))) /* without FMA: the bits are those of narrower vectors */
#else
#define WIDE
#endif

#define ADDED(T, PLUS, TIMES, sum, i) ((T)((sum)PLUS(factor[i] TIMES from[i][j])))
#define TWO(T, PLUS, TIMES, sum, i) ADDED(T, PLUS, TIMES, ADDED(T, PLUS, TIMES, sum, i), i + 1)
#define AXPY(s, T, PLUS, TIMES, TARGET) \
    static TARGET void axpy_##s(void *sum, const void *a, const void *const *x, int count, int64_t n) \
    { \
        T *to = sum, factor[AT_ONCE]; \
        const T *from[AT_ONCE]; \
        for (int i = 0; i < count; i++) \
            factor[i] = ((const T *)a)[i], from[i] = x[i]; \
        if (count == AT_ONCE) { \
            INDEPENDENT for (int64_t j = 0; j < n; j++) \
                to[j] = TWO(T, PLUS, TIMES, TWO(T, PLUS, TIMES, to[j], 0), 2); \
            return; \
        } \
        for (int i = 0; i < count; i++) \
            INDEPENDENT for (int64_t j = 0; j < n; j++) to[j] = ADDED(T, PLUS, TIMES, to[j], i); \
    }
#define TYPED(s, T, PLUS, TIMES) \
    AXPY(s, T, PLUS, TIMES, ) \
    AXPY(s##_wide, T, PLUS, TIMES, WIDE) \
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

static const axpy_function axpy_of[TN_DTYPE_COUNT][2] = { /* narrow, wide vectors */
#define AXPYS(DTYPE, s, T, PLUS, TIMES) [DTYPE] = {axpy_##s, axpy_##s##_wide},
    EACH_TYPE(AXPYS)};
static const finish_function finish_of[TN_DTYPE_COUNT] = {
#define FINISH(DTYPE, s, T, PLUS, TIMES) [DTYPE] = finish_##s,
    EACH_TYPE(FINISH)};

typedef struct plain {
    tn__matmul matmul;
    axpy_function axpy;
    finish_function finish;
    tn__cpu_cast load[TN__MATMUL_OPERANDS], store;
    int64_t size;
    bool direct; /* rows of b are contiguous, and used in place */
    bool stretches; /* float32 of a long k: sums of stretches are added up in float64 */
} plain;

typedef struct plain_run {
    const plain *data;
    char *base[TN__CPU_OPERANDS];
    tn__matmul_factor alpha;
} plain_run;

/* Adds n sums of a stretch to the whole ones, and goes on from 0; after the last stretch, with the whole ones. */
static void end_stretch(float *sum, double *whole, int64_t n, bool last)
{
    for (int64_t j = 0; j < n; j++) {
        whole[j] += sum[j];
        sum[j] = last ? (float)whole[j] : 0;
    }
}

/* Computes n elements of one row. */
static void strip(const plain_run *run, char *out, const char *a, const char *b, int64_t n)
{
    const plain *data = run->data;
    const tn__matmul *mm = &data->matmul;
    _Alignas(64) char sum[TN__CPU_STRIP * 8], row[AT_ONCE][TN__CPU_STRIP * 8];
    double whole[TN__CPU_STRIP];
    memset(sum, 0, n * data->size);
    for (int64_t j = 0; data->stretches && j < n; j++)
        whole[j] = 0;
    for (int64_t p = 0; p < mm->k; p += AT_ONCE) {
        int64_t factor[AT_ONCE];
        const void *x[AT_ONCE];
        int count = mm->k - p < AT_ONCE ? (int)(mm->k - p) : AT_ONCE;
        data->load[TN__MATMUL_A]((char *)factor, data->size, a + p * mm->step[TN__MATMUL_A].column,
                                 mm->step[TN__MATMUL_A].column, count);
        for (int i = 0; i < count; i++) {
            const char *from = b + (p + i) * mm->step[TN__MATMUL_B].row;
            x[i] = data->direct ? from : row[i];
            if (!data->direct)
                data->load[TN__MATMUL_B](row[i], data->size, from, mm->step[TN__MATMUL_B].column, n);
        }
        data->axpy(sum, factor, x, count, n);
        bool last = p + count == mm->k;
        if (data->stretches && (last || (p + count) % TN__MATMUL_STRETCH == 0))
            end_stretch((float *)sum, whole, n, last);
    }
    if (mm->beta)
        data->load[TN__MATMUL_OUT](row[0], data->size, out, mm->step[TN__MATMUL_OUT].column, n);
    data->finish(sum, &run->alpha, mm->beta ? row[0] : NULL, n);
    data->store(out, mm->step[TN__MATMUL_OUT].column, sum, data->size, n);
}

/* Computes rows [begin, end), counted through all products of the batch. */
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
    if (!axpy_of[work][0]) {
        tn__free(data);
        return tn__cpu_no_such_operation(step);
    }
    data->axpy = axpy_of[work][tn__cpu_simd() >= TN__SIMD_AVX2];
    data->finish = finish_of[work];
    data->size = tn__dtypes[work].size;
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++)
        data->load[k] = tn__cpu_cast_of(work, operand[k].dtype);
    data->store = tn__cpu_cast_of(operand[TN__MATMUL_OUT].dtype, work);
    data->direct = operand[TN__MATMUL_B].dtype == work && data->matmul.step[TN__MATMUL_B].column == data->size;
    data->stretches = work == TN_FLOAT32 && data->matmul.k > TN__MATMUL_STRETCH;
    step->data = data;
    step->run = plain_run_step;
    return TN_OK;
}
