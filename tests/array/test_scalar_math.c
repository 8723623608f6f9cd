/* SPDX-License-Identifier: MIT */
/* The kernel dialect's real functions: accuracy against wider types, special values, the same bits always. */
#include <stdio.h>

#include "array/scalar_check.h"

/* ---- references ---- */

static double ref_rsqrt(double x) { return 1 / sqrt(x); }
static double ref_relu(double x) { return x <= 0 ? 0 : x; }
static double ref_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double ref_softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double ref_gelu(double x) { return x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * sqrt(0.5)); }
static long double ref_rsqrtl(long double x) { return 1 / sqrtl(x); }
static long double ref_sigmoidl(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static long double ref_softplusl(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static long double ref_gelul(long double x) { return x == -INFINITY ? -0.0L : 0.5L * x * erfcl(-x * sqrtl(0.5L)); }

/* ---- functions of one float32, with the largest error allowed in ulps ---- */

typedef struct {
    const char *name;
    float (*f)(float);
    double (*reference)(double);
    double bound;
} case_f32;

#define F32(name, reference, bound) {#name, tns_##name##_f32, reference, bound}
static const case_f32 cases_f32[] = {
    F32(exp, exp, 1.1),         F32(exp2, exp2, 1.1),       F32(expm1, expm1, 1.8),
    F32(log, log, 1.0),         F32(log2, log2, 0.51),      F32(log10, log10, 0.51),
    F32(log1p, log1p, 1.1),     F32(sqrt, sqrt, 0.5),       F32(rsqrt, ref_rsqrt, 1.5),
    F32(cbrt, cbrt, 0.51),      F32(sin, sin, 1.7),         F32(cos, cos, 1.7),
    F32(tan, tan, 0.6),         F32(asin, asin, 2.8),       F32(acos, acos, 1.5),
    F32(atan, atan, 1.8),       F32(sinh, sinh, 0.51),      F32(cosh, cosh, 0.51),
    F32(tanh, tanh, 1.5),       F32(asinh, asinh, 0.51),    F32(acosh, acosh, 0.51),
    F32(atanh, atanh, 0.51),    F32(erf, erf, 1.2),         F32(erfc, erfc, 3.9),
    F32(sigmoid, ref_sigmoid, 2.6), F32(softplus, ref_softplus, 1.9), F32(gelu, ref_gelu, 4.3),
    F32(relu, ref_relu, 0),     F32(floor, floor, 0),       F32(ceil, ceil, 0),
    F32(trunc, trunc, 0),       F32(rint, rint, 0),
};

/* The error of y in ulps of the exact value's binade; infinite when NaN, infinity or a zero's sign are wrong. */
static double error_f32(float y, double exact)
{
    float rounded = (float)exact;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0 : INFINITY;
    if (isinf(exact))
        return y == exact ? 0 : INFINITY;
    if (rounded == 0 && y == 0)
        return signbit(y) == signbit(rounded) ? 0 : INFINITY;
    double value = isinf(y) ? copysign(0x1p128, y) : y; /* infinity stands for the number after the largest */
    int e = fabs(exact) < 0x1p-126 ? -125 : ilogb(exact) + 1;
    return fabs(value - exact) / ldexp(1, (e > 128 ? 128 : e) - 24) * (isinf(y) && fabs(exact) > 0x1p128 ? 0 : 1);
}

static void check_f32(const case_f32 *c, float x)
{
    float y = c->f(x);
    double exact = c->reference(x), error = error_f32(y, exact);
    CHECK(error <= c->bound, "%s(%a) = %a, expected %a: %g ulp\n", c->name, (double)x, (double)y, exact, error);
}

static const float specials[] = {
    0.0f,     -0.0f,    1.0f,     -1.0f,    0.5f,     -0.5f,    2.0f,     -2.0f,    0x1p-149f, -0x1p-149f, 0x1p-126f,
    0x1p-24f, -0x1p-24f, 0x1p-25f, -0x1p-25f, 0x1p24f, -0x1p24f, 0x1p31f,  0x1p127f, 0x1.fffffep127f, -0x1.fffffep127f,
    88.722839f, 88.722847f, -103.97208f, -103.97209f, -87.33655f, 127.99999f, 128.0f, -149.0f, -150.0f, 1e-20f, 1e20f,
    0x1.921fb6p0f, 0x1.921fb6p-1f, 0x1.4442d6p28f, 16367173.0f * 0x1p72f, 0.99999994f, 1.0000001f, -0.99999994f,
    -1.0000001f,     9.9f, -9.9f, 10.1f, 14.7f, -14.5f, -13.1f, 0.9f, 0.625f, 0.6f, 0.41f, 2.5f, 3.5f, 8388609.0f,
};

static void test_f32(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof cases_f32 / sizeof *cases_f32; k++) {
        const case_f32 *c = &cases_f32[k];
        for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
            for (int step = -3; step <= 3; step++)
                check_f32(c, tns_f32_bits(tns_bits_f32(specials[i]) + (tn_u32)(specials[i] == 0 ? 0 : step)));
        check_f32(c, INFINITY);
        check_f32(c, -INFINITY);
        check_f32(c, NAN);
        for (int i = 0; i < 200000; i++) {
            tn_u32 bits = (tn_u32)next();
            check_f32(c, tns_f32_bits(bits));                                 /* every magnitude alike */
            check_f32(c, (float)((int)bits >> 8) * 0x1p-19f);                 /* [-16, 16) */
            check_f32(c, (float)((int)bits >> 8) * 0x1p-16f);                 /* [-128, 128) */
        }
    }
}

/* ---- float64: against long double, in ulps ---- */

typedef struct {
    const char *name;
    double (*f)(double);
    long double (*reference)(long double);
    double bound;
} case_f64;

#define F64(name, reference, bound) {#name, tns_##name##_f64, reference, bound}
#define LIBM 6 /* the C library's own: glibc's cbrt has been seen 3 ulps off */
static const case_f64 cases_f64[] = {
    F64(exp, expl, 1.2),       F64(exp2, exp2l, 1.2),     F64(expm1, expm1l, 2.2),     F64(log, logl, 1),
    F64(log1p, log1pl, 1.2),   F64(tanh, tanhl, 3),       F64(sigmoid, ref_sigmoidl, 2.7),
    F64(softplus, ref_softplusl, 2), F64(rsqrt, ref_rsqrtl, 1.6), F64(gelu, ref_gelul, 2000) /* x^2 ulps in the tail */,
    F64(log2, log2l, LIBM),       F64(log10, log10l, LIBM),   F64(sqrt, sqrtl, 0.51),    F64(cbrt, cbrtl, LIBM),
    F64(sin, sinl, 1),         F64(cos, cosl, 1),         F64(tan, tanl, 2.6),       F64(asin, asinl, LIBM),
    F64(acos, acosl, LIBM),       F64(atan, atanl, LIBM),       F64(sinh, sinhl, LIBM),       F64(cosh, coshl, LIBM),
    F64(asinh, asinhl, LIBM),     F64(acosh, acoshl, LIBM),     F64(atanh, atanhl, LIBM),     F64(erf, erfl, 1.3),
    F64(erfc, erfcl, 3.7),       F64(floor, floorl, 0),     F64(ceil, ceill, 0),       F64(trunc, truncl, 0),
    F64(rint, rintl, 0),
};

static double error_f64(double y, long double exact)
{
    double rounded = (double)exact;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(y)) /* at the threshold either side will do */
        return y == rounded || (fabsl(exact) > 0x1.fffffffffffffp1023L && fabs(y) > 0x1p1023) ? 0 : INFINITY;
    if (rounded == 0 && y == 0)
        return signbit(y) == signbit(rounded) ? 0 : INFINITY;
    int e = fabsl(exact) < 0x1p-1022L ? -1021 : ilogbl(exact) + 1;
    return (double)(fabsl((long double)y - exact) / ldexpl(1, e - 53));
}

static void check_f64(const case_f64 *c, double x)
{
    double y = c->f(x), error = error_f64(y, c->reference(x));
    CHECK(error <= c->bound, "%s(%a) = %a, expected %La: %g ulp\n", c->name, x, y, c->reference(x), error);
}

static void test_f64(void **unused)
{
    (void)unused;
    const double special[] = {0.0,
                              -0.0,
                              1,
                              -1,
                              0x1p-1074,
                              -0x1p-1074,
                              0x1p-1022,
                              0x1p-53,
                              -0x1p-54,
                              0x1p52,
                              0x1p53,
                              709.78271289338397,
                              709.78271289338409,
                              -745.13321910194111,
                              -745.13321910194122,
                              1024,
                              -1074,
                              -1075,
                              1e308,
                              -1e308,
                              0.5,
                              -0.5,
                              2.5,
                              3.5,
                              19.1,
                              -40.1,
                              INFINITY,
                              -INFINITY,
                              NAN};
    for (size_t k = 0; k < sizeof cases_f64 / sizeof *cases_f64; k++) {
        const case_f64 *c = &cases_f64[k];
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            check_f64(c, special[i]);
        for (int i = 0; i < 40000; i++) {
            uint64_t bits = next();
            if (!(fabs(tns_f64_bits(bits)) > 1e16)) /* x87's trigonometric functions lose their argument there */
                check_f64(c, tns_f64_bits(bits));
            check_f64(c, (double)((int64_t)bits >> 11) * 0x1p-48);
            check_f64(c, (double)((int64_t)bits >> 11) * 0x1p-43);
        }
    }
}

/* ---- two operands ---- */

static void check_pow(float x, float y)
{
    double error = error_f32(tns_pow_f32(x, y), pow(x, y));
    CHECK(error <= 0.51, "pow(%a, %a) = %a, expected %a\n", (double)x, (double)y, (double)tns_pow_f32(x, y), pow(x, y));
}

static double ref_logaddexp(double a, double b)
{
    return a == b ? a + log(2) : isnan(a - b) ? NAN : fmax(a, b) + log1p(exp(-fabs(a - b)));
}

static void check_two(float a, float b)
{
    check_pow(a, b);
    check_pow(fabsf(a), b);
    double error = error_f32(tns_hypot_f32(a, b), hypot(a, b));
    CHECK(error <= 0.51, "hypot(%a, %a): %g ulp\n", (double)a, (double)b, error);
    error = error_f32(tns_atan2_f32(a, b), atan2(a, b));
    CHECK(error <= 2.6, "atan2(%a, %a): %g ulp\n", (double)a, (double)b, error);
    /* Near its zero a sum of two numbers is as good as their ulps. */
    double exact = ref_logaddexp(a, b);
    error = error_f32(tns_logaddexp_f32(a, b), exact);
    if (isfinite(exact) && error > 2)
        error = fabs(tns_logaddexp_f32(a, b) - exact) * 0x1p23 / fmax(fabs((double)a), fabs((double)b));
    CHECK(error <= 2, "logaddexp(%a, %a): %g ulp\n", (double)a, (double)b, error);
    double wide = ref_logaddexp((double)a, (double)b);
    CHECK(isnan(wide) ? isnan(tns_logaddexp_f64(a, b))
                      : wide == tns_logaddexp_f64(a, b) ||
                            fabs(wide - tns_logaddexp_f64(a, b)) <= 1e-15 * (1 + fabs((double)a) + fabs((double)b)),
          "logaddexp_f64(%a, %a)\n", (double)a, (double)b);
}

static void test_two_operands(void **unused)
{
    (void)unused;
    const float v[] = {0.0f,   -0.0f,   1,     -1,     2,           -2,       3,         -3,
                       0.5f,   -0.5f,   1.5f,  -2.5f,  16777215,    16777216, 33554436,  -16777218,
                       1e-40f, -1e-40f, 1e38f, -1e38f, 0.99999994f, INFINITY, -INFINITY, NAN};
    enum { COUNT = sizeof v / sizeof *v };
    for (int k = 0; k < COUNT * COUNT; k++)
        check_two(v[k / COUNT], v[k % COUNT]);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next();
        check_two(tns_f32_bits((tn_u32)bits), tns_f32_bits((tn_u32)(bits >> 32)));
        check_two((float)((int)bits >> 8) * 0x1p-19f, (float)((int)(bits >> 32) >> 8) * 0x1p-19f);
        check_two((float)((int)bits >> 8) * 0x1p-19f, (float)((int)(bits >> 32) >> 28));
    }
    for (int k = -37; k <= 38; k++) /* what a user would notice */
        assert_true(tns_log10_f32((float)pow(10, k)) == (float)k || k < 0);
    for (int k = -149; k < 128; k++)
        assert_true(tns_log2_f32(ldexpf(1, k)) == (float)k && tns_exp2_f32((float)k) == ldexpf(1, k));
    assert_true(tns_exp_f32(0) == 1 && tns_exp_f64(0) == 1 && tns_log_f32(1) == 0 && tns_log_f64(1) == 0);
    assert_true(tns_cbrt_f32(27) == 3 && tns_pow_f32(10, 10) == 1e10f && tns_pow_f64(2, 0.5) == sqrt(2));
    assert_true(tns_hypot_f64(3, 4) == 5 && tns_atan2_f64(1, 1) == atan(1));
}

/*
 * ---- the same bits from every build, without and with fused multiply-adds: hashes of float32 results over a fixed
 * sweep, NaNs made alike ----
 */
#ifdef __FMA__
#define FUSED 1
#else
#define FUSED 0
#endif

static const struct {
    const char *name;
    float (*f)(float);
    uint32_t plain, fused;
} sweeps[] = {
    {"exp", tns_exp_f32, 0xc6f6909a, 0xacd218db},
    {"exp2", tns_exp2_f32, 0x15e08649, 0xdaeffc19},
    {"expm1", tns_expm1_f32, 0x69dfc4f4, 0x8079c395},
    {"log", tns_log_f32, 0xd97dd8d7, 0xf25858fe},
    {"log1p", tns_log1p_f32, 0xb9beb794, 0x62c45cf2},
    {"log2", tns_log2_f32, 0xafae6222, 0xafae6222},
    {"log10", tns_log10_f32, 0xde747647, 0xde747647},
    {"tanh", tns_tanh_f32, 0x19565797, 0x719ecf62},
    {"sigmoid", tns_sigmoid_f32, 0xe6280048, 0x690b04b3},
    {"softplus", tns_softplus_f32, 0x57945bea, 0xa4b046aa},
    {"erf", tns_erf_f32, 0xfd2441b1, 0xb6956596},
    {"erfc", tns_erfc_f32, 0x17849135, 0x2bc906dd},
    {"gelu", tns_gelu_f32, 0x79e1809f, 0x672c9d10},
    {"sin", tns_sin_f32, 0x9ea04df1, 0x6a7c9db7},
    {"cos", tns_cos_f32, 0x402d3a82, 0x84bf1cff},
    {"tan", tns_tan_f32, 0x3b511730, 0x3b511730},
    {"sinh", tns_sinh_f32, 0xff59308b, 0xff59308b},
    {"cosh", tns_cosh_f32, 0x3ebdcebc, 0x3ebdcebc},
    {"asinh", tns_asinh_f32, 0x69cc4a7a, 0x69cc4a7a},
    {"acosh", tns_acosh_f32, 0x96560157, 0x96560157},
    {"atanh", tns_atanh_f32, 0xdf0df9ab, 0xdf0df9ab},
    {"cbrt", tns_cbrt_f32, 0x48a420bd, 0x48a420bd},
    {"asin", tns_asin_f32, 0x089f9d56, 0x089f9d56},
    {"acos", tns_acos_f32, 0x03eb9faa, 0x03eb9faa},
    {"atan", tns_atan_f32, 0x839d6a86, 0x839d6a86},
    {"rsqrt", tns_rsqrt_f32, 0x457a6923, 0x457a6923},
};

static void test_same_bits(void **unused)
{
    (void)unused;
    int wrong = 0;
    for (size_t k = 0; k < sizeof sweeps / sizeof *sweeps; k++) {
        uint32_t hash = 0;
        for (uint32_t i = 0; i < 1u << 18; i++) {
            float y = sweeps[k].f(tns_f32_bits(i * 16384u + (i * 2654435761u >> 18)));
            hash = hash * 31 + tns_bits_f32(isnan(y) ? 7.0f : y);
        }
        if (hash != (FUSED ? sweeps[k].fused : sweeps[k].plain))
            print_error("    {\"%s\", tns_%s_f32, 0x%08x},\n", sweeps[k].name, sweeps[k].name, hash), wrong++;
    }
    assert_int_equal(wrong, 0); /* a changed formula prints its new rows above; anything else broke reproducibility */
}

int main(void)
{
#ifdef __FMA__
    if (!__builtin_cpu_supports("fma"))
        return 77; /* ctest: skipped */
#endif
    chance = test_random_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_two_operands),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
