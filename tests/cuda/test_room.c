/* SPDX-License-Identifier: MIT */
/*
 * A GPU without memory left, on a fake driver: what the backend takes for itself, beside arrays, is found by giving
 * back what is cached and by letting programs go; where that is not enough, the error tells all figures, and the
 * program goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake.h"
#include "engine/plans.h"
#include "support/device.h"

#define MIB ((size_t)1 << 20)

/* A product by an operation of its own, for which the backend takes memory. */
static tn_status multiply(int64_t n)
{
    tn_status status = TN_OK;
    TN_SCOPE
    {
        tn_array *x = tn_zeros(TN_SHAPE(n, 8), .dtype = TN_FLOAT16);
        status = tn_eval(tn_matmul(tn_transpose(x, (tn_axes){0}), x));
    }
    return status;
}

static void test_cached(void **state)
{
    (void)state;
    TN_SCOPE assert_int_equal(tn_eval(tn_ones(TN_SHAPE(64, 1 << 20), .dtype = TN_INT8)), TN_OK);
    assert_true(tn_memory_stats(tn_cuda(0)).cached >= 64 * MIB);
    fake.memory_left = 0; /* all of it is in the allocator's cache */
    assert_int_equal(multiply(8), TN_OK);
    assert_true(fake.memory_left > 0 && tn_memory_stats(tn_cuda(0)).cached < 64 * MIB);
    fake.memory_left = (size_t)1 << 40;
}

static void test_none(void **state)
{
    (void)state;
    char figures[64];
    TN_SCOPE
    {
        tn_array *x = tn_full(TN_SHAPE(1 << 20), 1); /* in use, so that it cannot be given back */
        assert_int_equal(tn_eval(x), TN_OK);
        tn__plans_clear(); /* of which one might give up just what is wanted */
        tn_memory_trim(tn_cuda(0));
        fake.memory_left = 0;
        assert_int_equal(multiply(16), TN_ERR_MEMORY);
        snprintf(figures, sizeof figures, "%zu are used, ", tn_memory_stats(tn_cuda(0)).used);
        assert_non_null(strstr(tn_error(), "no memory for "));
        assert_non_null(strstr(tn_error(), figures));
        assert_non_null(strstr(tn_error(), "the limit is 0 (none), the device has 1073741824"));
        tn_clear_error();
        fake.memory_left = 64 * MIB;
        assert_int_equal(multiply(16), TN_OK);
    }
}

/* Where the driver has no memory for a graph, what is cached goes back to it, and the graph is made. */
static void test_graph(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_random_uniform(TN_SHAPE(1 << 20)); /* 4 MiB, so that something can be cached */
        assert_int_equal(tn_eval(x), TN_OK);
        for (int i = 0; i < 3; i++)
            TN_SCOPE {
                assert_int_equal(tn_eval(tn_ones(TN_SHAPE(16, 1 << 20), .dtype = TN_INT8)),
                                 TN_OK); /* 16 MiB for a moment */
                assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
                int graphs = fake.count.graph_launches;
                fake.no_room = i == 1; /* when the graph is made */
                assert_int_equal(tn_eval(tn_tanh(tn_multiply(x, 3))), TN_OK);
                assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
                assert_int_equal(fake.no_room, 0);
                assert_int_equal(fake.count.graph_launches - graphs, i > 0);
            }
    }
}

/* Between two runs of a loop all memory goes to others: the loop goes on where it was. */
static void test_training(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(6, .in = 5), tn_tanh_layer(), tn_linear(4, .in = 6));
    assert_int_equal(tn_layer_to(net, tn_cuda(0)), TN_OK);
    tn_optimizer *optimizer = tn_momentum_sgd(net, .lr = 0.1);
    int failed = 0;
    for (int i = 0; i < 12; i++) {
        tn_status status = TN_OK;
        int64_t rows = i % 4 == 3 ? 4000000 : 4; /* 80 MB of them */
        fake.memory_left = 64 * MIB;
        TN_SCOPE
        {
            tn_array *loss = tn_sum(tn_square(tn_forward(net, tn_add(tn_random_uniform(TN_SHAPE(rows, 5)), 1))));
            status = tn_backward(loss);
            if (status == TN_OK)
                status = tn_step(optimizer);
        }
        assert_int_equal(status, i % 4 == 3 ? TN_ERR_MEMORY : TN_OK);
        failed += status != TN_OK;
        if (status != TN_OK)
            assert_non_null(strstr(tn_error(), "are used"));
        tn_clear_error();
    }
    assert_int_equal(failed, 3);
    fake.memory_left = (size_t)1 << 40;
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cached), cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_graph), cmocka_unit_test(test_training)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    fake_use();
    if (tn_set_device(tn_cuda(0)) != TN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
