/* SPDX-License-Identifier: MIT */
/* Reductions of few long rows or columns, whose blocks all threads share: the same bits as the reference evaluator's,
 * in two kernels. */
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

enum { MOST = 1 << 15 }; /* bytes of a result */

static test_random chance; /* its seed is printed */

static tn_array *total(const tn_array *x, tn_axes axis) { return tn_sum(tn_multiply(x, x), .axis = axis); }
static tn_array *spread(const tn_array *x, tn_axes axis)
{
    return tn_subtract(tn_max(x, .axis = axis, .keepdims = true), tn_min(x, .axis = axis, .keepdims = true));
}
static tn_array *average(const tn_array *x, tn_axes axis) { return tn_sqrt(tn_abs(tn_mean(x, .axis = axis))); }
static tn_array *both(const tn_array *x, tn_axes axis)
{
    return tn_add(tn_cast(tn_any(tn_greater(x, 3), .axis = axis), TN_FLOAT32), tn_sum(x, .axis = axis));
}
static tn_array *variance(const tn_array *x, tn_axes axis) { return tn_var(x, .axis = axis); }
static tn_array *backwards(const tn_array *x, tn_axes axis) { return tn_sum(tn_flip(x, (tn_axes){0}), .axis = axis); }
static tn_array *place(const tn_array *x, tn_axes axis)
{
    int last = axis.count ? axis.axis[axis.count - 1] : 0;
    return axis.count == 1 ? tn_add(tn_argmax(x, .axis = TN_AXES(last)), tn_argmin(x, .axis = TN_AXES(last)))
                           : tn_argmax(x);
}

typedef tn_array *reduction(const tn_array *x, tn_axes axis);
static reduction *const reductions[] = {total, spread, average, variance, both, backwards, place};

static size_t bits_of(tn_compile_mode mode, reduction *f, const tn_array *x, tn_axes axis, char bytes[MOST])
{
    size_t size = 0;
    tn_set_compile(mode);
    TN_SCOPE {
        tn_array *y = f(x, axis);
        size = (size_t)tn_size(y) * tn_dtype_size(tn_dtype_of(y));
        assert_in_range(size, 1, MOST);
        assert_int_equal(tn_to_host(y, bytes, size), TN_OK);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    return size;
}

static void check(const tn_array *x, tn_axes axis)
{
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        char compiled[MOST], plain[MOST];
        size_t size = bits_of(TN_COMPILE_ALWAYS, reductions[i], x, axis, compiled);
        assert_int_equal(bits_of(TN_COMPILE_NEVER, reductions[i], x, axis, plain), size);
        assert_memory_equal(compiled, plain, size);
    }
}

static void test_rows(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT8};
    for (int round = 0; round < 8; round++)
        TN_SCOPE {
            int64_t few = test_random_int(&chance, 1, 7), n = test_random_int(&chance, 1 << 18, 300000);
            tn_dtype dtype = dtypes[round % 4];
            tn_array *x = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(few, n)), 2), dtype);
            assert_int_equal(tn_eval(x), TN_OK);
            check(x, TN_AXES(1));
            check(x, (tn_axes){0});
            check(tn_transpose(tn_reshape(tn_index(x, 0), TN_SHAPE(1, n, 1)), TN_AXES(2, 0, 1)), TN_AXES(2));
        }
}

static void test_columns(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT8};
    for (int round = 0; round < 8; round++)
        TN_SCOPE {
            int64_t few = test_random_int(&chance, 1, 3), across = test_random_int(&chance, 1, round % 2 ? 20 : 1300);
            int64_t down = test_random_int(&chance, 2048, 3000) + (1 << 18) / across;
            tn_dtype dtype = dtypes[round / 2];
            tn_array *x = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(few, down, across)), 2), dtype);
            assert_int_equal(tn_eval(x), TN_OK);
            check(x, TN_AXES(1));
            check(tn_index(x, 0), TN_AXES(0));
        }
}

/* NaN wins, the first of them: also where blocks' results meet. */
static void test_nan(void **state)
{
    (void)state;
    enum { N = 400000 };
    float *data = calloc(N, sizeof *data);
    int64_t first = test_random_int(&chance, 1, N / 2), second = test_random_int(&chance, N / 2 + 1, N - 1);
    data[first] = data[second] = NAN;
    TN_SCOPE {
        tn_array *x = tn_from_host(data, TN_SHAPE(N), TN_FLOAT32);
        tn_set_compile(TN_COMPILE_ALWAYS);
        assert_int_equal((int64_t)tn_item(tn_argmax(x)), first);
        assert_int_equal((int64_t)tn_item(tn_argmin(x)), first);
        assert_true(isnan(tn_item(tn_max(x))) && isnan(tn_item(tn_sum(x))));
        assert_int_equal((int64_t)tn_item(tn_argmax(tn_full(TN_SHAPE(N), -INFINITY))), 0);
        tn_set_compile(TN_COMPILE_AUTO);
    }
    free(data);
}

static void test_kernels(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(1 << 20));
        assert_int_equal(tn_eval(x), TN_OK);
        tn_set_compile(TN_COMPILE_ALWAYS);
        char *plan = tn_plan_describe(tn_sum(tn_exp(x)));
        assert_non_null(plan);
        assert_non_null(strstr(plan, "2 steps"));
            tn_string_free(plan);
        tn_set_compile(TN_COMPILE_AUTO);
    }
}

int main(void)
{
    chance = test_random_new();
    tn_seed(test_random_bits(&chance));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_nan), cmocka_unit_test(test_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
