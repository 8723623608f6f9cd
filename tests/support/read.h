/* SPDX-License-Identifier: MIT */
/* Results of arrays for tests that compute them again in float64. */
#ifndef TN_TESTS_READ_H
#define TN_TESTS_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <tanso/array.h>
#include <tanso/engine.h>

/* x's elements as doubles in C order, wherever x is; freed by the caller. */
static inline double *test_doubles(const tn_array *x)
{
    size_t count = (size_t)tn_size(x);
    double *at = malloc((count + 1) * sizeof *at);
    assert_non_null(at);
    if (tn_to_host(tn_cast(x, TN_FLOAT64), at, count * sizeof *at) != TN_OK)
        fail_msg("%s", tn_error());
    return at;
}

#endif
