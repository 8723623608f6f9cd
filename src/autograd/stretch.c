/* SPDX-License-Identifier: MIT */
/*
 * Backward through deep recordings, in stretches. Gradients are recorded on top of what they go back through, and a
 * recording has a greatest depth, where builders compute an input first, alone. Of all the gradients under way each
 * would be computed so, one after another, and what they share, the whole forward pass among it, every time again.
 *
 * Therefore, before a rule that would get there, all gradients under way are computed in one evaluation, and with them,
 * where the forward pass beneath them is deep itself, a cut through the middle of it. What lies above the cut is
 * recorded on values then, so the next stretch goes that far down. Forward values are computed two to three times, and
 * only those at the cuts take memory: checkpoints (Griewank 1992; Chen, Xu, Zhang, Guestrin: "Training Deep Nets with
 * Sublinear Memory Cost", 2016).
 */
#include "autograd/tape.h"
#include "core/error.h"
#include "core/memory.h"

#define SHALLOW 16 /* what is no deeper may be computed again */
#define VALUE   8  /* how deep what computes the value of a CUSTOM node lies on its other inputs: a softmax's */
#define INVERSE 24 /* a pseudo-inverse's */

/* The first input that lies on a path: what computes the value of a CUSTOM node lies on its other inputs itself. */
static int first_input(const tn__node *node)
{
    bool tied = node->op == TN__OP_CUSTOM && !node->attr.custom.kernel;
    return (tn__ops[node->op].kind == TN__KIND_CUSTOM || tn__ops[node->op].kind == TN__KIND_TIED) && !tied;
}

typedef struct list {
    tn__node **node;
    size_t count, capacity;
} list;

static bool add(list *l, tn__node *node)
{
    if (!tn__grow((void **)&l->node, &l->capacity, l->count + 1, sizeof(*l->node)))
        return false;
    l->node[l->count++] = node;
    return true;
}

/* Constants take no memory as they are. */
static bool to_compute(const tn__node *node) { return tn__node_pending(node) && node->arity > 0; }

/* Gradients that rules still to be applied go on from, and results. */
static bool add_gradients(const tn__tape *t, size_t at, list *l)
{
    bool fine = true;
    for (size_t i = 0; i < t->count && fine; i++) {
        const tn__tape_step *s = &t->steps[i];
        if (s->gradient && (i <= at || s->target) && to_compute(s->gradient))
            fine = add(l, s->gradient);
        for (uint32_t p = s->first_part; p && fine; p = t->part[p - 1].next)
            if (to_compute(t->part[p - 1].gradient))
                fine = add(l, t->part[p - 1].gradient);
    }
    return fine;
}

/* Inputs of what lies above `level` that lie below it, or on no path, where nothing would cut them. */
static bool add_cut(const tn__tape *t, size_t at, uint32_t level, list *l)
{
    bool fine = true;
    for (size_t i = 0; i <= at && fine; i++) {
        const tn__tape_step *s = &t->steps[i];
        if (!to_compute(s->node) || s->node->depth <= level)
            continue;
        if (s->inputs == 0)
            fine = add(l, s->node);
        for (int k = first_input(s->node); k < s->node->arity && s->inputs && fine; k++) {
            tn__node *in = s->node->in[k];
            bool elsewhere = k >= s->inputs || t->inputs[s->first + (size_t)k] == TN__ELSEWHERE;
            if (to_compute(in) && in->depth > SHALLOW && (in->depth <= level || elsewhere))
                fine = add(l, in);
        }
    }
    return fine;
}

static uint32_t deepest(const tn__tape *t, size_t at)
{
    uint32_t depth = 0;
    for (size_t i = 0; i <= at; i++) {
        const tn__node *node = t->steps[i].node;
        if (tn__node_pending(node) && node->depth > depth)
            depth = node->depth;
    }
    return depth;
}

/* The depths of the forward pass, now that some of it has values. */
static void measure(tn__tape *t, size_t at)
{
    for (size_t i = 0; i <= at; i++) {
        tn__node *node = t->steps[i].node;
        uint32_t depth = 0;
        if (!to_compute(node))
            continue;
        for (int k = first_input(node); k < node->arity; k++)
            if (tn__node_pending(node->in[k]) && node->in[k]->depth > depth)
                depth = node->in[k]->depth;
        node->depth = depth + (node->op == TN__OP_PINV ? INVERSE : first_input(node) ? VALUE : 1);
    }
}

tn_status tn__tape_compute(tn__tape *t, size_t at)
{
    list l = {0};
    uint32_t depth = deepest(t, at);
    bool fine = add_gradients(t, at, &l) && (depth <= tn__max_depth() / 2 || add_cut(t, at, depth / 2, &l));
    tn_status status = fine ? tn__engine.evaluate_all((int)l.count, l.node)
                            : tn__fail_memory(t->operation, (l.count + 1) * sizeof(*l.node));
    tn__free(l.node);
    if (status == TN_OK)
        measure(t, at);
    return status;
}
