/* SPDX-License-Identifier: MIT */
/*
 * Decimal text to numbers. Up to 19 digits with a power of ten up to 22 are exact in one multiplication or division of
 * doubles (Clinger 1990), which is nearly every number that files hold; the rest goes to strtod in the C locale.
 */
#include "io/csv.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/number.h"

#define LONGEST 512 /* characters of a number: more digits than any double has */

static bool by_library(const char *begin, const char *end, double *value)
{
    char text[LONGEST + 1], *stop;
    size_t length = (size_t)(end - begin);
    if (length == 0 || length > LONGEST || memchr(begin, 0, length) || isspace((unsigned char)*begin))
        return false;
    memcpy(text, begin, length);
    text[length] = 0;
    if (strpbrk(text, "xXpP")) /* no hexadecimal */
        return false;
    *value = tn__read_double(text, &stop);
    return stop == text + length;
}

static bool real(const char *begin, const char *end, double *value)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = begin;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    uint64_t digits = 0;
    int count = 0, scale = 0, exponent = 0;
    for (; at < end && *at >= '0' && *at <= '9' && count < 19; at++, count++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9' && count < 19; at++, count++, scale--)
            digits = digits * 10 + (uint64_t)(*at - '0');
    if (count && at < end && (*at == 'e' || *at == 'E')) {
        const char *sign = ++at;
        at += at < end && (*at == '-' || *at == '+');
        const char *first = at;
        for (; at < end && *at >= '0' && *at <= '9' && at - first < 4; at++)
            exponent = exponent * 10 + (*at - '0');
        exponent = sign < end && *sign == '-' ? -exponent : exponent;
        if (at == first)
            return false;
    }
    scale += exponent;
    if (!count || at != end || digits > (uint64_t)1 << 53 || scale < -22 || scale > 22)
        return by_library(begin, end, value);
    double magnitude = scale < 0 ? (double)digits / power[-scale] : (double)digits * power[scale];
    *value = negative ? -magnitude : magnitude;
    return true;
}

static bool whole(const char *begin, const char *end, tn_dtype dtype, tn__scalar *value)
{
    bool negative = begin < end && *begin == '-';
    begin += begin < end && (*begin == '-' || *begin == '+');
    uint64_t digits = 0;
    if (begin == end)
        return false;
    for (; begin < end; begin++)
        if (*begin < '0' || *begin > '9' || __builtin_mul_overflow(digits, 10, &digits) ||
            __builtin_add_overflow(digits, (uint64_t)(*begin - '0'), &digits))
            return false;
    int bits = 8 * tn__dtypes[dtype].size;
    if (tn__dtypes[dtype].class == TN__CLASS_UNSIGNED) {
        if ((negative && digits) || (bits < 64 && digits >> bits))
            return false;
        *value = (tn__scalar){.bits = digits};
        return true;
    }
    if (digits > ((uint64_t)1 << (bits - 1)) - !negative)
        return false;
    *value = (tn__scalar){.bits = negative ? 0 - digits : digits};
    return true;
}

bool tn__csv_number(const char *begin, const char *end, tn_dtype dtype, tn__scalar *value)
{
    if (tn__dtypes[dtype].class == TN__CLASS_SIGNED || tn__dtypes[dtype].class == TN__CLASS_UNSIGNED)
        return whole(begin, end, dtype, value);
    double number;
    if (dtype == TN_BOOL && end - begin == 4 && strncasecmp(begin, "true", 4) == 0)
        number = 1;
    else if (dtype == TN_BOOL && end - begin == 5 && strncasecmp(begin, "false", 5) == 0)
        number = 0;
    else if (!real(begin, end, &number) || (dtype == TN_BOOL && number != 0 && number != 1))
        return false;
    *value = tn__scalar_from_double(number, dtype);
    return true;
}
