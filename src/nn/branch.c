/* SPDX-License-Identifier: MIT */
/* Layers of branches that one input goes through: their sum (residual), and their results side by side (concat). */
#include "nn/branch.h"

#include <stdio.h>
#include <tanso/models.h>

#include "nn/terms.h"

/* ---- lists ---- */

tn_status tn__items_add(tn__items *items, char *name, tn_layer *layer)
{
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK && !tn__grow((void **)&items->item, &items->capacity, items->count + 1, sizeof *items->item))
        status = tn__fail_memory("layer_parse", sizeof *items->item);
    if (status == TN_OK) {
        items->item[items->count++] = (tn__item){name, layer};
        return TN_OK;
    }
    tn__free(name);
    tn__layer_discard(layer);
    return status;
}

void tn__items_free(tn__items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        tn__free(items->item[i].name);
        tn__layer_discard(items->item[i].layer);
    }
    tn__free(items->item);
    *items = (tn__items){0};
}

/* The new layer, which may be an error, with the items as its children. */
static tn_layer *with_items(tn_layer *layer, tn__items *items)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < items->count && !layer->is_static && status == TN_OK; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        tn_layer *child = items->item[i].layer;
        items->item[i].layer = NULL;
        status = tn_layer_add(layer, items->item[i].name ? items->item[i].name : number, child);
    }
    tn__items_free(items);
    return layer->is_static ? layer : tn__layer_finish(layer, status);
}

tn_layer *tn__sequential_of_items(tn__items *items)
{
    return with_items(tn__layer_make(&tn__sequential_kind), items);
}

/* ---- sums ---- */

typedef struct residual {
    size_t body, shortcut; /* how many children, from the first; the others follow the sum */
} residual;

static tn__node *through(const tn_layer *layer, size_t begin, size_t end, tn__node *x)
{
    for (; begin < end && begin < layer->child_count; begin++)
        x = tn__layer_forward(layer->children[begin].layer, x);
    return x;
}

static tn__node *residual_forward(tn_layer *layer, tn__node *x)
{
    const residual *r = layer->settings;
    tn__node *y = through(layer, 0, r->body, x), *direct = through(layer, r->body, r->body + r->shortcut, x);
    TN__PASS_ERROR(y);
    TN__PASS_ERROR(direct);
    char got[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (y->shape != direct->shape)
        return tn__node_error(tn__error_new(
            TN_ERR_SHAPE, "residual", "expected layers and a shortcut that give the same shape, got %s and %s%s",
            tn__shape_text(y->shape->ndim, y->shape->dim, got),
            tn__shape_text(direct->shape->ndim, direct->shape->dim, other),
            r->shortcut ? "" : ": a shortcut of its own can change the input's, as conv:64,1,stride=2"));
    return through(layer, r->body + r->shortcut, layer->child_count, tn__binary(TN__OP_ADD, y, direct));
}

static const tn__layer_kind residual_kind = {
    .name = "residual", .forward = residual_forward, .settings = sizeof(residual)};

tn_layer *tn__residual_of_items(tn__items *items, size_t body, size_t shortcut)
{
    tn_layer *layer = tn__layer_make(&residual_kind);
    if (!layer->is_static)
        *(residual *)layer->settings = (residual){body, shortcut};
    return with_items(layer, items);
}

tn_layer *tn_residual(tn_layer *body, tn_layer *shortcut, tn_layer *after)
{
    static const char *const names[] = {"body", "shortcut", "after"};
    tn_layer *const part[] = {body, shortcut, after};
    tn__items items = {0};
    tn_status status = body ? TN_OK : tn__fail_null("residual", "a layer");
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        char *name = part[i] && status == TN_OK ? tn__strdup(names[i]) : NULL;
        if (part[i] && status == TN_OK && !name)
            status = tn__fail_memory("residual", sizeof "shortcut");
        if (part[i] && status == TN_OK)
            status = tn__items_add(&items, name, part[i]);
        else if (part[i])
            tn__layer_discard(part[i]);
    }
    if (status == TN_OK)
        return tn__residual_of_items(&items, 1, shortcut ? 1 : 0);
    tn__error *error = tn__error_retain(tn__error_last());
    tn__items_free(&items);
    return tn__layer_error(error);
}

/* ---- side by side ---- */

/* Why the results can't lie along the axis behind one another; NULL: they can. */
static tn__error *misfit(size_t count, tn__node *const *y, int axis)
{
    const tn__shape *first = y[0]->shape;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (axis < 0 || axis >= first->ndim)
        return tn__error_new(TN_ERR_INDEX, "concat", "there is no such axis of shape %s",
                             tn__shape_text(first->ndim, first->dim, text));
    for (size_t i = 1; i < count; i++) {
        const tn__shape *s = y[i]->shape;
        bool fits = s->ndim == first->ndim && y[i]->dtype == y[0]->dtype;
        for (int d = 0; d < first->ndim && fits; d++)
            fits = d == axis || s->dim[d] == first->dim[d];
        if (!fits)
            return tn__error_new(TN_ERR_SHAPE, "concat",
                                 "expected results of one dtype that differ along axis %d alone, got %s %s of the "
                                 "first layer and %s %s of layer %zu", axis, tn_dtype_name((tn_dtype)y[0]->dtype),
                                 tn__shape_text(first->ndim, first->dim, text), tn_dtype_name((tn_dtype)y[i]->dtype),
                                 tn__shape_text(s->ndim, s->dim, other), i);
    }
    return NULL;
}

static tn__node *concat_forward(tn_layer *layer, tn__node *x)
{
    size_t count = layer->child_count;
    tn__node **y = tn__alloc(count * sizeof *y);
    if (!y)
        return tn__fail_memory("concat", count * sizeof *y), tn__failed();
    for (size_t i = 0; i < count; i++)
        y[i] = tn__layer_forward(layer->children[i].layer, x);
    tn__node *joined = tn__first_error((int)count, y);
    int axis = layer->axis < 0 && !joined ? layer->axis + y[0]->shape->ndim : layer->axis;
    tn__error *error = joined ? NULL : misfit(count, y, axis);
    if (!joined)
        joined = error ? tn__node_error(error) : tn__joined((int)count, y, axis);
    tn__free(y);
    return joined;
}

static void concat_describe(const tn_layer *layer, tn__text *text) { tn__text_addf(text, ":%d", layer->axis); }

static const tn__layer_kind concat_kind = {.name = "concat", .forward = concat_forward, .describe = concat_describe};

tn_layer *tn__concat_of_items(tn__items *items, int axis)
{
    if (items->count == 0 || axis < -TN_MAX_NDIM || axis >= TN_MAX_NDIM) {
        tn__error *error = tn__error_new(TN_ERR_VALUE, "concat", "expected layers and an axis from %d to %d, got %zu "
                                         "layers and %d", -TN_MAX_NDIM, TN_MAX_NDIM - 1, items->count, axis);
        tn__items_free(items);
        return tn__layer_error(error);
    }
    tn_layer *layer = tn__layer_make(&concat_kind);
    if (!layer->is_static)
        layer->axis = axis;
    return with_items(layer, items);
}

tn_layer *tn_concat_layer_of(int axis, int count, tn_layer *const *layers)
{
    tn__items items = {0};
    tn_status status = count > 0 && !layers ? tn__fail_null("concat", "layers") : TN_OK;
    for (int i = 0; layers && i < count; i++) {
        if (status == TN_OK && !layers[i])
            status = tn__fail(TN_ERR_VALUE, "concat", "layer %d of %d is NULL", i, count);
        if (status == TN_OK)
            status = tn__items_add(&items, NULL, layers[i]);
        else
            tn__layer_discard(layers[i]);
    }
    if (status == TN_OK)
        return tn__concat_of_items(&items, axis);
    tn__error *error = tn__error_retain(tn__error_last());
    tn__items_free(&items);
    return tn__layer_error(error);
}
