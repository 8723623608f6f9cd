/* SPDX-License-Identifier: MIT */
/* Gradients added over several minibatches: the same as of all at once, with the memory of one, and no work twice. */
#include "autograd/helpers.h"

#include <tanso.h>

#include "support/device.h"

enum { ROWS = 66, WIDTH = 256, DEEP = 6 };

typedef struct sums {
    double gradient, losses, count;
    size_t peak;        /* bytes beyond those before */
    uint64_t operations;
} sums;

/* Passes over `count` minibatches, whose losses and another count are only read at the end. */
static sums accumulate(int count)
{
    sums s = {0};
    TN_SCOPE
    {
        tn_array *w = tn_full(TN_SHAPE(WIDTH, WIDTH), 0.01), *x[16], *total = tn_zeros(TN_SHAPE(1));
        tn_array *losses = tn_zeros(TN_SHAPE(1));
        for (int i = 0; i < count; i++)
            x[i] = tn_full(TN_SHAPE(ROWS, WIDTH), 0.1 * (i + 1));
        for (int i = 0; i < count; i++)
            assert_int_equal(tn_eval(x[i] = tn_add(x[i], 0.01)), TN_OK);
        assert_int_equal(tn_eval(w), TN_OK);
        tn_requires_grad(w);
        size_t before = tn_memory_stats(test_device()).used;
        uint64_t kernels = tn_engine_stats().kernels;
        tn_memory_reset_peak(test_device());
        for (int i = 0; i < count; i++) TN_SCOPE {
            tn_array *h = x[i];
            for (int k = 0; k < DEEP; k++)
                h = tn_sin(tn_matmul(h, w));
            tn_array *loss = tn_mean(tn_square(h));
            assert_int_equal(tn_backward(loss), TN_OK);
            losses = tn_keep(tn_add(losses, loss));
            total = tn_keep(tn_add(total, tn_sum(tn_cast(tn_greater(h, 0.1), TN_FLOAT32))));
        }
        assert_int_equal(tn_eval_all(3, (const tn_array *[]){tn_grad(w), losses, total}), TN_OK);
        s.peak = tn_memory_stats(test_device()).peak - before;
        s.operations = tn_engine_stats().kernels - kernels;
        s.gradient = tn_item(tn_sum(tn_grad(w)));
        s.losses = tn_item(losses);
        s.count = tn_item(total);
    }
    return s;
}

static void test_memory_is_flat(void **state)
{
    (void)state;
    sums one = accumulate(1), two = accumulate(2), many = accumulate(12);
    assert_true(one.gradient != 0 && many.losses > two.losses);
    assert_true(many.peak <= two.peak + two.peak / 4);
    assert_true(two.operations <= 2 * one.operations + 6);
    assert_true(many.operations <= 12 * (one.operations + 3));
}

/* Values do not depend on when gradients are computed: here, all at once, as nothing is let go. */
static void test_values(void **state)
{
    (void)state;
    double sum[2];
    for (int way = 0; way < 2; way++) {
        tn_array *x = tn_requires_grad(spread(TN_SHAPE(3, 4), -1, 1, 0));
        for (int i = 0; i < 5; i++)
            assert_int_equal(tn_backward(tn_sum(tn_sin(tn_multiply(x, i))), .retain_graph = way), TN_OK);
        tn_array *expected = tn_zeros(TN_SHAPE(3, 4), .dtype = TN_FLOAT64);
        for (int i = 0; i < 5; i++)
            expected = tn_add(expected, tn_multiply(tn_cos(tn_multiply(x, i)), i));
        sum[way] = tn_item(tn_max(tn_abs(tn_subtract(tn_grad(x), expected))));
        assert_true(sum[way] < 1e-12);
    }
}

/* What can't be computed is told where more is to be added to it, and the gradient stays. */
static void test_failure(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(spread(TN_SHAPE(3), -1, 1, 0));
    assert_int_equal(tn_backward(tn_sum(tn_take(tn_sin(x), tn_from_int64s((int64_t[]){0, 7}, 2), 0))), TN_OK);
    tn_status status = tn_backward(tn_sum(tn_square(x)));
    assert_true(status == TN_ERR_INDEX || tn_eval(tn_grad(x)) != TN_OK || tn_synchronize(test_device()) != TN_OK);
    assert_error(TN_ERR_INDEX, "7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_memory_is_flat), TEST(test_values), TEST(test_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
