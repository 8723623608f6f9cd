/* SPDX-License-Identifier: MIT */
/*
 * The real functions of float32 as a device computes them, in kernels, against the C library in float64: numbers of
 * every magnitude, and those that are special. The bounds are in ulps; those of scalar_math.h and scalar_gpu.h and a
 * little more.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

#define COUNT 60000

static const float specials[] = {0.0f,
                                 -0.0f,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 0.5f,
                                 -0.5f,
                                 1.5f,
                                 -2.5f,
                                 16777215,
                                 -16777218,
                                 1e-40f,
                                 -1e-40f,
                                 1e38f,
                                 -1e38f,
                                 0.99999994f,
                                 65536,
                                 -65536,
                                 0x1p-149f,
                                 -0x1p-149f,
                                 0x1p-126f,
                                 0x1.fffffep127f,
                                 -0x1.fffffep127f,
                                 0x1p28f,
                                 88.72284f,
                                 -14.5f,
                                 INFINITY,
                                 -INFINITY,
                                 NAN};
enum { SPECIALS = sizeof specials / sizeof *specials };

static float a[COUNT], b[COUNT];

/* Every special number with every other one; then numbers by their bits, of moderate size, and bases of powers above
 * 0. */
static void operands(void)
{
    uint32_t x = 12345;
    for (int i = 0; i < COUNT; i++) {
        x = x * 1664525u + 1013904223u;
        uint32_t y = x * 2654435761u ^ x >> 15;
        float wide;
        memcpy(&wide, &y, sizeof wide);
        float moderate = (float)((int32_t)x >> 8) * (i % 2 ? 0x1p-19f : 0x1p-16f);
        a[i] = i < SPECIALS * SPECIALS ? specials[i / SPECIALS]
               : i % 3 == 0            ? wide
               : i % 3 == 1            ? moderate
                                       : fabsf(moderate);
        b[i] = i < SPECIALS * SPECIALS ? specials[i % SPECIALS] : (float)((int32_t)y >> 8) * 0x1p-20f;
    }
}

static double ref_gelu(double x, double y) { return (void)y, x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * sqrt(0.5)); }
#define ONE(name) static double ref_##name(double x, double y) { return (void)y, name(x); }
ONE(sin) ONE(cos) ONE(tan) ONE(sinh) ONE(cosh) ONE(erf) ONE(erfc) ONE(log1p)
static double ref_real(double x, double y) { return y == 0 ? exp(x) : exp(x) * cos(y); }
static double ref_imaginary(double x, double y) { return y == 0 ? y : exp(x) * sin(y); }

static const struct {
    const char *name;
    double (*reference)(double, double);
    double bound;
    bool finite; /* of finite numbers only: of others C's complex exponential has rules of its own */
} cases[] = {
    {"sin", ref_sin, 1.8, false}, {"cos", ref_cos, 1.8, false}, {"tan", ref_tan, 0.6, false},
    {"sinh", ref_sinh, 0.6, false}, {"cosh", ref_cosh, 0.6, false}, {"erf", ref_erf, 1.6, false},
    {"erfc", ref_erfc, 3.9, false}, {"gelu", ref_gelu, 4.4, false}, {"log1p", ref_log1p, 1.2, false},
    {"power", pow, 0.6, false},
    {"exp's real part", ref_real, 0.6, true}, {"exp's imaginary part", ref_imaginary, 0.6, true},
};
enum { CASES = sizeof cases / sizeof *cases };

/* In ulps of the exact value's binade; infinite when NaN, infinity or a zero's sign are wrong. */
static double error_of(float y, double exact)
{
    float rounded = (float)exact;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0 : INFINITY;
    if (isinf(exact) || isinf(y))
        return y == rounded ? 0 : INFINITY;
    if (rounded == 0 && y == 0)
        return signbit(y) == signbit(rounded) ? 0 : INFINITY;
    int e = fabs(exact) < 0x1p-126 ? -125 : ilogb(exact) + 1;
    return fabs(y - exact) / ldexp(1, (e > 128 ? 128 : e) - 24);
}

static void test_errors(void **state)
{
    (void)state;
    operands();
    TN_SCOPE {
        const tn_array *x = tn_from_floats(a, COUNT), *y = tn_from_floats(b, COUNT), *z = tn_exp(tn_complex(x, y));
        const tn_array *got[CASES] = {tn_sin(x),  tn_cos(x),  tn_tan(x),   tn_sinh(x),     tn_cosh(x), tn_erf(x),
                                      tn_erfc(x), tn_gelu(x), tn_log1p(x), tn_power(x, y), tn_real(z), tn_imag(z)};
        assert_int_equal(tn_eval_all(CASES, got), TN_OK);
        for (int k = 0; k < CASES; k++) {
            const float *value = test_data(got[k]);
            assert_non_null(value);
            for (int i = 0; i < COUNT; i++) {
                double exact = cases[k].reference(a[i], b[i]), error = error_of(value[i], exact);
                if (cases[k].finite && !(isfinite(a[i]) && isfinite(b[i])))
                    continue;
                if (!(error <= cases[k].bound))
                    fail_msg("%s of %a (and %a) is %a, expected %a: %g ulp", cases[k].name, (double)a[i], (double)b[i],
                             (double)value[i], exact, error);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
