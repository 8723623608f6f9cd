/* SPDX-License-Identifier: MIT */
/* Bilinear scaling. */
#include "data/scale.h"

static float pixel(const tn__plane *p, int64_t row, int64_t column)
{
    int64_t at = (row * p->width + column) * p->step;
    return p->bytes ? (float)((const uint8_t *)p->data)[at] / 255.0f : ((const float *)p->data)[at];
}

/* A coordinate of the scaled picture in the one that came: the pixel before it, and how far it is behind that. */
static int64_t locate(int64_t at, int64_t scaled, int64_t from, float *part)
{
    double place = ((double)at + 0.5) * (double)from / (double)scaled - 0.5;
    place = place < 0 ? 0 : place > (double)(from - 1) ? (double)(from - 1) : place;
    int64_t before = (int64_t)place;
    before -= before == from - 1 && before > 0;
    *part = (float)(place - (double)before);
    return before;
}

float tn__plane_scaled(const tn__plane *p, int64_t height, int64_t width, int64_t row, int64_t column)
{
    if (height == p->height && width == p->width)
        return pixel(p, row, column);
    float down, right;
    int64_t y = locate(row, height, p->height, &down), x = locate(column, width, p->width, &right);
    int64_t below = p->height > 1 ? y + 1 : y, beside = p->width > 1 ? x + 1 : x;
    float above = pixel(p, y, x) * (1 - right) + pixel(p, y, beside) * right;
    float under = pixel(p, below, x) * (1 - right) + pixel(p, below, beside) * right;
    return above * (1 - down) + under * down;
}
