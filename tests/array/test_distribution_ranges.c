/* SPDX-License-Identifier: MIT */
/*
 * Random draws at the ends: parameters out of range in arrays, weights that are none, ranges as wide as the dtype, and
 * chances too small for 24 bits. Compiled and not.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tanso.h>

#include "ops/scalar.h"
#include "support/device.h"
#include "support/latched.h"

typedef tn_array *draw_1(const tn_array *, tn_shape, const tn_random_opts *);
typedef tn_array *draw_2(const tn_array *, const tn_array *, tn_shape, const tn_random_opts *);
typedef tn_array *draw_3(const tn_array *, const tn_array *, const tn_array *, tn_shape, const tn_random_opts *);

/* A good value of each parameter, and one out of its range beside NaN and infinity; whether integers are drawn. */
typedef struct row {
    const char *name;
    draw_1 *one;
    draw_2 *two;
    draw_3 *three;
    double good[3], bad[3];
    bool whole;
} row;
#define BELOW -1, -1, -1
static const row rows[] = {
    {"exponential", tn_random_exponential_with, NULL, NULL, {2}, {-1}, false},
    {"chisquare", tn_random_chisquare_with, NULL, NULL, {2}, {0}, false},
    {"standard_t", tn_random_standard_t_with, NULL, NULL, {2}, {0}, false},
    {"rayleigh", tn_random_rayleigh_with, NULL, NULL, {2}, {-1}, false},
    {"weibull", tn_random_weibull_with, NULL, NULL, {2}, {-1}, false},
    {"pareto", tn_random_pareto_with, NULL, NULL, {2}, {-1}, false},
    {"power", tn_random_power_with, NULL, NULL, {2}, {-1}, false},
    {"gamma", NULL, tn_random_gamma_with, NULL, {2, 1}, {-1, -1}, false},
    {"beta", NULL, tn_random_beta_with, NULL, {2, 1}, {0, 0}, false},
    {"f", NULL, tn_random_f_with, NULL, {2, 1}, {0, 0}, false},
    {"lognormal", NULL, tn_random_lognormal_with, NULL, {2, 1}, {NAN, -1}, false},
    {"laplace", NULL, tn_random_laplace_with, NULL, {2, 1}, {NAN, -1}, false},
    {"logistic", NULL, tn_random_logistic_with, NULL, {2, 1}, {NAN, -1}, false},
    {"gumbel", NULL, tn_random_gumbel_with, NULL, {2, 1}, {NAN, -1}, false},
    {"cauchy", NULL, tn_random_cauchy_with, NULL, {2, 1}, {NAN, -1}, false},
    {"wald", NULL, tn_random_wald_with, NULL, {2, 1}, {0, 0}, false},
    {"vonmises", NULL, tn_random_vonmises_with, NULL, {2, 1}, {NAN, -1}, false},
    {"triangular", NULL, NULL, tn_random_triangular_with, {1, 2, 3}, {4, 0.5, 1.5}, false},
    {"geometric", tn_random_geometric_with, NULL, NULL, {0.5}, {0}, true},
    {"poisson", tn_random_poisson_with, NULL, NULL, {5}, {-1}, true},
    {"binomial", NULL, tn_random_binomial_with, NULL, {10, 0.5}, {-1, 1.5}, true},
    {"negative_binomial", NULL, tn_random_negative_binomial_with, NULL, {10, 0.5}, {0, 0}, true},
    {"hypergeometric", NULL, NULL, tn_random_hypergeometric_with, {7, 7, 14}, {BELOW}, true},
    {"hypergeometric", NULL, NULL, tn_random_hypergeometric_with, {7, 7, 14}, {6, 6, 15}, true},
};

static tn_array *draw(const row *r, tn_array *const *p, tn_dtype dtype)
{
    const tn_random_opts opts = {.dtype = dtype};
    return r->one   ? r->one(p[0], TN_FIT, &opts)
           : r->two ? r->two(p[0], p[1], TN_FIT, &opts)
                    : r->three(p[0], p[1], p[2], TN_FIT, &opts);
}

/* Parameter k is {good, NaN, infinity, -infinity, bad, good}, as an array. */
static void check_parameter(const row *r, int k, tn_dtype dtype)
{
    tn_array *p[3] = {NULL};
    double values[] = {r->good[k], NAN, INFINITY, -INFINITY, r->bad[k], r->good[k]}, found[6];
    for (int i = 0; i < 3; i++)
        p[i] = i == k ? tn_from_doubles(values, 6) : tn_weak_float(r->good[i]);
    assert_int_equal(tn_to_host(tn_cast(draw(r, p, dtype), TN_FLOAT64), found, sizeof found), TN_OK);
    bool integers = r->whole && !tn_dtype_is_float(dtype);
    for (int i = 0; i < 6; i++) {
        bool good = i == 0 || i == 5;
        if (good ? !isfinite(found[i]) : integers ? found[i] != 0 : !isnan(found[i]))
            fail_msg("%s as %s: parameter %d of %g gives %g", r->name, tn_dtype_name(dtype), k + 1, values[i],
                     found[i]);
        if (good)
            continue;
        p[k] = tn_weak_float(values[i]);
        tn_array *refused = draw(r, p, dtype);
        assert_true(tn_is_error(refused));
        assert_failed(TN_ERR_VALUE, "expected");
    }
}

static void check_ranges(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < (rows[i].one ? 1 : rows[i].two ? 2 : 3); k++)
            TN_SCOPE
            {
                check_parameter(&rows[i], k, rows[i].whole ? TN_INT64 : TN_FLOAT32);
                check_parameter(&rows[i], k, TN_FLOAT64);
            }
    TN_SCOPE /* beyond the dtype: its largest */
    {
        double rare[] = {1e-200, 1};
        tn_array *p = tn_from_doubles(rare, 2), *trials = tn_random_geometric(p, TN_FIT);
        assert_true(tn_item_int(tn_index(trials, 0)) == INT64_MAX);
        tn_array *large = tn_random_geometric(p, TN_FIT, .dtype = TN_UINT64);
        assert_true(tn_item(tn_equal(tn_index(large, 0), UINT64_MAX)) == 1);
        assert_int_equal(tn_item_int(tn_index(trials, 1)), 1);
        assert_int_equal(tn_item_int(tn_index(tn_random_geometric(p, TN_FIT, .dtype = TN_INT8), 0)), 127);
        tn_array *failures = tn_random_negative_binomial(5, p, TN_FIT);
        assert_true(tn_item_int(tn_index(failures, 0)) == INT64_MAX);
        assert_int_equal(tn_item_int(tn_index(failures, 1)), 0);
        tn_array *bytes = tn_random_poisson(1e6, TN_SHAPE(1), .dtype = TN_UINT8);
        assert_int_equal(tn_item_int(bytes), 255);
        tn_array *sure = tn_from_doubles((const double[]){1, 0}, 2);
        tn_array *counts = tn_random_multinomial(1000, sure, TN_SHAPE(1), .dtype = TN_INT8);
        assert_int_equal(tn_item_int(tn_max(counts)), 127);
        counts = tn_random_multinomial(INT64_MAX, sure, TN_SHAPE(1));
        assert_true(tn_item_int(tn_max(counts)) == INT64_MAX);
    }
}

static void check_weights(void)
{
    static const struct {
        double p[3];
        bool once; /* a fault only where two are drawn once */
    } bad[] = {{{NAN, 1, 1}, false},      {{1, 1, NAN}, false},         {{-1, 1, 1}, false},   {{0, 0, 0}, false},
               {{INFINITY, 1, 1}, false}, {{1e308, 1e308, 1e308}, false}, {{1, -1e-300, 1}, false}, {{0, 5, 0}, true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        TN_SCOPE
        {
            tn_array *p = tn_from_doubles(bad[i].p, 3);
            for (int once = bad[i].once; once < 2; once++) {
                assert_true(tn_is_error(tn_random_choice(3, TN_SHAPE(2), .p = p, .once = once)));
                assert_failed(TN_ERR_VALUE, "weight");
            }
        }
    TN_SCOPE
    {
        const double few[] = {0, 5e-310, 0, 1e300, 0};
        tn_array *p = tn_from_doubles(few, 5);
        assert_int_equal(tn_item_int(tn_sum(tn_random_choice(5, TN_SHAPE(2), .p = p, .once = true))), 4);
        tn_array *many = tn_random_choice(5, TN_SHAPE(1000), .p = p);
        assert_int_equal(tn_item_int(tn_all(tn_equal(many, 3))), 1);
        static const double chances[][2] = {{NAN, 0.5}, {0.5, NAN}, {-0.1, 1.1}, {1.1, -0.1}, {1.5, 0}, {0, INFINITY}};
        for (size_t i = 0; i < 6; i++) {
            assert_true(tn_is_error(tn_random_multinomial(9, tn_from_doubles(chances[i], 2), TN_SHAPE(3))));
            assert_failed(TN_ERR_VALUE, "chances from 0 to 1");
        }
        /* variates of shapes so small are all below the least float; fractions sum to 1 all the same */
        tn_array *fractions = tn_random_dirichlet(tn_from_doubles((const double[]){1e-4, 2e-4}, 2), TN_SHAPE(100));
        assert_true(tn_item(tn_max(tn_abs(tn_subtract(tn_sum(fractions, .axis = TN_AXES(1)), 1)))) < 1e-5);
    }
}

/* Half of the numbers are in each half of a range as wide as the dtype. */
static void check_wide(tn_dtype dtype, double most)
{
    TN_SCOPE
    {
        tn_array *x = tn_random_uniform(TN_SHAPE(1001), .low = -most, .high = most, .dtype = dtype);
        double above = tn_item(tn_mean(tn_cast(tn_greater(x, 0), TN_FLOAT64)));
        assert_true(above > 0.4 && above < 0.6);
        assert_true(tn_item(tn_max(tn_cast(x, TN_FLOAT64))) < most && tn_item(tn_min(tn_cast(x, TN_FLOAT64))) >= -most);
        assert_true(tn_item(tn_mean(tn_less(tn_abs(x), most / 2))) > 0.4);
    }
}

static void check_uniform(void)
{
    check_wide(TN_FLOAT32, 3e38);
    check_wide(TN_FLOAT64, 1.5e308);
    check_wide(TN_FLOAT16, 65504);
    TN_SCOPE
    {
        assert_true(tn_is_error(tn_random_uniform(TN_SHAPE(2), .high = 1e39)));
        assert_failed(TN_ERR_VALUE, "finite numbers of float32");
        assert_true(tn_is_error(tn_random_uniform(TN_SHAPE(2), .low = -1e5, .dtype = TN_FLOAT16)));
        assert_failed(TN_ERR_VALUE, "finite numbers of float16");
        assert_true(tn_is_error(tn_random_normal(TN_SHAPE(2), .scale = 1e39)));
        assert_failed(TN_ERR_VALUE, "finite numbers of float32");
    }
}

/* A place of the stream whose number is within [low, high), a piece of 2^-24 or so. */
static tn_generator stream_within(double low, double high)
{
    tn_generator g = {.key = 3};
    double u = -1;
    while (!(u >= low && u < high))
        u = tns_random_uniform_f64(g.key, ++g.counter, 0);
    return g;
}

static void check_rare(void)
{
    static tn_generator low, high; /* 30 million numbers looked through, once */
    if (low.key == 0) {
        low = stream_within(1e-9, 0x1p-24);
        high = stream_within(1 - 0x1p-24, 1 - 0x1p-53);
    }
    TN_SCOPE
    {
        double u = tns_random_uniform_f64(high.key, high.counter, 0);
        double v = tns_random_uniform_f64(low.key, low.counter, 0);
        tn_generator g = low;
        assert_int_equal(tn_item_int(tn_random_bernoulli(1e-9, TN_SHAPE(1), .generator = &g)), 0);
        g = low;
        assert_int_equal(tn_item_int(tn_random_bernoulli(v * 1.000001, TN_SHAPE(1), .generator = &g)), 1);
        g = high;
        assert_int_equal(tn_item_int(tn_random_bernoulli(1 - 0x1p-53, TN_SHAPE(1), .generator = &g)), 1);
        g = high;
        double x = tn_item(tn_random_exponential(1, TN_SHAPE(1), .generator = &g)); /* float32's last is 16.6 */
        assert_float_equal(x, -log1p(-u), 1e-5);
        g = high;
        x = tn_item(tn_random_gumbel(0, 1, TN_SHAPE(1), .generator = &g));
        assert_float_equal(x, -log(-log(u)), 1e-5);
        g = low;
        x = tn_item(tn_random_logistic(0, 1, TN_SHAPE(1), .generator = &g));
        assert_float_equal(x, log(v) - log1p(-v), 1e-5);
    }
}

#define BOTH(name) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        tn_seed(17); \
        for (int on = 0; on < 2; on++) { \
            tn_set_compile(on ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER); \
            check_##name(); \
        } \
        tn_set_compile(TN_COMPILE_AUTO); \
    }
BOTH(ranges)
BOTH(weights)
BOTH(uniform)
BOTH(rare)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_uniform), cmocka_unit_test(test_rare)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
