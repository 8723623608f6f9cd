/* SPDX-License-Identifier: MIT */
/*
 * Distributions whose densities speak of the gamma function. Its logarithms are differences of large numbers, so that
 * they are taken in float64. Sources of the formulas as in distribution_rows.c, and Kotz, Balakrishnan, Johnson,
 * "Continuous Multivariate Distributions".
 */
#include "nn/distribution.h"

#include <math.h>

#include "array/draw.h"
#include "array/special.h"
#include "tn_op_functions.h"

static tn__node *wide(tn__node *x) { return tn__node_is_error(x) ? x : tn__cast(x, TN_FLOAT64); }

/* A result in its parameters' dtype, as if it had been computed there. */
static tn__node *narrow(tn__node *y, tn__node *a, tn__node *b)
{
    tn__node *error = tn__first_error(3, (tn__node *[]){y, a, b});
    if (error)
        return error;
    tn_dtype dtype = (tn_dtype)a->dtype;
    return tn__cast(y, b ? tn_dtype_promote(dtype, (tn_dtype)b->dtype) : dtype);
}

static tn__node *log_of(tn__node *x) { return map(LOG, x); }
static tn__node *lg(tn__node *x) { return tn__lgamma(x); }
static tn__node *psi(tn__node *x) { return tn__digamma(x); }

/* x where the condition holds, else a number. */
static tn__node *or_else(tn__node *condition, tn__node *x, double number)
{
    TN__PASS_ERROR(x);
    return tn__where(condition, x, like(x, number));
}

/* The logarithm of a gamma variate, in the shape of the samples. */
static tn__node *log_variate(tn__node *shape, tn__node *place, tn_generator *generator)
{
    TN__PASS_ERROR(shape);
    tn__draw d = {.generator = generator ? generator : tn_default_generator(), .shape = place->shape,
                  .device = place->device, .dtype = TN_FLOAT64};
    return tn__draw_log_gamma(&d, tn__expand(wide(shape), place->shape));
}

/* ---- gamma, and its case chi-square ---- */

static tn__node *gamma_density(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *inside = with(GREATER, x, 0), *safe = or_else(inside, x, 1);
    tn__node *y = sub(add(mul(a, log_of(b)), mul(plus(a, -1), log_of(safe))), add(mul(b, safe), lg(a)));
    return or_else(inside, y, -INFINITY);
}

static tn__node *gamma_entropy_of(tn__node *a, tn__node *b)
{
    return add(sub(a, log_of(b)), add(lg(a), mul(less_from(1, a), psi(a))));
}

static tn__node *gamma_kl_of(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    tn__node *shapes = add(mul(sub(a, c), psi(a)), sub(lg(c), lg(a)));
    return add(shapes, add(mul(c, sub(log_of(b), log_of(d))), mul(a, over(sub(d, b), b))));
}

static tn__node *gamma_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    return narrow(gamma_density(wide(x), wide(a), wide(b)), a, b);
}

static tn__node *gamma_entropy(tn__node *a, tn__node *b) { return narrow(gamma_entropy_of(wide(a), wide(b)), a, b); }
static tn__node *gamma_mean(tn__node *a, tn__node *b) { return over(a, b); }
static tn__node *gamma_variance(tn__node *a, tn__node *b) { return over(a, squared(b)); }

static tn__node *gamma_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    return narrow(gamma_kl_of(wide(a), wide(b), wide(c), wide(d)), a, b);
}

static tn__node *gamma_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    return over(map(EXP, log_variate(a, place, generator)), wide(b));
}

const tn__distribution_row tn__gamma_row = {"gamma", true, gamma_log_prob, NULL, NULL, gamma_entropy, gamma_mean,
                                            gamma_variance, gamma_kl, gamma_draw};

static tn__node *halved(tn__node *a) { return times(wide(a), 0.5); }
static tn__node *half_like(tn__node *a) { return tn__node_is_error(a) ? a : like(a, 0.5); }

static tn__node *chisquare_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *half = halved(a);
    return narrow(gamma_density(wide(x), half, half_like(half)), a, b);
}

static tn__node *chisquare_entropy(tn__node *a, tn__node *b)
{
    tn__node *half = halved(a);
    return narrow(gamma_entropy_of(half, half_like(half)), a, b);
}

static tn__node *chisquare_mean(tn__node *a, tn__node *b) { return (void)b, a; }
static tn__node *chisquare_variance(tn__node *a, tn__node *b) { return (void)b, times(a, 2); }

static tn__node *chisquare_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)d;
    tn__node *half = halved(a), *rate = half_like(half);
    return narrow(gamma_kl_of(half, rate, halved(c), rate), a, b);
}

static tn__node *chisquare_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    (void)b;
    return times(map(EXP, log_variate(halved(a), place, generator)), 2);
}

const tn__distribution_row tn__chisquare_row = {"chisquare", false, chisquare_log_prob, NULL, NULL, chisquare_entropy,
                                                chisquare_mean, chisquare_variance, chisquare_kl, chisquare_draw};

/* ---- beta ---- */

static tn__node *log_beta(tn__node *a, tn__node *b) { return sub(add(lg(a), lg(b)), lg(add(a, b))); }

static tn__node *beta_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *at = wide(x), *p = wide(a), *q = wide(b);
    tn__node *inside = map2(LOGICAL_AND, with(GREATER, at, 0), with(LESS, at, 1)), *safe = or_else(inside, at, 0.5);
    tn__node *y = add(mul(plus(p, -1), log_of(safe)), mul(plus(q, -1), map(LOG1P, minus(safe))));
    return narrow(or_else(inside, sub(y, log_beta(p, q)), -INFINITY), a, b);
}

static tn__node *beta_entropy(tn__node *a, tn__node *b)
{
    tn__node *p = wide(a), *q = wide(b), *sum = add(p, q);
    tn__node *each = add(mul(plus(p, -1), psi(p)), mul(plus(q, -1), psi(q)));
    return narrow(add(sub(log_beta(p, q), each), mul(plus(sum, -2), psi(sum))), a, b);
}

static tn__node *beta_mean(tn__node *a, tn__node *b) { return over(a, add(a, b)); }

static tn__node *beta_variance(tn__node *a, tn__node *b)
{
    tn__node *sum = add(a, b);
    return over(mul(a, b), mul(squared(sum), plus(sum, 1)));
}

static tn__node *beta_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    tn__node *p = wide(a), *q = wide(b), *r = wide(c), *s = wide(d), *sum = add(p, q);
    tn__node *each = add(mul(sub(p, r), psi(p)), mul(sub(q, s), psi(q)));
    tn__node *y = add(sub(log_beta(r, s), log_beta(p, q)), sub(each, mul(sub(sum, add(r, s)), psi(sum))));
    return narrow(y, a, b);
}

static tn__node *beta_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    return map(SIGMOID, sub(log_variate(a, place, generator), log_variate(b, place, generator)));
}

const tn__distribution_row tn__beta_row = {"beta", true, beta_log_prob, NULL, NULL, beta_entropy, beta_mean,
                                           beta_variance, beta_kl, beta_draw};

/* ---- Dirichlet: along the last axis ---- */

static int last_axis(const tn__node *x) { return x->shape->ndim - 1; }

static tn__node *over_classes(tn__node *x)
{
    TN__PASS_ERROR(x);
    int last = last_axis(x);
    return tn__without_axis(tn__sum_over(x, 1u << last), last);
}

/* The sum of a row, which stays as an axis. */
static tn__node *total(tn__node *a) { return tn__node_is_error(a) ? a : tn__sum_over(a, 1u << last_axis(a)); }

/* Of rows of shapes: log of the product of gamma functions over that of the sum. */
static tn__node *log_betas(tn__node *a) { return sub(over_classes(lg(a)), lg(over_classes(a))); }

static tn__node *dirichlet_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *p = wide(a), *at = wide(x), *error = tn__first_error(2, (tn__node *[]){p, at});
    if (error)
        return error;
    if (at->shape->ndim == 0 || at->shape->dim[last_axis(at)] != p->shape->dim[last_axis(p)])
        TN__REFUSE(TN_ERR_SHAPE, "dirichlet", "expected chances of as many classes as there are shapes");
    tn__node *inside = with(GREATER, at, 0), *safe = or_else(inside, at, 1);
    tn__node *each = or_else(inside, mul(plus(p, -1), log_of(safe)), -INFINITY);
    return narrow(sub(over_classes(each), log_betas(p)), a, b);
}

static tn__node *dirichlet_entropy(tn__node *a, tn__node *b)
{
    tn__node *p = wide(a), *sum = total(p);
    tn__node *each = mul(plus(p, -1), sub(psi(sum), psi(p)));
    return narrow(add(log_betas(p), over_classes(each)), a, b);
}

static tn__node *dirichlet_mean(tn__node *a, tn__node *b) { return (void)b, over(a, total(a)); }

static tn__node *dirichlet_variance(tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *sum = total(a);
    return over(mul(a, sub(sum, a)), mul(squared(sum), plus(sum, 1)));
}

static tn__node *dirichlet_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)d;
    tn__node *p = wide(a), *q = wide(c);
    tn__node *each = mul(sub(p, q), sub(psi(p), psi(total(p))));
    return narrow(add(sub(log_betas(q), log_betas(p)), over_classes(each)), a, b);
}

static tn__node *dirichlet_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    (void)b;
    tn__node *y = log_variate(a, place, generator);
    return tn__node_is_error(y) ? y : tn__softmax(TN__OP_SOFTMAX, y, 1u << last_axis(y));
}

const tn__distribution_row tn__dirichlet_row = {"dirichlet", false, dirichlet_log_prob, NULL, NULL, dirichlet_entropy,
                                                dirichlet_mean, dirichlet_variance, dirichlet_kl, dirichlet_draw};

/* ---- Student's t ---- */

static tn__node *student_t_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *v = wide(a), *half = times(plus(v, 1), 0.5);
    tn__node *y = sub(sub(lg(half), lg(times(v, 0.5))), times(log_of(times(v, M_PI)), 0.5));
    return narrow(sub(y, mul(half, map(LOG1P, over(squared(wide(x)), v)))), a, b);
}

static tn__node *student_t_entropy(tn__node *a, tn__node *b)
{
    tn__node *v = wide(a), *half = times(plus(v, 1), 0.5), *less = times(v, 0.5);
    tn__node *y = mul(half, sub(psi(half), psi(less)));
    return narrow(add(y, add(times(log_of(v), 0.5), sub(plus(lg(less), 0.57236494292470008707), lg(half)))), a, b);
}

static tn__node *student_t_mean(tn__node *a, tn__node *b)
{
    (void)b;
    return or_else(with(GREATER, a, 1), times(a, 0), NAN);
}

/* a / (a - 2) for a > 2, infinite down to 1, below there is none. */
static tn__node *student_t_variance(tn__node *a, tn__node *b)
{
    (void)b;
    tn__node *large = with(GREATER, a, 2), *y = or_else(large, over(a, plus(or_else(large, a, 3), -2)), INFINITY);
    return or_else(with(GREATER, a, 1), y, NAN);
}

static tn__node *student_t_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    (void)b;
    tn__node *half = halved(a), *z = wide(tn__normal_like(place, generator));
    return mul(z, map(EXP, times(sub(log_of(half), log_variate(half, place, generator)), 0.5)));
}

const tn__distribution_row tn__student_t_row = {"student_t", false, student_t_log_prob, NULL, NULL, student_t_entropy,
                                                student_t_mean, student_t_variance, NULL, student_t_draw};

/* ---- Poisson ---- */

static tn__node *poisson_log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *at = wide(x), *mean = wide(a), *inside = with(GREATER_EQUAL, at, 0), *safe = or_else(inside, at, 0);
    tn__node *y = sub(mul(safe, log_of(mean)), add(mean, lg(plus(safe, 1))));
    return narrow(or_else(inside, y, -INFINITY), a, b);
}

static tn__node *poisson_kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    (void)b, (void)d;
    return add(mul(a, sub(log_of(a), log_of(c))), sub(c, a));
}

static tn__node *poisson_draw(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator)
{
    (void)b;
    tn__draw d = {.generator = generator ? generator : tn_default_generator(), .shape = place->shape,
                  .device = place->device, .dtype = TN_FLOAT64};
    return map2(DRAW_POISSON, wide(a), tn__draw_next(&d, TN__OP_RANDOM_UNIFORM, TN_FLOAT64));
}

const tn__distribution_row tn__poisson_row = {"poisson", false, poisson_log_prob, NULL, NULL, NULL, chisquare_mean,
                                              chisquare_mean, poisson_kl, poisson_draw};
