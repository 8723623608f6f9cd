/* SPDX-License-Identifier: MIT */
/* Layers one after another. */
#include "nn/layer.h"

#include <inttypes.h>
#include <stdio.h>

static tn__node *sequential_forward(tn_layer *layer, tn__node *x)
{
    for (size_t i = 0; i < layer->child_count; i++)
        x = tn__layer_forward(layer->children[i].layer, x);
    return x;
}

/* The first layer takes all inputs, the last one gives all outputs; in between goes the first output of each. */
static void sequential_flow(tn_layer *layer, const tn__flow *flow)
{
    tn__node *x = flow->in[0];
    size_t last = layer->child_count - 1;
    for (size_t i = 0; i <= last; i++) {
        const tn__flow step = {i ? 1 : flow->in_count, i < last ? 1 : flow->out_count, i ? &x : flow->in,
                               i < last ? &x : flow->out};
        tn__layer_flow(layer->children[i].layer, &step);
    }
}

const tn__layer_kind tn__sequential_kind = {
    .name = "sequential", .forward = sequential_forward, .flow = sequential_flow};

/* Checks that all can become children of one new layer; latches. */
static tn_status check_children(int count, tn_layer *const *layers)
{
    if (count > 0 && !layers)
        return tn__fail_null("sequential", "layers");
    for (int i = 0; i < count; i++) {
        if (!layers[i])
            return tn__fail(TN_ERR_VALUE, "sequential", "layer %d of %d is NULL", i, count);
        tn_status status = tn__layer_raise(layers[i]);
        if (status != TN_OK)
            return status;
        for (int j = 0; j < i; j++) {
            if (layers[j] == layers[i])
                return tn__fail(TN_ERR_STATE, "sequential",
                                "layers %d and %d are the same one: a layer has one parent; make a second layer", j, i);
        }
    }
    return TN_OK;
}

/* Frees those of the layers that have no parent. */
static void free_children(int count, tn_layer *const *layers)
{
    for (int i = 0; layers && i < count; i++)
        tn__layer_discard(layers[i]);
}

tn_layer *tn_sequential_of(int count, tn_layer *const *layers)
{
    tn_status status = check_children(count, layers);
    tn_layer *sequence = status == TN_OK ? tn__layer_make(&tn__sequential_kind) : NULL;
    if (!sequence || sequence->is_static) {
        tn__error *error = tn__error_retain(tn__error_last());
        free_children(count, layers);
        return tn__layer_error(error);
    }
    int added = 0;
    for (; added < count && status == TN_OK; added++) {
        char name[16];
        snprintf(name, sizeof name, "%d", added);
        status = tn_layer_add(sequence, name, layers[added]);
    }
    if (status == TN_OK)
        return sequence;
    tn__error *error = tn__error_retain(tn__error_last());
    free_children(count - added, layers + added);
    tn_layer_free(sequence);
    return tn__layer_error(error);
}

tn_layer *tn_mlp(int count, const int64_t *sizes, const char *activation)
{
    if (count < 1 || !sizes || !activation)
        return tn__layer_error(
            tn__error_new(TN_ERR_VALUE, "mlp",
                          "expected at least one size and the name of an activation, got %d sizes and %s", count,
                          activation ? activation : "no name"));
    int total = 2 * count - 1;
    tn_layer **layers = tn__calloc((size_t)total, sizeof *layers);
    if (!layers) {
        tn__fail_memory("mlp", (size_t)total * sizeof *layers);
        return tn__layer_error(tn__error_retain(tn__error_last()));
    }
    for (int i = 0; i < total; i++)
        layers[i] = i % 2 ? tn__layer_from_word("mlp", activation) : tn_linear_with(sizes[i / 2], NULL);
    tn_layer *net = tn_sequential_of(total, layers);
    tn__free(layers);
    return net;
}
