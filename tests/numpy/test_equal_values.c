/* SPDX-License-Identifier: MIT */
/* Gradients where values meet that functions look for: a median's middle ones, an interpolation's knots. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

static tn_array *doubles(int count, const double *values) { return tn_from_doubles(values, count); }

static void has_gradient(const char *name, const tn_array *y, const tn_array *x, int count, const double *expected)
{
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    const double *g = test_data(tn_grad(x));
    assert_non_null(g);
    for (int i = 0; i < count; i++)
        if (!(fabs(g[i] - expected[i]) <= 1e-12))
            fail_msg("%s: gradient %d is %g, expected %g", name, i, g[i], expected[i]);
}

/* Of two it is their mean, whose gradient does not depend on whether they are equal. */
static void test_median(void **state)
{
    (void)state;
    static const struct {
        double x[4], expected[4];
        int count;
    } cases[] = {
        {{2, 2}, {0.5, 0.5}, 2},
        {{1, 3}, {0.5, 0.5}, 2},
        {{4, 1, 1}, {0, 0, 1}, 3},
        {{3, 2, 1, 2}, {0, 0.5, 0, 0.5}, 4},
        {{5, 5, 5, 5}, {0, 0.5, 0.5, 0}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) TN_SCOPE {
        tn_array *x = tn_requires_grad(doubles(cases[i].count, cases[i].x));
        has_gradient("median", tn_median(x), x, cases[i].count, cases[i].expected);
        tn_clear_grad(x);
        has_gradient("nanmedian", tn_nanmedian(x), x, cases[i].count, cases[i].expected);
    }
    TN_SCOPE { /* and none overflows */
        assert_true(tn_item(tn_median(doubles(2, (double[]){1.5e308, 1.5e308}))) == 1.5e308);
        assert_true(tn_item(tn_median(doubles(2, (double[]){INFINITY, INFINITY}))) == INFINITY);
        assert_true(tn_item(tn_median(doubles(2, (double[]){5e-324, 5e-324}))) == 5e-324);
        assert_true(signbit(tn_item(tn_median(doubles(2, (double[]){-0.0, -0.0})))));
    }
}

/* On a straight line each place has the line's slope, knots and ends too. */
static void test_interp(void **state)
{
    (void)state;
    TN_SCOPE {
        const double at[] = {0, 0.5, 1, 2, 3}, slope[] = {2, 2, 2, 2, 2};
        tn_array *x = tn_requires_grad(doubles(5, at)), *px = doubles(4, (double[]){0, 1, 2, 3});
        tn_array *py = tn_requires_grad(doubles(4, (double[]){-2, 0, 2, 4})), *y = tn_interp(x, px, py, NULL, NULL);
        const double *value = test_data(y);
        for (int i = 0; i < 5; i++)
            assert_true(value[i] == 2 * at[i] - 2);
        has_gradient("interp", y, x, 5, slope);
        const double *g = test_data(tn_grad(py)); /* 0 and 1 by halves, and 0, 1, 2, 3 each wholly */
        assert_true(g[0] == 1.5 && g[1] == 1.5 && g[2] == 1 && g[3] == 1);
    }
    TN_SCOPE { /* the values at knots are the knots', bit for bit */
        tn_array *px = doubles(3, (double[]){0, 0.1, 0.7}), *py = doubles(3, (double[]){-0.0, INFINITY, 0.3});
        const double *value = test_data(tn_interp(px, px, py, NULL, NULL));
        assert_true(value[0] == 0 && signbit(value[0]) && value[1] == INFINITY && value[2] == 0.3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_median), cmocka_unit_test(test_interp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
