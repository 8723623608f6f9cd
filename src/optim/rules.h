/* SPDX-License-Identifier: MIT */
/* The words that update rules are written in, over nodes, and the rules that have a file of their own. */
#ifndef TN_OPTIM_RULES_H
#define TN_OPTIM_RULES_H

#include "optim/optimizer.h"

static inline tn__node *tn__plus(tn__node *a, tn__node *b) { return tn__binary(TN__OP_ADD, a, b); }
static inline tn__node *tn__minus(tn__node *a, tn__node *b) { return tn__binary(TN__OP_SUBTRACT, a, b); }
static inline tn__node *tn__times(tn__node *a, tn__node *b) { return tn__binary(TN__OP_MULTIPLY, a, b); }
static inline tn__node *tn__over(tn__node *a, tn__node *b) { return tn__binary(TN__OP_DIVIDE, a, b); }
static inline tn__node *tn__squared(tn__node *a) { return tn__unary(TN__OP_SQUARE, a); }
static inline tn__node *tn__root(tn__node *a) { return tn__unary(TN__OP_SQRT, a); }
static inline tn__node *tn__scaled(double factor, tn__node *x) { return tn__times(tn__const_like(x, factor), x); }
static inline tn__node *tn__raised(tn__node *x, double by) { return tn__plus(x, tn__const_like(x, by)); }
/* rate old + (1 - rate) now */
static inline tn__node *tn__mixed(double rate, tn__node *old, tn__node *now)
{
    return tn__plus(tn__scaled(rate, old), tn__scaled(1 - rate, now));
}

/* The running means of the gradient and of its square, beta1 and beta2. */
void tn__moments(const tn__settings *u, tn__node *g, tn__node **state);
tn__node *tn__adamw(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
/* The L2 norm of all elements, 0-d. */
tn__node *tn__norm_of(tn__node *x);

/* ---- rules_shape.c ---- */
tn__node *tn__lamb(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
tn__node *tn__adafactor(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
tn_shape tn__adafactor_shape(const tn__shape *param, int which);
tn__node *tn__muon(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
tn_shape tn__muon_shape(const tn__shape *param, int which); /* its second state is a vector's alone */
tn__node *tn__sparse_adam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);

/* ---- rules_rows.c ---- */
/* The positions that a table was looked up at, one a row, if its gradient is but sums of what belongs to these, and
 * they are few; *sums: what comes to the row of each. NULL: it is nothing of the kind. */
tn__node *tn__looked_up(tn__node *gradient, int *axis, tn__node **sums);

#endif
