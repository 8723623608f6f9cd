/* SPDX-License-Identifier: MIT */
/* What backward goes through, as a list. */
#ifndef TN_AUTOGRAD_TAPE_H
#define TN_AUTOGRAD_TAPE_H

#include "autograd/marks.h"

#define TN__ELSEWHERE (UINT32_MAX - 1) /* in place of a step's number: leads to no target */

typedef struct tn__tape_step {
    tn__node *node;
    tn__node *gradient; /* summed so far; NULL: none yet */
    size_t first;       /* of the tape's inputs: its own, as many as it has */
    int inputs;
    bool target;        /* its gradient is a result */
} tn__tape_step;

typedef struct tn__tape_visit {
    tn__node *node;
    int next; /* input to look at */
} tn__tape_visit;

/* The steps from y down: inputs come before their consumers, y is the last. */
typedef struct tn__tape {
    const char *operation;
    bool leaves; /* the targets are the leaves; else nodes marked so */
    bool by_flags; /* only what was recorded for backward is gone through */
    bool create_graph;
    tn__marks marks; /* nodes' numbers of steps */
    tn__tape_step *steps;
    size_t count, capacity;
    uint32_t *inputs; /* of all steps: the inputs' steps, or TN__ELSEWHERE */
    size_t input_count, input_capacity;
    tn__tape_visit *stack;
    size_t depth, stack_capacity;
} tn__tape;

/* ---- stretch.c ---- */

/* Would what the rule of this step records get as deep as a recording may be? Rules record some tens of operations one
 * on another at most. */
#define TN__STRETCH (TN__MAX_DEPTH - TN__MAX_DEPTH / 8)
static inline bool tn__tape_is_deep(const tn__tape_step *s)
{
    return (s->gradient->depth >= TN__STRETCH && tn__node_pending(s->gradient)) ||
           (s->node->depth >= TN__STRETCH && tn__node_pending(s->node));
}
/* Computes the gradients under way at step `at`, whose rule and those before it are still to be applied, and what lets
 * the recording beneath them begin anew. */
tn_status tn__tape_compute(tn__tape *t, size_t at);

#endif
