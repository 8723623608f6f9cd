/* SPDX-License-Identifier: MIT */
/*
 * Gradient rules of elementwise operations, one expression each: of the input x (or inputs a and
 * b), the output y and the gradient g of y.
 *
 * Where a function has no derivative, the rule takes a value that keeps training going: |x|' and
 * relu' are 0 at 0, hypot and arctan2 have gradient 0 at the origin, and inputs that tie for a
 * maximum or minimum get half of the gradient each.
 */
#include "autograd/rules.h"
#include "tn_op_functions.h"

#define LN2               0.69314718055994530942
#define LN10              2.30258509299404568402
#define TWO_OVER_SQRT_PI  1.12837916709551257390
#define ONE_OVER_SQRT_2   0.70710678118654752440
#define ONE_OVER_SQRT_2PI 0.39894228040143267794

#define map(OP, x)          tn__unary(TN__OP_##OP, x)
#define map2(OP, a, b)      tn__binary(TN__OP_##OP, a, b)
#define add(a, b)           map2(ADD, a, b)
#define sub(a, b)           map2(SUBTRACT, a, b)
#define mul(a, b)           map2(MULTIPLY, a, b)
#define over(a, b)          map2(DIVIDE, a, b)
#define scale(x, number)    tn__with(TN__OP_MULTIPLY, x, number)
#define plus(x, number)     tn__with(TN__OP_ADD, x, number)
#define square(x)           map(SQUARE, x)
#define constant(x, number) tn__const_like(x, number)
#define less_from_1(x)      sub(constant(x, 1), x)

#define RULE1(name, gradient) \
    void tn__grad_##name(tn__chain *c) \
    { \
        tn__node *g = c->g, *y = c->node, *x = y->in[0]; \
        (void)x; \
        c->in[0] = gradient; \
    }

/* A real number that every element is. */
static bool is_number(const tn__node *x)
{
    return x->op == TN__OP_CONST && !(x->flags & TN__NODE_NEEDS_GRAD) && tn_dtype_is_float((tn_dtype)x->dtype) &&
           !tn_dtype_is_complex((tn_dtype)x->dtype);
}

/* Backward begins with ones: what a mean makes of them stays a number, of which nothing is recorded. */
static tn__node *minus(tn__node *x)
{
    return is_number(x) ? constant(x, -tn__scalar_to_double(x->attr.scalar, (tn_dtype)x->dtype)) : map(NEGATIVE, x);
}

static tn__node *times(tn__node *g, tn__node *x)
{
    bool one = is_number(g) && tn__scalar_to_double(g->attr.scalar, (tn_dtype)g->dtype) == 1;
    return one && is_number(x) ? x : mul(g, x);
}

/* x, but `instead` where x is 0: a divisor. */
static tn__node *or_if_zero(tn__node *x, double instead)
{
    return tn__where(tn__with(TN__OP_EQUAL, x, 0), constant(x, instead), x);
}

RULE1(copy, g)
RULE1(cast, tn__cast(g, (tn_dtype)x->dtype))
RULE1(negative, minus(g))
RULE1(abs, mul(g, map(SIGN, x)))
/* z / |z| turns with z: what of g points along z is lost, the rest is divided by |z|. */
static tn__node *sign_gradient(tn__node *g, tn__node *x, tn__node *y)
{
    if (!tn_dtype_is_complex((tn_dtype)x->dtype))
        return NULL;
    tn__node *tangential = sub(g, mul(mul(y, y), map(CONJUGATE, g)));
    return over(scale(tangential, 0.5), tn__cast(or_if_zero(map(ABS, x), 1), (tn_dtype)x->dtype));
}

RULE1(sign, sign_gradient(g, x, y))
RULE1(conjugate, map(CONJUGATE, g))
/* Of (Im z, 0), by z: i Re g. */
RULE1(imaginary, map2(PACK, constant(g, 0), g))
RULE1(square, mul(g, scale(x, 2)))
RULE1(frexp_fraction, mul(g, map(EXP2, minus(map(FREXP_EXPONENT, x)))))
RULE1(reciprocal, minus(mul(g, square(y))))
RULE1(exp, mul(g, y))
RULE1(exp2, mul(g, scale(y, LN2)))
RULE1(expm1, mul(g, plus(y, 1)))
RULE1(log, over(g, x))
RULE1(log2, over(g, scale(x, LN2)))
RULE1(log10, over(g, scale(x, LN10)))
RULE1(log1p, over(g, plus(x, 1)))
RULE1(sqrt, over(g, scale(y, 2)))
RULE1(rsqrt, mul(g, scale(mul(y, square(y)), -0.5)))
RULE1(cbrt, over(g, scale(square(y), 3)))
RULE1(sin, mul(g, map(COS, x)))
RULE1(cos, minus(mul(g, map(SIN, x))))
RULE1(tan, mul(g, plus(square(y), 1)))
RULE1(arcsin, over(g, map(SQRT, mul(less_from_1(x), plus(x, 1)))))
RULE1(arccos, minus(over(g, map(SQRT, mul(less_from_1(x), plus(x, 1))))))
RULE1(arctan, over(g, plus(square(x), 1)))
RULE1(sinh, mul(g, map(COSH, x)))
RULE1(cosh, mul(g, map(SINH, x)))
RULE1(tanh, mul(g, less_from_1(square(y))))
/* hypot(x, 1), which is holomorphic as a square root only. */
RULE1(arcsinh,
      over(g, tn_dtype_is_complex((tn_dtype)x->dtype) ? map(SQRT, plus(square(x), 1)) : map2(HYPOT, x, constant(x, 1))))
RULE1(arccosh, over(g, mul(map(SQRT, plus(x, -1)), map(SQRT, plus(x, 1)))))
RULE1(arctanh, over(g, mul(less_from_1(x), plus(x, 1))))
RULE1(erf, mul(g, scale(map(EXP, minus(square(x))), TWO_OVER_SQRT_PI)))
RULE1(erfc, mul(g, scale(map(EXP, minus(square(x))), -TWO_OVER_SQRT_PI)))
RULE1(sigmoid, mul(g, mul(y, less_from_1(y))))
RULE1(softplus, mul(g, map(SIGMOID, x)))
/* As y is above 0 where x is, x need not stay in memory. */
RULE1(relu, tn__where(tn__with(TN__OP_GREATER, y, 0), g, constant(g, 0)))
/* x Φ(x) has the derivative Φ(x) + x φ(x), of the standard normal distribution. */
RULE1(gelu, mul(g, add(scale(map(ERFC, scale(x, -ONE_OVER_SQRT_2)), 0.5),
                       mul(x, scale(map(EXP, scale(square(x), -0.5)), ONE_OVER_SQRT_2PI)))))

/* The expressions are evaluated only where wanted. NULL: zero. */
#define RULE2(name, gradient_a, gradient_b) \
    void tn__grad_##name(tn__chain *c) \
    { \
        tn__node *g = c->g, *y = c->node, *a = y->in[0], *b = y->in[1]; \
        (void)a, (void)b; \
        if (tn__wanted(c, 0)) \
            c->in[0] = gradient_a; \
        if (tn__wanted(c, 1)) \
            c->in[1] = gradient_b; \
    }


/* g where the output y came from x alone, half of it where x ties with the other input. */
static tn__node *if_chosen(tn__node *g, tn__node *y, tn__node *x, tn__node *other)
{
    tn__node *share = tn__where(map2(EQUAL, x, other), scale(g, 0.5), g);
    return tn__where(map2(EQUAL, y, x), share, constant(g, 0));
}

/* b a^(b-1). The derivative of a^0 at a = 0 is 0, though 0^-1 is not finite. */
static tn__node *power_slope(tn__node *a, tn__node *b, bool differentiable_by_b)
{
    if (b->op == TN__OP_CONST && !differentiable_by_b) {
        double exponent = tn__scalar_to_double(b->attr.scalar, (tn_dtype)b->dtype);
        if (exponent == 0)
            return constant(a, 0);
        if (exponent == 1)
            return constant(a, 1);
        if (exponent == 2)
            return scale(a, 2);
        return scale(tn__with(TN__OP_POWER, a, exponent - 1), exponent);
    }
    tn__node *both_zero =
        map2(LOGICAL_AND, tn__with(TN__OP_EQUAL, a, 0), tn__with(TN__OP_EQUAL, b, 0));
    return mul(b, map2(POWER, a, tn__where(both_zero, constant(b, 1), plus(b, -1))));
}

/* log a where a > 0, else 0: a^b is not differentiable by b where a is negative, and constant where
 * a is 0. */
static tn__node *log_of_base(tn__node *a)
{
    return map(LOG, tn__where(tn__with(TN__OP_GREATER, a, 0), a, constant(a, 1)));
}

/* a - b, but 0 where both are the same infinity. */
static tn__node *difference(tn__node *a, tn__node *b)
{
    tn__node *same_infinity = map2(LOGICAL_AND, map2(EQUAL, a, b), map(ISINF, a));
    return tn__where(same_infinity, constant(a, 0), sub(a, b));
}

/* x / (a² + b²), with no overflow of the squares. */
static tn__node *over_squares(tn__node *x, tn__node *a, tn__node *b)
{
    tn__node *radius = or_if_zero(map2(HYPOT, a, b), 1);
    return over(over(x, radius), radius);
}

/* Of Re a + i Re b, by a: Re g, by b: Im g; as complex numbers. */
static tn__node *real_of(tn__node *g)
{
    return tn__cast(tn__cast(g, (tn_dtype)tn__dtypes[g->dtype].component), (tn_dtype)g->dtype);
}

RULE2(pack, real_of(g), tn__cast(map(IMAGINARY, g), (tn_dtype)g->dtype))
RULE2(add, g, g)
RULE2(subtract, g, minus(g))
RULE2(multiply, times(g, b), times(g, a))
RULE2(divide, over(g, b), minus(over(mul(g, y), b)))
RULE2(remainder, g, minus(mul(g, map2(FLOOR_DIVIDE, a, b))))
RULE2(fmod, g, minus(mul(g, map(RINT, over(sub(a, y), b)))))
RULE2(power, mul(g, power_slope(a, b, tn__wanted(c, 1))), mul(g, mul(y, log_of_base(a))))
RULE2(maximum, if_chosen(g, y, a, b), if_chosen(g, y, b, a))
RULE2(minimum, if_chosen(g, y, a, b), if_chosen(g, y, b, a))
RULE2(arctan2, mul(g, over_squares(b, a, b)), minus(mul(g, over_squares(a, a, b))))
RULE2(hypot, mul(g, over(a, or_if_zero(y, 1))), mul(g, over(b, or_if_zero(y, 1))))
RULE2(copysign, mul(g, mul(map(SIGN, a), map2(COPYSIGN, constant(b, 1), b))), NULL)
RULE2(logaddexp, mul(g, map(SIGMOID, difference(a, b))), mul(g, map(SIGMOID, difference(b, a))))

RULE2(logaddexp2, mul(g, map(SIGMOID, scale(difference(a, b), LN2))),
      mul(g, map(SIGMOID, scale(difference(b, a), LN2))))
RULE2(heaviside, NULL, tn__where(tn__with(TN__OP_EQUAL, a, 0), g, constant(g, 0)))
RULE2(ldexp, map2(LDEXP, g, b), NULL)

void tn__grad_where(tn__chain *c)
{
    tn__node *condition = c->node->in[0], *zero = constant(c->g, 0);
    if (tn__wanted(c, 1))
        c->in[1] = tn__where(condition, c->g, zero);
    if (tn__wanted(c, 2))
        c->in[2] = tn__where(condition, zero, c->g);
}
