/* SPDX-License-Identifier: MIT */
/* Windows over nodes, with every argument checked: what functions and layers share. */
#ifndef TN_NN_POOL_H
#define TN_NN_POOL_H

#include <tanso/pool.h>

#include "array/build_window.h"

#define TN__POOLED_AXES 3

/* Arguments as the user gave them; plain data, which a layer keeps. */
typedef struct tn__pool_settings {
    const char *name; /* for messages; static */
    tn_shape kernel, stride, pad, dilation;
    bool ceil, exclude_pad;
} tn__pool_settings;
tn__pool_settings tn__pool_settings_of(const char *name, tn_shape kernel, const tn_pool_opts *opts);

/* Windows over extents, behind N and the channels. */
typedef struct tn__pooling {
    int axes;
    int64_t extent[TN__POOLED_AXES], count[TN__POOLED_AXES], pad[TN__POOLED_AXES];
    int64_t reached[TN__POOLED_AXES]; /* elements from the first of the first window to the last of the last one */
    tn__window_axis window[TN__POOLED_AXES];
} tn__pooling;

/* Windows over the extents, of which there are `axes`; checked. Latches and returns false if none fits. */
bool tn__pooling_find(const tn__pool_settings *s, int axes, const int64_t *extent, tn__pooling *p);
/* x, if it is floating and has one to three extents behind N and the channels; else an error. */
tn__node *tn__pooled_operand(const char *name, tn__node *x);
/* (N, channels, places in a window..., windows...) of x, with `fill` around it: reductions of the places run along the
 * windows, which are more. */
tn__node *tn__pooling_windows(tn__node *x, const tn__pooling *p, double fill);
/* The sums of (N, channels, windows..., places in one...) where those are in x. */
tn__node *tn__pooling_fold(tn__node *windows, const tn__pooling *p);
/* Places and windows the other way round. */
tn__node *tn__pooling_exchanged(tn__node *windows, int axes);
/* The axes of the places. */
static inline uint32_t tn__pooling_places(const tn__pooling *p) { return ((1u << p->axes) - 1) << 2; }

tn__node *tn__max_pool(tn__node *x, const tn__pool_settings *s);
tn__node *tn__average_pool(tn__node *x, const tn__pool_settings *s);
tn__node *tn__adaptive_pool(const char *name, tn__node *x, tn_shape out, bool max);
/* Keys's weights of cubic interpolation, a = -0.75: of a distance d up to 1 (`near`), (a + 2) d³ - (a + 3) d² + 1; from
 * 1 to 2, a d³ - 5 a d² + 8 a d - 4 a. */
tn__node *tn__cubic_weight(tn__node *d, bool near);
tn__node *tn__global_pool(const char *name, tn__node *x, bool max);

#endif
