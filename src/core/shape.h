/* SPDX-License-Identifier: MIT */
/* Interned shapes and integer lists: equal contents, equal pointers; they live as long as the process. */
#ifndef TN_CORE_SHAPE_H
#define TN_CORE_SHAPE_H

#include <tanso/base.h>

typedef struct tn__shape {
    uint32_t id;  /* small, unique: stands for the shape in keys */
    int32_t ndim;
    int64_t size; /* product of the extents */
    int64_t dim[TN_MAX_NDIM]; /* unused entries are 0 */
} tn__shape;

/* NULL without memory. Extents must be >= 0 with a product below 2^62: see tn__shape_check. */
const tn__shape *tn__shape_intern(int ndim, const int64_t *dim);
/* The same if this thread has asked for it lately; else, and for what is no shape, NULL. */
const tn__shape *tn__shape_recent(int ndim, const int64_t *dim);
const tn__shape *tn__shape_scalar(void);
/* Checks a user's shape: ndim, extents, overflow of the size in bytes of elements of `itemsize`. Latches on failure. */
tn_status tn__shape_check(const char *operation, tn_shape shape, size_t itemsize);
tn_shape tn__shape_value(const tn__shape *shape);

/* An interned list of integers (slice starts and steps, strides). */
typedef struct tn__ints {
    uint32_t id;
    int32_t count;
    int64_t v[];
} tn__ints;
const tn__ints *tn__ints_intern(int count, const int64_t *values);

/* Writes "(2, 3)" as NumPy prints shapes; returns buffer. */
#define TN__SHAPE_TEXT 192
const char *tn__shape_text(int ndim, const int64_t *dim, char buffer[TN__SHAPE_TEXT]);
/* C-order strides, in elements. */
void tn__strides_contiguous(int ndim, const int64_t *dim, int64_t *stride);
/* Strides in `stride` that view a strided array of shape `from` as shape `to` with no copy; false if none do. */
bool tn__strides_reshape(int from_ndim, const int64_t *from, const int64_t *from_stride, int to_ndim, const int64_t *to,
                         int64_t *stride);
/* Broadcasts two shapes by NumPy's rule into out; false if they do not fit. */
bool tn__shape_broadcast(const tn__shape *a, const tn__shape *b, tn_shape *out);

#endif
