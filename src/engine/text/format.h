/* SPDX-License-Identifier: MIT */
/* Numbers as text the way NumPy's print writes them: one format for all elements of an array, and
 * scalars alone. */
#ifndef TN_ENGINE_TEXT_FORMAT_H
#define TN_ENGINE_TEXT_FORMAT_H

#include <tanso/base.h>

/* Bytes that hold any formatted number and its terminator. */
#define TN__NUMBER_TEXT 128

/* How the elements of one array are written, so that their columns align. */
typedef struct tn__number_format {
    tn_dtype dtype; /* of complex numbers, that of the parts */
    bool plus;      /* positive numbers have a sign, too: imaginary parts */
    int width; /* bool and integers: characters; floats that are not finite: characters too */
    bool scientific;
    int left, right; /* floats: characters before and after the point */
    int precision;   /* floats: digits after the point, at most; when scientific, exactly */
    int exponent_digits;
} tn__number_format;

/* The format of an array: of its elements, or of their real and imaginary parts. */
typedef struct tn__element_format {
    tn_dtype dtype;
    tn__number_format part[2];
} tn__element_format;

/* The format for `count` elements; scalar: they are the one element of a 0-d array. */
tn__element_format tn__element_format_for(tn_dtype dtype, bool scalar, const void *elements, size_t count);
/* Writes one element in the array's format; returns the number of characters. */
int tn__element_write(const tn__element_format *format, const void *element, char text[TN__NUMBER_TEXT]);
/* Writes one element as Python's str of NumPy's scalar does. */
int tn__number_write_alone(tn_dtype dtype, const void *element, char text[TN__NUMBER_TEXT]);

#endif
