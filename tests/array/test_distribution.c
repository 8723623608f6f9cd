/* SPDX-License-Identifier: MIT */
/*
 * Distributions: means and deviations, and the largest distance between the distribution function and what was drawn
 * (Kolmogorov and Smirnov). Seeds are fixed: a test either always passes or never. Of n = 40,000 numbers, the distance
 * is above 1.95 / sqrt(n) with a chance of 1 in 1,000; the mean is further than 4 deviations of its own away with one
 * of 1 in 16,000.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "ops/scalar.h"
#include "support/device.h"

#define N 40000

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- continuous: the distribution function ---- */

static double of_exponential(double x) { return x < 0 ? 0 : 1 - exp(-x / 2); }
static double of_normal(double x) { return 0.5 * erfc(-x / sqrt(2)); }
static double of_lognormal(double x) { return x <= 0 ? 0 : of_normal((log(x) - 1) / 0.5); }
static double of_laplace(double x) { return x < 1 ? 0.5 * exp((x - 1) / 2) : 1 - 0.5 * exp(-(x - 1) / 2); }
static double of_logistic(double x) { return 1 / (1 + exp(-(x - 1) / 2)); }
static double of_gumbel(double x) { return exp(-exp(-(x - 1) / 2)); }
static double of_cauchy(double x) { return 0.5 + atan((x - 1) / 2) / 3.14159265358979323846; }
static double of_rayleigh(double x) { return 1 - exp(-x * x / 8); }
static double of_weibull(double x) { return 1 - exp(-pow(x, 1.5)); }
static double of_pareto(double x) { return 1 - pow(1 + x, -3); }
static double of_power(double x) { return pow(x, 2.5); }
static double of_triangular(double x) { return x < 1 ? x * x / 4 : 1 - (4 - x) * (4 - x) / 12; }
/* shapes for which the function is elementary: 3, 1/2 */
static double of_gamma3(double x) { double y = x / 2; return 1 - exp(-y) * (1 + y + y * y / 2); }
static double of_gamma_half(double x) { return erf(sqrt(x)); }
static double of_chisquare4(double x) { return 1 - exp(-x / 2) * (1 + x / 2); }
static double of_beta23(double x) { return x * x * (6 - 8 * x + 3 * x * x); }
static double of_beta_half(double x) { return 2 / 3.14159265358979323846 * asin(sqrt(x)); }
static double of_t2(double x) { return 0.5 + x / (2 * sqrt(2 + x * x)); }
static double of_f22(double x) { return x / (1 + x); }
static double of_wald(double x)
{
    double r = sqrt(3 / x); /* mean 2, scale 3 */
    return of_normal(r * (x / 2 - 1)) + exp(3) * of_normal(-r * (x / 2 + 1));
}
static double of_uniform(double x) { return x; }
/* von Mises's angles: the density summed from -pi on by Simpson's rule, read between its points by a line */
#define POINTS 8192
static double angle_sum[POINTS + 1];
static void sum_angles(double concentration)
{
    const double pi = 3.14159265358979323846, step = 2 * pi / POINTS;
#define DENSITY(i) exp(concentration * (cos((i) * step - pi) - 1))
    for (int i = 0; i < POINTS; i++)
        angle_sum[i + 1] = angle_sum[i] + (DENSITY(i) + 4 * DENSITY(i + 0.5) + DENSITY(i + 1)) * step / 6;
}
static double of_vonmises(double x)
{
    const double pi = 3.14159265358979323846;
    double at = fmin(fmax((x + pi) / (2 * pi) * POINTS, 0), POINTS - 1e-9);
    int i = (int)at;
    return (angle_sum[i] + (at - i) * (angle_sum[i + 1] - angle_sum[i])) / angle_sum[POINTS];
}

static void check_continuous(const char *name, tn_array *x, double (*function)(double))
{
    double *v = malloc(N * sizeof *v), worst = 0;
    assert_non_null(v);
    assert_int_equal(tn_to_host(tn_cast(x, TN_FLOAT64), v, N * sizeof *v), TN_OK);
    qsort(v, N, sizeof *v, compare);
    for (int i = 0; i < N; i++) {
        double p = function(v[i]);
        worst = fmax(worst, fmax(p - (double)i / N, (i + 1.0) / N - p));
    }
    free(v);
    if (!(worst < 1.95 / sqrt(N)))
        fail_msg("%s (%s): the distribution functions are %g apart", name, tn_dtype_name(tn_dtype_of(x)), worst);
}

#define CONTINUOUS(function, name, ...) \
    check_continuous(#name, tn_random_##name(__VA_ARGS__, TN_SHAPE(N), .dtype = d ? TN_FLOAT64 : TN_FLOAT32), function)

static void test_continuous(void **state)
{
    (void)state;
    tn_seed(20240615);
    for (int d = 0; d < 2; d++)
        TN_SCOPE {
            CONTINUOUS(of_exponential, exponential, 2);
            CONTINUOUS(of_lognormal, lognormal, 1, 0.5);
            CONTINUOUS(of_laplace, laplace, 1, 2);
            CONTINUOUS(of_logistic, logistic, 1, 2);
            CONTINUOUS(of_gumbel, gumbel, 1, 2);
            CONTINUOUS(of_cauchy, cauchy, 1, 2);
            CONTINUOUS(of_rayleigh, rayleigh, 2);
            CONTINUOUS(of_weibull, weibull, 1.5);
            CONTINUOUS(of_pareto, pareto, 3);
            CONTINUOUS(of_power, power, 2.5);
            CONTINUOUS(of_triangular, triangular, 0, 1, 4);
            CONTINUOUS(of_gamma3, gamma, 3, 2);
            CONTINUOUS(of_gamma_half, gamma, 0.5, 1);
            CONTINUOUS(of_chisquare4, chisquare, 4);
            CONTINUOUS(of_beta23, beta, 2, 3);
            CONTINUOUS(of_beta_half, beta, 0.5, 0.5);
            CONTINUOUS(of_t2, standard_t, 2);
            CONTINUOUS(of_f22, f, 2, 2);
            CONTINUOUS(of_wald, wald, 2, 3);
            static const double concentrations[] = {0, 1e-6, 0.5, 4, 100};
            for (int i = 0; i < 5; i++) {
                sum_angles(concentrations[i]);
                CONTINUOUS(of_vonmises, vonmises, 0, concentrations[i]);
            }
            /* a normal of deviation 1e-4 */
            tn_array *narrow = tn_random_vonmises(3, 1e8, TN_SHAPE(N), .dtype = TN_FLOAT64);
            check_continuous("narrow vonmises", tn_multiply(tn_subtract(narrow, 3), 1e4), of_normal);
            tn_array *round = tn_random_vonmises(3, 0.5, TN_SHAPE(N), .dtype = TN_FLOAT64);
            assert_true(tn_item(tn_max(tn_abs(round))) <= 3.1415926535897936);
        }
}

/* ---- discrete: the chance of each value, by a ratio to the one before ---- */

typedef struct discrete {
    const char *name;
    double first;                                     /* the chance of value `low` */
    int low;
    double (*ratio)(const struct discrete *, int k);  /* of the chances of k + 1 and k */
    double n, p;
} discrete;

static double poisson_ratio(const discrete *d, int k) { return d->p / (k + 1); }
static double binomial_ratio(const discrete *d, int k) { return (d->n - k) / (k + 1) * d->p / (1 - d->p); }
static double geometric_ratio(const discrete *d, int k) { (void)k; return 1 - d->p; }
static double negative_ratio(const discrete *d, int k) { return (d->n + k) / (k + 1) * (1 - d->p); }

/* n good ones of 60, p taken */
static double hypergeometric_ratio(const discrete *d, int k)
{
    return (d->n - k) * (d->p - k) / ((k + 1) * (60 - d->n - d->p + k + 1));
}
static double ways(double n, double k) { return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)); }

/* The distance of the sums, which for steps is a bound of the same chance. */
static void check_discrete(const discrete *d, tn_array *x)
{
    int64_t *v = malloc(N * sizeof *v);
    int *count = calloc(200000, sizeof *count);
    assert_true(v && count);
    assert_int_equal(tn_dtype_of(x), TN_INT64);
    assert_int_equal(tn_to_host(x, v, N * sizeof *v), TN_OK);
    for (int i = 0; i < N; i++) {
        assert_true(v[i] >= d->low && v[i] < 200000);
        count[v[i]]++;
    }
    double chance = d->first, expected = 0, found = 0, worst = 0;
    for (int k = d->low; k < 199999; k++) {
        expected += chance;
        found += count[k] / (double)N;
        worst = fmax(worst, fabs(expected - found));
        chance *= d->ratio(d, k);
    }
    free(v);
    free(count);
    if (!(worst < 1.95 / sqrt(N)))
        fail_msg("%s(%g, %g): the distribution functions are %g apart", d->name, d->n, d->p, worst);
}

static void test_discrete(void **state)
{
    (void)state;
    tn_seed(7);
    static const double means[] = {0.5, 5, 9.99, 10, 30, 500};
    static const double trials[][2] = {{1, 0.5}, {10, 0.3}, {10, 0.9}, {60, 0.5}, {1000, 0.02}, {400, 0.75}};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        TN_SCOPE check_discrete(&(discrete){"poisson", exp(-means[i]), 0, poisson_ratio, 0, means[i]},
                                tn_random_poisson(means[i], TN_SHAPE(N)));
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        TN_SCOPE
        {
            double n = trials[i][0], p = trials[i][1];
            check_discrete(&(discrete){"binomial", pow(1 - p, n), 0, binomial_ratio, n, p},
                           tn_random_binomial(n, p, TN_SHAPE(N)));
        }
    TN_SCOPE
    {
        static const double taken[][2] = {{20, 5},  {20, 15}, {20, 40}, {45, 28}, {45, 8},
                                          {45, 55}, {30, 30}, {0, 3},   {60, 7}};
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            double good = taken[i][0], all = taken[i][1];
            int low = (int)fmax(0, all - (60 - good));
            check_discrete(&(discrete){"hypergeometric", ways(good, low) * ways(60 - good, all - low) / ways(60, all),
                                       low, hypergeometric_ratio, good, all},
                           tn_random_hypergeometric(good, 60 - good, all, TN_SHAPE(N)));
        }
        check_discrete(&(discrete){"geometric", 0.3, 1, geometric_ratio, 0, 0.3},
                       tn_random_geometric(0.3, TN_SHAPE(N)));
        check_discrete(&(discrete){"negative_binomial", pow(0.4, 5), 0, negative_ratio, 5, 0.4},
                       tn_random_negative_binomial(5, 0.4, TN_SHAPE(N)));
    }
}

static void assert_about(const char *what, tn_array *x, double expected, double deviation)
{
    double found = tn_item(tn_mean(tn_cast(x, TN_FLOAT64)));
    if (!(fabs(found - expected) < 4 * deviation / sqrt((double)tn_size(x))))
        fail_msg("%s: mean %g, expected %g", what, found, expected);
}

static void test_categories(void **state)
{
    (void)state;
    tn_seed(11);
    TN_SCOPE
    {
        static const double p[] = {0.2, 0.5, 0.3};
        tn_array *chances = tn_from_doubles(p, 3), *counts = tn_random_multinomial(20, chances, TN_SHAPE(N));
        assert_true(tn_item(tn_all(tn_equal(tn_sum(counts, .axis = TN_AXES(1)), 20))) == 1);
        tn_array *chosen = tn_random_choice(3, TN_SHAPE(N), .p = chances);
        tn_array *pairs = tn_random_choice(3, TN_SHAPE(2), .p = chances, .once = true);
        assert_int_equal(tn_item_int(tn_equal(tn_index(pairs, 0), tn_index(pairs, 1))), 0);
        for (int i = 0; i < 3; i++) {
            tn_array *column = tn_slice_axis(counts, 1, i, i + 1, 1);
            assert_about("multinomial", column, 20 * p[i], sqrt(20 * p[i] * (1 - p[i])));
            assert_about("choice", tn_equal(chosen, i), p[i], sqrt(p[i] * (1 - p[i])));
        }
        tn_array *fractions = tn_random_dirichlet(chances, TN_SHAPE(N), .dtype = TN_FLOAT64);
        assert_about("dirichlet", tn_slice_axis(fractions, 1, 1, 2, 1), 0.5, sqrt(0.5 * 0.5 / 2));
        assert_about("dirichlet", tn_sum(fractions, .axis = TN_AXES(1)), 1, 1e-12);
        tn_array *evenly = tn_random_choice(10, TN_SHAPE(N));
        check_continuous("choice", tn_divide(tn_add(evenly, tn_random_uniform(TN_SHAPE(N), .dtype = TN_FLOAT64)), 10),
                         of_uniform);
    }
}

/* Means and covariances, of a matrix that has not full rank. */
static void test_vectors(void **state)
{
    (void)state;
    tn_seed(13);
    TN_SCOPE
    {
        static const double covariance[3][3] = {{2, 1, 3}, {1, 1, 2}, {3, 2, 5}};
        tn_array *c = tn_from_doubles(&covariance[0][0], 9), *mean = tn_from_doubles((const double[]){1, -2, 0.5}, 3);
        tn_array *x = tn_random_multivariate_normal(mean, tn_reshape(c, TN_SHAPE(3, 3)), TN_SHAPE(200, N / 200),
                                                    .dtype = TN_FLOAT64);
        if (tn_is_error(x) && tn_status_of(x) == TN_ERR_UNSUPPORTED) { /* without LAPACK */
            tn_clear_error();
            return;
        }
        assert_int_equal(tn_ndim(x), 3);
        tn_array *away = tn_reshape(tn_subtract(x, mean), TN_SHAPE(N, 3));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                tn_array *a = tn_slice_axis(away, 1, i, i + 1, 1), *b = tn_slice_axis(away, 1, j, j + 1, 1);
                assert_about("multivariate normal", a, 0, sqrt(covariance[i][i]));
                assert_about("multivariate normal's covariance", tn_multiply(a, b), covariance[i][j],
                             sqrt(covariance[i][i] * covariance[j][j] + covariance[i][j] * covariance[i][j]));
            }
        check_continuous("multivariate normal", tn_divide(tn_slice_axis(away, 1, 2, 3, 1), sqrt(5)), of_normal);
        tn_array *gone = tn_subtract(tn_slice_axis(away, 1, 2, 3, 1),
                                     tn_sum(tn_slice_axis(away, 1, 0, 2, 1), .axis = TN_AXES(1), .keepdims = true));
        assert_true(tn_item(tn_max(tn_abs(gone))) < 1e-6);
        tn_array *one = tn_random_multivariate_normal(mean, tn_reshape(c, TN_SHAPE(3, 3)), (tn_shape){.ndim = 0});
        assert_int_equal(tn_size(one), 3);
        assert_int_equal(tn_dtype_of(one), TN_FLOAT32);
    }
}

static void test_orders(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = tn_arange(0, 100, 1), *all = tn_random_choice(100, TN_SHAPE(100), .once = true);
        assert_int_equal(tn_random_shuffle(x), TN_OK);
        assert_int_equal(tn_item_int(tn_sum(x)), 4950);
        assert_int_equal(tn_item_int(tn_sum(tn_square(x))), 328350);
        assert_int_equal(tn_item_int(tn_sum(tn_square(all))), 328350);
        assert_int_equal(tn_item_int(tn_all(tn_equal(x, tn_arange(0, 100, 1)))), 0);
        tn_array *whole = tn_reshape(tn_arange(0, 30, 1), TN_SHAPE(3, 10)),
                 *columns = tn_random_permuted(whole, .axis = -1);
        assert_int_equal(tn_item_int(tn_all(tn_equal(tn_subtract(columns, tn_slice_axis(columns, 0, 0, 1, 1)),
                                                     tn_subtract(whole, tn_slice_axis(whole, 0, 0, 1, 1))))), 1);
        assert_int_equal(tn_item_int(tn_all(tn_equal(tn_sort(columns), whole))), 1);
        assert_int_equal(tn_random_shuffle(columns, .axis = 1), TN_OK);
        assert_int_equal(tn_item_int(tn_all(tn_equal(tn_sort(columns), whole))), 1);
        tn_array *rows = tn_random_permuted(tn_reshape(tn_arange(0, 12, 1), TN_SHAPE(4, 3)));
        assert_int_equal(tn_item_int(
                             tn_sum(tn_subtract(tn_slice_axis(rows, 1, 2, 3, 1), tn_slice_axis(rows, 1, 0, 1, 1)))),
                         8);
    }
}

/* A named generator gives the same numbers again, and successive calls others; parameters broadcast. */
static void test_generators(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_generator first = {.key = 5}, second = {.key = 5};
        tn_array *a = tn_random_gamma(2, 1, TN_SHAPE(50), .generator = &first),
                 *b = tn_random_gamma(2, 1, TN_SHAPE(50), .generator = &second);
        assert_int_equal(tn_item_int(tn_all(tn_equal(a, b))), 1);
        assert_int_equal(first.counter, second.counter);
        tn_array *c = tn_random_gamma(2, 1, TN_SHAPE(50), .generator = &first);
        assert_int_equal(tn_item_int(tn_any(tn_equal(a, c))), 0);
        tn_array *means = tn_from_doubles((const double[]){1, 100, 10000}, 3), *fit = tn_random_poisson(means, TN_FIT);
        assert_int_equal(tn_size(fit), 3);
        assert_true(tn_item(tn_index(fit, 2)) > 9000);
        tn_array *rows = tn_random_normal(TN_SHAPE(2, 1));
        assert_int_equal(tn_size(tn_random_binomial(10, tn_sigmoid(rows), TN_SHAPE(2, 7))), 14);
        /* known when drawn only */
        assert_int_equal(tn_item_int(tn_random_binomial(tn_scalar(-3), tn_scalar(0.5), TN_SHAPE(1))), 0);
        tn_array *edges = tn_random_binomial(tn_from_doubles((const double[]){0, 5, 5}, 3),
                                             tn_from_doubles((const double[]){0.5, 0, 1}, 3), TN_FIT);
        assert_int_equal(tn_item_int(tn_index(edges, 0)), 0);
        assert_int_equal(tn_item_int(tn_index(edges, 1)), 0);
        assert_int_equal(tn_item_int(tn_index(edges, 2)), 5);
    }
    tn_clear_error();
}

static void refused(tn_array *x, tn_status code)
{
    assert_int_equal(tn_status_of(x), code);
    tn_clear_error();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE
    {
        refused(tn_random_gamma(-1, 1, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_binomial(3, 1.5, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_geometric(0, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_beta(1, NAN, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_exponential(1, TN_SHAPE(3), .dtype = TN_INT32), TN_ERR_DTYPE);
        refused(tn_random_normal(TN_SHAPE(3), .dtype = TN_COMPLEX64), TN_ERR_DTYPE);
        refused(tn_random_choice(3, TN_SHAPE(4), .once = true), TN_ERR_VALUE);
        refused(tn_random_choice(0, TN_SHAPE(4)), TN_ERR_VALUE);
        refused(tn_random_choice(3, TN_SHAPE(4), .p = tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE);
        refused(tn_random_multinomial(-1, tn_ones(TN_SHAPE(1)), TN_SHAPE(2)), TN_ERR_VALUE);
        refused(tn_random_permuted(tn_scalar(1)), TN_ERR_SHAPE);
        refused(tn_random_permuted(tn_ones(TN_SHAPE(3)), .axis = 1), TN_ERR_INDEX);
        refused(tn_random_vonmises(0, -1, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_hypergeometric(3, -1, 2, TN_SHAPE(3)), TN_ERR_VALUE);
        refused(tn_random_multivariate_normal(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3, 3)), TN_SHAPE(3)),
                TN_ERR_SHAPE);
    }
}

static void test_log_factorial(void **state)
{
    (void)state;
    for (int n = 0; n < 400; n += n < 20 ? 1 : 17)
        assert_float_equal(tns__log_factorial(n), lgamma(n + 1.0), 1e-11 * (1 + lgamma(n + 1.0)));
}

/* A gamma variate and its logarithm are of one draw, whatever the shape. */
static void test_gamma(void **state)
{
    (void)state;
    static const double shapes[] = {0, 1e-3, 0.3, 1, 1.5, 2.5, 40, 1e6};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int i = 1; i <= 2000; i++) {
            double seed = i / 2001.0, x = tns_draw_gamma_f64(shapes[k], seed),
                   y = exp(tns_draw_log_gamma_f64(shapes[k], seed));
            if (!(fabs(x - y) <= 1e-12 * y + 1e-300)) /* the least numbers have few digits */
                fail_msg("shape %g, draw %d: %.17g, by its logarithm %.17g", shapes[k], i, x, y);
        }
    assert_true(isinf(tns_draw_gamma_f64(INFINITY, 0.5)) && isnan(tns_draw_gamma_f64(-1, 0.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_continuous), cmocka_unit_test(test_discrete),
                                       cmocka_unit_test(test_categories), cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_orders),     cmocka_unit_test(test_generators),
                                       cmocka_unit_test(test_refusals),   cmocka_unit_test(test_log_factorial),
                                       cmocka_unit_test(test_gamma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
