/* SPDX-License-Identifier: MIT */
/* Layers of the user's own: functions of one array or of several, and the data that they are called with. */
#include <string.h>
#include <tanso/array.h>
#include "array/build_parts.h"
#include "nn/layer.h"

/* ---- calling ---- */

/* The node that the handle `y`, of a scope about to end, stands for: as a node of the caller's. */
static tn__node *node_out_of_scope(const tn_layer *layer, const tn_array *y, int output)
{
    if (!y && output < 0)
        return tn__node_error(tn__error_new(TN_ERR_VALUE, tn__layer_name(layer),
                                            "the layer's function returned NULL; expected an array"));
    if (!y)
        return tn__node_error(tn__error_new(TN_ERR_VALUE, tn__layer_name(layer),
                                            "the layer's function left output %d unset; expected an array", output));
    tn__node *node = tn__node_of(y, tn__layer_name(layer));
    if (tn__node_is_error(node))
        return tn__node_error(tn__error_retain(node->error));
    return tn__node_new(TN__OP_RESHAPE, node->dtype, node->shape, node->device, 1, &node, (tn__attr){0});
}

/* The user's function works with handles; they end with an inner scope, so that only x and y are left of them. */
static tn__node *own_forward(tn_layer *layer, tn__node *x)
{
    tn__scope_guard scope = tn__scope_enter();
    tn_array *in = tn__leave_array(tn__enter(), x);
    tn_array *out = layer->user.forward ? layer->user.forward(layer, in, layer->user.data)
                                        : layer->user.function(in, layer->user.data);
    tn__node *y = node_out_of_scope(layer, out, -1);
    tn__scope_leave(&scope);
    return y;
}

/* Handles of the inputs, NULL for those left out, then room for those of the outputs. */
static void call_with(tn_layer *layer, const tn__flow *flow, tn_array **in, tn_array **out)
{
    tn__scope_guard scope = tn__scope_enter();
    for (int i = 0; i < flow->in_count; i++)
        in[i] = flow->in[i] ? tn__leave_array(tn__enter(), flow->in[i]) : NULL;
    const tn_flow handles = {flow->in_count, layer->ports.outputs, (const tn_array *const *)in, out};
    tn_status status = layer->user.flow(layer, &handles, layer->user.data);
    if (status != TN_OK && !tn__latched())
        tn__fail(status, tn__layer_name(layer), "the layer's function failed with %s", tn_status_name(status));
    for (int i = 0; i < flow->out_count; i++)
        flow->out[i] = status == TN_OK ? node_out_of_scope(layer, out[i], i) : tn__failed();
    tn__scope_leave(&scope);
}

static void own_flow(tn_layer *layer, const tn__flow *flow)
{
    size_t ins = (size_t)(flow->in_count > layer->ports.inputs ? flow->in_count : layer->ports.inputs);
    size_t outs = (size_t)layer->ports.outputs;
    TN__FREED tn_array **arrays = tn__calloc(ins + outs, sizeof *arrays);
    if (arrays)
        call_with(layer, flow, arrays, arrays + ins);
    else
        tn__fail_memory(tn__layer_name(layer), (ins + outs) * sizeof *arrays);
    for (int i = 0; i < flow->out_count && !arrays; i++)
        flow->out[i] = tn__failed();
}

static const tn__layer_kind forward_kind = {.name = "layer", .forward = own_forward};
static const tn__layer_kind flow_kind = {.name = "layer", .flow = own_flow};

/* ---- making them ---- */

/* Takes over what `user` has; the layer frees it once all has worked. */
static tn_status take_data(tn_layer *layer, void *user, void (*free_user)(void *user), const tn_layer_opts *opts)
{
    layer->user.data = user;
    if (opts && opts->size) {
        if (!(layer->user.data = tn__calloc(1, opts->size)))
            return tn__fail_memory(tn__layer_name(layer), opts->size);
        layer->user.size = opts->size;
        if (user)
            memcpy(layer->user.data, user, opts->size);
    }
    layer->user.free_data = free_user;
    layer->user.copied = opts ? opts->copy : NULL;
    return TN_OK;
}

static tn_layer *own_layer(const char *operation, const tn__layer_kind *kind, const char *name, bool callable)
{
    if (!name || !*name || !callable)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, operation,
                                             "expected a name and a forward function, got %s",
                                             callable ? "no name" : "a NULL function"));
    tn_layer *layer = tn__layer_make(kind);
    if (layer->is_static)
        return layer;
    layer->user.name = tn__strdup(name);
    return layer->user.name ? layer : tn__layer_finish(layer, tn__fail_memory(operation, strlen(name) + 1));
}

static tn_layer *with_data(tn_layer *layer, tn_status status, void *user, void (*free_user)(void *user),
                           const tn_layer_opts *opts)
{
    if (tn_layer_status(layer) == TN_OK && status == TN_OK)
        status = take_data(layer, user, free_user, opts);
    else if (status == TN_OK)
        status = tn_layer_status(layer);
    if (status == TN_OK)
        return layer;
    if (free_user && (user || !opts || !opts->size))
        free_user(user);
    return tn_layer_status(layer) == TN_OK ? tn__layer_finish(layer, status) : layer;
}

tn_layer *tn_layer_new_with(const char *kind, tn_forward_fn forward, void *user, void (*free_user)(void *user),
                            const tn_layer_opts *opts)
{
    static const char operation[] = "layer_new";
    tn_layer *layer = own_layer(operation, &forward_kind, kind, forward != NULL);
    tn_status status = TN_OK;
    if (opts && (opts->inputs > 1 || opts->optional || opts->outputs > 1))
        status = tn__fail(TN_ERR_VALUE, operation,
                          "a forward function has one input and one output: use tn_flow_layer for more");
    if (tn_layer_status(layer) == TN_OK)
        layer->user.forward = forward;
    return with_data(layer, status, user, free_user, opts);
}

tn_layer *tn_flow_layer_with(const char *kind, tn_flow_fn flow, void *user, void (*free_user)(void *user),
                             const tn_layer_opts *opts)
{
    static const char operation[] = "flow_layer";
    tn__ports ports = {opts && opts->inputs ? opts->inputs : -1, opts ? opts->optional : 0,
                       opts && opts->outputs ? opts->outputs : 1};
    tn_layer *layer = own_layer(operation, &flow_kind, kind, flow != NULL);
    tn_status status = TN_OK;
    if ((opts && opts->inputs < 0) || ports.outputs < 1 || ports.optional < 0 ||
        (ports.optional > 0 && ports.optional >= ports.inputs))
        status = tn__fail(TN_ERR_VALUE, operation,
                          "expected inputs and outputs, and fewer optional inputs than inputs, got %d, %d and %d",
                          opts->inputs, opts->outputs, opts->optional);
    if (tn_layer_status(layer) == TN_OK) {
        layer->user.flow = flow;
        layer->ports = ports;
    }
    return with_data(layer, status, user, free_user, opts);
}

tn_layer *tn_function_layer(const char *name, tn_array *(*f)(const tn_array *x, void *user), void *user)
{
    tn_layer *layer = own_layer("function_layer", &forward_kind, name, f != NULL);
    if (tn_layer_status(layer) == TN_OK) {
        layer->user.function = f;
        layer->user.data = user;
    }
    return layer;
}

void *tn_layer_user(const tn_layer *layer, const char *kind)
{
    if (!layer || !kind) {
        tn__fail_null("layer_user", "a layer and a kind");
        return NULL;
    }
    return layer->user.name && strcmp(layer->user.name, kind) == 0 ? layer->user.data : NULL;
}

/* ---- freeing and copying them ---- */

void *tn__layer_data(tn_layer *layer, size_t size)
{
    layer->user.data = tn__calloc(1, size);
    layer->user.size = layer->user.data ? size : 0;
    if (!layer->user.data)
        tn__fail_memory(tn__layer_name(layer), size);
    return layer->user.data;
}

void tn__own_free(tn_layer *layer)
{
    if (layer->user.free_data)
        layer->user.free_data(layer->user.data);
    if (layer->user.size)
        tn__free(layer->user.data);
    tn__free(layer->user.name);
}

tn_status tn__own_copy(tn_layer *copy, const tn_layer *layer)
{
    if (!layer->user.name && !layer->user.size)
        return TN_OK;
    if (layer->user.free_data && !(layer->user.size && layer->user.copied))
        return tn__fail(TN_ERR_UNSUPPORTED, "layer_copy",
                        "a %s has data of its own, which only the program can copy: make it with .size and .copy, or "
                        "make a second one and use tn_layer_copy_params",
                        tn__layer_name(layer));
    copy->user = layer->user;
    copy->user.free_data = NULL; /* until the data are its own */
    copy->user.size = 0;
    if (layer->user.name && !(copy->user.name = tn__strdup(layer->user.name)))
        return tn__fail_memory("layer_copy", strlen(layer->user.name) + 1);
    if (!layer->user.size)
        return TN_OK;
    if (!(copy->user.data = tn__alloc(layer->user.size)))
        return tn__fail_memory("layer_copy", layer->user.size);
    copy->user.size = layer->user.size;
    memcpy(copy->user.data, layer->user.data, layer->user.size);
    return TN_OK;
}

tn_status tn__own_copied(tn_layer *copy, const tn_layer *layer)
{
    tn_status status = layer->user.copied ? layer->user.copied(copy, copy->user.data) : TN_OK;
    if (status != TN_OK && !tn__latched())
        tn__fail(status, "layer_copy", "the data of a %s could not be copied: %s", tn__layer_name(layer),
                 tn_status_name(status));
    if (status == TN_OK)
        copy->user.free_data = layer->user.free_data;
    return status;
}
