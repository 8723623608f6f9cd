/* SPDX-License-Identifier: MIT */
/*
 * Indexing by keys. Numbers and slices are a window; integer arrays, and masks as the positions of their true elements, become one
 * array of positions in the indexed axes taken together: those come first, flat, then take or scatter does it.
 */
#include "numpy/compose.h"

#include <string.h>

#include "array/build_parts.h"

/* What keys mean for an array. Axes of the array are source axes; `item` lists what the result is made of, in order. */
typedef struct plan {
    const tn_array *x;
    tn_slice_range range[TN_MAX_NDIM]; /* an axis: the window */
    bool number[TN_MAX_NDIM];          /* a source axis that a number drops */
    const tn_array *array[TN_MAX_NDIM]; /* a source axis that positions index, else NULL */
    int item[2 * TN_MAX_NDIM + 1];     /* a source axis, NEW, or NOTHING: an ellipsis for no axes, which keeps arrays apart all the same */
    int item_count, arrays;
    bool apart;                        /* something stands between the arrays: their axes come first */
    int first;                         /* the item that the first array is, or the first axis of a mask that chooses */
    bool mask_chooses;                 /* the only array is a mask, whose axes stay: what it says is asked for elsewhere */
    tn_shape positions;                /* the arrays' common shape */
} plan;

enum { NEW = -1, NOTHING = -2 };

static tn_array *too_many(const plan *p)
{
    return tn__refused(TN_ERR_INDEX, "indexing", "more keys than the array's %d axes", tn_ndim(p->x));
}

/* ---- reading the keys ---- */

/* Source axes that a key takes. */
static int axes_of(const tn_key *key)
{
    bool mask = key->kind == TN_KEY_ARRAY && tn_dtype_of(key->array) == TN_BOOL;
    return key->kind == TN_KEY_ELLIPSIS || key->kind == TN_KEY_NEWAXIS ? 0 : mask ? tn_ndim(key->array) : 1;
}

static void add_item(plan *p, int item)
{
    if (p->item_count < 2 * TN_MAX_NDIM)
        p->item[p->item_count++] = item;
}

static tn_array *add_number(plan *p, int axis, int64_t i)
{
    int64_t extent = tn_dim(p->x, axis), at = i < 0 ? i + extent : i;
    if (at < 0 || at >= extent)
        return tn__refused(TN_ERR_INDEX, "indexing", "index %lld is out of range for axis %d of extent %lld; expected %lld to %lld",
                           (long long)i, axis, (long long)extent, (long long)-extent, (long long)extent - 1);
    p->range[axis] = (tn_slice_range){at, at + 1, 1};
    p->number[axis] = true;
    add_item(p, axis);
    return NULL;
}

static tn_array *add_mask(plan *p, int axis, const tn_array *mask)
{
    tn_array *places[TN_MAX_NDIM];
    int ndim = tn_ndim(mask);
    for (int d = 0; d < ndim; d++)
        if (tn_dim(mask, d) != tn_dim(p->x, axis + d))
            return tn__refused(TN_ERR_INDEX, "indexing", "axis %d of a mask has extent %lld, the array's axis %d has %lld", d,
                               (long long)tn_dim(mask, d), axis + d, (long long)tn_dim(p->x, axis + d));
    if (p->mask_chooses) {
        p->first = p->item_count;
        for (int d = 0; d < ndim; d++)
            add_item(p, axis + d);
        return NULL;
    }
    if (tn_nonzero(mask, places) != TN_OK)
        return tn__leave_error(tn__enter());
    for (int d = 0; d < ndim; d++) {
        p->array[axis + d] = places[d];
        add_item(p, axis + d);
    }
    return NULL;
}

/* A mask of no axes is a mask of an axis of extent 1 in its place. */
static tn_array *add_truth(plan *p, int *axis, const tn_array *mask)
{
    if (tn_ndim(p->x) == TN_MAX_NDIM)
        return too_many(p);
    p->x = tn_expand_dims(p->x, *axis);
    p->array[*axis] = tn__count_up(p->x, tn_item_int(mask));
    add_item(p, (*axis)++);
    return NULL;
}

static tn_array *add_key(plan *p, int *axis, const tn_key *key, int missing)
{
    tn_array *error = NULL;
    switch (key->kind) {
    case TN_KEY_NUMBER:
        error = add_number(p, *axis, key->slice.start);
        break;
    case TN_KEY_SLICE:
        if (key->slice.step == 0)
            return tn__refused(TN_ERR_VALUE, "indexing", "a slice's step is 0; expected another number");
        p->range[*axis] = key->slice;
        add_item(p, *axis);
        break;
    case TN_KEY_NEWAXIS:
        add_item(p, NEW);
        break;
    case TN_KEY_ELLIPSIS:
        for (int i = 0; i < missing; i++)
            add_item(p, (*axis)++);
        if (missing == 0)
            add_item(p, NOTHING);
        break;
    case TN_KEY_ARRAY:
        if (tn_is_error(key->array))
            return tn__again(key->array);
        if (tn_dtype_of(key->array) == TN_BOOL) {
            error = tn_ndim(key->array) ? add_mask(p, *axis, key->array) : add_truth(p, axis, key->array);
        } else if (!tn_dtype_is_integer(tn_dtype_of(key->array))) {
            return tn__refused(TN_ERR_INDEX, "indexing", "an array of %s cannot be an index; expected integers or bool",
                               tn_dtype_name(tn_dtype_of(key->array)));
        } else {
            p->array[*axis] = tn__array_of(key->array);
            add_item(p, *axis);
        }
        break;
    }
    *axis += axes_of(key);
    return error;
}

/* With arrays, a number is an array too: it takes part in what is "between". */
static void numbers_to_arrays(plan *p)
{
    for (int axis = 0; axis < tn_ndim(p->x); axis++)
        if (p->number[axis]) {
            const tn_create_opts opts = {.dtype = TN_INT64, .device = tn_device_of(p->x)};
            p->array[axis] = tn_full_with((tn_shape){0}, (double)p->range[axis].start, &opts);
            p->range[axis] = (tn_slice_range){TN_NONE, TN_NONE, 1};
            p->number[axis] = false;
        }
}

/* Where the arrays stand, and the shape in which they broadcast. */
static tn_array *place_arrays(plan *p)
{
    int last = -1;
    p->first = -1;
    tn_array *common = NULL;
    for (int i = 0; i < p->item_count; i++) {
        int axis = p->item[i];
        if (axis < 0 || !p->array[axis])
            continue;
        if (p->first < 0)
            p->first = i;
        p->apart |= last >= 0 && i != last + 1;
        last = i;
        p->arrays++;
        tn_array *zero = tn_zeros_like(p->array[axis]);
        common = common ? tn_add(common, zero) : zero;
        if (tn_is_error(common))
            return tn__refused(TN_ERR_INDEX, "indexing", "the index arrays do not broadcast: %s", tn_message_of(common));
    }
    p->positions = tn_shape_of(common);
    return NULL;
}

static tn_array *make_plan(plan *p, const tn_array *x, int count, const tn_key *keys, bool mask_chooses)
{
    *p = (plan){.x = x, .mask_chooses = mask_chooses};
    if (tn_is_error(x))
        return tn__again(x);
    int taken = 0, axis = 0, ellipses = 0, arrays = 0, ndim = tn_ndim(x);
    for (int i = 0; i < count; i++) {
        taken += axes_of(&keys[i]);
        ellipses += keys[i].kind == TN_KEY_ELLIPSIS;
        arrays += keys[i].kind == TN_KEY_ARRAY;
    }
    if (taken > ndim)
        return too_many(p);
    if (ellipses > 1)
        return tn__refused(TN_ERR_INDEX, "indexing", "%d ellipses; expected one at most", ellipses);
    for (int d = 0; d < TN_MAX_NDIM; d++)
        p->range[d] = (tn_slice_range){TN_NONE, TN_NONE, 1};
    for (int i = 0; i < count; i++) {
        tn_array *error = add_key(p, &axis, &keys[i], ndim - taken);
        if (error)
            return error;
    }
    while (axis < tn_ndim(p->x))
        add_item(p, axis++);
    if (p->item_count > 2 * TN_MAX_NDIM)
        return too_many(p);
    if (arrays == 0 || mask_chooses)
        return NULL;
    numbers_to_arrays(p);
    return place_arrays(p);
}

/* ---- the two forms: window, and positions in front ---- */

static tn_array *window_of(const plan *p)
{
    return tn_slice(p->x, tn_ndim(p->x), p->range);
}

/* The result's shape, without the positions' axes, from the window's; the number of its axes before the first array. */
static tn_shape kept_shape(const plan *p, const tn_array *window, int *before)
{
    tn_shape shape = {0};
    *before = 0;
    for (int i = 0; i < p->item_count; i++) {
        int axis = p->item[i];
        if (axis == NOTHING || (axis != NEW && (p->number[axis] || p->array[axis])))
            continue;
        *before += p->arrays && i < p->first;
        shape.dim[shape.ndim++ % TN_MAX_NDIM] = axis == NEW ? 1 : tn_dim(window, axis);
    }
    return shape;
}

/* The order of axes that has the indexed ones first; their extents' product. */
static tn_axes indexed_first(const plan *p, const tn_array *window, int64_t *size)
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
    tn_array *turned = tn_transpose(window, order);
    tn_shape shape = {.ndim = 1, .dim = {size}};
    for (int d = indexed; d < tn_ndim(turned); d++)
        shape.dim[shape.ndim++] = tn_dim(turned, d);
    return tn_reshape(turned, shape);
}

/* Positions in the indexed axes taken together; one out of an axis's range becomes one out of all. */
static tn_array *flat_positions(const plan *p, int64_t size)
{
    tn_array *flat = NULL, *bad = NULL;
    for (int axis = 0; axis < tn_ndim(p->x); axis++) {
        if (!p->array[axis])
            continue;
        int64_t extent = tn_dim(p->x, axis);
        tn_array *i = tn_cast(p->array[axis], TN_INT64);
        if (p->arrays == 1)
            return i;
        tn_array *from_end = tn_where(tn_less(i, tn_weak_int(0)), tn_add(i, tn_weak_int(extent)), i);
        tn_array *out = tn_logical_or(tn_less(from_end, tn_weak_int(0)), tn_greater_equal(from_end, tn_weak_int(extent)));
        flat = flat ? tn_add(tn_multiply(flat, tn_weak_int(extent)), from_end) : from_end;
        bad = bad ? tn_logical_or(bad, out) : out;
    }
    return tn_where(bad, tn_weak_int(size), flat);
}

/* The axes of the positions, from the front to where the first array stands, or back. */
static tn_array *move_positions(const plan *p, tn_array *x, int before, bool back)
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
    return shape.ndim <= TN_MAX_NDIM ? NULL
                                     : tn__refused(TN_ERR_SHAPE, "indexing", "the result would have %d axes, the most is %d",
                                                   shape.ndim, TN_MAX_NDIM);
}

static tn_array *get(const tn_array *x, int count, const tn_key *keys)
{
    plan p;
    tn_array *error = make_plan(&p, x, count, keys, false);
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
    tn_array *taken = tn_take(flat, tn_broadcast_to(flat_positions(&p, size), p.positions), 0);
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

/* The mask that is the only array among keys, if it has axes; a number beside it moves these only where the value has several elements. */
static const tn_array *only_mask(const tn_array *value, int count, const tn_key *keys)
{
    const tn_array *mask = NULL;
    for (int i = 0; i < count; i++) {
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

/* x with a value that does not vary along the true elements of a mask: it is chosen or not, element by element, and nobody has to
 * know how many there are. NULL: the value may vary, or what to say of it depends on their number. */
static tn_array *chosen(const tn_array *x, const tn_array *value, int count, const tn_key *keys, bool add)
{
    const tn_array *mask = tn_is_error(x) ? NULL : only_mask(value, count, keys);
    plan p;
    if (!mask)
        return NULL;
    tn_array *error = make_plan(&p, x, count, keys, true);
    if (error)
        return error;
    tn_array *window = window_of(&p);
    int own_axes = tn_ndim(mask), before = 0, unused;
    tn_shape kept = kept_shape(&p, window, &unused), own = trimmed(tn_shape_of(value), kept.ndim - own_axes + 1);
    for (int i = 0; i < p.first; i++)
        before += p.item[i] == NEW || (p.item[i] != NOTHING && !p.number[p.item[i]]);
    int after = kept.ndim - own_axes - before;
    if (kept.ndim > TN_MAX_NDIM || own.ndim + own_axes - 1 > TN_MAX_NDIM || (own.ndim > after && own.dim[own.ndim - after - 1] != 1))
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
    result = tn_reshape(result, tn_shape_of(window));
    for (int axis = 0; axis < tn_ndim(x); axis++)
        if (p.range[axis].start != TN_NONE || p.range[axis].stop != TN_NONE || (p.range[axis].step != 1 && p.range[axis].step != TN_NONE))
            return tn_slice_update(x, tn_ndim(x), p.range, result);
    return result;
}

static tn_array *updated(const tn_array *x, const tn_array *value, int count, const tn_key *keys, bool add)
{
    plan p;
    if (tn_is_error(value))
        return tn__again(value);
    bool kind_counts = add && !tn_is_error(x) && !(tn__is_weak(value) && tn_dtype_is_integer(tn_dtype_of(value)));
    if (kind_counts && !tn_can_cast(tn_dtype_of(value), tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, "add_at", "values of %s cannot be added to %s; cast the array or the values",
                           tn_dtype_name(tn_dtype_of(value)), tn_dtype_name(tn_dtype_of(x)));
    tn_array *by_mask = chosen(x, value, count, keys, add);
    if (by_mask)
        return by_mask;
    tn_array *error = make_plan(&p, x, count, keys, false);
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
    tn_array *positions = tn_broadcast_to(flat_positions(&p, size), p.positions);
    tn_shape rest = tn_shape_of(flat), rows = rest;
    rows.dim[0] = tn_size(positions);
    values = tn_reshape(values, rows);
    positions = tn_ravel(positions);
    flat = add ? tn_scatter_add(flat, positions, values, 0) : tn_scatter_set(flat, positions, values, 0);
    tn_shape turned = {.ndim = order.count};
    for (int d = 0; d < order.count; d++) {
        turned.dim[d] = tn_dim(window, order.axis[d]);
        back.axis[order.axis[d]] = d;
    }
    result = tn_slice_update(p.x, tn_ndim(p.x), p.range, tn_transpose(tn_reshape(flat, turned), back));
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
    tn_status status = tn_is_error(value) ? tn_status_of(value) : tn_assign(x, value);
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
