/* SPDX-License-Identifier: MIT */
/* Listing the steps of a tape: the nodes between y and the targets, inputs first, by a loop. */
#include "autograd/tape.h"

#include "array/build.h"
#include "core/memory.h"

/* The low halves of marks: a step's number, or one of these. */
#define TARGET    UINT32_MAX       /* a target not yet visited */
#define ELSEWHERE TN__ELSEWHERE    /* visited; leads to no target */

typedef tn__tape tape;
typedef tn__tape_step step;
typedef tn__tape_visit visit;

#define AT_FIRST 64 /* items of each list to begin with: enough for most graphs, and little beside them */

static tn_status mark(tape *t, tn__node *node, uint32_t low)
{
    return tn__marks_set(&t->marks, node, low) ? TN_OK : tn__fail_memory(t->operation, sizeof(tn__value_mark));
}

void tn__tape_free(tape *t)
{
    tn__free(t->steps);
    tn__free(t->inputs);
    tn__free(t->stack);
    tn__free(t->part);
    tn__free(t->box);
    tn__marks_end(&t->marks);
}

tn_status tn__tape_aim(tape *t, tn__node *node) { return mark(t, node, TARGET); }

uint32_t tn__tape_step_of(const tape *t, const tn__node *node)
{
    uint32_t low = 0;
    return tn__marks_find(&t->marks, node, &low) && low != TARGET ? low : ELSEWHERE;
}

static bool is_target(const tape *t, const tn__node *node)
{
    uint32_t low = 0;
    if (t->leaves)
        return node->flags & (TN__NODE_LEAF_VAR | TN__NODE_RETAIN_GRAD);
    return tn__marks_find(&t->marks, node, &low) && low == TARGET;
}

/* Recorded without a gradient's rule as nothing that it depends on was marked, where it has a derivative. */
static bool is_unfollowed(const tn__node *node)
{
    const tn__op_info *op = &tn__ops[node->op];
    return op->kind == TN__KIND_SORT_SCAN && !op->differentiable && !(op->props & TN_ARG);
}

static int flows_to(const tape *t, const tn__node *node)
{
    if (node->flags & TN__NODE_NO_GRAD && !t->whole)
        return 0;
    return !t->by_flags && is_unfollowed(node) ? node->arity : tn__flows_to(node);
}

static tn_status fail_unmarked(const tape *t, const char *how)
{
    return tn__fail(TN_ERR_STATE, t->operation,
                    "an array that was not marked before went into %s, through which no gradient by it is found: mark "
                    "it with tn_requires_grad before computing with it",
                    how);
}

/* Is the element of a storage one of a value's? */
static bool has_element(const tn__node *value, int64_t element)
{
    int64_t stride[TN_MAX_NDIM], left = element - value->offset;
    const tn__shape *shape = value->shape;
    tn__strides_contiguous(shape->ndim, shape->dim, stride);
    for (int i = 0; value->strides && i < shape->ndim; i++) { /* from where all axes are walked forwards */
        int64_t step = value->strides->v[i];
        stride[i] = step < 0 ? -step : step;
        left -= step < 0 ? (shape->dim[i] - 1) * step : 0;
    }
    uint32_t done = 0;
    for (int i = 0; i < shape->ndim; i++) { /* by the widest stride first */
        int widest = -1;
        for (int k = 0; k < shape->ndim; k++)
            if (!(done >> k & 1) && (widest < 0 || stride[k] > stride[widest]))
                widest = k;
        done |= 1u << widest;
        if (stride[widest] <= 0 || left < 0)
            continue;
        int64_t place = left / stride[widest];
        left -= stride[widest] * (place < shape->dim[widest] ? place : shape->dim[widest] - 1);
    }
    return left == 0;
}

/* Is the value, which was sliced, a part of one of the targets, whose slices are values when nobody marked it? */
static bool is_part_of_target(const tape *t, const tn__node *value)
{
    int64_t last = value->offset, plain[TN_MAX_NDIM];
    tn__strides_contiguous(value->shape->ndim, value->shape->dim, plain);
    for (int i = 0; i < value->shape->ndim; i++)
        last += (value->shape->dim[i] - 1) * (value->strides ? value->strides->v[i] : plain[i]);
    for (int i = 0; i < t->aim_count; i++) {
        const tn__node *x = t->aims[i];
        if (x->storage == value->storage && x != value && !(x->flags & TN__NODE_NEEDS_GRAD) && value->shape->size > 0 &&
            has_element(x, value->offset) && has_element(x, last))
            return true;
    }
    return false;
}

/* Is nothing lost at the step on the way to an array that nobody marked? `leads`: it leads to a target. Apart from
 * finish, as backward, which goes by flags, never comes here. */
static __attribute__((noinline)) tn_status check_unmarked(const tape *t, const step *s, bool leads)
{
    tn__node *const *in = s->node->in;
    for (int i = 0; i < s->inputs; i++)
        if (in[i]->flags & TN__NODE_SLICE && tn__tape_step_of(t, in[i]) == ELSEWHERE && is_part_of_target(t, in[i]))
            return fail_unmarked(t, "a slice");
    return leads && !s->target && is_unfollowed(s->node) ? fail_unmarked(t, tn__ops[s->node->op].name) : TN_OK;
}

static bool is_worth_visiting(const tape *t, const tn__node *node)
{
    uint32_t low = 0;
    if (t->by_flags && !(node->flags & TN__NODE_NEEDS_GRAD))
        return false;
    if (tn__marks_find(&t->marks, node, &low))
        return low == TARGET;
    if (t->by_flags)
        return true;
    return flows_to(t, node) > 0 && tn__dtype_inexact((tn_dtype)node->dtype);
}

static tn_status push(tape *t, tn__node *node)
{
    if (!tn__grow((void **)&t->stack, &t->stack_capacity, t->depth + 1, sizeof *t->stack))
        return tn__fail_memory(t->operation, (t->depth + 1) * sizeof *t->stack);
    t->stack[t->depth++] = (visit){node, 0, t->partial && is_target(t, node) ? 0 : flows_to(t, node)};
    return TN_OK;
}

/* Backward has gone through it for the last time. That a value's inputs are gone says so, as its flags are not written
 * while others may read them. */
static bool is_spent(const tn__node *node)
{
    if (node->flags & TN__NODE_LEAF_VAR)
        return false;
    return node->flags & TN__NODE_SPENT || (node->storage && node->flags & TN__NODE_NEEDS_GRAD && !node->arity);
}

/* A leaf that the larger graph does not know of. */
static tn_status fail_outside(const tape *t, const tn__node *leaf)
{
    char shape[TN__SHAPE_TEXT];
    const char *name = leaf->var && leaf->var->name ? leaf->var->name : "a parameter or marked array";
    return tn__fail(TN_ERR_STATE, t->operation,
                    "a layer that is computed again in backward uses %s of shape %s, which is neither its input nor a "
                    "parameter of its own, and would get no gradient: make it one (tn_layer_param, tn_layer_add)",
                    name, tn__shape_text(leaf->shape->ndim, leaf->shape->dim, shape));
}

/* Appends the node's step, if it leads to a target; its inputs have theirs. */
static tn_status finish(tape *t, tn__node *node, int inputs)
{
    if (node->flags & TN__NODE_RELEASED)
        return tn__error_raise(node->error);
    if (t->leaves && node->flags & TN__NODE_LEAF_VAR && node->flags & TN__NODE_SPENT)
        return tn__fail(TN_ERR_STATE, t->operation,
                        "a parameter or marked array was written into (by an assignment, a load or tn_step) after this "
                        "was computed from it, so its gradient would be that of a value it no longer has; call "
                        "tn_backward first, or compute this anew");
    step s = {.node = node, .first = t->input_count, .inputs = inputs, .target = is_target(t, node)};
    bool leads = s.target;
    if (t->partial && !leads && node->flags & TN__NODE_LEAF_VAR && node->shape->size > 0)
        return fail_outside(t, node);
    if (!tn__grow((void **)&t->inputs, &t->input_capacity, t->input_count + (size_t)s.inputs, sizeof *t->inputs))
        return tn__fail_memory(t->operation, (t->input_count + (size_t)s.inputs) * sizeof *t->inputs);
    for (int i = 0; i < s.inputs; i++) {
        bool none = t->by_flags && !(node->in[i]->flags & TN__NODE_NEEDS_GRAD);
        uint32_t in = t->inputs[s.first + (size_t)i] = none ? ELSEWHERE : tn__tape_step_of(t, node->in[i]);
        leads = leads || in != ELSEWHERE;
    }
    tn_status status = t->by_flags ? TN_OK : check_unmarked(t, &s, leads);
    if (status != TN_OK)
        return status;
    if ((t->leaves || t->partial || leads) && is_spent(node))
        return tn__fail(TN_ERR_STATE, t->operation,
                        "backward has gone through this graph before (here: through '%s') and let it go; give the "
                        "first tn_backward .retain_graph = true",
                        tn__ops[node->op].name);
    if (!leads)
        return mark(t, node, ELSEWHERE);
    if (!tn__grow((void **)&t->steps, &t->capacity, t->count + 1, sizeof *t->steps))
        return tn__fail_memory(t->operation, (t->count + 1) * sizeof *t->steps);
    status = mark(t, node, (uint32_t)t->count);
    t->steps[t->count++] = s;
    t->input_count += (size_t)s.inputs;
    return status;
}

static tn_status reserve(tape *t)
{
    if (tn__grow((void **)&t->stack, &t->stack_capacity, AT_FIRST, sizeof *t->stack) &&
        tn__grow((void **)&t->steps, &t->capacity, AT_FIRST, sizeof *t->steps) &&
        tn__grow((void **)&t->inputs, &t->input_capacity, AT_FIRST, sizeof *t->inputs))
        return TN_OK;
    return tn__fail_memory(t->operation, AT_FIRST * sizeof *t->steps);
}

tn_status tn__tape_list(tape *t, tn__node *y)
{
    tn_status status = reserve(t);
    if (status == TN_OK)
        status = push(t, y);
    while (status == TN_OK && t->depth > 0) {
        visit *top = &t->stack[t->depth - 1];
        if (top->next < top->end) {
            tn__node *input = top->node->in[top->next++];
            if (is_worth_visiting(t, input))
                status = push(t, input);
        } else {
            t->depth--;
            status = finish(t, top->node, top->end);
        }
    }
    return status;
}
