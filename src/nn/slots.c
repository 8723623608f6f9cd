/* SPDX-License-Identifier: MIT */
/* Parameters of one layer: adding them, making their arrays, inferring the extents that depend on the first input. */
#include "nn/layer.h"

#include <inttypes.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include "core/utf8.h"
#include "nn/init.h"

tn_status tn__layer_check_name(const tn_layer *layer, const char *operation, const char *name)
{
    if (!name || !*name || strpbrk(name, "./"))
        return tn__fail(TN_ERR_NAME, operation,
                        "expected a name without '.' and '/', which separate the names in a path; got '%s'",
                        name ? name : "");
    tn_status status = tn__check_utf8(operation, "the name", name);
    if (status != TN_OK)
        return status;
    bool taken = false;
    for (size_t i = 0; i < layer->slot_count && !taken; i++)
        taken = strcmp(layer->slots[i].name, name) == 0;
    for (size_t i = 0; i < layer->child_count && !taken; i++)
        taken = strcmp(layer->children[i].name, name) == 0;
    if (taken)
        return tn__fail(TN_ERR_NAME, operation,
                        "the %s has a parameter or child named '%s' already: choose another name",
                        tn__layer_name(layer), name);
    return TN_OK;
}

/* Turns an evaluated array of the innermost scope into a parameter that a layer owns. */
static tn_status make_parameter(tn_array *value)
{
    tn_status status = tn_eval(value);
    if (status != TN_OK)
        return status;
    tn_requires_grad(value);
    if (!tn_needs_grad(value))
        return tn__fail_memory("layer_param", sizeof(tn__var));
    tn__handle_of(value)->var->param = true;
    tn__array_keep(value);
    return TN_OK;
}

static bool shape_known(const tn_shape *shape)
{
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 0)
            return false;
    }
    return true;
}

static tn_shape shape_with(tn_shape shape, int64_t features)
{
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0)
            shape.dim[i] = features;
    }
    return shape;
}

/* The same of a persistent value. */
static tn_status make_persistent(tn_array *value)
{
    tn_status status = tn_eval(value);
    if (status == TN_OK)
        tn__array_keep(value);
    return status;
}

static tn_status make_slot_array(const tn_layer *layer, tn__slot *slot, int64_t features, tn_device device)
{
    tn__scope_guard scope = tn__scope_enter();
    tn_random_opts opts = {.dtype = slot->dtype, .device = device};
    tn_create_opts counter = {.dtype = slot->dtype, .device = device};
    tn_shape shape = shape_with(slot->shape, features);
    tn_array *value = tn_dtype_is_float(slot->dtype)
                          ? tn__initialize(slot->init, shape, layer->kind->kernels, &opts)
                          : tn_zeros_with(shape, &counter);
    tn_status status = slot->persistent ? make_persistent(value) : make_parameter(value);
    if (status == TN_OK)
        slot->value = value;
    tn__scope_leave(&scope);
    if (status == TN_OK && slot->frozen)
        tn__slot_freeze(slot, true);
    return status;
}

static tn__slot *new_slot(tn_layer *layer, const char *operation, const char *name)
{
    char *copy = tn__strdup(name);
    if (!copy ||
        !tn__grow((void **)&layer->slots, &layer->slot_capacity, layer->slot_count + 1, sizeof *layer->slots)) {
        tn__free(copy);
        tn__fail_memory(operation, sizeof *layer->slots);
        return NULL;
    }
    layer->slots[layer->slot_count] = (tn__slot){.name = copy};
    return &layer->slots[layer->slot_count++];
}

static void drop_last_slot(tn_layer *layer) { tn__free(layer->slots[--layer->slot_count].name); }

void tn__slot_free(tn__slot *slot)
{
    if (!slot->holders || --*slot->holders == 0) {
        tn__array_free_kept(slot->value);
        tn__free(slot->holders);
    }
    tn__free(slot->name);
}

tn_status tn__slot_share(tn_layer *layer, tn__slot *slot)
{
    if (!slot->value)
        return tn__fail(TN_ERR_STATE, "layer_copy",
                        "'%s' has no shape yet, so that there is nothing to share: call tn_forward once before",
                        slot->name);
    if (!slot->holders) {
        if (!(slot->holders = tn__alloc(sizeof *slot->holders)))
            return tn__fail_memory("layer_copy", sizeof *slot->holders);
        *slot->holders = 1;
    }
    tn__slot *made = new_slot(layer, "layer_copy", slot->name);
    if (!made)
        return TN_ERR_MEMORY;
    char *name = made->name;
    *made = *slot;
    made->name = name;
    ++*slot->holders;
    tn__layer_changed(layer);
    return TN_OK;
}

static tn_status add_slot(tn_layer *layer, const char *name, tn_shape shape, tn_dtype dtype, tn_init init,
                          bool persistent)
{
    tn__slot *slot = new_slot(layer, tn__layer_name(layer), name);
    if (!slot)
        return TN_ERR_MEMORY;
    slot->shape = shape;
    slot->dtype = dtype;
    slot->init = init;
    slot->persistent = persistent;
    /* Once one slot waits for its shape all wait, so that their arrays come to be on one device. */
    bool waits = !shape_known(&shape) || (layer->slot_count > 1 && !layer->slots[0].value);
    tn_status status = waits ? TN_OK : make_slot_array(layer, slot, 0, layer->device);
    if (status != TN_OK)
        drop_last_slot(layer);
    tn__layer_changed(layer);
    return status;
}

tn_status tn__slot_add(tn_layer *layer, const char *name, tn_shape shape, tn_dtype dtype, tn_init init)
{
    return add_slot(layer, name, shape, dtype, init, false);
}

tn_status tn__slot_add_persistent(tn_layer *layer, const char *name, tn_shape shape, tn_dtype dtype, tn_init init)
{
    return add_slot(layer, name, shape, dtype, init, true);
}

tn_status tn__slots_infer(tn_layer *layer, int64_t features, tn__device *device)
{
    tn_device where = layer->device.kind == TN_DEVICE_DEFAULT ? device->id : layer->device;
    tn_status status = TN_OK;
    uint64_t made = 0; /* bit i: slot i was made here; kinds have fewer than 64 */
    for (size_t i = 0; i < layer->slot_count && status == TN_OK; i++) {
        if (layer->slots[i].value)
            continue;
        status = make_slot_array(layer, &layer->slots[i], features, where);
        made |= (uint64_t)(status == TN_OK) << i;
    }
    for (size_t i = 0; i < layer->slot_count; i++) {
        tn__slot *slot = &layer->slots[i];
        if (status == TN_OK) {
            slot->shape = shape_with(slot->shape, features);
        } else if (made >> i & 1) { /* all or none, so that the next input starts anew */
            tn__array_free_kept(slot->value);
            slot->value = NULL;
        }
    }
    tn__layer_changed(layer);
    return status;
}

bool tn__fits_features(tn_layer *layer, const tn__node *x)
{
    int ndim = x->shape->ndim;
    const char *name = tn__layer_name(layer);
    if (ndim == 0) {
        tn__fail(TN_ERR_SHAPE, name, "expected an input of at least one axis, the features; got a scalar");
        return false;
    }
    int64_t features = x->shape->dim[ndim - 1];
    if (!layer->slots[0].value)
        return tn__slots_infer(layer, features, x->device) == TN_OK;
    if (features == layer->slots[0].shape.dim[0])
        return true;
    char text[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, name, "expected inputs whose last extent is the %" PRId64 " features, got %s",
             layer->slots[0].shape.dim[0], tn__shape_text(ndim, x->shape->dim, text));
    return false;
}

/* The arrays made inside stay the caller's until all has worked. */
tn_array *tn_layer_param(tn_layer *layer, const char *name, tn_array *value)
{
    static const char operation[] = "layer_param";
    if (!layer || !value)
        return tn__error_array(tn__error_new(TN_ERR_VALUE, operation, "expected a layer and an array, got NULL"));
    if (tn_is_error(value))
        return value;
    if (tn__layer_raise(layer) != TN_OK || tn__layer_check_name(layer, operation, name) != TN_OK)
        return tn__error_array(tn__error_retain(tn__error_last()));
    for (size_t i = 0; i < layer->slot_count; i++) {
        if (layer->slots[i].value == value)
            return tn__error_array(tn__error_new(TN_ERR_STATE, operation, "the array is the parameter '%s' already",
                                                 layer->slots[i].name));
    }
    if (tn__handle_of(value)->var && tn__handle_of(value)->var->param)
        return tn__error_array(tn__error_new(TN_ERR_STATE, operation,
                                             "the array for '%s' is a parameter of another layer, which frees it: "
                                             "call that layer twice, or give a copy",
                                             name));
    if (!tn_dtype_is_float(tn_dtype_of(value)))
        return tn__error_array(tn__error_new(TN_ERR_DTYPE, operation,
                                             "a parameter is floating, '%s' is %s: cast it with tn_cast", name,
                                             tn_dtype_name(tn_dtype_of(value))));
    tn__slot *slot = new_slot(layer, operation, name);
    if (!slot)
        return tn__error_array(tn__error_retain(tn__error_last()));
    slot->shape = tn_shape_of(value);
    slot->dtype = tn_dtype_of(value);
    if (make_parameter(value) != TN_OK) {
        drop_last_slot(layer);
        return tn__error_array(tn__error_retain(tn__error_last()));
    }
    slot->value = value;
    tn__layer_changed(layer);
    return value;
}

tn_array *tn_layer_persistent(tn_layer *layer, const char *name, tn_array *value)
{
    static const char operation[] = "layer_persistent";
    if (!layer || !value)
        return tn__error_array(tn__error_new(TN_ERR_VALUE, operation, "expected a layer and an array, got NULL"));
    if (tn_is_error(value))
        return value;
    tn__slot *slot = NULL;
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK)
        status = tn__layer_check_name(layer, operation, name);
    if (status == TN_OK && tn_needs_grad(value))
        status = tn__fail(TN_ERR_STATE, operation,
                          "'%s' needs a gradient, so it is a parameter, or depends on one: use tn_layer_param, or "
                          "tn_detach",
                          name);
    if (status == TN_OK)
        status = tn_eval(value);
    if (status == TN_OK && !(slot = new_slot(layer, operation, name)))
        status = TN_ERR_MEMORY;
    if (status != TN_OK)
        return tn__error_array(tn__error_retain(tn__error_last()));
    slot->shape = tn_shape_of(value);
    slot->dtype = tn_dtype_of(value);
    slot->persistent = true;
    slot->value = tn__array_keep(value);
    tn__layer_changed(layer);
    return value;
}
