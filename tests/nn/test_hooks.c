/* SPDX-License-Identifier: MIT */
/* Hooks around forwards: what they see, what a failed one leaves, spectral normalisation, timing; copies that share. */
#include "nn/check.h"

#include "support/scratch.h"
#include "support/starve.h"

enum { IN = 4, OUT = 3, ROWS = 5 };

static tn_array *random_array(int rows, int columns)
{
    double x[64];
    check_fill(x, rows * columns, -1, 1);
    return check_array(x, TN_SHAPE(rows, columns), TN_FLOAT32);
}

/* ---- what they see ---- */

typedef struct watcher {
    double in, out;
    int before, after;
    tn_status give;
} watcher;

static tn_status look(tn_layer *layer, bool after, void *user)
{
    watcher *w = user;
    if (!after) {
        w->before++;
        w->in = tn_item(tn_sum(tn_hook_input(layer, 0)));
        return w->give;
    }
    w->after++;
    if (w->give == TN_OK)
        w->out = tn_item(tn_sum(tn_hook_output(layer, 0)));
    return TN_OK;
}

static void test_in_and_out(void **state)
{
    (void)state;
    tn_layer *layer = tn_linear(OUT, .in = IN);
    watcher first = {0}, second = {0};
    assert_int_equal(tn_layer_add_hook(layer, look, &first), TN_OK);
    assert_int_equal(tn_layer_add_hook(layer, look, &second), TN_OK);
    TN_SCOPE {
        tn_array *x = random_array(ROWS, IN);
        size_t arrays = tn_live_arrays();
        tn_array *y = tn_forward(layer, x);
        assert_int_equal(tn_live_arrays(), arrays + 1);
        assert_float_equal(first.in, tn_item(tn_sum(x)), 1e-6);
        assert_float_equal(first.out, tn_item(tn_sum(y)), 1e-6);
        check_fine();
        /* The second one fails before: the first is called after it, so that it can undo what it did. */
        second.give = TN_ERR_IO;
        assert_true(tn_is_error(tn_forward(layer, x)));
        check_latched(TN_ERR_IO, "a hook of the linear failed");
        assert_true(first.before == 2 && first.after == 2 && second.before == 2 && second.after == 2);
        assert_true(tn_is_error(tn_hook_input(layer, 0)));
        check_latched(TN_ERR_INDEX, "there is no input 0");
    }
    tn_layer_free(layer);
}

/* ---- spectral normalisation ---- */

static void normalize(double *x, int count, double eps)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < count; i++)
        x[i] /= sqrt(sum) + eps;
}

/* Power iterations on w (IN, OUT); the estimate. */
static double largest(const double *w, double *u, double *v, int iterations)
{
    for (int k = 0; k < iterations; k++) {
        for (int i = 0; i < IN; i++) {
            v[i] = 0;
            for (int j = 0; j < OUT; j++)
                v[i] += w[i * OUT + j] * u[j];
        }
        normalize(v, IN, 1e-6);
        for (int j = 0; j < OUT; j++) {
            u[j] = 0;
            for (int i = 0; i < IN; i++)
                u[j] += w[i * OUT + j] * v[i];
        }
        normalize(u, OUT, 1e-6);
    }
    double sigma = 0;
    for (int i = 0; i < IN; i++)
        for (int j = 0; j < OUT; j++)
            sigma += v[i] * w[i * OUT + j] * u[j];
    return sigma;
}

static void product(const double *x, const double *w, double scale, double *y)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < OUT; j++) {
            y[i * OUT + j] = 0;
            for (int k = 0; k < IN; k++)
                y[i * OUT + j] += x[i * IN + k] * w[k * OUT + j] * scale;
        }
}

static void test_spectral(void **state)
{
    (void)state;
    tn_layer *layer = tn_linear(OUT, .in = IN, .no_bias = true);
    assert_int_equal(tn_spectral_norm(layer, .iterations = 2, .factor = 3), TN_OK);
    double w[IN * OUT], u[OUT], v[IN], x[ROWS * IN], y[ROWS * OUT], want[IN * OUT];
    TN_SCOPE {
        check_read(tn_param(layer, 0), w, IN * OUT);
        tn_layer *part = layer;
        char *text = tn_layer_string(part);
        assert_non_null(strstr(text, "W_u"));
        tn_string_free(text);
        tn_archive *archive = tn_archive_new();
        const tn_serializer s = {.archive = archive};
        assert_int_equal(tn_serialize_layer(&s, "m", layer), TN_OK);
        check_read(tn_archive_find(archive, "m/W_u"), u, OUT);
        tn_archive_free(archive);
        check_fill(x, ROWS * IN, -1, 1);
        tn_array *in = check_array(x, TN_SHAPE(ROWS, IN), TN_FLOAT32);
        for (int k = 0; k < 2; k++) { /* the vector goes on from forward to forward */
            double sigma = largest(w, u, v, 2);
            product(x, w, 3 / sigma, y);
            check_context = k ? "second" : "first";
            tn_array *out = tn_forward(layer, in);
            check_near(out, y, ROWS * OUT, 1e-4);
            check_context = "parameter";
            check_near(tn_param(layer, 0), w, IN * OUT, 0); /* and the parameter is what it was */
            assert_true(tn_needs_grad(tn_param(layer, 0)));
            if (k == 0)
                continue;
            /* d sum(y) / dw = 3 (g / sigma - sum(g w) / sigma² v u^T), g the sums of x's columns. */
            check_context = "gradient";
            double dot = 0, g[IN] = {0};
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < IN; j++)
                    g[j] += x[i * IN + j];
            for (int i = 0; i < IN * OUT; i++)
                dot += g[i / OUT] * w[i];
            for (int i = 0; i < IN * OUT; i++)
                want[i] = 3 * (g[i / OUT] / sigma - dot / (sigma * sigma) * v[i / OUT] * u[i % OUT]);
            assert_int_equal(tn_backward(tn_sum(out)), TN_OK);
            check_near(tn_grad(tn_param(layer, 0)), want, IN * OUT, 1e-3);
        }
        check_context = "";
        /* Evaluated, it stays where it is. */
        tn_layer_train(layer, false);
        tn_array *once = tn_forward(layer, in);
        assert_int_equal(tn_eval(once), TN_OK);
        assert_true(tn_array_equal(once, tn_forward(layer, in), false));
    }
    /* An optimizer trains the parameter itself. */
    tn_layer_train(layer, true);
    tn_optimizer *optimizer = tn_sgd(layer, .lr = 0.1);
    assert_int_equal(tn_step(optimizer), TN_OK);
    for (int i = 0; i < IN * OUT; i++)
        want[i] = w[i] - 0.1 * want[i];
    check_near(tn_param(layer, 0), want, IN * OUT, 1e-4);
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
    check_fine();

    layer = tn_linear(OUT);
    assert_int_equal(tn_spectral_norm(layer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "has no shape yet");
    assert_int_equal(tn_spectral_norm(layer, .weight = "V"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "no parameter 'V'");
    tn_layer_free(layer);
    layer = tn_linear(OUT, .in = IN);
    assert_int_equal(tn_spectral_norm(layer, .weight = "b"), TN_ERR_SHAPE);
    check_latched(TN_ERR_SHAPE, "two axes");
    assert_int_equal(tn_spectral_norm(layer, .axis = 2), TN_ERR_SHAPE);
    tn_clear_error();
    tn_layer_free(layer);
}

/* ---- directions and lengths, standardized weights ---- */

/* Of sum(x W) the gradient by W is x's columns' sums in each of W's columns. */
static void test_lengths(void **state)
{
    (void)state;
    tn_layer *layer = tn_linear(OUT, .in = IN, .no_bias = true);
    TN_SCOPE {
        tn_array *x = random_array(ROWS, IN), *before = tn_forward(layer, x);
        assert_int_equal(tn_eval(before), TN_OK);
        assert_int_equal(tn_weight_norm_hook(layer), TN_OK);
        assert_int_equal(tn_param_count(layer), 2);
        tn_array *w = tn_param(layer, 0), *g = tn_param_named(layer, "W_g");
        assert_true(tn_allclose(tn_forward(layer, x), before, .rtol = 1e-5, .atol = 1e-6)); /* nothing has changed */
        assert_int_equal(tn_assign(g, tn_full(TN_SHAPE(OUT), 3)), TN_OK);
        tn_array *y = tn_forward(layer, x), *u = tn_requires_grad(tn_detach(w)), *h = tn_requires_grad(tn_detach(g));
        tn_array *want = tn_matmul(x, tn_weight_norm(u, h, 1));
        assert_true(tn_allclose(y, want, .rtol = 1e-5, .atol = 1e-6));
        assert_int_equal(tn_backward(tn_sum(tn_square(y))), TN_OK);
        assert_int_equal(tn_backward(tn_sum(tn_square(want))), TN_OK);
        assert_true(tn_allclose(tn_grad(w), tn_grad(u), .rtol = 1e-4, .atol = 1e-4));
        assert_true(tn_allclose(tn_grad(g), tn_grad(h), .rtol = 1e-4, .atol = 1e-4));
    }
    assert_int_equal(tn_weight_norm_hook(layer, .weight = "V"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "no parameter 'V'");
    tn_layer_free(layer);
    layer = tn_linear(OUT);
    assert_int_equal(tn_weight_norm_hook(layer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "has no shape yet");
    tn_layer_free(layer);
}

static void test_standardized(void **state)
{
    (void)state;
    tn_layer *layer = tn_linear(OUT, .in = IN, .no_bias = true);
    double w[IN * OUT], x[ROWS * IN], y[ROWS * OUT];
    TN_SCOPE {
        assert_int_equal(tn_weight_standardization(layer, .eps = 0.25), TN_OK);
        check_read(tn_param(layer, 0), w, IN * OUT);
        for (int j = 0; j < OUT; j++) {
            double mean = 0, square = 0;
            for (int i = 0; i < IN; i++)
                mean += w[i * OUT + j] / IN;
            for (int i = 0; i < IN; i++)
                square += (w[i * OUT + j] - mean) * (w[i * OUT + j] - mean) / IN;
            for (int i = 0; i < IN; i++)
                w[i * OUT + j] = (w[i * OUT + j] - mean) / (sqrt(square) + 0.25);
        }
        check_fill(x, ROWS * IN, -1, 1);
        product(x, w, 1, y);
        tn_array *out = tn_forward(layer, check_array(x, TN_SHAPE(ROWS, IN), TN_FLOAT32));
        check_near(out, y, ROWS * OUT, 1e-4);
        assert_int_equal(tn_backward(tn_sum(tn_square(out))), TN_OK);
        /* Adding the same to all of an output's weights changes nothing. */
        tn_array *sums = tn_sum(tn_grad(tn_param(layer, 0)), .axis = TN_AXES(0));
        assert_true(tn_allclose(sums, tn_zeros(TN_SHAPE(OUT)), .atol = 1e-4));
    }
    assert_int_equal(tn_weight_standardization(layer, .eps = -1), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "eps -1");
    tn_layer_free(layer);
}

/* ---- timing ---- */

static void test_timer(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(8, .in = IN), tn_tanh_layer(), tn_linear(OUT));
    tn_timer *timer = tn_timer_new(net);
    assert_int_equal(tn_timer_status(timer), TN_OK);
    TN_SCOPE for (int k = 0; k < 3; k++) tn_forward(net, random_array(ROWS, IN));
    TN_SCOPE tn_forward(tn_layer_child(net, "0"), random_array(ROWS, IN));
    check_fine();
    assert_int_equal(tn_timer_calls(timer, ""), 3);
    assert_int_equal(tn_timer_calls(timer, "0"), 4);
    assert_int_equal(tn_timer_calls(timer, "2"), 3);
    assert_true(tn_timer_seconds(timer, "0") > 0 && tn_timer_seconds(timer, "") > 0);
    char *table = tn_timer_string(timer);
    assert_non_null(strstr(table, "0: linear"));
    assert_non_null(strstr(table, "calls"));
    tn_string_free(table);
    assert_int_equal(tn_timer_calls(timer, "3"), 0);
    check_latched(TN_ERR_NAME, "no layer of the path '3'");
    tn_timer_free(timer);
    tn_timer_free(timer);
    check_latched(TN_ERR_STATE, "timer has been freed");
    assert_int_equal(tn_timer_status(timer), TN_ERR_STATE);
    assert_int_equal(tn_timer_calls(timer, "0"), 0);
    check_latched(TN_ERR_STATE, "freed");
    assert_null(tn_timer_string(timer));
    check_latched(TN_ERR_STATE, "freed");
    TN_SCOPE assert_int_equal(tn_status_of(tn_forward(net, random_array(ROWS, IN))), TN_OK);
    tn_layer_free(net);
    timer = tn_timer_new(NULL);
    assert_int_equal(tn_timer_status(timer), TN_ERR_VALUE);
    tn_timer_free(timer);
    tn_clear_error();
}

/* ---- operations ---- */

typedef struct counts {
    int add, matmul, all;
} counts;

static void count(const char *operation, tn_dtype dtype, tn_shape shape, void *user)
{
    counts *c = user;
    c->all++;
    c->add += strcmp(operation, "add") == 0;
    if (strcmp(operation, "matmul") != 0)
        return;
    c->matmul++;
    assert_int_equal(dtype, TN_FLOAT32);
    assert_true(shape.ndim == 2 && shape.dim[0] == ROWS && shape.dim[1] == OUT);
    TN_SCOPE tn_add(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(2))); /* not told */
}

static void test_operations(void **state)
{
    (void)state;
    counts c = {0};
    tn_layer *layer = tn_linear(OUT, .in = IN);
    TN_SCOPE {
        tn_array *x = random_array(ROWS, IN);
        tn_set_function_hook(count, &c);
        for (int i = 0; i < 3; i++)
            tn_forward(layer, x);
        tn_set_function_hook(NULL, NULL);
        assert_true(c.add == 3 && c.matmul == 3 && c.all >= 6);
        counts before = c;
        tn_array *y = tn_forward(layer, x);
        assert_memory_equal(&before, &c, sizeof c);
        for (int i = 0; i < 3000; i++) /* deep recordings go on as before */
            y = tn_add(y, 1);
        assert_int_equal(tn_eval(y), TN_OK);
    }
    tn_layer_free(layer);
    check_fine();
}

/* ---- copies that share ---- */

static void test_shared(void **state)
{
    (void)state;
    tn_layer *first = tn_linear(IN, .in = IN), *second = tn_layer_copy(first, .mode = TN_COPY_SHARE);
    tn_layer *net = tn_sequential(first, tn_tanh_layer(), second), *whole = NULL;
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0.5);
    assert_int_equal(tn_param_count(net), 2); /* once each */
    assert_ptr_equal(tn_param_named(net, "2.W"), tn_param_named(net, "0.W"));
    TN_SCOPE {
        tn_array *x = random_array(ROWS, IN), *w = tn_param(net, 0);
        /* The gradient is the sum of both places', and one update is made. */
        tn_array *before = tn_detach(w), *g[1];
        tn_array *y = tn_sum(tn_forward(net, x));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){w}, false, g), TN_OK);
        tn_array *want = tn_subtract(before, tn_multiply(g[0], 0.5));
        assert_int_equal(tn_eval(want), TN_OK);
        assert_int_equal(tn_backward(y), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        assert_true(tn_allclose(w, want));
        assert_true(tn_array_equal(tn_param_named(net, "2.W"), w, false));

        /* A file has both; a deep copy is tied as its original was; first weights of its own are. */
        const char *path = scratch_path("shared.npz");
        assert_int_equal(tn_layer_save(net, path), TN_OK);
        assert_int_equal(tn_layer_load(net, path), TN_OK);
        assert_true(tn_allclose(w, want));
        whole = tn_layer_copy(net);
        assert_int_equal(tn_param_count(whole), 2);
        assert_ptr_equal(tn_param_named(whole, "2.W"), tn_param(whole, 0));
        assert_ptr_not_equal(tn_param(whole, 0), w);
        assert_true(tn_array_equal(tn_param(whole, 0), w, false));
        tn_layer *anew = tn_layer_copy(net, .mode = TN_COPY_INIT);
        assert_int_equal(tn_param_count(anew), 2);
        assert_false(tn_array_equal(tn_param(anew, 0), w, false));
        assert_int_equal(tn_layer_to(anew, test_device()), TN_OK);
        assert_int_equal(tn_layer_average(anew, net, 0.5), TN_OK);
        tn_layer_free(anew);
        check_fine();
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    TN_SCOPE assert_int_equal(tn_status_of(tn_forward(whole, random_array(ROWS, IN))), TN_OK);
    tn_layer_free(whole);

    /* Either may go first. */
    first = tn_linear(IN, .in = IN);
    second = tn_layer_copy(first, .mode = TN_COPY_SHARE);
    tn_layer_free(first);
    TN_SCOPE assert_int_equal(tn_status_of(tn_forward(second, random_array(ROWS, IN))), TN_OK);
    tn_layer *three = tn_layer_repeat(second, 3, .mode = TN_COPY_SHARE);
    assert_int_equal(tn_param_count(three), 2);
    tn_layer_free(three);
    tn_layer *open = tn_linear(IN), *no = tn_layer_copy(open, .mode = TN_COPY_SHARE);
    assert_int_equal(tn_layer_status(no), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "nothing to share");
    tn_layer_free(no);
    no = tn_layer_copy(open, .mode = (tn_copy_mode)9);
    check_latched(TN_ERR_VALUE, "for a mode, got 9");
    tn_layer_free(no);
    tn_layer_free(open);
}

static tn_status scenario(void *user)
{
    (void)user;
    tn_layer *layer = tn_linear(3, .in = 3), *copy = tn_layer_copy(layer, .mode = TN_COPY_SHARE);
    tn_layer *net = tn_sequential(layer, copy), *deep = tn_layer_copy(net);
    tn_layer *first = tn_ok() ? tn_layer_child(net, "0") : NULL;
    if (first)
        tn_spectral_norm(first);
    tn_timer *timer = tn_ok() ? tn_timer_new(net) : NULL;
    TN_SCOPE if (timer) tn_forward(net, tn_ones(TN_SHAPE(2, 3)));
    tn_timer_free(timer);
    tn_layer_free(net);
    tn_layer_free(deep);
    return tn_error_code();
}

static void test_starved(void **state)
{
    (void)state;
    starve("hooks", scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_and_out), cmocka_unit_test(test_spectral),
                                       cmocka_unit_test(test_lengths), cmocka_unit_test(test_standardized),
                                       cmocka_unit_test(test_timer), cmocka_unit_test(test_operations),
                                       cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_starved)};
    return cmocka_run_group_tests_name("hooks", tests, check_seed, NULL);
}
