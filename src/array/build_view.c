/* SPDX-License-Identifier: MIT */
/*
 * Views: reshaping, permuting, expanding, slicing; and UPDATE, the writing counterpart of a slice.
 * A view that changes nothing is its input; a view of a constant is a constant; views of views
 * collapse where backward does not care.
 */
#include "array/build_parts.h"

static tn__node *const_in_shape(tn__node *a, const tn__shape *shape)
{
    return tn__const_scalar(a->attr.scalar, a->dtype, shape, a->device);
}

static tn__node *no_memory(tn__op op)
{
    tn__fail_memory(tn__ops[op].name, sizeof(tn__shape));
    return tn__failed();
}

tn__node *tn__reshape_like(tn__node *a, const tn__shape *shape)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (a->shape == shape)
        return a;
    if (a->shape->size != shape->size) {
        char from[TN__SHAPE_TEXT], to[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, "reshape",
                   "cannot reshape %s, of %lld elements, into %s, of %lld; the products of the extents must agree (one "
                   "extent may be -1: it is computed)",
                   tn__shape_text(a->shape->ndim, a->shape->dim, from), (long long)a->shape->size,
                   tn__shape_text(shape->ndim, shape->dim, to), (long long)shape->size);
    }
    if (tn__foldable(a))
        return const_in_shape(a, shape);
    if (tn__collapsible(a, TN__OP_RESHAPE)) {
        a = a->in[0];
        if (a->shape == shape)
            return a;
    }
    return tn__apply(TN__OP_RESHAPE, a->dtype, shape, 1, &a, (tn__attr){.raw = {0}});
}

tn__node *tn__reshape(tn__node *a, int ndim, const int64_t *dim)
{
    TN__PASS_ERROR(a);
    tn_shape value = {.ndim = ndim};
    for (int i = 0; i < ndim && i < TN_MAX_NDIM; i++)
        value.dim[i] = dim[i];
    const tn__shape *shape = tn__shape_make("reshape", value, a->dtype);
    return shape ? tn__reshape_like(a, shape) : tn__failed();
}

tn__node *tn__permute(tn__node *a, const uint8_t perm[TN_MAX_NDIM])
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    uint8_t whole[TN_MAX_NDIM] = {0};
    int ndim = a->shape->ndim;
    bool collapse = tn__collapsible(a, TN__OP_PERMUTE);
    for (int i = 0; i < ndim; i++)
        whole[i] = collapse ? a->attr.perm[perm[i]] : perm[i];
    if (collapse)
        a = a->in[0];

    int64_t dim[TN_MAX_NDIM];
    tn__attr attr = {.raw = {0}};
    bool same = true;
    for (int i = 0; i < ndim; i++) {
        dim[i] = a->shape->dim[whole[i]];
        attr.perm[i] = whole[i];
        same = same && whole[i] == i;
    }
    if (same)
        return a;
    const tn__shape *shape = tn__shape_intern(ndim, dim);
    if (!shape)
        return no_memory(TN__OP_PERMUTE);
    if (tn__foldable(a))
        return const_in_shape(a, shape);
    return tn__apply(TN__OP_PERMUTE, a->dtype, shape, 1, &a, attr);
}

tn__node *tn__swap_last(tn__node *a)
{
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    if (ndim < 2)
        TN__REFUSE(TN_ERR_SHAPE, "swapaxes", "expected at least 2 axes, got %d", ndim);
    uint8_t perm[TN_MAX_NDIM];
    for (int i = 0; i < TN_MAX_NDIM; i++)
        perm[i] = (uint8_t)i;
    perm[ndim - 2] = (uint8_t)(ndim - 1);
    perm[ndim - 1] = (uint8_t)(ndim - 2);
    return tn__permute(a, perm);
}

tn__node *tn__insert_axis(const char *operation, tn__node *a, int axis)
{
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    if (axis < -ndim - 1 || axis > ndim)
        TN__REFUSE(TN_ERR_INDEX, operation,
                   "axis %d is out of range for a result of %d axes; expected %d to %d", axis,
                   ndim + 1, -ndim - 1, ndim);
    if (ndim == TN_MAX_NDIM)
        TN__REFUSE(TN_ERR_SHAPE, operation, "the result would have %d axes, the most is %d",
                   ndim + 1, TN_MAX_NDIM);
    if (axis < 0)
        axis += ndim + 1;
    int64_t dim[TN_MAX_NDIM];
    for (int i = 0; i <= ndim; i++)
        dim[i] = i < axis ? a->shape->dim[i] : i == axis ? 1 : a->shape->dim[i - 1];
    return tn__reshape(a, ndim + 1, dim);
}

tn__node *tn__expand(tn__node *a, const tn__shape *shape)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (a->shape == shape)
        return a;
    int64_t aligned[TN_MAX_NDIM];
    int new_axes = shape->ndim - a->shape->ndim;
    bool fits = new_axes >= 0;
    for (int i = 0; fits && i < shape->ndim; i++) {
        aligned[i] = i < new_axes ? 1 : a->shape->dim[i - new_axes];
        fits = aligned[i] == 1 || aligned[i] == shape->dim[i];
    }
    if (!fits) {
        char from[TN__SHAPE_TEXT], to[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, "broadcast_to",
                   "shape %s does not broadcast to %s; from the last axis on, its extents must be 1 or equal",
                   tn__shape_text(a->shape->ndim, a->shape->dim, from),
                   tn__shape_text(shape->ndim, shape->dim, to));
    }
    if (tn__foldable(a))
        return const_in_shape(a, shape);
    if (new_axes > 0)
        a = tn__reshape(a, shape->ndim, aligned);
    if (a->shape == shape || tn__node_is_error(a))
        return a;
    return tn__apply(TN__OP_EXPAND, a->dtype, shape, 1, &a, (tn__attr){.raw = {0}});
}

/* The list start, step an axis that SLICE and UPDATE carry. */
static const tn__ints *window(int ndim, const int64_t *start, const int64_t *step)
{
    int64_t v[2 * TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++) {
        v[2 * i] = start[i];
        v[2 * i + 1] = step[i];
    }
    return tn__ints_intern(2 * ndim, v);
}

/* Checks a window's elements against the extents they are taken from. */
static bool window_fits(tn__op op, int ndim, const int64_t *from, const int64_t *dim,
                        const int64_t *start, const int64_t *step, int stride)
{
    for (int i = 0; i < ndim; i++) {
        int64_t first = start[i * stride], last = 0;
        bool overflow =
            dim[i] > 0 && (__builtin_mul_overflow(dim[i] - 1, step[i * stride], &last) ||
                           __builtin_add_overflow(last, first, &last));
        if (dim[i] > 0 &&
            (overflow || first < 0 || first >= from[i] || last < 0 || last >= from[i])) {
            tn__fail(TN_ERR_INDEX, tn__ops[op].name,
                     "axis %d has extent %lld; a window of %lld elements from %lld by steps of %lld leaves it",
                     i, (long long)from[i], (long long)dim[i], (long long)first,
                     (long long)step[i * stride]);
            return false;
        }
    }
    return true;
}

/* A window of a value is a value: nothing is recorded, so that a loop over windows evaluates one plan whatever their
 * starts are. */
static tn__node *slice_value(tn__node *a, const int64_t *start, const int64_t *step, const tn__shape *shape)
{
    int64_t stride[TN_MAX_NDIM], plain[TN_MAX_NDIM], offset = a->offset;
    int ndim = shape->ndim;
    bool contiguous = true;
    tn__strides_contiguous(ndim, a->shape->dim, stride);
    tn__strides_contiguous(ndim, shape->dim, plain);
    for (int i = 0; i < ndim; i++) {
        int64_t from = a->strides ? a->strides->v[i] : stride[i];
        if (shape->size > 0)
            offset += start[i] * from;
        stride[i] = step[i] * from;
        contiguous = contiguous && (shape->dim[i] <= 1 || stride[i] == plain[i]);
    }
    const tn__ints *strides = contiguous ? NULL : tn__ints_intern(ndim, stride);
    if (!contiguous && !strides)
        return no_memory(TN__OP_SLICE);
    tn__node *slice = tn__node_value(a->storage, a->dtype, shape, offset, strides);
    if (!tn__node_is_error(slice) && tn__no_grad_depth == 0)
        slice->flags |= TN__NODE_SLICE;
    return slice;
}

tn__node *tn__slice_node(tn__node *a, const int64_t *start, const int64_t *step, const int64_t *dim)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    bool whole = true;
    for (int i = 0; i < ndim; i++)
        whole = whole && dim[i] == a->shape->dim[i] &&
                (dim[i] == 0 || (start[i] == 0 && (step[i] == 1 || dim[i] == 1)));
    if (whole)
        return a;
    if (!window_fits(TN__OP_SLICE, ndim, a->shape->dim, dim, start, step, 1))
        return tn__failed();
    const tn__shape *shape = tn__shape_intern(ndim, dim);
    if (!shape)
        return no_memory(TN__OP_SLICE);
    if (tn__foldable(a))
        return const_in_shape(a, shape);
    if (a->storage && !(a->flags & TN__NODE_NEEDS_GRAD))
        return slice_value(a, start, step, shape);
    const tn__ints *ints = window(ndim, start, step);
    if (!ints)
        return no_memory(TN__OP_SLICE);
    return tn__apply(TN__OP_SLICE, a->dtype, shape, 1, &a, (tn__attr){.ints = ints});
}

tn__node *tn__update(tn__node *base, tn__node *value, const tn__ints *ints)
{
    TN__PASS_ERROR(base);
    TN__PASS_ERROR(value);
    base = tn__strong(base);
    TN__PASS_ERROR(base);
    tn__node *both[] = {base, value};
    tn__device *device = tn__common_device("update", 2, both);
    if (!device)
        return tn__failed();
    int ndim = base->shape->ndim;
    if (value->shape->ndim != ndim || ints->count != 2 * ndim)
        TN__REFUSE(TN_ERR_SHAPE, "update", "expected a value of %d axes, as the base has, got %d",
                   ndim, value->shape->ndim);
    if (!window_fits(TN__OP_UPDATE, ndim, base->shape->dim, value->shape->dim, ints->v, ints->v + 1,
                     2))
        return tn__failed();
    both[0] = tn__adapt(base, base->dtype, base->shape, device);
    both[1] = tn__adapt(value, base->dtype, value->shape, device);
    for (int i = 0; i < 2; i++)
        TN__PASS_ERROR(both[i]);
    if (value->shape->size == 0)
        return tn__made_of_none(both[0], both[1]);
    return tn__apply(TN__OP_UPDATE, base->dtype, base->shape, 2, both, (tn__attr){.ints = ints});
}

tn__node *tn__update_along(tn__node *base, tn__node *value, int axis, int64_t at)
{
    TN__PASS_ERROR(base);
    int64_t start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM];
    start[axis] = at;
    for (int i = 0; i < base->shape->ndim; i++)
        step[i] = 1;
    const tn__ints *ints = window(base->shape->ndim, start, step);
    return ints ? tn__update(base, value, ints) : no_memory(TN__OP_UPDATE);
}

tn__node *tn__joined(int count, tn__node *const *parts, int axis)
{
    int64_t dim[TN_MAX_NDIM], at = 0;
    for (int i = 0; i < count; i++)
        TN__PASS_ERROR(parts[i]);
    if (count == 1)
        return parts[0];
    for (int i = 0; i < parts[0]->shape->ndim; i++)
        dim[i] = parts[0]->shape->dim[i];
    dim[axis] = 0;
    for (int i = 0; i < count; i++)
        dim[axis] += parts[i]->shape->dim[axis];
    const tn__shape *shape = tn__shape_intern(parts[0]->shape->ndim, dim);
    if (!shape)
        return no_memory(TN__OP_UPDATE);
    tn__node *all = tn__const(0, (tn_dtype)parts[0]->dtype, shape, parts[0]->device);
    for (int i = 0; i < count; i++) {
        all = tn__update_along(all, parts[i], axis, at);
        at += parts[i]->shape->dim[axis];
    }
    return all;
}
