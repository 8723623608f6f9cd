/* SPDX-License-Identifier: MIT */
/* The shortest digits of numbers, against the C library's conversions: what reads back as the number, with no fewer
 * digits than any that do, and the nearest to it of those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/text/digits.h"
#include "support/random.h"

#define ROUNDS 20000
static test_random chance;

/* "d.dddde12" */
static void text_of(const tn__digits *d, char text[64])
{
    snprintf(text, 64, "%c.%.*se%d", d->digit[0], d->count - 1, d->digit + 1, d->exponent);
}

static bool reads_back(const char *text, double x, tn_dtype dtype)
{
    return dtype == TN_FLOAT64 ? strtod(text, NULL) == x : strtof(text, NULL) == (float)x;
}

/* The decimal of so many digits above one of "%e", where the upper neighbour is further away than the lower one. */
static bool next_reads_back(const char *text, double x, tn_dtype dtype)
{
    char digits[64];
    int count = 0, exponent = 0;
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at != '.')
            digits[count++] = *at;
    exponent = atoi(at + 1);
    digits[count] = '\0';
    char next[96];
    snprintf(next, sizeof next, "%llue%d", strtoull(digits, NULL, 10) + 1, exponent - count + 1);
    return reads_back(next, x, dtype);
}

static void check(double x, tn_dtype dtype)
{
    char text[64], rounded[64];
    tn__digits d = tn__digits_shortest(x, dtype);
    text_of(&d, text);
    if (!reads_back(text, fabs(x), dtype))
        fail_msg("%a became %s", x, text);
    assert_true(d.count == 1 || d.digit[d.count - 1] != '0');
    if (d.count > 1) {
        snprintf(rounded, sizeof rounded, "%.*e", d.count - 2, fabs(x));
        if (reads_back(rounded, fabs(x), dtype) || next_reads_back(rounded, fabs(x), dtype))
            fail_msg("%a became %s, and %s is shorter", x, text, rounded);
    }
    snprintf(rounded, sizeof rounded, "%.*e", d.count - 1, fabs(x));
    if (reads_back(rounded, fabs(x), dtype) && strtold(rounded, NULL) != strtold(text, NULL))
        fail_msg("%a became %s, and %s is nearer", x, text, rounded);
}

/* Of any size; below 1, as losses are; powers of two, whose neighbours are not equally far; decimals; whole ones. */
static double draw(int kind)
{
    union {
        uint64_t bits;
        double value;
    } any = {test_random_bits(&chance)};
    char decimal[32];
    switch (kind) {
    case 0:
        return any.value;
    case 1:
        return test_random_double(&chance);
    case 2:
        return ldexp(1, (int)test_random_int(&chance, -1074, 1023));
    case 3:
        snprintf(decimal, sizeof decimal, "%de%d", (int)test_random_int(&chance, 1, 999999),
                 (int)test_random_int(&chance, -30, 40));
        return strtod(decimal, NULL);
    default:
        return (double)(any.bits >> (any.bits % 61));
    }
}

static void test_doubles(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        double x = draw(i % 5);
        if (isfinite(x) && x != 0)
            check(x, TN_FLOAT64);
    }
}

static void test_floats(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        union {
            uint32_t bits;
            float value;
        } any = {(uint32_t)(test_random_bits(&chance) >> 32)};
        float x = i % 3 == 0 ? any.value : (float)draw(i % 5);
        if (isfinite(x) && x != 0)
            check(x, i % 2 ? TN_FLOAT32 : TN_BFLOAT16);
    }
}

static void test_known(void **state)
{
    (void)state;
    static const struct {
        double x;
        tn_dtype dtype;
        const char *text;
    } known[] = {{0, TN_FLOAT64, "0.e0"},
                 {5e-324, TN_FLOAT64, "5.e-324"},
                 {1e23, TN_FLOAT64, "1.e23"},
                 {9007199254740993.0, TN_FLOAT64, "9.007199254740992e15"},
                 {0x1p-44, TN_FLOAT64, "5.684341886080802e-14"},
                 {0x1.fffffffffffffp1023, TN_FLOAT64, "1.7976931348623157e308"},
                 {-0.1, TN_FLOAT64, "1.e-1"},
                 {0x1p-1022, TN_FLOAT64, "2.2250738585072014e-308"},
                 {0x1p-149, TN_FLOAT32, "1.e-45"},
                 {(double)0.1f, TN_FLOAT32, "1.e-1"},
                 {0x1p25, TN_FLOAT32, "3.3554432e7"},
                 {0x1p-24, TN_FLOAT16, "6.e-8"},
                 {65504, TN_FLOAT16, "6.55e4"},
                 {0x1.554p-2, TN_FLOAT16, "3.333e-1"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[64];
        tn__digits d = tn__digits_shortest(known[i].x, known[i].dtype);
        text_of(&d, text);
        assert_string_equal(text, known[i].text);
    }
}

int main(void)
{
    chance = test_random_new();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubles), cmocka_unit_test(test_floats),
                                       cmocka_unit_test(test_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
