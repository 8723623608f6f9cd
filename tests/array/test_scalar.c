/* SPDX-License-Identifier: MIT */
/* The kernel dialect's conversions, casts and arithmetic, against wider types, counting and NumPy's results. */
#include <stdlib.h>

#include "array/scalar_check.h"

/* Equal as numbers with the sign of zero, or both NaN. */
static int same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* ---- float16 and bfloat16 ---- */

/* The value of a format with `mantissa` bits and `exponent` bits, from the standard's formula. */
static double decode(unsigned h, int mantissa, int exponent)
{
    int bias = (1 << (exponent - 1)) - 1, e = (h >> mantissa) & ((1 << exponent) - 1);
    double fraction = (h & ((1u << mantissa) - 1)) / (double)(1 << mantissa), v;
    if (e == (1 << exponent) - 1)
        v = fraction != 0 ? NAN : INFINITY;
    else
        v = e == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, e - bias);
    return (h >> (mantissa + exponent)) & 1 ? -v : v;
}

typedef struct {
    const char *name;
    int mantissa, exponent;
    float (*widen)(unsigned short);
    unsigned short (*from_f32)(float);
    unsigned short (*from_f64)(double);
} half_format;

static const half_format formats[] = {
    {"float16", 10, 5, tn_f16_to_f32, tn_f32_to_f16, tn_f64_to_f16},
    {"bfloat16", 7, 8, tn_bf16_to_f32, tn_f32_to_bf16, tn_f64_to_bf16},
};

static void check_round(const half_format *f, double x, unsigned expected)
{
    if ((double)(float)x == x)
        CHECK(f->from_f32((float)x) == expected, "%s from f32 %a: %x, expected %x\n", f->name, x,
              f->from_f32((float)x), expected);
    CHECK(f->from_f64(x) == expected, "%s from f64 %a: %x, expected %x\n", f->name, x,
          f->from_f64(x), expected);
}

/* Every value both ways; between neighbours the midpoint goes to the even one, its two sides to the nearer one. */
static void test_half_every_value(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const half_format *f = &formats[k];
        unsigned infinity = ((1u << f->exponent) - 1) << f->mantissa;
        for (unsigned h = 0; h < 65536; h++) {
            double v = decode(h, f->mantissa, f->exponent);
            CHECK(same(f->widen((unsigned short)h), v), "%s %x widens to %a\n", f->name, h,
                  (double)f->widen((unsigned short)h));
            unsigned sign = h & 0x8000, mag = h & 0x7fff;
            if (mag > infinity) {
                unsigned quiet = h | 1u << (f->mantissa - 1);
                CHECK(f->from_f32(f->widen((unsigned short)h)) == quiet, "%s NaN %x\n", f->name, h);
                CHECK(isnan(f->widen(f->from_f64(NAN))), "%s from a float64 NaN\n", f->name);
                continue;
            }
            check_round(f, v, h);
            if (mag == infinity)
                continue;
            double up = decode(mag + 1, f->mantissa, f->exponent), low = fabs(v);
            if (mag + 1 == infinity) /* overflow: as if one more binade followed */
                up = 2 * low - decode(mag - 1, f->mantissa, f->exponent);
            double middle = low + (up - low) / 2, s = sign ? -1 : 1;
            check_round(f, s * middle, sign | (mag + (mag & 1)));
            check_round(f, s * nextafter(middle, 0), sign | mag);
            check_round(f, s * nextafter(middle, INFINITY), sign | (mag + 1));
            check_round(f, s * nextafterf((float)middle, 0), sign | mag);
            check_round(f, s * nextafterf((float)middle, INFINITY), sign | (mag + 1));
        }
        check_round(f, 1e300, infinity);
        check_round(f, -1e300, infinity | 0x8000);
        check_round(f, 1e-300, 0);
        check_round(f, -1e-300, 0x8000);
    }
}

/* ---- integers: every type against __int128 ---- */

typedef __int128 wide;

static wide wrap(wide x, int bits, int is_signed)
{
    unsigned __int128 u = (unsigned __int128)x & (((unsigned __int128)1 << bits) - 1);
    return is_signed && (u >> (bits - 1)) ? (wide)u - ((wide)1 << bits) : (wide)u;
}

static wide product(wide a, wide b)
{
    return (wide)((unsigned __int128)a * (unsigned __int128)b);
}

static wide floor_divide(wide a, wide b)
{
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static wide power(wide a, wide n, int bits, int is_signed)
{
    wide r = 1;
    while (n-- > 0)
        r = wrap(product(r, a), bits, is_signed);
    return r;
}

#define EXPECT(op, s, args, value) \
    CHECK((wide)tns_##op##_##s args == (wide)(value), "tns_" #op "_" #s " of %lld and %lld: %lld\n", \
          (long long)a, (long long)b, (long long)tns_##op##_##s args)
#define WRAP(x) wrap(x, bits, is_signed)

#define INTEGER_TEST(s, T, bits_, is_signed_) \
    static void test_##s(void **unused) \
    { \
        (void)unused; \
        enum { bits = bits_, is_signed = is_signed_, edges = 14, count = 90 }; \
        const wide half = (wide)1 << (bits - 1); \
        const wide edge[edges] = {0,    1,     2,        3,        -1,   -2,      7, \
                                  half, -half, half - 1, 1 - half, bits, bits - 1, -7}; \
        T v[count]; \
        for (int i = 0; i < count; i++) \
            v[i] = (T)(i < edges ? (uint64_t)edge[i] : next() >> (next() % 64)); \
        for (int i = 0; i < count * count; i++) { \
            T a = v[i / count], b = v[i % count]; \
            wide A = a, B = b, q = floor_divide(A, B), r = B == 0 ? 0 : A - q * B; \
            int out = B < 0 || B >= bits; \
            EXPECT(add, s, (a, b), WRAP(A + B)); \
            EXPECT(sub, s, (a, b), WRAP(A - B)); \
            EXPECT(mul, s, (a, b), WRAP(product(A, B))); \
            EXPECT(neg, s, (a), WRAP(-A)); \
            EXPECT(square, s, (a), WRAP(product(A, A))); \
            EXPECT(abs, s, (a), WRAP(A < 0 ? -A : A)); \
            EXPECT(sign, s, (a), (A > 0) - (A < 0)); \
            EXPECT(relu, s, (a), A > 0 ? A : 0); \
            EXPECT(floordiv, s, (a, b), WRAP(q)); \
            EXPECT(rem, s, (a, b), r); \
            EXPECT(fmod, s, (a, b), B == 0 ? 0 : A % B); \
            EXPECT(max, s, (a, b), A > B ? A : B); \
            EXPECT(min, s, (a, b), A < B ? A : B); \
            EXPECT(fmax, s, (a, b), A > B ? A : B); \
            EXPECT(fmin, s, (a, b), A < B ? A : B); \
            EXPECT(and, s, (a, b), WRAP(A & B)); \
            EXPECT(or, s, (a, b), WRAP(A | B)); \
            EXPECT(xor, s, (a, b), WRAP(A ^ B)); \
            EXPECT(not, s, (a), WRAP(~A)); \
            EXPECT(shl, s, (a, b), out ? 0 : WRAP((wide)((unsigned __int128)A << (int)B))); \
            EXPECT(shr, s, (a, b), out ? (A < 0 ? -1 : 0) : A >> (int)B); \
            EXPECT(eq, s, (a, b), A == B); \
            EXPECT(ne, s, (a, b), A != B); \
            EXPECT(lt, s, (a, b), A < B); \
            EXPECT(le, s, (a, b), A <= B); \
            EXPECT(gt, s, (a, b), A > B); \
            EXPECT(ge, s, (a, b), A >= B); \
            if (B >= 0 && B < 100) \
                EXPECT(pow, s, (a, b), power(A, B, bits, is_signed)); \
            EXPECT(cast_b8, s, (a), A != 0); \
            EXPECT(cast_i8, s, (a), wrap(A, 8, 1)); \
            EXPECT(cast_u8, s, (a), wrap(A, 8, 0)); \
            EXPECT(cast_i16, s, (a), wrap(A, 16, 1)); \
            EXPECT(cast_u16, s, (a), wrap(A, 16, 0)); \
            EXPECT(cast_i32, s, (a), wrap(A, 32, 1)); \
            EXPECT(cast_u32, s, (a), wrap(A, 32, 0)); \
            EXPECT(cast_i64, s, (a), wrap(A, 64, 1)); \
            EXPECT(cast_u64, s, (a), wrap(A, 64, 0)); \
            EXPECT(cast_f32, s, (a), (float)A); \
            EXPECT(cast_f64, s, (a), (double)A); \
            EXPECT(cast_f16, s, (a), tn_f64_to_f16((double)A)); \
            EXPECT(cast_bf16, s, (a), tn_f64_to_bf16((double)A)); \
        } \
    }

INTEGER_TEST(i8, tn_i8, 8, 1)
INTEGER_TEST(i16, tn_i16, 16, 1)
INTEGER_TEST(i32, tn_i32, 32, 1)
INTEGER_TEST(i64, tn_i64, 64, 1)
INTEGER_TEST(u8, tn_u8, 8, 0)
INTEGER_TEST(u16, tn_u16, 16, 0)
INTEGER_TEST(u32, tn_u32, 32, 0)
INTEGER_TEST(u64, tn_u64, 64, 0)

static void test_b8(void **unused)
{
    (void)unused;
    for (int k = 0; k < 4; k++) {
        tn_b8 a = k & 1, b = k >> 1;
        assert_int_equal(tns_add_b8(a, b), a || b);
        assert_int_equal(tns_mul_b8(a, b), a && b);
        assert_int_equal(tns_max_b8(a, b), a || b);
        assert_int_equal(tns_min_b8(a, b), a && b);
        assert_int_equal(tns_and_b8(a, b), a && b);
        assert_int_equal(tns_or_b8(a, b), a || b);
        assert_int_equal(tns_xor_b8(a, b), a != b);
        assert_int_equal(tns_not_b8(a), !a);
        assert_int_equal(tns_lt_b8(a, b), a < b);
        assert_int_equal(tns_eq_b8(a, b), a == b);
        assert_int_equal(tns_cast_i8_b8(a), a);
        assert_int_equal(tns_cast_b8_b8(a), a);
        assert_true(tns_cast_f32_b8(a) == (float)a);
        assert_int_equal(tns_cast_f16_b8(a), a ? 0x3c00 : 0);
    }
}

/* ---- float to integer: truncated toward zero, and beyond the range as NumPy has it on x86-64 ---- */

static int64_t truncated(double x, int64_t least)
{
    return x >= (double)least && x < -(double)least ? (int64_t)x : least;
}

static uint64_t truncated_u64(double x)
{
    return x >= 0x1p63 ? (uint64_t)truncated(x - 0x1p63, INT64_MIN) ^ 1ull << 63 : (uint64_t)truncated(x, INT64_MIN);
}

#define WRAPPED_i8(x)  ((tn_i8)truncated(x, INT32_MIN))
#define WRAPPED_i16(x) ((tn_i16)truncated(x, INT32_MIN))
#define WRAPPED_i32(x) ((tn_i32)truncated(x, INT32_MIN))
#define WRAPPED_i64(x) truncated(x, INT64_MIN)
#define WRAPPED_u8(x)  ((tn_u8)truncated(x, INT32_MIN))
#define WRAPPED_u16(x) ((tn_u16)truncated(x, INT32_MIN))
#define WRAPPED_u32(x) ((tn_u32)truncated(x, INT64_MIN))
#define WRAPPED_u64(x) truncated_u64(x)
#define EXPECT_CAST(t) \
    do { \
        CHECK(tns_cast_##t##_f64(x) == WRAPPED_##t(x), #t " of %a\n", x); \
        CHECK(tns_cast_##t##_f32(y) == WRAPPED_##t((double)y), #t " of f32 %a\n", (double)y); \
        CHECK(tns_cast_##t##_bf16(h) == WRAPPED_##t((double)z), #t " of bf16 %a\n", (double)z); \
    } while (0)

static void test_cast_float(void **unused)
{
    (void)unused;
    const double fixed[] = {0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1, -1, NAN, INFINITY, -INFINITY,
                            1e300, -1e300, 5e-324};
    enum { FIXED = sizeof fixed / sizeof *fixed };
    for (int k = 0; k < FIXED + 65 * 12 + 20000; k++) {
        double x;
        if (k < FIXED) {
            x = fixed[k];
        } else if (k < FIXED + 65 * 12) { /* every power of two and its neighbours */
            int m = k - FIXED, power_ = m / 12, way = m % 12;
            x = ldexp(1, power_) + (way % 3 - 1);
            x = way / 3 % 2 ? nextafter(x, way < 6 ? 0 : INFINITY) : x;
            x = way < 6 ? -x : x;
        } else {
            x = ldexp((double)(int64_t)next(), (int)(next() % 80) - 75);
        }
        float y = (float)x, z;
        tn_bf16 h = tn_f32_to_bf16(y);
        z = tn_bf16_to_f32(h);
        EXPECT_CAST(i8);
        EXPECT_CAST(i16);
        EXPECT_CAST(i32);
        EXPECT_CAST(i64);
        EXPECT_CAST(u8);
        EXPECT_CAST(u16);
        EXPECT_CAST(u32);
        EXPECT_CAST(u64);
        assert_int_equal(tns_cast_b8_f64(x), x != 0);
        assert_int_equal(tns_cast_b8_f32(y), y != 0);
        assert_true(same(tns_cast_f32_f64(x), y) && same(tns_cast_f64_f32(y), y));
        assert_int_equal(tns_cast_f16_bf16(h), tn_f32_to_f16(z));
    }
}

/* ---- float arithmetic ---- */

/* a, b, NumPy 1.24's floor_divide, remainder and fmod of float64 arrays */
static const double divisions[][5] = {
    {7, 3, 2, 1, 1},
    {-7, 3, -3, 2, -1},
    {7, -3, -3, -2, 1},
    {-7, -3, 2, -1, -1},
    {7.5, 2.5, 3, 0.0, 0.0},
    {-7.5, 2.5, -3, 0.0, -0.0},
    {0.0, 3, 0.0, 0.0, 0.0},
    {-0.0, 3, -0.0, 0.0, -0.0},
    {0.0, -3, -0.0, -0.0, 0.0},
    {6, -3, -2, -0.0, 0.0},
    {-6, 3, -2, 0.0, -0.0},
    {1, 0.0, INFINITY, NAN, NAN},
    {-1, 0.0, -INFINITY, NAN, NAN},
    {1, -0.0, -INFINITY, NAN, NAN},
    {0.0, 0.0, NAN, NAN, NAN},
    {INFINITY, 2, NAN, NAN, NAN},
    {-INFINITY, 2, NAN, NAN, NAN},
    {3, INFINITY, 0.0, 3, 3},
    {-3, INFINITY, -1, INFINITY, -3},
    {3, -INFINITY, -1, -INFINITY, 3},
    {NAN, 1, NAN, NAN, NAN},
    {1, NAN, NAN, NAN, NAN},
    {1e-30, 1e30, 0.0, 1e-30, 1e-30},
    {-1e-30, 1e30, -1, 1e30, -1e-30},
    {1, 0.1, 9, 0.09999999999999995, 0.09999999999999995},
    {5.3, -0.7, -8, -0.2999999999999998, 0.40000000000000013},
};

static void test_float_division(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof divisions / sizeof *divisions; k++) {
        const double *d = divisions[k];
        CHECK(same(tns_floordiv_f64(d[0], d[1]), d[2]), "%g // %g\n", d[0], d[1]);
        CHECK(same(tns_rem_f64(d[0], d[1]), d[3]), "%g %% %g\n", d[0], d[1]);
        CHECK(same(tns_fmod_f64(d[0], d[1]), d[4]), "fmod(%g, %g)\n", d[0], d[1]);
        float a = (float)d[0], b = (float)d[1];
        if (!same(a, d[0]) || !same(b, d[1]))
            continue;
        CHECK(same(tns_floordiv_f32(a, b), (float)d[2]), "f32 %g // %g\n", d[0], d[1]);
        CHECK(same(tns_rem_f32(a, b), (float)d[3]), "f32 %g %% %g\n", d[0], d[1]);
        CHECK(same(tns_fmod_f32(a, b), (float)d[4]), "f32 fmod(%g, %g)\n", d[0], d[1]);
    }
    /* The quotient is rounded to 3400061.75: NumPy too then takes the nearer integer. */
    assert_true(tns_floordiv_f32(39934.7383f, 0.0117452964f) == 3400062.0f);
}

static void test_float_selection(void **unused)
{
    (void)unused;
    const double v[] = {0.0, -0.0, 1, -1, 2.5, 1e-40, 1e308, INFINITY, -INFINITY, NAN};
    enum { COUNT = sizeof v / sizeof *v };
    for (int k = 0; k < COUNT * COUNT; k++) {
        double a = v[k / COUNT], b = v[k % COUNT];
        float c = (float)a, d = (float)b;
        double high = isnan(a) || isnan(b) ? NAN : a > b ? a : b, low = isnan(a) || isnan(b) ? NAN : a < b ? a : b;
        assert_true(same(tns_max_f64(a, b), high) && same(tns_max_f32(c, d), (float)high));
        assert_true(same(tns_min_f64(a, b), low) && same(tns_min_f32(c, d), (float)low));
        high = isnan(a) ? b : isnan(b) ? a : high;
        low = isnan(a) ? b : isnan(b) ? a : low;
        assert_true(same(tns_fmax_f64(a, b), high) && same(tns_fmax_f32(c, d), (float)high));
        assert_true(same(tns_fmin_f64(a, b), low) && same(tns_fmin_f32(c, d), (float)low));
        assert_true(same(tns_copysign_f64(a, b), copysign(a, b)) && same(tns_copysign_f32(c, d), copysignf(c, d)));
        assert_true(same(tns_div_f64(a, b), a / b) && same(tns_div_f32(c, d), c / d));
        assert_true(tns_eq_f64(a, b) == (a == b) && tns_ne_f64(a, b) == (a != b) && tns_lt_f64(a, b) == (a < b));
        assert_true(tns_le_f32(c, d) == (c <= d) && tns_gt_f32(c, d) == (c > d) && tns_ge_f32(c, d) == (c >= d));
        double sign = isnan(a) ? NAN : (a > 0) - (a < 0), relu = isnan(a) ? NAN : a > 0 ? a : 0.0;
        assert_true(same(tns_sign_f64(a), sign) && same(tns_relu_f64(a), relu));
        assert_true(same(tns_abs_f64(a), fabs(a)) && same(tns_abs_f32(c), fabsf(c)) && same(tns_neg_f32(c), -c));
        assert_true(same(tns_reciprocal_f32(c), 1 / c) && same(tns_square_f64(a), a * a));
        assert_int_equal(tns_isnan_f64(a), !!isnan(a));
        assert_int_equal(tns_isinf_f64(a), !!isinf(a));
        assert_int_equal(tns_isfinite_f64(a), !!isfinite(a));
        assert_int_equal(tns_signbit_f64(a), !!signbit(a));
        assert_int_equal(tns_isnan_f32(c), !!isnan(c));
        assert_int_equal(tns_isinf_f32(c), !!isinf(c));
        assert_int_equal(tns_isfinite_f32(c), !!isfinite(c));
        assert_int_equal(tns_signbit_f32(c), !!signbit(c));
    }
}

int main(void)
{
    chance = test_random_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_every_value),
        cmocka_unit_test(test_i8),
        cmocka_unit_test(test_i16),
        cmocka_unit_test(test_i32),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_u8),
        cmocka_unit_test(test_u16),
        cmocka_unit_test(test_u32),
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_b8),
        cmocka_unit_test(test_cast_float),
        cmocka_unit_test(test_float_division),
        cmocka_unit_test(test_float_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
