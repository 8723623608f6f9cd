/* SPDX-License-Identifier: MIT */
/* Parts written into filled arrays, large enough that the fill leaves out what is written over, against loops on the
 * host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { WRITES = 5, MOST = 300 };

static test_random chance;

static int64_t between(int64_t least, int64_t most) { return test_random_int(&chance, least, most); }

/* A GPU compiles kernels for each shape. */
static int rounds(void) { return test_same_bits() ? 40 : 8; }

/* A range of n positions: some neighbours, or every second, or every second from behind. */
static tn_key some_of(int64_t n, int64_t *start, int64_t *count, int64_t *step)
{
    *step = between(0, 5) ? 1 : between(0, 1) ? 2 : -2;
    int64_t first = between(0, n - 1), most = *step > 0 ? (n - 1 - first) / *step : first / -*step;
    *start = first;
    *count = between(0, most) + 1;
    int64_t stop = first + *step * *count;
    return TN_RANGE(first, stop < 0 ? TN_NONE : stop, *step);
}

static void check(const char *what, tn_array *x, const float *expected, int64_t size)
{
    float *got = malloc((size_t)size * sizeof *got);
    assert_non_null(got);
    if (tn_to_host(x, got, (size_t)size * sizeof *got) != TN_OK)
        fail_msg("%s: %s", what, tn_error());
    for (int64_t i = 0; i < size; i++)
        if (got[i] != expected[i])
            fail_msg("%s: element %lld is %g, expected %g", what, (long long)i, got[i], expected[i]);
    free(got);
}

/* Writes go on top of one another; what was there before one of them is read by others. */
static void test_writes(void **state)
{
    (void)state;
    float *expected = malloc(MOST * MOST * sizeof *expected), *before = malloc(MOST * MOST * sizeof *before);
    assert_true(expected && before);
    for (int round = 0; round < rounds(); round++)
        TN_SCOPE {
            int64_t rows = between(1, MOST), columns = between(1, MOST), writes = between(1, WRITES),
                    read = between(0, 2 * WRITES);
            tn_array *x = tn_full(TN_SHAPE(rows, columns), 7, .dtype = TN_FLOAT32), *early = NULL;
            for (int64_t i = 0; i < rows * columns; i++)
                expected[i] = 7;
            for (int64_t w = 0; w < writes; w++) {
                if (w == read) {
                    early = tn_multiply(x, 2);
                    for (int64_t i = 0; i < rows * columns; i++)
                        before[i] = 2 * expected[i];
                }
                int64_t start[2], count[2], step[2];
                tn_key key[2];
                key[0] = some_of(rows, &start[0], &count[0], &step[0]);
                key[1] = some_of(columns, &start[1], &count[1], &step[1]);
                bool whole = between(0, 1);
                int64_t size = whole ? count[0] * count[1] : 1;
                tn_array *value = tn_add(tn_arange(0, (double)size, 1, .dtype = TN_FLOAT32), (double)w);
                if (whole)
                    value = tn_reshape(value, TN_SHAPE(count[0], count[1]));
                assert_int_equal(tn_setitem(x, value, 2, key), TN_OK);
                for (int64_t i = 0; i < count[0]; i++)
                    for (int64_t j = 0; j < count[1]; j++)
                        expected[(start[0] + step[0] * i) * columns + start[1] + step[1] * j] =
                            (float)(w + (whole ? i * count[1] + j : 0));
            }
            const tn_array *both[] = {x, early};
            assert_int_equal(tn_eval_all(early ? 2 : 1, both), TN_OK);
            check("writes", x, expected, rows * columns);
            if (early)
                check("read before a write", early, before, rows * columns);
        }
    free(expected);
    free(before);
}

static void test_padding(void **state)
{
    (void)state;
    for (int round = 0; round < rounds() / 2; round++)
        TN_SCOPE {
            int64_t n[3], width[3][2], size = 1;
            for (int d = 0; d < 3; d++) {
                n[d] = between(1, 50);
                for (int side = 0; side < 2; side++)
                    width[d][side] = between(0, 3);
                size *= n[d] + width[d][0] + width[d][1];
            }
            tn_array *x = tn_reshape(tn_arange(0, (double)(n[0] * n[1] * n[2]), 1, .dtype = TN_FLOAT32),
                                     TN_SHAPE(n[0], n[1], n[2]));
            float *expected = calloc((size_t)size, sizeof *expected), next = 0;
            assert_non_null(expected);
            int64_t rows = n[1] + width[1][0] + width[1][1], columns = n[2] + width[2][0] + width[2][1];
            for (int64_t i = 0; i < n[0]; i++)
                for (int64_t j = 0; j < n[1]; j++)
                    for (int64_t k = 0; k < n[2]; k++)
                        expected[((i + width[0][0]) * rows + j + width[1][0]) * columns + k + width[2][0]] = next++;
            check("pad", tn_pad(x, width), expected, size);
            free(expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_writes), cmocka_unit_test(test_padding)};
    chance = test_random_new();
    tn_set_compile(TN_COMPILE_NEVER);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tn_set_compile(TN_COMPILE_ALWAYS);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
