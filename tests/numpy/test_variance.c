/* SPDX-License-Identifier: MIT */
/* Variances of much: numbers are read once on a GPU, so no mean is known before. Against float64 and two passes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"
#include "support/read.h"

enum { MOST_AXES = 3 };

/* Numbers about `about`, of deviation 1, and what their first one is instead. */
typedef struct numbers {
    double about, first;
} numbers;

static float *draw(test_random *random, int64_t count, numbers how)
{
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(how.about + sqrt(12) * (test_random_double(random) - 0.5));
    x[0] = (float)how.first;
    return x;
}

/* The reduced variances by two passes in float64, in C order of the kept axes; their number. */
static int64_t expect_variance(const float *x, int ndim, const int64_t *dim, uint32_t reduced, double *variance)
{
    int64_t size = 1, kept = 1, step[MOST_AXES];
    for (int d = ndim - 1; d >= 0; d--) {
        step[d] = reduced >> d & 1 ? 0 : kept;
        kept *= reduced >> d & 1 ? 1 : dim[d];
        size *= dim[d];
    }
    double *mean = calloc((size_t)kept, sizeof *mean);
    assert_non_null(mean);
    for (int64_t k = 0; k < kept; k++)
        variance[k] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < size; i++) {
            int64_t at = 0, rest = i;
            for (int d = ndim - 1; d >= 0; rest /= dim[d], d--)
                at += rest % dim[d] * step[d];
            double each = (double)kept / (double)size, apart = x[i] - mean[at];
            if (pass == 0)
                mean[at] += x[i] * each;
            else
                variance[at] += apart * apart * each;
        }
    free(mean);
    return kept;
}

static void check(test_random *random, int ndim, const int64_t *dim, uint32_t reduced, numbers how, double tolerance)
{
    tn_shape shape = {.ndim = ndim};
    tn_axes axes = {0};
    int64_t size = 1;
    for (int d = 0; d < ndim; d++) {
        size *= shape.dim[d] = dim[d];
        if (reduced >> d & 1)
            axes.axis[axes.count++] = d;
    }
    float *values = draw(random, size, how);
    double *expected = malloc((size_t)size * sizeof *expected);
    assert_non_null(expected);
    int64_t kept = expect_variance(values, ndim, dim, reduced, expected);
    tn_array *x = tn_from_host(values, shape, TN_FLOAT32), *mean = tn_mean(x, .axis = axes, .keepdims = true);
    tn_array *scaled = tn_mean(tn_square(tn_divide(tn_subtract(x, mean), tn_std(x, .axis = axes, .keepdims = true))),
                               .axis = axes);
    double *variance = test_doubles(tn_var(x, .axis = axes)), *one = test_doubles(scaled);
    for (int64_t k = 0; k < kept; k++) {
        if (!(fabs(variance[k] - expected[k]) <= tolerance * expected[k]))
            fail_msg("%d axes, 0x%x reduced, about %g, first %g: variance %lld is %.9g, expected %.9g", ndim,
                     (unsigned)reduced, how.about, how.first, (long long)k, variance[k], expected[k]);
        assert_true(fabs(one[k] - 1) <= 10 * tolerance); /* used by what is around it */
    }
    free(values), free(expected), free(variance), free(one);
}

static void test_axes(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const struct {
        int ndim;
        int64_t dim[MOST_AXES];
        uint32_t reduced;
    } cases[] = {{2, {65536, 64}, 1},    {2, {4099, 1027}, 1},      {2, {300, 15001}, 1},
                 {2, {2100003, 2}, 1},   {1, {4194305}, 1},         {2, {3, 1400001}, 2},
                 {3, {33, 1000, 130}, 1 | 4}, {3, {41, 400, 261}, 2}, {2, {250, 16800}, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE {
            check(&random, cases[i].ndim, cases[i].dim, cases[i].reduced, (numbers){3, 3}, 3e-6);
        }
}

/* Far from 0, and with a first number far from the others: squares of the numbers themselves, or of what they differ
 * from the first one by, would keep hardly a digit of these. Two passes lose the square of the mean's rounding. */
static void test_digits(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const int64_t columns[] = {70000, 60}, all[] = {4500000};
    static const numbers hows[] = {{1e4, 1e4}, {-3e3, 0}, {0, 2e3}};
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++)
        TN_SCOPE {
            if (h < 2)
                check(&random, 2, columns, 1, hows[h], 1e-4);
            if (h > 0)
                check(&random, 1, all, 1, hows[h], 1e-4);
        }
}

/* Where all are equal, one is no number or infinite, or squares are beyond what a float holds. */
static void test_ends(void **state)
{
    (void)state;
    enum { ROWS = 700001, EQUAL = 0, INFINITE, NONE, FIRST, LARGE, HALF, COLUMNS };
    float *values = malloc(sizeof(float[ROWS][COLUMNS]));
    assert_non_null(values);
    for (int i = 0; i < ROWS; i++) {
        float *row = values + i * COLUMNS;
        row[EQUAL] = 2.7f;
        row[INFINITE] = i == 1000 ? INFINITY : 1;
        row[NONE] = i == ROWS - 1 ? NAN : 1;
        row[FIRST] = i == 0 ? -INFINITY : (float)i;
        row[LARGE] = i % 2 ? 1e25f : -1e25f;
        row[HALF] = (float)(i % 2);
    }
    TN_SCOPE {
        tn_array *x = tn_from_host(values, TN_SHAPE(ROWS, COLUMNS), TN_FLOAT32);
        double *variance = test_doubles(tn_var(x, .axis = TN_AXES(0)));
        assert_true(variance[EQUAL] <= 1e-8); /* the mean of many is rounded */
        assert_true(isnan(variance[INFINITE]) && isnan(variance[NONE]) && isnan(variance[FIRST]));
        assert_true(variance[LARGE] == INFINITY);
        assert_true(fabs(variance[HALF] - 0.25) <= 1e-6);
        free(variance);
    }
    free(values);
}

/* The derivative 2 (x - mean) / n, and that of the sum of its squares. */
static void test_gradient(void **state)
{
    (void)state;
    enum { ROWS = 100003, COLUMNS = 43 };
    test_random random = test_random_new();
    float *values = draw(&random, (int64_t)ROWS * COLUMNS, (numbers){2, 2});
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_from_host(values, TN_SHAPE(ROWS, COLUMNS), TN_FLOAT32)), *first, *second;
        tn_array *y = tn_sum(tn_var(x, .axis = TN_AXES(0)));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &first), TN_OK);
        tn_array *again = tn_sum(tn_square(tn_multiply(first, ROWS)));
        assert_int_equal(tn_gradients(again, 1, (const tn_array *[]){x}, false, &second), TN_OK);
        double *slope = test_doubles(tn_multiply(first, ROWS)), *curve = test_doubles(second), mean[COLUMNS] = {0};
        for (int64_t i = 0; i < (int64_t)ROWS * COLUMNS; i++)
            mean[i % COLUMNS] += values[i] / (double)ROWS;
        for (int64_t i = 0; i < (int64_t)ROWS * COLUMNS; i++) {
            double apart = values[i] - mean[i % COLUMNS];
            assert_true(fabs(slope[i] - 2 * apart) <= 1e-5);
            assert_true(fabs(curve[i] - 8 * apart) <= 1e-4);
        }
        free(slope), free(curve);
    }
    free(values);
}

/* Of one number each, the variance is 0. Columns of few numbers, which one thread has. */
static void test_few(void **state)
{
    (void)state;
    enum { MANY = 4200000, COLUMNS = 1700000 };
    for (int axis = 0; axis < 2; axis++)
        TN_SCOPE {
            tn_array *x = tn_reshape(tn_arange(0, MANY, 1, .dtype = TN_FLOAT32),
                                     axis ? TN_SHAPE(MANY, 1) : TN_SHAPE(1, MANY));
            assert_true(tn_item(tn_max(tn_abs(tn_var(x, .axis = TN_AXES(axis))))) == 0);
        }
    float *values = malloc(sizeof(float[3][COLUMNS]));
    assert_non_null(values);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < COLUMNS; c++)
            values[i * COLUMNS + c] = i < c % 4 - 1 ? INFINITY : (float)((i + 1) * (c % 5));
    values[COLUMNS + 4] = -INFINITY; /* behind and before finite ones */
    TN_SCOPE {
        double *variance = test_doubles(tn_var(tn_from_host(values, TN_SHAPE(3, COLUMNS), TN_FLOAT32),
                                               .axis = TN_AXES(0)));
        for (int c = 0; c < COLUMNS; c++) {
            double step = c % 5, expected = step * step * 2 / 3;
            assert_true(c % 4 > 1 || c == 4 ? isnan(variance[c]) : fabs(variance[c] - expected) <= 1e-5 * expected);
        }
        free(variance);
    }
    free(values);
}

/* The bits of sums do not depend on what is computed along with them. */
static void test_beside(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const struct {
        int64_t rows, columns;
        int axis;
    } cases[] = {{3000, 1500, 1}, {3000, 1500, 0}, {70, 61000, 1},  {61000, 70, 0},
                 {130, 77, 1},    {40000, 200, 0}, {20000, 24, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE {
            int64_t size = cases[i].rows * cases[i].columns;
            float *values = draw(&random, size, (numbers){1, 1});
            tn_array *x = tn_from_host(values, TN_SHAPE(cases[i].rows, cases[i].columns), TN_FLOAT32);
            tn_axes axis = TN_AXES(cases[i].axis);
            tn_array *sum = tn_sum(x, .axis = axis), *beside = tn_sum(x, .axis = axis);
            const tn_array *all[] = {beside, tn_max(x, .axis = axis), tn_min(x, .axis = axis), tn_var(x, .axis = axis),
                                     tn_sum(tn_abs(x), .axis = axis), tn_prod(x, .axis = axis)};
            assert_int_equal(tn_eval(sum), TN_OK);
            assert_int_equal(tn_eval_all(i % 2 ? 6 : 4, all), TN_OK);
            double *alone = test_doubles(sum), *together = test_doubles(beside);
            for (int64_t k = 0; k < tn_size(sum); k++)
                assert_true(alone[k] == together[k]);
            free(values), free(alone), free(together);
        }
}

/* Nor do they on when numbers that are drawn, or made of a row and a column, are: as they are added, or before. */
static void test_made(void **state)
{
    (void)state;
    enum { ROWS = 256, COLUMNS = 1024 };
    const uint64_t seed = test_seed_new();
    tn_shape whole = TN_SHAPE(ROWS, COLUMNS);
    for (int made = 0; made < 4; made++)
        TN_SCOPE {
            tn_dtype dtype = made % 2 ? TN_FLOAT64 : TN_FLOAT32;
            tn_array *row = tn_random_normal(TN_SHAPE(COLUMNS), .dtype = dtype);
            tn_array *column = tn_random_normal(TN_SHAPE(ROWS, 1), .dtype = dtype);
            assert_int_equal(tn_eval_all(2, (const tn_array *[]){row, column}), TN_OK);
            tn_array *sum[2];
            for (int before = 0; before < 2; before++) {
                tn_seed(seed);
                tn_array *x = made / 2 ? tn_multiply(row, column) : tn_random_normal(whole, .dtype = dtype);
                if (before)
                    assert_int_equal(tn_eval(x), TN_OK);
                sum[before] = tn_sum(x, .axis = TN_AXES(1));
                assert_int_equal(tn_eval(sum[before]), TN_OK);
            }
            double *fused = test_doubles(sum[0]), *apart = test_doubles(sum[1]);
            for (int64_t k = 0; k < ROWS; k++)
                assert_true(fused[k] == apart[k]);
            free(fused), free(apart);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_axes), cmocka_unit_test(test_digits),
                                       cmocka_unit_test(test_ends), cmocka_unit_test(test_gradient),
                                       cmocka_unit_test(test_few), cmocka_unit_test(test_beside),
                                       cmocka_unit_test(test_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
