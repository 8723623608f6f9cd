/* SPDX-License-Identifier: MIT */
/* Going through a layer and all below it: parameters, persistent values and children with their paths; freezing. */
#include "array/guard.h"
#include "nn/layer.h"

#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "autograd/backward.h"

tn_status tn__visit_slots(tn_layer *layer, const char *prefix, tn__slot_visitor visit, void *user)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < layer->slot_count && status == TN_OK; i++) {
        char *path = tn__format("%s%s", prefix, layer->slots[i].name);
        status = path ? visit(layer, &layer->slots[i], path, user) : tn__fail_memory("layer", strlen(prefix) + 1);
        tn__free(path);
    }
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++) {
        char *path = tn__format("%s%s.", prefix, layer->children[i].name);
        status = path ? tn__visit_slots(layer->children[i].layer, path, visit, user)
                      : tn__fail_memory("layer", strlen(prefix) + 1);
        tn__free(path);
    }
    return status;
}

/* Compares names where they are: paths that are written out cost a copy of a small network more than its copying. */
tn__slot *tn__slot_at(const tn_layer *layer, const char *path)
{
    tn__slot *found = NULL;
    for (size_t i = 0; i < layer->slot_count && !found; i++)
        if (strcmp(layer->slots[i].name, path) == 0)
            found = &layer->slots[i];
    for (size_t i = 0; i < layer->child_count && !found; i++) {
        size_t length = strlen(layer->children[i].name);
        if (strncmp(layer->children[i].name, path, length) == 0 && path[length] == '.')
            found = tn__slot_at(layer->children[i].layer, path + length + 1);
    }
    return found;
}

/* ---- the program's own walks ---- */

static tn_status walk(tn_layer *layer, const char *path, tn_layer_visitor visit, void *user)
{
    const char *dot = *path ? "." : "";
    tn_status status = visit(&(tn_layer_part){TN_PART_LAYER, path, layer, NULL}, user);
    for (size_t i = 0; i < layer->slot_count && status == TN_OK; i++) {
        const tn__slot *slot = &layer->slots[i];
        char *name = slot->value ? tn__format("%s%s%s", path, dot, slot->name) : NULL;
        if (name)
            status = visit(&(tn_layer_part){slot->persistent ? TN_PART_PERSISTENT : TN_PART_PARAM, name, layer,
                                            slot->value},
                           user);
        else if (slot->value)
            status = tn__fail_memory("layer_walk", strlen(path) + 1);
        tn__free(name);
    }
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++) {
        char *name = tn__format("%s%s%s", path, dot, layer->children[i].name);
        status = name ? walk(layer->children[i].layer, name, visit, user)
                      : tn__fail_memory("layer_walk", strlen(path) + 1);
        tn__free(name);
    }
    return status;
}

tn_status tn_layer_walk(tn_layer *layer, tn_layer_visitor visit, void *user)
{
    if (!layer || !visit)
        return tn__fail_null("layer_walk", "a layer and a function");
    TN__GUARD_OF("layer_walk", layer);
    tn_status status = tn__layer_raise(layer);
    return status == TN_OK ? walk(layer, "", visit, user) : status;
}

static tn_status archive_value(tn_layer *layer, tn__slot *slot, const char *path, void *archive)
{
    (void)layer;
    return slot->value ? tn_archive_add(archive, path, slot->value) : tn_archive_set_text(archive, path, TN__TO_INFER);
}

tn_status tn__layer_archive(const tn_layer *layer, tn_archive *archive)
{
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    return tn__visit_slots((tn_layer *)layer, "", archive_value, archive); /* which changes nothing */
}

/* ---- freezing ---- */

void tn__slot_freeze(tn__slot *slot, bool frozen)
{
    if (slot->persistent)
        return;
    slot->frozen = frozen;
    if (!slot->value)
        return;
    tn__node *node = tn__array_node(slot->value);
    tn__var *var = tn__handle_of(slot->value)->var;
    const uint8_t marks = TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
    if (frozen) {
        tn_clear_grad(slot->value);
        node->flags &= (uint16_t)~marks;
        node->var = NULL;
    } else {
        node->flags |= marks;
        node->var = var;
    }
}

typedef struct freezing {
    const char *pattern;
    bool frozen;
} freezing;

static tn_status freeze(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    freezing *f = user;
    if (slot->persistent || !tn__path_matches(f->pattern, path))
        return TN_OK;
    if (slot->frozen != f->frozen)
        tn__layer_changed(layer); /* copies that were made of it are told by that */
    tn__slot_freeze(slot, f->frozen);
    return TN_OK;
}

tn_status tn_layer_freeze(tn_layer *layer, const char *pattern, bool frozen)
{
    if (!layer)
        return tn__fail_null("layer_freeze", "a layer");
    tn_status status = tn__layer_raise(layer);
    freezing f = {.pattern = pattern ? pattern : "*", .frozen = frozen};
    if (status == TN_OK && pattern)
        status = tn__pattern_check("layer_freeze", "", pattern, layer, false);
    return status == TN_OK ? tn__visit_slots(layer, "", freeze, &f) : status;
}
