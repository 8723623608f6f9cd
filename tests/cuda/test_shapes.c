/* SPDX-License-Identifier: MIT */
/*
 * Every form of loop that kernels for GPUs have, at its edges: what a thread takes at once and what is left over, rows
 * of a few elements and of too many for registers, columns of any number, reductions in pieces, tiles. A GPU gives what
 * the CPU gives, sums within rounding. Skipped without a GPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { MOST_RESULTS = 8 };

static uint64_t seed;

typedef int (*results_fn)(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS]);

/* The same numbers on every device. */
static tn_array *drawn(tn_device device, tn_shape shape, tn_dtype dtype)
{
    return tn_to(tn_cast(tn_random_uniform(shape, .low = -4, .high = 4, .device = tn_cpu()), dtype), device);
}

static int elementwise(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32), *row = drawn(device, TN_SHAPE(m), TN_FLOAT32);
    tn_array *column = drawn(device, TN_SHAPE(n, 1), TN_FLOAT32), *half = drawn(device, TN_SHAPE(n, m), TN_FLOAT16);
    tn_array *whole = drawn(device, TN_SHAPE(n, m), TN_INT8), *flat = tn_flatten(x);
    result[0] = tn_exp(tn_multiply(x, -0.5));
    result[1] = tn_add(tn_multiply(x, row), column);
    result[2] = tn_multiply(half, half);
    result[3] = tn_where(tn_greater(whole, 0), x, row);
    result[4] = tn_negative(tn_slice_axis(flat, 0, n * m > 1, n * m, 1)); /* one element off 16 bytes */
    result[5] = tn_add(tn_flip(x, TN_AXES(1)), x);
    result[6] = tn_cast(whole, TN_FLOAT64);
    result[7] = tn_add(tn_slice_axis(x, 1, 0, m, 3), tn_slice_axis(row, 0, 0, m, 3));
    return 8;
}

static int turned(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32), *y = drawn(device, TN_SHAPE(m, n), TN_FLOAT32);
    tn_array *t = tn_transpose(x, (tn_axes){0}), *z = drawn(device, TN_SHAPE(3, n, m), TN_INT16);
    result[0] = tn_negative(t);
    result[1] = tn_add(tn_multiply(t, y), drawn(device, TN_SHAPE(n), TN_FLOAT32));
    result[2] = tn_negative(tn_transpose(z, TN_AXES(2, 0, 1)));
    result[3] = tn_negative(tn_transpose(z, TN_AXES(0, 2, 1)));
    result[4] = tn_add(tn_flip(t, TN_AXES(0, 1)), y);
    return 5;
}

static int by_rows(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32);
    result[0] = tn_sum(x, .axis = TN_AXES(1));
    result[1] = tn_softmax(x, 1);
    result[2] = tn_var(x, .axis = TN_AXES(1));
    result[3] = tn_argmax(x, .axis = TN_AXES(1));
    result[4] = tn_max(tn_cast(x, TN_FLOAT16), .axis = TN_AXES(1));
    result[5] = tn_sum(tn_cast(x, TN_INT32), .axis = TN_AXES(1));
    result[6] = tn_layer_norm_function(x, drawn(device, TN_SHAPE(m), TN_FLOAT32),
                                       drawn(device, TN_SHAPE(m), TN_FLOAT32), 1e-3);
    result[7] = tn_sum(tn_square(x));
    return 8;
}

/* What a kernel computes of rows in several passes, where there are enough rows for one kernel: with what lies before a
 * row's first element, so that no row begins on 16 bytes, or not. */
static int by_long_rows(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32), *apart = drawn(device, TN_SHAPE(n, m + 1), TN_FLOAT32);
    tn_array *row = drawn(device, TN_SHAPE(m), TN_FLOAT32);
    result[0] = tn_softmax(x, 1);
    result[1] = tn_var(x, .axis = TN_AXES(1));
    result[2] = tn_log_softmax(tn_slice_axis(apart, 1, 1, m + 1, 1), 1);
    result[3] = tn_layer_norm_function(x, row, row, 1e-3);
    return 4;
}

/* The same of other dtypes, whose elements take half and twice the registers, and gradients, one of which reads two
 * operands. */
static int by_other_long_rows(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32), *z = drawn(device, TN_SHAPE(n, m), TN_FLOAT32);
    tn_array *row = drawn(device, TN_SHAPE(m), TN_FLOAT32);
    tn_array *positions = tn_to(tn_cast(tn_arange(0, n, 1, .device = tn_cpu()), TN_INT64), device);
    tn_requires_grad(x);
    result[0] = tn_softmax(tn_cast(x, TN_FLOAT16), 1);
    result[1] = tn_log_softmax(tn_cast(x, TN_FLOAT64), 1);
    tn_array *normal = tn_layer_norm_function(x, row, row, 1e-3);
    tn_array *y[] = {tn_sum(tn_multiply(normal, z)), tn_softmax_cross_entropy(x, positions)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_gradients(y[i], 1, (const tn_array *[]){x}, false, &result[2 + i]), TN_OK);
    return 4;
}

static int by_columns(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(device, TN_SHAPE(n, m), TN_FLOAT32), *z = drawn(device, TN_SHAPE(3, n, m), TN_FLOAT32);
    result[0] = tn_sum(x, .axis = TN_AXES(0));
    result[1] = tn_softmax(x, 0);
    result[2] = tn_argmin(x, .axis = TN_AXES(0));
    result[3] = tn_var(tn_cast(x, TN_FLOAT64), .axis = TN_AXES(0));
    result[4] = tn_sum(z, .axis = TN_AXES(1));
    result[5] = tn_mean(z, .axis = TN_AXES(0, 2));
    result[6] = tn_sum(tn_transpose(x, (tn_axes){0}), .axis = TN_AXES(1));
    result[7] = tn_max(tn_cast(x, TN_INT8), .axis = TN_AXES(0));
    return 8;
}

static int random_numbers(tn_device device, int64_t n, int64_t m, tn_array *result[MOST_RESULTS])
{
    tn_seed(seed);
    assert_int_equal(tn_set_device(device), TN_OK);
    result[0] = tn_random_normal(TN_SHAPE(n, m));
    result[1] = tn_random_uniform(TN_SHAPE(n * m), .dtype = TN_FLOAT64);
    result[2] = tn_multiply(tn_random_normal(TN_SHAPE(n, m), .dtype = TN_FLOAT16),
                            tn_cast(tn_arange(0, m, 1), TN_FLOAT16));
    tn_generator carries = {.key = seed, .counter = 0xfffffffe}; /* into the upper half, from the third block on */
    result[3] = tn_random_normal(TN_SHAPE(n, m), .generator = &carries);
    carries.counter = 0xfffffff0;
    result[4] = tn_random_uniform(TN_SHAPE(n * m), .generator = &carries, .dtype = TN_FLOAT64);
    carries.counter = 0xffffffe0;
    result[5] = tn_sum(tn_random_normal(TN_SHAPE(n, m), .generator = &carries), .axis = TN_AXES(1));
    for (int i = 0; i < 6; i++)
        if (tn_eval(result[i]) != TN_OK)
            fail_msg("%s", tn_error());
    assert_int_equal(tn_set_device(tn_cpu()), TN_OK);
    return 6;
}

static double *values(const tn_array *x)
{
    size_t size = (size_t)tn_size(x);
    double *copy = malloc((size + 1) * sizeof *copy);
    assert_non_null(copy);
    TN_SCOPE {
        tn_array *y = tn_cast(tn_to(x, tn_cpu()), TN_FLOAT64);
        if (tn_to_host(y, copy, size * sizeof *copy) != TN_OK)
            fail_msg("%s", tn_error());
    }
    return copy;
}

static void check(results_fn results, int64_t n, int64_t m)
{
    TN_SCOPE {
        tn_array *here[MOST_RESULTS], *there[MOST_RESULTS];
        tn_seed(seed);
        int count = results(tn_cpu(), n, m, here);
        tn_seed(seed);
        results(tn_cuda(0), n, m, there);
        const tn_array *all[MOST_RESULTS];
        for (int i = 0; i < count; i++)
            all[i] = there[i];
        if (tn_eval_all(count, all) != TN_OK)
            fail_msg("%s", tn_error());
        for (int i = 0; i < count; i++) {
            double *expected = values(here[i]), *got = values(there[i]);
            /* a normal number may be next to 0, and no nearer than others are */
            double largest = results == random_numbers;
            double bound = tn_dtype_of(here[i]) == TN_FLOAT16 ? 1e-3 : 2e-5; /* a last bit may round the other way */
            for (int64_t k = 0; k < tn_size(here[i]); k++)
                largest = fmax(largest, fabs(expected[k]));
            for (int64_t k = 0; k < tn_size(here[i]); k++)
                if (!(fabs(expected[k] - got[k]) <= bound * largest) && !(isnan(expected[k]) && isnan(got[k])))
                    fail_msg("result %d of %lld x %lld, element %lld: %.9g, the CPU gives %.9g", i, (long long)n,
                             (long long)m, (long long)k, got[k], expected[k]);
            free(expected);
            free(got);
        }
    }
}

static void check_all(results_fn results, const int64_t (*shape)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(results, shape[i][0], shape[i][1]);
}
#define CHECK(results, ...) \
    do { \
        static const int64_t shapes[][2] = {__VA_ARGS__}; \
        check_all(results, shapes, sizeof shapes / sizeof *shapes); \
    } while (0)

static void test_elementwise(void **state)
{
    (void)state;
    CHECK(elementwise, {1, 1}, {1, 4}, {3, 5}, {7, 8}, {64, 1000}, {37, 1023}, {1, 70001}, {0, 5}, {5, 0});
}

static void test_tiles(void **state)
{
    (void)state;
    CHECK(turned, {5, 3}, {300, 257}, {65, 1031}, {16, 5000}, {4099, 17}, {0, 9});
}

static void test_rows(void **state)
{
    (void)state;
    CHECK(by_rows, {1, 1}, {9, 2}, {100, 10}, {33, 31}, {5, 127}, {70, 128}, {3, 1000}, {40, 2051}, {3, 8192},
          {2, 17000}, {2, 50257}, {1, 150001}, {6, 60000}, {0, 7});
}

/* In registers of a block, of a cluster, and read again: one less, as many and one more than each has room for. */
static void test_long_rows(void **state)
{
    (void)state;
    CHECK(by_long_rows, {266, 16384}, {267, 16385}, {266, 16388}, {266, 50257}, {270, 51200}, {264, 56003});
    CHECK(by_other_long_rows, {266, 16391}, {265, 40004}, {264, 50257});
}

static void test_columns(void **state)
{
    (void)state;
    CHECK(by_columns, {1, 1}, {2, 9}, {10, 100}, {31, 33}, {127, 5}, {100, 1000}, {3, 8200}, {70000, 1}, {40000, 3},
          {5000, 40}, {900, 258}, {7, 0});
}

static void test_random_numbers(void **state)
{
    (void)state;
    CHECK(random_numbers, {1, 1}, {3, 5}, {64, 64}, {33, 1001});
}

/* Mostly ordinary numbers, of both signs; some at the ends of float32's range, zeros, infinities, NaN. */
static float ordinary_or_not(void)
{
    static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-140f, 0x1.fffffep127f, 1};
    float x = ldexpf((float)rand() / (float)RAND_MAX - 0.3f, rand() % 10 ? rand() % 8 : rand() % 300 - 160);
    return rand() % 40 ? x : special[(size_t)rand() % (sizeof special / sizeof *special)];
}

static int divided(tn_array *x, tn_array *row, tn_array *result[MOST_RESULTS])
{
    result[0] = tn_divide(x, row);
    result[1] = tn_sqrt(x);
    result[2] = tn_reciprocal(x);
    result[3] = tn_sqrt(tn_divide(tn_add(x, 1), x));
    result[4] = tn_divide(x, tn_max(tn_where(tn_isfinite(x), x, 1), .axis = TN_AXES(1), .keepdims = true));
    result[5] = tn_divide(x, 3);
    return 6;
}

/* IEEE's operations give the CPU's bits, whichever way they are computed. */
static void check_divisions(int64_t n, int64_t m)
{
    float *x = malloc((size_t)(n * m) * sizeof *x), *row = malloc((size_t)m * sizeof *row), *got[2];
    assert_true(x && row);
    for (int64_t i = 0; i < n * m; i++)
        x[i] = ordinary_or_not();
    for (int64_t i = 0; i < m; i++)
        row[i] = ordinary_or_not();
    for (int which = 0; which < 6; which++) {
        for (int there = 0; there < 2; there++)
            TN_SCOPE TN_ON_DEVICE(there ? tn_cuda(0) : tn_cpu())
            {
                tn_array *result[MOST_RESULTS];
                size_t bytes = (size_t)(n * m) * sizeof **got;
                divided(tn_from_host(x, TN_SHAPE(n, m), TN_FLOAT32), tn_from_host(row, TN_SHAPE(m), TN_FLOAT32),
                        result);
                got[there] = malloc(bytes);
                assert_non_null(got[there]);
                if (tn_to_host(result[which], got[there], bytes) != TN_OK)
                    fail_msg("%s", tn_error());
            }
        for (int64_t i = 0; i < n * m; i++)
            if (memcmp(&got[0][i], &got[1][i], sizeof **got) != 0 && !(isnan(got[0][i]) && isnan(got[1][i])))
                fail_msg("result %d of %lld x %lld, element %lld of %a and %a: %a, the CPU gives %a", which,
                         (long long)n, (long long)m, (long long)i, x[i], row[i % m], got[1][i], got[0][i]);
        free(got[0]);
        free(got[1]);
    }
    free(x);
    free(row);
}

static void test_divisions(void **state)
{
    (void)state;
    srand((unsigned)seed);
    check_divisions(7, 13);
    check_divisions(300, 1000);
    check_divisions(3, 8191);
    check_divisions(5, 20000);
    check_divisions(2, 50257);
}

/* Conversions to and from 16 bits give the CPU's bits: of every number of 16 bits, and of float32 in the middle between
 * two of them, next to that, and next to them. A NaN may have others. */
static void check_conversion(const void *data, int64_t count, tn_dtype from, tn_dtype to)
{
    double *got[2];
    for (int there = 0; there < 2; there++)
        TN_SCOPE TN_ON_DEVICE(there ? tn_cuda(0) : tn_cpu())
            got[there] = values(tn_cast(tn_from_host(data, TN_SHAPE(count), from), to));
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&got[0][i], &got[1][i], sizeof **got) != 0 && !(isnan(got[0][i]) && isnan(got[1][i])))
            fail_msg("%s to %s, element %lld: %a, the CPU gives %a", tn_dtype_name(from), tn_dtype_name(to),
                     (long long)i, got[1][i], got[0][i]);
    free(got[0]);
    free(got[1]);
}

static void test_halves(void **state)
{
    (void)state;
    static const uint32_t beside[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
    const int64_t upper = 1 << 19, each = sizeof beside / sizeof *beside;
    uint32_t *bits = malloc((size_t)(upper * each) * sizeof *bits);
    uint16_t *all = malloc(65536 * sizeof *all);
    assert_true(bits && all);
    for (int64_t i = 0; i < upper * each; i++)
        bits[i] = (uint32_t)(i / each) << 13 | beside[i % each];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    static const tn_dtype halves[] = {TN_FLOAT16, TN_BFLOAT16};
    for (int k = 0; k < 2; k++) {
        check_conversion(bits, upper * each, TN_FLOAT32, halves[k]);
        check_conversion(all, 65536, halves[k], TN_FLOAT32);
        check_conversion(all, 65536, halves[k], TN_FLOAT64);
    }
    free(bits);
    free(all);
}

int main(void)
{
    if (test_no_gpu())
        return TEST_SKIPPED;
    seed = test_seed_new();
    tn_set_compile(TN_COMPILE_ALWAYS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_tiles),   cmocka_unit_test(test_rows),
        cmocka_unit_test(test_long_rows),   cmocka_unit_test(test_columns), cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_divisions),   cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
