/* SPDX-License-Identifier: MIT */
/*
 * Checking gradients against differences, as Chainer's check_backward does. The function f becomes
 * a scalar, L(x) = sum(w * f(x)) with random weights w, so that errors cannot cancel; its
 * derivative along one random direction d of length 1 is compared with (L(x + eps d) - L(x - eps
 * d)) / (2 eps), extrapolated from two steps. Everything is computed in float64.
 *
 * For second derivatives the function checked is made of the gradient of L: sum(v * dL/dx) with
 * random v, of x and of w.
 */
#include "array/build.h"
#include "array/guard.h"
#include "autograd/backward.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/options.h"

#include <math.h>
#include <tanso/autograd.h>

typedef struct check {
    const char *operation;
    tn_function f;
    void *user;
    tn_check_opts opts;
    bool second;
    int count;       /* of f's inputs; behind them, in all arrays, comes w */
    tn__node **base; /* the point: float64, but for integers and bool, which stay as they are */
    tn__node **direction; /* d; NULL for what does not move */
    tn__node **weight;    /* v */
    tn__node **nodes, **grads;
    tn_array **xs; /* the inputs of one call */
} check;

/* What random numbers are for: each use has its own. */
enum { OF_DIRECTION, OF_OUTPUT, OF_GRADIENT };

static tn__node *normal(const check *c, tn__node *like, int purpose, int position)
{
    uint64_t key = tn__hash_mix(tn__hash_mix(c->opts.seed, (uint64_t)purpose), (uint64_t)position);
    return tn__random(TN__OP_RANDOM_NORMAL, TN_FLOAT64, like->shape, like->device, key, 0);
}

static tn__node *dot(tn__node *a, tn__node *b)
{
    tn__node *product = tn__binary(TN__OP_MULTIPLY, a, b);
    uint32_t all = (1u << product->shape->ndim) - 1;
    return tn__drop_axes(tn__reduce(TN__OP_SUM, product, all), all);
}

/* sum of dot(a[i], b[i]) where both are there; zero if none are. */
static tn__node *dot_all(int count, tn__node *const *a, tn__node *const *b, tn__device *device)
{
    tn__node *sum = tn__const(0, TN_FLOAT64, tn__shape_scalar(), device);
    for (int i = 0; i < count; i++)
        if (a[i] && b[i])
            sum = tn__binary(TN__OP_ADD, sum, dot(a[i], b[i]));
    return sum;
}

static tn_status evaluate(tn__node *node)
{
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    return tn__engine.evaluate(node);
}

static tn_status read_scalar(tn__node *node, double *value)
{
    tn_status status = evaluate(node);
    if (status != TN_OK)
        return status;
    const char *memory =
        (const char *)node->storage->memory + node->offset * (int64_t)sizeof *value;
    return tn__storage_read(node->storage, value, memory, sizeof *value);
}

/* Points the first `count` inputs at base + step * direction, as fresh leaves. */
static tn_status set_inputs(check *c, int count, double step)
{
    for (int i = 0; i < count; i++) {
        tn__node *x = c->base[i];
        if (c->direction[i])
            x = tn__binary(TN__OP_ADD, x, tn__with(TN__OP_MULTIPLY, c->direction[i], step));
        tn_status status = evaluate(x);
        if (status != TN_OK)
            return status;
        c->xs[i] = tn__leave_array(tn__enter(), x);
        if (tn_dtype_is_float((tn_dtype)x->dtype))
            tn_requires_grad(c->xs[i]);
    }
    return TN_OK;
}

/* f at the inputs, in float64. */
static tn_status call(check *c, tn__node **y)
{
    *y = tn__node_of(c->f(c->count, c->xs, c->user), c->operation);
    if (tn__node_is_error(*y))
        return tn__error_raise((*y)->error);
    if (!tn_dtype_is_float((tn_dtype)(*y)->dtype))
        return tn__fail(TN_ERR_DTYPE, c->operation,
                        "expected a function with a floating result, got %s",
                        tn_dtype_name((tn_dtype)(*y)->dtype));
    *y = tn__cast(*y, TN_FLOAT64);
    return TN_OK;
}

static tn_status gradients(check *c, tn__node *y, bool create_graph)
{
    for (int i = 0; i <= c->count; i++)
        c->nodes[i] = tn__array_node(c->xs[i]);
    return tn__gradients(c->operation, y, NULL, c->count + 1, c->nodes, false, create_graph, c->grads);
}

/* L, or sum(v * dL/dx), at the inputs. */
static tn_status scalar_function(check *c, double step, tn__node **value)
{
    tn__node *y;
    tn_status status = set_inputs(c, c->count + 1, step);
    if (status == TN_OK)
        status = call(c, &y);
    if (status != TN_OK)
        return status;
    *value = dot(y, tn__array_node(c->xs[c->count]));
    if (!c->second)
        return TN_OK;
    status = gradients(c, *value, true);
    if (status == TN_OK)
        *value = dot_all(c->count, c->grads, c->weight, y->device);
    return status;
}

/* The slope by a central difference over steps of eps. */
static tn_status central_difference(check *c, double eps, double *slope)
{
    double side[2];
    for (int k = 0; k < 2; k++) {
        tn__node *value;
        tn_status status = scalar_function(c, k ? -eps : eps, &value);
        if (status == TN_OK)
            status = read_scalar(value, &side[k]);
        if (status != TN_OK)
            return status;
    }
    *slope = (side[0] - side[1]) / (2 * eps);
    return TN_OK;
}

/* Two of them, extrapolated: the error, of second order in eps, cancels and leaves one of fourth order (Richardson). */
static tn_status by_difference(check *c, double *slope)
{
    double wide, narrow;
    tn_status status = central_difference(c, c->opts.eps, &wide);
    if (status == TN_OK)
        status = central_difference(c, c->opts.eps / 2, &narrow);
    if (status == TN_OK)
        *slope = (4 * narrow - wide) / 3;
    return status;
}

static tn_status by_backward(check *c, double *slope)
{
    tn__node *value;
    tn_status status = scalar_function(c, 0, &value);
    if (status == TN_OK)
        status = gradients(c, value, false);
    return status == TN_OK
               ? read_scalar(dot_all(c->count + 1, c->grads, c->direction, value->device), slope)
               : status;
}

static tn_status draw_directions(check *c)
{
    for (int i = 0; i <= c->count; i++)
        if (tn_dtype_is_float((tn_dtype)c->base[i]->dtype) && (i < c->count || c->second))
            c->direction[i] = normal(c, c->base[i], OF_DIRECTION, i);
    double square = 0;
    tn_status status =
        read_scalar(dot_all(c->count + 1, c->direction, c->direction, c->base[0]->device), &square);
    for (int i = 0; i <= c->count && square > 0; i++)
        if (c->direction[i])
            c->direction[i] = tn__with(TN__OP_MULTIPLY, c->direction[i], 1 / sqrt(square));
    return status;
}

static tn_status prepare(check *c, const tn_array *const *xs)
{
    bool floating = false;
    for (int i = 0; i < c->count; i++) {
        tn__node *x = c->base[i] = tn__node_of(xs[i], c->operation);
        if (tn_dtype_is_float((tn_dtype)x->dtype)) {
            floating = true;
            c->base[i] = tn__cast(x, TN_FLOAT64);
            c->weight[i] = normal(c, x, OF_GRADIENT, i);
        }
        tn_status status = evaluate(c->base[i]);
        if (status != TN_OK)
            return status;
    }
    if (!floating)
        return tn__fail(TN_ERR_DTYPE, c->operation,
                        "expected at least one floating input, got none");
    tn__node *y;
    tn_status status = set_inputs(c, c->count, 0);
    if (status == TN_OK)
        status = call(c, &y);
    if (status != TN_OK)
        return status;
    c->base[c->count] = normal(c, y, OF_OUTPUT, 0);
    status = evaluate(c->base[c->count]);
    return status == TN_OK ? draw_directions(c) : status;
}

static tn_status compare(check *c, const tn_array *const *xs)
{
    double expected, got;
    tn_status status = prepare(c, xs);
    if (status == TN_OK)
        status = by_difference(c, &expected);
    if (status == TN_OK)
        status = by_backward(c, &got);
    if (status != TN_OK || fabs(got - expected) <= c->opts.atol + c->opts.rtol * fabs(expected))
        return status;
    return tn__fail(TN_ERR_VALUE, c->operation,
                    "along a random direction, %s gave the slope %.10g, but the difference with eps %g is %.10g (atol "
                    "%g, rtol %g, seed %llu)",
                    c->second ? "second derivatives" : "backward", got, c->opts.eps, expected,
                    c->opts.atol, c->opts.rtol, (unsigned long long)c->opts.seed);
}

static tn_status run(const char *operation, bool second, tn_function f, void *user, int count,
                     const tn_array *const *xs, const tn_check_opts *opts)
{
    if (count < 1)
        return tn__fail(TN_ERR_VALUE, operation, "expected at least one input, got %d", count);
    if (!f || !xs)
        return tn__fail_null(operation, "a function and its inputs");
    check c = {.operation = operation, .f = f, .user = user, .second = second, .count = count};
    c.opts = (tn_check_opts){.eps = TN__OPTION(opts, eps, 1e-3),
                             .rtol = TN__OPTION(opts, rtol, 1e-4),
                             .atol = TN__OPTION(opts, atol, 1e-5),
                             .seed = opts ? opts->seed : 0};
    if (!(c.opts.eps > 0) || !isfinite(c.opts.eps) || !(c.opts.rtol >= 0) || !(c.opts.atol >= 0))
        return tn__fail(TN_ERR_VALUE, operation,
                        "eps %g, rtol %g, atol %g: expected a finite step above 0 and tolerances of 0 or more",
                        c.opts.eps, c.opts.rtol, c.opts.atol);
    size_t each = (size_t)count + 1;
    TN__FREED tn__node **lists = tn__calloc(5 * each, sizeof *lists);
    TN__FREED tn_array **arrays = tn__calloc(each, sizeof *arrays);
    c.xs = arrays;
    TN__GUARD(operation);
    tn_status status = TN_OK;
    if (lists && c.xs) {
        c.base = lists;
        c.direction = lists + each;
        c.weight = lists + 2 * each;
        c.nodes = lists + 3 * each;
        c.grads = lists + 4 * each;
        int depth = tn__no_grad_depth; /* f is recorded, even under tn_no_grad_push */
        tn__no_grad_depth = 0;
        tn_scope_push();
        tn__call entered = tn__enter();
        status = compare(&c, xs);
        tn__leave(entered);
        tn_scope_pop();
        tn__no_grad_depth = depth;
    } else {
        status = tn__fail_memory(operation, 5 * each * sizeof *lists);
    }
    return status;
}

tn_status tn_check_backward_with(tn_function f, void *user, int count, const tn_array *const *xs,
                                 const tn_check_opts *opts)
{
    return run("tn_check_backward", false, f, user, count, xs, opts);
}

tn_status tn_check_double_backward_with(tn_function f, void *user, int count,
                                        const tn_array *const *xs, const tn_check_opts *opts)
{
    return run("tn_check_double_backward", true, f, user, count, xs, opts);
}
