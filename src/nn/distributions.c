/* SPDX-License-Identifier: MIT */
/* Distributions as values: what is asked of them, and samples. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <tanso/distributions.h>

#include "array/draw.h"
#include "nn/distribution.h"

typedef tn__distribution_row row;

#define MAKE(name, KIND) \
    tn_distribution tn_dist_##name(const tn_array *a, const tn_array *b) \
    { \
        return (tn_distribution){TN_DIST_##KIND, a, b}; \
    }
#define MAKE_OF_ONE(name, KIND) \
    tn_distribution tn_dist_##name(const tn_array *a) { return (tn_distribution){TN_DIST_##KIND, a, NULL}; }
MAKE(normal, NORMAL)
MAKE(log_normal, LOG_NORMAL)
MAKE(uniform, UNIFORM)
MAKE(laplace, LAPLACE)
MAKE(cauchy, CAUCHY)
MAKE(gumbel, GUMBEL)
MAKE(pareto, PARETO)
MAKE_OF_ONE(exponential, EXPONENTIAL)
MAKE_OF_ONE(bernoulli, BERNOULLI)
MAKE_OF_ONE(geometric, GEOMETRIC)
MAKE_OF_ONE(categorical, CATEGORICAL)
MAKE(gamma, GAMMA)
MAKE(beta, BETA)
MAKE_OF_ONE(chisquare, CHISQUARE)
MAKE_OF_ONE(dirichlet, DIRICHLET)
MAKE_OF_ONE(student_t, STUDENT_T)
MAKE_OF_ONE(poisson, POISSON)
MAKE(multivariate_normal, MULTIVARIATE_NORMAL)

static int last_axis(const tn__node *x) { return x->shape->ndim - 1; }

/* A parameter; C numbers are float32. */
static tn__node *parameter(const tn_array *x, const char *operation)
{
    tn__node *node = tn__node_of(x, operation);
    if (!tn__node_is_error(node) && node->flags & TN__NODE_WEAK)
        return tn__cast(tn__strong(node), TN_FLOAT32);
    return tn__only_floating(x, operation);
}

static bool in_classes(tn_distribution d) { return d.kind == TN_DIST_CATEGORICAL || d.kind == TN_DIST_DIRICHLET; }

/* A mean (..., n) and a factor (..., n, n)? */
static tn__node *refused_factor(const tn__node *a, const tn__node *b)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    int vector = a->shape->ndim - 1, matrix = b->shape->ndim - 2;
    if (vector >= 0 && matrix >= 0 && b->shape->dim[matrix] == a->shape->dim[vector] &&
        b->shape->dim[matrix + 1] == a->shape->dim[vector])
        return NULL;
    TN__REFUSE(TN_ERR_SHAPE, "multivariate_normal", "expected a mean (..., n) and a factor (..., n, n), got shapes %s "
                                                    "and %s",
               tn__shape_text(a->shape->ndim, a->shape->dim, text),
               tn__shape_text(b->shape->ndim, b->shape->dim, other));
}

/* A distribution's row and the nodes of its parameters; the error, or NULL. */
static tn__node *read(const char *operation, tn_distribution d, const row **of, tn__node *in[2])
{
    if ((unsigned)d.kind >= TN_DIST_KIND_COUNT || d.kind == TN_DIST_NONE)
        TN__REFUSE(TN_ERR_VALUE, operation, "%d is no tn_distribution_kind: make distributions with tn_dist_normal and "
                                            "its like", (int)d.kind);
    *of = tn__distribution_rows[d.kind];
    in[0] = parameter(d.a, (*of)->name);
    in[1] = (*of)->two ? parameter(d.b, (*of)->name) : NULL;
    tn__node *error = tn__first_error(2, in);
    if (!error && in_classes(d) && (in[0]->shape->ndim == 0 || in[0]->shape->dim[last_axis(in[0])] < 1))
        TN__REFUSE(TN_ERR_SHAPE, (*of)->name, "expected parameters of at least one class along the last axis");
    return !error && d.kind == TN_DIST_MULTIVARIATE_NORMAL ? refused_factor(in[0], in[1]) : error;
}

static tn__node *has_none(const row *of, const char *operation)
{
    TN__REFUSE(TN_ERR_UNSUPPORTED, operation, "the %s distribution has no %s here", of->name, operation);
}

static tn_array *at_x(const char *operation, tn_distribution d, const tn_array *x, size_t offset)
{
    tn__call call = tn__enter();
    const row *of = NULL;
    tn__node *in[2], *error = read(operation, d, &of, in);
    tn__node *at = error                               ? error
                   : d.kind == TN_DIST_CATEGORICAL ? tn__node_of(x, operation)
                                                   : tn__floating(x, operation);
    if (tn__node_is_error(at))
        return tn__leave_array(call, at);
    tn__of_x function = *(const tn__of_x *)((const char *)of + offset);
    return tn__leave_array(call, function ? function(at, in[0], in[1]) : has_none(of, operation));
}

static tn_array *of_both(const char *operation, tn_distribution d, size_t offset)
{
    tn__call call = tn__enter();
    const row *of = NULL;
    tn__node *in[2], *error = read(operation, d, &of, in);
    if (error)
        return tn__leave_array(call, error);
    tn__of_parameters function = *(const tn__of_parameters *)((const char *)of + offset);
    return tn__leave_array(call, function ? function(in[0], in[1]) : has_none(of, operation));
}

tn_array *tn_log_prob(tn_distribution d, const tn_array *x) { return at_x("log_prob", d, x, offsetof(row, log_prob)); }
tn_array *tn_cdf(tn_distribution d, const tn_array *x) { return at_x("cdf", d, x, offsetof(row, cdf)); }
tn_array *tn_icdf(tn_distribution d, const tn_array *p) { return at_x("icdf", d, p, offsetof(row, icdf)); }
tn_array *tn_entropy(tn_distribution d) { return of_both("entropy", d, offsetof(row, entropy)); }
tn_array *tn_distribution_mean(tn_distribution d) { return of_both("mean", d, offsetof(row, mean)); }
tn_array *tn_distribution_variance(tn_distribution d) { return of_both("variance", d, offsetof(row, variance)); }

tn_array *tn_kl(tn_distribution p, tn_distribution q)
{
    tn__call call = tn__enter();
    const row *of = NULL, *other = NULL;
    tn__node *in[2], *from[2], *error = read("kl", p, &of, in);
    error = error ? error : read("kl", q, &other, from);
    if (!error && of != other)
        error = tn__node_error(tn__error_new(TN_ERR_UNSUPPORTED, "kl", "expected two distributions of one kind, got %s "
                                             "and %s", of->name, other->name));
    if (error)
        return tn__leave_array(call, error);
    return tn__leave_array(call, of->kl ? of->kl(in[0], in[1], from[0], from[1]) : has_none(of, "kl"));
}

/* ---- samples ---- */

/* Zeros of the shape of the samples: what parameters broadcast to, or the shape given. */
static tn__node *place_of(tn_distribution d, const row *of, tn__node *const in[2], tn_shape shape)
{
    tn__node *all = !in[1]                                     ? in[0]
                    : d.kind == TN_DIST_MULTIVARIATE_NORMAL ? of->mean(in[0], in[1])
                                                            : add(in[0], in[1]);
    TN__PASS_ERROR(all);
    bool classes = d.kind == TN_DIST_CATEGORICAL;
    if (shape.ndim < 0)
        shape = tn__shape_value(all->shape);
    else if (classes && shape.ndim < TN_MAX_NDIM)
        shape.dim[shape.ndim++] = all->shape->dim[last_axis(all)];
    const tn__shape *made = tn__shape_make("sample", shape, TN_FLOAT32);
    if (!made)
        return tn__failed();
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (!tn__broadcasts_to(all->shape, made))
        TN__REFUSE(TN_ERR_SHAPE, "sample", "expected a shape that the parameters %s broadcast to, got %s",
                   tn__shape_text(all->shape->ndim, all->shape->dim, text),
                   tn__shape_text(made->ndim, made->dim, other));
    return tn__const(0, (tn_dtype)all->dtype, made, all->device);
}

/* Uniform numbers in (0, 1), in the shape of `place`. */
static tn__node *open_uniform(const tn__node *place, tn_dtype dtype, tn_generator *generator)
{
    tn__draw d = {.generator = generator ? generator : tn_default_generator(), .shape = place->shape,
                  .device = place->device};
    return with(MAXIMUM, tn__draw_next(&d, TN__OP_RANDOM_UNIFORM, dtype), dtype == TN_FLOAT64 ? 0x1p-54 : 0x1p-25);
}

static tn__node *log_of(tn__node *x) { return map(LOG, x); }

static tn__node *first(tn__node *a, tn__node *b) { return (void)b, a; }
static tn__node *second(tn__node *a, tn__node *b) { return (void)a, b; }
static tn__node *smaller(tn__node *a, tn__node *b) { return map2(MINIMUM, a, b); }
static tn__node *width(tn__node *a, tn__node *b) { return sub(b, a); }

/* What of the parameters must not be below 0, as samples that are not drawn by a row's own function would then be those
 * of another distribution. */
static const tn__of_parameters scales[TN_DIST_KIND_COUNT] = {
    [TN_DIST_NORMAL] = second, [TN_DIST_LOG_NORMAL] = second, [TN_DIST_UNIFORM] = width,
    [TN_DIST_LAPLACE] = second, [TN_DIST_CAUCHY] = second, [TN_DIST_GUMBEL] = second,
    [TN_DIST_EXPONENTIAL] = first, [TN_DIST_PARETO] = smaller,
};

/* The class whose logit with Gumbel noise is the largest, 0 where the logits are those of no distribution. */
static tn__node *draw_class(tn__node *logits, tn__node *u)
{
    tn__node *noisy = add(logits, minus(log_of(minus(log_of(u)))));
    TN__PASS_ERROR(noisy);
    int last = last_axis(noisy);
    tn__node *best = tn__reduce(TN__OP_ARGMAX, noisy, 1u << last);
    tn__node *known = map(ISFINITE, tn__reduce(TN__OP_MAX, logits, 1u << last_axis(logits)));
    return tn__without_axis(tn__where(known, best, like(best, 0)), last);
}

/* In float64: multiples of 2^-24 would be too coarse for what is rare. */
static tn__node *draw_whole(tn_distribution_kind kind, tn__node *a, tn__node *place, tn_generator *generator)
{
    tn__node *u = open_uniform(place, TN_FLOAT64, generator), *p = tn__cast(a, TN_FLOAT64), *drawn, *known;
    if (kind == TN_DIST_CATEGORICAL)
        return draw_class(p, u);
    if (kind == TN_DIST_BERNOULLI) {
        drawn = tn__cast(map2(LESS, u, map(SIGMOID, p)), TN_FLOAT64);
        known = map2(EQUAL, p, p);
    } else {
        drawn = with(MAXIMUM, map(CEIL, over(log_of(u), map(LOG1P, minus(p)))), 1);
        known = with(GREATER_EQUAL, p, 0);
    }
    return tn__cast(tn__where(known, drawn, like(drawn, NAN)), (tn_dtype)place->dtype);
}

/* In the dtype of `place`, but for classes. */
static tn__node *sample(tn_distribution d, const row *of, tn__node *a, tn__node *b, tn__node *place,
                        tn_generator *generator)
{
    tn_dtype dtype = (tn_dtype)place->dtype;
    if (d.kind == TN_DIST_NORMAL || d.kind == TN_DIST_LOG_NORMAL) {
        tn__node *z = add(a, mul(b, tn__cast(tn__normal_like(place, generator), dtype)));
        return d.kind == TN_DIST_NORMAL ? z : map(EXP, z);
    }
    if (d.kind == TN_DIST_MULTIVARIATE_NORMAL)
        return tn__multivariate_from(a, b, tn__cast(tn__normal_like(place, generator), dtype));
    if (of->icdf && !of->draw)
        return of->icdf(open_uniform(place, dtype, generator), a, b);
    tn__no_grad_depth++;
    tn__node *drawn = of->draw ? of->draw(a, b, place, generator) : draw_whole(d.kind, a, place, generator);
    tn__no_grad_depth--;
    return d.kind == TN_DIST_CATEGORICAL ? drawn : tn__cast(drawn, dtype);
}

/* In float32 at least: a uniform number of 16 bits is 1 too often. */
static tn__node *sample_widely(tn_distribution d, const row *of, tn__node *const in[2], tn__node *place,
                               tn_generator *generator)
{
    tn_dtype dtype = (tn_dtype)place->dtype;
    tn__node *a = tn__widened(in[0]), *b = in[1] ? tn__widened(in[1]) : NULL;
    bool narrow = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16;
    tn__node *x = sample(d, of, a, b, narrow ? tn__widened(place) : place, generator);
    TN__PASS_ERROR(x);
    if (scales[d.kind])
        x = tn__where(with(GREATER_EQUAL, scales[d.kind](a, b), 0), x, like(x, NAN));
    return narrow && d.kind != TN_DIST_CATEGORICAL ? tn__cast(x, dtype) : x;
}

tn_array *tn_sample(tn_distribution d, tn_shape shape, tn_generator *generator)
{
    tn__call call = tn__enter();
    const row *of = NULL;
    tn__node *in[2], *place = read("sample", d, &of, in);
    if (!place)
        place = place_of(d, of, in, shape);
    if (tn__node_is_error(place))
        return tn__leave_array(call, place);
    return tn__leave_array(call, sample_widely(d, of, in, place, generator));
}
