/* SPDX-License-Identifier: MIT */
/* Backward through recordings several times as deep as is recorded before an evaluation: the gradients are right, and
 * what they share is computed a few times, not once a gradient. */
#include "autograd/helpers.h"

#include <math.h>
#include <tanso/base.h>
#include <tanso/device.h>
#include <tanso/stream.h>

#include "array/node.h"
#include "support/device.h"

/* Where a recording is cut is the same everywhere; a GPU's compiler takes minutes for ones as long. */
static void needs_operations(void)
{
    if (test_device().kind == TN_DEVICE_CUDA)
        skip();
}

enum { ROUNDS = 600, DEEP = 5 * ROUNDS };

/* ---- a recurrence of two states, and the same in C ---- */

/* a = tanh(a w + b), b = b u - a / 10, from a = 0.3 and b = 0.2; and the sum of the last a. */
static double in_c(int rounds, const double w[2], const double u[2], double gw[2], double gu[2])
{
    static double a[ROUNDS + 1][2], b[ROUNDS + 1][2];
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        a[0][k] = 0.3;
        b[0][k] = 0.2;
        for (int i = 0; i < rounds; i++) {
            a[i + 1][k] = tanh(a[i][k] * w[k] + b[i][k]);
            b[i + 1][k] = b[i][k] * u[k] - a[i + 1][k] / 10;
        }
        sum += a[rounds][k];
        double ga = 1, gb = 0;
        gw[k] = gu[k] = 0;
        for (int i = rounds; i-- > 0;) {
            ga -= gb / 10;
            gu[k] += gb * b[i][k];
            gb *= u[k];
            double g = ga * (1 - a[i + 1][k] * a[i + 1][k]);
            gw[k] += g * a[i][k];
            gb += g;
            ga = g * w[k];
        }
    }
    return sum;
}

static const double w_values[2] = {1.05, 0.9}, u_values[2] = {0.95, 0.97};

typedef struct problem {
    tn_array *w, *u, *sum;
} problem;

static tn_array *next_a(const problem *p, const tn_array *a, const tn_array *b)
{
    return tn_tanh(tn_add(tn_multiply(a, p->w), b));
}

static tn_array *next_b(const problem *p, const tn_array *a, const tn_array *b)
{
    return tn_subtract(tn_multiply(b, p->u), tn_divide(a, 10));
}

/* few: of each round only the states keep their handles, and not for long. */
static problem record(int rounds, bool few)
{
    problem p = {.w = tn_requires_grad(tn_from_doubles(w_values, 2)),
                 .u = tn_requires_grad(tn_from_doubles(u_values, 2))};
    tn_array *a = tn_full(TN_SHAPE(2), 0.3, .dtype = TN_FLOAT64), *b = tn_full(TN_SHAPE(2), 0.2, .dtype = TN_FLOAT64);
    for (int i = 0; i < rounds; i++) {
        tn_array *last_a = a, *last_b = b;
        TN_SCOPE
        {
            a = tn_keep(next_a(&p, last_a, last_b));
            b = tn_keep(next_b(&p, a, last_b));
        }
        if (!few)
            continue;
        tn_free(last_a);
        tn_free(last_b);
    }
    p.sum = tn_sum(a);
    return p;
}

static uint64_t evaluations(void) { return tn_engine_stats().evaluations; }

static void test_gradients(void **state)
{
    (void)state;
    needs_operations();
    double gw[2], gu[2], sum = in_c(ROUNDS, w_values, u_values, gw, gu);
    for (int few = 0; few < 2; few++) {
        uint64_t before = evaluations();
        problem p = record(ROUNDS, few);
        assert_int_equal(tn_backward(p.sum), TN_OK);
        assert_values(tn_grad(p.w), 2, gw, 1e-9);
        assert_values(tn_grad(p.u), 2, gu, 1e-9);
        assert_values(p.sum, 1, &sum, 1e-12);
        assert_true(evaluations() - before < 24);
    }
}

/* Interior arrays' gradients, and those of arrays that gradients stop at, are results as well. */
static void test_inner_targets(void **state)
{
    (void)state;
    needs_operations();
    double gw[2], gu[2];
    in_c(ROUNDS, w_values, u_values, gw, gu);
    problem p = record(ROUNDS, true);
    tn_array *doubled = tn_multiply(p.sum, 2), *deep = doubled, *g[3];
    for (int i = 0; i < DEEP; i++)
        deep = tn_negative(deep);
    uint64_t before = evaluations();
    assert_int_equal(tn_gradients(deep, 3, (const tn_array *[]){p.w, doubled, p.u}, false, g), TN_OK);
    for (int k = 0; k < 2; k++) {
        gw[k] *= 2;
        gu[k] *= 2;
    }
    assert_values(g[0], 2, gw, 1e-9);
    assert_values(g[1], 1, (const double[]){1}, 0);
    assert_values(g[2], 2, gu, 1e-9);
    assert_true(evaluations() - before < 40);
}

static void test_second_order(void **state)
{
    (void)state;
    needs_operations();
    problem p = record(ROUNDS / 2, true);
    tn_array *g;
    assert_int_equal(tn_gradients(p.sum, 1, (const tn_array *[]){p.w}, true, &g), TN_OK);
    assert_int_equal(tn_backward(tn_sum(g)), TN_OK);
    double expected[2], up[2], down[2], gu[2];
    for (int k = 0; k < 2; k++) {
        const double high[2] = {w_values[0] + 1e-5, w_values[1] + 1e-5};
        const double low[2] = {w_values[0] - 1e-5, w_values[1] - 1e-5};
        in_c(ROUNDS / 2, high, u_values, up, gu);
        in_c(ROUNDS / 2, low, u_values, down, gu);
        expected[k] = (up[k] - down[k]) / 2e-5;
    }
    assert_values(tn_grad(p.w), 2, expected, 0.01);
}

/* A chain that no gradient goes through lies beside the one that it does, and is as deep. */
static void test_beside(void **state)
{
    (void)state;
    needs_operations();
    uint64_t before = evaluations();
    tn_array *x = tn_requires_grad(tn_from_doubles((const double[]){0.5, 2}, 2)), *y = x;
    tn_array *round = tn_from_int64s((const int64_t[]){0, 0}, 2);
    for (int i = 0; i < DEEP / 2; i++) {
        y = tn_where(tn_less(round, 5), tn_square(y), tn_multiply(y, 1));
        round = tn_minimum(tn_add(round, 1), 10);
    }
    assert_int_equal(tn_backward(tn_sum(tn_log(y))), TN_OK);
    assert_values(tn_grad(x), 2, (const double[]){64, 16}, 1e-9);
    assert_true(evaluations() - before < 40);
}

/* What can't be computed on the way fails at the latest where the gradient is read. */
static void test_failure(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_doubles((const double[]){1, 2}, 2));
    tn_array *y = tn_take(x, tn_from_int64s((const int64_t[]){0, 7}, 2), 0);
    for (int i = 0; i < 1900; i++)
        y = tn_negative(y);
    tn_status status = tn_backward(tn_sum(tn_square(y)));
    assert_true(status != TN_OK || tn_eval(tn_grad(x)) != TN_OK || tn_synchronize(tn_device_of(x)) != TN_OK);
    assert_error(TN_ERR_INDEX, "7");
}

static int cut_early(void **state)
{
    (void)state;
    tn__set_max_depth(2000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_gradients), TEST(test_inner_targets), TEST(test_second_order),
                                       TEST(test_beside), TEST(test_failure)};
    return cmocka_run_group_tests(tests, cut_early, NULL);
}
