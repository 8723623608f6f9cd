/* SPDX-License-Identifier: MIT */
/*
 * Distributions with parameters: a table of their parameters' ranges and how they are made of uniform and normal
 * numbers. Most are the inverse of the distribution function at a uniform number; gamma, Poisson and binomial are
 * operations of their own (scalar_draw.h), in float64. All is elementwise, so that parameters broadcast and every
 * device gives the same numbers.
 */
#include <tanso/array.h>

#include <float.h>
#include <math.h>

#include "array/draw.h"
#include "tn_op_functions.h"

#define map(OP, x)     tn__unary(TN__OP_##OP, x)
#define map2(OP, a, b) tn__binary(TN__OP_##OP, a, b)
#define scale(x, c)    tn__with(TN__OP_MULTIPLY, x, c)
#define plus(x, c)     tn__with(TN__OP_ADD, x, c)
#define minus(x)       map(NEGATIVE, x)

enum { PARAMETERS = 3 };

/* [0, 1), and (0, 1). What is infinite at an end has its tail cut where they end: in float64 beyond what is ever drawn,
 * in float32 within reach of a large array, whose tail would also be steps. So these distributions are `wide`. */
static tn__node *uniform(const tn__draw *d, tn_dtype dtype) { return tn__draw_next(d, TN__OP_RANDOM_UNIFORM, dtype); }
static tn__node *open_uniform(const tn__draw *d, tn_dtype dtype)
{
    tn__node *u = uniform(d, dtype);
    return map2(MAXIMUM, u, tn__const_like(u, dtype == TN_FLOAT64 ? 0x1p-54 : 0x1p-25));
}
static tn__node *normal(const tn__draw *d, tn_dtype dtype) { return tn__draw_next(d, TN__OP_RANDOM_NORMAL, dtype); }
/* -log(1 - u) */
static tn__node *standard_exponential(const tn__draw *d, tn_dtype dtype)
{
    return minus(map(LOG1P, minus(uniform(d, dtype))));
}
static tn__node *log_gamma(const tn__draw *d, tn__node *shape)
{
    return map2(DRAW_LOG_GAMMA, tn__cast(shape, TN_FLOAT64), uniform(d, TN_FLOAT64));
}
static tn__node *gamma_of(const tn__draw *d, tn__node *shape)
{
    return map2(DRAW_GAMMA, tn__cast(shape, TN_FLOAT64), uniform(d, TN_FLOAT64));
}

/* A distribution: of parameters p, already in dtype t and the result's shape. */
typedef tn__node *recipe(const tn__draw *d, tn_dtype t, tn__node *const *p);
#define RECIPE(name) static tn__node *draw_##name(const tn__draw *d, tn_dtype t, tn__node *const *p)
#define UNUSED       (void)d, (void)t, (void)p

RECIPE(exponential) { return map2(MULTIPLY, standard_exponential(d, t), p[0]); }
RECIPE(gamma) { UNUSED; return map2(MULTIPLY, gamma_of(d, p[0]), p[1]); }
/* x / (x + y) of two gamma variates */
RECIPE(beta) { UNUSED; return map(SIGMOID, map2(SUBTRACT, log_gamma(d, p[0]), log_gamma(d, p[1]))); }
RECIPE(chisquare) { UNUSED; return scale(gamma_of(d, scale(p[0], 0.5)), 2); }
RECIPE(f)
{
    UNUSED;
    tn__node *over = map2(DIVIDE, gamma_of(d, scale(p[0], 0.5)), gamma_of(d, scale(p[1], 0.5)));
    return map2(MULTIPLY, over, map2(DIVIDE, p[1], p[0]));
}
RECIPE(standard_t)
{
    tn__node *z = normal(d, t), *half = scale(p[0], 0.5);
    return map2(MULTIPLY, z, map(SQRT, map2(DIVIDE, half, gamma_of(d, half))));
}
RECIPE(lognormal) { return map(EXP, map2(ADD, map2(MULTIPLY, normal(d, t), p[1]), p[0])); }
RECIPE(laplace)
{
    tn__node *u = open_uniform(d, t), *low = map(LOG, scale(u, 2)),
             *high = minus(map(LOG, scale(minus(plus(u, -1)), 2)));
    return map2(ADD, map2(MULTIPLY, tn__where(tn__with(TN__OP_LESS, u, 0.5), low, high), p[1]), p[0]);
}
RECIPE(logistic)
{
    tn__node *u = open_uniform(d, t);
    return map2(ADD, map2(MULTIPLY, map2(SUBTRACT, map(LOG, u), map(LOG1P, minus(u))), p[1]), p[0]);
}
RECIPE(gumbel)
{
    tn__node *u = open_uniform(d, t);
    return map2(SUBTRACT, p[0], map2(MULTIPLY, map(LOG, minus(map(LOG, u))), p[1]));
}
RECIPE(cauchy)
{
    return map2(ADD, map2(MULTIPLY, map(TAN, scale(plus(open_uniform(d, t), -0.5), M_PI)), p[1]), p[0]);
}
RECIPE(rayleigh) { return map2(MULTIPLY, map(SQRT, scale(standard_exponential(d, t), 2)), p[0]); }
RECIPE(weibull) { return map2(POWER, standard_exponential(d, t), map(RECIPROCAL, p[0])); }
RECIPE(pareto) { return map(EXPM1, map2(DIVIDE, standard_exponential(d, t), p[0])); }
RECIPE(power) { return map2(POWER, open_uniform(d, t), map(RECIPROCAL, p[0])); }
RECIPE(triangular)
{
    tn__node *u = uniform(d, t), *width = map2(SUBTRACT, p[2], p[0]), *left = map2(SUBTRACT, p[1], p[0]);
    tn__node *right = map2(SUBTRACT, p[2], p[1]), *turn = map2(DIVIDE, left, width);
    tn__node *low = map2(ADD, p[0], map(SQRT, map2(MULTIPLY, u, map2(MULTIPLY, width, left))));
    tn__node *high = map2(SUBTRACT, p[2], map(SQRT, map2(MULTIPLY, minus(plus(u, -1)), map2(MULTIPLY, width, right))));
    return tn__where(map2(LESS, u, turn), low, high);
}
/* J. Michael, W. Schucany, R. Haas, "Generating Random Variates Using Transformations with Multiple Roots" (1976) */
RECIPE(wald)
{
    tn__node *z = normal(d, t), *mean = p[0], *y = map2(MULTIPLY, mean, map(SQUARE, z)), *u = uniform(d, t);
    tn__node *root = map(SQRT, map2(ADD, scale(map2(MULTIPLY, p[1], y), 4), map(SQUARE, y)));
    tn__node *x = map2(ADD, mean, map2(MULTIPLY, map2(DIVIDE, mean, scale(p[1], 2)), map2(SUBTRACT, y, root)));
    tn__node *first = map2(LESS_EQUAL, u, map2(DIVIDE, mean, map2(ADD, mean, x)));
    return tn__where(first, x, map2(DIVIDE, map(SQUARE, mean), x));
}
/* ceil(log(1 - u) / log(1 - p)), at least 1 */
RECIPE(geometric)
{
    tn__node *x = map2(DIVIDE, standard_exponential(d, t), minus(map(LOG1P, minus(p[0]))));
    return map2(MAXIMUM, map(CEIL, x), tn__const_like(x, 1));
}
RECIPE(poisson) { UNUSED; return map2(DRAW_POISSON, p[0], uniform(d, TN_FLOAT64)); }
static tn__node *binomial_of(const tn__draw *d, tn__node *n, tn__node *p)
{
    tn__node *in[] = {n, p, uniform(d, TN_FLOAT64)};
    for (int i = 0; i < 3; i++)
        TN__PASS_ERROR(in[i]);
    return tn__apply(TN__OP_DRAW_BINOMIAL, TN_FLOAT64, d->shape, 3, in, (tn__attr){.raw = {0}});
}
RECIPE(binomial) { UNUSED; return binomial_of(d, map(FLOOR, p[0]), p[1]); }
/* Poisson with a gamma distributed mean */
RECIPE(negative_binomial)
{
    UNUSED;
    tn__node *mean = map2(MULTIPLY, gamma_of(d, p[0]), map2(DIVIDE, minus(plus(p[1], -1)), p[1]));
    tn__node *drawn = map2(DRAW_POISSON, mean, uniform(d, TN_FLOAT64));
    /* a mean that DRAW_POISSON does not take is, but for its last digits, what it would give */
    return tn__where(map2(GREATER, mean, tn__const_like(mean, 9e18)), mean, drawn);
}

/* About `mu`, in [-pi, pi] */
RECIPE(vonmises)
{
    UNUSED;
    tn__node *x = map2(ADD, p[0], map2(DRAW_VONMISES, p[1], uniform(d, TN_FLOAT64)));
    return map2(SUBTRACT, x, scale(map(RINT, scale(x, 0.5 / M_PI)), 2 * M_PI));
}
RECIPE(hypergeometric)
{
    UNUSED;
    tn__node *in[] = {map(FLOOR, p[0]), map(FLOOR, p[1]),
                      map2(ADD, map(FLOOR, p[2]), scale(uniform(d, TN_FLOAT64), 0.999999))};
    for (int i = 0; i < 3; i++)
        TN__PASS_ERROR(in[i]);
    return tn__apply(TN__OP_DRAW_HYPERGEOMETRIC, TN_FLOAT64, d->shape, 3, in, (tn__attr){.raw = {0}});
}

/* What a parameter must be: between two numbers, the second of which it may be, and the first where it is `closed`. */
typedef enum range { ANY, POSITIVE, NOT_NEGATIVE, FRACTION, PART, COUNT } range;
static const struct {
    const char *text;
    double above, to;
    bool closed;
} ranges[] = {
    [ANY] = {"a finite number", -DBL_MAX, DBL_MAX, true},
    [POSITIVE] = {"a number above 0", 0, DBL_MAX, false},
    [NOT_NEGATIVE] = {"a number not below 0", 0, DBL_MAX, true},
    [FRACTION] = {"from 0 to 1", 0, 1, true},
    [PART] = {"above 0, at most 1", 0, 1, false},
    [COUNT] = {"from 0 to 9.2e18", 0, 9.2e18, true}, /* what int64 holds */
};

static bool in_range(range r, double x)
{
    return (x > ranges[r].above || (ranges[r].closed && x == ranges[r].above)) && x <= ranges[r].to;
}

/* The same of a parameter's elements: bools, or NULL where all are. */
static tn__node *elements_in_range(range r, tn__node *x)
{
    tn__node *in = NULL;
    bool inexact = tn_dtype_is_float((tn_dtype)x->dtype);
    if (ranges[r].above > -DBL_MAX)
        in = tn__with(ranges[r].closed ? TN__OP_GREATER_EQUAL : TN__OP_GREATER, x, ranges[r].above);
    if (ranges[r].to == DBL_MAX && !inexact)
        return in;
    tn__node *below = ranges[r].to == DBL_MAX ? map(ISFINITE, x) : tn__with(TN__OP_LESS_EQUAL, x, ranges[r].to);
    return in ? map2(LOGICAL_AND, in, below) : below;
}

/* What parameters must be to each other, of numbers and of arrays. */
typedef struct relation {
    const char *text;
    bool (*holds)(const double *p);
    tn__node *(*elements)(tn__node *const *p);
} relation;
static bool ascends(const double *p) { return p[0] <= p[1] && p[1] <= p[2] && p[0] < p[2]; }
static tn__node *elements_ascend(tn__node *const *p)
{
    tn__node *inside = map2(LOGICAL_AND, map2(LESS_EQUAL, p[0], p[1]), map2(LESS_EQUAL, p[1], p[2]));
    return map2(LOGICAL_AND, inside, map2(LESS, p[0], p[2]));
}
static const relation ascending = {"left <= mode <= right, and left < right", ascends, elements_ascend};
static bool enough(const double *p) { return floor(p[2]) <= floor(p[0]) + floor(p[1]) && p[0] < 1e9 && p[1] < 1e9; }
/* its operation gives NaN for the others */
static const relation at_most_all = {"sizes below 1e9, and at most as many taken as there are", enough, NULL};

typedef struct distribution {
    const char *name;
    recipe *f;
    bool whole;                /* int64 by default, computed in float64 */
    bool wide;                 /* floats computed in float64 */
    int parameters;
    range range[PARAMETERS];
    const relation *relation;
} distribution;

/* The result's shape: as given, or what the parameters broadcast to. */
static bool result_shape(const distribution *row, tn__node *const *p, tn_shape *shape)
{
    if (shape->ndim != -1) /* TN_FIT */
        return true;
    const tn__shape *common = tn__common_shape(row->name, row->parameters, p, TN_FLOAT64);
    if (common)
        *shape = tn__shape_value(common);
    return common != NULL;
}

/* Reads the parameters, and checks those that are numbers. */
static tn__node *checked(const distribution *row, const tn_array *const *parameters, tn__node **p)
{
    double value[PARAMETERS];
    bool known = true;
    for (int i = 0; i < row->parameters; i++) {
        p[i] = tn__node_of(parameters[i], row->name);
        TN__PASS_ERROR(p[i]);
        if (tn_dtype_is_complex((tn_dtype)p[i]->dtype))
            TN__REFUSE(TN_ERR_DTYPE, row->name, "parameter %d is complex, expected real numbers", i + 1);
        bool number = tn__foldable(p[i]);
        known = known && number;
        value[i] = number ? tn__scalar_to_double(p[i]->attr.scalar, (tn_dtype)p[i]->dtype) : 0;
        if (number && !in_range(row->range[i], value[i]))
            TN__REFUSE(TN_ERR_VALUE, row->name, "parameter %d is %g, expected %s", i + 1, value[i],
                       ranges[row->range[i]].text);
    }
    if (known && row->relation && !row->relation->holds(value))
        TN__REFUSE(TN_ERR_VALUE, row->name, "parameters %g, %g, %g: expected %s", value[0], value[1], value[2],
                   row->relation->text);
    return NULL;
}

static tn__node *both(tn__node *a, tn__node *b) { return a && b ? map2(LOGICAL_AND, a, b) : a ? a : b; }

/* Parameters in dtype t and the result's shape, on its device; *good: where all elements are in range, or NULL. */
static tn__node *fitted(const distribution *row, const tn__draw *d, tn_dtype t, tn__node **p, tn__node **good)
{
    bool known = true;
    for (int i = 0; i < row->parameters; i++) {
        if (!tn__foldable(p[i]) && p[i]->device != d->device)
            TN__REFUSE(TN_ERR_DEVICE, row->name,
                       "parameter %d is on %s, the result on %s; move it with tn_to, or give .device", i + 1,
                       p[i]->device->name, d->device->name);
        known = known && tn__foldable(p[i]);
        tn__node *in = tn__foldable(p[i]) ? NULL : elements_in_range(row->range[i], p[i]);
        *good = both(*good, in ? tn__expand(in, d->shape) : NULL);
        p[i] = tn__adapt(p[i], t, d->shape, d->device);
        TN__PASS_ERROR(p[i]);
    }
    if (!known && row->relation && row->relation->elements)
        *good = both(*good, row->relation->elements(p));
    return NULL;
}

tn__node *tn__draw_integers(tn__node *x, tn_dtype dtype)
{
    TN__PASS_ERROR(x);
    int bits = 8 * tn__dtypes[dtype].size - (tn__dtypes[dtype].class == TN__CLASS_SIGNED);
    double most = bits > 53 ? ldexp(1 - 0x1p-53, bits) : ldexp(1, bits) - 1; /* of those that float64 has */
    tn__node *known = tn__where(map2(EQUAL, x, x), map2(MINIMUM, x, tn__const_like(x, most)), tn__const_like(x, 0));
    tn__node *y = tn__cast(known, dtype);
    if (bits <= 53 || tn__node_is_error(y))
        return y;
    tn__node *end = tn__const_scalar((tn__scalar){.bits = UINT64_MAX >> (64 - bits)}, dtype, x->shape, x->device);
    return tn__where(map2(GREATER, x, tn__const_like(x, most)), end, y);
}

static tn__node *drawn(const distribution *row, const tn_array *const *parameters, tn_shape shape,
                       const tn_random_opts *opts)
{
    tn__node *p[PARAMETERS], *good = NULL, *failed = checked(row, parameters, p);
    if (failed)
        return failed;
    if (!result_shape(row, p, &shape))
        return tn__failed();
    tn__draw d = tn__draw_new(row->name, shape, row->whole ? TN_INT64 : TN_FLOAT32, opts);
    if (!d.shape)
        return tn__failed();
    if (d.dtype == TN_BOOL || tn_dtype_is_complex(d.dtype) || (!row->whole && !tn_dtype_is_float(d.dtype)))
        TN__REFUSE(TN_ERR_DTYPE, row->name, "draws %s, and the dtype asked for is %s",
                   row->whole ? "whole numbers" : "floats", tn_dtype_name(d.dtype));
    tn_dtype t = row->whole || row->wide || d.dtype == TN_FLOAT64 ? TN_FLOAT64 : TN_FLOAT32;
    failed = fitted(row, &d, t, p, &good);
    if (failed)
        return failed;
    tn__node *x = row->f(&d, t, p);
    TN__PASS_ERROR(x);
    x = good ? tn__where(good, x, tn__const_like(x, NAN)) : x;
    return tn_dtype_is_float(d.dtype) ? tn__cast(x, d.dtype) : tn__draw_integers(x, d.dtype);
}

#define DISTRIBUTION1(name, whole, wide, r0) \
    tn_array *tn_random_##name##_with(const tn_array *a, tn_shape shape, const tn_random_opts *opts) \
    { \
        static const distribution row = {"random_" #name, draw_##name, whole, wide, 1, {r0}, NULL}; \
        TN__RETURN(drawn(&row, (const tn_array *const[]){a}, shape, opts)); \
    }
#define DISTRIBUTION2(name, whole, wide, r0, r1) \
    tn_array *tn_random_##name##_with(const tn_array *a, const tn_array *b, tn_shape shape, \
                                      const tn_random_opts *opts) \
    { \
        static const distribution row = {"random_" #name, draw_##name, whole, wide, 2, {r0, r1}, NULL}; \
        TN__RETURN(drawn(&row, (const tn_array *const[]){a, b}, shape, opts)); \
    }
#define DISTRIBUTION3(name, whole, wide, r0, r1, r2, relation) \
    tn_array *tn_random_##name##_with(const tn_array *a, const tn_array *b, const tn_array *c, tn_shape shape, \
                                      const tn_random_opts *opts) \
    { \
        static const distribution row = {"random_" #name, draw_##name, whole, wide, 3, {r0, r1, r2}, relation}; \
        TN__RETURN(drawn(&row, (const tn_array *const[]){a, b, c}, shape, opts)); \
    }
DISTRIBUTION1(exponential, false, true, NOT_NEGATIVE)
DISTRIBUTION2(gamma, false, true, NOT_NEGATIVE, NOT_NEGATIVE)
DISTRIBUTION2(beta, false, true, POSITIVE, POSITIVE)
DISTRIBUTION1(chisquare, false, true, POSITIVE)
DISTRIBUTION2(f, false, true, POSITIVE, POSITIVE)
DISTRIBUTION1(standard_t, false, true, POSITIVE)
DISTRIBUTION2(lognormal, false, false, ANY, NOT_NEGATIVE)
DISTRIBUTION2(laplace, false, true, ANY, NOT_NEGATIVE)
DISTRIBUTION2(logistic, false, true, ANY, NOT_NEGATIVE)
DISTRIBUTION2(gumbel, false, true, ANY, NOT_NEGATIVE)
DISTRIBUTION2(cauchy, false, true, ANY, NOT_NEGATIVE)
DISTRIBUTION1(rayleigh, false, true, NOT_NEGATIVE)
DISTRIBUTION1(weibull, false, true, POSITIVE)
DISTRIBUTION1(pareto, false, true, POSITIVE)
DISTRIBUTION1(power, false, true, POSITIVE)
DISTRIBUTION2(wald, false, true, POSITIVE, POSITIVE)
DISTRIBUTION1(geometric, true, true, PART)
DISTRIBUTION1(poisson, true, true, COUNT)
DISTRIBUTION2(binomial, true, true, COUNT, FRACTION)
DISTRIBUTION2(negative_binomial, true, true, POSITIVE, PART)
DISTRIBUTION2(vonmises, false, true, ANY, NOT_NEGATIVE)
DISTRIBUTION3(triangular, false, false, ANY, ANY, ANY, &ascending)
DISTRIBUTION3(hypergeometric, true, true, NOT_NEGATIVE, NOT_NEGATIVE, NOT_NEGATIVE, &at_most_all)

tn__node *tn__draw_binomial(const tn__draw *d, tn__node *n, tn__node *p) { return binomial_of(d, n, p); }
tn__node *tn__draw_exponential(const tn__draw *d) { return standard_exponential(d, TN_FLOAT64); }
tn__node *tn__draw_log_gamma(const tn__draw *d, tn__node *shape) { return log_gamma(d, shape); }
