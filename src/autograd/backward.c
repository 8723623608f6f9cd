/* SPDX-License-Identifier: MIT */
/*
 * Reverse-mode differentiation: lists the nodes between y and the leaves inputs first (list.c), then walks
 * the list backwards and applies each node's gradient rule once, when the gradients from all its
 * consumers have been summed, in the order of the list. Both walks are loops, so the depth of a
 * graph does not matter.
 */
#include "autograd/backward.h"

#include "array/build.h"
#include "array/guard.h"
#include "autograd/rules.h"
#include "autograd/tape.h"
#include "core/memory.h"
#include "core/options.h"

#include <tanso/autograd.h>

#define ELSEWHERE TN__ELSEWHERE

typedef tn__tape tape;
typedef tn__tape_step step;

/*
 * The gradient of a real loss by a complex number z = x + iy is dL/dx + i dL/dy, PyTorch's convention: the direction of
 * steepest ascent, so that an optimizer's step needs no care. For a holomorphic function of z the chain rule is then
 * g conj(f'(z)), which is the conjugate of the rule's answer to conj(g); rules of TN_PARTS do otherwise themselves.
 */
static void apply_rule(tn__chain *c, int inputs)
{
    bool conjugates = tn_dtype_is_complex((tn_dtype)c->node->dtype) && !(tn__ops[c->node->op].props & TN_PARTS);
    if (conjugates)
        c->g = tn__unary(TN__OP_CONJUGATE, c->g);
    tn__rules[c->node->op](c);
    for (int k = 0; k < inputs && conjugates; k++)
        if (tn__wanted(c, k) && c->in[k] && tn_dtype_is_complex((tn_dtype)c->in[k]->dtype))
            c->in[k] = tn__unary(TN__OP_CONJUGATE, c->in[k]);
}

/* The step of an input, NULL if nothing is wanted there. */
static step *input_step(tape *t, const step *s, int k)
{
    uint32_t in = k < s->inputs ? t->inputs[s->first + (size_t)k] : ELSEWHERE;
    return in == ELSEWHERE ? NULL : &t->steps[in];
}

/* tn__tape_add, of whose cases nearly all are this one: the first gradient that comes to a step, all of it, and no
 * product. */
static inline tn_status add(tape *t, step *to, tn__node *gradient, const tn__chain *from, int input)
{
    int op = gradient->op;
    bool fits = gradient->shape == to->node->shape && gradient->dtype == to->node->dtype;
    bool plain = fits && op != TN__OP_ERROR && op != TN__OP_MATMUL && op != TN__OP_PERMUTE;
    if (!plain || to->gradient || from->place != TN__ALL)
        return tn__tape_add(t, to, gradient, from, input);
    to->gradient = gradient;
    return TN_OK;
}

/* Applies the rule of a step whose gradient is there, and adds what it gives to the inputs' gradients. */
static tn_status go_through(tape *t, step *s)
{
    tn__chain c; /* not set as a whole: of its many inputs there are one or two */
    c.node = s->node;
    c.g = s->gradient;
    c.wanted = 0;
    c.place = TN__ALL;
    c.summed = &t->summed;
    for (int k = 0; k < s->inputs; k++)
        c.wanted |= (unsigned)(input_step(t, s, k) != NULL) << k;
    if (!c.wanted)
        return TN_OK;
    for (int k = 0; k < TN__MAX_ARITY; k++) /* of a number known here: three stores, and no call of memset */
        c.in[k] = NULL;
    for (int k = TN__MAX_ARITY; k < s->inputs; k++)
        c.in[k] = NULL;
    apply_rule(&c, s->inputs);
    tn_status status = TN_OK;
    for (int k = 0; k < s->inputs && status == TN_OK; k++)
        if (tn__wanted(&c, k) && c.in[k])
            status = add(t, input_step(t, s, k), c.in[k], &c, k);
    return status;
}

/* Records the gradients of all steps, from that of the last. The builders may evaluate, which
 * overwrites the marks: from here on, only the steps say what leads where. */
static tn_status apply_rules(tape *t, tn__node *gy)
{
    t->steps[t->count - 1].gradient = gy;
    tn_status status = TN_OK;
    for (size_t i = t->count; i-- > 0 && status == TN_OK;) {
        step *s = &t->steps[i];
        bool done = false;
        if (tn__tape_is_deep(t, s))
            status = tn__tape_compute(t, i);
        if (status == TN_OK && s->node->op == TN__OP_UPDATE)
            status = tn__tape_through_update(t, s, input_step(t, s, 0), input_step(t, s, 1), &done);
        if (status == TN_OK && !done && (s->holes || s->first_part))
            status = tn__tape_settle(t, s);
        if (status != TN_OK)
            return status;
        bool flows = s->gradient != NULL; /* else consumers' rules gave nothing, which stands for zero */
        if (!flows)
            s->gradient = tn__const_like(s->node, 0);
        if (tn__node_is_error(s->gradient))
            return tn__error_raise(s->gradient->error);
        if (flows && !done)
            status = go_through(t, s);
    }
    return status;
}

/* Marks the nodes of the steps that still have handles, so that these get gradients. */
static tn_status retain_all(tape *t)
{
    tn__handle *const *handles;
    int count = tn__pending_handles(&handles);
    for (int i = 0; i < count; i++) {
        tn__node *node = handles[i]->node;
        if (tn__tape_step_of(t, node) == ELSEWHERE || node->var)
            continue;
        node->var = tn__array_var(tn__handle_array(handles[i]));
        if (!node->var)
            return tn__fail_memory(t->operation, sizeof(tn__var));
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->steps[i].node->var) {
            t->steps[i].node->flags |= TN__NODE_RETAIN_GRAD;
            t->steps[i].target = true;
        }
    return TN_OK;
}

/* Adds the gradients of leaves, and of what retains its gradient, to those their handles have. One that is to be
 * differentiated in turn is tied to what it is the gradient by: where its value does not depend on that any more, as
 * that of a linear function doesn't, its derivative is zero, and not the mistake that it is to ask for the derivative
 * by something which has nothing to do with the output. */
static tn_status accumulate(tape *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const step *s = &t->steps[i];
        tn__var *var = s->node->var;
        if (!var || !(s->node->flags & (TN__NODE_LEAF_VAR | TN__NODE_RETAIN_GRAD)))
            continue;
        tn__node *old = tn__var_grad(var), *gradient = s->gradient;
        if (t->create_graph)
            gradient = tn__tied(gradient, 1, &s->node);
        tn__node *sum = old ? tn__binary(TN__OP_ADD, old, gradient) : gradient;
        if (tn__node_is_error(sum))
            return tn__error_raise(sum->error);
        tn__var_set_grad(var, sum);
        var->final = t->lets_go;
    }
    return TN_OK;
}

/* Lets the graph go: at once where values are there, else when they come. */
static void spend(tape *t)
{
    for (size_t i = 0; i < t->count; i++) {
        tn__node *node = t->steps[i].node;
        if (tn__flows_to(node) == 0)
            continue;
        if (node->storage)
            tn__node_let_go(node);
        else
            node->flags |= TN__NODE_SPENT;
    }
}

/* While gradients are recorded, they are themselves differentiable or not, whatever the caller's
 * setting is. */
static tn_status with_recording(tape *t, tn_status (*run)(tape *, tn__node *), tn__node *node)
{
    int depth = tn__no_grad_depth;
    tn__no_grad_depth = t->create_graph ? 0 : 1;
    tn_status status = run(t, node);
    tn__no_grad_depth = depth;
    return status;
}

/* Checks y and its gradient; *gy may be NULL, and becomes ones. */
static tn_status check_output(const char *operation, tn__node *y, tn__node **gy)
{
    char expected[TN__SHAPE_TEXT], came[TN__SHAPE_TEXT];
    if (tn__node_is_error(y))
        return tn__error_raise(y->error);
    if (!tn_dtype_is_float((tn_dtype)y->dtype))
        return tn__fail(TN_ERR_DTYPE, operation,
                        "expected a floating array, got %s, which has no gradient",
                        tn_dtype_name((tn_dtype)y->dtype));
    if (!*gy)
        *gy = tn__const_like(y, 1);
    if (tn__node_is_error(*gy))
        return tn__error_raise((*gy)->error);
    if ((*gy)->shape != y->shape)
        return tn__fail(TN_ERR_SHAPE, operation,
                        "expected a gradient of the output's shape %s, got %s",
                        tn__shape_text(y->shape->ndim, y->shape->dim, expected),
                        tn__shape_text((*gy)->shape->ndim, (*gy)->shape->dim, came));
    if ((*gy)->dtype != y->dtype)
        return tn__fail(TN_ERR_DTYPE, operation,
                        "expected a gradient of the output's dtype %s, got %s; use tn_cast",
                        tn_dtype_name((tn_dtype)y->dtype), tn_dtype_name((tn_dtype)(*gy)->dtype));
    return TN_OK;
}

static tn_status record_and_accumulate(tape *t, tn__node *gy)
{
    tn_status status = tn__tape_compute_earlier(t);
    if (status == TN_OK)
        status = apply_rules(t, gy);
    return status == TN_OK ? accumulate(t) : status;
}

static tn_status fail_leafless(const char *operation)
{
    return tn__fail(TN_ERR_STATE, operation,
                    "expected an array computed, while gradients are recorded, from parameters or from arrays marked "
                    "with tn_requires_grad; this one depends on none, or was detached");
}

static tn_status backward(tn__node *y, tn__node *gy, const tn_backward_opts *opts)
{
    tn__value_mark few[TN__FEW_MARKS];
    TN__TAPE t = {.operation = "tn_backward",
              .marks.few = few,
              .leaves = true,
              .by_flags = true,
              .lets_go = !opts->retain_graph && !opts->create_graph,
              .create_graph = opts->create_graph};
    tn__marks_begin(&t.marks);
    tn_status status = check_output(t.operation, y, &gy);
    if (status != TN_OK)
        return status;
    if (!(y->flags & TN__NODE_NEEDS_GRAD))
        return fail_leafless(t.operation);
    status = tn__tape_list(&t, y);
    if (status == TN_OK && t.count == 0)
        status = fail_leafless(t.operation);
    if (status == TN_OK && opts->retain_grad)
        status = retain_all(&t);
    if (status == TN_OK)
        status = with_recording(&t, record_and_accumulate, gy);
    if (status == TN_OK) {
        if (tn__node_pending(y)) /* else others may be reading it, and nothing is left to be computed along */
            y->flags |= TN__NODE_BACKWARD;
        if (t.lets_go)
            spend(&t);
    }
    return status;
}

tn_status tn_backward_with(const tn_array *y, const tn_backward_opts *opts)
{
    static const tn_backward_opts defaults;
    if (!opts)
        opts = &defaults;
    TN__GUARD("tn_backward");
    tn__call call = tn__enter();
    if (!TN__ARRAY_WRITTEN("tn_backward", opts, grad)) {
        tn__leave(call);
        return tn_error_code();
    }
    tn__node *gy = opts->grad ? tn__node_of(opts->grad, "tn_backward") : NULL;
    tn_status status = backward(tn__node_of(y, "tn_backward"), gy, opts);
    tn__leave(call);
    return status;
}

/* Lists the steps from y down to xs, and where each of these is; *reached: how many are. */
static tn_status list_to(tape *t, tn__node *y, int count, tn__node *const *xs, uint32_t *found, int *reached)
{
    tn__marks_begin(&t->marks);
    t->count = t->input_count = t->depth = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = tn__tape_aim(t, xs[i]);
    if (status == TN_OK)
        status = tn__tape_list(t, y);
    *reached = 0;
    for (int i = 0; i < count && status == TN_OK; i++) {
        found[i] = tn__tape_step_of(t, xs[i]);
        *reached += found[i] != ELSEWHERE;
    }
    return status;
}

/*
 * Where all xs are marked, first through marks, which is the shortest way. Else, or where one is not reached so,
 * through everything but what was recorded without gradients, which is constant, as it is to backward; and where that
 * leads to none of xs, as where all was recorded so, through everything. A part of a larger graph is gone through as
 * backward goes through all of it: by marks.
 */
static tn_status list_paths(tape *t, tn__node *y, int count, tn__node *const *xs, uint32_t *found)
{
    int reached = 0;
    tn_status status = TN_OK;
    t->by_flags = true;
    if (t->partial)
        return list_to(t, y, count, xs, found, &reached);
    for (int i = 0; i < count; i++)
        t->by_flags = t->by_flags && xs[i]->flags & TN__NODE_NEEDS_GRAD;
    if (t->by_flags)
        status = list_to(t, y, count, xs, found, &reached);
    t->by_flags = false;
    if (status == TN_OK && reached < count)
        status = list_to(t, y, count, xs, found, &reached);
    t->whole = reached == 0;
    return status == TN_OK && t->whole ? list_to(t, y, count, xs, found, &reached) : status;
}

tn_status tn__gradients(const char *operation, tn__node *y, tn__node *gy, int count,
                        tn__node *const *xs, bool partial, bool create_graph, tn__node **out)
{
    tn__value_mark few[TN__FEW_MARKS];
    TN__TAPE t = {.operation = operation,
                  .partial = partial,
                  .create_graph = create_graph,
                  .aims = xs,
                  .aim_count = partial ? 0 : count,
                  .marks.few = few};
    tn_status status = check_output(operation, y, &gy);
    for (int i = 0; i < count && status == TN_OK; i++) {
        out[i] = NULL;
        if (tn__node_is_error(xs[i]))
            return tn__error_raise(xs[i]->error);
    }
    if (status != TN_OK || !count)
        return status;
    TN__FREED uint32_t *found = tn__alloc((size_t)count * sizeof *found);
    if (!found)
        return tn__fail_memory(operation, (size_t)count * sizeof *found);
    status = list_paths(&t, y, count, xs, found);
    if (status == TN_OK && t.whole && create_graph && t.count)
        status = tn__fail(TN_ERR_STATE, operation,
                          "expected what was recorded for gradients, as this one is to be differentiated itself; all "
                          "that leads to what it is by was recorded without, as in TN_NO_GRAD");
    if (status == TN_OK && t.count)
        status = with_recording(&t, apply_rules, gy);
    for (int i = 0; i < count && status == TN_OK && t.count; i++) {
        bool had = false;
        for (int k = 0; partial && k < i; k++)
            had = had || xs[k] == xs[i];
        if (found[i] != ELSEWHERE && !had)
            out[i] = t.steps[found[i]].gradient;
    }
    return status;
}
