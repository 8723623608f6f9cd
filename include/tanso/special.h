/* SPDX-License-Identifier: MIT */
/*
 * Special functions of real numbers, elementwise. They are computed in float64, within 1e-13 of the value or of 1
 * unless told otherwise, and given in x's floating dtype (integers become floats as with tn_exp); complex operands are
 * TN_ERR_DTYPE. All have gradients of any order.
 */
#ifndef TANSO_SPECIAL_H
#define TANSO_SPECIAL_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* log |gamma(x)|: Stirling's series behind x + 8, reflected for negative x; infinite at 0, -1, -2, ... */
TN_API tn_array *tn_lgamma(const tn_array *x);
/* Its derivative; at 0 -infinity, at negative whole numbers NaN. */
TN_API tn_array *tn_digamma(const tn_array *x);
/* The n-th derivative of digamma, n >= 0; for n > 0 of x > 0, NaN elsewhere. */
TN_API tn_array *tn_polygamma(int n, const tn_array *x);
/* Hurwitz's zeta function, the sum of (q + k)^-s over k >= 0, by Euler and Maclaurin: s > 1, q > 0, NaN elsewhere. The
 * operands broadcast. */
TN_API tn_array *tn_zeta(const tn_array *s, const tn_array *q);

/* The inverse of tn_erf, of x in [-1, 1], and of tn_erfc, of x in [0, 2]; NaN elsewhere. */
TN_API tn_array *tn_erfinv(const tn_array *x);
TN_API tn_array *tn_erfcinv(const tn_array *x);
/* exp(x²) erfc(x), which does not vanish for large x. */
TN_API tn_array *tn_erfcx(const tn_array *x);
/* The standard normal distribution: the chance of no more than x, its logarithm, its inverse. */
TN_API tn_array *tn_ndtr(const tn_array *x);
TN_API tn_array *tn_log_ndtr(const tn_array *x);
TN_API tn_array *tn_ndtri(const tn_array *p);

#ifndef TN_NO_MACROS
#define tn_lgamma(x) TN_AT(tn_lgamma)(TN_ARG(x))
#define tn_digamma(x) TN_AT(tn_digamma)(TN_ARG(x))
#define tn_polygamma(n, x) TN_AT(tn_polygamma)(n, TN_ARG(x))
#define tn_zeta(s, q) TN_AT(tn_zeta)(TN_ARG(s), TN_ARG(q))
#define tn_erfinv(x) TN_AT(tn_erfinv)(TN_ARG(x))
#define tn_erfcinv(x) TN_AT(tn_erfcinv)(TN_ARG(x))
#define tn_erfcx(x) TN_AT(tn_erfcx)(TN_ARG(x))
#define tn_ndtr(x) TN_AT(tn_ndtr)(TN_ARG(x))
#define tn_log_ndtr(x) TN_AT(tn_log_ndtr)(TN_ARG(x))
#define tn_ndtri(p) TN_AT(tn_ndtri)(TN_ARG(p))
#endif

#ifdef __cplusplus
}
#endif
#endif
