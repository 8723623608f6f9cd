/* SPDX-License-Identifier: MIT */
/*
 * Updates of the rows of a table that a step looked up. Its gradient is zeros, with sums of what the lookups brought in
 * as many rows at most. Where a rule leaves alone what has a gradient of 0, these rows are all that is computed: the
 * terms of each row are added up, in their order, in the place of its last lookup, and the rows that come of it are put
 * into the table, in its memory. Elements have the bits that they would have had; a row that was looked up several
 * times is put there as often.
 */
#include "optim/rules.h"

#include <string.h>

#define MOST_LOOKUPS 8
#define SMALL        (1 << 16) /* elements of a table that is sooner updated as a whole; on a GPU, SMALL_GPU */
#define SMALL_GPU    (1 << 22)
#define TIMES_FEWER  3 /* rows are written and read about as much more often than a whole table is */

/* What was added to zeros, the last one first. */
typedef struct lookups {
    int count, axis;
    int64_t rows;
    tn__node *indices[MOST_LOOKUPS]; /* a position a row */
    tn__node *terms[MOST_LOOKUPS];
} lookups;

static bool is_zero(const tn__node *node)
{
    static const tn__scalar zero;
    return node->op == TN__OP_CONST && memcmp(&node->attr.scalar, &zero, tn_dtype_size((tn_dtype)node->dtype)) == 0;
}

/* Indices that are the same for all elements of a row as one a row; else NULL. */
static tn__node *one_a_row(tn__node *indices, int axis)
{
    while (indices->op == TN__OP_EXPAND && tn__node_pending(indices))
        indices = indices->in[0];
    const tn__shape *shape = indices->shape;
    return shape->size == shape->dim[axis] ? indices : NULL;
}

static bool find_lookups(tn__node *gradient, lookups *l)
{
    tn__node *at = gradient;
    for (; at->op == TN__OP_SCATTER_ADD && tn__node_pending(at) && l->count < MOST_LOOKUPS; at = at->in[0]) {
        if (l->count && at->attr.axis != l->axis)
            return false;
        l->axis = at->attr.axis;
        l->terms[l->count] = at->in[2];
        l->rows += at->in[2]->shape->dim[l->axis];
        if (!(l->indices[l->count++] = one_a_row(at->in[1], at->attr.axis)))
            return false;
    }
    bool gpu = gradient->device->capabilities.target == TN__TARGET_CUDA;
    return l->count && l->rows && is_zero(at) && gradient->shape->size >= (gpu ? SMALL_GPU : SMALL) &&
           l->rows <= gradient->shape->dim[l->axis] / TIMES_FEWER;
}

/* What all lookups have, behind one another in the order of the sums. */
static tn__node *joined(const lookups *l, tn__node *const *parts)
{
    const tn__node *first = parts[0];
    if (l->count == 1)
        return parts[0];
    int64_t dim[TN_MAX_NDIM], place = 0;
    memcpy(dim, first->shape->dim, sizeof *dim * (size_t)first->shape->ndim);
    dim[l->axis] = l->rows;
    const tn__shape *shape = tn__shape_intern(first->shape->ndim, dim);
    if (!shape) {
        tn__fail_memory("step", sizeof *shape);
        return tn__failed();
    }
    tn__node *all = tn__const(0, (tn_dtype)first->dtype, shape, first->device);
    for (int i = l->count - 1; i >= 0 && !tn__node_is_error(all); i--) {
        all = tn__update_along(all, parts[i], l->axis, place);
        place += parts[i]->shape->dim[l->axis];
    }
    return all;
}

tn__node *tn__looked_up(tn__node *gradient, int *axis, tn__node **sums)
{
    if (gradient->op != TN__OP_SCATTER_ADD)
        return NULL;
    lookups l = {.count = 0};
    if (!find_lookups(gradient, &l))
        return NULL;
    tn__node *indices = joined(&l, l.indices), *terms = joined(&l, l.terms);
    if (tn__node_is_error(indices) || tn__node_is_error(terms))
        return tn__node_is_error(indices) ? indices : terms;
    int64_t dim[TN_MAX_NDIM];
    memcpy(dim, indices->shape->dim, sizeof *dim * (size_t)indices->shape->ndim);
    dim[l.axis] = gradient->shape->dim[l.axis];
    const tn__shape *table = tn__shape_intern(indices->shape->ndim, dim);
    if (!table) {
        tn__fail_memory("step", sizeof *table);
        return tn__failed();
    }
    tn__node *place = tn__iota(indices->shape, l.axis, gradient->device);
    tn__node *last = tn__const(0, TN_INT64, table, gradient->device);
    last = tn__scatter_node(TN__OP_SCATTER_SET, last, indices, place, l.axis);
    last = tn__gather(last, indices, l.axis);
    if (tn__node_is_error(last))
        return last;
    tn__node *none = tn__const(0, (tn_dtype)terms->dtype, terms->shape, terms->device);
    *sums = tn__gather(tn__scatter_add_node(none, last, terms, l.axis), last, l.axis);
    *axis = l.axis;
    return tn__node_is_error(*sums) ? *sums : indices;
}
