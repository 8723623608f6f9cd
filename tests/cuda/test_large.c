/* SPDX-License-Identifier: MIT */
/*
 * Arrays of more than 2^31 elements on a GPU: positions need 64 bits. Elements far behind the 32nd bit are looked at
 * one by one, sums of whole numbers are exact. Skipped without a GPU, or where it has too little memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

enum { ROWS = 50001, COLUMNS = 50021 }; /* 2.5e9 elements, neither divisible by 4 */
static const int64_t all = (int64_t)ROWS * COLUMNS;

static double number(const tn_array *x)
{
    double value = tn_item(x);
    if (!tn_ok())
        fail_msg("%s", tn_error());
    return value;
}

static tn_array *element(const tn_array *x, int64_t row, int64_t column)
{
    return tn_slice_axis(tn_slice_axis(x, 0, row, row + 1, 1), 1, column, column + 1, 1);
}

/* The element at (r, c) is (r + 3 c) mod 7. */
static tn_array *pattern(void)
{
    tn_array *row = tn_arange(0, COLUMNS, 1), *column = tn_expand_dims(tn_arange(0, ROWS, 1), 1);
    tn_array *x = tn_cast(tn_remainder(tn_add(column, tn_multiply(row, 3)), 7), TN_INT8);
    if (tn_eval(x) != TN_OK)
        fail_msg("%s", tn_error());
    return x;
}

static void test_elementwise(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = pattern(), *y = tn_add(tn_multiply(x, x), tn_cast(tn_arange(0, COLUMNS, 1), TN_INT8));
        assert_int_equal(tn_eval(y), TN_OK);
        const int64_t places[][2] = {{0, 0}, {42949, 33321}, {42950, 5}, {ROWS - 1, COLUMNS - 1}};
        for (int i = 0; i < 4; i++) {
            int64_t r = places[i][0], c = places[i][1], v = (r + 3 * c) % 7;
            assert_int_equal((int64_t)number(element(x, r, c)), v);
            assert_int_equal((int64_t)number(element(y, r, c)), (int8_t)(v * v + c));
        }
    }
}

static void test_reductions(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = pattern();
        int64_t total = 0, first = 0, last = 0;
        for (int64_t r = 0; r < ROWS; r++) {
            last += (r + 3 * (COLUMNS - 1)) % 7;
            int64_t begin = r % 7; /* a row is a cycle of 7, shifted */
            total += COLUMNS / 7 * 21;
            for (int64_t c = COLUMNS / 7 * 7; c < COLUMNS; c++)
                total += (begin + 3 * c) % 7;
        }
        for (int64_t c = 0; c < COLUMNS; c++)
            first += (ROWS - 1 + 3 * c) % 7;
        tn_array *rows = tn_sum(x, .axis = TN_AXES(1)), *columns = tn_sum(x, .axis = TN_AXES(0));
        assert_int_equal((int64_t)number(tn_sum(x)), total);
        assert_int_equal((int64_t)number(tn_slice_axis(rows, 0, ROWS - 1, ROWS, 1)), first);
        assert_int_equal((int64_t)number(tn_slice_axis(columns, 0, COLUMNS - 1, COLUMNS, 1)), last);
        assert_int_equal((int64_t)number(tn_argmin(tn_equal(tn_flatten(x), 9))), 0);
    }
}

static void test_transposed(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *t = tn_negative(tn_transpose(pattern(), (tn_axes){0}));
        assert_int_equal(tn_eval(t), TN_OK);
        assert_int_equal((int64_t)number(element(t, COLUMNS - 1, ROWS - 1)),
                         -((ROWS - 1 + 3 * (int64_t)(COLUMNS - 1)) % 7));
        assert_int_equal((int64_t)number(element(t, 44000, 20)), -((20 + 3 * (int64_t)44000) % 7));
    }
}

int main(void)
{
    const char *why = "";
    if (!tn_device_available(tn_cuda(0), &why)) {
        printf("no GPU: %s\n", why);
        return 77;
    }
    if (tn_set_device(tn_cuda(0)) != TN_OK || tn_memory_stats(tn_cuda(0)).total < (size_t)all * 12) {
        printf("a GPU with too little memory\n");
        tn_clear_error();
        return 77;
    }
    tn_set_compile(TN_COMPILE_ALWAYS);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise), cmocka_unit_test(test_reductions),
                                       cmocka_unit_test(test_transposed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
