/* SPDX-License-Identifier: MIT */
/*
 * Random arrays from a counter-based generator, Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random
 * Numbers: As Easy as 1, 2, 3", SC 2011). Each call takes the next stretch of its generator's sequence. The same seed
 * gives the same uniform numbers, integers and permutations on every device, bit for bit; normals, and whatever else is
 * computed by logarithms and their like, are the same up to the rounding of a device's functions. Calls without a
 * generator use the thread's own, seeded by tn_seed (0 at the start).
 */
#ifndef TANSO_RANDOM_H
#define TANSO_RANDOM_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A generator's whole state: copy it to snapshot it. */
typedef struct tn_generator {
    uint64_t key;
    uint64_t counter;
} tn_generator;

/* Seeds the thread's generator. */
TN_API void tn_seed(uint64_t seed);
/* The thread's generator, for reading or restoring its state. Valid in this thread. */
TN_API tn_generator *tn_default_generator(void);

typedef struct tn_random_opts {
    const char *_;
    double low, high;        /* uniform: [low, high), default [0, 1) */
    double loc, scale;       /* normal: mean loc and deviation scale, default 0 and 1 */
    int axis;                /* permuted, shuffle: whose order is random, negative from the end; default: the first */
    tn_dtype dtype;          /* default float32 (integers: int64) */
    tn_device device;        /* default: current */
    tn_generator *generator; /* default: the thread's; advanced by the call */
} tn_random_opts;

/* Uniform floats in [low, high), multiples of 2^-24 of the range (float64: of 2^-53); low must not be above high. */
TN_API tn_array *tn_random_uniform_with(tn_shape shape, const tn_random_opts *opts);
/* Normal floats by Box and Muller's transform. */
TN_API tn_array *tn_random_normal_with(tn_shape shape, const tn_random_opts *opts);
/* Integers in [low, high) of opts->dtype, which must hold them; an empty range is TN_ERR_VALUE. `low` and `high` here
 * are arguments, those of opts are not read. */
TN_API tn_array *tn_random_integers_with(int64_t low, int64_t high, tn_shape shape, const tn_random_opts *opts);
/* A random permutation of 0..n-1, int64. */
TN_API tn_array *tn_random_permutation_with(int64_t n, const tn_random_opts *opts);
/* True with probability p, as bool (or opts->dtype, 0 and 1): the mask of a dropout. The chance of what is rarer is off
 * by less than 2^-24 where it is 2^-10 or more, by 2^-53 below. p outside [0, 1] is TN_ERR_VALUE. */
TN_API tn_array *tn_random_bernoulli_with(double p, tn_shape shape, const tn_random_opts *opts);

/*
 * Distributions with parameters. A parameter is an array or a C number; they broadcast to `shape`, and TN_FIT as the
 * shape stands for what they broadcast to. Parameters given as numbers are checked (TN_ERR_VALUE); where an array's
 * element is out of range, NaN or infinite, the result is NaN (0 for integers). Floats are float32 by default, whole
 * numbers int64; those beyond their dtype are its largest. opts: dtype, device, generator.
 */
#ifdef __cplusplus
extern "C++" {
inline tn_shape tn__fit()
{
    tn_shape fit{};
    fit.ndim = -1;
    return fit;
}
}
#define TN_FIT tn__fit()
#else
#define TN_FIT ((tn_shape){.ndim = -1})
#endif

/* Density exp(-x / scale) / scale. */
TN_API tn_array *tn_random_exponential_with(const tn_array *scale, tn_shape shape, const tn_random_opts *opts);
/* Density proportional to x^(k - 1) exp(-x / scale), of shape k. */
TN_API tn_array *tn_random_gamma_with(const tn_array *k, const tn_array *scale, tn_shape shape,
                                      const tn_random_opts *opts);
/* Density proportional to x^(a - 1) (1 - x)^(b - 1). */
TN_API tn_array *tn_random_beta_with(const tn_array *a, const tn_array *b, tn_shape shape, const tn_random_opts *opts);
/* The sum of df squared normals. */
TN_API tn_array *tn_random_chisquare_with(const tn_array *df, tn_shape shape, const tn_random_opts *opts);
/* The ratio of two such over their degrees of freedom. */
TN_API tn_array *tn_random_f_with(const tn_array *numerator, const tn_array *denominator, tn_shape shape,
                                  const tn_random_opts *opts);
/* Student's t. */
TN_API tn_array *tn_random_standard_t_with(const tn_array *df, tn_shape shape, const tn_random_opts *opts);
/* exp of a normal with that mean and deviation. */
TN_API tn_array *tn_random_lognormal_with(const tn_array *mean, const tn_array *sigma, tn_shape shape,
                                          const tn_random_opts *opts);
TN_API tn_array *tn_random_laplace_with(const tn_array *loc, const tn_array *scale, tn_shape shape,
                                        const tn_random_opts *opts);
TN_API tn_array *tn_random_logistic_with(const tn_array *loc, const tn_array *scale, tn_shape shape,
                                         const tn_random_opts *opts);
TN_API tn_array *tn_random_gumbel_with(const tn_array *loc, const tn_array *scale, tn_shape shape,
                                       const tn_random_opts *opts);
TN_API tn_array *tn_random_cauchy_with(const tn_array *loc, const tn_array *scale, tn_shape shape,
                                       const tn_random_opts *opts);
TN_API tn_array *tn_random_rayleigh_with(const tn_array *scale, tn_shape shape, const tn_random_opts *opts);
/* (-log U)^(1 / a); U^(-1 / a) - 1 (Lomax); U^(1 / a), of uniform U. */
TN_API tn_array *tn_random_weibull_with(const tn_array *a, tn_shape shape, const tn_random_opts *opts);
TN_API tn_array *tn_random_pareto_with(const tn_array *a, tn_shape shape, const tn_random_opts *opts);
TN_API tn_array *tn_random_power_with(const tn_array *a, tn_shape shape, const tn_random_opts *opts);
/* A density that rises from left to mode and falls to right: left <= mode <= right, left < right. */
TN_API tn_array *tn_random_triangular_with(const tn_array *left, const tn_array *mode, const tn_array *right,
                                           tn_shape shape, const tn_random_opts *opts);
/* Inverse Gaussian. */
TN_API tn_array *tn_random_wald_with(const tn_array *mean, const tn_array *scale, tn_shape shape,
                                     const tn_random_opts *opts);
/* Angles about the direction mu, in [-pi, pi]: density proportional to exp(kappa cos(x - mu)). */
TN_API tn_array *tn_random_vonmises_with(const tn_array *mu, const tn_array *kappa, tn_shape shape,
                                         const tn_random_opts *opts);
/* The number of trials up to the first success, of chance p each. */
TN_API tn_array *tn_random_geometric_with(const tn_array *p, tn_shape shape, const tn_random_opts *opts);
TN_API tn_array *tn_random_poisson_with(const tn_array *mean, tn_shape shape, const tn_random_opts *opts);
/* Successes in n trials of chance p. */
TN_API tn_array *tn_random_binomial_with(const tn_array *n, const tn_array *p, tn_shape shape,
                                         const tn_random_opts *opts);
/* Failures before the n-th success. */
TN_API tn_array *tn_random_negative_binomial_with(const tn_array *n, const tn_array *p, tn_shape shape,
                                                  const tn_random_opts *opts);
/* How many of `taken`, drawn without putting back, are good, where so many are good and so many bad: below 1e9 each. */
TN_API tn_array *tn_random_hypergeometric_with(const tn_array *good, const tn_array *bad, const tn_array *taken,
                                               tn_shape shape, const tn_random_opts *opts);
/* How often each of the categories, a vector p of chances that sum to 1, came up in n trials: shape + (categories,),
 * int64. p is read by the call: chances below 0, NaN, or that sum to more without the last one, which counts for what
 * the others leave, are TN_ERR_VALUE. */
TN_API tn_array *tn_random_multinomial_with(int64_t n, const tn_array *p, tn_shape shape, const tn_random_opts *opts);
/* Vectors with that mean, a vector, and covariance, a symmetric matrix whose eigenvalues are not negative (those that
 * are count as 0): shape + (extent of mean,). */
TN_API tn_array *tn_random_multivariate_normal_with(const tn_array *mean, const tn_array *covariance, tn_shape shape,
                                                    const tn_random_opts *opts);
/* Fractions that sum to 1: shape + (extent of alpha,). */
TN_API tn_array *tn_random_dirichlet_with(const tn_array *alpha, tn_shape shape, const tn_random_opts *opts);

typedef struct tn_choice_opts {
    const char *_;
    bool once;               /* no position twice (NumPy's replace=False) */
    const tn_array *p;       /* their weights, a vector, read by the call; default: all equal. NaN, below 0, infinite,
                                all 0, or fewer not 0 than are drawn once: TN_ERR_VALUE */
    tn_device device;        /* default: current */
    tn_generator *generator; /* default: the thread's */
} tn_choice_opts;
/* Positions from 0 to n - 1, int64: tn_take(x, tn_random_choice(tn_dim(x, 0), TN_SHAPE(5)), 0) chooses elements of
 * x. */
TN_API tn_array *tn_random_choice_with(int64_t n, tn_shape shape, const tn_choice_opts *opts);
/* x with an axis, by default the first, in random order; and the same, in place: the handle is pointed at it. */
TN_API tn_array *tn_random_permuted_with(const tn_array *x, const tn_random_opts *opts);
TN_API tn_status tn_random_shuffle_with(tn_array *x, const tn_random_opts *opts);

#ifndef TN_NO_MACROS
#define tn_random_uniform(...) TN__CALL_V(tn_random_uniform_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_normal(...) TN__CALL_V(tn_random_normal_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_integers(...) TN__CALL_VVV(tn_random_integers_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_permutation(...) TN__CALL_V(tn_random_permutation_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_bernoulli(...) TN__CALL_VV(tn_random_bernoulli_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_exponential(...) TN__CALL_AV(tn_random_exponential_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_chisquare(...) TN__CALL_AV(tn_random_chisquare_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_standard_t(...) TN__CALL_AV(tn_random_standard_t_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_rayleigh(...) TN__CALL_AV(tn_random_rayleigh_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_weibull(...) TN__CALL_AV(tn_random_weibull_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_pareto(...) TN__CALL_AV(tn_random_pareto_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_power(...) TN__CALL_AV(tn_random_power_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_geometric(...) TN__CALL_AV(tn_random_geometric_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_poisson(...) TN__CALL_AV(tn_random_poisson_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_gamma(...) TN__CALL_AAV(tn_random_gamma_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_beta(...) TN__CALL_AAV(tn_random_beta_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_f(...) TN__CALL_AAV(tn_random_f_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_lognormal(...) TN__CALL_AAV(tn_random_lognormal_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_laplace(...) TN__CALL_AAV(tn_random_laplace_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_logistic(...) TN__CALL_AAV(tn_random_logistic_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_gumbel(...) TN__CALL_AAV(tn_random_gumbel_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_cauchy(...) TN__CALL_AAV(tn_random_cauchy_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_wald(...) TN__CALL_AAV(tn_random_wald_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_vonmises(...) TN__CALL_AAV(tn_random_vonmises_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_binomial(...) TN__CALL_AAV(tn_random_binomial_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_negative_binomial(...) TN__CALL_AAV(tn_random_negative_binomial_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_triangular(...) TN__CALL_AAAV(tn_random_triangular_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_hypergeometric(...) TN__CALL_AAAV(tn_random_hypergeometric_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_multivariate_normal(...) \
    TN__CALL_VVV(tn_random_multivariate_normal_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_multinomial(...) TN__CALL_VVV(tn_random_multinomial_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_dirichlet(...) TN__CALL_VV(tn_random_dirichlet_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_choice(...) TN__CALL_VV(tn_random_choice_with, tn_choice_opts, __VA_ARGS__, )
#define tn_random_permuted(...) TN__CALL_V(tn_random_permuted_with, tn_random_opts, __VA_ARGS__, )
#define tn_random_shuffle(...) TN__CALL_V(tn_random_shuffle_with, tn_random_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
