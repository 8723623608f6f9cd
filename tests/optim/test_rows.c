/* SPDX-License-Identifier: MIT */
/* Tables of which a step looks up a few rows: plain SGD computes these alone, with the bits of a whole update. */
#include "nn/check.h"

enum { MOST = 900 };

static tn_array *positions(int64_t count, int64_t below)
{
    int64_t at[MOST];
    for (int64_t i = 0; i < count; i++) { /* half of them from a few rows, some from the end */
        at[i] = (int64_t)(check_bits() % (uint64_t)(check_bits() % 2 ? 7 : below));
        at[i] -= check_bits() % 8 ? 0 : below;
    }
    return tn_from_int64s(at, count);
}

/* A loss that looks the table up `lookups` times; the rows come by all sorts of gradients. */
static tn_array *loss_of(tn_array *table, int lookups, tn_array *const *at)
{
    tn_array *loss = tn_sum(tn_zeros(TN_SHAPE(1)));
    for (int i = 0; i < lookups; i++) {
        tn_array *rows = tn_cast(tn_take(table, at[i], 0), TN_FLOAT32);
        loss = tn_add(loss, tn_sum(tn_multiply(tn_square(rows), tn_sin(rows))));
    }
    return loss;
}

static tn_array *nothing(tn_layer *net, const tn_array *x, void *user)
{
    (void)net, (void)user;
    return tn_add(x, 0);
}

static tn_layer *table_of(tn_array *value)
{
    tn_layer *net = tn_layer_new("table", nothing, NULL, NULL);
    tn_layer_param(net, "rows", value);
    return net;
}

/* One table is updated by what it was looked up for; the other one's gradients are there as arrays before the step. */
static void check_steps(int64_t rows, int64_t width, int lookups, tn_dtype dtype, bool fewer)
{
    TN_SCOPE {
        tn_array *first = tn_cast(tn_random_normal(TN_SHAPE(rows, width)), dtype);
        tn_layer *net[2] = {table_of(first), table_of(tn_add(first, 0))};
        tn_optimizer *optimizer[2] = {tn_sgd(net[0], .lr = 0.3), tn_sgd(net[1], .lr = 0.3)};
        for (int step = 0; step < 2; step++) {
            tn_array *at[3];
            for (int i = 0; i < lookups; i++)
                at[i] = positions(1 + (int64_t)(check_bits() % (uint64_t)(rows / 9 < MOST ? rows / 9 : MOST)), rows);
            for (int k = 0; k < 2; k++) {
                tn_array *loss = loss_of(tn_param(net[k], 0), lookups, at);
                assert_int_equal(tn_backward(loss), TN_OK);
                if (k)
                    assert_int_equal(tn_eval(tn_grad(tn_param(net[k], 0))), TN_OK);
                tn_memory_reset_peak(test_device());
                size_t before = tn_memory_stats(test_device()).used;
                assert_int_equal(tn_step(optimizer[k]), TN_OK);
                assert_true(tn_ok());
                if (fewer && step && !k && test_device().kind != TN_DEVICE_CUDA)
                    assert_in_range(tn_memory_stats(test_device()).peak - before, 0,
                                    (size_t)(rows * width) * tn_dtype_size(dtype) / 2);
            }
            if (test_device().kind == TN_DEVICE_CUDA) /* sums of more terms have another order than of fewer places */
                assert_true(tn_allclose(tn_param(net[0], 0), tn_param(net[1], 0), .rtol = 1e-3, .atol = 1e-3));
            else
                assert_true(tn_array_equal(tn_param(net[0], 0), tn_param(net[1], 0), false));
        }
        for (int k = 0; k < 2; k++) {
            tn_optimizer_free(optimizer[k]);
            tn_layer_free(net[k]);
        }
    }
}

static void test_same_values(void **state)
{
    (void)state;
    check_steps(50021, 29, 1, TN_FLOAT32, true);
    check_steps(70001, 1, 1, TN_FLOAT32, false);
    check_steps(3001, 23, 3, TN_FLOAT64, false);
    check_steps(3001, 31, 2, TN_BFLOAT16, false);
    check_steps(11, 3, 2, TN_FLOAT32, false); /* too small to be worth it */
}

/* Only the loss keeps its handle until the step, which would compute what else has one along. */
static tn_status step_with(tn_layer *net, tn_optimizer *optimizer, int64_t position)
{
    tn_array *loss;
    TN_SCOPE {
        tn_array *at = tn_from_int64s(((int64_t[]){3, position, -1}), 3);
        loss = tn_own(loss_of(tn_param(net, 0), 1, &at));
    }
    tn_status status = tn_backward(loss);
    status = status == TN_OK ? tn_step(optimizer) : status;
    status = status == TN_OK ? tn_synchronize(test_device()) : status;
    tn_free(loss);
    return status;
}

/* A position out of range is told of, and nothing is overwritten. */
static void test_out_of_range(void **state)
{
    (void)state;
    static float before[5003 * 29], after[5003 * 29];
    TN_SCOPE {
        tn_layer *net = table_of(tn_random_normal(TN_SHAPE(5003, 29)));
        tn_optimizer *optimizer = tn_sgd(net, .lr = 0.3);
        assert_int_equal(step_with(net, optimizer, 5002), TN_OK); /* now nobody else has the table's memory */
        assert_int_equal(tn_to_host(tn_param(net, 0), before, sizeof before), TN_OK);
        assert_int_equal(step_with(net, optimizer, 5003), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "5003");
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(step_with(net, optimizer, 17), TN_OK);
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_memory_not_equal(before, after, sizeof before);
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_values), cmocka_unit_test(test_out_of_range)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
