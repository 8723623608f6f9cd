/* SPDX-License-Identifier: MIT */
/* Products, bags, attention against PyTorch's values; layers of linear ones; samples; what they refuse. */
#include "nn/torch.h"

#define CASE(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
CASE(attention, tn_scaled_dot_product_attention(x[0], x[1], x[2]))
CASE(attention_causal, tn_scaled_dot_product_attention(x[0], x[1], x[2], .causal = true, .scale = 0.3))
CASE(attention_mask, tn_scaled_dot_product_attention(x[0], x[1], x[2], .mask = tn_not_equal(t[0], 0)))
CASE(attention_added, tn_scaled_dot_product_attention(x[0], x[1], x[2], .mask = x[3]))
CASE(linear, tn_linear_function(x[0], x[1], x[2]))
CASE(bilinear, tn_bilinear_function(x[0], x[1], x[2], x[3]))
CASE(bag_mean, tn_embedding_bag(x[0], t[0]))
CASE(bag_sum, tn_embedding_bag(x[0], t[0], .mode = TN_BAG_SUM))
CASE(bag_max, tn_embedding_bag(x[0], t[0], .mode = TN_BAG_MAX))
CASE(bag_padding, tn_embedding_bag(x[0], t[0], .padding_index = 5))
CASE(bag_weights, tn_embedding_bag(x[0], t[0], .mode = TN_BAG_SUM, .weights = x[1]))
CASE(embedding, tn_embedding_function(x[0], t[0]))
CASE(embedding_padding, tn_embedding_function(x[0], t[0], .padding_index = 4))
CASE(linear_interpolate, tn_linear_interpolate(x[0], x[1], x[2]))
CASE(sum_to, tn_sum_to(x[0], TN_SHAPE(3, 1)))
CASE(as_strided, tn_as_strided(x[0], TN_SHAPE(2, 3, 2), TN_SHAPE(7, 2, 3), 1))

static void test_values(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        {"attention", attention, false}, {"attention_causal", attention_causal, false},
        {"attention_mask", attention_mask, false}, {"attention_added", attention_added, false},
        {"linear", linear, false}, {"bilinear", bilinear, false}, {"bag_mean", bag_mean, false},
        {"bag_sum", bag_sum, false}, {"bag_max", bag_max, true}, /* rows that meet in a maximum share its gradient */
        {"bag_padding", bag_padding, false}, {"bag_weights", bag_weights, false},
        {"linear_interpolate", linear_interpolate, false}, {"sum_to", sum_to, false},
        {"as_strided", as_strided, false}, {"embedding", embedding, false},
        {"embedding_padding", embedding_padding, false},
    };
    if (!torch_open())
        skip();
    torch_check(sizeof cases / sizeof *cases, cases);
    torch_close();
}

static tn_array *value(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "multihead.%s", name);
    return tn_cast(torch_value(path), TN_FLOAT32);
}

/* PyTorch's weights, loaded from its names; self attention and another's keys. */
static void test_multihead(void **state)
{
    (void)state;
    if (!torch_open())
        skip();
    TN_SCOPE {
        char path[4096];
        snprintf(path, sizeof path, "%s/torch.npz", getenv("TANSO_TEST_DATA"));
        tn_layer *layer = tn_multihead_attention(6, 3, .dropout = 0.5);
        tn_layer_train(layer, false);
        assert_int_equal(tn_layer_load(layer, path, .prefix = "multihead.", .transpose = "*weight *W",
                                       .rename = "W=weight b=bias"), TN_OK);
        tn_array *q = value("q"), *k = value("k"), *y, *w;
        const tn_array *in[] = {q, k};
        tn_array **const out[] = {&y, &w};
        assert_true(tn_allclose(tn_forward(layer, q), value("self_y"), .rtol = 1e-4, .atol = 1e-5));
        assert_int_equal(tn_forward_all(layer, 2, in, 2, out), TN_OK);
        assert_true(tn_allclose(y, value("cross_y"), .rtol = 1e-4, .atol = 1e-5));
        assert_true(tn_allclose(w, value("cross_w"), .rtol = 1e-4, .atol = 1e-5));
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_true(tn_has_grad(tn_param_named(layer, "in_proj_weight")));
        tn_layer_free(layer);
    }
    torch_close();
    check_fine();
}

/* A query that may look at nothing has zeros, and no NaN in any gradient. */
static void test_nothing_to_see(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *q = tn_requires_grad(tn_random_normal(TN_SHAPE(2, 3))), *k = tn_random_normal(TN_SHAPE(4, 3));
        tn_array *mask = tn_broadcast_to(tn_greater(tn_arange(0, 2, 1), 0), TN_SHAPE(4, 2)), *weights;
        mask = tn_transpose(mask, (tn_axes){0});
        tn_array *y = tn_scaled_dot_product_attention(q, k, k, .mask = mask, .weights = &weights);
        assert_true(tn_item(tn_all(tn_equal(tn_index(y, 0), 0))));
        assert_true(tn_allclose(tn_sum(weights, .axis = TN_AXES(1)), tn_arange(0, 2, 1)));
        assert_int_equal(tn_backward(tn_sum(tn_square(y))), TN_OK);
        assert_true(tn_item(tn_all(tn_isfinite(tn_grad(q)))));
        assert_int_equal(tn_size(tn_scaled_dot_product_attention(tn_ones(TN_SHAPE(0, 3)), k, k)), 0);
    }
    check_fine();
}

/* A floating mask that is minus infinity where one of bool is false is the same: in values, weights and gradients, for
 * queries that may look at nothing, beside `causal`, for finite numbers as low as there are, and in every dtype. */
static void test_floating_masks(void **state)
{
    (void)state;
    enum { QUERIES = 5, KEYS = 6 };
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_BFLOAT16};
    for (int k = 0; k < 4 * 2; k++)
        TN_SCOPE {
            tn_dtype dtype = dtypes[k / 2];
            bool causal = k % 2, seen[QUERIES * KEYS];
            double added[QUERIES * KEYS];
            for (int i = 0; i < QUERIES * KEYS; i++) {
                seen[i] = i / KEYS != 2 && check_bits() % 2; /* the third looks at nothing */
                added[i] = seen[i] ? 0 : -INFINITY;
            }
            tn_array *y[2], *weights[2], *slope[2], *in[3];
            for (int i = 0; i < 3; i++)
                in[i] = tn_cast(tn_random_normal(TN_SHAPE(2, i ? KEYS : QUERIES, 3)), dtype);
            for (int i = 0; i < 2; i++) {
                tn_shape shape = TN_SHAPE(QUERIES, KEYS);
                tn_array *mask = i ? tn_cast(tn_from_host(added, shape, TN_FLOAT64), dtype)
                                   : tn_from_host(seen, shape, TN_BOOL);
                tn_array *q = tn_requires_grad(tn_multiply(in[0], 1));
                y[i] = tn_scaled_dot_product_attention(q, in[1], in[2], .mask = mask, .causal = causal,
                                                       .weights = &weights[i]);
                assert_int_equal(tn_backward(tn_sum(tn_square(tn_cast(y[i], TN_FLOAT32)))), TN_OK);
                slope[i] = tn_grad(q);
            }
            assert_true(tn_item(tn_all(tn_equal(tn_slice_axis(y[1], 1, 2, 3, 1), 0))));
            assert_true(tn_item(tn_all(tn_equal(y[0], y[1]))));
            assert_true(tn_item(tn_all(tn_equal(weights[0], weights[1]))));
            assert_true(tn_item(tn_all(tn_equal(slope[0], slope[1]))));
        }
    TN_SCOPE { /* the lowest number is no infinity: beside that, a key has it all */
        const double row[] = {-INFINITY, -3.4028234663852886e38, -INFINITY};
        tn_array *mask = tn_cast(tn_from_doubles(row, 3), TN_FLOAT32), *ones = tn_ones(TN_SHAPE(3, 2)), *weights;
        tn_scaled_dot_product_attention(tn_ones(TN_SHAPE(1, 2)), ones, ones, .mask = mask, .weights = &weights);
        check_near(weights, (double[]){0, 1, 0}, 3, 0);
    }
    check_fine();
}

/* The gradient of what is multiplied by the values is one of the weights as they are kept, of 16 bits where the scores
 * are. Scores are below 1 in absolute value, so that none of some twenty roundings is larger than what it is of; their
 * sum is held against that of the absolute values of the terms. */
static void test_narrow_gradients(void **state)
{
    (void)state;
    enum { QUERIES = 5, KEYS = 7, WIDTH = 3 };
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            tn_dtype dtype = i ? TN_FLOAT16 : TN_BFLOAT16;
            double scale = 0.3, unit = i ? 0x1p-11 : 0x1p-8;
            tn_array *in[4]; /* queries, keys, values, the gradient of what comes of them; as all dtypes have them */
            for (int a = 0; a < 4; a++) {
                tn_shape shape = TN_SHAPE(a == 0 || a == 3 ? QUERIES : KEYS, WIDTH);
                in[a] = tn_cast(tn_cast(tn_random_uniform(shape, .low = -1, .high = 1), dtype), TN_FLOAT32);
            }
            tn_array *q = tn_requires_grad(tn_cast(in[0], dtype)), *k = tn_cast(in[1], dtype);
            tn_array *y = tn_scaled_dot_product_attention(q, k, tn_cast(in[2], dtype), .causal = true, .scale = scale);
            assert_int_equal(tn_dtype_of(y), dtype);
            assert_int_equal(tn_backward(tn_sum(tn_multiply(tn_cast(y, TN_FLOAT32), in[3]))), TN_OK);
            tn_array *wide = tn_requires_grad(in[0]), *weights;
            tn_array *right = tn_scaled_dot_product_attention(wide, in[1], in[2], .causal = true, .scale = scale,
                                                              .weights = &weights);
            assert_int_equal(tn_backward(tn_sum(tn_multiply(right, in[3]))), TN_OK);
            weights = tn_detach(weights);
            tn_array *size = tn_matmul(tn_abs(in[3]), tn_transpose(tn_abs(in[2]), TN_AXES(1, 0)));
            tn_array *sum = tn_sum(tn_multiply(weights, size), .axis = TN_AXES(1), .keepdims = true);
            tn_array *bound = tn_matmul(tn_multiply(weights, tn_add(size, sum)), tn_abs(in[1]));
            tn_array *error = tn_abs(tn_subtract(tn_cast(tn_grad(q), TN_FLOAT32), tn_grad(wide)));
            assert_true(tn_item(tn_all(tn_less_equal(error, tn_multiply(bound, 32 * unit * scale)))));
        }
    check_fine();
}

/* Attention after attention: what backward keeps of each is one array of its weights, not the scores beside it. */
static void test_kept(void **state)
{
    (void)state;
    enum { TIME = 96, WIDTH = 2, FEW = 3, MANY = 9 };
    tn_set_compile(TN_COMPILE_ALWAYS); /* operation by operation, casts are arrays of their own */
    for (int i = 0; i < 2; i++) {
        int64_t peak[2];
        for (int many = 0; many < 2; many++)
            TN_SCOPE {
                tn_array *x = tn_requires_grad(tn_random_normal(TN_SHAPE(TIME, WIDTH))), *y = tn_cast(x, TN_FLOAT32);
                assert_int_equal(tn_eval(x), TN_OK);
                tn_memory_reset_peak(test_device());
                int64_t used = tn_memory_stats(test_device()).used;
                if (i)
                    y = tn_cast(y, TN_BFLOAT16);
                for (int n = 0; n < (many ? MANY : FEW); n++)
                    y = tn_scaled_dot_product_attention(y, y, y, .causal = true);
                assert_int_equal(tn_backward(tn_sum(tn_cast(y, TN_FLOAT32))), TN_OK);
                assert_int_equal(tn_eval(tn_grad(x)), TN_OK);
                peak[many] = (int64_t)tn_memory_stats(test_device()).peak - used;
            }
        int64_t one = TIME * TIME * (i ? 2 : 4);
        assert_in_range(peak[1] - peak[0], (MANY - FEW) * one, (MANY - FEW) * one * 3 / 2);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static void test_layers(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(5, 4));
        tn_layer *layer = tn_highway(4, "tanh");
        tn_array *plain = tn_tanh(tn_forward(tn_layer_child(layer, "plain"), x));
        tn_array *gate = tn_sigmoid(tn_forward(tn_layer_child(layer, "transform"), x));
        tn_array *want = tn_add(tn_multiply(gate, plain), tn_multiply(tn_subtract(1, gate), x));
        assert_true(tn_allclose(tn_forward(layer, x), want, .atol = 1e-6));
        assert_true(tn_item(tn_all(tn_equal(tn_param_named(layer, "transform.b"), -1))));
        tn_layer_free(layer);
        layer = tn_maxout_layer(3, 2);
        want = tn_max(tn_reshape(tn_forward(layer, x), TN_SHAPE(5, 3, 1)), .axis = TN_AXES(2));
        tn_array *all = tn_forward(tn_layer_child(layer, "linear"), x);
        assert_true(tn_allclose(want, tn_max(tn_reshape(all, TN_SHAPE(5, 3, 2)), .axis = TN_AXES(2))));
        tn_layer_free(layer);
        layer = tn_bilinear(4, 4, 2);
        tn_array *y = tn_bilinear_function(x, x, tn_param_named(layer, "W"), NULL);
        assert_true(tn_allclose(tn_forward(layer, x, x), y, .atol = 1e-6));
        tn_layer_free(layer);
        layer = tn_layer_parse("highway:4 maxout:6:2 linear:4");
        assert_int_equal(tn_dim(tn_forward(layer, x), 1), 4);
        tn_layer_free(layer);
    }
    check_fine();
}

/* Whole channels, or elements, are dropped with the ratio's chance; what is kept is scaled so that means stay. */
static void test_dropouts(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(40, 50, 3, 2)));
        tn_layer *layer = tn_layer_parse("channel_dropout:0.25");
        tn_array *y = tn_forward(layer, x), *first = tn_slice_axis(tn_slice_axis(y, 2, 0, 1, 1), 3, 0, 1, 1);
        assert_true(tn_item(tn_all(tn_equal(y, first))));
        assert_true(tn_item(tn_all(tn_logical_or(tn_equal(first, 0), tn_isclose(first, 4 / 3.0)))));
        double kept = tn_item(tn_mean(tn_cast(tn_not_equal(first, 0), TN_FLOAT32)));
        assert_true(fabs(kept - 0.75) < 6 * sqrt(0.25 * 0.75 / 2000));
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_true(tn_array_equal(tn_grad(x), y, false));
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(4)))));
        check_latched(TN_ERR_SHAPE, "(N, channels, ...)");
        tn_layer_train(layer, false);
        assert_true(tn_array_equal(tn_forward(layer, x), x, false));
        tn_layer_free(layer);

        layer = tn_alpha_dropout(0.3);
        y = tn_forward(layer, x);
        double share = tn_item(tn_mean(tn_cast(tn_less(y, 0), TN_FLOAT32)));
        assert_true(fabs(share - 0.3) < 6 * sqrt(0.3 * 0.7 / 12000));
        if (torch_open()) {
            tn_array *two = tn_cast(torch_value("alpha_dropout.y"), TN_FLOAT32);
            tn_array *want = tn_where(tn_less(y, 0), tn_slice_axis(two, 0, 0, 1, 1), tn_slice_axis(two, 0, 1, 2, 1));
            assert_true(tn_allclose(y, want, .rtol = 1e-6));
            torch_close();
        }
        tn_array *z = tn_forward(layer, tn_random_normal(TN_SHAPE(20000))); /* its variance's deviation is below 0.02 */
        assert_true(fabs(tn_item(tn_mean(z))) < 6 / sqrt(20000) && fabs(tn_item(tn_var(z)) - 1) < 6 * 0.02);
        tn_layer_train(layer, false);
        assert_true(tn_array_equal(tn_forward(layer, x), x, false));
        tn_layer_free(layer);
        layer = tn_alpha_dropout(1);
        assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "a ratio in [0, 1)");
        tn_layer_free(layer);
    }
    check_fine();
}

/* Places of any stride against a loop, none of them, and what lies outside. */
static void test_strided(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++)
        TN_SCOPE {
            enum { ROWS = 3, COLUMNS = 4 };
            int64_t a = test_random_int(&check_random, -3, 3), b = test_random_int(&check_random, -3, 3);
            int64_t offset = 3 * 3 + 2 * 3, size = 2 * offset + 1;
            double want[ROWS * COLUMNS];
            for (int i = 0; i < ROWS; i++)
                for (int k = 0; k < COLUMNS; k++)
                    want[i * COLUMNS + k] = (double)(offset + i * a + k * b);
            tn_array *x = tn_arange(0, size, 1);
            check_near(tn_as_strided(x, TN_SHAPE(ROWS, COLUMNS), TN_SHAPE(a, b), offset), want, ROWS * COLUMNS, 0);
            assert_int_equal(tn_size(tn_as_strided(x, TN_SHAPE(0, 5), TN_SHAPE(100, 100), -7)), 0);
            assert_int_equal(tn_item(tn_as_strided(x, (tn_shape){0}, (tn_shape){0}, 4)), 4);
            assert_true(tn_is_error(tn_as_strided(x, TN_SHAPE(2), TN_SHAPE(1), size - 1)));
            check_latched(TN_ERR_INDEX, "outside x");
            assert_true(tn_is_error(tn_as_strided(x, TN_SHAPE(2), TN_SHAPE(-1), 0)));
            check_latched(TN_ERR_INDEX, "outside x");
            assert_true(tn_is_error(tn_as_strided(x, TN_SHAPE(3), TN_SHAPE(INT64_MAX), 0)));
            check_latched(TN_ERR_INDEX, "outside x");
            assert_true(tn_is_error(tn_as_strided(x, TN_SHAPE(2, 2), TN_SHAPE(1), 0)));
            check_latched(TN_ERR_SHAPE, "a stride for each");
            assert_true(tn_is_error(tn_sum_to(x, TN_SHAPE(2))));
            check_latched(TN_ERR_SHAPE, "does not broadcast");
            assert_true(tn_is_error(tn_sum_to(x, TN_SHAPE(1, size))));
            check_latched(TN_ERR_SHAPE, "does not broadcast");
            assert_int_equal(tn_item(tn_sum_to(x, (tn_shape){0})), size * (size - 1) / 2);
        }
    check_fine();
}

static void test_samples(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *mean = tn_requires_grad(tn_full(TN_SHAPE(4000), 3)), *ln_var = tn_full(TN_SHAPE(4000), log(0.25));
        tn_array *x = tn_gaussian(mean, ln_var, NULL);
        assert_true(fabs(tn_item(tn_mean(x)) - 3) < 6 * 0.5 / sqrt(4000));
        assert_true(fabs(tn_item(tn_std(x)) - 0.5) < 6 * 0.5 / sqrt(8000));
        assert_int_equal(tn_backward(tn_sum(x)), TN_OK);
        assert_true(tn_item(tn_all(tn_equal(tn_grad(mean), 1))));
        tn_array *pi = tn_log(tn_from_floats((float[]){0.2f, 0.8f}, 2));
        tn_array *logits = tn_requires_grad(tn_broadcast_to(pi, TN_SHAPE(4000, 2)));
        tn_array *hard = tn_gumbel_softmax(logits, 0.5, 1, true, NULL);
        assert_true(fabs(tn_item(tn_mean(tn_slice_axis(hard, 1, 1, 2, 1))) - 0.8) < 6 * 0.4 / sqrt(4000));
        assert_true(tn_allclose(tn_sum(hard, .axis = TN_AXES(1)), 1));
        assert_int_equal(tn_backward(tn_sum(tn_slice_axis(hard, 1, 0, 1, 1))), TN_OK);
        assert_true(tn_item(tn_any(tn_not_equal(tn_grad(logits), 0))));
    }
    check_fine();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3)), *whole = tn_zeros(TN_SHAPE(2, 3), .dtype = TN_INT64);
        assert_true(tn_is_error(tn_linear_function(x, x, NULL)));
        check_latched(TN_ERR_SHAPE, "w (in, out)");
        assert_true(tn_is_error(tn_bilinear_function(x, x, x, NULL)));
        check_latched(TN_ERR_SHAPE, "(left, right, out)");
        tn_layer *layer = tn_bilinear(3, 3, 2);
        REFUSED(TN_ERR_DTYPE, "got int64", tn_forward(layer, whole, x));
        tn_layer_free(layer);
        assert_true(tn_is_error(tn_embedding_bag(x, whole, .weights = x)));
        check_latched(TN_ERR_VALUE, "weights of sums only");
        assert_int_equal(test_eval(tn_embedding_bag(x, tn_add(whole, 2))), TN_ERR_INDEX);
        tn_clear_error();
        assert_true(tn_is_error(tn_scaled_dot_product_attention(x, x, tn_ones(TN_SHAPE(3, 3)))));
        check_latched(TN_ERR_SHAPE, "expected queries (..., L, E)");
        assert_true(tn_is_error(tn_scaled_dot_product_attention(x, x, x, .mask = whole)));
        check_latched(TN_ERR_DTYPE, "mask of bool or floats");
        assert_true(tn_is_error(tn_scaled_dot_product_attention(x, x, x, .mask = tn_ones(TN_SHAPE(3)))));
        check_latched(TN_ERR_SHAPE, "broadcasts to the scores (2, 2)");
        tn_layer *bad = tn_multihead_attention(6, 4);
        assert_int_equal(tn_layer_status(bad), TN_ERR_VALUE);
        tn_layer_free(bad);
        check_latched(TN_ERR_VALUE, "heads that divide the features");
        assert_true(tn_is_error(tn_gumbel_softmax(x, 0, 1, false, NULL)));
        check_latched(TN_ERR_VALUE, "tau > 0");
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_multihead), cmocka_unit_test(test_nothing_to_see),
        cmocka_unit_test(test_narrow_gradients), cmocka_unit_test(test_kept), cmocka_unit_test(test_floating_masks),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_dropouts), cmocka_unit_test(test_strided),
        cmocka_unit_test(test_samples), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
