/* SPDX-License-Identifier: MIT */
/* Calling layers, with one array or with several: checks, hooks, and what a failure gives. */
#include <stdio.h>
#include <tanso/array.h>
#include "array/build_parts.h"
#include "array/guard.h"
#include "nn/layer.h"

tn__ports tn__layer_ports(const tn_layer *layer)
{
    static const tn__ports one = {.inputs = 1, .outputs = 1};
    if (!layer->kind->flow)
        return one;
    if (!layer->kind->forward)
        return layer->ports;
    if (layer->child_count == 0) /* a sequence */
        return one;
    tn__ports ports = tn__layer_ports(layer->children[0].layer);
    ports.outputs = tn__layer_ports(layer->children[layer->child_count - 1].layer).outputs;
    return ports;
}

/* ---- checks ---- */

/* A layer of the user's own may take its input from anywhere. */
static bool is_elsewhere(const tn_layer *layer, const tn__node *x)
{
    const tn_array *param = layer->slot_count && !layer->user.name ? layer->slots[0].value : NULL;
    return param && tn__array_node(param)->device != x->device && !tn__node_is_error(tn__array_node(param)) &&
           !tn__foldable(x);
}

static tn__node *elsewhere(const tn_layer *layer, const tn__node *x)
{
    return tn__node_error(tn__error_new(
        TN_ERR_DEVICE, tn__layer_name(layer),
        "the parameters are on %s, the input is on %s: move the network with tn_layer_to, or the input with "
        "tn_to(x, tn_device_of(net)); a loader makes its minibatches on its .device",
        tn__array_node(layer->slots[0].value)->device->name, x->device->name));
}

/* Of the inputs `least` to `most` (-1: no end) or, of the outputs, `most`. */
static tn__node *wrong_count(const tn_layer *layer, bool inputs, int least, int most, int got)
{
    char wanted[64];
    if (most < 0)
        snprintf(wanted, sizeof wanted, "at least %d", least);
    else if (least < most)
        snprintf(wanted, sizeof wanted, "%d to %d", least, most);
    else
        snprintf(wanted, sizeof wanted, "%d", most);
    return tn__node_error(tn__error_new(TN_ERR_VALUE, tn__layer_name(layer), "the layer has %s %s%s, and %d %s",
                                        wanted, inputs ? "input" : "output", most == 1 ? "" : "s", got,
                                        inputs ? "came" : "were asked for"));
}

/* Why the layer can't be called so, or NULL. */
static tn__node *refusal(const tn_layer *layer, const tn__flow *flow)
{
    tn__ports ports = tn__layer_ports(layer);
    int least = ports.inputs < 0 ? 1 : ports.inputs - ports.optional;
    if (flow->in_count < least || (ports.inputs >= 0 && flow->in_count > ports.inputs))
        return wrong_count(layer, true, least, ports.inputs, flow->in_count);
    if (flow->out_count > ports.outputs)
        return wrong_count(layer, false, ports.outputs, ports.outputs, flow->out_count);
    for (int i = 0; i < flow->in_count; i++) {
        tn__node *x = flow->in[i];
        if (!x && (i < least || ports.inputs < 0))
            return tn__node_error(tn__error_new(TN_ERR_VALUE, tn__layer_name(layer),
                                                "input %d of %d is NULL, and can't be left out", i, flow->in_count));
        if (x && tn__node_is_error(x))
            return x;
        if (x && is_elsewhere(layer, x))
            return elsewhere(layer, x);
    }
    return NULL;
}

/* ---- calling ---- */

static void fill(const tn__flow *flow, tn__node *node)
{
    for (int i = 0; i < flow->out_count; i++)
        flow->out[i] = node;
}

static void run(tn_layer *layer, const tn__flow *flow)
{
    if (layer->kind->forward && flow->in_count == 1 && flow->out_count == 1)
        flow->out[0] = layer->kind->forward(layer, flow->in[0]);
    else
        layer->kind->flow(layer, flow);
}

/* A layer may be called from within its own forward. */
static tn_status call_hooks(tn_layer *layer, const tn__flow *flow, bool after)
{
    const tn__flow *outer = layer->call, before = {flow->in_count, 0, flow->in, NULL};
    layer->call = after ? flow : &before;
    tn_status status = tn__layer_run_hooks(layer, after);
    layer->call = outer;
    return status;
}

static void run_with_hooks(tn_layer *layer, const tn__flow *flow)
{
    if (call_hooks(layer, flow, false) != TN_OK) {
        fill(flow, tn__failed());
        return;
    }
    run(layer, flow);
    bool failed = false;
    for (int i = 0; i < flow->out_count; i++)
        failed = failed || tn__node_is_error(flow->out[i]);
    if (call_hooks(layer, flow, true) != TN_OK && !failed)
        fill(flow, tn__failed());
}

void tn__layer_flow(tn_layer *layer, const tn__flow *flow)
{
    if (layer->error || layer->is_static) {
        fill(flow, layer->kind->forward(layer, NULL));
        return;
    }
    tn__node *refused = refusal(layer, flow);
    if (refused)
        fill(flow, refused);
    else if (layer->keeper && !layer->keeper->inside)
        layer->keeper->flow(layer->keeper, layer, flow);
    else if (layer->hook_count)
        run_with_hooks(layer, flow);
    else
        run(layer, flow);
}

tn__node *tn__layer_forward(tn_layer *layer, tn__node *x)
{
    if (layer->hook_count || layer->keeper || !layer->kind->forward) {
        tn__node *y;
        tn__layer_flow(layer, &(tn__flow){1, 1, &x, &y});
        return y;
    }
    if (tn__node_is_error(x) && !layer->error)
        return x;
    return !layer->error && is_elsewhere(layer, x) ? elsewhere(layer, x) : layer->kind->forward(layer, x);
}

tn_array *tn_forward(tn_layer *layer, const tn_array *x)
{
    TN__GUARD_OF("forward", layer);
    tn__call call = tn__enter();
    if (!layer) {
        tn__fail(TN_ERR_VALUE, "forward", "expected a layer, got NULL");
        return tn__leave_error(call);
    }
    return tn__leave_array(call, tn__layer_forward(layer, tn__node_of(x, "forward")));
}

tn_status tn_forward_all(tn_layer *layer, int count, const tn_array *const *in, int out_count,
                         tn_array **const *out)
{
    TN__FREED tn__node **nodes = NULL;
    TN__GUARD_OF("forward", layer);
    tn__call call = tn__enter();
    tn_status status = TN_OK;
    if (!layer || count < 1 || !in || out_count < 1 || !out)
        return tn__leave(call), tn__fail(TN_ERR_VALUE, "forward",
                                         "expected a layer, and arrays in and out, got %s, %d and %d",
                                         layer ? "a layer" : "NULL", in ? count : 0, out ? out_count : 0);
    if (!(nodes = tn__calloc((size_t)count + (size_t)out_count, sizeof *nodes)))
        status = tn__fail_memory("forward", ((size_t)count + (size_t)out_count) * sizeof *nodes);
    for (int i = 0; i < count && nodes; i++)
        nodes[i] = in[i] ? tn__node_of(in[i], "forward") : NULL;
    if (nodes)
        tn__layer_flow(layer, &(tn__flow){count, out_count, nodes, nodes + count});
    for (int i = 0; i < out_count && !nodes; i++)
        if (out[i])
            *out[i] = tn__failed_array();
    status = nodes ? tn__give_all(call, out_count, nodes + count, out) : (tn__leave(call), status);
    return status;
}

tn_array *tn_forward_of(tn_layer *layer, int count, const tn_array *const *in)
{
    tn_array *y = NULL;
    tn_forward_all(layer, count, in, 1, (tn_array **[]){&y});
    return y ? y : tn__failed_array();
}
