/* SPDX-License-Identifier: MIT */
/* What the tests of io share: cmocka, errors that must say certain words, and random arrays. */
#ifndef TN_TESTS_IO_CHECK_H
#define TN_TESTS_IO_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <tanso/array.h>
#include <tanso/engine.h>
#include <tanso/io.h>
#include "support/random.h"
#include "support/scratch.h"

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

/* An array of random bytes (bools: 0 or 1) of a random shape: 0 to 4 axes with extents 0 to 5. */
tn_array *random_array(test_random *random, tn_dtype dtype);
/* Equal shapes, dtypes and bytes. */
void assert_same_array(tn_array *a, tn_array *b);

#endif
