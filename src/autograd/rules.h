/* SPDX-License-Identifier: MIT */
/* Gradient rules: one for each name in the grad column of ops/ops.def. */
#ifndef TN_AUTOGRAD_RULES_H
#define TN_AUTOGRAD_RULES_H

#include "array/build.h"

/* What of input 0 the gradient in[0] is for. Of a part the tape makes a whole, at once for all that come to it. */
typedef enum tn__place {
    TN__ALL,        /* all of it */
    TN__IN_WINDOW,  /* the window attr.ints, of the gradient's shape; it is zero elsewhere */
    TN__BUT_WINDOW, /* all but that window, of input 1's shape, where it is zero whatever in[0] has there */
    TN__AT_INDICES  /* what input 1 chooses along attr.axis: it is added there */
} tn__place;

/* The last gradients that were summed to smaller shapes, as bit patterns of addresses: they are compared alone. */
#define TN__SUMMED 8
typedef struct tn__summed {
    const tn__node *gradient[TN__SUMMED];
    const tn__shape *shape[TN__SUMMED];
    unsigned next;
} tn__summed;

/*
 * One application of the chain rule, to node = op(node->in[0], ...): given g, the gradient with respect to the node, a
 * rule sets in[i], for each i that is wanted, to the gradient with respect to node->in[i], in exactly that input's
 * shape and dtype unless `place` says otherwise; NULL stands for zero. Rules record ordinary nodes with the builders of
 * array/build.h, so they are differentiable themselves, and functions whose derivative is a function of their value use
 * the node itself.
 */
typedef struct tn__chain {
    tn__node *node;
    tn__node *g;
    tn__node *in[TN__MAX_INPUTS];
    unsigned wanted; /* bit i: in[i] is wanted */
    tn__place place;
    tn__summed *summed;
} tn__chain;

static inline bool tn__wanted(const tn__chain *c, int i)
{
    return c->wanted >> i & 1;
}

typedef void tn__rule(tn__chain *c);

#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, ...) tn__rule tn__grad_##grad;
#define TN_REDUCE(ID, name, TYPES, RESULT, grad, ...)     tn__rule tn__grad_##grad;
#define TN_OTHER(ID, name, arity, KIND, grad, ...)        tn__rule tn__grad_##grad;
#include "ops/ops.def"

/* By operation; NULL: not differentiable. */
extern tn__rule *const tn__rules[]; /* by number */

#endif
