/* SPDX-License-Identifier: MIT */
/* Files of pictures: which kind one is, and the decoders of the kinds that this build reads. */
#ifndef TN_IO_IMAGE_H
#define TN_IO_IMAGE_H

#include "io/values.h"

/* More pixels than this are refused before memory is taken for them: a damaged header may ask for any number. */
#define TN__MOST_PIXELS ((uint64_t)64 << 20)

/* A picture as bytes, row by row, the channels of a pixel side by side. */
typedef struct tn__pixels {
    uint32_t width, height;
    int channels;   /* 1: brightness, 3: red, green, blue */
    uint8_t *bytes; /* for tn__free */
} tn__pixels;

/* Decodes a file that is in memory into pixels->channels channels (0: as many as it has, of 1 and 3), on white where it
 * is transparent. `name` is the file's, for messages. */
typedef tn_status tn__decode(const char *operation, const char *name, const uint8_t *data, size_t size,
                             tn__pixels *pixels);
tn__decode tn__png_decode, tn__jpeg_decode;
/* Takes memory for the pixels, whose extents are set; TN_ERR_FORMAT if they are too many. */
tn_status tn__pixels_new(const char *operation, const char *name, tn__pixels *pixels);

/* A whole file; `channels` as above. */
tn_status tn__image_read(const char *operation, const char *path, int channels, tn__pixels *pixels);
/* Whether a file begins as those of a kind do that tn_load_image reads. */
bool tn__is_image(const char *path);
/* Brings pixels into the order of arrays, (channels, height, width). */
void tn__pixels_planes(const tn__pixels *pixels, uint8_t *out);

#endif
