/* SPDX-License-Identifier: MIT */
/*
 * A curve of any number of points in constant memory, for pictures of runs of any length: neighbours are joined into
 * spans of equally many points, of which the mean and the range are kept.
 */
#ifndef TN_TRAIN_THINNED_H
#define TN_TRAIN_THINNED_H

#include <tanso/base.h>

/* Even; beyond the number of pixels across a picture. */
#define TN__THINNED_MOST 1024

/* Doubles alone, so that a curve is an array of a snapshot, and a picture reads it by strides. */
typedef struct tn__span {
    double x, y;      /* means; y of the finite ones, NaN if there are none */
    double low, high; /* the range of the finite ones */
    double finite, points;
} tn__span;

typedef struct tn__thinned {
    tn__span *spans;
    size_t count, capacity;
    double stride; /* points a span; the last one may have fewer */
} tn__thinned;

void tn__thinned_free(tn__thinned *curve);
tn_status tn__thinned_add(tn__thinned *curve, double x, double y);
/* To and from `count` rows of 6 columns. What is no curve is TN_ERR_FORMAT. */
enum { TN__SPAN_COLUMNS = sizeof(tn__span) / sizeof(double) };
tn_status tn__thinned_restore(tn__thinned *curve, const double *rows, size_t count);

#endif
