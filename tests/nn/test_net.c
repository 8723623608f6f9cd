/* SPDX-License-Identifier: MIT */
/* Layers as a tree: names and order of parameters, ownership, words, modes, devices, layers of the user's own. */
#include "nn/check.h"

static void test_names(void **state)
{
    (void)state;
    tn_layer *net =
        tn_sequential(tn_linear(4, .in = 3), tn_relu_layer(), tn_sequential(tn_layer_norm(0, 0), tn_linear(2)));
    const char *before[] = {"0.W", "0.b"}, *after[] = {"0.W", "0.b", "2.0.gamma", "2.0.beta", "2.1.W", "2.1.b"};
    assert_int_equal(tn_param_count(net), 2);
    for (int i = 0; i < 2; i++)
        assert_string_equal(tn_param_name(net, i), before[i]);
    tn_array *first = tn_param(net, 0);
    TN_SCOPE {
        assert_int_equal(tn_dim(tn_forward(net, tn_zeros_with(TN_SHAPE(5, 3), NULL)), 1), 2);
    }
    assert_int_equal(tn_param_count(net), 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(tn_param_name(net, i), after[i]);
        assert_ptr_equal(tn_param_named(net, after[i]), tn_param(net, i));
        assert_true(tn_needs_grad(tn_param(net, i)));
    }
    assert_ptr_equal(tn_param(net, 0), first);
    assert_int_equal(tn_param_total(net), 12 + 4 + 4 + 4 + 8 + 2);
    check_fine();

    TN_SCOPE {
        assert_true(tn_is_error(tn_param_named(net, "2.0.gama")));
        check_latched(TN_ERR_NAME, "did you mean '2.0.gamma'");
        assert_true(tn_is_error(tn_param(net, 6)));
        check_latched(TN_ERR_INDEX, "6 parameters");
        assert_string_equal(tn_param_name(net, -1), "");
        check_latched(TN_ERR_INDEX, "-1");
    }
    char *text = tn_layer_string(net);
    assert_string_equal(text, "sequential\n"
                              "  0: linear:4  W (3, 4) float32, b (4,) float32\n"
                              "  1: relu\n"
                              "  2: sequential\n"
                              "    0: layer_norm:4  gamma (4,) float32, beta (4,) float32\n"
                              "    1: linear:2  W (4, 2) float32, b (2,) float32\n");
    tn_string_free(text);
    tn_layer_free(net);
    check_fine();
}

static void test_modes_and_gradients(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_parse("linear:3 dropout:0.5 linear:2");
    assert_true(tn_layer_training(net));
    TN_SCOPE {
        tn_array *x = tn_ones_with(TN_SHAPE(2, 4), NULL);
        tn_layer_train(net, false);
        assert_false(tn_layer_training(net));
        double y[4], again[4];
        check_read(tn_forward(net, x), y, 4);
        check_read(tn_forward(net, x), again, 4);
        assert_memory_equal(y, again, sizeof y);
        assert_int_equal(tn_backward(tn_sum_with(tn_forward(net, x), NULL)), TN_OK);
        for (int i = 0; i < 4; i++)
            assert_true(tn_has_grad(tn_param(net, i)));
        tn_layer_clear_grads(net);
        for (int i = 0; i < 4; i++)
            assert_false(tn_has_grad(tn_param(net, i)));
    }
    tn_layer_free(net);
    check_fine();
}

/* Forward leaves one array, its result. */
static void test_forward_makes_one_array(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_parse("linear:3 relu layer_norm linear:2 softmax");
    TN_SCOPE {
        tn_array *x = tn_ones_with(TN_SHAPE(2, 4), NULL);
        tn_forward(net, x);
        size_t before = tn_live_arrays();
        tn_forward(net, x);
        assert_int_equal(tn_live_arrays(), before + 1);
    }
    tn_layer_free(net);
    check_fine();
}

static void test_ownership(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_layer *shared = tn_linear(2, .in = 2), *net = tn_sequential(shared);
    tn_layer *twice = tn_sequential(shared, tn_relu_layer());
    assert_int_equal(tn_layer_status(twice), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "belongs to a sequential already");
    tn_layer_free(twice);
    tn_layer_free(shared);
    check_latched(TN_ERR_STATE, "outermost");
    assert_int_equal(tn_layer_add(net, "0", tn_relu_layer()), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "'0' already");
    assert_int_equal(tn_layer_add(net, "a.b", tn_relu_layer()), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "a.b");
    assert_int_equal(tn_layer_add(net, "self", net), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "its own child");
    assert_int_equal(tn_layer_add(shared, "loop", net), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "descendant");
    assert_int_equal(tn_layer_add(net, "x", NULL), TN_ERR_VALUE);
    tn_clear_error();
    tn_layer_free(net);

    tn_layer *once = tn_relu_layer();
    net = tn_sequential(once, tn_tanh_layer(), once);
    check_latched(TN_ERR_STATE, "layers 0 and 2");
    tn_layer_free(net);
    net = tn_sequential(tn_linear(3, .in = 2), tn_linear(-1), NULL);
    assert_int_equal(tn_layer_status(net), TN_ERR_VALUE);
    TN_SCOPE {
        assert_int_equal(tn_status_of(tn_forward(net, tn_scalar_with(1, NULL))), TN_ERR_VALUE);
    }
    tn_layer_free(net);
    tn_layer_free(NULL);
    tn_clear_error();
    assert_int_equal(tn_live_arrays(), arrays);
}

/* ---- layers of the user's own ---- */

typedef struct residual {
    int calls;
    int *freed;
} residual;

static tn_array *residual_forward(tn_layer *layer, const tn_array *x, void *user)
{
    ((residual *)user)->calls++;
    tn_array *scale = tn_param_named(layer, "scale");
    return tn_add(x, tn_multiply(scale, tn_matmul(x, tn_param_named(layer, "inner.W"))));
}

static void residual_free(void *user)
{
    ++*((residual *)user)->freed;
}

static tn_array *halve(const tn_array *x, void *user)
{
    return tn_multiply(x, *(double *)user);
}

static tn_array *returns_null(const tn_array *x, void *user)
{
    (void)x, (void)user;
    return NULL;
}

static tn_array *leaves_scopes_open(const tn_array *x, void *user)
{
    (void)user;
    tn_scope_push();
    tn_scope_push();
    return tn_add(x, 1);
}

static void test_own_layer(void **state)
{
    (void)state;
    int freed = 0;
    double factor = 0.5;
    residual user = {0, &freed};
    tn_layer *own = tn_layer_new("residual", residual_forward, &user, residual_free);
    assert_int_equal(tn_layer_add(own, "inner", tn_linear(3, .in = 3, .no_bias = true)), TN_OK);
    TN_SCOPE {
        assert_false(tn_is_error(tn_layer_param(own, "scale", tn_full_with(TN_SHAPE(3), 2, NULL))));
    }
    tn_layer *net = tn_sequential(own, tn_function_layer("halve", halve, &factor));
    TN_SCOPE {
        double x[6], w[9], y[6], grad[3] = {0};
        check_fill(x, 6, -1, 1);
        check_read(tn_param_named(net, "0.inner.W"), w, 9);
        assert_string_equal(tn_param_name(net, 0), "0.scale");
        for (int i = 0; i < 6; i++) {
            double inner = 0;
            for (int k = 0; k < 3; k++)
                inner += x[i / 3 * 3 + k] * w[k * 3 + i % 3];
            y[i] = 0.5 * (x[i] + 2 * inner);
            grad[i % 3] += 0.5 * inner;
        }
        tn_array *input = check_array(x, TN_SHAPE(2, 3), TN_FLOAT32);
        assert_int_equal(tn_eval(input), TN_OK);
        size_t before = tn_live_arrays();
        tn_array *got = tn_forward(net, input);
        assert_int_equal(tn_live_arrays(), before + 1);
        check_near(got, y, 6, 1e-5);
        assert_int_equal(tn_backward(tn_sum_with(got, NULL)), TN_OK);
        check_near(tn_grad(tn_param(net, 0)), grad, 3, 1e-5);
        assert_int_equal(user.calls, 1);
        check_fine();

        int depth = tn_scope_depth();
        tn_layer *open = tn_function_layer("open", leaves_scopes_open, NULL);
        assert_int_equal(tn_dim(tn_forward(open, input), 0), 2);
        assert_int_equal(tn_scope_depth(), depth);
        tn_layer *nothing = tn_function_layer("nothing", returns_null, NULL);
        assert_true(tn_is_error(tn_forward(nothing, input)));
        check_latched(TN_ERR_VALUE, "nothing");
        tn_layer_free(open);
        tn_layer_free(nothing);
    }
    tn_layer_free(net);
    assert_int_equal(freed, 1);
    tn_layer_free(tn_layer_new("", residual_forward, &user, residual_free));
    assert_int_equal(freed, 2);
    check_latched(TN_ERR_VALUE, "name");
    tn_layer_free(tn_function_layer("f", NULL, NULL));
    check_latched(TN_ERR_VALUE, "NULL");
}

/* A layer's function reaches its children by name; so does anyone, by path. */
static tn_array *child_forward(tn_layer *layer, const tn_array *x, void *user)
{
    (void)user;
    return tn_add(x, tn_forward(tn_layer_child(layer, "inner"), x));
}

static void test_children(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_layer *own = tn_layer_new("own", child_forward, NULL, NULL), *inner = tn_linear(2, .in = 2);
    assert_int_equal(tn_layer_add(own, "inner", inner), TN_OK);
    tn_layer *net = tn_sequential(tn_relu_layer(), own);
    assert_ptr_equal(tn_layer_child(own, "inner"), inner);
    assert_ptr_equal(tn_layer_child(net, "1"), own);
    assert_ptr_equal(tn_layer_child(net, "1.inner"), inner);
    TN_SCOPE {
        const double x[] = {1, 2, 3, 4};
        double w[4], y[4];
        check_read(tn_param_named(net, "1.inner.W"), w, 4);
        for (int i = 0; i < 4; i++)
            y[i] = x[i] + x[i & 2] * w[i & 1] + x[(i & 2) + 1] * w[2 + (i & 1)];
        check_near(tn_forward(net, check_array(x, TN_SHAPE(2, 2), TN_FLOAT32)), y, 4, 1e-5);
        check_fine();

        assert_null(tn_layer_child(net, "1.iner"));
        check_latched(TN_ERR_NAME, "the own has no child 'iner': did you mean 'inner'?");
        const char *wrong[] = {"", ".", "1.", "1..inner", "2", "1.inner.W", "1.inner.x.y"};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            assert_null(tn_layer_child(net, wrong[i]));
            check_latched(TN_ERR_NAME, "layer_child");
        }
        assert_true(tn_is_error(tn_forward(tn_layer_child(net, "0.x"), tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_NAME, "the relu has no child 'x' among its 0");
        assert_null(tn_layer_child(NULL, "x"));
        check_latched(TN_ERR_VALUE, "layer");
        assert_null(tn_layer_child(net, NULL));
        check_latched(TN_ERR_VALUE, "path");
    }
    tn_layer_free(net);
    net = tn_linear(-1);
    tn_clear_error();
    assert_null(tn_layer_child(net, "0"));
    check_latched(TN_ERR_VALUE, "linear");
    tn_layer_free(net);
    assert_int_equal(tn_live_arrays(), arrays);
}

/* A path says one thing: names are not empty, hold nothing that parts names, and are there once. */
static void test_names_of_parts(void **state)
{
    (void)state;
    static const char *const wrong[] = {NULL, "", ".", "..", "a.b", "a/b", "/", "a/", ".a"};
    tn_layer *own = tn_layer_new("own", residual_forward, NULL, NULL);
    TN_SCOPE for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tn_layer_add(own, wrong[i], tn_relu_layer()), TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "expected a name without '.' and '/'");
        assert_true(tn_is_error(tn_layer_param(own, wrong[i], tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_NAME, "expected a name without '.' and '/'");
        assert_true(tn_is_error(tn_layer_persistent(own, wrong[i], tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_NAME, "expected a name without '.' and '/'");
    }
    TN_SCOPE {
        tn_layer_param(own, "a", tn_ones(TN_SHAPE(2)));
        tn_layer_persistent(own, "b", tn_ones(TN_SHAPE(2)));
        tn_layer_add(own, "c", tn_relu_layer());
        static const char *const taken[] = {"a", "b", "c"};
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(tn_layer_add(own, taken[i], tn_relu_layer()), TN_ERR_NAME);
            check_latched(TN_ERR_NAME, "already: choose another name");
            assert_true(tn_is_error(tn_layer_param(own, taken[i], tn_ones(TN_SHAPE(2)))));
            check_latched(TN_ERR_NAME, "already: choose another name");
            assert_true(tn_is_error(tn_layer_persistent(own, taken[i], tn_ones(TN_SHAPE(2)))));
            check_latched(TN_ERR_NAME, "already: choose another name");
        }
    }
    tn_layer_free(own);
}

static void test_param_errors(void **state)
{
    (void)state;
    tn_layer *own = tn_layer_new("own", residual_forward, NULL, NULL);
    TN_SCOPE {
        tn_array *p = tn_layer_param(own, "p", tn_ones_with(TN_SHAPE(2), NULL));
        assert_true(tn_is_error(tn_layer_param(own, "q", p)));
        check_latched(TN_ERR_STATE, "'p' already");
        tn_layer *other = tn_layer_new("other", residual_forward, NULL, NULL); /* both would free it */
        assert_true(tn_is_error(tn_layer_param(other, "p", p)));
        check_latched(TN_ERR_STATE, "a parameter of another layer");
        tn_layer_free(other);
        assert_true(tn_is_error(tn_layer_param(own, "p", tn_ones_with(TN_SHAPE(2), NULL))));
        check_latched(TN_ERR_NAME, "'p' already");
        assert_true(tn_is_error(tn_layer_param(own, "i", tn_cast(p, TN_INT32))));
        check_latched(TN_ERR_DTYPE, "int32");
        assert_true(tn_is_error(tn_layer_param(own, "n", NULL)));
        check_latched(TN_ERR_VALUE, "NULL");
        assert_int_equal(tn_param_count(own), 1);
        tn_layer *nothing = tn_function_layer("nothing", returns_null, NULL);
        assert_true(tn_is_error(tn_forward(nothing, tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_VALUE, "nothing: the layer's function returned NULL");
        tn_layer_free(nothing);
    }
    tn_layer_free(own);
}

/* ---- words ---- */

static void test_parse(void **state)
{
    (void)state;
    tn_layer *net =
        tn_layer_parse(" linear:1000\tsigmoid tanh gelu softplus relu\nleaky_relu:0.1 leaky_relu softmax softmax:0 "
                       "flatten dropout:0.25 dropout layer_norm layer_norm:5:1e-3 embedding:7:3 linear:10 ");
    check_fine();
    char *text = tn_layer_string(net);
    assert_non_null(strstr(text, "0: linear:1000  W (?, 1000) float32, b (1000,) float32\n"));
    assert_non_null(strstr(text, "6: leaky_relu:0.1\n"));
    assert_non_null(strstr(text, "7: leaky_relu:0.2\n"));
    assert_non_null(strstr(text, "8: softmax:-1\n"));
    assert_non_null(strstr(text, "11: dropout:0.25\n"));
    assert_non_null(strstr(text, "13: layer_norm  gamma (?,) float32, beta (?,) float32\n"));
    assert_non_null(strstr(text, "15: embedding:7:3  W (7, 3) float32\n"));
    tn_string_free(text);
    tn_layer_free(net);

    net = tn_mlp(3, (int64_t[]){6, 5, 4}, "relu");
    TN_SCOPE {
        assert_int_equal(tn_dim(tn_forward(net, tn_zeros_with(TN_SHAPE(2, 8), NULL)), 1), 4);
    }
    assert_string_equal(tn_param_name(net, 5), "4.b");
    tn_layer_free(net);
    check_fine();
}

static void test_parse_errors(void **state)
{
    (void)state;
    const struct {
        const char *text;
        tn_status code;
        const char *part;
    } rows[] = {
        {"linear:10 sigmoyd", TN_ERR_NAME, "did you mean 'sigmoid'"},
        {"lineer:10", TN_ERR_NAME, "did you mean 'linear'"},
        {"transmogrifier", TN_ERR_NAME, "layers are: linear:OUT"},
        {"linear", TN_ERR_VALUE, "expected linear:OUT"},
        {"linear:", TN_ERR_VALUE, "whole number"},
        {"linear:ten", TN_ERR_VALUE, "'ten' is no whole number"},
        {"linear:1.5", TN_ERR_VALUE, "whole number"},
        {"linear:1e30", TN_ERR_VALUE, "whole number"},
        {"linear:-3", TN_ERR_VALUE, "at least one output"},
        {"linear:3:4", TN_ERR_VALUE, "BIAS is 4, expected 0 (no) or 1"},
        {"linear:3:0:4", TN_ERR_VALUE, "'4' is one argument too many"},
        {"relu:1", TN_ERR_VALUE, "too many"},
        {"dropout:nan", TN_ERR_VALUE, "no number"},
        {"dropout:1.5", TN_ERR_VALUE, "[0, 1)"},
        {"embedding:4", TN_ERR_VALUE, "embedding:COUNT:FEATURES"},
        {"softmax:99", TN_ERR_INDEX, "axis"},
        {"", TN_ERR_VALUE, "expected words"},
        {" \n", TN_ERR_VALUE, "expected words"},
        {NULL, TN_ERR_VALUE, "NULL"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         TN_ERR_NAME, "is no layer"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tn_layer *net = tn_layer_parse(rows[k].text);
        assert_int_equal(tn_layer_status(net), rows[k].code);
        check_latched(rows[k].code, rows[k].part);
        tn_layer_free(net);
    }
    tn_layer_free(tn_mlp(2, (int64_t[]){3, 4}, "rellu"));
    check_latched(TN_ERR_NAME, "did you mean 'relu'");
    tn_layer_free(tn_mlp(0, (int64_t[]){3, 4}, "relu"));
    check_latched(TN_ERR_VALUE, "at least one size");
}

/* A message names the line of its own call, or none; not that of another. */
static void test_places(void **state)
{
    (void)state;
    tn_layer *net = tn_linear(2, .in = 3);
    char place[64];
    TN_SCOPE {
        tn_zeros(TN_SHAPE(2));
        snprintf(place, sizeof place, "(test_net.c:%d)", __LINE__ + 1);
        tn_param_named(net, "Q");
        check_latched(TN_ERR_NAME, place);
        tn_array *none = NULL, *w = tn_param(net, 0);
        tn_gradients(tn_zeros(TN_SHAPE(1)), 1, (const tn_array *[]){w}, false, &none);
        snprintf(place, sizeof place, "(test_net.c:%d)", __LINE__ - 1);
        check_latched(TN_ERR_STATE, place);
    }
    snprintf(place, sizeof place, "(test_net.c:%d)", __LINE__ + 1);
    assert_int_equal(tn_layer_load(net, "nowhere.safetensors"), TN_ERR_IO);
    check_latched(TN_ERR_IO, place);
    assert_int_equal(tn_layer_save(net, "nowhere/net.safetensors"), TN_ERR_IO); /* has no macro */
    assert_null(strstr(tn_error(), "test_net.c"));
    tn_clear_error();
    tn_layer_free(net);
}

/* ---- devices ---- */

static void test_move(void **state)
{
    (void)state;
    tn_status status;
    tn_device other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    tn_layer *net = tn_sequential(tn_linear(3, .in = 4), tn_linear(2));
    TN_SCOPE {
        double w[12], moved[12], grad[12];
        const float input[20] = {1, 2, 3};
        tn_array *param = tn_param(net, 0), *x = tn_reshape(tn_from_floats(input, 20), TN_SHAPE(5, 4));
        check_read(param, w, 12);
        assert_int_equal(tn_backward(tn_sum_with(tn_matmul(x, param), NULL)), TN_OK);
        check_read(tn_grad(param), grad, 12);
        assert_int_equal(tn_layer_to(net, other), TN_OK);
        assert_ptr_equal(tn_param(net, 0), param);
        assert_true(tn_device_equal(tn_device_of(param), other));
        assert_true(tn_device_equal(tn_device_of(tn_grad(param)), other));
        assert_true(tn_needs_grad(param));
        check_read(param, moved, 12);
        assert_memory_equal(w, moved, sizeof w);
        check_near(tn_grad(param), grad, 12, 0);

        assert_true(tn_is_error(tn_forward(net, x)));
        check_latched(TN_ERR_DEVICE, "linear: the parameters are on virtual:1, the input is on ");
        assert_int_equal(tn_eval(tn_forward(net, tn_ones(TN_SHAPE(5, 4)))), TN_OK); /* a constant goes anywhere */
        tn_array *y = tn_forward(net, tn_to(x, other));
        assert_int_equal(tn_eval(y), TN_OK);
        assert_int_equal(tn_param_count(net), 4);
        for (int i = 0; i < 4; i++)
            assert_true(tn_device_equal(tn_device_of(tn_param(net, i)), other));
        assert_int_equal(tn_backward(tn_sum_with(y, NULL)), TN_OK);
        assert_int_equal(tn_layer_to(net, test_device()), TN_OK);
        assert_int_equal(tn_eval(tn_forward(net, x)), TN_OK);
        check_fine();
        assert_int_equal(tn_layer_to(net, (tn_device){TN_DEVICE_CUDA, 99}), TN_ERR_DEVICE);
        tn_clear_error();
        assert_true(tn_device_equal(tn_device_of(param), test_device()));
    }
    tn_layer_free(net);
}

/* With no device chosen, parameters to be inferred are made where the first input is. */
static void test_inferred_beside_input(void **state)
{
    (void)state;
    tn_status status;
    tn_device other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    tn_layer *net = tn_layer_parse("linear:3 layer_norm");
    TN_SCOPE {
        assert_int_equal(tn_eval(tn_forward(net, tn_ones_with(TN_SHAPE(2, 5), &(tn_create_opts){.device = other}))),
                         TN_OK);
        assert_int_equal(tn_param_count(net), 4);
        for (int i = 0; i < 4; i++)
            assert_true(tn_device_equal(tn_device_of(tn_param(net, i)), other));
    }
    tn_layer_free(net);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_modes_and_gradients),
        cmocka_unit_test(test_forward_makes_one_array), cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_own_layer), cmocka_unit_test(test_children),      cmocka_unit_test(test_param_errors),
        cmocka_unit_test(test_names_of_parts),
        cmocka_unit_test(test_parse),         cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_move),          cmocka_unit_test(test_inferred_beside_input),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
