/* SPDX-License-Identifier: MIT */
/*
 * Stretches of steps as the nodes of a tree: node 1 stands for all steps, 2 i and 2 i + 1 for the halves of i, those
 * from `leaves` on, a power of two, for one step each. A stretch is told by few nodes, and two stretches meet where a
 * node of one is a node of the other, or lies below or above one.
 */
#ifndef TN_COMPILE_MEMORY_SEGMENTS_H
#define TN_COMPILE_MEMORY_SEGMENTS_H

#define TN__MOST_SEGMENTS 64

static inline int tn__segment_leaves(int steps)
{
    int leaves = 1;
    while (leaves < steps)
        leaves *= 2;
    return leaves;
}

/* The nodes that stand for the steps from `first` to `last`; how many they are. */
static inline int tn__segments(int leaves, int first, int last, int node[TN__MOST_SEGMENTS])
{
    int count = 0, left = leaves + first, right = leaves + last + 1;
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2)
            node[count++] = left++;
        if (right % 2)
            node[count++] = --right;
    }
    return count;
}

/* The nodes above the first and the last step of a stretch, and these. */
static inline int tn__segments_above(int leaves, int first, int last, int node[TN__MOST_SEGMENTS])
{
    int count = 0, left = leaves + first, right = leaves + last;
    for (; left; left /= 2, right /= 2) {
        node[count++] = left;
        if (right != left)
            node[count++] = right;
    }
    return count;
}

#endif
