/* SPDX-License-Identifier: MIT */
/* Partitions about a place, and the largest k: against what sorting gives, for rows of every size, many equal elements,
 * NaN and zeros of both signs, any place and axis. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

static uint64_t seed;
static const tn_dtype dtypes[] = {TN_BOOL,  TN_INT8,   TN_UINT8,   TN_INT16,    TN_UINT16,  TN_INT32,   TN_UINT32,
                                  TN_INT64, TN_UINT64, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64, TN_COMPLEX64};

/* kind 0: different; 1: many equal; 2: with NaN and -0, where the dtype has them; 3: as 2, with few of these, and
 * infinities */
static tn_array *row(int64_t n, tn_dtype dtype, int kind)
{
    tn_array *x = tn_multiply(tn_random_normal(TN_SHAPE(n), .dtype = TN_FLOAT64), kind == 1 ? 1.5 : 40);
    if (kind >= 2) {
        tn_array *u = tn_multiply(tn_random_uniform(TN_SHAPE(n), .dtype = TN_FLOAT64), kind == 2 ? 1 : 20);
        x = tn_where(tn_less(u, 0.1), NAN, tn_where(tn_less(u, 0.3), -0.0, tn_where(tn_less(u, 0.4), 0.0, x)));
        if (kind == 3)
            x = tn_where(tn_greater(u, 19.9), INFINITY, tn_where(tn_greater(u, 19.5), -INFINITY, x));
    }
    if (!tn_dtype_is_float(dtype))
        x = tn_where(tn_isfinite(x), x, 3);
    if (dtype == TN_UINT8 || dtype == TN_UINT16 || dtype == TN_UINT32 || dtype == TN_UINT64)
        x = tn_abs(x);
    return tn_cast(kind == 1 ? tn_rint(x) : x, dtype);
}

static bool same(tn_array *a, tn_array *b)
{
    return tn_item_int(tn_all(tn_logical_or(tn_equal(a, b), tn_logical_and(tn_not_equal(a, a), tn_not_equal(b, b))))) ==
           1;
}

static tn_array *cut(tn_array *x, int64_t from, int64_t to) { return tn_slice_axis(x, -1, from, to, 1); }

/* Parts sorted by themselves are the whole sorted: that is what a partition promises. */
static void check(tn_array *x, int64_t place)
{
    int64_t n = tn_dim(x, -1);
    tn_array *sorted = tn_sort(x), *y = tn_partition(x, 1, &place),
             *order = tn_argpartition(x, 1, &(int64_t){place - n});
    for (int positions = 0; positions < 2; positions++) {
        tn_array *z = positions ? tn_take_along_axis(x, order, -1) : y;
        bool good = tn_dtype_of(z) == tn_dtype_of(x) && same(tn_sort(cut(z, 0, place)), cut(sorted, 0, place)) &&
                    same(cut(z, place, place + 1), cut(sorted, place, place + 1)) &&
                    same(tn_sort(cut(z, place + 1, n)), cut(sorted, place + 1, n));
        if (!good || !tn_ok())
            fail_msg("%s of %s: place %lld of %lld; seed %llu: %s", positions ? "argpartition" : "partition",
                     tn_dtype_name(tn_dtype_of(x)), (long long)place, (long long)n, (unsigned long long)seed,
                     tn_ok() ? "" : tn_error());
    }
    tn_array *places = tn_expand_dims(tn_arange(0, (double)n, 1, .dtype = TN_INT64), 0);
    assert_true(same(tn_sort(order), tn_broadcast_to(tn_reshape(places, TN_SHAPE(n)), tn_shape_of(order))));
}

static tn_array *home(tn_array *x) { return tn_to(x, tn_cpu()); }

/* What they are, the CPU says by sorting. */
static void check_largest(tn_array *x, int64_t k)
{
    int64_t n = tn_dim(x, -1);
    tn_array *places, *largest = home(tn_topk(x, k, &places)), *there = home(x);
    tn_array *order = cut(tn_flip(tn_argsort(there), TN_AXES(-1)), 0, k);
    if (!same(home(places), order) || !same(home(tn_topk(x, k, NULL)), largest) ||
        !same(largest, tn_take_along_axis(there, order, -1)) || !tn_ok())
        fail_msg("topk of %s: %lld of %lld; seed %llu: %s", tn_dtype_name(tn_dtype_of(x)), (long long)k, (long long)n,
                 (unsigned long long)seed, tn_ok() ? "" : tn_error());
}

static void test_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 49, 300, 513, 5000};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        if (test_device().kind == TN_DEVICE_CUDA &&
            dtypes[d] != TN_FLOAT32) /* where they are sorts: each has kernels to compile */
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < 3; kind++)
                TN_SCOPE {
                    tn_array *x = row(sizes[s], dtypes[d], kind);
                    int64_t n = sizes[s], place = tn_item_int(tn_random_integers(0, n, TN_SHAPE(1)));
                    check(x, place);
                    check(x, kind == 0 ? 0 : n - 1);
                    if (dtypes[d] != TN_BOOL)
                        check_largest(x, n < 7 ? n / 2 : 7);
                }
    }
}

/* A few of many rows are found one after the other: with what is equal, not a number or infinite, and rows of nothing
 * else. */
static void test_in_turn(void **state)
{
    (void)state;
    static const tn_dtype floats[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16};
    for (int k = 1; k <= 5; k += 2)
        for (int d = 0; d < 3; d++)
            TN_SCOPE {
                int64_t n = 16 * k + 37 * d;
                tn_array *x = tn_random_integers(-6, 6, TN_SHAPE(70, n)),
                         *row = tn_reshape(tn_arange(0, 70, 1), TN_SHAPE(70, 1));
                x = tn_where(tn_equal(x, 5), NAN,
                             tn_where(tn_equal(x, 4), INFINITY, tn_where(tn_equal(x, -6), -INFINITY, x)));
                x = tn_where(tn_equal(row, 3), -INFINITY,
                             tn_where(tn_equal(row, 4), NAN, tn_where(tn_equal(row, 5), -0.0, x)));
                check_largest(tn_cast(x, floats[d]), k);
            }
}

static int64_t any(int64_t least, int64_t most)
{
    return tn_item_int(tn_random_integers((double)least, (double)most + 1, TN_SHAPE(1)));
}

/* Rows and columns: side by side, every second element, backwards, and along another axis. */
static void check_few(tn_array *x, int64_t n, int offset)
{
    int64_t most = n < 32 ? n : 32;
    tn_array *there = tn_to(x, test_device());
    tn_array *rows = tn_reshape(there, TN_SHAPE(3, 2, n)), *upright = tn_reshape(there, TN_SHAPE(n, 2, 3));
    check_largest(rows, most);
    check_largest(rows, any(1, most));
    check_largest(tn_flip(tn_slice_axis(rows, -1, n > 1 ? offset : 0, n, 2), TN_AXES(-1)), (most + 1) / 3);
    if (n > 32 && tn_dtype_of(x) == TN_FLOAT32)
        check_largest(rows, 33);
    tn_array *columns = tn_swapaxes(upright, 0, 2), *places, *expected;
    check_largest(columns, most);
    tn_array *values = tn_topk(columns, most, &expected), *found = tn_topk(upright, most, &places, .axis = TN_AXES(0));
    assert_true(same(home(found), tn_swapaxes(home(values), 0, 2)));
    assert_true(same(home(places), tn_swapaxes(home(expected), 0, 2)));
}

/* A few of short rows, up to 32 and one more. On a GPU each dtype, and some lengths, have kernels to compile. */
static void test_few(void **state)
{
    (void)state;
    static const tn_dtype few[] = {TN_FLOAT32, TN_INT64, TN_FLOAT64, TN_FLOAT16, TN_UINT8, TN_INT8};
    for (size_t d = 0; d < sizeof few / sizeof *few; d++) {
        const int64_t sizes[] = {1, any(2, 33), any(34, 500), d % 2 ? 1024 : any(1000, 3000)};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < 4; kind++)
                TN_SCOPE TN_ON_DEVICE(tn_cpu()) check_few(row(6 * sizes[s], few[d], kind), sizes[s], kind % 2);
    }
}

/* Whatever the order: rows that rise or fall, at once or every so often, and rows of the same throughout. Long ones,
 * so many that a warp goes through each. */
static void test_few_in_order(void **state)
{
    (void)state;
    for (int64_t n = 1000; n <= 3000; n += 1000)
        TN_SCOPE TN_ON_DEVICE(tn_cpu()) {
            tn_array *at = tn_arange(0, (double)n, 1, .dtype = TN_FLOAT32), *zero = tn_zeros_like(at);
            tn_array *peaks = tn_where(tn_equal(tn_remainder(at, 32), (double)any(0, 31)), at, zero);
            tn_array *rows[] = {at, tn_negative(at), tn_remainder(at, 40), peaks, tn_negative(peaks), zero,
                                tn_where(tn_greater(peaks, 0), tn_subtract((double)n, peaks), zero),
                                tn_add(zero, -INFINITY), tn_add(zero, NAN)};
            tn_array *x = tn_to(tn_stack(sizeof rows / sizeof *rows, (const tn_array *const *)rows, 0), test_device());
            check_largest(x, 32);
            check_largest(x, any(1, 31));
        }
    TN_SCOPE TN_ON_DEVICE(tn_cpu()) {
        tn_array *x = tn_reshape(row(330 * 4500, TN_FLOAT32, 0), TN_SHAPE(330, 4500));
        check_largest(tn_to(x, test_device()), 17);
        check_largest(tn_to(tn_rint(tn_multiply(x, 0.05)), test_device()), 6);
    }
}

/* By all threads; rows that lie apart; empty ones. */
static void test_layouts(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = row(300000, TN_FLOAT32, 0);
        check(x, 1234);
        check(x, 150000);
        check_largest(x, 100);
        check(row(200000, TN_INT16, 1), 100000);
        check(row(150000, TN_FLOAT64, 2), 70000);
        tn_array *many = tn_reshape(cut(x, 0, 6000), TN_SHAPE(3, 20, 100));
        check(many, 31);
        check(tn_swapaxes(many, 0, 2), 1);
        tn_array *tall = tn_reshape(cut(x, 0, 6000), TN_SHAPE(600, 10));
        check(tn_swapaxes(tall, 0, 1), 31);
        check_largest(tn_flip(tn_swapaxes(tall, 0, 1), TN_AXES(-1)), 4);
        check(tn_flip(many, TN_AXES(-1)), 98);
        check_largest(tn_swapaxes(many, 1, 2), 4);
        tn_array *upright = tn_partition(many, 1, &(int64_t){7}, .axis = TN_AXES(1));
        assert_true(
            same(tn_slice_axis(upright, 1, 7, 8, 1), tn_slice_axis(tn_sort(many, .axis = TN_AXES(1)), 1, 7, 8, 1)));
        tn_array *several = tn_partition(many, 2, ((int64_t[]){10, 60})), *sorted = tn_sort(many);
        assert_true(same(cut(several, 10, 11), cut(sorted, 10, 11)) && same(cut(several, 60, 61), cut(sorted, 60, 61)));
        assert_int_equal(tn_size(tn_partition(tn_zeros(TN_SHAPE(0, 4)), 1, &(int64_t){2})), 0);
        assert_int_equal(tn_status_of(tn_partition(many, 1, &(int64_t){100})), TN_ERR_VALUE);
        tn_clear_error();
    }
}

int main(void)
{
    seed = test_seed_new();
    tn_seed(seed);
    tn_set_compile(TN_COMPILE_NEVER); /* hundreds of small graphs */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_in_turn),
                                       cmocka_unit_test(test_few), cmocka_unit_test(test_few_in_order),
                                       cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
