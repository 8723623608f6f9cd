/* SPDX-License-Identifier: MIT */
/*
 * Numbers that a traversal gives to nodes. A pending node carries its own, in its mark, as it belongs to one thread. A
 * value may be gone through by several threads at once, each of which keeps what it says of values in a table beside.
 */
#ifndef TN_AUTOGRAD_MARKS_H
#define TN_AUTOGRAD_MARKS_H

#include "array/node.h"
#include "core/memory.h"

typedef struct tn__value_mark {
    const tn__node *node; /* NULL: free */
    uint32_t number;
} tn__value_mark;

typedef struct tn__marks {
    uint32_t stamp; /* of the marks in pending nodes: tn__stamp() */
    tn__value_mark *values;
    size_t count, size; /* size: a power of 2 */
    tn__value_mark few[16]; /* the first table */
} tn__marks;

/* The place of a value in the table, which has free ones, or where it would come. */
static inline tn__value_mark *tn__marks_place(const tn__marks *marks, const tn__node *node)
{
    size_t mask = marks->size - 1, at = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (marks->values[at].node && marks->values[at].node != node)
        at = (at + 1) & mask;
    return &marks->values[at];
}

/* Whether a node has a number, which goes into *number. */
static inline bool tn__marks_find(const tn__marks *marks, const tn__node *node, uint32_t *number)
{
    if (!node->storage) {
        uint64_t mark = tn__node_mark(node);
        *number = (uint32_t)mark;
        return mark >> 32 == marks->stamp;
    }
    const tn__value_mark *place = tn__marks_place(marks, node);
    if (!place->node)
        return false;
    *number = place->number;
    return true;
}

/* Gives a value a number, instead of the one that it has. False without memory. */
bool tn__marks_set_value(tn__marks *marks, const tn__node *node, uint32_t number);

static inline bool tn__marks_set(tn__marks *marks, tn__node *node, uint32_t number)
{
    if (node->storage)
        return tn__marks_set_value(marks, node, number);
    tn__node_set_mark(node, (uint64_t)marks->stamp << 32 | number);
    return true;
}

/* Takes all numbers away; before the first one zeros, and afterwards it stays where it is. */
void tn__marks_begin(tn__marks *marks);
static inline void tn__marks_end(tn__marks *marks)
{
    if (marks->values != marks->few)
        tn__free(marks->values);
}

#endif
