/* SPDX-License-Identifier: MIT */
/* What programs want called around a layer's forward. */
#include "nn/layer.h"

tn_status tn_layer_add_hook(tn_layer *layer, tn_layer_hook hook, void *user)
{
    if (!layer || !hook)
        return tn__fail_null("layer_add_hook", "a layer and a function");
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    if (!tn__grow((void **)&layer->hooks, &layer->hook_capacity, layer->hook_count + 1, sizeof *layer->hooks))
        return tn__fail_memory("layer_add_hook", sizeof *layer->hooks);
    layer->hooks[layer->hook_count++] = (tn__layer_hook){.run = hook, .user = user};
    return TN_OK;
}

void tn_layer_remove_hook(tn_layer *layer, tn_layer_hook hook, void *user)
{
    size_t left = 0;
    for (size_t i = 0; layer && i < layer->hook_count; i++) {
        if (layer->hooks[i].run != hook || layer->hooks[i].user != user)
            layer->hooks[left++] = layer->hooks[i];
    }
    if (layer && !layer->is_static)
        layer->hook_count = left;
}

tn_status tn__layer_run_hooks(tn_layer *layer, bool after)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < layer->hook_count && status == TN_OK; i++) {
        const tn__layer_hook *hook = &layer->hooks[after ? layer->hook_count - 1 - i : i];
        status = hook->run(layer, after, hook->user);
    }
    if (status != TN_OK && !tn__latched())
        tn__fail(status, "forward", "a hook of the %s failed with %s", tn__layer_name(layer), tn_status_name(status));
    return status;
}
