/* SPDX-License-Identifier: MIT */
/* Operations of libraries as nodes, and small functions over matrices (the last two axes) that they are used with. */
#ifndef TN_ARRAY_BUILD_LIBRARY_H
#define TN_ARRAY_BUILD_LIBRARY_H

#include "array/build.h"

/* An operation of kind LIBRARY with a result of the given dtype and shape; `modes`: interned, its attributes, or NULL.
 * On a device that has no such operation it is computed on the CPU, at once. */
tn__node *tn__library(tn__op op, tn_dtype dtype, tn_shape shape, int arity, tn__node *const *in, const tn__ints *modes);

/* Whether an operation of LAPACK's of that operand is computed on its device. */
bool tn__library_native(tn__op op, const tn__node *a);

/* The matrix of rows x columns at `offset` in the rows of a packed result (..., 1, n). */
tn__node *tn__part(tn__node *packed, int64_t offset, int64_t rows, int64_t columns);
/* `count` elements from `start` of the last axis. */
tn__node *tn__last_slice(tn__node *a, int64_t start, int64_t count);
/* Without the next to last axis, of extent 1. */
tn__node *tn__drop_row(tn__node *a);
/* Transposed and conjugated. */
tn__node *tn__adjoint(tn__node *a);
/* The elements where column - row <= offset (>= offset), the others 0. */
tn__node *tn__lower(tn__node *a, int offset);
tn__node *tn__upper(tn__node *a, int offset);
/* Whether an element is on the diagonal, in a's shape. */
tn__node *tn__on_diagonal(tn__node *a);
/* (..., 1, n) as (..., n, n) with it on the diagonal. */
tn__node *tn__diagonal_matrix(tn__node *row);

#endif
