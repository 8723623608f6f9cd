/* SPDX-License-Identifier: MIT */
/* Convolution over nodes, with every argument checked: what functions and layers share. */
#ifndef TN_NN_CONVOLVE_H
#define TN_NN_CONVOLVE_H

#include "array/build_convolve.h"

typedef enum tn__pad_mode { TN__PAD_ZEROS, TN__PAD_REFLECT, TN__PAD_REPLICATE, TN__PAD_CIRCULAR } tn__pad_mode;

/* Arguments as the user gave them; plain data, which a layer keeps. */
typedef struct tn__conv_settings {
    const char *name; /* of the function or layer, for messages; static */
    int axes;         /* 0: as many as x has */
    tn_shape stride, pad, pad_behind, dilation, output_pad, out;
    int64_t groups;
    bool same, transposed;
    tn__pad_mode mode;
} tn__conv_settings;

/* Takes padding and pad_mode from their words; latches and returns false for others. */
bool tn__conv_words(tn__conv_settings *s, const char *padding, const char *pad_mode);
/* bias may be NULL. */
tn__node *tn__conv_of(tn__node *x, tn__node *w, tn__node *bias, const tn__conv_settings *s);
/* x continued along an axis by one of the modes. */
tn__node *tn__padded_along(const char *operation, tn__node *x, int axis, int64_t before, int64_t behind,
                           tn__pad_mode mode);

#endif
