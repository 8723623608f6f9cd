/* SPDX-License-Identifier: MIT */
/* Pooling by windows whose number is given, and of all elements. */
#include "array/build_parts.h"
#include "nn/functions.h"
#include "nn/pool.h"


/* Along an axis into m windows, from floor(i n / m) to ceil((i + 1) n / m), an axis at a time: each window's elements,
 * as many as the longest may have, are gathered; those beyond a shorter one's end are its last one again. */
static tn__node *pooled_along(tn__node *x, int axis, int64_t m, bool max)
{
    TN__PASS_ERROR(x);
    int64_t n = x->shape->dim[axis], longest = n / m + (n % m ? 2 : 0), places_of_all;
    if (__builtin_mul_overflow(m, longest, &places_of_all))
        places_of_all = INT64_MAX;
    tn_shape value = {.ndim = x->shape->ndim}, wide = {.ndim = 2, .dim = {m, longest}};
    for (int d = 0; d < value.ndim; d++)
        value.dim[d] = d == axis ? places_of_all : 1;
    const tn__shape *shape = tn__shape_make("adaptive_pool", value, TN_INT64),
                    *pairs = tn__shape_make("adaptive_pool", wide, TN_INT64);
    if (!shape || !pairs)
        return tn__failed();
    tn__node *i = tn__iota(pairs, 0, x->device), *k = tn__iota(pairs, 1, x->device);
    tn__node *begin = tn__with(TN__OP_FLOOR_DIVIDE, tn__with(TN__OP_MULTIPLY, i, (double)n), (double)m);
    tn__node *end = tn__with(TN__OP_MULTIPLY, tn__with(TN__OP_ADD, i, 1), (double)n);
    end = tn__with(TN__OP_FLOOR_DIVIDE, tn__with(TN__OP_ADD, end, (double)(m - 1)), (double)m);
    tn__node *place = tn__binary(TN__OP_ADD, begin, k);
    tn__node *clipped = tn__binary(TN__OP_MINIMUM, place, tn__with(TN__OP_SUBTRACT, end, 1));
    tn__node *y = tn__gather_known(x, tn__reshape_like(clipped, shape), axis, n);
    TN__PASS_ERROR(y);
    int64_t dim[TN_MAX_NDIM], beside[TN_MAX_NDIM];
    int ndim = 0;
    for (int d = 0; d < value.ndim; d++) {
        beside[ndim] = d == axis ? m : 1;
        dim[ndim++] = d == axis ? m : y->shape->dim[d];
        if (d == axis) {
            beside[ndim] = longest;
            dim[ndim++] = longest;
        }
    }
    uint32_t places = 1u << (axis + 1);
    y = tn__reshape(y, ndim, dim);
    if (max)
        return tn__drop_axes(tn__first_max(y, places), places);
    tn__node *inside = tn__reshape(tn__binary(TN__OP_LESS, place, end), ndim, beside);
    tn__node *length = tn__slice_node(tn__binary(TN__OP_SUBTRACT, end, begin), (int64_t[]){0, 0}, (int64_t[]){1, 1},
                                      (int64_t[]){m, 1});
    TN__PASS_ERROR(y);
    beside[axis + 1] = 1;
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__where(inside, y, tn__const_like(y, 0)), places);
    length = tn__cast(tn__reshape(length, ndim, beside), (tn_dtype)y->dtype);
    return tn__drop_axes(tn__binary(TN__OP_DIVIDE, sum, length), places);
}

tn__node *tn__adaptive_pool(const char *name, tn__node *x, tn_shape out, bool max)
{
    x = tn__pooled_operand(name, x);
    TN__PASS_ERROR(x);
    int axes = x->shape->ndim - 2;
    int64_t m[TN__POOLED_AXES];
    if (out.ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, name, "expected the result's extents, got none: TN_SHAPE(1), say");
    if (!tn__extents_of(name, "extent of the result", out, axes, 1, 1, m))
        return tn__failed();
    tn__pool_settings s = {.name = name, .kernel.ndim = axes};
    bool whole = true;
    for (int i = 0; i < axes; i++) {
        int64_t n = x->shape->dim[2 + i];
        if (n == 0)
            TN__REFUSE(TN_ERR_SHAPE, name, "axis %d has extent 0: there is nothing to choose from", 2 + i);
        whole = whole && n % m[i] == 0;
        s.kernel.dim[i] = n / m[i];
    }
    if (whole)
        return max ? tn__max_pool(x, &s) : tn__average_pool(x, &s);
    tn__node *y = max ? x : tn__widened(x);
    for (int i = axes; i-- > 0;) /* so that the first of equal elements is that in C order */
        y = pooled_along(y, 2 + i, m[i], max);
    return tn__node_is_error(y) ? y : tn__cast(y, (tn_dtype)x->dtype);
}

tn__node *tn__global_pool(const char *name, tn__node *x, bool max)
{
    x = tn__pooled_operand(name, x);
    TN__PASS_ERROR(x);
    uint32_t axes = ((1u << x->shape->ndim) - 1) & ~3u;
    for (int d = 2; d < x->shape->ndim; d++)
        if (x->shape->dim[d] == 0)
            TN__REFUSE(TN_ERR_SHAPE, name, "axis %d has extent 0: there is nothing to choose from", d);
    if (max && x->shape->size)
        return tn__drop_axes(tn__first_max(x, axes), axes);
    tn__node *y = max ? tn__reduce(TN__OP_SUM, x, axes) : tn__average(tn__widened(x), axes);
    return tn__node_is_error(y) ? y : tn__drop_axes(tn__cast(y, (tn_dtype)x->dtype), axes);
}

#define ADAPTIVE(function, name, max) \
    tn_array *function(const tn_array *x, tn_shape out) \
    { \
        TN__RETURN(tn__adaptive_pool(name, tn__node_of(x, name), out, max)); \
    }
ADAPTIVE(tn_adaptive_average_pool, "adaptive_average_pool", false)
ADAPTIVE(tn_adaptive_max_pool, "adaptive_max_pool", true)

#define GLOBAL(function, name, max) \
    tn_array *function(const tn_array *x) \
    { \
        TN__RETURN(tn__global_pool(name, tn__node_of(x, name), max)); \
    }
GLOBAL(tn_global_average_pool, "global_average_pool", false)
GLOBAL(tn_global_max_pool, "global_max_pool", true)
