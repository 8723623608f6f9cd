/* SPDX-License-Identifier: MIT */
/* Arithmetic on shapes and strides. */
#include "core/shape.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* No array holds more bytes, or more elements, than this. */
#define MOST_BYTES ((int64_t)1 << 62)

const char *tn__shape_text(int ndim, const int64_t *dim, char buffer[TN__SHAPE_TEXT])
{
    size_t length = 0;
    buffer[length++] = '(';
    for (int i = 0; i < ndim && i < TN_MAX_NDIM; i++)
        length +=
            (size_t)snprintf(buffer + length, TN__SHAPE_TEXT - length, "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(buffer + length, TN__SHAPE_TEXT - length, ndim == 1 ? ",)" : ndim > TN_MAX_NDIM ? ", ...)" : ")");
    return buffer;
}

tn_status tn__shape_check(const char *operation, tn_shape shape, size_t itemsize)
{
    if (shape.ndim < 0 || shape.ndim > TN_MAX_NDIM)
        return tn__fail(TN_ERR_SHAPE, operation, "expected a shape of 0 to %d axes, got one of %d", TN_MAX_NDIM,
                        shape.ndim);
    char text[TN__SHAPE_TEXT];
    /* Extents of zero are left out, as NumPy does: what a zero hides may come back in a view's shape. */
    int64_t bytes = itemsize ? (int64_t)itemsize : 1;
    bool fits = true;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0)
            return tn__fail(TN_ERR_SHAPE, operation, "expected extents of zero or more, got the shape %s",
                            tn__shape_text(shape.ndim, shape.dim, text));
        if (shape.dim[i] > 0 && __builtin_mul_overflow(bytes, shape.dim[i], &bytes))
            fits = false;
    }
    if (!fits || bytes >= MOST_BYTES)
        return tn__fail(TN_ERR_SHAPE, operation,
                        "an array of shape %s with %zu bytes an element is larger than any memory",
                        tn__shape_text(shape.ndim, shape.dim, text), itemsize);
    return TN_OK;
}

tn_shape tn__shape_value(const tn__shape *shape)
{
    tn_shape value = {.ndim = shape->ndim};
    memcpy(value.dim, shape->dim, sizeof value.dim);
    return value;
}

void tn__strides_contiguous(int ndim, const int64_t *dim, int64_t *stride)
{
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dim[i] > 1 ? dim[i] : 1;
    }
}

/*
 * Both shapes are cut into the shortest runs of axes with equal products. A new run has strides exactly when the old
 * run is evenly spaced, that is, when each of its axes steps over the whole of the next one: elements next to each
 * other in the new run's last axis fix the spacing, and every boundary between old axes lies inside some new axis.
 */
bool tn__strides_reshape(int from_ndim, const int64_t *from, const int64_t *from_stride, int to_ndim, const int64_t *to,
                         int64_t *stride)
{
    int64_t from_size = 1, to_size = 1, dim[TN_MAX_NDIM], step[TN_MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < from_ndim; i++) {
        from_size *= from[i];
        if (from[i] != 1) { /* an axis of extent 1 is never stepped along */
            dim[ndim] = from[i];
            step[ndim++] = from_stride[i];
        }
    }
    for (int i = 0; i < to_ndim; i++)
        to_size *= to[i];
    if (from_size != to_size)
        return false;
    if (to_size == 0) {
        tn__strides_contiguous(to_ndim, to, stride);
        return true;
    }
    int i = 0, j = 0;
    while (i < ndim) {
        int first_i = i, first_j = j;
        int64_t old_size = dim[i++], new_size = to[j++];
        while (old_size != new_size) {
            if (old_size < new_size)
                old_size *= dim[i++];
            else
                new_size *= to[j++];
        }
        for (int k = first_i; k + 1 < i; k++)
            if (step[k] != dim[k + 1] * step[k + 1])
                return false;
        int64_t spacing = step[i - 1];
        for (int k = j - 1; k >= first_j; k--) {
            stride[k] = spacing;
            spacing *= to[k];
        }
    }
    for (; j < to_ndim; j++) /* extents of 1 at the end */
        stride[j] = 1;
    return true;
}

bool tn__shape_broadcast(const tn__shape *a, const tn__shape *b, tn_shape *out)
{
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    *out = (tn_shape){.ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        int at_a = i - (ndim - a->ndim), at_b = i - (ndim - b->ndim);
        int64_t x = at_a < 0 ? 1 : a->dim[at_a], y = at_b < 0 ? 1 : b->dim[at_b];
        if (x != y && x != 1 && y != 1)
            return false;
        out->dim[i] = x == 1 ? y : x;
    }
    return true;
}
