/* SPDX-License-Identifier: MIT */
/* What programs want called around a layer's forward. */
#include "nn/layer.h"

tn_status tn__layer_add_own_hook(tn_layer *layer, tn_layer_hook hook, void *user, void (*free_user)(void *user))
{
    if (!tn__grow((void **)&layer->hooks, &layer->hook_capacity, layer->hook_count + 1, sizeof *layer->hooks))
        return tn__fail_memory("layer_add_hook", sizeof *layer->hooks);
    layer->hooks[layer->hook_count++] = (tn__layer_hook){.run = hook, .user = user, .free_user = free_user};
    return TN_OK;
}

tn_status tn_layer_add_hook(tn_layer *layer, tn_layer_hook hook, void *user)
{
    if (!layer || !hook)
        return tn__fail_null("layer_add_hook", "a layer and a function");
    tn_status status = tn__layer_raise(layer);
    return status == TN_OK ? tn__layer_add_own_hook(layer, hook, user, NULL) : status;
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

void tn__layer_free_hooks(tn_layer *layer)
{
    for (size_t i = 0; i < layer->hook_count; i++)
        if (layer->hooks[i].free_user)
            layer->hooks[i].free_user(layer->hooks[i].user);
    tn__free(layer->hooks);
}

static tn_status run(tn_layer *layer, const tn__layer_hook *hook, bool after)
{
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = hook->run(layer, after, hook->user);
    if (status != TN_OK && !tn__latched())
        tn__fail(status, "forward", "a hook of the %s failed with %s", tn__layer_name(layer), tn_status_name(status));
    tn__scope_leave(&scope);
    return status;
}

tn_status tn__layer_run_hooks(tn_layer *layer, bool after)
{
    tn_status status = TN_OK;
    size_t done = 0;
    for (; done < layer->hook_count && status == TN_OK; done++)
        status = run(layer, &layer->hooks[after ? layer->hook_count - 1 - done : done], after);
    for (size_t i = done; !after && status != TN_OK && i-- > 0;) /* nothing is forward: what they did is undone */
        run(layer, &layer->hooks[i], true);
    return status;
}

/* ---- what they see ---- */

static tn_array *seen(const tn_layer *layer, bool output, int i)
{
    const tn__flow *call = layer ? layer->call : NULL;
    int count = !call ? 0 : output ? call->out_count : call->in_count;
    tn__node *node = i >= 0 && i < count ? output ? call->out[i] : call->in[i] : NULL;
    if (node)
        return tn__leave_array(tn__enter(), node);
    tn__fail(TN_ERR_INDEX, output ? "hook_output" : "hook_input",
             "there is no %s %d: expected the layer that a hook was called for, and one of those that its call has",
             output ? "output" : "input", i);
    return tn__failed_array();
}

tn_array *tn_hook_input(const tn_layer *layer, int i) { return seen(layer, false, i); }
tn_array *tn_hook_output(const tn_layer *layer, int i) { return seen(layer, true, i); }
