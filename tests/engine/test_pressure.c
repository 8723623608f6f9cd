/* SPDX-License-Identifier: MIT */
/* Memory that runs out: what is said, what stays, and that the program goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

#define MIB ((size_t)1 << 20)

static void limit(size_t bytes) { assert_int_equal(tn_memory_limit(test_device(), bytes), TN_OK); }

/* Room for so much more than is used now, with nothing left that could be given up. */
static void room_for(size_t bytes)
{
    limit(1); /* so programs that nobody runs go */
    TN_SCOPE assert_int_equal(tn_eval(tn_exp(tn_ones(TN_SHAPE(77)))), TN_ERR_MEMORY);
    tn_clear_error();
    limit(0);
    tn_memory_trim(test_device());
    tn_memory_info info = tn_memory_stats(test_device());
    limit(info.used + info.cached + bytes);
}

static void test_message(void **state)
{
    (void)state;
    room_for(8 * MIB);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(16 << 20));
        assert_int_equal(tn_eval(tn_exp(x)), TN_ERR_MEMORY);
        static const char *const words[] = {"67108864 bytes", "used", "cached", "limit is", "device has"};
        for (int i = 0; i < 5; i++)
            assert_non_null(strstr(tn_error(), words[i]));
        assert_non_null(strstr(tn_error(), tn_device_name(test_device())));
        tn_clear_error();
        assert_true(tn_item(tn_sum(tn_ones(TN_SHAPE(1000)))) == 1000); /* the program goes on */
        limit(0);
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK); /* and so does what failed */
    }
    assert_true(tn_ok());
}

/* What is cached, and programs that nobody runs, go first. */
static void test_what_goes_first(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(1000));
        assert_int_equal(tn_eval(x), TN_OK);
        room_for(64 * MIB);
        for (int i = 0; i < 2; i++)
            assert_int_equal(tn_eval(tn_tanh(x)), TN_OK);
        uint64_t misses = tn_engine_stats().plan_misses;
        for (int i = 0; i < 4; i++) /* one at a time fits, all together would not */
            TN_SCOPE assert_int_equal(tn_eval(tn_add(tn_ones(TN_SHAPE((8 << 20) + (i << 18))), 1.0)), TN_OK);
        assert_int_equal(tn_eval(tn_tanh(x)), TN_OK);
        assert_in_range(tn_engine_stats().plan_misses, misses + 1, misses + 4); /* tanh's was there */
        assert_int_equal(tn_eval(tn_exp(tn_ones(TN_SHAPE(32 << 20)))), TN_ERR_MEMORY);
        tn_clear_error();
        misses = tn_engine_stats().plan_misses;
        assert_int_equal(tn_eval(tn_tanh(x)), TN_OK);
        assert_int_equal(tn_engine_stats().plan_misses, misses + 1); /* and is made anew */
    }
    limit(0);
    assert_true(tn_ok());
}

/* A step without memory leaves the parameters as they were, and can be taken again. */
static void test_training_goes_on(void **state)
{
    (void)state;
    /* Weights beyond 8 MiB: smaller ones may find room in a segment that others hold. */
    tn_layer *net = tn_sequential(tn_linear(2200, .in = 1000), tn_relu_layer(), tn_linear(3));
    tn_optimizer *optimizer = tn_adam(net);
    TN_SCOPE {
        float before[6], after[6];
        tn_array *x = tn_ones(TN_SHAPE(4, 1000)), *t = tn_from_int64s((int64_t[]){0, 1, 2, 0}, 4);
        assert_false(tn_is_error(tn_forward(net, x)));
        tn_array *small = tn_param_named(net, "0.b");
        assert_int_equal(tn_to_host(tn_slice_axis(small, 0, 0, 6, 1), before, sizeof before), TN_OK);
        assert_int_equal(tn_eval(tn_param_named(net, "0.W")), TN_OK);
        room_for(4 * MIB);
        TN_SCOPE {
            assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t)), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_ERR_MEMORY);
            tn_clear_error();
        }
        limit(0);
        assert_int_equal(tn_to_host(tn_slice_axis(small, 0, 0, 6, 1), after, sizeof after), TN_OK);
        assert_memory_equal(before, after, sizeof before);
        TN_SCOPE {
            assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t)), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
        assert_int_equal(tn_to_host(tn_slice_axis(small, 0, 0, 6, 1), after, sizeof after), TN_OK);
        assert_memory_not_equal(before, after, sizeof before);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    assert_true(tn_ok());
}

static void test_limits_as_text(void **state)
{
    (void)state;
    tn_device device = test_device();
    size_t total = tn_memory_stats(device).total;
    static const struct {
        const char *text;
        double share;
        size_t bytes;
    } rows[] = {{"512M", 0, 512 * MIB}, {"4g", 0, 4096 * MIB}, {"1048576", 0, MIB}, {"50%", 0.5, 0}, {"none", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_memory_limit_parse(device, rows[i].text), TN_OK);
        size_t wanted = rows[i].share > 0 ? (size_t)((double)total * rows[i].share) : rows[i].bytes;
        assert_in_range(tn_memory_stats(device).limit, wanted > 4 ? wanted - 4 : wanted, wanted + 4);
    }
    static const char *const bad[] = {"", "much", "-1", "5 apples", "180%", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tn_memory_limit_parse(device, bad[i]), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, "80%");
    }
    assert_int_equal(tn_memory_limit_parse((tn_device){TN_DEVICE_CPU, 9}, "1G"), TN_ERR_DEVICE);
    tn_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_what_goes_first),
        cmocka_unit_test(test_training_goes_on),
        cmocka_unit_test(test_limits_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
