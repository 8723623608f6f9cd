/* SPDX-License-Identifier: MIT */
/* Evaluation: what one plan computes, reuses and gives up; the plan cache; devices; threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tanso.h>

#include "array/node.h"
#include "engine/engine.h"
#include "support/device.h"

static void assert_fine(void)
{
    if (!tn_ok())
        fail_msg("%s", tn_error());
}

/* ---- the plan cache ---- */

static void test_loop_finds_its_plan(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(7, 5)));
    for (int i = 0; i < 3; i++)
        TN_SCOPE { assert_int_equal(tn_eval(tn_sum(tn_exp(x), .axis = TN_AXES(1))), TN_OK); }
    tn_engine_counters before = tn_engine_stats();
    for (int i = 0; i < 100; i++)
        TN_SCOPE { assert_int_equal(tn_eval(tn_sum(tn_exp(x), .axis = TN_AXES(1))), TN_OK); }
    tn_engine_counters after = tn_engine_stats();
    assert_int_equal(after.plan_hits - before.plan_hits, 100);
    assert_int_equal(after.plan_misses, before.plan_misses);
    tn_free(x);
}

/* Kernels made or loaded so far. */
static uint64_t kernel_texts(void)
{
    tn_engine_counters now = tn_engine_stats();
    return now.compilations + now.kernel_hits;
}

static void test_what_recurs_seldom_is_not_compiled(void **state)
{
    (void)state;
    if (!tn__device_current()->capabilities.operations)
        skip(); /* a device that has only kernels */
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(9, 4)));
    assert_int_equal(tn_eval(x), TN_OK);
    uint64_t before = kernel_texts();
    TN_SCOPE {
        for (int round = 0; round < 3; round++) {
            assert_int_equal(tn_eval(tn_sum(tn_cos(x), .axis = TN_AXES(0))), TN_OK);
            for (int i = 0; i < 17; i++) /* each another plan */
                assert_int_equal(tn_eval(tn_sum(tn_log1p(tn_ones(TN_SHAPE(2 + round, 3 + i))))), TN_OK);
        }
        assert_int_equal(kernel_texts(), before);
        assert_int_equal(tn_eval(tn_sum(tn_cos(x), .axis = TN_AXES(0))), TN_OK);
        assert_int_equal(tn_eval(tn_sum(tn_cos(x), .axis = TN_AXES(0))), TN_OK);
        assert_int_equal(kernel_texts(), before + 1);
    }
    tn_free(x);
}

static void test_scalars_do_not_make_new_plans(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(33)));
    assert_int_equal(tn_eval(x), TN_OK);
    tn_engine_counters before = tn_engine_stats();
    for (int i = 0; i < 20; i++)
        TN_SCOPE
        {
            double got = tn_item(tn_sum(tn_multiply(tn_subtract(x, x), (double)i)));
            assert_true(got == 0);
            assert_true(tn_item(tn_max(tn_add(tn_multiply(x, 0.0), (double)i))) == i);
        }
    assert_int_equal(tn_engine_stats().plan_misses - before.plan_misses, 2);
    tn_free(x);
}

static void test_windows_share_a_plan(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_arange(0, 60, 1, .dtype = TN_FLOAT32));
    assert_int_equal(tn_eval(x), TN_OK);
    tn_engine_counters before = tn_engine_stats();
    for (int i = 0; i < 10; i++)
        TN_SCOPE
        {
            double got = tn_item(tn_sum(tn_slice_axis(x, 0, i * 6, i * 6 + 6, 1)));
            assert_true(got == 6 * (i * 6) + 15);
        }
    assert_int_equal(tn_engine_stats().plan_misses - before.plan_misses, 1);
    tn_free(x);
}

static void test_learning_rate_is_no_part_of_the_plan(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(8), tn_relu_layer(), tn_linear(3));
    tn_optimizer *opt = tn_adam(net);
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(6, 4)));
    tn_array *t = tn_own(tn_random_integers(0, 3, TN_SHAPE(6)));
    uint64_t misses = 0;
    for (int i = 0; i < 12; i++)
        TN_SCOPE
        {
            if (i == 4)
                misses = tn_engine_stats().plan_misses;
            tn_optimizer_set_lr(opt, 0.001 * (i + 1));
            tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t));
            tn_step(opt);
            assert_fine();
        }
    assert_int_equal(tn_engine_stats().plan_misses, misses);
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_free(x);
    tn_free(t);
}

/* ---- kernels ---- */

static uint64_t kernels_of(tn_array *x)
{
    uint64_t before = tn_engine_stats().kernels;
    assert_int_equal(tn_eval(x), TN_OK);
    return tn_engine_stats().kernels - before;
}

static void test_fusion_counts(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_ALWAYS);
    TN_SCOPE
    {
        tn_array *x = tn_random_normal(TN_SHAPE(300, 200));
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(kernels_of(tn_exp(tn_multiply(-0.5, tn_square(x)))), 1);
        assert_int_equal(kernels_of(tn_softmax(x, 1)), 1);
        assert_int_equal(kernels_of(tn_softmax(x, 0)), 1);
        assert_int_equal(kernels_of(tn_var(x, .axis = TN_AXES(1))), 1);
        assert_int_equal(kernels_of(tn_transpose(x, TN_AXES(1, 0))), 0);
        assert_int_equal(kernels_of(tn_reshape(x, TN_SHAPE(200, 300))), 0);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    assert_fine();
}

/* A training step of the MNIST network: three products forward and back... in at most 8 kernels, updates included. */
static void test_training_step_kernels(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(1000), tn_sigmoid_layer(), tn_linear(10));
    tn_optimizer *opt = tn_sgd(net, .lr = 0.01);
    tn_meter *mean = tn_meter_new(test_device());
    tn_array *x = tn_own(tn_random_uniform(TN_SHAPE(100, 784)));
    tn_array *t = tn_own(tn_random_integers(0, 10, TN_SHAPE(100)));
    assert_int_equal(tn_eval(x), TN_OK);
    assert_int_equal(tn_eval(t), TN_OK);
    uint64_t kernels = 0;
    for (int i = 0; i < 5; i++)
        TN_SCOPE
        {
            uint64_t before = tn_engine_stats().kernels;
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), t);
            tn_backward(loss);
            tn_step(opt);
            tn_meter_add(mean, loss, 100);
            kernels = tn_engine_stats().kernels - before;
        }
    assert_fine();
    assert_in_range(kernels, 1, 8);
    double loss = tn_meter_take(mean);
    assert_true(loss > 1 && loss < 4);
    tn_meter_free(mean);
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_free(x);
    tn_free(t);
}

/* ---- memory ---- */

static void test_update_in_place(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(1000)));
    assert_int_equal(tn_eval(x), TN_OK);
    double sum = 0;
    TN_SCOPE { sum = tn_item(tn_sum(x)); }
    const void *where = tn__array_node(x)->storage->memory;
    for (int i = 0; i < 4; i++)
        TN_SCOPE
        {
            assert_int_equal(tn_add_assign(x, 1.0), TN_OK);
            assert_int_equal(tn_eval(x), TN_OK);
            assert_ptr_equal(tn__array_node(x)->storage->memory, where);
        }
    TN_SCOPE { assert_true(abs((int)(tn_item(tn_sum(x)) - sum - 4000)) <= 1); }
    tn_free(x);
}

static void test_values_that_others_hold_are_not_overwritten(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_full(TN_SHAPE(100), 1.0), *view;
        assert_int_equal(tn_eval(x), TN_OK);
        view = tn_slice_axis(x, 0, 10, 20, 1);
        assert_int_equal(tn_eval(view), TN_OK);
        tn_array *pending = tn_multiply(x, 3.0);
        assert_int_equal(tn_add_assign(x, 5.0), TN_OK);
        assert_int_equal(tn_eval(x), TN_OK);
        assert_true(tn_item(tn_max(view)) == 1);
        assert_true(tn_item(tn_max(pending)) == 3);
        assert_true(tn_item(tn_min(x)) == 6);
    }
    assert_fine();
}

static void test_step_keeps_small_and_gives_up_large(void **state)
{
    (void)state;
    tn_layer *net = tn_linear(200);
    tn_optimizer *opt = tn_sgd(net, .lr = 0.1);
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(150, 20)));
    assert_int_equal(tn_eval(x), TN_OK);
    for (int i = 0; i < 3; i++)
        TN_SCOPE
        {
            tn_array *y = tn_forward(net, x);     /* 30,000 elements */
            tn_array *means = tn_mean(y, .axis = TN_AXES(1));
            tn_array *kept = tn_exp(y);
            assert_int_equal(tn_eval(kept), TN_OK);
            tn_array *loss = tn_mean(tn_square(y));
            tn_backward(loss);
            tn_step(opt);
            assert_fine();
            assert_true(tn_item(loss) > 0);
            assert_int_equal(tn_size(means), 150);
            assert_int_equal(tn_eval(means), TN_OK);
            assert_true(tn_item(tn_max(kept)) > 0);
            assert_int_equal(tn_eval(y), TN_ERR_STATE);
            assert_non_null(strstr(tn_error(), "tn_eval"));
            tn_clear_error();
        }
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_free(x);
}

static void test_memory_stays_flat(void **state)
{
    (void)state;
    tn_layer *net = tn_mlp(2, (int64_t[]){16, 3}, "tanh");
    tn_optimizer *opt = tn_momentum_sgd(net, .lr = 0.01);
    tn_array *x = tn_own(tn_random_normal(TN_SHAPE(8, 5)));
    tn_array *t = tn_own(tn_random_integers(0, 3, TN_SHAPE(8)));
    size_t used = 0;
    for (int i = 0; i < 3000; i++) {
        TN_SCOPE
        {
            tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t));
            tn_step(opt);
        }
        if (i == 100)
            used = tn_memory_stats(test_device()).used;
    }
    assert_fine();
    assert_int_equal(tn_memory_stats(test_device()).used, used);
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_free(x);
    tn_free(t);
}

/* ---- long recordings ---- */

static void test_deep_recordings_are_evaluated_on_the_way(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_zeros(TN_SHAPE(3));
        tn__set_max_depth(2000);
        for (int i = 0; i < 10000; i++)
            x = tn_add(x, 1.0);
        tn__set_max_depth(TN__MAX_DEPTH);
        assert_true(tn_item(tn_max(x)) == 10000);
    }
    assert_fine();
}

/* ---- errors ---- */

static void test_index_out_of_range(void **state)
{
    (void)state;
    for (int mode = TN_COMPILE_ALWAYS; mode <= TN_COMPILE_NEVER; mode++) {
        tn_set_compile((tn_compile_mode)mode);
        for (int64_t bad = -11; bad <= 10; bad += 21)
            TN_SCOPE
            {
                tn_array *x = tn_random_normal(TN_SHAPE(10, 3));
                tn_array *i = tn_from_int64s((int64_t[]){0, bad, 2}, 3);
                assert_int_equal(test_eval(tn_take(x, i, 0)), TN_ERR_INDEX);
                assert_non_null(strstr(tn_error(), "range"));
                tn_clear_error();
            }
        TN_SCOPE
        {
            tn_array *x = tn_arange(0, 10, 1);
            tn_array *i = tn_from_int64s((int64_t[]){-10, -1, 9}, 3);
            tn_array *y = tn_take(x, i, 0);
            assert_int_equal(tn_eval(y), TN_OK);
            const int64_t *got = test_data(y);
            assert_int_equal(got[0], 0);
            assert_int_equal(got[1], 9);
            assert_int_equal(got[2], 9);
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
    assert_fine();
}

static void test_error_arrays_raise(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *bad = tn_add(tn_zeros(TN_SHAPE(2)), tn_zeros(TN_SHAPE(3)));
        assert_true(tn_is_error(bad));
        tn_clear_error();
        assert_int_equal(tn_eval(tn_exp(bad)), TN_ERR_SHAPE);
        assert_int_equal(tn_error_code(), TN_ERR_SHAPE);
        tn_clear_error();
        assert_null(tn_data(bad));
        tn_clear_error();
    }
}

/* ---- devices ---- */

static void test_devices_with_memories_of_their_own(void **state)
{
    (void)state;
    tn_status status;
    tn_device one = tn_device_parse("virtual:0", &status), two = tn_device_parse("virtual:1", NULL);
    assert_int_equal(status, TN_OK);
    TN_SCOPE
    {
        tn_array *a = tn_random_normal(TN_SHAPE(5, 4), .device = one);
        tn_array *b = tn_to(a, two);
        assert_true(tn_device_equal(tn_device_of(a), one));
        assert_true(tn_device_equal(tn_device_of(b), two));
        assert_true(tn_item(tn_sum(a)) == tn_item(tn_sum(b)));
        tn_array *mixed = tn_add(a, b);
        assert_int_equal(tn_status_of(mixed), TN_ERR_DEVICE);
        assert_non_null(strstr(tn_message_of(mixed), "virtual:0"));
        assert_non_null(strstr(tn_message_of(mixed), "virtual:1"));
        assert_non_null(strstr(tn_message_of(mixed), "tn_to"));
        tn_clear_error();
        assert_true(tn_item(tn_sum(tn_subtract(tn_to(a, two), b))) == 0);
    }
    assert_fine();
}

static void test_gradients_cross_devices(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_requires_grad(tn_full(TN_SHAPE(3), 2.0));
        tn_array *y = tn_square(tn_to(x, tn_device_parse("virtual:2", NULL)));
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_true(tn_device_equal(tn_device_of(tn_grad(x)), test_device()));
        assert_true(tn_item(tn_sum(tn_grad(x))) == 12);
    }
    assert_fine();
}

static void test_null_device_knows_shapes_only(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_random_normal(TN_SHAPE(1 << 20, 1 << 16), .device = tn_device_parse("null", NULL));
        tn_array *y = tn_matmul(tn_transpose(x, TN_AXES(1, 0)), x);
        assert_int_equal(tn_dim(y, 0), 1 << 16);
        assert_int_equal(tn_eval(tn_sum(y, .axis = TN_AXES(0))), TN_OK);
    }
    assert_fine();
}

/* ---- describing ---- */

static void test_plan_describe(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_random_normal(TN_SHAPE(20, 30));
        assert_int_equal(tn_eval(x), TN_OK);
        uint64_t before = tn_engine_stats().evaluations;
        char *text = tn_plan_describe(tn_softmax(x, 1));
        assert_non_null(text);
        assert_non_null(strstr(text, "exp"));
        assert_non_null(strstr(text, "bytes"));
        assert_int_equal(tn_engine_stats().evaluations, before);
        tn_string_free(text);
    }
}

/* ---- threads ---- */

enum { THREADS = 8 };

static void *evaluate_many(void *shared)
{
    const tn_array *x = shared;
    long wrong = 0;
    for (int i = 0; i < 60; i++)
        TN_SCOPE
        {
            int64_t rows = 10 + i % 7;
            tn_array *y = tn_slice_axis(x, 0, 0, rows, 1);
            double sum = tn_item(tn_sum(tn_multiply(y, 2.0)));
            wrong += sum != (double)(2 * rows * 9);
            wrong += tn_item(tn_max(tn_softmax(y, 1))) > 0.2;
        }
    return (void *)(wrong + !tn_ok());
}

static void test_threads(void **state)
{
    (void)state;
    tn_array *x = tn_own(tn_ones(TN_SHAPE(20, 9)));
    assert_int_equal(tn_eval(x), TN_OK);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, evaluate_many, x), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    tn_free(x);
}

static void *use_pending(void *x)
{
    tn_array *y = tn_exp((tn_array *)x);
    bool refused = tn_status_of(y) == TN_ERR_STATE;
    tn_free(y);
    return (void *)(long)refused;
}

static void test_pending_arrays_stay_in_their_thread(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_exp(tn_ones(TN_SHAPE(3)));
        pthread_t thread;
        void *refused;
        pthread_create(&thread, NULL, use_pending, x);
        pthread_join(thread, &refused);
        assert_non_null(refused);
    }
}

static int leave_no_arrays(void **state)
{
    (void)state;
    return tn_live_arrays() != 0 || !tn_ok();
}

#define TEST(name) cmocka_unit_test_teardown(name, leave_no_arrays)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_loop_finds_its_plan),
        TEST(test_what_recurs_seldom_is_not_compiled),
        TEST(test_scalars_do_not_make_new_plans),
        TEST(test_windows_share_a_plan),
        TEST(test_learning_rate_is_no_part_of_the_plan),
        TEST(test_fusion_counts),
        TEST(test_training_step_kernels),
        TEST(test_update_in_place),
        TEST(test_values_that_others_hold_are_not_overwritten),
        TEST(test_step_keeps_small_and_gives_up_large),
        TEST(test_memory_stays_flat),
        TEST(test_deep_recordings_are_evaluated_on_the_way),
        TEST(test_index_out_of_range),
        TEST(test_error_arrays_raise),
        TEST(test_devices_with_memories_of_their_own),
        TEST(test_gradients_cross_devices),
        TEST(test_null_device_knows_shapes_only),
        TEST(test_plan_describe),
        TEST(test_threads),
        TEST(test_pending_arrays_stay_in_their_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
