/* SPDX-License-Identifier: MIT */
/* Special functions against libm, against their own equations, and their gradients against differences. */
#include "nn/check.h"

enum { MANY = 400 };

typedef tn_array *(*function)(const tn_array *x);
static tn_array *lgamma_of(const tn_array *x) { return tn_lgamma(x); }
static tn_array *digamma_of(const tn_array *x) { return tn_digamma(x); }
static tn_array *trigamma_of(const tn_array *x) { return tn_polygamma(1, x); }
static tn_array *zeta_of(const tn_array *x) { return tn_zeta(tn_add(x, 1.25), x); }
static tn_array *erfinv_of(const tn_array *x) { return tn_erfinv(x); }
static tn_array *erfcinv_of(const tn_array *x) { return tn_erfcinv(x); }
static tn_array *erfcx_of(const tn_array *x) { return tn_erfcx(x); }
static tn_array *ndtr_of(const tn_array *x) { return tn_ndtr(x); }
static tn_array *log_ndtr_of(const tn_array *x) { return tn_log_ndtr(x); }
static tn_array *ndtri_of(const tn_array *x) { return tn_ndtri(x); }

/* Numbers of all sizes from low to high: half of them evenly, half by their logarithms. */
static void spread(double *x, double low, double high)
{
    for (int i = 0; i < MANY; i++)
        x[i] = i % 2 || low <= 0 ? check_uniform(low, high) : exp(check_uniform(log(low), log(high)));
}

static void compute(function of, const double *x, double *y)
{
    TN_SCOPE check_read(of(check_array(x, TN_SHAPE(MANY), TN_FLOAT64)), y, MANY);
}

static void near(const char *name, double x, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%s(%.17g) is %.17g, expected %.17g", name, x, got, want);
}

static void test_gamma(void **state)
{
    (void)state;
    double x[MANY], y[MANY], next[MANY];
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 2; round++) {
        spread(x, round ? -40 : 1e-6, round ? 0 : 1e6);
        compute(lgamma_of, x, y);
        for (int i = 0; i < MANY; i++) /* beside poles the slope is as large as 1 over the distance */
            near("lgamma", x[i], y[i], lgamma(x[i]), 1e-13 + (round ? 4e-15 / fabs(x[i] - rint(x[i])) : 0));
    }
    spread(x, 1e-3, 1e4);
    for (int i = 0; i < MANY; i++)
        next[i] = x[i] + 1;
    double after[MANY];
    compute(digamma_of, x, y);
    compute(digamma_of, next, after);
    for (int i = 0; i < MANY; i++)
        near("digamma", x[i], after[i] - y[i], 1 / x[i], 1e-13 * (1 + fabs(y[i])));
    compute(trigamma_of, x, y);
    compute(trigamma_of, next, after);
    for (int i = 0; i < MANY; i++)
        near("trigamma", x[i], y[i] - after[i], 1 / (x[i] * x[i]), 1e-13);
    TN_SCOPE {
        const double known[] = {1, 0.5, -0.5}, pi = M_PI, euler = 0.57721566490153286061;
        const double psi[] = {-euler, -euler - 2 * log(2), 2 - euler - 2 * log(2)};
        check_context = "digamma";
        check_near(tn_digamma(check_array(known, TN_SHAPE(3), TN_FLOAT64)), psi, 3, 1e-13);
        const double one[] = {1}, zeta2[] = {pi * pi / 6}, zeta3[] = {-2.404113806319188570799}; /* -2 zeta(3) */
        check_near(tn_polygamma(1, check_array(one, TN_SHAPE(1), TN_FLOAT64)), zeta2, 1, 1e-13);
        check_near(tn_polygamma(2, check_array(one, TN_SHAPE(1), TN_FLOAT64)), zeta3, 1, 1e-13);
        const double ends[] = {0, -3}, at_ends[] = {-INFINITY, NAN};
        double got[2];
        check_read(tn_digamma(check_array(ends, TN_SHAPE(2), TN_FLOAT64)), got, 2);
        assert_true(got[0] == at_ends[0] && isnan(got[1]));
        check_read(tn_lgamma(check_array(ends, TN_SHAPE(2), TN_FLOAT64)), got, 2);
        assert_true(got[0] == INFINITY && got[1] == INFINITY);
        assert_true(isnan(tn_item(tn_zeta(tn_ones(TN_SHAPE(1)), tn_ones(TN_SHAPE(1))))));
        assert_int_equal(tn_dtype_of(tn_lgamma(tn_ones(TN_SHAPE(2), .dtype = TN_FLOAT16))), TN_FLOAT16);
        REFUSED(TN_ERR_VALUE, "n from 0 to 100", tn_polygamma(-1, tn_ones(TN_SHAPE(2))));
        REFUSED(TN_ERR_DTYPE, "real numbers", tn_lgamma(tn_ones(TN_SHAPE(2), .dtype = TN_COMPLEX64)));
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static void test_errors(void **state)
{
    (void)state;
    double x[MANY], y[MANY];
    tn_set_compile(TN_COMPILE_NEVER);
    spread(x, -1, 1);
    compute(erfinv_of, x, y);
    for (int i = 0; i < MANY; i++)
        near("erf(erfinv", x[i], erf(y[i]), x[i], 1e-14);
    spread(x, 1e-250, 1);
    compute(erfcinv_of, x, y);
    for (int i = 0; i < MANY; i++) /* a relative error of y is one of 2 y² of what comes out */
        near("erfc(erfcinv", x[i], erfc(y[i]) / x[i], 1, 1e-13 * (1 + y[i] * y[i]));
    compute(ndtri_of, x, y);
    for (int i = 0; i < MANY; i++)
        near("erfc(ndtri", x[i], 0.5 * erfc(-y[i] * M_SQRT1_2) / x[i], 1, 1e-13 * (1 + y[i] * y[i]));
    spread(x, -5, 25);
    compute(erfcx_of, x, y);
    for (int i = 0; i < MANY; i++)
        near("erfcx", x[i], y[i] / (double)(expl((long double)x[i] * x[i]) * erfcl(x[i])), 1, 1e-13);
    spread(x, -35, 8);
    compute(log_ndtr_of, x, y);
    for (int i = 0; i < MANY; i++)
        near("log_ndtr", x[i], y[i], (double)logl(0.5L * erfcl(-x[i] * sqrtl(0.5L))), 1e-13);
    compute(ndtr_of, x, y);
    for (int i = 0; i < MANY; i++)
        near("ndtr", x[i], y[i] / (double)(0.5L * erfcl(-x[i] * sqrtl(0.5L))), 1, 1e-12);
    TN_SCOPE {
        const double ends[] = {-1, 1, 1.5}, at[] = {-INFINITY, INFINITY};
        check_read(tn_erfinv(check_array(ends, TN_SHAPE(3), TN_FLOAT64)), y, 3);
        assert_true(y[0] == at[0] && y[1] == at[1] && isnan(y[2]));
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static tn_array *call(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return (*(function *)user)(xs[0]);
}

/* Both branches of each, away from where they meet and from poles. */
static void test_gradients(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("rules are the same everywhere, and a GPU would compile some texts for each");
    static const struct {
        function of;
        double low, high;
    } rows[] = {{lgamma_of, 0.5, 3}, {lgamma_of, 9, 20}, {lgamma_of, -0.8, -0.2}, {digamma_of, 0.5, 3},
                {digamma_of, -0.8, -0.2}, {trigamma_of, 0.5, 3}, {zeta_of, 0.8, 4}, {erfinv_of, -0.4, 0.4},
                {erfinv_of, 0.6, 0.95}, {erfcinv_of, 1.6, 1.95}, {erfcx_of, -1, 2}, {erfcx_of, 13, 15},
                {log_ndtr_of, -4, -2}, {log_ndtr_of, 0, 2}, {ndtri_of, 0.05, 0.2}};
    tn_set_compile(TN_COMPILE_NEVER);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TN_SCOPE {
            double x[3];
            for (int k = 0; k < 3; k++)
                x[k] = check_uniform(rows[i].low, rows[i].high);
            const tn_array *xs[] = {check_array(x, TN_SHAPE(3), TN_FLOAT64)};
            if (tn_check_backward(call, (void *)&rows[i].of, 1, xs, .seed = check_bits()) != TN_OK ||
                tn_check_double_backward(call, (void *)&rows[i].of, 1, xs, .seed = check_bits()) != TN_OK)
                fail_msg("row %zu: %s", i, tn_error());
        }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* Compiled texts give the same. */
static void test_compiled(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_uniform(TN_SHAPE(100)), *y = tn_lgamma(x);
        tn_set_compile(TN_COMPILE_NEVER);
        tn_array *want = tn_lgamma(x);
        assert_int_equal(tn_eval(want), TN_OK);
        tn_set_compile(TN_COMPILE_ALWAYS);
        assert_true(tn_allclose(y, want, .rtol = 1e-6, .atol = 1e-6));
        tn_set_compile(TN_COMPILE_AUTO);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gamma), cmocka_unit_test(test_errors), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_compiled),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
