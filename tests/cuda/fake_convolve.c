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

/* Place number i of a tensor, counted without gaps; and where it lies. */
static int64_t place_of(const fake_convolution *c, int t, int64_t i, int64_t place[])
{
    int64_t at = 0;
    for (int d = c->axes + 1; d >= 0; d--) {
        place[d] = i % c->tensor[t].dim[d];
        i /= c->tensor[t].dim[d];
        at += place[d] * c->tensor[t].stride[d];
    }
    return at;
}

/* Adds a product to the sum of the tensor that is computed. */
static void add(const fake_convolution *c, double *sum, const int64_t number[FAKE_TENSORS],
                const int64_t at[FAKE_TENSORS])
{
    static const int factors[][2] = {{X, W}, {W, Y}, {X, Y}}, results[] = {Y, X, W};
    const int *factor = factors[c->way];
    sum[number[results[c->way]]] += load(c, factor[0], at[factor[0]]) * load(c, factor[1], at[factor[1]]);
}

void fake_convolve(const fake_convolution *c)
{
    static const int results[] = {Y, X, W};
    int out = results[c->way];
    int64_t y[5], w[5], x[5], per = c->tensor[W].dim[1], group = c->tensor[Y].dim[1] / (c->tensor[X].dim[1] / per);
    double *sum = calloc((size_t)size_of(c, out), sizeof *sum);
    if (sum == NULL)
        abort();
    for (int64_t i = 0; i < size_of(c, Y); i++) {
        int64_t at_y = place_of(c, Y, i, y), taps = size_of(c, W) / c->tensor[W].dim[0];
        for (int64_t k = y[1] * taps; k < (y[1] + 1) * taps; k++) {
            int64_t at_w = place_of(c, W, k, w), number = 0, at_x = 0;
            bool inside = true;
            x[0] = y[0];
            x[1] = y[1] / group * per + w[1];
            for (int d = 0; d < c->axes + 2; d++) {
                if (d >= 2)
                    x[d] = y[d] * c->step[d - 2] + w[d] * c->spread[d - 2] - c->before[d - 2];
                inside = inside && x[d] >= 0 && x[d] < c->tensor[X].dim[d];
                number = number * c->tensor[X].dim[d] + x[d];
                at_x += x[d] * c->tensor[X].stride[d];
            }
            if (inside)
                add(c, sum, (const int64_t[]){number, k, i}, (const int64_t[]){at_x, at_w, at_y});
        }
    }
    for (int64_t i = 0; i < size_of(c, out); i++)
        store(c, out, place_of(c, out, i, x), sum[i]);
    free(sum);
}
