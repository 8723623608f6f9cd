/* SPDX-License-Identifier: MIT */
/* Decimal digits of floating-point numbers: the shortest that name a number, and those rounded at a
 * place. */
#ifndef TN_ENGINE_TEXT_DIGITS_H
#define TN_ENGINE_TEXT_DIGITS_H

#include <tanso/base.h>

#define TN__MAX_DIGITS 40

/* digit[0].digit[1]digit[2]... times ten to the exponent, without trailing zeros; zero is the one
 * digit 0. */
typedef struct tn__digits {
    int count;
    int exponent;
    char digit[TN__MAX_DIGITS]; /* '0' ... '9' */
} tn__digits;

/* Fewest digits that tell |x| from every other number of the dtype (bfloat16: of float32), nearest
 * to it among those. */
tn__digits tn__digits_shortest(double x, tn_dtype dtype);
/* |x| rounded to `places` digits after the first one / after the decimal point, exactly, ties to
 * even. */
tn__digits tn__digits_rounded(double x, int places);
tn__digits tn__digits_rounded_fixed(double x, int places);

#endif
