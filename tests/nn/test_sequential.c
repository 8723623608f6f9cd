/* SPDX-License-Identifier: MIT */
/* Layers that come into a sequence and go out of it: their places, names, parameters, and who is in the way. */
#include "check.h"

#include "support/starve.h"

static tn_array *shifted(const tn_array *x, void *user) { return tn_add(x, *(double *)user); }
static tn_array *doubled(const tn_array *x, void *user)
{
    (void)user;
    return tn_multiply(x, 2);
}

static tn_layer *shift(double *by) { return tn_function_layer("shift", shifted, by); }
static tn_layer *twice(void) { return tn_function_layer("twice", doubled, NULL); }

static double value_of(tn_layer *net)
{
    double y = 0;
    TN_SCOPE y = tn_item(tn_forward(net, tn_scalar(10.0)));
    return y;
}

static void test_order(void **state)
{
    (void)state;
    static double one = 1, three = 3, five = 5;
    tn_layer *net = tn_sequential(shift(&one), twice());
    assert_true(value_of(net) == 22);
    assert_int_equal(tn_sequential_insert(net, 1, shift(&three)), TN_OK);
    assert_true(value_of(net) == 28);
    assert_int_equal(tn_sequential_insert(net, 3, shift(&five)), TN_OK); /* behind the last */
    assert_true(value_of(net) == 33);
    assert_int_equal(tn_sequential_insert(net, -1, twice()), TN_OK); /* before the last */
    assert_true(value_of(net) == 61);
    assert_int_equal(tn_sequential_insert(net, -5, twice()), TN_OK); /* first */
    assert_true(value_of(net) == 101);
    tn_layer *out = tn_sequential_pop(net, -1);
    assert_true(value_of(net) == 96 && value_of(out) == 15);
    tn_layer_free(out);
    out = tn_sequential_pop(net, 0);
    assert_true(value_of(net) == 56);
    assert_int_equal(tn_sequential_insert(net, 0, out), TN_OK); /* what went may come again */
    assert_true(value_of(net) == 96);
    for (int i = 0; i < 5; i++)
        tn_layer_free(tn_sequential_pop(net, 0));
    assert_true(value_of(net) == 10); /* of none */
    assert_int_equal(tn_sequential_insert(net, 0, twice()), TN_OK);
    assert_true(value_of(net) == 20);
    tn_layer_free(net);
    check_fine();
}

/* Paths go with places; values, and files, with them. */
static void test_names(void **state)
{
    (void)state;
    tn_layer *a = tn_linear(3, .in = 2), *b = tn_linear(2, .in = 3), *net = tn_sequential(a, b);
    tn_array *aw = tn_param_named(net, "0.W"), *bw = tn_param_named(net, "1.W");
    assert_int_equal(tn_sequential_insert(net, 0, tn_linear(2, .in = 2)), TN_OK);
    assert_ptr_equal(tn_param_named(net, "1.W"), aw);
    assert_ptr_equal(tn_param_named(net, "2.W"), bw);
    assert_ptr_equal(tn_layer_child(net, "2"), b);
    assert_int_equal(tn_param_count(net), 6);
    tn_layer *first = tn_sequential_pop(net, 0);
    assert_ptr_equal(tn_param_named(net, "0.W"), aw);
    assert_int_equal(tn_param_count(net), 4);
    assert_int_equal(tn_param_count(first), 2);
    assert_string_equal(tn_param_name(net, 2), "1.W");
    tn_layer_free(first);
    /* one with a name of its own keeps it, and its place */
    assert_int_equal(tn_layer_add(net, "last", tn_linear(1, .in = 2)), TN_OK);
    tn_layer_free(tn_sequential_pop(net, 0));
    assert_ptr_equal(tn_layer_child(net, "0"), b);
    assert_int_equal(tn_param_count(tn_layer_child(net, "last")), 2);
    /* within another sequence, whose parameters it then has */
    tn_layer *outer = tn_sequential(net, tn_relu_layer());
    assert_int_equal(tn_sequential_insert(net, 0, tn_linear(3, .in = 4)), TN_OK);
    assert_string_equal(tn_param_name(outer, 0), "0.0.W");
    assert_int_equal(tn_param_count(outer), 6);
    tn_layer_free(outer);
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(3, .in = 2), tn_relu_layer()), *none;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn_sequential_insert(net, i ? 3 : -3, tn_relu_layer()), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "from -2 to 2");
        none = tn_sequential_pop(net, i ? 2 : -3);
        assert_int_equal(tn_layer_status(none), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "2 layers");
        tn_layer_free(none);
    }
    assert_int_equal(tn_sequential_insert(net, 0, NULL), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "a layer");
    assert_int_equal(tn_sequential_insert(NULL, 0, tn_relu_layer()), TN_ERR_VALUE);
    tn_clear_error();
    assert_int_equal(tn_sequential_insert(net, 0, tn_layer_child(net, "1")), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "belongs to a sequential already");
    tn_layer *linear = tn_linear(2);
    assert_int_equal(tn_sequential_insert(linear, 0, tn_relu_layer()), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "expected a tn_sequential, got a linear");
    tn_layer_free(linear);
    tn_layer *inner = tn_sequential(tn_relu_layer()), *outer = tn_sequential(inner);
    assert_int_equal(tn_sequential_insert(inner, 0, outer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "descendant");
    /* an optimizer of it, and of one around it */
    tn_optimizer *optimizer = tn_sgd(outer, .lr = 0.1);
    assert_int_equal(tn_sequential_insert(inner, 0, tn_relu_layer()), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "free it first");
    assert_int_equal(tn_sequential_insert(inner, 0, outer), TN_ERR_STATE); /* which is still there */
    check_latched(TN_ERR_STATE, "descendant");
    assert_int_equal(tn_sequential_insert(outer, 0, outer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "descendant");
    none = tn_sequential_pop(inner, 0);
    check_latched(TN_ERR_STATE, "free it first");
    tn_layer_free(none);
    tn_optimizer_free(optimizer);
    assert_int_equal(tn_sequential_insert(inner, 0, tn_relu_layer()), TN_OK);
    /* names of its own that are in the way */
    assert_int_equal(tn_layer_add(net, "3", tn_relu_layer()), TN_OK);
    assert_int_equal(tn_sequential_insert(net, 3, tn_relu_layer()), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "'3'");
    assert_int_equal(tn_sequential_insert(net, 0, tn_relu_layer()), TN_OK); /* 0 1 2 and, in its place now, 3 */
    assert_int_equal(tn_layer_add(net, "5", tn_relu_layer()), TN_OK);
    tn_layer_free(tn_sequential_pop(net, 0)); /* 0 1 2 "5" */
    assert_int_equal(tn_param_count(net), 2);
    tn_layer_free(net);
    tn_layer_free(outer);
    check_fine();
}

/* The network trains as one made so from the start. */
static void test_trains(void **state)
{
    (void)state;
    double losses[2][4];
    for (int way = 0; way < 2; way++) TN_SCOPE {
        tn_seed(7);
        tn_layer *a = tn_linear(8, .in = 3), *b = tn_tanh_layer(), *c = tn_linear(2, .in = 8);
        tn_layer *net = way ? tn_sequential(a, b, c) : tn_sequential(a, c, tn_relu_layer());
        if (!way) {
            tn_layer_free(tn_sequential_pop(net, 2));
            assert_int_equal(tn_sequential_insert(net, 1, b), TN_OK);
        }
        tn_array *x = tn_arange(0, 12, 1), *t = tn_scalar(0.3);
        x = tn_multiply(tn_reshape(x, TN_SHAPE(4, 3)), 0.1);
        tn_optimizer *optimizer = tn_adam(net, .lr = 0.05);
        for (int i = 0; i < 4; i++) {
            tn_array *loss = tn_mean(tn_square(tn_subtract(tn_forward(net, x), t)));
            assert_int_equal(tn_backward(loss), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            losses[way][i] = tn_item(loss);
        }
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_true(losses[0][3] < losses[0][0]);
}

static tn_status edits(void *user)
{
    (void)user;
    tn_layer *net = tn_sequential(tn_linear(2, .in = 2), tn_relu_layer(), tn_linear(2, .in = 2));
    tn_status status = tn_layer_status(net);
    if (status == TN_OK)
        status = tn_sequential_insert(net, 1, tn_linear(2, .in = 2));
    tn_layer *out = status == TN_OK ? tn_sequential_pop(net, 0) : NULL;
    if (out && status == TN_OK)
        status = tn_layer_status(out);
    if (status == TN_OK)
        status = tn_sequential_insert(net, -1, out);
    else
        tn_layer_free(out);
    tn_layer_free(net);
    return status;
}

static void test_starved(void **state)
{
    (void)state;
    starve("edits", edits, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),  cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_trains),
                                       cmocka_unit_test(test_starved)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
