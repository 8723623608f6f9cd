/* SPDX-License-Identifier: MIT */
/*
 * Decimal digits of floating-point numbers: the shortest by integers of 128 bits where those are exact,
 * else by the C library's exact conversions (which round correctly, ties to even). Digits are read by
 * position and text is read back without a decimal point, so that no locale matters.
 */
#include "engine/text/digits.h"

#include "core/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* What the search for the shortest digits needs of a dtype: every number of so many digits survives
 * a round trip through it, so there is at most one decimal of that length for a number; no number needs
 * more than `most`; bits of a significand, and the exponent of the smallest normal number. */
typedef struct width {
    int sure, most, bits, least;
} width;

static const width widths[TN_DTYPE_COUNT] = {
    [TN_FLOAT16] = {3, 5, 11, -14},
    [TN_BFLOAT16] = {6, 9, 24, -126},
    [TN_FLOAT32] = {6, 9, 24, -126},
    [TN_FLOAT64] = {15, 17, 53, -1022},
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

/* By trying: numbers so large or small that 128 bits do not hold what `generate` needs. */
static tn__digits search(double x, tn_dtype dtype)
{
    const width *w = &widths[dtype];
    tn__digits d = {0};
    int n = x < ldexp(1, w->least) ? 1 : w->sure;
    while (n < w->most && !find(x, dtype, n, &d))
        n++;
    if (n == w->most)
        d = rounded_untrimmed(x, n - 1);
    trim(&d);
    return d;
}

/* x is r / s; what lies less than below / s under it or above / s over it is read as x, too, and so are those bounds
 * themselves where the significand is even, as ties go there. */
typedef struct fraction {
    wide r, s, below, above;
    bool even;
} fraction;

/* The largest s: ten times r, which is below it, still fits. */
#define MOST_BITS 123

static wide power_of_ten(int n)
{
    wide power = 1;
    while (n-- > 0)
        power *= 10;
    return power;
}

/* The fraction of x / 10^exponent; false where 128 bits are too few. Scaled by 4, so that halves of the gaps to both
 * neighbours are whole: below a power of two the gap is half of that above. */
static bool fraction_of(double x, const width *w, int exponent, fraction *f)
{
    int e;
    double significand = frexp(x, &e);
    e = (e > w->least ? e : w->least + 1) - w->bits; /* x is m 2^e */
    uint64_t m = (uint64_t)ldexp(x, -e);
    int up = e > 0 ? e : 0, down = e < 0 ? -e : 0;
    int tens = exponent < 0 ? -exponent : exponent;
    /* 10^n takes n log2(10) bits, which is below n 10 / 3 */
    int r_bits = w->bits + 2 + up + (exponent < 0 ? tens * 10 / 3 + 1 : 0);
    int s_bits = 2 + down + (exponent > 0 ? tens * 10 / 3 + 1 : 0);
    if (r_bits > MOST_BITS || s_bits > MOST_BITS)
        return false;
    wide of_x = (wide)1 << up, scale = power_of_ten(tens);
    of_x *= exponent < 0 ? scale : 1;
    *f = (fraction){.r = 4 * m * of_x, .s = ((wide)4 << down) * (exponent > 0 ? scale : 1), .even = m % 2 == 0};
    f->above = 2 * of_x;
    f->below = significand == 0.5 && e > w->least + 1 - w->bits ? of_x : f->above;
    return true;
}

/* Steele and White 1990, Burger and Dybvig 1996: digit by digit, until what is left is below the gap. For x below 10^0
 * and not below 10^-1 (as the upper bound is). */
static tn__digits generate(fraction f)
{
    tn__digits d = {.exponent = -1};
    bool low, high;
    do {
        f.r *= 10;
        f.below *= 10;
        f.above *= 10;
        int digit = (int)(f.r / f.s);
        f.r -= (unsigned)digit * f.s;
        low = f.r < f.below || (f.even && f.r == f.below);
        high = f.r + f.above > f.s || (f.even && f.r + f.above == f.s);
        if (high && (!low || 2 * f.r > f.s || (2 * f.r == f.s && digit % 2)))
            digit++;
        d.digit[d.count++] = (char)('0' + digit);
    } while (!low && !high);
    return d;
}

/* Whether numbers up to 1 are read as it. */
static bool reaches_one(const fraction *f)
{
    return f->r + f->above > f->s || (f->even && f->r + f->above == f->s);
}

tn__digits tn__digits_shortest(double x, tn_dtype dtype)
{
    const width *w = &widths[dtype];
    x = fabs(x);
    if (x == 0)
        return (tn__digits){.count = 1, .digit = {'0'}};
    int exponent = (int)ceil(log10(x)); /* or one more or less, by rounding */
    fraction f;
    for (int i = -1; i <= 2; i++)
        if (!fraction_of(x, w, exponent + i, &f))
            return search(x, dtype);
        else if (!reaches_one(&f)) {
            tn__digits d = generate(f);
            d.exponent += exponent + i;
            return d;
        }
    return search(x, dtype);
}
