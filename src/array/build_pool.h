/* SPDX-License-Identifier: MIT */
/* Reductions of windows over the axes behind N and the channels as nodes, and what their gradients are made of. */
#ifndef TN_ARRAY_BUILD_POOL_H
#define TN_ARRAY_BUILD_POOL_H

#include "array/build_window.h"

#define TN__POOLED_AXES 3

/* Windows over extents, behind N and the channels. */
typedef struct tn__pooling {
    int axes;
    int64_t extent[TN__POOLED_AXES], count[TN__POOLED_AXES], pad[TN__POOLED_AXES];
    int64_t reached[TN__POOLED_AXES]; /* elements from the first of the first window to the last of the last one */
    tn__window_axis window[TN__POOLED_AXES];
} tn__pooling;

/* (N, channels, places in a window..., windows...) of x, with `fill` around it: reductions of the places run along the
 * windows, which are more. */
tn__node *tn__pooling_windows(tn__node *x, const tn__pooling *p, double fill);
/* The sums of (N, channels, windows..., places in one...) where those are in x. */
tn__node *tn__pooling_fold(tn__node *windows, const tn__pooling *p);
/* Places and windows the other way round. */
tn__node *tn__pooling_exchanged(tn__node *windows, int axes);
/* The axes of the places. */
static inline uint32_t tn__pooling_places(const tn__pooling *p) { return ((1u << p->axes) - 1) << 2; }

/* Each window's sum, largest element, or place of its first largest element (TN__OP_SUM, _MAX, _ARGMAX). */
tn__node *tn__pooled(tn__op op, tn__node *x, const tn__pooling *p);
/* For each element of x the sum of what those windows have in g, (N, channels, windows...), that it is in; with
 * `chosen`, places in windows: of which it is the one chosen. */
tn__node *tn__pooling_cover(tn__node *g, tn__node *chosen, const tn__pooling *p);
/* The gradient by x of a POOL node, whose own is g. */
tn__node *tn__pooling_gradient(const tn__node *pooled, tn__node *g);

#endif
