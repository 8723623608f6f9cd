/* SPDX-License-Identifier: MIT */
/* Reading the keys of an index: numbers, slices, new axes, ellipses, integer arrays, and masks as positions of what is
 * true. */
#include "numpy/keys.h"

#include "array/build_parts.h"

static tn_array *too_many(const tn__index_plan *p)
{
    return tn__refused(TN_ERR_INDEX, "indexing", "more keys than the array's %d axes", tn_ndim(p->x));
}

/* Source axes that a key takes. */
static int axes_of(const tn_key *key)
{
    bool mask = key->kind == TN_KEY_ARRAY && tn_dtype_of(key->array) == TN_BOOL;
    return key->kind == TN_KEY_ELLIPSIS || key->kind == TN_KEY_NEWAXIS ? 0 : mask ? tn_ndim(key->array) : 1;
}

/* Those that there is no room for are counted, and refused in the end. */
static void add_item(tn__index_plan *p, int item)
{
    if (p->item_count < 2 * TN_MAX_NDIM)
        p->item[p->item_count] = item;
    p->item_count++;
}

static tn_array *add_number(tn__index_plan *p, int axis, int64_t i)
{
    int64_t extent = tn_dim(p->x, axis), at = i < 0 ? i + extent : i;
    if (at < 0 || at >= extent)
        return tn__refused(TN_ERR_INDEX, "indexing",
                           "index %lld is out of range for axis %d of extent %lld; expected %lld to %lld", (long long)i,
                           axis, (long long)extent, (long long)-extent, (long long)extent - 1);
    p->range[axis] = (tn_slice_range){at, at + 1, 1};
    p->number[axis] = true;
    add_item(p, axis);
    return NULL;
}

static tn_array *add_mask(tn__index_plan *p, int axis, const tn_array *mask)
{
    tn_array *places[TN_MAX_NDIM];
    int ndim = tn_ndim(mask);
    for (int d = 0; d < ndim; d++)
        if (tn_dim(mask, d) != tn_dim(p->x, axis + d) && tn_dim(mask, d) != 0) /* 0 fits any extent, as in NumPy */
            return tn__refused(TN_ERR_INDEX, "indexing",
                               "axis %d of a mask has extent %lld, the array's axis %d has %lld", d,
                               (long long)tn_dim(mask, d), axis + d, (long long)tn_dim(p->x, axis + d));
    if (p->mask_chooses) {
        p->first = p->item_count;
        for (int d = 0; d < ndim; d++)
            add_item(p, axis + d);
        return NULL;
    }
    if (tn_nonzero(mask, places) != TN_OK)
        return tn__failed_array();
    for (int d = 0; d < ndim; d++) {
        p->array[axis + d] = places[d];
        add_item(p, axis + d);
    }
    return NULL;
}

/* A mask of no axes is a mask of an axis of extent 1 in its place. */
static tn_array *add_truth(tn__index_plan *p, int *axis, const tn_array *mask)
{
    if (tn_ndim(p->x) == TN_MAX_NDIM)
        return too_many(p);
    if (tn_eval(mask) != TN_OK)
        return tn__failed_array();
    p->x = tn_expand_dims(p->x, *axis);
    p->array[*axis] = tn__count_up(p->x, tn_item_int(mask));
    add_item(p, (*axis)++);
    return NULL;
}

static tn_array *add_key(tn__index_plan *p, int *axis, const tn_key *key, int missing)
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
        add_item(p, TN__INDEX_NEW);
        break;
    case TN_KEY_ELLIPSIS:
        for (int i = 0; i < missing; i++)
            add_item(p, (*axis)++);
        if (missing == 0)
            add_item(p, TN__INDEX_NOTHING);
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
static void numbers_to_arrays(tn__index_plan *p)
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
static tn_array *place_arrays(tn__index_plan *p)
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
            return tn__refused(TN_ERR_INDEX, "indexing", "the index arrays do not broadcast: %s",
                               tn_message_of(common));
    }
    p->positions = tn_shape_of(common);
    return NULL;
}

tn_array *tn__index_plan_make(tn__index_plan *p, const tn_array *x, int count, const tn_key *keys, bool mask_chooses)
{
    *p = (tn__index_plan){.x = x, .mask_chooses = mask_chooses};
    if (tn_is_error(x))
        return tn__again(x);
    enum { MOST = 4 * TN_MAX_NDIM }; /* more than any axes, new ones and masks without axes come to */
    if (count < 0 || count > MOST || (count > 0 && !keys))
        return tn__refused(TN_ERR_VALUE, "indexing", "expected 0 to %d keys, got %d of them%s", MOST, count,
                           keys ? "" : ", NULL");
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
