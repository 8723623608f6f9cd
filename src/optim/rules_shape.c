/* SPDX-License-Identifier: MIT */
/* The rules that look at a parameter as a whole: norms of it, its rows and columns, its singular values. */
#include "optim/rules.h"

#include <float.h>
#include <math.h>

static tn__node *sum_over_all(tn__node *x)
{
    if (tn__node_is_error(x))
        return x;
    return tn__reshape(tn__reduce(TN__OP_SUM, x, (1u << x->shape->ndim) - 1), 0, NULL);
}

tn__node *tn__norm_of(tn__node *x) { return tn__root(sum_over_all(tn__squared(x))); }

/* |p| / |u|, 1 where one of them is 0. */
static tn__node *trust(tn__node *p, tn__node *u)
{
    tn__node *above = tn__norm_of(p), *below = tn__norm_of(u);
    tn__node *product = tn__times(above, below);
    if (tn__node_is_error(product))
        return product;
    tn__node *safe = tn__where(tn__with(TN__OP_GREATER, product, 0), below, tn__const_like(below, 1));
    return tn__where(tn__with(TN__OP_GREATER, product, 0), tn__over(above, safe), tn__const_like(above, 1));
}

tn__node *tn__lamb(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__moments(u, g, state);
    tn__node *below = tn__raised(tn__root(tn__scaled(1 / u->correction2, state[1])), u->set.eps);
    tn__node *change = tn__over(tn__scaled(1 / u->correction1, state[0]), below);
    if (u->set.weight_decay > 0)
        change = tn__plus(change, tn__scaled(u->set.weight_decay, p));
    return tn__minus(p, tn__times(tn__scaled(u->set.lr, trust(p, change)), change));
}

/* ---- Adafactor ---- */

/* A matrix, or several, keeps a column of the rows' means and a row of the columns'; a vector all of v, as "row". */
tn_shape tn__adafactor_shape(const tn__shape *param, int which)
{
    tn_shape shape = tn__shape_value(param);
    if (shape.ndim >= 2)
        shape.dim[shape.ndim - (which == 0 ? 1 : 2)] = 1;
    else if (which == 1)
        shape = (tn_shape){0};
    return shape;
}

static tn__node *mean_along(tn__node *x, int axis)
{
    if (tn__node_is_error(x))
        return x;
    double extent = (double)x->shape->dim[axis];
    return tn__scaled(1 / fmax(extent, 1), tn__reduce(TN__OP_SUM, x, 1u << axis));
}

/* The root of the mean of squares. */
static tn__node *rms(tn__node *x)
{
    if (tn__node_is_error(x))
        return x;
    double size = fmax((double)x->shape->size, 1);
    return tn__root(tn__scaled(1 / size, sum_over_all(tn__squared(x))));
}

static tn__node *at_least(tn__node *x, double least)
{
    return tn__binary(TN__OP_MAXIMUM, x, tn__const_like(x, least));
}

/* The estimate of v: row times column, over the mean of the rows' means; of a vector v itself. */
static tn__node *second_moment(double rate, tn__node *g, tn__node **state, double tiny)
{
    tn__node *square = tn__squared(g);
    if (tn__node_is_error(square))
        return square;
    int ndim = square->shape->ndim;
    if (ndim < 2)
        return state[0] = tn__mixed(rate, state[0], square);
    state[0] = tn__mixed(rate, state[0], mean_along(square, ndim - 1));
    state[1] = tn__mixed(rate, state[1], mean_along(square, ndim - 2));
    return tn__over(tn__times(state[0], state[1]), at_least(mean_along(state[0], ndim - 2), tiny));
}

tn__node *tn__adafactor(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    if (tn__node_is_error(g))
        return g;
    double t = (double)u->t, tiny = g->dtype == TN_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    tn__node *v = second_moment(1 - pow(t, -0.8), g, state, tiny);
    tn__node *change = tn__over(g, tn__root(at_least(v, tiny * tiny)));
    tn__node *rate = tn__scaled(fmin(u->set.lr, 1 / sqrt(t)), at_least(rms(p), u->set.eps));
    rate = tn__over(rate, at_least(rms(change), 1));
    tn__node *decayed = u->set.weight_decay > 0 ? tn__scaled(1 - u->set.lr * u->set.weight_decay, p) : p;
    return tn__minus(decayed, tn__times(rate, change));
}

/* ---- Muon ---- */

tn_shape tn__muon_shape(const tn__shape *param, int which)
{
    return which == 1 && param->ndim >= 2 ? (tn_shape){0} : tn__shape_value(param);
}

/* x with all its singular values near 1: five steps of a polynomial of odd degree, of Newton and Schulz's kind, that
 * grows small ones fast. The wide one of x and its transpose has the smaller products. */
static tn__node *orthogonal(tn__node *x, double tiny)
{
    if (tn__node_is_error(x))
        return x;
    bool tall = x->shape->dim[0] > x->shape->dim[1];
    x = tall ? tn__swap_last(x) : x;
    x = tn__over(x, at_least(tn__norm_of(x), tiny));
    for (int i = 0; i < 5; i++) {
        tn__node *square = tn__matmul_node(x, tn__swap_last(x));
        tn__node *mixed = tn__plus(tn__scaled(-4.775, square), tn__scaled(2.0315, tn__matmul_node(square, square)));
        x = tn__plus(tn__scaled(3.4445, x), tn__matmul_node(mixed, x));
    }
    return tall ? tn__swap_last(x) : x;
}

tn__node *tn__muon(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    if (tn__node_is_error(g) || tn__node_is_error(p))
        return tn__node_is_error(g) ? g : p;
    if (p->shape->ndim < 2)
        return tn__adamw(u, p, g, state);
    int64_t rows = p->shape->dim[0], columns = rows ? p->shape->size / rows : 0;
    state[0] = tn__mixed(u->set.momentum, state[0], g);
    tn__node *x = tn__reshape(tn__mixed(u->set.momentum, state[0], g), 2, (int64_t[]){rows, columns});
    double rate = u->set.lr * sqrt(fmax(1, (double)rows / fmax(1, (double)columns)));
    tn__node *change = tn__reshape_like(orthogonal(x, u->set.eps), p->shape);
    return tn__minus(tn__scaled(1 - u->set.lr * u->set.weight_decay, p), tn__scaled(rate, change));
}

/* ---- of rows ---- */

tn__node *tn__sparse_adam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *m = state[0], *v = state[1], *there = tn__with(TN__OP_NOT_EQUAL, g, 0);
    if (tn__node_is_error(there))
        return there;
    if (g->shape->ndim > 1)
        there = tn__reduce(TN__OP_ANY, there, (1u << g->shape->ndim) - 2);
    tn__moments(u, g, state);
    tn__node *below = tn__raised(tn__root(state[1]), u->set.eps);
    tn__node *change = tn__over(tn__scaled(u->set.lr * sqrt(u->correction2) / u->correction1, state[0]), below);
    state[0] = tn__where(there, state[0], m);
    state[1] = tn__where(there, state[1], v);
    return tn__where(there, tn__minus(p, change), p);
}
