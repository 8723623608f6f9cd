/* SPDX-License-Identifier: MIT */
#include "cuda/fake_convolve.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/convolution/cudnn.h"

enum { X = FAKE_X, W = FAKE_W, Y = FAKE_Y };

bool fake_convolution_fits(const fake_convolution *c)
{
    const int64_t *x = c->tensor[X].dim, *w = c->tensor[W].dim, *y = c->tensor[Y].dim;
    if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] || y[1] % (x[1] / w[1]))
        return false;
    for (int i = 0; i < c->axes; i++) {
        int64_t room = x[2 + i] + c->before[i] + c->behind[i] - (w[2 + i] - 1) * c->spread[i] - 1;
        if (c->before[i] < 0 || c->behind[i] < 0 || c->step[i] < 1 || c->spread[i] < 1 || room < 0 ||
            y[2 + i] != room / c->step[i] + 1)
            return false;
    }
    return true;
}

/* ---- numbers ---- */

static double of_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023, size = exponent ? 1024 + fraction : fraction;
    for (exponent = exponent ? exponent - 25 : -24; exponent < 0; exponent++)
        size /= 2;
    for (; exponent > 0; exponent--)
        size *= 2;
    return bits >> 15 ? -size : size;
}

/* The nearest, of two the even one; what is too large is not met. */
static uint16_t to_half(double value)
{
    uint16_t sign = value < 0 ? 0x8000 : 0, low = 0, high = 0x7bff;
    double size = value < 0 ? -value : value;
    while (low < high) { /* the largest that is not larger */
        uint16_t middle = (uint16_t)((low + high + 1) / 2);
        if (of_half(middle) <= size)
            low = middle;
        else
            high = (uint16_t)(middle - 1);
    }
    double below = size - of_half(low), above = of_half((uint16_t)(low + 1)) - size;
    return (uint16_t)(sign | (low + (above < below || (above == below && low % 2))));
}

static double load(const fake_convolution *c, int t, int64_t at)
{
    if (c->dtype == TN__CUDNN_FLOAT)
        return ((const float *)c->tensor[t].place)[at];
    uint16_t bits = ((const uint16_t *)c->tensor[t].place)[at];
    if (c->dtype == TN__CUDNN_HALF)
        return of_half(bits);
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void store(const fake_convolution *c, int t, int64_t at, double value)
{
    float rounded = (float)value;
    if (c->dtype == TN__CUDNN_FLOAT) {
        ((float *)c->tensor[t].place)[at] = rounded;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    ((uint16_t *)c->tensor[t].place)[at] = c->dtype == TN__CUDNN_HALF ? to_half(rounded) : (uint16_t)(bits >> 16);
}

/* ---- loops ---- */

static int64_t size_of(const fake_convolution *c, int t)
{
    int64_t size = 1;
    for (int d = 0; d < c->axes + 2; d++)
        size *= c->tensor[t].dim[d];
    return size;
}

/* Where element number i, counted without gaps, lies. */
static int64_t place_of(const fake_convolution *c, int t, int64_t i)
{
    int64_t at = 0;
    for (int d = c->axes + 1; d >= 0; d--) {
        at += i % c->tensor[t].dim[d] * c->tensor[t].stride[d];
        i /= c->tensor[t].dim[d];
    }
    return at;
}

/* The same with three axes, those in front of extent 1, and numbers without gaps: those of the tensor that is computed
 * are sums, 0 at first. */
typedef struct loops {
    int64_t x[5], w[5], y[5], step[FAKE_AXES], spread[FAKE_AXES], before[FAKE_AXES];
    double *number[FAKE_TENSORS];
} loops;

static double *numbers_of(const fake_convolution *c, int t, bool sums)
{
    double *number = calloc((size_t)size_of(c, t), sizeof *number);
    if (number == NULL)
        abort();
    for (int64_t i = 0; i < size_of(c, t) && !sums; i++)
        number[i] = load(c, t, place_of(c, t, i));
    return number;
}

static void lay(int64_t to[5], const int64_t *dim, int axes)
{
    to[0] = dim[0];
    to[1] = dim[1];
    for (int i = 0; i < FAKE_AXES; i++)
        to[2 + i] = i < FAKE_AXES - axes ? 1 : dim[2 + i - FAKE_AXES + axes];
}

static loops loops_of(const fake_convolution *c, int out)
{
    loops l = {.step = {1, 1, 1}, .spread = {1, 1, 1}};
    int more = FAKE_AXES - c->axes;
    lay(l.x, c->tensor[X].dim, c->axes);
    lay(l.w, c->tensor[W].dim, c->axes);
    lay(l.y, c->tensor[Y].dim, c->axes);
    for (int i = 0; i < c->axes; i++) {
        l.step[more + i] = c->step[i];
        l.spread[more + i] = c->spread[i];
        l.before[more + i] = c->before[i];
    }
    for (int t = 0; t < FAKE_TENSORS; t++)
        l.number[t] = numbers_of(c, t, t == out);
    return l;
}

/* One channel of the data with one window, at one place of the result. */
static void window(const loops *l, int way, double *x, double *w, double *y, const int64_t place[FAKE_AXES])
{
    int64_t k[FAKE_AXES], at[FAKE_AXES];
    for (k[0] = 0; k[0] < l->w[2]; k[0]++)
        for (k[1] = 0; k[1] < l->w[3]; k[1]++)
            for (k[2] = 0; k[2] < l->w[4]; k[2]++, w++) {
                bool inside = true;
                for (int d = 0; d < FAKE_AXES; d++) {
                    at[d] = place[d] * l->step[d] + k[d] * l->spread[d] - l->before[d];
                    inside = inside && at[d] >= 0 && at[d] < l->x[2 + d];
                }
                double *from = inside ? &x[(at[0] * l->x[3] + at[1]) * l->x[4] + at[2]] : NULL;
                if (inside && way == 0)
                    *y += *from * *w;
                else if (inside && way == 1)
                    *from += *y * *w;
                else if (inside)
                    *w += *from * *y;
            }
}

static void convolve(const loops *l, int way)
{
    int64_t group = l->y[1] / (l->x[1] / l->w[1]), extent = l->x[2] * l->x[3] * l->x[4],
            taps = l->w[2] * l->w[3] * l->w[4], p[FAKE_AXES];
    double *y = l->number[Y];
    for (int64_t n = 0; n < l->y[0]; n++)
        for (int64_t o = 0; o < l->y[1]; o++)
            for (p[0] = 0; p[0] < l->y[2]; p[0]++)
                for (p[1] = 0; p[1] < l->y[3]; p[1]++)
                    for (p[2] = 0; p[2] < l->y[4]; p[2]++, y++)
                        for (int64_t c = 0; c < l->w[1]; c++)
                            window(l, way, &l->number[X][(n * l->x[1] + o / group * l->w[1] + c) * extent],
                                   &l->number[W][(o * l->w[1] + c) * taps], y, p);
}

void fake_convolve(const fake_convolution *c)
{
    static const int results[] = {Y, X, W};
    int out = results[c->way];
    loops l = loops_of(c, out);
    convolve(&l, c->way);
    for (int64_t i = 0; i < size_of(c, out); i++)
        store(c, out, place_of(c, out, i), l.number[out][i]);
    for (int t = 0; t < FAKE_TENSORS; t++)
        free(l.number[t]);
}
