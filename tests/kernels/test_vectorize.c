/* SPDX-License-Identifier: MIT */
/* C functions as functions of arrays: with and without their text. */
#include "kernels/check.h"

TN_UFUNC(float, relative, (float a, float b), { return (a - b) / b; })
TN_UFUNC(double, digits, (double a, double b), { return 10 * a + b; })
TN_UFUNC(int64_t, gcd, (int64_t a, int64_t b), {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
})

static float hidden(float a, float b) { return 10 * a + b; }
static double weighted(float x, int n, double w) { return x * n + w; }

static void with_text(void **state)
{
    (void)state;
    tn_kernel *f = tn_vectorize(relative);
    tn_array *x = tn_arange(1, 5, 1, .dtype = TN_FLOAT32);
    assert_true(relative(3, 2) == 0.5f);
    assert_same(tn_call(f, TN_ARGS(x, 2)), tn_divide(tn_subtract(x, 2), 2));
    tn_array *rows = tn_reshape(x, TN_SHAPE(4, 1));
    assert_same(tn_call(f, TN_ARGS(rows, x)), tn_divide(tn_subtract(rows, x), x));
    assert_same(tn_ufunc_outer(f, x, x), tn_divide(tn_subtract(rows, x), x));
    tn_array *z = tn_zeros(TN_SHAPE(4));
    assert_ptr_equal(tn_call(f, TN_ARGS(x, 1), .out = z), z);
    assert_elements(z, 0, 1, 2, 3);
    assert_int_equal(tn_dtype_of(tn_call(tn_vectorize(gcd), TN_ARGS(tn_arange(1, 5, 1), 4))), TN_INT64);
    assert_elements(tn_call(tn_vectorize(gcd), TN_ARGS(tn_arange(1, 5, 1), 4)), 1, 2, 1, 4);
    assert_true(tn_is_error(tn_call(tn_vectorize(gcd), TN_ARGS(x, 4))));
    assert_failed(TN_ERR_DTYPE, "argument a is int64, got float32");
}

static void by_address(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("functions by their address");
    tn_kernel *f = tn_vectorize_with((tn_scalar_function)hidden, "float hidden(float, float)", NULL);
    tn_array *x = tn_arange(1, 5, 1, .dtype = TN_FLOAT32);
    assert_elements(tn_call(f, TN_ARGS(x, 2)), 12, 22, 32, 42);
    assert_elements(tn_ufunc_reduce(f, x), 1234);
    assert_elements(tn_ufunc_accumulate(f, x), 1, 12, 123, 1234);
    tn_kernel *g = tn_vectorize_with((tn_scalar_function)weighted, "double weighted(float x, int n, double w);", NULL);
    assert_elements(tn_call(g, TN_ARGS(x, 3, 0.25)), 3.25, 6.25, 9.25, 12.25);
    /* fused with what is around it, from several threads */
    tn_array *many = tn_to(tn_arange(0, 200000, 1, .dtype = TN_FLOAT32), test_device());
    assert_same(tn_add(tn_call(f, TN_ARGS(many, 1)), 1), tn_add(tn_add(tn_multiply(many, 10), 1), 1));
}

static void reduce_and_accumulate(void **state)
{
    (void)state;
    tn_array *x = tn_reshape(tn_arange(1, 7, 1), TN_SHAPE(2, 3));
    tn_kernel *f = tn_vectorize(digits);
    assert_elements(tn_ufunc_reduce(f, x), 14, 25, 36);
    assert_elements(tn_ufunc_reduce(f, x, .axis = -1), 123, 456);
    assert_elements(tn_ufunc_reduce(f, tn_transpose(x, (tn_axes){0})), 123, 456);
    tn_array *kept = tn_ufunc_reduce(f, x, .axis = 1, .keepdims = true);
    assert_int_equal(tn_ndim(kept), 2);
    assert_elements(tn_ufunc_accumulate(f, x, .axis = 1), 1, 12, 123, 4, 45, 456);
    assert_elements(tn_ufunc_accumulate(f, x), 1, 2, 3, 14, 25, 36);
    tn_array *none = tn_ufunc_accumulate(f, tn_zeros(TN_SHAPE(0, 2), .dtype = TN_FLOAT64));
    assert_int_equal(tn_size(none), 0);
    assert_int_equal(tn_ndim(none), 2);
}

static void with_identity(void **state)
{
    (void)state;
    tn_kernel *f = tn_vectorize(gcd, .identity = "0");
    tn_array *x = tn_reshape(tn_arange(6, 30, 6), TN_SHAPE(2, 2));
    assert_elements(tn_ufunc_reduce(f, x), 6, 12);
    assert_elements(tn_ufunc_reduce(f, tn_zeros(TN_SHAPE(0, 2), .dtype = TN_INT64)), 0, 0);
    tn_array *out = tn_zeros(TN_SHAPE(2), .dtype = TN_INT64);
    assert_ptr_equal(tn_ufunc_reduce(f, x, .axis = 1, .out = out), out);
    assert_elements(out, 6, 6);
}

static tn_array *call(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_call((tn_kernel *)user, TN_ARGS(xs[0], xs[1]));
}

TN_UFUNC(double, product, (double a, double b), { return a * b; })

static void trains(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const tn_array *xs[] = {random_floats(&random, TN_SHAPE(3)), random_floats(&random, TN_SHAPE(2, 3))};
    tn_kernel *f = tn_vectorize(product, .gradient = "ga = gresult * b; gb = gresult * a");
    tn_status status = tn_check_backward(call, f, 2, xs);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {{"float f", "no parameter list"},        {"f(float a)", "no type and name"},
               {"float f()", "no parameter"},           {"float f(float *a) { return *a; }", "no number"},
               {"float f(struct x a) {}", "no number"}, {"float (float a)", "no type and name"},
               {"float f(float a)", "neither a body"},  {"", "no parameter list"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_int_equal(tn_kernel_status(tn_vectorize_with(NULL, bad[k].text, NULL)), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, bad[k].words);
    }
    assert_int_equal(tn_kernel_status(tn_vectorize_with(NULL, NULL, NULL)), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    tn_array *x = tn_ones(TN_SHAPE(2));
    assert_true(tn_is_error(tn_ufunc_reduce(tn_elementwise("T x, T y", "T z", "z = x + y", "add"), x)));
    assert_failed(TN_ERR_VALUE, "cannot be applied to its own results");
    assert_true(tn_is_error(tn_ufunc_reduce(tn_vectorize(digits), x, .axis = 1)));
    assert_failed(TN_ERR_INDEX, "axis 1");
    assert_true(tn_is_error(tn_ufunc_reduce(tn_vectorize(digits), tn_zeros(TN_SHAPE(0)))));
    assert_failed(TN_ERR_SHAPE, "no identity");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(with_text),     TEST(by_address), TEST(reduce_and_accumulate),
                                       TEST(with_identity), TEST(trains),     TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
