/* SPDX-License-Identifier: MIT */
/*
 * What pictures are drawn with: a few shapes in pixels, x to the right and y down, which a kind of file puts into its
 * own words. plot.c draws, and knows of no kind.
 */
#ifndef TN_TRAIN_CANVAS_H
#define TN_TRAIN_CANVAS_H

#include <stdint.h>
#include <tanso/base.h>
#include "core/memory.h"

typedef enum tn__anchor { TN__ANCHOR_START, TN__ANCHOR_MIDDLE, TN__ANCHOR_END } tn__anchor;

/* How a path is drawn: as a line, or filled. */
typedef struct tn__pen {
    uint32_t colour; /* 0xRRGGBB */
    double width;    /* 0: the path is filled */
    double opacity;  /* of what is filled: 0 to 1 */
    double dash;     /* length of dashes and the gaps between them; 0: none */
} tn__pen;

typedef struct tn__canvas tn__canvas;
typedef struct tn__canvas_kind {
    /* `count` points as x, y, x, y. */
    void (*path)(tn__canvas *canvas, const double *points, size_t count, const tn__pen *pen);
    void (*circle)(tn__canvas *canvas, double x, double y, double radius, uint32_t colour);
    /* UTF-8; y is the baseline. */
    void (*text)(tn__canvas *canvas, double x, double y, tn__anchor anchor, double size, bool bold, uint32_t colour,
                 const char *text);
} tn__canvas_kind;

struct tn__canvas {
    const tn__canvas_kind *kind;
    int width, height;
};

/* About the width of a text: fonts differ, so room is left. */
double tn__text_width(const char *text, double size);

/* Draws a picture. It is only read. */
typedef void (*tn__drawing)(tn__canvas *canvas, const void *user);
/* Writes a picture by the ending of `path`: .svg or .png, which needs libpng. The file is written beside, synced and
 * renamed. */
tn_status tn__picture_write(const char *path, int width, int height, tn__drawing draw, const void *user);
/* TN_ERR_VALUE or TN_ERR_UNSUPPORTED if a picture could not be written to such a path: for the beginning of a run. */
tn_status tn__picture_known(const char *path);

/* ---- canvas_svg.c, canvas_png.c ---- */
void tn__svg_write(tn__text *out, int width, int height, tn__drawing draw, const void *user);
tn_status tn__png_write(const char *path, int width, int height, tn__drawing draw, const void *user);

#endif
