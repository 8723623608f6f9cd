/* SPDX-License-Identifier: MIT */
/*
 * Spectral normalisation (Miyato et al. 2018): during a layer's forward its weight is divided by its largest singular
 * value, estimated by power iterations from where the last forward left off. The parameter stays what it is, and
 * gradients flow into it through the quotient; the singular vectors count as constants, as in Chainer.
 */
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/random.h>
#include "autograd/backward.h"
#include "core/options.h"
#include "nn/layer.h"

#define OPERATION "spectral_norm"

typedef struct spectral {
    char *weight, *vector;
    int iterations, axis;
    double eps, factor;
    tn__node *plain; /* during a forward: the weight itself, held */
} spectral;

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

static tn_array *divided(const spectral *s, const tn_layer *layer, const tn_array *w, tn_array *vector)
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

/* The handle shows the quotient, whatever asks for the layer's weight meanwhile. */
static tn_status show_quotient(spectral *s, tn_layer *layer)
{
    tn__slot *weight = slot_named(layer, s->weight), *vector = slot_named(layer, s->vector);
    tn__scope_guard scope = tn__scope_enter();
    tn_array *w = divided(s, layer, weight->value, vector->value);
    tn_status status = tn_status_of(w);
    if (status == TN_OK) {
        tn__handle *handle = tn__handle_of(weight->value);
        s->plain = handle->node; /* with the handle's reference */
        handle->node = tn__node_retain(tn__array_node(w));
    }
    tn__scope_leave(&scope);
    return status;
}

static void show_plain(spectral *s, tn_layer *layer)
{
    tn__handle *handle = tn__handle_of(slot_named(layer, s->weight)->value);
    if (!s->plain)
        return;
    tn__node_release(handle->node);
    handle->node = s->plain;
    s->plain = NULL;
}

static tn_status hook(tn_layer *layer, bool after, void *user)
{
    if (!after)
        return show_quotient(user, layer);
    show_plain(user, layer);
    return TN_OK;
}

static void free_spectral(void *user)
{
    spectral *s = user;
    tn__free(s->weight);
    tn__free(s->vector);
    tn__free(s);
}

/* ---- making it ---- */

static tn_status check(tn_layer *layer, const char *weight, const tn_spectral_norm_opts *opts, tn__slot **slot)
{
    *slot = slot_named(layer, weight);
    if (!*slot || (*slot)->persistent)
        return tn__fail(TN_ERR_NAME, OPERATION, "the %s has no parameter '%s' of its own", tn__layer_name(layer),
                        weight);
    if (!(*slot)->value)
        return tn__fail(TN_ERR_STATE, OPERATION,
                        "'%s' of the %s has no shape yet: call tn_forward once before, or give the input size", weight,
                        tn__layer_name(layer));
    int ndim = tn_ndim((*slot)->value), axis = opts->axis;
    if (ndim < 2 || axis < -ndim || axis >= ndim || tn_size((*slot)->value) == 0)
        return tn__fail(TN_ERR_SHAPE, OPERATION,
                        "expected a parameter of two axes or more, not empty, and one of them, got %d axes and axis %d",
                        ndim, axis);
    if (opts->iterations < 0 || opts->eps < 0 || opts->factor < 0)
        return tn__fail(TN_ERR_VALUE, OPERATION, "expected positive numbers, got %d iterations, eps %g and factor %g",
                        opts->iterations, opts->eps, opts->factor);
    return TN_OK;
}

/* The vector from which iterations go on: the layer's, as of one that was loaded or copied, or a random one. */
static tn_status prepare_vector(tn_layer *layer, const spectral *s, const tn__slot *weight)
{
    const tn__slot *there = slot_named(layer, s->vector);
    int64_t outputs = tn_dim(weight->value, s->axis);
    if (there && there->persistent && tn_ndim(there->value) == 1 && tn_dim(there->value, 0) == outputs)
        return TN_OK;
    tn__scope_guard scope = tn__scope_enter();
    tn_random_opts opts = {.dtype = weight->dtype, .device = tn_device_of(weight->value)};
    tn_array *u = tn_random_normal_with((tn_shape){1, {outputs}}, &opts);
    tn_status status = tn_status_of(tn_layer_persistent(layer, s->vector, u));
    tn__scope_leave(&scope);
    return status;
}

tn_status tn_spectral_norm_with(tn_layer *layer, const tn_spectral_norm_opts *opts)
{
    static const tn_spectral_norm_opts defaults = {.axis = -1};
    tn_spectral_norm_opts set = opts ? *opts : defaults;
    const char *name = set.weight ? set.weight : "W";
    tn__slot *weight;
    if (!layer)
        return tn__fail_null(OPERATION, "a layer");
    if (opts && !TN__GIVEN(opts, axis))
        set.axis = -1;
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK)
        status = check(layer, name, &set, &weight);
    if (status != TN_OK)
        return status;
    spectral *s = tn__calloc(1, sizeof *s);
    if (!s)
        return tn__fail_memory(OPERATION, sizeof *s);
    int ndim = tn_ndim(weight->value);
    *s = (spectral){.weight = tn__strdup(name), .vector = tn__format("%s_u", name),
                    .iterations = set.iterations ? set.iterations : 1, .eps = set.eps > 0 ? set.eps : 1e-6,
                    .factor = set.factor > 0 ? set.factor : 1, .axis = set.axis < 0 ? set.axis + ndim : set.axis};
    status = s->weight && s->vector ? prepare_vector(layer, s, weight) : tn__fail_memory(OPERATION, strlen(name));
    if (status == TN_OK)
        status = tn__layer_add_own_hook(layer, hook, s, free_spectral);
    if (status != TN_OK)
        free_spectral(s);
    return status;
}
