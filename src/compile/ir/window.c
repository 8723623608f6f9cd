/* SPDX-License-Identifier: MIT */
/* How a chain of views reads the elements of its base: strides composed as NumPy composes them. */
#include "compile/ir/draft.h"
#include "tn_op_functions.h"

#include <string.h>

static bool expand(tn__window *w, const tn__value *v)
{
    for (int d = 0; d < w->ndim; d++) {
        if (w->dim[d] != v->shape->dim[d])
            w->stride[d] = 0;
        w->dim[d] = v->shape->dim[d];
    }
    return true;
}

static bool slice(tn__window *w, const tn__value *v)
{
    for (int d = 0; d < w->ndim; d++) {
        w->offset += v->attr.ints->v[2 * d] * w->stride[d];
        w->stride[d] *= v->attr.ints->v[2 * d + 1];
        w->dim[d] = v->shape->dim[d];
    }
    return true;
}

static bool permute(tn__window *w, const tn__value *v)
{
    tn__window old = *w;
    for (int d = 0; d < w->ndim; d++) {
        w->dim[d] = old.dim[v->attr.perm[d]];
        w->stride[d] = old.stride[v->attr.perm[d]];
    }
    return true;
}

static bool reshape(tn__window *w, const tn__value *v)
{
    int64_t stride[TN_MAX_NDIM];
    if (!tn__strides_reshape(w->ndim, w->dim, w->stride, v->shape->ndim, v->shape->dim, stride))
        return false;
    w->ndim = v->shape->ndim;
    memcpy(w->dim, v->shape->dim, sizeof w->dim);
    memcpy(w->stride, stride, sizeof(int64_t) * (size_t)w->ndim);
    return true;
}

/* Where windows begin is a step along their axis, the place in one of them a step of its own, in a new axis behind. */
static bool windows(tn__window *w, const tn__value *v)
{
    for (int i = 0; i < v->attr.ints->count; i += 3) {
        const int64_t *one = &v->attr.ints->v[i];
        w->stride[w->ndim++] = w->stride[one[0]] * one[2];
        w->stride[one[0]] *= one[1];
    }
    memcpy(w->dim, v->shape->dim, sizeof w->dim);
    return true;
}

/* Each changes a window of its input into one of itself, if strides express that. */
static bool (*const through[TN__OP_COUNT])(tn__window *w, const tn__value *view) = {
    [TN__OP_RESHAPE] = reshape, [TN__OP_PERMUTE] = permute, [TN__OP_EXPAND] = expand, [TN__OP_SLICE] = slice,
    [TN__OP_WINDOWS] = windows};

bool tn__window_through(tn__window *window, const tn__value *view) { return through[view->op](window, view); }

bool tn__window_of(const tn__graph *graph, int v, const bool *stored, tn__window *window, int *blocked)
{
    const tn__value *value = &graph->value[v];
    if (tn__value_kind(value) != TN__KIND_VIEW || (stored && stored[v])) {
        window->base = v;
        window->offset = 0;
        window->ndim = value->shape->ndim;
        memcpy(window->dim, value->shape->dim, sizeof window->dim);
        if (tn__value_is_leaf(value) && value->strides)
            memcpy(window->stride, value->strides->v, sizeof(int64_t) * (size_t)window->ndim);
        else
            tn__strides_contiguous(window->ndim, window->dim, window->stride);
        return true;
    }
    return tn__window_below(graph, v, stored, window, blocked);
}

bool tn__window_below(const tn__graph *graph, int v, const bool *stored, tn__window *window, int *blocked)
{
    const tn__value *value = &graph->value[v];
    if (!tn__window_of(graph, value->in[0], stored, window, blocked))
        return false;
    *blocked = value->in[0];
    return tn__window_through(window, value);
}
