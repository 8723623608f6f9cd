/* SPDX-License-Identifier: MIT */
/* Sums, means and variances of many numbers of single precision: within the bound that array.h says, compiled and by
 * the reference evaluator, which give the same bits, however the numbers lie. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>
#include <tanso/statistics.h>

#include "support/device.h"
#include "support/random.h"

enum { NUMBERS = 1 << 17, ROW = 37, KINDS = 5 };
#define UNIT (1.0 / (1 << 24))

/* array.h's bound for sums of so many. */
static double most_units(int64_t length, bool columns)
{
    if (test_device().kind != TN_DEVICE_CUDA)
        return 20;
    return columns && length <= 16384 ? 16 + (double)length / 8 : 300;
}

static uint32_t state;

static float number(int kind, int64_t i)
{
    state = state * 1664525 + 1013904223;
    switch (kind) {
    case 0: return 1e6f + (float)(i % 2);
    case 1: return 0.1f;
    case 2: return 1000001;
    case 3: return i % 4 == 0 ? 3e7f : i % 4 == 2 ? -3e7f : 1.1f;
    default: return (float)(state >> 8) * (float)UNIT;
    }
}

/* What lies in memory as rows of ROW numbers: the exact sums of them, of their columns, and of all. */
typedef struct numbers {
    float *x;
    int64_t count;
    double row[NUMBERS / ROW], column[ROW], all;
    double row_size[NUMBERS / ROW], column_size[ROW], size; /* of absolute values */
} numbers;

static void make(numbers *n, int kind)
{
    enum { ROWS = NUMBERS / ROW };
    *n = (numbers){.x = malloc(sizeof(float) * NUMBERS), .count = (int64_t)ROWS * ROW};
    assert_non_null(n->x);
    for (int64_t i = 0; i < n->count; i++) {
        double x = n->x[i] = number(kind, i), size = fabs(x);
        n->row[i / ROW] += x, n->row_size[i / ROW] += size;
        n->column[i % ROW] += x, n->column_size[i % ROW] += size;
        n->all += x, n->size += size;
    }
}

static void check(tn_array *sums, const double *exact, const double *size, const char *what, int kind)
{
    int64_t count = tn_size(sums);
    double most = most_units(NUMBERS / count, count > 1) * UNIT;
    const float *value = test_data(sums);
    assert_non_null(value);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(value[i] - exact[i]) <= most * size[i]))
            fail_msg("sum %lld of %s, numbers of kind %d: %.9g is %.3g units from %.17g", (long long)i, what, kind,
                     value[i], fabs(value[i] - exact[i]) / UNIT / size[i], exact[i]);
}

/* By rows, by columns, of all; of what lies dense, lies across, or is every other number. */
static void test_bound(void **state)
{
    (void)state;
    static numbers n;
    for (int turn = 0; turn < 2 * KINDS; turn++) TN_SCOPE {
        int kind = turn / 2;
        make(&n, kind);
        tn_set_compile(turn % 2 ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
        tn_array *x = tn_from_floats(n.x, n.count), *rows = tn_reshape(x, TN_SHAPE(n.count / ROW, ROW));
        tn_array *across = tn_add(tn_transpose(rows, (tn_axes){0}), 0);
        tn_array *doubled = tn_repeat(x, 2, TN_AXES(0));
        tn_array *spread = tn_slice(doubled, 1, &(tn_slice_range){0, 2 * n.count, 2});
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_eval(across), TN_OK);
        assert_int_equal(tn_eval(doubled), TN_OK);
        check(tn_sum(x), &n.all, &n.size, "all", kind);
        check(tn_sum(spread), &n.all, &n.size, "every other number", kind);
        check(tn_sum(rows), &n.all, &n.size, "a matrix", kind);
        check(tn_sum(rows, .axis = TN_AXES(0)), n.column, n.column_size, "columns", kind);
        check(tn_sum(rows, .axis = TN_AXES(1)), n.row, n.row_size, "short rows", kind);
        check(tn_sum(across, .axis = TN_AXES(1)), n.column, n.column_size, "long rows", kind);
        check(tn_sum(tn_transpose(across, (tn_axes){0}), .axis = TN_AXES(0)), n.column, n.column_size, "rows across",
              kind);
        free(n.x);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* Both evaluators give the same bits, of lengths around those of stretches and blocks. */
static void test_same_bits_of_lengths(void **state)
{
    (void)state;
    if (!test_same_bits())
        skip();
    static const int64_t lengths[] = {16, 17, 33, 256, 257, 769, 4097, 9000};
    static const int64_t others[] = {1, 7, 300};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t o = 0; o < sizeof others / sizeof *others; o++)
            for (size_t kind = (l + o) % 4; kind < 4; kind += 3) TN_SCOPE {
                static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16, TN_COMPLEX64};
                int64_t length = lengths[l], other = others[o];
                if (length * other > 300000)
                    continue;
                tn_array *x = tn_random_normal(TN_SHAPE(length, other));
                x = tn_cast(kind == 3 ? tn_complex(x, tn_random_normal(TN_SHAPE(length, other))) : x, dtypes[kind]);
                tn_array *turned = tn_reshape(x, TN_SHAPE(other, length));
                assert_int_equal(tn_eval(x), TN_OK);
                const void *bits[2][3];
                for (int mode = 0; mode < 2; mode++) {
                    tn_set_compile(mode ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
                    bits[mode][0] = test_data(tn_sum(tn_square(x), .axis = TN_AXES(0)));
                    bits[mode][1] = test_data(tn_sum(tn_square(turned), .axis = TN_AXES(1)));
                    bits[mode][2] = test_data(tn_sum(tn_square(x)));
                }
                size_t item = tn_dtype_size(dtypes[kind]);
                for (int i = 0; i < 3; i++) {
                    assert_non_null(bits[0][i]);
                    assert_memory_equal(bits[0][i], bits[1][i], item * (size_t)(i == 2 ? 1 : other));
                }
            }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* 1e6 and 1e6 + 1 in turn: the mean is between them, and the variance a quarter; of each column, none. */
static void test_moments(void **state)
{
    (void)state;
    for (int mode = 0; mode < 2; mode++) TN_SCOPE {
        tn_set_compile(mode ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
        int64_t count = 300000;
        tn_array *i = tn_arange(0, (double)count, 1, .dtype = TN_INT32);
        tn_array *x = tn_add(tn_cast(tn_bitwise_and(i, 1), TN_FLOAT32), 1e6);
        tn_array *columns = tn_reshape(x, TN_SHAPE(count / 2, 2)), *rows = tn_reshape(x, TN_SHAPE(5, count / 5));
        assert_int_equal(tn_eval(x), TN_OK);
        assert_float_equal(tn_item(tn_mean(x)), 1000000.5, 0);
        assert_float_equal(tn_item(tn_var(x)), 0.25, 1e-6);
        assert_float_equal(tn_item(tn_std(x)), 0.5, 1e-6);
        assert_float_equal(tn_item(tn_nanmean(x)), 1000000.5, 0);
        assert_float_equal(tn_item(tn_nanvar(x)), 0.25, 1e-6);
        const float *mean = test_data(tn_mean(columns, .axis = TN_AXES(0)));
        const float *variance = test_data(tn_var(columns, .axis = TN_AXES(0)));
        const float *of_rows = test_data(tn_var(rows, .axis = TN_AXES(1)));
        assert_true(mean && variance && of_rows);
        for (int c = 0; c < 2; c++) {
            assert_float_equal(mean[c], 1000000 + c, 0.07);
            assert_float_equal(variance[c], 0, 0.005);
        }
        for (int r = 0; r < 5; r++)
            assert_float_equal(of_rows[r], 0.25, 0.005);
        tn_array *thirds = tn_arange(0, 3 * 350001, 1, .dtype = TN_INT32);
        thirds = tn_add(tn_cast(tn_equal(tn_remainder(thirds, 3), 0), TN_FLOAT32), 4e6); /* a mean that is none */
        assert_float_equal(tn_item(tn_var(thirds)), 2.0 / 9, 1e-5);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* More ones than single precision counts. */
static void test_ones(void **state)
{
    (void)state;
    TN_SCOPE {
        int64_t count = ((int64_t)1 << 24) + 5;
        assert_float_equal(tn_item(tn_sum(tn_ones(TN_SHAPE(count)))), (float)count, 0);
    }
}

/* Sums so far, and products of long vectors, are sums, too: on the CPU each is rounded once or a few times. */
static void test_scans_and_dots(void **state)
{
    (void)state;
    if (test_device().kind == TN_DEVICE_CUDA)
        skip(); /* a GPU's are of blocks of float32 */
    static numbers n;
    for (int turn = 0; turn < 2 * KINDS; turn++) TN_SCOPE {
        int kind = turn % KINDS;
        tn_set_compile(turn < KINDS ? TN_COMPILE_NEVER : TN_COMPILE_ALWAYS);
        make(&n, kind);
        tn_array *x = tn_from_host(n.x, TN_SHAPE(n.count), TN_FLOAT32), *dot = tn_dot(x, x);
        assert_int_equal(tn_eval(x), TN_OK);
        const float *so_far = test_data(tn_cumsum(x));
        double parts[2], sum = 0, size = 0, squares = 0;
        assert_non_null(so_far);
        for (int64_t i = 0; i < n.count; i++) {
            sum += n.x[i], size += fabs(n.x[i]), squares += (double)n.x[i] * n.x[i];
            if (!(fabs(so_far[i] - sum) <= 2 * UNIT * size))
                fail_msg("sum %lld so far of kind %d: %.9g, expected %.9g", (long long)i, kind, so_far[i], sum);
        }
        assert_true(fabs(tn_item(dot) - squares) <= 21 * UNIT * squares);
        /* a row times a column: 32 sums of 4096 products, then those in float64 */
        tn_array *row = tn_reshape(x, TN_SHAPE(1, n.count)), *rows[] = {
            tn_inner(x, x), tn_einsum("i,i->", TN_ARRAYS(x, x)), tn_matmul(row, tn_transpose(row, TN_AXES(1, 0))),
            tn_matmul(row, x)};
        for (int i = 0; i < 4; i++)
            assert_true(fabs(tn_item(tn_sum(rows[i])) - squares) <= 136 * UNIT * squares);
        tn_array *both = tn_cumsum(tn_complex(x, tn_negative(x)));
        assert_int_equal(tn_item_parts(tn_index(both, n.count - 1), parts), TN_OK);
        assert_true(fabs(parts[0] - n.all) <= 2 * UNIT * n.size && parts[1] == -parts[0]);
        free(n.x);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* Products with few results are sums of as many: those of stretches of 8192 products, then those in float64; however
 * their factors lie, and by whichever kernel. */
static void test_long_products(void **unused)
{
    (void)unused;
    if (test_device().kind == TN_DEVICE_CUDA)
        skip(); /* a GPU's are of blocks of float32 */
    static const int extents[][2] = {{3, 1}, {1, 3}, {3, 3}, {1, 17}, {16, 1}, {9, 8}};
    const int64_t length = 4000001;
    const double exact = (double)0.1f * 0.1f * (double)length;
    for (int e = 0; e < 6; e++)
        for (int turn = 0; turn < 8; turn++) TN_SCOPE {
            int m = extents[e][0], n = extents[e][1];
            tn_set_compile(turn / 4 ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
            tn_array *a = turn & 1 ? tn_transpose(tn_full(TN_SHAPE(length, m), 0.1), (tn_axes){0})
                                   : tn_full(TN_SHAPE(m, length), 0.1);
            tn_array *b = turn & 2 ? tn_transpose(tn_full(TN_SHAPE(n, length), 0.1), (tn_axes){0})
                                   : tn_full(TN_SHAPE(length, n), 0.1);
            const float *value = test_data(tn_matmul(a, n == 1 ? tn_reshape(b, TN_SHAPE(length)) : b));
            assert_non_null(value);
            for (int i = 0; i < m * n; i++)
                if (!(fabs(value[i] - exact) <= 8200 * UNIT * exact))
                    fail_msg("product %d of %d x %d, turn %d: %.9g is %.3g units from %.9g", i, m, n, turn, value[i],
                             fabs(value[i] - exact) / UNIT / exact, exact);
        }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* Of few numbers, along any step: what comes first stays as it is, and small integers' sums are exact. */
static void test_short_scans(void **unused)
{
    (void)unused;
    for (int n = 1; n <= 13; n++)
        for (int step = -3; step <= 3; step++) TN_SCOPE {
            if (!step)
                continue;
            tn_array *x = tn_cast(tn_random_integers(-99, 99, TN_SHAPE(n * abs(step))), TN_FLOAT32);
            tn_array *some = tn_slice_axis(x, 0, TN_NONE, TN_NONE, step);
            const float *in = test_data(tn_add(some, 0)), *sums = test_data(tn_cumsum(some));
            const float *both = test_data(tn_cumsum(tn_complex(some, tn_multiply(some, 2))));
            float sum = 0;
            assert_true(in && sums && both);
            for (int i = 0; i < n; i++) {
                sum += in[i];
                assert_true(sums[i] == sum && both[2 * i] == sum && both[2 * i + 1] == 2 * sum);
            }
        }
    if (test_device().kind == TN_DEVICE_CUDA)
        return; /* what a block begins with is 0 there */
    TN_SCOPE {
        tn_array *nothing = tn_negative(tn_zeros(TN_SHAPE(6)));
        const float *sums = test_data(tn_cumsum(nothing));
        for (int i = 0; i < 6; i++)
            assert_true(sums[i] == 0 && signbit(sums[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound), cmocka_unit_test(test_scans_and_dots),
                                       cmocka_unit_test(test_long_products),
                                       cmocka_unit_test(test_short_scans),
                                       cmocka_unit_test(test_same_bits_of_lengths),
                                       cmocka_unit_test(test_moments), cmocka_unit_test(test_ones)};
    state = (uint32_t)test_seed_new();
    tn_seed(state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
