/* SPDX-License-Identifier: MIT */
/* The emitter's loops at the edges of their blocks and tiles: compiled kernels and the reference evaluator, bit for
 * bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tanso.h>

#include "support/random.h"

enum { MOST_RESULTS = 6 };

static uint64_t seed;

/* Results of a function of a shape, which draws its operands from a seed. */
typedef int (*results_fn)(const int64_t dim[3], tn_array *result[MOST_RESULTS]);

static void *evaluated(tn_array *x, size_t *bytes)
{
    *bytes = (size_t)tn_size(x) * tn_dtype_size(tn_dtype_of(x));
    void *copy = malloc(*bytes + 1);
    assert_non_null(copy);
    if (tn_to_host(x, copy, *bytes) != TN_OK)
        fail_msg("%s", tn_error());
    return copy;
}

static void check(results_fn results, const int64_t dim[3])
{
    void *expected[MOST_RESULTS];
    size_t bytes;
    for (int compiled = 0; compiled < 2; compiled++) {
        tn_set_compile(compiled ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
        tn_seed(seed);
        TN_SCOPE {
            tn_array *result[MOST_RESULTS];
            int count = results(dim, result);
            for (int i = 0; i < count; i++) {
                void *got = evaluated(result[i], &bytes);
                if (!compiled) {
                    expected[i] = got;
                    continue;
                }
                if (memcmp(expected[i], got, bytes) != 0)
                    fail_msg("result %d of %lld x %lld x %lld differs", i, (long long)dim[0], (long long)dim[1],
                             (long long)dim[2]);
                free(got);
                free(expected[i]);
            }
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

static tn_array *drawn(tn_shape shape, tn_dtype dtype)
{
    tn_array *x = tn_random_normal(shape, .dtype = dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

static int transposed(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(TN_SHAPE(dim[0], dim[1]), TN_FLOAT32), *w = drawn(TN_SHAPE(dim[1], dim[0]), TN_FLOAT32);
    tn_array *z = drawn(TN_SHAPE(dim[2], dim[0], dim[1]), TN_FLOAT64), *row = drawn(TN_SHAPE(dim[0]), TN_FLOAT32);
    tn_array *t = tn_transpose(x, (tn_axes){0});
    result[0] = tn_negative(t);
    result[1] = tn_exp(tn_add(tn_multiply(t, w), row));
    result[2] = tn_negative(tn_transpose(z, TN_AXES(2, 0, 1)));
    result[3] = tn_square(tn_transpose(z, TN_AXES(0, 2, 1)));
    result[4] = tn_add(tn_transpose(z, TN_AXES(2, 1, 0)), 1.0);
    result[5] = tn_add(tn_flip(t, TN_AXES(0, 1)), w);
    return 6;
}

/* Elements of all sizes, whose tiles are turned in registers. */
static int turned(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    static const tn_dtype dtypes[] = {TN_INT8, TN_INT16, TN_FLOAT16, TN_INT64, TN_COMPLEX64, TN_COMPLEX128};
    for (int i = 0; i < MOST_RESULTS; i++) {
        tn_array *x = drawn(TN_SHAPE(dim[0] + 1, dim[1] + 2), TN_FLOAT64);
        x = tn_cast(tn_multiply(x, dtypes[i] == TN_INT8 ? 20 : 100), dtypes[i]);
        assert_int_equal(tn_eval(x), TN_OK);
        tn_array *part = tn_slice_axis(tn_slice_axis(x, 0, 1, TN_NONE, 1), 1, 2, TN_NONE, dim[2] ? 2 : 1);
        tn_array *t = tn_transpose(part, TN_AXES(1, 0));
        result[i] = tn_add(tn_negative(t), tn_sum(t, .axis = TN_AXES(0), .dtype = dtypes[i]));
    }
    return MOST_RESULTS;
}

static void test_turned_tiles(void **state)
{
    (void)state;
    static const int64_t dims[][3] = {{1, 1, 0}, {15, 33, 0}, {64, 64, 0}, {67, 301, 0}, {130, 17, 0}, {33, 70, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        check(turned, dims[i]);
}

static int over_rows(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(TN_SHAPE(dim[0], dim[1]), dim[2] ? TN_FLOAT64 : TN_FLOAT32);
    result[0] = tn_sum(x, .axis = TN_AXES(0));
    result[1] = tn_var(x, .axis = TN_AXES(0));
    result[2] = tn_argmax(x, .axis = TN_AXES(0));
    result[3] = tn_softmax(x, 0);
    result[4] = tn_argmax(x, .axis = TN_AXES(1));
    result[5] = tn_argmin(tn_where(tn_greater(x, 2.5), NAN, x), .axis = TN_AXES(1));
    return 6;
}

static void test_transposed_operands(void **state)
{
    (void)state;
    static const int64_t dims[][3] = {{1, 1, 1},   {2, 3, 1}, {16, 64, 3},   {17, 65, 2},   {33, 129, 5}, {1, 200, 2},
                                      {200, 1, 2}, {0, 5, 3}, {130, 300, 1}, {3, 17000, 2}, {5, 0, 2}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        check(transposed, dims[i]);
}

static void test_wide_columns(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{5, 10},   {40, 255}, {40, 257},   {3, 2047},
                                        {3, 2048}, {1, 5000}, {700, 2050}, {1030, 3100}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int wide = 0; wide < 2; wide++)
            check(over_rows, (int64_t[]){shapes[i][0], shapes[i][1], wide});
}

/* Numbers of all magnitudes that 16 bits have, some too small or too large, some infinite. */
static tn_array *spread(tn_shape shape, tn_dtype dtype)
{
    tn_array *x = drawn(shape, TN_FLOAT32), *power = drawn(shape, TN_FLOAT32);
    x = tn_multiply(x, tn_exp2(tn_rint(tn_multiply(power, 10.0))));
    x = tn_cast(tn_where(tn_greater(power, 2.5), INFINITY, x), dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

static int halves(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_dtype half = dim[2] ? TN_BFLOAT16 : TN_FLOAT16;
    tn_array *x = spread(TN_SHAPE(dim[0], dim[1]), half), *y = spread(TN_SHAPE(dim[0], dim[1]), half);
    tn_array *wide = drawn(TN_SHAPE(dim[0], dim[1]), TN_FLOAT32), *row = spread(TN_SHAPE(dim[1]), half);
    tn_array *bounded = tn_cast(drawn(TN_SHAPE(dim[0], dim[1]), TN_FLOAT32), half);
    result[0] = tn_add(tn_multiply(x, y), row);
    result[1] = tn_cast(tn_multiply(tn_cast(tn_slice_axis(x, 1, 1, TN_NONE, 1), TN_FLOAT32), 0.3), half);
    result[2] = tn_add(tn_cast(tn_multiply(wide, 1e-5), half), tn_slice_axis(bounded, 1, TN_NONE, TN_NONE, -1));
    result[3] =
        tn_concatenate(2, (const tn_array *[]){tn_sum(bounded, .axis = TN_AXES(0)), tn_max(x, .axis = TN_AXES(0))}, 0);
    result[4] = dim[1] ? tn_softmax(bounded, -1) : bounded;
    result[5] = tn_negative(tn_transpose(tn_multiply(x, y), (tn_axes){0}));
    return 6;
}

static void test_strips_of_halves(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 63}, {3, 513}, {70, 130}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 2; kind++)
            check(halves, (int64_t[]){shapes[i][0], shapes[i][1], kind});
}

static int random_numbers(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_shape shape = TN_SHAPE(dim[0], dim[1]);
    tn_dtype dtype = (tn_dtype)dim[2];
    result[0] = tn_random_uniform(shape, .dtype = dtype);
    result[1] = tn_add(tn_slice_axis(tn_random_normal(shape, .dtype = dtype), 1, 3, TN_NONE, 1), 1.0);
    result[2] = tn_sum(tn_random_normal(shape, .dtype = dtype), .axis = TN_AXES(1));
    result[3] = tn_sum(tn_random_uniform(shape, .dtype = dtype), .axis = TN_AXES(0));
    result[4] = tn_random_integers(-5, 1000, shape);
    result[5] = tn_negative(tn_transpose(tn_random_uniform(shape, .dtype = dtype), (tn_axes){0}));
    return 6;
}

static void test_strips_of_random_numbers(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{3, 7}, {67, 515}};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int d = 0; d < 3; d++)
            check(random_numbers, (int64_t[]){shapes[i][0], shapes[i][1], dtypes[d]});
}

/* Rows, or columns, of few elements; and integers, whose lanes are more. */
static int few_elements(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_array *x = drawn(TN_SHAPE(dim[0], dim[1]), TN_FLOAT32);
    x = tn_where(tn_greater(x, 2.0), -0.0, tn_cast(x, (tn_dtype)dim[2]));
    tn_array *bits = tn_random_integers(-100, 100, TN_SHAPE(dim[0], dim[1]), .dtype = TN_INT8);
    for (int axis = 0; axis < 2; axis++) {
        tn_array **to = result + 3 * axis, *several[5];
        const tn_axes over = TN_AXES(axis);
        several[0] = tn_sum(tn_abs(x), .axis = over), several[1] = tn_max(x, .axis = over);
        several[2] = tn_var(x, .axis = over), several[3] = tn_sum(tn_negative(x), .axis = over, .keepdims = true);
        several[3] = tn_reshape(several[3], TN_SHAPE(dim[1 - axis]));
        several[4] = tn_prod(tn_multiply(tn_transpose(x, TN_AXES(1, 0)), 2.0), .axis = TN_AXES(1 - axis));
        to[0] = tn_concatenate(5, (const tn_array *const *)several, 0);
        to[0] =
            tn_add(tn_softmax(x, axis), tn_multiply(tn_expand_dims(tn_argmax(x, .axis = over), axis), tn_sum(to[0])));
        to[1] = tn_sum(bits, .axis = over);
        to[2] = tn_add(tn_cast(tn_min(bits, .axis = over), TN_INT32), tn_all(tn_greater(bits, -99), .axis = over));
    }
    return 6;
}

static void test_few_elements(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{65, 3}, {700, 8}, {1030, 10}, {7, 600}, {2, 64}, {16, 1027}};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(few_elements, (int64_t[]){shapes[i][0], shapes[i][1], dtypes[i % 3]});
}

static tn_array *of_dtype(tn_shape shape, tn_dtype dtype)
{
    if (!tn_dtype_is_complex(dtype))
        return drawn(shape, dtype);
    tn_array *x = tn_cast(tn_complex(drawn(shape, TN_FLOAT64), drawn(shape, TN_FLOAT64)), dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

/* Columns of so many elements that a sum of them goes on in double precision now and then, which are written out up to
 * 32; of one loop that is reduced, and of two. */
static int several_stretches(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    tn_array *x = of_dtype(TN_SHAPE(dim[0], dim[1]), (tn_dtype)dim[2]), *y = tn_multiply(x, 3.0);
    tn_array *window = of_dtype(TN_SHAPE(dim[0] / 4, 5, dim[1]), (tn_dtype)dim[2]);
    window = tn_slice_axis(window, 1, 0, 4, 1);
    result[0] = tn_sum(tn_multiply(x, x), .axis = TN_AXES(0));
    result[1] = tn_mean(window, .axis = TN_AXES(0, 1));
    result[2] = tn_prod(y, .axis = TN_AXES(0));
    if (tn_dtype_is_complex(tn_dtype_of(x)))
        return 3;
    result[3] = tn_add(tn_max(x, .axis = TN_AXES(0)), tn_sum(tn_where(tn_greater(x, 0), y, 0), .axis = TN_AXES(0)));
    result[4] = tn_argmin(y, .axis = TN_AXES(0));
    return 5;
}

static void test_columns_of_several_stretches(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{19, 65}, {32, 70}, {33, 64}};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_COMPLEX64, TN_FLOAT32};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(several_stretches, (int64_t[]){shapes[i][0], shapes[i][1], dtypes[i]});
}

/* Rows that are looked up in a table, by positions from either end: their sums, least elements and where these are, of
 * bags of them, or of some of a bag; and rows with something added to them. */
static int looked_up(const int64_t dim[3], tn_array *result[MOST_RESULTS])
{
    const int64_t bags = dim[0], size = dim[1], rows = 37;
    tn_array *table = drawn(TN_SHAPE(rows, dim[2]), TN_FLOAT32), *half = tn_cast(table, TN_FLOAT16);
    tn_array *x = tn_random_integers(-rows, rows, TN_SHAPE(bags, size)), *flat = tn_reshape(x, TN_SHAPE(bags * size));
    const tn_array *const computed[] = {x, half};
    assert_int_equal(tn_eval_all(2, computed), TN_OK);
    const tn_shape split = TN_SHAPE(bags, size, dim[2]);
    tn_array *z = tn_reshape(tn_take(table, flat, 0), split), *pair = tn_take(table, x, 0);
    result[0] = tn_mean(z, .axis = TN_AXES(1));
    result[1] = tn_min(tn_where(tn_expand_dims(tn_greater(x, 0), 2), pair, INFINITY), .axis = TN_AXES(1));
    result[2] = tn_argmax(tn_take(table, tn_add(x, 0), 0), .axis = TN_AXES(1));
    result[3] = tn_add(tn_take(half, x, 0), tn_cast(drawn(TN_SHAPE(size, dim[2]), TN_FLOAT32), TN_FLOAT16));
    result[4] = tn_sum(tn_take(half, tn_negative(tn_abs(tn_add(x, 0))), 0), .axis = TN_AXES(0, 1));
    result[5] = tn_softmax(tn_take(tn_transpose(table, TN_AXES(1, 0)), flat, 1), 0);
    return 6;
}

static void test_looked_up_rows(void **state)
{
    (void)state;
    static const int64_t dims[][3] = {{5, 19, 70}, {3, 1, 1}, {1, 40, 5}, {0, 3, 8}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        check(looked_up, dims[i]);
}

int main(void)
{
    test_random random = test_random_new();
    seed = test_random_bits(&random);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transposed_operands),      cmocka_unit_test(test_wide_columns),
        cmocka_unit_test(test_strips_of_halves),         cmocka_unit_test(test_few_elements),
        cmocka_unit_test(test_strips_of_random_numbers), cmocka_unit_test(test_turned_tiles),
        cmocka_unit_test(test_columns_of_several_stretches), cmocka_unit_test(test_looked_up_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
