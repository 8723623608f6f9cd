/* SPDX-License-Identifier: MIT */
/* What backward goes through, as a list. */
#ifndef TN_AUTOGRAD_TAPE_H
#define TN_AUTOGRAD_TAPE_H

#include "autograd/marks.h"
#include "autograd/rules.h"

#define TN__ELSEWHERE (UINT32_MAX - 1) /* in place of a step's number: leads to no target */

typedef struct tn__tape_step {
    tn__node *node;
    tn__node *gradient; /* summed so far; NULL: none yet */
    size_t first;       /* of the tape's inputs: its own, as many as it has */
    uint32_t holes;     /* 1 + the first box in which the gradient counts as zero; 0: none */
    uint32_t first_part, last_part; /* 1 + parts still to be added to the gradient, in their order; 0: none */
    int inputs;
    bool target;        /* its gradient is a result */
} tn__tape_step;

/* The gradient of a part of a step's node, see parts.c. */
typedef struct tn__tape_part {
    tn__node *gradient;
    const tn__ints *window; /* of that shape: start, step an axis.
                             * NULL: of all of it */
    tn__node *indices;      /* of these places along an axis; NULL: of a window, or of all: then it is a product */
    int axis;
    uint32_t next;          /* 1 + the next one of the step; 0: none */
} tn__tape_part;

/* Elements that lie `step` apart along each axis. */
typedef struct tn__tape_box {
    int64_t start[TN_MAX_NDIM], extent[TN_MAX_NDIM], step[TN_MAX_NDIM];
    uint32_t next; /* 1 + the next one of a list; 0: none */
} tn__tape_box;

typedef struct tn__tape_visit {
    tn__node *node;
    int next, end; /* input to look at, and behind the last one that is looked at */
} tn__tape_visit;

/* The steps from y down: inputs come before their consumers, y is the last. */
typedef struct tn__tape {
    const char *operation;
    bool leaves; /* the targets are the leaves; else nodes marked so */
    bool by_flags; /* only what was recorded for backward is gone through */
    bool whole;    /* what was recorded without gradients is gone through, too */
    bool partial; /* the graph is a part of a larger one, which begins at the targets: nothing below them is visited */
    bool create_graph;
    tn__node *const *aims; /* the targets, which need no marks of backward's; NULL: the leaves, or marked nodes */
    int aim_count;
    bool lets_go; /* the graph goes when it is done */
    tn__marks marks; /* nodes' numbers of steps */
    tn__summed summed;
    tn__tape_step *steps;
    size_t count, capacity;
    uint32_t *inputs; /* of all steps: the inputs' steps, or TN__ELSEWHERE */
    size_t input_count, input_capacity;
    tn__tape_visit *stack;
    size_t depth, stack_capacity;
    tn__tape_part *part;
    size_t part_count, part_capacity;
    tn__tape_box *box;
    size_t box_count, box_capacity;
} tn__tape;

/* ---- list.c ---- */

/* Of a tape that begins as zeros: also where an exception leaves a rule. */
void tn__tape_free(tn__tape *t);
#define TN__TAPE tn__tape __attribute__((cleanup(tn__tape_free)))

/* Makes a node a target, of a tape whose targets are not the leaves. */
tn_status tn__tape_aim(tn__tape *t, tn__node *node);
/* Lists the steps from y down to the targets. */
tn_status tn__tape_list(tn__tape *t, tn__node *y);
/* The number of a node's step, or TN__ELSEWHERE. */
uint32_t tn__tape_step_of(const tn__tape *t, const tn__node *node);
/* Number of inputs that gradients flow on to. */
static inline int tn__flows_to(const tn__node *node)
{
    return node->flags & (TN__NODE_LEAF_VAR | TN__NODE_CUT) || !tn__rules[node->op] ? 0 : node->arity;
}

/* ---- parts.c ---- */

/* Adds what a rule gave an input to the gradient of that input's step. */
tn_status tn__tape_add(tn__tape *t, tn__tape_step *to, tn__node *gradient, const tn__chain *from, int input);
/* Makes one gradient of all that came to a step; it stays NULL if nothing did. */
tn_status tn__tape_settle(tn__tape *t, tn__tape_step *s);
/* Of an UPDATE whose gradient came in parts: hands these on to its inputs' steps (NULL: not wanted) as they are, unless
 * some lie across its window, or its gradient is a result: then nothing is done. */
tn_status tn__tape_through_update(tn__tape *t, tn__tape_step *s, tn__tape_step *base, tn__tape_step *value, bool *done);

/* ---- products.c ---- */

/* A product of two matrices that a gradient is, maybe transposed, or NULL. */
tn__node *tn__tape_product(tn__node *gradient);
/* The sum of one or more of them, of one shape, whose list it changes. */
tn__node *tn__tape_sum_products(int count, tn__node **product);

/* ---- accumulate.c ---- */

/* Computes the gradients that earlier backwards gave, if this one adds to one of them. Overwrites the marks. */
tn_status tn__tape_compute_earlier(tn__tape *t);

/* ---- stretch.c ---- */

/* Would what the rule of this step records get as deep as a recording may be? Rules record some tens of operations one
 * on another at most. */
static inline bool tn__is_deep(const tn__node *node)
{
    return __builtin_expect(node->depth >= tn__max_depth() / 8 * 7, 0) && tn__node_pending(node);
}
static inline bool tn__tape_is_deep(const tn__tape *t, const tn__tape_step *s)
{
    bool deep = tn__is_deep(s->node) || (s->gradient && tn__is_deep(s->gradient));
    for (uint32_t p = s->first_part; p && !deep; p = t->part[p - 1].next)
        deep = tn__is_deep(t->part[p - 1].gradient);
    return deep;
}
/* Computes the gradients under way at step `at`, whose rule and those before it are still to be applied, and what lets
 * the recording beneath them begin anew. */
tn_status tn__tape_compute(tn__tape *t, size_t at);

#endif
