/* SPDX-License-Identifier: MIT */
/* Composed functions whose arguments are wrong, or that cannot be evaluated: error arrays, never another value. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

static void expect(const tn_array *y, tn_status code, const char *says)
{
    if (!tn_is_error(y) || tn_error_code() != code || !strstr(tn_error(), says))
        fail_msg("expected %s with '%s', got %s: %s", tn_status_name(code), says,
                 tn_is_error(y) ? tn_status_name(tn_error_code()) : "an array", tn_error());
    tn_clear_error();
}

static void test_arguments(void **state)
{
    (void)state;
    tn_array *x = tn_arange(0, 6, 1), *out[4];
    const tn_array *none = NULL;
    expect(tn_binary(tn_add, x, none), TN_ERR_VALUE, "NULL");
    expect(tn_pad(x, NULL), TN_ERR_VALUE, "pair of widths");
    expect(tn_piecewise(x, 2, NULL, NULL, none), TN_ERR_VALUE, "conditions");
    expect(tn_select(2, NULL, NULL, x), TN_ERR_VALUE, "got NULL");
    expect(tn_insert(x, 2, NULL, 1, TN_AXES(0)), TN_ERR_VALUE, "positions");
    expect(tn_delete(x, -1, NULL, TN_AXES(0)), TN_ERR_VALUE, "positions");
    expect(tn_tile(x, ((tn_shape){.ndim = 9})), TN_ERR_SHAPE, "0 to 8");
    expect(tn_getitem(x, 1, NULL), TN_ERR_VALUE, "keys");
    expect(tn_getitem(x, INT_MAX, &TN_WHOLE), TN_ERR_VALUE, "expected 0 to 32 keys, got 2147483647");
    expect(tn_histogram(x, NULL, .bins = INT64_MAX), TN_ERR_VALUE, "9223372036854775807, which is too many");
    expect(tn_arange_int64(250, 257, 1, .dtype = TN_UINT8), TN_ERR_VALUE, "the number 256 does not fit uint8");
    expect(tn_arange_int64(3, -2, -1, .dtype = TN_UINT64), TN_ERR_VALUE, "the number -1 does not fit uint64");
    assert_int_equal(tn_item_int(tn_index(tn_arange_int64(250, 256, 1, .dtype = TN_UINT8), -1)), 255);
    tn_key many[17]; /* eight numbers leave no axis, and nine are more than an array has */
    for (int i = 0; i < 17; i++)
        many[i] = i < 8 ? TN_I(0) : TN_NEWAXIS;
    expect(tn_getitem(tn_ones(TN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), 17, many), TN_ERR_INDEX, "more keys");
    expect(tn_linalg_multi_dot(2, NULL), TN_ERR_VALUE, "got NULL");
    const tn_shape shapes[] = {{1, {2}}, {9, {1}}};
    tn_shape both;
    assert_int_equal(tn_broadcast_shapes(2, shapes, &both), TN_ERR_SHAPE);
    tn_clear_error();
    assert_int_equal(tn_unravel_index(x, (tn_shape){.ndim = 9}, out), TN_ERR_SHAPE);
    tn_clear_error();
    assert_int_equal(tn_unravel_index(x, (tn_shape){0}, out), TN_ERR_INDEX); /* which has no position but 0 */
    tn_clear_error();
    tn_array *far = tn_from_int64s((const int64_t[]){1, 9, -3}, 3); /* named as they are, and where */
    expect(tn_choose(far, 2, ((const tn_array *[]){x, x}), NULL), TN_ERR_INDEX, "index 9 at position 1 ");
    assert_int_equal(tn_unravel_index(far, TN_SHAPE(2, 3), out), TN_ERR_INDEX);
    assert_non_null(strstr(tn_error(), "index 9 at position 1 "));
    tn_clear_error();
    expect(tn_ravel_multi_index(1, ((const tn_array *[]){far}), TN_SHAPE(10), NULL), TN_ERR_INDEX,
           "index -3 at position 2 ");
    expect(tn_bincount(far, NULL, 0), TN_ERR_VALUE, "got -3");
    expect(tn_histogram(tn_cast(x, TN_COMPLEX64), NULL, .low = 1, .high = 2), TN_ERR_DTYPE, "tn_abs");
    tn_array *largest = tn_from_int64s((const int64_t[]){INT64_MAX}, 1);
    expect(tn_bincount(largest, NULL, 0), TN_ERR_MEMORY, "9223372036854775807");
    /* options are told by their names, not by what nothing can be cast to */
    const tn_array *two[] = {x, x};
    expect(tn_concatenate_with(2, two, 0, &(tn_out_opts){.casting = "safest"}), TN_ERR_NAME, "casting rule 'safest'");
    expect(tn_concatenate_with(2, two, 0, &(tn_out_opts){.dtype = (tn_dtype)99}), TN_ERR_DTYPE, "99 is no dtype");
    expect(tn_binary(tn_add, x, x, .dtype = (tn_dtype)99), TN_ERR_DTYPE, "99 is no dtype");
    expect(tn_round_with(x, 0, &(tn_out_opts){.out = x, .casting = ""}), TN_ERR_NAME, "no casting rule ''");
    assert_true(tn_ok());
}

/* No order of differences has an axis; a high one of a few elements is done soon. */
static void test_differences(void **state)
{
    (void)state;
    tn_array *x = tn_arange(0, 6, 1);
    assert_true(tn_array_equal(tn_diff(x, 0, 7), x, false));
    assert_true(tn_array_equal(tn_diff(x, 1, 0), tn_ones(TN_SHAPE(5), .dtype = TN_INT64), false));
    assert_int_equal(tn_size(tn_diff(x, INT32_MAX, 0)), 0);
    assert_true(tn_ok());
}

/* What has to read values and cannot is an error, and nothing else that happens to be at hand. */
static void test_no_values(void **state)
{
    (void)state;
    tn_array *big = tn_cumsum(tn_full(TN_SHAPE(300000), 1, .dtype = TN_INT64)), *truth = tn_greater(tn_sum(big), 0);
    assert_int_equal(tn_memory_limit(test_device(), 1 << 20), TN_OK);
    expect(tn_flatnonzero(big), TN_ERR_MEMORY, "no memory");
    expect(tn_bincount(big, NULL, 0), TN_ERR_MEMORY, "no memory");
    expect(tn_histogram(big, NULL), TN_ERR_MEMORY, "no memory");
    expect(tn_histogram(big, NULL, .rule = "fd"), TN_ERR_MEMORY, "no memory");
    expect(tn_isin(tn_arange(0, 9, 1), big, false), TN_ERR_MEMORY, "no memory");
    expect(tn_unique(big, .index = &(tn_array *){NULL}), TN_ERR_MEMORY, "no memory");
    expect(tn_digitize(tn_arange(0, 9, 1), big, false), TN_ERR_MEMORY, "no memory");
    expect(tn_quantile(tn_arange(0, 9, 1), tn_divide(big, 1e9)), TN_ERR_MEMORY, "no memory");
    expect(tn_get(tn_arange(0, 9, 1), TN_PICK(truth)), TN_ERR_MEMORY, "no memory");
    assert_int_equal(tn_memory_limit(test_device(), 0), TN_OK);
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_no_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
