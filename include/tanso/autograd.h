/* SPDX-License-Identifier: MIT */
/*
 * Differentiation. A gradient is an ordinary expression, recorded like any other, so that gradients of gradients need
 * nothing special.
 *
 *     tn_array *x = tn_requires_grad(tn_scalar(2.0));
 *     tn_backward(f(x));
 *     tn_grad(x);
 *
 * Backward gives gradients to leaves: parameters, and arrays marked with tn_requires_grad; to other arrays only where
 * tn_retain_grad asked. Gradients accumulate until tn_clear_grad; an optimizer's step consumes its parameters'.
 */
#ifndef TANSO_AUTOGRAD_H
#define TANSO_AUTOGRAD_H

#include <stdio.h>
#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a floating array as a leaf whose gradient is wanted; what it was computed from no longer matters. Returns
 * x. */
TN_API tn_array *tn_requires_grad(tn_array *x);
/* Asks backward to give x, not a leaf, a gradient too. Call it before tn_backward. Returns x. */
TN_API tn_array *tn_retain_grad(tn_array *x);
/* True if backward from x would reach a leaf, or what tn_gradients took a gradient by, with create_graph. */
TN_API bool tn_needs_grad(const tn_array *x);

typedef struct tn_backward_opts {
    const char *_;
    const tn_array *grad; /* the gradient of the output; default: ones */
    bool create_graph;    /* let gradients be differentiated themselves */
    bool retain_graph;    /* keep the graph for another backward after evaluation (implied by create_graph) */
    bool retain_grad;     /* give every array on the way that still has a handle its gradient */
} tn_backward_opts;

/* Records the gradients of y with respect to its leaves and adds them to the leaves' gradients. What an earlier
 * backward gave, which let its graph go, is computed before more is added to it, so that many minibatches take the
 * memory of one. The status is also
 * latched, so that a training loop may look at tn_ok() once. TN_ERR_STATE if y depends on no leaf, or through a graph
 * that an earlier backward let go, or if a leaf was written into (tn_assign and its kin, tn_layer_load, tn_step) after
 * y was computed from it; nothing is added then. A gradient that was made with create_graph and does not depend on its
 * array any more, as that of a linear function, has the gradient 0. */
TN_API tn_status tn_backward_with(const tn_array *y, const tn_backward_opts *opts);
/* x's gradient: the same handle each time, owned by x; an error array if there is none. */
TN_API tn_array *tn_grad(const tn_array *x);
/* Whether x has a gradient; forgetting it. */
TN_API bool tn_has_grad(const tn_array *x);
TN_API void tn_clear_grad(tn_array *x);
/* Points x's gradient at `grad`'s value (shape and dtype of x): what gradient hooks do. */
TN_API tn_status tn_set_grad(tn_array *x, const tn_array *grad);
/* dy/dxs[i] into out[i], as new arrays of the scope, touching no stored gradient and letting no graph go. xs need no
 * marks, but an unmarked one is only found while what lies between it and y is not evaluated, and what was evaluated
 * before is constant: so are, of an unmarked one, its copy on another device (tn_to), which is made at once, and what
 * is made by looking at values (tn_unique). With create_graph, from then on whatever leads from y and the gradients to
 * xs keeps what it was computed from, as if xs were marked (tn_backward gives nothing to them). What was recorded
 * without gradients (TN_NO_GRAD, or gradients without create_graph) is constant; only where nothing else leads to any
 * of xs, and without create_graph, is it gone through, while it is not evaluated. TN_ERR_STATE, and error arrays in
 * out, if y does not depend on one of them, or depends on an unmarked one by way of a slice of its value, or of a sort
 * or scan (tn_sort, tn_cumprod and their kin), which nothing leads back through then; but what create_graph gave
 * depends on its xs[i], if only with the derivative 0, and on the others, where they are fewer than 20. */
TN_API tn_status tn_gradients(const tn_array *y, int count, const tn_array *const *xs, bool create_graph,
                              tn_array **out);

/* x's value cut off from what computed it. */
TN_API tn_array *tn_detach(const tn_array *x);
/* While off, operations record nothing for backward: between push and pop (they nest), or in TN_NO_GRAD { ... }. One
 * that has nothing to do, as a cast to the dtype that is there, gives its operand itself then, too: tn_detach cuts. */
TN_API void tn_no_grad_push(void);
TN_API void tn_no_grad_pop(void);
/* Whether this thread records for backward now. */
TN_API bool tn_grad_enabled(void);
typedef struct tn__no_grad_guard {
    const char *_;
} tn__no_grad_guard;
TN_API tn__no_grad_guard tn__no_grad_enter(void);
TN_API void tn__no_grad_leave(tn__no_grad_guard *guard);
#if defined(__GNUC__)
#define TN_NO_GRAD TN__BLOCK(no_grad, tn__no_grad_enter())
#endif

/* ---- checking gradients ---- */

/* A function of `count` arrays to one array. */
typedef tn_array *(*tn_function)(int count, tn_array *const *xs, void *user);

typedef struct tn_check_opts {
    const char *_;
    double eps;    /* step of the central differences, eps and eps/2, extrapolated; default 1e-3 (inputs are cast to
                      float64) */
    double rtol;   /* default 1e-4 */
    double atol;   /* default 1e-5 */
    uint64_t seed; /* of the random directions */
} tn_check_opts;

/* Compares backward's directional derivative, in a random direction and weighted by a random output gradient, with a
 * central difference, in float64 (Chainer's check_backward). TN_OK, or TN_ERR_VALUE with both numbers in the
 * message. */
TN_API tn_status tn_check_backward_with(tn_function f, void *user, int count, const tn_array *const *xs,
                                        const tn_check_opts *opts) TN_MUST_CHECK;
/* The same for the gradients themselves: second derivatives. */
TN_API tn_status tn_check_double_backward_with(tn_function f, void *user, int count, const tn_array *const *xs,
                                               const tn_check_opts *opts) TN_MUST_CHECK;

/* ---- drawing ---- */

/* Names x in drawings and messages (the string is copied). Returns x. */
TN_API tn_array *tn_set_name(tn_array *x, const char *name);
/* Writes the computation of y as a DOT graph (Graphviz) to `stream`: operations, shapes, dtypes, names. */
TN_API tn_status tn_graph_dot(const tn_array *y, FILE *stream) TN_MUST_CHECK;

#ifndef TN_NO_MACROS
#define tn_no_grad_pop() TN_HERE(tn_no_grad_pop())
#define tn_set_name(...) TN_HERE(tn_set_name(__VA_ARGS__))
#define tn_retain_grad(...) TN_HERE(tn_retain_grad(__VA_ARGS__))
#define tn_set_grad(...) TN_HERE(tn_set_grad(__VA_ARGS__))
#define tn_gradients(...) TN_HERE(tn_gradients(__VA_ARGS__))
#define tn_requires_grad(x) TN_AT(tn_requires_grad)(x)
#define tn_grad(x) TN_AT(tn_grad)(x)
#define tn_detach(x) TN_AT(tn_detach)(x)
#define tn_backward(...) TN__CALL_V(tn_backward_with, tn_backward_opts, __VA_ARGS__, )
#define tn_check_backward(...) TN__CALL_VVVV(tn_check_backward_with, tn_check_opts, __VA_ARGS__, )
#define tn_check_double_backward(...) TN__CALL_VVVV(tn_check_double_backward_with, tn_check_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
