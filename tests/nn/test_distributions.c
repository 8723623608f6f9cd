/* SPDX-License-Identifier: MIT */
/* Distributions against PyTorch's values; their samples against their own means, variances and chances; refusals. */
#include "nn/torch.h"

#define CASE(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
#define OF_TWO(name) \
    CASE(name##_log_prob, tn_log_prob(tn_dist_##name(x[1], x[2]), x[0])) \
    CASE(name##_cdf, tn_cdf(tn_dist_##name(x[1], x[2]), x[0])) \
    CASE(name##_icdf, tn_icdf(tn_dist_##name(x[1], x[2]), x[0])) \
    CASE(name##_entropy, tn_entropy(tn_dist_##name(x[0], x[1])))
#define OF_ONE(name) \
    CASE(name##_log_prob, tn_log_prob(tn_dist_##name(x[1]), x[0])) \
    CASE(name##_entropy, tn_entropy(tn_dist_##name(x[0]))) \
    CASE(name##_kl, tn_kl(tn_dist_##name(x[0]), tn_dist_##name(x[1])))
CASE(normal_log_prob, tn_log_prob(tn_dist_normal(x[1], x[2]), x[0]))
CASE(normal_cdf, tn_cdf(tn_dist_normal(x[1], x[2]), x[0]))
CASE(normal_entropy, tn_entropy(tn_dist_normal(x[0], x[1])))
CASE(log_normal_log_prob, tn_log_prob(tn_dist_log_normal(x[1], x[2]), x[0]))
CASE(log_normal_cdf, tn_cdf(tn_dist_log_normal(x[1], x[2]), x[0]))
CASE(log_normal_entropy, tn_entropy(tn_dist_log_normal(x[0], x[1])))
OF_TWO(uniform)
OF_TWO(laplace)
OF_TWO(cauchy)
OF_TWO(gumbel)
OF_TWO(pareto)
OF_ONE(exponential)
OF_ONE(bernoulli)
CASE(exponential_cdf, tn_cdf(tn_dist_exponential(x[1]), x[0]))
CASE(exponential_icdf, tn_icdf(tn_dist_exponential(x[1]), x[0]))
/* PyTorch counts the failures before the success. */
CASE(geometric_log_prob, tn_log_prob(tn_dist_geometric(x[1]), tn_add(x[0], 1)))
CASE(geometric_entropy, tn_entropy(tn_dist_geometric(x[0])))
CASE(geometric_kl, tn_kl(tn_dist_geometric(x[0]), tn_dist_geometric(x[1])))
CASE(categorical_log_prob, tn_log_prob(tn_dist_categorical(x[0]), t[0]))
CASE(categorical_entropy, tn_entropy(tn_dist_categorical(x[0])))
CASE(categorical_kl, tn_kl(tn_dist_categorical(x[0]), tn_dist_categorical(x[1])))
CASE(normal_kl, tn_kl(tn_dist_normal(x[0], x[1]), tn_dist_normal(x[2], x[3])))
CASE(uniform_kl, tn_kl(tn_dist_uniform(x[0], x[1]), tn_dist_uniform(x[2], x[3])))
CASE(laplace_kl, tn_kl(tn_dist_laplace(x[0], x[1]), tn_dist_laplace(x[2], x[3])))

CASE(gamma_log_prob, tn_log_prob(tn_dist_gamma(x[1], x[2]), x[0]))
CASE(gamma_entropy, tn_entropy(tn_dist_gamma(x[0], x[1])))
CASE(gamma_kl, tn_kl(tn_dist_gamma(x[0], x[1]), tn_dist_gamma(x[2], x[3])))
CASE(beta_log_prob, tn_log_prob(tn_dist_beta(x[1], x[2]), x[0]))
CASE(beta_entropy, tn_entropy(tn_dist_beta(x[0], x[1])))
CASE(beta_kl, tn_kl(tn_dist_beta(x[0], x[1]), tn_dist_beta(x[2], x[3])))
OF_ONE(chisquare)
OF_ONE(dirichlet)
CASE(student_t_log_prob, tn_log_prob(tn_dist_student_t(x[1]), x[0]))
CASE(student_t_entropy, tn_entropy(tn_dist_student_t(x[0])))
CASE(poisson_log_prob, tn_log_prob(tn_dist_poisson(x[1]), tn_round(x[0], 0)))
CASE(poisson_kl, tn_kl(tn_dist_poisson(x[0]), tn_dist_poisson(x[1])))

CASE(multivariate_normal_log_prob, tn_log_prob(tn_dist_multivariate_normal(x[1], x[2]), x[0]))
CASE(multivariate_normal_entropy, tn_entropy(tn_dist_multivariate_normal(x[0], x[1])))
CASE(multivariate_normal_variance, tn_distribution_variance(tn_dist_multivariate_normal(x[0], x[1])))
CASE(multivariate_normal_kl, tn_kl(tn_dist_multivariate_normal(x[0], x[1]), tn_dist_multivariate_normal(x[2], x[3])))

#define ROW(name) {#name, name, true}
#define CHECKED(name) {#name, name, false}

/* Gradients are PyTorch's everywhere; differences are taken of one kind's functions, as they cost a kernel each. */
static void test_values(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        ROW(normal_log_prob), ROW(normal_cdf), ROW(normal_entropy), ROW(log_normal_log_prob), ROW(log_normal_cdf),
        ROW(log_normal_entropy), ROW(uniform_log_prob), ROW(uniform_cdf), ROW(uniform_icdf), ROW(uniform_entropy),
        ROW(laplace_log_prob), ROW(laplace_cdf), ROW(laplace_icdf), ROW(laplace_entropy), ROW(cauchy_log_prob),
        ROW(cauchy_cdf), ROW(cauchy_icdf), ROW(cauchy_entropy), ROW(gumbel_log_prob), ROW(gumbel_cdf),
        ROW(gumbel_icdf), ROW(gumbel_entropy), ROW(exponential_log_prob), ROW(exponential_cdf), ROW(exponential_icdf),
        ROW(exponential_entropy), ROW(pareto_log_prob), ROW(pareto_cdf), ROW(pareto_icdf), ROW(pareto_entropy),
        ROW(geometric_log_prob), ROW(geometric_entropy), ROW(bernoulli_log_prob), ROW(bernoulli_entropy),
        ROW(categorical_log_prob), ROW(categorical_entropy), CHECKED(normal_kl), ROW(uniform_kl), ROW(laplace_kl),
        ROW(exponential_kl), ROW(geometric_kl), ROW(bernoulli_kl), CHECKED(categorical_kl),
    };
    if (!torch_open())
        skip();
    torch_check(sizeof cases / sizeof *cases, cases);
    torch_close();
}

/* By the reference evaluator alone. */
static void check_all(size_t count, const torch_case *cases)
{
    if (!torch_open())
        skip();
    tn_set_compile(TN_COMPILE_NEVER);
    torch_check((int)count, cases);
    tn_set_compile(TN_COMPILE_AUTO);
    torch_close();
}

/* Those of the gamma function: values, gradients and second ones, by the reference alone, as their texts are long. */
static void test_gamma_values(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("rules are the same everywhere, and a GPU would compile some texts for each");
    static const torch_case cases[] = {
        CHECKED(gamma_log_prob), CHECKED(gamma_entropy), CHECKED(gamma_kl), CHECKED(beta_log_prob),
        CHECKED(beta_entropy), CHECKED(beta_kl), CHECKED(chisquare_log_prob), CHECKED(chisquare_entropy),
        CHECKED(chisquare_kl), CHECKED(dirichlet_log_prob), CHECKED(dirichlet_entropy), CHECKED(dirichlet_kl),
        CHECKED(student_t_log_prob), CHECKED(student_t_entropy), ROW(poisson_log_prob), CHECKED(poisson_kl),
    };
    check_all(sizeof cases / sizeof *cases, cases);
}

/* Both orders of what is checked against PyTorch's values alone, above. */
static void test_differences(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("rules are the same everywhere, and a GPU would compile some texts for each");
    static const torch_case cases[] = {
        CHECKED(normal_log_prob), CHECKED(normal_cdf), CHECKED(normal_entropy), CHECKED(log_normal_log_prob),
        CHECKED(log_normal_cdf), CHECKED(log_normal_entropy), CHECKED(uniform_icdf), CHECKED(uniform_entropy),
        CHECKED(laplace_log_prob), CHECKED(laplace_cdf), CHECKED(laplace_icdf), CHECKED(laplace_entropy),
        CHECKED(cauchy_log_prob), CHECKED(cauchy_cdf), CHECKED(cauchy_icdf), CHECKED(cauchy_entropy),
        CHECKED(gumbel_log_prob), CHECKED(gumbel_cdf), CHECKED(gumbel_icdf), CHECKED(gumbel_entropy),
        CHECKED(exponential_log_prob), CHECKED(exponential_cdf), CHECKED(exponential_icdf),
        CHECKED(exponential_entropy), CHECKED(pareto_log_prob), CHECKED(pareto_cdf), CHECKED(pareto_icdf),
        CHECKED(pareto_entropy), CHECKED(geometric_entropy), CHECKED(bernoulli_entropy),
        CHECKED(categorical_log_prob), CHECKED(categorical_entropy), CHECKED(uniform_kl), CHECKED(laplace_kl),
        CHECKED(exponential_kl), CHECKED(geometric_kl), CHECKED(bernoulli_kl),
    };
    check_all(sizeof cases / sizeof *cases, cases);
}

/* Matrices are solved by a library, which has no kernels to be compiled. */
static void test_vectors(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    static const torch_case cases[] = {
        CHECKED(multivariate_normal_log_prob), CHECKED(multivariate_normal_entropy),
        CHECKED(multivariate_normal_variance), CHECKED(multivariate_normal_kl),
    };
    check_all(sizeof cases / sizeof *cases, cases);
    TN_SCOPE {
        tn_array *mean = tn_requires_grad(tn_from_floats((float[]){1, -2}, 2));
        tn_array *factor = tn_reshape(tn_from_floats((float[]){2, 9, -1, 0.5f}, 4), TN_SHAPE(2, 2)); /* 9: not read */
        tn_distribution d = tn_dist_multivariate_normal(mean, factor);
        tn_array *x = tn_sample(d, TN_SHAPE(MANY, 2), NULL), *off = tn_subtract(x, mean);
        assert_int_equal(tn_ndim(x), 2);
        tn_array *covariance = tn_divide(tn_matmul(tn_swapaxes(off, 0, 1), off), MANY);
        /* A moment's deviation: of the mean sqrt(v / MANY), of a product sqrt((v w + c^2) / MANY), 6 of them. */
        const float bound[] = {36 * 4.0f / MANY, 36 * 1.25f / MANY}, second[] = {36 * 32.0f / MANY, 36 * 9.0f / MANY,
                                                                               36 * 9.0f / MANY, 36 * 3.125f / MANY};
        tn_array *mid = tn_mean(off, .axis = TN_AXES(0));
        assert_true(tn_item(tn_all(tn_less(tn_square(mid), tn_from_floats(bound, 2)))));
        tn_array *wrong = tn_subtract(covariance, tn_reshape(tn_from_floats((float[]){4, -2, -2, 1.25f}, 4),
                                                             TN_SHAPE(2, 2)));
        assert_true(tn_item(tn_all(tn_less(tn_square(tn_flatten(wrong)), tn_from_floats(second, 4)))));
        assert_int_equal(tn_backward(tn_sum(x)), TN_OK);
        assert_true(tn_allclose(tn_grad(mean), tn_full(TN_SHAPE(2), MANY)));
        assert_true(tn_is_error(tn_entropy(tn_dist_multivariate_normal(mean, tn_ones(TN_SHAPE(2, 3))))));
        check_latched(TN_ERR_SHAPE, "a factor (..., n, n), got shapes (2,) and (2, 3)");
        assert_true(tn_is_error(tn_sample(d, TN_SHAPE(3), NULL)));
        check_latched(TN_ERR_SHAPE, "broadcast to, got (3,)");
    }
    check_fine();
}

/* Means of many samples, within 6 deviations of theirs; of those without a mean, the share below a point. */
static void test_samples(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    TN_SCOPE {
        const tn_distribution all[] = {
            tn_dist_normal(0.5, 2), tn_dist_log_normal(0.1, 0.4), tn_dist_uniform(-1, 3), tn_dist_laplace(1, 0.5),
            tn_dist_gumbel(-1, 1.5), tn_dist_exponential(2), tn_dist_pareto(1, 4.5), tn_dist_bernoulli(0.7),
            tn_dist_geometric(0.3), tn_dist_gamma(1.5, 2), tn_dist_chisquare(3), tn_dist_beta(0.5, 2),
            tn_dist_student_t(5), tn_dist_poisson(3.5),
        };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            tn_array *x = tn_sample(all[i], TN_SHAPE(MANY), NULL);
            double mean = tn_item(tn_distribution_mean(all[i])), variance = tn_item(tn_distribution_variance(all[i]));
            double got = tn_item(tn_mean(tn_cast(x, TN_FLOAT64)));
            if (!(fabs(got - mean) < 6 * sqrt(variance / MANY)))
                fail_msg("distribution %zu: the mean is %g, expected %g", i, got, mean);
        }
        tn_distribution cauchy = tn_dist_cauchy(1, 2);
        double below = tn_item(tn_mean(tn_cast(tn_less(tn_sample(cauchy, TN_SHAPE(MANY), NULL), 2), TN_FLOAT64)));
        assert_true(fabs(below - tn_item(tn_cdf(cauchy, 2))) < 6 * 0.5 / sqrt(MANY));
        tn_array *logits = tn_log(tn_from_floats((float[]){0.1f, 0.6f, 0.3f}, 3));
        tn_array *classes = tn_sample(tn_dist_categorical(logits), TN_SHAPE(MANY), NULL);
        assert_int_equal(tn_dtype_of(classes), TN_INT64);
        double ones = tn_item(tn_mean(tn_cast(tn_equal(classes, 1), TN_FLOAT64)));
        assert_true(fabs(ones - 0.6) < 6 * 0.5 / sqrt(MANY));
        tn_distribution shares = tn_dist_dirichlet(tn_from_floats((float[]){0.5f, 2, 1.5f}, 3));
        tn_array *drawn = tn_sample(shares, TN_SHAPE(MANY, 3), NULL);
        assert_true(tn_allclose(tn_sum(drawn, .axis = TN_AXES(1)), tn_ones(TN_SHAPE(MANY)), .rtol = 1e-5));
        tn_array *off = tn_subtract(tn_mean(drawn, .axis = TN_AXES(0)), tn_distribution_mean(shares));
        tn_array *bound = tn_sqrt(tn_multiply(tn_distribution_variance(shares), 36.0 / MANY));
        assert_true(tn_item(tn_all(tn_less(tn_abs(off), bound))));
        tn_array *scale = tn_requires_grad(tn_full(TN_SHAPE(3), 2));
        tn_array *z = tn_sample(tn_dist_laplace(0, scale), TN_FIT, NULL);
        assert_int_equal(tn_backward(tn_sum(z)), TN_OK);
        assert_true(tn_allclose(tn_multiply(tn_grad(scale), scale), z));
    }
    check_fine();
}

/* Bad parameters, rare events, and dtypes in which the largest uniform number would be rounded to 1. */
static void test_sample_edges(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    const tn_dtype dtypes[] = {TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
    for (int i = 0; i < 4; i++)
        TN_SCOPE {
            tn_array *one = tn_ones(TN_SHAPE(1), .dtype = dtypes[i]);
            const tn_distribution finite[] = {tn_dist_exponential(one), tn_dist_laplace(one, one),
                                              tn_dist_gumbel(one, one), tn_dist_pareto(one, tn_multiply(one, 5))};
            for (int k = 0; k < 4; k++) {
                tn_array *x = tn_sample(finite[k], TN_SHAPE(MANY), NULL);
                assert_int_equal(tn_dtype_of(x), dtypes[i]);
                assert_true(tn_item(tn_all(tn_isfinite(x))));
            }
            tn_array *sure = tn_multiply(one, INFINITY), *never = tn_multiply(one, -INFINITY);
            assert_true(tn_item(tn_min(tn_sample(tn_dist_bernoulli(sure), TN_SHAPE(MANY), NULL))) == 1);
            assert_true(tn_item(tn_max(tn_sample(tn_dist_bernoulli(never), TN_SHAPE(MANY), NULL))) == 0);
            tn_array *logits = tn_concatenate(TN_ARRAYS(one, never), 0);
            assert_true(tn_item(tn_max(tn_sample(tn_dist_categorical(logits), TN_SHAPE(MANY), NULL))) == 0);
            tn_array *bad = tn_cast(tn_from_floats((float[]){NAN, -1}, 2), dtypes[i]);
            const tn_distribution of_bad[] = {
                tn_dist_normal(0, bad), tn_dist_log_normal(0, bad), tn_dist_uniform(0, bad), tn_dist_laplace(0, bad),
                tn_dist_cauchy(0, bad), tn_dist_gumbel(0, bad), tn_dist_exponential(bad), tn_dist_pareto(bad, 1),
                tn_dist_pareto(1, bad), tn_dist_geometric(bad), tn_dist_bernoulli(tn_multiply(bad, NAN)),
            };
            for (size_t k = 0; k < sizeof of_bad / sizeof *of_bad; k++)
                assert_true(tn_item(tn_all(tn_isnan(tn_sample(of_bad[k], TN_FIT, NULL)))));
            logits = tn_cast(tn_from_floats((float[]){0, NAN, 0}, 3), dtypes[i]);
            assert_true(tn_item(tn_sample(tn_dist_categorical(logits), TN_FIT, NULL)) == 0);
        }
    TN_SCOPE { /* of chance 2^-25, which multiples of 2^-24 never are below */
        tn_generator found = {.key = 3, .counter = 12269568};
        assert_true(tn_item(tn_sum(tn_sample(tn_dist_bernoulli(-17.328679514), TN_SHAPE(1024), &found))) == 1);
    }
    check_fine();
}

/* Beyond the support, and where one distribution does not cover the other. */
static void test_outside(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_from_floats((float[]){-1, 0.5f}, 2));
        const tn_distribution all[] = {tn_dist_uniform(0, 1), tn_dist_exponential(1), tn_dist_log_normal(0, 1),
                                       tn_dist_pareto(0.25, 1)};
        for (int i = 0; i < 4; i++) {
            tn_array *p = tn_log_prob(all[i], x), *c = tn_cdf(all[i], x);
            assert_true(tn_item(tn_index(p, 0)) == -INFINITY && tn_item(tn_index(c, 0)) == 0);
            assert_true(isfinite(tn_item(tn_index(p, 1))));
            tn_clear_grad(x);
            assert_int_equal(tn_backward(tn_index(p, 1)), TN_OK);
            assert_true(tn_item(tn_all(tn_isfinite(tn_grad(x)))));
        }
        assert_true(tn_item(tn_kl(tn_dist_uniform(0, 2), tn_dist_uniform(0, 1))) == INFINITY);
        assert_true(tn_is_error(tn_kl(tn_dist_normal(0, 1), tn_dist_laplace(0, 1))));
        check_latched(TN_ERR_UNSUPPORTED, "of one kind, got normal and laplace");
        assert_true(tn_is_error(tn_distribution_mean(tn_dist_cauchy(0, 1))));
        check_latched(TN_ERR_UNSUPPORTED, "the cauchy distribution has no mean");
        assert_true(tn_is_error(tn_entropy((tn_distribution){0})));
        check_latched(TN_ERR_VALUE, "tn_dist_normal");
        assert_true(tn_is_error(tn_sample(tn_dist_normal(tn_ones(TN_SHAPE(3)), 1), TN_SHAPE(2), NULL)));
        check_latched(TN_ERR_SHAPE, "broadcast to, got (2,)");
        assert_true(tn_is_error(tn_log_prob(tn_dist_categorical(tn_ones(TN_SHAPE(2, 3))), tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_SHAPE, "expected classes");
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_gamma_values), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_vectors), cmocka_unit_test(test_samples), cmocka_unit_test(test_outside),
        cmocka_unit_test(test_sample_edges),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
