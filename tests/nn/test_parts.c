/* SPDX-License-Identifier: MIT */
/* What layers are made of beyond parameters: persistent values, freezing, copies, walks, averages. */
#include "nn/check.h"

#include "support/scratch.h"

enum { IN = 3, OUT = 2 };

static tn_layer *new_net(void) { return tn_sequential(tn_linear(4, .in = IN), tn_tanh_layer(), tn_linear(OUT)); }

static tn_array *random_input(int rows)
{
    double x[8 * IN];
    check_fill(x, rows * IN, -1, 1);
    return check_array(x, TN_SHAPE(rows, IN), TN_FLOAT32);
}

/* Counts its calls and keeps the mean of what it saw. */
static tn_array *watch(tn_layer *layer, const tn_array *x, void *user)
{
    tn_array **kept = user;
    (void)layer;
    tn_assign(kept[0], tn_add(tn_multiply(kept[0], 0.5), tn_multiply(tn_detach(tn_mean(x, .axis = TN_AXES(0))), 0.5)));
    tn_assign(kept[1], tn_add(kept[1], 1));
    return tn_multiply(tn_param_named(layer, "w"), x);
}

static tn_layer *new_watcher(tn_array **kept)
{
    tn_layer *layer = tn_layer_new("watcher", watch, kept, NULL);
    TN_SCOPE {
        kept[0] = tn_layer_persistent(layer, "mean", tn_zeros(TN_SHAPE(IN)));
        tn_layer_param(layer, "w", tn_ones(TN_SHAPE(IN)));
        kept[1] = tn_layer_persistent(layer, "calls", tn_zeros(TN_SHAPE(1), .dtype = TN_INT64));
    }
    check_fine();
    return layer;
}

static void test_persistent(void **state)
{
    (void)state;
    const char *path = scratch_path("persistent.npz");
    tn_array *kept[2], *others[2];
    tn_layer *layer = new_watcher(kept), *other = new_watcher(others);
    tn_optimizer *optimizer = tn_sgd(layer, .lr = 0.1);
    assert_int_equal(tn_param_count(layer), 1);
    double mean[IN] = {0}, x[8 * IN];
    for (int k = 0; k < 3; k++) TN_SCOPE {
        tn_array *in = random_input(8);
        check_read(in, x, 8 * IN);
        for (int j = 0; j < IN; j++) {
            double sum = 0;
            for (int i = 0; i < 8; i++)
                sum += x[i * IN + j] / 8;
            mean[j] = 0.5 * mean[j] + 0.5 * sum;
        }
        assert_int_equal(tn_backward(tn_sum(tn_forward(layer, in))), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
    }
    TN_SCOPE {
        check_near(kept[0], mean, IN, 1e-6);
        assert_int_equal((int)tn_item(kept[1]), 3);
    }
    assert_int_equal(tn_layer_save(layer, path), TN_OK);
    assert_int_equal(tn_layer_load(other, path), TN_OK);
    assert_int_equal(tn_layer_to(other, test_device()), TN_OK);
    TN_SCOPE {
        check_near(others[0], mean, IN, 1e-6);
        assert_int_equal((int)tn_item(others[1]), 3);
        assert_int_equal(tn_dtype_of(others[1]), TN_INT64);
        assert_false(tn_needs_grad(others[0]));
    }
    check_fine();
    TN_SCOPE {
        assert_true(tn_is_error(tn_layer_persistent(layer, "w", tn_ones(TN_SHAPE(1)))));
        check_latched(TN_ERR_NAME, "'w' already");
        assert_true(tn_is_error(tn_layer_persistent(layer, "v", tn_requires_grad(tn_ones(TN_SHAPE(1))))));
        check_latched(TN_ERR_STATE, "needs a gradient");
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
    tn_layer_free(other);
}

static void test_freezing(void **state)
{
    (void)state;
    tn_layer *net = new_net();
    tn_optimizer *optimizer = tn_adam(net, .lr = 0.1);
    assert_int_equal(tn_layer_freeze(net, "2.W", true), TN_OK); /* still to be inferred */
    assert_int_equal(tn_layer_freeze(net, "0.*", true), TN_OK);
    for (int k = 0; k < 2; k++) {
        double w[12], b[OUT];
        TN_SCOPE {
            tn_array *x = random_input(5);
            tn_forward(net, x);
            check_read(tn_param_named(net, "0.W"), w, 12);
            check_read(tn_param_named(net, "2.b"), b, OUT);
            assert_int_equal(tn_backward(tn_sum(tn_square(tn_subtract(tn_forward(net, x), 3)))), TN_OK);
            assert_false(tn_has_grad(tn_param_named(net, "2.W")));
            assert_int_equal(tn_has_grad(tn_param_named(net, "0.W")), k);
            assert_int_equal(tn_step(optimizer), TN_OK);
            double now[12], bias[OUT];
            check_read(tn_param_named(net, "0.W"), now, 12);
            check_read(tn_param_named(net, "2.b"), bias, OUT);
            assert_int_equal(memcmp(now, w, sizeof w) == 0, k == 0);
            assert_true(bias[0] != b[0]);
        }
        assert_int_equal(tn_layer_freeze(net, "0.*", false), TN_OK);
    }
    assert_int_equal(tn_optimizer_param_steps(optimizer, 0), 1);
    assert_int_equal(tn_layer_freeze(net, NULL, true), TN_OK);
    TN_SCOPE {
        assert_false(tn_needs_grad(tn_forward(net, random_input(2)))); /* nothing is recorded for them */
        assert_int_equal(tn_assign(tn_param(net, 0), tn_zeros_like(tn_param(net, 0))), TN_OK);
        assert_false(tn_needs_grad(tn_param(net, 0)));
    }
    check_fine();
    assert_int_equal(tn_layer_freeze(net, "7.*", true), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "matches '7.*'");
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

static void test_copies(void **state)
{
    (void)state;
    tn_layer *net = new_net();
    TN_SCOPE tn_forward(net, random_input(1));
    tn_layer *copy = tn_layer_copy(net), *blank = new_net();
    assert_int_equal(tn_layer_status(copy), TN_OK);
    TN_SCOPE {
        tn_array *x = random_input(6), *y = tn_forward(net, x);
        assert_int_equal(tn_eval(y), TN_OK);
        assert_true(tn_array_equal(y, tn_forward(copy, x), false));
        for (int i = 0; i < 4; i++) {
            assert_string_equal(tn_param_name(copy, i), tn_param_name(net, i));
            assert_true(tn_needs_grad(tn_param(copy, i)));
        }
        assert_int_equal(tn_assign(tn_param(copy, 0), tn_zeros_like(tn_param(copy, 0))), TN_OK); /* its own */
        assert_true(tn_array_equal(y, tn_forward(net, x), false));
        assert_int_equal(tn_layer_copy_params(blank, net), TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "only in one of the layers");
        tn_forward(blank, x);
        assert_int_equal(tn_layer_copy_params(blank, net), TN_OK);
        assert_true(tn_array_equal(y, tn_forward(blank, x), false));
        assert_int_equal(tn_backward(tn_sum(tn_forward(blank, x))), TN_OK);
        assert_true(tn_has_grad(tn_param(blank, 0)));

        tn_layer *many = tn_layer_repeat(tn_linear(IN, .in = IN), 3);
        assert_int_equal(tn_param_count(many), 6);
        assert_false(tn_array_equal(tn_param_named(many, "0.W"), tn_param_named(many, "1.W"), false));
        assert_false(tn_array_equal(tn_param_named(many, "1.W"), tn_param_named(many, "2.W"), false));
        assert_int_equal(tn_status_of(tn_forward(many, x)), TN_OK);
        tn_layer_free(many);
    }
    tn_layer_free(net);
    tn_layer_free(copy);
    tn_layer_free(blank);
    check_fine();
    tn_layer_free(tn_layer_repeat(tn_linear(1), 0));
    check_latched(TN_ERR_VALUE, "count of 1 or more");
}

/* Parameters in one row, and back; the row's gradient is theirs; nothing changes by a row of another length. */
static void test_vectors(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(OUT, .in = IN), tn_linear(2, .in = OUT)), *none = tn_relu_layer();
    TN_SCOPE {
        int64_t total = tn_param_total(net);
        tn_array *row = tn_params_to_vector(net);
        assert_int_equal(tn_size(row), total);
        assert_true(tn_array_equal(tn_slice_axis(row, 0, 0, IN * OUT, 1), tn_flatten(tn_param(net, 0)), false));
        assert_int_equal(tn_backward(tn_sum(tn_multiply(row, tn_arange(0, total, 1, .dtype = TN_FLOAT32)))), TN_OK);
        assert_true(tn_item(tn_index(tn_flatten(tn_grad(tn_param(net, 3))), -1)) == (double)total - 1);
        tn_array *other = tn_random_normal(TN_SHAPE(total));
        assert_int_equal(tn_vector_to_params(other, net), TN_OK);
        assert_true(tn_array_equal(tn_params_to_vector(net), other, false));
        assert_true(tn_needs_grad(tn_param(net, 0)));
        assert_int_equal(tn_vector_to_params(tn_ones(TN_SHAPE(total + 1)), net), TN_ERR_SHAPE);
        check_latched(TN_ERR_SHAPE, "elements");
        assert_int_equal(tn_vector_to_params(tn_ones(TN_SHAPE(total, 1)), net), TN_ERR_SHAPE);
        check_latched(TN_ERR_SHAPE, "axes");
        assert_true(tn_array_equal(tn_params_to_vector(net), other, false));
        assert_int_equal(tn_size(tn_params_to_vector(none)), 0);
        assert_int_equal(tn_vector_to_params(tn_zeros(TN_SHAPE(0)), none), TN_OK);
    }
    tn_layer_free(net);
    tn_layer_free(none);
    check_fine();
}

static void test_averages(void **state)
{
    (void)state;
    tn_layer *net = tn_linear(OUT, .in = IN), *average = tn_layer_copy(net);
    double mean[IN * OUT], w[IN * OUT];
    TN_SCOPE check_read(tn_param(net, 0), mean, IN * OUT);
    for (int k = 0; k < 4; k++) TN_SCOPE {
        check_fill(w, IN * OUT, -1, 1);
        assert_int_equal(tn_assign(tn_param(net, 0), check_array(w, TN_SHAPE(IN, OUT), TN_FLOAT32)), TN_OK);
        assert_int_equal(tn_layer_average(average, net, 0.75), TN_OK);
        for (int i = 0; i < IN * OUT; i++)
            mean[i] = 0.75 * mean[i] + 0.25 * w[i];
        check_near(tn_param(average, 0), mean, IN * OUT, 1e-6);
        check_near(tn_param(net, 0), w, IN * OUT, 0);
    }
    assert_int_equal(tn_layer_average(average, net, 1), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "below 1");
    tn_layer_free(net);
    tn_layer_free(average);
}

static void test_gradients(void **state)
{
    (void)state;
    tn_layer *a = tn_linear(OUT, .in = IN), *b = tn_layer_copy(a), *both = tn_layer_copy(a),
             *wide = tn_linear(OUT, .in = 7);
    TN_SCOPE {
        tn_array *x = random_input(4), *z = random_input(3);
        assert_int_equal(tn_backward(tn_sum(tn_square(tn_forward(a, x)))), TN_OK);
        assert_int_equal(tn_backward(tn_sum(tn_square(tn_forward(b, z)))), TN_OK);
        tn_array *one = tn_sum(tn_square(tn_forward(both, x))), *other = tn_sum(tn_square(tn_forward(both, z)));
        assert_int_equal(tn_backward(tn_add(one, other)), TN_OK);
        assert_int_equal(tn_layer_add_grads(a, b), TN_OK);
        double want[IN * OUT];
        check_read(tn_grad(tn_param(both, 0)), want, IN * OUT);
        check_near(tn_grad(tn_param(a, 0)), want, IN * OUT, 1e-5);
        assert_int_equal(tn_layer_add_grads(a, wide), TN_ERR_NAME);
        tn_clear_error();
    }
    tn_layer_free(a);
    tn_layer_free(b);
    tn_layer_free(both);
    tn_layer_free(wide);
    check_fine();
}

static tn_status list(const tn_layer_part *part, void *user)
{
    static const char marks[] = {'L', 'p', 'k'};
    char *text = user;
    snprintf(text + strlen(text), 400 - strlen(text), "%c%s ", marks[part->kind], part->path);
    return strcmp(part->path, "stop") == 0 ? TN_ERR_STATE : TN_OK;
}

static void test_walk(void **state)
{
    (void)state;
    tn_array *kept[2];
    char text[400] = "";
    tn_layer *layer = new_watcher(kept);
    assert_int_equal(tn_layer_add(layer, "part", tn_linear(OUT, .in = IN)), TN_OK);
    assert_int_equal(tn_layer_walk(layer, list, text), TN_OK);
    assert_string_equal(text, "L kmean pw kcalls Lpart ppart.W ppart.b ");
    assert_int_equal(tn_layer_add(layer, "stop", tn_linear(OUT, .in = IN)), TN_OK);
    assert_int_equal(tn_layer_walk(layer, list, text), TN_ERR_STATE);
    tn_layer_free(layer);
    check_fine();
}

typedef struct calls {
    int before, after;
    char mark;
    tn_status give;
} calls;
static char order[20];

static tn_status count_calls(tn_layer *layer, bool after, void *user)
{
    calls *c = user;
    assert_int_equal(tn_param_count(layer), 2);
    *(after ? &c->after : &c->before) += 1;
    order[strlen(order)] = c->mark;
    return after ? TN_OK : c->give;
}

static void test_hooks(void **state)
{
    (void)state;
    tn_layer *net = new_net(), *first = tn_layer_child(net, "0");
    calls a = {.mark = 'a'}, b = {.mark = 'b'};
    memset(order, 0, sizeof order);
    assert_int_equal(tn_layer_add_hook(first, count_calls, &a), TN_OK);
    assert_int_equal(tn_layer_add_hook(first, count_calls, &b), TN_OK);
    TN_SCOPE {
        tn_array *x = random_input(2);
        assert_int_equal(tn_status_of(tn_forward(net, x)), TN_OK);
        assert_string_equal(order, "abba");
        tn_layer_remove_hook(first, count_calls, &b);
        assert_int_equal(tn_status_of(tn_forward(net, x)), TN_OK);
        assert_true(a.before == 2 && a.after == 2 && b.before == 1 && b.after == 1);
        check_fine();
        a.give = TN_ERR_VALUE;
        assert_int_equal(tn_status_of(tn_forward(net, x)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "a hook of the linear failed");
        tn_layer_remove_hook(first, count_calls, &a);
        assert_int_equal(tn_status_of(tn_forward(net, x)), TN_OK);
    }
    assert_int_equal(tn_layer_add_hook(NULL, count_calls, NULL), TN_ERR_VALUE);
    tn_clear_error();
    tn_layer_free(net);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_persistent), cmocka_unit_test(test_freezing),
                                       cmocka_unit_test(test_copies),     cmocka_unit_test(test_averages),
                                       cmocka_unit_test(test_vectors),    cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_walk),       cmocka_unit_test(test_hooks)};
    return cmocka_run_group_tests_name("parts", tests, check_seed, NULL);
}
