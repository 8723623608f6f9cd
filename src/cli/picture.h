/* SPDX-License-Identifier: MIT */
/* Pictures to be recognised: read, made like the ones a network was trained on. */
#ifndef TN_CLI_PICTURE_H
#define TN_CLI_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

/* Brightness, 0 black to 1 white, row by row. */
typedef struct tn__picture {
    int width, height;
    float *pixels; /* malloc's */
} tn__picture;

/* Reads a PNG or JPEG of any size and colours as greys, on white where it is transparent; false with an error
 * latched. */
bool tn__picture_read(const char *path, tn__picture *picture);
void tn__picture_free(tn__picture *picture);

/* How the pictures of a dataset are framed. */
typedef struct tn__framing {
    const char *dataset; /* "*": any other */
    bool crop;           /* the figure alone is cut out of its surroundings ... */
    double fill;         /* ... and scaled to this share of the side ... */
    bool by_mass;        /* ... and its centre of mass, not of its box, put in the middle */
} tn__framing;
const tn__framing *tn__framing_of(const char *dataset);

typedef enum tn__invert { TN__INVERT_AUTO, TN__INVERT_YES, TN__INVERT_NO } tn__invert;

/*
 * Makes width x height pixels, light figure on dark ground, of a picture; writes into `did` (size bytes) what was done,
 * "" for nothing. A picture of that size already is only inverted, if that.
 */
bool tn__picture_fit(const tn__picture *picture, const tn__framing *framing, tn__invert invert, int width, int height,
                     float *out, char *did, size_t size);

#endif
