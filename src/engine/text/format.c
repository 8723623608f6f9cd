/* SPDX-License-Identifier: MIT */
/*
 * The text of numbers. Floats follow NumPy's default print options: the shortest digits, at most 8
 * after the point, scientific when the largest is 1e8 or more, the smallest less than 1e-4, or
 * their ratio above 1000.
 */
#include "engine/text/format.h"

#include "core/dtype.h"
#include "engine/text/digits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PRECISION 8

static tn__scalar element(tn_dtype dtype, const void *elements, size_t i)
{
    tn__scalar s = {0};
    size_t size = tn_dtype_size(dtype);
    memcpy(s.bytes, (const char *)elements + i * size, size);
    return s;
}

static double float_at(tn_dtype dtype, const void *elements, size_t offset)
{
    return tn__scalar_to_double(element(dtype, (const char *)elements + offset, 0), dtype);
}

/* ---- digits to text ---- */

static int text_positional(const tn__digits *d, bool negative, char *text)
{
    char *t = text;
    if (negative)
        *t++ = '-';
    for (int i = 0; i <= d->exponent || i == 0; i++)
        *t++ = d->exponent >= 0 && i < d->count ? d->digit[i] : '0';
    *t++ = '.';
    for (int place = -1; place > d->exponent && d->exponent < 0; place--)
        *t++ = '0';
    for (int i = d->exponent >= 0 ? d->exponent + 1 : 0; i < d->count; i++)
        *t++ = d->digit[i];
    *t = 0;
    return (int)(t - text);
}

/* At least `places` digits after the point. */
static int text_scientific(const tn__digits *d, bool negative, int places, int exponent_digits,
                           char *text)
{
    char *t = text;
    if (negative)
        *t++ = '-';
    *t++ = d->digit[0];
    *t++ = '.';
    for (int i = 1; i < d->count || i <= places; i++)
        *t++ = i < d->count ? d->digit[i] : '0';
    t += sprintf(t, "e%c%0*d", d->exponent < 0 ? '-' : '+', exponent_digits,
                 d->exponent < 0 ? -d->exponent : d->exponent);
    return (int)(t - text);
}

/* Digits after the decimal point. */
static int places_of(const tn__digits *d)
{
    return d->count - 1 > d->exponent ? d->count - 1 - d->exponent : 0;
}

/* Before the point all digits are true ones, also where fewer would do. */
static tn__digits digits_positional(double x, tn_dtype dtype)
{
    tn__digits d = tn__digits_shortest(x, dtype);
    if (d.count - 1 < d.exponent)
        return tn__digits_rounded_fixed(x, 0);
    return places_of(&d) > PRECISION ? tn__digits_rounded_fixed(x, PRECISION) : d;
}

static tn__digits digits_scientific(double x, tn_dtype dtype)
{
    tn__digits d = tn__digits_shortest(x, dtype);
    return d.count - 1 > PRECISION ? tn__digits_rounded(x, PRECISION) : d;
}

static int pad_left(char *text, int length, int width)
{
    int pad = width - length;
    if (pad <= 0)
        return length;
    memmove(text + pad, text, (size_t)length + 1);
    memset(text, ' ', (size_t)pad);
    return width;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* ---- floats ---- */

/* The quotient as the dtype computes it. */
static double ratio(double a, double b, tn_dtype dtype)
{
    if (dtype == TN_FLOAT64)
        return a / b;
    float quotient = (float)a / (float)b;
    return dtype == TN_FLOAT16
               ? tn__scalar_to_double(tn__scalar_from_double(quotient, TN_FLOAT16), TN_FLOAT16)
               : quotient;
}

static bool wants_scientific(tn_dtype dtype, const void *elements, size_t stride, size_t count)
{
    double largest = 0, smallest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        double x = fabs(float_at(dtype, elements, i * stride));
        if (!isfinite(x) || x == 0)
            continue;
        largest = x > largest ? x : largest;
        smallest = x < smallest ? x : smallest;
    }
    /* NumPy 2 compares in the dtype, where float32's 1e-4 is not below 1e-4 */
    double least = dtype == TN_FLOAT32 ? (double)1e-4f : 1e-4;
    return largest > 0 &&
           (largest >= 1e8 || smallest < least || ratio(largest, smallest, dtype) > 1000);
}

static void measure_positional(tn__number_format *f, double x)
{
    tn__digits d = digits_positional(x, f->dtype);
    f->left = max_int(f->left, max_int(d.exponent, 0) + 1 + (f->plus || signbit(x)));
    f->right = max_int(f->right, places_of(&d));
}

static void measure_scientific(tn__number_format *f, double x)
{
    tn__digits d = digits_scientific(x, f->dtype);
    f->left = max_int(f->left, 1 + (f->plus || signbit(x)));
    f->precision = max_int(f->precision, d.count - 1);
    f->exponent_digits =
        max_int(f->exponent_digits, d.exponent <= -100 || d.exponent >= 100 ? 3 : 2);
}

/* Of numbers that lie `stride` bytes apart. */
static void fit_floats(tn__number_format *f, const void *elements, size_t stride, size_t count)
{
    int not_finite = 0; /* characters of the longest one */
    f->scientific = wants_scientific(f->dtype, elements, stride, count);
    for (size_t i = 0; i < count; i++) {
        double x = float_at(f->dtype, elements, i * stride);
        if (!isfinite(x))
            not_finite = max_int(not_finite, f->plus || (isinf(x) && x < 0) ? 4 : 3);
        else
            (f->scientific ? measure_scientific : measure_positional)(f, x);
    }
    if (f->scientific)
        f->right = f->precision + 2 + f->exponent_digits;
    f->left = max_int(f->left, not_finite - f->right - 1);
    f->width = f->left + 1 + f->right;
}

static int write_not_finite(double x, char *text)
{
    return sprintf(text, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

/* The sign that every number has where positive ones have one. */
static void set_plus(double x, char *text)
{
    if (text[0] == '-' && !signbit(x))
        text[0] = '+';
}

static int write_float(const tn__number_format *f, double x, char *text)
{
    if (!isfinite(x)) {
        int length = f->plus && !(x < 0) ? sprintf(text, "+") : 0;
        return pad_left(text, length + write_not_finite(x, text + length), f->width);
    }
    bool negative = f->plus || signbit(x);
    if (f->scientific) {
        /* Digits beyond the shortest are true ones, not zeros. */
        tn__digits d = tn__digits_shortest(x, f->dtype);
        if (d.count - 1 != f->precision)
            d = tn__digits_rounded(x, f->precision);
        int length = text_scientific(&d, negative, f->precision, f->exponent_digits, text);
        set_plus(x, text);
        return pad_left(text, length, f->left + 1 + f->right);
    }
    tn__digits d = digits_positional(x, f->dtype);
    int length = text_positional(&d, negative, text);
    set_plus(x, text);
    length = pad_left(text, length, f->left + 1 + places_of(&d));
    while (length < f->width)
        text[length++] = ' ';
    text[length] = 0;
    return length;
}

static int write_float_alone(tn_dtype dtype, double x, char *text)
{
    if (!isfinite(x))
        return write_not_finite(x, text);
    tn__digits d = tn__digits_shortest(x, dtype);
    if (x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e16)) {
        int length = text_positional(&d, signbit(x), text);
        if (text[length - 1] == '.')
            length += sprintf(text + length, "0");
        return length;
    }
    int length = text_scientific(&d, signbit(x), 0, 2, text);
    char *point = strchr(text, '.');
    if (point[1] != 'e')
        return length;
    memmove(point, point + 1, strlen(point));
    return length - 1;
}

/* ---- any dtype ---- */

static int write_whole(tn_dtype dtype, tn__scalar s, char *text)
{
    if (dtype == TN_BOOL)
        return sprintf(text, "%s", s.bits ? "True" : "False");
    if (tn__dtypes[dtype].class == TN__CLASS_UNSIGNED)
        return sprintf(text, "%" PRIu64, s.bits);
    return sprintf(text, "%" PRId64, tn__scalar_to_int(s, dtype));
}

static tn__number_format format_for(tn_dtype dtype, bool scalar, bool plus, const void *elements, size_t stride,
                                    size_t count)
{
    tn__number_format f = {.dtype = dtype, .plus = plus};
    char text[TN__NUMBER_TEXT];
    if (tn_dtype_is_float(dtype))
        fit_floats(&f, elements, stride, count);
    else if (dtype == TN_BOOL)
        f.width = scalar ? 0 : 5;
    else
        for (size_t i = 0; i < count; i++)
            f.width = max_int(f.width, write_whole(dtype, element(dtype, elements, i), text));
    return f;
}

tn__element_format tn__element_format_for(tn_dtype dtype, bool scalar, const void *elements, size_t count)
{
    tn_dtype part = (tn_dtype)tn__dtypes[dtype].component;
    size_t size = tn_dtype_size(dtype);
    tn__element_format f = {.dtype = dtype, .part = {format_for(part, scalar, false, elements, size, count)}};
    if (part != dtype)
        f.part[1] = format_for(part, scalar, true, (const char *)elements + tn_dtype_size(part), size, count);
    return f;
}

static int write_part(const tn__number_format *format, const void *at, char *text)
{
    tn__scalar s = element(format->dtype, at, 0);
    if (tn_dtype_is_float(format->dtype))
        return write_float(format, tn__scalar_to_double(s, format->dtype), text);
    return pad_left(text, write_whole(format->dtype, s, text), format->width);
}

int tn__element_write(const tn__element_format *format, const void *at, char text[TN__NUMBER_TEXT])
{
    int length = write_part(&format->part[0], at, text);
    if (!tn_dtype_is_complex(format->dtype))
        return length;
    length += write_part(&format->part[1], (const char *)at + tn_dtype_size(format->part[0].dtype), text + length);
    int end = length; /* the j comes before what pads the number */
    while (end > 0 && text[end - 1] == ' ')
        end--;
    memmove(text + end + 1, text + end, (size_t)(length - end) + 1);
    text[end] = 'j';
    return length + 1;
}

/* Python's text of a part: a whole number has no point. */
static int write_part_alone(tn_dtype dtype, const void *at, char *text)
{
    int length = write_float_alone(dtype, float_at(dtype, at, 0), text);
    if (length > 2 && strcmp(text + length - 2, ".0") == 0)
        text[length -= 2] = 0;
    return length;
}

static int write_complex_alone(tn_dtype dtype, const void *at, char *text)
{
    const void *second = (const char *)at + tn_dtype_size(dtype);
    double re = float_at(dtype, at, 0), im = float_at(dtype, second, 0);
    if (re == 0 && !signbit(re)) {
        int length = write_part_alone(dtype, second, text);
        return length + sprintf(text + length, "j");
    }
    int length = sprintf(text, "(");
    length += write_part_alone(dtype, at, text + length);
    if (isnan(im) || !signbit(im))
        length += sprintf(text + length, "+");
    length += write_part_alone(dtype, second, text + length);
    return length + sprintf(text + length, "j)");
}

int tn__number_write_alone(tn_dtype dtype, const void *at, char text[TN__NUMBER_TEXT])
{
    if (tn_dtype_is_complex(dtype))
        return write_complex_alone((tn_dtype)tn__dtypes[dtype].component, at, text);
    tn__scalar s = element(dtype, at, 0);
    return tn_dtype_is_float(dtype) ? write_float_alone(dtype, tn__scalar_to_double(s, dtype), text)
                                    : write_whole(dtype, s, text);
}
