/* SPDX-License-Identifier: MIT */
/*
 * Pictures as PNG, painted here: a shape's coverage goes into a mask, by the distance of a pixel's middle from a line,
 * or by fractions of a row within a polygon; then its colour goes through the mask. Letters are lines (strokes.c), so
 * that a picture needs no fonts on the machine that trains.
 */
#include "train/canvas.h"

#include <math.h>
#include <string.h>
#include "core/error.h"
#include "io/file.h"
#include "train/strokes.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_PNG
#include <png.h>

/* Pixels of the file a pixel of the drawing, for today's screens. */
#define SCALE   2
/* Rows within a row of pixels that a polygon's coverage is taken from. */
#define SUBROWS 4

typedef struct paper {
    tn__canvas canvas;
    int width, height; /* of the file */
    uint8_t *rgb, *mask;
    double *crossings; /* of a row with the edges of a polygon */
    size_t capacity;
    int left, top, right, bottom; /* of what is in the mask */
    bool failed;                  /* no memory */
} paper;

static int within(double value, int most) { return value < 0 ? 0 : value > most ? most : (int)value; }

/* ---- into the mask ---- */

static void cover(paper *p, int x, int y, double share)
{
    uint8_t *at = &p->mask[(size_t)y * (size_t)p->width + (size_t)x];
    int value = (int)(255 * fmin(share, 1) + 0.5);
    *at = value > *at ? (uint8_t)value : *at;
}

static void extend(paper *p, int left, int top, int right, int bottom)
{
    p->left = left < p->left ? left : p->left;
    p->top = top < p->top ? top : p->top;
    p->right = right > p->right ? right : p->right;
    p->bottom = bottom > p->bottom ? bottom : p->bottom;
}

/* A line with round ends, in pixels of the file. */
static void cover_line(paper *p, double x0, double y0, double x1, double y1, double width)
{
    double half = width / 2, dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
    int left = within(fmin(x0, x1) - half - 1, p->width), right = within(fmax(x0, x1) + half + 2, p->width);
    int top = within(fmin(y0, y1) - half - 1, p->height), bottom = within(fmax(y0, y1) + half + 2, p->height);
    extend(p, left, top, right, bottom);
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++) {
            double px = x + 0.5 - x0, py = y + 0.5 - y0;
            double along = square > 0 ? fmin(fmax((px * dx + py * dy) / square, 0), 1) : 0;
            double share = half + 0.5 - hypot(px - along * dx, py - along * dy);
            if (share > 0)
                cover(p, x, y, share);
        }
}

/* A part of a row of the polygon, from x0 to x1. */
static void cover_part(paper *p, int y, double x0, double x1)
{
    for (int x = within(x0, p->width); x < within(ceil(x1), p->width); x++) {
        double share = fmin(x1, x + 1) - fmax(x0, x);
        uint8_t *at = &p->mask[(size_t)y * (size_t)p->width + (size_t)x];
        int value = *at + (int)(share * 255 / SUBROWS + 0.5);
        *at = (uint8_t)(value > 255 ? 255 : value);
    }
}

static void sort_few(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t k = i;
        for (; k > 0 && values[k - 1] > value; k--)
            values[k] = values[k - 1];
        values[k] = value;
    }
}

static void cover_row(paper *p, const double *points, size_t count, int row, double y)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const double *a = &points[2 * i], *b = &points[2 * ((i + 1) % count)];
        double ay = SCALE * a[1], by = SCALE * b[1];
        if ((ay <= y) != (by <= y))
            p->crossings[found++] = SCALE * (a[0] + (b[0] - a[0]) * (y - ay) / (by - ay));
    }
    sort_few(p->crossings, found);
    for (size_t i = 0; i + 1 < found; i += 2) {
        cover_part(p, row, p->crossings[i], p->crossings[i + 1]);
        extend(p, within(p->crossings[i], p->width), row, within(p->crossings[i + 1] + 1, p->width), row + 1);
    }
}

static void cover_polygon(paper *p, const double *points, size_t count)
{
    if (!tn__grow((void **)&p->crossings, &p->capacity, count, sizeof *p->crossings)) {
        p->failed = true;
        return;
    }
    double top = INFINITY, bottom = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        top = fmin(top, SCALE * points[2 * i + 1]);
        bottom = fmax(bottom, SCALE * points[2 * i + 1]);
    }
    for (int row = within(top, p->height); row < within(bottom + 1, p->height); row++)
        for (int i = 0; i < SUBROWS; i++)
            cover_row(p, points, count, row, row + (i + 0.5) / SUBROWS);
}

/* ---- through the mask ---- */

static void paint(paper *p, uint32_t colour, double opacity)
{
    const double ink[] = {colour >> 16 & 255, colour >> 8 & 255, colour & 255};
    for (int y = p->top; y < p->bottom; y++)
        for (int x = p->left; x < p->right; x++) {
            size_t at = (size_t)y * (size_t)p->width + (size_t)x;
            double share = opacity * p->mask[at] / 255;
            for (int c = 0; c < 3 && share > 0; c++)
                p->rgb[3 * at + (size_t)c] = (uint8_t)(ink[c] * share + p->rgb[3 * at + (size_t)c] * (1 - share) + 0.5);
            p->mask[at] = 0;
        }
    p->left = p->width;
    p->top = p->height;
    p->right = p->bottom = 0;
}

/* ---- shapes ---- */

/* `gone`: how far along the dashes the path is. */
static void put_dashes(paper *p, const double *a, const double *b, const tn__pen *pen, double *gone)
{
    double length = hypot(b[0] - a[0], b[1] - a[1]), at = 0;
    while (at < length) {
        double phase = fmod(*gone, 2 * pen->dash);
        double left = fmin((phase < pen->dash ? pen->dash : 2 * pen->dash) - phase, length - at);
        left = fmax(left, 1e-3); /* rounding may leave nothing */
        double s = at / length, e = fmin((at + left) / length, 1);
        if (phase < pen->dash)
            cover_line(p, SCALE * (a[0] + s * (b[0] - a[0])), SCALE * (a[1] + s * (b[1] - a[1])),
                       SCALE * (a[0] + e * (b[0] - a[0])), SCALE * (a[1] + e * (b[1] - a[1])),
                       SCALE * pen->width * 0.8);
        at += left;
        *gone += left;
    }
}

static void put_path(tn__canvas *canvas, const double *points, size_t count, const tn__pen *pen)
{
    paper *p = (paper *)canvas;
    double gone = 0;
    if (pen->width <= 0)
        cover_polygon(p, points, count);
    for (size_t i = 0; i + 1 < count && pen->width > 0; i++) {
        const double *a = &points[2 * i], *b = a + 2;
        if (pen->dash > 0)
            put_dashes(p, a, b, pen, &gone);
        else
            cover_line(p, SCALE * a[0], SCALE * a[1], SCALE * b[0], SCALE * b[1], SCALE * pen->width);
    }
    paint(p, pen->colour, pen->width > 0 ? 1 : pen->opacity);
}

static void put_circle(tn__canvas *canvas, double x, double y, double radius, uint32_t colour)
{
    paper *p = (paper *)canvas;
    cover_line(p, SCALE * x, SCALE * y, SCALE * x, SCALE * y, 2 * SCALE * radius);
    paint(p, colour, 1);
}

typedef struct lettering {
    paper *paper;
    double x, y, width; /* of the first letter's foot, and of lines */
} lettering;

static void put_stroke(double x0, double y0, double x1, double y1, void *user)
{
    const lettering *l = user;
    cover_line(l->paper, l->x + SCALE * x0, l->y - SCALE * y0, l->x + SCALE * x1, l->y - SCALE * y1, l->width);
}

static void put_text(tn__canvas *canvas, double x, double y, tn__anchor anchor, double size, bool bold, uint32_t colour,
                     const char *text)
{
    double width = tn__strokes(text, size, NULL, NULL);
    x -= anchor == TN__ANCHOR_MIDDLE ? width / 2 : anchor == TN__ANCHOR_END ? width : 0;
    lettering l = {(paper *)canvas, SCALE * x, SCALE * y, SCALE * size * (bold ? 0.115 : 0.09)};
    tn__strokes(text, size, put_stroke, &l);
    paint(l.paper, colour, 1);
}

static tn_status save(const paper *p, const char *path)
{
    char *temporary;
    tn_status status = tn__file_temporary("plot", path, &temporary);
    if (status != TN_OK)
        return status;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (unsigned)p->width,
                       .height = (unsigned)p->height,
                       .format = PNG_FORMAT_RGB};
    if (png_image_write_to_file(&image, temporary, 0, p->rgb, 0, NULL))
        return tn__file_rename("plot", temporary, path);
    status = tn__fail(TN_ERR_IO, "plot", "cannot write '%s': %s; free some space on that disk, or write elsewhere",
                      path, image.message);
    png_image_free(&image);
    tn__file_discard(temporary);
    return status;
}

tn_status tn__png_write(const char *path, int width, int height, tn__drawing draw, const void *user)
{
    static const tn__canvas_kind kind = {put_path, put_circle, put_text};
    paper p = {.canvas = {&kind, width, height}, .width = SCALE * width, .height = SCALE * height};
    size_t pixels = (size_t)p.width * (size_t)p.height;
    p.left = p.width;
    p.top = p.height;
    p.rgb = tn__alloc(3 * pixels);
    p.mask = tn__calloc(1, pixels);
    p.failed = !p.rgb || !p.mask;
    if (!p.failed) {
        memset(p.rgb, 255, 3 * pixels);
        draw(&p.canvas, user);
    }
    tn_status status = p.failed ? tn__fail_memory("plot", 4 * pixels) : save(&p, path);
    tn__free(p.crossings);
    tn__free(p.mask);
    tn__free(p.rgb);
    return status;
}

#else

tn_status tn__png_write(const char *path, int width, int height, tn__drawing draw, const void *user)
{
    (void)width, (void)height, (void)draw, (void)user;
    return tn__fail(TN_ERR_UNSUPPORTED, "plot", "'%s' needs libpng, which this build lacks", path);
}

#endif
