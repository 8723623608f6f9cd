/* SPDX-License-Identifier: MIT */
/*
 * The normal distribution of several numbers that depend on one another: of a mean a (..., n) and the lower triangular
 * factor b (..., n, n) of the covariance b b^T. With z = b^-1 (x - a) the density is exp(-|z|^2 / 2) over
 * (2 pi)^(n/2) |det b|.
 */
#include "nn/distribution.h"

#include "array/build_library.h"
#include "linalg/matrix.h"

#define LOG_2_PI 1.8378770664093454836

static int last_axis(const tn__node *x) { return x->shape->ndim - 1; }

static tn__node *over_last(tn__node *x)
{
    TN__PASS_ERROR(x);
    return tn__without_axis(tn__sum_over(x, 1u << last_axis(x)), last_axis(x));
}

/* What stands above the diagonal is no parameter. */
static tn__node *factor(tn__node *b) { return tn__lower(b, 0); }

/* log |det b|, of the elements on the diagonal alone. */
static tn__node *log_size(tn__node *b)
{
    TN__PASS_ERROR(b);
    return over_last(over_last(map(LOG, tn__where(tn__on_diagonal(b), map(ABS, b), like(b, 1)))));
}

/* b^-1 x of a matrix, and |b^-1 x|^2 of a vector. */
static tn__node *solved(tn__node *b, tn__node *x)
{
    return tn__solve("multivariate_normal", tn__matrix_operand("multivariate_normal", factor(b), 2), x, false);
}
static tn__node *distance(tn__node *b, tn__node *x)
{
    TN__PASS_ERROR(x);
    return over_last(over_last(squared(solved(b, tn__spread(x, x->shape->ndim)))));
}

/* Zeros of the shape of the mean without its last axis. */
static tn__node *nothing(tn__node *a) { return times(over_last(a), 0); }

static tn__node *log_prob(tn__node *x, tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    double constant = LOG_2_PI * (double)a->shape->dim[last_axis(a)];
    return minus(add(times(plus(distance(b, sub(x, a)), constant), 0.5), log_size(b)));
}

static tn__node *entropy(tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    return add(plus(log_size(b), (1 + LOG_2_PI) / 2 * (double)a->shape->dim[last_axis(a)]), nothing(a));
}

static tn__node *variance(tn__node *a, tn__node *b) { return add(over_last(squared(factor(b))), times(a, 0)); }
static tn__node *mean(tn__node *a, tn__node *b) { return add(a, times(over_last(b), 0)); }

static tn__node *kl(tn__node *a, tn__node *b, tn__node *c, tn__node *d)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    tn__node *trace = over_last(over_last(squared(solved(d, factor(b)))));
    tn__node *sum = plus(add(trace, distance(d, sub(a, c))), -(double)a->shape->dim[last_axis(a)]);
    return add(times(sum, 0.5), sub(log_size(d), log_size(b)));
}

/* a + b z */
tn__node *tn__multivariate_from(tn__node *a, tn__node *b, tn__node *z)
{
    TN__PASS_ERROR(z);
    int last = z->shape->ndim;
    tn__node *product = tn__matmul_node(factor(b), tn__spread(z, last));
    return tn__node_is_error(product) ? product : add(a, tn__without_axis(product, last));
}

const tn__distribution_row tn__multivariate_normal_row = {"multivariate_normal", true, log_prob, NULL, NULL, entropy,
                                                          mean, variance, kl, NULL};
