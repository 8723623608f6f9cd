/* SPDX-License-Identifier: MIT */
/* Values of creation, indexing, joins, products and reductions against NumPy's (gen_values.py), and
 * of random arrays. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/dtype.h"
#include "support/random.h"

static FILE *expected;
static int wrong;

static void element_at(const unsigned char *bytes, size_t i, tn_dtype dtype, tn__scalar *element)
{
    element->bits = 0;
    memcpy(element, bytes + i * tn_dtype_size(dtype), tn_dtype_size(dtype));
}

static bool is_near(double a, double b, double rtol)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= rtol * (1 + fabs(b));
}

/* Compares x with the next case of the file, which must have this name; rtol 0: the same values. */
static void check(const char *name, const tn_array *x, double rtol)
{
    char line[256], got_line[256], case_name[64];
    assert_non_null(fgets(line, sizeof line, expected));
    line[strcspn(line, "\n")] = 0;
    assert_int_equal(sscanf(line, "%63s", case_name), 1);
    assert_string_equal(case_name, name);
    if (tn_is_error(x))
        fail_msg("%s: %s", name, tn_message_of(x));

    tn_shape shape = tn_shape_of(x);
    tn_dtype dtype = tn_dtype_of(x);
    int length = snprintf(got_line, sizeof got_line, "%s %s", name, tn_dtype_name(dtype));
    for (int i = 0; i < shape.ndim; i++)
        length += snprintf(got_line + length, sizeof got_line - (size_t)length, " %lld",
                           (long long)shape.dim[i]);
    assert_string_equal(got_line, line);

    size_t size = (size_t)tn_size(x), bytes = size * tn_dtype_size(dtype);
    unsigned char *want = malloc(bytes + 1), *got = malloc(bytes + 1);
    assert_true(want && got);
    assert_int_equal(fread(want, 1, bytes, expected), bytes);
    if (tn_to_host(x, got, bytes) != TN_OK)
        fail_msg("%s: %s", name, tn_error());
    for (size_t i = 0; i < size; i++) {
        tn__scalar a, b;
        element_at(got, i, dtype, &a);
        element_at(want, i, dtype, &b);
        double v = tn__scalar_to_double(a, dtype), w = tn__scalar_to_double(b, dtype);
        if (!is_near(v, w, rtol)) {
            print_error("%s: element %zu is %.9g, NumPy's %.9g\n", name, i, v, w);
            wrong++;
            break;
        }
    }
    free(want);
    free(got);
}
#define EXACT(name, x) \
    TN_SCOPE { \
        check(#name, x, 0); \
    }
#define NEAR(name, x) \
    TN_SCOPE { \
        check(#name, x, 2e-6); \
    }

static void creation(tn_array *x)
{
    EXACT(x, x)
    EXACT(arange_f32, tn_arange(0.1, 7, 0.3))
    EXACT(arange_f64, tn_arange(-1.7, 7, 0.3, .dtype = TN_FLOAT64))
    EXACT(arange_f16, tn_arange(-1.7, 7, 0.3, .dtype = TN_FLOAT16))
    EXACT(arange_i8, tn_arange(-5, 7, 2, .dtype = TN_INT8))
    EXACT(arange_cut, tn_arange(0.5, 6, 1, .dtype = TN_INT64))
    EXACT(arange_down, tn_arange(9, -3, -2))
    EXACT(arange_bool, tn_arange(0, 2, 1, .dtype = TN_BOOL))
    EXACT(linspace, tn_linspace(0.3, 2.9, 17))
    EXACT(linspace_f64, tn_linspace(-0.3, 2.9, 50, .dtype = TN_FLOAT64))
    EXACT(linspace_i32, tn_linspace(-3, 5, 7, .dtype = TN_INT32))
    EXACT(linspace_one, tn_linspace(2, 5, 1))
    EXACT(linspace_tiny, tn_linspace(0, 5e-324, 4, .dtype = TN_FLOAT64))
    EXACT(eye, tn_eye(3, 5))
}

static void parts(tn_array *x, tn_array *i)
{
    const tn_slice_range cut[] = {{TN_NONE, TN_NONE, -1}, {1, TN_NONE, 2}, {-1, -5, -2}};
    const tn_slice_range window[] = {{0, 3, 2}, {TN_NONE, TN_NONE, -2}};
    const tn_array *three[] = {x, tn_add(x, 1), tn_ones(TN_SHAPE(3, 2, 5), .dtype = TN_FLOAT64)};
    const tn_array *two[] = {x, tn_negative(x)};
    EXACT(slice, tn_slice(x, 3, cut))
    EXACT(index, tn_index(x, -2))
    EXACT(flip, tn_flip(x, TN_AXES(0, 2)))
    EXACT(slice_update, tn_slice_update(x, 2, window, tn_arange(0, 5, 1)))
    EXACT(concatenate, tn_concatenate(3, three, 1))
    EXACT(stack, tn_stack(2, two, -1))
    EXACT(transpose, tn_transpose(tn_transpose(x, TN_AXES(1, 2, 0)), TN_AXES(2, 1, 0)))
    EXACT(take, tn_take(x, i, 1))
    EXACT(take_negative, tn_take(x, tn_negative(i), 1))
    EXACT(take_along, tn_take_along_axis(x, tn_reshape(i, TN_SHAPE(3, 2, 1)), 1))
    EXACT(scatter_add, tn_scatter_add(x, i, tn_take(x, i, 1), 1))
    EXACT(one_hot, tn_one_hot(i, 5, TN_DTYPE_DEFAULT))
}

static void products(tn_array *x)
{
    tn_array *xt = tn_swapaxes(x, 1, 2), *row = tn_index(tn_index(x, 0), 1),
             *small = tn_cast(tn_cast(x, TN_INT8), TN_INT32);
    NEAR(matmul, tn_matmul(x, xt))
    NEAR(matmul_shared, tn_matmul(x, tn_index(xt, 0)))
    NEAR(matmul_vector, tn_matmul(x, row))
    NEAR(vector_matmul, tn_matmul(row, xt))
    NEAR(matmul_broadcast, tn_matmul(tn_expand_dims(x, 1), xt))
    EXACT(matmul_int, tn_matmul(small, tn_swapaxes(small, 1, 2)))
    EXACT(matmul_bool, tn_matmul(tn_greater(x, 3), tn_greater(xt, 9)))
    EXACT(matmul_empty, tn_matmul(tn_zeros(TN_SHAPE(3, 2, 0)), tn_zeros(TN_SHAPE(0, 4))))
}

static void reductions(tn_array *x, tn_array *i)
{
    tn_array *small = tn_cast(x, TN_INT8);
    NEAR(sum, tn_sum(x, .axis = TN_AXES(0, 2)))
    EXACT(sum_bool, tn_sum(tn_greater(x, 1)))
    EXACT(sum_int8, tn_sum(small, .axis = TN_AXES(1)))
    EXACT(prod, tn_prod(small, .axis = TN_AXES(0)))
    NEAR(mean, tn_mean(x, .axis = TN_AXES(1)))
    EXACT(mean_f16, tn_mean(tn_cast(x, TN_FLOAT16), .axis = TN_AXES(0)))
    EXACT(mean_same, tn_mean(tn_full(TN_SHAPE(49), 3)))
    NEAR(var, tn_var(x, .axis = TN_AXES(-1), .ddof = 1))
    NEAR(std, tn_std(small))
    EXACT(max, tn_max(x, .axis = TN_AXES(0)))
    EXACT(max_bool, tn_max(tn_greater(x, 14), .axis = TN_AXES(1)))
    EXACT(argmin, tn_argmin(tn_subtract(i, 1), .axis = TN_AXES(1)))
    EXACT(argmax, tn_argmax(i))
    EXACT(any, tn_any(tn_greater(x, 14), .axis = TN_AXES(1)))
    EXACT(all, tn_all(x, .axis = TN_AXES(1)))
    NEAR(logsumexp, tn_logsumexp(x, .axis = TN_AXES(1)))
    EXACT(logsumexp_inf, tn_logsumexp(tn_full(TN_SHAPE(3), -INFINITY)))
    NEAR(softmax, tn_softmax(x, 1))
    NEAR(log_softmax, tn_log_softmax(x, -1))
}

static void elementwise(tn_array *x)
{
    EXACT(clip, tn_clip(x, -2, 3.5))
    EXACT(where, tn_where(tn_greater(x, 0), x, 0))
    /* numbers beyond the dtype still compare */
    EXACT(less_beyond, tn_less(tn_arange(0, 5, 1, .dtype = TN_UINT8), 300))
    EXACT(equal_beyond, tn_equal(tn_arange(0, 5, 1, .dtype = TN_UINT8), -1))
    EXACT(less_negative, tn_less(tn_arange(0, 5, 1, .dtype = TN_UINT64), -1))
    EXACT(floor_divide_bool, tn_floor_divide(tn_arange(0, 2, 1, .dtype = TN_BOOL),
                                             tn_ones(TN_SHAPE(2), .dtype = TN_BOOL)))
    TN_SCOPE {
        tn_array *y = tn_add(x, 0.0);
        assert_int_equal(tn_divide_assign(y, 3), TN_OK);
        assert_int_equal(tn_add_assign(y, tn_index(x, 1)), TN_OK);
        check("assign", y, 0);
    }
}

static void values_are_numpys(void **state)
{
    (void)state;
    const char *folder = getenv("TANSO_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/values.bin", folder ? folder : ".");
    expected = fopen(path, "rb");
    if (!expected)
        skip();
    wrong = 0;
    TN_SCOPE {
        tn_array *x = tn_cast(tn_reshape(tn_arange(0, 60, 1), TN_SHAPE(3, 4, 5)), TN_FLOAT32);
        x = tn_subtract(tn_multiply(x, 0.37), 7.1);
        tn_array *i = tn_remainder(tn_multiply(tn_arange(0, 6, 1), 7), 4);
        i = tn_reshape(tn_cast(i, TN_INT32), TN_SHAPE(2, 3));
        creation(x);
        parts(x, i);
        products(x);
        reductions(x, i);
        elementwise(x);
    }
    assert_int_equal(fgetc(expected), EOF);
    fclose(expected);
    assert_int_equal(wrong, 0);
    assert_true(tn_ok());
}

static double low_of(tn_array *x)
{
    return tn_item(tn_min(x));
}
static double high_of(tn_array *x)
{
    return tn_item(tn_max(x));
}
/* The mean, which lies within 6 deviations of its expected value but for one run in 5e8. */
static bool mean_is(tn_array *x, double mean, double deviation)
{
    double got = tn_item(tn_mean(tn_cast(x, TN_FLOAT64)));
    return fabs(got - mean) < 6 * deviation / sqrt((double)tn_size(x));
}

static void random_numbers_keep_their_range_and_mean(void **state)
{
    (void)state;
    tn_seed(test_random_new().state);
    static const tn_dtype floats[] = {TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
    for (size_t k = 0; k < sizeof floats / sizeof *floats; k++)
        TN_SCOPE {
            tn_array *u = tn_random_uniform(TN_SHAPE(20001), .dtype = floats[k]);
            assert_int_equal(tn_dtype_of(u), floats[k]);
            assert_true(low_of(u) >= 0 && high_of(u) < 1 && high_of(u) > 0.99 && low_of(u) < 0.01);
            assert_true(mean_is(
                tn_random_uniform(TN_SHAPE(20001), .dtype = floats[k], .low = -3, .high = -1), -2,
                0.6));
            assert_true(high_of(tn_random_uniform(TN_SHAPE(20001), .dtype = floats[k], .low = -3,
                                                  .high = -1)) < -1);
            tn_array *z =
                tn_random_normal(TN_SHAPE(20001), .dtype = floats[k], .loc = 5, .scale = 2);
            assert_true(mean_is(z, 5, 2.05));
            assert_true(fabs(tn_item(tn_std(tn_cast(z, TN_FLOAT64))) - 2) < 0.1);
        }
    TN_SCOPE {
        tn_array *i = tn_random_integers(-3, 4, TN_SHAPE(7001));
        assert_true(low_of(i) == -3 && high_of(i) == 3 && mean_is(i, 0, 2));
        tn_array *b = tn_random_integers(-128, 128, TN_SHAPE(70001), .dtype = TN_INT8);
        assert_true(low_of(b) == -128 && high_of(b) == 127 && mean_is(b, -0.5, 74));
        tn_array *wide = tn_random_integers(INT64_MIN, INT64_MAX, TN_SHAPE(7001));
        assert_true(low_of(wide) < -9e18 && high_of(wide) > 9e18);
        assert_true(mean_is(tn_random_bernoulli(0.3, TN_SHAPE(20001)), 0.3, 0.4583));
        assert_true(tn_item(tn_all(tn_random_bernoulli(1, TN_SHAPE(1001)))) == 1);
        tn_array *order = tn_random_permutation(501), *seen = tn_zeros(TN_SHAPE(501));
        assert_true(tn_item(tn_all(tn_equal(tn_scatter_add(seen, order, 1.0, 0), 1))) == 1);
        assert_false(tn_item(tn_all(tn_equal(order, tn_arange(0, 501, 1)))) == 1);
    }
    assert_true(tn_ok());
}

static void a_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_seed(11);
        tn_array *first = tn_random_normal(TN_SHAPE(37)), *second = tn_random_normal(TN_SHAPE(37));
        assert_true(tn_item(tn_any(tn_equal(first, second))) == 0);
        tn_seed(11);
        assert_true(tn_item(tn_all(tn_equal(first, tn_random_normal(TN_SHAPE(37))))) == 1);
        assert_true(tn_item(tn_all(tn_equal(second, tn_random_normal(TN_SHAPE(37))))) == 1);
        assert_true(tn_ok());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_numpys),
        cmocka_unit_test(random_numbers_keep_their_range_and_mean),
        cmocka_unit_test(a_seed_gives_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
