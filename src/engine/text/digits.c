/* SPDX-License-Identifier: MIT */
/*
 * Decimal digits of floating-point numbers, by the C library's exact conversions (which round
 * correctly, ties to even). Digits are read by position and text is read back without a decimal
 * point, so that no locale matters.
 */
#include "engine/text/digits.h"

#include "core/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the search for the shortest digits needs of a dtype: every number of so many digits survives
 * a round trip through it, so there is at most one decimal of that length for a number; and no
 * number needs more than `most`. */
typedef struct width {
    int sure, most;
    double smallest_normal;
} width;

static const width widths[TN_DTYPE_COUNT] = {
    [TN_FLOAT16] = {3, 5, 0x1p-14},
    [TN_BFLOAT16] = {6, 9, 0x1p-126},
    [TN_FLOAT32] = {6, 9, 0x1p-126},
    [TN_FLOAT64] = {15, 17, 0x1p-1022},
};

static void trim(tn__digits *d)
{
    while (d->count > 1 && d->digit[d->count - 1] == '0')
        d->count--;
}

/* The digits of "d.ddde+xx" whatever stands for the point. */
static tn__digits read_scientific(const char *text)
{
    tn__digits d = {0};
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && d.count < TN__MAX_DIGITS)
            d.digit[d.count++] = *text;
    d.exponent = *text ? atoi(text + 1) : 0;
    return d;
}

static tn__digits rounded_untrimmed(double x, int places)
{
    char text[TN__MAX_DIGITS + 16];
    snprintf(text, sizeof text, "%.*e", places, fabs(x));
    return read_scientific(text);
}

tn__digits tn__digits_rounded(double x, int places)
{
    tn__digits d = rounded_untrimmed(x, places);
    trim(&d);
    return d;
}

tn__digits tn__digits_rounded_fixed(double x, int places)
{
    char text[400];
    snprintf(text, sizeof text, "%.*f", places, fabs(x));
    tn__digits d = {.exponent = -1};
    bool whole = true;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9') {
            whole = false;
            continue;
        }
        if (d.count || *c != '0') {
            if (d.count < TN__MAX_DIGITS)
                d.digit[d.count++] = *c;
            d.exponent += whole;
        } else if (!whole) {
            d.exponent--;
        }
    }
    if (!d.count)
        d = (tn__digits){.count = 1, .digit = {'0'}};
    trim(&d);
    return d;
}

/* Whether these digits, read as a number of the dtype, are |x|. */
static bool names(const tn__digits *d, double x, tn_dtype dtype)
{
    char text[TN__MAX_DIGITS + 16];
    snprintf(text, sizeof text, "%.*se%d", d->count, d->digit, d->exponent - d->count + 1);
    if (dtype == TN_FLOAT64)
        return strtod(text, NULL) == x;
    if (dtype != TN_FLOAT16)
        return strtof(text, NULL) == (float)x;
    /* Five digits decide on which side of a midpoint of float16 a number lies, also after rounding
     * to double. */
    tn__scalar half = tn__scalar_from_double(strtod(text, NULL), TN_FLOAT16);
    return tn__scalar_to_double(half, TN_FLOAT16) == x;
}

/* The next decimal of the same length; false when it would be longer. */
static bool increment(tn__digits *d)
{
    for (int i = d->count; i-- > 0;) {
        if (d->digit[i] != '9') {
            d->digit[i]++;
            return true;
        }
        d->digit[i] = '0';
    }
    return false;
}

/* Numbers that n digits name: the nearest decimal or, at a power of two, whose upper neighbour is
 * twice as far away as the lower one, the one above it. */
static bool find(double x, tn_dtype dtype, int n, tn__digits *d)
{
    *d = rounded_untrimmed(x, n - 1);
    if (names(d, x, dtype))
        return true;
    return increment(d) && names(d, x, dtype);
}

tn__digits tn__digits_shortest(double x, tn_dtype dtype)
{
    const width *w = &widths[dtype];
    tn__digits d = {.count = 1, .digit = {'0'}};
    x = fabs(x);
    if (x == 0)
        return d;
    int n = x < w->smallest_normal ? 1 : w->sure;
    while (n < w->most && !find(x, dtype, n, &d))
        n++;
    if (n == w->most)
        d = rounded_untrimmed(x, n - 1);
    trim(&d);
    return d;
}
