/* SPDX-License-Identifier: MIT */
/*
 * Numbers that a traversal gives to nodes. A node carries its own in its mark. A value, and what another thread has
 * recorded, may be gone through by several threads at once, each of which overwrites the others' marks, so what a
 * traversal says of these is in a table beside, too, which is looked at where a mark is not the traversal's own.
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
    uint32_t stamp; /* of its marks: tn__stamp(), which no other traversal has */
    uint16_t owner; /* the number of the thread that goes through */
    tn__value_mark *values; /* the table; NULL: none yet */
    size_t count, size;     /* size: a power of 2 */
    tn__value_mark *few;    /* room for the first table, TN__FEW_MARKS that need not be set */
} tn__marks;
#define TN__FEW_MARKS 16

/* May other threads mark it? */
static inline bool tn__marks_shares(const tn__marks *marks, const tn__node *node)
{
    return node->storage || node->owner != marks->owner;
}

/* tn__marks_find of a shared node with another traversal's mark. */
bool tn__marks_find_value(const tn__marks *marks, const tn__node *node, uint32_t *number);

/* Whether a node has a number, which goes into *number. */
static inline bool tn__marks_find(const tn__marks *marks, const tn__node *node, uint32_t *number)
{
    uint64_t mark = tn__node_mark(node);
    *number = (uint32_t)mark;
    if (mark >> 32 == marks->stamp)
        return true;
    return tn__marks_shares(marks, node) && marks->count && tn__marks_find_value(marks, node, number);
}

/* Gives a value a number, instead of the one that it has. False without memory. */
bool tn__marks_set_value(tn__marks *marks, const tn__node *node, uint32_t number);

static inline bool tn__marks_set(tn__marks *marks, tn__node *node, uint32_t number)
{
    tn__node_set_mark(node, (uint64_t)marks->stamp << 32 | number);
    return !tn__marks_shares(marks, node) || tn__marks_set_value(marks, node, number);
}

/* Takes all numbers away. Before the first time it is zeros, but for `few`. */
void tn__marks_begin(tn__marks *marks);
static inline void tn__marks_end(tn__marks *marks)
{
    if (marks->values != marks->few)
        tn__free(marks->values);
}

#endif
