/* SPDX-License-Identifier: MIT */
/* Complex numbers: the formulas that GPUs compute elementary functions by, against libm's; promotion; text; files;
 * refusals. Values against NumPy's are replayed (tests/replay). */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#define TNS_COMPLEX_FORMULAS
#include "ops/scalar.h"
#include "support/device.h"
#include "support/folder.h"

static double relative(double _Complex a, double _Complex b)
{
    return cabs(a - b) / (cabs(b) + 1e-300);
}

static void test_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double _Complex (*formula)(double _Complex), (*libm)(double _Complex);
    } rows[] = {{"exp", tns_exp_c128, cexp},       {"log", tns_log_c128, clog},
                {"sqrt", tns_sqrt_c128, csqrt},    {"sin", tns_sin_c128, csin},
                {"cos", tns_cos_c128, ccos},       {"tan", tns_tan_c128, ctan},
                {"asin", tns_asin_c128, casin},    {"acos", tns_acos_c128, cacos},
                {"atan", tns_atan_c128, catan},    {"sinh", tns_sinh_c128, csinh},
                {"cosh", tns_cosh_c128, ccosh},    {"tanh", tns_tanh_c128, ctanh},
                {"asinh", tns_asinh_c128, casinh}, {"acosh", tns_acosh_c128, cacosh},
                {"atanh", tns_atanh_c128, catanh}};
    for (size_t f = 0; f < sizeof rows / sizeof *rows; f++)
        for (int i = -40; i <= 40; i++)
            for (int j = -40; j <= 40; j++) {
                double _Complex z = i * 0.137 + 0.0113 + (j * 0.171 + 0.0071) * I;
                double off = relative(rows[f].formula(z), rows[f].libm(z));
                if (!(off < 1e-13))
                    fail_msg("%s(%g%+gi): off by %g", rows[f].name, creal(z), cimag(z), off);
            }
}

/* The sides of the cuts, where the sign of a zero tells which. */
static void test_cuts(void **state)
{
    (void)state;
    static const double along[] = {-3, -0.5, 0.5, 3};
    for (int k = 0; k < 4; k++)
        for (int side = -1; side <= 1; side += 2) {
            double _Complex real = tns_make_c128(along[k], copysign(0, side)),
                            turned = tns_make_c128(copysign(0, side), along[k]);
            assert_true(relative(tns_log_c128(real), clog(real)) < 1e-13);
            assert_true(relative(tns_sqrt_c128(real), csqrt(real)) < 1e-13);
            assert_true(relative(tns_asin_c128(real), casin(real)) < 1e-13);
            assert_true(relative(tns_acos_c128(real), cacos(real)) < 1e-13);
            assert_true(relative(tns_acosh_c128(real), cacosh(real)) < 1e-13);
            assert_true(relative(tns_atanh_c128(real), catanh(real)) < 1e-13);
            assert_true(relative(tns_asinh_c128(turned), casinh(turned)) < 1e-13);
            assert_true(relative(tns_atan_c128(turned), catan(turned)) < 1e-13);
        }
}

static void test_promotion(void **state)
{
    (void)state;
    static const tn_dtype rows[][3] = {
        {TN_COMPLEX64, TN_FLOAT32, TN_COMPLEX64},   {TN_COMPLEX64, TN_FLOAT64, TN_COMPLEX128},
        {TN_COMPLEX64, TN_INT8, TN_COMPLEX64},
        {TN_COMPLEX64, TN_INT32, TN_COMPLEX128},    {TN_COMPLEX64, TN_BOOL, TN_COMPLEX64},
        {TN_COMPLEX128, TN_FLOAT16, TN_COMPLEX128},
        {TN_COMPLEX64, TN_COMPLEX128, TN_COMPLEX128}, {TN_COMPLEX64, TN_BFLOAT16, TN_COMPLEX64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_dtype_promote(rows[i][0], rows[i][1]), rows[i][2]);
        assert_int_equal(tn_dtype_promote(rows[i][1], rows[i][0]), rows[i][2]);
    }
    TN_SCOPE
    {
        tn_array *narrow = tn_ones(TN_SHAPE(2)), *wide = tn_ones(TN_SHAPE(2), .dtype = TN_FLOAT64);
        assert_int_equal(tn_dtype_of(tn_multiply(narrow, TN_COMPLEX(2 * I))), TN_COMPLEX64);
        assert_int_equal(tn_dtype_of(tn_multiply(wide, TN_COMPLEX(2 * I))), TN_COMPLEX128);
        assert_int_equal(tn_dtype_of(tn_multiply(tn_cast(narrow, TN_COMPLEX64), 2.5)), TN_COMPLEX64);
        assert_int_equal(tn_dtype_of(tn_abs(tn_cast(narrow, TN_COMPLEX64))), TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_var(tn_cast(wide, TN_COMPLEX128))), TN_FLOAT64);
        double _Complex z = tn_item_complex(tn_sum(tn_multiply(wide, TN_COMPLEX(1 - 2 * I))));
        assert_true(z == 2 - 4 * I);
    }
}

static void assert_text(tn_array *x, const char *expected)
{
    char *text = tn_repr(x);
    assert_string_equal(text, expected);
    tn_string_free(text);
}

/* As NumPy prints them. */
static void test_text(void **state)
{
    (void)state;
    TN_SCOPE
    {
        const double _Complex values[] = {1 + 2 * I, 3 - 1.5 * I, -2.25, 0 - 0.003 * I};
        tn_array *x = tn_from_complex(values, 4);
        assert_text(x, "array([ 1.  +2.j   ,  3.  -1.5j  , -2.25+0.j   ,  0.  -0.003j])");
        assert_text(tn_index(tn_cast(x, TN_COMPLEX64), 1), "array(3.-1.5j, dtype=complex64)");
        char *alone = tn_string(tn_index(x, 0));
        assert_string_equal(alone, "(1+2j)");
        tn_string_free(alone);
        alone = tn_string(tn_multiply(tn_index(x, 3), -1000));
        assert_string_equal(alone, "3j");
        tn_string_free(alone);
        double _Complex odd[2] = {0};
        __real__ odd[0] = NAN, __imag__ odd[0] = INFINITY, __real__ odd[1] = 1, __imag__ odd[1] = -INFINITY;
        assert_text(tn_from_complex(odd, 2), "array([nan+infj,  1.-infj])");
    }
}

static void test_files(void **state)
{
    (void)state;
    char folder[256], path[300];
    test_folder_make(folder);
    TN_SCOPE
    {
        for (int wide = 0; wide < 2; wide++) {
            tn_array *x = tn_cast(tn_complex(tn_random_normal(TN_SHAPE(3, 5)), tn_random_normal(TN_SHAPE(3, 5))),
                                  wide ? TN_COMPLEX128 : TN_COMPLEX64);
            snprintf(path, sizeof path, "%s/x.npy", folder);
            assert_int_equal(tn_save_npy(x, path), TN_OK);
            tn_array *back = tn_load_npy(path);
            assert_int_equal(tn_dtype_of(back), tn_dtype_of(x));
            assert_int_equal(tn_item_int(tn_all(tn_equal(back, tn_to(x, tn_device_of(back))))), 1);
        }
    }
    test_folder_remove(folder);
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *z = tn_cast(tn_ones(TN_SHAPE(3)), TN_COMPLEX64);
        tn_array *refused[] = {tn_floor(z),      tn_floor_divide(z, z), tn_remainder(z, 2), tn_bitwise_and(z, z),
                               tn_arctan2(z, z), tn_sigmoid(z),         tn_complex(z, z)};
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            assert_int_equal(tn_status_of(refused[i]), TN_ERR_DTYPE);
        tn_clear_error();
        tn_requires_grad(z);
        assert_int_not_equal(tn_backward(tn_sum(tn_multiply(z, z))), TN_OK); /* of a complex number */
        tn_clear_error();
        assert_int_equal(tn_backward(tn_real(tn_sum(tn_multiply(z, TN_COMPLEX(1 + 2 * I))))), TN_OK);
        double _Complex g = tn_item_complex(tn_index(tn_grad(z), 0));
        assert_true(g == 1 - 2 * I); /* dL/dx + i dL/dy of x - 2 y */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas),  cmocka_unit_test(test_cuts),
                                       cmocka_unit_test(test_promotion), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_files),     cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
