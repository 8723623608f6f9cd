/* SPDX-License-Identifier: MIT */
/* Recurrent networks against PyTorch's values, with its weights; states that go on; what they refuse. */
#include "nn/torch.h"

static tn_array *part(const char *name, const char *what)
{
    char path[96];
    snprintf(path, sizeof path, "%s.%s", name, what);
    return tn_cast(torch_value(path), TN_FLOAT32);
}

static void near(const char *name, const char *what, tn_array *got, tn_array *want)
{
    assert_string_equal(tn_is_error(got) ? tn_message_of(got) : "", "");
    tn_shape a = tn_shape_of(got), b = tn_shape_of(want);
    if (a.ndim != b.ndim || memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim) != 0 ||
        !tn_allclose(got, want, .rtol = 1e-4, .atol = 2e-5))
        fail_msg("%s: %s is another", name, what);
}

/* PyTorch's weights, from its file, as they are. */
static void load(tn_layer *layer, const char *name)
{
    char path[4096], prefix[64];
    snprintf(path, sizeof path, "%s/torch.npz", getenv("TANSO_TEST_DATA"));
    snprintf(prefix, sizeof prefix, "%s.", name);
    if (tn_layer_load(layer, path, .prefix = prefix, .transpose = "weight*") != TN_OK)
        fail_msg("%s: %s", name, tn_error());
}

typedef struct options {
    const char *name;
    tn_rnn_kind kind;
    int64_t units;
    tn_rnn_opts rnn;
    bool lengths, states;
} options;

static void check_network(const options *o)
{
    const char *name = o->name;
    bool cell = o->kind == TN_RNN_LSTM;
    tn_layer *layer = tn_rnn_with(o->kind, o->units, &o->rnn);
    load(layer, name);
    tn_array *x = tn_requires_grad(part(name, "x")), *h = o->states ? tn_requires_grad(part(name, "h0")) : NULL;
    tn_array *c = o->states && cell ? tn_requires_grad(part(name, "c0")) : NULL, *y, *hn, *cn = NULL;
    tn_array *lengths = o->lengths ? tn_cast(part(name, "lengths"), TN_INT32) : NULL;
    const tn_array *in[] = {x, h, cell ? c : lengths, lengths};
    tn_array **const out[] = {&y, &hn, &cn};
    if (tn_forward_all(layer, cell ? 4 : 3, in, cell ? 3 : 2, out) != TN_OK)
        fail_msg("%s: %s", name, tn_error());
    near(name, "y", y, part(name, "y"));
    near(name, "h", hn, part(name, "h"));
    tn_array *loss = tn_add(tn_sum(tn_multiply(y, part(name, "gy"))), tn_sum(tn_multiply(hn, part(name, "gh"))));
    if (cell) {
        near(name, "c", cn, part(name, "c"));
        loss = tn_add(loss, tn_sum(tn_multiply(cn, part(name, "gc"))));
    }
    assert_int_equal(tn_backward(loss), TN_OK);
    near(name, "dx", tn_grad(x), part(name, "dx"));
    if (h)
        near(name, "dh0", tn_grad(h), part(name, "dh0"));
    if (c)
        near(name, "dc0", tn_grad(c), part(name, "dc0"));
    for (int i = 0; i < tn_param_count(layer); i++) {
        char what[64];
        snprintf(what, sizeof what, "d.%s", tn_param_name(layer, i));
        tn_array *want = part(name, what);
        near(name, what, tn_grad(tn_param(layer, i)), tn_ndim(want) == 2 ? tn_transpose(want, (tn_axes){0}) : want);
    }
    tn_layer_free(layer);
}

static void test_networks(void **state)
{
    (void)state;
    static const options networks[] = {
        {"lstm", TN_RNN_LSTM, 4, {.layers = 2, .bidirectional = true}, true, true},
        {"lstm_plain", TN_RNN_LSTM, 3, {.in = 2}, false, false},
        {"gru", TN_RNN_GRU, 4, {.layers = 2}, false, true},
        {"gru_lengths", TN_RNN_GRU, 3, {.bidirectional = true}, true, false},
        {"rnn", TN_RNN_TANH, 2, {.layers = 2, .bidirectional = true}, false, true},
        {"rnn_relu", TN_RNN_RELU, 2, {.no_bias = true}, false, true},
    };
    if (!torch_open())
        skip();
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        TN_SCOPE check_network(&networks[i]);
    torch_close();
    check_fine();
}

/* h and c side by side. */
static tn_array *lstm_step(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *c, *h = tn_lstm_step(x[0], x[1], &c);
    return tn_concatenate(TN_ARRAYS(h, c), 1);
}

static tn_array *lstm_peephole_step(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *c, *h = tn_lstm_peephole_step(x[0], x[1], x[2], &c);
    return tn_concatenate(TN_ARRAYS(h, c), 1);
}

static tn_array *gru_step(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_gru_step(x[0], x[1], x[2]);
}

static void test_steps(void **state)
{
    (void)state;
    static const torch_case cases[] = {{"lstm_step", lstm_step, false},
                                       {"lstm_peephole_step", lstm_peephole_step, false},
                                       {"gru_step", gru_step, false}};
    if (!torch_open())
        skip();
    torch_check(3, cases);
    TN_SCOPE {
        tn_layer *layer = tn_rnn(TN_RNN_MGU, 2, .in = 3);
        static const char *const names[] = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
        for (int i = 0; i < 4; i++) {
            char value[16];
            snprintf(value, sizeof value, "%d", i + 1);
            assert_int_equal(tn_assign(tn_param_named(layer, names[i]), part("mgu", value)), TN_OK);
        }
        near("mgu", "y", tn_forward(layer, part("mgu", "0")), part("mgu", "y"));
        tn_layer_free(layer);
    }
    torch_close();
    check_fine();
}

static tn_array *through(int count, tn_array *const *xs, void *user)
{
    (void)count;
    tn_array *y, *h;
    const tn_array *in[] = {xs[0], xs[1]};
    tn_array **const out[] = {&y, &h};
    tn_status status = tn_forward_all(user, 2, in, 2, out);
    return status == TN_OK ? tn_concatenate(TN_ARRAYS(y, h), 0) : y;
}

/* Gradients of both orders of whole layers, of every kind. */
static void test_gradients(void **state)
{
    (void)state;
    for (int kind = 0; kind < TN_RNN_KIND_COUNT; kind++)
        TN_SCOPE {
            tn_layer *layer = tn_rnn((tn_rnn_kind)kind, 2, .in = 3, .dtype = TN_FLOAT64);
            const tn_array *in[] = {tn_random_normal(TN_SHAPE(2, 1, 3)), tn_random_normal(TN_SHAPE(1, 1, 2))};
            if (kind == TN_RNN_RELU) {
                tn_layer_free(layer);
                continue; /* kinks are met by chance; its values are PyTorch's */
            }
            if (tn_check_backward(through, layer, 2, in, .seed = check_bits()) != TN_OK ||
                tn_check_double_backward(through, layer, 2, in, .seed = check_bits()) != TN_OK)
                fail_msg("kind %d: %s", kind, tn_error());
            tn_layer_free(layer);
        }
    check_fine();
}

/* Two halves are the whole, for layers that keep their state and for single steps; after a reset they begin anew. */
static void test_state(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *whole = tn_lstm(3, .in = 2, .layers = 2), *kept = tn_lstm(3, .in = 2, .layers = 2, .stateful = true);
        tn_layer *step = tn_rnn_step(TN_RNN_LSTM, 3, .in = 2, .layers = 2);
        assert_int_equal(tn_layer_copy_params(kept, whole), TN_OK);
        assert_int_equal(tn_layer_copy_params(step, whole), TN_OK);
        tn_array *x = tn_random_normal(TN_SHAPE(4, 5, 2)), *want = tn_forward(whole, x);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 2; i++) {
                tn_array *y = tn_forward(kept, tn_slice_axis(x, 0, 2 * i, 2 * i + 2, 1));
                near("halves", "y", y, tn_slice_axis(want, 0, 2 * i, 2 * i + 2, 1));
                assert_int_equal(tn_layer_detach_state(kept), TN_OK);
            }
            for (int i = 0; i < 4; i++)
                near("steps", "y", tn_forward(step, tn_index(x, i)), tn_index(want, i));
            assert_int_equal(tn_layer_reset_state(kept), TN_OK);
            assert_int_equal(tn_layer_reset_state(step), TN_OK);
        }
        (void)tn_forward(kept, x);
        tn_layer *copy = tn_layer_copy(kept); /* with no state */
        near("copy", "y", tn_forward(copy, x), want);
        tn_layer_free(copy);
        assert_true(tn_is_error(tn_forward(kept, tn_ones(TN_SHAPE(4, 3, 2)))));
        check_latched(TN_ERR_SHAPE, "tn_layer_reset_state forgets");
        tn_layer_free(whole), tn_layer_free(kept), tn_layer_free(step);
    }
    check_fine();
}

/* Truncated backpropagation: a loss that falls, with a state that goes on and no graph that grows. */
static void test_truncated(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *rnn = tn_gru(8, .stateful = true, .in = 1), *out = tn_linear(1, .in = 8);
        tn_layer *net = tn_sequential(rnn, out);
        tn_optimizer *adam = tn_adam(net, .lr = 0.02);
        double first = 0, last = 0;
        for (int i = 0; i < 60; i++)
            TN_SCOPE {
                tn_array *at = tn_reshape(tn_multiply(tn_arange(5 * i, 5 * i + 6, 1, .dtype = TN_FLOAT32), 0.3),
                                          TN_SHAPE(6, 1, 1));
                tn_array *wave = tn_sin(at), *now = tn_slice_axis(wave, 0, 0, 5, 1);
                tn_array *loss = tn_mean_squared_error(tn_forward(net, now), tn_slice_axis(wave, 0, 1, 6, 1));
                assert_int_equal(tn_backward(loss), TN_OK);
                assert_int_equal(tn_step(adam), TN_OK);
                assert_int_equal(tn_layer_detach_state(net), TN_OK);
                last = tn_item(loss);
                first = i == 0 ? last : first;
            }
        assert_true(last < first / 2);
        tn_optimizer_free(adam);
        tn_layer_free(net);
    }
    check_fine();
}

/* No steps, no sequences, lengths of 0; zoneout and forget biases; words. */
static void test_edges(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *layer = tn_lstm(3, .in = 2, .bidirectional = true, .forget_bias = 1);
        tn_array *bias = tn_param_named(layer, "bias_ih_l0_reverse");
        assert_true(tn_item(tn_sum(bias)) == 3 && tn_item(tn_index(bias, 3)) == 1);
        tn_array *y, *h, *c, *lengths = tn_zeros(TN_SHAPE(4), .dtype = TN_INT64);
        tn_array *h0 = tn_random_normal(TN_SHAPE(2, 4, 3));
        const tn_array *in[] = {tn_ones(TN_SHAPE(5, 4, 2)), h0, h0, lengths};
        tn_array **const out[] = {&y, &h, &c};
        assert_int_equal(tn_forward_all(layer, 4, in, 3, out), TN_OK);
        assert_true(tn_item(tn_all(tn_equal(y, 0))));
        assert_true(tn_array_equal(h, h0, false) && tn_array_equal(c, h0, false));
        in[0] = tn_ones(TN_SHAPE(0, 4, 2)), in[3] = NULL;
        assert_int_equal(tn_forward_all(layer, 4, in, 3, out), TN_OK);
        assert_int_equal(tn_size(y), 0);
        assert_int_equal(tn_dim(y, 2), 6);
        assert_true(tn_array_equal(h, h0, false));
        assert_int_equal(tn_size(tn_forward(layer, tn_ones(TN_SHAPE(3, 0, 2)))), 0);
        assert_int_equal(test_eval(tn_forward(layer, tn_ones(TN_SHAPE(3, 0, 2)))), TN_OK);
        in[0] = tn_ones(TN_SHAPE(2, 4, 2)), in[3] = tn_full(TN_SHAPE(4), 3, .dtype = TN_INT64);
        (void)tn_forward_all(layer, 4, in, 3, out);
        assert_int_equal(test_eval(y), TN_ERR_INDEX);
        tn_clear_error();
        tn_layer_free(layer);

        tn_array *a = tn_random_normal(TN_SHAPE(300, 2)), *b = tn_random_normal(TN_SHAPE(300, 2));
        tn_array *mixed = tn_zoneout(a, b, 0.25, true, NULL);
        tn_array *kept = tn_equal(mixed, a);
        assert_true(tn_item(tn_all(tn_logical_or(kept, tn_equal(mixed, b)))));
        double share = tn_item(tn_mean(tn_cast(kept, TN_FLOAT32)));
        assert_true(share > 0.1 && share < 0.4); /* 6 deviations are 0.106 */
        near("zoneout", "mean", tn_zoneout(a, b, 0.25, false, NULL),
             tn_add(tn_multiply(a, 0.25), tn_multiply(b, 0.75)));
        layer = tn_layer_parse("lstm:5:2 gru:4 rnn:3 linear:2");
        assert_int_equal(tn_dim(tn_forward(layer, tn_ones(TN_SHAPE(3, 2, 6))), -1), 2);
        char *text = tn_layer_string(layer);
        assert_non_null(strstr(text, "lstm:5:2"));
        tn_string_free(text);
        tn_layer_free(layer);
    }
    check_fine();
}

static void test_padding(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = tn_requires_grad(tn_ones(TN_SHAPE(3, 2))), *b = tn_full(TN_SHAPE(1, 2), 2);
        tn_array *none = tn_ones(TN_SHAPE(0, 2)), *y = tn_pad_sequence(TN_ARRAYS(a, b, none), 4, -1);
        const double want[] = {1, 1, 2, 2, -1, -1, 1, 1, -1, -1, -1, -1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        check_near(y, want, 24, 0);
        assert_int_equal(tn_dim(tn_pad_sequence(TN_ARRAYS(a, b), 0, 0), 0), 3);
        assert_int_equal(tn_backward(tn_sum(tn_square(y))), TN_OK);
        assert_true(tn_item(tn_all(tn_equal(tn_grad(a), 2))));
        assert_true(tn_is_error(tn_pad_sequence(TN_ARRAYS(a, b), 2, 0)));
        check_latched(TN_ERR_VALUE, "expected a length of 3");
        assert_true(tn_is_error(tn_pad_sequence(TN_ARRAYS(a, tn_ones(TN_SHAPE(1, 3))), 0, 0)));
        check_latched(TN_ERR_SHAPE, "alike but for their lengths");
    }
    check_fine();
}

static void refused(tn_layer *layer, const char *text)
{
    assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
    tn_layer_free(layer);
    check_latched(TN_ERR_VALUE, text);
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *bad = tn_lstm(0);
        assert_true(tn_is_error(tn_forward(bad, tn_ones(TN_SHAPE(1, 1, 1)))));
        refused(bad, "at least one unit");
        bad = tn_gru(3, .peepholes = true);
        assert_true(tn_is_error(tn_forward(bad, tn_ones(TN_SHAPE(1, 1, 1)))));
        refused(bad, "of lstm alone");
        bad = tn_lstm(3, .bidirectional = true, .stateful = true);
        assert_true(tn_is_error(tn_forward(bad, tn_ones(TN_SHAPE(1, 1, 1)))));
        refused(bad, "in one direction only");
        tn_layer *layer = tn_lstm(3, .in = 2);
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(4, 2)))));
        check_latched(TN_ERR_SHAPE, "expected floating inputs (steps, N, features)");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(4, 2, 3)))));
        check_latched(TN_ERR_SHAPE, "expected inputs of 2 features");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(4, 2, 2)), tn_ones(TN_SHAPE(1, 3, 3)))));
        check_latched(TN_ERR_SHAPE, "expected h of shape (1, 2, 3)");
        tn_layer_free(layer);
        tn_array *c;
        assert_true(tn_is_error(tn_lstm_step(tn_ones(TN_SHAPE(2, 8)), tn_ones(TN_SHAPE(2, 3)), &c)));
        check_latched(TN_ERR_SHAPE, "expected gates (N, 4 units)");
        assert_true(tn_is_error(c));
        assert_true(tn_is_error(tn_zoneout(c, c, 2, true, NULL)));
        tn_clear_error();
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks), cmocka_unit_test(test_steps), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_state), cmocka_unit_test(test_truncated), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_padding), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
