/* SPDX-License-Identifier: MIT */
/* Chainer's links and PyTorch's modules: their weights are loaded by name, and give their values; layers of losses over
 * vocabularies; what is refused. */
#include "nn/torch.h"

static tn_array *part(const char *name, const char *what)
{
    char path[96];
    snprintf(path, sizeof path, "%s.%s", name, what);
    return tn_cast(torch_value(path), TN_FLOAT32);
}

static void near(const char *name, const char *what, const tn_array *got, const tn_array *want)
{
    assert_string_equal(tn_is_error(got) ? tn_message_of(got) : "", "");
    if (tn_ndim(got) != tn_ndim(want) || !tn_allclose(got, want, .rtol = 1e-4, .atol = 2e-5))
        fail_msg("%s: %s is another", name, what);
}

static void load(tn_layer *layer, const char *file, const char *name, const tn_load_opts *opts)
{
    char path[4096], prefix[64];
    tn_load_opts all = *opts;
    snprintf(path, sizeof path, "%s/%s", getenv("TANSO_TEST_DATA"), file);
    snprintf(prefix, sizeof prefix, "%s%s", name, opts->chainer ? "/" : ".");
    all.prefix = prefix;
    if (tn_layer_load_with(layer, path, &all) != TN_OK)
        fail_msg("%s: %s", name, tn_error());
}

static const tn_load_opts chainer = {.chainer = true}, normalized = {.chainer = true, .ignore = "*.avg_* *.N"};

static void test_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tn_rnn_kind kind;
        int64_t units;
        tn_rnn_opts rnn;
    } networks[] = {{"n_lstm", TN_RNN_LSTM, 2, {.layers = 2, .bidirectional = true, ._ = ".layers"}},
                    {"n_gru", TN_RNN_GRU, 3, {.in = 2, ._ = ".in"}},
                    {"n_tanh", TN_RNN_TANH, 2, {.layers = 2, ._ = ".layers"}},
                    {"n_relu", TN_RNN_RELU, 2, {.bidirectional = true}}};
    if (!values_open("chainer.npz"))
        skip();
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        TN_SCOPE {
            const char *name = networks[i].name;
            bool cell = networks[i].kind == TN_RNN_LSTM;
            tn_layer *layer = tn_rnn_with(networks[i].kind, networks[i].units, &networks[i].rnn);
            load(layer, "chainer.npz", name, &chainer);
            tn_array *y, *h, *c, *lengths = tn_cast(part(name, "lengths"), TN_INT64);
            const tn_array *in[] = {part(name, "x"), NULL, cell ? NULL : lengths, lengths};
            tn_array **const out[] = {&y, &h, &c};
            assert_int_equal(tn_forward_all(layer, cell ? 4 : 3, in, cell ? 3 : 2, out), TN_OK);
            near(name, "y", y, part(name, "y"));
            near(name, "h", h, part(name, "h"));
            if (cell)
                near(name, "c", c, part(name, "c"));
            tn_layer_free(layer);
        }
    torch_close();
    check_fine();
}

/* One step after another, and what a file without them is told. */
static void test_steps(void **state)
{
    (void)state;
    static const tn_rnn_kind kinds[] = {TN_RNN_LSTM, TN_RNN_GRU_BEFORE};
    if (!values_open("chainer.npz"))
        skip();
    for (int k = 0; k < 2; k++)
        TN_SCOPE {
            const char *name = k ? "one_gru" : "one_lstm";
            tn_layer *layer = tn_rnn_step_with(kinds[k], 2, NULL);
            load(layer, "chainer.npz", name, &chainer);
            tn_array *x = part(name, "x"), *y = part(name, "y");
            for (int i = 0; i < 3; i++)
                near(name, "y", tn_forward(layer, tn_index(x, i)), tn_index(y, i));
            tn_layer_free(layer);
            layer = tn_rnn_with(k ? TN_RNN_GRU : TN_RNN_GRU_BEFORE, 2, NULL);
            char path[4096];
            snprintf(path, sizeof path, "%s/chainer.npz", getenv("TANSO_TEST_DATA"));
            assert_int_equal(tn_layer_load(layer, path, .prefix = "n_lstm/", .chainer = true),
                             k ? TN_ERR_SHAPE : TN_ERR_NAME);
            tn_clear_error();
            tn_layer_free(layer);
        }
    torch_close();
}

static tn_array *tree_lstm_step(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    tn_array *c, *h = tn_tree_lstm_step(x[1], x[0], &c);
    return tn_concatenate(TN_ARRAYS(h, c), 1);
}

static tn_array *through_tree(int count, tn_array *const *xs, void *user)
{
    (void)count;
    tn_array *h, *c;
    const tn_array *in[] = {xs[0], xs[1], xs[2]};
    tn_array **const out[] = {&h, &c};
    tn_status status = tn_forward_all(user, 3, in, 2, out);
    return status == TN_OK ? tn_concatenate(TN_ARRAYS(h, c), 1) : h;
}

static void test_trees(void **state)
{
    (void)state;
    static const torch_case step = {"tree_lstm_step", tree_lstm_step, false};
    if (!values_open("chainer.npz"))
        skip();
    torch_check(1, &step);
    for (int64_t children = 0; children <= 2; children += 2)
        TN_SCOPE {
            const char *name = children ? "tree_two" : "tree_sum";
            tn_layer *layer = tn_tree_lstm(3, children, 0);
            load(layer, "chainer.npz", name, &chainer);
            tn_array *h, *c, *x = part("tree", "x");
            tn_array *const xs[] = {x, part("tree", "h"), part("tree", "c")};
            tn_array **const out[] = {&h, &c};
            const tn_array *const in[] = {xs[0], xs[1], xs[2]};
            assert_int_equal(tn_forward_all(layer, 3, in, 2, out), TN_OK);
            near(name, "h", h, part(name, "h"));
            near(name, "c", c, part(name, "c"));
            assert_int_equal(tn_forward_all(layer, 1, in, 2, out), TN_OK);
            near(name, "a leaf's h", h, part(name, "leaf_h"));
            near(name, "a leaf's c", c, part(name, "leaf_c"));
            tn_set_compile(TN_COMPILE_NEVER);
            if (tn_check_backward(through_tree, layer, 3, in, .seed = check_bits()) != TN_OK ||
                tn_check_double_backward(through_tree, layer, 3, in, .seed = check_bits()) != TN_OK)
                fail_msg("%s: %s", name, tn_error());
            tn_set_compile(TN_COMPILE_AUTO);
            tn_layer_free(layer);
        }
    torch_close();
    check_fine();
}

static void test_modules(void **state)
{
    (void)state;
    if (!values_open("chainer.npz"))
        skip();
    tn_set_compile(TN_COMPILE_NEVER);
    TN_SCOPE {
        static const char *const names[] = {"inception", "inception_bn", "inception_stride", "perceptron"};
        tn_layer *const layers[] = {
            tn_inception(2, 3, 2, 2, 3, 1), tn_inception_bn(2, 3, 2, 2, 3, .proj_pool = 1, .average = true),
            tn_inception_bn(0, 2, 3, 2, 3, .stride = 2),
            tn_mlp_conv2d(TN_SHAPE(4, 3, 2), TN_SHAPE(3), "tanh", .stride = TN_SHAPE(2), .pad = TN_SHAPE(1))};
        for (int i = 0; i < 4; i++) {
            load(layers[i], "chainer.npz", names[i], strstr(names[i], "inception_") ? &normalized : &chainer);
            near(names[i], "y", tn_forward(layers[i], part("modules", "x")), part(names[i], "y"));
            tn_layer_free(layers[i]);
        }
    }
    torch_close();
    if (torch_open()) {
        static const tn_load_opts of_torch = {.transpose = "*weight *W",
                                              .rename = "W=weight b=bias gamma=weight beta=bias"};
        TN_SCOPE for (int first = 0; first < 2; first++) {
            const char *name = first ? "encoder_first" : "encoder";
            tn_layer *layer = tn_transformer_encoder_layer(6, 2, .hidden = 5, .dropout = 0,
                                                           .activation = first ? "gelu" : "relu", .norm_first = first);
            load(layer, "torch.npz", name, &of_torch);
            near(name, "y", tn_forward(layer, part("encoder", "x")), part(name, "y"));
            tn_array *mask = tn_zeros(TN_SHAPE(4, 4), .dtype = TN_FLOAT32);
            near(name, "masked y", tn_forward(layer, part("encoder", "x"), mask), part(name, "y"));
            tn_layer_free(layer);
        }
        torch_close();
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* ---- vocabularies ---- */

static tn_array *hierarchical_softmax(tn_array *const *x, tn_array *const *t)
{
    (void)t;
    return tn_hierarchical_softmax(x[0], torch_value("softmax_tree.t"), x[1], torch_value("softmax_tree.paths"),
                                   part("softmax_tree", "codes"), .reduction = TN_REDUCTION_SUM);
}

/* The least sum of counts times lengths: each join adds its count once. */
static double least_cost(int count, const double *counts)
{
    double left[64], cost = 0;
    memcpy(left, counts, sizeof *left * (size_t)count);
    while (count > 1) {
        for (int i = 0; i < 2; i++) /* the two smallest come last */
            for (int k = 0; k < count - 1 - i; k++)
                if (left[k] < left[k + 1]) {
                    double kept = left[k];
                    left[k] = left[k + 1];
                    left[k + 1] = kept;
                }
        left[count - 2] += left[count - 1];
        cost += left[--count - 1];
    }
    return cost;
}

/* The tree is one of least cost, and whatever the weights are its words' chances come to 1. */
static void test_tree_of_words(void **state)
{
    (void)state;
    static const torch_case given = {"hierarchical_softmax", hierarchical_softmax, false};
    if (values_open("chainer.npz")) {
        torch_check(1, &given);
        torch_close();
    }
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 20; round++)
        TN_SCOPE {
            int words = (int)test_random_int(&check_random, 2, 40);
            double counts[40], length[40];
            for (int i = 0; i < words; i++)
                counts[i] = (double)test_random_int(&check_random, 0, round < 10 ? 9 : 1000000);
            tn_array *given_counts = check_array(counts, TN_SHAPE(words), TN_FLOAT64), *paths, *codes;
            assert_int_equal(tn_huffman_tree(given_counts, &paths, &codes), TN_OK);
            check_read(tn_sum(tn_abs(codes), .axis = TN_AXES(1)), length, words);
            double cost = 0;
            for (int i = 0; i < words; i++)
                cost += counts[i] * length[i];
            assert_true(cost == least_cost(words, counts));
            tn_layer *layer = tn_hierarchical_softmax_layer(3, given_counts);
            tn_array *t = tn_arange(0, words, 1, .dtype = TN_INT64), *x = tn_random_normal(TN_SHAPE(1, 3));
            tn_array *rows = tn_broadcast_to(x, TN_SHAPE(words, 3));
            tn_array *losses = tn_hierarchical_softmax(rows, t, tn_param(layer, 0), paths, codes,
                                                       .reduction = TN_REDUCTION_NONE);
            assert_true(fabs(tn_item(tn_sum(tn_exp(tn_negative(losses)))) - 1) < 1e-4);
            assert_true(tn_allclose(tn_forward(layer, rows, t), tn_mean(losses), .rtol = 1e-5));
            tn_layer_free(layer);
        }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

typedef struct wanted {
    const char *name;
    tn_array *value;
} wanted;

static tn_status take(const tn_layer_part *at, void *user)
{
    wanted *w = user;
    if (at->kind == TN_PART_PERSISTENT && strcmp(at->path, w->name) == 0)
        w->value = at->value;
    return TN_OK;
}

static tn_array *persistent(tn_layer *layer, const char *name)
{
    wanted w = {name, NULL};
    assert_int_equal(tn_layer_walk(layer, take, &w), TN_OK);
    assert_non_null(w.value);
    return w.value;
}

/* Its tables draw words by their counts to the power, and it learns from what is drawn. */
static void test_sampled_words(void **state)
{
    (void)state;
    enum { MOST = 30 };
    for (int round = 0; round < 10; round++)
        TN_SCOPE {
            int words = (int)test_random_int(&check_random, 2, MOST);
            double counts[MOST], chance[MOST], other[MOST], p[MOST] = {0}, sum = 0;
            for (int i = 0; i < words; i++) {
                counts[i] = (double)test_random_int(&check_random, i == 0, 100);
                sum += pow(counts[i], 0.75);
            }
            tn_layer *layer = tn_negative_sampling_layer(3, check_array(counts, TN_SHAPE(words), TN_INT64), 5, 0.75);
            check_read(persistent(layer, "chance"), chance, words);
            check_read(persistent(layer, "other"), other, words);
            for (int i = 0; i < words; i++) {
                p[i] += chance[i] / words;
                p[(int)other[i]] += (1 - chance[i]) / words;
            }
            for (int i = 0; i < words; i++)
                assert_true(fabs(p[i] - pow(counts[i], 0.75) / sum) < 1e-5);
            tn_array *x = tn_random_normal(TN_SHAPE(7, 3)), *t = tn_zeros(TN_SHAPE(7), .dtype = TN_INT32);
            assert_true(fabs(tn_item(tn_forward(layer, x, t)) - 6 * log(2)) < 1e-5);
            tn_layer_free(layer);
        }
    TN_SCOPE { /* of two words one is never drawn: the loss is that of the other alone */
        const double counts[] = {0, 3};
        tn_layer *layer = tn_negative_sampling_layer(2, check_array(counts, TN_SHAPE(2), TN_FLOAT32), 4, 1);
        const double weights[] = {100, 100, 0.5, -0.25}, row[] = {1, 2};
        assert_int_equal(tn_assign(tn_param(layer, 0), check_array(weights, TN_SHAPE(2, 2), TN_FLOAT32)), TN_OK);
        tn_array *x = check_array(row, TN_SHAPE(1, 2), TN_FLOAT32), *t = tn_ones(TN_SHAPE(1), .dtype = TN_INT64);
        assert_true(fabs(tn_item(tn_forward(layer, x, t)) - 5 * log(2)) < 1e-5);
        tn_layer_free(layer);
    }
    check_fine();
}

/* A word that is never drawn has no part: the softmax is over the label and four times the other word. */
static void test_black_out(void **state)
{
    (void)state;
    TN_SCOPE {
        const double counts[] = {0, 3}, weights[] = {1, 0, 0.5, -0.25}, row[] = {1, 2};
        tn_layer *layer = tn_black_out_layer(2, check_array(counts, TN_SHAPE(2), TN_FLOAT32), 4);
        assert_int_equal(tn_assign(tn_param(layer, 0), check_array(weights, TN_SHAPE(2, 2), TN_FLOAT32)), TN_OK);
        tn_array *x = check_array(row, TN_SHAPE(1, 2), TN_FLOAT32), *t = tn_zeros(TN_SHAPE(1), .dtype = TN_INT64);
        double all = exp(1) + 4; /* the other word's score is 0 */
        double want = -log(exp(1) / all) - 4 * log(1 - 1 / all);
        assert_true(fabs(tn_item(tn_forward(layer, x, t)) - want) < 1e-5);
        tn_layer_free(layer);
    }
    check_fine();
}

/* The function's loss and gradient, with lengths and without; costs by Chainer's name. */
static void test_crf(void **state)
{
    (void)state;
    enum { STEPS = 4, ROWS = 3, K = 3 };
    static const int64_t counts[] = {4, 1, 3}, places[] = {0, 1, 2, 2, 1, 0, 0, 2, 1, 1, 1, 2};
    TN_SCOPE {
        tn_layer *layer = tn_crf_layer(K);
        tn_array *cost = tn_param_named(layer, "cost"), *x = tn_random_normal(TN_SHAPE(STEPS, ROWS, K));
        assert_true(tn_item(tn_all(tn_equal(cost, 0))));
        tn_array *costs = tn_random_normal(TN_SHAPE(K, K));
        assert_int_equal(tn_assign(cost, costs), TN_OK);
        tn_array *t = tn_reshape(tn_from_int64s(places, STEPS * ROWS), TN_SHAPE(STEPS, ROWS));
        tn_array *lengths = tn_from_int64s(counts, ROWS);
        near("crf", "all", tn_forward(layer, x, t), tn_crf_loss(costs, x, t));
        near("crf", "lengths", tn_forward(layer, x, t, lengths), tn_crf_loss(costs, x, t, .lengths = lengths));
        tn_requires_grad(costs);
        assert_int_equal(tn_backward(tn_crf_loss(costs, x, t, .lengths = lengths)), TN_OK);
        assert_int_equal(tn_backward(tn_forward(layer, x, t, lengths)), TN_OK);
        near("crf", "gradient", tn_grad(cost), tn_grad(costs));
        assert_true(tn_is_error(tn_forward(layer, x, tn_flatten(t))));
        check_latched(TN_ERR_SHAPE, "those of x");
        tn_layer_free(layer);
    }
    check_fine();
}

/* Weights are dropped one by one, each row's anew, and the rest scaled up. */
static void test_dropconnect(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(50, 8)), *w = tn_ones(TN_SHAPE(8, 3)), *b = tn_full(TN_SHAPE(3), 0.5);
        near("dropconnect", "all", tn_dropconnect(x, w, b, 0, NULL), tn_linear_function(x, w, b));
        tn_array *kept = tn_multiply(tn_dropconnect(x, w, NULL, 0.5, NULL), 0.5);
        assert_true(tn_item(tn_all(tn_equal(kept, tn_round(kept, 0)))));
        assert_true(tn_item(tn_any(tn_not_equal(kept, tn_slice_axis(kept, 0, 0, 1, 1)))));
        double mean = tn_item(tn_mean(kept)); /* 1200 weights, each kept with chance 1/2 */
        assert_true(fabs(mean - 4) < 6 * sqrt(8 * 0.25 / 150));
        REFUSED(TN_ERR_VALUE, "a ratio in [0, 1)", tn_dropconnect(x, w, b, 1, NULL));
        REFUSED(TN_ERR_SHAPE, "expected x (N, in)", tn_dropconnect(x, b, b, 0.5, NULL));
    }
    check_fine();
}

static void refused(tn_layer *layer, tn_status status, const char *word)
{
    assert_int_equal(tn_layer_status(layer), status);
    check_latched(status, word);
    tn_layer_free(layer);
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *two = tn_ones(TN_SHAPE(2)), *paths = NULL, *codes = NULL;
        refused(tn_tree_lstm(0, 0, 3), TN_ERR_VALUE, "at least one unit");
        refused(tn_hierarchical_softmax_layer(0, two), TN_ERR_VALUE, "one feature");
        refused(tn_hierarchical_softmax_layer(3, tn_ones(TN_SHAPE(1))), TN_ERR_SHAPE, "two words or more");
        refused(tn_hierarchical_softmax_layer(3, tn_negative(two)), TN_ERR_VALUE, "counts >= 0");
        refused(tn_negative_sampling_layer(3, tn_zeros(TN_SHAPE(2)), 2, 1), TN_ERR_VALUE, "sum above 0");
        refused(tn_negative_sampling_layer(3, two, 0, 1), TN_ERR_VALUE, "one sample or more");
        refused(tn_black_out_layer(3, two, 0), TN_ERR_VALUE, "black_out: expected one sample or more");
        refused(tn_crf_layer(0), TN_ERR_VALUE, "one class or more");
        refused(tn_inception(0, 1, 1, 1, 1, 1), TN_ERR_VALUE, "");
        refused(tn_inception_bn(2, 1, 1, 1, 1, .stride = 2), TN_ERR_VALUE, "expected out1 >= 0");
        refused(tn_mlp_conv2d((tn_shape){0}, TN_SHAPE(3), NULL), TN_ERR_VALUE, "numbers of channels");
        refused(tn_transformer_encoder_layer(6, 4), TN_ERR_VALUE, "heads that divide");
        assert_int_equal(tn_huffman_tree(tn_full(TN_SHAPE(2), NAN), &paths, &codes), TN_ERR_VALUE);
        assert_true(tn_is_error(paths) && tn_is_error(codes));
        tn_clear_error();
        tn_layer *tree = tn_tree_lstm(3, 2, 4);
        tn_array *x = tn_ones(TN_SHAPE(2, 4)), *h = tn_ones(TN_SHAPE(2, 3, 3));
        REFUSED(TN_ERR_SHAPE, "expected h and c", tn_forward(tree, x, h, h));
        REFUSED(TN_ERR_VALUE, "or neither", tn_forward(tree, x, h));
        tn_layer_free(tree);
        REFUSED(TN_ERR_SHAPE, "gates (N, (3 + children) units)", tn_tree_lstm_step(x, h, NULL));
        tn_array *t = tn_zeros(TN_SHAPE(2), .dtype = TN_INT64);
        REFUSED(TN_ERR_SHAPE, "paths and codes",
                tn_hierarchical_softmax(x, t, x, t, two));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),    cmocka_unit_test(test_steps),         cmocka_unit_test(test_trees),
        cmocka_unit_test(test_modules),      cmocka_unit_test(test_tree_of_words), cmocka_unit_test(test_sampled_words),
        cmocka_unit_test(test_black_out), cmocka_unit_test(test_crf),
        cmocka_unit_test(test_dropconnect),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
