/* SPDX-License-Identifier: MIT */
/* Meters: weighted means, what they keep and when they compute. */
#include <stdio.h>
#include <unistd.h>
#include "nn/check.h"

static void test_mean(void **state)
{
    (void)state;
    tn_meter *meter = tn_meter_new(test_device());
    assert_true(isnan(tn_meter_take(meter)));
    for (int round = 0; round < 2; round++) {
        double total = 0, weights = 0;
        for (int i = 0; i < 200; i++) TN_SCOPE { /* more than one recording holds */
            double value = (float)check_uniform(-1, 3), weight = (double)(1 + check_bits() % 100);
            total += value * weight;
            weights += weight;
            tn_array *x = tn_full_with(i % 2 ? TN_SHAPE(1, 1) : (tn_shape){0}, value, NULL);
            if (i % 3)
                assert_int_equal(tn_eval(x), TN_OK);
            tn_meter_add(meter, x, weight);
        }
        assert_float_equal(tn_meter_take(meter), total / weights, 1e-12);
        assert_true(isnan(tn_meter_take(meter)));
    }
    tn_meter_free(meter);
    tn_meter_free(NULL);
    check_fine();
}

/* A meter of a device that is not there refuses each addition, of whatever value. */
static void test_no_device(void **state)
{
    (void)state;
    tn_meter *meter = tn_meter_new(tn_cuda(INT16_MAX));
    check_latched(TN_ERR_DEVICE, "is not available");
    for (int i = 0; i < 4; i++) TN_SCOPE {
        tn_array *x = tn_full_with((tn_shape){0}, 3, NULL);
        if (i % 2)
            assert_int_equal(tn_eval(x), TN_OK);
        tn_meter_add(meter, x, 1);
        check_latched(TN_ERR_DEVICE, "is not available");
        assert_true(isnan(tn_meter_take(meter)));
    }
    tn_meter_free(meter);
}

/* In a training loop the total is computed by the step, with no evaluation of its own, and the graph of a loss is let
 * go. */
static void test_in_a_loop(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_layer *net = tn_linear(2, .in = 3);
    tn_optimizer *optimizer = tn_sgd(net);
    tn_meter *before = tn_meter_new(test_device()), *after = tn_meter_new(test_device());
    double mean = 0;
    for (int i = 0; i < 10; i++) TN_SCOPE {
            tn_array *loss = tn_mean_squared_error(tn_forward(net, tn_ones_with(TN_SHAPE(4, 3), NULL)),
                                                   tn_zeros_with(TN_SHAPE(4, 2), NULL));
            uint64_t evaluations = tn_engine_stats().evaluations;
            assert_int_equal(tn_backward(loss), TN_OK);
            tn_meter_add(before, loss, 4);
            assert_int_equal(tn_step(optimizer), TN_OK);
            tn_meter_add(after, loss, 4);
            if (i > 1)
                assert_int_equal(tn_engine_stats().evaluations, evaluations + 1);
            mean += tn_item(loss) / 10;
    }
    assert_float_equal(tn_meter_take(before), mean, 1e-6);
    assert_float_equal(tn_meter_take(after), mean, 1e-6);
    tn_meter_free(before);
    tn_meter_free(after);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    assert_int_equal(tn_live_arrays(), arrays);
    check_fine();
}

/* Without steps, one round's computation at most waits in the recording. */
static void test_without_steps(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_parse("linear:3 relu linear:1");
    tn_meter *meter = tn_meter_new(test_device());
    double mean = 0;
    for (int i = 0; i < 12; i++) TN_SCOPE {
        double x[8];
        check_fill(x, 8, -1, 1);
        tn_array *y = tn_sum_with(tn_forward(net, check_array(x, TN_SHAPE(2, 4), TN_FLOAT32)), NULL);
        uint64_t evaluations = tn_engine_stats().evaluations;
        tn_meter_add(meter, y, 1);
        if (i > 0)
            assert_int_equal(tn_engine_stats().evaluations, evaluations + 1);
        mean += tn_item(y) / 12;
    }
    assert_float_equal(tn_meter_take(meter), mean, 1e-6);
    tn_meter_free(meter);
    tn_layer_free(net);
    check_fine();
}

static void test_errors(void **state)
{
    (void)state;
    tn_meter *meter = tn_meter_new(test_device());
    TN_SCOPE {
        tn_meter_add(meter, tn_ones_with(TN_SHAPE(2), NULL), 1);
        check_latched(TN_ERR_SHAPE, "one element");
        tn_meter_add(meter, tn_scalar_with(2, NULL), 1);
        assert_true(isnan(tn_meter_take(meter)));
        tn_meter_add(meter, tn_scalar_with(2, NULL), 1);
        assert_float_equal(tn_meter_take(meter), 2, 0);
        check_fine();
        tn_meter_add(meter, NULL, 1);
        check_latched(TN_ERR_VALUE, "NULL");
        tn_meter_add(NULL, tn_scalar_with(2, NULL), 1);
        check_latched(TN_ERR_VALUE, "NULL");
        tn_meter_take(meter);
        tn_meter_add(meter, tn_scalar_with(NAN, NULL), 1);
        assert_true(isnan(tn_meter_take(meter)));
    }
    tn_meter_free(meter);
}

/* What a loop over a dataset that is missing prints: why, once, before the first NaN. */
static void test_tells_why(void **state)
{
    (void)state;
    tn_meter *meter = tn_meter_new(test_device());
    assert_true(isnan(tn_meter_take(meter))); /* nothing is wrong: nothing is said */
    tn_loader *batches = tn_loader_new(tn_idx_folder("/nonexistent/digits", TN_TRAIN), .batch = 10);
    FILE *said = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(said && before >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
    for (int epoch = 0; epoch < 3; epoch++) {
        tn_batch b;
        assert_false(tn_loader_next(batches, &b));
        assert_true(isnan(tn_meter_take(meter)));
    }
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(said);
    char line[1024] = "", more[16];
    assert_non_null(fgets(line, sizeof line, said));
    assert_non_null(strstr(line, "/nonexistent/digits"));
    assert_null(fgets(more, sizeof more, said));
    fclose(said);
    tn_loader_free(batches);
    tn_meter_free(meter);
    check_latched(TN_ERR_IO, "/nonexistent/digits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_in_a_loop),
        cmocka_unit_test(test_without_steps),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_tells_why),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
