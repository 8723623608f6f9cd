/* SPDX-License-Identifier: MIT */
/* Pictures of curves: panels side by side and below one another, with axes, a grid, a legend, bands. The one place that
 * draws them: the curves of `tanso train`, and the trainer's plots. */
#ifndef TN_TRAIN_PLOT_H
#define TN_TRAIN_PLOT_H

#include "train/thinned.h"

typedef enum tn__scale {
    TN__SCALE_AUTO, /* logarithmic where all is positive and the largest many times the smallest */
    TN__SCALE_LINEAR,
    TN__SCALE_LOG /* what is not positive is left out */
} tn__scale;

/* A curve, a band, or both. Values that are not finite are gaps. */
typedef struct tn__plot_item {
    const char *name;         /* in the legend; NULL: not in it */
    int colour;               /* the n-th of the palette, which goes round: then dashes tell curves apart */
    size_t count, stride;     /* points, and doubles from one to the next */
    const double *x, *y;      /* y NULL: a band alone */
    const double *low, *high; /* the band's edges; NULL: none */
    double opacity;           /* of the band */
} tn__plot_item;

typedef struct tn__panel {
    const char *title, *x_label; /* NULL: none */
    const char *unit;            /* behind each number of the value axis; NULL: none */
    double most;                 /* values cannot be more (100 for percents); 0: they can */
    tn__scale scale;             /* of the values */
    const tn__plot_item *items;
    int item_count;
} tn__panel;

typedef struct tn__plot {
    const char *title; /* above all panels; NULL: none */
    const tn__panel *panels;
    int panel_count, columns;
    int panel_width, panel_height; /* 0: as suits one alone */
} tn__plot;

/* A thinned curve as an item: a line of means, with the range behind it where several points are one. */
tn__plot_item tn__thinned_item(const tn__thinned *curve, const char *name, int colour);
/* By the path's ending, see tn__picture_write. */
tn_status tn__plot_write(const tn__plot *plot, const char *path);

#endif
