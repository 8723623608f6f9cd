/* SPDX-License-Identifier: MIT */
/* The kernel dialect's random numbers: Philox's published vectors, the layout of streams, distributions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ops/scalar.h"
#include "support/random.h"

enum { COUNT = 1 << 18 };

/* A fresh key a run would fail a statistical test by chance now and then: bounds are 6 standard deviations. */
static uint64_t key;

#define CHECK(cond, ...) \
    do { \
        if (!(cond)) { \
            print_error("key %llu: ", (unsigned long long)key); \
            print_error(__VA_ARGS__); \
            fail(); \
        } \
    } while (0)

/* The philox4x32 10 lines of Random123's kat_vectors: counter, key, result. */
static void test_known_answers(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t low, high, key;
        uint32_t out[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        tn_u32 out[4];
        tns_philox(known[k].key, known[k].low, known[k].high, out);
        assert_memory_equal(out, known[k].out, sizeof out);
    }
}

static void test_layout(void **unused)
{
    (void)unused;
    const uint64_t offsets[] = {0, 12345, 0xfffffffe, UINT64_MAX - 1}; /* carries in and past the low word */
    for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
        for (uint64_t i = 0; i < 40; i++) {
            tn_u32 out[4];
            tns_philox(key, offsets[k] + i / 4, 0, out);
            assert_int_equal(tns_random_bits_u32(key, offsets[k], i), out[i % 4]);
            assert_true(tns_random_uniform_f32(key, offsets[k], i) == ldexpf((float)(out[i % 4] >> 8), -24));
            tns_philox(key, offsets[k] + i / 2, 0, out);
            uint64_t bits = out[i % 2 * 2] | (uint64_t)out[i % 2 * 2 + 1] << 32;
            assert_int_equal(tns_random_bits_u64(key, offsets[k], i), bits);
            assert_true(tns_random_uniform_f64(key, offsets[k], i) == ldexp((double)(bits >> 11), -53));
            for (uint64_t n = 1; n; n *= 3 + (i & 2)) {
                assert_int_equal(tns_random_below_u64(key, offsets[k], i, n),
                                 (uint64_t)((unsigned __int128)bits * n >> 64));
                if (n > UINT64_MAX / 5)
                    break;
            }
        }
    }
    assert_int_equal(tns_random_below_u64(key, 0, 0, 0), 0);
    assert_true(tns__uniform_f32(UINT32_MAX) < 1 && tns__uniform_f64(UINT64_MAX) < 1);
    assert_true(tns__uniform_f32(0) == 0 && tns__uniform_f64(0) == 0);
}

/* Mean, variance, skewness and kurtosis of count samples, each in its own standard deviations for a normal sample. */
static void check_normal(const char *name, double (*sample)(uint64_t))
{
    double s1 = 0, s2 = 0, s3 = 0, s4 = 0, lag = 0, tail = 0, previous = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double v = sample(i);
        CHECK(isfinite(v) && fabs(v) < 9.5, "%s element %llu is %g\n", name, (unsigned long long)i, v);
        s1 += v, s2 += v * v, s3 += v * v * v, s4 += v * v * v * v;
        lag += v * previous, tail += fabs(v) > 2;
        previous = v;
    }
    const double n = COUNT, root = sqrt(n), p = 0.04550026389635842;
    CHECK(fabs(s1 / root) < 6, "%s: mean %g\n", name, s1 / n);
    CHECK(fabs((s2 / n - 1) * root / sqrt(2)) < 6, "%s: second moment %g\n", name, s2 / n);
    CHECK(fabs(s3 / root / sqrt(15)) < 6, "%s: third moment %g\n", name, s3 / n);
    CHECK(fabs((s4 / n - 3) * root / sqrt(96)) < 6, "%s: fourth moment %g\n", name, s4 / n);
    CHECK(fabs(lag / root) < 6, "%s: neighbours correlate by %g\n", name, lag / n);
    CHECK(fabs(tail - n * p) < 6 * sqrt(n * p * (1 - p)), "%s: %g of %g beyond 2 sigma\n", name, tail, n);
}

static double normal_f32(uint64_t i)
{
    return tns_random_normal_f32(key, 17, i);
}

static double normal_f64(uint64_t i)
{
    return tns_random_normal_f64(key, 17, i);
}

static void test_normal(void **unused)
{
    (void)unused;
    check_normal("normal_f32", normal_f32);
    check_normal("normal_f64", normal_f64);
}

/* Against the formula in wider arithmetic, over the corners and random lanes. */
static void test_box_muller(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t a = tns_random_bits_u64(key, 5, 2 * i), b = tns_random_bits_u64(key, 5, 2 * i + 1);
        a = i < 16 ? (i & 1 ? UINT64_MAX : 0) + (i & 2 ? 1 : 0) : a;
        b = i < 16 ? (i >> 2) << 62 : b;
        uint32_t c = (uint32_t)(a >> 32), d = (uint32_t)(b >> 32);
        double r = sqrt(-2 * log(fmin(1, (double)(float)c * 0x1p-32 + 0x1p-33))), t = ldexp((double)d, -32) * 2 * M_PI;
        float x = tns__box_muller_f32(c, d, 0), y = tns__box_muller_f32(c, d, 1);
        CHECK(fabs(x - r * cos(t)) < 2e-6 && fabs(y - r * sin(t)) < 2e-6, "lanes %x %x: %g %g\n", c, d, x, y);
        long double u = ldexp((double)(a >> 11), -53) + 0x1p-54; /* 1 where it rounds up */
        long double rl = sqrtl(-2 * logl(u)), tl = ldexpl((long double)b, -64) * 2 * acosl(-1);
        double xl = tns__box_muller_f64(a, b, 0), yl = tns__box_muller_f64(a, b, 1);
        CHECK(fabsl(xl - rl * cosl(tl)) < 1e-14L && fabsl(yl - rl * sinl(tl)) < 1e-14L, "f64 lanes %llx %llx: %g %g\n",
              (unsigned long long)a, (unsigned long long)b, xl, yl);
    }
}

static void check_uniform(const char *name, const int *cell, int cells)
{
    double chi2 = 0, expected = (double)COUNT / cells;
    for (int k = 0; k < cells; k++)
        chi2 += (cell[k] - expected) * (cell[k] - expected) / expected;
    CHECK(fabs(chi2 - (cells - 1)) < 6 * sqrt(2.0 * (cells - 1)) + 10, "%s: chi squared %g of %d cells\n", name, chi2,
          cells);
}

static void test_uniform(void **unused)
{
    (void)unused;
    static int f32[256], f64[256], below[10], low[256];
    for (uint64_t i = 0; i < COUNT; i++) {
        f32[(int)(tns_random_uniform_f32(key, 9, i) * 256)]++;
        f64[(int)(tns_random_uniform_f64(key, 9, i) * 256)]++;
        low[tns_random_bits_u32(key, 9, i) & 255]++;
        below[tns_random_below_u64(key, 9, i, 10)]++;
    }
    check_uniform("uniform_f32", f32, 256);
    check_uniform("uniform_f64", f64, 256);
    check_uniform("low bits", low, 256);
    check_uniform("below 10", below, 10);
}

int main(void)
{
    key = test_random_new().state;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_layout),  cmocka_unit_test(test_normal),
        cmocka_unit_test(test_box_muller),    cmocka_unit_test(test_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
