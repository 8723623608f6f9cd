/* SPDX-License-Identifier: MIT */
/* Positions: taking and putting by them, finding those of what is not zero, choosing. */
#include "numpy/compose.h"

#include <string.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "core/memory.h"

/* ---- modes of positions out of range ---- */

/* The positions, brought into range as the mode says; an error array for a mode there is not. */
static tn_array *in_mode(const char *operation, const tn_array *indices, int64_t extent, const char *mode)
{
    if (!mode || strcmp(mode, "raise") == 0)
        return tn_is_error(indices) || tn_dtype_of(indices) != TN_BOOL ? tn__array_of(indices)
                                                                       : tn_cast(indices, TN_INT64);
    if (extent == 0 && tn_size(indices) > 0)
        return tn__refused(TN_ERR_INDEX, operation, "no position is in an axis of extent 0");
    if (strcmp(mode, "wrap") == 0) {
        bool is_unsigned = !tn_is_error(indices) && tn_dtype_of(indices) == TN_UINT64;
        tn_array *wide = is_unsigned ? tn__array_of(indices) : tn_cast(indices, TN_INT64);
        return tn_cast(tn_remainder(wide, tn_weak_int(extent ? extent : 1)), TN_INT64);
    }
    tn_array *wide = tn__as_positions(indices);
    if (strcmp(mode, "clip") == 0)
        return tn_clip(wide, tn_weak_int(0), tn_weak_int(extent ? extent - 1 : 0));
    return tn__refused(TN_ERR_NAME, operation, "no mode '%s'; there are raise, wrap and clip", mode);
}

/* An error, or NULL: what may not be positions. */
static tn_array *no_positions(const char *operation, const tn_array *indices)
{
    tn_dtype dtype = tn_dtype_of(indices);
    if (tn_dtype_is_integer(dtype) || dtype == TN_BOOL)
        return NULL;
    return tn__refused(TN_ERR_DTYPE, operation, "indices must be integers, got %s", tn_dtype_name(dtype));
}

static tn_array *take(const tn_array *x, const tn_array *indices, const tn_take_opts *opts)
{
    if (opts && !TN__AXES_GIVEN("take", opts, axis))
        return tn__failed_array();
    tn_array *y = opts && opts->axis.count ? tn__again(x) : tn_ravel(x);
    int axis = tn_is_error(y) ? -1 : tn__axis_of_list("take", opts ? opts->axis : (tn_axes){0}, 0, tn_ndim(y));
    if (tn_is_error(y) || tn_is_error(indices))
        return tn__again(tn_is_error(y) ? y : indices);
    if (axis < 0)
        return tn__failed_array();
    tn_array *refused = no_positions("take", indices);
    if (refused)
        return refused;
    tn_array *places = in_mode("take", indices, tn_dim(y, axis), opts ? opts->mode : NULL);
    return tn_take(y, places, axis);
}

tn_array *tn_take_with(const tn_array *x, const tn_array *indices, const tn_take_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, take(x, indices, opts)));
}

/* values again and again until there are n. */
static tn_array *cycled(const tn_array *values, int64_t n)
{
    return tn_resize(values, tn__vector(n));
}

static tn_array *put(const tn_array *x, const tn_array *indices, const tn_array *values, const char *mode)
{
    values = tn__number_as(x, values);
    if (tn_is_error(values) || tn_is_error(indices))
        return tn__again(tn_is_error(values) ? values : indices);
    tn_array *refused = tn_size(indices) ? no_positions("put", indices) : NULL;
    if (refused)
        return refused;
    tn_array *flat = tn_ravel(x), *places = in_mode("put", tn_ravel(indices), tn_size(x), mode);
    if (tn_is_error(flat) || tn_size(places) == 0 || tn_size(values) == 0)
        return tn__again(x);
    tn_array *v = tn_cast(cycled(values, tn_size(places)), tn_dtype_of(x));
    return tn_reshape(tn_scatter_set(flat, places, v, 0), tn_shape_of(x));
}

tn_status tn_put(tn_array *x, const tn_array *indices, const tn_array *values, const char *mode)
{
    tn_scope_push();
    tn_array *y = put(x, indices, values, mode);
    return tn__replace(x, tn__composed(y));
}

static tn__node *put_along(tn__node *x, tn__node *indices, tn__node *values, int axis)
{
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(values);
    return tn__scatter_node(TN__OP_SCATTER_SET, x, indices, tn__cast(values, (tn_dtype)x->dtype), axis);
}

tn_status tn_put_along_axis(tn_array *x, const tn_array *indices, const tn_array *values, int axis)
{
    const char *name = "put_along_axis";
    tn__call call = tn__enter();
    return tn__replace(x, tn__leave_array(call, put_along(tn__node_of(x, name), tn__node_of(indices, name),
                                                          tn__node_of(values, name), axis)));
}

static tn_array *fill_diagonal(const tn_array *x, const tn_array *value, bool wrap)
{
    int ndim = tn_ndim(x);
    if (tn_is_error(x))
        return tn__again(x);
    if (ndim < 2)
        return tn__refused(TN_ERR_SHAPE, "fill_diagonal", "expected at least 2 axes, got %d", ndim);
    value = tn__number_as(x, value);
    if (tn_is_error(value))
        return tn__again(value);
    int64_t n = tn_dim(x, 0), columns = tn_dim(x, 1), size = tn_size(x), stop = size, step = columns + 1, power = 1;
    for (int d = 0; ndim > 2 && d < ndim; d++, power *= n) {
        if (tn_dim(x, d) != n)
            return tn__refused(TN_ERR_SHAPE, "fill_diagonal", "expected equal extents of more than two axes");
        step = d ? step + power : 1; /* 1 + n + n^2 + ... */
    }
    if (ndim == 2 && !wrap && columns * columns < size)
        stop = columns * columns;
    const tn_slice_range diagonal = {0, stop, step};
    tn_array *flat = tn_ravel(x);
    int64_t count = tn_size(tn_slice(flat, 1, &diagonal));
    tn_array *values = tn_size(value) == 1 ? tn_reshape(value, tn__vector(1)) : cycled(value, count);
    return tn_reshape(tn_slice_update(flat, 1, &diagonal, values), tn_shape_of(x));
}

tn_status tn_fill_diagonal(tn_array *x, const tn_array *value, bool wrap)
{
    tn_scope_push();
    tn_array *y = fill_diagonal(x, value, wrap);
    return tn__replace(x, tn__composed(y));
}

/* Elements of a vector at positions that are known to be in range: nobody looks at them before they are written. */
static tn_array *taken_within(const tn_array *vector, const tn_array *positions)
{
    tn__call call = tn__enter();
    tn__node *places = tn__reshape(tn__node_of(positions, "place"), 1, (int64_t[]){tn_size(positions)});
    return tn__leave_array(call, tn__gather_known(tn__node_of(vector, "place"), places, 0, 0));
}

static tn_array *place(const tn_array *x, const tn_array *mask, const tn_array *values, bool in_order)
{
    if (tn_size(mask) != tn_size(x))
        return tn__refused(TN_ERR_SHAPE, "place", "a mask of %lld elements for an array of %lld",
                           (long long)tn_size(mask), (long long)tn_size(x));
    if (tn_size(values) == 0 && in_order && tn_size(x) > 0 && tn_item(tn_any_with(mask, NULL)) != 0)
        return tn__refused(TN_ERR_VALUE, "place", "there are no values to place");
    values = tn__number_as(x, values);
    if (tn_is_error(values))
        return tn__again(values);
    tn_array *flat = tn_reshape(tn_cast(mask, TN_BOOL), tn__vector(tn_size(x)));
    if (tn_size(x) == 0 || tn_size(values) == 0)
        return tn__again(x);
    tn_array *at = in_order ? tn_subtract(tn_cumsum_with(flat, NULL), tn_weak_int(1)) : tn__count_up(x, tn_size(x));
    tn_array *v = taken_within(tn_ravel(values), tn_remainder(at, tn_weak_int(tn_size(values))));
    tn_array *y = tn_where(flat, tn_cast(v, tn_dtype_of(x)), tn_ravel(x));
    return tn_reshape(y, tn_shape_of(x));
}

tn_status tn_place(tn_array *x, const tn_array *mask, const tn_array *values)
{
    tn_scope_push();
    tn_array *y = place(x, mask, values, true);
    return tn__replace(x, tn__composed(y));
}

tn_status tn_putmask(tn_array *x, const tn_array *mask, const tn_array *values)
{
    tn_scope_push();
    tn_array *y = place(x, mask, values, false);
    return tn__replace(x, tn__composed(y));
}

/* ---- what is not zero ---- */

/* In the host's memory they are looked at one by one. */
static tn_array *listed(const tn_array *mask)
{
    const unsigned char *set = tn_data(mask);
    if (!set)
        return tn__failed_array();
    int64_t size = tn_size(mask), count = 0, found = 0;
    for (int64_t i = 0; i < size; i++)
        count += set[i] != 0;
    int64_t *places = tn__alloc(sizeof *places * (size_t)(count + 1));
    if (!places)
        return tn__refused(TN_ERR_MEMORY, "nonzero", "no memory for %lld positions", (long long)count);
    for (int64_t i = 0; i < size; i++) { /* without a branch: what is behind the last one is written, too */
        places[found] = i;
        found += set[i] != 0;
    }
    tn_array *result = tn__positions_like(mask, places, count);
    tn__free(places);
    return result;
}

/* Elsewhere they are counted first. */
static tn_array *counted(const tn_array *mask)
{
    tn_array *count = tn_count_nonzero_with(mask, NULL);
    if (tn_eval_all(2, (const tn_array *const[]){mask, count}) != TN_OK)
        return tn__failed_array();
    TN__RETURN(tn__nonzero(tn__node_of(mask, "nonzero"), tn_item_int(count)));
}

static tn_array *flatnonzero(const tn_array *x)
{
    if (tn_is_error(x) || tn_size(x) == 0)
        return tn_is_error(x) ? tn__again(x) : tn__count_up(x, 0);
    tn_array *mask = tn_cast(tn_ravel(x), TN_BOOL);
    if (tn_device_of(x).kind == TN_DEVICE_CPU)
        return listed(mask);
    return counted(mask);
}

tn_array *tn_flatnonzero(const tn_array *x)
{
    TN__COMPOSE(flatnonzero(x));
}

/* Flat positions as one array an axis. */
static void unravel(tn_array *flat, tn_shape shape, tn_array **out)
{
    for (int d = shape.ndim - 1; d >= 0; d--) {
        tn_array *extent = tn_weak_int(shape.dim[d] > 0 ? shape.dim[d] : 1);
        out[d] = d ? tn_remainder(flat, extent) : flat;
        flat = d ? tn_floor_divide(flat, extent) : flat;
    }
}

tn_status tn_nonzero(const tn_array *x, tn_array **out)
{
    if (!out)
        return tn__fail_null("nonzero", "room for an array an axis");
    tn_scope_push();
    tn_shape shape = tn_shape_of(x);
    if (shape.ndim == 0) {
        out[0] = tn_is_error(x)
                     ? tn__again(x)
                     : tn__refused(TN_ERR_SHAPE, "nonzero", "a 0-d array has no positions; see tn_atleast_1d");
        return tn__composed_all(1, out);
    }
    tn_array *flat = flatnonzero(x);
    unravel(flat, shape, out);
    return tn__composed_all(shape.ndim, out);
}

static tn_array *argwhere(const tn_array *x)
{
    tn_array *places[TN_MAX_NDIM];
    if (tn_ndim(x) == 0 && !tn_is_error(x)) {
        const tn_create_opts opts = {.dtype = TN_INT64, .device = tn_device_of(x)};
        return tn_zeros_with((tn_shape){.ndim = 2, .dim = {tn_size(flatnonzero(x)), 0}}, &opts);
    }
    if (tn_nonzero(x, places) != TN_OK)
        return tn__again(tn_is_error(x) ? x : places[0]);
    return tn_stack(tn_ndim(x), (const tn_array *const *)places, 1);
}

tn_array *tn_argwhere(const tn_array *x)
{
    TN__COMPOSE(argwhere(x));
}

static tn_array *compress(const tn_array *condition, const tn_array *x, tn_axes axis)
{
    if (!tn_is_error(condition) && tn_ndim(condition) != 1)
        return tn__refused(TN_ERR_SHAPE, "compress", "expected a vector as condition, got %d axes", tn_ndim(condition));
    const tn_take_opts opts = {.axis = axis};
    return take(x, flatnonzero(condition), &opts);
}

tn_array *tn_compress(const tn_array *condition, const tn_array *x, tn_axes axis)
{
    TN__COMPOSE(compress(condition, x, axis));
}

tn_array *tn_compress_with(const tn_array *condition, const tn_array *x, tn_axes axis, const tn_out_opts *opts)
{
    TN__COMPOSE(tn__given_out("compress", compress(condition, x, axis), opts));
}

tn_array *tn_extract(const tn_array *condition, const tn_array *x)
{
    TN__COMPOSE(take(x, flatnonzero(condition), NULL));
}

/* ---- choosing ---- */

/* The dtype of all choices together, to which C numbers adapt; `otherwise` may be NULL. */
static tn_dtype dtype_of_choices(int count, const tn_array *const *choices, const tn_array *otherwise)
{
    tn_array *all = NULL;
    for (int weak = 0; weak < 2; weak++)
        for (int k = 0; k <= count; k++) {
            const tn_array *x = k < count ? choices[k] : otherwise;
            if (!x || tn__is_weak(x) != weak)
                continue;
            const tn_create_opts opts = {.dtype = tn_dtype_of(x), .device = tn_device_of(x)};
            tn_array *one = weak ? tn__again(x) : tn_zeros_with((tn_shape){0}, &opts);
            all = all ? tn_where(tn_weak_bool(true), all, one) : one;
        }
    return tn_is_error(all) ? TN_DTYPE_DEFAULT : tn_dtype_of(all);
}

/* Are all from 0 to extent - 1? Looked at at once, as nothing else would notice; latches which is not, and where. */
static bool all_within(const char *operation, const tn_array *given, int64_t extent)
{
    tn__call call = tn__enter();
    tn__node *node = tn__labels(tn__node_of(given, operation));
    tn_status status = tn__node_is_error(node) ? tn__error_raise(node->error)
                                               : tn__positions_look(operation, node, extent);
    tn__leave(call);
    return status == TN_OK;
}

static tn_array *choose(const tn_array *which, int count, const tn_array *const *choices, const char *mode)
{
    if (count < 1 || !choices)
        return tn__refused(TN_ERR_VALUE, "choose", "expected 1 or more choices, got %d", count);
    if (!tn_is_error(which) && !tn_dtype_is_integer(tn_dtype_of(which)) && tn_dtype_of(which) != TN_BOOL)
        return tn__refused(TN_ERR_DTYPE, "choose", "expected integers, got %s", tn_dtype_name(tn_dtype_of(which)));
    tn_array *i = in_mode("choose", which, count, mode);
    if (tn_is_error(i))
        return i;
    i = tn__as_positions(i);
    bool raises = !mode || strcmp(mode, "raise") == 0;
    if (raises && !tn_is_error(i) && !all_within("choose", which, count))
        return tn__failed_array();
    tn_dtype dtype = dtype_of_choices(count, choices, NULL);
    tn_array *y = dtype ? tn_cast(choices[count - 1], dtype) : tn__array_of(choices[count - 1]);
    for (int k = count - 2; k >= 0; k--)
        y = tn_where(tn_equal(i, tn_weak_int(k)), dtype ? tn_cast(choices[k], dtype) : tn__array_of(choices[k]), y);
    return count == 1 ? tn_where(tn_less(i, tn_weak_int(0)), y, y) : y;
}

tn_array *tn_choose(const tn_array *which, int count, const tn_array *const *choices, const char *mode)
{
    TN__COMPOSE(choose(which, count, choices, mode));
}

tn_array *tn_choose_with(const tn_array *which, int count, const tn_array *const *choices, const char *mode,
                         const tn_out_opts *opts)
{
    TN__COMPOSE(tn__given_out("choose", choose(which, count, choices, mode), opts));
}

static tn_array *choose_first(int count, const tn_array *const *conditions, const tn_array *const *choices,
                              const tn_array *otherwise)
{
    if (count < 1)
        return tn__refused(TN_ERR_VALUE, "select", "expected 1 or more conditions, got %d", count);
    if (!conditions || !choices)
        return tn__refused(TN_ERR_VALUE, "select", "expected conditions and as many choices, got NULL");
    tn_dtype dtype = dtype_of_choices(count, choices, otherwise);
    tn_array *y = dtype ? tn_cast(otherwise, dtype) : tn__again(otherwise);
    for (int k = count - 1; k >= 0; k--) {
        if (!tn_is_error(conditions[k]) && tn_dtype_of(conditions[k]) != TN_BOOL)
            return tn__refused(TN_ERR_DTYPE, "select", "condition %d is %s, expected bool", k,
                               tn_dtype_name(tn_dtype_of(conditions[k])));
        y = tn_where(conditions[k], dtype ? tn_cast(choices[k], dtype) : tn__again(choices[k]), y);
    }
    return y;
}

static tn_array *piecewise(const tn_array *x, int count, const tn_array *const *conditions,
                           const tn_array *const *values, const tn_array *otherwise)
{
    x = tn__array_of(x);
    if (tn_is_error(x))
        return tn__again(x);
    if (count > 0 && (!conditions || !values))
        return tn__refused(TN_ERR_VALUE, "piecewise", "expected conditions and as many values, got NULL");
    tn_dtype dtype = tn_dtype_of(x);
    tn_array *y = tn_zeros_like(x);
    if (otherwise)
        y = tn_broadcast_to(tn_cast(otherwise, dtype), tn_shape_of(x));
    for (int k = 0; k < count; k++) {
        bool fits = tn_ndim(conditions[k]) == tn_ndim(x);
        for (int d = 0; fits && d < tn_ndim(x); d++)
            fits = tn_dim(conditions[k], d) == tn_dim(x, d);
        if (!fits && !tn_is_error(conditions[k]))
            return tn__refused(TN_ERR_SHAPE, "piecewise", "condition %d does not have the array's shape", k);
        y = tn_where(tn_cast(conditions[k], TN_BOOL), tn_cast(values[k], dtype), y);
    }
    return y;
}

tn_array *tn_piecewise(const tn_array *x, int count, const tn_array *const *conditions, const tn_array *const *values,
                       const tn_array *otherwise)
{
    TN__COMPOSE(piecewise(x, count, conditions, values, otherwise));
}

tn_array *tn_select(int count, const tn_array *const *conditions, const tn_array *const *choices,
                    const tn_array *otherwise)
{
    TN__COMPOSE(choose_first(count, conditions, choices, otherwise));
}

/* ---- positions as numbers ---- */

tn_status tn_unravel_index(const tn_array *indices, tn_shape shape, tn_array **out)
{
    if (!out)
        return tn__fail_null("unravel_index", "room for an array an axis");
    tn_status status = tn__shape_check("unravel_index", shape, 1);
    if (status != TN_OK)
        return status;
    int64_t size = 1;
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    tn_scope_push();
    tn_array *flat = tn__as_positions(indices);
    bool integers = tn_is_error(indices) || tn_dtype_is_integer(tn_dtype_of(indices));
    if (!integers || (!tn_is_error(flat) && !all_within("unravel_index", indices, size))) {
        flat = integers ? tn__failed_array()
                        : tn__refused(TN_ERR_INDEX, "unravel_index", "expected integers from 0 to %lld, got %s",
                                      (long long)size - 1, tn_dtype_name(tn_dtype_of(indices)));
        for (int d = 0; d < shape.ndim; d++)
            out[d] = tn__again(flat);
        status = tn_status_of(flat);
    } else {
        unravel(flat, shape, out);
    }
    tn_status composed = tn__composed_all(shape.ndim, out);
    return status == TN_OK ? composed : status;
}

static tn_array *ravel_multi_index(int count, const tn_array *const *indices, tn_shape shape, const char *mode)
{
    if (!indices || count != shape.ndim || count < 1)
        return tn__refused(TN_ERR_VALUE, "ravel_multi_index", "%d arrays of positions for %d axes", count, shape.ndim);
    if (tn__shape_check("ravel_multi_index", shape, 1) != TN_OK)
        return tn__leave_error(tn__enter());
    bool raises = !mode || strcmp(mode, "raise") == 0;
    tn_array *flat = NULL;
    for (int d = 0; d < count; d++) {
        tn_array *i = in_mode("ravel_multi_index", indices[d], shape.dim[d], mode);
        i = tn_is_error(i) ? i : tn__as_positions(i);
        if (!tn_is_error(i) && raises && !all_within("ravel_multi_index", indices[d], shape.dim[d]))
            return tn__failed_array();
        flat = flat ? tn_add(tn_multiply(flat, tn_weak_int(shape.dim[d])), i) : i;
    }
    return flat;
}

tn_array *tn_ravel_multi_index(int count, const tn_array *const *indices, tn_shape shape, const char *mode)
{
    TN__COMPOSE(ravel_multi_index(count, indices, shape, mode));
}

tn_status tn_tril_indices(int64_t n, int k, int64_t m, tn_array *out[2])
{
    if (!out)
        return tn__fail_null("tril_indices", "room for two arrays");
    const tn_create_opts opts = {.dtype = TN_BOOL};
    tn_scope_push();
    tn_nonzero(tn_tri_with(n, m, k, &opts), out);
    return tn__composed_all(2, out);
}

tn_status tn_triu_indices(int64_t n, int k, int64_t m, tn_array *out[2])
{
    if (!out)
        return tn__fail_null("triu_indices", "room for two arrays");
    const tn_create_opts opts = {.dtype = TN_BOOL};
    tn_scope_push();
    tn_nonzero(tn_logical_not(tn_tri_with(n, m, k - 1, &opts)), out);
    return tn__composed_all(2, out);
}
