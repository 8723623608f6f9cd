/* SPDX-License-Identifier: MIT */
/*
 * Moving a layer to another device: its parameters, their gradients, and what others keep beside them, as optimizers
 * do. All of it is copied first; then the handles are pointed at the copies, which cannot fail. So a failure changes
 * nothing.
 */
#include <stdlib.h>
#include <tanso/device.h>
#include "autograd/backward.h"
#include "nn/layer.h"

/* ---- followers ---- */

void tn__layer_follow(tn_layer *layer, tn__follower *follower)
{
    follower->layer = layer;
    follower->next = layer->followers;
    layer->followers = follower;
}

void tn__layer_unfollow(tn__follower *follower)
{
    if (!follower->layer)
        return;
    tn__follower **link = &follower->layer->followers;
    while (*link != follower)
        link = &(*link)->next;
    *link = follower->next;
    follower->layer = NULL;
}

/* ---- copies ---- */

/* A copy on the new device, and the handle or the gradient record that is to show it. */
typedef struct copy {
    tn__node *node;
    tn_array *array;
    tn__var *gradient;
    bool is_param;
} copy;

typedef struct move {
    tn__device *device;
    const tn_array **params; /* in the order of their addresses, to be found by */
    int param_count;
    copy *copies;
    size_t count, capacity;
} move;

static tn_status add_copy(move *m, tn__node *node, copy what)
{
    if (!node || node->device == m->device)
        return TN_OK;
    if (!tn__grow((void **)&m->copies, &m->capacity, m->count + 1, sizeof *m->copies))
        return tn__fail_memory("layer_to", (m->count + 1) * sizeof *m->copies);
    what.node = tn__to_at_once(node, m->device);
    if (tn__node_is_error(what.node))
        return tn__error_raise(what.node->error);
    m->copies[m->count++] = what;
    return TN_OK;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(const tn_array *const *)a, y = (uintptr_t)*(const tn_array *const *)b;
    return (x > y) - (x < y);
}

static tn_status copy_params(move *m, const tn__param *items, int count)
{
    tn_status status = TN_OK;
    if (count > 0 && !(m->params = tn__alloc((size_t)count * sizeof *m->params)))
        return tn__fail_memory("layer_to", (size_t)count * sizeof *m->params);
    for (int i = 0; i < count && status == TN_OK; i++) {
        tn_array *param = items[i].value;
        m->params[m->param_count++] = param;
        status = tn__param_is_here("layer_to", param, items[i].path);
        if (status == TN_OK)
            status = add_copy(m, tn__array_node(param), (copy){.array = param, .is_param = true});
        if (status == TN_OK && tn__handle_of(param)->var)
            status = add_copy(m, tn__var_grad(tn__handle_of(param)->var),
                          (copy){.gradient = tn__handle_of(param)->var});
    }
    if (count > 0)
        qsort(m->params, (size_t)m->param_count, sizeof *m->params, by_address);
    return status;
}

/* What a follower keeps beside a parameter, if that is one of those that move. */
static tn_status copy_beside(void *user, const tn_array *param, tn_array *array)
{
    move *m = user;
    bool moves = m->param_count > 0 &&
                 bsearch(&param, m->params, (size_t)m->param_count, sizeof *m->params, by_address) != NULL;
    return moves ? add_copy(m, tn__array_node(array), (copy){.array = array}) : TN_OK;
}

static tn_status copy_of_followers(move *m, const tn_layer *layer)
{
    tn_status status = TN_OK;
    for (const tn__follower *f = layer->followers; f && status == TN_OK; f = f->next)
        status = f->each(f->owner, copy_beside, m);
    return status;
}

/* Those of the layer and of all below it. */
static tn_status copy_followers(move *m, const tn_layer *layer)
{
    tn_status status = copy_of_followers(m, layer);
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++)
        status = copy_followers(m, layer->children[i].layer);
    return status;
}

static tn_status copy_persistent(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer, (void)path;
    if (!slot->persistent || !slot->value)
        return TN_OK;
    return add_copy(user, tn__array_node(slot->value), (copy){.array = slot->value});
}

static tn_status copy_all(move *m, const tn_layer *layer, const tn__param *items, int count)
{
    tn_status status = copy_params(m, items, count);
    if (status == TN_OK)
        status = tn__visit_slots((tn_layer *)layer, "", copy_persistent, m);
    if (status == TN_OK)
        status = copy_followers(m, layer);
    for (layer = layer->parent; layer && status == TN_OK; layer = layer->parent)
        status = copy_of_followers(m, layer);
    return status;
}

static void show(const copy *c)
{
    if (c->gradient)
        tn__var_set_grad(c->gradient, c->node);
    else if (c->is_param)
        tn__param_point(c->array, c->node);
    else
        tn__state_point(c->array, c->node);
}

static void set_device(tn_layer *layer, tn_device device)
{
    layer->device = device;
    for (size_t i = 0; i < layer->child_count; i++)
        set_device(layer->children[i].layer, device);
}

tn_status tn_layer_to(tn_layer *layer, tn_device device)
{
    if (!layer)
        return tn__fail_null("layer_to", "a layer");
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    move m = {.device = tn__device_get(device)};
    const tn__param *items;
    int count;
    if (!m.device)
        return TN_ERR_DEVICE;
    if (!tn__layer_flat(layer, &items, &count))
        return TN_ERR_MEMORY;
    tn__call call = tn__enter();
    tn__no_grad_depth++;
    status = copy_all(&m, layer, items, count);
    for (size_t i = 0; i < m.count && status == TN_OK; i++)
        show(&m.copies[i]);
    tn__no_grad_depth--;
    tn__leave(call);
    tn__free(m.params);
    tn__free(m.copies);
    if (status == TN_OK)
        set_device(layer, m.device->id);
    return status;
}
