/* SPDX-License-Identifier: MIT */
/* Activation functions against PyTorch's values, their layers, the words for them, and what they refuse. */
#include "nn/torch.h"

#define CASE1(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
CASE1(elu, tn_elu(x[0], 1.3))
CASE1(celu, tn_celu(x[0], 0.7))
CASE1(selu, tn_selu(x[0]))
CASE1(silu, tn_silu(x[0]))
CASE1(swish, tn_swish(x[0], 1.7))
CASE1(mish, tn_mish(x[0]))
CASE1(gelu_tanh, tn_gelu_tanh(x[0]))
CASE1(softplus_beta, tn_softplus_beta(x[0], 2.5))
CASE1(log_sigmoid, tn_log_sigmoid(x[0]))
CASE1(softsign, tn_softsign(x[0]))
CASE1(clipped_relu, tn_clipped_relu(x[0], 2.2))
CASE1(relu6, tn_relu6(tn_multiply(x[0], 4)))
CASE1(hard_tanh, tn_hard_tanh(x[0], -1.25, 0.75))
CASE1(hard_sigmoid, tn_hard_sigmoid(tn_multiply(x[0], 2), 0))
CASE1(hard_sigmoid_chainer, tn_hard_sigmoid(x[0], 0.2))
CASE1(hard_swish, tn_hard_swish(tn_multiply(x[0], 2)))
CASE1(hard_shrink, tn_hard_shrink(x[0], 0.8))
CASE1(soft_shrink, tn_soft_shrink(x[0], 0.8))
CASE1(tanh_shrink, tn_tanh_shrink(x[0]))
CASE1(threshold, tn_threshold(x[0], 0.1, 20))
CASE1(glu, tn_glu(x[0], 1))
CASE1(softmin, tn_softmin(x[0], -2))
CASE1(crelu, tn_crelu(x[0], 1))
CASE1(maxout, tn_maxout(x[0], 3, 1))
CASE1(prelu, tn_prelu(x[0], x[1]))

static void test_values(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"elu", elu, false}, {"celu", celu, false}, {"selu", selu, false}, {"silu", silu, false},
        {"swish", swish, false}, {"mish", mish, false}, {"gelu_tanh", gelu_tanh, false},
        {"softplus_beta", softplus_beta, false}, {"log_sigmoid", log_sigmoid, false}, {"softsign", softsign, false},
        {"clipped_relu", clipped_relu, false}, {"relu6", relu6, false}, {"hard_tanh", hard_tanh, true},
        {"hard_sigmoid", hard_sigmoid, false}, {"hard_sigmoid_chainer", hard_sigmoid_chainer, false},
        {"hard_swish", hard_swish, false}, {"hard_shrink", hard_shrink, false}, {"soft_shrink", soft_shrink, false},
        {"tanh_shrink", tanh_shrink, false}, {"threshold", threshold, false}, {"glu", glu, false},
        {"softmin", softmin, false}, {"crelu", crelu, false}, {"maxout", maxout, false}, {"prelu", prelu, false},
        {"prelu_one", prelu, false},
    };
    if (!torch_open())
        skip();
    torch_check(sizeof cases / sizeof *cases, cases);
    torch_close();
}

/* Far from zero nothing overflows, neither there nor in the gradient, and NaN stays. */
static void test_far(void **state)
{
    (void)state;
    tn_array *(*const plain[])(const tn_array *) = {tn_selu, tn_silu, tn_mish, tn_gelu_tanh, tn_log_sigmoid,
                                                    tn_softsign, tn_relu6, tn_hard_swish, tn_tanh_shrink};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        TN_SCOPE {
            tn_array *x = tn_requires_grad(tn_from_floats((float[]){-1e4f, -200, 0, 200, 1e4f, NAN}, 6));
            tn_array *y = plain[i](x);
            assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
            assert_true(tn_item(tn_all(tn_isfinite(tn_slice_axis(y, 0, 0, 5, 1)))));
            assert_true(tn_item(tn_all(tn_isfinite(tn_slice_axis(tn_grad(x), 0, 0, 5, 1)))));
            assert_true(tn_item(tn_isnan(tn_index(y, 5))));
        }
    check_fine();
}

/* Each layer's word gives the layer back, and its forward is the function. */
static void test_words(void **state)
{
    (void)state;
    static const char *const words[] = {"elu", "elu:0.5", "celu", "selu", "silu", "mish", "gelu_tanh", "log_sigmoid",
                                        "softsign", "relu6", "clipped_relu:20", "hard_tanh", "hard_sigmoid:0.2",
                                        "hard_swish", "hard_shrink:0.5", "soft_shrink", "tanh_shrink",
                                        "log_softmax:1", "softmin:-1", "crelu:1", "glu:1", "prelu:4", "swish",
                                        "identity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        TN_SCOPE {
            tn_layer *layer = tn_layer_parse(words[i]);
            assert_int_equal(tn_layer_status(layer), TN_OK);
            tn_array *y = tn_forward(layer, tn_random_normal(TN_SHAPE(3, 4)));
            if (tn_eval(y) != TN_OK)
                fail_msg("%s: %s", words[i], tn_error());
            char *text = tn_layer_string(layer);
            size_t length = strcspn(words[i], ":");
            if (!strstr(text, "elu") && strncmp(words[i], "elu", length) == 0)
                fail_msg("%s: %s", words[i], text);
            tn_string_free(text);
            tn_layer_free(layer);
        }
    check_fine();
}

static void test_layers(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(2, 3));
        tn_layer *layer = tn_prelu_layer(3, 0.25);
        assert_true(tn_allclose(tn_forward(layer, x), tn_leaky_relu(x, 0.25)));
        assert_int_equal(tn_backward(tn_sum(tn_forward(layer, x))), TN_OK);
        tn_array *want = tn_sum(tn_minimum(x, 0), .axis = TN_AXES(0));
        assert_true(tn_allclose(tn_grad(tn_param_named(layer, "W")), want));
        tn_layer_free(layer);
        layer = tn_swish_layer(0);
        assert_true(tn_allclose(tn_forward(layer, x), tn_silu(x)));
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(2, 4)))));
        check_latched(TN_ERR_SHAPE, "expected inputs whose last extent is the 3 features");
        tn_layer_free(layer);
    }
    check_fine();
}

/* The slopes are in their range, others each time, and 1 where x is not negative. */
static void test_rrelu(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_concatenate(TN_ARRAYS(tn_full(TN_SHAPE(500), -2), tn_full(TN_SHAPE(500), 2)), 0);
        tn_array *y = tn_rrelu(x, 0.125, 0.5, NULL), *other = tn_rrelu(x, 0.125, 0.5, NULL);
        tn_array *low = tn_slice_axis(y, 0, 0, 500, 1);
        assert_true(tn_item(tn_all(tn_logical_and(tn_greater_equal(low, -1), tn_less_equal(low, -0.25)))));
        assert_true(tn_item(tn_all(tn_equal(tn_slice_axis(y, 0, 500, 1000, 1), 2))));
        assert_false(tn_item(tn_all(tn_equal(y, other))));
    }
    check_fine();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3));
        assert_true(tn_is_error(tn_celu(x, 0)));
        check_latched(TN_ERR_VALUE, "expected a finite alpha that is not 0, got 0");
        assert_true(tn_is_error(tn_soft_shrink(x, -1)));
        check_latched(TN_ERR_VALUE, "lambda >= 0");
        assert_true(tn_is_error(tn_glu(x, 1)));
        check_latched(TN_ERR_SHAPE, "two halves");
        assert_true(tn_is_error(tn_glu(x, 2)));
        check_latched(TN_ERR_INDEX, "axis 2");
        assert_true(tn_is_error(tn_maxout(x, 2, 1)));
        check_latched(TN_ERR_VALUE, "divides the extent 3");
        assert_true(tn_is_error(tn_prelu(x, tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_SHAPE, "expected one slope");
        assert_true(tn_is_error(tn_hard_tanh(x, 1, -1)));
        check_latched(TN_ERR_VALUE, "low no larger");
        assert_true(tn_is_error(tn_mish(tn_cast(x, TN_COMPLEX64))));
        check_latched(TN_ERR_DTYPE, "expected real numbers");
        assert_int_equal(tn_dtype_of(tn_mish(tn_cast(x, TN_FLOAT16))), TN_FLOAT16);
        assert_int_equal(tn_dtype_of(tn_mish(tn_cast(x, TN_INT16))), TN_FLOAT32);
        assert_int_equal(tn_size(tn_glu(tn_ones(TN_SHAPE(0, 4)), 1)), 0);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_far), cmocka_unit_test(test_words),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_rrelu), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
