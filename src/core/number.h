/* SPDX-License-Identifier: MIT */
/*
 * Numbers in text have a point, whatever locale the program has set. What the library reads (words of layers and
 * optimizers, environment variables, its files) and writes (files, messages) means the same everywhere.
 */
#ifndef TN_CORE_NUMBER_H
#define TN_CORE_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <tanso/base.h>

/* strtod, vsnprintf and snprintf in the C locale. */
double tn__read_double(const char *text, char **end);
int tn__vprint_into(char *buffer, size_t capacity, const char *format, va_list args);
int tn__print_into(char *buffer, size_t capacity, const char *format, ...) TN_PRINTF(3, 4);

/* As "%.6g" and "%lld" in the C locale, for what is written by the thousand (pictures, tables, logs): vsnprintf takes
 * some thousand instructions a number where a library of the process has added conversions to it, as OpenBLAS's Fortran
 * has. */
#define TN__BRIEF_TEXT 24
void tn__print_brief(char text[TN__BRIEF_TEXT], double value);
void tn__print_whole(char text[TN__BRIEF_TEXT], int64_t value);

/* The calling thread is in the C locale until tn__c_locale_leave(what this returned). */
locale_t tn__c_locale_enter(void);
void tn__c_locale_leave(locale_t before);

#endif
