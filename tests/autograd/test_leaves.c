/* SPDX-License-Identifier: MIT */
/* Leaves that are written into between forward and backward, and gradients that depend on their leaf no more. */
#include <tanso.h>

#include "helpers.h"
#include "support/device.h"
#include "support/folder.h"

static tn_array *leaf(double value) { return tn_requires_grad(tn_scalar(value)); }

/* ---- a leaf that is written into ---- */

typedef tn_status (*write_into)(tn_array *x, tn_array *y);
static tn_status by_assign(tn_array *x, tn_array *y) { return tn_assign(x, tn_detach(y)); }
static tn_status by_add(tn_array *x, tn_array *y) { return tn_add_assign(x, tn_multiply(tn_detach(y), 0)); }
static tn_status by_multiply(tn_array *x, tn_array *y) { return (void)y, tn_multiply_assign(x, 1); }
static tn_status by_out(tn_array *x, tn_array *y) { return (void)y, tn_write(x, tn_scalar(1.0), NULL), TN_OK; }
static tn_status by_itself(tn_array *x, tn_array *y) { return (void)y, tn_assign(x, tn_detach(x)); }

static const write_into writes[] = {by_assign, by_add, by_multiply, by_out, by_itself};
#define WRITES (sizeof writes / sizeof *writes)

static void test_written_leaf(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * WRITES; i++) TN_SCOPE {
        tn_array *x = leaf(3), *other = leaf(2), *y = tn_multiply(tn_square(x), other);
        if (i % 2)
            assert_int_equal(tn_eval(y), TN_OK);
        TN_NO_GRAD assert_int_equal(writes[i / 2](x, y), TN_OK);
        assert_int_equal(tn_backward(y), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "written into");
        assert_false(tn_has_grad(x) || tn_has_grad(other));
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &y), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "xs[0]");
        /* computed anew, or from another leaf, all is well; so is what the handle was freed of */
        assert_int_equal(tn_backward(tn_multiply(tn_square(x), other)), TN_OK);
        assert_true(tn_has_grad(x) && tn_has_grad(other));
    }
    TN_SCOPE {
        tn_array *x = tn_own(leaf(3)), *other = leaf(2), *y = tn_multiply(x, other);
        tn_free(x);
        assert_int_equal(tn_backward(y), TN_OK);
        assert_true(tn_item(tn_grad(other)) == 3);
    }
}

static void test_loaded_between(void **state)
{
    (void)state;
    char folder[256];
    test_folder_make(folder);
    const char *path = test_path(folder, "net.safetensors");
    TN_SCOPE {
        tn_layer *net = tn_linear(2, .in = 3);
        assert_int_equal(tn_layer_save(net, path), TN_OK);
        tn_array *y = tn_sum(tn_square(tn_forward(net, tn_ones(TN_SHAPE(1, 3)))));
        assert_int_equal(tn_layer_load(net, path), TN_OK);
        assert_int_equal(tn_backward(y), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "written into");
        assert_int_equal(tn_backward(tn_sum(tn_square(tn_forward(net, tn_ones(TN_SHAPE(1, 3)))))), TN_OK);
        tn_layer_free(net);
    }
    test_folder_remove(folder);
}

static void test_step_between(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = tn_linear(1, .in = 1);
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.5);
        tn_array *y = tn_sum(tn_square(tn_forward(net, tn_ones(TN_SHAPE(1, 1)))));
        assert_int_equal(tn_backward(y, .retain_graph = true), TN_OK);
        assert_int_equal(tn_step(sgd), TN_OK);
        assert_int_equal(tn_backward(y), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "written into");
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

/* ---- gradients that are constant ---- */

static tn_array *same(tn_array *x) { return x; }
static tn_array *thrice(tn_array *x) { return tn_multiply(x, 3); }
static tn_array *scaled(tn_array *x) { return tn_multiply(x, tn_requires_grad(spread(TN_SHAPE(2, 3), 1, 2, 1))); }
static tn_array *reshaped(tn_array *x) { return tn_reshape(x, TN_SHAPE(3, 2)); }
static tn_array *summed(tn_array *x) { return tn_sum(x); }

static void test_constant_gradients(void **state)
{
    (void)state;
    tn_array *(*const linear[])(tn_array *) = {same, thrice, scaled, reshaped, summed};
    for (size_t i = 0; i < 2 * sizeof linear / sizeof *linear; i++) TN_SCOPE {
        tn_array *x = tn_requires_grad(spread(TN_SHAPE(2, 3), -1, 1, 0)), *y = linear[i / 2](x), *g;
        if (i % 2) {
            assert_int_equal(tn_backward(y, .create_graph = true), TN_OK);
            g = tn_multiply(tn_grad(x), 1);
            tn_clear_grad(x);
        } else {
            assert_int_equal(tn_gradients(tn_sum(y), 1, (const tn_array *[]){x}, true, &g), TN_OK);
        }
        tn_array *penalty = tn_sum(tn_square(tn_subtract(g, 1))), *second;
        assert_int_equal(tn_gradients(penalty, 1, (const tn_array *[]){x}, true, &second), TN_OK);
        assert_values(second, 6, (double[6]){0}, 0);
        assert_int_equal(tn_gradients(tn_sum(second), 1, (const tn_array *[]){x}, false, &second), TN_OK);
        assert_values(second, 6, (double[6]){0}, 0);
        assert_int_equal(tn_backward(penalty), TN_OK);
        assert_values(tn_grad(x), 6, (double[6]){0}, 0);
    }
}

/* d/dz of d/dx (x + z^2), of two that were asked for together; and a step by such a gradient. */
static void test_constant_by_another(void **state)
{
    (void)state;
    tn_array *x = leaf(2), *z = leaf(5), *g[2], *mixed;
    assert_int_equal(tn_gradients(tn_add(x, tn_square(z)), 2, (const tn_array *[]){x, z}, true, g), TN_OK);
    assert_int_equal(tn_gradients(g[0], 1, (const tn_array *[]){z}, false, &mixed), TN_OK);
    assert_values(mixed, 1, (double[]){0}, 0);
    assert_int_equal(tn_gradients(g[1], 1, (const tn_array *[]){z}, false, &mixed), TN_OK);
    assert_values(mixed, 1, (double[]){2}, 0);
    assert_values(g[0], 1, (double[]){1}, 0);
    TN_SCOPE {
        tn_layer *net = tn_linear(1, .in = 1, .no_bias = true, .weight = {TN_INIT_CONSTANT, 2});
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.25);
        assert_int_equal(tn_backward(tn_sum(tn_forward(net, tn_ones(TN_SHAPE(1, 1)))), .create_graph = true), TN_OK);
        assert_int_equal(tn_step(sgd), TN_OK);
        assert_true(tn_item(tn_param(net, 0)) == 1.75);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

/* What was detached is a constant, whichever arrays are marked, and whether it has a value yet or not. */
static void test_detached(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) TN_SCOPE {
        tn_array *a = tn_scalar(3, .dtype = TN_FLOAT64), *b = tn_scalar(5, .dtype = TN_FLOAT64), *g[2];
        if (i & 1)
            tn_requires_grad(a);
        tn_array *c = i & 2 ? a : tn_multiply(a, 2), *cut = tn_detach(c);
        if (i & 4)
            assert_int_equal(tn_eval(cut), TN_OK);
        tn_array *y = tn_add(tn_multiply(a, tn_multiply(cut, 1)), b);
        assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){a, b}, false, g), TN_OK);
        assert_values(g[0], 1, (double[]){i & 2 ? 3 : 6}, 0);
        assert_values(g[1], 1, (double[]){1}, 0);
        assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){cut}, false, g), TN_OK);
        assert_values(g[0], 1, (double[]){3}, 0);
        assert_int_equal(tn_gradients(tn_add(cut, b), 1, (const tn_array *[]){a}, false, g), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "xs[0]");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_written_leaf),       TEST(test_loaded_between),      TEST(test_step_between),
        TEST(test_constant_gradients), TEST(test_constant_by_another),
        TEST(test_detached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
