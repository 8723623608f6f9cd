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
            double s = 0;
            for (int64_t i = 0; i < length; i++)
                s += values[k * next + i * step] * (in_sum ? scales[k] : 1.0);
            assert_true(fabs(scale[k] - (scales[k] - 0.1 * s)) <= 1e-5);
            for (int64_t i = k * next, n = 0; n < length; i += step, n++)
                assert_true(fabs(got[i] - values[i] * (values[i] - s) * scales[k]) <= 1e-5 * (1 + fabs(s)));
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs_are_read_before_they_are_overwritten),
                                       cmocka_unit_test(test_parameters_are_read_before_they_are_overwritten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
