/* SPDX-License-Identifier: MIT */
/* Windows that slide over an array as nodes, and their reverse. */
#ifndef TN_ARRAY_BUILD_WINDOW_H
#define TN_ARRAY_BUILD_WINDOW_H

#include "array/build.h"

/* Windows along one axis: `extent` elements that lie `spread` apart, each window `step` behind the one before. */
typedef struct tn__window_axis {
    int axis;
    int64_t extent, step, spread;
} tn__window_axis;

/* How many of them an axis of `extent` has; 0: none fits. */
int64_t tn__window_count(int64_t extent, const tn__window_axis *w);
/* A view: in the place of each axis named the windows, behind all axes the places in one, an axis for each of `count`,
 * in their order. An error if none fits. */
tn__node *tn__windows(tn__node *a, int count, const tn__window_axis *window);
/* The reverse: the array of a shape in which each element is the sum of what windows have where it is in them. */
tn__node *tn__fold(tn__node *g, int count, const tn__window_axis *window, const tn__shape *shape);

/* The part of an array that begins at `start` and has extents `dim`, both along all axes: what lies outside of the
 * array is `value`. */
tn__node *tn__framed(tn__node *a, const int64_t *start, const int64_t *dim, double value);
/* For a user's list of extents, as strides are, of which one number stands for all axes: fills out[0 .. count-1], with
 * `absent` where the list is empty; latches and returns false if there are other numbers of them, or one below
 * `least`. */
bool tn__extents_of(const char *operation, const char *what, tn_shape given, int count, int64_t absent, int64_t least,
                    int64_t *out);

#endif
