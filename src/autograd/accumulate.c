/* SPDX-License-Identifier: MIT */
/*
 * Gradients that are added to before anybody asked for them, as over several minibatches. Recorded on top of one
 * another, all of them would be one plan, with everything in memory at once that the minibatches' backward passes need.
 * So what an earlier tn_backward gave is computed when the next one is about to add to it. With it are computed the
 * small arrays that were made on the way, losses and counts, from what is gone then.
 */
#include "autograd/backward.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/memory.h"

#define SMALL_SIZE 16384 /* elements of such an array, as an optimizer's step takes them along */

/* Marks: what the gradients depend on; of what else is pending, whether it depends on that. */
enum { UNDER_GRADIENTS, BESIDE, APART };

typedef struct list {
    tn__node **node;
    size_t count, capacity;
} list;

static bool computes(const tn__node *node) { return tn__node_pending(node) && node->arity > 0; }

/* The mark that a node gets whose inputs have theirs. */
static uint32_t mark_of(const tn__tape *t, const tn__node *node, bool gradients)
{
    uint32_t mark = gradients ? UNDER_GRADIENTS : APART, of = APART;
    for (int k = 0; k < node->arity && !gradients; k++)
        if (computes(node->in[k]) && tn__marks_find(&t->marks, node->in[k], &of) && of != APART)
            mark = BESIDE;
    return mark;
}

static tn_status no_memory(const tn__tape *t) { return tn__fail_memory(t->operation, sizeof(tn__tape_visit)); }

/* Marks what is pending under a node, and the node, inputs first. */
static tn_status go_under(tn__tape *t, tn__node *from, bool gradients)
{
    uint32_t mark;
    size_t depth = 0;
    for (tn__node *next = from; next || depth > 0;) {
        if (next && computes(next) && !tn__marks_find(&t->marks, next, &mark)) {
            if (!tn__grow((void **)&t->stack, &t->stack_capacity, depth + 1, sizeof *t->stack))
                return no_memory(t);
            t->stack[depth++] = (tn__tape_visit){next, 0, next->arity};
        }
        if (depth == 0)
            break;
        tn__tape_visit *top = &t->stack[depth - 1];
        next = top->next < top->end ? top->node->in[top->next++] : NULL;
        if (next)
            continue;
        if (!tn__marks_set(&t->marks, top->node, mark_of(t, top->node, gradients)))
            return no_memory(t);
        depth--;
    }
    return TN_OK;
}

/* Appends the nodes of small pending handles that depend on what the gradients depend on. */
static tn_status add_beside(tn__tape *t, list *l)
{
    tn__handle *const *handle;
    int count = tn__pending_handles(&handle);
    for (int i = 0; i < count; i++) {
        tn__node *node = handle[i]->node;
        uint32_t mark = APART;
        if (!computes(node) || node->shape->size > SMALL_SIZE)
            continue;
        tn_status status = go_under(t, node, false);
        if (status != TN_OK)
            return status;
        if (!tn__marks_find(&t->marks, node, &mark) || mark == APART)
            continue;
        if (!tn__grow((void **)&l->node, &l->capacity, l->count + 1, sizeof *l->node))
            return no_memory(t);
        l->node[l->count++] = node;
    }
    return TN_OK;
}

static tn_status compute(tn__tape *t, list *l)
{
    int count = tn__pending_gradients(NULL, 0);
    if (!tn__grow((void **)&l->node, &l->capacity, (size_t)count + 1, sizeof *l->node))
        return no_memory(t);
    l->count = (size_t)tn__pending_gradients(l->node, count);
    tn_status status = TN_OK;
    tn__marks_begin(&t->marks);
    for (size_t i = 0; i < l->count && status == TN_OK; i++)
        status = go_under(t, l->node[i], true);
    if (status == TN_OK)
        status = add_beside(t, l);
    return status == TN_OK ? tn__engine.evaluate_all((int)l->count, l->node) : status;
}

tn_status tn__tape_compute_earlier(tn__tape *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const tn__var *var = t->steps[i].node->var;
        if (!var || !var->final || !tn__var_grad(var) || !computes(tn__var_grad(var)) || !tn__engine.evaluate_all)
            continue;
        list l = {0};
        tn_status status = compute(t, &l);
        tn__free(l.node);
        return status;
    }
    return TN_OK;
}
