/* SPDX-License-Identifier: MIT */
/* Arrays that files and datasets make: elements in host memory of the CPU, C order, before they become nodes. */
#ifndef TN_IO_VALUES_H
#define TN_IO_VALUES_H

#include "array/node.h"

typedef struct tn__values {
    tn_dtype dtype;
    const tn__shape *shape;
    tn__storage *storage;
    int64_t offset; /* of element 0 in the storage, in elements */
} tn__values;

/* Uninitialised elements. Checks the shape; latches what is wrong and leaves *values empty on failure. */
tn_status tn__values_new(const char *operation, tn__values *values, tn_dtype dtype, tn_shape shape);
/* Drops the storage; harmless on an empty or freed one. */
void tn__values_free(tn__values *values);
static inline void *tn__values_data(const tn__values *values)
{
    return (char *)values->storage->memory + (size_t)values->offset * tn__dtypes[values->dtype].size;
}
/* A file that is read whole, as a parser of its format takes it. */
tn_status tn__values_read(const char *operation, const char *path,
                          tn_status (*parse)(const char *operation, const char *name, const uint8_t *data, size_t size,
                                             tn__values *values),
                          tn__values *values);
/* A handle owned by no scope; NULL with a latched error without memory. Drops the values either way. */
tn_array *tn__values_own(tn__values *values);
/* Ends a public reader: a handle in the innermost scope, of the values (dropped) or, if status says so, of the error
 * that was latched last. */
tn_array *tn__values_leave(tn__call call, tn_status status, tn__values *values);

/* The elements of x in host memory, C order: x's own where they lie so, else a copy. */
typedef struct tn__host_view {
    const void *data;
    size_t bytes;
    tn_dtype dtype;
    const tn__shape *shape;
    void *copy;       /* owned, or NULL */
    tn__node *node;   /* retained */
} tn__host_view;
/* Evaluates x if need be. Latches and leaves an empty view on failure. */
tn_status tn__host_view_of(const char *operation, const tn_array *x, tn__host_view *view);
void tn__host_view_end(tn__host_view *view);

#endif
