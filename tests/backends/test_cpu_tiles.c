/* SPDX-License-Identifier: MIT */
/* Kernels with operands that lie across, done in tiles, over short rows and over several axes: the same bits as the
 * reference evaluator's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/random.h"

static test_random chance; /* its seed is printed */

/* Two operands across, one of them from back to front, beside one that lies as the result does. */
static tn_array *mixture(const tn_array *x, const tn_array *y, const tn_array *z)
{
    tn_array *across = tn_transpose(x, TN_AXES(2, 1, 0)),
             *back = tn_transpose(tn_flip(y, TN_AXES(0)), TN_AXES(2, 1, 0));
    return tn_add(tn_multiply(across, back), z);
}

static void bits_of(tn_compile_mode mode, const tn_array *x, const tn_array *y, const tn_array *z, void *bytes,
                    size_t size)
{
    tn_set_compile(mode);
    TN_SCOPE {
        assert_int_equal(tn_to_host(mixture(x, y, z), bytes, size), TN_OK);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void test_tiles(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT8, TN_COMPLEX128};
    for (int round = 0; round < 40; round++) {
        tn_dtype dtype = dtypes[round % 5];
        int64_t a = test_random_int(&chance, 1, 150), b = test_random_int(&chance, 1, 3),
                c = test_random_int(&chance, 1, 300);
        size_t size = (size_t)(a * b * c) * tn_dtype_size(dtype);
        char *compiled = malloc(size), *plain = malloc(size);
        TN_SCOPE {
            tn_array *x = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(c, b, a)), 9), dtype);
            tn_array *y = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(c, b, a)), 9), dtype);
            tn_array *z = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(a, b, c)), 9), dtype);
            assert_int_equal(tn_eval(x) | tn_eval(y) | tn_eval(z), TN_OK);
            bits_of(TN_COMPILE_ALWAYS, x, y, z, compiled, size);
            bits_of(TN_COMPILE_NEVER, x, y, z, plain, size);
        }
        assert_memory_equal(compiled, plain, size);
        free(compiled);
        free(plain);
    }
}

/* ---- rows and columns ---- */

typedef tn_array *(*expression)(const tn_array *x); /* of three axes */

static tn_array *across(const tn_array *x) { return tn_transpose(x, TN_AXES(0, 2, 1)); }
static tn_array *column_sums(const tn_array *x) { return tn_sum(tn_multiply(across(x), 3), .axis = TN_AXES(1)); }
static tn_array *column_variances(const tn_array *x) { return tn_var(across(x), .axis = TN_AXES(1)); }
static tn_array *column_places(const tn_array *x) { return tn_argmax(across(x), .axis = TN_AXES(1)); }
static tn_array *column_softmax(const tn_array *x) { return tn_softmax(across(x), 1); }
static tn_array *both_ends(const tn_array *x) { return tn_var(x, .axis = TN_AXES(0, 2)); }
static tn_array *normalized(const tn_array *x)
{
    return tn_subtract(x, tn_mean(x, .axis = TN_AXES(0, 2), .keepdims = true));
}
static tn_array *row_largest(const tn_array *x) { return tn_max(x, .axis = TN_AXES(2)); }
static tn_array *row_softmax(const tn_array *x) { return tn_softmax(x, 2); }
static tn_array *less_a_row(const tn_array *x)
{
    tn_array *row = tn_slice_axis(tn_slice_axis(x, 0, 0, 1, 1), 1, 0, 1, 1),
             *number = tn_slice_axis(x, 2, -1, TN_NONE, 1);
    return tn_add(tn_subtract(tn_flip(x, TN_AXES(2)), row), tn_multiply(number, x));
}
static tn_array *pairs(const tn_array *x)
{
    tn_array *a = tn_slice_axis(x, 1, 0, 1, 1), *b = tn_swapaxes(tn_slice_axis(x, 1, -1, TN_NONE, 1), 0, 1);
    return tn_subtract(a, b); /* of all with all */
}
static tn_array *chosen(const tn_array *x)
{
    return tn_multiply(tn_take(x, tn_from_int64s((int64_t[]){0, -1, 0}, 3), 0), 2);
}

static void test_rows_and_columns(void **state)
{
    (void)state;
    static const expression expressions[] = {column_sums, column_variances, column_places, column_softmax, both_ends,
                                             normalized,  row_largest,      row_softmax,   less_a_row,     pairs,
                                             chosen};
    static const int64_t lengths[] = {1, 3, 8, 16, 31, 600};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16};
    for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            TN_SCOPE {
                int64_t n = lengths[l];
                tn_dtype dtype = dtypes[(e + l) % 3];
                tn_shape shape =
                    TN_SHAPE(test_random_int(&chance, 1, 5), test_random_int(&chance, 1, n > 100 ? 40 : 700), n);
                tn_array *x = tn_cast(tn_random_normal(shape), dtype), *y[2];
                assert_int_equal(tn_eval(x), TN_OK);
                for (int kind = 0; kind < 2; kind++) {
                    tn_set_compile(kind ? TN_COMPILE_NEVER : TN_COMPILE_ALWAYS);
                    y[kind] = expressions[e](x);
                    assert_int_equal(tn_eval(y[kind]), TN_OK);
                }
                tn_set_compile(TN_COMPILE_AUTO);
                if (!tn_array_equal(y[0], y[1], true))
                    fail_msg("expression %zu of %lld x %lld x %lld", e, (long long)shape.dim[0],
                             (long long)shape.dim[1], (long long)n);
            }
}

int main(void)
{
    chance = test_random_new();
    tn_seed(test_random_bits(&chance));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles), cmocka_unit_test(test_rows_and_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
