/* SPDX-License-Identifier: MIT */
/* The parameters of a layer and everything below it as one list, and what is done to all of them. */
#include "nn/layer.h"
#include "nn/terms.h"

#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/device.h>

/* ---- the flat list ---- */

static int count_params(const tn_layer *layer)
{
    int count = 0;
    for (size_t i = 0; i < layer->slot_count; i++)
        count += layer->slots[i].value && !layer->slots[i].persistent;
    for (size_t i = 0; i < layer->child_count; i++)
        count += count_params(layer->children[i].layer);
    return count;
}

/* Whether a parameter that several layers share is in the list already, under the path of the first. */
static bool is_there(const tn__slot *slot, const tn__param *items, int count)
{
    for (int i = 0; slot->holders && i < count; i++)
        if (items[i].value == slot->value)
            return true;
    return false;
}

/* Appends the layer's parameters; `prefix` is its path with a final dot, or "". */
static bool append_params(const tn_layer *layer, const char *prefix, tn__param *items, int *count)
{
    for (size_t i = 0; i < layer->slot_count; i++) {
        if (!layer->slots[i].value || layer->slots[i].persistent || is_there(&layer->slots[i], items, *count))
            continue;
        char *path = tn__format("%s%s", prefix, layer->slots[i].name);
        if (!path)
            return false;
        items[(*count)++] = (tn__param){.path = path, .value = layer->slots[i].value};
    }
    bool fine = true;
    for (size_t i = 0; i < layer->child_count && fine; i++) {
        char *path = tn__format("%s%s.", prefix, layer->children[i].name);
        fine = path && append_params(layer->children[i].layer, path, items, count);
        tn__free(path);
    }
    return fine;
}

static void drop_list(tn_layer *layer)
{
    for (int i = 0; i < layer->flat.count; i++)
        tn__free(layer->flat.items[i].path);
    tn__free(layer->flat.items);
    layer->flat.items = NULL;
    layer->flat.count = 0;
    layer->flat.made_at = 0;
}

bool tn__layer_flat(const tn_layer *layer, const tn__param **items, int *count)
{
    tn_layer *cached = (tn_layer *)layer; /* the list is a cache: const to the outside */
    *items = NULL;
    *count = 0;
    if (!layer || layer->is_static)
        return true;
    if (layer->flat.made_at != layer->changes) {
        drop_list(cached);
        int wanted = count_params(layer);
        if (wanted > 0 && !(cached->flat.items = tn__calloc((size_t)wanted, sizeof(tn__param)))) {
            tn__fail_memory("param", (size_t)wanted * sizeof(tn__param));
            return false;
        }
        if (!append_params(layer, "", cached->flat.items, &cached->flat.count)) {
            drop_list(cached);
            tn__fail_memory("param", sizeof(tn__param));
            return false;
        }
        cached->flat.made_at = layer->changes;
    }
    *items = layer->flat.items;
    *count = layer->flat.count;
    return true;
}

/* ---- reading it ---- */

static const tn__param *param_at(const tn_layer *layer, int i)
{
    const tn__param *items;
    int count;
    if (!tn__layer_flat(layer, &items, &count))
        return NULL;
    if (i < 0 || i >= count) {
        tn__fail(TN_ERR_INDEX, "param", "index %d is out of range: the layer has %d parameters", i, count);
        return NULL;
    }
    return &items[i];
}

int tn_param_count(const tn_layer *layer)
{
    const tn__param *items;
    int count;
    tn__layer_flat(layer, &items, &count);
    return count;
}

tn_array *tn_param(const tn_layer *layer, int i)
{
    const tn__param *param = param_at(layer, i);
    return param ? param->value : tn__failed_array();
}

const char *tn_param_name(const tn_layer *layer, int i)
{
    const tn__param *param = param_at(layer, i);
    return param ? param->path : "";
}

static tn_array *no_such_param(const tn__param *items, int count, const char *path)
{
    const char **names = count > 0 ? tn__alloc((size_t)count * sizeof *names) : NULL;
    for (int i = 0; names && i < count; i++)
        names[i] = items[i].path;
    const char *near = names ? tn__nearest_name(path, names, count) : NULL;
    if (near)
        tn__fail(TN_ERR_NAME, "param_named", "there is no parameter '%s': did you mean '%s'?", path, near);
    else
        tn__fail(TN_ERR_NAME, "param_named",
                 "there is no parameter '%s' among the layer's %d; those to be inferred come with the first forward",
                 path, count);
    tn__free(names);
    return tn__failed_array();
}

tn_array *tn_param_named(const tn_layer *layer, const char *path)
{
    const tn__param *items;
    int count;
    if (!tn__layer_flat(layer, &items, &count))
        return tn__failed_array();
    for (int i = 0; i < count && path; i++) {
        if (strcmp(items[i].path, path) == 0)
            return items[i].value;
    }
    tn__slot *slot = path && layer ? tn__slot_at(layer, path) : NULL; /* of one that is shared, another path */
    if (slot && slot->value && !slot->persistent)
        return slot->value;
    return no_such_param(items, count, path ? path : "");
}

int64_t tn_param_total(const tn_layer *layer)
{
    const tn__param *items;
    int count;
    int64_t total = 0;
    tn__layer_flat(layer, &items, &count);
    for (int i = 0; i < count; i++)
        total += tn__array_node(items[i].value)->shape->size;
    return total;
}

static tn__node *in_a_row(const tn__param *items, int count)
{
    TN__FREED tn__node **rows = tn__alloc(((size_t)count + 1) * sizeof *rows);
    if (!rows) {
        tn__fail_memory("params_to_vector", ((size_t)count + 1) * sizeof *rows);
        return tn__failed();
    }
    for (int i = 0; i < count; i++) {
        tn__node *node = tn__array_node(items[i].value);
        rows[i] = tn__reshape(node, 1, (int64_t[]){node->shape->size});
    }
    return tn__joined(count, rows, 0);
}

tn_array *tn_params_to_vector(const tn_layer *layer)
{
    const tn__param *items;
    int count;
    if (!layer) {
        tn__fail_null("params_to_vector", "a layer");
        return tn__failed_array();
    }
    if (!tn__layer_flat(layer, &items, &count))
        return tn__failed_array();
    if (count == 0)
        return tn_zeros_with((tn_shape){1, {0}}, NULL);
    TN__RETURN(in_a_row(items, count));
}

tn_status tn_vector_to_params(const tn_array *vector, tn_layer *layer)
{
    static const char operation[] = "vector_to_params";
    const tn__param *items;
    int count;
    if (!vector || !layer)
        return tn__fail_null(operation, vector ? "a layer" : "an array");
    if (!tn__layer_flat(layer, &items, &count))
        return TN_ERR_MEMORY;
    if (tn_is_error(vector))
        return tn_status_of(vector);
    if (tn_ndim(vector) != 1 || tn_size(vector) != tn_param_total(layer))
        return tn__fail(TN_ERR_SHAPE, operation, "expected a row of the parameters' %lld elements; got %lld in %d axes",
                        (long long)tn_param_total(layer), (long long)tn_size(vector), tn_ndim(vector));
    tn_status status = TN_OK;
    tn__scope_guard scope = tn__scope_enter();
    tn__no_grad_depth++;
    int64_t at = 0;
    for (int i = 0; i < count && status == TN_OK; i++) {
        int64_t size = tn_size(items[i].value);
        tn_array *part = tn_slice_axis(vector, 0, at, at + size, 1);
        status = tn_assign(items[i].value, tn_reshape(part, tn_shape_of(items[i].value)));
        at += size;
    }
    tn__no_grad_depth--;
    tn__scope_leave(&scope);
    return status;
}

/* Where tn_layer_to sent a layer without parameters, or the first one below it that it sent anywhere. */
static tn_device sent_to(const tn_layer *layer)
{
    tn_device device = layer->device;
    for (size_t i = 0; i < layer->child_count && device.kind == TN_DEVICE_DEFAULT; i++)
        device = sent_to(layer->children[i].layer);
    return device;
}

tn_device tn_layer_device(const tn_layer *layer)
{
    const tn__param *items;
    int count;
    if (!layer)
        tn__fail_null("device_of", "a layer");
    if (!layer || !tn__layer_flat(layer, &items, &count))
        return (tn_device){0};
    if (count == 0)
        return sent_to(layer);
    tn_device first = tn__array_node(items[0].value)->device->id;
    for (int i = 1; i < count; i++) {
        tn_device other = tn__array_node(items[i].value)->device->id;
        if (tn_device_equal(first, other))
            continue;
        tn__fail(TN_ERR_DEVICE, "device_of",
                 "the layer's parameters are on several devices: '%s' is on %s, '%s' on %s; ask one of them "
                 "(tn_param_named), or move all with tn_layer_to",
                 items[0].path, tn_device_name(first), items[i].path, tn_device_name(other));
        return (tn_device){0};
    }
    return first;
}

/* ---- those in parts ---- */

tn_layer *tn_layer_shard(tn_layer *layer)
{
    if (!layer) {
        tn__fail_null("layer_shard", "a layer");
        return tn__layer_error(tn__error_retain(tn__error_last()));
    }
    if (layer->is_static || layer->error)
        return layer;
    layer->in_parts = true;
    tn__layer_changed(layer); /* optimizers look again */
    return layer;
}

tn_status tn__param_is_here(const char *operation, const tn_array *param, const char *path)
{
    if (!(tn__array_node(param)->flags & TN__NODE_AWAY))
        return TN_OK;
    return tn__fail(TN_ERR_STATE, operation,
                    "ranks have the parameter '%s' in parts (tn_layer_shard): before it is saved, have all of them "
                    "call tn_optimizer_gather, and rank 0 save; before it is copied or moved, tn_optimizer_distribute "
                    "without .shard",
                    path);
}

tn_status tn__layer_is_here(const char *operation, const tn_layer *layer)
{
    const tn__param *items;
    int count;
    tn_status status = tn__layer_flat(layer, &items, &count) ? TN_OK : TN_ERR_MEMORY;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = tn__param_is_here(operation, items[i].value, items[i].path);
    return status;
}

/* ---- doing something to all ---- */

void tn_layer_clear_grads(tn_layer *layer)
{
    const tn__param *items;
    int count;
    tn__layer_flat(layer, &items, &count);
    for (int i = 0; i < count; i++)
        tn_clear_grad(items[i].value);
}

void tn_layer_train(tn_layer *layer, bool training)
{
    if (!layer || layer->is_static)
        return;
    layer->evaluating = !training;
    for (size_t i = 0; i < layer->child_count; i++)
        tn_layer_train(layer->children[i].layer, training);
}

bool tn_layer_training(const tn_layer *layer)
{
    return layer && !layer->evaluating;
}

tn__node *tn__param_replace(tn_array *param, tn__node *node)
{
    tn__node *old = tn__array_node(param);
    if (node == old)
        return tn__node_retain(old);
    if (old->var == tn__handle_of(param)->var)
        old->var = NULL;
    bool leaf = old->flags & TN__NODE_LEAF_VAR;
    node->var = leaf ? tn__handle_of(param)->var : NULL;
    if (leaf) {
        old->flags |= TN__NODE_SPENT; /* what was recorded with it cannot be differentiated any more */
        node->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
        node->flags &= (uint16_t)~TN__NODE_SPENT; /* one that a failed step goes back to */
    } else {
        node->flags &= (uint16_t)~(TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD);
    }
    tn__handle_of(param)->node = tn__node_retain(node);
    return old;
}

tn__node *tn__state_replace(tn_array *state, tn__node *node)
{
    tn__node *old = tn__array_node(state);
    tn__handle_of(state)->node = tn__node_retain(node);
    return old;
}

void tn__param_point(tn_array *param, tn__node *node) { tn__node_release(tn__param_replace(param, node)); }

void tn__state_point(tn_array *state, tn__node *node) { tn__node_release(tn__state_replace(state, node)); }
