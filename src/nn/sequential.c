/* SPDX-License-Identifier: MIT */
/* Layers one after another. */
#include "nn/layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* ---- layers that come and go ---- */

/* Looks whether the layers within may change: an optimizer of it, or of a layer around it, knows parameters that only
 * ever come. Latches. */
static tn_status check_sequence(const char *operation, const tn_layer *sequence)
{
    tn_status status = sequence ? tn__layer_raise(sequence) : tn__fail_null(operation, "a sequence");
    if (status != TN_OK)
        return status;
    if (sequence->kind != &tn__sequential_kind)
        return tn__fail(TN_ERR_VALUE, operation, "expected a tn_sequential, got a %s", tn__layer_name(sequence));
    for (const tn_layer *layer = sequence; layer; layer = layer->parent)
        if (layer->followers)
            return tn__fail(TN_ERR_STATE, operation,
                            "an optimizer updates these parameters: free it first, and make it anew for what they then "
                            "are");
    return TN_OK;
}

/* Does a child have the number of its place as its name? */
static bool is_numbered(const tn__child *child, size_t place)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", place);
    return strcmp(child->name, number) == 0;
}

static char *numbered(size_t place) { return tn__format("%zu", place); }

static bool has_name(const tn_layer *sequence, const char *name, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (strcmp(sequence->children[i].name, name) == 0)
            return true;
    return false;
}

/*
 * Makes room for a child at `place`, or closes the gap that it leaves: those behind it that are named by their places
 * are named by their new ones. Their names are all made before anything changes; `room` has a place for each.
 */
static tn_status renumber(const char *operation, tn_layer *sequence, size_t place, bool comes, char **room)
{
    size_t count = sequence->child_count, first = place + !comes;
    for (size_t i = first; i < count; i++) {
        if (!is_numbered(&sequence->children[i], i))
            continue;
        room[i] = numbered(comes ? i + 1 : i - 1);
        if (!room[i])
            return tn__fail_memory(operation, sizeof(tn__child));
    }
    for (size_t i = first; i < count; i++) /* against the names that stay */
        for (size_t k = 0; room[i] && k < count; k++)
            if (!(k >= first && room[k]) && !(k == place && !comes) && strcmp(sequence->children[k].name, room[i]) == 0)
                return tn__fail(TN_ERR_NAME, operation, "the sequence has two layers for the name '%s' then", room[i]);
    for (size_t i = first; i < count; i++)
        if (room[i]) {
            char *old = sequence->children[i].name;
            sequence->children[i].name = room[i];
            room[i] = old;
        }
    return TN_OK;
}

static void free_names(char **room, size_t count)
{
    for (size_t i = 0; room && i < count; i++)
        tn__free(room[i]);
    tn__free(room);
}

/* Is the layer the sequence, or one around it? */
static bool is_around(const tn_layer *layer, const tn_layer *sequence)
{
    for (; sequence && sequence != layer; sequence = sequence->parent)
        continue;
    return sequence != NULL;
}

static tn_status insert(tn_layer *sequence, size_t place, tn_layer *layer)
{
    static const char operation[] = "sequential_insert";
    size_t count = sequence->child_count;
    char **room = tn__calloc(count + 1, sizeof *room), *name = numbered(place);
    tn_status status = TN_OK;
    if (!room || !name || !tn__grow((void **)&sequence->children, &sequence->child_capacity, count + 1,
                                    sizeof *sequence->children))
        status = tn__fail_memory(operation, (count + 1) * sizeof *sequence->children);
    if (status == TN_OK && (has_name(sequence, name, 0, place) ||
                            (place < count && !is_numbered(&sequence->children[place], place) &&
                             has_name(sequence, name, place, count))))
        status = tn__fail(TN_ERR_NAME, operation, "the sequence has a layer of the name '%s' already", name);
    if (status == TN_OK)
        status = renumber(operation, sequence, place, true, room);
    if (status == TN_OK) {
        tn__child *child = &sequence->children[place];
        memmove(child + 1, child, (count - place) * sizeof *child);
        *child = (tn__child){.name = name, .layer = layer};
        name = NULL;
        sequence->child_count++;
        layer->parent = sequence;
        tn__layer_changed(sequence);
    }
    free_names(room, count);
    tn__free(name);
    return status;
}

tn_status tn_sequential_insert(tn_layer *sequence, int index, tn_layer *layer)
{
    static const char operation[] = "sequential_insert";
    if (layer && is_around(layer, sequence))
        return tn__fail(TN_ERR_STATE, operation, "a layer can't be its own child or its descendant's");
    tn_status status = layer ? check_sequence(operation, sequence) : tn__fail_null(operation, "a layer");
    if (status == TN_OK)
        status = tn__layer_raise(layer);
    if (status == TN_OK && layer->parent)
        return tn__fail(TN_ERR_STATE, operation,
                        "the layer belongs to a %s already: a layer has one parent; make a second layer",
                        tn__layer_name(layer->parent));
    int64_t count = status == TN_OK ? (int64_t)sequence->child_count : 0, place = index < 0 ? index + count : index;
    if (status == TN_OK && (place < 0 || place > count))
        status = tn__fail(TN_ERR_INDEX, operation, "expected an index from %lld to %lld, got %d", (long long)-count,
                          (long long)count, index);
    if (status == TN_OK)
        status = insert(sequence, (size_t)place, layer);
    if (status != TN_OK)
        tn__layer_discard(layer);
    return status;
}

tn_layer *tn_sequential_pop(tn_layer *sequence, int index)
{
    static const char operation[] = "sequential_pop";
    tn_status status = check_sequence(operation, sequence);
    int64_t count = status == TN_OK ? (int64_t)sequence->child_count : 0, place = index < 0 ? index + count : index;
    if (status == TN_OK && (place < 0 || place >= count))
        status = tn__fail(TN_ERR_INDEX, operation, "index %d is out of range: the sequence has %lld layers", index,
                          (long long)count);
    char **room = status == TN_OK ? tn__calloc((size_t)count, sizeof *room) : NULL;
    if (status == TN_OK)
        status = room ? renumber(operation, sequence, (size_t)place, false, room)
                      : tn__fail_memory(operation, (size_t)count * sizeof *room);
    free_names(room, (size_t)count);
    if (status != TN_OK)
        return tn__layer_error(tn__error_retain(tn__error_last()));
    tn__child *child = &sequence->children[place];
    tn_layer *layer = child->layer;
    tn__free(child->name);
    memmove(child, child + 1, (size_t)(count - place - 1) * sizeof *child);
    sequence->child_count--;
    layer->parent = NULL;
    tn__layer_changed(sequence);
    return layer;
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
