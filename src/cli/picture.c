/* SPDX-License-Identifier: MIT */
/*
 * Making a picture like those of a dataset. MNIST's digits lie in a box of 20 x 20 with their centre of mass in the
 * middle of 28 x 28 (LeCun, Cortes, Burges: "The MNIST database"); those of the UCI set fill their 8 x 8 from top to
 * bottom (Alpaydin, Kaynak 1998). Pictures of other sets are scaled as a whole.
 */
#include "cli/picture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/engine.h>
#include <tanso/io.h>

/* A pixel belongs to the figure when it is this much of the way from the ground to the brightest. */
#define FIGURE_THRESHOLD 0.25f
/* With less between ground and figure there is nothing to see. */
#define LEAST_CONTRAST   0.05f

static const tn__framing framings[] = {
    {"mnist", true, 20.0 / 28, true},
    {"digits", true, 1, false},
    {"*", false, 1, false},
};

const tn__framing *tn__framing_of(const char *dataset)
{
    const tn__framing *framing = framings;
    while (framing->dataset[0] != '*' && strcmp(framing->dataset, dataset) != 0)
        framing++;
    return framing;
}

void tn__picture_free(tn__picture *picture)
{
    free(picture->pixels);
    *picture = (tn__picture){0};
}

bool tn__picture_read(const char *path, tn__picture *picture)
{
    *picture = (tn__picture){0};
    TN_SCOPE {
        tn_array *grey = tn_divide(tn_load_image(path, .channels = 1), 255.0f);
        int64_t count = tn_size(grey);
        float *pixels = malloc((size_t)count * sizeof *pixels);
        if (pixels && tn_to_host(tn_cast(grey, TN_FLOAT32), pixels, (size_t)count * sizeof *pixels) == TN_OK)
            *picture = (tn__picture){(int)tn_dim(grey, 2), (int)tn_dim(grey, 1), pixels};
        else
            free(pixels);
    }
    return picture->pixels != NULL;
}

typedef struct box {
    int left, top, right, bottom; /* right and bottom are outside */
} box;

/* Mean of the outermost pixels: the ground a figure stands on. */
static float border_mean(const tn__picture *p)
{
    double sum = 0;
    long count = 0;
    for (int y = 0; y < p->height; y++) {
        bool whole = y == 0 || y == p->height - 1;
        for (int x = 0; x < p->width; x += whole || p->width < 2 ? 1 : p->width - 1, count++)
            sum += p->pixels[(size_t)y * (size_t)p->width + (size_t)x];
    }
    return (float)(sum / (double)count);
}

/* Takes the ground away and stretches what is left to 0..1; false if nothing is left. */
static bool stretch(tn__picture *p)
{
    float ground = border_mean(p), brightest = 0;
    size_t count = (size_t)p->width * (size_t)p->height;
    for (size_t i = 0; i < count; i++)
        brightest = fmaxf(brightest, p->pixels[i]);
    if (brightest - ground < LEAST_CONTRAST)
        return false;
    for (size_t i = 0; i < count; i++)
        p->pixels[i] = fmaxf(0, (p->pixels[i] - ground) / (brightest - ground));
    return true;
}

static box figure_box(const tn__picture *p)
{
    box b = {p->width, p->height, 0, 0};
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            if (p->pixels[(size_t)y * (size_t)p->width + (size_t)x] < FIGURE_THRESHOLD)
                continue;
            b.left = x < b.left ? x : b.left;
            b.right = x + 1 > b.right ? x + 1 : b.right;
            b.top = y < b.top ? y : b.top;
            b.bottom = y + 1;
        }
    return b;
}

/* Mean brightness of the rectangle [x0, x1) x [y0, y1) in pixels and parts of pixels; dark outside of the picture. */
static float area_mean(const tn__picture *p, double x0, double y0, double x1, double y1)
{
    double sum = 0;
    int top = (int)fmax(0, floor(y0)), bottom = (int)fmin(p->height, ceil(y1));
    int left = (int)fmax(0, floor(x0)), right = (int)fmin(p->width, ceil(x1));
    for (int y = top; y < bottom; y++) {
        double rows = fmin(y1, y + 1) - fmax(y0, y);
        for (int x = left; x < right; x++)
            sum += rows * (fmin(x1, x + 1) - fmax(x0, x)) * p->pixels[(size_t)y * (size_t)p->width + (size_t)x];
    }
    return (float)(sum / ((x1 - x0) * (y1 - y0)));
}

/* Pixels of `out` from the picture: `scale` pixels of the picture make one, (x, y) is the corner of the first. */
static void resample(const tn__picture *p, double x, double y, double scale, int width, int height, float *out)
{
    for (int j = 0; j < height; j++)
        for (int i = 0; i < width; i++)
            out[j * width + i] = area_mean(p, x + scale * i, y + scale * j, x + scale * (i + 1), y + scale * (j + 1));
}

/* Where the middle of the figure is. */
static void centre(const tn__picture *p, const box *b, bool by_mass, double *x, double *y)
{
    *x = (b->left + b->right) / 2.0;
    *y = (b->top + b->bottom) / 2.0;
    double mass = 0, at_x = 0, at_y = 0;
    for (int j = b->top; by_mass && j < b->bottom; j++)
        for (int i = b->left; i < b->right; i++) {
            double value = p->pixels[(size_t)j * (size_t)p->width + (size_t)i];
            mass += value;
            at_x += value * (i + 0.5);
            at_y += value * (j + 0.5);
        }
    if (mass > 0) {
        *x = at_x / mass;
        *y = at_y / mass;
    }
}

static void say(char *did, size_t size, const char *format, ...)
{
    size_t length = strlen(did);
    if (length && length + 3 < size)
        length += (size_t)snprintf(did + length, size - length, ", ");
    va_list args;
    va_start(args, format);
    vsnprintf(did + length, size - length, format, args);
    va_end(args);
}

static void frame(tn__picture *p, const tn__framing *framing, int width, int height, float *out, char *did, size_t size)
{
    box whole = {0, 0, p->width, p->height}, b = whole;
    bool crop = framing->crop && stretch(p);
    if (crop)
        b = figure_box(p);
    double fill = crop ? framing->fill : 1;
    double across = (b.right - b.left) / (fill * width), down = (b.bottom - b.top) / (fill * height);
    double scale = fmax(across, down), x, y;
    centre(p, &b, crop && framing->by_mass, &x, &y);
    resample(p, x - scale * width / 2, y - scale * height / 2, scale, width, height, out);
    if (framing->crop && !crop)
        say(did, size, "no figure stands out");
    if (crop)
        say(did, size, "the figure of %d x %d pixels cut out", b.right - b.left, b.bottom - b.top);
    say(did, size, "scaled to %d x %d", width, height);
}

bool tn__picture_fit(const tn__picture *picture, const tn__framing *framing, tn__invert invert, int width, int height,
                     float *out, char *did, size_t size)
{
    did[0] = '\0';
    size_t count = (size_t)picture->width * (size_t)picture->height;
    tn__picture copy = {picture->width, picture->height, malloc(count * sizeof(float))};
    if (!copy.pixels)
        return false;
    memcpy(copy.pixels, picture->pixels, count * sizeof(float));
    if (invert == TN__INVERT_YES || (invert == TN__INVERT_AUTO && border_mean(picture) > 0.5f)) {
        for (size_t i = 0; i < count; i++)
            copy.pixels[i] = 1 - copy.pixels[i];
        say(did, size, invert == TN__INVERT_AUTO ? "light background: inverted" : "inverted");
    }
    if (copy.width == width && copy.height == height)
        memcpy(out, copy.pixels, count * sizeof(float));
    else
        frame(&copy, framing, width, height, out, did, size);
    tn__picture_free(&copy);
    return true;
}
