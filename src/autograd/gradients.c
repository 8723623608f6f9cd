/* SPDX-License-Identifier: MIT */
/*
 * Gradients as arrays: by what the caller names, marked or not, touching no stored gradient.
 *
 * An array that is not marked has no flag that its consumers could inherit, so that what is computed from it lets its
 * inputs go when it gets a value. A gradient that is to be differentiated in turn would then lead to less than it was
 * made of, and its derivative be silently wrong. So what leads to such an array, below y and below the gradients, is
 * followed from then on as what leads to a leaf: it keeps its inputs, and so does what is computed from it.
 */
#include <tanso/autograd.h>

#include "array/build.h"
#include "array/guard.h"
#include "autograd/backward.h"
#include "autograd/tape.h"
#include "core/memory.h"

/* Lists what leads from a node to the tape's targets, beside what is listed already. */
static tn_status list_more(tn__tape *t, tn__node *node)
{
    return tn__tape_step_of(t, node) == TN__ELSEWHERE ? tn__tape_list(t, node) : TN_OK;
}

/* Was it computed from what is led to? Also of a target, which may be computed from another one. */
static bool leads_on(const tn__tape *t, const tn__tape_step *s)
{
    bool leads = false;
    for (int i = 0; i < s->inputs; i++)
        leads = leads || t->inputs[s->first + (size_t)i] != TN__ELSEWHERE;
    return leads;
}

/* nodes: `count` gradients, and then what they are by. */
static tn_status follow(const char *operation, tn__node *y, int count, tn__node *const *nodes)
{
    bool marked = true;
    for (int i = 0; i < count; i++)
        marked = marked && nodes[count + i]->flags & TN__NODE_NEEDS_GRAD;
    if (marked)
        return TN_OK;
    tn__value_mark few[TN__FEW_MARKS];
    TN__TAPE t = {.operation = operation, .create_graph = true, .marks.few = few};
    tn__marks_begin(&t.marks);
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = tn__tape_aim(&t, nodes[count + i]);
    if (status == TN_OK)
        status = list_more(&t, y);
    for (int i = 0; i < count && status == TN_OK; i++)
        status = list_more(&t, nodes[i]);
    for (size_t i = 0; i < t.count && status == TN_OK; i++)
        if (leads_on(&t, &t.steps[i]) && tn__node_pending(t.steps[i].node))
            t.steps[i].node->flags |= TN__NODE_NEEDS_GRAD;
    return status;
}

static tn_status gradients(const tn_array *y, int count, const tn_array *const *xs,
                           bool create_graph, tn__node **nodes)
{
    static const char operation[] = "tn_gradients";
    for (int i = 0; i < count; i++)
        nodes[count + i] = tn__node_of(xs[i], operation);
    tn__node *y_node = tn__node_of(y, operation);
    tn_status status = tn__gradients(operation, y_node, NULL, count, nodes + count, false, create_graph, nodes);
    for (int i = 0; i < count && status == TN_OK; i++)
        if (!nodes[i])
            status = tn__fail(TN_ERR_STATE, operation,
                              "the output does not depend on xs[%d] (or what lies between was evaluated, detached, or "
                              "recorded without gradients, as in TN_NO_GRAD); mark it with tn_requires_grad before "
                              "computing with it",
                              i);
    int depth = tn__no_grad_depth;
    tn__no_grad_depth = 0;
    bool few = count < TN__MAX_INPUTS; /* else each to its own array: the ties of many would be their square */
    for (int i = 0; i < count && status == TN_OK && create_graph; i++) {
        nodes[i] = tn__tied(nodes[i], few ? count : 1, nodes + count + (few ? 0 : i));
        status = tn__node_is_error(nodes[i]) ? tn__error_raise(nodes[i]->error) : TN_OK;
    }
    tn__no_grad_depth = depth;
    return status == TN_OK && create_graph ? follow(operation, y_node, count, nodes) : status;
}

tn_status tn_gradients(const tn_array *y, int count, const tn_array *const *xs, bool create_graph,
                       tn_array **out)
{
    if (count <= 0)
        return count ? tn__fail(TN_ERR_VALUE, "tn_gradients",
                                "expected a count of at least 0, got %d", count)
                     : TN_OK;
    if (!xs || !out)
        return tn__fail_null("tn_gradients", "arrays, and room for their gradients");
    TN__GUARD("tn_gradients");
    tn__call call = tn__enter();
    TN__FREED tn__node **nodes = tn__alloc(2 * (size_t)count * sizeof *nodes);
    tn_status status = nodes ? gradients(y, count, xs, create_graph, nodes)
                             : tn__fail_memory("tn_gradients", 2 * (size_t)count * sizeof *nodes);
    for (int i = 0; i < count; i++)
        out[i] =
            status == TN_OK ? tn__leave_array(tn__enter(), nodes[i]) : tn__failed_array();
    tn__leave(call);
    return status;
}
