/* SPDX-License-Identifier: MIT */
/*
 * C numbers beyond int64, and others that the dtype beside them does not hold: exact where a dtype holds them, errors
 * or comparisons' answers elsewhere, as in NumPy 2; never another number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

#define LARGEST UINT64_MAX
#define HALF    ((uint64_t)1 << 63)

#define REFUSED(x, words) \
    do { \
        assert_true(tn_is_error(x)); \
        assert_failed(TN_ERR_VALUE, words); \
    } while (0)

#define EXPECT(x, ...) expect(x, __LINE__, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]){__VA_ARGS__})
static void expect(const tn_array *x, int line, int64_t count, const uint64_t *values)
{
    if (tn_is_error(x) || tn_size(x) != count)
        fail_msg("line %d: %lld elements, expected %d: %s", line, (long long)tn_size(x), (int)count, tn_error());
    const uint64_t *got = test_data(tn_cast(x, TN_UINT64));
    for (int64_t i = 0; i < count; i++)
        if (got[i] != values[i])
            fail_msg("line %d: element %d is %llu", line, (int)i, (unsigned long long)got[i]);
}

static tn_array *two(tn_dtype dtype) { return tn_arange(0, 2, 1, .dtype = dtype); }

/* Beside a dtype that does not hold it. */
static void check_beside(tn_dtype dtype)
{
    tn_array *x = two(dtype);
    REFUSED(tn_multiply(x, LARGEST), "18446744073709551615 does not fit");
    REFUSED(tn_where(true, x, HALF), "9223372036854775808 does not fit");
    REFUSED(tn_power(x, LARGEST), "18446744073709551615 does not fit");
    EXPECT(tn_less(x, LARGEST), 1, 1);
    EXPECT(tn_equal(HALF, x), 0, 0);
    EXPECT(tn_greater_equal(x, HALF), 0, 0);
    EXPECT(tn_clip(x, 1, LARGEST), 1, 1);
}

/* The number takes the dtype of what is beside it where that holds it. */
static void check_operands(void)
{
    tn_array *u = two(TN_UINT64);
    EXPECT(tn_multiply(u, LARGEST), 0, LARGEST);
    EXPECT(tn_add(HALF, u), HALF, HALF + 1);
    EXPECT(tn_where(tn_equal(u, 1), u, LARGEST), LARGEST, 1);
    EXPECT(tn_multiply(u, (size_t)7), 0, 7);
    EXPECT(tn_add(HALF, 3), HALF + 3);
    EXPECT(tn_clip(u, HALF, LARGEST), HALF, HALF);
    assert_int_equal(tn_dtype_of(tn_multiply(u, LARGEST)), TN_UINT64);
    assert_int_equal(tn_dtype_of(tn_multiply(two(TN_INT64), (size_t)7)), TN_INT64);
    tn_array *real = tn_add(tn_zeros(TN_SHAPE(1)), HALF + ((uint64_t)1 << 39) + 1); /* by double it would be even */
    assert_int_equal(tn_dtype_of(real), TN_FLOAT32);
    assert_true(*(const float *)test_data(real) == 0x1.000002p63f);
    check_beside(TN_INT64);
    const int64_t ends[] = {INT64_MIN, INT64_MAX};
    EXPECT(tn_equal(tn_from_int64s(ends, 2), HALF), 0, 0); /* of which a double cannot tell the second */
    EXPECT(tn_less(tn_from_int64s(ends, 2), HALF), 1, 1);
    EXPECT(tn_equal(HALF, tn_negative(tn_weak_int(1))), 0);
}

/* Filled with, written into, cast. */
static void check_fills(void)
{
    EXPECT(tn_full(TN_SHAPE(2), LARGEST, .dtype = TN_UINT64), LARGEST, LARGEST);
    EXPECT(tn_full(TN_SHAPE(1), ((int64_t)1 << 53) + 1, .dtype = TN_INT64), ((uint64_t)1 << 53) + 1);
    EXPECT(tn_scalar(HALF + 1, .dtype = TN_UINT64), HALF + 1);
    EXPECT(tn_scalar(INT64_MIN, .dtype = TN_INT64), HALF);
    EXPECT(tn_full_like(two(TN_UINT64), LARGEST - 1), LARGEST - 1, LARGEST - 1);
    REFUSED(tn_full(TN_SHAPE(2), LARGEST, .dtype = TN_INT64), "18446744073709551615 does not fit int64");
    REFUSED(tn_full_like(two(TN_UINT8), 256), "0 to 255");
    REFUSED(tn_scalar(-1, .dtype = TN_UINT64), "-1 does not fit");
    REFUSED(tn_scalar(0x1p64, .dtype = TN_UINT64), "does not fit");
    EXPECT(tn_arange(0x1p63, 0x1p63 + 8192, 4096, .dtype = TN_UINT64), HALF, HALF + 4096);
    EXPECT(tn_arange(0x1p63 + 4096, 0x1p63 - 4096, -4096, .dtype = TN_UINT64), HALF + 4096, HALF);
    EXPECT(tn_cast(tn_weak_uint(LARGEST), TN_UINT64), LARGEST);
    REFUSED(tn_cast(tn_weak_uint(LARGEST), TN_INT64), "does not fit int64");
    tn_array *u = two(TN_UINT64), *s = two(TN_INT64);
    assert_int_equal(tn_setitem(u, tn_weak_uint(LARGEST), TN_KEYS(TN_I(1))), TN_OK);
    EXPECT(u, 0, LARGEST);
    assert_int_equal(tn_setitem(s, tn_weak_uint(LARGEST), TN_KEYS(TN_I(1))), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "does not fit int64");
    EXPECT(s, 0, 1);
}

/* The place of a number that the sorted ones' dtype does not hold. */
static void check_places(void)
{
    const tn_dtype dtypes[] = {TN_UINT8, TN_INT8, TN_UINT32, TN_INT64};
    for (int i = 0; i < 4; i++) {
        tn_array *sorted = two(dtypes[i]);
        EXPECT(tn_searchsorted(sorted, LARGEST), 2);
        EXPECT(tn_searchsorted(sorted, (int64_t)1 << 40), 2);
        EXPECT(tn_searchsorted(sorted, -300), 0);
        EXPECT(tn_searchsorted(sorted, 1, .right = true), 2);
        EXPECT(tn_digitize(1000, sorted), 2);
        EXPECT(tn_digitize(-1000, tn_flip(sorted, (tn_axes){0})), 2);
    }
}

#define BOTH(name) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        for (int on = 0; on < 2; on++) { \
            tn_set_compile(on ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER); \
            TN_SCOPE check_##name(); \
        } \
        tn_set_compile(TN_COMPILE_AUTO); \
    }
BOTH(operands)
BOTH(fills)

static void test_places(void **state)
{
    (void)state;
    const tn_dtype narrow[] = {TN_UINT32, TN_INT8, TN_BOOL};
    tn_set_compile(TN_COMPILE_NEVER);
    for (int i = 0; i < 3; i++)
        TN_SCOPE check_beside(narrow[i]);
    TN_SCOPE check_places();
    tn_set_compile(TN_COMPILE_AUTO);
}

static void test_arguments(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "large_add");
        EXPECT(tn_call(add, TN_ARGS(two(TN_UINT64), HALF)), HALF, HALF + 1);
        REFUSED(tn_call(add, TN_ARGS(two(TN_INT64), LARGEST)), "18446744073709551615 does not fit");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operands), cmocka_unit_test(test_fills),
                                       cmocka_unit_test(test_places), cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
