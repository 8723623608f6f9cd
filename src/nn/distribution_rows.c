/* SPDX-License-Identifier: MIT */
/*
 * The functions of each kind of distribution. Sources of the formulas: Johnson, Kotz, Balakrishnan, "Continuous
 * Univariate Distributions" and "Univariate Discrete Distributions".
 */
#include "nn/distribution.h"
#include "tn_op_functions.h"

#include <math.h>

#define LOG_2_PI 1.8378770664093454836
#define EULER    0.57721566490153286061

/* x where the condition holds, else a number; both branches are finite where they are taken. */
static tn__node *or_else(tn__node *condition, tn__node *x, double number)
{
    TN__PASS_ERROR(x);
    return tn__where(condition, x, like(x, number));
}

static tn__node *standard(tn__node *x, tn__node *a, tn__node *b) { return over(sub(x, a), b); }
static tn__node *scaled(tn__node *z, tn__node *a, tn__node *b) { return add(a, mul(b, z)); }
static tn__node *first(tn__node *a, tn__node *b) { return (void)b, a; }
static tn__node *log_of(tn__node *x) { return map(LOG, x); }

/* ---- normal ---- */

static tn__node *normal_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    return minus(add(plus(times(squared(standard(x, a, b)), 0.5), LOG_2_PI / 2), log_of(b)));
}

static tn__node *normal_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    return times(map(ERFC, times(standard(x, a, b), -0.70710678118654752440)), 0.5);
}

static tn__node *normal_entropy(tn__node *a, tn__node *b)
{
    return add(plus(log_of(b), 0.5 + LOG_2_PI / 2), times(a, 0)); /* of both parameters' shape */
}

static tn__node *second_squared(tn__node *a, tn__node *b) { return add(squared(b), times(a, 0)); }

static tn__node *normal_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    tn__node *ratio = over(b, d), *square = add(squared(ratio), squared(over(sub(a, c), d)));
    return sub(times(plus(square, -1), 0.5), log_of(ratio));
}

/* ---- log-normal: x is exp of a normal ---- */

static tn__node *log_normal_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *inside = with(GREATER, x, 0), *logarithm = log_of(or_else(inside, x, 1));
    return or_else(inside, sub(normal_log_prob(logarithm, a, b), logarithm), -INFINITY);
}

static tn__node *log_normal_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *inside = with(GREATER, x, 0);
    return or_else(inside, normal_cdf(log_of(or_else(inside, x, 1)), a, b), 0);
}

static tn__node *log_normal_entropy(tn__node *a, tn__node *b) { return add(normal_entropy(a, b), a); }
static tn__node *log_normal_mean(tn__node *a, tn__node *b) { return map(EXP, add(a, times(squared(b), 0.5))); }

static tn__node *log_normal_variance(tn__node *a, tn__node *b)
{
    return mul(squared(log_normal_mean(a, b)), map(EXPM1, squared(b)));
}

/* ---- uniform ---- */

static tn__node *between(tn__node *x, tn__node *a, tn__node *b)
{
    return map2(LOGICAL_AND, map2(GREATER_EQUAL, x, a), map2(LESS_EQUAL, x, b));
}

static tn__node *uniform_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    return or_else(between(x, a, b), add(minus(log_of(sub(b, a))), times(x, 0)), -INFINITY);
}

static tn__node *uniform_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    return tn__between(over(sub(x, a), sub(b, a)), 0, 1);
}

static tn__node *uniform_icdf(tn__node *p, tn__node *a, tn__node *b) { return add(a, mul(p, sub(b, a))); }
static tn__node *uniform_entropy(tn__node *a, tn__node *b) { return log_of(sub(b, a)); }
static tn__node *uniform_mean(tn__node *a, tn__node *b) { return times(add(a, b), 0.5); }
static tn__node *uniform_variance(tn__node *a, tn__node *b) { return times(squared(sub(b, a)), 1.0 / 12); }

static tn__node *uniform_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    tn__node *within = map2(LOGICAL_AND, map2(GREATER_EQUAL, a, c), map2(LESS_EQUAL, b, d));
    return or_else(within, log_of(over(sub(d, c), sub(b, a))), INFINITY);
}

/* ---- Laplace ---- */

static tn__node *laplace_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    return minus(add(map(ABS, standard(x, a, b)), log_of(times(b, 2))));
}

/* (1 + sign(z) (1 - exp(-|z|))) / 2 */
static tn__node *laplace_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *z = standard(x, a, b);
    return times(plus(mul(map(SIGN, z), minus(map(EXPM1, minus(map(ABS, z))))), 1), 0.5);
}

static tn__node *laplace_icdf(tn__node *p, tn__node *a, tn__node *b)
{
    tn__node *c = plus(p, -0.5); /* -sign(c) log(1 - 2 |c|) */
    return scaled(minus(mul(map(SIGN, c), map(LOG1P, times(map(ABS, c), -2)))), a, b);
}

static tn__node *laplace_entropy(tn__node *a, tn__node *b) { return add(plus(log_of(times(b, 2)), 1), times(a, 0)); }
static tn__node *laplace_variance(tn__node *a, tn__node *b) { return times(second_squared(a, b), 2); }

static tn__node *laplace_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    tn__node *apart = map(ABS, sub(a, c));
    tn__node *tail = mul(over(b, d), map(EXP, minus(over(apart, b))));
    return plus(add(add(tail, over(apart, d)), log_of(over(d, b))), -1);
}

/* ---- Cauchy ---- */

static tn__node *cauchy_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    return minus(add(map(LOG1P, squared(standard(x, a, b))), log_of(times(b, M_PI))));
}

static tn__node *cauchy_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    return plus(times(map(ARCTAN, standard(x, a, b)), 1 / M_PI), 0.5);
}

static tn__node *cauchy_icdf(tn__node *p, tn__node *a, tn__node *b)
{
    return scaled(map(TAN, times(plus(p, -0.5), M_PI)), a, b);
}

static tn__node *cauchy_entropy(tn__node *a, tn__node *b) { return add(log_of(times(b, 4 * M_PI)), times(a, 0)); }

/* ---- Gumbel ---- */

static tn__node *gumbel_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *z = standard(x, a, b);
    return minus(add(add(z, map(EXP, minus(z))), log_of(b)));
}

static tn__node *gumbel_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    return map(EXP, minus(map(EXP, minus(standard(x, a, b)))));
}

static tn__node *gumbel_icdf(tn__node *p, tn__node *a, tn__node *b)
{
    return scaled(minus(log_of(minus(log_of(p)))), a, b);
}

static tn__node *gumbel_entropy(tn__node *a, tn__node *b) { return add(plus(log_of(b), EULER + 1), times(a, 0)); }
static tn__node *gumbel_mean(tn__node *a, tn__node *b) { return add(a, times(b, EULER)); }
static tn__node *gumbel_variance(tn__node *a, tn__node *b) { return times(second_squared(a, b), M_PI * M_PI / 6); }

/* ---- exponential ---- */

static tn__node *exponential_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    (void)b;
    return or_else(with(GREATER_EQUAL, x, 0), sub(log_of(a), mul(a, x)), -INFINITY);
}

static tn__node *exponential_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *inside = with(GREATER, x, 0);
    return minus(map(EXPM1, minus(mul(a, or_else(inside, x, 0)))));
}

static tn__node *exponential_icdf(tn__node *p, tn__node *a, tn__node *b)
{
    (void)b;
    return minus(over(map(LOG1P, minus(p)), a));
}

static tn__node *exponential_entropy(tn__node *a, tn__node *b) { return (void)b, less_from(1, log_of(a)); }
static tn__node *exponential_mean(tn__node *a, tn__node *b) { return (void)b, map(RECIPROCAL, a); }
static tn__node *exponential_variance(tn__node *a, tn__node *b) { return (void)b, map(RECIPROCAL, squared(a)); }

static tn__node *exponential_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)b, (void)d;
    tn__node *ratio = over(c, a);
    return plus(sub(ratio, log_of(ratio)), -1);
}

/* ---- Pareto ---- */

static tn__node *pareto_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *inside = map2(GREATER_EQUAL, x, a), *safe = tn__where(inside, x, a);
    tn__node *density = sub(add(log_of(b), mul(b, log_of(a))), mul(plus(b, 1), log_of(safe)));
    return or_else(inside, density, -INFINITY);
}

static tn__node *pareto_cdf(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *inside = map2(GREATER_EQUAL, x, a), *safe = tn__where(inside, x, a);
    return minus(map(EXPM1, mul(b, log_of(over(a, safe)))));
}

static tn__node *pareto_icdf(tn__node *p, tn__node *a, tn__node *b)
{
    return mul(a, map(EXP, minus(over(map(LOG1P, minus(p)), b))));
}

static tn__node *pareto_entropy(tn__node *a, tn__node *b)
{
    return plus(add(log_of(over(a, b)), map(RECIPROCAL, b)), 1);
}

static tn__node *pareto_mean(tn__node *a, tn__node *b)
{
    return or_else(with(GREATER, b, 1), over(mul(a, b), plus(b, -1)), INFINITY);
}

static tn__node *pareto_variance(tn__node *a, tn__node *b)
{
    tn__node *rest = mul(squared(plus(b, -1)), plus(b, -2));
    return or_else(with(GREATER, b, 2), over(mul(squared(a), b), rest), INFINITY);
}

/* ---- Bernoulli, of logits ---- */

static tn__node *bernoulli_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    (void)b;
    return sub(mul(x, a), map(SOFTPLUS, a));
}

static tn__node *bernoulli_entropy(tn__node *a, tn__node *b)
{
    (void)b;
    return sub(map(SOFTPLUS, a), mul(a, map(SIGMOID, a)));
}

static tn__node *bernoulli_mean(tn__node *a, tn__node *b) { return (void)b, map(SIGMOID, a); }

static tn__node *bernoulli_variance(tn__node *a, tn__node *b)
{
    (void)b;
    return mul(map(SIGMOID, a), map(SIGMOID, minus(a)));
}

static tn__node *bernoulli_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)b, (void)d;
    return add(mul(map(SIGMOID, a), sub(a, c)), sub(map(SOFTPLUS, c), map(SOFTPLUS, a)));
}

/* ---- geometric ---- */

static tn__node *geometric_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *inside = with(GREATER_EQUAL, x, 1);
    return or_else(inside, add(mul(plus(x, -1), map(LOG1P, minus(a))), log_of(a)), -INFINITY);
}

static tn__node *geometric_entropy(tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *rest = less_from(1, a);
    return over(minus(add(mul(rest, log_of(rest)), mul(a, log_of(a)))), a);
}

static tn__node *geometric_variance(tn__node *a, tn__node *b) { return (void)b, over(less_from(1, a), squared(a)); }

static tn__node *geometric_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)b, (void)d;
    tn__node *miss = sub(map(LOG1P, minus(a)), map(LOG1P, minus(c)));
    return add(log_of(over(a, c)), mul(over(less_from(1, a), a), miss));
}

/* ---- categorical: classes along the last axis ---- */

static int last_axis(const tn__node *x) { return x->shape->ndim - 1; }

static tn__node *log_chances(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn__softmax(TN__OP_LOG_SOFTMAX, a, 1u << last_axis(a));
}

static tn__node *over_classes(tn__node *x)
{
    TN__PASS_ERROR(x);
    int last = last_axis(x);
    return tn__without_axis(tn__sum_over(x, 1u << last), last);
}

static tn__node *categorical_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *all = log_chances(a);
    TN__PASS_ERROR(all);
    int last = last_axis(all);
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    bool fits = x->shape->ndim == last;
    for (int i = 0; fits && i < last; i++)
        fits = x->shape->dim[i] == all->shape->dim[i];
    if (!fits || !tn_dtype_is_integer((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_SHAPE, "categorical", "expected classes, integers of the shape of the logits %s without the "
                   "last axis; got %s of shape %s", tn__shape_text(all->shape->ndim, all->shape->dim, text),
                   tn_dtype_name((tn_dtype)x->dtype), tn__shape_text(x->shape->ndim, x->shape->dim, other));
    return tn__without_axis(tn__gather(all, tn__labels(tn__spread(x, last)), last), last);
}

static tn__node *categorical_entropy(tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *logp = log_chances(a);
    return minus(over_classes(mul(map(EXP, logp), logp)));
}

static tn__node *categorical_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)b, (void)d;
    tn__node *logp = log_chances(a);
    return over_classes(mul(map(EXP, logp), sub(logp, log_chances(c))));
}

/* ---- the table ---- */

#define ROW(...) &(const tn__distribution_row){__VA_ARGS__, NULL}
const tn__distribution_row *const tn__distribution_rows[TN_DIST_KIND_COUNT] = {
    [TN_DIST_NORMAL] = ROW("normal", true, normal_log_prob, normal_cdf, NULL, normal_entropy, first, second_squared,
                           normal_kl),
    [TN_DIST_LOG_NORMAL] = ROW("log_normal", true, log_normal_log_prob, log_normal_cdf, NULL, log_normal_entropy,
                               log_normal_mean, log_normal_variance, normal_kl),
    [TN_DIST_UNIFORM] = ROW("uniform", true, uniform_log_prob, uniform_cdf, uniform_icdf, uniform_entropy, uniform_mean,
                            uniform_variance, uniform_kl),
    [TN_DIST_LAPLACE] = ROW("laplace", true, laplace_log_prob, laplace_cdf, laplace_icdf, laplace_entropy, first,
                            laplace_variance, laplace_kl),
    [TN_DIST_CAUCHY] = ROW("cauchy", true, cauchy_log_prob, cauchy_cdf, cauchy_icdf, cauchy_entropy, NULL, NULL, NULL),
    [TN_DIST_GUMBEL] = ROW("gumbel", true, gumbel_log_prob, gumbel_cdf, gumbel_icdf, gumbel_entropy, gumbel_mean,
                           gumbel_variance, NULL),
    [TN_DIST_EXPONENTIAL] = ROW("exponential", false, exponential_log_prob, exponential_cdf, exponential_icdf,
                                exponential_entropy, exponential_mean, exponential_variance, exponential_kl),
    [TN_DIST_PARETO] = ROW("pareto", true, pareto_log_prob, pareto_cdf, pareto_icdf, pareto_entropy, pareto_mean,
                           pareto_variance, NULL),
    [TN_DIST_BERNOULLI] = ROW("bernoulli", false, bernoulli_log_prob, NULL, NULL, bernoulli_entropy, bernoulli_mean,
                              bernoulli_variance, bernoulli_kl),
    [TN_DIST_GEOMETRIC] = ROW("geometric", false, geometric_log_prob, NULL, NULL, geometric_entropy, exponential_mean,
                              geometric_variance, geometric_kl),
    [TN_DIST_CATEGORICAL] = ROW("categorical", false, categorical_log_prob, NULL, NULL, categorical_entropy, NULL, NULL,
                                categorical_kl),
    [TN_DIST_GAMMA] = &tn__gamma_row, [TN_DIST_CHISQUARE] = &tn__chisquare_row, [TN_DIST_BETA] = &tn__beta_row,
    [TN_DIST_DIRICHLET] = &tn__dirichlet_row, [TN_DIST_STUDENT_T] = &tn__student_t_row,
    [TN_DIST_POISSON] = &tn__poisson_row, [TN_DIST_MULTIVARIATE_NORMAL] = &tn__multivariate_normal_row,
};
