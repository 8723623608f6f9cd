/* SPDX-License-Identifier: MIT */
/*
 * Indexing by keys. Numbers and slices are a window; integer arrays, and masks as the positions of their true elements,
 * become one array of positions in the indexed axes taken together: those come first, flat, then take or scatter does
 * it.
 */
#include "numpy/keys.h"

#include <string.h>

#include "array/build_parts.h"

/* ---- the two forms: window, and positions in front ---- */

static tn_array *window_of(const tn__index_plan *p)
{
    return tn_slice(p->x, tn_ndim(p->x), p->range);
}

/* The result's shape, without the positions' axes, from the window's; the number of its axes before the first array. */
static tn_shape kept_shape(const tn__index_plan *p, const tn_array *window, int *before)
{
    tn_shape shape = {0};
    *before = 0;
    for (int i = 0; i < p->item_count; i++) {
        int axis = p->item[i];
        if (axis == TN__INDEX_NOTHING || (axis != TN__INDEX_NEW && (p->number[axis] || p->array[axis])))
            continue;
        *before += p->arrays && i < p->first;
        shape.dim[shape.ndim++ % TN_MAX_NDIM] = axis == TN__INDEX_NEW ? 1 : tn_dim(window, axis);
    }
    return shape;
}

/* The order of axes that has the indexed ones first; their extents' product. */
static tn_axes indexed_first(const tn__index_plan *p, const tn_array *window, int64_t *size)
{
    tn_axes order = {0};
    *size = 1;
    for (int indexed = 1; indexed >= 0; indexed--)
        for (int axis = 0; axis < tn_ndim(window); axis++)
            if ((p->array[axis] != NULL) == indexed) {
                order.axis[order.count++] = axis;
                *size *= indexed ? tn_dim(window, axis) : 1;
            }
    return order;
}

/* The window as (positions, the other axes). */
static tn_array *flat_in_front(const tn_array *window, tn_axes order, int indexed, int64_t size)
{
    tn_array *transposed = tn_transpose(window, order);
    tn_shape shape = {.ndim = 1, .dim = {size}};
    for (int d = indexed; d < tn_ndim(transposed); d++)
        shape.dim[shape.ndim++] = tn_dim(transposed, d);
    return tn_reshape(transposed, shape);
}

/* One axis's positions, counted from the front, which are looked at when they are computed, or at once if nobody will
 * compute them. */
static tn_array *positions_within(const tn_array *indices, int64_t extent, bool now)
{
    tn__call call = tn__enter();
    tn__node *places = tn__positions("indexing", tn__node_of(indices, "indexing"));
    if (now && !tn__node_is_error(places) && tn__positions_look("indexing", places, extent) != TN_OK)
        return tn__leave_error(call);
    return tn__leave_array(call, tn__positions_within(places, 0, extent));
}

/* Positions in the indexed axes taken together. */
static tn_array *flat_positions(const tn__index_plan *p)
{
    tn_array *flat = NULL;
    int64_t count = 1;
    for (int i = 0; i < p->positions.ndim; i++)
        count *= p->positions.dim[i];
    for (int axis = 0; axis < tn_ndim(p->x); axis++) {
        if (!p->array[axis])
            continue;
        int64_t extent = tn_dim(p->x, axis);
        if (p->arrays == 1)
            return tn__again(p->array[axis]);
        tn_array *i = positions_within(p->array[axis], extent, count == 0);
        flat = flat ? tn_add(tn_multiply(flat, tn_weak_int(extent)), i) : i;
    }
    return flat;
}

/* The axes of the positions, from the front to where the first array stands, or back. */
static tn_array *move_positions(const tn__index_plan *p, tn_array *x, int before, bool back)
{
    int n = p->positions.ndim;
    if (p->apart || before == 0 || n == 0)
        return x;
    tn_axes front = {.count = n}, place = {.count = n};
    for (int i = 0; i < n; i++) {
        front.axis[i] = i;
        place.axis[i] = before + i;
    }
    return back ? tn_moveaxis(x, place, front) : tn_moveaxis(x, front, place);
}

static tn_shape joined(tn_shape a, tn_shape b)
{
    for (int d = 0; d < b.ndim && a.ndim < TN_MAX_NDIM + 1; d++)
        if (a.ndim++ < TN_MAX_NDIM)
            a.dim[a.ndim - 1] = b.dim[d];
    return a;
}

static tn_array *check_ndim(tn_shape shape)
{
    return shape.ndim <= TN_MAX_NDIM
               ? NULL
               : tn__refused(TN_ERR_SHAPE, "indexing", "the result would have %d axes, the most is %d", shape.ndim,
                             TN_MAX_NDIM);
}

static tn_array *get(const tn_array *x, int count, const tn_key *keys)
{
    tn__index_plan p;
    tn_array *error = tn__index_plan_make(&p, x, count, keys, false);
    if (error)
        return error;
    int before;
    tn_array *window = window_of(&p);
    tn_shape kept = kept_shape(&p, window, &before);
    error = check_ndim(joined(p.positions, kept));
    if (error || p.arrays == 0)
        return error ? error : tn_reshape(window, kept);
    int64_t size;
    tn_axes order = indexed_first(&p, window, &size);
    tn_array *flat = flat_in_front(window, order, p.arrays, size);
    tn_array *taken = tn_take(flat, tn_broadcast_to(flat_positions(&p), p.positions), 0);
    return move_positions(&p, tn_reshape(taken, joined(p.positions, kept)), before, false);
}

tn_array *tn_getitem(const tn_array *x, int count, const tn_key *keys)
{
    TN__COMPOSE(get(x, count, keys));
}

/* ---- writing ---- */

/* NumPy drops leading axes of extent 1 that are too many. */
static tn_shape trimmed(tn_shape own, int ndim)
{
    int extra = own.ndim - ndim;
    for (int d = 0; d < extra; d++)
        if (own.dim[d] != 1)
            extra = 0;
    if (extra > 0) {
        memmove(own.dim, own.dim + extra, sizeof(int64_t) * (size_t)(own.ndim - extra));
        own.ndim -= extra;
    }
    return own;
}

/* The value in x's dtype and the result's shape. */
static tn_array *fitted(const tn_array *value, const tn_array *x, tn_shape shape)
{
    tn_array *trim = tn_reshape(value, trimmed(tn_shape_of(value), shape.ndim));
    return tn_broadcast_to(tn_cast(trim, tn_dtype_of(x)), shape);
}

/* The mask that is the only array among keys, if it has axes. A number is an array, too, and may move axes: where the
 * value has one element, that does not matter. */
static const tn_array *only_mask(const tn_array *value, int count, const tn_key *keys)
{
    const tn_array *mask = NULL;
    for (int i = 0; i < count && keys; i++) {
        if (keys[i].kind == TN_KEY_NUMBER && tn_size(value) != 1)
            return NULL;
        if (keys[i].kind != TN_KEY_ARRAY)
            continue;
        if (mask || tn_is_error(keys[i].array) || tn_dtype_of(keys[i].array) != TN_BOOL || tn_ndim(keys[i].array) == 0)
            return NULL;
        mask = keys[i].array;
    }
    return mask;
}

static bool is_whole(tn_slice_range range)
{
    return range.start == TN_NONE && range.stop == TN_NONE && (range.step == 1 || range.step == TN_NONE);
}

/* The array with a new window, which may be all of it. */
static tn_array *with_window(const tn__index_plan *p, tn_array *window)
{
    for (int axis = 0; axis < tn_ndim(p->x); axis++)
        if (!is_whole(p->range[axis]))
            return tn_slice_update(p->x, tn_ndim(p->x), p->range, window);
    return window;
}

/* x with a value that does not vary along the true elements of a mask: it is chosen or not, element by element, and
 * nobody has to know how many there are. NULL: the value may vary, or what to say of it depends on their number. */
static tn_array *chosen(const tn_array *x, const tn_array *value, int count, const tn_key *keys, bool add)
{
    const tn_array *mask = tn_is_error(x) ? NULL : only_mask(value, count, keys);
    tn__index_plan p;
    if (!mask || tn_size(mask) == 0) /* one of no elements need not have x's extents */
        return NULL;
    tn_array *error = tn__index_plan_make(&p, x, count, keys, true);
    if (error)
        return error;
    tn_array *window = window_of(&p);
    int own_axes = tn_ndim(mask), before = 0, unused;
    tn_shape kept = kept_shape(&p, window, &unused), own = trimmed(tn_shape_of(value), kept.ndim - own_axes + 1);
    for (int i = 0; i < p.first; i++)
        before += p.item[i] == TN__INDEX_NEW || (p.item[i] != TN__INDEX_NOTHING && !p.number[p.item[i]]);
    int after = kept.ndim - own_axes - before;
    bool varies = own.ndim > after && own.dim[own.ndim - after - 1] != 1;
    if (varies || kept.ndim > TN_MAX_NDIM || own.ndim + own_axes - 1 > TN_MAX_NDIM)
        return NULL;
    if (own.ndim > after) { /* its one element along the positions is one along each axis of the mask */
        memmove(own.dim + own.ndim - after + own_axes - 1, own.dim + own.ndim - after, sizeof(int64_t) * (size_t)after);
        for (int d = 0; d < own_axes - 1; d++)
            own.dim[own.ndim - after + d] = 1;
        own.ndim += own_axes - 1;
    }
    tn_shape of_mask = tn_shape_of(mask);
    for (int d = 0; d < after; d++)
        of_mask.dim[of_mask.ndim++] = 1;
    tn_array *old = tn_reshape(window, kept), *fresh = fitted(tn_reshape(value, own), x, kept);
    tn_array *result = tn_where(tn_reshape(mask, of_mask), add ? tn_add(old, fresh) : fresh, old);
    return with_window(&p, tn_reshape(result, tn_shape_of(window)));
}

static tn_array *updated(const tn_array *x, const tn_array *value, int count, const tn_key *keys, bool add)
{
    tn__index_plan p;
    if (tn_is_error(value))
        return tn__again(value);
    bool kind_counts = add && !tn_is_error(x) && !(tn__is_weak(value) && tn_dtype_is_integer(tn_dtype_of(value)));
    if (kind_counts && !tn_can_cast(tn_dtype_of(value), tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, "add_at", "values of %s cannot be added to %s; cast the array or the values",
                           tn_dtype_name(tn_dtype_of(value)), tn_dtype_name(tn_dtype_of(x)));
    value = tn__number_as(x, value);
    if (tn_is_error(value))
        return tn__again(value);
    tn_array *by_mask = chosen(x, value, count, keys, add);
    if (by_mask)
        return by_mask;
    tn_array *error = tn__index_plan_make(&p, x, count, keys, false);
    if (error)
        return error;
    int before;
    tn_array *window = window_of(&p), *result;
    tn_shape kept = kept_shape(&p, window, &before), whole = joined(p.positions, kept);
    if ((error = check_ndim(whole)))
        return error;
    if (p.arrays == 0) {
        result = tn_reshape(fitted(value, x, kept), tn_shape_of(window));
        result = add ? tn_add(window, result) : result;
        return tn_slice_update(x, tn_ndim(x), p.range, result);
    }
    /* the value in the result's shape, then with the positions in front, flat */
    tn_shape placed = whole;
    if (!p.apart)
        for (int i = 0; i < whole.ndim; i++)
            placed.dim[i] = i < before ? kept.dim[i]
                            : i < before + p.positions.ndim ? p.positions.dim[i - before]
                                                            : kept.dim[i - p.positions.ndim];
    tn_array *values = move_positions(&p, fitted(value, x, placed), before, true);
    int64_t size;
    tn_axes order = indexed_first(&p, window, &size), back = {.count = order.count};
    tn_array *flat = flat_in_front(window, order, p.arrays, size);
    tn_array *positions = tn_broadcast_to(flat_positions(&p), p.positions);
    tn_shape rest = tn_shape_of(flat), rows = rest;
    rows.dim[0] = tn_size(positions);
    values = tn_reshape(values, rows);
    positions = tn_ravel(positions);
    flat = add ? tn_scatter_add(flat, positions, values, 0) : tn_scatter_set(flat, positions, values, 0);
    tn_shape transposed = {.ndim = order.count};
    for (int d = 0; d < order.count; d++) {
        transposed.dim[d] = tn_dim(window, order.axis[d]);
        back.axis[order.axis[d]] = d;
    }
    result = with_window(&p, tn_transpose(tn_reshape(flat, transposed), back));
    return tn_reshape(result, tn_shape_of(x));
}

tn_array *tn_index_update(const tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    TN__COMPOSE(updated(x, value, count, keys, false));
}

tn_array *tn_index_add(const tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    TN__COMPOSE(updated(x, value, count, keys, true));
}

tn_status tn__replace(tn_array *x, tn_array *value)
{
    tn_status status = tn_is_error(value) ? tn_status_of(value) : TN_OK;
    tn__node *node = tn__array_node(value);
    if (status == TN_OK && node->device->capabilities.late_failures) { /* else assigning looks itself */
        tn__call call = tn__enter();
        status = tn__indices_look(node);
        tn__leave(call);
    }
    status = status == TN_OK ? tn_assign(x, value) : status;
    tn_free(value);
    return status;
}

tn_status tn_setitem(tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    return tn__replace(x, tn_index_update(x, value, count, keys));
}

tn_status tn_add_at(tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    return tn__replace(x, tn_index_add(x, value, count, keys));
}
