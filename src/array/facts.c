/* SPDX-License-Identifier: MIT */
/* What an array is: shape, dtype, device, strides, error. None of these evaluates. */
#include <tanso/array.h>
#include <tanso/device.h>

#include "array/node.h"

/* What x points to; NULL of NULL and, with an error, of an array that has been freed. */
static const tn__node *node_of(const tn_array *x, const char *function)
{
    return x && tn__array_lives(x, function) ? tn__array_node(x) : NULL;
}

static const tn__shape *shape_of(const tn_array *x, const char *function)
{
    const tn__node *node = node_of(x, function);
    return node ? node->shape : tn__shape_scalar();
}

tn_shape tn_shape_of(const tn_array *x)
{
    const tn__shape *shape = shape_of(x, "shape_of");
    return shape ? tn__shape_value(shape) : (tn_shape){0};
}

tn_dtype tn_dtype_of(const tn_array *x)
{
    const tn__node *node = node_of(x, "dtype_of");
    return node ? (tn_dtype)node->dtype : TN_DTYPE_DEFAULT;
}

int tn_ndim(const tn_array *x)
{
    const tn__shape *shape = shape_of(x, "ndim");
    return shape ? shape->ndim : 0;
}

int64_t tn_size(const tn_array *x)
{
    const tn__shape *shape = shape_of(x, "size");
    return shape ? shape->size : 1;
}

int64_t tn_dim(const tn_array *x, int axis)
{
    const tn__shape *shape = shape_of(x, "tn_dim");
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
    const tn__node *node = node_of(x, "strides_of");
    const tn__shape *shape = node ? node->shape : NULL;
    if (!shape)
        return;
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
    const tn__node *node = node_of(x, "device_of");
    return node && node->device ? node->device->id : (tn_device){0};
}

/* An array that a step released is one too: nothing can be done with it any more. */
bool tn_is_error(const tn_array *x)
{
    const tn__node *node = node_of(x, "is_error");
    return !node || node->error;
}

const char *tn_message_of(const tn_array *x)
{
    if (!x)
        return "the array is NULL";
    const tn__node *node = node_of(x, "message_of");
    if (!node || node->error)
        tn__error_seen();
    return !node ? tn__error_message(tn__error_last()) : node->error ? tn__error_message(node->error) : "";
}

tn_status tn_status_of(const tn_array *x)
{
    if (!x)
        return TN_ERR_VALUE;
    const tn__node *node = node_of(x, "status_of");
    return !node ? tn__error_status(tn__error_last()) : node->error ? tn__error_status(node->error) : TN_OK;
}
