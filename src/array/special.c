/* SPDX-License-Identifier: MIT */
/*
 * Special functions as expressions of elementary ones, so that they fuse with what is around them and their gradients
 * are those of the expressions. Where there are two branches, the one that is not taken computes something finite, as
 * an infinite slope times 0 would be NaN. Sources: Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.1.40,
 * 6.3.18, 7.1.23 and 23.1.30; for the first guess of the inverse error function Winitzki, "A handy approximation for
 * the error function and its inverse" (2008).
 */
#include "array/special.h"

#include <math.h>

#include "array/build_parts.h"
#include "tn_op_functions.h"

#define map(OP, x)     tn__unary(TN__OP_##OP, x)
#define map2(OP, a, b) tn__binary(TN__OP_##OP, a, b)
#define with(OP, x, c) tn__with(TN__OP_##OP, x, c)
#define add(a, b)      map2(ADD, a, b)
#define sub(a, b)      map2(SUBTRACT, a, b)
#define mul(a, b)      map2(MULTIPLY, a, b)
#define over(a, b)     map2(DIVIDE, a, b)
#define times(x, c)    with(MULTIPLY, x, c)
#define plus(x, c)     with(ADD, x, c)
#define minus(x)       map(NEGATIVE, x)
#define like(x, c)     tn__const_like(x, c)

#define HALF_LOG_2_PI 0.91893853320467274178
#define SQRT_PI       1.77245385090551602730

enum { SHIFT = 8, TERMS = 9 };

/* Bernoulli's numbers B2, B4, ... */
static const double bernoulli[] = {1. / 6,      -1. / 30,      1. / 42,       -1. / 30,         5. / 66,  -691. / 2730,
                                   7. / 6,      -3617. / 510,  43867. / 798,  -174611. / 330,   854513. / 138,
                                   -236364091. / 2730};

static tn__node *wide(tn__node *x) { return tn__node_is_error(x) ? x : tn__cast(x, TN_FLOAT64); }

static tn__node *choose(tn__node *condition, tn__node *a, tn__node *b) { return tn__where(condition, a, b); }

/* x where the condition holds, else a number. */
static tn__node *or_number(tn__node *condition, tn__node *x, double number)
{
    return tn__node_is_error(x) ? x : tn__where(condition, x, like(x, number));
}

/* c[0] + c[1] z + ... */
static tn__node *polynomial(tn__node *z, int count, const double *c)
{
    TN__PASS_ERROR(z);
    tn__node *sum = like(z, c[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        sum = plus(mul(sum, z), c[i]);
    return sum;
}

/* ---- gamma ---- */

/* x (x + 1) ... (x + 7) for what is below 8, else 1. */
static tn__node *rising(tn__node *x, tn__node *small)
{
    tn__node *safe = or_number(small, x, 1), *product = safe;
    for (int k = 1; k < SHIFT; k++)
        product = mul(product, plus(safe, k));
    return or_number(small, product, 1);
}

/* For x >= 0. */
static tn__node *lgamma_of(tn__node *x)
{
    tn__node *small = with(LESS, x, SHIFT), *s = choose(small, plus(x, SHIFT), x);
    double c[TERMS];
    for (int k = 0; k < TERMS; k++) /* B2k / (2k (2k - 1)) */
        c[k] = bernoulli[k] / ((2 * k + 2) * (2 * k + 1));
    tn__node *r = map(RECIPROCAL, s), *series = mul(polynomial(map(SQUARE, r), TERMS, c), r);
    tn__node *main = plus(mul(plus(s, -0.5), plus(map(LOG, s), -1)), HALF_LOG_2_PI - 0.5);
    return sub(add(main, series), map(LOG, rising(x, small)));
}

/* x reflected to 1 - x where it is negative; *part: how far x is from a whole number there, else 1/2. */
static tn__node *reflected(tn__node *x, tn__node **negative, tn__node **part)
{
    *negative = with(LESS, x, 0);
    *part = or_number(*negative, sub(x, map(RINT, x)), 0.5);
    return choose(*negative, tn__binary(TN__OP_SUBTRACT, like(x, 1), x), x);
}

tn__node *tn__lgamma(tn__node *x)
{
    x = wide(x);
    TN__PASS_ERROR(x);
    tn__node *negative, *part, *y = lgamma_of(reflected(x, &negative, &part));
    tn__node *sine = map(ABS, map(SIN, times(part, M_PI)));
    return choose(negative, sub(map(LOG, over(like(x, M_PI), sine)), y), y);
}

tn__node *tn__digamma(tn__node *x)
{
    x = wide(x);
    TN__PASS_ERROR(x);
    tn__node *negative, *part, *at = reflected(x, &negative, &part);
    tn__node *small = with(LESS, at, SHIFT), *s = choose(small, plus(at, SHIFT), at);
    double c[TERMS];
    for (int k = 0; k < TERMS; k++) /* B2k / 2k */
        c[k] = bernoulli[k] / (2 * k + 2);
    tn__node *r = map(RECIPROCAL, s), *z = map(SQUARE, r);
    tn__node *y = sub(sub(map(LOG, s), times(r, 0.5)), mul(polynomial(z, TERMS, c), z)), *sum = NULL;
    tn__node *safe = or_number(small, at, 1);
    for (int k = 0; k < SHIFT; k++) {
        tn__node *term = map(RECIPROCAL, plus(safe, k));
        sum = sum ? add(sum, term) : term;
    }
    y = sub(y, or_number(small, sum, 0));
    tn__node *reflected = sub(y, over(like(x, M_PI), map(TAN, times(part, M_PI))));
    tn__node *pole = map2(LOGICAL_AND, negative, with(EQUAL, part, 0));
    return choose(pole, like(x, NAN), choose(negative, reflected, y));
}

/* Ten terms, and the tail of q + 10 by the sum formula: its integral, its first half, and derivatives. */
tn__node *tn__zeta(tn__node *s, tn__node *q)
{
    enum { FIRST = 10, DERIVATIVES = sizeof bernoulli / sizeof *bernoulli };
    s = wide(s);
    q = wide(q);
    TN__PASS_ERROR(s);
    TN__PASS_ERROR(q);
    tn__node *fine = map2(LOGICAL_AND, with(GREATER, s, 1), with(GREATER, q, 0));
    s = or_number(with(GREATER, s, 1), s, 2);
    q = or_number(with(GREATER, q, 0), q, 1);
    tn__node *sum = map2(POWER, q, minus(s));
    for (int k = 1; k < FIRST; k++)
        sum = add(sum, map2(POWER, plus(q, k), minus(s)));
    tn__node *a = plus(q, FIRST), *power = map2(POWER, a, minus(s)), *r = map(RECIPROCAL, a);
    sum = add(sum, mul(power, plus(over(a, plus(s, -1)), 0.5)));
    /* s (s + 1) ... (s + 2j - 2) / (2j)! a^(1 - 2j) */
    tn__node *factor = times(mul(s, r), 0.5), *tail = times(factor, bernoulli[0]);
    for (int j = 1; j < DERIVATIVES; j++) {
        factor = mul(factor, mul(mul(plus(s, 2 * j - 1), plus(s, 2 * j)), map(SQUARE, r)));
        factor = times(factor, 1. / ((2 * j + 1) * (2 * j + 2)));
        tail = add(tail, times(factor, bernoulli[j]));
    }
    return or_number(fine, add(sum, mul(power, tail)), NAN);
}

/* ---- the error function's kin ---- */

/* y of erfc(y) = q near y: Halley's step. What is small of the error is small of its derivatives. */
static tn__node *improved(tn__node *y, tn__node *error)
{
    tn__node *u = times(mul(error, map(EXP, map(SQUARE, y))), -SQRT_PI / 2);
    return sub(y, over(u, plus(mul(u, y), 1)));
}

/* Of q in (0, 1/2]. */
static tn__node *tail_inverse(tn__node *q)
{
    const double a = 0.147, b = 2 / (M_PI * a);
    tn__node *l = map(LOG, mul(q, tn__binary(TN__OP_SUBTRACT, like(q, 2), q))), *half = plus(times(l, 0.5), b);
    tn__node *y = map(SQRT, sub(map(SQRT, sub(map(SQUARE, half), times(l, 1 / a))), half));
    for (int i = 0; i < 3; i++)
        y = improved(y, sub(map(ERFC, y), q));
    return y;
}

/* Of |x| <= 1/2: a few terms of the series, then Halley's steps. */
static tn__node *middle_inverse(tn__node *x)
{
    static const double c[] = {SQRT_PI / 2, 0.23201366653465449, 0.12755617530559796, 0.08655212924154753,
                               0.064959617745385};
    tn__node *y = mul(polynomial(map(SQUARE, x), 5, c), x);
    for (int i = 0; i < 3; i++)
        y = improved(y, sub(x, map(ERF, y)));
    return y;
}

/* y of erf(y) = x, of x and of what it lacks of 1 or -1, whichever is nearer. */
static tn__node *inverse(tn__node *x, tn__node *lack)
{
    tn__node *middle = with(LESS_EQUAL, map(ABS, x), 0.5), *tail = with(GREATER, lack, 0);
    tn__node *near = middle_inverse(or_number(middle, x, 0));
    tn__node *far = tail_inverse(or_number(map2(LOGICAL_AND, tail, map(LOGICAL_NOT, middle)), lack, 0.25));
    TN__PASS_ERROR(far);
    far = choose(tail, far, choose(with(EQUAL, lack, 0), like(far, INFINITY), like(far, NAN)));
    return choose(middle, near, choose(with(LESS, x, 0), minus(far), far));
}

static tn__node *erfinv(tn__node *x)
{
    return inverse(x, tn__binary(TN__OP_SUBTRACT, like(x, 1), map(ABS, x)));
}

static tn__node *erfcinv(tn__node *q)
{
    tn__node *rest = tn__binary(TN__OP_SUBTRACT, like(q, 2), q);
    return inverse(tn__binary(TN__OP_SUBTRACT, like(q, 1), q), choose(with(GREATER, q, 1), rest, q));
}

/* Beyond 12 the series 1 - 1 / 2x² + 3 / 4x⁴ - ... over x sqrt(pi), cut before its terms grow. */
static tn__node *erfcx(tn__node *x)
{
    enum { MANY = 14 };
    double c[MANY] = {1};
    for (int k = 1; k < MANY; k++)
        c[k] = -c[k - 1] * (2 * k - 1) / 2;
    tn__node *large = with(GREATER, x, 12), *small = or_number(large, x, 12), *r = map(RECIPROCAL, small);
    tn__node *series = times(mul(polynomial(map(SQUARE, r), MANY, c), r), 1 / SQRT_PI);
    tn__node *near = or_number(map(LOGICAL_NOT, large), x, 0);
    return choose(large, series, mul(map(EXP, map(SQUARE, near)), map(ERFC, near)));
}

static tn__node *ndtr(tn__node *x) { return times(map(ERFC, times(x, -M_SQRT1_2)), 0.5); }

static tn__node *log_ndtr(tn__node *x)
{
    tn__node *low = with(LESS, x, -1), *below = or_number(low, x, -1), *above = or_number(map(LOGICAL_NOT, low), x, 0);
    tn__node *tail = sub(map(LOG, times(erfcx(times(below, -M_SQRT1_2)), 0.5)), times(map(SQUARE, below), 0.5));
    return choose(low, tail, map(LOG1P, times(map(ERFC, times(above, M_SQRT1_2)), -0.5)));
}

static tn__node *ndtri(tn__node *p) { return times(erfcinv(times(p, 2)), -M_SQRT2); }

/* ---- public functions ---- */

/* An operand that is real, in its floating dtype. */
static tn__node *real_operand(const char *operation, const tn_array *x)
{
    tn__node *node = tn__node_of(x, operation);
    TN__PASS_ERROR(node);
    if (tn_dtype_is_complex((tn_dtype)node->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "expected real numbers, got %s", tn_dtype_name((tn_dtype)node->dtype));
    node = tn__strong(node);
    return tn__node_is_error(node) ? node : tn__cast(node, tn__dtype_to_float((tn_dtype)node->dtype));
}

static tn__node *special(const char *operation, const tn_array *x, tn__node *(*of)(tn__node *x))
{
    tn__node *node = real_operand(operation, x), *y = node;
    if (!tn__node_is_error(node))
        y = of(wide(node));
    return tn__node_is_error(y) ? y : tn__cast(y, (tn_dtype)node->dtype);
}

#define SPECIAL(name, of) \
    tn_array *tn_##name(const tn_array *x) { TN__RETURN(special(#name, x, of)); }
SPECIAL(lgamma, tn__lgamma)
SPECIAL(digamma, tn__digamma)
SPECIAL(erfinv, erfinv)
SPECIAL(erfcinv, erfcinv)
SPECIAL(erfcx, erfcx)
SPECIAL(ndtr, ndtr)
SPECIAL(log_ndtr, log_ndtr)
SPECIAL(ndtri, ndtri)

tn_array *tn_zeta(const tn_array *s, const tn_array *q)
{
    tn__call call = tn__enter();
    tn__node *a = real_operand("zeta", s), *b = real_operand("zeta", q);
    tn__node *y = tn__node_is_error(a) ? a : tn__node_is_error(b) ? b : tn__zeta(a, b);
    if (tn__node_is_error(y))
        return tn__leave_array(call, y);
    return tn__leave_array(call, tn__cast(y, tn_dtype_promote((tn_dtype)a->dtype, (tn_dtype)b->dtype)));
}

/* (-1)^(n + 1) n! zeta(n + 1, x) */
tn_array *tn_polygamma(int n, const tn_array *x)
{
    static const char operation[] = "polygamma";
    tn__call call = tn__enter();
    tn__node *node = real_operand(operation, x), *y = node;
    if (n < 0 || n > 100) {
        tn__fail(TN_ERR_VALUE, operation, "expected n from 0 to 100, got %d", n);
        return tn__leave_error(call);
    }
    if (!tn__node_is_error(node))
        y = n == 0 ? tn__digamma(node)
                   : times(tn__zeta(like(wide(node), n + 1), node), (n % 2 ? 1 : -1) * tgamma(n + 1));
    return tn__leave_array(call, tn__node_is_error(y) ? y : tn__cast(y, (tn_dtype)node->dtype));
}
