/* SPDX-License-Identifier: MIT */
/* Matrix product steps on the CPU: every dtype, layout, batch and factor, against plain loops in double. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backends/cpu/matmul/matmul.h"
#include "core/dtype.h"
#include "cpu_steps.h"
#include "ops/ops.h"

static double number(const char *memory, int64_t i, tn_dtype dtype)
{
    tn__scalar scalar = {.bits = 0};
    size_t size = tn_dtype_size(dtype);
    memcpy(scalar.bytes, memory + i * (int64_t)size, size);
    return tn__scalar_to_double(scalar, dtype);
}

static void put(char *memory, int64_t i, tn_dtype dtype, double value)
{
    tn__scalar scalar = tn__scalar_from_double(value, dtype);
    memcpy(memory + i * (int64_t)tn_dtype_size(dtype), scalar.bytes, tn_dtype_size(dtype));
}

/* How a matrix lies in memory. */
typedef enum layout {
    ROWS,
    COLUMNS,
    PADDED_ROWS,
    PADDED_COLUMNS,
    SPREAD,
    SAME_ROW,
    SAME_COLUMN,
    REVERSED,
    LAYOUTS
} layout;

typedef struct block {
    char *memory;
    int64_t elements, offset, stride[3];
} block;

static block make(layout how, int64_t batch, int64_t rows, int64_t columns, bool one_batch, tn_dtype dtype)
{
    block b = {.offset = 0};
    int64_t *s = b.stride;
    static const struct {
        bool by_columns;
        int pad, step;
    } kinds[LAYOUTS] = {[COLUMNS] = {true, 0, 1}, [PADDED_ROWS] = {false, 3, 1}, [PADDED_COLUMNS] = {true, 3, 1},
                        [ROWS] = {false, 0, 1}, [SPREAD] = {false, 1, 2}, [SAME_ROW] = {false, 0, 1},
                        [SAME_COLUMN] = {true, 0, 1}, [REVERSED] = {false, 0, 1}};
    int64_t inner = kinds[how].by_columns ? rows : columns, outer = kinds[how].by_columns ? columns : rows;
    int64_t line = (inner + kinds[how].pad) * kinds[how].step;
    s[1] = kinds[how].by_columns ? kinds[how].step : line;
    s[2] = kinds[how].by_columns ? line : kinds[how].step;
    s[0] = one_batch ? 0 : line * outer + 5;
    b.elements = (line * outer + 5) * batch + 1;
    if (how == SAME_ROW)
        s[1] = 0;
    if (how == SAME_COLUMN)
        s[2] = 0;
    if (how == REVERSED && rows > 0) {
        b.offset = (rows - 1) * s[1];
        s[1] = -s[1];
    }
    b.memory = calloc(b.elements, tn_dtype_size(dtype));
    assert_non_null(b.memory);
    for (int64_t i = 0; i < b.elements; i++)
        put(b.memory, i, dtype,
            (double)step_between(dtype == TN_BOOL || tn__dtypes[dtype].class == TN__CLASS_UNSIGNED ? 0 : -3,
                                 dtype == TN_BOOL ? 1 : 3));
    return b;
}

/* Small whole numbers: exact in every dtype, so that results must be equal, not near. */
static void check(tn_dtype dtype, int64_t batch, int64_t m, int64_t k, int64_t n, const layout how[3], double alpha,
                  bool beta, bool one_batch)
{
    block out = make(how[0], batch, m, n, false, dtype), a = make(how[1], batch, m, k, one_batch, dtype),
          b = make(how[2], batch, k, n, false, dtype);
    char *before = malloc(out.elements * tn_dtype_size(dtype));
    assert_non_null(before);
    memcpy(before, out.memory, out.elements * tn_dtype_size(dtype));
    one_step step = step_of(TN__OP_MATMUL, dtype);
    step_operand(&step, out.memory, dtype, 3, (int64_t[]){batch, m, n}, out.stride, out.offset);
    step_operand(&step, a.memory, dtype, 3, (int64_t[]){batch, m, k}, a.stride, a.offset);
    step_operand(&step, b.memory, dtype, 3, (int64_t[]){batch, k, n}, b.stride, b.offset);
    step.step.product.beta = beta;
    if (alpha != 1) {
        tn_dtype factor = tn__dtypes[dtype].compute;
        step.step.product.alpha = 0;
        step.step.product.negate_alpha = alpha < 0;
        step_scalar(&step, factor, tn__scalar_from_double(alpha < 0 ? -alpha : alpha, factor).bits);
    }
    if (step_run(&step) != TN_OK)
        fail_msg("%s", tn_error());
    for (int64_t t = 0; t < batch; t++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t place = out.offset + t * out.stride[0] + i * out.stride[1] + j * out.stride[2];
                double sum = 0;
                for (int64_t p = 0; p < k; p++) {
                    double x = number(a.memory, a.offset + t * a.stride[0] + i * a.stride[1] + p * a.stride[2], dtype);
                    double y = number(b.memory, b.offset + t * b.stride[0] + p * b.stride[1] + j * b.stride[2], dtype);
                    sum += x * y;
                }
                sum = alpha * sum + (beta ? number(before, place, dtype) : 0);
                put(before, place, dtype, sum);
                if (dtype == TN_BOOL)
                    put(before, place, dtype, sum != 0);
                else if (!tn_dtype_is_float(dtype)) { /* wraps around */
                    tn__scalar wrapped = tn__scalar_from_int((int64_t)sum, dtype);
                    memcpy(before + place * (int64_t)tn_dtype_size(dtype), wrapped.bytes, tn_dtype_size(dtype));
                }
                if (number(out.memory, place, dtype) != number(before, place, dtype))
                    fail_msg(
                        "%s %d batches of %dx%dx%d, layouts %d %d %d, alpha %g, beta %d: %g at (%d, %d, %d), not %g",
                        tn_dtype_name(dtype), (int)batch, (int)m, (int)k, (int)n, how[0], how[1], how[2], alpha, beta,
                        number(out.memory, place, dtype), (int)t, (int)i, (int)j, number(before, place, dtype));
                memcpy(before + place * (int64_t)tn_dtype_size(dtype),
                       out.memory + place * (int64_t)tn_dtype_size(dtype),
                       tn_dtype_size(dtype)); /* a zero may have either sign */
            }
    /* nothing around the output was touched */
    assert_memory_equal(out.memory, before, out.elements * tn_dtype_size(dtype));
    free(before);
    free(out.memory);
    free(a.memory);
    free(b.memory);
}

static void test_dtypes(void **state)
{
    (void)state;
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_FLOAT64; dtype++)
        for (int round = 0; round < 6; round++) {
            layout how[3] = {round % 4, (round + 1) % LAYOUTS, (round + 5) % LAYOUTS};
            check(dtype, step_between(1, 3), step_between(1, 9), step_between(1, 9), step_between(1, 9), how,
                  round % 3 || dtype == TN_BOOL ? 1 : tn__dtypes[dtype].class == TN__CLASS_UNSIGNED ? 2 : -2,
                  round % 2 && dtype != TN_BOOL, false);
        }
}

/* Products of complex numbers are made of real ones, so no program has such a step: it is refused. */
static void test_complex(void **state)
{
    (void)state;
    double memory[3][2] = {{0}};
    for (tn_dtype dtype = TN_COMPLEX64; dtype <= TN_COMPLEX128; dtype++) {
        one_step step = step_of(TN__OP_MATMUL, dtype);
        for (int k = 0; k < 3; k++)
            step_operand(&step, memory[k], dtype, 2, (int64_t[]){1, 1}, NULL, 0);
        assert_int_equal(step_run(&step), TN_ERR_UNSUPPORTED);
        assert_non_null(strstr(tn_error(), tn_dtype_name(dtype)));
        tn_clear_error();
    }
}

static void test_layouts(void **state)
{
    (void)state;
    for (int o = 0; o < SAME_ROW; o++)
        for (int a = 0; a < LAYOUTS; a++)
            for (int b = 0; b < LAYOUTS; b++) {
                layout how[3] = {(o + 1) % SAME_ROW, a, b};
                check(TN_FLOAT32, step_between(1, 2), step_between(1, 40), step_between(1, 40), step_between(1, 40),
                      how, step_between(0, 1) ? 1 : -2, step_between(0, 1), step_between(0, 1));
                check(TN_FLOAT64, 1, step_between(1, 9), step_between(1, 9), step_between(1, 9), how, 3,
                      step_between(0, 1), false);
            }
}

/* Shapes that are skinny in some direction, as classifiers and their gradients have. */
static void test_shapes(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 7, 8, 9, 10, 15, 16, 17, 31, 33, 100, 300};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes) };
    for (int round = 0; round < 300; round++) {
        layout how[3] = {step_between(0, 3), step_between(0, 3), step_between(0, 3)};
        int64_t m = sizes[step_between(0, COUNT - 1)], k = sizes[step_between(0, COUNT - 1)],
                n = sizes[step_between(0, COUNT - 1)];
        if (m * n * k < 2000000)
            check(TN_FLOAT32, 1, m, k, n, how, round % 3 ? 1 : 0.5, round % 2, false);
        if (round % 6)
            continue;
        check(TN_FLOAT64, 1, m, k, 1, how, 0.5, round % 2, false);
        check(TN_FLOAT64, 1, 1, k, n, how, 1, round % 2, false);
        if (m * n * k < 200000)
            check(round % 4 ? TN_INT32 : TN_UINT8, 1, m, k, n, how, 1, round % 2, false);
    }
    check(TN_FLOAT32, 40, 8, 8, 8, (layout[]){ROWS, ROWS, COLUMNS}, 1, false, false);
    check(TN_FLOAT32, 6, 33, 64, 65, (layout[]){ROWS, ROWS, COLUMNS}, 1, true, true);
    check(TN_FLOAT32, 1, 100, 784, 100, (layout[]){ROWS, ROWS, COLUMNS}, 1, false, false);
}

/* Products that are packed, with several stretches of k and parts of vectors. */
static void test_packed(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        layout how[3] = {round % 2, step_between(0, LAYOUTS - 1), step_between(0, LAYOUTS - 1)};
        check(TN_FLOAT32, 1, step_between(48, 60), step_between(1000, 2100), step_between(64, 70), how, 1,
              round % 3 == 0, false);
        check(TN_FLOAT32, 1, step_between(48, 700), step_between(48, 70), step_between(64, 130), how, -2, round % 2,
              false);
    }
    check(TN_FLOAT32, 1, 1100, 1030, 9, (layout[]){ROWS, ROWS, ROWS}, 1, false, false);
    check(TN_FLOAT32, 1, 65, 1030, 1100, (layout[]){ROWS, COLUMNS, COLUMNS}, 1, true, false);
}

/* Every height and width of a tile: an element has the bits of one sum in the order of k, whatever its tile. */
static void test_tiles(void **state)
{
    (void)state;
    enum { MOST = 70 };
    static float a[MOST * MOST], b[MOST * MOST], out[MOST * MOST + 1];
    for (int i = 0; i < MOST * MOST; i++) {
        a[i] = (float)step_uniform(-1, 1);
        b[i] = (float)step_uniform(-1, 1);
    }
    for (int64_t m = 1; m <= MOST; m++) {
        int64_t n = step_between(1, MOST), k = step_between(1, MOST);
        tn__matmul_product p = {.m = m,
                                .n = n,
                                .k = k,
                                .a = {(char *)a, MOST, m % 2},
                                .b = {(char *)b, MOST, m % 3 == 0},
                                .out = {(char *)out, n, false},
                                .alpha = {.f32 = 1}};
        if (!tn__matmul_packed_can(&(tn__matmul_product){.m = 1000, .n = 1000, .k = 1000}))
            skip(); /* no vectors here */
        out[m * n] = 7;
        p.team = tn__matmul_packed_team(&p);
        p.workspace = aligned_alloc(64, (tn__matmul_packed_bytes(&p) + 63) / 64 * 64);
        assert_non_null(p.workspace);
        assert_true(tn__matmul_packed(&p));
        free(p.workspace);
        assert_true(out[m * n] == 7);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float sum = 0;
                for (int64_t q = 0; q < k; q++)
                    sum = fmaf(a[p.a.transposed ? q * MOST + i : i * MOST + q],
                               b[p.b.transposed ? j * MOST + q : q * MOST + j], sum);
                if (out[i * n + j] != sum)
                    fail_msg("%dx%dx%d: %a at (%d, %d), not %a", (int)m, (int)k, (int)n, out[i * n + j], (int)i, (int)j,
                             sum);
            }
    }
}

/* Products of a long k, in stretches by every way: of several lengths, batches and factors, added or not. */
static void test_long(void **state)
{
    (void)state;
    static const int extents[][2] = {{3, 1}, {1, 3}, {3, 3}, {9, 1}, {9, 17}, {50, 70}, {260, 9}, {1, 40}};
    for (int e = 0; e < 8; e++)
        for (int round = extents[e][0] < 50 ? 0 : 2; round < 4; round++) {
            int64_t m = extents[e][0], n = extents[e][1], k = (m * n < 100 && round % 2 ? 5 : 1) * TN__MATMUL_STRETCH;
            layout how[3] = {step_between(0, 3), step_between(0, LAYOUTS - 1), step_between(0, LAYOUTS - 1)};
            check(round == 3 ? TN_BFLOAT16 : TN_FLOAT32, m * n < 100 ? step_between(1, 2) : 1, m,
                  k + step_between(-1, 900), n, how, round % 2 ? 1 : -2, round / 2, round == 1);
        }
}

static void test_empty(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT32};
    for (int d = 0; d < 4; d++)
        for (int beta = 0; beta < 2; beta++) {
            layout how[3] = {ROWS, ROWS, ROWS};
            check(dtypes[d], 1, 3, 0, 4, how, 2, beta, false); /* zeros, or what was there */
            check(dtypes[d], 1, 0, 3, 4, how, 1, beta, false);
            check(dtypes[d], 1, 3, 4, 0, how, 1, beta, false);
            check(dtypes[d], 0, 3, 4, 2, how, 1, beta, false);
        }
}

/* float16 products are rounded once: 2048 + 1 + 1 is 2050, though 2048 + 1 is 2048. */
static void test_accumulates_wide(void **state)
{
    (void)state;
    char a[8], b[8], out[2];
    put(a, 0, TN_FLOAT16, 2048);
    put(a, 1, TN_FLOAT16, 1);
    put(a, 2, TN_FLOAT16, 1);
    for (int i = 0; i < 3; i++)
        put(b, i, TN_FLOAT16, 1);
    one_step step = step_of(TN__OP_MATMUL, TN_FLOAT16);
    step_operand(&step, out, TN_FLOAT16, 2, (int64_t[]){1, 1}, NULL, 0);
    step_operand(&step, a, TN_FLOAT16, 2, (int64_t[]){1, 3}, NULL, 0);
    step_operand(&step, b, TN_FLOAT16, 2, (int64_t[]){3, 1}, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
    assert_true(number(out, 0, TN_FLOAT16) == 2050);
}

/* One executable in several threads at once, with scratch to quarrel about: the same bits each time. */
typedef struct shared {
    tn__executable *executable;
    float *a, *b, *out;
    tn_status status;
} shared;

static void *run_many(void *argument)
{
    shared *s = argument;
    for (int i = 0; i < 50 && s->status == TN_OK; i++)
        s->status = step_device()->ops->run(s->executable, (void *[]){s->out, s->a, s->b}, NULL);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { M = 33, K = 65, N = 40, THREADS = 4 };
    float *a = malloc(sizeof(float) * 2 * M * K), *b = malloc(sizeof(float) * K * N),
          *out = malloc(sizeof(float) * THREADS * M * N);
    assert_true(a && b && out);
    for (int i = 0; i < 2 * M * K; i++)
        a[i] = (float)step_uniform(-1, 1);
    for (int i = 0; i < K * N; i++)
        b[i] = (float)step_uniform(-1, 1);
    one_step step = step_of(TN__OP_MATMUL, TN_FLOAT32);
    step_operand(&step, out, TN_FLOAT32, 2, (int64_t[]){M, N}, NULL, 0);
    step_operand(&step, a, TN_FLOAT32, 2, (int64_t[]){M, K}, (int64_t[]){2 * K, 2}, 0);
    step_operand(&step, b, TN_FLOAT32, 2, (int64_t[]){K, N}, NULL, 0);
    step.step.operand = step.operand;
    tn__buffer buffer[3] = {{.kind = TN__BUFFER_INPUT}};
    tn__program program = {.buffer_count = 3, .buffer = buffer, .step_count = 1, .step = &step.step, .source = ""};
    tn__executable *executable;
    assert_int_equal(step_device()->ops->load(step_device(), &program, &executable), TN_OK);
    pthread_t thread[THREADS];
    shared job[THREADS];
    for (int t = 0; t < THREADS; t++) {
        job[t] = (shared){executable, a, b, out + t * M * N, TN_OK};
        assert_int_equal(pthread_create(&thread[t], NULL, run_many, &job[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(job[t].status, TN_OK);
        assert_memory_equal(out, out + t * M * N, sizeof(float) * M * N);
    }
    step_device()->ops->unload(executable);
    free(a);
    free(b);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),  cmocka_unit_test(test_layouts), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_packed),  cmocka_unit_test(test_empty),   cmocka_unit_test(test_accumulates_wide),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_tiles),   cmocka_unit_test(test_complex),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
