/* SPDX-License-Identifier: MIT */
/* Numbers in text, read and written in the C locale. */
#include "core/number.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t c_locale; /* 0 without memory for it: then the program's own serves */

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

locale_t tn__c_locale_enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return uselocale(c_locale);
}

void tn__c_locale_leave(locale_t before) { uselocale(before); }

double tn__read_double(const char *text, char **end)
{
    locale_t before = tn__c_locale_enter();
    double value = strtod(text, end);
    tn__c_locale_leave(before);
    return value;
}

int tn__vprint_into(char *buffer, size_t capacity, const char *format, va_list args)
{
    locale_t before = tn__c_locale_enter();
    int length = vsnprintf(buffer, capacity, format, args);
    tn__c_locale_leave(before);
    return length;
}

int tn__print_into(char *buffer, size_t capacity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = tn__vprint_into(buffer, capacity, format, args);
    va_end(args);
    return length;
}

/* The decimal digits of a number, at least `least` of them; gives their end. */
static char *put_digits(char *at, uint64_t value, int least)
{
    char digits[20];
    int count = 0;
    for (; value || count < least; value /= 10)
        digits[count++] = (char)('0' + value % 10);
    while (count)
        *at++ = digits[--count];
    return at;
}

void tn__print_whole(char text[TN__BRIEF_TEXT], int64_t value)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    *text = '-';
    *put_digits(text + (value < 0), size, 1) = '\0';
}

void tn__print_brief(char text[TN__BRIEF_TEXT], double value)
{
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    double size = fabs(value);
    int decimals = 0;
    bool fixed = size >= 1e-4 && size < 999999;
    while (fixed && decimals < 9 && size * power[decimals] < 1e5)
        decimals++;
    /* Six digits before the point, off by less than 1e-9: what lies behind it says how to round, unless it is near a
     * half, which is for printf to decide, as is what is shown with an exponent. */
    double scaled = fixed ? size * power[decimals] : 0, rest = scaled - floor(scaled);
    if (!fixed || fabs(rest - 0.5) < 1e-6) {
        tn__print_into(text, TN__BRIEF_TEXT, "%.6g", value);
        return;
    }
    uint64_t digits = (uint64_t)scaled + (rest > 0.5), one = (uint64_t)power[decimals];
    *text = '-';
    char *end = put_digits(text + (value < 0), digits / one, 1);
    if (digits % one) {
        *end++ = '.';
        end = put_digits(end, digits % one, decimals);
        while (end[-1] == '0')
            end--;
    }
    *end = '\0';
}
