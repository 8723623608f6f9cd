/* SPDX-License-Identifier: MIT */
/* What a handle knows of differentiation: marks of leaves, its gradient, and the switch that stops recording. */
#include "autograd/backward.h"

#include "array/build.h"

#include <tanso/autograd.h>

/* ---- the gradient in a record ---- */

tn__node *tn__var_grad(const tn__var *var)
{
    const tn_array *handle = __atomic_load_n(&var->handle, __ATOMIC_ACQUIRE);
    return var->grad && handle ? tn__array_node(handle) : var->grad;
}

/* An error that nobody made yet: it is latched only by who uses it. */
static tn__node *cleared(void)
{
    bool ok = !tn__latched();
    tn__error *error = tn__error_new(
        TN_ERR_STATE, "tn_grad", "this gradient was cleared, or consumed by an optimizer's step");
    if (ok)
        tn_clear_error();
    return tn__node_error(error);
}

void tn__var_set_grad(tn__var *var, tn__node *grad)
{
    tn__node *old = var->grad;
    if (!grad && !old)
        return;
    tn__call call = tn__enter();
    var->final = false;
    var->grad = grad ? tn__node_retain(grad) : NULL;
    tn__var_hold(var, grad);
    if (var->handle)
        tn__array_set(var->handle, grad ? grad : cleared());
    if (old)
        tn__node_release(old);
    tn__leave(call);
}

/* The record that holds x's gradient, or NULL: its own, or that of another handle to the same node. */
static tn__var *var_with_grad(const tn_array *x)
{
    if (!x || !tn__array_lives(x, "tn_grad"))
        return NULL;
    const tn__handle *handle = tn__handle_of(x);
    if (handle->var && handle->var->grad)
        return handle->var;
    return handle->node->var && handle->node->var->grad ? handle->node->var : NULL;
}

bool tn_has_grad(const tn_array *x)
{
    return var_with_grad(x) != NULL;
}

/* The first one that any of the threads makes that ask for it. */
static tn_array *handle_of_grad(tn__var *var)
{
    tn_array *first = __atomic_load_n(&var->handle, __ATOMIC_ACQUIRE);
    if (first)
        return first;
    tn_array *made = tn__array_own_new(var->grad);
    if (__atomic_compare_exchange_n(&var->handle, &first, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    tn__array_free_kept(made);
    return first;
}

tn_array *tn_grad(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "tn_grad");
    if (tn__node_is_error(node))
        return tn__leave_array(call, node);
    tn__var *var = var_with_grad(x);
    if (!var) {
        tn__fail(
            TN_ERR_STATE, "tn_grad",
            node->flags & TN__NODE_LEAF_VAR
                ? "this array has no gradient yet; call tn_backward on an array computed from it"
                : "this array has no gradient, as it is no leaf; mark it with tn_requires_grad, or "
                  "with tn_retain_grad, before tn_backward");
        return tn__leave_error(call);
    }
    tn_array *grad = handle_of_grad(var);
    tn__leave(call);
    return grad;
}

void tn_clear_grad(tn_array *x)
{
    tn__var *var = var_with_grad(x);
    if (var)
        tn__var_set_grad(var, NULL);
}

static tn_status set_grad(tn_array *x, tn__node *node, tn__node *grad)
{
    char expected[TN__SHAPE_TEXT], came[TN__SHAPE_TEXT];
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    if (tn__node_is_error(grad))
        return tn__error_raise(grad->error);
    if (grad->shape != node->shape)
        return tn__fail(TN_ERR_SHAPE, "tn_set_grad",
                        "expected a gradient of the array's shape %s, got %s",
                        tn__shape_text(node->shape->ndim, node->shape->dim, expected),
                        tn__shape_text(grad->shape->ndim, grad->shape->dim, came));
    if (grad->dtype != node->dtype)
        return tn__fail(TN_ERR_DTYPE, "tn_set_grad",
                        "expected a gradient of the array's dtype %s, got %s; use tn_cast",
                        tn_dtype_name((tn_dtype)node->dtype), tn_dtype_name((tn_dtype)grad->dtype));
    if (grad->device != node->device)
        return tn__fail(TN_ERR_DEVICE, "tn_set_grad",
                        "expected a gradient on the array's device %s, got one on %s; use tn_to",
                        node->device->name, grad->device->name);
    tn__var *var = tn__array_var(x);
    if (!var)
        return tn__fail_memory("tn_set_grad", sizeof(tn__var));
    tn__var_set_grad(var, grad);
    return TN_OK;
}

tn_status tn_set_grad(tn_array *x, const tn_array *grad)
{
    tn__call call = tn__enter();
    tn_status status = set_grad(x, tn__node_of(x, "tn_set_grad"), tn__node_of(grad, "tn_set_grad"));
    tn__leave(call);
    return status;
}

/* ---- marks ---- */

/* The value of a node behind a new node, through which nothing is differentiated: also not where gradients by arrays
 * without marks are asked for, which go through all else that is pending. */
static tn__node *cut_off(tn__node *node)
{
    if (node->storage)
        return tn__node_value(node->storage, (tn_dtype)node->dtype, node->shape, node->offset,
                              node->strides);
    tn__no_grad_depth++;
    tn__node *cut = node->flags & TN__NODE_NEEDS_GRAD ? tn__unary(TN__OP_COPY, node) : tn__tied(node, 0, NULL);
    tn__no_grad_depth--;
    if (!tn__node_is_error(cut))
        cut->flags |= TN__NODE_CUT;
    return cut;
}

static void mark_leaf(tn_array *x, tn__node *node)
{
    if (tn__node_is_error(node) || node->flags & TN__NODE_LEAF_VAR)
        return;
    if (!tn__dtype_inexact((tn_dtype)node->dtype)) {
        tn__fail(TN_ERR_DTYPE, "tn_requires_grad",
                 "expected a floating array, got %s; cast it with tn_cast first",
                 tn_dtype_name((tn_dtype)node->dtype));
        return;
    }
    /* A mark in place would mark the other users of the node too. */
    if (node->references > 1 || node->flags & TN__NODE_NEEDS_GRAD) {
        node = cut_off(node);
        if (tn__node_is_error(node))
            return;
        tn__array_set(x, node);
    }
    tn__var *var = tn__array_var(x);
    if (!var) {
        tn__fail_memory("tn_requires_grad", sizeof *var);
        return;
    }
    node->var = var;
    node->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
}

tn_array *tn_requires_grad(tn_array *x)
{
    tn__call call = tn__enter();
    mark_leaf(x, tn__node_of(x, "tn_requires_grad"));
    tn__leave(call);
    return x;
}

tn_array *tn_retain_grad(tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "tn_retain_grad");
    if (!tn__node_is_error(node) && node->flags & TN__NODE_NEEDS_GRAD) {
        if (!node->var)
            node->var = tn__array_var(x);
        if (node->var)
            node->flags |= TN__NODE_RETAIN_GRAD;
        else
            tn__fail_memory("tn_retain_grad", sizeof(tn__var));
    }
    tn__leave(call);
    return x;
}

bool tn_needs_grad(const tn_array *x)
{
    return x && tn__array_lives(x, "tn_needs_grad") && tn__array_node(x)->flags & TN__NODE_NEEDS_GRAD;
}

tn_array *tn_detach(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "tn_detach");
    bool differentiable = !tn__node_is_error(node) && tn__dtype_inexact((tn_dtype)node->dtype) &&
                          !(node->flags & (TN__NODE_CUT | TN__NODE_WEAK));
    return tn__leave_array(call, differentiable ? cut_off(node) : node);
}

/* ---- the switch ---- */

void tn_no_grad_push(void)
{
    tn__leave(tn__enter());
    tn__no_grad_depth++;
}

void tn_no_grad_pop(void)
{
    if (tn__no_grad_depth > 0)
        tn__no_grad_depth--;
    else
        tn__fail(TN_ERR_STATE, "tn_no_grad_pop", "expected a tn_no_grad_push before, found none");
}

bool tn_grad_enabled(void)
{
    tn__leave(tn__enter());
    return tn__no_grad_depth == 0;
}

tn__no_grad_guard tn__no_grad_enter(void)
{
    tn_no_grad_push();
    return (tn__no_grad_guard){0};
}

void tn__no_grad_leave(tn__no_grad_guard *guard)
{
    (void)guard;
    tn_no_grad_pop();
}
