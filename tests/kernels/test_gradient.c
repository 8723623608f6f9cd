/* SPDX-License-Identifier: MIT */
/* Gradients of users' kernels: by text, by function, of one and of several outputs, checked against differences. */
#include "kernels/check.h"

static tn_array *call(int count, tn_array *const *xs, void *user)
{
    tn_arg args[4];
    for (int k = 0; k < count; k++)
        args[k] = tn__arg_array(xs[k]);
    return tn_call_with(user, (tn_args){count, args}, NULL);
}

/* Of the outputs of a kernel with two: the first's sine times the second. */
static tn_array *combined(int count, tn_array *const *xs, void *user)
{
    (void)count;
    tn_array *results[2] = {NULL, NULL};
    if (tn_call_into((tn_kernel *)user, TN_ARGS(xs[0], xs[1]), 2, results) != TN_OK)
        return results[0];
    return tn_multiply(tn_sin(results[0]), results[1]);
}

static void sine_of_product(const tn_gradient_call *c)
{
    tn_array *x = c->inputs[0], *y = c->inputs[1], *slope = tn_multiply(c->gradients[0], tn_cos(tn_multiply(x, y)));
    c->result[0] = tn_multiply(slope, y);
    c->result[1] = tn_multiply(slope, x);
}

static void check(tn_function f, tn_kernel *kernel, bool twice)
{
    test_random random = test_random_new();
    const tn_array *xs[] = {random_floats(&random, TN_SHAPE(3, 4)), random_floats(&random, TN_SHAPE(4))};
    tn_status status = tn_check_backward(f, kernel, 2, xs);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
    status = tn_check_double_backward(f, kernel, 2, xs);
    if (twice) {
        assert_string_equal(tn_error(), "");
        assert_int_equal(status, TN_OK);
    } else {
        assert_failed(TN_ERR_STATE, "has no gradient");
    }
}

static void by_text(void **state)
{
    (void)state;
    check(call, tn_elementwise("T x, T y", "T z", "z = sin(x * y)", "sine",
                               .gradient = "T c = gz * cos(x * y); gx = c * y; gy = c * x"), false);
}

static void by_function(void **state)
{
    (void)state;
    check(call, tn_elementwise("T x, T y", "T z", "z = sin(x * y)", "sine", .backward = sine_of_product), true);
}

static void two_outputs(const tn_gradient_call *c)
{
    tn_array *x = c->inputs[0], *y = c->inputs[1], *ga = c->gradients[0], *gb = c->gradients[1];
    assert_int_equal(c->input_count, 2);
    assert_int_equal(c->output_count, 2);
    /* a = x y, b = x² - y, whose value is there too */
    c->result[0] = tn_add(tn_multiply(ga, y), tn_multiply(gb, tn_multiply(2, x)));
    c->result[1] = tn_subtract(tn_multiply(ga, tn_divide(c->outputs[0], y)), gb);
}

static void several_outputs(void **state)
{
    (void)state;
    check(combined, tn_elementwise("T x, T y", "T a, T b", "a = x * y; b = x * x - y", "two", .backward = two_outputs),
          true);
    check(combined, tn_elementwise("T x, T y", "T a, T b", "a = x * y; b = x * x - y", "two",
                                   .gradient = "gx = ga * y + gb * 2 * x; gy = ga * a / y - gb"), false);
}

static void of_norm(const tn_gradient_call *c)
{
    assert_int_equal(tn_ndim(c->inputs[0]), tn_ndim(c->outputs[0]));
    c->result[0] = tn_multiply(c->gradients[0], tn_divide(c->inputs[0], c->outputs[0]));
}

static tn_array *row_norms(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_call((tn_kernel *)user, TN_ARGS(xs[0]), .axis = TN_AXES(-1));
}

static void of_reduction(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tn_kernel *norm = tn_reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm", .backward = of_norm);
    const tn_array *x = random_floats(&random, TN_SHAPE(3, 4));
    tn_status status = tn_check_backward(row_norms, norm, 1, &x);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
}

/* A parameter learns through a kernel of one's own, and the step is still few kernels. */
static void training(void **state)
{
    (void)state;
    tn_kernel *loss =
        tn_elementwise("T w, T t", "T z", "T d = w - t; z = d * d", "distance", .gradient = "gw = 2 * gz * (w - t)");
    tn_array *w = tn_requires_grad(tn_zeros(TN_SHAPE(3))), *t = tn_arange(1, 4, 1, .dtype = TN_FLOAT32);
    for (int step = 0; step < 60; step++)
        TN_SCOPE {
            tn_status status = tn_backward(tn_sum(tn_call(loss, TN_ARGS(w, t))));
            assert_string_equal(tn_error(), "");
            assert_int_equal(status, TN_OK);
            tn_array *g = tn_multiply(tn_grad(w), 0.25);
            TN_NO_GRAD assert_int_equal(tn_subtract_assign(w, g), TN_OK);
            tn_clear_grad(w);
            assert_int_equal(tn_eval(w), TN_OK);
        }
    assert_elements(w, 1, 2, 3);
}

static void missing(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(3)));
    tn_kernel *f = tn_elementwise("T x", "T z", "z = x * x", "square_without");
    assert_int_equal(tn_backward(tn_sum(tn_call(f, TN_ARGS(x)))), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "square_without: the kernel has no gradient: give .gradient or .backward");
    tn_kernel *half = tn_elementwise("T x, T y", "T z", "z = x * y", "half_without", .gradient = "gx = gz * y");
    assert_int_equal(tn_backward(tn_sum(tn_call(half, TN_ARGS(x, 2)))), TN_OK);
    assert_elements(tn_grad(x), 2, 2, 2);
    assert_int_equal(tn_backward(tn_sum(tn_call(half, TN_ARGS(2, x)))), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "sets no gy");
    TN_NO_GRAD assert_elements(tn_call(f, TN_ARGS(x)), 1, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(by_text),      TEST(by_function), TEST(several_outputs),
                                       TEST(of_reduction), TEST(training),    TEST(missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
