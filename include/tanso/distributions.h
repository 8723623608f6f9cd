/* SPDX-License-Identifier: MIT */
/*
 * Probability distributions: densities, entropies, divergences, samples that have gradients. A distribution is a value:
 * its kind and its parameters, arrays that broadcast with one another and stay whose they were.
 *
 *     tn_distribution d = tn_dist_normal(mean, scale);
 *     tn_array *loss = tn_add(tn_kl(d, tn_dist_normal(0, 1)), ...);
 *     tn_array *z = tn_sample(d, TN_FIT, NULL);
 *
 * All functions are differentiable in the parameters and in x, but for counts and for samples of what is not
 * continuous. What a kind does not have (icdf of the Poisson distribution, say) is TN_ERR_UNSUPPORTED, with a message
 * that names it. Beyond the support a density is 0, its logarithm -infinity. Parameters are floating.
 */
#ifndef TANSO_DISTRIBUTIONS_H
#define TANSO_DISTRIBUTIONS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_distribution_kind {
    TN_DIST_NONE = 0,
    TN_DIST_NORMAL,      /* mean a, deviation b */
    TN_DIST_LOG_NORMAL,  /* exp of that */
    TN_DIST_UNIFORM,     /* from a to b */
    TN_DIST_LAPLACE,     /* location a, scale b */
    TN_DIST_CAUCHY,      /* location a, scale b */
    TN_DIST_GUMBEL,      /* location a, scale b */
    TN_DIST_EXPONENTIAL, /* rate a */
    TN_DIST_PARETO,      /* scale (least value) a, shape b */
    TN_DIST_BERNOULLI,   /* logit a of 1 */
    TN_DIST_GEOMETRIC,   /* the trial, from 1 on, of the first success, of chance a */
    TN_DIST_CATEGORICAL, /* logits a, classes along the last axis */
    TN_DIST_GAMMA,       /* shape a, rate b (Chainer's theta is 1 / b) */
    TN_DIST_CHISQUARE,   /* a degrees of freedom */
    TN_DIST_BETA,        /* shapes a, b */
    TN_DIST_DIRICHLET,   /* shapes a along the last axis */
    TN_DIST_STUDENT_T,   /* a degrees of freedom */
    TN_DIST_POISSON,     /* mean a */
    TN_DIST_MULTIVARIATE_NORMAL, /* mean a (..., n), lower triangular factor b (..., n, n) of the covariance b b^T */
    TN_DIST_KIND_COUNT
} tn_distribution_kind;

typedef struct tn_distribution {
    tn_distribution_kind kind;
    const tn_array *a, *b; /* b NULL of those with one parameter */
} tn_distribution;

/* Parameters are arrays or, by the macros, C numbers. */
TN_API tn_distribution tn_dist_normal(const tn_array *loc, const tn_array *scale);
TN_API tn_distribution tn_dist_log_normal(const tn_array *loc, const tn_array *scale);
TN_API tn_distribution tn_dist_uniform(const tn_array *low, const tn_array *high);
TN_API tn_distribution tn_dist_laplace(const tn_array *loc, const tn_array *scale);
TN_API tn_distribution tn_dist_cauchy(const tn_array *loc, const tn_array *scale);
TN_API tn_distribution tn_dist_gumbel(const tn_array *loc, const tn_array *scale);
TN_API tn_distribution tn_dist_exponential(const tn_array *rate);
TN_API tn_distribution tn_dist_pareto(const tn_array *scale, const tn_array *shape);
TN_API tn_distribution tn_dist_bernoulli(const tn_array *logit);
TN_API tn_distribution tn_dist_geometric(const tn_array *p);
TN_API tn_distribution tn_dist_categorical(const tn_array *logits);
TN_API tn_distribution tn_dist_gamma(const tn_array *shape, const tn_array *rate);
TN_API tn_distribution tn_dist_chisquare(const tn_array *df);
TN_API tn_distribution tn_dist_beta(const tn_array *a, const tn_array *b);
TN_API tn_distribution tn_dist_dirichlet(const tn_array *shape);
TN_API tn_distribution tn_dist_student_t(const tn_array *df);
TN_API tn_distribution tn_dist_poisson(const tn_array *mean);
/* What stands above the factor's diagonal is not looked at. Of a covariance the factor is tn_linalg_cholesky's. */
TN_API tn_distribution tn_dist_multivariate_normal(const tn_array *mean, const tn_array *factor);

/* The logarithm of the density, or of the chance, at x, which broadcasts with the parameters. Of bernoulli x is 0 or 1,
 * of categorical integers of the logits' shape without the classes, of dirichlet chances along the last axis, of
 * multivariate_normal vectors along it. (Of
 * several axes that belong together, Chainer's and PyTorch's Independent: tn_sum over them.) */
TN_API tn_array *tn_log_prob(tn_distribution d, const tn_array *x);
/* The chance of no more than x; and the x of a chance p. */
TN_API tn_array *tn_cdf(tn_distribution d, const tn_array *x);
TN_API tn_array *tn_icdf(tn_distribution d, const tn_array *p);
/* In natural units. */
TN_API tn_array *tn_entropy(tn_distribution d);
TN_API tn_array *tn_distribution_mean(tn_distribution d);
TN_API tn_array *tn_distribution_variance(tn_distribution d);
/* The Kullback-Leibler divergence of p from q, of one kind: normal, log_normal, uniform, laplace, exponential,
 * bernoulli, geometric, categorical, gamma, chisquare, beta, dirichlet, poisson, multivariate_normal. Infinite where p
 * has chances that q has not. The cross entropy is tn_add(tn_entropy(p), tn_kl(p, q)). */
TN_API tn_array *tn_kl(tn_distribution p, tn_distribution q);
/* Samples of a shape that the parameters broadcast to (of categorical: the logits without the classes), TN_FIT for
 * theirs: continuous ones with gradients in the parameters, but for those of the gamma function; bernoulli, geometric,
 * poisson in their dtype, categorical int64. Parameters of 16 bits are sampled in float32 and rounded. Where one is NaN
 * or out of its range, a scale below 0 say, the sample is NaN; of categorical, where the largest logit is not finite,
 * class 0. generator NULL: the thread's. */
TN_API tn_array *tn_sample(tn_distribution d, tn_shape shape, tn_generator *generator);

#ifndef TN_NO_MACROS
#define tn_dist_normal(loc, scale) TN_AT(tn_dist_normal)(TN_ARG(loc), TN_ARG(scale))
#define tn_dist_log_normal(loc, scale) TN_AT(tn_dist_log_normal)(TN_ARG(loc), TN_ARG(scale))
#define tn_dist_uniform(low, high) TN_AT(tn_dist_uniform)(TN_ARG(low), TN_ARG(high))
#define tn_dist_laplace(loc, scale) TN_AT(tn_dist_laplace)(TN_ARG(loc), TN_ARG(scale))
#define tn_dist_cauchy(loc, scale) TN_AT(tn_dist_cauchy)(TN_ARG(loc), TN_ARG(scale))
#define tn_dist_gumbel(loc, scale) TN_AT(tn_dist_gumbel)(TN_ARG(loc), TN_ARG(scale))
#define tn_dist_exponential(rate) TN_AT(tn_dist_exponential)(TN_ARG(rate))
#define tn_dist_pareto(scale, shape) TN_AT(tn_dist_pareto)(TN_ARG(scale), TN_ARG(shape))
#define tn_dist_bernoulli(logit) TN_AT(tn_dist_bernoulli)(TN_ARG(logit))
#define tn_dist_geometric(p) TN_AT(tn_dist_geometric)(TN_ARG(p))
#define tn_dist_categorical(logits) TN_AT(tn_dist_categorical)(TN_ARG(logits))
#define tn_dist_gamma(shape, rate) TN_AT(tn_dist_gamma)(TN_ARG(shape), TN_ARG(rate))
#define tn_dist_chisquare(df) TN_AT(tn_dist_chisquare)(TN_ARG(df))
#define tn_dist_beta(a, b) TN_AT(tn_dist_beta)(TN_ARG(a), TN_ARG(b))
#define tn_dist_dirichlet(shape) TN_AT(tn_dist_dirichlet)(TN_ARG(shape))
#define tn_dist_student_t(df) TN_AT(tn_dist_student_t)(TN_ARG(df))
#define tn_dist_poisson(mean) TN_AT(tn_dist_poisson)(TN_ARG(mean))
#define tn_dist_multivariate_normal(mean, factor) \
    TN_AT(tn_dist_multivariate_normal)(TN_ARG(mean), TN_ARG(factor))
#define tn_log_prob(d, x) TN_AT(tn_log_prob)(d, TN_ARG(x))
#define tn_cdf(d, x) TN_AT(tn_cdf)(d, TN_ARG(x))
#define tn_icdf(d, p) TN_AT(tn_icdf)(d, TN_ARG(p))
#define tn_entropy(...) TN_HERE(tn_entropy(__VA_ARGS__))
#define tn_distribution_mean(...) TN_HERE(tn_distribution_mean(__VA_ARGS__))
#define tn_distribution_variance(...) TN_HERE(tn_distribution_variance(__VA_ARGS__))
#define tn_kl(...) TN_HERE(tn_kl(__VA_ARGS__))
#define tn_sample(...) TN_HERE(tn_sample(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
