/* SPDX-License-Identifier: MIT */
/* Large matrices times vectors, with gradients and second gradients, which some devices compute as sums: of small
 * integers, which any order of adding gives exactly, by compiled kernels and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>
#include <tanso/exchange.h>

#include "support/device.h"
#include "support/random.h"

enum { M = 1100, N = 1920 }; /* more than 2^21 elements, from which on a product may be a sum */

static test_random chance;
static float matrix[M][N], weight[M][N], x[N], x2[N], c[M], c2[M];

static void fill(float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)test_random_int(&chance, -1, 1);
}

static tn_array *array_of(const float *data, tn_shape shape)
{
    return tn_to(tn_wrap((void *)(uintptr_t)data, shape, TN_FLOAT32), test_device());
}

static void expect(const tn_array *got, const char *what, int way, double (*want)(int64_t i))
{
    const float *data = test_data(got);
    if (!data)
        fail_msg("%s, way %d: %s", what, way, tn_error());
    for (int64_t i = 0; i < tn_size(got); i++)
        if (data[i] != want(i))
            fail_msg("%s, way %d, element %lld: %g, not %g", what, way, (long long)i, data[i], want(i));
}

static double along_row(const float *row, const float *by)
{
    double sum = 0;
    for (int j = 0; j < N; j++)
        sum += (double)row[j] * by[j];
    return sum;
}

static double along_column(float (*of)[N], int64_t j)
{
    double sum = 0;
    for (int i = 0; i < M; i++)
        sum += (double)of[i][j] * c[i];
    return sum;
}

static double value(int64_t i) { return along_row(matrix[i], x); }
static double gradient_of_vector(int64_t j) { return along_column(matrix, j); }
static double gradient_of_matrix(int64_t i) { return (double)c[i / N] * x[i % N]; }
static double second_of_vector(int64_t j) { return along_column(weight, j); }
static double second_of_matrix(int64_t i) { return (double)c[i / N] * x2[i % N]; }
static double of_two_uses(int64_t i) { return (double)c[i / N] * x[i % N] + (double)c2[i / N] * x2[i % N]; }

/* The matrix times a vector of N, spelt in several ways. */
static tn_array *product(const tn_array *a, const tn_array *v, int way)
{
    tn_array *across = tn_swapaxes(a, 0, 1), *line = tn_reshape(v, TN_SHAPE(1, -1));
    tn_array *y = way == 0   ? tn_matmul(a, v)
                  : way == 1 ? tn_matmul(v, across)
                  : way == 2 ? tn_matmul(line, across)
                             : tn_matmul(a, tn_swapaxes(line, 0, 1));
    return tn_reshape(y, TN_SHAPE(M));
}

static void test_products(void **state)
{
    (void)state;
    for (int run = 0; run < 8; run++) {
        int way = run / 2;
        tn_set_compile(run % 2 ? TN_COMPILE_NEVER : TN_COMPILE_ALWAYS);
        TN_SCOPE {
            tn_array *a = tn_requires_grad(array_of(matrix[0], TN_SHAPE(M, N)));
            tn_array *v = tn_requires_grad(array_of(x, TN_SHAPE(N))), *v2 = array_of(x2, TN_SHAPE(N));
            tn_array *by = array_of(c, TN_SHAPE(M)), *by2 = array_of(c2, TN_SHAPE(M)), *y = product(a, v, way);
            const tn_array *of[] = {a, v};
            tn_array *first[2], *second[2], *both[1];
            assert_int_equal(tn_gradients(tn_sum(tn_multiply(y, by)), 2, of, true, first), TN_OK);
            tn_array *all = tn_add(tn_sum(tn_multiply(first[0], array_of(weight[0], TN_SHAPE(M, N)))),
                                   tn_sum(tn_multiply(first[1], v2)));
            assert_int_equal(tn_gradients(all, 2, of, false, second), TN_OK);
            tn_array *sum =
                tn_add(tn_sum(tn_multiply(product(a, v, way), by)), tn_sum(tn_multiply(product(a, v2, way), by2)));
            assert_int_equal(tn_gradients(sum, 1, of, false, both), TN_OK);
            expect(y, "value", way, value);
            expect(first[0], "gradient of the matrix", way, gradient_of_matrix);
            expect(first[1], "gradient of the vector", way, gradient_of_vector);
            expect(second[0], "second gradient of the matrix", way, second_of_matrix);
            expect(second[1], "second gradient of the vector", way, second_of_vector);
            expect(both[0], "gradient of two uses", way, of_two_uses);
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    chance = test_random_new();
    fill(matrix[0], M * N);
    fill(weight[0], M * N);
    fill(x, N);
    fill(x2, N);
    fill(c, M);
    fill(c2, M);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
