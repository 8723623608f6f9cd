/* SPDX-License-Identifier: MIT */
/* Integers at the ends of their dtypes: uint64 beside signed ones, magnitudes of the least number, bits of negative
 * ones; and distinct rows, of which NaN makes each one distinct. */
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

static test_random chance;

/* ---- comparisons ---- */

#define MOST 24
static const tn_dtype signed_dtypes[] = {TN_INT8, TN_INT16, TN_INT32, TN_INT64};

static int64_t signed_number(int bits)
{
    int64_t least = (int64_t)(UINT64_MAX << (bits - 1)), ends[] = {least, least + 1, -1, 0, 1, ~least - 1, ~least};
    int k = (int)test_random_int(&chance, 0, 8);
    int64_t near = bits == 64 ? (INT64_C(1) << 53) + test_random_int(&chance, -2, 2) : k;
    return k < 7 ? ends[k] : near;
}

static uint64_t unsigned_number(int bits)
{
    const uint64_t ends[] = {0, 1, UINT64_C(1) << 53, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, INT64_MAX};
    int k = (int)test_random_int(&chance, 0, 12);
    return k < 7 ? ends[k] : (uint64_t)signed_number(bits) + (uint64_t)test_random_int(&chance, 0, 1);
}

typedef tn_array *(*comparison)(const tn_array *, const tn_array *);

static int order(int64_t a, uint64_t b)
{
    __int128 difference = (__int128)a - (__int128)b;
    return (difference > 0) - (difference < 0);
}

/* By number: what the order of the operands has to be for each to hold; bits: below, equal, above. */
static const struct {
    const char *name;
    comparison function;
    int holds;
} comparisons[] = {{"equal", tn_equal, 2},           {"not_equal", tn_not_equal, 5}, {"less", tn_less, 1},
                   {"less_equal", tn_less_equal, 3}, {"greater", tn_greater, 4},
                   {"greater_equal", tn_greater_equal, 6}};

static void compare(tn_dtype dtype, int64_t n)
{
    int bits = 8 * (int)tn_dtype_size(dtype);
    int64_t a[MOST];
    uint64_t b[MOST];
    for (int64_t i = 0; i < n; i++) {
        a[i] = signed_number(bits);
        b[i] = unsigned_number(bits);
    }
    const tn_array *x = tn_cast(tn_from_host(a, TN_SHAPE(n), TN_INT64), dtype);
    const tn_array *y = tn_from_host(b, TN_SHAPE(n), TN_UINT64);
    for (size_t k = 0; k < sizeof comparisons / sizeof *comparisons; k++)
        for (int turned = 0; turned < 2; turned++) {
            const tn_array *got = turned ? comparisons[k].function(y, x) : comparisons[k].function(x, y);
            assert_int_equal(tn_dtype_of(got), TN_BOOL);
            const unsigned char *is = test_data(got);
            assert_non_null(is);
            for (int64_t i = 0; i < n; i++)
                if (is[i] != (comparisons[k].holds >> (1 + (turned ? -order(a[i], b[i]) : order(a[i], b[i]))) & 1))
                    fail_msg("%s of %s %lld and uint64 %llu%s is %d", comparisons[k].name, tn_dtype_name(dtype),
                             (long long)a[i], (unsigned long long)b[i], turned ? ", turned" : "", is[i]);
        }
}

static void uint64_beside_signed(void **state)
{
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        tn_set_compile(mode ? TN_COMPILE_ALWAYS : TN_COMPILE_AUTO);
        for (size_t d = 0; d < 4; d++)
            for (int64_t n = 0; n <= MOST; n += n < 1 ? 1 : MOST - 1)
                TN_SCOPE
                    compare(signed_dtypes[d], n);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void one_of_them_stands_alone(void **state)
{
    (void)state;
    const uint64_t large[] = {(UINT64_C(1) << 53) + 1, UINT64_MAX, 0};
    const int64_t other[] = {(INT64_C(1) << 53) + 1, -1};
    tn_array *x = tn_from_host(large, TN_SHAPE(3), TN_UINT64), *y = tn_from_host(other, TN_SHAPE(2), TN_INT64);
    tn_array *table = tn_equal(tn_reshape(y, TN_SHAPE(2, 1)), x);
    const unsigned char *is = test_data(table);
    assert_non_null(is);
    assert_memory_equal(is, ((unsigned char[]){1, 0, 0, 0, 0, 0}), 6);
    assert_false(tn_array_equal(tn_from_host(large + 1, TN_SHAPE(1), TN_UINT64),
                                tn_from_host(other + 1, TN_SHAPE(1), TN_INT64), false));
    assert_true(tn_is_error(tn_less(x, y))); /* 3 beside 2 */
    tn_clear_error();
}

/* Elements are in a set of the other signedness as numbers, not as float64 or as bits. */
static void sets_of_either_sign(void **state)
{
    (void)state;
    const uint64_t a[] = {UINT64_C(1) << 53, (UINT64_C(1) << 53) + 1, UINT64_MAX, 7, UINT64_C(1) << 63};
    const int64_t b[] = {INT64_C(1) << 53, -1, INT64_MIN, 7, 6};
    const tn_array *x = tn_from_host(a, TN_SHAPE(5), TN_UINT64), *y = tn_from_host(b, TN_SHAPE(5), TN_INT64);
    static const unsigned char wanted[2][5] = {{1, 0, 0, 1, 0}, {1, 0, 0, 1, 0}};
    for (int turned = 0; turned < 2; turned++) {
        const unsigned char *is = test_data(turned ? tn_isin(y, x, false) : tn_isin(x, y, false));
        assert_non_null(is);
        assert_memory_equal(is, wanted[turned], 5);
    }
    const uint64_t *rest = test_data(tn_setdiff1d(x, y));
    assert_non_null(rest);
    assert_memory_equal(rest, ((uint64_t[]){(UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX}), 24);
    assert_int_equal(tn_size(tn_isin(x, tn_zeros(TN_SHAPE(0), .dtype = TN_INT8), false)), 5);
}

/* ---- bits ---- */

static void bits_of_magnitudes(void **state)
{
    (void)state;
    for (size_t d = 0; d < 4; d++)
        TN_SCOPE {
            int bits = 8 * (int)tn_dtype_size(signed_dtypes[d]);
            int64_t least = (int64_t)(UINT64_MAX << (bits - 1)), x[262];
            const int64_t ends[] = {least, least + 1, least + 2, ~least, ~least - 1, -1};
            for (int i = 0; i < 262; i++)
                x[i] = i < 6 ? ends[i] : i - 6 - 128;
            const tn_array *a = tn_cast(tn_from_host(x, TN_SHAPE(262), TN_INT64), signed_dtypes[d]);
            const unsigned char *count = test_data(tn_bitwise_count(a));
            assert_non_null(count);
            for (int i = 0; i < 262; i++)
                assert_int_equal(count[i], __builtin_popcountll(x[i] < 0 ? 0 - (uint64_t)x[i] : (uint64_t)x[i]));
        }
    const uint64_t all[] = {UINT64_MAX, 0, UINT64_C(0x8000000000000001)};
    const unsigned char *count = test_data(tn_bitwise_count(tn_from_host(all, TN_SHAPE(3), TN_UINT64)));
    assert_non_null(count);
    assert_memory_equal(count, ((unsigned char[]){64, 0, 2}), 3);
    assert_true(tn_item(tn_bitwise_count(tn_ones(TN_SHAPE(1), .dtype = TN_BOOL))) == 1);
    assert_true(tn_is_error(tn_bitwise_count(tn_ones(TN_SHAPE(1)))));
    tn_clear_error();
}

/* ---- distinct rows ---- */

static void rows_that_hold_nan(void **state)
{
    (void)state;
    const float rows[] = {NAN, 1, 2, 0, NAN, 1, 2, -0.0f, 2, 0}, some[] = {NAN, 1, NAN};
    tn_array *x = tn_from_host(rows, TN_SHAPE(5, 2), TN_FLOAT32), *counts, *inverse;
    tn_array *y = tn_unique(x, .axis = TN_AXES(0), .counts = &counts, .inverse = &inverse);
    assert_int_equal(tn_dim(y, 0), 3); /* (2, 0) and twice (NaN, 1) */
    const int64_t *n = test_data(counts), *at = test_data(inverse);
    assert_true(n && n[0] == 3 && n[1] == 1 && n[2] == 1);
    assert_true(at && at[1] == 0 && at[3] == 0 && at[4] == 0 && at[0] != at[2] && at[0] && at[2]);
    tn_array *column = tn_from_host(some, TN_SHAPE(1, 3), TN_FLOAT32);
    assert_int_equal(tn_dim(tn_unique(column, .axis = TN_AXES(1)), 1), 3);
    tn_array *vector = tn_reshape(column, TN_SHAPE(3));
    assert_int_equal(tn_dim(tn_unique(vector, .axis = TN_AXES(0)), 0), 2); /* elements, as NumPy 2.4 has it */
    assert_int_equal(tn_dim(tn_unique(vector, .axis = TN_AXES(0), .distinct_nan = true), 0), 3);
    assert_int_equal(tn_dim(tn_unique(vector), 0), 2);
    tn_array *pairs = tn_complex(tn_reshape(vector, TN_SHAPE(3, 1)), tn_reshape(vector, TN_SHAPE(3, 1)));
    assert_int_equal(tn_dim(tn_unique(pairs, .axis = TN_AXES(0)), 0), 3);
}

int main(void)
{
    chance = test_random_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uint64_beside_signed), cmocka_unit_test(one_of_them_stands_alone),
        cmocka_unit_test(sets_of_either_sign),  cmocka_unit_test(bits_of_magnitudes),
        cmocka_unit_test(rows_that_hold_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
