/* SPDX-License-Identifier: MIT */
/* The classifier: predictions, its loss and measure, what it reports, and its failures. */
#include "nn/check.h"

static tn_layer *new_predictor(void) { return tn_sequential(tn_linear(4), tn_tanh_layer(), tn_linear(3)); }

static void test_values(void **state)
{
    (void)state;
    tn_layer *model = tn_classifier(new_predictor());
    assert_int_equal(tn_layer_status(model), TN_OK);
    TN_SCOPE {
        double x[5 * 2];
        check_fill(x, 10, -1, 1);
        tn_array *in = check_array(x, TN_SHAPE(5, 2), TN_FLOAT32), *t = tn_from_int64s((int64_t[]){0, 2, 1, 1, 0}, 5);
        tn_array *y = tn_forward(model, in);
        assert_string_equal(tn_param_name(model, 0), "predictor.0.W");
        double own = tn_item(tn_classifier_loss(model, in, t));
        assert_float_equal(own, tn_item(tn_softmax_cross_entropy(y, t)), 0);
        assert_float_equal(own, tn_item(tn_forward(model, in, t)), 0);
        tn_layer *copy = tn_layer_copy(model);
        assert_float_equal(own, tn_item(tn_classifier_loss(copy, in, t)), 0);
        tn_layer_free(copy);
        assert_true(tn_array_equal(y, tn_forward(tn_layer_child(model, "predictor"), in), false));

        /* Reports, under the name that the reporter knows the model by. */
        tn_reporter *reporter = tn_reporter_new();
        tn_observation *seen = tn_observation_new();
        assert_int_equal(tn_reporter_add(reporter, "main", model), TN_OK);
        assert_int_equal(tn_reporter_push(reporter, seen), TN_OK);
        tn_classifier_loss(model, in, t);
        tn_reporter_pop();
        assert_int_equal(tn_observation_count(seen), 2);
        assert_float_equal(tn_observation_number(seen, "main/loss"), own, 0);
        assert_float_equal(tn_observation_number(seen, "main/accuracy"), tn_item(tn_accuracy(y, t)), 0);
        tn_observation_free(seen);
        tn_reporter_free(reporter);
    }
    tn_layer_free(model);
    check_fine();
}

static void test_choices(void **state)
{
    (void)state;
    tn_layer *model = tn_classifier(tn_linear(1), .loss = tn_mean_squared_error, .accuracy = NULL);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(3, 2)), *t = tn_zeros(TN_SHAPE(3, 1));
        tn_reporter *reporter = tn_reporter_new();
        tn_observation *seen = tn_observation_new();
        assert_int_equal(tn_reporter_add(reporter, "main", model), TN_OK);
        assert_int_equal(tn_reporter_push(reporter, seen), TN_OK);
        tn_array *loss = tn_classifier_loss(model, x, t);
        tn_reporter_pop();
        assert_int_equal(tn_observation_count(seen), 1);
        assert_float_equal(tn_item(loss), tn_item(tn_mean_squared_error(tn_forward(model, x), t)), 0);
        assert_int_equal(tn_backward(loss), TN_OK);
        assert_true(tn_has_grad(tn_param_named(model, "predictor.W")));
        tn_observation_free(seen);
        tn_reporter_free(reporter);
    }
    tn_layer_free(model);
    check_fine();
}

static void test_failures(void **state)
{
    (void)state;
    tn_layer *none = tn_classifier(NULL);
    check_latched(TN_ERR_VALUE, "NULL");
    tn_layer_free(none);
    tn_layer *broken = tn_classifier(tn_linear(-1));
    assert_int_equal(tn_layer_status(broken), TN_ERR_VALUE);
    tn_clear_error();
    tn_layer *plain = tn_linear(2);
    TN_SCOPE {
        assert_true(tn_is_error(tn_classifier_loss(plain, tn_ones(TN_SHAPE(1, 2)), tn_zeros(TN_SHAPE(1)))));
        check_latched(TN_ERR_VALUE, "expected a layer of tn_classifier");
        assert_true(tn_is_error(tn_classifier_loss(broken, tn_ones(TN_SHAPE(1, 2)), tn_zeros(TN_SHAPE(1)))));
        tn_clear_error();
        assert_true(tn_is_error(tn_classifier_loss(NULL, NULL, NULL)));
        tn_clear_error();
    }
    tn_layer_free(broken);
    tn_layer_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_choices),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests_name("classifier", tests, check_seed, NULL);
}
