/* SPDX-License-Identifier: MIT */
/* Elementwise kernels: dtypes, broadcasting, outputs, positions, raw arguments, `out`, fusion, and what is refused. */
#include "kernels/check.h"

#include <stdlib.h>

static void same_as_operations(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tn_kernel *f = tn_elementwise("T x, T y", "T z", "z = exp(-x * x) + y", "bell");
    const tn_shape shapes[][2] = {{TN_SHAPE(7), TN_SHAPE(7)},
                                  {TN_SHAPE(1000, 33), TN_SHAPE(33)},
                                  {TN_SHAPE(5, 1, 3), TN_SHAPE(4, 1)},
                                  {TN_SHAPE(0, 3), TN_SHAPE(3)},
                                  {{.ndim = 0}, TN_SHAPE(2)}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        tn_array *x = random_floats(&random, shapes[k][0]), *y = random_floats(&random, shapes[k][1]);
        assert_same(tn_call(f, TN_ARGS(x, y)), tn_add(tn_exp(tn_negative(tn_multiply(x, x))), y));
    }
    tn_array *x = random_floats(&random, TN_SHAPE(40, 30));
    assert_same(tn_call(f, TN_ARGS(tn_transpose(x, (tn_axes){0}), 1.5)),
                tn_add(tn_exp(tn_negative(tn_square(tn_transpose(x, (tn_axes){0})))), 1.5));
}

static void dtypes(void **state)
{
    (void)state;
    tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
    tn_array *i8 = tn_arange(0, 3, 1, .dtype = TN_INT8), *f32 = tn_arange(0, 3, 1, .dtype = TN_FLOAT32);
    /* as operands promote */
    assert_int_equal(tn_dtype_of(tn_call(add, TN_ARGS(i8, f32))), TN_FLOAT32);
    assert_int_equal(tn_dtype_of(tn_call(add, TN_ARGS(i8, 2))), TN_INT8);
    assert_int_equal(tn_dtype_of(tn_call(add, TN_ARGS(f32, 2.5))), TN_FLOAT32);
    assert_elements(tn_call(add, TN_ARGS(i8, f32)), 0, 2, 4);
    tn_kernel *mixed = tn_elementwise("T x, U y, float64 w", "U z, int64 n", "z = y * w; n = x > 1", "mixed");
    tn_array *results[2] = {NULL, NULL};
    assert_int_equal(tn_call_into(mixed, TN_ARGS(i8, f32, 0.5f), 2, results), TN_OK);
    assert_int_equal(tn_dtype_of(results[0]), TN_FLOAT32);
    assert_int_equal(tn_dtype_of(results[1]), TN_INT64);
    assert_elements(results[0], 0, 0.5, 1);
    assert_elements(results[1], 0, 0, 1);
    /* half precision is computed in float32 and rounded once */
    tn_array *half = tn_cast(tn_divide(tn_arange(1, 6, 1, .dtype = TN_FLOAT32), 3.0f), TN_FLOAT16);
    tn_kernel *cube = tn_elementwise("T x", "T z", "z = x * x * x", "cube");
    tn_array *wide = tn_cast(half, TN_FLOAT32);
    assert_same(tn_call(cube, TN_ARGS(half)), tn_cast(tn_multiply(tn_multiply(wide, wide), wide), TN_FLOAT16));
    /* a float is no index */
    tn_kernel *pick = tn_elementwise("raw T x, int64 k", "T z", "z = x[k]", "pick");
    assert_true(tn_is_error(tn_call(pick, TN_ARGS(f32, f32))));
    assert_failed(TN_ERR_DTYPE, "argument k is int64, got float32");
    assert_elements(tn_call(pick, TN_ARGS(f32, i8)), 0, 1, 2);
}

/* What is assigned to a bool is 0 or 1, as C's own bool is, alone and in front of what is fused with it. */
static void truth_values(void **state)
{
    (void)state;
    const struct {
        tn_kernel *kernel;
        bool zero, half, one, large; /* of 0, 1/2, 1, 256 */
    } cases[] = {{tn_elementwise("T x", "bool z", "z = x + (T)1", "above"), true, true, true, true},
                 {tn_elementwise("T x", "bool z", "z = x", "truth"), false, true, true, true},
                 {tn_elementwise("T x", "bool z", "bool y = x; z = y + y; z += x == 256", "twice"),
                  false, true, true, true},
                 {tn_elementwise("T x", "bool z", "z = ~(x > 0)", "complement"), true, true, true, true}};
    tn_array *x = tn_tile(tn_cast(tn_from_doubles((double[]){0, 0.5, 1, 256}, 4), TN_FLOAT32), TN_SHAPE(9));
    for (int mode = 0; mode < 4; mode++) {
        tn_set_fusion(mode % 2);
        tn_set_compile(mode / 2 ? TN_COMPILE_ALWAYS : TN_COMPILE_AUTO);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            double zero = cases[k].zero, half = cases[k].half, one = cases[k].one, large = cases[k].large;
            tn_array *z = tn_call(cases[k].kernel, TN_ARGS(x));
            assert_int_equal(tn_dtype_of(z), TN_BOOL);
            double count = 9 * (zero + half + one + large);
            assert_elements(tn_sum(z), count);
            assert_elements(tn_sum(tn_equal(tn_call(cases[k].kernel, TN_ARGS(x)), tn_ones_like(z))), count);
            assert_elements(tn_sum(tn_cast(tn_call(cases[k].kernel, TN_ARGS(x)), TN_UINT8)), count);
            const unsigned char *byte = test_data(tn_call(cases[k].kernel, TN_ARGS(x)));
            const double expected[] = {zero, half, one, large};
            for (int i = 0; i < 36; i++)
                assert_true(byte && byte[i] == expected[i % 4]);
        }
        tn_kernel *either = tn_elementwise("T x, raw T y", "T z, bool w", "const T *p = y; z = x + p[i]; w = z + z",
                                           "either");
        tn_array *b = tn_greater(x, 0.75), *result[2] = {NULL, NULL};
        assert_int_equal(tn_call_into(either, TN_ARGS(b, b), 2, result), TN_OK);
        assert_int_equal(tn_dtype_of(result[0]), TN_BOOL);
        assert_elements(tn_sum(tn_add(tn_cast(result[0], TN_INT64), tn_cast(result[1], TN_INT64))), 36);
        assert_elements(tn_sum(result[0]), 18);
    }
    tn_set_fusion(true);
    tn_set_compile(TN_COMPILE_AUTO);
}

static void positions(void **state)
{
    (void)state;
    tn_kernel *where =
        tn_elementwise("T x", "T z", "z = 100 * _ind[0] + 10 * _ind[1] + (i == size - 1) + x * 0", "where");
    assert_elements(tn_call(where, TN_ARGS(tn_zeros(TN_SHAPE(2, 3)))), 0, 10, 20, 100, 110, 121);
    /* by the call's own positions, not those of what is computed around it */
    tn_array *x = tn_zeros(TN_SHAPE(2, 3));
    assert_elements(tn_reshape(tn_transpose(tn_call(where, TN_ARGS(x)), (tn_axes){0}), TN_SHAPE(6)), 0, 100, 10, 110,
                    20, 121);
    tn_kernel *shape = tn_elementwise("", "int32 z", "z = _ndim * 100 + _shape[0] * 10 + _shape[1]", "extents");
    assert_elements(tn_call(shape, TN_NO_ARGS, .shape = TN_SHAPE(1, 2)), 212, 212);
}

static void raw_arguments(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tn_kernel *reverse = tn_elementwise("raw T x", "T z", "z = x[size - 1 - i]", "reverse");
    tn_array *x = random_floats(&random, TN_SHAPE(6, 5));
    tn_array *flat = tn_reshape(x, TN_SHAPE(30));
    assert_same(tn_call(reverse, TN_ARGS(x), .shape = TN_SHAPE(30)), tn_flip(flat, (tn_axes){0}));
    /* computed, strided and constant ones */
    assert_same(tn_call(reverse, TN_ARGS(tn_exp(x)), .shape = TN_SHAPE(30)), tn_flip(tn_exp(flat), (tn_axes){0}));
    tn_array *turned = tn_transpose(x, (tn_axes){0});
    assert_same(tn_call(reverse, TN_ARGS(turned), .shape = TN_SHAPE(30)),
                tn_flip(tn_reshape(turned, TN_SHAPE(30)), (tn_axes){0}));
    assert_elements(tn_call(reverse, TN_ARGS(tn_full(TN_SHAPE(3), 7)), .shape = TN_SHAPE(2)), 7, 7);
    /* a neighbour sum: a window over the raw array around each element */
    tn_kernel *blur = tn_elementwise("T centre, raw T x, float32 w", "T z",
                                     "T sum = centre;\n"
                                     "if (i > 0) sum += w * x[i - 1];\n"
                                     "if (i + 1 < x_size) sum += w * x[i + 1];\n"
                                     "z = sum;", "blur");
    tn_array *v = tn_arange(0, 5, 1, .dtype = TN_FLOAT32);
    assert_elements(tn_call(blur, TN_ARGS(v, v, 1)), 1, 3, 6, 9, 7);
    tn_kernel *trace = tn_elementwise("raw T x", "T z",
                                      "z = 0; for (int d = 0; d < x_shape[0]; d++) z += x[d * x_shape[1] + d]"
                                      " + 0 * x_ndim",
                                      "trace");
    assert_elements(tn_call(trace, TN_ARGS(tn_eye(4, 4)), .shape = TN_SHAPE(1)), 4);
}

/* A function is called for the elements that there are, and no others: this one would never return for 0. */
static void present_elements(void **state)
{
    (void)state;
    tn_kernel *collatz = tn_elementwise("int32 n", "int32 steps",
                                        "int m = n;\n"
                                        "for (steps = 0; m != 1; steps++)\n"
                                        "    m = m % 2 ? 3 * m + 1 : m / 2;", "collatz");
    tn_array *n = tn_arange(1, 8, 1, .dtype = TN_INT32);
    assert_elements(tn_call(collatz, TN_ARGS(n)), 0, 1, 7, 2, 5, 8, 16);
    assert_elements(tn_call(collatz, TN_ARGS(tn_slice_axis(n, 0, 2, 5, 1))), 7, 2, 5);
    assert_elements(tn_call(collatz, TN_ARGS(tn_add(tn_broadcast_to(tn_slice_axis(n, 0, 5, 7, 1), TN_SHAPE(3, 2)), 1))),
                    16, 3, 16, 3, 16, 3);
}

static void many_inputs(void **state)
{
    (void)state;
    tn_kernel *sum =
        tn_elementwise("T a, T b, T c, T d, T e, T f, T g, T h, T j, T k, T l, T m, T n, T o, T p, T q", "T z",
                       "z = a + b + c + d + e + f + g + h + j + k + l + m + n + o + p + q", "sum16");
    tn_array *x = tn_arange(0, 3, 1, .dtype = TN_FLOAT32);
    tn_array *y = tn_call(sum, TN_ARGS(x, x, x, x, x, x, x, x, 1, 1, 1, 1, 1, 1, 1, 1));
    assert_elements(y, 8, 16, 24);
    assert_elements(tn_add(tn_call(sum, TN_ARGS(y, x, x, x, x, x, x, x, 1, 1, 1, 1, 1, 1, 1, y)), y), 31, 62, 93);
}

static void out(void **state)
{
    (void)state;
    tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
    tn_array *x = tn_arange(0, 3, 1, .dtype = TN_FLOAT32), *z = tn_zeros(TN_SHAPE(2, 3), .dtype = TN_FLOAT64);
    assert_ptr_equal(tn_call(add, TN_ARGS(x, 1), .out = z), z);
    assert_elements(z, 1, 2, 3, 1, 2, 3);
    assert_int_equal(tn_dtype_of(z), TN_FLOAT64);
    assert_ptr_equal(tn_call(add, TN_ARGS(z, z), .out = z), z);
    assert_elements(z, 2, 4, 6, 2, 4, 6);
    tn_array *small = tn_zeros(TN_SHAPE(2));
    assert_true(tn_is_error(tn_call(add, TN_ARGS(x, 1), .out = small)));
    assert_failed(TN_ERR_SHAPE, "");
    assert_elements(small, 0, 0);
    /* an existing and a new array */
    tn_kernel *both = tn_elementwise("T x", "T a, T b", "a = x; b = -x", "both");
    tn_array *results[2] = {tn_zeros(TN_SHAPE(3)), NULL};
    assert_int_equal(tn_call_into(both, TN_ARGS(x), 2, results), TN_OK);
    assert_elements(results[0], 0, 1, 2);
    assert_elements(results[1], 0, -1, -2);
}

static int kernels_in(char *plan)
{
    int count = 0;
    assert_non_null(plan);
    for (const char *at = plan; (at = strstr(at, "writes")); at++)
        count++;
    tn_string_free(plan);
    return count;
}

static void fused(void **state)
{
    (void)state;
    tn_kernel *half = tn_elementwise("T x", "T z", "z = x / 2", "halve");
    tn_array *x = tn_to(tn_arange(0, 4096, 1, .dtype = TN_FLOAT32), test_device());
    tn_array *y = tn_sum(tn_exp(tn_call(half, TN_ARGS(tn_add(x, 1)))), .axis = TN_AXES(0));
    assert_int_equal(kernels_in(tn_plan_describe(y)), 1);
    tn_kernel *both = tn_elementwise("T x", "T a, T b", "a = x + 1; b = x - 1", "both");
    tn_array *results[2] = {NULL, NULL};
    assert_int_equal(tn_call_into(both, TN_ARGS(x), 2, results), TN_OK);
    assert_int_equal(kernels_in(tn_plan_describe(tn_multiply(results[0], results[1]))), 1);
}

/* The same function made twice is one; another text, name or preamble is another. */
static void identity(void **state)
{
    (void)state;
    char text[] = "z = x + 1";
    tn_kernel *a = tn_elementwise("T x", "T z", text, "inc");
    text[8] = '2';
    tn_kernel *b = tn_elementwise("T x", "T z", text, "inc");
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(a, tn_elementwise("T x", "T z", "z = x + 1", "inc"));
    assert_elements(tn_add(tn_call(a, TN_ARGS(tn_zeros(TN_SHAPE(2)))), tn_call(b, TN_ARGS(tn_zeros(TN_SHAPE(2))))), 3,
                    3);
    static const char preamble[] = "TN_FN float twice(float x) { return 2 * x; }";
    tn_kernel *c = tn_elementwise("T x", "T z", "z = twice(x)", "inc", .preamble = preamble);
    tn_kernel *d = tn_elementwise("T x", "T z", "z = twice(twice(x))", "inc", .preamble = preamble);
    tn_array *one = tn_ones(TN_SHAPE(1));
    assert_elements(tn_add(tn_call(c, TN_ARGS(one)), tn_call(d, TN_ARGS(one))), 6);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *inputs, *outputs, *name, *words;
    } bad[] = {
        {"T x,", "T z", "f", "nothing behind the comma"}, {"T", "T z", "f", "no name"},
        {"float33 x", "T z", "f", "neither a capital letter nor a dtype"}, {"T x T y", "T z", "f", "no comma"},
        {"T x, T x", "T z", "f", "there already"}, {"T i", "T z", "f", "a meaning of its own"},
        {"T x", "", "f", "no output"}, {"T x", "raw T z", "f", "an output that is raw"},
        {"T x", "T z", "not a name", "no C identifier"}, {"T x", NULL, "f", "NULL"},
        {"t x", "T z", "f", "neither"}, {"T \xff", "T z", "f", "no name"},
    };
    tn_array *x = tn_ones(TN_SHAPE(2));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        tn_kernel *f = tn_elementwise(bad[k].inputs, bad[k].outputs, "z = x", bad[k].name);
        assert_non_null(f);
        assert_int_equal(tn_kernel_status(f), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, bad[k].words);
        assert_true(tn_is_error(tn_call(f, TN_ARGS(x))));
        assert_failed(TN_ERR_VALUE, bad[k].words);
    }
    tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
    assert_true(tn_is_error(tn_call(add, TN_ARGS(x))));
    assert_failed(TN_ERR_VALUE, "add: got 1 arguments, expected 2");
    assert_true(tn_is_error(tn_call(add, TN_ARGS(x, tn_ones(TN_SHAPE(3))))));
    assert_failed(TN_ERR_SHAPE, "do not broadcast");
    assert_true(tn_is_error(tn_call(add, TN_ARGS(x, (tn_array *)NULL))));
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_true(tn_is_error(tn_call(add, TN_ARGS(1, 2))));
    assert_failed(TN_ERR_SHAPE, ".shape");
    assert_elements(tn_call(add, TN_ARGS(1, 2), .shape = TN_SHAPE(2)), 3, 3);
    tn_kernel *fresh = tn_elementwise("", "T z", "z = i", "fresh");
    assert_true(tn_is_error(tn_call(fresh, TN_NO_ARGS, .shape = TN_SHAPE(3))));
    assert_failed(TN_ERR_DTYPE, ".dtype");
    assert_elements(tn_call(fresh, TN_NO_ARGS, .shape = TN_SHAPE(3), .dtype = TN_INT16), 0, 1, 2);
    assert_true(tn_is_error(tn_call(NULL, TN_ARGS(x))));
    assert_failed(TN_ERR_VALUE, "NULL");
}

/* The compiler's words, and the lines they are about, by their own numbers. */
static void wrong_text(void **state)
{
    (void)state;
    tn_kernel *f = tn_elementwise("T x", "T z", "T w = x;\nz = w + undeclared_thing;", "wrong_one");
    tn_array *x = tn_ones(TN_SHAPE(2));
    assert_int_not_equal(tn_eval(tn_call(f, TN_ARGS(x))), TN_OK);
    assert_non_null(strstr(tn_error(), "wrong_one"));
    assert_non_null(strstr(tn_error(), "     1 | T w = x;\n     2 | z = w + undeclared_thing;"));
    assert_failed(TN_ERR_COMPILE, "undeclared_thing");
    /* the array can still be used, with the same answer */
    assert_int_not_equal(tn_eval(tn_add(tn_call(f, TN_ARGS(x)), 1)), TN_OK);
    assert_failed(TN_ERR_COMPILE, "undeclared_thing");
}

static void without_compiler(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("the C compiler");
    tn_kernel *f = tn_elementwise("T x", "T z", "z = 3 * x + 41", "needs_a_compiler");
    setenv("TANSO_CC", "/nowhere/cc", 1);
    tn_array *x = tn_ones(TN_SHAPE(2)), *y = tn_call(f, TN_ARGS(x));
    assert_int_equal(tn_eval(y), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "reference evaluator"));
    assert_failed(TN_ERR_COMPILE, "TANSO_CC");
    unsetenv("TANSO_CC");
    assert_elements(y, 44, 44);
}

/* Switches of the engine change nothing. */
static void modes(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tn_kernel *f = tn_elementwise("T x, T y", "T z", "z = tanh(x) * y", "gate");
    tn_array *x = random_floats(&random, TN_SHAPE(50, 20)), *y = random_floats(&random, TN_SHAPE(20));
    tn_array *expected = tn_sum(tn_add(tn_call(f, TN_ARGS(x, y)), 1), .axis = TN_AXES(1));
    assert_int_equal(tn_eval(expected), TN_OK);
    for (int k = 0; k < 3; k++) {
        tn_set_compile(k == 0 ? TN_COMPILE_NEVER : TN_COMPILE_ALWAYS);
        tn_set_fusion(k != 1);
        tn_set_memory_planning(k != 2);
        assert_same(tn_sum(tn_add(tn_call(f, TN_ARGS(x, y)), 1), .axis = TN_AXES(1)), expected);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    tn_set_fusion(true);
    tn_set_memory_planning(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(same_as_operations), TEST(dtypes), TEST(truth_values), TEST(positions), TEST(raw_arguments),
        TEST(present_elements), TEST(many_inputs),
        TEST(out), TEST(fused), TEST(identity), TEST(refused), TEST(wrong_text), TEST(without_compiler), TEST(modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
