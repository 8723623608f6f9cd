/* SPDX-License-Identifier: MIT */
/* Shapes: reshape, transpose, broadcast_to and their kin. */
#include <tanso/array.h>

#include "array/build_parts.h"

/* Fills in an extent of -1; false with a latched failure. */
static bool complete(const tn__shape *from, tn_shape *to)
{
    int unknown = -1;
    int64_t known = 1;
    bool overflow = false;
    for (int i = 0; i < to->ndim && i < TN_MAX_NDIM; i++) {
        if (to->dim[i] != -1) {
            overflow |= __builtin_mul_overflow(known, to->dim[i], &known);
        } else if (unknown >= 0) {
            tn__fail(TN_ERR_SHAPE, "reshape",
                     "extents %d and %d are both -1; only one can be computed", unknown, i);
            return false;
        } else {
            unknown = i;
        }
    }
    if (unknown < 0)
        return true;
    if (overflow || known <= 0 || from->size % known != 0) {
        char text[TN__SHAPE_TEXT];
        tn__fail(TN_ERR_SHAPE, "reshape",
                 "the extent -1 at axis %d cannot be computed: %lld elements, of shape %s, do not divide by the "
                 "product of the other extents",
                 unknown, (long long)from->size, tn__shape_text(from->ndim, from->dim, text));
        return false;
    }
    to->dim[unknown] = from->size / known;
    return true;
}

static tn__node *reshape(tn__node *a, tn_shape shape)
{
    TN__PASS_ERROR(a);
    return complete(a->shape, &shape) ? tn__reshape(a, shape.ndim, shape.dim) : tn__failed();
}

tn_array *tn_reshape(const tn_array *x, tn_shape shape)
{
    TN__RETURN(reshape(tn__node_of(x, "reshape"), shape));
}

tn_array *tn_flatten(const tn_array *x)
{
    TN__RETURN(reshape(tn__node_of(x, "flatten"), (tn_shape){.ndim = 1, .dim = {-1}}));
}

static tn__node *transpose(tn__node *a, tn_axes axes)
{
    TN__PASS_ERROR(a);
    uint8_t perm[TN_MAX_NDIM] = {0};
    int ndim = a->shape->ndim;
    uint32_t set;
    if (!tn__axes_set("transpose", axes, ndim, &set))
        return tn__failed();
    if (axes.count != 0 && axes.count != ndim)
        TN__REFUSE(TN_ERR_VALUE, "transpose",
                   "%d axes listed, expected all %d of the array, or none to reverse them",
                   axes.count, ndim);
    for (int i = 0; i < ndim; i++)
        perm[i] = (uint8_t)(axes.count == 0    ? ndim - 1 - i
                            : axes.axis[i] < 0 ? axes.axis[i] + ndim
                                               : axes.axis[i]);
    return tn__permute(a, perm);
}

tn_array *tn_transpose(const tn_array *x, tn_axes axes)
{
    TN__RETURN(transpose(tn__node_of(x, "transpose"), axes));
}

static tn__node *swapaxes(tn__node *x, int a, int b)
{
    TN__PASS_ERROR(x);
    a = tn__axis_check("swapaxes", a, x->shape->ndim);
    b = a < 0 ? -1 : tn__axis_check("swapaxes", b, x->shape->ndim);
    if (b < 0)
        return tn__failed();
    uint8_t perm[TN_MAX_NDIM];
    for (int i = 0; i < TN_MAX_NDIM; i++)
        perm[i] = (uint8_t)(i == a ? b : i == b ? a : i);
    return tn__permute(x, perm);
}

tn_array *tn_swapaxes(const tn_array *x, int a, int b)
{
    TN__RETURN(swapaxes(tn__node_of(x, "swapaxes"), a, b));
}

static tn__node *broadcast_to(tn__node *a, tn_shape value)
{
    TN__PASS_ERROR(a);
    const tn__shape *shape = tn__shape_make("broadcast_to", value, a->dtype);
    return shape ? tn__expand(a, shape) : tn__failed();
}

tn_array *tn_broadcast_to(const tn_array *x, tn_shape shape)
{
    TN__RETURN(broadcast_to(tn__node_of(x, "broadcast_to"), shape));
}

static tn__node *sum_to(tn__node *a, tn_shape value)
{
    TN__PASS_ERROR(a);
    const tn__shape *shape = tn__shape_make("sum_to", value, a->dtype);
    if (!shape)
        return tn__failed();
    int more = a->shape->ndim - shape->ndim;
    bool fits = more >= 0;
    for (int i = 0; fits && i < shape->ndim; i++)
        fits = shape->dim[i] == 1 || shape->dim[i] == a->shape->dim[i + more];
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (!fits)
        TN__REFUSE(TN_ERR_SHAPE, "sum_to", "shape %s does not broadcast to that of x, %s",
                   tn__shape_text(shape->ndim, shape->dim, text),
                   tn__shape_text(a->shape->ndim, a->shape->dim, other));
    return tn__sum_to(tn__strong(a), shape);
}

tn_array *tn_sum_to(const tn_array *x, tn_shape shape)
{
    TN__RETURN(sum_to(tn__node_of(x, "sum_to"), shape));
}

tn_array *tn_expand_dims(const tn_array *x, int axis)
{
    TN__RETURN(tn__insert_axis("expand_dims", tn__node_of(x, "expand_dims"), axis));
}

static tn__node *squeeze(tn__node *a, tn_axes axes)
{
    TN__PASS_ERROR(a);
    uint32_t set, drop = 0;
    if (!tn__axes_set("squeeze", axes, a->shape->ndim, &set))
        return tn__failed();
    for (int i = 0; i < a->shape->ndim; i++) {
        if (!(set >> i & 1))
            continue;
        if (a->shape->dim[i] == 1) {
            drop |= 1u << i;
        } else if (axes.count > 0) {
            char text[TN__SHAPE_TEXT];
            TN__REFUSE(
                TN_ERR_SHAPE, "squeeze",
                "axis %d of shape %s has extent %lld, expected 1; list only axes of extent 1", i,
                tn__shape_text(a->shape->ndim, a->shape->dim, text), (long long)a->shape->dim[i]);
        }
    }
    return tn__drop_axes(a, drop);
}

tn_array *tn_squeeze(const tn_array *x, tn_axes axes)
{
    TN__RETURN(squeeze(tn__node_of(x, "squeeze"), axes));
}
