/* SPDX-License-Identifier: MIT */
/* What an array is: shape, dtype, device, strides, error. None of these evaluates. */
#include <tanso/array.h>
#include <tanso/device.h>

#include "array/node.h"

static const tn__shape *shape_of(const tn_array *x) { return x ? x->node->shape : tn__shape_scalar(); }

tn_shape tn_shape_of(const tn_array *x)
{
    const tn__shape *shape = shape_of(x);
    return shape ? tn__shape_value(shape) : (tn_shape){0};
}

tn_dtype tn_dtype_of(const tn_array *x) { return x ? (tn_dtype)x->node->dtype : TN_DTYPE_DEFAULT; }

int tn_ndim(const tn_array *x)
{
    const tn__shape *shape = shape_of(x);
    return shape ? shape->ndim : 0;
}

int64_t tn_size(const tn_array *x)
{
    const tn__shape *shape = shape_of(x);
    return shape ? shape->size : 1;
}

int64_t tn_dim(const tn_array *x, int axis)
{
    const tn__shape *shape = shape_of(x);
    int ndim = shape ? shape->ndim : 0;
    if (axis < -ndim || axis >= ndim) {
        tn__fail(TN_ERR_INDEX, "tn_dim", "axis %d of an array with %d axes: expected an axis from %d to %d", axis, ndim,
                 -ndim, ndim - 1);
        return -1;
    }
    return shape->dim[axis < 0 ? axis + ndim : axis];
}

void tn_strides_of(const tn_array *x, int64_t strides[TN_MAX_NDIM])
{
    if (!strides) {
        tn__fail_null("strides_of", "room for TN_MAX_NDIM numbers");
        return;
    }
    for (int i = 0; i < TN_MAX_NDIM; i++)
        strides[i] = 0;
    const tn__shape *shape = shape_of(x);
    if (!x || !shape)
        return;
    const tn__node *node = x->node;
    if (node->strides)
        for (int i = 0; i < shape->ndim; i++)
            strides[i] = node->strides->v[i];
    else
        tn__strides_contiguous(shape->ndim, shape->dim, strides);
    for (int i = 0; i < shape->ndim; i++)
        strides[i] *= (int64_t)tn_dtype_size((tn_dtype)node->dtype);
}

tn_device tn_device_of(const tn_array *x)
{
    if (!x)
        tn__fail_null("device_of", "an array");
    return x && x->node->device ? x->node->device->id : (tn_device){0};
}

/* An array that a step released is one too: nothing can be done with it any more. */
bool tn_is_error(const tn_array *x) { return !x || x->node->error; }

const char *tn_message_of(const tn_array *x)
{
    if (!x)
        return "the array is NULL";
    return x->node->error ? tn__error_message(x->node->error) : "";
}

tn_status tn_status_of(const tn_array *x)
{
    if (!x)
        return TN_ERR_VALUE;
    return x->node->error ? tn__error_status(x->node->error) : TN_OK;
}
