/* SPDX-License-Identifier: MIT */
/* Pictures of another size, a pixel at a time. */
#ifndef TN_DATA_SCALE_H
#define TN_DATA_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* One channel of a picture in memory: bytes, which stand for their 255th part, or floats. */
typedef struct tn__plane {
    const void *data;
    bool bytes;
    int64_t height, width;
    int64_t step; /* from a pixel to its neighbour, in elements; rows lie behind one another */
} tn__plane;

/* Pixel (row, column) of the plane scaled to height x width, bilinearly between the pixels' centres; beyond the outer
 * ones the picture goes on as they are. */
float tn__plane_scaled(const tn__plane *plane, int64_t height, int64_t width, int64_t row, int64_t column);

#endif
