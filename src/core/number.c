/* SPDX-License-Identifier: MIT */
/* Numbers in text, read and written in the C locale. */
#include "core/number.h"

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
