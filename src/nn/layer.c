/* SPDX-License-Identifier: MIT */
/* The life of layers: making and freeing them, error layers, adding children. */
#include "nn/layer.h"

#include <string.h>
#include "array/guard.h"

/* ---- error layers ---- */

static tn__node *error_forward(tn_layer *layer, tn__node *x)
{
    (void)x;
    return tn__node_error(tn__error_retain(layer->error));
}

static const tn__layer_kind error_kind = {.name = "error", .forward = error_forward};

static tn__node *memory_forward(tn_layer *layer, tn__node *x)
{
    (void)layer, (void)x;
    return tn__node_error(tn__error_new(TN_ERR_MEMORY, "forward",
                                        "this layer could not be made for want of memory: make it again"));
}

static const tn__layer_kind memory_kind = {.name = "error", .forward = memory_forward};
static tn_layer memory_layer = {.kind = &memory_kind, .is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_layer, "layer");

tn_layer *tn__layer_make(const tn__layer_kind *kind)
{
    void *settings = kind->settings ? tn__calloc(1, kind->settings) : NULL;
    tn_layer *layer = kind->settings && !settings ? NULL : tn__object_new(&objects);
    if (!layer) {
        tn__free(settings);
        tn__fail_memory(kind->name, sizeof *layer + kind->settings);
        return &memory_layer;
    }
    layer->kind = kind;
    layer->settings = settings;
    layer->changes = 1;
    return layer;
}

tn_layer *tn__layer_error(tn__error *error)
{
    tn_layer *layer = tn__layer_make(&error_kind);
    if (layer->is_static)
        tn__error_release(error);
    else
        layer->error = error;
    return layer;
}

tn_layer *tn__layer_finish(tn_layer *layer, tn_status status)
{
    if (status == TN_OK)
        return layer;
    tn__error *error = tn__error_retain(tn__error_last());
    tn_layer_free(layer);
    return tn__layer_error(error);
}

tn_status tn_layer_status(const tn_layer *layer)
{
    if (!layer)
        return TN_ERR_VALUE;
    if (layer->is_static)
        return TN_ERR_MEMORY;
    return layer->error ? tn__error_status(layer->error) : TN_OK;
}

tn_status tn__layer_raise(const tn_layer *layer)
{
    if (layer->is_static)
        return tn__fail_memory("layer", sizeof *layer);
    return layer->error ? tn__error_raise(layer->error) : TN_OK;
}

void tn_layer_free(tn_layer *layer)
{
    if (!layer || layer->is_static || !tn__object_may_go(&objects, &layer->object) || tn__at_work(layer, "layer"))
        return;
    if (layer->parent) {
        tn__fail(TN_ERR_STATE, "layer_free",
                 "the layer belongs to another one (%s), which frees it: free the outermost layer only",
                 tn__layer_name(layer->parent));
        return;
    }
    while (layer->followers)
        tn__layer_unfollow(layer->followers);
    for (size_t i = 0; i < layer->child_count; i++) {
        layer->children[i].layer->parent = NULL;
        tn_layer_free(layer->children[i].layer);
        tn__free(layer->children[i].name);
    }
    for (size_t i = 0; i < layer->slot_count; i++)
        tn__slot_free(&layer->slots[i]);
    for (int i = 0; i < layer->flat.count; i++)
        tn__free(layer->flat.items[i].path);
    tn__own_free(layer);
    tn__free(layer->flat.items);
    tn__layer_free_hooks(layer);
    tn__free(layer->slots);
    tn__free(layer->children);
    tn__free(layer->settings);
    layer->settings = NULL;
    if (layer->error)
        tn__error_release(layer->error);
    tn__object_end(&objects, &layer->object);
    layer->kind = &error_kind;
}

void tn__layer_discard(tn_layer *layer)
{
    if (layer && !layer->parent && tn__object_is_free(&layer->object))
        tn_layer_free(layer);
}

void tn__layer_changed(tn_layer *layer)
{
    for (; layer; layer = layer->parent)
        layer->changes++;
}

const char *tn__layer_name(const tn_layer *layer)
{
    return layer->user.name ? layer->user.name : layer->kind->name;
}

/* ---- children ---- */

static tn_status add_child(tn_layer *parent, const char *name, tn_layer *child)
{
    tn_status status = tn__layer_check_name(parent, "layer_add", name);
    if (status != TN_OK)
        return status;
    char *copy = tn__strdup(name);
    if (!copy || !tn__grow((void **)&parent->children, &parent->child_capacity, parent->child_count + 1,
                           sizeof *parent->children)) {
        tn__free(copy);
        return tn__fail_memory("layer_add", sizeof *parent->children);
    }
    parent->children[parent->child_count++] = (tn__child){.name = copy, .layer = child};
    child->parent = parent;
    tn__layer_changed(parent);
    return TN_OK;
}

static bool is_or_holds(const tn_layer *layer, const tn_layer *inner)
{
    for (; inner; inner = inner->parent) {
        if (inner == layer)
            return true;
    }
    return false;
}

tn_status tn_layer_add(tn_layer *parent, const char *name, tn_layer *child)
{
    if (!parent || !child) {
        tn__layer_discard(child);
        return tn__fail(TN_ERR_VALUE, "layer_add", "expected two layers, got NULL for the %s",
                        parent ? "child" : "parent");
    }
    if (child->object.dead)
        return tn__layer_raise(child);
    if (child->parent)
        return tn__fail(TN_ERR_STATE, "layer_add",
                        "the layer '%s' belongs to a %s already: a layer has one parent; make a second layer",
                        name ? name : "", tn__layer_name(child->parent));
    if (is_or_holds(child, parent))
        return tn__fail(TN_ERR_STATE, "layer_add", "a layer can't be its own child or its descendant's");
    tn_status status = tn__layer_raise(parent);
    if (status == TN_OK)
        status = tn__layer_raise(child);
    if (status == TN_OK)
        status = add_child(parent, name, child);
    if (status != TN_OK)
        tn_layer_free(child);
    return status;
}

/* The child whose name is the first `length` characters of `name`. */
static tn_layer *child_named(const tn_layer *layer, const char *name, size_t length)
{
    for (size_t i = 0; i < layer->child_count; i++) {
        const tn__child *child = &layer->children[i];
        if (strlen(child->name) == length && memcmp(child->name, name, length) == 0)
            return child->layer;
    }
    return NULL;
}

static tn_layer *no_such_child(const tn_layer *layer, const char *name, int length)
{
    char *word = tn__format("%.*s", length, name);
    const char **names = layer->child_count ? tn__alloc(layer->child_count * sizeof *names) : NULL;
    for (size_t i = 0; names && i < layer->child_count; i++)
        names[i] = layer->children[i].name;
    const char *near = word && names ? tn__nearest_name(word, names, (int)layer->child_count) : NULL;
    if (near)
        tn__fail(TN_ERR_NAME, "layer_child", "the %s has no child '%.*s': did you mean '%s'?", tn__layer_name(layer),
                 length, name, near);
    else
        tn__fail(TN_ERR_NAME, "layer_child", "the %s has no child '%.*s' among its %zu", tn__layer_name(layer), length,
                 name, layer->child_count);
    tn__free(names);
    tn__free(word);
    return NULL;
}

tn_layer *tn_layer_child(const tn_layer *layer, const char *path)
{
    if (!layer || !path) {
        tn__fail(TN_ERR_VALUE, "layer_child", "expected a layer and a path, got NULL for the %s",
                 layer ? "path" : "layer");
        return NULL;
    }
    if (tn__layer_raise(layer) != TN_OK)
        return NULL;
    for (;;) {
        size_t length = strcspn(path, ".");
        tn_layer *child = child_named(layer, path, length);
        if (!child)
            return no_such_child(layer, path, (int)length);
        if (!path[length])
            return child;
        layer = child;
        path += length + 1;
    }
}
