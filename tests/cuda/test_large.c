/* SPDX-License-Identifier: MIT */
/*
 * Arrays of more than 2^31 elements on a GPU: positions need 64 bits. Elements far behind the 32nd bit are looked at
 * one by one, sums of whole numbers are exact. Skipped without a GPU, or where it has too little memory: 12 bytes an
 * element.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

enum { ROWS = 50001, COLUMNS = 50021 }; /* 2.5e9 elements, neither divisible by 4 */
static const int64_t all = (int64_t)ROWS * COLUMNS;
static const int64_t far = (int64_t)ROWS * COLUMNS / 10 * 9; /* beyond 2^31 */

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

static int64_t at(const tn_array *vector, int64_t i)
{
    return (int64_t)number(tn_slice_axis(vector, 0, i, i + 1, 1));
}

/* The element of the pattern below, by its place in C order. */
static int64_t expected(int64_t i) { return (i / COLUMNS + 3 * (i % COLUMNS)) % 7; }

static void evaluate(const tn_array *x)
{
    if (tn_eval(x) != TN_OK)
        fail_msg("%s", tn_error());
}

/* The element at (r, c) is (r + 3 c) mod 7. */
static tn_array *pattern(void)
{
    tn_array *row = tn_arange(0, COLUMNS, 1), *column = tn_expand_dims(tn_arange(0, ROWS, 1), 1);
    tn_array *x = tn_cast(tn_remainder(tn_add(column, tn_multiply(row, 3)), 7), TN_INT8);
    evaluate(x);
    return x;
}

/* How many elements of the pattern are each of 0 to 6. */
static void count(int64_t *many)
{
    for (int v = 0; v < 7; v++)
        many[v] = (int64_t)ROWS * (COLUMNS / 7);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = COLUMNS / 7 * 7; c < COLUMNS; c++)
            many[(r + 3 * c) % 7]++;
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

/* Far elements by their positions, from both ends; a result that is as large as what it is taken from. */
static void test_gathers(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = pattern(), *flat = tn_flatten(x);
        const int64_t place[] = {0, far, -1, all - 1, far + 12345, -all, INT32_MAX % all, 5};
        tn_array *few = tn_take(flat, tn_from_int64s(place, 8), 0);
        for (int i = 0; i < 8; i++)
            assert_int_equal(at(few, i), expected(place[i] < 0 ? place[i] + all : place[i]));
        (void)tn_item(tn_take(flat, tn_from_int64s(&all, 1), 0));
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        tn_clear_error();
        tn_array *turned = tn_take(x, tn_arange(ROWS - 1, -1, -1, .dtype = TN_INT64), 0);
        evaluate(turned);
        const int64_t places[][2] = {{0, 0}, {ROWS - 1, COLUMNS - 1}, {ROWS / 10 * 9, 33}, {3, COLUMNS - 2}};
        for (int i = 0; i < 4; i++)
            assert_int_equal((int64_t)number(element(turned, places[i][0], places[i][1])),
                             expected((ROWS - 1 - places[i][0]) * COLUMNS + places[i][1]));
        tn_array *along = tn_take_along_axis(x, tn_full(TN_SHAPE(ROWS, 1), COLUMNS - 2, .dtype = TN_INT64), 1);
        assert_int_equal((int64_t)number(element(along, ROWS - 1, 0)), expected(all - 2));
    }
}

/* Few terms, one after another; many, of which the last ones stay. What is not zero is found there. */
static void test_scatters(void **state)
{
    (void)state;
    enum { MANY = 100 };
    TN_SCOPE {
        tn_array *flat = tn_flatten(pattern());
        const int64_t place[] = {far, all - 1, far, 17, -all};
        const int64_t term[] = {50, 60, 40, 70, 80};
        tn_array *y = tn_scatter_add(flat, tn_from_int64s(place, 5), tn_cast(tn_from_int64s(term, 5), TN_INT8), 0);
        evaluate(y);
        const int64_t found[] = {0, 17, far, all - 1}, sum[] = {80, 70, 90, 60};
        for (int i = 0; i < 4; i++)
            assert_int_equal(at(y, found[i]), expected(found[i]) + sum[i]);
        tn_array *where = tn_flatnonzero(tn_greater(y, 40));
        assert_int_equal(tn_size(where), 4);
        for (int i = 0; i < 4; i++)
            assert_int_equal(at(where, i), found[i]);
        int64_t many[MANY], value[MANY];
        for (int64_t i = 0; i < MANY; i++) {
            many[i] = all - 1 - i % (MANY / 2) * (all / 100);
            value[i] = i;
        }
        y = tn_scatter_set(flat, tn_from_int64s(many, MANY), tn_cast(tn_from_int64s(value, MANY), TN_INT8), 0);
        evaluate(y);
        for (int64_t i = 0; i < MANY / 2; i += 7)
            assert_int_equal(at(y, many[i]), i + MANY / 2);
        assert_int_equal(at(y, all - 2), expected(all - 2));
    }
}

/* Of all elements, and of each row; sums wrap around. */
static void test_scans(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = pattern();
        int64_t sum = 0, last = 0; /* of the rows before the last one; of that */
        for (int64_t r = 0; r < ROWS; r++) {
            int64_t row = COLUMNS / 7 * 21;
            for (int64_t c = COLUMNS / 7 * 7; c < COLUMNS; c++)
                row += (r + 3 * c) % 7;
            sum += r < ROWS - 1 ? row : 0;
            last = row;
        }
        tn_array *flat = tn_cumsum(x, .dtype = TN_INT8);
        evaluate(flat);
        assert_int_equal(at(flat, all - 1), (int8_t)(sum + last));
        assert_int_equal(at(flat, all - COLUMNS - 1), (int8_t)sum);
        assert_int_equal(at(flat, all - COLUMNS), (int8_t)(sum + expected(all - COLUMNS)));
        tn_array *rows = tn_cumsum(x, .axis = TN_AXES(1), .dtype = TN_INT8);
        assert_int_equal((int64_t)number(element(rows, ROWS - 1, COLUMNS - 1)), (int8_t)last);
        const int64_t peak = all - 5000; /* a maximum that stays */
        tn_array *peaks = tn_cummax(tn_scatter_add(tn_flatten(x), tn_from_int64s(&peak, 1),
                                                   tn_full(TN_SHAPE(1), 100, .dtype = TN_INT8), 0));
        evaluate(peaks);
        assert_int_equal(at(peaks, peak - 1), 6);
        assert_int_equal(at(peaks, peak), 100 + expected(peak));
        assert_int_equal(at(peaks, all - 1), 100 + expected(peak));
        assert_int_equal((int64_t)number(tn_argmax(peaks)), peak);
    }
}

/* Equal elements keep their order. */
static void test_sorting(void **state)
{
    (void)state;
    int64_t many[7], end[7];
    count(many);
    for (int v = 0; v < 7; v++)
        end[v] = many[v] + (v ? end[v - 1] : 0);
    TN_SCOPE {
        tn_array *flat = tn_flatten(pattern()), *sorted = tn_sort(flat);
        evaluate(sorted);
        for (int v = 0; v < 7; v++) {
            assert_int_equal(at(sorted, end[v] - 1), v);
            assert_int_equal(at(sorted, end[v] - many[v]), v);
        }
        tn_array *values = tn_cast(tn_arange(0, 7, 1), TN_INT8);
        tn_array *behind = tn_searchsorted(sorted, values, .right = true);
        for (int v = 0; v < 7; v++)
            assert_int_equal(at(behind, v), end[v]);
    }
    TN_SCOPE {
        tn_array *order = tn_argsort(tn_flatten(pattern()));
        evaluate(order);
        for (int v = 0; v < 7; v++) {
            int64_t first = 0, last = all - 1;
            while (expected(first) != v)
                first++;
            while (expected(last) != v)
                last--;
            assert_int_equal(at(order, end[v] - many[v]), first);
            assert_int_equal(at(order, end[v] - 1), last);
        }
    }
}

static void test_joined(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = pattern(), *half = tn_slice_axis(x, 0, 0, ROWS / 2, 1);
        tn_array *joined = tn_concatenate(TN_ARRAYS(x, half), 0);
        evaluate(joined);
        assert_int_equal((int64_t)number(element(joined, ROWS - 1, 7)), expected(all - COLUMNS + 7));
        assert_int_equal((int64_t)number(element(joined, ROWS + ROWS / 2 - 1, COLUMNS - 1)),
                         expected((int64_t)(ROWS / 2) * COLUMNS - 1));
    }
}

/* Rows of softmax: of halves in float32. */
static void test_softmax(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *y = tn_softmax(tn_cast(pattern(), TN_FLOAT16), 1);
        evaluate(y);
        double sum = 0, here = 0;
        for (int64_t c = 0; c < COLUMNS; c++)
            sum += exp((double)((ROWS - 1 + 3 * c) % 7));
        here = exp((double)expected(all - 1)) / sum;
        assert_true(fabs(number(element(y, ROWS - 1, COLUMNS - 1)) - here) <= 1e-7 + here * 2e-3);
    }
}

int main(void)
{
    if (test_no_gpu())
        return TEST_SKIPPED;
    if (tn_set_device(tn_cuda(0)) != TN_OK || tn_memory_stats(tn_cuda(0)).total < (size_t)all * 12) {
        printf("a GPU with too little memory\n");
        tn_clear_error();
        return 77;
    }
    tn_set_compile(TN_COMPILE_ALWAYS);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise), cmocka_unit_test(test_reductions),
                                       cmocka_unit_test(test_transposed), cmocka_unit_test(test_gathers),
                                       cmocka_unit_test(test_scatters),   cmocka_unit_test(test_scans),
                                       cmocka_unit_test(test_sorting),    cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_softmax)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
