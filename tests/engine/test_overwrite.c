/* SPDX-License-Identifier: MIT */
/* Results that take over an input's memory inside one kernel, while other results are computed from that input. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/random.h"
#include "support/read.h"

enum { N = 37 };

typedef struct results {
    float log[N], root[N], sum[N];
} results;

static results evaluate(tn_compile_mode mode)
{
    results r;
    tn_set_compile(mode);
    TN_SCOPE {
        tn_array *x = tn_add(tn_arange(0, N, 1, .dtype = TN_FLOAT32), 1.0);
        assert_int_equal(tn_eval(x), TN_OK);
        /* the same elements under two shapes; x itself is let go, so that its memory may be taken over */
        tn_array *y = tn_log1p(x), *view = tn_reshape(x, TN_SHAPE(N, 1)), *z = tn_sqrt(view), *w = tn_add(view, 0.5);
        tn_free(x);
        tn_free(view);
        const tn_array *roots[] = {y, z, w};
        assert_int_equal(tn_eval_all(3, roots), TN_OK);
        assert_int_equal(tn_to_host(y, r.log, sizeof r.log), TN_OK);
        assert_int_equal(tn_to_host(z, r.root, sizeof r.root), TN_OK);
        assert_int_equal(tn_to_host(w, r.sum, sizeof r.sum), TN_OK);
    }
    return r;
}

static void test_inputs_are_read_before_they_are_overwritten(void **state)
{
    (void)state;
    results expected = evaluate(TN_COMPILE_NEVER), got = evaluate(TN_COMPILE_ALWAYS);
    assert_true(expected.root[8] == 3 && expected.sum[8] == 9.5f);
    assert_memory_equal(&got, &expected, sizeof got);
    tn_set_compile(TN_COMPILE_AUTO);
}

/*
 * A number g for each row or column takes part in what is made of all elements, in the pass behind a sum, and its next
 * value is made of that sum: others may still read it. x (x - s) g, where s is the sum of x, or of x g, and g - s / 10.
 */
static void check_parameters(test_random *random, int rows, int columns, int axis, bool in_sum)
{
    int64_t dim[2] = {rows, columns}, length = dim[axis], count = dim[1 - axis], step = axis ? 1 : columns,
            next = axis ? columns : 1;
    float *values = malloc((size_t)(rows * columns) * sizeof *values), *scales = malloc((size_t)count * sizeof *scales);
    assert_true(values && scales);
    for (int i = 0; i < rows * columns; i++)
        values[i] = (float)(test_random_double(random) - 0.5);
    for (int64_t k = 0; k < count; k++)
        scales[k] = (float)(1 + test_random_double(random));
    TN_SCOPE {
        tn_array *x = tn_from_host(values, TN_SHAPE(rows, columns), TN_FLOAT32);
        tn_array *g = tn_from_host(scales, axis ? TN_SHAPE(rows, 1) : TN_SHAPE(1, columns), TN_FLOAT32);
        assert_int_equal(tn_eval_all(2, (const tn_array *[]){x, g}), TN_OK);
        tn_array *sum = tn_sum(in_sum ? tn_multiply(x, g) : x, .axis = TN_AXES(axis), .keepdims = true);
        tn_array *y = tn_multiply(tn_multiply(x, tn_subtract(x, sum)), g),
                 *after = tn_subtract(g, tn_multiply(sum, 0.1));
        tn_free(g);
        assert_int_equal(tn_eval_all(2, (const tn_array *[]){y, after}), TN_OK);
        double *got = test_doubles(y), *scale = test_doubles(after);
        for (int64_t k = 0; k < count; k++) {
            double s = 0, most = 0;
            for (int64_t i = 0; i < length; i++) {
                double term = values[k * next + i * step] * (in_sum ? scales[k] : 1.0);
                s += term;
                most += fabs(term);
            }
            /* No partial sum is more than `most`; n roundings of it, up and down, are some sqrt(n) of them. */
            double error = 1.2e-7 * (30 + sqrt((double)length)) * (1 + most / sqrt((double)length));
            assert_true(fabs(scale[k] - (scales[k] - 0.1 * s)) <= error);
            for (int64_t i = k * next, n = 0; n < length; i += step, n++)
                assert_true(fabs(got[i] - values[i] * (values[i] - s) * scales[k]) <= error * (1 + fabs(s)));
        }
        free(got), free(scale);
    }
    free(values), free(scales);
}

static void test_parameters_are_read_before_they_are_overwritten(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const int shapes[][2] = {{3, 5},    {40, 30},  {30, 800},  {513, 256},
                                    {900, 70}, {2, 9000}, {64, 3000}, {2, 30000}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int axis = 0; axis < 2; axis++)
            for (int in_sum = 0; in_sum < 2; in_sum++)
                check_parameters(&random, shapes[i][0], shapes[i][1], axis, in_sum);
}

/* Rows leave an array for another one while new ones come into their place. */
static void test_moves_are_read_before_they_are_overwritten(void **state)
{
    (void)state;
    enum { ROWS = 100, FEW = 10, MORE = 5, COLUMNS = 700 };
    float *values = malloc(sizeof(float[ROWS][COLUMNS]));
    assert_non_null(values);
    for (int swapped = 0; swapped < 2; swapped++)
        TN_SCOPE {
            for (int i = 0; i < ROWS * COLUMNS; i++)
                values[i] = i % 1000;
            tn_array *list = tn_from_host(values, TN_SHAPE(ROWS, COLUMNS), TN_FLOAT32),
                     *in = tn_full(TN_SHAPE(FEW, COLUMNS), -2.0), *more = tn_full(TN_SHAPE(MORE, COLUMNS), -3.0);
            assert_int_equal(tn_eval_all(3, (const tn_array *[]){list, in, more}), TN_OK);
            tn_slice_range first = {0, FEW, 1};
            tn_array *gone = tn_slice(list, 1, &first);
            tn_array *out = tn_concatenate(2, (const tn_array *[]){gone, more}, 0);
            tn_array *list_after = tn_slice_update(list, 1, &first, in);
            tn_free(list), tn_free(gone);
            const tn_array *roots[] = {swapped ? out : list_after, swapped ? list_after : out};
            assert_int_equal(tn_eval_all(2, roots), TN_OK);
            double *after = test_doubles(list_after), *left = test_doubles(out);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                assert_true(after[i] == (i < FEW * COLUMNS ? -2 : values[i]));
            for (int i = 0; i < (FEW + MORE) * COLUMNS; i++)
                assert_true(left[i] == (i < FEW * COLUMNS ? values[i] : -3));
            free(after), free(left);
        }
    free(values);
}

/* The same of numbers for the rows or columns of a product, of which so much else is read that they are read last. */
static void check_product(int axis, int rows, int columns)
{
    enum { DEPTH = 64, OTHERS = 4 };
    int64_t count = axis ? rows : columns, length = axis ? columns : rows;
    double *other[OTHERS], *scales = malloc((size_t)count * sizeof *scales), *left, *right;
    assert_non_null(scales);
    for (int64_t k = 0; k < count; k++)
        scales[k] = 1 + (double)(k % 7) / 7;
    TN_SCOPE {
        tn_shape whole = TN_SHAPE(rows, columns);
        tn_array *a = tn_random_normal(TN_SHAPE(rows, DEPTH), .dtype = TN_FLOAT64), *x[OTHERS],
                 *b = tn_random_normal(TN_SHAPE(DEPTH, columns), .dtype = TN_FLOAT64),
                 *g = tn_from_host(scales, axis ? TN_SHAPE(rows, 1) : TN_SHAPE(1, columns), TN_FLOAT64);
        for (int k = 0; k < OTHERS; k++)
            x[k] = tn_random_normal(whole, .dtype = TN_FLOAT64);
        assert_int_equal(tn_eval_all(7, (const tn_array *[]){a, b, g, x[0], x[1], x[2], x[3]}), TN_OK);
        for (int k = 0; k < OTHERS; k++)
            other[k] = test_doubles(x[k]);
        left = test_doubles(a), right = test_doubles(b);
        tn_array *p = tn_matmul(a, b), *sum = tn_sum(p, .axis = TN_AXES(axis), .keepdims = true);
        tn_array *y = tn_multiply(tn_subtract(p, sum), x[0]);
        y = tn_multiply(tn_add(tn_multiply(tn_add(y, x[1]), x[2]), x[3]), g);
        tn_array *after = tn_subtract(g, tn_multiply(sum, 0.1));
        tn_free(g);
        assert_int_equal(tn_eval_all(2, (const tn_array *[]){y, after}), TN_OK);
        double *got = test_doubles(y), *scale = test_doubles(after), *product = calloc((size_t)(rows * columns), 8);
        assert_non_null(product);
        for (int64_t i = 0; i < (int64_t)rows * columns; i++)
            for (int k = 0; k < DEPTH; k++)
                product[i] += left[i / columns * DEPTH + k] * right[k * columns + i % columns];
        for (int64_t k = 0; k < count; k++) {
            double s = 0;
            for (int64_t n = 0; n < length; n++)
                s += product[axis ? k * columns + n : n * columns + k];
            assert_true(fabs(scale[k] - (scales[k] - 0.1 * s)) <= 1e-10);
            for (int64_t n = 0; n < length; n++) {
                int64_t i = axis ? k * columns + n : n * columns + k;
                double expected =
                    (((product[i] - s) * other[0][i] + other[1][i]) * other[2][i] + other[3][i]) * scales[k];
                assert_true(fabs(got[i] - expected) <= 1e-10 * (1 + fabs(s)));
            }
        }
        free(got), free(scale), free(product);
    }
    for (int k = 0; k < OTHERS; k++)
        free(other[k]);
    free(scales), free(left), free(right);
}

static void test_products_read_before_they_overwrite(void **state)
{
    (void)state;
    tn_seed(test_seed_new());
    check_product(0, 128, 32);
    check_product(0, 64, 300);
    check_product(1, 500, 16);
    check_product(1, 2000, 32);
}

/* Whole numbers, as float32 on the device. */
static tn_array *whole(int64_t rows, int64_t columns)
{
    tn_array *x = tn_cast(tn_random_integers(-2, 3, TN_SHAPE(rows, columns)), TN_FLOAT32);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

/* Between two products, what differs from the largest element of a row or a column, and a label's element: as one plan,
 * which writes the differences over the first product, and with each array computed by itself. */
static void test_temporaries_are_read_before_they_are_overwritten(void **state)
{
    (void)state;
    enum { ROWS = 1024, COLUMNS = 260 };
    tn_seed(test_seed_new());
    for (int round = 0; round < 4; round++) /* each graph twice: it is compiled then */
        TN_SCOPE {
            tn_array *a = whole(ROWS, 2), *b = whole(2, COLUMNS), *c = whole(COLUMNS, 3);
            tn_array *labels = tn_random_integers(0, COLUMNS, TN_SHAPE(ROWS, 1));
            assert_int_equal(tn_eval(labels), TN_OK);
            tn_array *got[2], *right[2];
            for (int apart = 0; apart < 2; apart++) {
                tn_array **y = apart ? right : got;
                tn_array *product = tn_matmul(a, b);
                if (apart)
                    assert_int_equal(tn_eval(product), TN_OK);
                tn_array *largest = tn_max(product, .axis = TN_AXES(round % 2), .keepdims = true);
                if (apart)
                    assert_int_equal(tn_eval(largest), TN_OK);
                tn_array *below = tn_subtract(tn_subtract(product, largest), product);
                below = tn_add(tn_multiply(below, 3), product);
                if (apart)
                    assert_int_equal(tn_eval(below), TN_OK);
                y[0] = tn_matmul(below, c);
                y[1] = tn_take_along_axis(product, labels, 1);
                assert_int_equal(tn_eval_all(2, (const tn_array *[]){y[0], y[1]}), TN_OK);
            }
            for (int k = 0; k < 2; k++)
                assert_true(tn_array_equal(got[k], right[k], false));
        }
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs_are_read_before_they_are_overwritten),
                                       cmocka_unit_test(test_parameters_are_read_before_they_are_overwritten),
                                       cmocka_unit_test(test_moves_are_read_before_they_are_overwritten),
                                       cmocka_unit_test(test_products_read_before_they_overwrite),
                                       cmocka_unit_test(test_temporaries_are_read_before_they_are_overwritten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
