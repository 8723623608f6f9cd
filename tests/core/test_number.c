/* SPDX-License-Identifier: MIT */
/* Numbers written without printf are what printf writes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/number.h"

static uint64_t state = 88172645463325252;

/* Xorshift (Marsaglia, 2003): the same numbers each time, as what is compared is exact. */
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void compare(double value)
{
    char text[TN__BRIEF_TEXT], expected[64];
    tn__print_brief(text, value);
    snprintf(expected, sizeof expected, "%.6g", value);
    if (strcmp(text, expected) != 0)
        fail_msg("%a is written as %s, and printf writes %s", value, text, expected);
}

/* A number, its neighbours, and what lies half-way between two that are written. */
static void compare_around(double value)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        compare(sign * value);
        compare(nextafter(sign * value, 0));
        compare(nextafter(sign * value, sign * INFINITY));
    }
}

static void test_brief(void **unused)
{
    (void)unused;
    static const double special[] = {0, 5e-324, 1e-5, 0.000123456, 0.5, 999999, 999999.5, 1e6, 1e300, INFINITY};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        compare_around(special[i]);
    compare(-0.0);
    compare(NAN);
    for (int power = -6; power <= 7; power++)
        for (int i = 0; i < 1000; i++) {
            double digits = (double)(100000 + next() % 900000), scale = pow(10, power - 5);
            compare_around(digits * scale);
            compare_around((digits + 0.5) * scale);
            compare_around((double)(next() >> 11) * 0x1p-53 * pow(10, power + 1));
        }
    for (int i = 0; i < 100000; i++) /* halves that are exact in binary */
        compare((double)(next() % 2000000000) / 1024);
}

static void test_whole(void **unused)
{
    (void)unused;
    static const int64_t special[] = {0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 1000; i++) {
        int64_t value = i < 8 ? special[i] : (int64_t)next() >> next() % 63;
        char text[TN__BRIEF_TEXT], expected[32];
        tn__print_whole(text, value);
        snprintf(expected, sizeof expected, "%lld", (long long)value);
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_brief), cmocka_unit_test(test_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
