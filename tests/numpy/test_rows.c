/* SPDX-License-Identifier: MIT */
/* Few long rows, which GPUs share among blocks, and rows that a block scans: variance and its gradient, softmax,
 * cumulative sums. Against float64 loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"
#include "support/read.h"

static test_random numbers;

static double *random_values(int64_t size, double about)
{
    double *x = malloc((size_t)(size + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < size; i++)
        x[i] = (float)(about + 2 * test_random_double(&numbers) - 1);
    return x;
}

static tn_array *array_of(const double *x, tn_shape shape, tn_dtype dtype)
{
    tn_array *y = tn_cast(tn_from_host(x, shape, TN_FLOAT64), dtype);
    assert_int_equal(tn_eval(y), TN_OK);
    return y;
}

static double variance_of(const double *x, int64_t size, double ddof)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < size; i++)
        mean += x[i];
    mean /= (double)size;
    for (int64_t i = 0; i < size; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / ((double)size - ddof);
}

static void near(const double *got, const double *wanted, int64_t size, double tolerance, const char *what, int detail)
{
    int64_t i = 0;
    while (i < size && fabs(got[i] - wanted[i]) <= tolerance * fmax(1, fabs(wanted[i])))
        i++;
    if (i < size)
        fail_msg("%s %d: element %lld is %.9g, not %.9g", what, detail, (long long)i, got[i], wanted[i]);
}

/* Of all elements, or of few rows, in shapes that are cut into groups in different ways, and in none. */
static void test_variance(void **state)
{
    (void)state;
    static const struct {
        int ndim;
        int64_t dim[3];
        int first; /* of the reduced axes */
        double about, ddof;
        tn_dtype dtype;
    } cases[] = {{1, {1 << 22}, 0, 0, 0, TN_FLOAT32},          {1, {(1 << 22) + 4}, 0, 30, 1, TN_FLOAT32},
                 {1, {(1 << 22) + 17}, 0, 3, 0, TN_FLOAT32},   {2, {2, 3000000}, 1, 0, 1, TN_FLOAT32},
                 {3, {600, 100, 70}, 0, 100, 0, TN_FLOAT32},   {3, {5, 500, 1700}, 1, -7, 1, TN_FLOAT64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE
        {
            int64_t size = 1, rows = 1;
            tn_shape shape = {.ndim = cases[i].ndim};
            tn_axes axes = {0};
            for (int d = 0; d < shape.ndim; d++) {
                shape.dim[d] = cases[i].dim[d];
                size *= shape.dim[d];
                rows *= d < cases[i].first ? shape.dim[d] : 1;
                if (d >= cases[i].first)
                    axes.axis[axes.count++] = d;
            }
            double *x = random_values(size, cases[i].about), wanted[8];
            tn_array *y = array_of(x, shape, cases[i].dtype);
            double *var = test_doubles(tn_var(y, .axis = axes, .ddof = cases[i].ddof));
            double *root = test_doubles(tn_std(y, .axis = axes, .ddof = cases[i].ddof, .keepdims = true));
            double tolerance = cases[i].dtype == TN_FLOAT64 ? 1e-12 : 2e-6;
            for (int64_t r = 0; r < rows; r++)
                wanted[r] = variance_of(x + r * (size / rows), size / rows, cases[i].ddof);
            near(var, wanted, rows, tolerance, "variance", (int)i);
            for (int64_t r = 0; r < rows; r++)
                wanted[r] = sqrt(wanted[r]);
            near(root, wanted, rows, tolerance, "deviation", (int)i);
            free(x), free(var), free(root);
        }
}

static void test_variance_gradient(void **state)
{
    (void)state;
    enum { SIZE = 1 << 22 };
    TN_SCOPE
    {
        double *x = random_values(SIZE, 2), mean = 0;
        tn_array *y = array_of(x, TN_SHAPE(1 << 11, 1 << 11), TN_FLOAT64);
        y = tn_requires_grad(y);
        assert_int_equal(tn_backward(tn_var(y)), TN_OK);
        double *got = test_doubles(tn_grad(y));
        for (int64_t i = 0; i < SIZE; i++)
            mean += x[i] / SIZE;
        for (int64_t i = 0; i < SIZE; i++)
            x[i] = 2 * (x[i] - mean) / SIZE;
        near(got, x, SIZE, 1e-15, "gradient", 0);
        free(x), free(got);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{16, 140001}, {50, 50257}, {130, 17000}, {7, 30000}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        TN_SCOPE
        {
            const int64_t rows = shapes[s][0], columns = shapes[s][1];
            double *x = random_values(rows * columns, 0);
            tn_array *y = array_of(x, TN_SHAPE(rows, columns), TN_FLOAT32);
            double *got = test_doubles(tn_multiply(tn_softmax(y, 1), (double)columns));
            double *logs = test_doubles(tn_log_softmax(y, 1));
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0, *of = x + r * columns;
                for (int64_t i = 0; i < columns; i++)
                    sum += exp(of[i]);
                for (int64_t i = 0; i < columns; i++)
                    of[i] -= log(sum);
            }
            near(logs, x, rows * columns, 2e-6, "log_softmax", (int)s);
            for (int64_t i = 0; i < rows * columns; i++)
                x[i] = exp(x[i]) * (double)columns;
            near(got, x, rows * columns, 4e-6, "softmax", (int)s);
            free(x), free(got), free(logs);
        }
}

/* Of rows of some of a warp's lanes up to a tile and a little more; of a transposed array, too. */
static void test_cumsum(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,    2,    4,    5,    8,    9,    17,   31,   63,   64,  100,
                                      128,  129,  256,  300,  512,  513,  1000, 1024, 1025, 2048, 3001,
                                      4096, 8191, 8192, 8193, 20000};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_INT64};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        TN_SCOPE
        {
            const int64_t rows = 3 + 37 * (int64_t)(l % 3), columns = lengths[l];
            tn_dtype dtype = dtypes[l % 3];
            bool across = l % 2;
            double *x = random_values(rows * columns, 0), *wanted = malloc((size_t)(rows * columns) * sizeof *wanted);
            assert_non_null(wanted);
            for (int64_t i = 0; i < rows * columns && dtype == TN_INT64; i++)
                x[i] = floor(100 * x[i]);
            tn_array *y = array_of(x, across ? TN_SHAPE(columns, rows) : TN_SHAPE(rows, columns), dtype);
            double *got = test_doubles(tn_cumsum(across ? tn_swapaxes(y, 0, 1) : y, .axis = TN_AXES(1)));
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0;
                for (int64_t i = 0; i < columns; i++)
                    wanted[r * columns + i] = sum += across ? x[i * rows + r] : x[r * columns + i];
            }
            near(got, wanted, rows * columns, dtype == TN_FLOAT32 ? 1e-5 + 3e-8 * (double)columns : 1e-12,
                 "cumsum of", (int)columns);
            free(x), free(wanted), free(got);
        }
}

/* Of more tiles than a group has, which learn from each other what comes before them: whole numbers, which floats hold
 * exactly, so that one tile too many or too few shows. */
static void test_long_cumsum(void **state)
{
    (void)state;
    enum { LENGTH = 5000003 };
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_INT64};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        TN_SCOPE
        {
            tn_array *ones = tn_ones(TN_SHAPE(2, LENGTH), .dtype = dtypes[d]);
            double *got = test_doubles(tn_cumsum(ones, .axis = TN_AXES(1)));
            for (int64_t i = 0; i < 2 * (int64_t)LENGTH; i++)
                assert_true(got[i] == (double)(i % LENGTH + 1));
            free(got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variance), cmocka_unit_test(test_variance_gradient),
                                       cmocka_unit_test(test_softmax), cmocka_unit_test(test_cumsum),
                                       cmocka_unit_test(test_long_cumsum)};
    numbers = test_random_new();
    tn_set_compile(TN_COMPILE_ALWAYS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
