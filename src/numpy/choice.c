/* SPDX-License-Identifier: MIT */
/*
 * Choosing among elements, shuffling them, and distributions over several categories. Weights are read when a call is
 * made: a position drawn by weights that are none looks like any other, so that nothing later could tell.
 */
#include "numpy/compose.h"

#include <float.h>
#include <math.h>

#include "array/draw.h"
#include "core/options.h"

#define map2(OP, a, b) tn__binary(TN__OP_##OP, a, b)

/* ---- categories ---- */

/* A vector of float64 probabilities on the draw's device. */
static tn__node *categories(const char *operation, const tn_array *p, tn__device *device)
{
    tn__node *node = tn__strong(tn__node_of(p, operation));
    TN__PASS_ERROR(node);
    if (node->shape->ndim != 1 || node->shape->size < 1 || tn_dtype_is_complex((tn_dtype)node->dtype))
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected a vector of at least one real number, got %d axes of %s",
                   node->shape->ndim, tn_dtype_name((tn_dtype)node->dtype));
    if (node->device != device && !tn__foldable(node))
        TN__REFUSE(TN_ERR_DEVICE, operation, "the probabilities are on %s, the result on %s; move them with tn_to",
                   node->device->name, device->name);
    return tn__adapt(node, TN_FLOAT64, node->shape, device);
}

/* What is asked of weights, computed where they are: their sum without the last `apart` of them, their least and
 * largest one, how many are not 0. */
typedef struct weights {
    double sum, least, most, count;
} weights;

/* p: a vector that categories() takes. False, with a latched failure, if the values cannot be had. */
static bool read_weights(const tn_array *p, int64_t apart, weights *found)
{
    tn_scope_push();
    tn_array *wide = tn_cast(p, TN_FLOAT64);
    tn_array *facts[] = {tn_sum_with(tn__cut(wide, 0, 0, tn_size(wide) - apart), NULL), tn_min_with(wide, NULL),
                         tn_max_with(wide, NULL),
                         tn_cast(tn_count_nonzero_with(wide, NULL), TN_FLOAT64)};
    bool read = tn_to_host(tn_stack(4, (const tn_array *const *)facts, 0), found, sizeof *found) == TN_OK;
    tn_scope_pop();
    return read;
}

/* shape with one axis more, of n. */
static bool longer(const char *operation, tn_shape *shape, int64_t n)
{
    if (shape->ndim < 0 || shape->ndim >= TN_MAX_NDIM) {
        tn__fail(TN_ERR_SHAPE, operation, "expected a shape of 0 to %d axes, got %d: the categories are one more",
                 TN_MAX_NDIM - 1, shape->ndim);
        return false;
    }
    shape->dim[shape->ndim++] = n;
    return true;
}

/* Element i of a vector, in a shape. */
static tn__node *element(tn__node *vector, int64_t i, const tn__shape *shape)
{
    tn__node *one = tn__slice_node(vector, &i, (int64_t[]){1}, (int64_t[]){1});
    TN__PASS_ERROR(one);
    return tn__expand(tn__reshape(one, 0, NULL), shape);
}

/* `column` as element i of the last axis. */
static tn__node *put_column(tn__node *all, tn__node *column, int64_t i)
{
    TN__PASS_ERROR(all);
    TN__PASS_ERROR(column);
    int ndim = all->shape->ndim;
    tn_shape shape = tn__shape_value(all->shape);
    shape.dim[ndim - 1] = 1;
    return tn__update_along(all, tn__reshape(column, ndim, shape.dim), ndim - 1, i);
}

/* May these be the chances of a multinomial? Their last one is what the others leave. The sum may be off by half the
 * digits of their dtype. */
static bool are_chances(const char *operation, const tn_array *p)
{
    weights w;
    tn_dtype dtype = tn_dtype_of(p);
    double slack = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16 ? 0.1 : dtype == TN_FLOAT32 ? 3e-4 : 1e-8;
    if (!read_weights(p, 1, &w))
        return false;
    bool right = w.least >= 0 && w.most <= 1 + slack && w.sum <= 1 + slack;
    if (!right)
        tn__fail(TN_ERR_VALUE, operation,
                 "chances from %g to %g, all but the last of which sum to %g: expected chances from 0 to 1 that sum to "
                 "1; divide them by their sum",
                 w.least, w.most, w.sum);
    return right;
}

/* Category by category: how many of those left, with its probability among the rest. */
static tn__node *multinomial(int64_t n, const tn_array *p, tn_shape shape, const tn_random_opts *opts)
{
    const char *operation = "random_multinomial";
    tn__draw d = tn__draw_new(operation, shape, TN_INT64, opts);
    if (!d.shape)
        return tn__failed();
    tn__node *chances = categories(operation, p, d.device);
    TN__PASS_ERROR(chances);
    int64_t count = chances->shape->size;
    if (n < 0 || !tn_dtype_is_integer(d.dtype))
        TN__REFUSE(TN_ERR_VALUE, operation, "%lld experiments, dtype %s: expected at least 0, and integers",
                   (long long)n, tn_dtype_name(d.dtype));
    if (!are_chances(operation, p))
        return tn__failed();
    tn_shape whole = shape;
    if (!longer(operation, &whole, count))
        return tn__failed();
    const tn__shape *result_shape = tn__shape_make(operation, whole, TN_FLOAT64);
    if (!result_shape)
        return tn__failed();
    tn__node *result = tn__const(0, TN_FLOAT64, result_shape, d.device),
             *left = tn__const((double)n, TN_FLOAT64, d.shape, d.device);
    tn__node *rest = tn__const(1, TN_FLOAT64, d.shape, d.device);
    for (int64_t i = 0; i < count; i++) {
        tn__node *chance = element(chances, i, d.shape), *taken = left;
        if (i < count - 1) {
            tn__node *share = map2(DIVIDE, chance, map2(MAXIMUM, rest, tn__const_like(rest, 1e-300)));
            share = map2(MINIMUM, map2(MAXIMUM, share, tn__const_like(rest, 0)), tn__const_like(rest, 1));
            taken = tn__draw_binomial(&d, left, share);
            left = map2(SUBTRACT, left, taken);
            rest = map2(SUBTRACT, rest, chance);
        }
        result = put_column(result, taken, i);
        TN__PASS_ERROR(result);
    }
    return tn__draw_integers(result, d.dtype);
}

tn_array *tn_random_multinomial_with(int64_t n, const tn_array *p, tn_shape shape, const tn_random_opts *opts)
{
    TN__RETURN(multinomial(n, p, shape, opts));
}

/* Gamma variates over their sum, by their logarithms: of small shapes all may be too small for a float. */
static tn__node *dirichlet(const tn_array *alpha, tn_shape shape, const tn_random_opts *opts)
{
    const char *operation = "random_dirichlet";
    tn__device *device = tn__device_get(opts ? opts->device : (tn_device){0, 0});
    tn__node *a = device ? categories(operation, alpha, device) : tn__failed();
    TN__PASS_ERROR(a);
    if (!longer(operation, &shape, a->shape->size))
        return tn__failed();
    tn__draw d = tn__draw_new(operation, shape, TN_FLOAT32, opts);
    if (!d.shape)
        return tn__failed();
    tn__node *x = tn__draw_log_gamma(&d, tn__expand(a, d.shape));
    TN__PASS_ERROR(x);
    return tn__cast(tn__softmax(TN__OP_SOFTMAX, x, 1u << (d.shape->ndim - 1)), d.dtype);
}

tn_array *tn_random_dirichlet_with(const tn_array *alpha, tn_shape shape, const tn_random_opts *opts)
{
    TN__RETURN(dirichlet(alpha, shape, opts));
}

/* ---- choice ---- */

/* Each time anew: where a uniform number falls among the sums of the probabilities. */
static tn__node *weighted(const tn__draw *d, tn__node *p)
{
    tn__node *sums = tn__sort_scan(TN__OP_CUMSUM, p, NULL);
    TN__PASS_ERROR(sums);
    int64_t n = p->shape->size, last = n - 1, size = d->shape->size;
    tn__node *total = element(sums, last, d->shape);
    tn__node *u = map2(MULTIPLY, tn__draw_next(d, TN__OP_RANDOM_UNIFORM, TN_FLOAT64), total);
    tn__node *at = tn__sort_scan(TN__OP_SEARCH_RIGHT, sums, tn__reshape(u, 1, &size));
    TN__PASS_ERROR(at);
    return tn__reshape_like(map2(MINIMUM, at, tn__const_like(at, (double)last)), d->shape);
}

/* Without putting back: those whose exponential variates over their probabilities come first (P. Efraimidis, P.
 * Spirakis, 2006), by their logarithms: a quotient by a small probability may be infinite, as that by 0 is. */
static tn__node *distinct(const char *operation, const tn__draw *d, int64_t n, tn__node *p)
{
    int64_t size = d->shape->size;
    if (size > n)
        TN__REFUSE(TN_ERR_VALUE, operation, "%lld of %lld cannot be chosen without putting back; leave out .once",
                   (long long)size, (long long)n);
    tn__draw keys = *d;
    keys.shape = tn__shape_make(operation, tn__vector(n), TN_FLOAT64);
    if (!keys.shape)
        return tn__failed();
    tn__node *key = tn__draw_exponential(&keys);
    if (p)
        key = map2(SUBTRACT, tn__unary(TN__OP_LOG, key), tn__unary(TN__OP_LOG, p));
    tn__node *order = tn__sort_scan(TN__OP_ARGSORT, key, NULL);
    TN__PASS_ERROR(order);
    int64_t start = 0, step = 1;
    return tn__reshape_like(tn__slice_node(order, &start, &step, &size), d->shape);
}

/* May elements be drawn by these weights, `fewest` different ones? */
static bool are_weights(const char *operation, const tn_array *p, int64_t fewest)
{
    weights w;
    if (!read_weights(p, 0, &w))
        return false;
    bool right = w.least >= 0 && w.sum > 0 && w.sum <= DBL_MAX;
    if (!right)
        tn__fail(TN_ERR_VALUE, operation,
                 "the least weight is %g, their sum %g: expected finite weights, none below 0, not all 0", w.least,
                 w.sum);
    else if (w.count < (double)fewest)
        tn__fail(TN_ERR_VALUE, operation,
                 "%lld of the %g elements whose weight is not 0 cannot be chosen without putting back; leave out .once",
                 (long long)fewest, w.count);
    return right && w.count >= (double)fewest;
}

static tn__node *choice(int64_t n, tn_shape shape, const tn_choice_opts *opts)
{
    const char *operation = "random_choice";
    tn_random_opts random = {.device = opts ? opts->device : (tn_device){0, 0},
                             .generator = opts ? opts->generator : NULL};
    tn__draw d = tn__draw_new(operation, shape, TN_INT64, &random);
    if (!d.shape)
        return tn__failed();
    if (n < 1 && d.shape->size > 0)
        TN__REFUSE(TN_ERR_VALUE, operation, "there are %lld to choose from, expected at least 1", (long long)n);
    if (opts && !TN__ARRAY_WRITTEN(operation, opts, p))
        return tn__failed();
    tn__node *p = opts && opts->p ? categories(operation, opts->p, d.device) : NULL;
    if (p) {
        TN__PASS_ERROR(p);
        if (p->shape->size != n)
            TN__REFUSE(TN_ERR_SHAPE, operation, "%lld probabilities for %lld elements: they must be as many",
                       (long long)p->shape->size, (long long)n);
        if (!are_weights(operation, opts->p, opts->once ? d.shape->size : 0))
            return tn__failed();
    }
    if (opts && opts->once)
        return distinct(operation, &d, n, p);
    return p ? weighted(&d, p) : tn__cast(tn__draw_below(&d, (uint64_t)n), TN_INT64);
}

tn_array *tn_random_choice_with(int64_t n, tn_shape shape, const tn_choice_opts *opts)
{
    TN__RETURN(choice(n, shape, opts));
}

/* ---- shuffling ---- */

tn_array *tn_random_permuted_with(const tn_array *x, const tn_random_opts *opts)
{
    if (tn_is_error(x))
        TN__RETURN(tn__node_of(x, "random_permuted"));
    if (tn_ndim(x) == 0)
        TN__RETURN(
            tn__node_error(tn__error_new(TN_ERR_SHAPE, "random_permuted", "expected an array of at least 1 axis")));
    int axis = tn__axis_check("random_permuted", opts ? opts->axis : 0, tn_ndim(x));
    if (axis < 0)
        TN__RETURN(tn__failed());
    tn_random_opts where = {.device = tn_device_of(x), .generator = opts ? opts->generator : NULL};
    tn_array *order = tn_random_permutation_with(tn_dim(x, axis), &where), *result = tn_take(x, order, axis);
    tn_free(order);
    return result;
}

tn_status tn_random_shuffle_with(tn_array *x, const tn_random_opts *opts)
{
    tn_array *shuffled = tn_random_permuted_with(x, opts);
    tn_status status = tn_assign(x, shuffled);
    tn_free(shuffled);
    return status;
}
