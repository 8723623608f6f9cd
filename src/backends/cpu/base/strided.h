/* SPDX-License-Identifier: MIT */
/*
 * Loops over strided operands of one shape: extents of 1 are dropped, neighbouring axes are merged where every operand
 * allows it, and elements are visited in C order, in strips along the innermost axis.
 */
#ifndef TN_BACKENDS_CPU_BASE_STRIDED_H
#define TN_BACKENDS_CPU_BASE_STRIDED_H

#include "device/program.h"

#define TN__CPU_OPERANDS 4   /* the most operands of a step that runs as an operation */
#define TN__CPU_ITEM     16  /* bytes of the largest element */
#define TN__CPU_STRIP    512 /* elements of a strip: four strips of 8-byte elements fit into the first-level cache */

/* A loop over several operands; strides are in bytes. An operand that does not vary along an axis (a reduction's output
 * along reduced axes) has stride 0 there. */
typedef struct tn__cpu_space {
    int ndim, count;
    int64_t size; /* number of elements */
    int64_t dim[TN_MAX_NDIM];
    int64_t stride[TN__CPU_OPERANDS][TN_MAX_NDIM];
} tn__cpu_space;

/* The space over the axes of `mask` of shape `dim`, for `count` operands' element strides. */
void tn__cpu_space_make(tn__cpu_space *space, uint32_t mask, int ndim, const int64_t *dim, int count,
                        const int64_t *const *stride, const int64_t *itemsize);
/* The same for whole operands of equal shape. */
void tn__cpu_space_of(tn__cpu_space *space, int count, const tn__operand *operand);

typedef struct tn__cpu_cursor {
    const tn__cpu_space *space;
    int64_t index[TN_MAX_NDIM];
    char *p[TN__CPU_OPERANDS]; /* the current element of each operand */
} tn__cpu_cursor;

/* Puts the cursor on element `start` in C order; base: the address of element 0 of each operand. */
void tn__cpu_cursor_set(tn__cpu_cursor *cursor, const tn__cpu_space *space, char *const *base, int64_t start);
/* Moves on by `count` elements, which must not pass the end of the current row. */
void tn__cpu_cursor_move(tn__cpu_cursor *cursor, int64_t count);
/* Elements left in the current row, at most `limit`. */
static inline int64_t tn__cpu_cursor_row(const tn__cpu_cursor *cursor, int64_t limit)
{
    const tn__cpu_space *space = cursor->space;
    int64_t left = space->ndim ? space->dim[space->ndim - 1] - cursor->index[space->ndim - 1] : 1;
    return left < limit ? left : limit;
}
/* Stride along rows of operand k, in bytes. */
static inline int64_t tn__cpu_space_step(const tn__cpu_space *space, int k)
{
    return space->ndim ? space->stride[k][space->ndim - 1] : 0;
}

#endif
