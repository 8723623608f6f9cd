/* SPDX-License-Identifier: MIT */
/* Errors that must have been latched. */
#ifndef TN_TESTS_LATCHED_H
#define TN_TESTS_LATCHED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <tanso/base.h>

/* The latched error must have this code and these words; it is cleared. */
#define assert_failed(code, words) assert_failed_at(code, words, __FILE__, __LINE__)
static inline void assert_failed_at(tn_status code, const char *words, const char *file, int line)
{
    if (tn_error_code() != code || !strstr(tn_error(), words)) {
        printf("expected %s with \"%s\", got %s: %s\n", tn_status_name(code), words, tn_status_name(tn_error_code()),
               tn_error());
        _fail(file, line);
    }
    tn_clear_error();
}

#endif
