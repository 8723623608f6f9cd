/* SPDX-License-Identifier: MIT */
/*
 * From one layer to another of the same paths: values, gradients, running means of values; and copies of whole layers.
 * All that can fail is done before anything is changed.
 */
#include "nn/layer.h"

#include <stdio.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "autograd/backward.h"
#include "engine/engine.h"

/* ---- pairs of values ---- */

typedef struct pair {
    tn__slot *to;
    const tn__slot *from;
} pair;

typedef struct pairing {
    const char *operation;
    tn_layer *from;
    double decay; /* of the values that are there; 0: copies */
    pair *pairs;
    size_t count, capacity;
    tn__node **value; /* of each: the new one, borrowed */
    tn__device **device;
} pairing;

/* The values' mix, on the receiver's device. */
static tn__node *mixed(const pairing *p, const pair *pair, tn__node *now)
{
    tn__node *old = tn__array_node(pair->to->value);
    if (p->decay > 0 && tn_dtype_is_float((tn_dtype)old->dtype)) {
        tn__node *kept = tn__binary(TN__OP_MULTIPLY, tn__const_like(old, p->decay), old);
        return tn__binary(TN__OP_ADD, kept, tn__binary(TN__OP_MULTIPLY, tn__const_like(now, 1 - p->decay), now));
    }
    return tn__node_is_error(now) || tn__array_node(pair->from->value)->device != old->device /* a copy as it is */
               ? now
               : tn__node_new(TN__OP_COPY, (tn_dtype)now->dtype, now->shape, now->device, 1, &now, (tn__attr){0});
}

static tn_status add_pair(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer;
    pairing *p = user;
    const tn__slot *other = tn__slot_at(p->from, path);
    tn_status status = tn_error_code();
    if (status != TN_OK || (!slot->value && other && !other->value))
        return status;
    if (!other || !other->value || !slot->value)
        return tn__fail(TN_ERR_NAME, p->operation,
                        "'%s' is only in one of the layers%s: make both alike, and call both once where sizes are "
                        "inferred",
                        path, other ? " as an array" : "");
    if (tn__param_is_here(p->operation, slot->value, path) != TN_OK ||
        tn__param_is_here(p->operation, other->value, path) != TN_OK)
        return TN_ERR_STATE;
    char here[TN__SHAPE_TEXT], there[TN__SHAPE_TEXT];
    const tn__shape *to = tn__array_node(slot->value)->shape, *from = tn__array_node(other->value)->shape;
    if (to != from)
        return tn__fail(TN_ERR_SHAPE, p->operation, "'%s' has shape %s in one layer and %s in the other", path,
                        tn__shape_text(to->ndim, to->dim, here), tn__shape_text(from->ndim, from->dim, there));
    if (!tn__grow((void **)&p->pairs, &p->capacity, p->count + 1, sizeof *p->pairs))
        return tn__fail_memory(p->operation, sizeof *p->pairs);
    p->pairs[p->count++] = (pair){slot, other};
    return status;
}

/* The new values, all of them in one evaluation; what comes from another device is on its way before. */
static tn_status make_values(pairing *p)
{
    int count = (int)p->count;
    p->value = tn__alloc((p->count + 1) * sizeof *p->value);
    p->device = tn__alloc((p->count + 1) * sizeof *p->device);
    if (!p->value || !p->device)
        return tn__fail_memory(p->operation, p->count * sizeof *p->value);
    for (int i = 0; i < count; i++) {
        const tn__node *old = tn__array_node(p->pairs[i].to->value);
        p->value[i] = tn__cast(tn__array_node(p->pairs[i].from->value), (tn_dtype)old->dtype);
        p->device[i] = old->device;
    }
    tn_status status = tn__move_together(count, p->value, p->device, true);
    for (int i = 0; i < count && status == TN_OK; i++) {
        p->value[i] = mixed(p, &p->pairs[i], p->value[i]);
        if (tn__node_is_error(p->value[i]))
            status = tn__error_raise(p->value[i]->error);
    }
    return status == TN_OK ? tn__evaluate(count, p->value) : status;
}

static tn_status exchange(pairing *p, int count, tn_layer *const *to)
{
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = tn__visit_slots(to[i], "", add_pair, p);
    if (status == TN_OK)
        status = make_values(p);
    for (size_t i = 0; i < p->count && status == TN_OK; i++) {
        if (p->pairs[i].to->persistent)
            tn__state_point(p->pairs[i].to->value, p->value[i]);
        else
            tn__param_point(p->pairs[i].to->value, p->value[i]);
    }
    tn__no_grad_depth--;
    tn__leave(call);
    tn__free(p->pairs);
    tn__free(p->value);
    tn__free(p->device);
    return status;
}

static tn_status exchange_two(const char *operation, tn_layer *to, const tn_layer *from, double decay)
{
    if (!to || !from)
        return tn__fail_null(operation, "two layers");
    pairing p = {.operation = operation, .from = (tn_layer *)from, .decay = decay};
    tn_status status = tn__layer_raise(to);
    if (status == TN_OK)
        status = tn__layer_raise(from);
    return status != TN_OK || to == from ? status : exchange(&p, 1, &to);
}

tn_status tn_layer_copy_params(tn_layer *to, const tn_layer *from)
{
    return exchange_two("layer_copy_params", to, from, 0);
}

tn_status tn__layers_copy_params(int count, tn_layer *const *to, const tn_layer *from)
{
    return exchange(&(pairing){.operation = "layer_copy_params", .from = (tn_layer *)from}, count, to);
}

tn_status tn_layer_average(tn_layer *average, const tn_layer *layer, double decay)
{
    if (!(decay >= 0 && decay < 1))
        return tn__fail(TN_ERR_VALUE, "layer_average", "expected a decay from 0 to below 1, got %g", decay);
    return exchange_two("layer_average", average, layer, decay);
}

/* ---- gradients ---- */

/* Whether a gradient is there to be added. */
static bool adds(const tn_layer *to, const tn_layer *from, int i)
{
    return tn_has_grad(tn_param(from, i)) && tn_needs_grad(tn_param(to, i));
}

/* Records it; the two arrays have room for all parameters. */
static tn_status add_grads(tn_layer *to, const tn_layer *from, tn__node **more, tn__device **device)
{
    int count = tn_param_count(to), found = 0;
    for (int i = 0; i < count; i++) {
        if (!adds(to, from, i))
            continue;
        const tn__node *p = tn__array_node(tn_param(to, i));
        more[found] = tn__cast(tn__var_grad(tn__array_var(tn_param(from, i))), (tn_dtype)p->dtype);
        device[found++] = p->device;
    }
    tn_status status = tn__move_together(found, more, device, false);
    for (int i = 0, k = 0; i < count && status == TN_OK; i++) {
        if (!adds(to, from, i))
            continue;
        tn__var *var = tn__array_var(tn_param(to, i));
        if (!var)
            return tn__fail_memory("layer_add_grads", sizeof *var);
        tn__node *own = tn__var_grad(var), *sum = own ? tn__binary(TN__OP_ADD, own, more[k]) : more[k];
        k++;
        if (tn__node_is_error(sum))
            status = tn__error_raise(sum->error);
        else
            tn__var_set_grad(var, sum);
    }
    return status;
}

tn_status tn_layer_add_grads(tn_layer *to, const tn_layer *from)
{
    if (!to || !from)
        return tn__fail_null("layer_add_grads", "two layers");
    int count = tn_param_count(to);
    if (tn_param_count(from) != count)
        return tn__fail(TN_ERR_VALUE, "layer_add_grads", "expected layers of as many parameters, got %d and %d", count,
                        tn_param_count(from));
    for (int i = 0; i < count; i++) {
        const tn__shape *a = tn__array_node(tn_param(to, i))->shape, *b = tn__array_node(tn_param(from, i))->shape;
        if (a != b || strcmp(tn_param_name(to, i), tn_param_name(from, i)) != 0)
            return tn__fail(TN_ERR_NAME, "layer_add_grads", "'%s' of one layer is not '%s' of the other",
                            tn_param_name(to, i), tn_param_name(from, i));
    }
    TN__FREED tn__node **more = tn__alloc(((size_t)count + 1) * sizeof *more);
    TN__FREED tn__device **device = tn__alloc(((size_t)count + 1) * sizeof *device);
    if (!more || !device)
        return tn__fail_memory("layer_add_grads", (size_t)count * sizeof *more);
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    tn_status status = add_grads(to, from, more, device);
    tn__no_grad_depth--;
    tn__leave(call);
    return status;
}

/* ---- whole layers ---- */

/* An array that several slots of the layer hold, and the copy's: what is tied stays tied. */
typedef struct tie {
    const tn_array *from;
    tn__slot to; /* its value and count of holders, with a name that is not its own */
} tie;

typedef struct copying {
    tn_copy_mode mode;
    tie *ties;
    size_t count, capacity;
} copying;

static tie *tie_of(const copying *c, const tn__slot *slot)
{
    for (size_t i = 0; slot->holders && i < c->count; i++)
        if (c->ties[i].from == slot->value)
            return &c->ties[i];
    return NULL;
}

/* Remembers what was made of an array that others hold, too. */
static tn_status remember(copying *c, const tn__slot *slot, tn__slot *made)
{
    if (!tn__grow((void **)&c->ties, &c->capacity, c->count + 1, sizeof *c->ties) ||
        !(made->holders = tn__alloc(sizeof *made->holders)))
        return tn__fail_memory("layer_copy", sizeof *c->ties);
    *made->holders = 1;
    c->ties[c->count++] = (tie){slot->value, *made};
    return TN_OK;
}

static tn_status copy_alone(tn_layer *copy, const tn__slot *slot, bool anew)
{
    if (anew && slot->init.kind != TN_INIT_DEFAULT && !slot->persistent)
        return tn__slot_add(copy, slot->name, slot->shape, slot->dtype, slot->init);
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = TN_OK;
    if (!slot->value) {
        status = slot->persistent ? tn__slot_add_persistent(copy, slot->name, slot->shape, slot->dtype, slot->init)
                                  : tn__slot_add(copy, slot->name, slot->shape, slot->dtype, slot->init);
    } else {
        tn__no_grad_depth++;
        tn__call call = tn__enter();
        tn__node *node = tn__array_node(slot->value);
        tn_array *value = tn__leave_array(call, tn__node_new(TN__OP_COPY, (tn_dtype)node->dtype, node->shape,
                                                             node->device, 1, &node, (tn__attr){0}));
        tn__no_grad_depth--;
        status = tn_status_of(slot->persistent ? tn_layer_persistent(copy, slot->name, value)
                                               : tn_layer_param(copy, slot->name, value));
        if (status == TN_OK)
            copy->slots[copy->slot_count - 1].init = slot->init;
    }
    tn__scope_leave(&scope);
    if (status == TN_OK && slot->frozen)
        tn__slot_freeze(&copy->slots[copy->slot_count - 1], true);
    return status;
}

static tn_status copy_slot(copying *c, tn_layer *copy, tn__slot *slot)
{
    tie *tied = tie_of(c, slot);
    if (slot->value && tn__param_is_here("layer_copy", slot->value, slot->name) != TN_OK)
        return TN_ERR_STATE;
    if (c->mode == TN_COPY_SHARE)
        return tn__slot_share(copy, slot);
    if (tied) {
        tied->to.name = slot->name;
        return tn__slot_share(copy, &tied->to);
    }
    tn_status status = copy_alone(copy, slot, c->mode == TN_COPY_INIT);
    return status == TN_OK && slot->holders ? remember(c, slot, &copy->slots[copy->slot_count - 1]) : status;
}

static tn_layer *copy_layer(copying *c, const tn_layer *layer)
{
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return tn__layer_error(tn__error_retain(tn__error_last()));
    tn_layer *copy = tn__layer_make(layer->kind);
    if (copy->is_static)
        return copy;
    copy->evaluating = layer->evaluating;
    copy->device = layer->device;
    copy->in_parts = layer->in_parts;
    copy->number = layer->number;
    copy->axis = layer->axis;
    if (layer->settings)
        memcpy(copy->settings, layer->settings, layer->kind->settings);
    copy->ports = layer->ports;
    status = tn__own_copy(copy, layer);
    for (size_t i = 0; i < layer->slot_count && status == TN_OK; i++)
        status = copy_slot(c, copy, &layer->slots[i]);
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++)
        status = tn_layer_add(copy, layer->children[i].name, copy_layer(c, layer->children[i].layer));
    if (status == TN_OK)
        status = tn__own_copied(copy, layer);
    return tn__layer_finish(copy, status);
}

/* The mode that options ask for; *fine false, latched, for none that there is. */
static tn_copy_mode mode_of(const char *operation, const tn_layer_copy_opts *opts, tn_copy_mode usual, bool *fine)
{
    tn_copy_mode mode = opts && opts->mode != TN_COPY_USUAL ? opts->mode : usual;
    *fine = mode >= TN_COPY_VALUES && mode <= TN_COPY_SHARE;
    if (!*fine)
        tn__fail(TN_ERR_VALUE, operation, "expected TN_COPY_VALUES, TN_COPY_INIT or TN_COPY_SHARE for a mode, got %d",
                 (int)mode);
    return mode;
}

static tn_layer *copy_whole(const tn_layer *layer, tn_copy_mode mode)
{
    copying c = {.mode = mode};
    tn_layer *copy = copy_layer(&c, layer);
    tn__free(c.ties);
    return copy;
}

tn_layer *tn_layer_copy_with(const tn_layer *layer, const tn_layer_copy_opts *opts)
{
    bool fine;
    tn_copy_mode mode = mode_of("layer_copy", opts, TN_COPY_VALUES, &fine);
    if (!layer)
        tn__fail_null("layer_copy", "a layer");
    return layer && fine ? copy_whole(layer, mode) : tn__layer_error(tn__error_retain(tn__error_last()));
}

tn_layer *tn_layer_repeat_with(tn_layer *layer, int count, const tn_layer_copy_opts *opts)
{
    bool fine;
    tn_copy_mode mode = mode_of("layer_repeat", opts, TN_COPY_INIT, &fine);
    if (count < 1 || !layer || !fine) {
        if (fine)
            tn__fail(TN_ERR_VALUE, "layer_repeat", "expected a layer and a count of 1 or more, got %d", count);
        tn__layer_discard(layer);
        return tn__layer_error(tn__error_retain(tn__error_last()));
    }
    tn_layer **layers = tn__calloc((size_t)count, sizeof *layers);
    if (!layers) {
        tn__fail_memory("layer_repeat", (size_t)count * sizeof *layers);
        tn__layer_discard(layer);
        return tn__layer_error(tn__error_retain(tn__error_last()));
    }
    layers[0] = layer;
    for (int i = 1; i < count; i++)
        layers[i] = copy_whole(layer, mode);
    tn_layer *all = tn_sequential_of(count, layers);
    tn__free(layers);
    return all;
}
