/* SPDX-License-Identifier: MIT */
/* The kinds of distributions: rows of functions over borrowed nodes, of parameters a and b. */
#ifndef TN_NN_DISTRIBUTION_H
#define TN_NN_DISTRIBUTION_H

#include <tanso/distributions.h>
#include "nn/terms.h"

typedef tn__node *(*tn__of_x)(tn__node *x, tn__node *a, tn__node *b);
typedef tn__node *(*tn__of_parameters)(tn__node *a, tn__node *b);

typedef struct tn__distribution_row {
    const char *name;
    bool two; /* it has a parameter b */
    tn__of_x log_prob, cdf, icdf; /* NULL: it has none */
    tn__of_parameters entropy, mean, variance;
    tn__node *(*kl)(tn__node *a, tn__node *b, tn__node *c, tn__node *d); /* of (a, b) from (c, d) */
    /* Samples in the shape of `place`, zeros, without gradient; NULL: those of icdf, or distributions.c's own. */
    tn__node *(*draw)(tn__node *a, tn__node *b, tn__node *place, tn_generator *generator);
} tn__distribution_row;

/* By tn_distribution_kind. */
extern const tn__distribution_row *const tn__distribution_rows[TN_DIST_KIND_COUNT];
/* Those that speak of the gamma function (distribution_gamma.c). */
extern const tn__distribution_row tn__gamma_row, tn__chisquare_row, tn__beta_row, tn__dirichlet_row, tn__student_t_row,
    tn__poisson_row;
/* Of vectors, and its sample of a standard normal z (..., n) (distribution_matrix.c). */
extern const tn__distribution_row tn__multivariate_normal_row;
tn__node *tn__multivariate_from(tn__node *a, tn__node *b, tn__node *z);

#endif
