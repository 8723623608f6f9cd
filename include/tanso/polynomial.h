/* SPDX-License-Identifier: MIT */
/*
 * Polynomials of one variable as vectors of coefficients, the highest power first: NumPy's poly functions. {1, 0, -4}
 * is x^2 - 4. Values, sums, products, derivatives and integrals are differentiable.
 */
#ifndef TANSO_POLYNOMIAL_H
#define TANSO_POLYNOMIAL_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The values at x, of any shape, by Horner's rule. */
TN_API tn_array *tn_polyval(const tn_array *p, const tn_array *x);
TN_API tn_array *tn_polyadd(const tn_array *p, const tn_array *q);
TN_API tn_array *tn_polysub(const tn_array *p, const tn_array *q);
/* The product; zeros in front of either are left out, so it reads them. */
TN_API tn_array *tn_polymul(const tn_array *p, const tn_array *q);
/* p = quotient q + remainder, in floats; zeros in front of the remainder (up to 1e-8) are left out, for which it is
 * read. */
TN_API tn_status tn_polydiv(const tn_array *p, const tn_array *q, tn_array **quotient, tn_array **remainder);
/* The derivative of order m (0: p), and m times (1000 at most) the integral; `constants` (NULL: zeros): one for all, or
 * m of them, the first integral's first. */
TN_API tn_array *tn_polyder(const tn_array *p, int m);
TN_API tn_array *tn_polyint(const tn_array *p, int m, const tn_array *constants);
/* The polynomial, with 1 in front, whose roots are the elements of a vector, or the eigenvalues of a square matrix;
 * real where the roots are real or pairs of conjugates. Evaluates. */
TN_API tn_array *tn_poly(const tn_array *roots);
/* The roots: eigenvalues of the companion matrix. Evaluates. */
TN_API tn_array *tn_roots(const tn_array *p);

typedef struct tn_polyfit_opts {
    const char *_;
    const tn_array *weights; /* a vector: of each point's difference, not its square */
    double rcond; /* singular values up to this times the largest do not count; default: points times epsilon */
    bool unscaled;           /* covariance as if the weights were the points' 1 / standard deviation */
    tn_array **covariance; /* out: of the coefficients; for y of several columns a matrix a column, along a last axis */
    tn_array **residuals;    /* out, as tn_linalg_lstsq gives them: sums of squared differences, */
    tn_array **rank;         /* the rank of the scaled matrix of powers, */
    tn_array **singular;     /* and its singular values */
} tn_polyfit_opts;
/* The polynomial of a degree, 0 to 10000, that is nearest to the points (x, y), by least squares; y of one axis or two:
 * a fit a column. */
TN_API tn_array *tn_polyfit_with(const tn_array *x, const tn_array *y, int degree, const tn_polyfit_opts *opts);

#ifndef TN_NO_MACROS
#define tn_polyval(p, x) TN_AT(tn_polyval)(TN_ARG(p), TN_ARG(x))
#define tn_polyadd(p, q) TN_AT(tn_polyadd)(TN_ARG(p), TN_ARG(q))
#define tn_polysub(p, q) TN_AT(tn_polysub)(TN_ARG(p), TN_ARG(q))
#define tn_polymul(p, q) TN_AT(tn_polymul)(TN_ARG(p), TN_ARG(q))
#define tn_polydiv(p, q, quotient, remainder) TN_AT(tn_polydiv)(TN_ARG(p), TN_ARG(q), quotient, remainder)
#define tn_polyder(p, m) TN_AT(tn_polyder)(TN_ARG(p), m)
#define tn_polyint(p, m, constants) TN_AT(tn_polyint)(TN_ARG(p), m, constants)
#define tn_poly(roots) TN_AT(tn_poly)(TN_ARG(roots))
#define tn_roots(p) TN_AT(tn_roots)(TN_ARG(p))
#define tn_polyfit(...) TN__CALL_AAV(tn_polyfit_with, tn_polyfit_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
