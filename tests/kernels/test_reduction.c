/* SPDX-License-Identifier: MIT */
/* Reductions of one's own: any axes, dtypes, order, and what surrounds them. */
#include "kernels/check.h"

static tn_kernel *norm(void) { return tn_reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm"); }

/* The order of combination is tn_sum's of float64: the same bits. (Of float32 tn_sum goes on in float64.) */
static void as_sum(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const tn_shape shapes[] = {TN_SHAPE(5),        TN_SHAPE(100000),   TN_SHAPE(37, 1200),
                               TN_SHAPE(1200, 37), TN_SHAPE(7, 20, 9), TN_SHAPE(1, 1)};
    const tn_axes axes[] = {{0}, TN_AXES(0), TN_AXES(-1)};
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++)
            TN_SCOPE {
                tn_array *x = tn_cast(random_floats(&random, shapes[s]), TN_FLOAT64);
                assert_same(tn_call(norm(), TN_ARGS(x), .axis = axes[a]),
                            tn_sqrt(tn_sum(tn_multiply(x, x), .axis = axes[a])));
                assert_same(tn_call(norm(), TN_ARGS(tn_add(x, 1)), .axis = axes[a], .keepdims = true),
                            tn_sqrt(tn_sum(tn_square(tn_add(x, 1)), .axis = axes[a], .keepdims = true)));
            }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void several_inputs(void **state)
{
    (void)state;
    tn_kernel *dot = tn_reduction("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot");
    tn_array *x = tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT32), TN_SHAPE(2, 3)),
             *y = tn_arange(1, 4, 1, .dtype = TN_FLOAT32);
    assert_elements(tn_call(dot, TN_ARGS(x, y), .axis = TN_AXES(1)), 8, 26);
    assert_elements(tn_call(dot, TN_ARGS(x, 2)), 30);
    tn_kernel *mean = tn_reduction("T x", "float64 y", "x", "a + b", "y = a / _count", "0", "average");
    assert_elements(tn_call(mean, TN_ARGS(x), .axis = TN_AXES(0)), 1.5, 2.5, 3.5);
    assert_int_equal(tn_dtype_of(tn_call(mean, TN_ARGS(x))), TN_FLOAT64);
    assert_elements(tn_call(mean, TN_ARGS(x)), 2.5);
}

static void other_combinations(void **state)
{
    (void)state;
    tn_kernel *largest = tn_reduction("T x", "T y", "abs(x)", "max(a, b)", "y = a", "0", "largest");
    tn_array *x = tn_reshape(tn_arange(-3, 3, 1, .dtype = TN_INT32), TN_SHAPE(2, 3));
    assert_elements(tn_call(largest, TN_ARGS(x), .axis = TN_AXES(1)), 3, 2);
    assert_int_equal(tn_dtype_of(tn_call(largest, TN_ARGS(x))), TN_INT32);
    /* int8 summed in int64 */
    tn_kernel *total = tn_reduction("T x", "int64 y", "x", "a + b", "y = a", "0", "total", .accumulate = "int64");
    assert_elements(tn_call(total, TN_ARGS(tn_full(TN_SHAPE(1000), 100, .dtype = TN_INT8))), 100000);
    tn_kernel *narrow = tn_reduction("T x", "int64 y", "x", "a + b", "y = a", "0", "narrow", .accumulate = "T");
    assert_elements(tn_call(narrow, TN_ARGS(tn_full(TN_SHAPE(3), 100, .dtype = TN_INT8))), 44);
    /* nothing gives the identity */
    assert_elements(tn_call(norm(), TN_ARGS(tn_zeros(TN_SHAPE(0, 2))), .axis = TN_AXES(0)), 0, 0);
    /* positions in the map: the sum of i where x is true */
    tn_kernel *positions = tn_reduction("bool x", "int64 y", "x ? i : 0", "a + b", "y = a", "0", "positions");
    assert_elements(tn_call(positions, TN_ARGS(tn_greater(x, 0))), 9);
}

/* Truth values stay 0 or 1 whatever they are combined by, in the accumulator and in the result. */
static void truth_values(void **state)
{
    (void)state;
    tn_kernel *some = tn_reduction("T x", "bool y", "x > 1", "a + b", "y = a + 1.5 * a", "0", "some");
    tn_kernel *sum = tn_reduction("T x", "bool y", "x", "a + b", "y = a", "0", "truth", .accumulate = "float64");
    const tn_shape shapes[] = {TN_SHAPE(313), TN_SHAPE(313, 3), TN_SHAPE(2, 7000), TN_SHAPE(5000, 2)};
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        TN_SCOPE {
            tn_array *x = tn_full(shapes[s], 2);
            int64_t rest = tn_size(x) / shapes[s].dim[0];
            const unsigned char *one = test_data(tn_call(some, TN_ARGS(x)));
            assert_true(one && *one == 1);
            assert_elements(tn_sum(tn_call(some, TN_ARGS(x), .axis = TN_AXES(0))), (double)rest);
            assert_elements(tn_sum(tn_equal(tn_call(sum, TN_ARGS(tn_multiply(x, 0.125)), .axis = TN_AXES(0)), true)),
                            (double)rest);
            assert_elements(tn_call(sum, TN_ARGS(tn_multiply(x, 0.0001))), 1);
            assert_elements(tn_call(some, TN_ARGS(tn_zeros_like(x))), 0);
        }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void into_out(void **state)
{
    (void)state;
    tn_array *y = tn_zeros(TN_SHAPE(2)), *x = tn_full(TN_SHAPE(2, 4), 3);
    assert_ptr_equal(tn_call(norm(), TN_ARGS(x), .axis = TN_AXES(1), .out = y), y);
    assert_elements(y, 6, 6);
}

static void refused(void **state)
{
    (void)state;
    tn_array *x = tn_ones(TN_SHAPE(2, 3));
    assert_true(tn_is_error(tn_call(norm(), TN_ARGS(x), .axis = TN_AXES(2))));
    assert_failed(TN_ERR_INDEX, "axis 2");
    assert_true(tn_is_error(tn_call(norm(), TN_ARGS(x, x))));
    assert_failed(TN_ERR_VALUE, "got 2 arguments, expected 1");
    assert_int_equal(tn_kernel_status(tn_reduction("T x", "T y, T z", "x", "a + b", "y = a", "0", "two")),
                     TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "one output");
    assert_int_equal(tn_kernel_status(tn_reduction("T x", "T y", "x", "a + b", "y = a", NULL, "none")), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_kernel_status(tn_reduction("T x", "T y", "x", "a + b", "y = a", "0", "f", .accumulate = "t")),
                     TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "accumulator");
    tn_kernel *bad = tn_reduction("T x", "T y", "x", "a + c", "y = a", "0", "bad_combination");
    assert_int_not_equal(tn_eval(tn_call(bad, TN_ARGS(x))), TN_OK);
    assert_non_null(strstr(tn_error(), "     1 | a + c"));
    assert_failed(TN_ERR_COMPILE, "bad_combination");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(as_sum),       TEST(several_inputs), TEST(other_combinations),
                                       TEST(truth_values), TEST(into_out),       TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
