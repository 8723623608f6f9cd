/* SPDX-License-Identifier: MIT */
/* Loops: arrays carried from round to round by tn_assign and its kin need a plan that comes again, whatever is read
 * when; values used twice in each round need no more than one operation each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "array/node.h"
#include "support/device.h"
#include "support/latched.h"

#define ROUNDS 400
#define FEW    24 /* plans of a loop: far fewer than rounds, whatever the scheduling of first and last rounds needs */

static uint64_t plans(void) { return tn_engine_stats().plan_misses; }

/* w -= lr g by hand, reading the loss every `every` rounds; never if that is 0. */
static void descend(int every)
{
    static const float start[3] = {3, -1, 2};
    tn_array *w = tn_own(tn_from_floats(start, 3));
    tn_requires_grad(w);
    uint64_t before = plans();
    double expected[3] = {3, -1, 2}, loss_expected = 0;
    for (int i = 0; i < ROUNDS; i++) TN_SCOPE {
        tn_array *loss = tn_sum(tn_square(w));
        assert_int_equal(tn_backward(loss), TN_OK);
        TN_NO_GRAD {
            assert_int_equal(tn_subtract_assign(w, tn_multiply(0.005, tn_grad(w))), TN_OK);
        }
        tn_clear_grad(w);
        loss_expected = 0;
        for (int k = 0; k < 3; k++) {
            loss_expected += expected[k] * expected[k];
            expected[k] *= 0.99;
        }
        if (every && i % every == 0)
            assert_true(fabs(tn_item(loss) - loss_expected) <= 1e-4 * loss_expected);
    }
    TN_SCOPE {
        const float *now = test_data(w);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(now[k] - expected[k]) <= 1e-4 * fabs(expected[k]));
    }
    assert_true(plans() - before <= FEW);
    assert_true(tn_needs_grad(w));
    tn_free(w);
    assert_true(tn_ok());
}

static void test_descent(void **state)
{
    (void)state;
    descend(1);
    descend(7);
    descend(0);
}

/* ---- a deep network that keeps something in every layer ---- */

#define LAYERS 30
#define TOKENS 20

/* Each layer writes a row into its cache and reads all of it, as attention does; its running mean is assigned. Returns
 * the evaluations and operations that tokens took, at most, each of which is read, or none. */
static uint64_t generate(bool reads, uint64_t *operations)
{
    tn_array *cache[LAYERS], *mean[LAYERS];
    for (int k = 0; k < LAYERS; k++) {
        cache[k] = tn_zeros(TN_SHAPE(TOKENS, 3));
        mean[k] = tn_zeros(TN_SHAPE(3));
    }
    double expected_cache[LAYERS] = {0}, expected_mean[LAYERS] = {0}, expected = 0;
    uint64_t most = 0, all = tn_engine_stats().evaluations;
    *operations = 0;
    for (int t = 0; t < TOKENS; t++) {
        uint64_t evaluations = tn_engine_stats().evaluations, kernels = tn_engine_stats().kernels;
        TN_SCOPE {
            tn_array *h = tn_full(TN_SHAPE(3), 0.1 * t);
            expected = 0.1 * t;
            for (int k = 0; k < LAYERS; k++) {
                tn_array *key = tn_tanh(tn_add(tn_multiply(h, 0.7), 0.1));
                tn_slice_range row = {t, t + 1, 1};
                assert_int_equal(tn_assign(cache[k], tn_slice_update(cache[k], 1, &row, key)), TN_OK);
                assert_int_equal(tn_assign(mean[k], tn_add(tn_multiply(mean[k], 0.9), tn_multiply(key, 0.1))), TN_OK);
                h = tn_add(tn_sin(h), tn_multiply(tn_sum(cache[k], .axis = TN_AXES(0)), 0.1));
                double value = tanh(expected * 0.7 + 0.1);
                expected_cache[k] += value;
                expected_mean[k] = 0.9 * expected_mean[k] + 0.1 * value;
                expected = sin(expected) + 0.1 * expected_cache[k];
            }
            if (reads)
                assert_true(fabs(tn_item(tn_sum(h)) - 3 * expected) < 1e-3);
        }
        evaluations = tn_engine_stats().evaluations - evaluations;
        kernels = tn_engine_stats().kernels - kernels;
        most = evaluations > most ? evaluations : most;
        *operations = kernels > *operations ? kernels : *operations;
    }
    all = tn_engine_stats().evaluations - all;
    for (int k = 0; k < LAYERS; k++)
        TN_SCOPE assert_true(fabs(tn_item(tn_sum(mean[k])) - 3 * expected_mean[k]) < 1e-3);
    for (int k = 0; k < LAYERS; k++) {
        tn_free(cache[k]);
        tn_free(mean[k]);
    }
    return reads ? most : all;
}

static void test_caches_of_deep_networks(void **state)
{
    (void)state;
    uint64_t operations;
    tn_set_compile(TN_COMPILE_NEVER);
    assert_int_equal(generate(true, &operations), 1);
    if (test_device().kind != TN_DEVICE_CUDA) /* all there is to a token, once */
        assert_true(operations <= LAYERS * 24 + 8);
    assert_true(generate(false, &operations) <= TOKENS / 2);
    tn_set_compile(TN_COMPILE_AUTO);
}

/* What was read was computed once: the array that a round wrote has its value then, and costs nothing. */
static void test_written_is_computed_along(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *u = tn_ones(TN_SHAPE(1000)), *other = tn_zeros(TN_SHAPE(3));
        assert_int_equal(tn_assign(u, tn_multiply(tn_cos(u), 0.5)), TN_OK);
        assert_int_equal(tn_add_assign(other, 1), TN_OK);
        assert_true(fabs(tn_item(tn_sum(u)) - 500 * cos(1)) < 1e-2);
        uint64_t before = tn_engine_stats().evaluations;
        assert_int_equal(tn_eval(u), TN_OK);
        assert_int_equal(tn_eval(other), TN_OK);
        assert_int_equal(tn_engine_stats().evaluations, before);
        assert_true(tn_item(tn_sum(other)) == 3);
    }
}

/* ---- a state that is carried, of which something else is read ---- */

#define WIDE 3

/* One of several ways to carry two arrays from a round to the next. */
enum { KEPT, KEPT_AND_FREED, ASSIGNED, VIEWED, WAYS };

static tn_array *carried(int way, tn_array *state, tn_array *next)
{
    if (way == ASSIGNED) {
        assert_int_equal(tn_assign(state, next), TN_OK);
        return state;
    }
    if (way == VIEWED) /* seen through a reshape and a broadcast */
        next = tn_broadcast_to(tn_reshape(next, TN_SHAPE(1, WIDE)), TN_SHAPE(2, WIDE));
    if (way == KEPT_AND_FREED)
        tn_free(state);
    return tn_keep(next);
}

/* The recording of a round goes on from the one before; each round's evaluation costs as much as the first ones'. */
static void carry(int way, bool needs_grad)
{
    tn_array *h = tn_zeros(TN_SHAPE(WIDE)), *c = tn_ones(TN_SHAPE(WIDE)), *w = tn_full(TN_SHAPE(WIDE), 0.5);
    if (needs_grad)
        tn_requires_grad(w);
    uint64_t first = 0;
    double h_expected = 0, c_expected = 1;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = tn_engine_stats().kernels;
        TN_SCOPE {
            bool viewed = way == VIEWED && i > 0;
            tn_array *row = viewed ? tn_reshape(tn_slice(h, 1, &(tn_slice_range){0, 1, 1}), TN_SHAPE(WIDE)) : h;
            tn_array *memory = viewed ? tn_max(c, .axis = TN_AXES(0)) : c;
            tn_array *gate = tn_sigmoid(tn_multiply(row, w)), *fresh = tn_add(tn_multiply(memory, gate), 0.25);
            tn_array *output = tn_tanh(tn_add(fresh, gate));
            h = carried(way, h, output);
            c = carried(way, c, fresh);
            double gate_expected = 1 / (1 + exp(-h_expected * 0.5));
            c_expected = c_expected * gate_expected + 0.25;
            h_expected = tanh(c_expected + gate_expected);
            double read = tn_item(tn_sum(tn_multiply(h, 2))) / (way == VIEWED ? 2 : 1);
            assert_true(fabs(read - 2 * WIDE * h_expected) < 1e-4);
        }
        uint64_t kernels = tn_engine_stats().kernels - before;
        first = i < 4 && kernels > first ? kernels : first;
        assert_true(kernels <= first + 2);
    }
}

static void test_carried_state(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER); /* whose kernels are operations */
    for (int way = 0; way < WAYS; way++) {
        for (int needs_grad = 0; needs_grad < 2; needs_grad++) TN_SCOPE carry(way, needs_grad);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    uint64_t before = plans();
    TN_SCOPE carry(KEPT, false);
    assert_true(plans() - before <= FEW);
    assert_true(tn_ok());
}

static bool is_kept(const tn_array *x) { return tn__array_node(x)->storage != NULL; }

/* What is evaluated once is not kept for it: not what lies between, nor a large array of which rounds want parts. */
static void test_kept_for_nobody(void **state)
{
    (void)state;
    enum { LARGE = 100000 };
    TN_SCOPE {
        tn_array *large = tn_multiply(tn_arange(0, LARGE, 1, .dtype = TN_FLOAT32), 2);
        tn_array *small = tn_multiply(tn_ones(TN_SHAPE(4)), 3);
        tn_array *between = tn_add(small, 1);
        for (int i = 0; i < 3; i++)
            assert_true(tn_item(tn_sum(tn_slice(large, 1, &(tn_slice_range){i, i + 2, 1}))) == 4 * i + 2);
        assert_false(is_kept(large));
        assert_true(tn_item(tn_sum(between)) == 16);
        assert_false(is_kept(between) || is_kept(small));
        assert_true(tn_item(tn_max(between)) == 4);
        assert_true(is_kept(between) && !is_kept(small));
    }
}

/* An array that cannot be computed fails nobody else's reading. */
static void test_failures_stay_where_they_are(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("a matrix without an inverse is told of at once");
    TN_SCOPE {
        tn_array *x = tn_arange(0, 4, 1, .dtype = TN_FLOAT32);
        tn_array *bad = tn_ones(TN_SHAPE(2, 2)), *good = tn_ones(TN_SHAPE(2));
        assert_int_equal(tn_assign(bad, tn_linalg_inv(tn_zeros(TN_SHAPE(2, 2)))), TN_OK);
        assert_int_equal(tn_assign(good, tn_multiply(good, 3)), TN_OK);
        assert_true(tn_item(tn_sum(x)) == 6);
        assert_true(tn_item(tn_sum(good)) == 6);
        assert_true(tn_ok());
        assert_true(isnan(tn_item(tn_sum(bad))));
        assert_failed(TN_ERR_VALUE, "singular");
    }
}

/* A step computes small arrays along: one of them that cannot be computed fails who reads it, not the step; what the
 * step goes back through does. */
static void test_steps_without_what_fails(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("an index out of range is told of at once");
    for (int own = 0; own < 2; own++) TN_SCOPE {
        tn_layer *net = tn_linear(1, .in = 1, .no_bias = true, .weight = {TN_INIT_CONSTANT, 2});
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.25);
        tn_array *x = tn_ones(TN_SHAPE(1, 1)), *table = tn_arange(0, 4, 1, .dtype = TN_FLOAT32);
        tn_array *loss = tn_sum(tn_square(tn_forward(net, x))), *w = tn_param(net, 0);
        tn_array *bad = tn_take(table, tn_from_int64s((int64_t[]){1, 9}, 2), 0), *good = tn_add(w, 1);
        tn_array *of_both = tn_add(bad, tn_sum(w));
        if (own)
            loss = tn_add(loss, tn_sum(of_both));
        assert_int_equal(tn_backward(loss), TN_OK);
        if (own) {
            assert_int_equal(tn_step(sgd), TN_ERR_INDEX);
            assert_failed(TN_ERR_INDEX, "9");
            assert_true(tn_item(w) == 2);
        } else {
            assert_int_equal(tn_step(sgd), TN_OK);
            assert_true(tn_ok());
            assert_true(tn_item(w) == 1 && tn_item(loss) == 4 && tn_item(good) == 3);
            assert_true(isnan(tn_item(tn_sum(of_both))));
            assert_failed(TN_ERR_INDEX, "9");
            assert_true(isnan(tn_item(tn_sum(bad))));
            assert_failed(TN_ERR_INDEX, "9");
        }
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

/* An average of weights, larger than what a step computes along by itself, follows the steps without a word. */
static void test_average_of_weights(void **state)
{
    (void)state;
    enum { N = 200 };
    tn_layer *net = tn_linear(N, .in = N, .no_bias = true);
    tn_optimizer *opt = tn_sgd(net, .lr = 0.1);
    tn_array *w = tn_param(net, 0), *mean = tn_own(tn_detach(w));
    double first = tn_item(tn_sum(w)), expected = first;
    for (int i = 1; i <= 3; i++) TN_SCOPE {
        tn_array *loss = tn_sum(tn_forward(net, tn_ones(TN_SHAPE(1, N))));
        assert_int_equal(tn_backward(loss), TN_OK); /* ones everywhere */
        assert_int_equal(tn_step(opt), TN_OK);
        TN_NO_GRAD {
            assert_int_equal(tn_assign(mean, tn_add(tn_multiply(mean, 0.5), tn_multiply(w, 0.5))), TN_OK);
        }
        expected = 0.5 * expected + 0.5 * (first - 0.1 * i * N * N);
    }
    assert_true(fabs(tn_item(tn_sum(tn_cast(mean, TN_FLOAT64))) - expected) < 1e-3 * fabs(expected));
    assert_true(tn_ok());
    tn_free(mean);
    tn_optimizer_free(opt);
    tn_layer_free(net);
}

/* Values that are used twice each, time and again: exponentially many ways lead through them. */
static void test_used_twice(void **state)
{
    (void)state;
    static const int64_t sizes[] = {3, 100000};
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (int s = 0; s < 2; s++) TN_SCOPE {
        tn_array *x = tn_linspace(0.3, 0.7, sizes[s]), *peak;
        for (int i = 0; i < 40; i++) /* the logistic map, which settles at 0.6 */
            x = tn_multiply(tn_multiply(x, 2.5), tn_subtract(1, x));
        peak = tn_max(x);
        x = tn_divide(x, peak); /* a row that is read twice */
        assert_true(fabs(tn_item(tn_mean(x)) - 1) < 1e-5);
        assert_true(fabs(tn_item(peak) - 0.6) < 1e-5);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    assert_true(tn_ok());
}

/* A loop whose graph is another one each round, as one over sequences of any length: plans are kept by their size, not
 * their number alone, and the latest of them. */
static void chain(int length)
{
    TN_SCOPE {
        tn_array *x = tn_from_floats((const float[]){1, 2}, 2);
        for (int i = 0; i < length; i++)
            x = tn_add(x, 1.0);
        assert_true(tn_item(tn_index(x, 1)) == 2 + length);
    }
}

static void test_many_large_plans(void **state)
{
    (void)state;
    if (test_device().kind == TN_DEVICE_CUDA)
        skip(); /* one kernel each there */
    tn_set_compile(TN_COMPILE_NEVER);
    for (int i = 0; i < 140; i++)
        chain(500 + i);
    uint64_t before = plans();
    chain(639);
    chain(600);
    assert_true(plans() == before);
    chain(500);
    assert_true(plans() == before + 1);
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descent),
        cmocka_unit_test(test_written_is_computed_along),
        cmocka_unit_test(test_caches_of_deep_networks),
        cmocka_unit_test(test_carried_state),
        cmocka_unit_test(test_kept_for_nobody),
        cmocka_unit_test(test_failures_stay_where_they_are),
        cmocka_unit_test(test_steps_without_what_fails),
        cmocka_unit_test(test_average_of_weights),
        cmocka_unit_test(test_used_twice),
        cmocka_unit_test(test_many_large_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
