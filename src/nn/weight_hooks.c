/* SPDX-License-Identifier: MIT */
/*
 * Hooks during whose layer's forward its weight shows what is made of it, while the parameter stays what it is and gets
 * gradients through that. Three kinds: divided by its largest singular value, estimated by power iterations from where
 * the last forward left off, whose vectors count as constants, as in Chainer; a direction times a length; standardized.
 */
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/normalization.h>
#include <tanso/random.h>
#include "autograd/backward.h"
#include "core/options.h"
#include "nn/layer.h"

typedef struct weight_hook weight_hook;

typedef struct hook_kind {
    const char *operation, *suffix; /* of the name of what lies beside the weight; NULL: nothing does */
    double eps;
    tn_array *(*make)(const weight_hook *h, const tn_layer *layer, const tn_array *w, tn_array *beside);
    tn_array *(*beside)(const weight_hook *h, const tn_array *w); /* at first */
    bool trained; /* it is a parameter, too */
} hook_kind;

struct weight_hook {
    const hook_kind *kind;
    char *weight, *beside;
    int iterations, axis;
    double eps, factor;
    tn__node *plain; /* during a forward: the weight itself, held */
};

static tn__slot *slot_named(tn_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    return NULL;
}

/* The weight as a matrix (outputs, all others). */
static tn_array *as_matrix(const tn_array *w, int axis)
{
    tn_axes order = {.count = tn_ndim(w), .axis = {axis}};
    for (int d = 0, at = 1; d < order.count; d++)
        if (d != axis)
            order.axis[at++] = d;
    return tn_reshape(tn_transpose(w, order), (tn_shape){2, {tn_dim(w, axis), -1}});
}

static tn_array *number_like(const tn_array *x, double value)
{
    return tn_scalar_with(value, &(tn_create_opts){.dtype = tn_dtype_of(x), .device = tn_device_of(x)});
}

static tn_array *of_length_one(const tn_array *x, double eps)
{
    tn_array *norm = tn_sqrt(tn_sum_with(tn_square(x), NULL));
    return tn_divide(x, tn_add(norm, number_like(x, eps)));
}

/* ---- around a forward ---- */

static tn_array *divided(const weight_hook *s, const tn_layer *layer, const tn_array *w, tn_array *vector)
{
    tn_array *u = vector, *v = NULL, *matrix = as_matrix(w, s->axis);
    tn__no_grad_depth++;
    for (int i = 0; i < s->iterations; i++) {
        v = of_length_one(tn_matmul(u, matrix), s->eps);
        u = of_length_one(tn_matmul(matrix, v), s->eps);
    }
    u = tn_detach(u);
    if (!layer->evaluating)
        tn_assign(vector, u);
    tn__no_grad_depth--;
    tn_array *sigma = tn_matmul(tn_matmul(u, matrix), v);
    return tn_divide(w, tn_multiply(sigma, number_like(w, 1 / s->factor)));
}

/* A vector from which the iterations begin. */
static tn_array *any_vector(const weight_hook *h, const tn_array *w)
{
    tn_random_opts opts = {.dtype = tn_dtype_of(w), .device = tn_device_of(w)};
    return tn_random_normal_with((tn_shape){1, {tn_dim(w, h->axis)}}, &opts);
}

static tn_array *of_length(const weight_hook *h, const tn_layer *layer, const tn_array *w, tn_array *length)
{
    (void)layer;
    return tn_weight_norm(w, length, h->axis);
}

/* So that the weight is at first what it was. */
static tn_array *lengths(const weight_hook *h, const tn_array *w)
{
    tn_axes rows = {1, {1}};
    return tn_sqrt(tn_sum_with(tn_square(as_matrix(w, h->axis)), &(tn_reduce_opts){.axis = rows}));
}

/* (w - mean) / (deviation + eps), of each output. */
static tn_array *standardized(const weight_hook *h, const tn_layer *layer, const tn_array *w, tn_array *none)
{
    (void)layer, (void)none;
    tn_axes others = {0};
    for (int d = 0; d < tn_ndim(w); d++)
        if (d != h->axis)
            others.axis[others.count++] = d;
    const tn_reduce_opts over = {.axis = others, .keepdims = true};
    tn_array *off = tn_subtract(w, tn_mean_with(w, &over));
    tn_array *deviation = tn_sqrt(tn_mean_with(tn_square(off), &over));
    return tn_divide(off, tn_add(deviation, number_like(w, h->eps)));
}

/* The handle shows what is made of the weight, whatever asks for it meanwhile. */
static tn_status show_made(weight_hook *h, tn_layer *layer)
{
    tn__slot *weight = slot_named(layer, h->weight), *beside = h->beside ? slot_named(layer, h->beside) : NULL;
    tn__scope_guard scope = tn__scope_enter();
    tn_array *w = h->kind->make(h, layer, weight->value, beside ? beside->value : NULL);
    tn_status status = tn_status_of(w);
    if (status == TN_OK) {
        tn__handle *handle = tn__handle_of(weight->value);
        h->plain = handle->node; /* with the handle's reference */
        handle->node = tn__node_retain(tn__array_node(w));
    }
    tn__scope_leave(&scope);
    return status;
}

static void show_plain(weight_hook *h, tn_layer *layer)
{
    tn__handle *handle = tn__handle_of(slot_named(layer, h->weight)->value);
    if (!h->plain)
        return;
    tn__node_release(handle->node);
    handle->node = h->plain;
    h->plain = NULL;
}

static tn_status hook(tn_layer *layer, bool after, void *user)
{
    if (!after)
        return show_made(user, layer);
    show_plain(user, layer);
    return TN_OK;
}

static void free_hook(void *user)
{
    weight_hook *h = user;
    tn__free(h->weight);
    tn__free(h->beside);
    tn__free(h);
}

/* ---- making them ---- */

static tn_status check(tn_layer *layer, const weight_hook *h, tn__slot **slot)
{
    const char *operation = h->kind->operation;
    *slot = slot_named(layer, h->weight);
    if (!*slot || (*slot)->persistent)
        return tn__fail(TN_ERR_NAME, operation, "the %s has no parameter '%s' of its own", tn__layer_name(layer),
                        h->weight);
    if (!(*slot)->value)
        return tn__fail(TN_ERR_STATE, operation,
                        "'%s' of the %s has no shape yet: call tn_forward once before, or give the input size",
                        h->weight, tn__layer_name(layer));
    int ndim = tn_ndim((*slot)->value), axis = h->axis;
    if (ndim < 2 || axis < -ndim || axis >= ndim || tn_size((*slot)->value) == 0)
        return tn__fail(TN_ERR_SHAPE, operation,
                        "expected a parameter of two axes or more, not empty, and one of them, got %d axes and axis %d",
                        ndim, axis);
    if (h->iterations < 0 || !(h->eps >= 0) || !(h->factor >= 0))
        return tn__fail(TN_ERR_VALUE, operation, "expected positive numbers, got %d iterations, eps %g and factor %g",
                        h->iterations, h->eps, h->factor);
    return TN_OK;
}

/* What lies beside the weight: the layer's, as of one that was loaded or copied, or a new one. */
static tn_status prepare_beside(tn_layer *layer, const weight_hook *h, const tn__slot *weight)
{
    const tn__slot *there = slot_named(layer, h->beside);
    int64_t outputs = tn_dim(weight->value, h->axis);
    if (there && there->persistent != h->kind->trained && tn_ndim(there->value) == 1 &&
        tn_dim(there->value, 0) == outputs)
        return TN_OK;
    tn__scope_guard scope = tn__scope_enter();
    tn__no_grad_depth++;
    tn_array *first = h->kind->beside(h, weight->value);
    tn__no_grad_depth--;
    tn_status status = tn_status_of(h->kind->trained ? tn_layer_param(layer, h->beside, first)
                                                     : tn_layer_persistent(layer, h->beside, first));
    tn__scope_leave(&scope);
    return status;
}

/* Adds the hook that `with` says, or frees what it has. */
static tn_status add_hook(tn_layer *layer, const hook_kind *kind, const char *weight, weight_hook with)
{
    tn__slot *slot;
    if (!layer)
        return tn__fail_null(kind->operation, "a layer");
    tn_status status = tn__layer_raise(layer);
    weight_hook *h = status == TN_OK ? tn__calloc(1, sizeof *h) : NULL;
    if (!h)
        return status == TN_OK ? tn__fail_memory(kind->operation, sizeof *h) : status;
    *h = with;
    h->kind = kind;
    h->weight = tn__strdup(weight ? weight : "W");
    h->beside = kind->suffix && h->weight ? tn__format("%s%s", h->weight, kind->suffix) : NULL;
    if (!h->weight || (kind->suffix && !h->beside))
        status = tn__fail_memory(kind->operation, sizeof *h);
    if (status == TN_OK)
        status = check(layer, h, &slot);
    if (status == TN_OK) {
        h->axis += h->axis < 0 ? tn_ndim(slot->value) : 0;
        h->eps = h->eps > 0 ? h->eps : kind->eps;
        status = kind->suffix ? prepare_beside(layer, h, slot) : TN_OK;
    }
    if (status == TN_OK)
        status = tn__layer_add_own_hook(layer, hook, h, free_hook);
    if (status != TN_OK)
        free_hook(h);
    return status;
}

tn_status tn_spectral_norm_with(tn_layer *layer, const tn_spectral_norm_opts *opts)
{
    static const hook_kind kind = {"spectral_norm", "_u", 1e-6, divided, any_vector, false};
    tn_spectral_norm_opts set = opts ? *opts : (tn_spectral_norm_opts){0};
    weight_hook with = {.iterations = set.iterations ? set.iterations : 1, .eps = set.eps,
                        .factor = set.factor != 0 ? set.factor : 1, .axis = TN__OPTION(opts, axis, -1)};
    return add_hook(layer, &kind, set.weight, with);
}

tn_status tn_weight_norm_hook_with(tn_layer *layer, const tn_weight_hook_opts *opts)
{
    static const hook_kind kind = {"weight_norm_hook", "_g", 0, of_length, lengths, true};
    return add_hook(layer, &kind, opts ? opts->weight : NULL, (weight_hook){.axis = TN__OPTION(opts, axis, -1)});
}

tn_status tn_weight_standardization_with(tn_layer *layer, const tn_weight_hook_opts *opts)
{
    static const hook_kind kind = {"weight_standardization", NULL, 1e-6, standardized, NULL, false};
    return add_hook(layer, &kind, opts ? opts->weight : NULL,
                    (weight_hook){.axis = TN__OPTION(opts, axis, -1), .eps = opts ? opts->eps : 0});
}
