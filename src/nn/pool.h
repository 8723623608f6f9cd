/* SPDX-License-Identifier: MIT */
/* Windows over nodes, with every argument checked: what functions and layers share. */
#ifndef TN_NN_POOL_H
#define TN_NN_POOL_H

#include <tanso/pool.h>

#include "array/build_pool.h"

/* Arguments as the user gave them; plain data, which a layer keeps. */
typedef struct tn__pool_settings {
    const char *name; /* for messages; static */
    tn_shape kernel, stride, pad, dilation;
    bool ceil, exclude_pad;
} tn__pool_settings;
tn__pool_settings tn__pool_settings_of(const char *name, tn_shape kernel, const tn_pool_opts *opts);

/* Windows over the extents, of which there are `axes`; checked. Latches and returns false if none fits. */
bool tn__pooling_find(const tn__pool_settings *s, int axes, const int64_t *extent, tn__pooling *p);
/* x, if it is floating and has one to three extents behind N and the channels; else an error. */
tn__node *tn__pooled_operand(const char *name, tn__node *x);

tn__node *tn__max_pool(tn__node *x, const tn__pool_settings *s);
tn__node *tn__average_pool(tn__node *x, const tn__pool_settings *s);
tn__node *tn__adaptive_pool(const char *name, tn__node *x, tn_shape out, bool max);
/* Keys's weights of cubic interpolation, a = -0.75: of a distance d up to 1 (`near`), (a + 2) d³ - (a + 3) d² + 1; from
 * 1 to 2, a d³ - 5 a d² + 8 a d - 4 a. */
tn__node *tn__cubic_weight(tn__node *d, bool near);
tn__node *tn__global_pool(const char *name, tn__node *x, bool max);

#endif
