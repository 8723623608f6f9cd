/* SPDX-License-Identifier: MIT */
/*
 * Reductions along an axis that is not the last: of few rows, which a GPU's threads keep in registers from pass to
 * pass, and of more than they can. Against float64; sums, in the same order whatever is computed beside them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/random.h"
#include "support/read.h"

/* Arrays of shape (images, rows, columns), reduced along the rows; `skipped` columns in front of each row are cut off,
 * so that rows do not begin at multiples of 16 bytes. */
typedef struct block {
    int64_t images, rows, columns, skipped;
} block;

/* A view of fresh numbers about `about`; *values, which the caller frees, are the same in C order. */
static tn_array *draw(test_random *random, block b, tn_dtype dtype, double about, double **values)
{
    int64_t width = b.columns + b.skipped, count = b.images * b.rows * width;
    float *all = malloc((size_t)count * sizeof *all);
    assert_non_null(all);
    for (int64_t i = 0; i < count; i++)
        all[i] = (float)(about + 6 * test_random_double(random) - 3);
    tn_array *whole = tn_cast(tn_from_host(all, TN_SHAPE(b.images, b.rows, width), TN_FLOAT32), dtype);
    tn_array *view = tn_slice_axis(whole, 2, b.skipped, width, 1);
    *values = test_doubles(view);
    free(all);
    return view;
}

static void near(block b, const char *what, int64_t i, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%lld x %lld x %lld, %lld skipped: %s %lld is %.9g, expected %.9g", (long long)b.images,
                 (long long)b.rows, (long long)b.columns, (long long)b.skipped, what, (long long)i, got, expected);
}

/* Softmax, its logarithm, what has mean 0 and variance 1, and gradients weighted by y. What is divided by a small
 * deviation has its errors, too. */
static void check(test_random *random, block b, tn_dtype dtype)
{
    const double tolerance = dtype == TN_FLOAT32 ? 2e-6 : 5e-3, eps = 1e-5;
    double *x, *y;
    tn_array *in = tn_requires_grad(draw(random, b, dtype, 1, &x)), *weight = draw(random, b, dtype, 0, &y), *back[2];
    tn_array *mean = tn_mean(in, .axis = TN_AXES(1), .keepdims = true),
             *spread = tn_rsqrt(tn_add(tn_var(in, .axis = TN_AXES(1), .keepdims = true), eps));
    tn_array *soft = tn_softmax(in, 1), *normal = tn_multiply(tn_subtract(in, mean), spread);
    assert_int_equal(tn_gradients(tn_sum(tn_multiply(soft, weight)), 1, (const tn_array *[]){in}, false, &back[0]),
                     TN_OK);
    assert_int_equal(tn_gradients(tn_sum(tn_multiply(normal, weight)), 1, (const tn_array *[]){in}, false, &back[1]),
                     TN_OK);
    double *share = test_doubles(soft), *log_share = test_doubles(tn_log_softmax(in, 1)), *one = test_doubles(normal),
           *slope[2] = {test_doubles(back[0]), test_doubles(back[1])};
    for (int64_t k = 0; k < b.images * b.columns; k++) {
        int64_t first = k / b.columns * b.rows * b.columns + k % b.columns, end = first + b.rows * b.columns;
        double total = 0, sum = 0, squares = 0, inner = 0, weights = 0, across = 0, n = (double)b.rows;
        for (int64_t i = first; i < end; i += b.columns)
            total += exp(x[i]), sum += x[i], weights += y[i];
        for (int64_t i = first; i < end; i += b.columns) {
            double apart = x[i] - sum / n;
            inner += exp(x[i]) / total * y[i], squares += apart * apart, across += apart * y[i];
        }
        double rate = 1 / sqrt(squares / n + eps);
        for (int64_t i = first; i < end; i += b.columns) {
            double p = exp(x[i]) / total, apart = x[i] - sum / n;
            near(b, "softmax", i, share[i], p, tolerance);
            near(b, "log softmax", i, log_share[i], log(p), tolerance);
            near(b, "normalized", i, one[i], apart * rate, 4 * tolerance * (1 + rate));
            near(b, "gradient of softmax", i, slope[0][i], p * (y[i] - inner), tolerance);
            near(b, "gradient of normalized", i, slope[1][i],
                 rate * (y[i] - weights / n - apart * rate * rate * across / n),
                 10 * tolerance * (1 + rate * (1 + rate * rate)));
        }
    }
    free(x), free(y), free(share), free(log_share), free(one), free(slope[0]), free(slope[1]);
}

static void test_passes(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const struct {
        block block;
        bool halves;
    } cases[] = {{{1, 1, 1, 0}, true},       {{2, 3, 7, 0}, true},      {{0, 5, 3, 0}, true},
                 {{3, 21, 130, 0}, true},    {{1, 5, 17000, 0}, false}, {{2, 64, 99, 1}, true},
                 {{1, 129, 4230, 0}, false}, {{5, 20, 36, 3}, true},    {{2, 257, 40, 0}, true},
                 {{1, 511, 58, 2}, false},   {{1, 512, 64, 0}, true},   {{1, 513, 64, 0}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int half = 0; half <= cases[i].halves; half++)
            TN_SCOPE {
                check(&random, cases[i].block, half ? TN_BFLOAT16 : TN_FLOAT32);
            }
}

/* A sum alone has the bits of that beside a variance, and of that from which a mean is made and taken off: their
 * columns are spread otherwise. */
static void test_order(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const block blocks[] = {{1, 130, 33792, 0}, {1, 260, 33792, 0}, {1, 33, 270336, 0}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        TN_SCOPE {
            double *values;
            tn_array *x = draw(&random, blocks[i], TN_FLOAT32, 1, &values), *sum[3];
            for (int k = 0; k < 3; k++)
                sum[k] = tn_sum(x, .axis = TN_AXES(1), .keepdims = true);
            tn_array *less = tn_subtract(x, tn_divide(sum[2], (double)blocks[i].rows));
            assert_int_equal(tn_eval(x), TN_OK);
            assert_int_equal(tn_eval(sum[0]), TN_OK);
            assert_int_equal(tn_eval_all(2, (const tn_array *[]){sum[1], tn_var(x, .axis = TN_AXES(1))}), TN_OK);
            assert_int_equal(tn_eval_all(2, (const tn_array *[]){sum[2], less}), TN_OK);
            double *alone = test_doubles(sum[0]), *beside = test_doubles(sum[1]), *within = test_doubles(sum[2]);
            for (int64_t k = 0; k < blocks[i].columns; k++)
                assert_true(alone[k] == beside[k] && alone[k] == within[k]);
            free(values), free(alone), free(beside), free(within);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
